"""The inner problem by an accelerated first-order method: for a mixed kernel that lives on a device.

    minimise 1/2 <beta, K beta> + 1/2 <ridge beta, beta> - <linear, beta>   over the dual set of the loss

Accelerated projected gradient (Nesterov; Beck and Teboulle 2009) with restart where the momentum points uphill
(O'Donoghue and Candes 2015).  A step is one product of K with k columns: the product at an extrapolated point follows
from those at the two points before.  K may be in single precision; coefficients, products and sums are kept in double
precision where the device has it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._numerics.column_boxes import project_box, project_box_balanced
from .._numerics.cuda_graph import recorded
from .._numerics.deadline import out_of_time
from .._numerics.namespace import as_like, cast, namespace, to_numpy
from .._numerics.row_simplex import balance_rows, project_rows
from ..losses import Loss
from .certificate import Array
from .fixed import FixedSolution, Inner

__all__ = ["fits_first_order", "solve_first_order"]

#: products with K at most, and between two looks at the gap
MOST, BETWEEN = 20_000, 20
#: looks without a better gap after which rounding has taken over
IDLE = 30


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
    most: int = MOST,
) -> FixedSolution:
    """Solve the inner problem on an array K of any library; the other arguments are those of ``solve_fixed``."""
    dual = _Dual(K, loss, y, c, fit_intercept)
    x = dual.project(dual.like(np.zeros(y.shape) if start is None else start.beta))
    Kx = dual.product(x)
    z, Kz, momentum, L = x, Kx, 1.0, dual.first_lipschitz()
    best = dual.assess(x, Kx, 1)
    used, idle, look = 1, 0, BETWEEN
    step = dual.replayed(x, z, Kz)
    while best.relative_gap > target and used < most and idle < IDLE and not out_of_time():
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
