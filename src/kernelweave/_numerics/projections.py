"""Euclidean projections onto the sets that weights and dual variables live in."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._typing import Array
from .intercepts import monotone_root
from .namespace import as_like, namespace, to_numpy


def project_simplex(v: Array, total: float = 1.0) -> Array:
    """Project ``v`` on ``{x >= 0, sum x = total}`` by sorting; NaN and infinity raise ``FloatingPointError``."""
    top = np.max(v)
    if not np.isfinite(top):
        raise FloatingPointError("weights that are not finite cannot be projected")
    v = v - top  # the projection does not feel it, and large numbers would hide the total
    ordered = np.sort(v)[::-1]
    excess = np.cumsum(ordered) - total
    k = np.nonzero(ordered * np.arange(1, v.size + 1) > excess)[0][-1]
    return np.maximum(v - excess[k] / (k + 1), 0.0)


def project_lp_ball(v: Array, p: float, radius: float = 1.0) -> Array:
    """Project ``max(v, 0)`` on ``{x >= 0, |x|_p <= radius}``, ``1 <= p <= inf``: ``x_j + nu p x_j^(p-1) = v_j``."""
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

    x = shrink_power(v, np.exp(monotone_root(excess)) * p, p - 1.0)
    return x * (radius / np.sum(x**p) ** (1.0 / p))  # rounding only: nu is at machine precision


def shrink_power(v: Array, nu: float | Array, power: float) -> Array:
    """Solve ``x + nu x^power = v`` for ``0 <= x <= v`` elementwise (``power > 0``); nu one for all or one for each."""
    # in y = x for powers above one, in y = x^power below, both terms are convex: Newton's steps are monotone
    if power >= 1.0:
        return _convex_root(v, 1.0, np.asarray(nu, dtype=float), power)
    y = _convex_root(v, np.asarray(nu, dtype=float), 1.0, 1.0 / power)
    return np.minimum(y ** (1.0 / power), v)


def _convex_root(v: Array, a: float | Array, b: float | Array, power: float) -> Array:
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


def project_box_sum(v: Array, lower: Array, upper: Array, total: float = 0.0) -> Array:
    """Project ``v`` on ``{lower <= x <= upper, sum x = total}``; infinite bounds are allowed.

    The answer is ``clip(v - h, lower, upper)``: the sum is piecewise linear and falling in h, so a search over the
    sorted breakpoints finds the segment and one division the point in it.
    """
    if not (np.sum(lower) <= total <= np.sum(upper)):
        raise ValueError(f"no point of the box sums to {total}")
    rounding = 1e-13 * float(np.sum(np.abs(v)))
    if abs(float(np.sum(v)) - total) <= rounding and np.all(v >= lower) and np.all(v <= upper):
        return v  # it is there already

    breaks = np.concatenate([v - lower, v - upper])
    breaks = np.unique(breaks[np.isfinite(breaks)])
    if breaks.size == 0:
        return v - (np.sum(v) - total) / v.size
    left, right = -1, breaks.size  # the sum is > total at breaks[left], <= total at breaks[right]
    while right - left > 1:
        middle = (left + right) // 2
        if float(np.sum(np.clip(v - breaks[middle], lower, upper))) > total:
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
    v: Array, upper: Array, limit: float, free: Array | None = None, balance: Array | None = None
) -> Array:
    """Project ``v`` on ``{0 <= x <= upper, sum [x - free]_+ <= limit}``, with ``balance`` also ``balance'x = 0``.

    ``limit`` is not negative; ``free`` is what each entry may have at no cost, zero by default; ``balance`` of -1 and 1
    says which are the two groups whose sums must be equal.
    """
    free = np.zeros_like(upper) if free is None else free
    if balance is None:
        plain = np.clip(v, 0.0, upper)
    else:
        low, high = np.where(balance < 0, -upper, 0.0), np.where(balance > 0, upper, 0.0)
        plain = balance * project_box_sum(balance * v, low, high)
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

    def at(h: float) -> Array:
        def shrunk(b: float) -> Array:
            w = v - b * balance
            return np.clip(np.maximum(np.minimum(w, free), w - h), 0.0, upper)

        return shrunk(monotone_root(lambda b: -float(np.sum(balance * shrunk(b)))))

    return at(monotone_root(lambda h: limit - float(np.sum(np.maximum(at(h) - free, 0.0)))))


# All columns at once, for whatever array library the coefficients live in: ``project_box_sum`` sorts the breakpoints of
# one column and is exact; here first-order methods project ``(n, k)`` after every step, on a device.

#: Newton steps on the shift that balances the columns
STEPS = 60


def project_box(v: Any, low: Any, high: Any) -> Any:
    """Nearest entries between ``low`` and ``high``."""
    xp = namespace(v)
    return xp.minimum(xp.maximum(v, low), high)


def project_box_balanced(v: Any, low: Any, high: Any) -> Any:
    """Project on the box *and* on columns that sum to zero: ``clip(v - h)``, one h per column by bracketed Newton."""
    xp = namespace(v)
    left, right = xp.min(v - high, axis=0), xp.max(v - low, axis=0)  # sums >= 0 and <= 0 there
    h = project_box(0.0 * left, left, right)
    scale = float(xp.max(xp.abs(high - low))) * v.shape[0]
    for _ in range(STEPS):
        x = project_box(v - h[None], low, high)
        sums = x.sum(axis=0)
        if float(xp.max(xp.abs(sums))) <= 1e-15 * scale:
            break
        positive = sums > 0
        left, right = xp.where(positive, h, left), xp.where(positive, right, h)
        free = ((x > low) & (x < high)).sum(axis=0)
        ahead = h + sums / xp.where(free > 0, free, 1)
        inside = (free > 0) & (ahead > left) & (ahead < right)
        h = xp.where(inside, ahead, 0.5 * (left + right))
    return project_box(v - h[None], low, high)


# Rows that sum to zero under upper bounds: the dual set of a multiclass loss, one row a sample.
#
# A row of the set is ``x <= upper, sum x = 0``; with one positive upper bound c (at the sample's own class) and zeros
# elsewhere it is ``c (e - a)``, e the unit vector of that class and a on the simplex.  Projections work in whatever
# array library the coefficients live in: moving them to the host after every step would cost more than the step.

#: columns up to which devices compare all pairs instead of sorting
FEW = 32


def project_rows(v: Any, upper: Any) -> Any:
    """Project every row of ``v`` on ``{x <= upper, sum x = 0}``, ``upper >= 0``.

    The answer is ``min(upper, v - h)`` with one h a row: what the entries sum to falls with h, and is linear between
    the breakpoints ``v - upper``.
    """
    xp = namespace(v)
    distance = v - upper
    if isinstance(v, np.ndarray) or v.shape[1] > FEW:
        order = xp.argsort(distance, axis=1)
        breaks = xp.take_along_axis(distance, order, axis=1)
        free = xp.take_along_axis(v, order, axis=1).cumsum(axis=1)
        held = upper.sum(axis=1)[:, None] - xp.take_along_axis(upper, order, axis=1).cumsum(axis=1)
        count = xp.ones_like(v[:1]).cumsum(axis=1)  # made where v is: nothing is copied there in between
        # as many entries are free as there are breakpoints at which the sum is still not negative
        most = (free - count * breaks + held >= 0).sum(axis=1)
        most = xp.maximum(most, xp.ones_like(most))[:, None] - 1
        shift = xp.take_along_axis(free + held, most, axis=1) / (most + 1)
    else:  # the sums at all breakpoints of a row, k x k terms: devices are done before they would have sorted
        sums = xp.minimum(upper[:, None, :], v[:, None, :] - distance[:, :, None]).sum(axis=2)
        first = xp.min(distance, axis=1, keepdims=True)
        last = xp.max(xp.where(sums >= 0, distance, first), axis=1, keepdims=True)
        free = distance <= last
        shift = xp.where(free, v, upper).sum(axis=1)[:, None] / free.sum(axis=1)[:, None]
    return xp.minimum(upper, v - shift)


def balance_rows(v: Any, upper: Any, start: Array | None = None) -> tuple[Any, Array]:
    """``project_rows(v - b)`` for the b at which the columns sum to zero, and b.

    b is the maximum of a concave, piecewise quadratic function, found by Newton's method; the k x k systems are solved
    on the host.  The shift of a projection nearby is a good one to start from.
    """
    xp = namespace(v)
    k = v.shape[1]
    shift = np.zeros(k) if start is None else np.array(start)
    if v.shape[0] == 0:
        return v, shift
    scale = max(float(xp.max(xp.abs(v))), float(xp.max(upper))) * v.shape[0]

    def at(shift: Array) -> tuple[Any, Array, float]:
        x = project_rows(v - as_like(shift, v), upper)
        sums = to_numpy(x.sum(axis=0))
        return x, sums, 0.5 * float(((x - v) ** 2).sum()) + float(shift @ sums)

    x, sums, value = at(shift)
    for _ in range(100):
        if np.max(np.abs(sums)) <= 1e-15 * scale:
            break
        free = xp.where(x < upper, xp.ones_like(x), xp.zeros_like(x))
        rows = free.sum(axis=1)
        share = free / xp.where(rows > 1, rows, xp.ones_like(rows))[:, None]
        curvature = np.diag(to_numpy(free.sum(axis=0))) - to_numpy(share.T @ free)
        # flat where no row is free: there the slope alone says where to go, and no further than the data reach
        ridge = 1e-10 * float(np.trace(curvature)) + 1e-300
        direction = np.linalg.solve(curvature + ridge * np.eye(k), sums)
        reach = float(np.max(np.abs(direction)))
        length = min(1.0, 2.0 * scale / reach) if reach > 0 else 1.0
        slope = float(sums @ direction)
        trial, left, height = at(shift + length * direction)
        while height < value + 1e-4 * length * slope and length * reach > 1e-16 * scale:
            length *= 0.5
            trial, left, height = at(shift + length * direction)
        if height <= value and np.max(np.abs(left)) >= np.max(np.abs(sums)):
            break
        shift, x, sums, value = shift + length * direction, trial, left, height
    return x, shift
