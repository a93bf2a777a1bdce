"""Second order in the weights: the default engine.

J, the optimal value as a function of the weights, is convex and piecewise twice differentiable, and its Hessian falls
out of the inner solve at the price of a small Cholesky factorisation (``problems.curvature``).  A step minimises the
quadratic model over the set of weights.  Where next to no coefficient is free, J is nearly polyhedral and its Hessian
vanishes; earlier linearisations, added to the model where they contradict it, take over there.

Norms with closed-form weights (lp) take that update instead far from the optimum, where a quadratic model leads
nowhere, and for as long as it shrinks the gap as fast as a second-order step would: it asks for no factorisation.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from .._typing import Array
from ..problems import FixedSolution, MKLProblem, Oracle, Point, relative_gap
from ._base import Solver, begin, inner_target
from .newton_model import Cut, SetModel, SimplexModel, minimise_smooth_model

#: lengths of a second-order step that are tried before the closed form is asked
TRIALS = 3
#: closed-form steps are begun with where they are bound to leave no more of the gap than this (p >= 1.5), and gone on
#: with while they leave no more than that
CLOSED_FORM_BOUND, CLOSED_FORM_SHARE = 0.65, 0.25
#: gap that is far from the optimum: no model is trusted there where closed-form steps are begun with
FAR = 0.3
#: share of the gap that a combination of cuts must promise to leave before the bank is read for it
WORTH_A_LOOK = 0.1
#: share of the promised fall of J that must have come true where the model is to bend by half of the Hessian
KEPT = 0.7


@dataclass
class _NewtonState:
    centre: Oracle
    last: Oracle
    tol: float
    #: the best bound: of a single inner solution, or of several together
    lower: float
    cuts: list[Cut] = field(default_factory=list)
    #: coefficients of several inner solutions that attain ``lower``, if it is theirs
    combined: Array | None = None
    #: the best bound of a single one, and the best for which the bank has been read
    own: float = -np.inf
    known: float = -np.inf
    #: combined coefficients for which the bank is to be read
    dual_beta: Array | None = None
    #: whether the fit went on although one inner solution had reached the tolerance: its judge allows for rounding
    doubted: bool = False
    curved: bool = True
    #: whether a norm without corners goes on with cuts, because its steps along the Hessian failed
    kinked: bool = False
    damping: float = 0.0
    #: whether J fell by what was promised, or nearly
    kept: bool = True
    gap: float = np.inf
    finished: bool = False
    #: gap that the last inner solve was asked for, where there is nothing else to do
    target: float = 0.0

    def __post_init__(self) -> None:
        if self.own == -np.inf:  # all there is
            self.own = self.known = self.lower

    def bounded_by(self, bound: float) -> None:
        """Take note of the bound of an inner solution."""
        self.own, self.known = max(self.own, bound), max(self.known, bound)
        if bound > self.lower:
            self.lower, self.combined = bound, None

    def bounded_together(self, beta: Array | None, bound: float) -> None:
        """Take note of the bound that several inner solutions attain together."""
        if beta is not None and bound > self.lower:
            self.lower, self.combined = bound, beta

    def look(self) -> None:
        """Have the bank read for several inner solutions together, if that should end the fit or say much more.

        A look costs as much as another step.
        """
        if self.combined is None or self.enough:
            return
        promised, known = (
            relative_gap(self.centre.inner.primal, bound) for bound in (self.lower, self.known)
        )
        if promised <= max(self.tol, WORTH_A_LOOK * known):
            self.dual_beta, self.known, self.combined = self.combined, self.lower, None

    @property
    def enough(self) -> bool:
        """Whether one inner solution proves the tolerance reached."""
        return not self.doubted and relative_gap(self.centre.inner.primal, self.own) <= self.tol


class Newton(Solver, registered_as="newton"):
    """Minimise a quadratic model of J over the weights, with the true Hessian (after Chapelle & Rakotomamonjy 2008).

    Parameters
    ----------
    cuts : int, default=30
        Earlier linearisations kept beside the curvature.
    """

    needs = ("convex weights",)
    default_max_iter = 300
    most_idle = 100
    summary = "quadratic model in the weights with the exact Hessian"

    def __init__(self, cuts: int = 30) -> None:
        self.cuts = cuts

    def init(self, problem: MKLProblem, start: Point | None, tol: float) -> _NewtonState:
        weights, inner = begin(problem, start)
        if _nothing_to_choose(problem):
            return self._solved(problem, weights, inner, 0.5 * tol, tol)
        # a closed-form first step needs no Hessian
        curvature = start is not None or problem.norm.update_rate > CLOSED_FORM_BOUND
        oracle = problem.oracle(
            weights, inner, inner_target(1.0 if start is None else tol, tol), curvature=curvature
        )
        return _NewtonState(
            oracle, oracle, tol, problem.dual(oracle.inner.beta, oracle.quad), [self._cut(problem, oracle)]
        )

    def _solved(
        self, problem: MKLProblem, weights: Array, inner: FixedSolution | None, target: float, tol: float
    ) -> _NewtonState:
        """Solve with the only weights there are; the gap is that of the inner solve, and curvature tells nothing."""
        oracle = problem.oracle(weights, inner, target)
        return _NewtonState(oracle, oracle, tol, problem.dual(oracle.inner.beta, oracle.quad), target=target)

    def _cut(self, problem: MKLProblem, oracle: Oracle) -> Cut:
        return Cut(problem.gain(oracle.inner.beta), oracle.quad, oracle.inner.beta)

    def step(self, problem: MKLProblem, state: _NewtonState) -> _NewtonState:
        learnt = problem.norm.learnt_norm
        if _nothing_to_choose(problem):
            last = state.last
            return self._solved(problem, last.weights, last.inner, 0.1 * state.target, state.tol)
        if learnt.simplex or learnt.constrained or state.kinked:
            return self._cut_step(problem, state)
        return self._smooth_step(problem, state)

    def _target(self, problem: MKLProblem, state: _NewtonState) -> float:
        return inner_target(0.1 * self._gap(problem, state), state.tol)

    def _nearly_there(self, problem: MKLProblem, state: _NewtonState) -> bool:
        """Whether one more step of quadratic convergence should reach the tolerance with something to spare."""
        return self._gap(problem, state) ** 2 <= 0.1 * state.tol

    def _bend(self, problem: MKLProblem, state: _NewtonState) -> float:
        """How much of the Hessian goes into the model: half of it far from the optimum, if that is where it leads.

        J falls like one over the weights that grow, and bends less and less on the way: the Hessian here promises less
        than a long step gains.  Where most coefficients are at their bounds it is the kinks that count.
        """
        if not state.kept or relative_gap(self._upper(problem, state), state.own) <= FAR:
            return 1.0
        assert state.centre.root is not None
        free, support = state.centre.root.shape[0], np.count_nonzero(state.centre.inner.beta)
        return 0.5 if free > 0.5 * support else 1.0

    def _cut_step(self, problem: MKLProblem, state: _NewtonState) -> _NewtonState:
        """Minimise the model with its cuts on the set of weights; a worse point adds a cut."""
        kind = SimplexModel if problem.norm.learnt_norm.simplex else SetModel
        bend = self._bend(problem, state) if state.curved else 0.0
        model = kind(state.centre, state.cuts, problem.norm, bend, state.damping)
        proposal = model.minimise()
        upper = state.centre.inner.primal
        # the new value must be known better than it is expected to differ from the old one; SMO, unlike Newton's method
        # for losses with curvature, cannot be asked for the last digits
        expected = 0.1 * proposal.decrease / max(abs(upper), np.finfo(float).tiny)
        finest = 1e-13 if problem.loss.has_curvature else 1e-10
        target = min(self._target(problem, state), max(expected, finest))
        last = self._nearly_there(problem, state)
        near = state.last.inner if state.last is not state.centre else state.centre.ahead(proposal.weights)
        oracle = problem.oracle(proposal.weights, near, target, curvature=True, expect_last=last)
        cuts = [*state.cuts, self._cut(problem, oracle)][-self.cuts :]
        following = replace(state, centre=oracle, last=oracle, cuts=cuts, dual_beta=None, curved=True)
        following.doubted = relative_gap(upper, state.own) <= state.tol
        following.kept = upper - oracle.inner.primal > KEPT * proposal.decrease
        following.bounded_by(problem.dual(oracle.inner.beta, oracle.quad))
        lower = following.lower
        following.bounded_together(proposal.beta, proposal.bound)
        if oracle.inner.primal < upper:
            following.damping = 0.25 * state.damping
            following.look()
            return following
        # A null step: the new cut corrects the model, and what all cuts say together is worth knowing.
        following.centre, following.curved = state.centre, state.curved
        if not following.enough:
            following.bounded_together(*kind(state.centre, cuts, problem.norm, 0.0).bound())
        following.look()
        if proposal.decrease < 1e-3 * (upper - lower):
            # The model sees nothing to gain, yet the bound is far: the curvature is out of all proportion, as it is
            # where the mixed kernel is singular.  From this centre only the cuts speak.
            following.curved, following.damping = False, 0.0
        else:
            moved = proposal.weights - state.centre.weights
            length = float(moved @ moved)
            # the model promises a decrease that no step attains: the bounds contradict each other
            following.finished = length == 0.0
            if length > 0.0:
                following.damping = max(4.0 * state.damping, 0.1 * proposal.decrease / length)
        return following

    def _smooth_step(self, problem: MKLProblem, state: _NewtonState) -> _NewtonState:
        gap = self._gap(problem, state)
        if gap > FAR and problem.norm.update_rate <= CLOSED_FORM_BOUND:
            # what such a step does to a large gap says nothing of what the next would leave of a smaller one
            return replace(self._closed_form_step(problem, state, gap), gap=np.inf)
        if state.centre.curvature is None:
            return self._closed_form_step(problem, state, gap)
        if (
            gap < CLOSED_FORM_SHARE * state.gap < np.inf
            or _left_by_closed_form(problem, state, gap) <= state.tol
        ):
            return self._closed_form_step(problem, state, gap)
        return self._newton_step(problem, state, gap)

    def _gap(self, problem: MKLProblem, state: _NewtonState) -> float:
        return relative_gap(self._upper(problem, state), state.lower)

    def _upper(self, problem: MKLProblem, state: _NewtonState) -> float:
        return state.centre.inner.primal + problem.norm.penalty(state.centre.weights)

    def _closed_form_step(self, problem: MKLProblem, state: _NewtonState, gap: float) -> _NewtonState:
        """Best weights for the block norms in hand (Kloft et al. 2011): the objective falls."""
        centre = state.centre
        blocks = centre.weights * np.sqrt(np.maximum(centre.quad, 0.0))
        # the Hessian is asked for where the last step of this kind did not do enough, or there was none
        slow = not gap < CLOSED_FORM_SHARE * state.gap or np.isinf(state.gap)
        oracle = problem.oracle(
            problem.norm.weights_of_blocks(blocks), centre.inner, self._target(problem, state), curvature=slow,
            expect_last=_left_by_closed_form(problem, state, gap) <= state.tol,
        )  # fmt: skip
        lower = max(state.lower, problem.dual(oracle.inner.beta, oracle.quad))
        return _NewtonState(oracle, oracle, state.tol, lower, gap=gap)

    def _newton_step(self, problem: MKLProblem, state: _NewtonState, gap: float) -> _NewtonState:
        centre, norm = state.centre, problem.norm
        target = self._target(problem, state)
        assert centre.root is not None
        # where closed-form steps are not what one begins with, second-order ones come from far
        bend = self._bend(problem, state) if norm.update_rate > CLOSED_FORM_BOUND else 1.0
        root = np.sqrt(bend) * centre.root.dense
        goal = minimise_smooth_model(norm, centre.quad, root, centre.weights)
        here = centre.inner.primal + norm.penalty(centre.weights)
        length, lower, last = 1.0, state.lower, self._nearly_there(problem, state)
        cuts = [self._cut(problem, centre)]
        if goal is not None:
            near = centre.ahead(goal)
            for _ in range(TRIALS):
                weights = centre.weights + length * (goal - centre.weights)
                oracle = problem.oracle(weights, near, target, curvature=True, expect_last=last)
                near = oracle.inner
                lower = max(lower, problem.dual(oracle.inner.beta, oracle.quad))
                if oracle.inner.dual + norm.penalty(weights) <= here:
                    return _NewtonState(oracle, oracle, state.tol, lower)
                cuts.append(self._cut(problem, oracle))
                length *= 0.5
        if norm.learnt_norm.has_boundary and norm.update_rate > CLOSED_FORM_BOUND:
            # coefficients that become free or cease to be bend J more than its Hessian does, or the Hessian more than
            # J: cuts know of that, and weights for given blocks, which never fail, are slow where the norm is nearly l1
            kinked = _NewtonState(centre, centre, state.tol, lower, cuts, kinked=True)
            return self._cut_step(problem, kinked)
        # next to no coefficient is free, and curvature says nothing of the kinks: weights for given blocks never fail
        return replace(self._closed_form_step(problem, replace(state, lower=lower), gap), gap=np.inf)

    def point(self, state: _NewtonState) -> Point:
        point = state.last.point
        return point if state.dual_beta is None else replace(point, dual_beta=state.dual_beta)


def _nothing_to_choose(problem: MKLProblem) -> bool:
    """Whether the set of weights is a single point: one kernel under the l1 norm, which is an ordinary SVM."""
    return problem.m == 1 and problem.norm.learnt_norm.simplex


def _left_by_closed_form(problem: MKLProblem, state: _NewtonState, gap: float) -> float:
    """Return the share of a gap that a closed-form step should leave: that of the one before, or the norm's own."""
    return gap * (gap / state.gap if 0.0 < state.gap < np.inf else problem.norm.update_rate)
