"""Rows that sum to zero under upper bounds: the dual set of a multiclass loss, one row a sample.

A row of the set is ``x <= upper, sum x = 0``; with one positive upper bound c (at the sample's own class) and zeros
elsewhere it is ``c (e - a)``, e the unit vector of that class and a on the simplex.  Projections work in whatever array
library the coefficients live in: moving them to the host after every step would cost more than the step.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .namespace import as_like, namespace, to_numpy

__all__ = ["balance_rows", "project_rows", "project_rows_balanced"]


#: columns up to which devices compare all pairs instead of sorting
FEW = 32


def project_rows(v: Any, upper: Any) -> Any:
    """Project every row of ``v`` on ``{x <= upper, sum x = 0}``, ``upper >= 0``.

    The answer is ``min(upper, v - h)`` with one h a row: what the entries sum to falls with h, and is linear between
    the breakpoints ``v - upper``.
    """
    by = _shift_by_sorting if isinstance(v, np.ndarray) or v.shape[1] > FEW else _shift_by_comparing
    return namespace(v).minimum(upper, v - by(v, upper))


def _shift_by_comparing(v: Any, upper: Any) -> Any:
    """The sums at all breakpoints of a row, k x k terms: devices are done before they would have sorted."""
    xp = namespace(v)
    breaks = v - upper
    sums = xp.minimum(upper[:, None, :], v[:, None, :] - breaks[:, :, None]).sum(axis=2)
    first = xp.min(breaks, axis=1, keepdims=True)
    last = xp.max(xp.where(sums >= 0, breaks, first), axis=1, keepdims=True)
    free = breaks <= last
    return xp.where(free, v, upper).sum(axis=1)[:, None] / free.sum(axis=1)[:, None]


def _shift_by_sorting(v: Any, upper: Any) -> Any:
    xp = namespace(v)
    distance = v - upper
    order = xp.argsort(distance, axis=1)
    breaks = xp.take_along_axis(distance, order, axis=1)
    free = xp.take_along_axis(v, order, axis=1).cumsum(axis=1)
    held = upper.sum(axis=1)[:, None] - xp.take_along_axis(upper, order, axis=1).cumsum(axis=1)
    count = xp.ones_like(v[:1]).cumsum(axis=1)  # made where v is: nothing is copied there in between
    # as many entries are free as there are breakpoints at which the sum is still not negative
    most = (free - count * breaks + held >= 0).sum(axis=1)
    most = xp.maximum(most, xp.ones_like(most))[:, None] - 1
    return xp.take_along_axis(free + held, most, axis=1) / (most + 1)


def project_rows_balanced(v: Any, upper: Any, totals: np.ndarray | float = 0.0) -> Any:
    """Project on rows that sum to zero under their bounds *and* columns that sum to ``totals``."""
    return balance_rows(v, upper, totals)[0]


def balance_rows(
    v: Any, upper: Any, totals: np.ndarray | float = 0.0, start: np.ndarray | None = None, steps: int = 100
) -> tuple[Any, np.ndarray]:
    """``project_rows(v - b)`` for the b at which the columns sum to ``totals``, and b.

    b is the maximum of a concave, piecewise quadratic function, found by Newton's method; the k x k systems are solved
    on the host.  The shift of a projection nearby is a good one to start from.
    """
    xp = namespace(v)
    k = v.shape[1]
    shift = np.zeros(k) if start is None else np.array(start)
    if v.shape[0] == 0:
        return v, shift
    scale = max(float(xp.max(xp.abs(v))), float(xp.max(upper))) * v.shape[0]

    def at(shift: np.ndarray) -> tuple[Any, np.ndarray, float]:
        x = project_rows(v - as_like(shift, v), upper)
        sums = to_numpy(x.sum(axis=0)) - totals
        return x, sums, 0.5 * float(((x - v) ** 2).sum()) + float(shift @ sums)

    x, sums, value = at(shift)
    for _ in range(steps):
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
