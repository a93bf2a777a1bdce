"""Exact ascent on the dual of a multiclass SVM, one sample's row of coefficients at a time.

    maximise  sum_i beta_i,own - tr(beta' K beta) / 2 - b'(1'beta) - rho |1'beta|^2 / 2
    subject to  beta_i <= c_i e_own,  sum_k beta_ik = 0  for every row i

With the others held, a row's best value is a projection: the quadratic is ``(K_ii + rho)`` times the identity.  b and
rho hold the column sums at zero (an augmented Lagrangian, ``ascend_to``); both are zero without an intercept.
"""

from __future__ import annotations

import numpy as np

from .compiled import njit
from .copying import copy_table, copy_vector
from .row_newton import free_directions
from .row_sets import bounds_at, move_into_set, row_shift

__all__ = ["ascend", "ascend_to"]


@njit(cache=True, fastmath={"contract", "reassoc"})
def _row_gap(scores, beta, own, c):
    """``c (max scores - own score) + beta'scores``: this row's part of the duality gap."""
    top = scores[0]
    along = 0.0
    for k in range(scores.size):
        if scores[k] > top:
            top = scores[k]
        along += beta[k] * scores[k]
    return c * (top - scores[own]) + along


@njit(cache=True)
def _best_row(target, own, c, order, out):
    """Project ``target`` on rows that sum to zero, at most c at ``own`` and zero elsewhere."""
    h, _ = row_shift(target, own, c, order)
    for j in range(target.size):
        out[j] = min(c if j == own else 0.0, target[j] - h)


@njit(cache=True)
def _shuffle(rows, state):
    """Put the rows into another order, in place; return the next state of the generator (xorshift)."""
    for a in range(rows.size - 1, 0, -1):
        state ^= state << np.uint64(13)
        state ^= state >> np.uint64(7)
        state ^= state << np.uint64(17)
        b = np.int64(state % np.uint64(a + 1))
        rows[a], rows[b] = rows[b], rows[a]
    return state


@njit(cache=True, fastmath={"contract", "reassoc"})
def _add_row(product, column, change):
    # a step changes few classes: measured, two or three of ten
    for k in range(change.size):
        x, out = change[k], product[k]
        if x != 0.0:
            for i in range(out.size):
                out[i] += x * column[i]


@njit(cache=True)
def gap_of_rows(product, beta, own, c, shift, out):
    """Every row's part of the gap, ``shift`` added to its scores, ``product (k, n)``; return their sum."""
    k = beta.shape[1]
    scores = np.empty(k)
    total = 0.0
    for i in range(beta.shape[0]):
        for j in range(k):
            scores[j] = product[j, i] + shift[j] + (0.0 if j == own[i] else 1.0)
        out[i] = _row_gap(scores, beta[i], own[i], c[i])
        total += out[i]
    return total


