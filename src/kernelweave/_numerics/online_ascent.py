"""Exact ascent, row by row, on the dual that the online steps of ``_numerics.online`` are for."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .compiled import njit
from .online import FAST, block_factors, read_features

__all__ = ["Rows", "ascend_features", "ascend_kernel"]

Array = np.ndarray[Any, np.dtype[np.float64]]


class Rows(NamedTuple):
    """The dual variables and what they may do.

    Attributes
    ----------
    beta : array of shape (n, k)
        Coefficients; every row sums to zero.
    s : array of shape (m,)
        ``beta' K_j beta``.
    own, bound : arrays of shape (n,)
        Every row's own class, and the upper bound of its coefficient there; the others are at most 0.
    q : float
        Dual exponent of the block norm.
    share : float
        Gap of a row at which it is left alone.
    """

    beta: Array
    s: Array
    own: np.ndarray[Any, np.dtype[np.intp]]
    bound: Array
    q: float
    share: float


class _Room(NamedTuple):
    """Room for the work on one row: products, what coefficients change by, scores; and per kernel."""

    p: Array
    change: Array
    scores: Array
    factors: Array
    b: Array
    trial: Array


@njit(cache=True)
def _pair_length(s, b, kii, gain, slope_low, most, q, trial, d):
    """Best length of a move between two classes: where the slope of the dual falls to zero, at most ``most``.

    ``slope_low`` is the slope at zero, ``gain`` the loss's part of every slope.
    """
    low, high, first = 0.0, most, slope_low
    slope_high = 0.0
    for attempt in range(60):
        if attempt == 0:
            x = most
        else:
            # regula falsi with the middle every other time: the slope falls along the move
            x = (
                0.5 * (low + high)
                if attempt % 3 == 0
                else low + (high - low) * slope_low / (slope_low - slope_high)
            )
        for j in range(s.size):
            trial[j] = max(s[j] + 2.0 * x * b[j] + 2.0 * x * x * kii[j], 0.0)
        block_factors(trial, q, 0.0, d)
        slope = gain
        for j in range(s.size):
            slope -= d[j] * (b[j] + 2.0 * x * kii[j])
        if attempt == 0:
            if slope >= 0.0:
                return most
            slope_high = slope
            continue
        if slope > 0.0:
            low, slope_low = x, slope
        else:
            high, slope_high = x, slope
        if slope_low - slope_high <= 1e-12 * first or high - low <= 1e-14 * most:
            break
    return low


@njit(cache=True)
def _room(m, k):
    return _Room(np.empty((m, k)), np.empty(k), np.empty(k), np.empty(m), np.empty(m), np.empty(m))


@njit(cache=True)
def _ascend_row(i, room, kii, rows):
    """Pairwise exact ascent within row i; norms, products and coefficients move along; return whether any did."""
    p, change, scores, d, b = room.p, room.change, room.scores, room.factors, room.b
    s, q, beta, own, bound = rows.s, rows.q, rows.beta[i], rows.own[i], rows.bound[i]
    m, k = p.shape
    change[:] = 0.0
    moved = False
    for _ in range(3 * k):
        block_factors(s, q, 0.0, d)
        top, under, along = 0, -1, 0.0
        for y in range(k):
            total = 0.0 if y == own else 1.0
            for j in range(m):
                total += d[j] * p[j, y]
            scores[y] = total
            along += beta[y] * total
            if total > scores[top]:
                top = y
            upper = bound if y == own else 0.0
            if beta[y] < upper and (under < 0 or total < scores[under]):
                under = y
        gap = bound * (scores[top] - scores[own]) + along
        if gap <= rows.share or under < 0 or scores[top] - scores[under] <= 0.0:
            break
        gain = (1.0 if under == own else 0.0) - (1.0 if top == own else 0.0)
        for j in range(m):
            b[j] = p[j, under] - p[j, top]
        most = (bound if under == own else 0.0) - beta[under]
        length = _pair_length(s, b, kii, gain, scores[top] - scores[under], most, q, room.trial, d)
        if length <= 0.0:
            break
        for j in range(m):
            s[j] = max(s[j] + 2.0 * length * b[j] + 2.0 * length * length * kii[j], 0.0)
            p[j, under] += length * kii[j]
            p[j, top] -= length * kii[j]
        full = length >= most
        beta[under] = (bound if under == own else 0.0) if full else beta[under] + length
        beta[top] -= length
        change[under] += length
        change[top] -= length
        moved = True
    return moved


@njit(cache=True, fastmath=FAST)
def ascend_kernel(order, where, kernels, P, diag, rows):
    """Exact ascent on the rows in ``order``, the t-th of which is ``kernels[:, where[t]]``; return how many moved."""
    k, m, n = P.shape
    room = _room(m, k)
    p, change = room.p, room.change
    updates = 0
    for t in range(order.size):
        i = order[t]
        if rows.bound[i] <= 0.0:
            continue
        for j in range(m):
            for y in range(k):
                p[j, y] = P[y, j, i]
        if _ascend_row(i, room, diag[:, i], rows):
            updates += 1
            for y in range(k):
                if change[y] != 0.0:
                    for j in range(m):
                        row, out, x = kernels[j, where[t]], P[y, j], change[y]
                        for l in range(n):
                            out[l] += x * row[l]
    return updates


@njit(cache=True, fastmath=FAST)
def ascend_features(order, where, features, W, diag, rows):
    """``ascend_kernel`` on explicit features."""
    k = W.shape[0]
    Z, starts, scale = features
    room = _room(scale.size, k)
    change = room.change
    updates = 0
    for t in range(order.size):
        i = order[t]
        if rows.bound[i] <= 0.0:
            continue
        x = Z[where[t]]
        read_features(x, starts, scale, W, room.p)
        if _ascend_row(i, room, diag[:, i], rows):
            updates += 1
            for y in range(k):
                if change[y] != 0.0:
                    out, by = W[y], change[y]
                    for l in range(x.size):
                        out[l] += by * x[l]
    return updates
