"""Exact searches over one real variable."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq

__all__ = ["minimise_piecewise_linear", "monotone_root", "smooth_root"]


#: a step of Newton's method after which rounding alone says where the root is
NEAR = 1e-9


def monotone_root(function: Callable[[float], float], guess: float = 0.0, step: float = 1.0) -> float:
    """Root of an increasing function, to machine precision: widen a bracket around ``guess``, then Brent.

    Where the function never changes sign within the doubles that matter (|x| up to about 1e12 steps) the end of the
    bracket is returned: the value there is the best there is.
    """
    low = high = float(guess)
    value = function(low)
    if value == 0.0:
        return low
    for _ in range(40):
        if value > 0:
            high, low = low, low - step
            value = function(low)
            if value <= 0:
                break
        else:
            low, high = high, high + step
            value = function(high)
            if value >= 0:
                break
        step *= 2.0
    else:
        return low if value > 0 else high
    # near a root at zero there is no relative precision to reach: what 200 steps give is more than enough
    return float(brentq(function, low, high, xtol=1e-300, rtol=8.9e-16, maxiter=200, disp=False))


def smooth_root(
    function: Callable[[float], float], derivative: Callable[[float], float], guess: float = 0.0
) -> float:
    """Root of an increasing smooth function, to machine precision: Newton's steps, kept inside a bracket.

    A handful of evaluations where Newton's method works; where it does not settle, ``monotone_root`` goes on.  The
    second derivative is at most of the size of the first: a step of ``NEAR`` then ends within its square of the root.
    """
    x, low, high = float(guess), -np.inf, np.inf
    value = function(x)
    for _ in range(30):
        if value == 0.0:
            return x
        low, high = (x, high) if value < 0 else (low, x)
        slope = derivative(x)
        if not slope > 0 or not abs(value) < 50.0 * slope:  # where it is flat a step means nothing
            break
        following = x - value / slope
        if abs(following - x) <= NEAR * max(1.0, abs(following)):
            return following
        if not low < following < high:
            break
        x, value = following, function(following)
    return monotone_root(function, guess)


def minimise_piecewise_linear(breaks: np.ndarray, jumps: np.ndarray, first_slope: float) -> float:
    """Minimiser of a convex piecewise linear function of one variable.

    ``first_slope`` is its slope left of all ``breaks``, ``jumps >= 0`` what the slope gains at each.  Where a whole
    interval is optimal its middle is returned.
    """
    order = np.argsort(breaks)
    breaks = breaks[order]
    slopes = first_slope + np.cumsum(jumps[order])
    flat = 1e-13 * np.sum(jumps)
    k = int(np.searchsorted(slopes, -flat))
    if k >= breaks.size:
        return float(breaks[-1])
    if slopes[k] <= flat and k + 1 < breaks.size:
        end = int(np.searchsorted(slopes, flat, side="right"))
        return float(0.5 * (breaks[k] + breaks[min(end, breaks.size - 1)]))
    return float(breaks[k])
