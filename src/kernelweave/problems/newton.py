"""Inner problems in the primal: Newton's method for curved losses, and accelerated gradients for kernels on a device.

    min over beta, b   <beta, K beta> / 2 + sum_i c_i l(y_i, (K beta)_i + b)

The frame is the same for every loss: bounds from the gradient and from the iterate itself, a step no longer than the
objective falls, an end at the gap or where only rounding is left.  How a direction is found is up to a ``System``: one
Cholesky factor where every sample has one decision value, all classes together under a softmax (``softmax``).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from .._numerics.namespace import as_like, cast, namespace, recorded, to_numpy
from .._numerics.projections import balance_rows, project_box, project_box_balanced, project_rows
from .._numerics.stopping import out_of_time, time_left
from .._typing import Array
from ..losses import Loss
from .fixed import FixedSolution, Inner

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


# ------------------------------------------------------------------------------------------------------------
# The inner problem by an accelerated first-order method: for a mixed kernel that lives on a device.
#
#     minimise 1/2 <beta, K beta> + 1/2 <ridge beta, beta> - <linear, beta>   over the dual set of the loss
#
# Accelerated projected gradient (Nesterov; Beck and Teboulle 2009) with restart where the momentum points
# uphill (O'Donoghue and Candes 2015).  A step is one product of K with k columns: the product at an
# extrapolated point follows from those at the two points before.  K may be in single precision; coefficients,
# products and sums are kept in double precision where the device has it.


#: products with K at most, and between two looks at the gap
MOST_FIRST_ORDER, BETWEEN = 20_000, 20
#: looks without a better gap after which rounding has taken over
IDLE_FIRST_ORDER = 30


def fits_first_order(loss: Loss, y: Array, c: Array) -> bool:
    """Whether the dual is quadratic on a set with a projection that devices know."""
    return (loss.joint and loss.smoothness is None) or (
        loss.has_quadratic_dual and loss.dual_budget(y, c) is None
    )


def solve_first_order(
    K: Any,
    loss: Loss,
    y: Array,
    c: Array,
    fit_intercept: bool,
    target: float,
    start: FixedSolution | None = None,
    most: int = MOST_FIRST_ORDER,
) -> FixedSolution:
    """Solve the inner problem on an array K of any library; the other arguments are those of ``solve_fixed``."""
    dual = _Dual(K, loss, y, c, fit_intercept)
    x = dual.project(dual.like(np.zeros(y.shape) if start is None else start.beta))
    Kx = dual.product(x)
    z, Kz, momentum, L = x, Kx, 1.0, dual.first_lipschitz()
    best = dual.assess(x, Kx, 1)
    used, idle, look = 1, 0, BETWEEN
    step = dual.replayed(x, z, Kz)
    while best.relative_gap > target and used < most and idle < IDLE_FIRST_ORDER and not out_of_time():
        L *= 0.95  # along the way the curvature is often far below the largest eigenvalue
        while True:
            new, Knew, told = step(x, z, Kz, L)
            bend, square, uphill = told.tolist()  # the one wait for the device
            used += 1
            if bend <= L * square * (1.0 + 1e-9) or used >= most:
                break
            L = max(2.0 * L, bend / square)
        t = 1.0 if uphill > 0.0 else momentum
        momentum = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
        mu = (t - 1.0) / momentum
        z, Kz = new + mu * (new - x), Knew + mu * (Knew - Kx)
        x, Kx = new, Knew
        if used >= look or square == 0.0:
            solution = dual.assess(x, Kx, used)
            idle = 0 if solution.relative_gap < 0.999 * best.relative_gap else idle + 1
            if solution.relative_gap < best.relative_gap:
                best = solution
            look = used + max(BETWEEN, used // 20)
            if square == 0.0:  # a fixed point
                break
    return best


class _Dual:
    """The dual objective and its set, in arrays of the kind of K."""

    def __init__(self, K: Any, loss: Loss, y: Array, c: Array, fit_intercept: bool) -> None:
        self.K, self.loss, self.y, self.c, self.fit_intercept = K, loss, y, c, fit_intercept
        self.inner = Inner(K, loss, y, c, fit_intercept)
        xp = namespace(K)
        device = getattr(K, "device", None)
        # Apple's devices have no double precision
        self.kind = np.ones(1) if device is None or xp is np else xp.ones(
            1, dtype=xp.float32 if getattr(device, "type", "cpu") == "mps" else xp.float64, device=device
        )  # fmt: skip
        self.shift: Any = None
        if loss.joint:
            self.upper = self.like(np.where(y > 0, c, 0.0))
            self.linear, self.ridge = self.like(np.where(y > 0, 1.0, 0.0)), self.like(np.zeros(y.shape))
        else:
            quadratic = loss.quadratic_dual(y)
            assert quadratic is not None
            low, high = loss.box(y, c)
            self.low, self.high = self.like(_finite(low, y)), self.like(_finite(high, y))
            self.linear = self.like(quadratic.linear)
            ridge = np.divide(quadratic.ridge, c, out=np.zeros(c.shape), where=c > 0)
            self.ridge = self.like(ridge)

    def like(self, values: Array) -> Any:
        table = np.asarray(values, dtype=float)
        return as_like(table[:, None] if table.ndim == 1 else table, self.kind)

    def product(self, beta: Any) -> Any:
        """``K beta``; K is symmetric, and few rows times a wide matrix are quicker than the other way round."""
        return cast((cast(beta.T, self.K.dtype) @ self.K).T, self.kind.dtype)

    def step(self, x: Any, z: Any, Kz: Any, L: Any) -> tuple[Any, Any, Any]:
        """A projected gradient step from z: the new point, its product, and three numbers about it.

        These are the curvature along the move times its square, that square, and the slope of the momentum, which is
        positive where it points uphill.
        """
        new = self.project(z - (Kz - self.linear + self.ridge * z) / L)
        Knew = self.product(new)
        moved = new - z
        bend = (moved * (Knew - Kz)).sum() + (self.ridge * moved * moved).sum()
        told = namespace(new).stack([bend, (moved * moved).sum(), -(moved * (new - x)).sum()])
        return new, Knew, told

    def replayed(self, x: Any, z: Any, Kz: Any) -> Callable[..., tuple[Any, Any, Any]]:
        """``step``, recorded once and replayed where launching its parts would take longer than they do."""
        if getattr(getattr(self.K, "device", None), "type", "cpu") != "cuda" or not self._recordable:
            return self.step
        return recorded(self.step, x, z, Kz, as_like(1.0, self.kind))

    @property
    def _recordable(self) -> bool:
        """Whether no part of a step waits for the device: balanced projections look at their sums."""
        return not self.fit_intercept

    def first_lipschitz(self) -> float:
        """Largest eigenvalue, roughly and from below: some steps of the power method."""
        rng = np.random.default_rng(0)
        v = self.like(np.asarray(1.0 + rng.standard_normal(self.y.shape[0])))
        size = 1.0
        for _ in range(5):
            v = v / float((v * v).sum()) ** 0.5
            v = self.product(v)
            size = max(float((v * v).sum()) ** 0.5, float(np.finfo(float).tiny))
        return size + float(namespace(v).max(self.ridge))

    def assess(self, beta: Any, product: Any, used: int) -> FixedSolution:
        """Bounds, on the host and in double precision."""
        inside = to_numpy(beta).astype(float).reshape(self.y.shape)
        decision = to_numpy(product).astype(float).reshape(self.y.shape)
        return self.inner.assess(inside, decision, used)

    def project(self, v: Any) -> Any:
        """Nearest coefficients in the dual set."""
        return self._project_rows(v) if self.loss.joint else self._project_box(v)

    def _project_rows(self, v: Any) -> Any:
        if not self.fit_intercept:
            return project_rows(v, self.upper)
        x, self.shift = balance_rows(v, self.upper, start=self.shift)
        return x

    def _project_box(self, v: Any) -> Any:
        if self.fit_intercept:
            return project_box_balanced(v, self.low, self.high)
        return project_box(v, self.low, self.high)


def _finite(bound: Array, y: Array) -> Array:
    """Bounds of a squared loss reach to infinity; no coefficient is as large as this."""
    far = 1e8 * max(float(np.max(np.abs(y))), 1.0)
    return np.clip(bound, -far, far)
