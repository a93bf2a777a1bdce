"""Where solvers that alternate weights and inner solves begin, and how precisely they solve."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..problems import FixedSolution, MKLProblem, Point

__all__ = ["begin", "inner_target"]


def begin(problem: MKLProblem, start: Point | None) -> tuple[NDArray[np.float64], FixedSolution | None]:
    """First weights, and an inner solution to start from where a point is given."""
    if start is None:
        return problem.norm.start(problem.m), None
    # the inner solver of a joint loss moves coefficients into the dual set itself, at less than a projection's cost
    beta = start.beta if problem.loss.joint else problem.repair(start.beta)
    return problem.norm.scaled(start.weights), FixedSolution(
        beta, np.zeros_like(beta), 0.0, np.inf, -np.inf, 0
    )


def inner_target(gap: float, tol: float, share: float = 0.1) -> float:
    """Relative gap for the next inner solve: a share of what is left, never finer than the goal needs."""
    return float(min(1e-2, max(share * gap, share * tol)))
