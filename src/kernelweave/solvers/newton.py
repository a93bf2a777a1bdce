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
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from .._numerics.quadratic import minimise_on_set, solve_qp
from .._typing import Array, Index
from ..norms import Norm
from ..problems import MKLProblem, Oracle, Point, Root, relative_gap
from ._base import Solver, begin, inner_target
from .cutting_planes import lowest_on_simplex

#: lengths of a second-order step that are tried before the closed form is asked
TRIALS = 3
#: closed-form steps are begun with where they are bound to leave no more of the gap than this (p >= 1.5), and gone on
#: with while they leave no more than that
CLOSED_FORM_BOUND, CLOSED_FORM_SHARE = 0.65, 0.25
#: gap that is far from the optimum: no model is trusted there where closed-form steps are begun with
FAR = 0.3
#: share of the gap that a combination of cuts must promise to leave before the bank is read for it
WORTH_READING = 0.1
#: share of the tolerance that an inner solution of several classes is asked for at the finest: each digit is dear
FINEST_SHARE = 0.01
#: share of the promised fall of J that must have come true where the model is to bend by half of the Hessian
KEPT = 0.7

#: on the simplex: kernels that a model starts from, and how many of them whatever their weights are
WORKING_SET, STEEPEST = 400, 20
#: slopes of a model, relative to those of J at its centre, that are zero
INSIDE = 1e-6
#: on other sets: weights below this share of the multiplier that holds them up are zero, as far as a barrier can tell
TRACE = 1e-2
#: kernels beyond which a working set is taken, and how many times the steepest point of the rest fills it
ALL, REPEATS = 60, 6
#: what the model may be above its minimum on the whole set, as a share of its largest slope, and of what it falls by
SLACK, SHARE = 1e-7, 0.1
#: fall of the model, as a share of its height, after which no more kernels are asked for: that far from the optimum the
#: next model will know better, and a mixture of fewer kernels is read in less
LONG_FALL = 0.1


