"""The dual of a multiclass loss, compiled: rows that sum to zero under bounds, best intercepts, ascent, Newton steps.

    minimise over b   sum_i c_i max_y (scores_iy + b_y) - sum_y p_y b_y,      p_y the weight of the samples of class y

This is the dual of a transport problem: every row hands out its weight ``c_i`` to the classes, class y takes ``p_y`` in
all, and what is transported should score as much as possible.  With b given each row goes to its best class; classes
that then hold too much hand rows on to classes that lack some, along the cheapest chain of exchanges, and b moves so
that rows on that chain are tied (successive shortest paths; the graph has one node per class).  Each chain is found
exactly, so the end is the optimum up to rounding, whatever the scale of scores and weights.
"""

from __future__ import annotations

import numpy as np

from .._typing import Array
from .compiled import inner, njit

#: rows beyond which every eighth row is settled first: from the shift found there few rows have to move
MANY, EVERY = 1000, 8


def best_shift(scores: Array, own: np.ndarray, c: Array, start: Array | None = None) -> Array:
    """Return the b (summing to zero) that minimises ``sum_i c_i (max_y (scores_iy + b_y) - scores_i,own - b_own)``.

    Where many b do, it is a point in the middle of them, whatever ``start`` is: the nearer that is, the fewer rows have
    to move.  ``scores (n, k)``; ``own`` and ``c``, not negative, are the classes and the weights of the rows.
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
    # never seen to be needed: a bound on the time, whatever rounding does
    chains, most = 0, 1000 + 50 * n * k
    for _ in range(
        50
    ):  # what classes hold beyond their due is added up again until it is right: once or twice
        excess[:] = 0.0
        gross = 0.0
        for i in range(n):
            # rows that are with their own class add nothing, however large their weight
            if amount[own[i], i] != c[i]:
                for y in range(k):
                    off = amount[y, i] - (c[i] if y == own[i] else 0.0)
                    excess[y] += off
                    gross += abs(off)
        dust = 4e-15 * gross  # so much of it is rounding
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


@inner()
def _enter(member, place, count, y, i):
    place[y, i] = count[y]
    member[y, count[y]] = i
    count[y] += 1


@inner()
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


@inner()
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
    # of every hop: a row that arrives may become the cheapest of the next
    chosen = np.empty(k, dtype=np.int64)
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
            count[r] -= 1
            last = member[r, count[r]]
            member[r, place[r, i]] = last
            place[r, last] = place[r, i]
            place[r, i] = -1
            for y in range(k):
                if mover[r, y] == i:
                    _find_mover(scores, member, count, cheapest, mover, r, y)
        s = r


@njit(cache=True)
def _centre(cheapest, count, b):
    """Move b to the mean of the extreme shifts that cost nothing, ``b_s - b_r <= way[r, s]``: no row changes class."""
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
        if not there[s]:  # the highest place that costs nothing, as with next to no weight
            move[s] = np.inf
            for r in range(k):
                if there[r]:
                    move[s] = min(move[s], move[r] + way[r, s])
    b += move


# A row of coefficients is ``beta_i <= c_i e_own, sum_y beta_iy = 0``; with an intercept columns sum to zero as well.


@inner(fastmath={"contract", "reassoc"})
def row_shift(target, own, c):
    """Return h, for which ``min(target - h, upper)`` sums to zero, and the sum of the entries at their bounds.

    ``upper`` is c at ``own`` and 0 elsewhere.  The sum falls ever faster in h, so that Newton's method for it comes
    down to h from above, and an entry that is at its bound once stays there: what is left, few of many classes, is
    found in a handful of rounds, and nothing is sorted.
    """
    h, held, left = np.inf, 0.0, target.size + 1
    while True:
        free, number = 0.0, 0
        for y in range(target.size):
            below = y != own and target[y] <= h
            free += target[y] if below else 0.0
            number += 1 if below else 0
        moves = target[own] - c <= h
        if moves:
            free += target[own]
            number += 1
        if number >= left or number == 0:  # more of them: rounding
            return h, held
        held, left = 0.0 if moves else c, number
        h = (free + held) / number


@njit(cache=True)
def make_rows_feasible(beta, own, c, balanced):
    """Make rows sum to zero under their bounds and, where asked, columns to zero; in place, exact to rounding."""
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
    if balanced:
        _balance_columns(beta, own, c)


@njit(cache=True)
def _balance_columns(beta, own, c):
    """Make columns sum to zero, while rows keep their sums and bounds.

    What a column has too little goes to it from those that have too much, through rows that are free in both first
    (entries at their bounds stay), then through any row: coefficients can always be made more negative elsewhere.
    """
    n, k = beta.shape
    lack = np.zeros(k)  # by what a column is negative: rows may lower others and raise it
    for _ in range(4):  # a second round finds what the first has rounded
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


@inner(fastmath={"contract", "reassoc"})
def _add_row(product, column, change):
    """Add ``column change'``, transposed, to ``product (k, n)``; a step changes two or three classes of ten."""
    for y in range(change.size):
        x, out = change[y], product[y]
        if x != 0.0:
            for i in range(out.size):
                out[i] += x * column[i]


