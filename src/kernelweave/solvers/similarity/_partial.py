"""The kernels that are best for given coefficients: what makes the lower bound tight.

``min over kernels of <slope, K> + rho sum_i L(A(K) - S_i)``, with ``A`` the embedding of the kernels among the targets.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...problems.similarity import DualPoint, SimilarityProblem

Array = NDArray[np.float64]

__all__ = ["PartialDual"]


@dataclass
class PartialDual:
    """Keeps its kernels (and for ADMM its multipliers) from one call to the next: coefficients change slowly."""

    kernels: Array | None = None
    scaled: Array | None = None
    penalty: float = 1.0

    def solve(
        self, problem: SimilarityProblem, beta: Array, shares: Array, start: Array, steps: int
    ) -> DualPoint:
        """Return a point for the lower bound, and keep its kernels as ``self.kernels``."""
        slope = problem.slope(beta, shares)
        kernels = start if self.kernels is None else self.kernels
        X = problem.residuals(kernels)
        if problem.loss.curvature(X[0]) is not None:
            return self._reweighted(problem, beta, shares, slope, kernels, steps)
        if problem.loss.prox(X[0], 1.0) is not None:
            return self._admm(problem, beta, shares, slope, kernels, steps)
        self.kernels = start
        return DualPoint(beta, shares, kernels=start)

    def _reweighted(
        self,
        problem: SimilarityProblem,
        beta: Array,
        shares: Array,
        slope: Array,
        kernels: Array,
        steps: int,
    ) -> DualPoint:
        """Each loss replaced by the parabola ``c_i |X|^2`` that touches it: exact at once for the squared loss."""
        last = np.inf
        for _ in range(steps):
            c = problem.rho * np.array([problem.loss.curvature(X) for X in problem.residuals(kernels)])
            weighted = problem.pull(c.reshape(-1, *[1] * (problem.targets.ndim - 1)) * problem.targets)
            kernels = problem.project((weighted - 0.5 * slope) / problem.copies(c))
            value = float(np.sum(slope * kernels)) + problem.rho * float(problem.losses(kernels).sum())
            if abs(last - value) <= 1e-6 * abs(value):
                break
            last = value
        self.kernels = kernels
        return DualPoint(beta, shares, kernels=kernels)

    def _admm(
        self,
        problem: SimilarityProblem,
        beta: Array,
        shares: Array,
        slope: Array,
        kernels: Array,
        steps: int,
    ) -> DualPoint:
        """Residuals split off and shrunk by the loss's prox; ``penalty * scaled / rho`` is a subgradient."""
        S, rho = problem.targets, problem.rho
        if self.scaled is None:
            self.penalty = rho / problem.n * 4.0
            self.scaled = rho * problem.multipliers(kernels) / self.penalty
        U, t = self.scaled, self.penalty
        ones = problem.copies(np.ones(problem.m))
        Z, before = np.zeros_like(S), None
        embedded = problem.residuals(kernels) + S
        for _ in range(steps):
            moved = embedded - S + U
            X = np.stack([np.asarray(problem.loss.prox(one, rho / t)) for one in moved])
            Z = (t / rho) * (moved - X)
            kernels = problem.project((problem.pull(S + X - U) - slope / t) / ones)
            embedded = problem.residuals(kernels) + S
            apart = embedded - S - X
            U = U + apart
            if before is not None:  # neither the split nor the residuals may lag far behind the other
                split, change = float(np.linalg.norm(apart)), float(np.linalg.norm(X - before))
                factor = 2.0 if split > 5.0 * change else 0.5 if change > 5.0 * split else 1.0
                t, U = factor * t, U / factor
            before = X
        self.kernels, self.scaled, self.penalty = kernels, U, t
        return DualPoint(beta, shares, Z, kernels)
