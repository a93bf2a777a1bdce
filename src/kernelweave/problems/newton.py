"""Newton's method on the primal of the inner problem, for losses that are curved everywhere.

    min over beta, b   <beta, K beta> / 2 + sum_i c_i l(y_i, (K beta)_i + b)

The frame is the same for every loss: bounds from the gradient and from the iterate itself, a step no longer than the
objective falls, an end at the gap or where only rounding is left.  How a direction is found is up to a ``System``: one
Cholesky factor where every sample has one decision value, all classes together under a softmax (``softmax``).
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from .._numerics.deadline import time_left
from .certificate import Array
from .fixed import FixedSolution, Inner

__all__ = ["System", "descend", "solve_newton"]

#: iterations at most, and in a row without progress, or with steps shorter than this: then rounding has taken over
MOST, IDLE, SHORT = 100, 6, 1e-3
#: shortest step that is tried, and share of the slope that a step has to gain
SHORTEST, ENOUGH = 1e-10, 1e-4


class System:
    """How Newton's direction is found for one inner problem."""

    def ready(self) -> bool:
        """Whether there is time for another direction."""
        raise NotImplementedError

    def direction(self, beta: Array, f: Array, gradient: Array) -> Array:
        """Return Newton's direction in the coefficients."""
        raise NotImplementedError

    def sharpen(self) -> bool:
        """Whether the next direction will be better than the last one, along which nothing fell."""
        return False

    def stepped(self, length: float, relative_gap: float) -> None:
        """Learn from the length of a step, and from the gap before it."""


class _Judge:
    """The best bounds so far, and whether to go on."""

    def __init__(self, inner: Inner, target: float) -> None:
        self.inner, self.target = inner, target
        self.best: FixedSolution | None = None
        self.idle, self.lowest = 0, np.inf

    def look(
        self, beta: Array, decision: Array, gradient: Array, here: float, iteration: int
    ) -> FixedSolution:
        """Take an iterate with its objective into account; return the best solution so far."""
        inner, best = self.inner, self.best
        # the gradient at the best intercept is a point of the dual set: its sum is zero
        of_gradient = inner.project(-gradient)
        solution = inner.assess(of_gradient, inner.K @ of_gradient, iteration)
        if solution.relative_gap > self.target:
            # on a badly scaled matrix the gradient's rounding is multiplied by K, the iterate's own is not
            inside = inner.project(beta)
            product = decision if np.array_equal(inside, beta) else inner.K @ inside
            own = inner.assess(inside, product, iteration)
            solution = min(solution, own, key=lambda candidate: candidate.gap)
        better = best is None or solution.gap < 0.9 * best.gap
        fallen = here < self.lowest - 1e-9 * abs(self.lowest)
        self.idle = 0 if better or fallen else self.idle + 1
        self.lowest = min(here, self.lowest)
        self.best = solution if best is None or solution.gap < best.gap else best
        return self.best

    @property
    def satisfied(self) -> bool:
        """Whether the gap is reached, or nothing more can be gained."""
        return self.best is not None and (self.best.relative_gap <= self.target or self.idle >= IDLE)


def descend(inner: Inner, system: System, beta: Array, decision: Array, target: float) -> FixedSolution:
    """Take Newton steps from ``beta``, ``decision = K beta``, to a relative gap of ``target``."""
    judge, short = _Judge(inner, target), 0
    for iteration in range(1, MOST + 1):
        f = inner.with_intercept(decision)
        gradient = inner.gradient(f)
        here = inner.objective(beta, decision, f)
        best = judge.look(beta, decision, gradient, here, iteration)
        if judge.satisfied or not system.ready():
            break
        direction = system.direction(beta, f, gradient)
        moved = inner.K @ direction
        slope = float(np.vdot(beta + gradient, moved))
        length = _length(inner, beta, decision, direction, moved, here, slope)
        if length > 0.0:
            beta, decision = beta + length * direction, decision + length * moved
            system.stepped(length, best.relative_gap)
            short = short + 1 if length < SHORT else 0
            if short >= IDLE:
                break
        elif not system.sharpen():
            break
    return best


