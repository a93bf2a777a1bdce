"""The last steps of a target that stands alone: off the lattice, to where the criterion is flat."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from .._numerics.deadline import OutOfTime
from .criteria import Criterion, Look
from .descent import DAMPING, EASE, HARDEN, LONGEST, Lattice, Watch, damped_step, look_at
from .design import Array, Design, Stored

__all__ = ["refine"]

#: steps at most, and the slope in the logarithm of a weight that counts as flat
MOST_STEPS, FLAT = 60, 1e-9
#: relative gain of the criterion that is worth a kernel's entry; weights below the second number are tried as zero
GAIN, LEAST = 1e-9, 1e-7
#: slope up to which a point is stationary: the criterion of n samples would fall by less than this over n
STATIONARY = 1e-3


def refine(
    design: Design, criterion: Criterion, Y: Stored, weights: Array, watch: Watch | None = None
) -> tuple[Array, Look, NDArray[np.bool_], int]:
    """Move the weights ``(t, m)`` of some targets to where the criterion is flat, one inverse per target and step.

    Kernels without weight enter where the criterion falls, and those that would fall below the least weight lose theirs
    where that does not raise it.

    Returns
    -------
    weights : array of shape (t, m)
    look : Look
        There.
    stationary : bool array of shape (t,)
        Whether the criterion is flat there in every weight that is not at one of its bounds.
    inverses : int
    """
    watch = watch or Watch()
    precise = replace(design, single=False)
    d, damping = weights.copy(), np.full(len(weights), DAMPING)
    look, inverses = look_at(precise, criterion, Y, d)
    for _ in range(MOST_STEPS):
        slope, entering = _slope(d, look)
        open_ = np.flatnonzero(((slope > FLAT) | np.any(entering, axis=1)) & (damping < 1.0 / FLAT))
        if open_.size == 0 or watch.ends():
            break
        here, enters = d[open_], entering[open_]
        scale = np.where(here > 0, here, 1.0 * enters)
        step = damped_step(look.gradient[open_], look.hessian[open_], scale, damping[open_])
        trial = np.where(
            here > 0, here * np.exp(np.clip(step, -LONGEST, LONGEST)), np.clip(enters * step, 0.0, 1.0)
        )
        trial = np.minimum(trial, Lattice.MOST)
        trial[trial < LEAST] = 0.0
        try:
            new, count = look_at(precise, criterion, Y[:, open_], trial, leave=True)
        except OutOfTime:
            watch.ends()
            break
        inverses += count
        good = new.value <= look.value[open_]
        damping[open_] *= np.where(good, EASE, HARDEN)
        kept = np.flatnonzero(good)
        d[open_[kept]] = trial[kept]
        look.put(open_[kept], new.some(kept))
        watch.step(look.value, d > 0, open_.size)
    slope, entering = _slope(d, look)
    return d, look, (slope <= STATIONARY / design.n) & ~np.any(entering, axis=1), inverses


def _slope(d: Array, look: Look) -> tuple[Array, NDArray[np.bool_]]:
    """Return the largest slope in the logarithm of a weight that may move, and which kernels are worth an entry."""
    held = (d >= Lattice.MOST) & (look.gradient < 0)
    slope = np.max(np.where(held, 0.0, np.abs(d * look.gradient)), axis=1, initial=0.0)
    curvature = np.maximum(np.diagonal(look.hessian, axis1=1, axis2=2), 1e-300)
    # no more than a step of one
    longest = np.minimum(-look.gradient / curvature, 1.0)
    gain = -look.gradient * longest - 0.5 * curvature * longest**2
    return slope, (d <= 0) & (look.gradient < 0) & (gain > GAIN)
