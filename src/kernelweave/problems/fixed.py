"""The inner problem: weights given, one kernel matrix, find the coefficients; also with a budget on all of them.

``J(d) = max over beta of sum_i c_i dual(beta_i / c_i) - beta' K beta / 2``, an SVM for the hinge loss.  Losses whose
dual is a box QP go to the SMO engine, also with a budget on top; losses with curvature everywhere to Newton's method
(``newton``; ``joint`` for several classes), the multiclass hinge to a solver of its own (``joint``).  All stop on the
duality gap of this inner problem, which costs O(n) from what they hold.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._numerics.namespace import to_numpy
from .._numerics.stopping import out_of_time
from .._typing import Array
from ..losses import DualBudget, Loss
from .certificate import TINY, relative_gap

#: tolerance of the SMO engine, relative to the gradient, beyond which there is rounding alone
FINEST = 1e-12


@dataclass(frozen=True)
class FixedSolution:
    """Coefficients for one kernel matrix, ``decision = K beta``, and bounds of the inner optimum."""

    beta: Array
    decision: Array
    intercept: Any
    primal: float
    dual: float
    iterations: int  # of SMO or Newton's method
    margin: float = 1.0  # of the loss
    unit: float = 0.0  # of the loss
    bend: Any = None  # of a coupled loss: R, and the factor of I + R'K R, near this point

    @property
    def gap(self) -> float:
        """``primal - dual``: tells two bad points apart, where both relative gaps are about one."""
        return self.primal - self.dual

    @property
    def relative_gap(self) -> float:
        """Relative gap of the inner problem, in units of the margin."""
        return relative_gap(self.primal, self.dual, unit=self.unit) / self.margin


@dataclass(frozen=True)
class Inner:
    """The inner problem; the fields are the arguments of ``solve_fixed``."""

    K: Array
    loss: Loss
    y: Array
    c: Array
    fit_intercept: bool

    def primal(self, beta: Array, decision: Array) -> tuple[float, Array]:
        """Primal objective at coefficients and their product with K, and the values with the best intercept."""
        b: Any = self.loss.best_intercept(self.y, decision, self.c) if self.fit_intercept else 0.0
        f = np.asarray(decision + b)
        # a quadratic form below zero is rounding, and following it down would lead nowhere
        return 0.5 * max(float(np.vdot(beta, decision)), 0.0) + self.loss.total(self.y, f, self.c), f

    def project(self, beta: Array) -> Array:
        """Nearest coefficients of the dual set."""
        return self.loss.project(self.y, beta, self.c, self.fit_intercept)

    def assess(self, beta: Array, product: Array, iterations: int) -> FixedSolution:
        """Primal with the best intercept, and dual, of coefficients in the dual set; ``product`` is ``K beta``."""
        loss, y, c = self.loss, self.y, self.c
        # a quadratic form below zero is rounding: it would make the lower bound larger than any objective
        half = 0.5 * max(float(np.vdot(beta, product)), 0.0)
        b = loss.best_intercept(y, product, c) if self.fit_intercept else 0.0
        f = product + b
        primal, dual = half + loss.total(y, f, c), loss.gain(y, beta, c) - half
        margin, unit = loss.margin(y, f, c), loss.unit(y, c)
        return FixedSolution(beta, product, b, primal, dual, iterations, margin, unit)


def multiplies_only(K: Any) -> bool:
    """Whether a mixed kernel is something to multiply with, such as ``banks.pairs.MixedProducts``, and no matrix."""
    return getattr(K, "by_products", False) is True


def solve_fixed(
    K: Any,
    loss: Loss,
    y: Array,
    c: Array,
    fit_intercept: bool,
    target: float = 1e-4,
    start: FixedSolution | None = None,
    keep_product: bool = False,
) -> FixedSolution:
    """Solve the inner problem to a relative duality gap of ``target``.

    Parameters
    ----------
    K : array of shape (n, n)
        Mixed kernel matrix; of another library than NumPy, it is worked on where it lies (``first_order``).
    loss : Loss
    y, c : arrays of shape (n,) or (n, k)
        Targets and every sample's own C; columns are independent problems on the same matrix.
    fit_intercept : bool
    target : float
        Relative duality gap to reach.
    start : FixedSolution, optional
        Where to start.
    keep_product : bool
        Whether ``start.decision`` is ``K start.beta`` for this very K.
    """
    if multiplies_only(K):
        return _solve_otherwise(Inner(K, loss, y, c, fit_intercept), target, start, keep_product)
    if not isinstance(K, np.ndarray):  # it lives on a device
        from .newton import fits_first_order, solve_first_order

        if fits_first_order(loss, y, c):
            return solve_first_order(K, loss, y, c, fit_intercept, target, start)
        K = to_numpy(K).astype(float)
    # the SMO engine takes matrices in single precision as they are, and sums in double
    if y.ndim == 2 or loss.joint or loss.coupled or loss.has_curvature or loss.dual_budget(y, c) is not None:
        inner = Inner(K.astype(float, copy=False), loss, y, c, fit_intercept)
        return _solve_otherwise(inner, target, start, keep_product)
    from .._numerics.smo import solve_box_qp

    inner = Inner(K, loss, y, c, fit_intercept)
    quadratic = loss.quadratic_dual(y)
    if quadratic is None:
        raise TypeError(f"{loss!r} has neither curvature nor a quadratic dual: no inner solver knows it")
    lower, upper = loss.box(y, c)
    with np.errstate(divide="ignore"):
        ridge = np.where(c > 0, quadratic.ridge / c, 0.0) if quadratic.ridge else None
    kink = np.full(y.shape, quadratic.kink) if quadratic.kink else None
    beta = None if start is None else start.beta
    product = start.decision if start is not None and keep_product else None
    # the tolerance is on the gradient, which has the unit of the targets
    unit = min(1.0, float(np.max(np.abs(quadratic.linear), initial=0.0)) or 1.0)
    tolerance, iterations = unit * min(1e-2, 10 * target), 0
    best: FixedSolution | None = None
    while True:
        solved = solve_box_qp(
            K, quadratic.linear, lower, upper,
            ridge=ridge, kink=kink, equality=fit_intercept, tol=tolerance, beta=beta, product=product,
        )  # fmt: skip
        iterations += int(solved.iterations)
        beta, product = solved.beta, solved.product
        solution = inner.assess(beta, product, iterations)
        if best is None or solution.relative_gap < best.relative_gap:
            best = solution
        # the engine's tolerance is on the gradient; what is wanted is the gap
        if best.relative_gap <= target or not solved.converged or tolerance < FINEST * unit or out_of_time():
            return best
        # the gap is about proportional to the tolerance: aim a little below the target
        aim = 0.5 * tolerance * target / solution.relative_gap
        tolerance = min(0.3 * tolerance, max(aim, 1e-3 * tolerance))


def _solve_otherwise(
    inner: Inner, target: float, start: FixedSolution | None, keep_product: bool
) -> FixedSolution:
    """Solve what is not one box QP: several classes together, several columns, curved losses, a budget."""
    from .joint import solve_joint, solve_softmax
    from .newton import solve_coupled, solve_newton

    loss, y, c = inner.loss, inner.y, inner.c
    if y.ndim == 1 and multiplies_only(inner.K):
        from .by_products import solve_by_products

        return solve_by_products(inner, target, start)
    if loss.joint:
        if loss.has_curvature:
            return solve_softmax(inner, target, start)
        return solve_joint(inner, target, start, keep_product)
    if loss.coupled:
        return solve_coupled(inner, target, start)
    alike = y.ndim == 1 or (loss.least_squares and bool(np.all(c == c[:, :1])))
    if alike and not multiplies_only(inner.K):
        if loss.has_curvature:
            return solve_newton(inner, target, start)
        return solve_budgeted(inner, target, start, keep_product)
    solved = []
    for k in range(y.shape[1]):
        column = start
        if start is not None:
            beta, decision = start.beta[:, k], start.decision[:, k]
            column = FixedSolution(beta, decision, 0.0, start.primal, start.dual, 0, start.margin)
        solved.append(
            solve_fixed(
                inner.K, loss.column(k), y[:, k], c[:, k], inner.fit_intercept, target, column, keep_product
            )
        )
    return FixedSolution(
        beta=np.stack([solution.beta for solution in solved], axis=1),
        decision=np.stack([solution.decision for solution in solved], axis=1),
        intercept=np.array([solution.intercept for solution in solved]),
        primal=sum(solution.primal for solution in solved),
        dual=sum(solution.dual for solution in solved),
        iterations=sum(solution.iterations for solution in solved),
        margin=min(solution.margin for solution in solved),
    )


@dataclass(frozen=True)
class _Spending:
    """Coefficients with their product, what they spend of the budget, and at which price."""

    beta: Array
    product: Array
    spent: float
    price: float
    converged: bool


def solve_budgeted(
    inner: Inner, target: float, start: FixedSolution | None, keep_product: bool
) -> FixedSolution:
    """Solve the inner problem of one column with a budget on all coefficients; arguments as of ``solve_fixed``.

    ``max over a of sum a - a'Ga/2``, ``G = diag(y) K diag(y)``, ``0 <= a <= c``, ``sum [a - free]_+ <= limit``.  Where
    the budget binds, its multiplier s is the price of a unit of a, and the solution with the linear term ``1 - s``
    spends less the higher the price.  Without an intercept the budget itself is the engine's equality.  With one, the
    price is searched for: what is spent is piecewise linear in it, so secants end after a few steps, and where it jumps
    (a singular G) a convex combination of the solutions on both sides spends exactly the limit and is optimal.
    """
    budget = inner.loss.dual_budget(inner.y, inner.c)
    assert budget is not None
    search = _Search(inner, budget)
    direct = not inner.fit_intercept and not np.any(budget.free)
    at_limit = search.by_equality if direct else search.by_price
    spending: _Spending | None = None
    # coefficients of a kernel with small values have small slopes
    unit = min(1.0, float(np.max(np.diagonal(inner.K), initial=TINY))) if budget.exact else 1.0
    binding, price = budget.exact, 0.0
    if start is not None:
        inside = inner.project(start.beta)
        product = start.decision if keep_product and np.array_equal(inside, start.beta) else inner.K @ inside
        spending = _Spending(inside, product, search.spend(inside), 0.0, True)
        # whether the budget bound the last time is the best guess for this time
        binding = budget.exact or 0.0 < budget.limit * (1.0 - 1e-9) <= spending.spent
        price = 1.0 - start.margin
    tolerance = unit * min(1e-2, 10 * target)
    best: FixedSolution | None = None
    while True:
        known = binding
        if not binding:
            spending = search.at_price(0.0, tolerance, spending)
            binding = spending.spent > budget.limit
            if binding:  # where no coefficient is at a bound, what is spent is proportional to 1 - price
                price = max(price, 1.0 - budget.limit / spending.spent)
        if binding:
            # half of what the gap may be is left to the search for the price
            spending = at_limit(tolerance, spending, price, 0.5 * target)
            binding, price = budget.exact or not known or spending.price > 0, spending.price
        assert spending is not None
        beta, product = spending.beta, spending.product
        if spending.spent > budget.limit * (1.0 + 1e-12):
            beta = inner.project(beta)
            product = inner.K @ beta
        solution = inner.assess(beta, product, search.iterations)
        if best is None or solution.relative_gap < best.relative_gap:
            best = solution
        if best.relative_gap <= target or not spending.converged or tolerance < 1e-14 * unit or out_of_time():
            return best
        # the gap is about proportional to the tolerance: aim a little below the target
        aim = 0.5 * tolerance * target / solution.relative_gap
        tolerance = min(0.3 * tolerance, max(aim, 1e-3 * tolerance))


@dataclass
class _Search:
    """Solutions at a price, and at the limit of the budget."""

    inner: Inner
    budget: DualBudget
    iterations: int = 0
    #: how fast spending falls with the price, once two prices were tried
    slope: float | None = None

    def spend(self, beta: Array) -> float:
        return float(np.sum(np.maximum(self.inner.y * beta - self.budget.free, 0.0)))

    def at_price(self, price: float, tolerance: float, near: _Spending | None) -> _Spending:
        """Solve with the linear term ``1 - price`` beyond what is free."""
        from .._numerics.smo import solve_box_qp

        K, y, c, free = self.inner.K, self.inner.y, self.inner.c, self.budget.free
        beta, product = (None, None) if near is None else (near.beta, near.product)
        linear, full, n = (1.0 - price) * y, y * c, y.size
        if not np.any(free):  # the slopes scale with what the price leaves
            tolerance *= max(1.0 - price, 1e-6)
        # where the price is not zero, the free part of a coefficient and the rest of it are two variables
        split = price != 0.0 and bool(np.any(free))
        if split:
            K, linear = np.tile(K, (2, 2)), np.concatenate([y, linear])
            full = np.concatenate([free, c - free]) * np.tile(y, 2)
            if beta is not None and product is not None:
                first = y * np.minimum(y * beta, free)
                beta, product = np.concatenate([first, beta - first]), np.tile(product, 2)
        solved = solve_box_qp(
            K, linear, np.minimum(full, 0.0), np.maximum(full, 0.0),
            equality=self.inner.fit_intercept, tol=tolerance, beta=beta, product=product,
        )  # fmt: skip
        self.iterations += int(solved.iterations)
        beta = solved.beta
        if split:
            beta = y * np.minimum(y * (beta[:n] + beta[n:]), c)
        return _Spending(beta, solved.product[:n], self.spend(beta), price, solved.converged)

    def by_equality(self, tolerance: float, near: _Spending | None, price: float, target: float) -> _Spending:
        """The budget as the engine's equality: ``a = share c + x`` with ``sum x = 0``, the price its multiplier."""
        from .._numerics.smo import solve_box_qp

        y, c = self.inner.y, self.inner.c
        even = self.budget.limit / float(np.sum(c)) * c
        G = self.inner.K * np.outer(y, y)
        pull = G @ even
        x = product = None
        if near is not None:
            x, product = y * near.beta - even, y * near.product - pull
        upper = c - even
        solved = solve_box_qp(
            G, 1.0 - pull, -even, upper, equality=True, tol=tolerance, beta=x, product=product
        )
        self.iterations += int(solved.iterations)
        a = np.where(solved.beta == upper, c, even + solved.beta)
        product = y * (solved.product + pull)
        return _Spending(y * a, product, self.spend(y * a), solved.intercept, solved.converged)

    def by_price(self, tolerance: float, near: _Spending | None, price: float, target: float) -> _Spending:
        """Search for the price at which the limit is spent."""
        limit = self.budget.limit
        low: _Spending | None = None  # spends too much: the price is too low
        high: _Spending | None = None
        here = float(np.clip(price, 0.0, 1.0))
        step = 0.0
        sides: list[bool] = []
        for _ in range(100):
            near = self.at_price(here, tolerance, near)
            over = near.spent - limit
            if abs(over) * max(near.price, 1e-3) <= target * self._scale(near):
                if over <= 0:
                    return near
                if not np.any(self.budget.free):  # shrunk, by a little, until they spend the limit
                    share = limit / near.spent
                    return replace(near, beta=share * near.beta, product=share * near.product, spent=limit)
            cheap = over > 0
            low, high = (near, high) if cheap else (low, near)
            if low is None or high is None:
                # without time nothing answers to the price any more
                if (here == 0.0 and not cheap) or out_of_time():
                    return near
                if step == 0.0:
                    # a little beyond where the root is expected
                    guess = 0.05 * (1.0 - here) if self.slope is None else 1.5 * abs(over) / self.slope
                    step = min(max(guess, 1e-12), 0.05)
                here = here + step if cheap else max(here - step, 0.0)
                step *= 4.0
                continue
            over, under, width = low.spent - limit, limit - high.spent, high.price - low.price
            self.slope = (over + under) / width
            mixed = _mix(low, high, under / (over + under), limit)
            # what the mixture may lose against either end, by Jensen's inequality
            lost = width * over * under / (over + under)
            # secants; where the same end moved three times, the middle
            sides.append(cheap)
            stuck = len(sides) > 2 and sides[-1] == sides[-2] == sides[-3]
            here = low.price + (0.5 if stuck else min(max(over / (over + under), 0.01), 0.99)) * width
            if lost <= target * self._scale(mixed) or not low.price < here < high.price:
                return mixed
        if low is None or high is None:
            assert near is not None
            return near
        return _mix(low, high, (limit - high.spent) / (low.spent - high.spent), limit)

    def _scale(self, spending: _Spending) -> float:
        """Size of the objective, times the margin: what gaps are measured in."""
        half = 0.5 * float(spending.beta @ spending.product)
        left = max(1.0 - spending.price, 1e-6)
        return left * max(half, float(self.inner.y @ spending.beta) - half, np.finfo(float).tiny)


def _mix(low: _Spending, high: _Spending, share: float, limit: float) -> _Spending:
    """``share`` of the first and the rest of the second: spends the limit."""
    price = share * low.price + (1.0 - share) * high.price
    beta, product = (
        np.where(
            first == second, first, share * first + (1.0 - share) * second
        )  # what is at a bound stays there
        for first, second in ((low.beta, high.beta), (low.product, high.product))
    )
    return _Spending(beta, product, limit, price, low.converged and high.converged)