def _length(
    inner: Inner, beta: Array, decision: Array, direction: Array, moved: Array, here: float, slope: float
) -> float:
    """Length of the step: one, halved until the objective falls; zero where it never does."""
    length = 1.0
    while length > SHORTEST:
        trial = decision + length * moved
        value = inner.objective(beta + length * direction, trial, inner.with_intercept(trial))
        if value <= here + ENOUGH * length * min(slope, 0.0) + 1e-15 * abs(here):
            return length
        length *= 0.5
    return 0.0


# ---- one decision value per sample -----------------------------------------------------------------------------


def solve_newton(inner: Inner, target: float, start: FixedSolution | None) -> FixedSolution:
    """Solve an inner problem of one column, or of several that have the same curvature: the squared loss."""
    beta = decision = np.zeros(inner.y.shape)
    if start is not None:
        decision = inner.K @ start.beta
        factor = _shrunk_start(inner, start.beta, decision)
        beta, decision = factor * start.beta, factor * decision
    return descend(inner, _Column(inner), beta, decision, target)


class _Column(System):
    """``(K + W^-1) step + shift of b = -W^-1 (beta + g)``, W the curvatures and g the gradients of the loss.

    Columns of targets under the squared loss share W, and so the factor.  The system is solved in the form
    ``W^1/2 (I + W^1/2 K W^1/2)^-1 W^1/2`` that stays well conditioned where curvatures vanish.
    """

    def __init__(self, inner: Inner) -> None:
        self.inner = inner
        self.floor = 1e-14 * float(np.max(inner.c))
        self.factorising = 0.0

    def ready(self) -> bool:
        # a factorisation cannot be left in the middle: it is begun only where the last one would have fitted in
        return time_left() > self.factorising

    def direction(self, beta: Array, f: Array, gradient: Array) -> Array:
        inner = self.inner
        began = time.perf_counter()
        curvature = inner.c * inner.loss.curvature(inner.y, f)
        root = np.sqrt(np.maximum(curvature.reshape(len(curvature), -1)[:, 0], self.floor))
        column = root.reshape(-1, *(1,) * (beta.ndim - 1))
        solve = _inverse((root[:, None] * inner.K) * root[None, :])
        self.factorising = time.perf_counter() - began
        # from the residual, not for the new point: its rounding shrinks with it
        direction = -column * solve((beta + gradient) / column)
        if inner.fit_intercept:
            ones = root * solve(root)
            shift = np.sum(beta + direction, axis=0) / np.sum(ones)
            direction = direction - np.multiply.outer(ones, shift)
        return np.asarray(direction)


def _shrunk_start(inner: Inner, beta: Array, decision: Array) -> float:
    """Return the factor, at most one, that suits a start to a matrix that has grown since it was found.

    A function many times too large sits where a loss is flat, and Newton's method would halve its way back.
    """

    def primal(factor: float) -> float:
        return inner.assess(factor * beta, factor * decision, 0).primal

    best, value = 1.0, primal(1.0)
    for shrink in (0.5, *(10.0**-power for power in range(1, 17)), 0.0):
        trial = primal(shrink)
        if trial >= value:
            break
        best, value = shrink, trial
    return best


def _inverse(scaled: Array) -> Callable[[Array], Array]:
    """Return the product with ``(I + scaled)^-1`` of a positive semidefinite matrix.

    Entries beyond 1e16 have a rounding larger than the identity, and then there may be no Cholesky factor; eigenvalues
    tell what is rounding.
    """
    n = scaled.shape[0]
    try:
        system = scaled.copy()
        system.flat[:: n + 1] += 1.0
        factor = cho_factor(system, lower=True, overwrite_a=True, check_finite=False)
        return lambda rhs: np.asarray(cho_solve(factor, rhs, check_finite=False))
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(scaled)
    shrink = 1.0 / (1.0 + np.maximum(values, 0.0))
    return lambda rhs: np.asarray((vectors * shrink) @ (vectors.T @ rhs))
