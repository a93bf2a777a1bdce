"""Projections on the dual sets of losses, for whatever array library the coefficients live in.

What ``row_simplex`` and ``projections`` do in NumPy, written once more on the operations that NumPy and torch share:
first-order methods project after every step, and moving the coefficients to the host for it would cost more than the
step.  Everything is vectorised over rows and columns; arrays are ``(n, k)``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .namespace import as_like, namespace, to_numpy

__all__ = ["project_box", "project_box_balanced", "project_rows", "project_rows_balanced"]

#: Newton steps on the shift that balances the columns
STEPS = 60


def _clip(v: Any, low: Any, high: Any) -> Any:
    xp = namespace(v)
    return xp.minimum(xp.maximum(v, low), high)


def project_box(v: Any, low: Any, high: Any) -> Any:
    """Nearest entries between ``low`` and ``high``."""
    return _clip(v, low, high)


def project_box_balanced(v: Any, low: Any, high: Any) -> Any:
    """Project on the box *and* on columns that sum to zero: ``clip(v - h)`` with one h a column.

    The sum falls with h and is linear between breakpoints: Newton's method, kept inside a bracket.
    """
    xp = namespace(v)
    left, right = xp.min(v - high, axis=0), xp.max(v - low, axis=0)  # sums >= 0 and <= 0 there
    h = _clip(0.0 * left, left, right)
    scale = float(xp.max(xp.abs(high - low))) * v.shape[0]
    for _ in range(STEPS):
        x = _clip(v - h[None], low, high)
        sums = x.sum(axis=0)
        if float(xp.max(xp.abs(sums))) <= 1e-15 * scale:
            break
        positive = sums > 0
        left, right = xp.where(positive, h, left), xp.where(positive, right, h)
        free = ((x > low) & (x < high)).sum(axis=0)
        ahead = h + sums / xp.where(free > 0, free, 1)
        inside = (free > 0) & (ahead > left) & (ahead < right)
        h = xp.where(inside, ahead, 0.5 * (left + right))
    return _clip(v - h[None], low, high)


def project_rows(v: Any, upper: Any) -> Any:
    """Project every row on ``{x <= upper, sum x = 0}``; see ``row_simplex.project_rows``."""
    xp = namespace(v)
    distance = v - upper
    order = xp.argsort(distance, axis=1)
    breaks = xp.take_along_axis(distance, order, axis=1)
    free = xp.take_along_axis(v, order, axis=1).cumsum(axis=1)
    held = upper.sum(axis=1)[:, None] - xp.take_along_axis(upper, order, axis=1).cumsum(axis=1)
    count = as_like(np.arange(1, v.shape[1] + 1), v)
    most = (free - count * breaks + held >= 0).sum(axis=1)
    most = xp.where(most > 1, most, 1)[:, None] - 1
    h = xp.take_along_axis(free + held, most, axis=1) / (most + 1)
    return xp.minimum(upper, v - h)


def project_rows_balanced(v: Any, upper: Any, b: Any = None) -> tuple[Any, Any]:
    """Project on rows that sum to zero under their bounds and columns that sum to zero; also return the shift b.

    Newton's method on the concave dual in b, as ``row_simplex.project_rows_balanced``; the k x k systems are solved on
    the host.  A shift from the last projection is a good one to start from.
    """
    xp = namespace(v)
    k = v.shape[1]
    shift = np.zeros(k) if b is None else np.array(b)
    scale = max(float(xp.max(xp.abs(v))), float(xp.max(upper))) * v.shape[0]

    def at(shift: np.ndarray) -> tuple[Any, np.ndarray, float]:
        x = project_rows(v - as_like(shift, v), upper)
        sums = to_numpy(x.sum(axis=0))
        return x, sums, 0.5 * float(((x - v) ** 2).sum()) + float(shift @ sums)

    x, sums, value = at(shift)
    for _ in range(STEPS):
        if np.max(np.abs(sums)) <= 1e-15 * scale:
            break
        free = xp.where(x < upper, xp.ones_like(x), xp.zeros_like(x))
        rows = free.sum(axis=1)
        share = free / xp.where(rows > 1, rows, xp.ones_like(rows))[:, None]
        curvature = np.diag(to_numpy(free.sum(axis=0))) - to_numpy(share.T @ free)
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
