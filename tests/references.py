"""Definitions written out by hand, slow and plain: what the library's values are compared with.

Nothing here imports the library.  Losses, conjugates, norms, primal and dual are typed from their textbook definitions;
optima come from a conic solver (CLARABEL through cvxpy) on the primal in explicit features, and are trusted only as far
as a duality gap recomputed here says.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import brentq

GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0


def golden_section(function: Callable[[float], float], low: float, high: float, steps: int = 80) -> float:
    """Lowest value that golden-section search finds for a convex function on an interval.

    After 80 steps what is left of the interval is its length times 2e-17.
    """
    a, b = low, high
    x, y = b - GOLDEN * (b - a), a + GOLDEN * (b - a)
    fx, fy = function(x), function(y)
    lowest = min(fx, fy, function(low), function(high))
    for _ in range(steps):
        if fx <= fy:
            b, y, fy = y, x, fx
            x = b - GOLDEN * (b - a)
            fx = function(x)
        else:
            a, x, fx = x, y, fy
            y = a + GOLDEN * (b - a)
            fy = function(y)
        lowest = min(lowest, fx, fy)
    return lowest


# ---- losses --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RefLoss:
    """One loss by its definition, and its conjugate ``sup_f u f - l(y, f)`` worked out on paper."""

    name: str
    value: Callable[[np.ndarray, np.ndarray], np.ndarray]
    conjugate: Callable[[np.ndarray, np.ndarray], np.ndarray]
    #: smallest and largest coefficient b = -u with a finite conjugate, as a function of y
    bounds: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
    regression: bool = False
    parameters: dict[str, float] = field(default_factory=dict)
    #: share of the total weight that the samples may have together, and the share that each has anyway
    budget: float = 1.0
    base: float = 0.0

    def total(self, y, f, c) -> float:
        """What the objective charges: ``sum c l``, or the largest losses as far as the budget goes."""
        if self.budget == 1.0:
            return float(np.sum(c * self.value(y, f)))
        if y.ndim == 2:
            return sum(self.total(y[:, k], f[:, k], c[:, k]) for k in range(y.shape[1]))
        left, total = (self.budget - self.base) * np.sum(c), 0.0
        for l, most in sorted(zip(self.value(y, f), c, strict=True), key=lambda pair: -pair[0]):
            extra = min(left, (1 - self.base) * most)
            total += (self.base * most + extra) * l
            left -= extra
        return float(total)

    def threshold(self, y, f, c) -> float:
        """Loss of the sample at which the budget is spent; zero where it is not."""
        left = (self.budget - self.base) * np.sum(c)
        for l, most in sorted(zip(self.value(y, f), c, strict=True), key=lambda pair: -pair[0]):
            left -= (1 - self.base) * most
            if left <= 1e-12 * np.sum(c):
                return float(l)
        return 0.0

    def spent(self, y, c, beta) -> np.ndarray:
        """Share of the budget that coefficients use, column by column."""
        over = np.sum(np.maximum(y * beta - self.base * c, 0.0), axis=0)
        return over / ((self.budget - self.base) * np.sum(c, axis=0))

    @property
    def label(self) -> str:
        return self.name + "".join(f"-{v:g}" for v in self.parameters.values())

    def make(self) -> Any:
        """The library's loss of the same name."""
        from kernelweave.losses import registry

        return registry[self.name](**self.parameters)


def _margin(y, most):
    return np.where(y > 0, 0.0, -most), np.where(y > 0, most, 0.0)


def _a_ln_a(a):
    return np.where(a > 0, a * np.log(np.where(a > 0, a, 1.0)), 0.0)


def _in(a, low, high, value):
    return np.where((a >= low) & (a <= high), value, np.inf)


HINGE = RefLoss(
    "hinge",
    lambda y, f: np.where(y * f < 1, 1 - y * f, 0.0),
    lambda y, u: _in(-u / y, 0, 1, u / y),
    lambda y: _margin(y, 1.0),
)
SQUARED_HINGE = RefLoss(
    "squared_hinge",
    lambda y, f: np.where(y * f < 1, (1 - y * f) ** 2, 0.0),
    lambda y, u: _in(-u / y, 0, np.inf, u / y + (u / y) ** 2 / 4),
    lambda y: _margin(y, np.inf),
)


