"""Definitions written out by hand, slow and plain: what the library's values are compared with.

Nothing here imports the library, but for the objects of the same name (``make``).  Losses, conjugates, norms, primal and
dual are typed from their textbook definitions, for arrays of any precision: the tests give doubles, the judge extended
precision.  Optima come from a conic solver (CLARABEL through cvxpy) on the primal in explicit features, and are trusted
only as far as a duality gap recomputed here says.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Mapping, Sequence
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
    #: whether targets are numbers; ``"counts"`` where they are counts, and decision values the logarithms of rates
    regression: bool | str = False
    parameters: dict[str, float] = field(default_factory=dict)
    #: share of the total weight that the samples may have together, and the share that each has anyway
    budget: float = 1.0
    base: float = 0.0
    #: whether coefficients have to spend the budget, so that the loss has no intercept but an offset of its own
    exact: bool = False
    #: whether a row of classes has one loss together; its coefficients are ``c (e_own - a)``, a on the simplex
    joint: bool = False
    #: whether classes are in an order, with thresholds between them that are best for all samples
    ordered: bool = False
    #: whether samples stand in each other's losses; there is a total and a gain alone
    coupled: bool = False

    def total(self, y, f, c):
        """What the objective charges: ``sum c l``, or the largest losses as far as the budget goes."""
        if self.ordered:
            over = f[:, None] - ordinal_thresholds(y, f, c)
            return np.sum(c[:, None] * _log1p_exp(np.where(_above(y), -over, over)))
        if self.joint:
            return np.sum(c[:, 0] * self.value(y, f))
        if self.budget == 1.0:
            return np.sum(c * self.value(y, f))
        if y.ndim == 2:
            return sum(self.total(y[:, k], f[:, k], c[:, k]) for k in range(y.shape[1]))
        left, total = (self.budget - self.base) * np.sum(c), 0.0
        for l, most in sorted(zip(self.value(y, f), c, strict=True), key=lambda pair: -pair[0]):
            extra = min(left, (1 - self.base) * most)
            total += (self.base * most + extra) * l
            left -= extra
        return total

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
        from kernelweave.losses import OneClass, registry

        if self.name == "one_class":
            return OneClass(**self.parameters)
        return registry[self.name](**self.parameters)


def _margin(y, most):
    return np.where(y > 0, 0.0, -most), np.where(y > 0, most, 0.0)


def _a_ln_a(a):
    return np.where(a > 0, a * np.log(np.where(a > 0, a, 1.0)), 0.0)


def _in(a, low, high, value):
    """The value between the bounds, which coefficients of ``c`` times a bound, divided by c, miss by two roundings."""
    return np.where((a >= low * (1 + 4e-16 * np.sign(-low))) & (a <= high * (1 + 4e-16)), value, np.inf)


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


def _missed(y, f):
    """By how much a log time misses that of the sample; of a censored one (a minus) only where it is too small."""
    missed = np.log(np.abs(y)) - f
    return np.where((y > 0) | (missed > 0), missed, 0.0)


CENSORED_SQUARED = RefLoss(
    "censored_squared",
    lambda y, f: _missed(y, f) ** 2,
    lambda y, u: np.where((y > 0) | (u <= 0), u * np.log(np.abs(y)) + u * u / 4, np.inf),
    lambda y: (np.where(y > 0, -np.inf, 0.0), np.full(y.shape, np.inf)),
    regression=True,
)


#: what strata are apart in the targets of ``CoxLoss``
STRATUM = 1000.0


@dataclass(frozen=True)
class CoxLoss(RefLoss):
    """Cox's partial likelihood by loops over event times; ``|y|`` is 1000 strata plus a number that grows with time."""

    coupled: bool = True

    def event_times(self, y, c):
        """Of every stratum and event time: who is at risk, whose time it is, and the weight of the events then."""
        for stratum in np.unique(np.floor(np.abs(y) / STRATUM)):
            own = (np.floor(np.abs(y) / STRATUM) == stratum) & (c > 0)
            for key in np.unique(np.abs(y)[own & (y > 0)]):
                yield own & (np.abs(y) >= key), own & (y == key), np.sum(c[own & (y == key)])

    def total(self, y, f, c):
        charge = 0 * np.sum(f)
        for at_risk, dies, deaths in self.event_times(y, c):
            top = np.max(f[at_risk])
            charge += deaths * (np.log(np.sum(c[at_risk] * np.exp(f[at_risk] - top))) + top)
            charge -= np.sum(c[dies] * (f[dies] + np.log(c[dies])))
        return charge

    def gradient(self, y, f, c):
        slope = np.zeros_like(f)
        for at_risk, dies, deaths in self.event_times(y, c):
            e = np.where(at_risk, c * np.exp(np.where(at_risk, f - np.max(f[at_risk]), 0)), 0)
            slope += deaths * e / np.sum(e) - np.where(dies, c, 0)
        return slope

    def hessian(self, y, f, c):
        bend = np.zeros((f.size, f.size), dtype=f.dtype)
        for at_risk, _, deaths in self.event_times(y, c):
            e = np.where(at_risk, c * np.exp(np.where(at_risk, f - np.max(f[at_risk]), 0)), 0)
            p = e / np.sum(e)
            bend += deaths * (np.diag(p) - np.outer(p, p))
        return bend

    def gain(self, y, beta, c):
        """``-total*(-beta)``, and how far coefficients are outside the dual set, relative to the weight of the events.

        u = (c of events) - beta are expected events.  From one event time to the next there are U of them; ``A = B + D``
        may be, B what the intervals before have left.  The conjugate is ``sum u ln(u/c) + sum (B ln B - A ln A)``.
        """
        deaths_of_all = np.sum(c[(y > 0) & (c > 0)])
        u = np.where(c > 0, np.where(y > 0, c, 0) - beta, -np.abs(beta))
        outside = float(max(np.max(-u), 0))
        value = np.sum(_a_ln_a(np.where((y > 0) & (c > 0), c, 0)))
        value += np.sum(
            np.where((u > 0) & (c > 0), u * np.log(np.where(u > 0, u, 1) / np.where(c > 0, c, 1)), 0)
        )
        stratum_of = np.floor(np.abs(y) / STRATUM)
        for stratum in np.unique(stratum_of[c > 0]):
            own = (stratum_of == stratum) & (c > 0)
            keys = np.unique(np.abs(y)[own & (y > 0)])
            first = keys[0] if keys.size else np.inf
            outside = max(outside, float(np.sum(np.maximum(u[own & (np.abs(y) < first)], 0))))
            left = 0 * deaths_of_all
            for key, following in zip(keys, [*keys, np.inf][1:], strict=True):
                most = left + np.sum(c[own & (y == key)])
                value += _a_ln_a(np.maximum(left, 0)) - _a_ln_a(most)
                left = most - np.sum(u[own & (np.abs(y) >= key) & (np.abs(y) < following)])
                outside = max(outside, float(-left))
            outside = max(outside, float(abs(left)))
        return -value, outside / float(deaths_of_all)

    def make(self) -> Any:
        from kernelweave.losses import Cox

        return Cox()


