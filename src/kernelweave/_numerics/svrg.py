"""Inner loop of SVRG on explicit features, compiled: dense rows, and sparse rows with lazy updates.

State: ``u = Z'a`` (``u_c`` belongs to feature c); the function is ``f_i = sum_c z_ic e_c u_c + b`` with ``e_c`` the
weight of the kernel that feature c belongs to.  One step on sample i of probability ``share_i``, with
``beta(f) = -c l'(f)``, ``table = beta(f at the snapshot)`` and ``G = Z'table``:

    u <- (1 - eta) u + eta (G + (beta_i(f_i) - table_i) / share_i z_i)
    a <- (1 - eta) a + eta (table + (beta_i(f_i) - table_i) / share_i e_i)

so that ``u = Z'a`` holds throughout.  Derivatives come as ``kind`` and three numbers a sample:

- ``CLIPPED``: ``-l'(f) = clip((target - f) / width, low, high)``, every loss that is piecewise quadratic;
- ``SIGMOID``: ``-l'(f) = low + 1 / (1 + exp(f))``, the logistic losses.
"""

from __future__ import annotations

import math

import numpy as np

from .compiled import njit

__all__ = ["CLIPPED", "SIGMOID", "dense_steps", "lazy_finish", "row_lengths", "sparse_steps"]

CLIPPED = 0
SIGMOID = 1
#: sums may be reordered, so that they vectorise; infinities and nan keep their meaning
FAST = {"reassoc", "contract"}


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
def dense_steps(
    Z,
    order,
    rows,
    u,
    e,
    G,
    eta,
    share,
    a,
    last,
    powers,
    time,
    table,
    c,
    kind,
    target,
    width,
    low,
    high,
    b,
    free,
    pull,
):
    """Run the steps of ``order`` (rows of the block Z, sample ``rows[i]`` of the whole) in place.

    ``a`` is lazy: entry i is what it was at step ``last[i]``; ``powers[s]`` is ``(1 - eta)^s``.  ``b`` moves with its
    own step ``free`` (0: no intercept), ``pull`` is the gradient of the loss in b at the snapshot.  Returns the time.
    """
    width_of_u, columns = u.shape
    for at in range(order.size):
        r = order[at]
        i = rows[r]
        idle = powers[time - last[i]]
        last[i] = time + 1
        for k in range(columns):
            f = b[k]
            for q in range(width_of_u):
                f += Z[r, q] * e[q] * u[q, k]
            moved = (
                c[i, k] * unit_coefficient(kind, target[i, k], width, low[i, k], high[i, k], f) - table[i, k]
            )
            step = eta * moved / share[i]
            keep = 1.0 - eta
            for q in range(width_of_u):
                u[q, k] = keep * u[q, k] + eta * G[q, k] + step * Z[r, q]
            now = table[i, k] + idle * (a[i, k] - table[i, k])
            a[i, k] = keep * now + eta * table[i, k] + step
            b[k] += free * (pull[k] + moved / share[i])
        time += 1
    return time


@njit(cache=True, fastmath=FAST, nogil=True)
def sparse_steps(
    data,
    indices,
    indptr,
    order,
    rows,
    u,
    e,
    G,
    eta,
    share,
    a,
    last,
    touched,
    powers,
    time,
    table,
    c,
    kind,
    target,
    width,
    low,
    high,
    b,
    free,
    pull,
):
    """``dense_steps`` on CSR rows: features that a sample does not have are left behind and caught up when needed."""
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
            moved = (
                c[i, k] * unit_coefficient(kind, target[i, k], width, low[i, k], high[i, k], f) - table[i, k]
            )
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