class Cut(NamedTuple):
    """A linearisation of J: ``J(d) >= gain - d'quad / 2``, from the coefficients beta."""

    gain: float
    quad: Array
    beta: Array


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
    #: whether the fit went on although one inner solution had reached the tolerance, but for rounding
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

    def bounded_together(self, beta: Array, bound: float) -> None:
        """Take note of the bound that several inner solutions attain together."""
        if bound > self.lower:
            self.lower, self.combined = bound, beta

    def read_if_worthwhile(self) -> None:
        """Have the bank read for several inner solutions together, if that should end the fit or say much more.

        Reading costs as much as another step.
        """
        if self.combined is None or self.enough:
            return
        promised, known = self.gap_to(self.lower), self.gap_to(self.known)
        if promised <= max(self.tol, WORTH_READING * known):
            self.dual_beta, self.known, self.combined = self.combined, self.lower, None

    def gap_to(self, lower: float, penalty: float = 0.0) -> float:
        """Return the relative gap between the centre, with the penalty of its weights, and a lower bound."""
        inner = self.centre.inner
        return relative_gap(inner.primal + penalty, lower, unit=inner.unit)

    @property
    def enough(self) -> bool:
        """Whether one inner solution proves the tolerance reached."""
        return not self.doubted and self.gap_to(self.own) <= self.tol


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
        if problem.m == 1 and problem.norm.learnt_norm.simplex:
            # the only weights there are, an ordinary SVM: the gap is that of the inner solve
            oracle, cuts, target = problem.oracle(weights, inner, 0.5 * tol), [], 0.5 * tol
        else:
            # a closed-form first step needs no Hessian
            curvature = start is not None or problem.norm.update_rate > CLOSED_FORM_BOUND
            precision = inner_target(1.0 if start is None else tol, tol)
            oracle = problem.oracle(weights, inner, precision, curvature=curvature)
            cuts, target = [Cut(problem.gain(oracle.inner.beta), oracle.quad, oracle.inner.beta)], 0.0
        lower = problem.dual(oracle.inner.beta, oracle.quad)
        return _NewtonState(oracle, oracle, tol, lower, cuts, target=target)

    def step(self, problem: MKLProblem, state: _NewtonState) -> _NewtonState:
        """Minimise the model with its cuts on the set of weights; a worse point adds a cut."""
        learnt = problem.norm.learnt_norm
        if problem.m == 1 and learnt.simplex:
            target = 0.1 * state.target
            oracle = problem.oracle(state.last.weights, state.last.inner, target)
            lower = problem.dual(oracle.inner.beta, oracle.quad)
            return _NewtonState(oracle, oracle, state.tol, lower, target=target)
        if not (learnt.simplex or learnt.constrained or state.kinked):
            return self._smooth_step(problem, state)
        kind = SimplexModel if learnt.simplex else SetModel
        bend = self._bend(problem, state) if state.curved else 0.0
        proposal = kind(state.centre, state.cuts, problem.norm, bend, state.damping).minimise()
        upper, gap = state.centre.inner.primal, self._gap(problem, state)
        # the new value must be known better than it is expected to differ from the old one; SMO, unlike Newton's method
        # for losses with curvature, cannot be asked for the last digits
        expected = 0.1 * proposal.decrease / max(abs(upper), np.finfo(float).tiny)
        finest = 1e-13 if problem.loss.has_curvature else 1e-10
        if problem.loss.joint and not problem.loss.has_curvature:
            finest = max(finest, FINEST_SHARE * state.tol)
        target = min(inner_target(0.1 * gap, state.tol), max(expected, finest))
        near, curvature = state.last.inner, state.centre.curvature
        if state.last is state.centre and curvature is not None:
            near = curvature.ahead(proposal.weights - state.centre.weights)
        # one more step of quadratic convergence should reach the tolerance with something to spare
        last = gap**2 <= 0.1 * state.tol
        oracle = problem.oracle(proposal.weights, near, target, curvature=True, expect_last=last)
        cuts = [*state.cuts, Cut(problem.gain(oracle.inner.beta), oracle.quad, oracle.inner.beta)][
            -self.cuts :
        ]
        following = replace(state, centre=oracle, last=oracle, cuts=cuts, dual_beta=None, curved=True)
        following.doubted = state.gap_to(state.own) <= state.tol
        following.kept = upper - oracle.inner.primal > KEPT * proposal.decrease
        bound = problem.dual(oracle.inner.beta, oracle.quad)
        following.own, following.known = max(state.own, bound), max(state.known, bound)
        if bound > state.lower:
            following.lower, following.combined = bound, None
        lower = following.lower
        if proposal.beta is not None:
            following.bounded_together(proposal.beta, proposal.bound)
        fell = oracle.inner.primal < upper
        if not fell:
            # A null step: the new cut corrects the model, and what all cuts say together is worth knowing.
            following.centre, following.curved = state.centre, state.curved
            if not following.enough:
                together, bound = kind(state.centre, cuts, problem.norm, 0.0).bound()
                if together is not None:
                    following.bounded_together(together, bound)
        if following.combined is not None:
            following.read_if_worthwhile()
        if fell:
            following.damping = 0.25 * state.damping
            return following
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
        """Take a step of a norm without corners: along the Hessian, or to the best weights for the block norms."""
        gap = self._gap(problem, state)
        if gap > FAR and problem.norm.update_rate <= CLOSED_FORM_BOUND:
            # what such a step does to a large gap says nothing of what the next would leave of a smaller one
            return replace(self._closed_form_step(problem, state, gap), gap=np.inf)
        if (
            state.centre.curvature is None
            or gap < CLOSED_FORM_SHARE * state.gap < np.inf
            or _left_by_closed_form(problem, state, gap) <= state.tol
        ):
            return self._closed_form_step(problem, state, gap)
        return self._newton_step(problem, state, gap)

    def _gap(self, problem: MKLProblem, state: _NewtonState) -> float:
        return state.gap_to(state.lower, problem.norm.penalty(state.centre.weights))

    def _bend(self, problem: MKLProblem, state: _NewtonState) -> float:
        """How much of the Hessian goes into the model: half of it far from the optimum, if that is where it leads.

        J falls like one over the weights that grow, and bends less and less on the way: the Hessian here promises less
        than a long step gains.  Where most coefficients are at their bounds it is the kinks that count.
        """
        centre = state.centre
        upper = centre.inner.primal + problem.norm.penalty(centre.weights)
        if not state.kept or relative_gap(upper, state.own) <= FAR:
            return 1.0
        assert centre.curvature is not None
        return 0.5 if centre.curvature.free > 0.5 * np.count_nonzero(centre.inner.beta) else 1.0

    def _closed_form_step(self, problem: MKLProblem, state: _NewtonState, gap: float) -> _NewtonState:
        """Best weights for the block norms in hand (Kloft et al. 2011): the objective falls."""
        centre = state.centre
        blocks = centre.weights * np.sqrt(np.maximum(centre.quad, 0.0))
        # the Hessian is asked for where the last step of this kind did not do enough, or there was none
        slow = not gap < CLOSED_FORM_SHARE * state.gap or np.isinf(state.gap)
        oracle = problem.oracle(
            problem.norm.weights_of_blocks(blocks),
            centre.inner,
            inner_target(0.1 * self._gap(problem, state), state.tol),
            curvature=slow,
            expect_last=_left_by_closed_form(problem, state, gap) <= state.tol,
        )
        lower = max(state.lower, problem.dual(oracle.inner.beta, oracle.quad))
        return _NewtonState(oracle, oracle, state.tol, lower, gap=gap)

    def _newton_step(self, problem: MKLProblem, state: _NewtonState, gap: float) -> _NewtonState:
        centre, norm, curvature = state.centre, problem.norm, state.centre.curvature
        target = inner_target(0.1 * gap, state.tol)
        assert curvature is not None
        # where closed-form steps are not what one begins with, second-order ones come from far
        bend = self._bend(problem, state) if norm.update_rate > CLOSED_FORM_BOUND else 1.0
        root = np.sqrt(bend) * curvature.root.dense
        goal = minimise_smooth_model(norm, centre.quad, root, centre.weights)
        here = centre.inner.primal + norm.penalty(centre.weights)
        length, lower, last = 1.0, state.lower, gap**2 <= 0.1 * state.tol
        cuts = [Cut(problem.gain(centre.inner.beta), centre.quad, centre.inner.beta)]
        if goal is not None:
            near = curvature.ahead(goal - centre.weights)
            for _ in range(TRIALS):
                weights = centre.weights + length * (goal - centre.weights)
                oracle = problem.oracle(weights, near, target, curvature=True, expect_last=last)
                near = oracle.inner
                lower = max(lower, problem.dual(oracle.inner.beta, oracle.quad))
                if oracle.inner.dual + norm.penalty(weights) <= here:
                    return _NewtonState(oracle, oracle, state.tol, lower)
                cuts.append(Cut(problem.gain(near.beta), oracle.quad, near.beta))
                length *= 0.5
        if norm.learnt_norm.has_boundary and norm.update_rate > CLOSED_FORM_BOUND:
            # coefficients that become free or cease to be bend J more than its Hessian does, or the Hessian more than
            # J: cuts know of that, and weights for given blocks, which never fail, are slow where the norm is nearly l1
            kinked = _NewtonState(centre, centre, state.tol, lower, cuts, kinked=True)
            return self.step(problem, kinked)
        # next to no coefficient is free, and curvature says nothing of the kinks: weights for given blocks never fail
        return replace(self._closed_form_step(problem, replace(state, lower=lower), gap), gap=np.inf)

    def point(self, state: _NewtonState) -> Point:
        point = state.last.point
        return point if state.dual_beta is None else replace(point, dual_beta=state.dual_beta)