def huber_hinge(width: float) -> RefLoss:
    def value(y, f):
        z = 1 - y * f
        return np.where(z <= 0, 0.0, np.where(z <= width, z * z / (2 * width), z - width / 2))

    return RefLoss(
        "huber_hinge",
        value,
        lambda y, u: _in(-u / y, 0, 1, u / y + width * (u / y) ** 2 / 2),
        lambda y: _margin(y, 1.0),
        parameters={"width": width},
    )


LOGISTIC = RefLoss(
    "logistic",
    lambda y, f: np.where(y * f > 0, np.log1p(np.exp(-np.abs(f))), np.abs(f) + np.log1p(np.exp(-np.abs(f)))),
    lambda y, u: _in(-u / y, 0, 1, _a_ln_a(np.clip(-u / y, 0, 1)) + _a_ln_a(np.clip(1 + u / y, 0, 1))),
    lambda y: _margin(y, 1.0),
)
SQUARED = RefLoss(
    "squared",
    lambda y, f: (f - y) ** 2,
    lambda y, u: u * y + u * u / 4,
    lambda y: (np.full(y.shape, -np.inf), np.full(y.shape, np.inf)),
    regression=True,
)


def epsilon_insensitive(epsilon: float) -> RefLoss:
    return RefLoss(
        "epsilon_insensitive",
        lambda y, f: np.where(
            f > y + epsilon, f - y - epsilon, np.where(f < y - epsilon, y - epsilon - f, 0.0)
        ),
        lambda y, u: _in(u, -1, 1, u * y + epsilon * np.abs(u)),
        lambda y: (np.full(y.shape, -1.0), np.full(y.shape, 1.0)),
        regression=True,
        parameters={"epsilon": epsilon},
    )


def budgeted_hinge(budget: float, base: float = 0.0) -> RefLoss:
    return RefLoss(
        "budgeted_hinge",
        HINGE.value,
        HINGE.conjugate,
        HINGE.bounds,
        parameters={"budget": budget} | ({"base": base} if base else {}),
        budget=budget,
        base=base,
    )


#: every loss of the library, some with several parameters
LOSSES = [
    HINGE,
    SQUARED_HINGE,
    huber_hinge(1.0),
    huber_hinge(0.3),
    LOGISTIC,
    SQUARED,
    epsilon_insensitive(0.1),
    epsilon_insensitive(0.0),
    budgeted_hinge(0.15),
    budgeted_hinge(0.3, 0.1),
]


# ---- norms ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RefNorm:
    """One norm: what it charges block norms t, and what its dual charges ``s = (beta' K_j beta)_j``."""

    label: str
    half_square: Callable[[np.ndarray], float]
    conjugate: Callable[[np.ndarray], float]
    make: Callable[[], Any]
    parameter: float | None = None
    #: (modelling language, blocks of the function, their norms) -> regulariser and constraints, for a conic solver
    conic: Callable[[Any, Any, Any], tuple[Any, list[Any]]] | None = None


def l1_norm() -> RefNorm:
    return RefNorm("l1", lambda t: np.sum(t) ** 2 / 2, lambda s: np.max(s) / 2, _library_norm("l1"))


def lp_norm(p: float) -> RefNorm:
    r = 2 * p / (p + 1)
    q = p / (p - 1)
    return RefNorm(
        f"lp-{p:g}",
        lambda t: np.sum(t**r) ** (2 / r) / 2,
        lambda s: np.sum(s**q) ** (1 / q) / 2,
        _library_norm(p),
        p,
    )


def uniform_norm() -> RefNorm:
    return RefNorm(
        "uniform", lambda t: t.size * np.sum(t**2) / 2, lambda s: np.mean(s) / 2, _library_norm("uniform")
    )


def sum_norm() -> RefNorm:
    """p = inf, r = 2: the sum kernel."""
    return RefNorm("lp-inf", lambda t: np.sum(t**2) / 2, lambda s: np.sum(s) / 2, _library_norm(np.inf))


