"""Inner problems in the primal: Newton's method for curved losses, and accelerated gradients for kernels on a device.

    min over beta, b   <beta, K beta> / 2 + sum_i c_i l(y_i, (K beta)_i + b)

``descend`` is the same for every loss; how a direction is found is up to its caller: one Cholesky factor where every
sample has one decision value (``solve_newton``), all classes together under a softmax (``joint.solve_softmax``).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from .._numerics.namespace import as_like, cast, namespace, recorded, to_numpy
from .._numerics.projections import balance_rows, project_box, project_box_balanced, project_rows
from .._numerics.stopping import out_of_time, time_left
from .._numerics.tiles import TiledFactor, factorise
from .._typing import Array
from ..losses import CurvatureRoot, Loss
from .certificate import relative_gap
from .fixed import FixedSolution, Inner

#: iterations at most, and in a row without progress, or with steps shorter than this: then rounding has taken over
MOST, IDLE, SHORT = 100, 6, 1e-3
#: shortest step that is tried, and share of the slope that a step has to gain
SHORTEST, ENOUGH = 1e-10, 1e-4
#: relative residuals of the first directions and of the most precise ones, where these are not exact
FIRST, FINEST = 1e-2, 1e-10


def descend(
    inner: Inner,
    direction: Callable[[Array, Array, Array, float], Array],
    beta: Array,
    decision: Array,
    target: float,
    exact: bool,
) -> FixedSolution:
    """Take Newton steps from ``beta``, ``decision = K beta``, to a relative gap of ``target``.

    ``direction(beta, f, gradient, precise)`` is Newton's direction in the coefficients, to the relative residual
    ``precise`` unless directions are ``exact``: by a factorisation.
    """
    best: FixedSolution | None = None
    idle, short, lowest, precise, factorising = 0, 0, np.inf, FIRST, 0.0
    for iteration in range(1, MOST + 1):
        here, f = inner.primal(beta, decision)
        gradient = inner.loss.total_gradient(inner.y, f, inner.c)
        # the gradient at the best intercept is a point of the dual set: its sum is zero
        of_gradient = inner.project(-gradient)
        solution = inner.assess(of_gradient, inner.K @ of_gradient, iteration)
        if solution.relative_gap > target:
            # on a badly scaled matrix the gradient's rounding is multiplied by K, the iterate's own is not
            inside = inner.project(beta)
            product = decision if np.array_equal(inside, beta) else inner.K @ inside
            own = inner.assess(inside, product, iteration)
            solution = min(solution, own, key=lambda candidate: candidate.gap)
        better = best is None or solution.gap < 0.9 * best.gap
        fallen = here < lowest - 1e-9 * abs(lowest)
        idle = 0 if better or fallen else idle + 1
        lowest = min(here, lowest)
        best = solution if best is None or solution.gap < best.gap else best
        # a factorisation cannot be left in the middle: it is begun only where the last one would have fitted in
        if best.relative_gap <= target or idle >= IDLE or time_left() <= factorising:
            break
        began = time.perf_counter()
        step = direction(beta, f, gradient, precise)
        if exact:
            factorising = time.perf_counter() - began
        moved = inner.K @ step
        slope = float(np.vdot(beta + gradient, moved))
        length = 1.0  # halved until the objective falls
        while length > SHORTEST:
            value, _ = inner.primal(beta + length * step, decision + length * moved)
            if value <= here + ENOUGH * length * min(slope, 0.0) + 1e-15 * abs(here):
                break
            length *= 0.5
        if length > SHORTEST:
            beta, decision = beta + length * step, decision + length * moved
            short = short + 1 if length < SHORT else 0
            if short >= IDLE:
                break
            # a short step may be the fault of an imprecise direction
            precise = 0.01 * precise if length < 0.5 else precise
            precise = max(min(precise, max(0.1 * best.relative_gap, FINEST)), 0.01 * FINEST)
        elif exact or precise <= FINEST:
            break
        else:
            precise = FINEST  # an imprecise direction: once more, as exactly as possible
    assert best is not None
    return best


def solve_newton(inner: Inner, target: float, start: FixedSolution | None) -> FixedSolution:
    """Solve an inner problem of one column, or of several that have the same curvature: the squared loss.

    With W the curvatures and g the gradients of the loss, ``(K + W^-1) step + shift of b = -W^-1 (beta + g)``,
    solved as ``W^1/2 (I + W^1/2 K W^1/2)^-1 W^1/2`` that stays well conditioned where curvatures vanish.
    """
    floor = 1e-14 * float(np.max(inner.c))

    def direction(beta: Array, f: Array, gradient: Array, precise: float) -> Array:
        curvature = inner.c * inner.loss.curvature(inner.y, f)
        root = np.sqrt(np.maximum(curvature.reshape(len(curvature), -1)[:, 0], floor))
        column = root.reshape(-1, *(1,) * (beta.ndim - 1))
        solve = _inverse((root[:, None] * inner.K) * root[None, :])
        # from the residual, not for the new point: its rounding shrinks with it
        step = -column * solve((beta + gradient) / column)
        if inner.fit_intercept:
            ones = root * solve(root)
            shift = np.sum(beta + step, axis=0) / np.sum(ones)
            step = step - np.multiply.outer(ones, shift)
        return np.asarray(step)

    return descend(inner, direction, *shrunk_start(inner, start), target, exact=True)


def shrunk_start(inner: Inner, start: FixedSolution | None) -> tuple[Array, Array]:
    """Return coefficients to start from, and their product with K.

    On a matrix that has grown since, a function many times too large sits where a loss is flat, and Newton's method
    would halve its way back: the start is shrunk.
    """
    if start is None:
        zero = np.zeros(inner.y.shape)
        return zero, zero
    beta, decision = start.beta, inner.K @ start.beta
    factor, (value, _) = 1.0, inner.primal(beta, decision)
    for shrink in (0.5, *(10.0**-power for power in range(1, 17)), 0.0):
        trial, _ = inner.primal(shrink * beta, shrink * decision)
        if trial >= value:
            break
        factor, value = shrink, trial
    return factor * beta, factor * decision


#: bounds times the mean diagonal from which a coupled loss is solved in stages, where the direct way misses its target,
#: the factor between two stages, and their precision
FIRST_STAGE, STAGE, ROUGH = 10.0, 10.0**0.5, 0.1
#: fall of the squared residual in a step after which its factor serves for another one
FALLEN = 0.01


def solve_coupled(inner: Inner, target: float, start: FixedSolution | None) -> FixedSolution:
    """Solve an inner problem whose samples stand in each other's losses.

    With g the gradient of the loss and ``R R'`` its second derivative, ``step = -(beta + g) + R z``,
    ``(I + R'K R) z = R'K (beta + g)``: notation (18) with this R.
    """

    bend: tuple[CurvatureRoot, TiledFactor] | None = None
    size = 0.0

    def direction(beta: Array, f: Array, gradient: Array, precise: float) -> Array:
        nonlocal bend, size
        rest = beta + gradient
        product = inner.K @ rest
        before, size = size, float(rest @ product)
        if bend is not None and size <= FALLEN * before:  # the last factor does for another step
            root, factor = bend
            right = root.transposed(product[root.order])
            z = factor.solve(factor.solve(right), transposed=True)
        else:
            root = inner.loss.hessian_root(inner.y, f, inner.c)
            right, system = root.transposed(product[root.order]), root.sandwich(inner.K)
            try:
                bend = root, factorise(system, 1.0)
                z = bend[1].solve(bend[1].solve(right), transposed=True)
            except np.linalg.LinAlgError:  # digits are gone
                bend, z = None, _inverse(system)(right)
        step = -rest
        step[root.order] += root.times(z)
        return step

    best = descend(inner, direction, *shrunk_start(inner, start), target, exact=True)
    best = replace(best, bend=bend)
    size = float(np.mean(np.diagonal(inner.K)))
    if best.relative_gap <= max(target, ROUGH) or out_of_time() or not size > 0.0:
        return best
    # far from the solution most shares of the risk sets are 0 or 1, and the curvature is lost: large bounds are raised
    high = float(np.max(inner.c))
    share, stage = min(1.0, FIRST_STAGE / (size * high)), None
    while share < 1.0 and not out_of_time():
        at = replace(inner, c=share * inner.c)
        stage = descend(at, direction, *shrunk_start(at, stage), ROUGH, exact=True)
        stage, share = replace(stage, beta=stage.beta * STAGE), min(1.0, STAGE * share)
    last = descend(inner, direction, *shrunk_start(inner, stage), target, exact=True)
    return last if last.gap < best.gap else best


def _inverse(scaled: Array) -> Callable[[Array], Array]:
    """Return the product with ``(I + scaled)^-1`` of a positive semidefinite matrix."""
    n = scaled.shape[0]
    try:
        system = scaled.copy()
        system.flat[:: n + 1] += 1.0
        factor = cho_factor(system, lower=True, overwrite_a=True, check_finite=False)
        return lambda rhs: np.asarray(cho_solve(factor, rhs, check_finite=False))
    except np.linalg.LinAlgError:  # entries beyond 1e16 have a rounding larger than the identity
        values, vectors = np.linalg.eigh(scaled)
    shrink = 1.0 / (1.0 + np.maximum(values, 0.0))
    return lambda rhs: np.asarray((vectors * shrink) @ (vectors.T @ rhs))


#: products with K at most, and between two evaluations of the gap
MOST_FIRST_ORDER, BETWEEN = 20_000, 20
#: evaluations without a better gap after which rounding has taken over
IDLE_FIRST_ORDER = 30
#: factor of the curvature after a step that it sufficed for, and steps that a GPU takes at a time
SHRINK, REPLAYED = 0.95, 10
#: rows from which those without coefficients are set aside, the largest share of all that is left at work, and the
#: share of the gap that these leave before all rows are asked again
MANY, AT_WORK, CLOSER = 10_000, 0.5, 0.1
#: entries of K that are gathered at a time
GATHERED = 1 << 27


def fits_first_order(loss: Loss, y: Array, c: Array) -> bool:
    """Whether the dual is quadratic on a set with a projection that devices know."""
    boxed = loss.has_quadratic_dual and loss.dual_budget(y, c) is None
    return boxed or (loss.joint and loss.smoothness is None)


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
    """Solve the inner problem on an array K of any library; the other arguments are those of ``solve_fixed``.

        minimise 1/2 <beta, K beta> + 1/2 <ridge beta, beta> - <linear, beta>   over the dual set of the loss

    Accelerated projected gradient (Nesterov; Beck and Teboulle 2009) with restart where the momentum points uphill
    (O'Donoghue and Candes 2015).  A step is one product of K with k columns.  Of many rows, those that have no
    coefficients and are given none by a step are set aside; the others are solved among themselves, until a product
    with all of K shows who has to come back.  K may be in single precision; coefficients, products and sums are kept in
    double precision where the device has it.
    """
    dual = _Dual(K, loss, y, c, fit_intercept)
    x = dual.project(dual.like(np.zeros(y.shape) if start is None else start.beta))
    Kx = dual.product(x)
    # the largest eigenvalue, roughly and from below: some steps of the power method
    v, size = dual.like(np.asarray(1.0 + np.random.default_rng(0).standard_normal(y.shape[0]))), 1.0
    for _ in range(5):
        v = v / float((v * v).sum()) ** 0.5
        v = dual.product(v)
        size = max(float((v * v).sum()) ** 0.5, float(np.finfo(float).tiny))
    L = as_like(SHRINK * (size + float(namespace(v).max(dual.ridge))), dual.kind)
    used, lowest = 1, dual.gap(x, Kx)
    best = x, Kx, used
    worth = np.inf if x.shape[0] >= MANY else 0.0  # gap below which rows are set aside
    while lowest > target and used < most and not out_of_time():
        rows = dual.at_work(x, Kx, L) if lowest < worth else None
        here, goal, idle, least, before = dual, target, 0, lowest, lowest
        if rows is not None:
            here, goal, least = dual.among(rows), max(CLOSER * lowest, 0.5 * target), np.inf
            x, Kx = x.T[:, rows].T, Kx.T[:, rows].T
        steps = here.ascend(x, Kx, L, used)
        for x, Kx, L, used, fixed in steps:
            gap = here.gap(x, Kx)
            idle = 0 if gap < 0.999 * least else idle + 1
            least = min(gap, least)
            if rows is None and gap < lowest:
                best, lowest = (x, Kx, used), gap
            ended = fixed or idle >= IDLE_FIRST_ORDER
            if least <= goal or ended or used >= most or out_of_time():
                break
            if rows is None and lowest < worth and dual.at_work(x, Kx, L) is not None:
                break
        if rows is None:
            if ended:
                break
            continue
        some, x = x, namespace(x).zeros_like(dual.linear)
        x[rows] = some
        Kx, used = dual.product(x), used + 1
        gap = dual.gap(x, Kx)
        if gap < lowest:
            best, lowest = (x, Kx, used), gap
        # where too many were set aside, all go on together for a while
        worth = np.inf if gap < 0.9 * before else 0.5 * lowest
    return dual.assess(*best)


class _Dual:
    """The dual objective and its set, in arrays of the kind of K."""

    def __init__(self, K: Any, loss: Loss, y: Array, c: Array, fit_intercept: bool) -> None:
        self.K, self.loss, self.y, self.fit_intercept = K, loss, y, fit_intercept
        self.inner = Inner(K, loss, y, c, fit_intercept)
        xp = namespace(K)
        device = getattr(K, "device", None)
        # Apple's devices have no double precision
        self.kind = np.ones(1) if device is None or xp is np else xp.ones(
            1, dtype=xp.float32 if getattr(device, "type", "cpu") == "mps" else xp.float64, device=device
        )  # fmt: skip
        self.shift: Any = None
        self.targets, self.charges = self.like(y), self.like(c)
        if loss.joint:
            self.upper = self.like(np.where(y > 0, c, 0.0))
            self.linear, self.ridge = self.like(np.where(y > 0, 1.0, 0.0)), self.like(np.zeros(y.shape))
        else:
            quadratic = loss.quadratic_dual(y)
            assert quadratic is not None
            low, high = loss.box(y, c)
            # bounds of a squared loss reach to infinity; no coefficient is as large as this
            far = 1e8 * max(float(np.max(np.abs(y))), 1.0)
            self.low, self.high = self.like(np.clip(low, -far, far)), self.like(np.clip(high, -far, far))
            self.linear = self.like(quadratic.linear)
            ridge = np.divide(quadratic.ridge, c, out=np.zeros(c.shape), where=c > 0)
            self.ridge = self.like(ridge)

    def like(self, values: Array) -> Any:
        """Columns, each of them contiguous: as products are, and as reductions over few columns are quickest."""
        return as_like(np.ascontiguousarray(np.atleast_2d(np.asarray(values, dtype=float).T)), self.kind).T

    def product(self, beta: Any) -> Any:
        """``K beta``; K is symmetric, and few rows times a wide matrix are quicker than the other way round."""
        return cast((cast(beta.T, self.K.dtype) @ self.K).T, self.kind.dtype)

    def among(self, rows: Any) -> _Dual:
        """Return the problem of some rows, where the others have no coefficients."""
        at, height = to_numpy(rows), max(1, GATHERED // self.K.shape[0])
        pieces = [self.K[rows[top : top + height]][:, rows] for top in range(0, at.size, height)]
        K = namespace(self.K).concat(pieces)
        some = _Dual(K, self.loss, self.y[at], self.inner.c[at], self.fit_intercept)
        some.shift = self.shift
        return some

    def at_work(self, x: Any, Kx: Any, L: Any) -> Any:
        """Rows that have coefficients, or are given some by a step from x; None where they are too many."""
        xp = namespace(x)
        moved = self.project(x - (Kx - self.linear + self.ridge * x) / L)
        rows = xp.nonzero(xp.any((x != 0) | (moved != 0), axis=1))[0]
        return rows if 0 < rows.shape[0] <= AT_WORK * x.shape[0] else None

    def ascend(self, x: Any, Kx: Any, L: Any, used: int) -> Iterator[tuple[Any, Any, Any, int, bool]]:
        """Yield coefficients, product, curvature, products so far, and whether they stay, some steps apart."""
        one = as_like(1.0, self.kind)
        state: tuple[Any, ...] = (x, Kx, x, Kx, L, one, one)
        # recorded once and replayed, many steps at a time: launching the parts of a step takes longer than they do.
        # Balanced projections read their sums, which a recording must not
        replayed = (
            getattr(getattr(self.K, "device", None), "type", "cpu") == "cuda" and not self.fit_intercept
        )
        advance = recorded(self.step, REPLAYED, *state) if replayed else self.step
        together, taken, following = REPLAYED if replayed else 1, 0, BETWEEN
        while True:
            state = advance(*state)
            taken += together
            fixed = together == 1 and float(state[-1]) == 0.0
            if taken >= following or fixed:
                x, Kx, L = (value.clone() if replayed else value for value in (state[0], state[1], state[4]))
                yield x, Kx, L, used + taken, fixed or float(state[-1]) == 0.0
                following = taken + max(BETWEEN, taken // 20)

    def gap(self, x: Any, Kx: Any) -> float:
        """Relative gap; of losses that take any array, without an intercept, with one read from the device."""
        if self.fit_intercept or not self.loss.portable:
            return self.assess(x, Kx, 0).relative_gap
        losses = self.loss.value(self.targets, Kx)
        charged = ((self.charges[:, 0] if self.loss.joint else self.charges) * losses).sum()
        gain = (self.linear * x - 0.5 * self.ridge * x * x).sum()
        charged, gain, form = to_numpy(namespace(x).stack([charged, gain, (x * Kx).sum()])).tolist()
        half = 0.5 * max(form, 0.0)
        return relative_gap(half + charged, gain - half)

    def step(self, x: Any, Kx: Any, z: Any, Kz: Any, L: Any, momentum: Any, _: Any) -> tuple[Any, ...]:
        """Take a projected gradient step from z, or a larger L where this one proves too small: one product.

        The last number is the square of the step.  Nothing is read back, so that a device need not be waited for.
        """
        xp = namespace(z)
        new = self.project(z - (Kz - self.linear + self.ridge * z) / L)
        Knew = self.product(new)
        moved, gone = new - z, new - x
        # the curvature along the move times its square, that square, and the slope of the momentum, negative uphill
        bend = (moved * (Knew - Kz + self.ridge * moved)).sum()
        square, slope = (moved * moved).sum(), (moved * gone).sum()
        good = bend <= L * square * (1.0 + 1e-9)
        t = xp.where(slope < 0.0, xp.ones_like(momentum), momentum)
        after = 0.5 * (1.0 + (1.0 + 4.0 * t * t) ** 0.5)
        mu = (t - 1.0) / after
        steep = bend / xp.where(square > 0.0, square, xp.ones_like(square))
        # along the way the curvature is often far below the largest eigenvalue
        larger = xp.where(steep < 2.0 * L, 2.0 * L, steep)
        return (
            xp.where(good, new, x), xp.where(good, Knew, Kx),
            xp.where(good, new + mu * gone, z), xp.where(good, Knew + mu * (Knew - Kx), Kz),
            xp.where(good, SHRINK * L, larger), xp.where(good, after, momentum), square,
        )  # fmt: skip

    def assess(self, beta: Any, product: Any, used: int) -> FixedSolution:
        """Bounds, on the host and in double precision."""
        inside, decision = (
            np.ascontiguousarray(to_numpy(table), dtype=float).reshape(self.y.shape)
            for table in (beta, product)
        )
        return self.inner.assess(inside, decision, used)

    def project(self, v: Any) -> Any:
        """Nearest coefficients in the dual set."""
        if not self.loss.joint:
            return (project_box_balanced if self.fit_intercept else project_box)(v, self.low, self.high)
        if not self.fit_intercept:
            return project_rows(v, self.upper)
        x, self.shift = balance_rows(v, self.upper, start=self.shift)
        return x