def _left_by_closed_form(problem: MKLProblem, state: _NewtonState, gap: float) -> float:
    """Return the share of a gap that a closed-form step should leave: that of the one before, or the norm's own."""
    return gap * (gap / state.gap if 0.0 < state.gap < np.inf else problem.norm.update_rate)


class Proposal(NamedTuple):
    """Where a model is lowest, and what it promises.

    ``decrease`` is the fall of J that it predicts.  ``beta``, where several cuts meet at the minimiser, combines their
    coefficients by the multipliers: a point of the dual set whose value is at least ``bound`` (Jensen).  Where J is
    polyhedral no single inner solution certifies the optimum, but such a combination does.
    """

    weights: Array
    decrease: float
    beta: Array | None = None
    bound: float = -np.inf


class CutModel:
    """``max over cuts + (z - d)'(bend A'A + damping I)(z - d) / 2`` on a set of weights.

    The cut at the centre is always in the model.  Other cuts enter only where they lie above the model's value at its
    minimiser: near a smooth optimum the curvature already accounts for them, and counting both would shorten the
    Newton steps.  Weights that the norm holds fixed take no part: the model is one of the others.
    """

    def __init__(
        self, centre: Oracle, cuts: list[Cut], norm: Norm, bend: float = 1.0, damping: float = 0.0
    ) -> None:
        self.norm = norm.learnt_norm
        self.working: Index | None = None
        self.learnt = norm.learnt(centre.weights.size)
        held = centre.weights.copy()
        held[self.learnt] = 0.0
        self.held = held
        self.cuts = cuts
        self.d = centre.weights[self.learnt]
        self.bend = bend
        self.root = Root([], self.d.size)
        if bend > 0.0 and centre.curvature is not None:
            self.root = centre.curvature.root.among(self.learnt)
        self.gains = np.array([cut.gain - 0.5 * float(held @ cut.quad) for cut in cuts])
        # a quadratic form below zero is rounding, and would say that no weight at all is best
        self.slopes = -0.5 * np.array([np.maximum(cut.quad[self.learnt], 0.0) for cut in cuts])
        # the value at the centre, from its own coefficients
        quad = np.maximum(centre.quad[self.learnt], 0.0)
        self.centre_slope = -0.5 * quad
        self.centre_gain = centre.inner.dual + float(0.5 * quad @ self.d)
        self.centre_beta = centre.inner.beta
        # a trace of damping makes the minimiser unique where kernels coincide
        self.damping = damping + 1e-9 * float(np.mean(quad))

    def minimise(self) -> Proposal:
        """Minimise the model; see ``Proposal``."""
        rows = np.zeros((1, self.d.size)) + self.centre_slope
        gains = np.array([self.centre_gain])
        included: list[int] = []
        z, multipliers, value = self.d, np.ones(1), 0.0
        for _ in range(30):
            z, multipliers = self._minimise_with(rows, gains)
            shift = z - self.d
            curved = self.root.times(shift)
            bent = 0.5 * self.bend * float(curved @ curved) + 0.5 * self.damping * float(shift @ shift)
            value = float(np.max(gains + rows @ z)) + bent
            heights = self.gains + self.slopes @ z
            scale = 1e-9 * abs(value)
            above = [k for k in np.argsort(-heights) if heights[k] > value + scale and k not in included][:5]
            if not above:
                break
            included += [int(k) for k in above]
            rows = np.vstack([rows, self.slopes[above]])
            gains = np.concatenate([gains, self.gains[above]])
        decrease = float(self.centre_gain + self.centre_slope @ self.d) - value
        weights = self.held.copy()
        weights[self.learnt] = z
        if not included:
            return Proposal(weights, decrease)
        multipliers = multipliers[: gains.size]
        betas = [self.centre_beta, *(self.cuts[k].beta for k in included)][: multipliers.size]
        used = slice(multipliers.size)
        return Proposal(weights, decrease, *self._combined(multipliers, gains[used], rows[used], betas))

    def _combined(
        self, multipliers: Array, gains: Array, slopes: Array, betas: list[Array]
    ) -> tuple[Array, float]:
        """Coefficients of several cuts in these shares, and the bound that they attain (Jensen)."""
        beta = np.asarray(
            sum(share * beta for share, beta in zip(multipliers, betas, strict=True) if share > 0)
        )
        return beta, float(multipliers @ gains) - self.norm.conjugate(-2.0 * (multipliers @ slopes))

    def bound(self) -> tuple[Array | None, float]:
        """Coefficients that combine those of the cuts to the best bound there is, and the bound; None: not known."""
        scale = float(np.max(np.abs(self.slopes))) or 1.0  # dimensionless, for the tolerances' sake
        if not self.norm.simplex or not np.isfinite(scale + float(np.sum(self.gains))):
            return None, -np.inf
        try:
            _, _, shares = lowest_on_simplex((self.gains - self.gains[0]) / scale, self.slopes / scale)
        except FloatingPointError:  # the cuts are too far apart in size
            return None, -np.inf
        return self._combined(shares, self.gains, self.slopes, [cut.beta for cut in self.cuts])

    def _gradient(self, shift: Array, rows: Array, multipliers: Array) -> Array:
        """Slopes of the model there, with the cuts in these shares."""
        curved = self.bend * self.root.transposed(self.root.times(shift))
        return rows.T @ multipliers + curved + self.damping * shift

    def _expanded(self, working: Index, shift: Array) -> tuple[Array, Array]:
        """Hessian on a working set, and the slopes that the curvature adds there."""
        root = self.root.columns(working)
        hessian = self.bend * (root.T @ root)
        hessian.flat[:: working.size + 1] += self.damping
        return hessian, self.bend * (root.T @ self.root.times(shift)) + self.damping * shift[working]

    def _minimise_with(self, rows: Array, gains: Array) -> tuple[Array, Array]:
        """Minimise with these cuts; return the weights that are learnt and the multipliers of the cuts."""
        raise NotImplementedError


