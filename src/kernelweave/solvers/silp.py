"""Semi-infinite linear programming: cutting planes, one LP per iteration."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..problems import MKLProblem, Oracle, Point, relative_gap
from ._base import Solver
from ._cuts import Cuts
from ._start import begin, inner_target

__all__ = ["Silp"]


@dataclass
class _State:
    cuts: Cuts
    last: Oracle
    best: Oracle
    tol: float
    dual_beta: NDArray[np.float64] | None = None


class Silp(Solver, registered_as="silp"):
    """Minimise the cutting-plane model by an LP (HiGHS), solve there, add the cut (Sonnenburg et al. 2006)."""

    needs = ("simplex",)
    summary = "cutting planes, one LP per iteration (Sonnenburg et al. 2006)"

    def init(self, problem: MKLProblem, start: Point | None, tol: float) -> _State:
        weights, inner = begin(problem, start)
        oracle = problem.oracle(weights, inner, inner_target(1.0, tol))
        cuts = Cuts(problem)
        cuts.add(oracle)
        return _State(cuts, oracle, oracle, tol)

    def step(self, problem: MKLProblem, state: _State) -> _State:
        lower, weights, multipliers = state.cuts.minimise()
        gap = relative_gap(state.best.inner.primal, lower)
        oracle = problem.oracle(weights, state.last.inner, inner_target(gap, state.tol))
        state.cuts.add(oracle)
        best = oracle if oracle.inner.primal < state.best.inner.primal else state.best
        return _State(state.cuts, oracle, best, state.tol, state.cuts.dual_beta(np.append(multipliers, 0.0)))

    def point(self, state: _State) -> Point:
        p = state.best.point
        return Point(p.beta, p.weights, p.quad, p.decision, state.dual_beta)
