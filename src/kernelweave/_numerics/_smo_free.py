"""SMO steps without the equality constraint: two variables move, each at its own pace."""

from __future__ import annotations

import numpy as np

from ._smo_parts import (
    BETA,
    CHECK,
    CLOSED,
    CONVERGED,
    CURVATURE,
    DOWN,
    FAST,
    FLOOR,
    KINK,
    LOWER,
    RUNNING,
    SHRINKABLE,
    SLOPE,
    STALLED,
    UP,
    UPPER,
    count_kept,
    larger,
    settle,
    tag,
    untag,
)
from .compiled import inner, njit


@inner(nogil=True, fastmath=FAST)
def _sweep(slope, up, down, gram, i, j, step_i, step_j):
    """Subtract both rows; find the largest violation and its index in the same pass."""
    worst, tagged = -np.inf, -np.inf
    for k in range(slope.size):
        value = slope[k] - (step_i * gram[i, k] + step_j * gram[j, k])
        slope[k] = value
        violation = larger(value + up[k], -(value + down[k]))
        worst = larger(worst, violation)
        tagged = larger(tagged, tag(violation, k))
    return worst, untag(tagged)


@inner(nogil=True, fastmath=FAST)
def _partner(slope, up, down, curvature, gram, i, slope_i):
    """The variable that adds most to the step of ``i`` alone, and whether any does.

    When ``i`` has moved to its optimum, ``rest`` is the slope that ``k`` is left with, and the joint step
    gains half its square over the Schur complement ``bend`` more.
    """
    scale = 1.0 / max(curvature[i], FLOOR)
    pull, tagged = scale * slope_i, 0.0
    for k in range(slope.size):
        q = gram[i, k]
        rest = slope[k] - pull * q
        excess = larger(larger(rest + up[k], -(rest + down[k])), 0.0)
        bend = larger(curvature[k] - scale * q * q, FLOOR)
        tagged = larger(tagged, tag(excess * excess / bend, k))
    return untag(tagged), tagged > 1e-280


@inner(nogil=True)
def _piece(a, k, rising):
    """The interval around variable ``k`` on which its slope is smooth, and that slope."""
    b, kink = a[BETA, k], a[KINK, k]
    if kink == 0.0:
        return a[LOWER, k] - b, a[UPPER, k] - b, a[SLOPE, k]
    if b > 0.0 or (b == 0.0 and rising):
        return -b, a[UPPER, k] - b, a[SLOPE, k] - kink
    return a[LOWER, k] - b, -b, a[SLOPE, k] + kink


@inner(nogil=True)
def _clip(value, low, high):
    return min(max(value, low), high)


@inner(nogil=True)
def _rectangle(slope_i, slope_j, q_ii, q_jj, q_ij, low_i, high_i, low_j, high_j):
    """Maximise a concave quadratic of two steps over a rectangle: inside, or on the best edge."""
    q_ii, q_jj = max(q_ii, FLOOR), max(q_jj, FLOOR)
    determinant = q_ii * q_jj - q_ij * q_ij
    if determinant > FLOOR * q_ii * q_jj:
        x = (q_jj * slope_i - q_ij * slope_j) / determinant
        y = (q_ii * slope_j - q_ij * slope_i) / determinant
        gain = 0.5 * (slope_i * x + slope_j * y)
        if gain > 0.0 and low_i <= x <= high_i and low_j <= y <= high_j:
            return x, y, gain
    best_x, best_y, best = 0.0, 0.0, 0.0
    for edge in range(6):
        if edge < 2:
            x = low_i if edge == 0 else high_i
            y = _clip((slope_j - q_ij * x) / q_jj, low_j, high_j)
        elif edge < 4:
            y = low_j if edge == 2 else high_j
            x = _clip((slope_i - q_ij * y) / q_ii, low_i, high_i)
        elif edge == 4:
            x, y = _clip(slope_i / q_ii, low_i, high_i), 0.0
        else:
            x, y = 0.0, _clip(slope_j / q_jj, low_j, high_j)
        if np.isfinite(x) and np.isfinite(y):
            gain = x * (slope_i - 0.5 * q_ii * x) + y * (slope_j - 0.5 * q_jj * y) - q_ij * x * y
            if gain > best:
                best_x, best_y, best = x, y, gain
    return best_x, best_y, best