@njit(cache=True, fastmath={"contract", "reassoc"})
def add_products(K, beta, product):
    """Add ``(K beta)'`` to ``product (k, n)``: entries of beta that are zero cost nothing, and most are."""
    for i in range(beta.shape[0]):
        _add_row(product, K[i], beta[i])


@njit(cache=True)
def move_into_set(K, own, c, intercept, beta, product):
    """Move beta into the dual set, exactly, and ``product = (K beta)'`` with it; in place."""
    before = beta.copy()
    make_rows_feasible(beta, own, c, intercept)
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


@njit(makes_arrays=False)
def add_inverse(inverse, places, sums, S):
    """Add a symmetric matrix, of which the lower half is given, to entries ``places``, which rise, of a lower half.

    ``sums`` becomes those of its columns.  Both matrices are in the order of LAPACK, and are given transposed.
    """
    sums[:] = 0.0
    for j in range(places.size):
        column, out = inverse[j], S[places[j]]
        here = column[j]
        out[places[j]] += here
        for i in range(j + 1, places.size):
            here += column[i]
            sums[i] += column[i]
            out[places[i]] += column[i]
        sums[j] += here


@njit(makes_arrays=False)
def count_loose(beta, own, c, sizes):
    """Return how many rows can move, those with more than one entry below its bound, and count theirs by class."""
    sizes[:] = 0.0
    rows = 0
    for i in range(own.size):
        number = 0
        for y in range(sizes.size):
            number += beta[i, y] < (c[i] if y == own[i] else 0.0)
        if number > 1:
            rows += 1
            for y in range(sizes.size):
                sizes[y] += beta[i, y] < (c[i] if y == own[i] else 0.0)
    return rows


# Newton's method on the rows.  Decision values ``product (k, n)`` and the shift b make the scores
# ``s_iy = product_yi + b_y + [y != own_i]``.  The response of a row is the best coefficients for its scores, held back
# by a proximal term around ``centre``:
#
#     beta_i = argmin over beta of beta's_i + hold_i / 2 |beta - centre_i|^2 = projection of centre_i - s_i / hold_i
#
# Everything is computed from the coefficients of the other classes; that of the own class is minus their sum, so that
# nothing is lost where they are small beside the bound.


@inner()
def _respond(product, i, own, c, b, centre, hold, t, out):
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
    h, held = row_shift(t, own, c)
    total = 0.0
    for y in range(k):
        if y != own:
            out[y] = min(t[y] - h, 0.0)
            total -= out[y]
    out[own] = total
    if held != 0.0 or total >= c:  # at the bound: exactly
        out[own] = c


@njit(cache=True)
def _slope(product, change, own, c, b, shift, centre, hold, U, moves, alpha):
    """Derivative of the smoothed primal objective at ``(U, b) + alpha (moves, shift)``; ``change = (K moves)'``."""
    k, n = product.shape
    t, out = np.empty(k), np.empty(k)
    there = np.empty((k, 1))
    b_there = b + alpha * shift
    total = 0.0
    for i in range(n):
        if c[i] > 0.0:
            for y in range(k):
                there[y, 0] = product[y, i] + alpha * change[y, i]
            _respond(there, 0, own[i], c[i], b_there, centre[i], hold[i], t, out)
        else:
            out[:] = 0.0
        for y in range(k):
            total += change[y, i] * (U[i, y] + alpha * moves[i, y] - out[y]) - out[y] * shift[y]
    return total


