"""Levenberg-Marquardt steps for many targets at once, on a lattice of weights, so that targets share factorisations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._numerics.deadline import out_of_time
from .criteria import Criterion, Look
from .design import Array, Design

__all__ = ["Lattice", "State", "descend", "look_at"]

#: steps at most, and the largest change of a logarithm in one
MOST_STEPS, LONGEST = 6, 2.5
#: damping at first, and what success and failure make of it
DAMPING, EASE, HARDEN = 0.01, 0.25, 10.0
#: a step that promises less than this over n, relative to the criterion, is not worth a factorisation
WORTH = 0.5


class Lattice:
    """Weights ``d = exp(spacing level)``, level whole; ``OFF`` stands for zero."""

    OFF = -(10**6)
    spacing = 0.5
    #: weights below this are zero
    least = 5e-3

    @classmethod
    def weights(cls, levels: NDArray[np.int64]) -> Array:
        """Weights of levels."""
        on = levels > cls.OFF
        return np.where(on, np.exp(cls.spacing * np.where(on, levels, 0)), 0.0)

    @classmethod
    def levels(cls, weights: Array) -> NDArray[np.int64]:
        """Nearest levels."""
        on = weights >= cls.least
        logs = np.log(np.where(on, weights, 1.0))
        return np.where(on, np.rint(logs / cls.spacing), cls.OFF).astype(np.int64)


@dataclass
class State:
    """Where every target stands.

    Attributes
    ----------
    levels : array of shape (t, m)
        On the lattice.
    look : Look
        What the criterion says there.
    stationary : bool array of shape (t,)
        Whether no step on the lattice promises anything worth having.
    factorisations : int
        How many there were.
    """

    levels: NDArray[np.int64]
    look: Look
    stationary: NDArray[np.bool_]
    factorisations: int = 0


def look_at(design: Design, criterion: Criterion, Y: Array, levels: NDArray[np.int64]) -> tuple[Look, int]:
    """Judge every target at its own levels; targets at the same point share one factorisation."""
    distinct, which = np.unique(levels, axis=0, return_inverse=True)
    order = np.argsort(which.ravel(), kind="stable")
    ends = np.searchsorted(which.ravel()[order], np.arange(len(distinct) + 1))
    out = Look.empty(design.n, design.m, Y.shape[1])
    for part, points in design.chunks(Lattice.weights(distinct)):
        at = order[ends[part.start] : ends[part.stop]]
        first = ends[part.start]
        members = [np.arange(ends[p] - first, ends[p + 1] - first) for p in range(part.start, part.stop)]
        out.put(at, criterion.look(points, np.asfortranarray(Y[:, at]), members))
    return out, len(distinct)


def descend(design: Design, criterion: Criterion, Y: Array, levels: NDArray[np.int64]) -> State:
    """Improve the weights of every target from where they are."""
    look, factorisations = look_at(design, criterion, Y, levels)
    t = Y.shape[1]
    state = State(levels.copy(), look, np.zeros(t, dtype=bool), factorisations)
    damping, may_enter = np.full(t, DAMPING), np.ones((t, design.m), dtype=bool)
    for _ in range(MOST_STEPS):
        open_ = np.flatnonzero(~state.stationary)
        if open_.size == 0 or out_of_time():
            break
        trial, entering, promised = _proposed(
            state, open_, damping[open_], may_enter[open_], criterion, design.n
        )
        moved = np.any(trial != state.levels[open_], axis=1) & (promised > WORTH / design.n)
        state.stationary[open_[~moved]] = True
        trial, entering, open_ = trial[moved], entering[moved], open_[moved]
        if open_.size == 0:
            break
        new, count = look_at(design, criterion, Y[:, open_], trial)
        state.factorisations += count
        gain = 1.0 - new.value / state.look.value[open_]
        # an entry has to earn more than chance gives; anything else only has to help
        entry = np.any(entering, axis=1)
        good = np.isfinite(new.value) & (gain > np.where(entry, criterion.chance / design.n, 0.0))
        damping[open_] *= np.where(good, EASE, HARDEN)
        may_enter[open_] &= ~(entering & ~good[:, None])
        kept = np.flatnonzero(good)
        _keep(state, open_[kept], trial[kept], new, kept)
    return state


def _keep(
    state: State, at: NDArray[np.intp], levels: NDArray[np.int64], new: Look, kept: NDArray[np.intp]
) -> None:
    """Move some targets to where they were just judged."""
    state.levels[at] = levels
    part = Look(new.value[kept], new.gradient[kept], new.hessian[kept], new.coef[:, kept], new.missed[kept])
    state.look.put(at, part)


def _proposed(
    state: State,
    at: NDArray[np.intp],
    damping: Array,
    may_enter: NDArray[np.bool_],
    criterion: Criterion,
    n: int,
) -> tuple[NDArray[np.int64], NDArray[np.bool_], Array]:
    """Next levels of some targets, which kernels enter there, and the relative decrease that the model promises.

    Kernels with weight move in the logarithm, those without in the weight itself.
    """
    levels, gradient, hessian = state.levels[at], state.look.gradient[at], state.look.hessian[at]
    d = Lattice.weights(levels)
    active = d > 0
    curvature = np.maximum(np.diagonal(hessian, axis1=1, axis2=2), 1e-300)
    alone = np.where(gradient < 0, gradient**2 / (2.0 * curvature), 0.0)
    entering = ~active & may_enter & (alone > criterion.chance / n)
    step = _step(gradient, hessian, np.where(active, d, 1.0 * entering), damping)
    entering &= step > Lattice.least
    d_new = np.where(active, d * np.exp(np.clip(step, -LONGEST, LONGEST)), 0.0)
    d_new = np.where(entering, np.minimum(step, np.exp(LONGEST)), d_new)
    trial = Lattice.levels(d_new)
    taken = Lattice.weights(trial)
    # the model at the point of the lattice: logarithms for weights that stay, differences for those that come and go
    change = np.where(
        active & (taken > 0),
        d * np.log(np.where(taken > 0, taken, 1.0) / np.where(active, d, 1.0)),
        taken - d,
    )
    promised = -np.einsum("tj,tj->t", gradient, change)
    promised -= 0.5 * np.einsum("tj,tjk,tk->t", change, hessian, change)
    return trial, entering, promised


def _step(gradient: Array, hessian: Array, scale: Array, damping: Array) -> Array:
    """Damped Newton steps in variables that are ``scale`` times as long; those of scale zero stay."""
    g = gradient * scale
    H = hessian * scale[:, :, None] * scale[:, None, :]
    places = np.arange(g.shape[1])
    diagonal = H[:, places, places]
    floor = 1e-8 * np.maximum(diagonal.max(axis=1, keepdims=True), 1e-12)
    H[:, places, places] = np.where(scale > 0, (1.0 + damping[:, None]) * diagonal + floor, 1.0)
    return np.asarray(-np.linalg.solve(H, g[:, :, None])[:, :, 0])
