"""Large n: solve on a working set of samples, evaluate all of them, let in those that disagree.

What is kept of all samples is the bank's image of the coefficients, their products with every kernel or something
smaller, where the kernels are: enough for the decision values under any weights, the quadratic forms and the
certificate.  The mixed kernel exists on the working set alone, so memory grows
with the number of support vectors, not with n.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._numerics.namespace import as_like, to_numpy
from .._numerics.resources import default_budget
from .._numerics.stopping import check_time, out_of_time
from .._typing import Array, Index
from ..banks import support
from ..banks.memory import refuse
from ..problems import Certificate, FixedSolution, MKLProblem, Point, relative_gap, solve_fixed
from ._base import Solver, inner_target
from .newton import Newton

#: rounds without a change of coefficients and weights after which nothing more is expected
IDLE = 20
#: relative change of a weight that is one
STEADY = 1e-9
#: share of the gap on all samples that second-order steps leave on the working set, and the most steps of a round
SHARE, STEPS = 0.3, 10


@dataclass(frozen=True)
class _WorkingSetState:
    tol: float
    working: Index
    beta: Array
    image: Any
    weights: Array
    quad: Array
    decision: Array
    # of the working set: with the best one of all samples only one class would ask to be let in
    intercept: Any = 0.0
    # values at which the last working set was chosen: how far they have moved since tells who may come back
    seen: Any = 0.0
    gap: float = np.inf
    idle: int = 0
    finished: bool = False


class WorkingSet(Solver, registered_as="working_set"):
    """One inner solve on a working set an iteration, weights between, and one read of n x (what moved).

    Samples with coefficients stay; of the others those enter that the current function treats worst, and those leave
    that would be content even if the function moved once more as it just has.  Between rounds
    the weights follow from the block norms (Kloft et al. 2011), so that samples and weights settle together.  Norms
    that have no closed form (l1, groups) take second-order steps in the weights on the working set instead.

    Parameters
    ----------
    first : int, default=2000
        Samples to begin with, drawn from every class alike.
    growth : float, default=1.0
        Samples let in at once, relative to the working set's size (at least half of ``first``).
    random_state : int, default=0
        Seed of the first working set.
    """

    needs = ("sparse dual", "convex or fixed weights")
    default_max_iter = 100
    mixes = False
    summary = "inner solves on a working set of samples, for large n"

    def __init__(self, first: int = 2000, growth: float = 1.0, random_state: int = 0) -> None:
        self.first = first
        self.growth = growth
        self.random_state = random_state

    def init(self, problem: MKLProblem, start: Point | None, tol: float) -> _WorkingSetState:
        weights = problem.norm.start(problem.m)
        beta = np.zeros(problem.y.shape)
        image: Any = 0.0
        # samples of every class (sign, for one column) in turn, so that none is left out
        rng = np.random.default_rng(self.random_state)
        order = rng.permutation(np.flatnonzero(problem.c.reshape(problem.n, -1)[:, 0] > 0))
        label = problem.y > 0 if problem.y.ndim == 1 else np.argmax(problem.y, axis=1)
        rank = np.empty(order.size, dtype=np.intp)
        for value in np.unique(label[order]):
            here = np.flatnonzero(label[order] == value)
            rank[here] = np.arange(here.size)
        working = np.sort(order[np.argsort(rank, kind="stable")][: self.first])
        if start is not None:
            weights = problem.norm.scaled(start.weights)
            beta = problem.repair(start.beta)
            image = problem.bank.image(beta)
            working = np.union1d(working, support(beta))
        quad, decision = np.zeros(problem.m), np.zeros(beta.shape)
        return self._round(problem, _WorkingSetState(tol, working, beta, image, weights, quad, decision))

    def step(self, problem: MKLProblem, state: _WorkingSetState) -> _WorkingSetState:
        weights, idle, decision = state.weights, state.idle, state.decision
        if problem.norm.analytic and not problem.norm.fixed:
            weights = problem.norm.weights_of_blocks(weights * np.sqrt(np.maximum(state.quad, 0.0)))
            # coefficients at their bounds stay there while the weights still move
            idle = idle if np.allclose(weights, state.weights, rtol=STEADY, atol=0.0) else 0
            # the weights moved, so whom the function treats worst is asked of the new one
            decision = to_numpy(problem.bank.image_mix(state.image, weights))
        f = decision + state.intercept
        # samples with coefficients, and those without that add most to the gap, no more than the set may grow by
        used = support(state.beta)
        # samples whose mixed kernel fits into memory together with the part of it that the SVM engine copies
        limit = problem.n
        if not problem.bank.on_device:
            limit = int(np.sqrt(default_budget() / (2 * problem.bank.mixed_itemsize)))
        gaps = losses_of(problem, f)
        gaps[used] = 0.0
        # what is below a share of the tolerance can stay outside for good
        worth = gaps > 0.1 * state.tol * float(np.sum(gaps)) / problem.n + 1e-15
        most = int(max(0.5 * self.first, self.growth * state.working.size))
        worst = np.argsort(-gaps)[: min(most, max(limit - used.size, 1))]
        working = np.union1d(used, np.sort(worst[worth[worst]]))
        # those of the old set stay that are near to violation: they would be if the function moved as it just has
        pace = float(np.sqrt(np.mean((f - state.seen) ** 2)))
        against = [f - pace * (problem.y > 0)] if problem.loss.joint else [f - pace, f + pace]
        would = np.max([losses_of(problem, moved)[state.working] for moved in against], axis=0)
        near = state.working[np.argsort(-would, kind="stable")[: np.count_nonzero(would > 0.0)]]
        near = np.setdiff1d(near, working, assume_unique=True)
        working = np.union1d(working, near[: max(0, limit - working.size)])
        return self._round(
            problem, replace(state, weights=weights, working=working, decision=decision, seen=f, idle=idle)
        )

    def _round(self, problem: MKLProblem, state: _WorkingSetState) -> _WorkingSetState:
        working = state.working
        needed = problem.bank.mixed_itemsize * working.size**2
        if needed > default_budget() and not problem.bank.on_device:
            raise refuse(
                f"a working set of {working.size} samples", needed, default_budget(),
                ["a smaller C (fewer support vectors)", "explicit features (kernels.nystroem)"],
            )  # fmt: skip
        check_time()
        if problem.norm.fixed or problem.norm.analytic:
            found, weights, intercept = self._inner(problem, state)
        else:
            # second-order steps on the working set, to a share of the gap that is left on all samples
            part, newton = problem.among(working), Newton()
            target = max(SHARE * min(state.gap, 1.0), SHARE * state.tol)
            known = state.beta[working]
            steps = newton.init(part, Point(known, state.weights) if np.any(known) else None, target)
            best: tuple[Point, Certificate] | None = None
            lower = -np.inf
            for _ in range(STEPS):
                point = newton.point(steps)
                certificate = part.certificate(point)
                lower = max(lower, certificate.dual)
                if best is None or certificate.primal < best[1].primal:
                    best = point, certificate
                if relative_gap(best[1].primal, lower) <= target or steps.finished or out_of_time():
                    break
                steps = newton.step(part, steps)
            assert best is not None
            found, weights, intercept = best[0].beta, best[0].weights, best[1].intercept
        change = np.zeros(state.beta.shape)
        change[working] = found - state.beta[working]
        moved = np.any(change) or not np.array_equal(weights, state.weights)
        image = state.image + problem.bank.image(change)
        beta = state.beta.copy()
        beta[working] = found  # exactly, so that zeros and bounds stay what they are
        quad = to_numpy(problem.bank.image_quad(image, as_like(beta, image)))
        decision = to_numpy(problem.bank.image_mix(image, weights))
        upper, _ = problem.primal(Point(beta, weights, quad, decision))
        gap = relative_gap(upper, problem.dual(beta, quad))
        idle = 0 if moved else state.idle + 1
        return _WorkingSetState(
            state.tol, working, beta, image, weights, quad, decision, intercept, state.seen, gap, idle,
            finished=idle >= IDLE,
        )  # fmt: skip

    def _inner(self, problem: MKLProblem, state: _WorkingSetState) -> tuple[Array, Array, Any]:
        """Coefficients of the working set for the weights as they are; those weights, and the intercept."""
        working = state.working
        known = state.beta[working]
        start = FixedSolution(known, np.zeros(known.shape), state.intercept, np.inf, -np.inf, 0)
        inner = solve_fixed(
            problem.bank.mixed(state.weights, working), problem.loss, problem.y[working], problem.c[working],
            problem.fit_intercept, inner_target(min(state.gap, 1.0), state.tol), start if np.any(known) else None,
        )  # fmt: skip
        return inner.beta, state.weights, inner.intercept

    def point(self, state: _WorkingSetState) -> Point:
        return Point(state.beta, state.weights, state.quad, state.decision)


def losses_of(problem: MKLProblem, f: Array) -> Array:
    """Every sample's loss times its weight: what it adds to the gap where it has no coefficients."""
    charged = problem.c[:, 0] if problem.loss.joint else problem.c
    each = charged * problem.loss.value(problem.y, f)
    return each if each.ndim == 1 else np.sum(each, axis=1)
