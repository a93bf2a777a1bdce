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

from .compiled import njit
from .row_sets import add_products, row_shift

__all__ = ["free_directions", "newton_round"]

#: steps in a row after which what is left, a share of all coefficients no larger than that, is rounding
STUCK, ROUNDING = 2, 1e-9


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
    h, held = row_shift(t, own, c, order)
    total = 0.0
    for y in range(k):
        if y != own:
            out[y] = min(t[y] - h, 0.0)
            total -= out[y]
    out[own] = total
    if held != 0.0 or total >= c:  # at the bound: exactly
        out[own] = c


@njit(cache=True)
def _respond_all(product, own, c, b, centre, hold, beta):
    """Fill ``beta`` with the responses of all rows."""
    k, n = product.shape
    t, order = np.empty(k), np.empty(k, dtype=np.int64)
    for i in range(n):
        if c[i] > 0.0:
            _respond(product, i, own[i], c[i], b, centre[i], hold[i], t, order, beta[i])
        else:
            beta[i] = 0.0


@njit(cache=True)
def _slope(product, change, own, c, b, shift, centre, hold, U, moves, alpha):
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
def _factor(K, where, Q, hold):
    """Cholesky factor of K on the free directions, the proximal term on its diagonal."""
    f = where.size
    block = np.dot(Q, Q.T)
    for p in range(f):
        row = K[where[p]]
        for q in range(f):
            block[p, q] *= row[where[q]]
        block[p, p] += hold[where[p]]
    return np.linalg.cholesky(block)


@njit(cache=True, fastmath={"contract", "reassoc"})
def _forward(L, x):
    """Solve ``L y = x`` in place for every column of ``x' (columns, f)``."""
    f = L.shape[0]
    for column in range(x.shape[0]):
        v = x[column]
        for p in range(f):
            row = L[p]
            total = 0.0
            for q in range(p):
                total += row[q] * v[q]
            v[p] = (v[p] - total) / row[p]


@njit(cache=True, fastmath={"contract", "reassoc"})
def _backward(L, v):
    """Solve ``L' z = v`` in place."""
    for p in range(v.size - 1, -1, -1):
        row = L[p]
        v[p] /= row[p]
        z = v[p]
        for q in range(p):
            v[q] -= row[q] * z


@njit(cache=True)
def _direction(K, where, Q, rest, off, hold, stay, intercept, shift):
    """Newton's step of U, as moves of the rows, and of b (``shift``, filled).

    On the free directions z and with M = K + hold there, ``M z + Q b = Q'K rest`` and ``Q'z - stay b = off``.
    """
    k, f = rest.shape[1], where.size
    moves = -rest
    shift[:] = 0.0
    if f == 0:
        if intercept:
            for y in range(k):
                shift[y] = -off[y] / stay
        return moves
    L = _factor(K, where, Q, hold)
    right = np.zeros((1, f))
    pull = np.zeros(k)
    rows, classes = np.nonzero(rest)  # few, once steps are full
    last = -1
    for p in range(f):
        if where[p] != last:
            last = where[p]
            pull[:] = 0.0
            row = K[last]
            for a in range(rows.size):
                pull[classes[a]] += row[rows[a]] * rest[rows[a], classes[a]]
        for y in range(k):
            right[0, p] += pull[y] * Q[p, y]
    _forward(L, right)
    z = right[0]
    if intercept:
        normals = Q.T.copy()
        _forward(L, normals)
        bends, axes = np.linalg.eigh(np.dot(normals, normals.T))
        asked = np.dot(normals, z) - off
        most = bends[k - 1] + stay
        for a in range(k):
            bend = max(bends[a], 0.0) + stay
            if bend > 1e-15 * most:  # all classes together are shifted by nothing
                along = 0.0
                for y in range(k):
                    along += axes[y, a] * asked[y]
                for y in range(k):
                    shift[y] += axes[y, a] * along / bend
        z -= np.dot(shift, normals)
    _backward(L, z)
    for p in range(f):
        for y in range(k):
            moves[where[p], y] += z[p] * Q[p, y]
    return moves


@njit(cache=True)
def _length(product, change, own, c, b, shift, centre, hold, U, moves):
    """Length of a step, at most 1, at whose end the objective still falls: near the root of its slope, from below."""
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
def newton_round(K, own, c, centre, product, b, hold, stay, intercept, most, enough):
    """Minimise the smoothed problem around ``centre`` by Newton's method; ``product`` and b move along, in place.

    Parameters
    ----------
    centre, product : arrays of shape (n, k) and (k, n)
        Coefficients and ``(K centre)'``; at the end ``product`` is that of the coefficients returned.
    b : array of shape (k,)
        Intercepts.
    hold, stay : array of shape (n,), float
        Proximal terms of the rows; damping of the intercepts.
    most : int
        Steps at most.
    enough : float
        Sum of what is left of rows and columns that may stay.

    Returns
    -------
    beta : array of shape (n, k)
        Responses: rows of the dual set, whose columns sum to zero once the steps have converged.
    steps : int
        Steps taken; ``most`` where they did not converge.
    """
    n, k = centre.shape
    U, beta = centre.copy(), np.zeros((n, k))
    off, shift = np.zeros(k), np.zeros(k)
    steps, stuck, least = 0, 0, np.inf
    while True:
        _respond_all(product, own, c, b, centre, hold, beta)
        rest = U - beta
        left, size = 0.0, 0.0
        off[:] = 0.0
        for i in range(n):
            for y in range(k):
                left += abs(rest[i, y])
                size += abs(beta[i, y])
                off[y] -= beta[i, y]
        if not intercept:
            off[:] = 0.0
        for y in range(k):
            left += abs(off[y])
        stuck = 0 if left <= 0.5 * least else stuck + 1
        least = min(least, left)
        if left <= max(enough, 1e-13 * size) or steps == most:
            break
        if stuck >= STUCK and left <= ROUNDING * size:
            break
        where, Q = free_directions(beta, own, c)
        moves = _direction(K, where, Q, rest, off, hold, stay, intercept, shift)
        change = np.zeros((k, n))
        add_products(K, moves, change)
        alpha = _length(product, change, own, c, b, shift, centre, hold, U, moves)
        if alpha == 0.0:
            steps = most
            break
        steps += 1
        U += alpha * moves
        product += alpha * change
        b += alpha * shift
    add_products(K, beta - U, product)
    return beta, steps
