"""Projections on boxes, all columns at once, for whatever array library the coefficients live in.

``projections.project_box_sum`` sorts the breakpoints of one column and is exact; here first-order methods project
``(n, k)`` after every step, on a device.  Rows that are tied together are in ``row_simplex``.
"""

from __future__ import annotations

from typing import Any

from .namespace import namespace

__all__ = ["project_box", "project_box_balanced"]

#: Newton steps on the shift that balances the columns
STEPS = 60


def _clip(v: Any, low: Any, high: Any) -> Any:
    xp = namespace(v)
    return xp.minimum(xp.maximum(v, low), high)


def project_box(v: Any, low: Any, high: Any) -> Any:
    """Nearest entries between ``low`` and ``high``."""
    return _clip(v, low, high)


def project_box_balanced(v: Any, low: Any, high: Any) -> Any:
    """Project on the box *and* on columns that sum to zero: ``clip(v - h)`` with one h per column.

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
