"""Levenberg-Marquardt steps for many targets at once on a lattice of weights, and the last steps of one target."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from .._numerics.stopping import OutOfTime, check_time, interrupted, out_of_time
from .._typing import Array
from .criteria import Criterion, Look
from .design import Design, Stored
from .points import WELL_CONDITIONED, Points

#: steps at most, and the largest change of a logarithm in one
MOST_STEPS, LONGEST = 6, 2.5
#: damping at first, and what success and failure make of it
DAMPING, EASE, HARDEN = 0.01, 0.25, 10.0
#: a step that promises less than this over n, relative to the criterion, is not worth a factorisation
WORTH = 0.5
#: kernels that afford a fine lattice
FEW = 3


@dataclass(frozen=True)
class Lattice:
    """Weights ``d = exp(spacing level)``, level whole; targets at the same point share their inverse."""

    spacing: float

    OFF: ClassVar[int] = -(10**6)  # stands for zero
    LEAST: ClassVar[float] = 5e-3  # weights below this are zero
    #: and none is above this: where nothing is noise they would grow until rounding decides
    MOST: ClassVar[float] = 1e8

    @classmethod
    def of(cls, m: int) -> Lattice:
        """Lattice for m kernels: with few of them a fine one has few points too."""
        return cls(0.25 if m <= FEW else 0.5)

    def weights(self, levels: NDArray[np.int64]) -> Array:
        """Weights of levels."""
        on = levels > self.OFF
        return np.where(on, np.exp(self.spacing * np.where(on, levels, 0)), 0.0)

    def levels(self, weights: Array) -> NDArray[np.int64]:
        """Nearest levels."""
        on = weights >= self.LEAST
        logs = np.log(np.where(on, np.minimum(weights, self.MOST), 1.0))
        return np.where(on, np.rint(logs / self.spacing), self.OFF).astype(np.int64)


@dataclass
class DescentState:
    """Where every target stands."""

    levels: NDArray[np.int64]  # on the lattice, ``(t, m)``
    lattice: Lattice
    look: Look  # values of the criterion there
    stationary: NDArray[np.bool_]  # whether no step on the lattice promises anything worth having
    factorisations: int = 0  # how many there were


@dataclass
class Watch:
    """Say between two steps whether to go on."""

    #: called after every step with a dictionary: ``iteration``, ``criterion`` (mean over the targets at hand),
    #: ``targets`` (how many are not finished) and ``active_kernels`` (most that one has); a true answer ends the choice
    callback: Callable[[dict[str, float]], object] | None = None
    #: called with numbers of targets that were finished
    progress: Callable[[int], object] | None = None
    #: why the choice was cut short: ``"stopped"``, ``"interrupted"`` or ``"max_seconds"``
    reason: str | None = None
    iteration: int = 0

    def finished(self, count: int) -> None:
        """Pass on how many more targets are finished."""
        if self.progress is not None:
            self.progress(count)

    def ends(self) -> bool:
        """Return whether there is no time left, or the end was asked for."""
        if self.reason is None and out_of_time():
            self.reason = "interrupted" if interrupted() else "max_seconds"
        return self.reason is not None

    def step(self, value: Array, active: NDArray[np.bool_], left: int) -> None:
        """Pass a step on to the callback; ``active`` are kernels with weight, ``(t, m)``."""
        self.iteration += 1
        if self.callback is None or self.reason is not None:
            return
        most = int(np.max(np.count_nonzero(active, axis=1), initial=0))
        row = {"iteration": self.iteration, "criterion": float(np.mean(value)), "targets": left}
        try:
            if self.callback({**row, "active_kernels": most}):
                self.reason = "stopped"
        except KeyboardInterrupt:  # there is something to keep by now
            self.reason = "interrupted"


def evaluate(
    design: Design, criterion: Criterion, Y: Stored, weights: Array, leave: bool = False
) -> tuple[Look, int]:
    """Evaluate every target at its own weights ``(t, m)``; ``leave``: raise ``OutOfTime`` where the time is over."""
    distinct, which, counts = np.unique(weights, axis=0, return_inverse=True, return_counts=True)
    which = which.ravel()
    single = np.zeros(len(distinct), dtype=bool)
    if design.single and not criterion.precise:
        single = 1.0 + distinct @ design.largest <= WELL_CONDITIONED
    # points of one precision together, and those with about as many targets
    points = np.lexsort([counts, single])
    rank = np.empty_like(points)
    rank[points] = np.arange(points.size)
    order = np.argsort(rank[which], kind="stable")
    ends = np.concatenate([[0], np.cumsum(counts[points])])
    out = Look.empty(design, Y.shape[1])
    double = int(np.count_nonzero(~single))
    for begin, end in ((0, double), (double, single.size)):
        for first in range(begin, end, design.chunk):
            if leave:
                check_time()
            last = min(first + design.chunk, end)
            at, some = order[ends[first] : ends[last]], points[first:last]
            shared = Points(design, distinct[some], counts[some], begin > 0 or double == 0)
            out.put(at, criterion.look(shared, Y[:, at]))
    return out, len(distinct)


def descend(
    design: Design, criterion: Criterion, Y: Stored, levels: NDArray[np.int64], watch: Watch
) -> DescentState:
    """Improve the weights of every target from where they are, until ``watch`` ends it."""
    lattice = Lattice.of(design.m)
    look, factorisations = evaluate(design, criterion, Y, lattice.weights(levels))
    # The best of m unneeded kernels gains about this by chance, relative to the criterion: twice the gain of one is
    # about chi-squared, and the largest of m such numbers about 2 log m.
    t, by_chance = Y.shape[1], 2.0 * float(np.log(max(design.m, 2))) / design.n
    state = DescentState(levels.copy(), lattice, look, np.zeros(t, dtype=bool), factorisations)
    damping, may_enter = np.full(t, DAMPING), np.ones((t, design.m), dtype=bool)
    for _ in range(MOST_STEPS):
        open_ = np.flatnonzero(~state.stationary)
        if open_.size == 0 or watch.ends():
            break
        # kernels with weight move in the logarithm, those without in the weight itself
        gradient, hessian = state.look.gradient[open_], state.look.hessian[open_]
        d = lattice.weights(state.levels[open_])
        active = d > 0
        curvature = np.maximum(np.diagonal(hessian, axis1=1, axis2=2), 1e-300)
        alone = np.where(gradient < 0, gradient**2 / (2.0 * curvature), 0.0)
        entering = ~active & may_enter[open_] & (alone > by_chance)
        step = damped_step(gradient, hessian, np.where(active, d, 1.0 * entering), damping[open_])
        entering &= step > Lattice.LEAST
        d_new = np.where(active, d * np.exp(np.clip(step, -LONGEST, LONGEST)), 0.0)
        d_new = np.where(entering, np.minimum(step, np.exp(LONGEST)), d_new)
        trial = lattice.levels(d_new)
        taken = lattice.weights(trial)
        # the relative decrease that the model promises at the point of the lattice: logarithms for weights that stay,
        # differences for those that come and go
        logs = d * np.log(np.where(taken > 0, taken, 1.0) / np.where(active, d, 1.0))
        change = np.where(active & (taken > 0), logs, taken - d)
        promised = -np.einsum("tj,tj->t", gradient, change)
        promised -= 0.5 * np.einsum("tj,tjk,tk->t", change, hessian, change)
        moved = np.any(trial != state.levels[open_], axis=1) & (promised > WORTH / design.n)
        state.stationary[open_[~moved]] = True
        watch.finished(int(np.count_nonzero(~moved)))
        trial, entering, open_ = trial[moved], entering[moved], open_[moved]
        if open_.size == 0:
            break
        try:
            new, count = evaluate(design, criterion, Y[:, open_], lattice.weights(trial), leave=True)
        except OutOfTime:
            watch.ends()
            break
        state.factorisations += count
        gain = 1.0 - new.value / state.look.value[open_]
        # an entry has to earn more than chance gives; anything else only has to help
        entry = np.any(entering, axis=1)
        good = np.isfinite(new.value) & (gain > np.where(entry, by_chance, 0.0))
        damping[open_] *= np.where(good, EASE, HARDEN)
        may_enter[open_] &= ~(entering & ~good[:, None])
        kept = np.flatnonzero(good)
        state.levels[open_[kept]] = trial[kept]
        state.look.put(open_[kept], new.some(kept))
        watch.step(state.look.value, state.levels > Lattice.OFF, int(np.count_nonzero(~state.stationary)))
    watch.finished(int(np.count_nonzero(~state.stationary)))
    return state


def damped_step(gradient: Array, hessian: Array, scale: Array, damping: Array) -> Array:
    """Damped Newton steps in variables that are ``scale`` times as long; those of scale zero stay."""
    g = gradient * scale
    H = hessian * scale[:, :, None] * scale[:, None, :]
    places = np.arange(g.shape[1])
    diagonal = H[:, places, places]
    floor = 1e-8 * np.maximum(diagonal.max(axis=1, keepdims=True), 1e-12)
    H[:, places, places] = np.where(scale > 0, (1.0 + damping[:, None]) * diagonal + floor, 1.0)
    return np.asarray(-np.linalg.solve(H, g[:, :, None])[:, :, 0])


#: steps at most, and the slope in the logarithm of a weight that counts as flat
MOST_REFINEMENTS, FLAT = 60, 1e-9
#: relative gain of the criterion that is worth a kernel's entry; weights below the second number are tried as zero
GAIN, LEAST = 1e-9, 1e-7
#: slope up to which a point is stationary: the criterion of n samples would fall by less than this over n
STATIONARY = 1e-3


def refine(
    design: Design, criterion: Criterion, Y: Stored, weights: Array, watch: Watch
) -> tuple[Array, Look, NDArray[np.bool_], int]:
    """Move the weights ``(t, m)`` of some targets to where the criterion is flat, one inverse per target and step.

    Kernels without weight enter where the criterion falls, and those that would fall below the least weight lose theirs
    where that does not raise it.  Returns the weights, what the criterion is there, whether it is flat in every weight
    that is not at one of its bounds, and the number of inverses.
    """
    precise = replace(design, single=False)
    d, damping = weights.copy(), np.full(len(weights), DAMPING)
    look, inverses = evaluate(precise, criterion, Y, d)
    for _ in range(MOST_REFINEMENTS):
        slope, entering = _slope(d, look)
        open_ = np.flatnonzero(((slope > FLAT) | np.any(entering, axis=1)) & (damping < 1.0 / FLAT))
        if open_.size == 0 or watch.ends():
            break
        here, enters = d[open_], entering[open_]
        scale = np.where(here > 0, here, 1.0 * enters)
        step = damped_step(look.gradient[open_], look.hessian[open_], scale, damping[open_])
        entered = np.clip(enters * step, 0.0, 1.0)
        trial = np.where(here > 0, here * np.exp(np.clip(step, -LONGEST, LONGEST)), entered)
        trial = np.minimum(trial, Lattice.MOST)
        trial[trial < LEAST] = 0.0
        try:
            new, count = evaluate(precise, criterion, Y[:, open_], trial, leave=True)
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
