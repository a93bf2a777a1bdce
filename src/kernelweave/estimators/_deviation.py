"""Standard deviations of predictions under the squared loss: a ridge regression is the mean of a Gaussian process."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ..banks import BoundKernels, KernelFunction, support
from ._types import Array, Codes, Samples

__all__ = ["Spread", "deviations"]


@dataclass(frozen=True)
class Spread:
    """What the spread of predictions needs beside the learnt function.

    Attributes
    ----------
    variance : array of shape (t,)
        Of the noise of a sample of weight one.
    ridge : array of shape (t,)
        ``1 / (2 C)``, beside the mixed kernel; infinite where no kernel has weight.
    weight : array of shape (n,)
        Of the training samples.
    support : array
        Training samples that have a coefficient, which are those that are kept unless kernels are centred.
    intercept : bool
        Whether one was fitted.
    """

    variance: Array
    ridge: Array
    weight: Array
    support: Codes
    intercept: bool

    @classmethod
    def of(cls, y: Array, beta: Array, C: Array, weight: Array, intercept: bool) -> Spread:
        """Estimate the noise as REML does: ``y'M y`` over the dimensions that the intercept leaves."""
        used = weight > 0
        freedom = max(int(np.count_nonzero(used)) - int(intercept), 1)
        ridge = 0.5 / C
        variance = np.sum(y[used] * beta[used], axis=0) * ridge / freedom
        return cls(variance, ridge, weight, support(beta), intercept)


def deviations(function: KernelFunction, spread: Spread, new: Samples) -> Array:
    """Standard deviations of new observations, ``(n_new, t)``: of the function, and of their own noise.

    With ``G = K + ridge / weight``, in units of ``variance / ridge``:
    ``k(x, x) - k'G^-1 k + (1 - 1'G^-1 k)^2 / 1'G^-1 1 + ridge``.
    """
    term = function.terms[0]
    if not isinstance(term.kernels, BoundKernels):
        raise ValueError(
            "predict(return_std=True) needs kernels that are computed from samples kept in memory, and not completed "
            "ones (missing=...)"
        )
    kernels = term.kernels
    used = np.flatnonzero(spread.weight > 0) if kernels.normaliser.center else spread.support
    train = used if kernels.normaliser.center else np.arange(used.size)
    own, cross, diagonal = kernels.cross(kernels.samples), kernels.cross(new), kernels.diagonal(new)
    own, cross = own[:, train][:, :, train], cross[:, :, train]
    weights = np.atleast_2d(term.weights)
    noise = 1.0 / spread.weight[used]
    out = np.empty((cross.shape[1], spread.variance.size))
    settings = np.column_stack(
        [np.broadcast_to(weights, (spread.ridge.size, weights.shape[1])), spread.ridge]
    )
    for setting in np.unique(settings, axis=0):
        at = np.flatnonzero(np.all(settings == setting, axis=1))
        d, ridge = setting[:-1], setting[-1]
        if not d.any():
            share = np.full(len(out), 1.0 + float(spread.intercept) / spread.weight.sum())
        else:
            mixed = np.tensordot(d, own, axes=1) + np.diag(ridge * noise)
            share = (
                1.0
                + _explained(mixed, np.tensordot(d, cross, axes=1), d @ diagonal, spread.intercept) / ridge
            )
        out[:, at] = np.sqrt(np.maximum(share, 0.0))[:, None] * np.sqrt(np.maximum(spread.variance[at], 0.0))
    return out


def _explained(G: Array, k: Array, diagonal: Array, intercept: bool) -> Array:
    """Posterior variance of the function at new samples, and of the intercept with it."""
    factor = cho_factor(G, lower=True)
    solved = cho_solve(factor, k.T)
    variance = diagonal - np.sum(k.T * solved, axis=0)
    if intercept:
        ones = cho_solve(factor, np.ones(len(G)))
        variance = variance + (1.0 - k @ ones) ** 2 / np.sum(ones)
    return np.asarray(np.maximum(variance, 0.0))
