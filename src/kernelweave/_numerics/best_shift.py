"""The best intercepts of several classes for given decision values, exactly.

    minimise over b   sum_i c_i max_y (scores_iy + b_y) - sum_y p_y b_y,      p_y the weight of the samples of class y

This is the dual of a transport problem: every row hands out its weight ``c_i`` to the classes, class y takes ``p_y`` in
all, and what is transported should score as much as possible.  With b given each row goes to its best class; classes
that then hold too much hand rows on to classes that lack some, along the cheapest chain of exchanges, and b moves so
that rows on that chain are tied (successive shortest paths; the graph has one node per class).  Each chain is found
exactly, so the end is the optimum up to rounding, whatever the scale of scores and weights.
"""

from __future__ import annotations

import numpy as np

from .compiled import njit

__all__ = ["best_shift", "settle"]

#: rows beyond which every eighth row is settled first: from the shift found there few rows have to move
MANY, EVERY = 1000, 8


def best_shift(
    scores: np.ndarray, own: np.ndarray, c: np.ndarray, start: np.ndarray | None = None
) -> np.ndarray:
    """Return the b (summing to zero) that minimises ``sum_i c_i (max_y (scores_iy + b_y) - scores_i,own - b_own)``.

    Where many b do, it is a point in the middle of them, whatever ``start`` is.

    Parameters
    ----------
    scores : array of shape (n, k)
    own : array of shape (n,)
        Class of every row.
    c : array of shape (n,)
        Weights of the rows, not negative.
    start : array of shape (k,), optional
        A shift expected to be near: the nearer, the fewer rows have to move.
    """
    if not np.any(c > 0):
        return np.zeros(scores.shape[1])
    by_class = np.ascontiguousarray(scores.T, dtype=float)
    rows, weight = np.ascontiguousarray(own, dtype=np.int64), np.ascontiguousarray(c, dtype=float)
    b = np.zeros(scores.shape[1]) if start is None else np.array(start, dtype=float)
    if start is None:
        step = EVERY ** int(np.log(max(rows.size / MANY, 1.0)) / np.log(EVERY))
        while step > 1:
            some = np.ascontiguousarray(by_class[:, ::step])
            settle(some, rows[::step].copy(), weight[::step].copy(), b)
            step //= EVERY
    settle(by_class, rows, weight, b)
    return b - np.mean(b)


@njit(cache=True)
def settle(scores, own, c, b):
    """Move b to the middle of the best shifts, in place; ``scores (k, n)``; rows of weight 0 do not count."""
    k, n = scores.shape
    amount = np.zeros((k, n))
    member = np.empty((k, n), dtype=np.int32)
    place = np.full((k, n), -1, dtype=np.int32)
    count = np.zeros(k, dtype=np.int64)
    for i in range(n):
        if c[i] <= 0.0:
            continue
        # at a tie the own class comes first: nothing has to be moved for it
        top = own[i]
        for y in range(k):
            if scores[y, i] + b[y] > scores[top, i] + b[top]:
                top = y
        amount[top, i] = c[i]
        _enter(member, place, count, top, i)
    cheapest = np.empty((k, k))
    mover = np.full((k, k), -1, dtype=np.int64)
    for r in range(k):
        for s in range(k):
            _find_mover(scores, member, count, cheapest, mover, r, s)
    excess = np.empty(k)
    distance, hops = np.empty(k), np.empty(k, dtype=np.int64)
    before, done = np.empty(k, dtype=np.int64), np.empty(k, dtype=np.bool_)
    chains, most = (
        0,
        1000 + 50 * n * k,
    )  # never seen to be needed: a bound on the time, whatever rounding does
    for _ in range(50):  # what the classes hold is added up again until it is right: once or twice
        dust = _add_up(amount, own, c, excess)
        moved = False
        while chains <= most:
            end = _nearest(cheapest, b, excess, dust, distance, hops, before, done)
            if end < 0:
                break
            moved = True
            for y in range(k):
                b[y] += min(distance[y], distance[end])
            _hand_on(scores, c, amount, member, place, count, cheapest, mover, excess, before, end)
            chains += 1
        if not moved or chains > most:
            break
    _centre(cheapest, count, b)


@njit(cache=True)
def _enter(member, place, count, y, i):
    place[y, i] = count[y]
    member[y, count[y]] = i
    count[y] += 1


@njit(cache=True)
def _leave(member, place, count, y, i):
    count[y] -= 1
    last = member[y, count[y]]
    member[y, place[y, i]] = last
    place[y, last] = place[y, i]
    place[y, i] = -1


