"""Inner loops of SVRG on explicit features, compiled; and Algorithm 1 of [APO17] as printed.

State: ``u = Z'a`` (``u_c`` belongs to feature c); the function is ``f_i = sum_c z_ic e_c u_c + b`` with ``e_c`` the
weight of the kernel that feature c belongs to.  One step on sample i of probability ``share_i``, with
``beta(f) = -c l'(f)``, ``table = beta(f at the snapshot)`` and ``G = Z'table``:

    u <- (1 - eta) u + eta (G + (beta_i(f_i) - table_i) / share_i z_i)
    a <- (1 - eta) a + eta (table + (beta_i(f_i) - table_i) / share_i e_i)

so that ``u = Z'a`` holds throughout.  Derivatives come as ``kind`` and three numbers per sample:

- ``CLIPPED``: ``-l'(f) = clip((target - f) / width, low, high)``, every loss that is piecewise quadratic;
- ``SIGMOID``: ``-l'(f) = low + 1 / (1 + exp(f))``, the logistic losses.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .._typing import Array
from .compiled import njit

Index = np.ndarray[Any, np.dtype[np.int64]]

CLIPPED = 0
SIGMOID = 1
#: sums may be reordered, so that they vectorise; infinities and nan keep their meaning
FAST = {"reassoc", "contract"}


class Walk(NamedTuple):
    """Arrays that steps change in place."""

    u: Array  # image of the coefficients in feature space, ``(R, k)``
    a: Array  # coefficients ``(n, k)``; lazy: row i is what it was at step ``last[i]``
    b: Array  # intercepts ``(k,)``
    last: Index
    touched: Index  # the steps ``(R,)`` at which rows of u were brought up to date; only for sparse rows


class Snapshot(NamedTuple):
    """Arrays fixed during an epoch."""

    e: Array  # weights ``(R,)`` of the features
    table: Array
    G: Array  # ``Z'table``
    c: Array  # costs
    pull: Array  # negative gradient of the loss in the intercepts ``(k,)``


class Pace(NamedTuple):
    """Lengths of the steps, and how samples are drawn."""

    eta: float
    free: float  # for the intercepts (0: there are none)
    share: Array  # probabilities of the samples
    powers: Array  # ``powers[s]`` is ``(1 - eta)^s``


class SparseRows(NamedTuple):
    """A CSR matrix."""

    data: Array
    indices: Index
    indptr: Index


@njit(cache=True)
def unit_coefficient(kind, target, width, low, high, f):
    """``-l'(f)`` of one sample."""
    if kind == SIGMOID:
        if f > 0:
            small = math.exp(-f)
            return low + small / (1.0 + small)
        return low + 1.0 / (1.0 + math.exp(f))
    return min(max((target - f) / width, low), high)


@njit(cache=True, fastmath=FAST, nogil=True)
def dense_steps(Z, order, rows, time, walk, snapshot, pace, loss):
    """Run the steps of ``order`` (rows of the block Z, sample ``rows[i]`` of the whole) in place; return the time."""
    u, a, b, last, _ = walk
    e, table, G, c, pull = snapshot
    eta, free, share, powers = pace
    kind, target, width, low, high = loss
    features, columns = u.shape
    keep = 1.0 - eta
    for at in range(order.size):
        r = order[at]
        i = rows[r]
        idle = powers[time - last[i]]
        last[i] = time + 1
        for k in range(columns):
            f = b[k]
            for q in range(features):
                f += Z[r, q] * e[q] * u[q, k]
            beta = c[i, k] * unit_coefficient(kind, target[i, k], width, low[i, k], high[i, k], f)
            moved = beta - table[i, k]
            step = eta * moved / share[i]
            for q in range(features):
                u[q, k] = keep * u[q, k] + eta * G[q, k] + step * Z[r, q]
            now = table[i, k] + idle * (a[i, k] - table[i, k])
            a[i, k] = keep * now + eta * table[i, k] + step
            b[k] += free * (pull[k] + moved / share[i])
        time += 1
    return time