def max_norm() -> RefNorm:
    return RefNorm(
        "max", lambda t: np.max(t) ** 2 / 2, lambda s: np.sum(np.sqrt(s)) ** 2 / 2, _library_norm("max")
    )


def entropy_norm(lam: float, smoothing: float = 0.1) -> RefNorm:
    """Entropy-smoothed l1 with its strength given; ``half_square`` finds the weights by bisection in bisection."""

    def half_square(t):
        def price(
            x,
        ):  # minus the derivative of t^2/(2d) + lam/2 d ln d, doubled, at d = exp(x): increasing in x
            return lam * (x + 1) - t**2 * np.exp(-2 * x)

        def weights(nu):
            low, high = np.full(t.shape, -100.0), np.zeros(t.shape)
            for _ in range(60):
                middle = (low + high) / 2
                above = price(middle) > nu
                low, high = np.where(above, low, middle), np.where(above, middle, high)
            return np.exp(low)

        equal = price(np.full(t.shape, -np.log(t.size)))
        low, high = np.min(equal), np.max(equal)  # some weight is below 1/m and some above
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (low, middle) if np.sum(weights(middle)) > 1 else (middle, high)
        d = weights(low)
        return entropy_joint(t, d / np.sum(d), lam)

    def conjugate(s):
        top = np.max(s)
        return (top + lam * np.log(np.mean(np.exp((s - top) / lam)))) / 2

    def make():
        from kernelweave.norms import Entropy

        return Entropy(smoothing)

    return RefNorm("entropy", half_square, conjugate, make, lam)


def entropy_joint(t, d, lam):
    """``1/2 sum t^2 / d + lam/2 sum d ln(m d)`` of weights on the simplex."""
    return np.sum(t**2 / d) / 2 + lam / 2 * (np.sum(_a_ln_a(d)) + np.log(d.size))


# ---- norms with structure: the conic solver is given the set of weights, the values are those on the blocks ---------


def elastic_norm(alpha: float, r: float) -> RefNorm:
    """``1/2 |t|_r^2 + alpha sum t``."""
    q = r / (r - 1)

    def make():
        from kernelweave.norms import Elastic

        return Elastic(alpha, r)

    return RefNorm(
        f"elastic-{alpha:g}-{r:g}",
        lambda t: np.sum(t**r) ** (2 / r) / 2 + alpha * np.sum(t),
        lambda s: np.sum(np.maximum(np.sqrt(s) - alpha, 0.0) ** q) ** (2 / q) / 2,
        make,
        conic=lambda cp, w, t: (cp.square(cp.pnorm(t, r)) / 2 + alpha * cp.sum(t), []),
    )


def _squares_over(cp, w, d):
    return sum(cp.quad_over_lin(cp.vec(v, order="F"), d[j]) for j, v in enumerate(w)) / 2


def elastic_net_norm(mix: float) -> RefNorm:
    """Weights in ``mix sum d + (1 - mix) sum d^2 <= 1``; both values by bisection for the multiplier."""

    def charge(d):
        return mix * np.sum(d) + (1 - mix) * np.sum(d**2)

    def largest(weights, low, high):  # weights grow with the price, which is found in a logarithmic scale
        for _ in range(55):
            middle = (low + high) / 2
            low, high = (middle, high) if charge(weights(np.exp(middle))) < 1 else (low, middle)
        return weights(np.exp(low))

    def half_square(t):
        def weights(price):  # the cubic d^2 (mix + 2 (1 - mix) d) = price t^2, by bisection
            low, high = np.zeros(t.shape), np.full(t.shape, 10.0 + price * np.max(t) ** 2)
            for _ in range(55):
                middle = (low + high) / 2
                below = middle**2 * (mix + 2 * (1 - mix) * middle) < price * t**2
                low, high = np.where(below, middle, low), np.where(below, high, middle)
            return high

        d = largest(weights, -40.0, 40.0)
        return np.sum(np.where(t > 0, t**2 / np.where(t > 0, d, 1.0), 0.0)) / 2

    def conjugate(s):
        def weights(price):
            return np.maximum(price * s - mix, 0) / (2 * (1 - mix))

        return np.sum(largest(weights, -40.0, 40.0) * s) / 2

    def conic(cp, w, t):
        d = cp.Variable(len(w), nonneg=True)
        return _squares_over(cp, w, d), [mix * cp.sum(d) + (1 - mix) * cp.sum_squares(d) <= 1]

    def make():
        from kernelweave.norms import ElasticNet

        return ElasticNet(mix)

    return RefNorm(f"elastic_net-{mix:g}", half_square, conjugate, make, conic=conic)


