"""The inner problem: weights given, one kernel matrix, find the coefficients.

``J(d) = max over beta of sum_i c_i dual(beta_i / c_i) - beta' K beta / 2``, an SVM for the hinge loss.  Losses whose
dual is a box QP go to the SMO engine, also with a budget on top (``budgeted``); losses with curvature everywhere to
Newton's method (``newton``, ``softmax``), the multiclass hinge to a solver of its own (``joint``).  All stop on the
duality gap of this inner problem, which costs O(n) from what they hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._numerics.deadline import out_of_time
from .._numerics.namespace import to_numpy
from ..losses import Loss
from .certificate import Array, relative_gap

__all__ = ["FixedSolution", "Inner", "finer", "solve_fixed"]


@dataclass(frozen=True)
class FixedSolution:
    """Coefficients for one kernel matrix.

    ``decision`` is ``K beta``; ``primal`` and ``dual`` bracket the inner optimum; ``iterations`` counts SMO or Newton
    steps; ``margin`` is that of the loss.
    """

    beta: Array
    decision: Array
    intercept: Any
    primal: float
    dual: float
    iterations: int
    margin: float = 1.0

    @property
    def gap(self) -> float:
        """``primal - dual``: tells two bad points apart, where both relative gaps are about one."""
        return self.primal - self.dual

    @property
    def relative_gap(self) -> float:
        """Relative gap of the inner problem, in units of the margin."""
        return relative_gap(self.primal, self.dual) / self.margin


@dataclass(frozen=True)
class Inner:
    """The inner problem; the fields are the arguments of ``solve_fixed``."""

    K: Array
    loss: Loss
    y: Array
    c: Array
    fit_intercept: bool

    def with_intercept(self, decision: Array) -> Array:
        """Decision values with the best intercept."""
        b: Any = self.loss.best_intercept(self.y, decision, self.c) if self.fit_intercept else 0.0
        return np.asarray(decision + b)

    def gradient(self, f: Array) -> Array:
        """Derivative of the loss in the decision values, intercept included."""
        return np.asarray(self.c * self.loss.gradient(self.y, f))

    def objective(self, beta: Array, decision: Array, f: Array) -> float:
        """Primal objective at coefficients, their product with K and the decision values."""
        # a quadratic form below zero is rounding, and following it down would lead nowhere
        return 0.5 * max(float(np.vdot(beta, decision)), 0.0) + self.loss.total(self.y, f, self.c)

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
        return FixedSolution(beta, product, b, primal, dual, iterations, loss.margin(y, f, c))


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
    if not isinstance(K, np.ndarray):  # it lives on a device
        from .first_order import fits_first_order, solve_first_order

        if fits_first_order(loss, y, c):
            return solve_first_order(K, loss, y, c, fit_intercept, target, start)
        K = to_numpy(K).astype(float)
    if K.dtype != np.float64 and not _sums_in_double(loss, y, c):
        K = K.astype(float)
    inner = Inner(K, loss, y, c, fit_intercept)
    if loss.joint and loss.has_curvature:
        from .softmax import solve_softmax

        return solve_softmax(inner, target, start)
    if loss.joint:
        from .joint import solve_joint

        return solve_joint(inner, target, start, keep_product)
    together = y.ndim == 1 or (loss.least_squares and bool(np.all(c == c[:, :1])))
    if not together:
        return _solve_columns(inner, target, start, keep_product)
    if loss.has_curvature:
        from .newton import solve_newton

        return solve_newton(inner, target, start)
    if loss.dual_budget(y, c) is not None:
        from .budgeted import solve_budgeted

        return solve_budgeted(inner, target, start, keep_product)
    return _smo(inner, target, start, keep_product)


def _sums_in_double(loss: Loss, y: Array, c: Array) -> bool:
    """Whether the SMO engine solves the problem, which takes matrices in single precision as they are."""
    return y.ndim == 1 and not (loss.joint or loss.has_curvature or loss.dual_budget(y, c) is not None)


def _solve_columns(
    inner: Inner, target: float, start: FixedSolution | None, keep_product: bool
) -> FixedSolution:
    solved = []
    for k in range(inner.y.shape[1]):
        column = start
        if start is not None:
            beta, decision = start.beta[:, k], start.decision[:, k]
            column = FixedSolution(beta, decision, 0.0, start.primal, start.dual, 0, start.margin)
        y, c = inner.y[:, k], inner.c[:, k]
        solved.append(
            solve_fixed(inner.K, inner.loss, y, c, inner.fit_intercept, target, column, keep_product)
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


#: tolerance of the SMO engine, relative to the gradient, beyond which there is rounding alone
FINEST = 1e-12


def finer(tolerance: float, target: float, gap: float) -> float:
    """Next tolerance of the SMO engine: the gap is about proportional to it, so aim a little below the target."""
    return min(0.3 * tolerance, max(0.5 * tolerance * target / gap, 1e-3 * tolerance))


def _smo(inner: Inner, target: float, start: FixedSolution | None, keep_product: bool) -> FixedSolution:
    from .._numerics.smo import solve_box_qp

    y, c = inner.y, inner.c
    quadratic = inner.loss.quadratic_dual(y)
    if quadratic is None:
        raise TypeError(
            f"{inner.loss!r} has neither curvature nor a quadratic dual: no inner solver knows it"
        )
    lower, upper = inner.loss.box(y, c)
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
            inner.K, quadratic.linear, lower, upper,
            ridge=ridge, kink=kink, equality=inner.fit_intercept, tol=tolerance, beta=beta, product=product,
        )  # fmt: skip
        iterations += int(solved.iterations)
        beta, product = solved.beta, solved.product
        solution = inner.assess(beta, product, iterations)
        if best is None or solution.relative_gap < best.relative_gap:
            best = solution
        # the engine's tolerance is on the gradient; what is wanted is the gap
        if best.relative_gap <= target or not solved.converged or tolerance < FINEST * unit or out_of_time():
            return best
        tolerance = finer(tolerance, target, solution.relative_gap)
