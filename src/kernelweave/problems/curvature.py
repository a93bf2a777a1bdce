"""Second derivatives of J, the optimal value as a function of the weights.

On the free coefficients F (strictly inside their bounds) the solution moves with the weights like the solution of a
linear system, so that ``H = V' M V``, ``V_j = K_j beta`` on F and M the leading block of the inverse of
``[[K_FF + E, 1], [1', 0]]``, E the curvature of the conjugate loss (zero for the hinge).
The idea is Chapelle and Rakotomamonjy's (2008).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from .certificate import Array
from .fixed import FixedSolution

if TYPE_CHECKING:
    from .mkl import MKLProblem

__all__ = ["hessian_root"]


def hessian_root(
    problem: MKLProblem, K: Array, inner: FixedSolution, rows: np.ndarray, products: Array
) -> Array:
    """Return A of shape (free, m) with ``A'A = H``; columns of the problem are stacked."""
    if problem.y.ndim == 1:
        return _root_of_column(problem, K, inner.beta, problem.y, problem.c, rows, products)
    parts = [
        _root_of_column(
            problem, K, inner.beta[:, k], problem.y[:, k], problem.c[:, k], rows, products[:, :, k]
        )
        for k in range(problem.y.shape[1])
    ]
    return np.vstack(parts)


def _root_of_column(
    problem: MKLProblem, K: Array, beta: Array, y: Array, c: Array, rows: np.ndarray, products: Array
) -> Array:
    used = rows[c[rows] > 0]
    unit = beta[used] / c[used]
    inside = problem.loss.interior(y[used], unit)
    free = used[inside]
    if free.size == 0 or (problem.fit_intercept and free.size == 1):
        return np.zeros((0, problem.m))
    block = K[np.ix_(free, free)]
    block.flat[:: free.size + 1] += problem.loss.dual_curvature(y[free], unit[inside]) / c[free]
    lower = _stable_cholesky(block)
    V = products[:, np.searchsorted(rows, free)].T
    A = solve_triangular(lower, V, lower=True, check_finite=False)
    if problem.fit_intercept:
        ones = solve_triangular(lower, np.ones(free.size), lower=True, check_finite=False)
        A -= np.outer(ones, (ones @ A) / (ones @ ones))
    return A


def _stable_cholesky(matrix: Array) -> Array:
    """Lower Cholesky factor, with as small a ridge as makes it exist."""
    size = float(np.mean(np.diagonal(matrix)))
    ridge = 1e-8 * size
    while True:
        lifted = matrix.copy()
        lifted.flat[:: matrix.shape[0] + 1] += ridge
        try:
            return cholesky(lifted, lower=True, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:
            ridge *= 100.0
