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

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dtrmm
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs, dpstrf

Array = NDArray[np.float64]

__all__ = [
    "PENALTIES",
    "PenaltyChoice",
    "Target",
    "centred_gram",
    "choose_penalty",
    "leave_one_out",
    "ridge_weights",
]

#: penalties that are tried, in units of the mean eigenvalue of Gc; infinity is the mean
PENALTIES = (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2)
#: least part of a sample that its own prediction may leave: below, it is predicted by itself alone
LEAST_LEFT = 1e-10
#: matrices up to this size are inverted by LAPACK
LARGEST_FACTOR = 128


@dataclass(frozen=True)
class PenaltyChoice:
    """A penalty, how it ranks in ``PENALTIES`` (None for infinity), and the R2 of leaving one out with it."""

    penalty: float
    rank: int | None
    r2: float


@dataclass(frozen=True)
class Target:
    """Features that are to be predicted, as a triangular root of their kernel: ``K[order][:, order] = root root'``.

    A triangular root halves the work of a product, and serves every penalty and every set of predictors.
    """

    order: NDArray[np.intp]
    root: Array
    spread: Array

    @classmethod
    def of(cls, kernel: Array) -> Target:
        """Factorise a positive semidefinite kernel matrix, with pivoting because it may be singular."""
        root, pivots, rank, _ = dpstrf(kernel, lower=1, tol=-1.0)
        root = np.tril(root)
        root[:, rank:] = 0.0
        spread = np.diagonal(kernel) - 2.0 * kernel.mean(axis=1) + kernel.mean()
        return cls(pivots.astype(np.intp) - 1, np.asfortranarray(root), np.maximum(spread, 0.0))


def centred_gram(gram: Array) -> tuple[Array, Array, float]:
    """Return ``J G J``, the row means of G and their mean."""
    means = gram.mean(axis=1)
    grand = float(means.mean())
    centred = gram - means[:, None]
    centred -= means[None, :]
    centred += grand
    return centred, means, grand


def _factor(centred: Array, penalty: float) -> Array:
    shifted = np.array(centred, order="F")
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
    """Squared distance in feature space of every sample from its prediction without it.

    Parameters
    ----------
    centred : array of shape (n, n)
        ``J G J``.
    target : Target
        Kernel of the view that is predicted; centring it changes nothing.
    penalty : float
        lam > 0; infinity predicts the mean.
    """
    n = centred.shape[0]
    if np.isinf(penalty):
        return target.spread * (n / (n - 1.0)) ** 2
    left = np.array(centred)
    left.flat[:: n + 1] += penalty
    left = _inverse(left)
    left *= penalty
    left -= 1.0 / n
    missed = dtrmm(1.0, target.root, np.asfortranarray(left[:, target.order]), side=1, lower=1, overwrite_b=1)
    missed = np.einsum("ij,ij->i", missed, missed)
    return missed / np.maximum(np.diagonal(left), LEAST_LEFT) ** 2


def choose_penalty(centred: Array, target: Target, near: int | None = None) -> PenaltyChoice:
    """Return the penalty with the least leave-one-out error; ``near`` is a rank to begin a walk downhill from.

    Without ``near`` all penalties are tried.  Infinity, which predicts the mean and costs nothing, always is.
    """
    n = centred.shape[0]
    unit = float(np.trace(centred)) / n
    nothing = float(np.sum(leave_one_out(centred, target, np.inf)))
    if not (n > 2 and unit > 0.0 and nothing > 0.0):
        return PenaltyChoice(np.inf, None, 0.0)
    errors: dict[int, float] = {}

    def error(rank: int) -> float:
        if not 0 <= rank < len(PENALTIES):
            return np.inf
        if rank not in errors:
            errors[rank] = float(np.sum(leave_one_out(centred, target, PENALTIES[rank] * unit)))
        return errors[rank]

    best = near if near is not None else min(range(len(PENALTIES)), key=error)
    while True:
        step = min((best - 1, best + 1), key=error)
        if error(step) >= error(best):
            break
        best = step
    r2 = 1.0 - errors[best] / nothing
    return PenaltyChoice(PENALTIES[best] * unit, best, r2) if r2 > 0.0 else PenaltyChoice(np.inf, None, 0.0)


def ridge_weights(gram: Array, penalty: float, cross: Array) -> Array:
    """Weights ``c(x)`` of new rows, ``(n_new, n)``, each of sum 1.

    Parameters
    ----------
    gram : array of shape (n, n)
        G, as it is.
    penalty : float
    cross : array of shape (n_new, n)
        Rows of G between new samples and the n.
    """
    n = gram.shape[0]
    if np.isinf(penalty):
        return np.full(cross.shape, 1.0 / n)
    centred, means, grand = centred_gram(gram)
    rows = cross - cross.mean(axis=1)[:, None] - means[None, :] + grand
    solved, _ = dpotrs(_factor(centred, penalty), rows.T, lower=1)
    weights = solved.T
    weights += (1.0 / n) - weights.mean(axis=1)[:, None]
    return np.ascontiguousarray(weights)
