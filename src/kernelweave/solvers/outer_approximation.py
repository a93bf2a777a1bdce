"""At most k kernels, proved: cuts of J, and a mixed-integer program over them.

J is convex in the weights and falls with each, so that a subset of k kernels is charged least, and every inner solution
gives a cut, notation (10), that holds for all subsets at once.  The lowest point of all cuts over the subsets bounds
the optimum from below; the best subset seen bounds it from above.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from .._numerics.stopping import check_time, time_left
from .._typing import Array
from ..problems import FixedSolution, MKLProblem, Oracle, Point, relative_gap
from ._base import Solver, begin, inner_target

#: share of the tolerance to which the relaxation is solved before subsets are asked for, and of a program's own gap
RELAXED, PROGRAM = 0.5, 0.1
#: cuts at fractional weights that may leave the relaxation's gap about as it is
MOST_IDLE = 12
#: inner precision beyond which a subset that comes back tells nothing new
FINEST = 1e-9


@dataclass
class _Cuts:
    """Coefficients seen so far; those of a run are shared by its states."""

    gains: list[float] = field(default_factory=list)
    quads: list[Array] = field(default_factory=list)
    betas: list[Array] = field(default_factory=list)


@dataclass(frozen=True)
class _SubsetState:
    cuts: _Cuts
    best: Oracle
    #: best point of the relaxation: fractional weights
    core: Oracle
    inner: FixedSolution
    tol: float
    lower: float = -np.inf
    whole: bool = False
    #: smallest gap of the relaxation so far, and steps since it fell noticeably
    relaxed: float = np.inf
    idle: int = 0
    target: float = 1e-3
    finished: bool = False


class OuterApproximation(Solver, registered_as="outer_approximation"):
    """Cuts at fractional weights first, then at the subsets that a mixed-integer program proposes (HiGHS).

    Parameters
    ----------
    between : float, default=0.5
        Beside every subset a cut is taken between it and the relaxation's best weights, this share of the way; 0 takes
        none.
    """

    needs = ("choice of subsets",)
    default_max_iter = 1000
    most_idle = 100
    summary = "cuts and a mixed-integer program over subsets, for at most k kernels"

    def __init__(self, between: float = 0.5) -> None:
        self.between = between

    def init(self, problem: MKLProblem, start: Point | None, tol: float) -> _SubsetState:
        if not 0.0 <= self.between < 1.0:
            raise ValueError(f"OuterApproximation needs 0 <= between < 1, got {self.between!r}")
        cuts, norm = _Cuts(), problem.norm
        _, inner = begin(problem, start)
        target = inner_target(1.0, tol)
        # equal weights are inside the convex hull of the subsets, and see every kernel
        equal = norm.start(problem.m)
        learnt = norm.learnt(problem.m)
        equal[learnt] = float(np.sum(equal[learnt])) / learnt.size
        core = self._cut(problem, cuts, equal, inner, target)
        subset = norm.weights(core.quad) if start is None else norm.scaled(start.weights)
        best = self._cut(problem, cuts, subset, core.inner, target)
        return _SubsetState(cuts, best, core, best.inner, tol, target=inner_target(0.1, tol))

    def _cut(
        self, problem: MKLProblem, cuts: _Cuts, weights: Array, inner: FixedSolution | None, target: float
    ) -> Oracle:
        """Solve with these weights and keep the cut."""
        oracle = problem.oracle(weights, inner, target)
        cuts.gains.append(problem.gain(oracle.inner.beta))
        cuts.quads.append(oracle.quad)
        cuts.betas.append(oracle.inner.beta)
        return oracle

    def step(self, problem: MKLProblem, state: _SubsetState) -> _SubsetState:
        return self._subset_step(problem, state) if state.whole else self._fractional_step(problem, state)

    def _fractional_step(self, problem: MKLProblem, state: _SubsetState) -> _SubsetState:
        """One more cut half-way to the relaxation's lowest point; on to subsets once that is solved."""
        gains, quads = np.array(state.cuts.gains), np.array(state.cuts.quads)
        lower, goal = problem.norm.lowest_of_cuts(gains, quads, whole=False)
        state = replace(state, lower=max(state.lower, lower))
        gap = relative_gap(state.core.inner.primal, lower)
        idle = 0 if gap < 0.9 * state.relaxed else state.idle + 1
        state = replace(state, relaxed=min(gap, state.relaxed), idle=idle)
        # the program's own slack may be all that is left: subsets do not need the relaxation to be solved
        if goal is None or gap <= RELAXED * state.tol or idle >= MOST_IDLE:
            return self._rounded(problem, replace(state, whole=True))
        weights = 0.5 * (state.core.weights + goal)
        target = inner_target(min(gap, 1.0), RELAXED * state.tol)
        oracle = self._cut(problem, state.cuts, weights, state.inner, target)
        core = oracle if oracle.inner.primal < state.core.inner.primal else state.core
        return replace(state, core=core, inner=oracle.inner)

    def _rounded(self, problem: MKLProblem, state: _SubsetState) -> _SubsetState:
        """The kernels of largest weight in the relaxation: mostly a good subset."""
        return self._with_subset(problem, state, problem.norm.scaled(state.core.weights))

    def _subset_step(self, problem: MKLProblem, state: _SubsetState) -> _SubsetState:
        """Ask the program for the lowest subset and solve there."""
        check_time()
        gains, quads = np.array(state.cuts.gains), np.array(state.cuts.quads)
        lower, subset = problem.norm.lowest_of_cuts(
            gains, quads, gap=PROGRAM * state.tol, seconds=time_left()
        )
        state = replace(state, lower=max(state.lower, lower))
        if (
            subset is None
        ):  # the time is over, or numbers differ by more powers of ten than the program can hold
            return replace(state, finished=time_left() > 0.0)
        if relative_gap(state.best.inner.primal, state.lower) <= state.tol:
            # the loop goes on all the same: it judges the gap in units of the margin, or without rounding
            return replace(state, tol=0.3 * state.tol, finished=state.tol <= FINEST)
        following = self._with_subset(problem, state, subset)
        if self.between > 0.0 and following.target == state.target:
            weights = self.between * subset + (1.0 - self.between) * state.core.weights
            self._cut(problem, state.cuts, weights, following.inner, state.target)
        return following

    def _with_subset(self, problem: MKLProblem, state: _SubsetState, subset: Array) -> _SubsetState:
        """Solve with a subset; with more precision where its cut says no more than was known."""
        oracle = self._cut(problem, state.cuts, subset, state.inner, state.target)
        best = oracle if oracle.inner.primal < state.best.inner.primal else state.best
        following = replace(state, best=best, inner=oracle.inner)
        news = oracle.inner.dual > state.lower + PROGRAM * state.tol * abs(state.lower)
        if not state.whole or news:
            return following
        if state.target <= FINEST:
            return replace(following, finished=True)
        return replace(following, target=max(0.1 * state.target, FINEST))

    def point(self, state: _SubsetState) -> Point:
        return replace(state.best.point, cuts=np.array(state.cuts.betas), cuts_bound=state.lower)