@njit(cache=True)
def ascend(K, own, c, beta, product, b, rho, goal, max_epochs, seed):
    """Run epochs over the rows, in place, until the rows' gaps sum to no more than ``goal``.

    Rows whose own gap is below their share are passed over, at the cost of k operations instead of n k.

    Parameters
    ----------
    K : array of shape (n, n), float32 or float64
        Symmetric.
    product : array of shape (k, n)
        ``(K beta)'`` throughout, one row per class: a step changes a few classes of all samples.
    own, c : arrays of shape (n,)
        Class and upper bound of every row.
    b, rho : array of shape (k,), float
        Multipliers and weight of the column sums.

    Returns
    -------
    gap : float
        Sum of the rows' gaps at the end.
    updates : int
        Rows moved.
    """
    n, k = beta.shape
    scores, target, new, change = np.empty(k), np.empty(k), np.empty(k), np.empty(k)
    order = np.empty(k, dtype=np.int64)
    sums = np.zeros(k)
    for i in range(n):
        for j in range(k):
            sums[j] += beta[i, j]
    gaps = np.empty(n)
    shift = b + rho * sums
    gap = gap_of_rows(product, beta, own, c, shift, gaps)
    updates = 0
    rows = np.arange(n)
    state = np.uint64(2 * seed + 1)
    for _ in range(max_epochs):
        if gap <= goal:
            break
        share = max(0.1 * gap, 0.3 * goal) / n
        state = _shuffle(rows, state)
        for i in rows:
            if c[i] <= 0.0:
                continue
            for j in range(k):
                scores[j] = product[j, i] + b[j] + rho * sums[j] + (0.0 if j == own[i] else 1.0)
            if _row_gap(scores, beta[i], own[i], c[i]) <= share:
                continue
            curvature = max(K[i, i] + rho, 1e-300)
            for j in range(k):
                target[j] = beta[i, j] - scores[j] / curvature
            _best_row(target, own[i], c[i], order, new)
            moved = 0.0
            for j in range(k):
                change[j] = new[j] - beta[i, j]
                moved += abs(change[j])
            if moved == 0.0:
                continue
            updates += 1
            for j in range(k):
                beta[i, j] = new[j]
                sums[j] += change[j]
            _add_row(product, K[i], change)
        shift = b + rho * sums
        gap = gap_of_rows(product, beta, own, c, shift, gaps)
    return gap, updates


@njit(cache=True)
def _newton_work(beta, own, c):
    """Operations in which a round of Newton steps is expected to leave 1/e of the gap."""
    free = float(free_directions(beta, own, c)[0].size)
    return 2.0 * free**3 + 100.0 * free**2 + 500.0 * own.size


@njit(cache=True)
def ascend_to(K, own, c, intercept, beta, product, b, penalty, target, epochs, attempts, look):
    """Run epochs over the rows until the relative gap is ``target`` or Newton's method is expected to be quicker.

    After every few epochs the multipliers b move by the column sums, and a copy of the rows that is moved into the dual
    set is judged with the best intercepts for it; the best of these is returned in place of ``beta, product, b``.

    Returns
    -------
    primal, dual : float
        Bounds at the point returned.
    updates : int
        Rows moved.
    done : bool
        Whether there is no point in more attempts.
    """
    done = False
    primal, dual = bounds_at(own, c, intercept, beta, product, b)
    rows, scores, multipliers = beta.copy(), product.copy(), b.copy()
    gaps = np.empty(attempts + 1)
    gaps[0] = (primal - dual) / max(abs(primal), abs(dual), 1e-300)
    updates, work = 0, 0.0
    for attempt in range(attempts):
        goal = 0.3 * target * max(abs(primal), abs(dual))
        _, moved = ascend(K, own, c, rows, scores, multipliers, penalty, goal, epochs, attempt)
        updates += moved
        inside, its_scores, its_b = rows.copy(), scores.copy(), multipliers.copy()
        if intercept:
            for y in range(b.size):
                multipliers[y] += penalty * np.sum(rows[:, y])
            copy_vector(multipliers, its_b)
        move_into_set(K, own, c, intercept, inside, its_scores)
        upper, lower = bounds_at(own, c, intercept, inside, its_scores, its_b)
        gap = (upper - lower) / max(abs(upper), abs(lower), 1e-300)
        if gap < gaps[attempt]:
            copy_table(inside, beta)
            copy_table(its_scores, product)
            copy_vector(its_b, b)
            primal, dual = upper, lower
        gaps[attempt + 1] = min(gap, gaps[attempt])
        if gaps[attempt + 1] <= target or moved == 0:
            done = True
            break
        work += 6.0 * moved * own.size
        # progress is not even: what is looked at are as many attempts as cost half of what Newton's method would
        each, other = work / (attempt + 1), _newton_work(beta, own, c)
        window = max(look, int(0.5 * other / each) + 1)
        if attempt + 1 >= window:
            gained = np.log(gaps[attempt + 1 - window] / gaps[attempt + 1])
            if gained * other < each * window:
                done = True
                break
    return primal, dual, updates, done