def elastic_blocks_norm(mix: float) -> RefNorm:
    """``(mix (sum t)^2 + (1 - mix) sum t^2) / 2``; the conjugate by bisection for the sum of the best blocks."""

    def half_square(t):
        return (mix * np.sum(t) ** 2 + (1 - mix) * np.sum(t**2)) / 2

    def conjugate(s):
        def blocks(total):
            return np.maximum(np.sqrt(s) - mix * total, 0) / (1 - mix)

        low, high = 0.0, np.sum(np.sqrt(s)) / (1 - mix)
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (middle, high) if np.sum(blocks(middle)) > middle else (low, middle)
        return np.sum(blocks(high) * np.sqrt(s)) - half_square(blocks(high))

    def make():
        from kernelweave.norms import ElasticBlocks

        return ElasticBlocks(mix)

    return RefNorm(
        f"elastic_blocks-{mix:g}",
        half_square,
        conjugate,
        make,
        conic=lambda cp, w, t: (mix * cp.square(cp.sum(t)) / 2 + (1 - mix) * cp.sum_squares(t) / 2, []),
    )


def grouped_norm(p: float, q: float, labels: str) -> RefNorm:
    """``sum_g (sum_{j in g} d_j^q)^(p/q) <= 1``; on the blocks a norm of norms with exponents ``2p / (p + 1)``."""
    groups = [[j for j, label in enumerate(labels) if label == name] for name in sorted(set(labels))]
    outer, inner = 2 * p / (p + 1), 2 * q / (q + 1)

    def dual(values, exponent):  # the dual of an lp norm
        return (
            np.max(values)
            if exponent == 1
            else np.sum(values ** (exponent / (exponent - 1))) ** ((exponent - 1) / exponent)
        )

    def half_square(t):
        sizes = np.array([np.sum(t[g] ** inner) ** (1 / inner) for g in groups])
        return np.sum(sizes**outer) ** (2 / outer) / 2

    def conic(cp, w, t):
        d = cp.Variable(len(w), nonneg=True)
        size = sum(cp.power(cp.pnorm(d[g], q), p) for g in groups)
        return _squares_over(cp, w, d), [size <= 1]

    def make():
        from kernelweave.norms import Grouped

        return Grouped(p, q, list(labels))

    return RefNorm(
        f"grouped-{p:g}-{q:.3g}",
        half_square,
        lambda s: dual(np.array([dual(s[g], q) for g in groups]), p) / 2,
        make,
        conic=conic,
    )


def with_fixed_part(norm: RefNorm, weight: float) -> RefNorm:
    """The last kernel has a given weight and costs ``|f_0|^2 / (2 weight)``; the others have a norm."""

    def conic(cp, w, t):
        inside = (cp.square(cp.sum(t[:-1])) / 2, []) if norm.conic is None else norm.conic(cp, w[:-1], t[:-1])
        return inside[0] + cp.sum_squares(w[-1]) / (2 * weight), inside[1]

    return RefNorm(
        f"{norm.label}+fixed-{weight:g}",
        lambda t: norm.half_square(t[:-1]) + t[-1] ** 2 / (2 * weight),
        lambda s: norm.conjugate(s[:-1]) + weight * s[-1] / 2,
        norm.make,
        weight,
        conic,
    )


def _library_norm(name):
    def make():
        from kernelweave.norms import make_norm

        return make_norm(name)

    return make


# ---- primal and dual of a problem ----------------------------------------------------------------------------------


def decision_values(Ks, beta, d):
    """``sum_j d_j K_j beta``, a kernel at a time."""
    f = np.zeros_like(beta)
    for K, weight in zip(Ks, d, strict=True):
        f = f + weight * (K @ beta)
    return f


