"""Rows that sum to zero under upper bounds: the dual set of a multiclass loss, one row a sample.

A row of the set is ``x <= upper, sum x = 0``; with one positive upper bound c (at the sample's own class) and zeros
elsewhere it is ``c (e - a)``, e the unit vector of that class and a on the simplex.
"""

from __future__ import annotations

import numpy as np

__all__ = ["balance_on_face", "best_shift", "project_rows", "project_rows_balanced"]


def project_rows(v: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Project every row of ``v`` on ``{x <= upper, sum x = 0}``, ``upper >= 0``.

    The answer is ``min(upper, v - h)`` with one h a row: what the entries sum to falls with h, and is linear between
    the sorted breakpoints ``v - upper``.
    """
    breaks = np.sort(v - upper, axis=1)
    order = np.argsort(v - upper, axis=1)
    free = np.cumsum(np.take_along_axis(v, order, axis=1), axis=1)
    held = np.sum(upper, axis=1, keepdims=True) - np.cumsum(np.take_along_axis(upper, order, axis=1), axis=1)
    count = np.arange(1, v.shape[1] + 1)
    # as many entries are free as there are breakpoints at which the sum is still not negative
    most = np.maximum(np.count_nonzero(free - count * breaks + held >= 0, axis=1), 1) - 1
    rows = np.arange(v.shape[0])
    h = (free[rows, most] + held[rows, most]) / (most + 1)
    return np.minimum(upper, v - h[:, None])


def balance_on_face(x: np.ndarray, upper: np.ndarray) -> np.ndarray | None:
    """Move rows of the set to columns that sum to zero without touching entries at their bounds, or return None.

    A projection would move every row a little and so lose the zeros; where the sums are small already, the entries
    that are free anyway can make up for them.
    """
    rows = np.flatnonzero(np.count_nonzero(x < upper, axis=1) > 1)
    part, top = x[rows], upper[rows]
    held = part >= top
    reach = max(float(np.max(np.abs(part), initial=0.0)), float(np.max(top, initial=0.0)))
    # entries at their bound are lifted so far above it that no shift of this size moves them
    others = np.sum(x, axis=0) - np.sum(part, axis=0)
    moved = project_rows_balanced(np.where(held, top + 10.0 * reach, part), top, -others)
    out = x.copy()
    out[rows] = moved
    sums = np.max(np.abs(np.sum(out, axis=0)), initial=0.0)
    return out if sums <= 1e-13 * reach * x.shape[0] and np.array_equal(moved[held], top[held]) else None


def project_rows_balanced(
    v: np.ndarray, upper: np.ndarray, totals: np.ndarray | float = 0.0, steps: int = 100
) -> np.ndarray:
    """Project on rows that sum to zero under their bounds *and* columns that sum to ``totals``.

    ``project_rows(v - b)`` for the b at which the columns balance: the maximum of a concave, piecewise quadratic
    function of b, found by Newton's method.
    """
    b = np.zeros(v.shape[1])
    scale = max(float(np.max(np.abs(v), initial=0.0)), float(np.max(upper, initial=0.0))) * v.shape[0]

    def at(b: np.ndarray) -> tuple[np.ndarray, float]:
        x = project_rows(v - b, upper)
        return x, 0.5 * float(np.sum((x - v) ** 2)) + float(b @ (np.sum(x, axis=0) - totals))

    x, value = at(b)
    for _ in range(steps):
        sums = np.sum(x, axis=0) - totals
        if np.max(np.abs(sums)) <= 1e-15 * scale:
            break
        free = (x < upper).astype(float)
        share = free / np.maximum(np.sum(free, axis=1, keepdims=True), 1.0)
        curvature = np.diag(np.sum(free, axis=0)) - share.T @ free
        # flat where no row is free: there the slope alone says where to go, and no further than the data reach
        ridge = 1e-10 * float(np.trace(curvature)) + 1e-300
        direction = np.linalg.solve(curvature + ridge * np.eye(b.size), sums)
        reach = float(np.max(np.abs(direction)))
        length = min(1.0, 2.0 * scale / reach) if reach > 0 else 1.0
        slope = float(sums @ direction)
        trial, height = at(b + length * direction)
        while height < value + 1e-4 * length * slope and length * reach > 1e-16 * scale:
            length *= 0.5
            trial, height = at(b + length * direction)
        if height <= value and np.max(np.abs(np.sum(trial, axis=0) - totals)) >= np.max(np.abs(sums)):
            break
        b, x, value = b + length * direction, trial, height
    return x


def best_shift(scores: np.ndarray, own: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Return the b (summing to zero) that minimises ``sum_i c_i (max_y (scores_iy + b_y) - scores_i,own - b_own)``.

    Newton's method on the smooth ``mu log sum exp(. / mu)`` in place of the maximum, mu falling towards zero; of all
    points on the way the one with the lowest true value is returned.
    """
    n, k = scores.shape
    rows = np.arange(n)
    pulls = np.bincount(own, weights=c, minlength=k)
    total = float(np.sum(c))
    b, best, lowest = np.zeros(k), np.zeros(k), np.inf
    if total <= 0:
        return b
    spread = float(np.max(scores) - np.min(scores))

    def true_value(b: np.ndarray) -> float:
        shifted = scores + b
        return float(c @ (np.max(shifted, axis=1) - shifted[rows, own]))

    def smooth(b: np.ndarray, mu: float) -> tuple[float, np.ndarray]:
        shifted = (scores + b) / mu
        top = np.max(shifted, axis=1, keepdims=True)
        e = np.exp(shifted - top)
        sums = np.sum(e, axis=1, keepdims=True)
        height = mu * float(c @ (top[:, 0] + np.log(sums[:, 0]))) - float(pulls @ b)
        return height, e / sums

    mu = max(0.1 * spread, 1e-300)
    last = max(1e-12 * spread, 1e-300)
    while mu >= last:
        for _ in range(6):
            height, p = smooth(b, mu)
            weighted = p * c[:, None]
            gradient = np.sum(weighted, axis=0) - pulls
            curvature = (np.diag(np.sum(weighted, axis=0)) - weighted.T @ p) / mu
            ridge = 1e-10 * float(np.trace(curvature)) + 1e-14 * total / max(spread, 1e-300) + 1e-300
            direction = -np.linalg.solve(curvature + ridge * np.eye(k) + np.ones((k, k)) * ridge, gradient)
            slope = float(gradient @ direction)
            length = 1.0
            # beyond some multiples of mu the quadratic model means nothing
            reach = float(np.max(np.abs(direction)))
            length = min(1.0, 30.0 * mu / reach) if reach > 0 else 1.0
            while length > 1e-6 and smooth(b + length * direction, mu)[0] > height + 1e-4 * length * slope:
                length *= 0.5
            b = b + length * direction
            b -= np.mean(b)
            if -slope <= 1e-3 * mu * total:
                break
        value = true_value(b)
        if value < lowest:
            best, lowest = b, value
        mu *= 0.2
    return best
