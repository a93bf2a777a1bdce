"""Kernels on counts and histograms: chi-squared (exponential and additive), intersection and Tanimoto."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ._numeric import Number, Numbers, NumericKernel, accepts, checked_number, cityblock, family_of


def _chi2_distances(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return ``sum_j (a_j - b_j)^2 / (a_j + b_j)``, zero where both are zero."""
    from sklearn.metrics.pairwise import additive_chi2_kernel  # slow to import, and rarely needed

    # its compiled loop refuses read-only arrays
    distances = additive_chi2_kernel(np.require(A, requirements="W"), np.require(B, requirements="W"))
    return np.negative(distances, out=distances)


@dataclass(eq=False, repr=False)
class Chi2(NumericKernel, registered_as="chi2"):
    """``exp(-gamma sum_j (x_j - x'_j)^2 / (x_j + x'_j))``; see :func:`chi2`."""

    gamma: Any = 1.0

    decay = True
    _varied = "gamma"
    needs_nonnegative = True
    base_key = ("chi2", None)  # of all gammas
    _base = staticmethod(_chi2_distances)
    _diagonal = 0.0
    _shown = ("gamma",)

    @property
    def exponent(self) -> float:
        return checked_number(self.gamma, "gamma of a chi2 kernel")


class _OfSums(NumericKernel):
    """``(sum_j x_j + sum_j x'_j - d(x, x')) / 2`` of a distance d between non-negative rows."""

    needs_nonnegative = True
    _distances: ClassVar[Any]

    def _base(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        sums = np.add.outer(A.sum(axis=1), B.sum(axis=1))
        sums -= self._distances(A, B)
        sums *= 0.5
        return np.maximum(sums, 0.0, out=sums)  # rounding can leave -1e-17

    def _base_diag(self, A: np.ndarray) -> np.ndarray:
        return A.sum(axis=1)


class AdditiveChi2(_OfSums, registered_as="additive_chi2"):
    """``sum_j 2 x_j x'_j / (x_j + x'_j)``; see :func:`additive_chi2`."""

    # 2 x y / (x + y) = (x + y - (x - y)^2 / (x + y)) / 2
    base_key = ("additive_chi2", None)
    _distances = staticmethod(_chi2_distances)


class Intersection(_OfSums, registered_as="intersection"):
    """``sum_j min(x_j, x'_j)``; see :func:`intersection`."""

    # min(x, y) = (x + y - |x - y|) / 2
    base_key = ("intersection", None)
    _distances = staticmethod(cityblock)


class Tanimoto(NumericKernel, registered_as="tanimoto"):
    """``sum_j min(x_j, x'_j) / sum_j max(x_j, x'_j)``; see :func:`tanimoto`."""

    needs_nonnegative = True
    base_key = ("tanimoto", None)
    _diagonal = 1.0

    def _base(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        sums, distances = np.add.outer(A.sum(axis=1), B.sum(axis=1)), cityblock(A, B)
        common = np.maximum(sums - distances, 0.0)
        sums += distances
        # two empty fingerprints are equal
        return np.divide(common, sums, out=np.ones_like(sums), where=sums > 0)


@accepts(gammas="gamma")
def chi2(gamma: Number | Numbers = 1.0) -> Any:
    """Return exponential chi-squared kernels ``exp(-gamma sum_j (x_j - x'_j)^2 / (x_j + x'_j))``.

    For histograms and counts; where both entries are zero the term is zero.

    Parameters
    ----------
    gamma : float or sequence of float
        One gives a kernel, a sequence a stack.

    Examples
    --------
    >>> from kernelweave import kernels as kw
    >>> kw.chi2()([[1.0, 0.0]], [[0.0, 1.0]]).round(3)
    array([[0.135]])
    """
    return family_of(Chi2, gamma, "gamma of a chi2 kernel")


def additive_chi2() -> AdditiveChi2:
    """Return the additive chi-squared kernel ``sum_j 2 x_j x'_j / (x_j + x'_j)``, for non-negative features.

    ``AdditiveChi2Sampler`` approximates it; scikit-learn's ``additive_chi2_kernel`` is minus a distance instead.

    >>> additive_chi2()([[1.0, 3.0]], [[1.0, 1.0]])
    array([[2.5]])
    """
    return AdditiveChi2()


def intersection() -> Intersection:
    """Return the histogram intersection kernel ``sum_j min(x_j, x'_j)``, for non-negative features.

    >>> intersection()([[1.0, 3.0]], [[2.0, 2.0]])
    array([[3.]])
    """
    return Intersection()


def tanimoto() -> Tanimoto:
    """Return the Tanimoto (Jaccard) kernel ``sum min / sum max`` of fingerprints, binary or counted.

    Two empty fingerprints count as equal.

    >>> tanimoto()([[1, 1, 0]], [[0, 1, 1]]).round(3)
    array([[0.333]])
    """
    return Tanimoto()