COX = CoxLoss("cox", None, None, lambda y: (np.full(y.shape, -np.inf), np.where(y > 0, 1.0, 0.0)))


def pinball(quantile: float) -> RefLoss:
    return RefLoss(
        "quantile",
        lambda y, f: np.where(f > y, (1 - quantile) * (f - y), quantile * (y - f)),
        lambda y, u: _in(u, -quantile, 1 - quantile, u * y),
        lambda y: (np.full(y.shape, quantile - 1.0), np.full(y.shape, quantile)),
        regression=True,
        parameters={"quantile": quantile},
    )


def huber(delta: float) -> RefLoss:
    def value(y, f):
        r = np.abs(y - f)
        return np.where(r <= delta, r * r / 2, delta * r - delta * delta / 2)

    return RefLoss(
        "huber",
        value,
        lambda y, u: _in(u, -delta, delta, u * y + u * u / 2),
        lambda y: (np.full(y.shape, -delta), np.full(y.shape, delta)),
        regression=True,
        parameters={"delta": delta},
    )


def _half_deviance(y, f):
    """``mu - y - y ln(mu / y)`` with ``mu = exp f``: y times ``exp(z) - 1 - z``, ``z = f - ln y``."""
    some = np.where(y > 0, y, 1.0)
    over = f - np.log(some)
    with np.errstate(over="ignore"):  # far from any optimum
        return np.where(y > 0, some * (np.expm1(over) - over), np.exp(f))


