"""The Frobenius norm of the difference."""

from __future__ import annotations

import numpy as np

from ._base import Array, SimilarityLoss

__all__ = ["FrobeniusLoss"]


class FrobeniusLoss(SimilarityLoss, registered_as="frobenius"):
    """``|X|_F``: the further a similarity is, the less it says."""

    spectral = True

    def value(self, X: Array) -> float:
        return float(np.linalg.norm(X))

    def subgradient(self, X: Array) -> Array:
        size = float(np.linalg.norm(X))
        return X / size if size > 0 else np.zeros_like(X)

    def conjugate(self, Z: Array) -> float:
        return 0.0 if float(np.linalg.norm(Z)) <= 1.0 + 1e-9 else np.inf

    def curvature(self, X: Array) -> float:
        return 0.5 / max(float(np.linalg.norm(X)), 1e-9)

    def prox(self, X: Array, step: float) -> Array:
        size = float(np.linalg.norm(X))
        return X * max(1.0 - step / size, 0.0) if size > 0 else X.copy()
