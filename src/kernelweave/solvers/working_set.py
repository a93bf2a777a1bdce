"""Large n: solve on a working set of samples, look at all of them, let in those that disagree.

What is kept of all samples are their products with every kernel, ``(m, n[, k])``: enough for the decision values under
any weights, the quadratic forms and the certificate.  The mixed kernel exists on the working set alone, so memory grows
with the number of support vectors, not with n.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._numerics.deadline import check_time
from ..banks import support
from ..banks.memory import default_budget, refuse
from ..problems import FixedSolution, MKLProblem, Point, relative_gap, solve_fixed
from ._base import Solver
from ._start import inner_target

Array = NDArray[np.float64]
Index = NDArray[np.intp]

__all__ = ["WorkingSet"]

#: rounds without a change of the coefficients after which nothing more is expected
IDLE = 20


@dataclass(frozen=True)
class _State:
    tol: float
    working: Index
    beta: Array
    products: Array
    weights: Array
    quad: Array
    decision: Array
    # of the working set: with the best one of all samples only one class would ask to be let in
    intercept: Any = 0.0
    gap: float = np.inf
    idle: int = 0

    @property
    def finished(self) -> bool:
        return self.idle >= IDLE


class WorkingSet(Solver, registered_as="working_set"):
    """One inner solve on a working set an iteration, closed-form weights between, and one read of n x (what moved).

    Samples with coefficients stay; of the others those enter that the current function treats worst.  Between rounds
    the weights follow from the block norms (Kloft et al. 2011), so that samples and weights settle together.

    Parameters
    ----------
    first : int, default=2000
        Samples to begin with, drawn from every class alike.
    growth : float, default=1.0
        Samples let in at once, relative to the working set's size (at least half of ``first``).
    random_state : int, default=0
        Seed of the first working set.
    """

    needs = ("sparse dual", "closed-form or fixed weights")
    default_max_iter = 100
    mixes = False
    summary = "inner solves on a working set of samples, for large n"

    def __init__(self, first: int = 2000, growth: float = 1.0, random_state: int = 0) -> None:
        self.first = first
        self.growth = growth
        self.random_state = random_state

    def init(self, problem: MKLProblem, start: Point | None, tol: float) -> _State:
        weights = problem.norm.start(problem.m)
        beta = np.zeros(problem.y.shape)
        products = np.zeros((problem.m, *problem.y.shape))
        working = self._sample(problem)
        if start is not None:
            weights = problem.norm.scaled(start.weights)
            beta = problem.repair(start.beta)
            products = problem.bank.apply(beta)
            working = np.union1d(working, support(beta))
        return self._round(
            problem, _State(tol, working, beta, products, weights, np.zeros(problem.m), np.zeros(beta.shape))
        )

    def _sample(self, problem: MKLProblem) -> Index:
        """Samples of every class (sign, for one column) in turn, so that none is left out."""
        rng = np.random.default_rng(self.random_state)
        order = rng.permutation(np.flatnonzero(problem.c.reshape(problem.n, -1)[:, 0] > 0))
        label = problem.y > 0 if problem.y.ndim == 1 else np.argmax(problem.y, axis=1)
        rank = np.empty(order.size, dtype=np.intp)
        for value in np.unique(label[order]):
            here = np.flatnonzero(label[order] == value)
            rank[here] = np.arange(here.size)
        return np.sort(order[np.argsort(rank, kind="stable")][: self.first])

    def step(self, problem: MKLProblem, state: _State) -> _State:
        weights = state.weights
        if not problem.norm.fixed:
            weights = problem.norm.weights_of_blocks(weights * np.sqrt(np.maximum(state.quad, 0.0)))
        # the weights moved, so whom the function treats worst is asked of the new one
        decision = np.tensordot(weights, state.products, axes=1)
        entering = self._violators(problem, state, decision)
        working = np.union1d(support(state.beta), entering)
        return self._round(problem, replace(state, weights=weights, working=working, decision=decision))

    def _violators(self, problem: MKLProblem, state: _State, decision: Array) -> Index:
        """Samples without coefficients that add most to the gap, and no more than the set may grow by."""
        gaps = row_gaps(problem, state.beta, decision + state.intercept)
        gaps[support(state.beta)] = 0.0
        # what is below a share of the tolerance can stay outside for good
        worth = gaps > 0.1 * state.tol * float(np.sum(gaps)) / problem.n + 1e-15
        most = int(max(0.5 * self.first, self.growth * state.working.size))
        ordered = np.argsort(-gaps)[:most]
        return np.sort(ordered[worth[ordered]])

    def _round(self, problem: MKLProblem, state: _State) -> _State:
        working = state.working
        needed = 8 * working.size**2
        if needed > default_budget() and not problem.bank.on_device:
            raise refuse(
                f"a working set of {working.size} samples", needed, default_budget(),
                ["a smaller C (fewer support vectors)", "explicit features (kernels.nystroem)"],
            )  # fmt: skip
        check_time()
        K = problem.bank.mixed(state.weights, working)
        y, c = problem.y[working], problem.c[working]
        start = FixedSolution(
            state.beta[working], np.zeros(state.beta[working].shape), state.intercept, np.inf, -np.inf, 0
        )
        target = inner_target(min(state.gap, 1.0), state.tol)
        inner = solve_fixed(
            K, problem.loss, y, c, problem.fit_intercept, target, start if np.any(start.beta) else None
        )
        del K
        change = np.zeros(state.beta.shape)
        change[working] = inner.beta - state.beta[working]
        moved = float(np.max(np.abs(change), initial=0.0))
        products = state.products + problem.bank.apply(change)
        beta = state.beta + change
        beta[working] = inner.beta  # exactly, so that zeros and bounds stay what they are
        quad = np.sum(products * beta, axis=tuple(range(1, products.ndim)))
        decision = np.tensordot(state.weights, products, axes=1)
        upper, _ = problem.primal(Point(beta, state.weights, quad, decision))
        gap = relative_gap(upper, problem.dual(beta, quad))
        return _State(
            state.tol,
            working,
            beta,
            products,
            state.weights,
            quad,
            decision,
            inner.intercept,
            gap,
            state.idle + 1 if moved == 0.0 else 0,
        )

    def point(self, state: _State) -> Point:
        return Point(state.beta, state.weights, state.quad, state.decision)


def row_gaps(problem: MKLProblem, beta: Array, f: Array) -> Array:
    """Every sample's part of the gap, ``c l(y, f) + c l*(-beta / c) + beta f``; zero where it is content."""
    y, c, loss = problem.y, problem.c, problem.loss
    used = c > 0
    unit = np.divide(beta, c, out=np.zeros_like(beta), where=used)
    with np.errstate(invalid="ignore"):
        young = loss.value(y, f) + loss.conjugate(y, -unit)
        if loss.joint:
            gaps = c[:, 0] * young + np.sum(beta * f, axis=1)
        else:
            gaps = np.where(used, c * young + beta * f, 0.0)
            gaps = gaps if gaps.ndim == 1 else np.sum(gaps, axis=1)
    return np.where(np.isfinite(gaps), np.maximum(gaps, 0.0), 0.0)