def quadratic_forms(Ks, beta):
    """``s_j = beta' K_j beta``, summed over the columns of beta."""
    return np.array([np.sum(beta * (K @ beta)) for K in Ks])


def lowest_loss(loss: RefLoss, y, f, c, fit_intercept: bool) -> float:
    """``min_b sum c l(y, f + b)``, each column with its own b."""
    if y.ndim == 2:
        return sum(lowest_loss(loss, y[:, k], f[:, k], c[:, k], fit_intercept) for k in range(y.shape[1]))
    if not fit_intercept:
        return loss.total(y, f, c)
    reach = np.max(np.abs(f)) + np.max(np.abs(y)) + 40.0
    return golden_section(lambda b: loss.total(y, f + b, c), -reach, reach)


def primal_value(Ks, y, c, beta, d, loss: RefLoss, norm: RefNorm, fit_intercept: bool) -> float:
    """Objective of the function with blocks ``f_j = d_j sum_i beta_i k_j(x_i, .)``."""
    blocks = d * np.sqrt(np.maximum(quadratic_forms(Ks, beta), 0.0))
    return norm.half_square(blocks) + lowest_loss(loss, y, decision_values(Ks, beta, d), c, fit_intercept)


def loss_gain(y, c, beta, loss: RefLoss) -> float:
    """``-sum c l*(-beta / c)``; a sample of weight zero must have no coefficient."""
    used = c > 0
    assert np.all(beta[~used] == 0)
    return -float(np.sum(c[used] * loss.conjugate(y[used], -beta[used] / c[used])))


def dual_value(Ks, y, c, beta, loss: RefLoss, norm: RefNorm) -> float:
    """Dual objective of coefficients in the dual set."""
    return loss_gain(y, c, beta, loss) - norm.conjugate(np.maximum(quadratic_forms(Ks, beta), 0.0))


def in_dual_set(y, c, beta, loss: RefLoss, fit_intercept: bool, slack: float = 1e-9) -> bool:
    """Whether coefficients are in their box and budget, and sum to zero (column by column) with an intercept."""
    low, high = loss.bounds(y)
    low, high = (
        np.where(c > 0, low * np.where(c > 0, c, 1), 0),
        np.where(c > 0, high * np.where(c > 0, c, 1), 0),
    )
    inside = np.all(beta >= low) and np.all(beta <= high)
    balanced = not fit_intercept or np.all(np.abs(beta.sum(axis=0)) <= slack * (1 + np.abs(beta).sum(axis=0)))
    affordable = loss.budget == 1.0 or np.all(loss.spent(y, c, beta) <= 1 + slack)
    return bool(inside and balanced and affordable)


def into_dual_set(y, c, beta, loss: RefLoss, fit_intercept: bool):
    """A point of the dual set near ``beta``: clip, with an intercept shift by the root of the clipped sum, shrink."""
    if y.ndim == 2:
        columns = [
            into_dual_set(y[:, k], c[:, k], beta[:, k], loss, fit_intercept) for k in range(y.shape[1])
        ]
        return np.stack(columns, axis=1)
    low, high = loss.bounds(y)
    low, high = (
        np.where(c > 0, low * np.where(c > 0, c, 1), 0),
        np.where(c > 0, high * np.where(c > 0, c, 1), 0),
    )
    if not fit_intercept:
        return _afford(y, c, np.clip(beta, low, high), loss)
    reach = 1.0 + 2 * np.max(np.abs(beta))
    reach += np.max(np.where(np.isfinite(high), high, 0)) - np.min(np.where(np.isfinite(low), low, 0))

    def total(h):
        return float(np.sum(np.clip(beta - h, low, high)))

    return _afford(
        y, c, np.clip(beta - brentq(total, -reach, reach, xtol=1e-15, rtol=1e-14), low, high), loss
    )


def _afford(y, c, beta, loss: RefLoss):
    """Shrink towards zero until the budget is met; sums that are zero stay zero."""
    if loss.budget == 1.0 or loss.spent(y, c, beta) <= 1.0:
        return beta
    return beta * brentq(lambda t: loss.spent(y, c, t * beta) - 1.0, 0.0, 1.0, xtol=1e-15, rtol=1e-14)


def relative(primal: float, dual: float) -> float:
    return (primal - dual) / max(abs(primal), abs(dual), 1e-300)


