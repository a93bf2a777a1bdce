"""Alternating with analytic weights: Kloft's update for lp norms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..norms import Maximum
from ..problems import MKLProblem, Oracle, Point, relative_gap
from ._base import Solver
from ._start import begin, inner_target

__all__ = ["LpAnalytic"]


@dataclass
class _State:
    oracle: Oracle
    tol: float
    gap: float = np.inf
    #: share of the gap to which the coefficients are found
    share: float = 0.1


class LpAnalytic(Solver, registered_as="lp_analytic"):
    """Solve for the coefficients, then for the weights in closed form, and so on.

    Block coordinate descent on (f, d) jointly: from the block norms ``t_j = d_j sqrt(s_j)`` the weights that minimise
    ``sum t_j^2 / d_j`` (Kloft et al. 2011, for lp ``d_j ~ t_j^(2/(p+1))``).  The objective falls at every step.  With
    the maximum norm, a maximum over weights, the update is ``d_j ~ 1 / sqrt(s_j)``.
    """

    needs = ("analytic weights",)
    patience = 60
    summary = "SVM and closed-form weights in turn (Kloft et al. 2011)"

    def init(self, problem: MKLProblem, start: Point | None, tol: float) -> _State:
        weights, inner = begin(problem, start)
        return _State(problem.oracle(weights, inner, inner_target(1.0, tol)), tol)

    def step(self, problem: MKLProblem, state: _State) -> _State:
        oracle, norm = state.oracle, problem.norm
        if isinstance(norm, Maximum):
            weights = norm.weights(oracle.quad)
        else:
            weights = norm.weights_of_blocks(oracle.weights * np.sqrt(np.maximum(oracle.quad, 0.0)))
        gap = relative_gap(oracle.inner.primal, problem.dual(oracle.inner.beta, oracle.quad))
        # where the gap does not fall, weights of kernels with next to no part follow the rounding of their forms
        share = state.share if gap < 0.9 * state.gap else max(0.3 * state.share, 1e-6)
        target = inner_target(gap, state.tol, share)
        return _State(problem.oracle(weights, oracle.inner, target), state.tol, gap, share)

    def point(self, state: _State) -> Point:
        return state.oracle.point
