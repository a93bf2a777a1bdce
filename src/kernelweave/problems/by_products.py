"""The inner problem where the mixed kernel is something to multiply with, and no matrix; smooth losses.

The squared loss is one linear system, solved by preconditioned conjugate gradients that stop on the duality gap, which
costs O(n) a step.  Other smooth losses take Newton steps (``newton.descend``), whose directions are such systems on the
samples at which the loss is curved.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._numerics.stopping import out_of_time
from .._typing import Array
from ..losses import Loss
from .fixed import FixedSolution, Inner
from .newton import descend, shrunk_start

#: steps of conjugate gradients at most, and without a smaller gap before rounding has taken over
MOST_STEPS, IDLE = 500, 25


def serves(loss: Loss, y: Array, c: Array) -> bool:
    """Whether inner problems of a loss can be solved by products alone."""
    separate = not (loss.joint or loss.coupled)
    return loss.smoothness is not None and separate and loss.dual_budget(y, c) is None


def solve_by_products(inner: Inner, target: float, start: FixedSolution | None) -> FixedSolution:
    """Solve an inner problem of one column to a relative gap of ``target``."""
    beta, decision = shrunk_start(inner, start)
    if inner.loss.least_squares:
        return _solve_squares(inner, beta, decision, target)

    def direction(beta: Array, f: Array, gradient: Array, precise: float) -> Array:
        """Newton's direction: ``(K + E) s = -E g - K s'`` where the loss is curved, ``s' = -g`` elsewhere.

        g is ``beta + gradient``, E the inverse of the curvatures; with an intercept coefficients keep the sum of zero.
        """
        left = beta + gradient
        noise = noise_of(inner.loss, inner.y, -gradient, inner.c)
        curved = np.isfinite(noise)
        step = np.where(curved, 0.0, -left)
        right = np.where(curved, -noise * left, 0.0) if curved.all() else np.zeros(left.shape)
        if not curved.all():
            right[curved] = -noise[curved] * left[curved]
            if np.any(step):
                right[curved] -= (inner.K @ step)[curved]
        total = -float(np.sum(beta + step)) if inner.fit_intercept else None
        if curved.any():
            step = step + solve_system(inner.K, noise, right, total, precise)
        return step

    return descend(inner, direction, beta, decision, target, exact=False)


def noise_of(loss: Loss, y: Array, beta: Array, c: Array) -> Array:
    """Return the curvature of the conjugate loss at coefficients, infinite where they are at a bound."""
    noise = np.full(y.shape, np.inf)
    used = np.flatnonzero(c > 0)
    unit = beta[used] / c[used]
    free = used[loss.interior(y[used], unit)]
    noise[free] = loss.dual_curvature(y[free], beta[free] / c[free]) / c[free]
    return noise


def _solve_squares(inner: Inner, beta: Array, decision: Array, target: float) -> FixedSolution:
    """Solve ``(K + E) beta + b = y``, ``1'beta = 0`` with an intercept, until the gap is small."""
    y, used = inner.y, inner.c > 0
    noise = np.divide(0.5, inner.c, out=np.full(y.shape, np.inf), where=used)
    best = inner.assess(beta, decision, 0)
    if best.relative_gap <= target or not used.any():
        return best
    steps = _Steps(inner.K, noise, inner.fit_intercept, y - decision - np.where(used, noise, 0.0) * beta)
    idle = 0
    for count in range(1, MOST_STEPS + 1):
        length = steps.advance()
        beta, decision = beta + length * steps.direction, decision + length * steps.product
        solution = inner.assess(beta, decision, count)
        idle = 0 if solution.gap < 0.999 * best.gap else idle + 1
        best = solution if solution.gap < best.gap else best
        if best.relative_gap <= target or idle >= IDLE or length == 0.0 or out_of_time():
            break
    return best


def solve_system(
    K: Any, noise: Array, right: Array, total: float | None, precise: float, start: Array | None = None
) -> Array:
    """Solve ``(K + E) x + b = right`` on samples of finite noise, ``1'x = total`` where that is given.

    ``start`` is of the same total; ``precise`` is relative to the residual of zero.
    """
    used = np.isfinite(noise)
    x = np.zeros(right.shape) if start is None else start
    if start is None and total is not None and total != 0.0:
        x[used] = total / np.count_nonzero(used)
    steps = _Steps(K, noise, total is not None, right)
    enough = precise**2 * steps.size
    if np.any(x):
        steps.begin(right - np.where(used, K @ x + np.where(used, noise, 0.0) * x, 0.0))
    for _ in range(MOST_STEPS):
        if steps.size <= enough or out_of_time():
            break
        length = steps.advance()
        if length == 0.0:
            break
        x = x + length * steps.direction
    return x


class _Steps:
    """Preconditioned conjugate gradients for ``K + E``, on vectors that are zero where the noise is infinite.

    With ``balanced`` they also sum to zero: the preconditioner is projected (a constraint preconditioner), so that the
    intercept takes up any constant of the residual.
    """

    def __init__(self, K: Any, noise: Array, balanced: bool, residual: Array) -> None:
        self.K, self.used = K, np.isfinite(noise)
        self.noise = np.where(self.used, noise, 0.0)
        self.solve: Callable[[Array], Array] = K.inverse(noise)
        self.ones: Array | None = None
        if balanced:
            self.ones = self.solve(self.used.astype(float))
            if not float(np.sum(self.ones)) > 0.0:
                self.ones = None
        self.begin(residual)

    def begin(self, residual: Array) -> None:
        """Begin at a residual."""
        self.residual = np.where(self.used, residual, 0.0)
        self.direction, self.product = self._preconditioned(), np.zeros(residual.shape)
        self.size = float(self.residual @ self.direction)

    def _preconditioned(self) -> Array:
        z = self.solve(self.residual)
        if self.ones is not None:
            z = z - self.ones * (float(np.sum(z)) / float(np.sum(self.ones)))
        return z

    def advance(self) -> float:
        """Return the length of the next step along ``direction``, whose product with K is ``product``."""
        if self.product.any():  # not the first
            z = self._preconditioned()
            size = float(self.residual @ z)
            if not (size > 0.0 and self.size > 0.0):
                return 0.0
            self.direction, self.size = z + (size / self.size) * self.direction, size
        self.product = self.K @ self.direction
        moved = self.product + self.noise * self.direction
        bend = float(self.direction @ moved)
        if not bend > 0.0 or not self.size > 0.0:
            return 0.0
        length = self.size / bend
        self.residual = self.residual - length * np.where(self.used, moved, 0.0)
        return length