# ---- optima by a conic solver --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Conic:
    """An optimum with bounds that were recomputed from the definitions above."""

    primal: float
    dual: float
    beta: np.ndarray

    @property
    def relative_gap(self) -> float:
        return relative(self.primal, self.dual)

    @property
    def value(self) -> float:
        return 0.5 * (self.primal + self.dual)


def conic_optimum(Ks, y, c, loss: RefLoss, norm: RefNorm, fit_intercept: bool) -> Conic:
    """Solve ``min 1/2 Omega^2 + sum c l`` in explicit features ``K_j = Z_j Z_j'``.

    The solver is run with several settings until the gap, recomputed here, is small; whether it says "optimal" does not
    matter.
    """
    patient = {"static_regularization_constant": 1e-11, "iterative_refinement_max_iter": 50}
    best: Conic | None = None
    for rank_tol, options in ((1e-12, {}), (1e-10, patient)):
        for found in _conic_attempts(Ks, y, c, loss, norm, fit_intercept, rank_tol, options):
            if best is None or found.relative_gap < best.relative_gap:
                best = found
            if best.relative_gap <= 1e-8:
                return best
    assert best is not None, "the conic solver failed"
    return best


def _conic_attempts(Ks, y, c, loss, norm, fit_intercept, rank_tol, options):
    import cvxpy as cp

    Z = [_factor(K, rank_tol) for K in Ks]
    columns = () if y.ndim == 1 else (y.shape[1],)
    w = [cp.Variable((z.shape[1], *columns)) for z in Z]
    f = cp.Variable(y.shape)
    b = cp.Variable(columns) if fit_intercept else None
    total = sum(z @ v for z, v in zip(Z, w, strict=True))
    if b is not None:
        row = b if y.ndim == 1 else np.ones((y.shape[0], 1)) @ cp.reshape(b, (1, y.shape[1]), order="F")
        total = total + row
    link = f == total
    t = cp.hstack([cp.norm(cp.vec(v, order="F"), 2) for v in w])
    constraints = [link]
    if norm.label == "entropy":
        d = cp.Variable(len(Z), nonneg=True)
        constraints.append(cp.sum(d) == 1)
        squares = sum(cp.quad_over_lin(cp.vec(v, order="F"), d[j]) for j, v in enumerate(w))
        regulariser = squares / 2 - norm.parameter / 2 * (cp.sum(cp.entr(d)) - np.log(len(Z)))
    elif norm.conic is not None:
        regulariser, more = norm.conic(cp, w, t)
        constraints += more
    else:
        regulariser = _conic_norm(cp, t, w, norm)
    charge = _conic_total(cp, y, f, c, loss)
    # in units of the total weight the numbers are of order one, which interior points like; another scale may help too
    whole = float(np.sum(c))
    attempts = ((whole, 1e-11, 1e-11), (np.mean(c), 1e-10, 1e-10), (1.0, 1e-9, 1e-9), (whole, 1e-8, 1e-8))
    for scale, gap, feasible in (*attempts, (whole, 1e-9, 1e-6), (1.0, 1e-8, 1e-6)):
        problem = cp.Problem(cp.Minimize((regulariser + charge) / scale), constraints)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                problem.solve(
                    solver=cp.CLARABEL,
                    tol_gap_abs=gap,
                    tol_gap_rel=gap,
                    tol_feas=feasible,
                    max_iter=200,
                    **options,
                )
            except cp.SolverError:
                continue
        if link.dual_value is None:
            continue
        beta = _first_feasible(y, c, np.asarray(link.dual_value) * scale, loss, fit_intercept)
        blocks = np.array([np.linalg.norm(v.value) for v in w])
        scores = sum(z @ v.value for z, v in zip(Z, w, strict=True))
        if norm.label == "entropy":
            weights = np.maximum(d.value, 1e-300)
            charged = entropy_joint(blocks, weights / weights.sum(), norm.parameter)
        else:
            charged = norm.half_square(blocks)
        primal = charged + lowest_loss(loss, y, scores, c, fit_intercept)
        yield Conic(primal, dual_value(Ks, y, c, beta, loss, norm), beta)