class SimplexModel(CutModel):
    """The model on the simplex, minimised on a working set of kernels."""

    def _minimise_with(self, rows: Array, gains: Array) -> tuple[Array, Array]:
        """Solve on a working set, add the kernels that would lower the model, repeat."""
        from .._numerics.smo import solve_few

        if self.working is None:
            # the kernels in use and the steepest others; of very many in use (a uniform start) only the steepest
            in_use, steepest = np.flatnonzero(self.d), np.argsort(self.centre_slope)
            if self.d.size <= STEEPEST:
                self.working = np.arange(self.d.size)
            elif in_use.size > WORKING_SET:
                self.working = np.sort(steepest[:WORKING_SET])
            else:
                self.working = np.union1d(in_use, steepest[:STEEPEST])
        entered = np.zeros(self.d.size, dtype=np.intp)  # how often
        steepest_slope = float(np.max(np.abs(self.centre_slope)))
        scale = steepest_slope or 1.0  # dimensionless, for the tolerances' sake
        for _ in range(50):
            working = self.working
            # the model is expanded around weights on the working set; d itself may have others
            origin = np.zeros(self.d.size)
            origin[working] = self.d[working] if np.any(self.d[working] > 0) else 1.0
            origin /= np.sum(origin)
            hessian, pull = self._expanded(working, origin - self.d)
            hessian, pull, slopes, near = (
                hessian / scale,
                pull / scale,
                rows[:, working] / scale,
                origin[working],
            )
            if gains.size > 1:
                part, multipliers = _minimise_cuts(hessian, pull, slopes, gains / scale, near)
            else:
                # a box QP in the change, whose entries sum to zero: the SVM engine solves it, with exact zeros
                room = np.maximum(1.0 - near, 0.0)
                part = near + solve_few(hessian, -slopes[0] - pull, -near, room, 1e-10, 200_000)
                # weights below the precision of the model are zero; but a kernel of size 1e12 does its work with a
                # weight of 1e-12, which its curvature tells from a trace
                bends = part**2 * np.diagonal(hessian) > 1e-9
                part = np.where((part > 1e-12) | ((part > 0) & bends), part, 0.0)
                multipliers = np.ones(1)
            z = np.zeros(self.d.size)
            z[working] = part / np.sum(part)
            gradient = self._gradient(z - self.d, rows, multipliers)
            price = float(gradient @ z)  # the multiplier of the sum, as z'(gradient - price) = 0
            reduced = gradient - price
            reduced[working] = 0.0
            entering = np.flatnonzero(reduced < -1e-9 * steepest_slope)
            if entering.size == 0:
                break
            best = entering[np.argsort(reduced[entering])[:40]]
            # kernels that stayed at zero leave, so that the set stays small; those that came back do not leave again,
            # or the last digits would send them in and out for ever
            stay = working[(z[working] > 0) | (entered[working] > 1)]
            entered[best] += 1
            self.working = np.union1d(stay, best)
        return z, multipliers


