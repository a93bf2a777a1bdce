"""Alternating with analytic weights: Kloft's update for lp norms."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..problems import MKLProblem, Oracle, Point, relative_gap
from ._base import Solver
from ._start import begin, inner_target

__all__ = ["LpAnalytic"]


Array = NDArray[np.float64]

#: earlier updates that an accelerated one is combined of
MEMORY = 5


@dataclass
class _State:
    oracle: Oracle
    tol: float
    gap: float = np.inf
    #: share of the gap to which the coefficients are found
    share: float = 0.1
    #: logarithms of weights, and by how much the closed form would change them
    history: list[tuple[Array, Array]] = field(default_factory=list)


class LpAnalytic(Solver, registered_as="lp_analytic"):
    """Solve for the coefficients, then for the weights in closed form, and so on.

    Block coordinate descent on (f, d) jointly: from the block norms ``t_j = d_j sqrt(s_j)`` the weights that minimise
    ``sum t_j^2 / d_j`` (Kloft et al. 2011, for lp ``d_j ~ t_j^(2/(p+1))``).  The objective falls at every step.  With
    the maximum norm, a maximum over weights, the update is ``d_j ~ 1 / sqrt(s_j)``; there the gap needs all block norms
    equal, plain updates are slow at that, and Anderson's combination of the last few is taken while it helps.
    """

    needs = ("analytic weights",)
    most_idle = 12
    summary = "SVM and closed-form weights in turn (Kloft et al. 2011)"

    def init(self, problem: MKLProblem, start: Point | None, tol: float) -> _State:
        weights, inner = begin(problem, start)
        return _State(problem.oracle(weights, inner, inner_target(1.0, tol)), tol)

    def step(self, problem: MKLProblem, state: _State) -> _State:
        oracle, norm = state.oracle, problem.norm
        upper = oracle.inner.primal + norm.penalty(oracle.weights)
        gap = relative_gap(upper, problem.dual(oracle.inner.beta, oracle.quad))
        # where the gap does not fall, weights of kernels with next to no part follow the rounding of their forms
        share = state.share if gap < 0.9 * state.gap else max(0.3 * state.share, 1e-3)
        target = inner_target(gap, state.tol, share)
        if norm.convex_in_weights:
            weights = norm.weights_of_blocks(oracle.weights * np.sqrt(np.maximum(oracle.quad, 0.0)))
            return _State(problem.oracle(weights, oracle.inner, target), state.tol, gap, share)
        plain = norm.weights(oracle.quad)
        # a combination that led away is given up with what led to it
        kept = state.history if gap <= 2.0 * state.gap else []
        history = [*kept, (np.log(oracle.weights), np.log(plain) - np.log(oracle.weights))][-MEMORY:]
        weights = np.exp(_combined(history))
        return _State(problem.oracle(weights, oracle.inner, target), state.tol, gap, share, history)

    def point(self, state: _State) -> Point:
        return state.oracle.point


def _combined(history: list[tuple[Array, Array]]) -> Array:
    """Anderson's combination of earlier points: the one whose change would be smallest, moved by it."""
    x, change = history[-1]
    if len(history) == 1:
        return x + change
    points = np.diff([point for point, _ in history], axis=0).T
    changes = np.diff([moved for _, moved in history], axis=0).T
    share = np.linalg.lstsq(changes, change, rcond=1e-8)[0]
    combined = x + change - (points + changes) @ share
    return np.clip(combined, x - 3.0, x + 3.0)  # nothing is known that far away