POISSON = RefLoss(
    "poisson",
    _half_deviance,
    lambda y, u: _in(-u, -np.inf, y, _a_ln_a(y + u) - (y + u) + y - _a_ln_a(y)),
    lambda y: (np.full(y.shape, -np.inf), 1.0 * y),
    regression="counts",
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


def one_class(nu: float) -> RefLoss:
    """Minus the lowest decision values, as many as have ``nu`` of the weight together; there are no targets."""
    return RefLoss(
        "one_class",
        lambda y, f: -f,
        lambda y, u: _in(-u, 0, 1, 0 * u),
        lambda y: (0 * y, 0 * y + 1),
        parameters={"nu": nu},
        budget=nu,
        exact=True,
    )


def _simplex(y, u):
    """The point a of the simplex that coefficients ``-u = e_own - a`` of a row stand for."""
    return np.where(y > 0, 1 + u, u)


def _on_simplex(a, value):
    return np.where(np.all(a >= 0, axis=1) & (np.abs(np.sum(a, axis=1) - 1) <= 1e-9), value, np.inf)


def _over_own(y, f):
    """Values of the classes above that of the row's own."""
    return f - np.sum(np.where(y > 0, f, 0), axis=1, keepdims=True)


#: ``max over k of [k is not the own class] + f_k - f_own``
MULTICLASS_HINGE = RefLoss(
    "multiclass_hinge",
    lambda y, f: np.max(_over_own(y, f) + (y < 0), axis=1),
    lambda y, u: _on_simplex(_simplex(y, u), -np.sum(np.where(y < 0, u, 0), axis=1)),
    lambda y: (np.where(y > 0, 0.0, -1.0), np.where(y > 0, 1.0, 0.0)),
    joint=True,
)


def _log_sum_exp(f):
    top = np.max(f, axis=1)
    return top + np.log(np.sum(np.exp(f - top[:, None]), axis=1))


#: ``-log`` of the own class's share of ``exp f``
SOFTMAX = RefLoss(
    "multinomial",
    lambda y, f: _log_sum_exp(_over_own(y, f)),
    lambda y, u: _on_simplex(_simplex(y, u), np.sum(_a_ln_a(_simplex(y, u)), axis=1)),
    lambda y: (np.where(y > 0, 0.0, -1.0), np.where(y > 0, 1.0, 0.0)),
    joint=True,
)


def _above(y):
    """Whether the class of each sample is above each threshold."""
    return y[:, None] > np.arange(int(np.max(y)))


def _log1p_exp(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def _halved(rising, low, high, steps=110):
    """Where a function that rises from below zero to above it is zero, entry by entry."""
    for _ in range(steps):
        middle = (low + high) / 2
        below = rising(middle) < 0
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return (low + high) / 2


def ordinal_thresholds(y, f, c):
    """t with ``sum c / (1 + exp(t_k - f)) = sum of c above k``."""
    above = _above(y)

    def rising(t):
        over = np.where(above, f[:, None] - t, t - f[:, None])
        return np.sum(np.where(above, 1, -1) * c[:, None] * np.exp(-_log1p_exp(over)), axis=0)

    reach = np.max(np.abs(f)) + 700
    ends = np.full(above.shape[1], reach, dtype=np.result_type(f, float))
    return _halved(rising, -ends, ends)


def ordinal_gain(y, beta, c, rounds: int = 400):
    """``min over f and t of sum c ln(1 + exp(-s (f - t))) + sum beta f``, in turn over f and over t.

    Every step is a search for the root of a rising function; what is left is above the minimum.
    """
    if not np.any(beta):
        return 0.0 * beta[0] if beta.size else 0.0
    above, f = _above(y), np.zeros_like(beta)
    b, lowest = beta / c, np.inf
    for _ in range(rounds):
        t = ordinal_thresholds(y, f, c)

        def rising(f, t=t):
            over = np.where(above, f[:, None] - t, t - f[:, None])
            return b - np.sum(np.where(above, 1, -1) * np.exp(-_log1p_exp(over)), axis=1)

        reach = np.max(np.abs(t)) + 700 + np.zeros_like(beta)
        f = _halved(rising, -reach, reach)
        over = f[:, None] - t
        value = np.sum(c[:, None] * _log1p_exp(np.where(above, -over, over))) + np.sum(beta * f)
        if not value < lowest - 1e-15 * abs(value):
            break
        lowest = value
    return lowest


#: logistic losses at the thresholds between classes 0, 1, ... in their order
ORDINAL = RefLoss(
    "ordinal",
    lambda y, f: np.full(y.shape, np.nan),
    lambda y, u: np.full(y.shape, np.nan),
    lambda y: (y - np.max(y), 1.0 * y),
    ordered=True,
)


def loss_named(name: str, numbers: Sequence[float] = ()) -> RefLoss:
    """The loss of a name, with its numbers: a width, an epsilon, or a budget and its base."""
    families = {
        "huber_hinge": huber_hinge, "epsilon_insensitive": epsilon_insensitive, "budgeted_hinge": budgeted_hinge,
        "quantile": pinball, "huber": huber,
    }  # fmt: skip
    if name in families:
        return families[name](*numbers)
    plain = (
        HINGE,
        SQUARED_HINGE,
        LOGISTIC,
        SQUARED,
        CENSORED_SQUARED,
        POISSON,
        ORDINAL,
        MULTICLASS_HINGE,
        SOFTMAX,
        COX,
    )
    return next(loss for loss in plain if loss.name == name)


#: every loss of single decision values of the library, some with several parameters
LOSSES = [
    HINGE,
    SQUARED_HINGE,
    huber_hinge(1.0),
    huber_hinge(0.3),
    LOGISTIC,
    SQUARED,
    epsilon_insensitive(0.1),
    epsilon_insensitive(0.0),
    CENSORED_SQUARED,
    budgeted_hinge(0.15),
    budgeted_hinge(0.3, 0.1),
    pinball(0.5),
    pinball(0.9),
    huber(1.345),
    huber(0.2),
    POISSON,
]


# ---- norms ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RefNorm:
    """One norm: what it charges block norms t, and what its dual charges ``s = (beta' K_j beta)_j``."""

    label: str
    half_square: Callable[[np.ndarray], Any]
    conjugate: Callable[[np.ndarray], Any]
    #: how far weights are outside their set (0 is inside)
    outside: Callable[[np.ndarray], float]
    #: the library's norm
    make: Callable[[], Any]
    parameter: float | None = None
    #: (modelling language, blocks of the function, their norms) -> regulariser and constraints, for a conic solver
    conic: Callable[[Any, Any, Any], tuple[Any, list[Any]]] | None = None


def _library(name: str, *arguments):
    """A function that makes the library's norm of this name."""

    def make():
        from kernelweave import norms

        return norms.make_norm(name) if not arguments else getattr(norms, name)(*arguments)

    return make


def size(values, exponent):
    """The norm of an exponent, of values that may be far from one."""
    top = np.max(np.abs(values), initial=0)
    if top <= 0 or np.isinf(exponent):
        return top
    return top * np.sum((np.abs(values) / top) ** exponent) ** (1 / exponent)


def block_exponent(p):
    """r = 2p / (p + 1), of block norms where weights have p."""
    return 2.0 if np.isinf(p) else 2 * p / (p + 1)


def conjugate_exponent(p):
    """q with 1/p + 1/q = 1."""
    return 1.0 if np.isinf(p) else np.inf if p == 1 else p / (p - 1)


def _negative(d) -> float:
    return max(0.0, -float(np.min(d)))


def _off_the_simplex(d) -> float:
    return max(_negative(d), abs(float(np.sum(d)) - 1.0))


def _beyond(length):
    """Outside of a set ``d >= 0, length(d) <= 1``."""
    return lambda d: max(_negative(d), float(length(d)) - 1.0)


def l1_norm() -> RefNorm:
    return RefNorm(
        "l1", lambda t: np.sum(t) ** 2 / 2, lambda s: np.max(s) / 2, _off_the_simplex, _library("l1")
    )


def lp_norm(p: float) -> RefNorm:
    return RefNorm(
        f"lp-{p:g}",
        lambda t: size(t, block_exponent(p)) ** 2 / 2,
        lambda s: size(s, conjugate_exponent(p)) / 2,
        _beyond(lambda d: size(d, p)),
        _library("Lp", p),
        p,
    )


def sum_norm() -> RefNorm:
    """p = inf, r = 2: the sum kernel."""
    return lp_norm(np.inf)


def fixed_norm(given: np.ndarray) -> RefNorm:
    """Weights that are given; the function has no part where they are zero."""

    def half_square(t):
        used = t > 0
        return np.sum(t[used] ** 2 / given[used]) / 2 if np.all(given[used] > 0) else np.inf

    return RefNorm(
        "fixed",
        half_square,
        lambda s: given @ s / 2,
        lambda d: max(_negative(d), float(np.max(np.abs(d - given)))),
        _library("Fixed", given),
    )


def uniform_norm() -> RefNorm:
    def outside(d):
        return max(_negative(d), float(np.max(np.abs(d - 1 / d.size))))

    return RefNorm(
        "uniform", lambda t: t.size * np.sum(t**2) / 2, lambda s: np.mean(s) / 2, outside, _library("uniform")
    )


def max_norm() -> RefNorm:
    """Any weights: none of their sets is convex."""
    return RefNorm(
        "max", lambda t: np.max(t, initial=0) ** 2 / 2, lambda s: np.sum(np.sqrt(s)) ** 2 / 2, _negative,
        _library("max"),
    )  # fmt: skip


def at_most_norm(k: int) -> RefNorm:
    """k kernels of weight 1 / k, or all where there are fewer."""

    def half_square(t):
        few = min(k, t.size)
        return few * np.sum(t**2) / 2 if np.count_nonzero(t) <= few else np.inf

    def outside(d):
        few = min(k, d.size)
        many = max(0, np.count_nonzero(d) - few)
        return max(_negative(d), float(many), float(np.max(np.minimum(np.abs(d), np.abs(d - 1 / few)))))

    return RefNorm(
        f"at_most-{k}",
        half_square,
        lambda s: np.mean(np.sort(s)[::-1][:k]) / 2,
        outside,
        _library("AtMost", k),
    )


def lowest_of_cuts(k: int, gains, quads, held: Mapping[int, float] | None = None):
    """``min over subsets of max over cuts``, notation (21), by trying every subset of k kernels.

    ``held`` has the weights of kernels that always count.
    """
    held = dict(held or {})
    learnt = [j for j in range(quads.shape[1]) if j not in held]
    k = min(k, len(learnt))
    gains = gains - quads[:, list(held)] @ np.asarray(list(held.values()), dtype=quads.dtype) / 2
    subsets = np.array(list(itertools.combinations(learnt, k)))
    worst = np.full(len(subsets), -np.inf, dtype=quads.dtype)
    for gain, quad in zip(gains, quads, strict=True):
        worst = np.maximum(worst, gain - np.sum(quad[subsets], axis=1) / (2 * k))
    return np.min(worst)


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

    return RefNorm("entropy", half_square, conjugate, _off_the_simplex, _library("Entropy", smoothing), lam)


def entropy_joint(t, d, lam):
    """``1/2 sum t^2 / d + lam/2 sum d ln(m d)`` of weights on the simplex."""
    used = t != 0
    if np.any(d[used] <= 0):
        return np.inf
    return np.sum(t[used] ** 2 / d[used]) / 2 + lam / 2 * np.sum(
        _a_ln_a(d) + d * np.log(d.dtype.type(d.size))
    )


# ---- norms with structure: the conic solver is given the set of weights, the values are those on the blocks ---------


def elastic_norm(alpha: float, r: float) -> RefNorm:
    """``1/2 |t|_r^2 + alpha sum t``."""
    return RefNorm(
        f"elastic-{alpha:g}-{r:g}",
        lambda t: size(t, r) ** 2 / 2 + alpha * np.sum(t),
        lambda s: size(np.maximum(np.sqrt(s) - alpha, 0), conjugate_exponent(r)) ** 2 / 2,
        _beyond(lambda d: size(d, r / (2 - r) if r < 2 else np.inf)),
        _library("Elastic", alpha, r),
        conic=lambda cp, w, t: (cp.square(cp.pnorm(t, r)) / 2 + alpha * cp.sum(t), []),
    )


def _squares_over(cp, w, d):
    return sum(cp.quad_over_lin(cp.vec(v, order="F"), d[j]) for j, v in enumerate(w)) / 2


def elastic_net_norm(mix: float) -> RefNorm:
    """Weights in ``mix sum d + (1 - mix) sum d^2 <= 1``; ``half_square`` by its conditions of first order."""

    def charge(d):
        return mix * np.sum(d) + (1 - mix) * np.sum(d**2)

    def half_square(t):
        top = np.max(t, initial=0)
        if top <= 0:
            return 0.0 * top
        used = (t[t > 0] / top).astype(np.longdouble)
        eps = np.finfo(np.longdouble).eps

        def weights(
            log_price,
        ):  # d^2 (mix + 2 (1 - mix) d) = price t^2: convex in d, so that Newton is monotone
            goal = np.exp(log_price) * used**2
            d = np.cbrt(goal / (2 - 2 * mix))
            for _ in range(300):
                step = (d**2 * (mix + (2 - 2 * mix) * d) - goal) / (2 * d * mix + 3 * d**2 * (2 - 2 * mix))
                d = d - step
                if np.all(np.abs(step) <= 8 * eps * d):
                    break
            return d

        low, high = np.longdouble(-1), np.longdouble(1)
        while charge(weights(low)) > 1:
            low *= 2
        while charge(weights(high)) < 1:
            high *= 2
        for _ in range(70):
            middle = (low + high) / 2
            low, high = (middle, high) if charge(weights(middle)) < 1 else (low, middle)
        return top**2 * np.sum(used**2 / weights(low)) / 2

    def conjugate(s):
        # d = (theta s - mix)_+ / (2 - 2 mix), with the charge of the k largest equal to one
        top = np.max(s)
        if top <= 0:
            return 0.0 * top
        ordered, k = np.sort(s / top)[::-1], np.arange(1, s.size + 1)
        theta = np.sqrt((4 - 4 * mix + k * mix**2) / np.cumsum(ordered**2))
        theta = theta[np.flatnonzero(theta * ordered > mix)[-1]]
        d = np.maximum(theta * s / top - mix, 0) / (2 - 2 * mix)
        return np.sum(d * s) / 2

    def conic(cp, w, t):
        d = cp.Variable(len(w), nonneg=True)
        return _squares_over(cp, w, d), [mix * cp.sum(d) + (1 - mix) * cp.sum_squares(d) <= 1]

    return RefNorm(
        f"elastic_net-{mix:g}",
        half_square,
        conjugate,
        _beyond(charge),
        _library("ElasticNet", mix),
        conic=conic,
    )


def elastic_blocks_norm(mix: float) -> RefNorm:
    """``(mix (sum t)^2 + (1 - mix) sum t^2) / 2``."""

    def half_square(t):
        return (mix * np.sum(t) ** 2 + (1 - mix) * np.sum(t**2)) / 2

    def conjugate(s):
        # the best t is (sqrt(s) - mix T)_+ / (1 - mix), T its sum: the k largest take part
        root = np.sort(np.sqrt(s))[::-1]
        if root[0] <= 0:
            return 0.0 * root[0]
        totals = np.cumsum(root) / (1 - mix + mix * np.arange(1, s.size + 1))
        part = root > mix * totals
        t = np.maximum(root - mix * totals[np.flatnonzero(part)[-1]], 0) / (1 - mix)
        return np.sum(t * root) - half_square(t)

    def outside(d):
        left = 1 - (1 - mix) * d
        if np.any(left <= 0):
            return float(np.max(d))
        return max(_negative(d), mix * float(np.sum(d / left)) - 1.0)

    return RefNorm(
        f"elastic_blocks-{mix:g}",
        half_square,
        conjugate,
        outside,
        _library("ElasticBlocks", mix),
        conic=lambda cp, w, t: (mix * cp.square(cp.sum(t)) / 2 + (1 - mix) * cp.sum_squares(t) / 2, []),
    )


def grouped_norm(p: float, q: float, labels: Sequence[Any]) -> RefNorm:
    """``sum_g (sum_{j in g} d_j^q)^(p/q) <= 1``; on the blocks a norm of norms with exponents ``2p / (p + 1)``."""
    groups = [[j for j, label in enumerate(labels) if label == name] for name in sorted(set(labels))]

    def nested(outer, inner):
        return lambda values: size(np.array([size(values[g], inner) for g in groups]), outer)

    length = nested(block_exponent(p), block_exponent(q))
    dual = nested(conjugate_exponent(p), conjugate_exponent(q))

    def conic(cp, w, t):
        d = cp.Variable(len(w), nonneg=True)
        total = sum(cp.power(cp.pnorm(d[g], q), p) for g in groups)
        return _squares_over(cp, w, d), [total <= 1]

    return RefNorm(
        f"grouped-{p:g}-{q:.3g}",
        lambda t: length(t) ** 2 / 2,
        lambda s: dual(s) / 2,
        _beyond(nested(p, q)),
        _library("Grouped", p, q, [str(label) for label in labels]),
        conic=conic,
    )


def with_fixed_parts(norm: RefNorm, held: Mapping[int, float]) -> RefNorm:
    """Some kernels have given weights and cost ``|f_j|^2 / (2 weight)`` each; the others have a norm."""

    def split(values):
        """The values of the kernels that are learnt, and those of the others in the order of ``held``."""
        count = len(values)
        places = [j % count for j in held]
        learnt = [j for j in range(count) if j not in places]
        if isinstance(values, np.ndarray):
            return values[learnt], values[places]
        return [values[j] for j in learnt], [values[j] for j in places]

    given = np.array(list(held.values()))

    def half_square(t):
        learnt, others = split(t)
        return norm.half_square(learnt) + np.sum(others**2 / given) / 2

    def conjugate(s):
        learnt, others = split(s)
        return norm.conjugate(learnt) + given @ others / 2

    def outside(d):
        learnt, others = split(d)
        return max(norm.outside(learnt), float(np.max(np.abs(others - given))))

    def conic(cp, w, t):
        learnt, others = split(w)
        lengths = cp.hstack([t[j] for j in split(list(range(len(w))))[0]])
        inside = _conic_norm(cp, lengths, learnt, norm)
        fixed = sum(cp.sum_squares(v) / (2 * weight) for v, weight in zip(others, given, strict=True))
        return inside[0] + fixed, inside[1]

    label = "+".join([norm.label, *(f"fixed-{weight:g}" for weight in given)])
    return RefNorm(label, half_square, conjugate, outside, norm.make, float(given[-1]), conic)


def with_fixed_part(norm: RefNorm, weight: float) -> RefNorm:
    """The last kernel has a given weight."""
    return with_fixed_parts(norm, {-1: weight})


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


def loss_gain(y, c, beta, loss: RefLoss):
    """``-sum c l*(-beta / c)``; a sample of weight zero must have no coefficient."""
    if loss.coupled:
        value, outside = loss.gain(y, beta, c)
        return value if outside < 1e-9 else -np.inf
    used = c > 0
    assert np.all(beta[~used] == 0)
    if loss.ordered:
        return ordinal_gain(y[used], beta[used], c[used])
    if loss.joint:
        rows = used[:, 0]
        return -np.sum(c[rows, 0] * loss.conjugate(y[rows], -beta[rows] / c[rows]))
    return -np.sum(c[used] * loss.conjugate(y[used], -beta[used] / c[used]))


def dual_value(Ks, y, c, beta, loss: RefLoss, norm: RefNorm) -> float:
    """Dual objective of coefficients in the dual set."""
    return loss_gain(y, c, beta, loss) - norm.conjugate(np.maximum(quadratic_forms(Ks, beta), 0.0))


def bounds_of_one_kernel(K, y, c, beta, b, loss: RefLoss):
    """Primal at the intercepts given, and dual, of one kernel matrix of weight one."""
    half = np.sum(quadratic_forms([K], beta)) / 2
    return half + loss.total(y, K @ beta + b, c), loss_gain(y, c, beta, loss) - half


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
    if loss.exact:
        affordable = abs(loss.spent(y, c, beta) - 1) <= slack
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
    if loss.exact:  # shift until it is spent; up to rounding the root is in the set
        reach = 1.0 + np.max(c) + np.max(np.abs(beta))
        shifted = np.clip(
            beta
            + brentq(lambda h: loss.spent(y, c, np.clip(beta + h, 0, c)) - 1.0, -reach, reach, xtol=1e-16),
            0,
            c,
        )
        return shifted
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

    Z = [explicit_features(K, rank_tol) for K in Ks]
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
        regulariser = _squares_over(cp, w, d) - norm.parameter / 2 * (cp.sum(cp.entr(d)) - np.log(len(Z)))
    else:
        regulariser, more = _conic_norm(cp, t, w, norm)
        constraints += more
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


def joint_optimum(Z, y, c, loss: RefLoss, norm: RefNorm, fit_intercept: bool) -> float:
    """Objective that the conic solver reaches for a joint loss, in explicit features Z of the kernels.

    Recomputed from the definitions at its variables: no less than the optimum, whatever the solver says of itself.
    """
    import cvxpy as cp

    W = [cp.Variable((z.shape[1], y.shape[1])) for z in Z]
    b = cp.Variable((1, y.shape[1])) if fit_intercept else np.zeros((1, y.shape[1]))
    f = sum(z @ w for z, w in zip(Z, W, strict=True)) + np.ones((len(y), 1)) @ b
    own = cp.sum(cp.multiply(np.where(y > 0, 1.0, 0.0), f), axis=1)
    above = cp.max(f + (y < 0), axis=1) if loss is MULTICLASS_HINGE else cp.log_sum_exp(f, axis=1)
    charge = c[:, 0] @ (above - own)
    t = cp.hstack([cp.norm(cp.vec(w, order="F"), 2) for w in W])
    regulariser, constraints = _conic_norm(cp, t, W, norm)
    if norm.label.startswith("lp") and 1 < norm.parameter < np.inf:
        # by power cones: towers of quadratic ones lose digits where C is large
        length, parts, most = cp.Variable(), cp.Variable(len(W)), cp.Variable(len(W))
        cone = cp.PowCone3D(parts, length * np.ones(len(W)), most, 1.0 / block_exponent(norm.parameter))
        regulariser, constraints = cp.square(length) / 2, [t <= most, cp.sum(parts) <= length, cone]
    made, total = [], float(np.sum(c[:, 0]))
    for scale in (total, float(np.sqrt(total)), 1.0):
        problem = cp.Problem(cp.Minimize((regulariser + charge) / scale), constraints)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # whether it is accurate is seen from the value
            problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
        blocks = np.array([np.linalg.norm(w.value) for w in W])
        made.append(float(norm.half_square(blocks) + loss.total(y, f.value, c)))
        if problem.status == cp.OPTIMAL:
            break
    return min(made)


def _first_feasible(y, c, multiplier, loss, fit_intercept):
    """The link's multiplier is the coefficient, up to the sign convention of the modelling language."""
    candidates = [into_dual_set(y, c, sign * multiplier, loss, fit_intercept) for sign in (1.0, -1.0)]
    return min(
        candidates, key=lambda beta: min(np.abs(beta - multiplier).max(), np.abs(beta + multiplier).max())
    )


def explicit_features(K, tol: float = 1e-12):
    """Return Z with ``K = Z Z'``."""
    values, vectors = np.linalg.eigh(K)
    kept = values > tol * values[-1]  # a subspace: the primal stays an upper bound
    return vectors[:, kept] * np.sqrt(values[kept])


def _conic_norm(cp, t, w, norm: RefNorm):
    """Regulariser and constraints."""
    if norm.conic is not None:
        return norm.conic(cp, w, t)
    squares = sum(cp.sum_squares(v) for v in w)
    if norm.label == "l1":
        return cp.square(cp.sum(t)) / 2, []
    if norm.label == "max":
        return cp.square(cp.max(t)) / 2, []
    if norm.label == "uniform":
        return len(w) * squares / 2, []
    if norm.label == "lp-inf":
        return squares / 2, []
    return cp.square(cp.pnorm(t, block_exponent(norm.parameter))) / 2, []


def _conic_total(cp, y, f, c, loss: RefLoss):
    if loss.coupled:
        terms = []
        for at_risk, dies, deaths in loss.event_times(y, c):
            terms.append(deaths * cp.log_sum_exp(f[at_risk] + np.log(c[at_risk])))
            terms.append(-c[dies] @ f[dies] - np.sum(c[dies] * np.log(c[dies])))
        return cp.sum(cp.hstack(terms))
    if loss.budget == 1.0 and not loss.exact:
        return cp.sum(cp.multiply(c, _conic_loss(cp, y, f, loss)))
    if loss.exact:
        offset = cp.Variable()
        return cp.sum(cp.multiply(c, cp.pos(offset - f))) - loss.budget * np.sum(c) * offset
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
    if loss.name == "censored_squared":
        missed = np.log(np.abs(y)) - f
        return cp.multiply(y > 0, cp.square(missed)) + cp.multiply(y < 0, cp.square(cp.pos(missed)))
    if loss.name == "quantile":
        quantile = loss.parameters["quantile"]
        return cp.maximum(quantile * (y - f), (1 - quantile) * (f - y))
    if loss.name == "huber":
        # the infimal convolution of a parabola and the absolute value
        tail = cp.Variable(y.shape)
        return cp.square(y - f - tail) / 2 + loss.parameters["delta"] * cp.abs(tail)
    if loss.name == "poisson":
        return cp.exp(f) - cp.multiply(y, f) - y + _a_ln_a(y)
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


def targets(n: int, regression: bool | str, seed: int = 0, columns: int | None = None) -> np.ndarray:
    """Targets with something to learn in them: functions of the columns that ``kernel_stack`` looks at."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    noise = np.random.default_rng(seed + 1).normal(size=(n, columns or 1))
    turn = np.arange(columns or 1)
    score = X[:, [1]] * np.cos(turn) + np.sin(2 * X[:, [2]]) + 0.5 * np.sin(turn) * X[:, [0]] + 0.4 * noise
    if regression == "counts":
        score = np.random.default_rng(seed + 2).poisson(np.exp(0.5 * score)).astype(float)
    y = score if regression else np.where(score > np.median(score, axis=0), 1.0, -1.0)
    return y[:, 0] if columns is None else y
