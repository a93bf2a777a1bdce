"""Compiled parts of block descent: the length of a block after its exact step, and losses (those of ``svrg``)."""

from __future__ import annotations

import math

import numpy as np

from .compiled import inner, njit
from .svrg import SIGMOID

#: relative precision of a block's length
PRECISION = 1e-13
MOST_STEPS = 100
#: how a block is charged beside the others: by powers of the lengths, or by an elastic net on the weights
POWERS, NET = 0, 1


@inner()
def _cubic(goal, mix):
    """Solve ``d^2 (mix + 2 (1 - mix) d) = goal`` for d >= 0: each term alone bounds it, and Newton's steps go down."""
    bend = 2.0 * (1.0 - mix)
    d = min((goal / bend) ** (1.0 / 3.0), math.sqrt(goal / mix))
    for _ in range(MOST_STEPS):
        pay = mix + bend * d
        slope = d * (2.0 * pay + bend * d)
        if slope <= 0.0:
            break
        step = (d * d * pay - goal) / slope
        d -= step
        if step <= 1e-16 * d:
            break
    return d


@inner()
def _net_price(t, blocks, mix):
    """Log price at which weights fill an elastic net, the largest length (the unit), ``d charge / d log(price)``."""
    top = t
    for other in blocks:
        top = max(top, other)
    bend = 2.0 * (1.0 - mix)
    price, rise = 0.0, 1.0
    for _ in range(MOST_STEPS):
        scale = math.exp(price) / (top * top)
        charge, rise = 0.0, 0.0
        for l in range(blocks.size + 1):
            length = t if l == blocks.size else blocks[l]
            if length > 0.0:
                d = _cubic(scale * length * length, mix)
                pay = mix + bend * d
                charge += d * (mix + (1.0 - mix) * d)
                rise += pay * d / (2.0 + bend * d / pay)
        step = -math.log(charge) * charge / rise
        price += step
        if abs(step) <= 1e-15 * (1.0 + abs(price)):
            break
    return price, top, rise


@njit(cache=True)
def block_pull(t, kind, others, r, within, exponent, blocks):
    """Return the derivative of the charge in the length t of one block, and its own derivative."""
    if kind == NET:
        price, top, rise = _net_price(t, blocks, r)
        d = _cubic(math.exp(price) * (t / top) ** 2, r)
        pay = r + 2.0 * (1.0 - r) * d
        follows = 1.0 / (2.0 + 2.0 * (1.0 - r) * d / pay)  # d log(d) / d log(price)
        share = pay * d * follows / rise
        return t / d, (1.0 - 2.0 * follows * (1.0 - share)) / d
    if within > 0.0:
        whole = within + t**exponent
        size = whole ** (1.0 / exponent)
        inner_slope = (t / size) ** (exponent - 1.0)
        inner_bend = (exponent - 1.0) * (t / size) ** (exponent - 2.0) * within / whole / size
    else:
        size, inner_slope, inner_bend = t, 1.0, 0.0
    if r == 1.0:
        pull, slope = others + size, 1.0
    else:
        total = others + size**r
        power = size ** (r - 1.0)
        slope = (2.0 - r) * total ** (2.0 / r - 2.0) * power * power
        slope += (r - 1.0) * total ** (2.0 / r - 1.0) * power / size
        pull = total ** (2.0 / r - 1.0) * power
    return pull * inner_slope, slope * inner_slope * inner_slope + pull * inner_bend


@njit(cache=True)
def block_held(kind, others, r, within, exponent, blocks):
    """Return the derivative of the charge at a block of length zero: what a pull has to exceed to move it."""
    if kind == NET:
        if blocks.size == 0:
            return 0.0
        price, top, _ = _net_price(0.0, blocks, r)
        return top * math.sqrt(r / math.exp(price))
    if within > 0.0:
        if exponent > 1.0:
            return 0.0
        return others + within if r == 1.0 else (others + within**r) ** (2.0 / r - 1.0) * within ** (r - 1.0)
    return others if r == 1.0 else 0.0


@njit(cache=True)
def charged_length(squares, bend, extra, kind, others, r, within, exponent, blocks):
    """Length t of the block v that minimises ``charge(|v|) + extra |v| + 1/2 v'Bv - q'v``, B diagonal.

    It solves ``sum_i q_i^2 / (bend_i t + pull(t) + extra)^2 = 1`` with pull the derivative of the charge; the left side
    falls in t, so the root is unique.  Newton's method on logarithms, within a bracket.  ``squares`` are ``q_i^2``,
    ``bend`` is the diagonal of B.  Of the kind POWERS the charge is ``1/2 (others + (within + t^exponent)^(r /
    exponent))^(2/r)``; NET: an elastic net on weights, r the share of its l1 part, ``blocks`` the other lengths.
    """
    length = math.sqrt(np.sum(squares))
    held = block_held(kind, others, r, within, exponent, blocks) + extra
    if length <= held:
        return 0.0
    high = length / (1.0 + np.min(bend))  # pull(t) is at least t
    low = 0.0
    t = high
    if kind == POWERS and r == 1.0 and within == 0.0:
        low = (length - held) / (1.0 + np.max(bend))
        t = low
    for _ in range(MOST_STEPS):
        pull, slope = block_pull(t, kind, others, r, within, exponent, blocks)
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
