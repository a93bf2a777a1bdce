"""Exact searches over one number, and the best intercepts under a softmax."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq

#: a step of Newton's method after which rounding alone says where the root is
NEAR = 1e-9


def monotone_root(function: Callable[[float], float], guess: float = 0.0) -> float:
    """Root of an increasing function, to machine precision: widen a bracket around ``guess``, then Brent.

    Where the function does not change sign (|x| up to about 1e12 steps) the end of the bracket is returned.
    """
    low = high = float(guess)
    step, value = 1.0, function(low)
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


def smooth_root(function: Callable[[float], float], derivative: Callable[[float], float]) -> float:
    """Root of an increasing smooth function, to machine precision: Newton's steps, kept inside a bracket.

    A handful of evaluations where Newton's method works; where it does not settle, ``monotone_root`` goes on.  The
    second derivative is at most of the size of the first: a step of ``NEAR`` then ends within its square of the root.
    """
    x, low, high = 0.0, -np.inf, np.inf
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
    return monotone_root(function)


def minimise_piecewise_linear(breaks: np.ndarray, jumps: np.ndarray, first_slope: float) -> float:
    """Minimiser of a convex piecewise linear function of one variable, the middle where a whole interval is optimal.

    ``first_slope`` is its slope left of all ``breaks``, ``jumps >= 0`` what the slope gains at each.
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


#: a class without weight is shifted this far below all others: its probabilities are zero in double precision
BELOW = 800.0


def log_sums(f: np.ndarray) -> np.ndarray:
    """``log sum_y exp f_iy`` by row; SciPy's takes fifty times as long on small tables."""
    top = np.max(f, axis=1)
    return top + np.log(np.sum(np.exp(f - top[:, None]), axis=1))


def probabilities(f: np.ndarray) -> np.ndarray:
    """``exp f_iy / sum_y exp f_iy``."""
    e = np.exp(f - np.max(f, axis=1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True)


def best_softmax_shift(f: np.ndarray, own: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Return the b that minimises ``sum_i c_i (log sum_y exp(f_iy + b_y) - f_i,own - b_own)``.

    b sums to zero over the classes that have weight; a class without any is shifted until it has no probability left.
    """
    k = f.shape[1]
    used = c > 0
    dues = np.bincount(own[used], weights=c[used], minlength=k)
    there = np.flatnonzero(dues > 0)
    out = np.zeros(k)
    if there.size == 0:
        return out
    values, weight, dues = f[np.ix_(used, there)], c[used], dues[there]
    # at first every class gets its share, whatever all its values have in common
    b = np.log(dues) - weight @ values / np.sum(weight)
    b = b - np.mean(b)

    def height(b: np.ndarray) -> float:
        return float(weight @ log_sums(values + b) - dues @ b)

    # what rounding may make of a height: its terms are larger than their difference
    noise = 1e-15 * float(weight @ np.abs(log_sums(values + b)) + dues @ np.abs(b))
    total, here = float(np.sum(weight)), height(b)
    best, least, flat = b, np.inf, False
    for _ in range(100):  # Newton's method
        p = probabilities(values + b)
        held = weight @ p
        gradient = held - dues
        size = float(np.max(np.abs(gradient)))
        stuck = size > 0.5 * least and flat
        if size < least:
            best, least = b, size
        if size <= 1e-15 * total or stuck:  # rounding has taken over
            break
        hessian = np.diag(held) - p.T @ (weight[:, None] * p)
        # constant along equal shifts; a bit more than rounding where all are sure of their class
        hessian += held.mean() / b.size + np.eye(b.size) * (1e-14 * held.max() + 1e-300)
        direction = -np.linalg.solve(hessian, gradient)
        # beyond a few units the quadratic model means nothing
        length = min(1.0, 5.0 / max(float(np.max(np.abs(direction))), 1e-300))
        slope = float(gradient @ direction)
        while length > 1e-10:
            ahead = height(b + length * direction)
            if ahead <= here + 1e-4 * length * slope + noise:
                break
            length *= 0.5
        else:
            break
        flat = here - ahead <= noise
        b = b + length * direction
        b, here = b - np.mean(b), ahead
    out[there] = best
    if there.size < k:
        missing = np.setdiff1d(np.arange(k), there)
        out[missing] = float(np.min(values + best)) - BELOW - np.max(f[np.ix_(used, missing)], axis=0)
    return out
