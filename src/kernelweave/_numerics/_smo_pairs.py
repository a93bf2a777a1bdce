"""SMO steps under the equality constraint: one variable rises by what another falls."""

from __future__ import annotations

import numpy as np

from ._smo_parts import (
    BETA,
    CHECK,
    CONVERGED,
    CURVATURE,
    DOWN,
    FAST,
    FLOOR,
    RUNNING,
    SHRINKABLE,
    SLOPE,
    STALLED,
    UP,
    count_kept,
    end_of,
    larger,
    settle,
    smaller,
    tag,
    untag,
)
from .compiled import inner, njit


@inner(nogil=True, fastmath=FAST)
def _sweep(slope, up, down, gram, i, j, step_i, step_j):
    """Subtract both rows; find the extreme slopes and the index of the highest, in the same pass."""
    high, low, tagged = -np.inf, np.inf, -np.inf
    for k in range(slope.size):
        value = slope[k] - (step_i * gram[i, k] + step_j * gram[j, k])
        slope[k] = value
        rising = value + up[k]
        high = larger(high, rising)
        tagged = larger(tagged, tag(rising, k))
        low = smaller(low, value + down[k])
    return high, low, untag(tagged)


@inner(nogil=True, fastmath=FAST)
def _partner(slope, down, curvature, gram, i, reference):
    """Second-order partner of ``i``: the variable with which the unclipped step gains most."""
    curvature_i, tagged = curvature[i], 0.0
    for k in range(slope.size):
        gap = larger(reference - (slope[k] + down[k]), 0.0)
        bend = larger(curvature_i + curvature[k] - 2.0 * gram[i, k], FLOOR)
        tagged = larger(tagged, tag(gap * gap / bend, k))
    return untag(tagged)


@inner(nogil=True, inline="always")
def _exact(slope, up, i, high):
    """The index behind ``high``: nearly always ``i``, but a tag cannot tell two slopes 2e-10 apart."""
    if slope[i] + up[i] != high:
        for k in range(slope.size):
            if slope[k] + up[k] == high:
                return k
    return i


@inner(nogil=True, inline="always")
def _step(a, gram, i, j):
    """Move ``i`` up and ``j`` down by the same amount; returns both moves and the gain."""
    old_i, old_j = a[BETA, i], a[BETA, j]
    end_i, end_j = end_of(a, i, 1.0), end_of(a, j, -1.0)
    gap = a[SLOPE, i] + a[UP, i] - a[SLOPE, j] - a[DOWN, j]
    bend = max(a[CURVATURE, i] + a[CURVATURE, j] - 2.0 * gram[i, j], FLOOR)
    room_i, room_j = end_i - old_i, old_j - end_j
    step = min(max(gap, 0.0) / bend, room_i, room_j)
    # An end is set, not added up to: a variable at a bound is at it exactly.
    a[BETA, i] = end_i if step == room_i else min(old_i + step, end_i)
    a[BETA, j] = end_j if step == room_j else max(old_j - step, end_j)
    return a[BETA, i] - old_i, a[BETA, j] - old_j, step * (gap - 0.5 * step * bend)


@njit(makes_arrays=False, nogil=True)
def run_pairs(gram, a, tol, budget, patience):
    """Take up to ``budget`` steps that keep the sum of the coefficients.

    Returns the number of steps, a status, the largest up-slope, the smallest down-slope and the gain.
    The status is SHRINKABLE once the sweeps over variables that could have left have cost as much as
    copying the others would: ``patience`` is that copy's price per entry (0: never).
    """
    slope, up, down, curvature = a[SLOPE], a[UP], a[DOWN], a[CURVATURE]
    gain, wasted, step_i, step_j = 0.0, 0.0, 0.0, 0.0
    i = j = np.int64(0)
    high, low = np.inf, -np.inf
    for done in range(budget + 1):
        high, low, i = _sweep(slope, up, down, gram, i, j, step_i, step_j)
        if not high - low > tol:
            return done, CONVERGED, high, low, gain
        if done == budget:
            break
        if patience > 0.0 and done % CHECK == CHECK - 1:
            kept = count_kept(slope, up, down, high, low)
            wasted += CHECK * float(slope.size - kept)
            if wasted > patience * kept * kept:
                return done, SHRINKABLE, high, low, gain
        i = _exact(slope, up, i, high)
        j = _partner(slope, down, curvature, gram, i, slope[i] + up[i])
        step_i, step_j, won = _step(a, gram, i, j)
        if step_i == 0.0 and step_j == 0.0:
            return done, STALLED, high, low, gain
        gain += won
        settle(a, i, step_i)
        settle(a, j, step_j)
    return budget, RUNNING, high, low, gain
