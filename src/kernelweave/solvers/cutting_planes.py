"""Cuts of J: SILP and the level method on the simplex, and a mixed-integer program for at most k kernels."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from scipy.optimize import linprog

from .._numerics.quadratic import solve_qp
from .._numerics.stopping import check_time, time_left
from .._typing import Array
from ..problems import FixedSolution, MKLProblem, Oracle, Point, relative_gap
from ._base import Solver, begin, inner_target

#: share of the tolerance to which the relaxation is solved before subsets are proposed, and of a program's own gap
RELAXED, PROGRAM = 0.5, 0.1
#: cuts at fractional weights that may leave the relaxation's gap about as it is
MOST_IDLE = 12
#: inner precision beyond which a subset that comes back tells nothing new
FINEST = 1e-9


@dataclass
class Cuts:
    """``J(d) >= gain_k - d's_k / 2`` for every coefficient vector beta_k seen so far."""

    gains: list[float] = field(default_factory=list)
    quads: list[Array] = field(default_factory=list)
    betas: list[Array] = field(default_factory=list)

    def add(self, problem: MKLProblem, weights: Array, inner: FixedSolution | None, target: float) -> Oracle:
        """Solve with these weights and keep the cut."""
        oracle = problem.oracle(weights, inner, target)
        self.gains.append(problem.gain(oracle.inner.beta))
        self.quads.append(oracle.quad)
        self.betas.append(oracle.inner.beta)
        return oracle


def lowest_on_simplex(gains: Array, slopes: Array) -> tuple[float, Array, Array]:
    """Minimise ``max_k gains_k + d'slopes_k`` over the simplex: the value, the weights, the multipliers of the cuts."""
    k, m = slopes.shape
    cost = np.zeros(m + 1)
    cost[m] = 1.0
    matrix = np.hstack([slopes, -np.ones((k, 1))])
    ones = np.ones((1, m + 1))
    ones[0, m] = 0.0
    bounds = [(0.0, None)] * m + [(None, None)]
    result = linprog(cost, A_ub=matrix, b_ub=-gains, A_eq=ones, b_eq=[1.0], bounds=bounds, method="highs")
    if result.x is None:
        raise FloatingPointError(f"the linear program of the cutting planes failed: {result.message}")
    weights = np.maximum(result.x[:m], 0.0)
    multipliers = np.maximum(-result.ineqlin.marginals, 0.0)
    return float(result.x[m]), weights / weights.sum(), multipliers / multipliers.sum()


@dataclass
class CutState:
    """The model, the last and the best inner solution, and coefficients for the lower bound."""

    cuts: Cuts
    last: Oracle
    best: Oracle
    tol: float
    dual_beta: Array | None = None


class Silp(Solver, registered_as="silp"):
    """Minimise the cutting-plane model by an LP (HiGHS), solve there, add the cut (Sonnenburg et al. 2006)."""

    needs = ("simplex",)
    summary = "cutting planes, one LP per iteration (Sonnenburg et al. 2006)"

    def choose(
        self, gains: Array, slopes: Array, at: Array, last: Array, lower: float, upper: float
    ) -> Array:
        """Return the weights to solve at: ``at``, where the model has its minimum ``lower``."""
        return at

    def init(self, problem: MKLProblem, start: Point | None, tol: float) -> CutState:
        cuts = Cuts()
        oracle = cuts.add(problem, *begin(problem, start), inner_target(1.0, tol))
        return CutState(cuts, oracle, oracle, tol)

    def step(self, problem: MKLProblem, state: CutState) -> CutState:
        cuts, upper = state.cuts, state.best.inner.primal
        gains, slopes = np.array(cuts.gains), -0.5 * np.array(cuts.quads)
        lower, lowest, multipliers = lowest_on_simplex(gains, slopes)
        # a point whose dual value is at least the model's minimum (Jensen)
        beta = np.asarray(sum(multipliers[k] * cuts.betas[k] for k in np.flatnonzero(multipliers)))
        weights = self.choose(gains, slopes, lowest, state.last.weights, lower, upper)
        target = inner_target(relative_gap(upper, lower), state.tol)
        oracle = cuts.add(problem, weights, state.last.inner, target)
        best = oracle if oracle.inner.primal < upper else state.best
        return CutState(cuts, oracle, best, state.tol, beta)

    def point(self, state: CutState) -> Point:
        return replace(state.best.point, dual_beta=state.dual_beta)


