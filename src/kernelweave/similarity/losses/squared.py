"""The squared Frobenius norm of the difference."""

from __future__ import annotations

import numpy as np

from ._base import Array, SimilarityLoss

__all__ = ["SquaredLoss"]


class SquaredLoss(SimilarityLoss, registered_as="squared"):
    """``(1/n) |X|_F^2``: only the mean of the similarities matters."""

    spectral = True
    quadratic = True

    def value(self, X: Array) -> float:
        return float(np.sum(X * X)) / X.shape[0]

    def subgradient(self, X: Array) -> Array:
        slope: Array = (2.0 / X.shape[0]) * X
        return slope

    def conjugate(self, Z: Array) -> float:
        return 0.25 * Z.shape[0] * float(np.sum(Z * Z))

    def curvature(self, X: Array) -> float:
        return 1.0 / X.shape[0]

    def prox(self, X: Array, step: float) -> Array:
        return X / (1.0 + 2.0 * step / X.shape[0])
