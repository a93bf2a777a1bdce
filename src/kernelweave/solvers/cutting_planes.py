"""Cutting planes on the simplex: SILP, one linear program per iteration, and the level method."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from .._numerics.quadratic import solve_qp
from .._typing import Array
from ..problems import MKLProblem, Oracle, Point, relative_gap
from ._base import Solver, begin, inner_target


class Cuts:
    """``J(d) >= gain_k - d's_k / 2`` for every coefficient vector beta_k seen so far."""

    def __init__(self, problem: MKLProblem) -> None:
        self.problem = problem
        self.gains: list[float] = []
        self.quads: list[Array] = []
        self.betas: list[Array] = []

    def add(self, oracle: Oracle) -> None:
        """Add the cut of one more inner solution."""
        self.gains.append(self.problem.gain(oracle.inner.beta))
        self.quads.append(oracle.quad)
        self.betas.append(oracle.inner.beta)

    @property
    def gain(self) -> Array:
        """Constant terms, ``(k,)``."""
        return np.array(self.gains)

    @property
    def slopes(self) -> Array:
        """Gradients ``-s_k / 2``, ``(k, m)``."""
        return -0.5 * np.array(self.quads)

    def minimise(self) -> tuple[float, Array, Array]:
        """Lowest value of the model on the simplex, where it is, and the multipliers of the cuts."""
        return lowest_on_simplex(self.gain, self.slopes)

    def dual_beta(self, multipliers: Array) -> Array:
        """Combine the coefficients: a point whose dual value is at least the model's minimum (Jensen)."""
        used = np.flatnonzero(multipliers)
        return np.asarray(sum(multipliers[k] * self.betas[k] for k in used))


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


class CuttingPlanes(Solver):
    """A method that minimises the model, solves at weights of its choice (``choose``), and adds the cut there."""

    needs = ("simplex",)

    def choose(self, cuts: Cuts, lowest: Array, last: Array, lower: float, upper: float) -> Array:
        """Return the weights to solve at.

        ``lowest`` are those where the model has its minimum ``lower``, ``last`` those of the last cut; ``upper`` is the
        best value so far.
        """
        raise NotImplementedError

    def init(self, problem: MKLProblem, start: Point | None, tol: float) -> CutState:
        weights, inner = begin(problem, start)
        oracle = problem.oracle(weights, inner, inner_target(1.0, tol))
        cuts = Cuts(problem)
        cuts.add(oracle)
        return CutState(cuts, oracle, oracle, tol)

    def step(self, problem: MKLProblem, state: CutState) -> CutState:
        cuts, upper = state.cuts, state.best.inner.primal
        lower, lowest, multipliers = cuts.minimise()
        weights = self.choose(cuts, lowest, state.last.weights, lower, upper)
        target = inner_target(relative_gap(upper, lower), state.tol)
        oracle = problem.oracle(weights, state.last.inner, target)
        cuts.add(oracle)
        best = oracle if oracle.inner.primal < upper else state.best
        return CutState(cuts, oracle, best, state.tol, cuts.dual_beta(np.append(multipliers, 0.0)))

    def point(self, state: CutState) -> Point:
        p = state.best.point
        return Point(p.beta, p.weights, p.quad, p.decision, state.dual_beta)


class Silp(CuttingPlanes, registered_as="silp"):
    """Minimise the cutting-plane model by an LP (HiGHS), solve there, add the cut (Sonnenburg et al. 2006)."""

    summary = "cutting planes, one LP per iteration (Sonnenburg et al. 2006)"

    def choose(self, cuts: Cuts, lowest: Array, last: Array, lower: float, upper: float) -> Array:
        return lowest


class Level(CuttingPlanes, registered_as="level"):
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

    def choose(self, cuts: Cuts, lowest: Array, last: Array, lower: float, upper: float) -> Array:
        """Return the weights on the simplex nearest to ``last`` where the model is at most at the level."""
        level = lower + self.level * max(upper - lower, 0.0)
        m = last.size
        rows = np.vstack([-np.eye(m), cuts.slopes])
        limits = np.concatenate([np.zeros(m), level - cuts.gain])
        # the rows are scaled to the size of the simplex constraint, or the interior point method loses digits
        size = np.maximum(np.linalg.norm(rows, axis=1), 1e-300)
        x, _ = solve_qp(
            np.eye(m), -last, rows / size[:, None], limits / size, np.ones((1, m)), np.ones(1)
        )  # fmt: skip
        x = np.where(x > 1e-9, x, 0.0)
        return x / np.sum(x)
