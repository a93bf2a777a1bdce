"""Pegasos for (2, r) norms: stochastic steps of length 1 / (lam t)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...problems import MKLProblem, Point
from .._base import Solver
from ._products import block_exponent
from ._run import OnlineRun

__all__ = ["Pegasos"]


@dataclass
class _State:
    run: OnlineRun


class Pegasos(Solver, registered_as="pegasos"):
    """Pegasos extended to (2, r) norms, as [OJC10] compares with it; an iteration is an epoch over the samples.

    ``theta += z`` on every loss, ``w`` from the norms of theta over ``lam t``.

    Parameters
    ----------
    random_state : int, default=0
        Seed of the order of the samples.
    """

    needs = ("stepwise loss", "block norm")
    summary = "stochastic steps of length 1 / (lam t) for (2, r) norms"
    intercepts = False
    default_max_iter = 1000
    mixes = False

    def __init__(self, random_state: int = 0) -> None:
        self.random_state = random_state

    def init(self, problem: MKLProblem, start: Point | None, tol: float) -> _State:
        return _State(OnlineRun(problem, block_exponent(problem.norm), self.random_state))

    def step(self, problem: MKLProblem, state: _State) -> _State:
        from ..._numerics.online import TIME
        from ..._numerics.online import UFO as RULE

        run = state.run
        run.epoch(RULE, cut=self._cut(problem, run))
        # every sample was visited equally often: theta / t is in the dual set (algorithms, section 2)
        to_dual = run.total / run.scalars[TIME]
        beta = (run.A * to_dual).reshape(problem.y.shape)
        run.offer_dual(beta, run.sq * to_dual**2)
        return state

    def _cut(self, problem: MKLProblem, run: OnlineRun) -> float:
        """Return what the threshold of the norms grows by in a step."""
        return 0.0

    def point(self, state: _State) -> Point:
        from ..._numerics.online import TIME, block_factors

        run = state.run
        t = max(run.scalars[TIME], 1.0)
        factors = np.zeros(run.problem.m)
        block_factors(run.sq, run.q, self._cut(run.problem, run) * t, factors)
        return run.point(factors, 1.0 / (run.lam * t))
