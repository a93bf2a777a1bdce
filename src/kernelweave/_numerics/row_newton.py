"""Compiled parts of Newton's method on rows that sum to zero under bounds: responses, slopes, free directions.

A row of coefficients is ``beta_i <= c_i e_own, sum_y beta_iy = 0``, the dual set of a multiclass hinge; decision values
``product (k, n)`` and the shift b make the scores ``s_iy = product_yi + b_y + [y != own_i]``.  The response of a row is
the best coefficients for its scores, held back by a proximal term around ``centre``:

    beta_i = argmin over beta of beta's_i + hold_i / 2 |beta - centre_i|^2  =  projection of  centre_i - s_i / hold_i

Everything is computed from the coefficients of the other classes; that of the own class is minus their sum, so that
nothing is lost where they are small beside the bound.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["free_directions", "hand_over", "respond", "slope_along"]


@njit(cache=True)
def _respond(product, i, own, c, b, centre, hold, t, order, out):
    """Fill ``out`` with the response of row i; ``product`` and ``b`` are at the point asked for."""
    k = t.size
    # targets relative to the lowest of another class: those that matter are then small, whatever hold is
    base = -1
    for y in range(k):
        if y != own:
            t[y] = centre[y] - (product[y, i] + b[y]) / hold
            if base < 0 or t[y] < t[base]:
                base = y
    lead, at_base = product[base, i] + b[base], centre[base]
    for y in range(k):
        t[y] = (centre[y] - at_base) - (product[y, i] + b[y] - lead) / hold
    t[own] = (centre[own] - at_base) - (product[own, i] + b[own] - lead - 1.0) / hold
    if t[own] <= 0.0:  # no other class is worth anything
        for y in range(k):
            out[y] = 0.0
        return
    # h from the targets below it, smallest first: first without the own class, then with it
    for a in range(k):
        order[a] = a
        here = t[a] - c if a == own else t[a]
        p = a
        while p > 0:
            q = order[p - 1]
            if (t[q] - c if q == own else t[q]) <= here:
                break
            order[p] = q
            p -= 1
        order[p] = a
    free, held, h = 0.0, c, 0.0
    for a in range(k):
        j = order[a]
        here = t[j] - c if j == own else t[j]
        if a > 0 and free + held - a * here < 0.0:
            break
        free += t[j]
        if j == own:
            held = 0.0
        h = (free + held) / (a + 1)
    total = 0.0
    for y in range(k):
        if y != own:
            out[y] = min(t[y] - h, 0.0)
            total -= out[y]
    out[own] = total
    if held != 0.0 or total >= c:  # at the bound: exactly
        out[own] = c


@njit(cache=True)
def respond(product, own, c, b, centre, hold, beta):
    """Fill ``beta`` with the responses of all rows."""
    k, n = product.shape
    t, order = np.empty(k), np.empty(k, dtype=np.int64)
    for i in range(n):
        if c[i] > 0.0:
            _respond(product, i, own[i], c[i], b, centre[i], hold[i], t, order, beta[i])
        else:
            beta[i] = 0.0


@njit(cache=True)
def slope_along(product, change, own, c, b, shift, centre, hold, U, moves, alpha):
    """Derivative of the smoothed primal objective at ``(U, b) + alpha (moves, shift)``; ``change = (K moves)'``."""
    k, n = product.shape
    t, order, out = np.empty(k), np.empty(k, dtype=np.int64), np.empty(k)
    there = np.empty((k, 1))
    b_there = b + alpha * shift
    total = 0.0
    for i in range(n):
        if c[i] > 0.0:
            for y in range(k):
                there[y, 0] = product[y, i] + alpha * change[y, i]
            _respond(there, 0, own[i], c[i], b_there, centre[i], hold[i], t, order, out)
        else:
            out[:] = 0.0
        for y in range(k):
            total += change[y, i] * (U[i, y] + alpha * moves[i, y] - out[y]) - out[y] * shift[y]
    return total


@njit(cache=True)
def free_directions(beta, own, c):
    """Orthonormal directions in which rows can move: entries at their bound are held, the others keep their sum.

    Returns
    -------
    where : array of shape (f,)
        Row of every direction.
    Q : array of shape (f, k)
    """
    n, k = beta.shape
    loose = np.zeros(n, dtype=np.int64)
    f = 0
    for i in range(n):
        for y in range(k):
            loose[i] += beta[i, y] < (c[i] if y == own[i] else 0.0)
        f += max(loose[i] - 1, 0)
    where, Q = np.empty(f, dtype=np.int64), np.zeros((f, k))
    at = np.empty(k, dtype=np.int64)
    f = 0
    for i in range(n):
        if loose[i] < 2:
            continue
        a = 0
        for y in range(k):
            if beta[i, y] < (c[i] if y == own[i] else 0.0):
                at[a] = y
                a += 1
        for q in range(1, a):  # Helmert's contrasts
            size = 1.0 / np.sqrt(q * (q + 1.0))
            for p in range(q):
                Q[f, at[p]] = size
            Q[f, at[q]] = -q * size
            where[f] = i
            f += 1
    return where, Q


@njit(cache=True)
def hand_over(beta, own, c, balanced):
    """Make rows sum to zero under their bounds and, where asked, columns to zero; in place, exact to rounding.

    What a column has too little goes to it from those that have too much, through rows that are free in both first
    (entries at their bounds stay), then through any row: coefficients can always be made more negative elsewhere.
    """
    n, k = beta.shape
    for i in range(n):
        total = 0.0
        for y in range(k):
            if y != own[i]:
                beta[i, y] = min(beta[i, y], 0.0) if c[i] > 0.0 else 0.0
                total -= beta[i, y]
        beta[i, own[i]] = total
        if total > c[i]:
            for y in range(k):
                beta[i, y] *= c[i] / total
            beta[i, own[i]] = c[i]
    if not balanced:
        return
    lack = np.zeros(k)  # by what a column is negative: rows may lower others and raise it
    for look in range(4):  # a second look finds what the first has rounded
        gross = 0.0
        lack[:] = 0.0
        for i in range(n):
            for y in range(k):
                lack[y] -= beta[i, y]
                gross += abs(beta[i, y])
        dust = 2e-16 * gross
        settled = True
        for y in range(k):
            settled = settled and abs(lack[y]) <= dust
        if settled:
            return
        for both in (True, False):
            for r in range(k):
                if lack[r] <= dust:
                    continue
                for i in range(n):
                    upper = c[i] if own[i] == r else 0.0
                    if beta[i, r] >= upper:
                        continue
                    for s in range(k):
                        if lack[s] >= -dust:
                            continue
                        if both and beta[i, s] >= (c[i] if own[i] == s else 0.0):
                            continue
                        room = upper - beta[i, r]
                        size = min(min(lack[r], -lack[s]), 0.5 * room if both else room)
                        if size <= 0.0:
                            continue
                        beta[i, r] = upper if size == room else beta[i, r] + size
                        beta[i, s] -= size
                        lack[r] -= size
                        lack[s] += size
                    if lack[r] <= dust:
                        break
