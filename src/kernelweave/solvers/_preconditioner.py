"""Coordinates in which a smooth primal objective is nearly round, from its Hessian on a sample of the rows.

With n samples and C the Hessian's eigenvalues spread over C n, and first-order methods pay for it in sweeps over all
rows.  A few thousand rows know those eigenvalues well enough: in coordinates ``v = L' x``, ``L L'`` the sampled
Hessian, L-BFGS needs tens of sweeps whatever n is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular

Array = NDArray[np.float64]

__all__ = ["SampledHessian", "bend_of", "sample_rows"]

#: rows per feature in the sample, the fewest rows, and how many sweeps a factorisation may cost
ROWS_A_FEATURE, FEWEST, WORTH = 4, 1000, 400
#: half of the distance over which gradients are compared: the hinges have no second derivative of their own
REACH = 0.5


def sample_rows(n: int, width: int, seed: int = 0) -> NDArray[np.intp] | None:
    """Row numbers to estimate a Hessian of so many features on; None where factorising it would cost too much."""
    size = min(n, max(FEWEST, ROWS_A_FEATURE * width))
    if width * (width / 3.0 + size) > WORTH * float(n):
        return None
    return np.sort(np.random.default_rng(seed).choice(n, size, replace=False))


def bend_of(loss: Any, y: Array, f: Array) -> Array:
    """Second derivatives of the losses, over a distance."""
    if loss.joint:  # of which a shift of all classes makes nothing
        return np.asarray(loss.curvature(y, f))
    return np.asarray((loss.gradient(y, f + REACH) - loss.gradient(y, f - REACH)) / (2.0 * REACH))


class SampledHessian:
    """``x = back(v)`` and the gradient in v.

    Parameters
    ----------
    rows : array or sparse matrix of shape (s, R)
        Features of the sample, scaled as the objective scales them; one more coordinate stands for the intercept.
    y, f, c : arrays of shape (s,) or (s, k)
        Targets, decision values and costs there; ``c`` stands for all samples.
    loss : Loss
    pull : array of shape (R,)
        Curvature of the regulariser.
    intercept : bool
        Whether there is one; else its coordinate has nothing to do with the others.
    """

    def __init__(
        self, rows: Any, y: Array, f: Array, c: Array, loss: Any, pull: Array, intercept: bool
    ) -> None:
        charge = np.maximum(c * bend_of(loss, y, f), 0.0)
        if charge.ndim == 2:  # one set of coordinates for all columns
            charge = charge.mean(axis=1)
        dense = rows.toarray() if sp.issparse(rows) else rows
        scaled = np.empty((dense.shape[0], dense.shape[1] + 1))
        scaled[:, :-1] = dense
        scaled[:, -1] = float(intercept)
        scaled *= np.sqrt(charge)[:, None]
        hessian = scaled.T @ scaled
        at = np.arange(hessian.shape[0])
        hessian[at[:-1], at[:-1]] += pull
        hessian[at, at] += 1e-10 * float(np.trace(hessian)) / at.size + np.finfo(float).tiny
        self.factor = cholesky(hessian, lower=True, overwrite_a=True, check_finite=False)

    def into(self, x: Array) -> Array:
        """Coordinates of ``x``, ``(R + 1, k)``."""
        return self.factor.T @ x

    def back(self, v: Array) -> Array:
        """``x`` at coordinates v."""
        return solve_triangular(self.factor, v, lower=True, trans="T", check_finite=False)

    def gradient(self, g: Array) -> Array:
        """Gradient in v from that in x."""
        return solve_triangular(self.factor, g, lower=True, check_finite=False)