@njit(cache=True, fastmath=FAST, nogil=True)
def sparse_steps(rows_of, order, rows, time, walk, snapshot, pace, loss):
    """``dense_steps`` on CSR rows: features that a sample does not have are left behind and caught up when needed."""
    data, indices, indptr = rows_of
    u, a, b, last, touched = walk
    e, table, G, c, pull = snapshot
    eta, free, share, powers = pace
    kind, target, width, low, high = loss
    columns = u.shape[1]
    keep = 1.0 - eta
    for at in range(order.size):
        r = order[at]
        i = rows[r]
        idle = powers[time - last[i]]
        last[i] = time + 1
        for p in range(indptr[r], indptr[r + 1]):
            q = indices[p]
            behind = powers[time - touched[q]]
            for k in range(columns):
                u[q, k] = G[q, k] + behind * (u[q, k] - G[q, k])
            touched[q] = time + 1
        for k in range(columns):
            f = b[k]
            for p in range(indptr[r], indptr[r + 1]):
                q = indices[p]
                f += data[p] * e[q] * u[q, k]
            beta = c[i, k] * unit_coefficient(kind, target[i, k], width, low[i, k], high[i, k], f)
            moved = beta - table[i, k]
            step = eta * moved / share[i]
            for p in range(indptr[r], indptr[r + 1]):
                q = indices[p]
                u[q, k] = keep * u[q, k] + eta * G[q, k] + step * data[p]
            now = table[i, k] + idle * (a[i, k] - table[i, k])
            a[i, k] = keep * now + eta * table[i, k] + step
            b[k] += free * (pull[k] + moved / share[i])
        time += 1
    return time


@njit(cache=True)
def lazy_finish(values, goal, last, powers, time):
    """Bring lazy values up to date: entry i moves towards ``goal[i]`` for ``time - last[i]`` steps."""
    for i in range(values.shape[0]):
        behind = powers[time - last[i]]
        for k in range(values.shape[1]):
            values[i, k] = goal[i, k] + behind * (values[i, k] - goal[i, k])


@njit(cache=True, fastmath=FAST, nogil=True)
def row_lengths(Z, e):
    """``sum_c e_c z_ic^2`` of every row."""
    out = np.empty(Z.shape[0])
    for i in range(Z.shape[0]):
        total = 0.0
        for q in range(Z.shape[1]):
            total += e[q] * Z[i, q] * Z[i, q]
        out[i] = total
    return out


# Algorithm 1 of [APO17] as printed: every block with its own step, length of epoch and stopping time.


class PaperBlocks(NamedTuple):
    """Numbers that differ between the blocks."""

    starts: Index  # columns of Z at which the blocks begin, ``(m + 1,)``
    scale: Array  # features of block k are those of Z times ``scale[k]``
    strength: Array  # pull of the regulariser
    step: Array
    stop: Index  # the time at which a block stops


@njit(cache=True, fastmath=FAST, nogil=True)
def paper_steps(Z, order, w, blocks, full, table, c, loss):
    """Take the steps of lines 7 to 14 in place; ``full``, ``table``: mean gradient and ``-c l'`` at the snapshot."""
    starts, scale, strength, step, stop = blocks
    kind, target, width, low, high = loss
    m = scale.size
    for t in range(order.size):
        i = order[t]
        f = 0.0
        for k in range(m):
            part = 0.0
            for q in range(starts[k], starts[k + 1]):
                part += Z[i, q] * w[q]
            f += scale[k] * part
        change = -(c[i] * unit_coefficient(kind, target[i], width, low[i], high[i], f) - table[i])
        for k in range(m):
            if t < stop[k]:
                for q in range(starts[k], starts[k + 1]):
                    # G + grad(w) - grad(snapshot), the regulariser's part of which is (lambda / d) w in sum
                    slope = full[q] + change * scale[k] * Z[i, q] + strength[k] * w[q]
                    w[q] -= step[k] * slope
