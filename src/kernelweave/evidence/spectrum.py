"""One mixture of kernels at every scale, from one eigendecomposition: what the scan before any descent reads."""

from __future__ import annotations

import numpy as np

from .._numerics.namespace import namespace, to_numpy
from .design import Array, Design, Stored

__all__ = ["Spectrum"]


class Spectrum:
    """Eigenvalues and vectors of ``sum_j w_j K_j``, with targets in their coordinates.

    ``V`` at a factor r is ``(I + r sum_j w_j K_j)^-1``.  The direction of the intercept is none of the vectors.
    """

    def __init__(self, design: Design, weights: Array, Y: Stored) -> None:
        self.design = design
        mixed = (design.store(weights[None]) @ design.flat).reshape(1, design.n, design.n)
        eigh = namespace(mixed).linalg.eigh
        if np.any(design.direction):
            k = design.pivot
            others = np.delete(np.arange(design.n), k)
            values, vectors = eigh(design.reflected(mixed)[0][others][:, others])
            # back to the samples, by the other columns of the reflection
            u = design.store(design.direction)
            along = u[others] @ vectors
            self.vectors = design.store(np.empty((design.n, design.n - 1)))
            self.vectors[others] = vectors - u[others][:, None] * along / (1.0 + u[k])
            self.vectors[k] = -along
        else:
            values, self.vectors = eigh(mixed[0])
        self.values = np.maximum(to_numpy(values), 0.0)
        self._rotated = self.vectors.T @ Y
        self._squared: Stored = None

    def _shrunk(self, factor: float) -> Stored:
        return self.design.store(1.0 / (1.0 + factor * self.values))

    def forms(self, factors: Array) -> Array:
        """``y'M y`` of every target at several factors, ``(factors, t)``."""
        if self._squared is None:
            self._squared = self._rotated**2
        shrunk = self.design.store(1.0 / (1.0 + np.multiply.outer(factors, self.values)))
        return to_numpy(shrunk @ self._squared)

    def solved(self, factor: float) -> Stored:
        """``M Y``."""
        return self.vectors @ (self._shrunk(factor)[:, None] * self._rotated)

    def leverage(self, factor: float) -> Array:
        """Diagonal of M."""
        return to_numpy(self.vectors**2 @ self._shrunk(factor))

    def block(self, factor: float, rows: Stored) -> Stored:
        """Rows and columns of M."""
        part = self.vectors[rows]
        return (part * self._shrunk(factor)) @ part.T