def _minimise_cuts(
    hessian: Array, pull: Array, rows: Array, gains: Array, origin: Array
) -> tuple[Array, Array]:
    """Solve a QP in the weights and the height of the cuts, by an interior point method.

    Each weight is counted in a unit of its own where kernels differ by powers of ten, and their weights with them: one,
    but for kernels so large that a tiny weight bends the model.
    """
    w, k = origin.size, gains.size
    bend = np.sqrt(np.maximum(np.diagonal(hessian), 0.0))
    own = np.where(origin > 0, origin, 1.0 / np.maximum(bend, 1.0))
    unit = np.where(bend > 1e4, np.minimum(own, 1.0), 1.0)
    P = np.zeros((w + 1, w + 1))
    P[:w, :w] = hessian * np.outer(unit, unit)
    q = np.append(unit * (pull - hessian @ origin), 1.0)
    G = np.zeros((w + k, w + 1))
    G[:w, :w] = -np.eye(w)
    G[w:, :w] = rows * unit
    G[w:, w] = -1.0
    h = np.concatenate([np.zeros(w), gains[0] - gains])
    A = np.append(unit, 0.0)[None, :]
    x, multipliers = solve_qp(P, q, G, h, A, np.ones(1))
    # complementarity tells the zeros: there the multiplier is the larger of the two
    z = np.where((x[:w] > multipliers[:w]) & (x[:w] > 1e-10), unit * x[:w], 0.0)
    return z, multipliers[w:] / max(float(np.sum(multipliers[w:])), 1e-300)


