"""Conjugate gradients on the free variables: the way out of SMO's slow end game.

On an ill-conditioned Gram matrix two-variable steps zigzag for millions of iterations once the right
variables are free. There the problem is a linear system, which conjugate gradients solve in about as many
steps as the matrix has distinct eigenvalues. A step that meets a bound ends there, and the search starts
again without the variable that met it; the objective never falls.
"""

from __future__ import annotations

import numpy as np

from ._smo_parts import BETA, FAST, KINK, LOWER, RIDGE, SLOPE, UP, UPPER, add_rows, end_of, set_offset
from .compiled import njit


@njit(cache=True, nogil=True)
def free_variables(a):
    """Indices strictly between their bounds and off their kink."""
    free = np.empty(a.shape[1], dtype=np.int64)
    count = 0
    for k in range(a.shape[1]):
        b = a[BETA, k]
        if a[LOWER, k] < b < a[UPPER, k] and (b != 0.0 or a[KINK, k] == 0.0):
            free[count] = k
            count += 1
    return free[:count]


@njit(cache=True, nogil=True)
def _residual(a, free, equality, out):
    """Slopes of the free variables, projected on the equality; returns the largest and the squared norm."""
    mean = 0.0
    for f in range(free.size):
        out[f] = a[SLOPE, free[f]] + a[UP, free[f]]
        mean += out[f]
    mean = mean / free.size if equality else 0.0
    largest, norm = 0.0, 0.0
    for f in range(free.size):
        out[f] -= mean
        largest = max(largest, abs(out[f]))
        norm += out[f] * out[f]
    return largest, norm


@njit(cache=True, nogil=True)
def _turn(direction, residual, momentum, equality):
    """The next conjugate direction, centred once more.

    The residuals are small differences of slopes, so their sum vanishes in units of the slopes' rounding
    only; over a long step that would show in the sum of the coefficients.
    """
    direction *= momentum
    direction += residual
    if equality:
        direction -= direction.mean()


@njit(cache=True, nogil=True)
def _room(a, free, direction):
    """How far the direction can be followed, and which free variable ends it."""
    room, first = np.inf, -1
    for f in range(free.size):
        if direction[f] != 0.0:
            k = free[f]
            reach = (end_of(a, k, direction[f] > 0.0) - a[BETA, k]) / direction[f]
            if reach < room:
                room, first = reach, f
    return room, first


@njit(cache=True, nogil=True)
def _curvature(a, free, direction, product):
    bend = 0.0
    for f in range(free.size):
        k = free[f]
        bend += direction[f] * (product[k] + a[RIDGE, k] * direction[f])
    return bend


@njit(cache=True, nogil=True, fastmath=FAST)
def _advance(slope, product, step):
    for k in range(slope.size):
        slope[k] -= step * product[k]


@njit(cache=True, nogil=True)
def _follow(a, free, direction, product, step, ended):
    """Move along ``direction``; the free variable ``ended`` (or -1) lands on its end exactly."""
    _advance(a[SLOPE], product, step)
    for f in range(free.size):
        k, d = free[f], direction[f]
        end = end_of(a, k, d > 0.0)
        new = a[BETA, k] + step * d
        a[BETA, k] = end if f == ended else (min(new, end) if d > 0.0 else max(new, end))
        a[SLOPE, k] -= step * a[RIDGE, k] * d
        set_offset(a, k)


@njit(cache=True, nogil=True)
def ascend_free(gram, a, equality, tol, budget):
    """Ascend over the free variables until their slopes agree within ``tol`` or ``budget`` is spent.

    Returns the gain and the work in multiply-adds, the unit of ``budget``.
    """
    free = free_variables(a)
    product, residual = np.empty(a.shape[1]), np.empty(free.size)
    direction = np.zeros(free.size)
    gain, work, momentum = 0.0, 0.0, 0.0
    if free.size < 2:
        return gain, work
    largest, norm = _residual(a, free, equality, residual)
    while largest > tol and work < budget:
        _turn(direction, residual, momentum, equality)
        product[:] = 0.0
        add_rows(gram, free, direction, product)
        work += float(free.size) * a.shape[1]
        bend, along = _curvature(a, free, direction, product), np.dot(residual, direction)
        room, first = _room(a, free, direction)
        if not along > 0.0:
            break
        step = along / bend if bend > 0.0 else np.inf
        ended = first if step >= room else -1
        step = min(step, room)
        if not step < np.inf:
            break
        gain += step * (along - 0.5 * step * bend)
        _follow(a, free, direction, product, step, ended)
        if ended >= 0:
            free = free_variables(a)
            if free.size < 2:
                break
            residual, direction, momentum = residual[: free.size], direction[: free.size], 0.0
            largest, norm = _residual(a, free, equality, residual)
        else:
            old = norm
            largest, norm = _residual(a, free, equality, residual)
            momentum = norm / old
    return gain, work
