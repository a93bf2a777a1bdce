"""Decision values of samples that are left out one by one, from a single solution and without a refit.

Without sample p the free coefficients F, those strictly inside their bounds, move so that everyone else's optimality
conditions hold on.  With ``A = K_FF + E``, E the curvature of the conjugate loss as in ``curvature``, bordered by ones
where there is an intercept, the decision value of p loses ``beta_p S_p``:

    S_p = 1 / (A^-1)_pp - E_p for p in F,    S_p = K_pp - k_p' A^-1 k_p for p at a bound,   k_p = K_Fp.

For the squared loss this is exact, for one with curvature it is a Newton step, and for the hinge it is the span of
Vapnik and Chapelle (2000), exact as long as the same coefficients stay free.  Kernel weights are those of all samples.
"""

from __future__ import annotations

import numpy as np

from .._numerics.namespace import to_numpy
from .._typing import Array
from .certificate import Point
from .curvature import stable_cholesky
from .mkl import MKLProblem

#: share of the mean diagonal of A^-1 below which a sample is all that holds the intercept where it is
ALONE = 1e-10


def left_out_values(problem: MKLProblem, point: Point, values: Array) -> Array:
    """Return decision values of every sample as the solution without it would have them.

    ``values``, of shape (n,) or (n, t), are those of the solution, with its intercepts; columns are independent.
    """
    K = np.asarray(to_numpy(problem.bank.mixed(point.weights)), dtype=float)
    if values.ndim == 1:
        return values - _moves(problem, K, problem.y, problem.c, point.beta, None)
    columns = [
        _moves(problem, K, problem.y[:, k], problem.c[:, k], point.beta[:, k], k)
        for k in range(values.shape[1])
    ]
    return values - np.stack(columns, axis=1)


def _moves(problem: MKLProblem, K: Array, y: Array, c: Array, beta: Array, column: int | None) -> Array:
    """What every decision value loses, ``beta S``, of one column."""
    loss = problem.loss if column is None else problem.loss.column(column)
    unit = np.divide(beta, c, out=np.zeros_like(beta), where=c > 0)
    inside = (c > 0) & loss.interior(y, unit)
    free, held = np.flatnonzero(inside), np.flatnonzero(~inside & (beta != 0.0))
    spans = np.diagonal(K).copy()
    if free.size:
        E = loss.dual_curvature(y[free], unit[free]) / c[free]
        A = K[np.ix_(free, free)]
        A.flat[:: free.size + 1] += E
        factor = stable_cholesky(A, 1e-15 if loss.has_curvature or loss.ridge else 1e-8)
        root = factor.solve(np.eye(free.size))  # L^-1, with A^-1 = root'root
        diagonal = np.sum(root * root, axis=0)
        cross = root @ K[np.ix_(free, held)]
        spans[held] -= np.sum(cross * cross, axis=0)
        if problem.fit_intercept:
            ones = root @ np.ones(free.size)
            total = float(ones @ ones)
            least = ALONE * float(np.mean(diagonal))
            diagonal = diagonal - (root.T @ ones) ** 2 / total
            spans[held] += (1.0 - ones @ cross) ** 2 / total
            diagonal[diagonal <= least] = np.inf  # nothing else holds the intercept: it stays where it is
        known = np.isfinite(diagonal)
        spans[free[known]] = 1.0 / diagonal[known] - E[known]
    return np.asarray(beta * np.maximum(spans, 0.0))
