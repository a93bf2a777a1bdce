"""The level method: cutting planes with projections that keep the iterates calm."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._numerics.small_qp import solve_qp
from ..problems import MKLProblem, Oracle, Point, relative_gap
from ._base import Solver
from ._cuts import Cuts
from ._start import begin, inner_target

Array = NDArray[np.float64]

__all__ = ["Level"]


@dataclass
class _State:
    cuts: Cuts
    last: Oracle
    best: Oracle
    tol: float
    dual_beta: Array | None = None


class Level(Solver, registered_as="level"):
    """Project the last weights on a level set of the cutting-plane model (Xu et al. 2009).

    Parameters
    ----------
    level : float, default=0.9
        Position of the level between the model's minimum (0) and the best value (1); the paper's lambda.
    """

    needs = ("simplex",)
    summary = "cutting planes projected on a level set (Xu et al. 2009)"

    def __init__(self, level: float = 0.9) -> None:
        self.level = level

    def init(self, problem: MKLProblem, start: Point | None, tol: float) -> _State:
        if not 0.0 < self.level < 1.0:
            raise ValueError(f"Level needs 0 < level < 1, got {self.level!r}")
        weights, inner = begin(problem, start)
        oracle = problem.oracle(weights, inner, inner_target(1.0, tol))
        cuts = Cuts(problem)
        cuts.add(oracle)
        return _State(cuts, oracle, oracle, tol)

    def step(self, problem: MKLProblem, state: _State) -> _State:
        cuts = state.cuts
        lower, _, multipliers = cuts.minimise()
        upper = state.best.inner.primal
        gap = relative_gap(upper, lower)
        weights = self._project(cuts, state.last.weights, lower + self.level * max(upper - lower, 0.0))
        oracle = problem.oracle(weights, state.last.inner, inner_target(gap, state.tol))
        cuts.add(oracle)
        best = oracle if oracle.inner.primal < state.best.inner.primal else state.best
        return _State(cuts, oracle, best, state.tol, cuts.dual_beta(np.append(multipliers, 0.0)))

    def _project(self, cuts: Cuts, weights: Array, level: float) -> Array:
        """Nearest weights on the simplex where the model is at most ``level``."""
        m = weights.size
        rows = np.vstack([-np.eye(m), cuts.slopes])
        limits = np.concatenate([np.zeros(m), level - cuts.gain])
        # the rows are scaled to the size of the simplex constraint, or the interior point method loses digits
        size = np.maximum(np.linalg.norm(rows, axis=1), 1e-300)
        x, _ = solve_qp(
            np.eye(m), -weights, rows / size[:, None], limits / size, np.ones((1, m)), np.ones(1)
        )  # fmt: skip
        x = np.where(x > 1e-9, x, 0.0)
        return x / np.sum(x)

    def point(self, state: _State) -> Point:
        p = state.best.point
        return Point(p.beta, p.weights, p.quad, p.decision, state.dual_beta)
