"""Where solvers that alternate weights and inner solves begin, and how precisely they solve."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..problems import FixedSolution, MKLProblem, Point

__all__ = ["balanced_start", "begin", "inner_target"]

#: largest factor between the sizes of kernels that equal weights are fair to
ALIKE = 1e3


def begin(problem: MKLProblem, start: Point | None) -> tuple[NDArray[np.float64], FixedSolution | None]:
    """First weights, and an inner solution to start from where a point is given."""
    if start is None:
        return balanced_start(problem), None
    # the inner solver of a joint loss moves coefficients into the dual set itself, at less than a projection's cost
    beta = start.beta if problem.loss.joint else problem.repair(start.beta)
    return problem.norm.scaled(start.weights), FixedSolution(
        beta, np.zeros_like(beta), 0.0, np.inf, -np.inf, 0
    )


def balanced_start(problem: MKLProblem) -> NDArray[np.float64]:
    """First weights: equal, but for kernels of very different sizes those of blocks that make equal decision values.

    Kernels of raw data differ by powers of ten, and a mixture that is all but one kernel tells nothing of the others.
    A function of norm t in the space of a kernel with mean diagonal s has values of the size ``t sqrt(s)``.
    """
    equal = problem.norm.start(problem.m)
    if problem.norm.fixed or not (problem.norm.convex_in_weights or problem.norm.analytic):
        return equal
    sizes = np.mean(problem.bank.diag(), axis=1)
    there = sizes > 0
    if not np.any(there) or np.max(sizes[there]) <= ALIKE * np.min(sizes[there]):
        return equal
    if not problem.norm.convex_in_weights:  # the maximum norm: weights follow the quadratic forms
        return problem.norm.weights(sizes)
    blocks = np.where(there, np.sqrt(np.min(sizes[there]) / np.where(there, sizes, 1.0)), 0.0)
    return problem.norm.weights_of_blocks(blocks)


def inner_target(gap: float, tol: float, share: float = 0.1) -> float:
    """Relative gap for the next inner solve: a share of what is left, never finer than the goal needs."""
    return float(min(1e-2, max(share * gap, share * tol)))
