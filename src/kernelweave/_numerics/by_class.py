"""Linear systems in coefficients that are tied in rows, factorised class by class.

On the loose entries of a table of coefficients v, those strictly below their bounds, a Newton step and the second
derivatives of J both ask for

    (K + hold) v_y + mu + b_y = g_y  for every class y,    sum_y v_iy = 0,    sum_i v_iy - stay b_y = off_y,

with multipliers mu of the rows and, with an intercept, b of the classes.  Classes meet in these sums alone: each has a
Cholesky factor of its own, and a Schur complement in the rows and intercepts is all that ties them, at a cost of
``sum_y n_y^3 + rows^3 / 3`` where an elimination of the sums would take ``(sum_y n_y - rows)^3 / 3``.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs, dtrtrs

from .._typing import Array
from .tiles import principal_part

#: ridge beside the mean diagonal with which a matrix is tried again that has no factor, and how it grows
FIRST_RIDGE, GROW = 1e-15, 100.0
#: of the largest diagonal entry of the intercepts: all classes together are shifted by nothing
NO_SHIFT = 1e-13


def loose_sizes(loose: np.ndarray) -> tuple[np.ndarray, int]:
    """Return how many entries of every class can move, and how many rows can: those with more than one loose entry."""
    moving = np.count_nonzero(loose, axis=1) > 1
    return np.count_nonzero(loose[moving], axis=0).astype(float), int(np.count_nonzero(moving))


def factor_flops(loose: np.ndarray) -> float:
    """Return the operations that factorising takes; the memory is less than ``k^(1/3) flops^(2/3)`` numbers."""
    sizes, rows = loose_sizes(loose)
    return 2.0 * float(np.sum(sizes**3)) + (2.0 / 3.0) * float(rows) ** 3


class ClassFactors:
    """Factors of the system above, for right sides on the loose entries, class after class in one vector.

    Where the matrix of a class is singular, as with samples that occur twice and next to no ``hold``, or the complement
    is, all get a ridge.

    Parameters
    ----------
    K : array of shape (n, n)
    loose : bool array of shape (n, k)
        Entries that can move; in a row with a single one it cannot.
    hold : array of shape (n,)
    stay : float
    intercept : bool
    """

    def __init__(self, K: Any, loose: np.ndarray, hold: Array, stay: float, intercept: bool) -> None:
        moving = np.flatnonzero(np.count_nonzero(loose, axis=1) > 1)
        self.shape, self.intercept, self.rows = loose.shape, intercept, moving.size
        #: class and row of every entry, and the place of that row among those that can move
        self.classes, self.places = np.nonzero(loose[moving].T)
        self.at = moving[self.places]
        ends = np.searchsorted(self.classes, np.arange(loose.shape[1] + 1))
        self.parts = [slice(*pair) for pair in pairwise(ends)]
        mean, ridge = float(np.trace(K)) / max(len(K), 1) or 1.0, 0.0
        if not np.isfinite(mean):
            raise np.linalg.LinAlgError("a mixed kernel is not finite")
        while True:
            try:
                self._factorise(K, hold + ridge, stay)
                return
            except np.linalg.LinAlgError:
                ridge = max(GROW * ridge, FIRST_RIDGE * mean)

    def _factorise(self, K: Any, hold: Array, stay: float) -> None:
        from .rows import add_inverse

        r, k = self.rows, self.shape[1]
        S = np.zeros((r + k * self.intercept,) * 2, order="F")
        self.factors: list[Array] = []
        sums = np.empty(len(K))
        for y, part in enumerate(self.parts):
            at, places = self.at[part], self.places[part]
            block = principal_part(K, at).T  # symmetric: in the order of LAPACK
            block.T.flat[:: at.size + 1] += hold[at]
            lower = _cholesky(block)
            self.factors.append(lower)
            if at.size == 0:
                continue
            inverse, _ = dpotri(lower, lower=1)
            add_inverse(inverse.T, places, sums[: at.size], S.T)
            if self.intercept:
                S[r + y, places], S[r + y, r + y] = sums[: at.size], sums[: at.size].sum()
        if self.intercept:
            own = np.arange(r, r + k)
            S[own, own] += stay + NO_SHIFT * float(np.max(S[own, own])) + np.finfo(float).tiny
        self.complement = _cholesky(S)

    def gather(self, values: Array) -> Array:
        """Return the loose entries of tables (..., n, k)."""
        return np.asarray(values[..., self.at, self.classes])

    def step(self, right: Array, off: Array) -> tuple[Array, Array]:
        """Return v as a table and b for right sides on the loose entries and of the classes."""
        asked = self._sums(self._solved(right))
        if self.intercept:
            asked[self.rows :] -= off
        multipliers = self._of_complement(asked)
        v, b = np.zeros(self.shape), np.zeros(self.shape[1])
        v[self.at, self.classes] = self._solved(right - self._spread(multipliers))
        if self.intercept:
            b = multipliers[self.rows :]
        return v, b

    def solve(self, right: Array, transposed: bool = False) -> Array:
        """Return ``P L^-1 right`` or ``L^-T P right``, of a vector or of columns.

        ``L L'`` are the classes' matrices and P projects off what the sums hold: ``L^-T P L^-1 g`` is v at off = 0.
        """
        half = right if transposed else self._triangular(right)
        multipliers = self._of_complement(self._sums(self._triangular(half, transposed=True)))
        half = half - self._triangular(self._spread(multipliers))
        return self._triangular(half, transposed=True) if transposed else half

    def _solved(self, right: Array) -> Array:
        out = np.empty_like(right)
        for lower, part in zip(self.factors, self.parts, strict=True):
            if part.start < part.stop:
                out[part], _ = dpotrs(lower, right[part], lower=1)
        return out

    def _triangular(self, right: Array, transposed: bool = False) -> Array:
        out = np.empty_like(right)
        for lower, part in zip(self.factors, self.parts, strict=True):
            if part.start < part.stop:
                out[part], _ = dtrtrs(lower, right[part], lower=1, trans=int(transposed))
        return out

    def _of_complement(self, asked: Array) -> Array:
        if not asked.size:
            return asked
        return np.asarray(dpotrs(self.complement, asked, lower=1)[0])

    def _sums(self, values: Array) -> Array:
        """Sums of the rows that can move and, with an intercept, of the classes."""
        out = np.zeros((self.complement.shape[0], *values.shape[1:]))
        for y, part in enumerate(self.parts):
            out[self.places[part]] += values[part]
            if self.intercept:
                out[self.rows + y] = np.sum(values[part], axis=0)
        return out

    def _spread(self, multipliers: Array) -> Array:
        """Return what the multipliers add to every entry."""
        out = multipliers[self.places]
        return out + multipliers[self.rows + self.classes] if self.intercept else out


def _cholesky(matrix: Array) -> Array:
    """Lower factor of a symmetric matrix in LAPACK's order, of which the lower half is read; or ``LinAlgError``."""
    if not matrix.size:
        return matrix
    lower, info = dpotrf(matrix, lower=1, clean=0, overwrite_a=1)
    if info != 0:
        raise np.linalg.LinAlgError(f"the leading minor of order {info} is not positive definite")
    return np.asarray(lower)
