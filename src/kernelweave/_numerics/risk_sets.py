"""Sweeps over risk sets: Cox's partial likelihood with Breslow's ties, its root of the Hessian, its dual; concordance.

Samples are sorted by stratum and time; ``x_i = f_i + ln c_i``, ``e_i = exp(x_i)``.  Of an event time k, ``D_k`` is the
sum of c over its events and ``S_k`` the sum of e over the risk set, which is everybody of the stratum from there on.
Everything is one loop over the samples, in logarithms or in shares between 0 and 1, so that no range of f overflows.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._typing import Array, Index
from .compiled import inner, njit


class RiskSets(NamedTuple):
    """Samples with weight by stratum and time: their positions, and what is sorted like them."""

    order: Index
    #: place of the first sample with the same stratum and time, and whether a sample is the last of its stratum
    tie: Index
    last: NDArray[np.bool_]
    c: Array
    #: c of the events, zero of others
    events: Array

    @classmethod
    def of(cls, y: Array, c: Array) -> RiskSets:
        """Sort samples; ``|y|`` grows with stratum and time, its whole part is the stratum, and events have a plus."""
        used = np.flatnonzero(c > 0)
        order = used[np.argsort(np.abs(y[used]), kind="stable")]
        key, charges = np.abs(y[order]), c[order]
        new = np.append(True, key[1:] != key[:-1])[: key.size]
        tie = np.maximum.accumulate(np.where(new, np.arange(key.size), 0))
        last = np.append(np.floor(key[1:]) != np.floor(key[:-1]), True)[: key.size]
        return cls(order, tie, last, charges, np.where(y[order] > 0, charges, 0.0))


class Hazards(NamedTuple):
    """At decision values: the loss, and by sample logarithms of sums over risk sets and of the cumulative hazard."""

    x: Array
    log_s: Array
    log_h: Array
    total: float


def hazards_at(sets: RiskSets, f: Array) -> Hazards:
    """Return the sums over risk sets at sorted decision values; ``exp(x + log_h)`` are the expected events ``u``."""
    x = f + np.log(sets.c)
    log_s, log_h = np.empty_like(x), np.empty_like(x)
    return Hazards(x, log_s, log_h, _hazards(x, sets.events, sets.tie, sets.last, log_s, log_h))


@inner()
def _add_logs(a, b):
    high, low = max(a, b), min(a, b)
    return high if low == -math.inf else high + math.log1p(math.exp(low - high))


@njit(cache=True)
def _hazards(x, events, tie, last, log_s, log_h):
    n, total, level = x.size, 0.0, -math.inf
    for j in range(n - 1, -1, -1):
        log_s[j] = x[j] if last[j] else _add_logs(x[j], log_s[j + 1])
    first = 0
    while first < n:
        end, deaths = first, 0.0
        while end < n and tie[end] == first:
            deaths += events[end]
            end += 1
        if deaths > 0.0:
            level = _add_logs(level, math.log(deaths) - log_s[first])
        for i in range(first, end):
            log_h[i] = level
            if events[i] > 0.0:
                total += events[i] * (log_s[first] - x[i])
        if last[end - 1]:
            level = -math.inf
        first = end
    return total


@njit(cache=True)
def make_feasible(u, c, events, tie, last):
    """Move ``u >= 0`` into the dual set, in place.

    Nothing is left before the first event, ``U_k <= A_k``, and the last interval takes the rest: ``U_k`` is the sum of
    u from event time k to the next, ``A_k`` what events so far leave to it.
    """
    n, left, begin, first = u.size, 0.0, -1, 0
    while first < n:
        end, deaths = first, 0.0
        while end < n and tie[end] == first:
            deaths += events[end]
            end += 1
        if deaths > 0.0:
            if begin >= 0:
                left = _cut(u, begin, first, left, False, c)
            left += deaths
            begin = first
        elif begin < 0:
            u[first:end] = 0.0
        if last[end - 1]:
            if begin >= 0:
                _cut(u, begin, end, left, True, c)
            left, begin = 0.0, -1
        first = end


@inner()
def _cut(u, begin, end, most, exactly, c):
    """Scale a part of u to a sum of at most, or exactly, so much; return what is left of it."""
    total, weight = 0.0, 0.0
    for i in range(begin, end):
        total += u[i]
        weight += c[i]
    if total > most or (exactly and total != most):
        for i in range(begin, end):
            # the last interval has nothing to scale: all of it takes a share
            u[i] = u[i] * (most / total) if total > 0.0 else c[i] * (most / weight)
        total = most
    return most - total


@njit(cache=True)
def dual_gain(u, c, events, tie, last, slack):
    """``-total*(u - delta)``; minus infinity where u is outside the dual set by more than ``slack``."""
    value, left, first, n = 0.0, 0.0, 0, u.size
    while first < n:
        end, deaths = first, 0.0
        while end < n and tie[end] == first:
            deaths += events[end]
            end += 1
        if left < -slack:
            return -math.inf
        left = max(left, 0.0)
        if deaths > 0.0:
            value += _x_ln_x(left) - _x_ln_x(left + deaths)
            left += deaths
        for i in range(first, end):
            if u[i] < -slack:
                return -math.inf
            if u[i] > 0.0:
                value += u[i] * math.log(u[i] / c[i])
                left -= u[i]
            if events[i] > 0.0:
                value += _x_ln_x(events[i])
        if last[end - 1]:
            if abs(left) > slack:
                return -math.inf
            left = 0.0
        first = end
    return -value


@inner()
def _x_ln_x(x):
    return x * math.log(x) if x > 0.0 else 0.0


class HessianRoot:
    """``W = R R'``, the Hessian of the loss at some decision values, for samples in sorted order.

    In the order of time ``R = N diag(a)``, N with ones on its diagonal and ``N_ij = -e_i / T_j`` below, T the sums of e
    over those behind; ``a_j^2 = u_j T_j / S_j``.  Its products are one loop over shares ``p_j = e_j / S_j`` and
    ``q_j = T_j / S_j``; at the end of a stratum q and a are zero, so that nothing goes on to the next.
    """

    def __init__(self, sets: RiskSets, at: Hazards) -> None:
        self.order, self.last = sets.order, sets.last
        behind = np.append(at.log_s[1:], -np.inf)
        self.p = np.exp(at.x - at.log_s)
        self.q = np.where(self.last, 0.0, np.exp(np.minimum(behind - at.log_s, 0.0)))
        self.a = np.sqrt(np.exp(at.x + at.log_h) * self.q)

    def times(self, z: Array) -> Array:
        """``R z``, of sorted values."""
        out = np.empty_like(z)
        _times(self.a, self.p, self.q, z, out)
        return out

    def transposed(self, v: Array) -> Array:
        """``R'v``, of sorted values ``(..., n)``; leading axes are columns."""
        out = np.array(v, dtype=float)
        flat = out.reshape(-1, self.a.size)
        for row in flat:
            _transposed(self.a, self.p, self.q, row)
        return out

    def sandwich(self, K: Array) -> Array:
        """``R'K R`` of a symmetric matrix whose rows are not sorted."""
        out = np.empty((self.order.size, self.order.size))
        _sandwich(self.a, self.p, self.q, self.order, K, out, np.zeros(self.order.size))
        return out


