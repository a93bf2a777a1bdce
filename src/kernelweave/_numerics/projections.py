"""Euclidean projections onto the sets that weights and dual variables live in."""

from __future__ import annotations

import numpy as np

from .scalar import monotone_root

__all__ = ["project_box_sum", "project_lp_ball", "project_simplex"]


def project_simplex(v: np.ndarray, total: float = 1.0) -> np.ndarray:
    """Project ``v`` on ``{x >= 0, sum x = total}`` by sorting."""
    ordered = np.sort(v)[::-1]
    excess = np.cumsum(ordered) - total
    k = np.nonzero(ordered * np.arange(1, v.size + 1) > excess)[0][-1]
    return np.maximum(v - excess[k] / (k + 1), 0.0)


def project_lp_ball(v: np.ndarray, p: float, radius: float = 1.0) -> np.ndarray:
    """Project ``max(v, 0)`` on ``{x >= 0, |x|_p <= radius}``, ``1 <= p <= inf``.

    The projection of a non-negative point solves ``x_j + nu p x_j^(p-1) = v_j``; nu is found by bisection and each
    ``x_j`` by a vectorised, bracketed Newton iteration.
    """
    v = np.maximum(v, 0.0)
    if np.isinf(p):
        return np.minimum(v, radius)
    if np.sum((v / radius) ** p) <= 1.0:
        return v
    if p == 1.0:
        return project_simplex(v, radius)

    def excess(log_nu: float) -> float:
        x = shrink_power(v, np.exp(log_nu) * p, p - 1.0)
        return radius - np.sum(x**p) ** (1.0 / p)

    x = shrink_power(v, np.exp(monotone_root(excess, 0.0, 1.0)) * p, p - 1.0)
    return x * (radius / np.sum(x**p) ** (1.0 / p))  # rounding only: nu is at machine precision


def shrink_power(v: np.ndarray, nu: float, power: float) -> np.ndarray:
    """Solve ``x + nu x^power = v`` for ``0 <= x <= v`` elementwise (``power > 0``)."""
    low, high = np.zeros_like(v), v.copy()
    with np.errstate(divide="ignore", over="ignore"):
        x = np.minimum(v, (v / nu) ** (1.0 / power)) if nu > 0 else v.copy()
    for _ in range(200):
        residual = x + nu * x**power - v
        above = residual > 0
        high, low = np.where(above, x, high), np.where(above, low, x)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            newton = x - residual / (1.0 + nu * power * x ** (power - 1.0))
        inside = (newton > low) & (newton < high)
        moved = np.where(inside, newton, 0.5 * (low + high))
        if np.all(np.abs(moved - x) <= 4e-16 * v):
            return moved
        x = moved
    return x


def project_box_sum(v: np.ndarray, lower: np.ndarray, upper: np.ndarray, total: float = 0.0) -> np.ndarray:
    """Project ``v`` on ``{lower <= x <= upper, sum x = total}``; infinite bounds are allowed.

    The answer is ``clip(v - h, lower, upper)``: the sum is piecewise linear and falling in h, so a search over the
    sorted breakpoints finds the segment and one division the point in it.
    """
    if not (np.sum(lower) <= total <= np.sum(upper)):
        raise ValueError(f"no point of the box sums to {total}")

    def clipped_sum(h: float) -> float:
        return float(np.sum(np.clip(v - h, lower, upper)))

    breaks = np.concatenate([v - lower, v - upper])
    breaks = np.unique(breaks[np.isfinite(breaks)])
    if breaks.size == 0:
        return v - (np.sum(v) - total) / v.size
    left, right = -1, breaks.size  # the sum is > total at breaks[left], <= total at breaks[right]
    while right - left > 1:
        middle = (left + right) // 2
        if clipped_sum(breaks[middle]) > total:
            left = middle
        else:
            right = middle
    # within the segment the entries that move are those strictly inside their box at its midpoint
    if left < 0:
        h = breaks[0] - 1.0
    elif right == breaks.size:
        h = breaks[-1] + 1.0
    else:
        h = 0.5 * (breaks[left] + breaks[right])
    free = (v - h > lower) & (v - h < upper)
    moving = int(np.count_nonzero(free))
    if moving == 0:
        return np.clip(v - breaks[min(max(right, 0), breaks.size - 1)], lower, upper)
    fixed = np.sum(np.clip(v[~free] - h, lower[~free], upper[~free]))
    h = (np.sum(v[free]) + fixed - total) / moving
    return np.clip(v - h, lower, upper)