@njit(cache=True)
def step_length(product, change, own, c, b, shift, centre, hold, U, moves):
    """Return a length of the step, at most 1, at whose end the objective still falls: near the root of its slope."""
    low, high = 0.0, 1.0
    first = _slope(product, change, own, c, b, shift, centre, hold, U, moves, 0.0)
    at_high = _slope(product, change, own, c, b, shift, centre, hold, U, moves, 1.0)
    at_low = first
    if at_high <= 1e-10 * abs(first):
        return 1.0
    if first >= 0.0:
        return 0.0
    for step in range(60):
        # the secant twice, then bisection
        alpha = low - at_low * (high - low) / (at_high - at_low) if step % 3 < 2 else 0.5 * (low + high)
        here = _slope(product, change, own, c, b, shift, centre, hold, U, moves, alpha)
        if here <= 0.0:
            low, at_low = alpha, here
            if here >= 0.1 * first or step > 10:
                break
        else:
            high, at_high = alpha, here
    return low


@njit(cache=True)
def respond(product, own, c, b, centre, hold, beta):
    """Fill ``beta`` with the responses of all rows."""
    n, k = centre.shape
    t = np.empty(k)
    for i in range(n):
        if c[i] > 0.0:
            _respond(product, i, own[i], c[i], b, centre[i], hold[i], t, beta[i])


# Exact ascent on the dual, one sample's row of coefficients at a time.
#
#     maximise  sum_i beta_i,own - tr(beta' K beta) / 2 - b'(1'beta) - rho |1'beta|^2 / 2     over the rows' dual set
#
# With the others held, a row's best value is a projection: the quadratic is ``(K_ii + rho)`` times the identity.  b and
# rho hold the column sums at zero (an augmented Lagrangian); both are zero without an intercept.


@inner(fastmath={"contract", "reassoc"})
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
def ascend(K, own, c, beta, product, b, rho, goal, max_epochs, seed):
    """Run epochs over the rows, in place, until the rows' gaps sum to no more than ``goal``.

    Rows whose own gap is below their share are passed over, at the cost of k operations instead of n k.  ``product`` is
    ``(K beta)'`` throughout, one row per class: a step changes a few classes of all samples.  b and rho are the
    multipliers and the weight of the column sums.  Returns how many rows were moved.
    """
    n, k = beta.shape
    scores, target, change = np.empty(k), np.empty(k), np.empty(k)
    sums = np.zeros(k)
    for i in range(n):
        for j in range(k):
            sums[j] += beta[i, j]
    updates = 0
    rows = np.arange(n)
    state = np.uint64(2 * seed + 1)
    for epoch in range(max_epochs + 1):
        shift = b + rho * sums
        gap = 0.0
        for i in range(n):
            for j in range(k):
                scores[j] = product[j, i] + shift[j] + (0.0 if j == own[i] else 1.0)
            gap += _row_gap(scores, beta[i], own[i], c[i])
        if gap <= goal or epoch == max_epochs:
            break
        share = max(0.1 * gap, 0.3 * goal) / n
        for a in range(n - 1, 0, -1):  # another order of the rows, by a generator of its own (xorshift)
            state ^= state << np.uint64(13)
            state ^= state >> np.uint64(7)
            state ^= state << np.uint64(17)
            other = np.int64(state % np.uint64(a + 1))
            rows[a], rows[other] = rows[other], rows[a]
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
            h, _ = row_shift(target, own[i], c[i])
            moved = 0.0
            for j in range(k):
                target[j] = min(c[i] if j == own[i] else 0.0, target[j] - h)
                change[j] = target[j] - beta[i, j]
                moved += abs(change[j])
            if moved == 0.0:
                continue
            updates += 1
            for j in range(k):
                beta[i, j] = target[j]
                sums[j] += change[j]
            _add_row(product, K[i], change)
    return updates
