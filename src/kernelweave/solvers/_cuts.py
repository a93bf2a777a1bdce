"""The cutting-plane model of J on the simplex, shared by the methods that build one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from ..problems import MKLProblem, Oracle

Array = NDArray[np.float64]

__all__ = ["Cuts"]


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
        k, m = len(self.gains), self.problem.m
        cost = np.zeros(m + 1)
        cost[m] = 1.0
        matrix = np.hstack([self.slopes, -np.ones((k, 1))])
        ones = np.ones((1, m + 1))
        ones[0, m] = 0.0
        bounds = [(0.0, None)] * m + [(None, None)]
        result = linprog(
            cost, A_ub=matrix, b_ub=-self.gain, A_eq=ones, b_eq=[1.0], bounds=bounds, method="highs"
        )
        if result.x is None:
            raise FloatingPointError(f"the linear program of the cutting planes failed: {result.message}")
        weights = np.maximum(result.x[:m], 0.0)
        multipliers = np.maximum(-result.ineqlin.marginals, 0.0)
        return float(result.x[m]), weights / weights.sum(), multipliers / multipliers.sum()

    def dual_beta(self, multipliers: Array) -> Array:
        """Combine the coefficients: a point whose dual value is at least the model's minimum (Jensen)."""
        used = np.flatnonzero(multipliers)
        return np.asarray(sum(multipliers[k] * self.betas[k] for k in used))
