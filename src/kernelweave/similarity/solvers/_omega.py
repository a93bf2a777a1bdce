"""(10) of [KTBB10]: an SVM, and the weights ``1 / gamma`` of kernels under the block norm (2, inf), in turn."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..._numerics.deadline import out_of_time
from ...problems import FixedSolution, relative_gap
from ..problems import SimilarityProblem

Array = NDArray[np.float64]

__all__ = ["solve_omega"]


def solve_omega(
    problem: SimilarityProblem,
    kernels: Array,
    weights: Array,
    target: float,
    start: FixedSolution | None = None,
    rounds: int = 10,
) -> tuple[FixedSolution, Array, float]:
    """Return an SVM's solution, the weights it was solved with, and the objective there; the best of some rounds.

    With one kernel this is a single SVM.  ``norm="max"`` of ``MKLClassifier`` is the same for kernels that are given.
    """
    charge = problem.rho * float(problem.losses(kernels).sum())
    best: tuple[FixedSolution, Array, float] | None = None
    for _ in range(1 if problem.k == 1 else rounds):
        start = problem.svm(kernels, weights, target, start)
        products = problem.products(kernels, start.beta)
        q = np.maximum(problem.quad(products, start.beta), 0.0)
        f = np.tensordot(weights, products, axes=1) + start.intercept
        upper = problem.norm.half_square(weights * np.sqrt(q)) + problem.hinge.total(problem.y, f, problem.c)
        lower = problem.gain(start.beta) - problem.norm.conjugate(q)
        if best is None or upper + charge < best[2]:
            best = start, weights, upper + charge
        if relative_gap(upper, lower) <= 10 * target or out_of_time():
            break
        weights = problem.norm.weights(q)
    assert best is not None
    return best
