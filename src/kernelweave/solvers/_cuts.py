"""The cutting-plane model of J on the simplex, and what the methods that build one share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from ..problems import MKLProblem, Oracle, Point, relative_gap
from ._base import Solver
from ._start import begin, inner_target

Array = NDArray[np.float64]

__all__ = ["Cuts", "CuttingPlanes", "State", "lowest_on_simplex"]


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
class State:
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

    def init(self, problem: MKLProblem, start: Point | None, tol: float) -> State:
        weights, inner = begin(problem, start)
        oracle = problem.oracle(weights, inner, inner_target(1.0, tol))
        cuts = Cuts(problem)
        cuts.add(oracle)
        return State(cuts, oracle, oracle, tol)

    def step(self, problem: MKLProblem, state: State) -> State:
        cuts, upper = state.cuts, state.best.inner.primal
        lower, lowest, multipliers = cuts.minimise()
        weights = self.choose(cuts, lowest, state.last.weights, lower, upper)
        target = inner_target(relative_gap(upper, lower), state.tol)
        oracle = problem.oracle(weights, state.last.inner, target)
        cuts.add(oracle)
        best = oracle if oracle.inner.primal < upper else state.best
        return State(cuts, oracle, best, state.tol, cuts.dual_beta(np.append(multipliers, 0.0)))

    def point(self, state: State) -> Point:
        p = state.best.point
        return Point(p.beta, p.weights, p.quad, p.decision, state.dual_beta)