class SetModel(CutModel):
    """The model on a norm's own set of weights, minimised from the inside on a working set of kernels."""

    def _minimise_with(self, rows: Array, gains: Array) -> tuple[Array, Array]:
        if self.working is None:
            # all of few kernels; of many the steepest, and those in use unless they are as many (a uniform start)
            if self.d.size <= ALL:
                self.working = np.arange(self.d.size)
            else:
                in_use, self.working = np.flatnonzero(self.d), self._steepest(-2.0 * self.centre_slope)
                if in_use.size < self.d.size:
                    self.working = np.union1d(in_use, self.working)
        height, steepest = float(np.max(gains + rows @ self.d)), float(np.max(np.abs(self.centre_slope)))
        scale = steepest or 1.0  # dimensionless, for the tolerances' sake
        for _ in range(30):
            working = self.working
            norm, m, here = self.norm.restricted(working), working.size, self.d[working]
            near = norm.scaled(here) if np.any(here > 0) else norm.start(m)
            start = norm.inside(0.5 * near + 0.5 * norm.start(m))
            hessian = np.zeros((start.size, start.size))
            linear, slopes = np.zeros(start.size), np.zeros((gains.size, start.size))
            curved, pull = self._expanded(working, self.d)
            hessian[:m, :m], linear[:m] = curved / scale, -pull / scale
            slopes[:, :m] = rows[:, working] / scale
            place, bounds, multipliers = minimise_on_set(
                hessian, linear, slopes, (gains - gains[0]) / scale, norm.boundary, start
            )
            multipliers = multipliers / max(float(np.sum(multipliers)), np.finfo(float).tiny)
            # complementarity tells the zeros: there the multiplier is the larger of the two, by far
            part = np.where(place[:m] > TRACE * bounds[:m], place[:m], 0.0)
            z = np.zeros(self.d.size)
            z[working] = norm.scaled(part if np.any(part > 0) else place[:m])
            # the steepest points of the whole set tell which kernels are missing
            shift = z - self.d
            gradient = self._gradient(shift, rows, multipliers)
            pulls = np.maximum(-2.0 * gradient, 0.0)
            above = float(gradient @ z) + self.norm.conjugate(pulls)
            missing = np.setdiff1d(self._steepest(pulls), working)
            if missing.size == 0:
                break
            # the model may be so much above its minimum at weights that are worth an inner solve
            curved = self.root.times(shift)
            bent = 0.5 * self.bend * float(curved @ curved) + 0.5 * self.damping * float(shift @ shift)
            fall = height - float(np.max(gains + rows @ z)) - bent
            if above <= max(SLACK * steepest, SHARE * fall) or fall > LONG_FALL * abs(height):
                break
            self.working = np.union1d(working, missing)
        return z, multipliers

    def _steepest(self, fall: Array) -> Index:
        """Kernels of the steepest point of the set, of the steepest without those, and so on."""
        left = fall.copy()
        for _ in range(REPEATS):
            left[self.norm.weights(left) > 0] = 0.0
            if np.count_nonzero(left) <= max(left.size - ALL, 0):  # enough for once
                break
        return np.flatnonzero((left == 0.0) & (fall > 0))