@inner(nogil=True)
def _move(a, k, step, low, high):
    """Move variable ``k`` by ``step`` in ``[low, high]``; at an end it lands on its bound exactly."""
    old = a[BETA, k]
    if step == high:
        new = a[UPPER, k] if old + high > 0.0 or a[KINK, k] == 0.0 else 0.0
    elif step == low:
        new = a[LOWER, k] if old + low < 0.0 or a[KINK, k] == 0.0 else 0.0
    else:
        new = _clip(old + step, a[LOWER, k], a[UPPER, k])
    a[BETA, k] = new
    return new - old


@inner(nogil=True)
def _step(a, gram, i, j, paired, slope_i):
    """Move ``i``, and ``j`` when it is a partner; returns both moves and the gain."""
    low_i, high_i, smooth_i = _piece(a, i, slope_i > 0.0)
    if paired:
        # In double precision even on a float32 matrix: the determinant is a small difference.
        q_ii, q_jj, q_ij = a[CURVATURE, i], a[CURVATURE, j], np.float64(gram[i, j])
        rising = q_ii * (a[SLOPE, j] + a[UP, j]) - q_ij * slope_i > 0.0
        low_j, high_j, smooth_j = _piece(a, j, rising)
        x, y, gain = _rectangle(smooth_i, smooth_j, q_ii, q_jj, q_ij, low_i, high_i, low_j, high_j)
        return _move(a, i, x, low_i, high_i), _move(a, j, y, low_j, high_j), gain
    bend = max(a[CURVATURE, i], FLOOR)
    x = _clip(smooth_i / bend, low_i, high_i)
    return _move(a, i, x, low_i, high_i), 0.0, x * (smooth_i - 0.5 * bend * x)


@njit(makes_arrays=False, nogil=True)
def run_free(gram, a, tol, budget, patience):
    """Take up to ``budget`` steps, each on two variables that need not balance.

    As ``_smo_pairs.run_pairs``, with the largest violation in place of the largest up-slope and its
    negative in place of the smallest down-slope.
    """
    slope, up, down, curvature = a[SLOPE], a[UP], a[DOWN], a[CURVATURE]
    gain, wasted = 0.0, 0.0
    i = np.int64(0)  # not a literal, for which the sweep would be compiled once more
    worst, i = _sweep(slope, up, down, gram, i, i, gain, gain)
    for done in range(budget):
        if not worst > tol:
            return done, CONVERGED, worst, -worst, gain
        if patience > 0.0 and done % CHECK == CHECK - 1:
            kept = count_kept(slope, up, down, worst, -worst)
            wasted += CHECK * float(slope.size - kept)
            if wasted > patience * kept * kept:
                return done, SHRINKABLE, worst, -worst, gain
        slope_i = slope[i] + up[i] if slope[i] + up[i] > 0.0 else slope[i] + down[i]
        # Closed for the search: a variable is no partner of its own.
        keep_up, keep_down = up[i], down[i]
        up[i], down[i] = -CLOSED, CLOSED
        j, paired = _partner(slope, up, down, curvature, gram, i, slope_i)
        up[i], down[i] = keep_up, keep_down
        step_i, step_j, won = _step(a, gram, i, j, paired, slope_i)
        if step_i == 0.0 and step_j == 0.0:
            return done, STALLED, worst, -worst, gain
        gain += won
        settle(a, i, step_i)
        if paired:
            settle(a, j, step_j)
        worst, i = _sweep(slope, up, down, gram, i, j, step_i, step_j)
    return budget, RUNNING if worst > tol else CONVERGED, worst, -worst, gain
