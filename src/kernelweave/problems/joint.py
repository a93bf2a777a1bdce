"""The inner problem of a multiclass loss: one kernel matrix, coefficients ``(n, k)`` tied together row by row.

Row-wise exact ascent (``_numerics.row_ascent``).  An intercept asks that the columns sum to zero: the method of
multipliers, whose quadratic term is the constant kernel rho added to K and whose multipliers are the intercept.
"""

from __future__ import annotations

import numpy as np

from .._numerics.row_simplex import balance_on_face
from ..losses import Loss, own_class
from .certificate import Array
from .fixed import FixedSolution, assess

__all__ = ["solve_joint"]

#: row epochs before the multipliers move, and how often they may
EPOCHS, MOST_ROUNDS = 10, 6000
#: weight of the column sums over the mean diagonal: the larger, the shorter the steps of the rows, the fewer those of
#: the multipliers (measured: no difference from 0.1 to 0.3, twice as many updates at 1, four times at 3)
PENALTY = 0.2
#: gap of the rows, over the objective, at which the multipliers move for the first time
FIRST = 0.1


def solve_joint(
    K: Array,
    loss: Loss,
    y: Array,
    c: Array,
    fit_intercept: bool,
    target: float,
    start: FixedSolution | None,
    keep_product: bool,
) -> FixedSolution:
    """Solve the inner problem; the arguments are those of ``solve_fixed``."""
    from .._numerics.row_ascent import ascend

    own, bound = own_class(y), np.ascontiguousarray(c[:, 0])
    beta = np.zeros(y.shape) if start is None else np.array(start.beta, dtype=float)
    if start is not None and keep_product:
        product = np.array(start.decision.T, dtype=float, order="C")
    else:
        product = np.ascontiguousarray((K @ beta).T, dtype=float) if np.any(beta) else np.zeros(y.shape[::-1])
    b, rho = np.zeros(y.shape[1]), 0.0
    if fit_intercept:
        rho = PENALTY * float(np.mean(np.diagonal(K)))
        rho = rho if rho > 1e-100 else 1.0  # kernels of zeros leave any
        b = np.array(start.intercept) if start is not None and np.ndim(start.intercept) else b
    best: FixedSolution | None = None
    share, updates = 0.3, 0
    scale = float(np.sum(bound)) if start is None else _scale(loss, y, c, beta, product.T + b)
    rough = FIRST * scale if fit_intercept else 0.0
    for attempt in range(MOST_ROUNDS):
        goal = max(share * target * scale, rough)
        gap, moved = ascend(K, own, bound, beta, product, b, rho, goal, EPOCHS, attempt)
        updates += moved
        sums = np.sum(beta, axis=0)
        b = b + rho * sums
        scale = _scale(loss, y, c, beta, product.T + b)
        if fit_intercept:
            # what the column sums may still be worth; until they are right the rows need not be any better
            off = float(np.sum(np.abs(sums)) * (1.0 + np.max(np.abs(b))))
            rough = min(rough, off)
            if off > target * scale:
                continue
        if gap > 2.0 * share * target * scale:  # the epochs were used up first
            continue
        inside, decision = beta, np.ascontiguousarray(product.T)
        if fit_intercept:
            inside = _balanced(loss, y, c, beta)
            decision = decision + K @ (inside - beta)
        solution = assess(loss, y, c, inside, decision, fit_intercept, updates)
        if best is None or solution.relative_gap < best.relative_gap:
            best = solution
        if best.relative_gap <= target or share < 1e-5:
            break
        share *= 0.3
    return best or _last(loss, y, c, beta, K, fit_intercept, updates)


def _scale(loss: Loss, y: Array, c: Array, beta: Array, f: Array) -> float:
    """Size of the objective, which relative gaps are measured in."""
    value = loss.total(y, f, c) + 0.5 * abs(float(np.vdot(beta, f)))
    return max(value, float(np.finfo(float).tiny))


def _balanced(loss: Loss, y: Array, c: Array, beta: Array) -> Array:
    """Coefficients whose columns sum to zero, with the zeros kept where that is possible."""
    kept = balance_on_face(beta, np.where(y > 0, c, 0.0))
    return loss.project(y, beta, c, True) if kept is None else kept


def _last(
    loss: Loss, y: Array, c: Array, beta: Array, K: Array, fit_intercept: bool, updates: int
) -> FixedSolution:
    """What there is when the rounds are used up."""
    inside = _balanced(loss, y, c, beta) if fit_intercept else beta
    return assess(loss, y, c, inside, np.asarray(K @ inside), fit_intercept, updates)
