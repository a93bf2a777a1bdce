"""The kernels that are best for given coefficients: what makes the lower bound tight.

``min over kernels of <slope, K> + rho sum_i L(A(K) - S_i)``, with ``A`` the embedding of the kernels among the targets.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..._numerics.deadline import check_time
from ..problems import DualPoint, SimilarityProblem

Array = NDArray[np.float64]

__all__ = ["PartialDual"]


@dataclass
class PartialDual:
    """Keeps its kernels (and for ADMM its multipliers) from one call to the next: coefficients change slowly."""

    kernels: Array | None = None
    split: Array | None = None  # kernels, scaled multipliers and penalty of ADMM
    scaled: Array | None = None
    penalty: float = 1.0

    def solve(
        self, problem: SimilarityProblem, beta: Array, shares: Array, start: Array, steps: int
    ) -> tuple[DualPoint, ...]:
        """Return points for the lower bound, and keep the best kernels for these coefficients."""
        slope = problem.slope(beta, shares)
        first = problem.residuals(start)[0]
        duals: list[DualPoint] = []
        if problem.loss.curvature(first) is not None:
            duals.append(self._reweighted(problem, beta, shares, slope, start, steps))
        # ADMM where there is no parabola, and where a residual vanishes: at a kink one gradient says nothing, and
        # the multiplier has to be found
        if problem.loss.prox(first, 1.0) is not None and (not duals or self._at_kink(problem)):
            duals.append(self._admm(problem, beta, shares, slope, start, steps))
        return tuple(duals)

    def _at_kink(self, problem: SimilarityProblem) -> bool:
        assert self.kernels is not None
        size = np.array([np.linalg.norm(X) for X in problem.residuals(self.kernels)])
        whole = np.array([np.linalg.norm(S) for S in problem.targets])
        smooth = problem.loss.curvature(1e-3 * problem.targets[0]) == problem.loss.curvature(
            problem.targets[0]
        )
        return not smooth and bool(np.any(size < 1e-2 * whole))

    def _reweighted(
        self,
        problem: SimilarityProblem,
        beta: Array,
        shares: Array,
        slope: Array,
        start: Array,
        steps: int,
    ) -> DualPoint:
        """Each loss replaced by the parabola ``c_i |X|^2`` that touches it: exact at once for the squared loss."""
        last, kernels = np.inf, start if self.kernels is None else self.kernels
        for _ in range(steps):
            check_time()
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
        start: Array,
        steps: int,
    ) -> DualPoint:
        """Residuals split off and shrunk by the loss's prox; ``penalty * scaled / rho`` is a subgradient."""
        S, rho = problem.targets, problem.rho
        kernels = start if self.split is None else self.split
        if self.scaled is None:
            Z = problem.multipliers(kernels)
            # a step of the prox that moves residuals by about a quarter of the similarities
            self.penalty = 4.0 * rho * max(float(np.linalg.norm(Z)), 1e-9) / float(np.linalg.norm(S))
            self.scaled = rho * Z / self.penalty
        U, t = self.scaled, self.penalty
        ones = problem.copies(np.ones(problem.m))
        Z, before = np.zeros_like(S), None
        embedded = problem.residuals(kernels) + S
        for _ in range(steps):
            check_time()
            moved = embedded - S + U
            X = np.stack([np.asarray(problem.loss.prox(matrix, rho / t)) for matrix in moved])
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
        self.split, self.scaled, self.penalty = kernels, U, t
        if problem.loss.curvature(S[0]) is None:
            self.kernels = kernels
        return DualPoint(beta, shares, Z, kernels)