@njit(cache=True)
def _times(a, p, q, z, out):
    carried = 0.0
    for i in range(z.size):
        own = a[i] * z[i]
        out[i] = own - p[i] * carried
        carried = q[i] * carried + own


@njit(cache=True)
def _transposed(a, p, q, v):
    mean = 0.0
    for j in range(v.size - 1, -1, -1):
        own = v[j]
        v[j] = a[j] * (own - mean)
        mean = p[j] * own + q[j] * mean


@njit(cache=True, fastmath={"contract"})
def _sandwich(a, p, q, order, K, out, mean):
    n = order.size
    for j in range(n - 1, -1, -1):
        row, given = out[j], K[order[j]]
        for i in range(n):
            own = given[order[i]]
            row[i] = a[j] * (own - mean[i])
            mean[i] = p[j] * own + q[j] * mean[i]
        along = 0.0
        for i in range(n - 1, -1, -1):
            own = row[i]
            row[i] = a[i] * (own - along)
            along = p[i] * own + q[i] * along


@njit(cache=True)
def concordant_pairs(order, tie, event, weight, low, high, place, tree):
    """Sums of weights over pairs that are concordant, tied in risk, and comparable, by a Fenwick tree in O(n log n).

    ``order`` sorts by time and ``tie`` is as in ``RiskSets``; a pair counts with the weight of its earlier sample,
    which has an event.  Of samples with the same time those without event are later.  Risks are known by ``place``,
    their rank among the distinct values; one is below another where its rank is under ``low``, tied under ``high``.
    """
    concordant = tied = comparable = 0.0
    later, end = 0, order.size
    while end > 0:
        first = tie[end - 1]
        for i in order[first:end]:
            if not event[i]:
                _enter(tree, place[i])
                later += 1
        for i in order[first:end]:
            if event[i]:
                below = _count(tree, low[i])
                concordant += weight[i] * below
                tied += weight[i] * (_count(tree, high[i]) - below)
                comparable += weight[i] * later
        for i in order[first:end]:
            if event[i]:
                _enter(tree, place[i])
                later += 1
        end = first
    return concordant, tied, comparable


@inner()
def _count(tree, below):
    total = 0
    while below > 0:
        total += tree[below]
        below -= below & -below
    return total


@inner()
def _enter(tree, place):
    at = place + 1
    while at < tree.size:
        tree[at] += 1
        at += at & -at
