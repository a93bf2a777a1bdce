"""Conjugate gradients on the free variables: the way out of SMO's slow end game.

On an ill-conditioned Gram matrix two-variable steps zigzag for millions of iterations once the right
variables are free. There the problem is a linear system, which conjugate gradients solve in about as many
steps as the matrix has distinct eigenvalues. A step that meets a bound ends there, and the search starts
again without the variable that met it; the objective never falls."""

from __future__ import annotations

import numpy as np

from ._smo_parts import BETA, FAST, KINK, LOWER, RIDGE, SLOPE, UP, UPPER, add_rows, end_of, set_offset
from .compiled import inner, njit


def free_variables(a):
    """Indices strictly between their bounds and off their kink."""
    b = a[BETA]
    return ((a[LOWER] < b) & (b < a[UPPER]) & ((b != 0.0) | (a[KINK] == 0.0))).nonzero()[0]


# What is used in one place is inlined before it is compiled, which takes half as long as compiling it twice.


@inner(nogil=True, inline="always")
def _list_free(a, free):
    """Put those indices at the beginning of ``free``; return how many there are."""
    count = 0
    for k in range(a.shape[1]):
        b = a[BETA, k]
        if a[LOWER, k] < b < a[UPPER, k] and (b != 0.0 or a[KINK, k] == 0.0):
            free[count] = k
            count += 1
    return count


@inner(nogil=True, inline="always")
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


@inner(nogil=True, inline="always")
def _turn(direction, residual, momentum, equality):
    """The next conjugate direction, centred once more.

    The residuals are small differences of slopes, so their sum vanishes in units of the slopes' rounding
    only; over a long step that would show in the sum of the coefficients.
    """
    total = 0.0
    for f in range(direction.size):
        direction[f] = direction[f] * momentum + residual[f]
        total += direction[f]
    if equality:
        mean = total / direction.size
        for f in range(direction.size):
            direction[f] -= mean


@inner(nogil=True, fastmath={"reassoc", "contract"})
def _dot(x, y):
    total = 0.0
    for f in range(x.size):
        total += x[f] * y[f]
    return total


@inner(nogil=True, inline="always")
def _room(a, free, direction):
    """How far the direction can be followed, and which free variable ends it."""
    room, first = np.inf, -1
    for f in range(free.size):
        if direction[f] != 0.0:
            k = free[f]
            reach = (end_of(a, k, direction[f]) - a[BETA, k]) / direction[f]
            if reach < room:
                room, first = reach, f
    return room, first


@inner(nogil=True, inline="always")
def _curvature(a, free, direction, product):
    bend = 0.0
    for f in range(free.size):
        k = free[f]
        bend += direction[f] * (product[k] + a[RIDGE, k] * direction[f])
    return bend


@inner(nogil=True, fastmath=FAST)
def _advance(slope, product, step):
    for k in range(slope.size):
        slope[k] -= step * product[k]


@inner(nogil=True, inline="always")
def _follow(a, free, direction, product, step, ended):
    """Move along ``direction``; the free variable ``ended`` (or -1) lands on its end exactly."""
    _advance(a[SLOPE], product, step)
    for f in range(free.size):
        k, d = free[f], direction[f]
        end = end_of(a, k, d)
        new = a[BETA, k] + step * d
        a[BETA, k] = end if f == ended else (min(new, end) if d > 0.0 else max(new, end))
        a[SLOPE, k] -= step * a[RIDGE, k] * d
        set_offset(a, k)


def ascend_free(gram, a, equality, tol, budget):
    """Ascend over the free variables until their slopes agree within ``tol`` or ``budget`` is spent.

    Returns the gain and the work in multiply-adds, the unit of ``budget``.
    """
    size = a.shape[1]
    return _ascend(gram, a, equality, tol, budget, np.empty(size, dtype=np.int64), np.zeros((3, size)))


@njit(makes_arrays=False, nogil=True)
def _ascend(gram, a, equality, tol, budget, indices, room_for):
    """Ascend in the room that is given: for indices, and for three vectors, of which the second is zero."""
    product = room_for[0]
    gain, work, before, ended = 0.0, 0.0, 0.0, 0
    free = indices
    while True:
        if ended >= 0:  # the search begins, or begins again
            free, before = indices[: _list_free(a, indices)], 0.0
            if free.size < 2:
                break
        direction, residual = room_for[1, : free.size], room_for[2, : free.size]
        largest, norm = _residual(a, free, equality, residual)
        if not (largest > tol and work < budget):
            break
        _turn(direction, residual, norm / before if before > 0.0 else 0.0, equality)
        for k in range(product.size):
            product[k] = 0.0
        add_rows(gram, free, direction, np.int64(0), product.size, product)
        work += float(free.size) * a.shape[1]
        bend, along = _curvature(a, free, direction, product), _dot(residual, direction)
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
        before = norm
    return gain, work
