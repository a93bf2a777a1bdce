"""Compiled steps between the rows of a multiclass dual and its set: exact sums, products with K, bounds.

A row of coefficients is ``beta_i <= c_i e_own, sum_y beta_iy = 0``; with an intercept columns sum to zero as well.
"""

from __future__ import annotations

import numpy as np

from .best_shift import settle
from .compiled import njit

__all__ = ["add_products", "bounds_at", "hand_over", "move_into_set", "row_shift"]


@njit(cache=True)
def row_shift(target, own, c, order):
    """Shift h for which ``min(target - h, upper)`` sums to zero, upper being c at ``own`` and 0 elsewhere.

    Returns h and the sum of the entries that are at their bounds; ``order`` is overwritten.
    """
    k = target.size
    for a in range(k):  # insertion sort by the breakpoints target - upper
        order[a] = a
        here = target[a] - c if a == own else target[a]
        p = a
        while p > 0:
            q = order[p - 1]
            if (target[q] - c if q == own else target[q]) <= here:
                break
            order[p] = q
            p -= 1
        order[p] = a
    # from the targets below h, smallest first
    free, held, h = 0.0, c, 0.0
    for a in range(k):
        j = order[a]
        here = target[j] - c if j == own else target[j]
        if a > 0 and free + held - a * here < 0.0:
            break
        free += target[j]
        if j == own:
            held = 0.0
        h = (free + held) / (a + 1)
    return h, held


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
            if total > (1.0 + 1e-15) * c[i]:  # below that it is rounding, and the row stays what it is
                for y in range(k):
                    beta[i, y] *= c[i] / total
            beta[i, own[i]] = c[i]
    if not balanced:
        return
    lack = np.zeros(k)  # by what a column is negative: rows may lower others and raise it
    for _ in range(4):  # a second look finds what the first has rounded
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


@njit(cache=True, fastmath={"contract", "reassoc"})
def add_products(K, beta, product):
    """Add ``(K beta)'`` to ``product (k, n)``: entries of beta that are zero cost nothing, and most are."""
    n, k = beta.shape
    for i in range(n):
        row = K[i]
        for y in range(k):
            x = beta[i, y]
            if x != 0.0:
                out = product[y]
                for j in range(n):
                    out[j] += x * row[j]


@njit(cache=True)
def move_into_set(K, own, c, intercept, beta, product):
    """Move beta into the dual set, exactly, and ``product = (K beta)'`` with it; in place."""
    before = beta.copy()
    hand_over(beta, own, c, intercept)
    add_products(K, beta - before, product)


@njit(cache=True)
def bounds_at(own, c, intercept, beta, product, b):
    """Primal and dual objective at coefficients of the dual set; b becomes the best intercepts, in place."""
    n, k = beta.shape
    half, gain, loss = 0.0, 0.0, 0.0
    scores = product.copy()
    for i in range(n):
        for y in range(k):
            half += 0.5 * beta[i, y] * product[y, i]
            if y != own[i]:
                scores[y, i] += 1.0
        gain += beta[i, own[i]]
    if intercept:
        settle(scores, own, c, b)
        b -= np.mean(b)
    for i in range(n):
        if c[i] > 0.0:
            # a difference of scores: large ones cancel before anything is added
            worst = 0.0
            for y in range(k):
                worst = max(worst, scores[y, i] - scores[own[i], i] + (b[y] - b[own[i]]))
            loss += c[i] * worst
    return half + loss, gain - half
