"""One mixture of kernels at every scale, from one eigendecomposition: what the scan before any descent reads."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .design import Array, Design

__all__ = ["Spectrum"]


class Spectrum:
    """Eigenvalues and vectors of ``sum_j w_j K_j``, with targets in their coordinates.

    ``V`` at a factor r is ``(I + r sum_j w_j K_j)^-1``.
    """

    def __init__(self, design: Design, weights: Array, Y: Array) -> None:
        self.design = design
        values, self.vectors = np.linalg.eigh(np.tensordot(weights, design.kernels, axes=1))
        self.values = np.maximum(values, 0.0)
        self._rotated = self.vectors.T @ Y
        self._squared: Array | None = None

    def _shrunk(self, factor: float) -> Array:
        return 1.0 / (1.0 + factor * self.values)

    def forms(self, factor: float) -> Array:
        """``y'V y`` of every target."""
        if self._squared is None:
            self._squared = self._rotated**2
        return np.asarray(self._shrunk(factor) @ self._squared)

    def solved(self, factor: float) -> Array:
        """``V Y``."""
        return np.asarray(self.vectors @ (self._shrunk(factor)[:, None] * self._rotated))

    def leverage(self, factor: float) -> Array:
        """Diagonal of M."""
        return np.asarray(self.vectors**2 @ self._shrunk(factor) - self.design.direction**2)

    def block(self, factor: float, rows: NDArray[np.intp]) -> Array:
        """Rows and columns of M."""
        part, u = self.vectors[rows], self.design.direction[rows]
        return np.asarray((part * self._shrunk(factor)) @ part.T - np.multiply.outer(u, u))
