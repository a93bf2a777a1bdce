"""Ridge regression from one feature space into another, through kernel matrices alone.

A sample x that lacks a view gets the features ``phi(x) = sum_l c_l(x) phi(x_l)`` over the n training samples that have
it, with weights c that depend on the views x does have.  With G the kernel of those views on the same n samples, J the
centring projection and ``Gc = J G J``,

    c(x) = 1/n + J (Gc + lam)^-1 g_c(x),      sum c = 1,

where g_c(x) is the centred row of x.  The smoother leaves ``I - H = lam (Gc + lam)^-1 - 11'/n`` of the training
features, so that what each sample's features miss when they are predicted without it has a closed form for every
feature space at once: with K the kernel of the view to be predicted,

    LOO_l = [(I - H) K (I - H)]_ll / (1 - H_ll)^2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dtrmm
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs, dpstrf

from .._typing import Array

#: penalties that are tried, in units of the mean eigenvalue of Gc; infinity is the mean
PENALTIES = (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2)
#: least part of a sample that its own prediction may leave: below, it is predicted by itself alone
LEAST_LEFT = 1e-10
#: matrices up to this size are inverted by LAPACK
LARGEST_FACTOR = 128
#: random directions by which the slope of the error is estimated
PROBES = 32


@dataclass(frozen=True)
class PenaltyChoice:
    """A penalty, how it ranks in ``PENALTIES`` (None for infinity), and the R2 of leaving one out with it."""

    penalty: float
    rank: int | None
    r2: float


@dataclass(frozen=True)
class Target:
    """Features that are to be predicted, as a triangular root of their kernel: ``K[order][:, order] = root root'``.

    It has as many columns as the kernel has rank where that is a saving, and is square otherwise.
    """

    order: NDArray[np.intp]
    root: Array
    spread: Array

    @classmethod
    def of(cls, kernel: Array) -> Target:
        """Factorise a positive semidefinite kernel matrix, with pivoting because it may be singular."""
        root, pivots, rank, _ = dpstrf(kernel, lower=1, tol=-1.0)
        root = np.tril(root)
        if 2 * rank <= len(root):
            root = root[:, : max(1, rank)]
        else:
            root[:, rank:] = 0.0
        spread = np.diagonal(kernel) - 2.0 * kernel.mean(axis=1) + kernel.mean()
        return cls(pivots.astype(np.intp) - 1, np.asfortranarray(root), np.maximum(spread, 0.0))


class Centred(NamedTuple):
    """A kernel matrix ``J G J``, the row means of G and their mean."""

    gram: Array
    means: Array
    grand: float


def centred_gram(gram: Array) -> Centred:
    """Centre a kernel matrix G."""
    means = gram.mean(axis=1)
    grand = float(means.mean())
    centred = gram - means[:, None]
    centred -= means[None, :]
    centred += grand
    return Centred(centred, means, grand)


def _factor(centred: Array, penalty: float) -> Array:
    shifted = np.array(centred.T, order="F")  # symmetric: the copy that keeps to the rows is the quicker one
    shifted.flat[:: shifted.shape[0] + 1] += penalty
    factor, failed = dpotrf(shifted, lower=1, overwrite_a=1)
    if failed:
        raise np.linalg.LinAlgError("the kernel of the views at hand is not positive semidefinite")
    return factor


def _inverse(matrix: Array) -> Array:
    """Invert a positive definite matrix; large ones by halves, in matrix products, which is twice as quick."""
    n = matrix.shape[0]
    if n <= LARGEST_FACTOR:
        inverse, _ = dpotri(_factor(matrix, 0.0), lower=1, overwrite_c=1)  # its upper half is zero
        full = inverse + inverse.T
        full.flat[:: n + 1] *= 0.5
        return full
    half = n // 2
    corner, side = _inverse(matrix[:half, :half]), matrix[:half, half:]
    solved = corner @ side
    rest = _inverse(matrix[half:, half:] - side.T @ solved)
    across = solved @ rest
    out = np.empty((n, n))
    out[:half, :half] = corner + across @ solved.T
    out[:half, half:] = -across
    out[half:, :half] = -across.T
    out[half:, half:] = rest
    return out


def leave_one_out(centred: Array, target: Target, penalty: float) -> Array:
    """Squared distance in feature space of every sample from its prediction without it; ``centred`` is ``J G J``."""
    n = centred.shape[0]
    if np.isinf(penalty):  # predicts the mean
        return target.spread * (n / (n - 1.0)) ** 2
    return _Trial.of(centred, target, penalty).errors


@dataclass(frozen=True)
class _Trial:
    """One penalty: ``left`` is I - H, ``missed`` what it leaves of the features, ``own`` its diagonal."""

    left: Array
    missed: Array
    own: Array
    target: Target

    @classmethod
    def of(cls, centred: Array, target: Target, penalty: float) -> _Trial:
        n = centred.shape[0]
        left = np.array(centred)
        left.flat[:: n + 1] += penalty
        left = _inverse(left)
        left *= penalty
        left -= 1.0 / n
        ordered = left[target.order].T  # the smoother is symmetric, and its rows lie together
        if target.root.shape[1] < target.root.shape[0]:
            missed = ordered @ target.root
        else:
            missed = np.asarray(dtrmm(1.0, target.root, ordered, side=1, lower=1, overwrite_b=1))
        return cls(left, missed, np.maximum(np.diagonal(left), LEAST_LEFT), target)

    @property
    def errors(self) -> Array:
        """Errors of leaving out, by sample."""
        return np.einsum("ij,ij->i", self.missed, self.missed) / self.own**2

    def slope(self) -> float:
        """Estimate the derivative of the sum of the errors in the logarithm of the penalty, of which the sign is used.

        With ``B = lam (Gc + lam)^-1`` it takes ``B - B^2`` of a few random mixtures of the features.
        """
        n, width = self.missed.shape
        probes = np.random.default_rng(0).standard_normal((width, PROBES)) / np.sqrt(PROBES)
        missed = self.missed @ probes
        smoothed = missed + self.target.root.mean(axis=0) @ probes  # B times the features
        change = smoothed - self.left @ smoothed - smoothed.mean(axis=0)
        squares = np.einsum("ij,ij->i", self.left, self.left) + 1.0 / n  # the diagonal of B^2
        by_missed = 2.0 * np.einsum("ij,ij->i", change, missed) / self.own**2
        by_own = 2.0 * self.errors * (np.diagonal(self.left) + 1.0 / n - squares) / self.own
        return float(np.sum(by_missed - by_own))


def choose_penalty(centred: Array, target: Target, near: int | None = None) -> PenaltyChoice:
    """Return the penalty with the least leave-one-out error; ``near`` is a rank to begin a walk downhill from.

    Without ``near`` all penalties are tried.  Infinity, which predicts the mean and costs nothing, always is.
    """
    n = centred.shape[0]
    unit = float(np.trace(centred)) / n
    nothing = float(np.sum(leave_one_out(centred, target, np.inf)))
    if not (n > 2 and unit > 0.0 and nothing > 0.0):
        return PenaltyChoice(np.inf, None, 0.0)

    def error(rank: int) -> float:
        return float(np.sum(leave_one_out(centred, target, PENALTIES[rank] * unit)))

    if near is None:
        errors = [error(rank) for rank in range(len(PENALTIES))]
        best = int(np.argmin(errors))
        least = errors[best]
    else:
        trial = _Trial.of(centred, target, PENALTIES[near] * unit)
        best, least = near, float(np.sum(trial.errors))
        step = 1 if trial.slope() < 0.0 else -1
        while 0 <= best + step < len(PENALTIES) and (further := error(best + step)) < least:
            best, least = best + step, further
    r2 = 1.0 - least / nothing
    return PenaltyChoice(PENALTIES[best] * unit, best, r2) if r2 > 0.0 else PenaltyChoice(np.inf, None, 0.0)


def ridge_weights(kernel: Centred, penalty: float, cross: Array) -> Array:
    """Weights ``c(x)`` of new rows, ``(n_new, n)``, each of sum 1; ``cross`` are their rows of G."""
    n = kernel.means.size
    if np.isinf(penalty):
        return np.full(cross.shape, 1.0 / n)
    rows = cross - cross.mean(axis=1)[:, None] - kernel.means[None, :] + kernel.grand
    solved, _ = dpotrs(_factor(kernel.gram, penalty), rows.T, lower=1)
    weights = solved.T
    weights += (1.0 / n) - weights.mean(axis=1)[:, None]
    return np.ascontiguousarray(weights)
