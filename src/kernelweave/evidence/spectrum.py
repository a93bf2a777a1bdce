"""One mixture of kernels at every scale, from one eigendecomposition: what the scan before any descent reads."""

from __future__ import annotations

import numpy as np

from .._numerics.namespace import namespace, to_numpy
from .design import Array, Design, Stored

__all__ = ["Spectrum"]


class Spectrum:
    """Eigenvalues and vectors of ``sum_j w_j K_j``, with targets in their coordinates.

    ``V`` at a factor r is ``(I + r sum_j w_j K_j)^-1``.
    """

    def __init__(self, design: Design, weights: Array, Y: Stored) -> None:
        self.design = design
        mixed = (design.store(weights[None]) @ design.flat).reshape(design.n, design.n)
        values, self.vectors = namespace(mixed).linalg.eigh(mixed)
        self.values = np.maximum(to_numpy(values), 0.0)
        self._rotated = self.vectors.T @ Y
        self._squared: Stored = None

    def _shrunk(self, factor: float) -> Stored:
        return self.design.store(1.0 / (1.0 + factor * self.values))

    def forms(self, factors: Array) -> Array:
        """``y'V y`` of every target at several factors, ``(factors, t)``."""
        if self._squared is None:
            self._squared = self._rotated**2
        shrunk = self.design.store(1.0 / (1.0 + np.multiply.outer(factors, self.values)))
        return to_numpy(shrunk @ self._squared)

    def solved(self, factor: float) -> Stored:
        """``V Y``."""
        return self.vectors @ (self._shrunk(factor)[:, None] * self._rotated)

    def leverage(self, factor: float) -> Array:
        """Diagonal of M."""
        return to_numpy(self.vectors**2 @ self._shrunk(factor)) - self.design.direction**2

    def block(self, factor: float, rows: Stored) -> Stored:
        """Rows and columns of M."""
        part, u = self.vectors[rows], self.design.store(self.design.direction)[rows]
        return (part * self._shrunk(factor)) @ part.T - u[:, None] * u
