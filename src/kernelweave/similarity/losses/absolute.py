"""The sum of absolute differences."""

from __future__ import annotations

import numpy as np

from ._base import Array, SimilarityLoss

__all__ = ["AbsoluteLoss"]


class AbsoluteLoss(SimilarityLoss, registered_as="l1"):
    """``(1/n) sum_ij |X_ij|``.

    >>> AbsoluteLoss().value(np.array([[1.0, -1.0], [-1.0, 0.0]]))
    1.5
    """

    def value(self, X: Array) -> float:
        return float(np.sum(np.abs(X))) / X.shape[0]

    def subgradient(self, X: Array) -> Array:
        return np.sign(X) / X.shape[0]

    def conjugate(self, Z: Array) -> float:
        return 0.0 if float(np.max(np.abs(Z))) * Z.shape[0] <= 1.0 + 1e-9 else np.inf

    def prox(self, X: Array, step: float) -> Array:
        shrunk: Array = np.sign(X) * np.maximum(np.abs(X) - step / X.shape[0], 0.0)
        return shrunk

    def aggregate(self, rows: Array, shares: Array) -> Array:
        middle: Array = np.median(rows, axis=0)
        return middle

    def shares(self, residuals: Array) -> Array:
        # the median decides entry by entry; over all entries a similarity counts as it agrees with the kernel
        size = np.array([self.value(X) for X in residuals])
        pull = 1.0 / np.maximum(size, 1e-9 * max(float(size.max()), 1e-300))
        return pull / pull.sum()
