"""Weights in closed form: Kloft's update for lp norms, Newton's method for the maximum norm, given weights."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from .._numerics.quadratic import solve_qp
from .._typing import Array
from ..norms.lp import SMALLEST
from ..problems import MKLProblem, Oracle, Point, relative_gap
from ._base import Solver, begin, inner_target

#: earlier updates that an accelerated one is combined of
MEMORY = 5
#: kernels up to which the maximum norm takes Newton steps: their quadratic program costs the cube of that
MOST_KERNELS = 300
#: largest part of its share in the simplex that a kernel may lose in a Newton step, and largest multiple of it that it
#: may gain: from much farther away the inner solver gains nothing by its start
SHRINK, GROWTH = 0.9, 9.0
#: share of the tolerance that kernels without a part may cost together, by what they keep of the simplex: the less it
#: is, the larger are their weights, and the rounding of their blocks with them
KEPT = 0.2
#: damping of Newton steps, relative to the diagonal of the Hessian: at first, and after a step that led down
DAMPING, DAMPED = 1e-6, 1e-3


@dataclass
class _AnalyticState:
    oracle: Oracle
    tol: float
    gap: float = np.inf
    #: share of the gap to which the coefficients are found
    share: float = 0.1
    #: logarithms of weights, and by how much the closed form would change them
    history: list[tuple[Array, Array]] = field(default_factory=list)
    #: where the last Newton step came from, and the damping it had; None after an update in closed form
    origin: Oracle | None = None
    damping: float = DAMPING


class LpAnalytic(Solver, registered_as="lp_analytic"):
    """Solve for the coefficients, then for the weights in closed form, and so on.

    Block coordinate descent on (f, d) jointly: from the block norms ``t_j = d_j sqrt(s_j)`` the weights that minimise
    ``sum t_j^2 / d_j`` (Kloft et al. 2011, for lp ``d_j ~ t_j^(2/(p+1))``).  The objective falls at every step.

    With the maximum norm, a maximum over weights, the update is ``d_j ~ 1 / sqrt(s_j)``.  There the gap needs all block
    norms equal, and such updates are slow at that, above all where the optimum leaves some kernels without a part.  But
    ``J(1 / gamma)`` is concave in ``gamma = 1 / d`` on the simplex (``s / gamma`` is convex in both), with the gradient
    ``s_j / (2 gamma_j^2)`` and the Hessian of J at hand: Newton's method maximises it, damped, and a step that led down
    is followed by an update in closed form from where it began, which leads up always.  With too many kernels for that,
    Anderson's combination of the last few updates is taken while it helps.
    """

    needs = ("analytic weights",)
    most_idle = 12
    summary = "SVM and closed-form weights in turn (Kloft et al. 2011)"

    def init(self, problem: MKLProblem, start: Point | None, tol: float) -> _AnalyticState:
        weights, inner = begin(problem, start)
        second = _by_newton(problem)
        return _AnalyticState(problem.oracle(weights, inner, inner_target(1.0, tol), curvature=second), tol)

    def step(self, problem: MKLProblem, state: _AnalyticState) -> _AnalyticState:
        oracle, norm = state.oracle, problem.norm
        upper = oracle.inner.primal + norm.penalty(oracle.weights)
        gap = relative_gap(upper, problem.dual(oracle.inner.beta, oracle.quad))
        # where the gap does not fall, weights of kernels with next to no part follow the rounding of their forms
        share = state.share if gap < 0.9 * state.gap else max(0.3 * state.share, 1e-3)
        target = inner_target(gap, state.tol, share)
        if norm.convex_in_weights:
            weights = norm.weights_of_blocks(oracle.weights * np.sqrt(np.maximum(oracle.quad, 0.0)))
            return _AnalyticState(problem.oracle(weights, oracle.inner, target), state.tol, gap, share)
        if _by_newton(problem):
            learnt, damping, origin = norm.learnt(problem.m), state.damping, state.origin
            least = max(SMALLEST, KEPT * min(state.tol, 1.0) / max(learnt.size, 1))
            if origin is not None and oracle.inner.primal < origin.value:
                # the last step led down, beyond what inner solves leave open: an update in closed form from its origin
                weights = norm.weights(origin.quad)
                weights[learnt] = np.minimum(weights[learnt], 1.0 / least)
                following = problem.oracle(weights, origin.inner, target, curvature=True)
                damping = max(10.0 * damping, DAMPED)
                return _AnalyticState(following, state.tol, state.gap, share, damping=damping)
            # the quadratic model of J(1 / gamma) is maximised over the simplex, no gamma below ``least``
            assert oracle.curvature is not None
            s, gamma = np.maximum(oracle.quad[learnt], 0.0), 1.0 / oracle.weights[learnt]
            gamma = gamma / np.sum(gamma)
            # in x, the change of gamma relative to itself: d(1 / gamma_j) = -x_j / gamma_j + x_j^2 / gamma_j
            pull = s / gamma
            root = oracle.curvature.root.columns(learnt) / gamma
            values, vectors = np.linalg.eigh(np.diag(pull) - root.T @ root)
            bend = (vectors * np.maximum(values, 0.0)) @ vectors.T  # concave, up to rounding
            bend[np.diag_indices_from(bend)] += damping * pull + 1e-12 * np.max(pull)
            low = np.minimum(1.0 - np.minimum(least / gamma, 1.0), SHRINK)
            sides = np.vstack([-np.eye(s.size), np.eye(s.size)])
            limits = np.concatenate([low, np.full(s.size, GROWTH)])
            x, _ = solve_qp(bend, -0.5 * pull, sides, limits, gamma[None, :], np.zeros(1))
            moved = np.maximum(gamma * (1.0 + np.clip(x, -low, GROWTH)), least)
            weights = oracle.weights.copy()
            weights[learnt] = np.sum(moved) / moved
            following = problem.oracle(weights, oracle.inner, target, curvature=True)
            damping = max(0.1 * damping, 1e-10)
            return _AnalyticState(following, state.tol, gap, share, origin=oracle, damping=damping)
        plain = norm.weights(oracle.quad)
        # a combination that led away is given up with what led to it
        kept = state.history if gap <= 2.0 * state.gap else []
        history = [*kept, (np.log(oracle.weights), np.log(plain) - np.log(oracle.weights))][-MEMORY:]
        point, change = history[-1]
        combined = point + change
        # Anderson: the combination of earlier points whose change would be smallest, moved by it
        if len(history) > 1:
            points = np.diff([earlier for earlier, _ in history], axis=0).T
            changes = np.diff([away for _, away in history], axis=0).T
            shares = np.linalg.lstsq(changes, change, rcond=1e-8)[0]
            combined = point + change - (points + changes) @ shares
            combined = np.clip(combined, point - 3.0, point + 3.0)  # nothing is known that far away
        following = problem.oracle(np.exp(combined), oracle.inner, target)
        return _AnalyticState(following, state.tol, gap, share, history)


def _by_newton(problem: MKLProblem) -> bool:
    """Whether the norm is a maximum over weights, of few enough kernels for Newton's method."""
    norm = problem.norm
    return not norm.convex_in_weights and norm.learnt(problem.m).size <= MOST_KERNELS


@dataclass
class _FixedState:
    oracle: Oracle
    target: float


class FixedWeights(Solver, registered_as="fixed_weights"):
    """Solve once with the given weights; again, more precisely, as long as the certificate asks for it."""

    needs = ("fixed weights",)
    default_max_iter = 8
    summary = "one SVM on the mean kernel or on given weights"

    def init(self, problem: MKLProblem, start: Point | None, tol: float) -> _FixedState:
        _, inner = begin(problem, start)
        return _FixedState(problem.oracle(problem.norm.start(problem.m), inner, 0.5 * tol), 0.5 * tol)

    def step(self, problem: MKLProblem, state: _FixedState) -> _FixedState:
        target = 0.1 * state.target
        return _FixedState(problem.oracle(state.oracle.weights, state.oracle.inner, target), target)
