"""The last steps of a target that stands alone: off the lattice, to where the criterion is flat."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .._numerics.deadline import out_of_time
from .criteria import Criterion, Look
from .descent import DAMPING, EASE, HARDEN, LONGEST, Lattice, damped_step, look_at
from .design import Array, Design, Stored

__all__ = ["refine"]

#: steps at most, and the slope in the logarithm of a weight that counts as flat
MOST_STEPS, FLAT = 40, 1e-9


def refine(design: Design, criterion: Criterion, Y: Stored, weights: Array) -> tuple[Array, Look, int]:
    """Move the weights ``(t, m)`` of some targets to where the criterion is flat, one inverse per target and step.

    Kernels without weight stay without; those that would fall below the least weight lose theirs where that does not
    raise the criterion.

    Returns
    -------
    weights : array of shape (t, m)
    look : Look
        There.
    inverses : int
    """
    precise = replace(design, single=False)
    d, damping = weights.copy(), np.full(len(weights), DAMPING)
    look, inverses = look_at(precise, criterion, Y, d)
    for _ in range(MOST_STEPS):
        steep = np.max(np.abs(d * look.gradient), axis=1, initial=0.0)
        open_ = np.flatnonzero((steep > FLAT) & (damping < 1.0 / FLAT))
        if open_.size == 0 or out_of_time():
            break
        step = damped_step(look.gradient[open_], look.hessian[open_], d[open_], damping[open_])
        trial = d[open_] * np.exp(np.clip(step, -LONGEST, LONGEST))
        trial = np.minimum(trial, Lattice.MOST)
        trial[trial < Lattice.LEAST] = 0.0
        new, count = look_at(precise, criterion, Y[:, open_], trial)
        inverses += count
        good = new.value <= look.value[open_]
        damping[open_] *= np.where(good, EASE, HARDEN)
        kept = np.flatnonzero(good)
        d[open_[kept]] = trial[kept]
        look.put(open_[kept], new.some(kept))
    return d, look, inverses