@njit(cache=True)
def _find_mover(scores, member, count, cheapest, mover, r, s):
    """Row of class r that loses least by going to s, and what it loses before b."""
    low, at = np.inf, -1
    if r != s:
        for a in range(count[r]):
            i = member[r, a]
            loss = scores[r, i] - scores[s, i]
            if loss < low:
                low, at = loss, i
    cheapest[r, s], mover[r, s] = low, at


@njit(cache=True)
def _add_up(amount, own, c, excess):
    """What every class holds beyond its due; return what of it is rounding."""
    k, n = amount.shape
    excess[:] = 0.0
    gross = 0.0
    for i in range(n):
        # rows that are with their own class add nothing, however large their weight
        if amount[own[i], i] != c[i]:
            for y in range(k):
                off = amount[y, i] - (c[i] if y == own[i] else 0.0)
                excess[y] += off
                gross += abs(off)
    return 4e-15 * gross


@njit(cache=True)
def _nearest(cheapest, b, excess, dust, distance, hops, before, done):
    """Class that lacks something nearest to one that has too much (Dijkstra), or -1; fewer exchanges win ties."""
    k = b.size
    for y in range(k):
        done[y] = False
        before[y] = -1
        hops[y] = 0
        distance[y] = 0.0 if excess[y] > dust else np.inf
    end = -1
    for _ in range(k):
        r = -1
        for y in range(k):
            if done[y] or distance[y] == np.inf:
                continue
            if r < 0 or distance[y] < distance[r] or (distance[y] == distance[r] and hops[y] < hops[r]):
                r = y
        if r < 0:
            break
        done[r] = True
        if excess[r] < -dust:
            end = r
            break
        for s in range(k):
            if not done[s] and cheapest[r, s] < np.inf:
                reach = distance[r] + max(cheapest[r, s] + b[r] - b[s], 0.0)
                if reach < distance[s] or (reach == distance[s] and hops[r] + 1 < hops[s]):
                    distance[s], hops[s], before[s] = reach, hops[r] + 1, r
    return end


@njit(cache=True)
def _hand_on(scores, c, amount, member, place, count, cheapest, mover, excess, before, end):
    """Move as much as fits along the chain that ends at ``end``."""
    k = excess.size
    size, s = -excess[end], end
    chosen = np.empty(
        k, dtype=np.int64
    )  # of every hop: a row that arrives may become the cheapest of the next
    while before[s] >= 0:
        chosen[s] = mover[before[s], s]
        # one row that goes on at once goes there directly: what it holds in between does not limit it
        while before[before[s]] >= 0 and mover[before[before[s]], before[s]] == chosen[s]:
            before[s] = before[before[s]]
        size = min(size, amount[before[s], chosen[s]])
        s = before[s]
    size = min(size, excess[s])
    excess[s] -= size
    excess[end] += size
    s = end
    while before[s] >= 0:
        r, i = before[s], chosen[s]
        # what rounding leaves of a row goes along: as a member it would be a chain of its own
        part = size if amount[r, i] - size > 1e-15 * c[i] else amount[r, i]
        amount[r, i] -= part
        if place[s, i] < 0:
            _enter(member, place, count, s, i)
            for y in range(k):
                loss = scores[s, i] - scores[y, i]
                if y != s and loss < cheapest[s, y]:
                    cheapest[s, y], mover[s, y] = loss, i
        amount[s, i] += part
        s = r
    s = end
    while before[s] >= 0:
        r, i = before[s], chosen[s]
        if amount[r, i] == 0.0 and place[r, i] >= 0:
            _leave(member, place, count, r, i)
            for y in range(k):
                if mover[r, y] == i:
                    _find_mover(scores, member, count, cheapest, mover, r, y)
        s = r


@njit(cache=True)
def _centre(cheapest, count, b):
    """Move b to the mean of the extreme shifts that cost nothing.

    Shifts are free as long as no row wants to leave its class: ``b_s - b_r <= way[r, s]``.  A class without rows takes
    the highest place that costs nothing, as it would with next to no weight.
    """
    k = b.size
    there = count > 0
    way = np.empty((k, k))
    for r in range(k):
        for s in range(k):
            way[r, s] = 0.0 if r == s else max(cheapest[r, s] + b[r] - b[s], 0.0)
    for q in range(k):
        if there[q]:
            for r in range(k):
                if there[r]:
                    for s in range(k):
                        way[r, s] = min(way[r, s], way[r, q] + way[q, s])
    number = 0
    for r in range(k):
        number += there[r]
    move = np.zeros(k)
    for s in range(k):
        if there[s]:
            for r in range(k):
                if there[r]:
                    move[s] += (way[r, s] - way[s, r]) / (2 * number)
    for s in range(k):
        if not there[s]:
            move[s] = np.inf
            for r in range(k):
                if there[r]:
                    move[s] = min(move[s], move[r] + way[r, s])
    b += move
