"""Euclidean projections onto the sets that weights and dual variables live in."""

from __future__ import annotations

import numpy as np

from .scalar import monotone_root

__all__ = ["project_box_budget", "project_box_sum", "project_lp_ball", "project_simplex"]


def project_simplex(v: np.ndarray, total: float = 1.0) -> np.ndarray:
    """Project ``v`` on ``{x >= 0, sum x = total}`` by sorting; NaN and infinity raise ``FloatingPointError``."""
    top = np.max(v)
    if not np.isfinite(top):
        raise FloatingPointError("weights that are not finite cannot be projected")
    v = v - top  # the projection does not feel it, and large numbers would hide the total
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


def shrink_power(v: np.ndarray, nu: float | np.ndarray, power: float) -> np.ndarray:
    """Solve ``x + nu x^power = v`` for ``0 <= x <= v`` elementwise (``power > 0``); nu one for all or one for each.

    In ``y = x`` for powers above one, in ``y = x^power`` below, both terms are convex: from the right of the root
    Newton's steps are monotone.
    """
    if power >= 1.0:
        return _convex_root(v, 1.0, np.asarray(nu, dtype=float), power)
    y = _convex_root(v, np.asarray(nu, dtype=float), 1.0, 1.0 / power)
    return np.minimum(y ** (1.0 / power), v)


def _convex_root(v: np.ndarray, a: float | np.ndarray, b: float | np.ndarray, power: float) -> np.ndarray:
    """Solve ``a y + b y^power = v`` for y >= 0, elementwise (``power >= 1``)."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        y = np.fmin(v / a, (v / b) ** (1.0 / power))
    for _ in range(200):
        pull = b * y ** (power - 1.0)
        slope = a + power * pull
        step = np.divide(a * y + pull * y - v, slope, out=np.zeros_like(y), where=slope > 0)
        y = np.maximum(y - step, 0.0)
        if np.all(np.abs(step) <= 4e-16 * y):
            break
    return y


def project_box_sum(v: np.ndarray, lower: np.ndarray, upper: np.ndarray, total: float = 0.0) -> np.ndarray:
    """Project ``v`` on ``{lower <= x <= upper, sum x = total}``; infinite bounds are allowed.

    The answer is ``clip(v - h, lower, upper)``: the sum is piecewise linear and falling in h, so a search over the
    sorted breakpoints finds the segment and one division the point in it.
    """
    if not (np.sum(lower) <= total <= np.sum(upper)):
        raise ValueError(f"no point of the box sums to {total}")
    rounding = 1e-13 * float(np.sum(np.abs(v)))
    if abs(float(np.sum(v)) - total) <= rounding and np.all(v >= lower) and np.all(v <= upper):
        return v  # it is there already

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


def project_box_budget(
    v: np.ndarray,
    upper: np.ndarray,
    limit: float,
    free: np.ndarray | None = None,
    balance: np.ndarray | None = None,
) -> np.ndarray:
    """Project ``v`` on ``{0 <= x <= upper, sum [x - free]_+ <= limit}``, with ``balance`` also ``balance'x = 0``.

    Parameters
    ----------
    v, upper : arrays of shape (n,)
        Point, and the upper ends of the box.
    limit : float
        Budget, not negative.
    free : array of shape (n,), optional
        What each entry may have at no cost; zero by default.
    balance : array of shape (n,) of -1 and 1, optional
        Two groups whose sums must be equal.
    """
    free = np.zeros_like(upper) if free is None else free
    plain = _projected_box(v, upper, balance)
    if np.sum(np.maximum(plain - free, 0.0)) <= limit:
        return plain
    if balance is None:
        # what exceeds the free part pays the same multiplier h: clip(v - free - h, 0, upper - free)
        beyond = project_box_sum(v - free, np.zeros_like(v), upper - free, limit)
        return np.where(v > free, free + beyond, np.clip(v, 0.0, free))
    if not np.any(free):
        # the budget is spent and the groups are equal: half of it each, and the problem falls apart
        x = np.empty_like(v)
        for group in (balance > 0, balance < 0):
            x[group] = project_box_sum(v[group], np.zeros(np.count_nonzero(group)), upper[group], 0.5 * limit)
        return x

    def at(h: float) -> np.ndarray:
        def shrunk(b: float) -> np.ndarray:
            w = v - b * balance
            return np.clip(np.maximum(np.minimum(w, free), w - h), 0.0, upper)

        return shrunk(monotone_root(lambda b: -float(np.sum(balance * shrunk(b)))))

    return at(monotone_root(lambda h: limit - float(np.sum(np.maximum(at(h) - free, 0.0)))))


def _projected_box(v: np.ndarray, upper: np.ndarray, balance: np.ndarray | None) -> np.ndarray:
    if balance is None:
        return np.clip(v, 0.0, upper)
    low, high = np.where(balance < 0, -upper, 0.0), np.where(balance > 0, upper, 0.0)
    return balance * project_box_sum(balance * v, low, high)
