"""Compiled parts of block descent: the length of a block after its exact step, and losses with their derivatives.

Losses come as in ``svrg``: a kind and three numbers for every sample.
"""

from __future__ import annotations

import math

import numpy as np

from .compiled import njit
from .svrg import SIGMOID

__all__ = ["block_length", "block_pull", "loss_and_slopes", "loss_curvature"]

#: relative precision of a block's length
PRECISION = 1e-13
MOST_STEPS = 100


@njit(cache=True)
def _pulled(t, others, r):
    """Derivative of ``1/2 (others + t^r)^(2/r)`` in t, and its own derivative."""
    if r == 1.0:
        return others + t, 1.0
    whole = others + t**r
    inner = t ** (r - 1.0)
    slope = (2.0 - r) * whole ** (2.0 / r - 2.0) * inner * inner
    slope += (r - 1.0) * whole ** (2.0 / r - 1.0) * inner / t
    return whole ** (2.0 / r - 1.0) * inner, slope


@njit(cache=True)
def block_pull(t, others, r):
    """Return the derivative of ``1/2 (others + t^r)^(2/r)`` in t."""
    return _pulled(t, others, r)[0]


@njit(cache=True)
def block_length(squares, bend, others, r, extra=0.0):
    """Length t of the block v that minimises ``1/2 (others + |v|^r)^(2/r) + extra |v| + 1/2 v'Bv - q'v``, B diagonal.

    It solves ``sum_i q_i^2 / (bend_i t + pull(t) + extra)^2 = 1``; the left side falls in t, so the root is unique.
    Newton's method on logarithms, within a bracket.

    Parameters
    ----------
    squares : array of shape (k,)
        ``q_i^2``.
    bend : array of shape (k,)
        Diagonal of B, non-negative.
    others : float
        ``sum |w_l|^r`` over the other blocks.
    r : float
        Exponent of the block norm, from 1 to 2.
    extra : float
        Factor of the length itself, where that is charged beside the square.
    """
    length = math.sqrt(np.sum(squares))
    if length <= extra or (r == 1.0 and length <= others + extra):
        return 0.0
    high = length / (1.0 + np.min(bend))  # pull(t) is at least t
    low = 0.0
    t = high
    if r == 1.0:
        low = (length - others - extra) / (1.0 + np.max(bend))
        t = low
    for _ in range(MOST_STEPS):
        pull, slope = _pulled(t, others, r)
        pull += extra
        total, fall = 0.0, 0.0
        for i in range(squares.size):
            size = bend[i] * t + pull
            share = squares[i] / (size * size)
            total += share
            fall += share * (bend[i] + slope) / size
        if total >= 1.0:
            low = t
        else:
            high = t
        # d log(total) / d log(t) = -2 t fall / total
        step = math.log(total) * total / (2.0 * t * fall) if total > 0.0 and fall > 0.0 else -1.0
        new = t * math.exp(min(max(step, -50.0), 50.0))
        if not (low < new < high):
            new = math.sqrt(low * high) if low > 0.0 else 1e-3 * high
        if abs(new - t) <= PRECISION * t or high <= low * (1.0 + PRECISION):
            return new
        t = new
        if t < 1e-280:
            return 0.0
    return t


@njit(cache=True, nogil=True)
def loss_and_slopes(f, c, kind, target, width, low, high, out):
    """Fill ``out`` with ``-c l'(f)``, and return ``sum c l(f)``."""
    total = 0.0
    for i in range(f.shape[0]):
        for k in range(f.shape[1]):
            value = f[i, k]
            if kind == SIGMOID:
                small = math.exp(-abs(value))
                share = 1.0 / (1.0 + small)
                unit = low[i, k] + (small * share if value > 0.0 else share)
                # softplus(-f) - low f, twisted as the bounds are
                loss = math.log1p(small) + max(-value, 0.0) - low[i, k] * value
            else:
                slack = target[i, k] - value
                unit = min(max(slack / width, low[i, k]), high[i, k])
                loss = unit * slack - 0.5 * width * unit * unit
            out[i, k] = c[i, k] * unit
            total += c[i, k] * loss
    return total


@njit(cache=True, nogil=True)
def loss_curvature(f, c, kind, target, width, low, high, out):
    """Fill ``out`` with ``c l''(f)``; zero where a piecewise quadratic loss is a line."""
    for i in range(f.shape[0]):
        for k in range(f.shape[1]):
            value = f[i, k]
            if kind == SIGMOID:
                small = math.exp(-abs(value))
                out[i, k] = c[i, k] * small / ((1.0 + small) * (1.0 + small))
            else:
                unit = (target[i, k] - value) / width
                inside = low[i, k] < unit and unit < high[i, k]
                out[i, k] = c[i, k] / width if inside else 0.0