class Level(Silp, registered_as="level"):
    """Project the last weights on a level set of the cutting-plane model (Xu et al. 2009).

    Parameters
    ----------
    level : float, default=0.9
        Position of the level between the model's minimum (0) and the best value (1); the paper's lambda.
    """

    summary = "cutting planes projected on a level set (Xu et al. 2009)"

    def __init__(self, level: float = 0.9) -> None:
        self.level = level

    def init(self, problem: MKLProblem, start: Point | None, tol: float) -> CutState:
        if not 0.0 < self.level < 1.0:
            raise ValueError(f"Level needs 0 < level < 1, got {self.level!r}")
        return super().init(problem, start, tol)

    def choose(
        self, gains: Array, slopes: Array, at: Array, last: Array, lower: float, upper: float
    ) -> Array:
        """Return the weights nearest to ``last``, those of the last cut, where the model is at most at the level."""
        level = lower + self.level * max(upper - lower, 0.0)
        m = last.size
        rows = np.vstack([-np.eye(m), slopes])
        limits = np.concatenate([np.zeros(m), level - gains])
        # the rows are scaled to the size of the simplex constraint, or the interior point method loses digits
        size = np.maximum(np.linalg.norm(rows, axis=1), 1e-300)
        ones = np.ones((1, m))
        x, _ = solve_qp(np.eye(m), -last, rows / size[:, None], limits / size, ones, np.ones(1))
        x = np.where(x > 1e-9, x, 0.0)
        return x / np.sum(x)


@dataclass(frozen=True)
class _SubsetState:
    cuts: Cuts
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

    J is convex in the weights and falls with each, so that a subset of k kernels is charged least, and every inner
    solution gives a cut, notation (10), that holds for all subsets at once.  The lowest point of all cuts over the
    subsets bounds the optimum from below; the best subset seen bounds it from above.

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
        cuts, norm = Cuts(), problem.norm
        _, inner = begin(problem, start)
        target = inner_target(1.0, tol)
        # equal weights are inside the convex hull of the subsets, and see every kernel
        equal = norm.start(problem.m)
        learnt = norm.learnt(problem.m)
        equal[learnt] = float(np.sum(equal[learnt])) / learnt.size
        core = cuts.add(problem, equal, inner, target)
        subset = norm.weights(core.quad) if start is None else norm.scaled(start.weights)
        best = cuts.add(problem, subset, core.inner, target)
        return _SubsetState(cuts, best, core, best.inner, tol, target=inner_target(0.1, tol))

    def step(self, problem: MKLProblem, state: _SubsetState) -> _SubsetState:
        gains, quads = np.array(state.cuts.gains), np.array(state.cuts.quads)
        if state.whole:  # the lowest subset, by the program
            check_time()
            tol = PROGRAM * state.tol
            lower, subset = problem.norm.lowest_of_cuts(gains, quads, gap=tol, seconds=time_left())
            state = replace(state, lower=max(state.lower, lower))
            # the time is over, or numbers differ by more powers of ten than the program can hold
            if subset is None:
                return replace(state, finished=time_left() > 0.0)
            if relative_gap(state.best.inner.primal, state.lower) <= state.tol:
                # the loop goes on all the same: it measures the gap in units of the margin, or without rounding
                return replace(state, tol=0.3 * state.tol, finished=state.tol <= FINEST)
            following = self._with_subset(problem, state, subset)
            if self.between > 0.0 and following.target == state.target:
                weights = self.between * subset + (1.0 - self.between) * state.core.weights
                state.cuts.add(problem, weights, following.inner, state.target)
            return following
        # one more cut half-way to the relaxation's lowest point; on to subsets once that is solved
        lower, goal = problem.norm.lowest_of_cuts(gains, quads, whole=False)
        state = replace(state, lower=max(state.lower, lower))
        gap = relative_gap(state.core.inner.primal, lower)
        idle = 0 if gap < 0.9 * state.relaxed else state.idle + 1
        state = replace(state, relaxed=min(gap, state.relaxed), idle=idle)
        # the program's own slack may be all that is left: subsets do not need the relaxation to be solved
        if goal is None or gap <= RELAXED * state.tol or idle >= MOST_IDLE:
            # the kernels of largest weight in the relaxation: mostly a good subset
            subset = problem.norm.scaled(state.core.weights)
            return self._with_subset(problem, replace(state, whole=True), subset)
        weights = 0.5 * (state.core.weights + goal)
        target = inner_target(min(gap, 1.0), RELAXED * state.tol)
        oracle = state.cuts.add(problem, weights, state.inner, target)
        core = oracle if oracle.inner.primal < state.core.inner.primal else state.core
        return replace(state, core=core, inner=oracle.inner)

    def _with_subset(self, problem: MKLProblem, state: _SubsetState, subset: Array) -> _SubsetState:
        """Solve with a subset; with more precision where its cut says no more than was known."""
        oracle = state.cuts.add(problem, subset, state.inner, state.target)
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
