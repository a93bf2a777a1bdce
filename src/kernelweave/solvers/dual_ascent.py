"""Exact pairwise ascent on the dual of multiclass (2, r)-norm MKL: the precise companion of the online solvers."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..problems import MKLProblem, Point
from ._base import Solver
from .online._products import Products, block_exponent, classes_and_bounds, products_of

Array = NDArray[np.float64]

__all__ = ["DualAscent"]

#: epochs after which quadratic forms are computed afresh: updates leave rounding behind
REFRESH = 20


@dataclass(frozen=True)
class _State:
    products: Products
    beta: Array
    quad: Array
    weights: Array
    decision: Array
    gap: float
    epoch: int = 0
    finished: bool = False


class DualAscent(Solver, registered_as="dual_ascent"):
    """Move weight between two classes of one sample, exactly, on the dual with the norm in it; sample after sample.

    Always in the dual set, so the certificate is free.  An iteration is an epoch over the samples; those whose own part
    of the gap is small are passed over.

    Parameters
    ----------
    random_state : int, default=0
        Seed of the order of the samples.
    """

    needs = ("joint loss", "block norm")
    intercepts = False
    default_max_iter = 3000
    mixes = False
    summary = "exact pairwise ascent on the multiclass dual"

    def __init__(self, random_state: int = 0) -> None:
        self.random_state = random_state

    def init(self, problem: MKLProblem, start: Point | None, tol: float) -> _State:
        products = products_of(problem)
        beta = np.zeros(problem.y.shape)
        if start is not None:
            beta = np.ascontiguousarray(problem.repair(start.beta))
            products.reset(beta)
        return self._look(problem, products, beta, products.quad(beta), 0)

    def step(self, problem: MKLProblem, state: _State) -> _State:
        from .._numerics.online_ascent import Rows

        own, bound = classes_and_bounds(problem)
        rng = np.random.default_rng([self.random_state, state.epoch])
        quad, beta = state.quad.copy(), state.beta.copy()
        share = 0.1 * max(state.gap, 0.0) / problem.n
        rows = Rows(beta, quad, own, bound, block_exponent(problem.norm), share)
        moved = state.products.ascend(rng.permutation(problem.n), rows)
        epoch = state.epoch + 1
        if epoch % REFRESH == 0:
            state.products.reset(beta)
            quad = state.products.quad(beta)
        following = self._look(problem, state.products, beta, quad, epoch)
        return replace(following, finished=moved == 0)

    def _look(self, problem: MKLProblem, products: Products, beta: Array, quad: Array, epoch: int) -> _State:
        weights = problem.norm.weights(quad)
        decision = products.mixture(weights)
        value = problem.norm.conjugate(quad)
        upper = value + problem.loss.total(problem.y, decision, problem.c)
        return _State(products, beta, quad, weights, decision, upper - problem.gain(beta) + value, epoch)

    def point(self, state: _State) -> Point:
        return Point(state.beta, state.weights, state.quad, state.decision)