def _first_feasible(y, c, multiplier, loss, fit_intercept):
    """The link's multiplier is the coefficient, up to the sign convention of the modelling language."""
    candidates = [into_dual_set(y, c, sign * multiplier, loss, fit_intercept) for sign in (1.0, -1.0)]
    return min(
        candidates, key=lambda beta: min(np.abs(beta - multiplier).max(), np.abs(beta + multiplier).max())
    )


def _factor(K, tol):
    values, vectors = np.linalg.eigh(K)
    kept = values > tol * values[-1]  # a subspace: the primal stays an upper bound
    return vectors[:, kept] * np.sqrt(values[kept])


def _conic_norm(cp, t, w, norm: RefNorm):
    squares = [cp.sum_squares(v) for v in w]
    if norm.label == "l1":
        return cp.square(cp.sum(t)) / 2
    if norm.label == "max":
        return cp.square(cp.max(t)) / 2
    if norm.label == "uniform":
        return len(w) * sum(squares) / 2
    if norm.label == "lp-inf":
        return sum(squares) / 2
    return cp.square(cp.pnorm(t, 2 * norm.parameter / (norm.parameter + 1))) / 2


def _conic_total(cp, y, f, c, loss: RefLoss):
    if loss.budget == 1.0:
        return cp.sum(cp.multiply(c, _conic_loss(cp, y, f, loss)))
    # the formula for the conditional value at risk: min over s of limit s + sum c (l - s)_+
    s = cp.Variable(() if y.ndim == 1 else (1, y.shape[1]), nonneg=True)
    limit = (loss.budget - loss.base) * np.sum(c, axis=0)
    slack = cp.pos(1 - cp.multiply(y, f))
    level = s if y.ndim == 1 else np.ones((y.shape[0], 1)) @ s
    over = cp.sum(cp.multiply((1 - loss.base) * c, cp.pos(1 - cp.multiply(y, f) - level)))
    return loss.base * cp.sum(cp.multiply(c, slack)) + cp.sum(cp.multiply(limit, s)) + over


def _conic_loss(cp, y, f, loss: RefLoss):
    slack = cp.pos(1 - cp.multiply(y, f))
    if loss.name == "hinge":
        return slack
    if loss.name == "squared_hinge":
        return cp.square(slack)
    if loss.name == "huber_hinge":
        # the infimal convolution of a parabola and a hinge, which the cones like better than a Huber function
        width = loss.parameters["width"]
        tail = cp.Variable(y.shape, nonneg=True)
        return cp.square(cp.pos(1 - cp.multiply(y, f) - tail)) / (2 * width) + tail
    if loss.name == "logistic":
        return cp.logistic(-cp.multiply(y, f))
    if loss.name == "squared":
        return cp.square(f - y)
    return cp.pos(cp.abs(f - y) - loss.parameters["epsilon"])


# ---- data ----------------------------------------------------------------------------------------------------------


def kernel_stack(n: int = 24, m: int = 5, seed: int = 0) -> np.ndarray:
    """``(m, n, n)`` of unlike kernels with mean diagonal one: Gaussians on columns, a linear and a full-rank one."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, max(m, 3)))
    stack = []
    for j in range(m):
        x = X[:, [j]] if j else X
        if j == m - 1:
            K = x @ x.T
        else:
            K = np.exp(-((x[:, None, :] - x[None, :, :]) ** 2).sum(-1) / (2 * (0.6 + 0.3 * j) ** 2))
        stack.append(K * n / np.trace(K))
    return np.array(stack)


def targets(n: int, regression: bool, seed: int = 0, columns: int | None = None) -> np.ndarray:
    """Targets with something to learn in them: functions of the columns that ``kernel_stack`` looks at."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    noise = np.random.default_rng(seed + 1).normal(size=(n, columns or 1))
    turn = np.arange(columns or 1)
    score = X[:, [1]] * np.cos(turn) + np.sin(2 * X[:, [2]]) + 0.5 * np.sin(turn) * X[:, [0]] + 0.4 * noise
    y = score if regression else np.where(score > np.median(score, axis=0), 1.0, -1.0)
    return y[:, 0] if columns is None else y
