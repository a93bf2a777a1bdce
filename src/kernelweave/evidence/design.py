"""Kernels and targets in the form in which an intercept and the weights of samples have been dealt with.

Rows are multiplied by the roots of their weights, and the direction of the intercept is projected out of kernels and
targets.  What remains is a ridge regression with unit noise, ``G = I + sum_j d_j K_j``, whose weights d have the ridge
in them; ``V = G^-1`` leaves the direction of the intercept as it is, and ``M = V - u u'`` is without it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

Array = NDArray[np.float64]

__all__ = ["Array", "Design", "Points"]

#: bytes of the mixed kernels that are factorised together
CHUNK = 2**25


@dataclass(frozen=True)
class Design:
    """Kernels of mean diagonal one, ready for the criteria.

    Attributes
    ----------
    kernels : array of shape (m, n, n)
        Weighted, projected, scaled.
    scale : array of shape (m,)
        ``d_j scale_j`` is the weight of the kernel that was given; zero for one that vanishes.
    root : array of shape (n,)
        Roots of the samples' weights.
    direction : array of shape (n,)
        Unit vector of the intercept, zero without one.
    """

    kernels: Array
    scale: Array
    root: Array
    direction: Array

    @classmethod
    def of(cls, kernels: Array, weight: Array | None = None, intercept: bool = True) -> Design:
        """Prepare kernels ``(m, n, n)``; ``weight`` are positive weights of the samples."""
        m, n, _ = kernels.shape
        root = np.ones(n) if weight is None else np.sqrt(weight)
        direction = root / np.linalg.norm(root) if intercept else np.zeros(n)
        made, scale = np.empty((m, n, n)), np.zeros(m)
        for j in range(m):
            K = root[:, None] * kernels[j] * root
            means = K @ direction
            K -= np.multiply.outer(direction, means) + np.multiply.outer(
                means - (direction @ means) * direction, direction
            )
            size = float(np.trace(K)) / n
            original = float(np.mean(np.diagonal(kernels[j]) * root**2))
            # what is constant up to rounding explains nothing
            scale[j] = 1.0 / size if size > 1e-12 * original else 0.0
            np.multiply(0.5 * scale[j], K + K.T, out=made[j])
        return cls(made, scale, root, direction)

    @property
    def m(self) -> int:
        """Number of kernels."""
        return len(self.kernels)

    @property
    def n(self) -> int:
        """Number of samples."""
        return self.kernels.shape[1]

    @property
    def freedom(self) -> int:
        """Dimensions that the intercept leaves."""
        return self.n - int(np.any(self.direction))

    def targets(self, Y: Array) -> Array:
        """Return targets ``(n, t)`` weighted and projected like the kernels."""
        rows = self.root[:, None] * Y
        return np.asarray(rows - np.multiply.outer(self.direction, self.direction @ rows))

    @cached_property
    def flat(self) -> Array:
        """Kernels as rows, for mixing many at once."""
        return self.kernels.reshape(self.m, -1)

    @cached_property
    def folded(self) -> Array:
        """Upper triangles, entries off the diagonal twice, as columns: traces of products with half a matrix."""
        half = np.triu(self.kernels)
        half += np.triu(self.kernels, 1)
        return np.ascontiguousarray(half.reshape(self.m, -1).T)

    def times(self, A: Array) -> Array:
        """``K_j A`` of all kernels, ``(m, n, columns)``."""
        return np.asarray(self.kernels.reshape(-1, self.n) @ A).reshape(self.m, self.n, -1)

    def chunks(self, weights: Array) -> Iterator[tuple[slice, Points]]:
        """Factorise the mixtures of some weights ``(p, m)``, as many at a time as are worth their memory."""
        size = max(1, CHUNK // (8 * self.n**2))
        for first in range(0, len(weights), size):
            part = slice(first, min(first + size, len(weights)))
            yield part, Points(self, weights[part])


class Points:
    """Factors of ``G = I + sum_j d_j K_j`` for some weights d: upper triangles ``R`` with ``G = R'R``."""

    def __init__(self, design: Design, weights: Array) -> None:
        self.design, self.weights = design, weights
        n = design.n
        self.factors = (weights @ design.flat).reshape(-1, n, n)
        self.factors[:, np.arange(n), np.arange(n)] += 1.0
        for G in self.factors:
            # the transposed view has the order of LAPACK, whose lower triangle is the upper one here
            _, info = lapack.dpotrf(G.T, lower=1, clean=0, overwrite_a=1)
            if info:
                raise np.linalg.LinAlgError("a mixture of kernels is not positive semidefinite")

    def log_det(self) -> Array:
        """``log |G|`` of every point."""
        return np.asarray(2.0 * np.sum(np.log(np.diagonal(self.factors, axis1=1, axis2=2)), axis=1))

    def solve(self, p: int, B: Array) -> Array:
        """``V B`` at one point."""
        return np.asarray(lapack.dpotrs(self.factors[p].T, B, lower=1)[0])

    def half_solve(self, p: int, B: Array) -> Array:
        """Return W with ``W'W = B'V B`` at one point."""
        return np.asarray(lapack.dtrtrs(self.factors[p].T, B, lower=1)[0])

    def invert(self) -> Array:
        """Turn the factors into the upper triangles of V, in place; below the diagonal nothing is meant."""
        for G in self.factors:
            lapack.dpotri(G.T, lower=1, overwrite_c=1)
        return self.factors