def minimise_smooth_model(norm: Norm, quad: Array, root: Array, d: Array) -> Array | None:
    """Minimise ``-s'(z - d)/2 + |A (z - d)|^2 / 2 + penalty(z)`` over the weights of a norm whose maximiser is unique.

    Dualising the quadratic leaves the norm's own conjugate:
    ``max over w of -|w|^2/2 - w'A d - conjugate(s - 2 A'w)``, and the minimiser is ``weights(s - 2 A'w)``.  None where
    the model has its minimum inside the set, at a slope of zero that tells nothing of the weights.
    """
    if root.shape[0] == 0:
        return norm.weights(quad)
    # w lives in the range of A: the thinner of the two sides is used
    offset = root @ d
    # in units of the offset, which is what w is compared with: the tolerances are absolute
    unit = float(np.sqrt(offset @ offset)) or 1.0

    def negative(x: Array) -> tuple[float, Array]:
        w = unit * x
        tilted = quad - 2.0 * (root.T @ w)
        z = norm.weights(tilted)
        value = 0.5 * float(w @ w) + float(w @ offset) + norm.conjugate(tilted)
        return value / unit**2, (w + offset - root @ z) / unit

    result = minimize(negative, np.zeros(root.shape[0]), jac=True, method="L-BFGS-B",
                     options={"maxiter": 500, "maxcor": 30, "ftol": 1e-15, "gtol": 1e-12})  # fmt: skip
    tilted = quad - 2.0 * unit * (root.T @ result.x)
    if norm.learnt_norm.has_boundary and np.max(tilted) <= INSIDE * np.max(quad):
        return None
    return norm.weights(tilted)
