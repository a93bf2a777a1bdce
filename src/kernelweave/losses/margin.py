"""Losses of the margin ``y f``: hinge, squared hinge, Huber hinge, logistic, hinge of the worst samples, corrected for
label noise."""

from __future__ import annotations

from operator import attrgetter
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlog1py, xlogy

from .._numerics.intercepts import minimise_piecewise_linear
from .._numerics.namespace import between, expit, namespace, softplus
from .._numerics.projections import project_box_budget
from .._typing import Array
from ._base import DualBudget, Loss, registry
from .regression import Squared


class MarginLoss(Loss):
    """A loss of ``y f``, ``y`` in {-1, 1}; dual term ``a - ridge a^2 / 2`` of ``a = y b``, ``0 <= a <= most``."""

    tasks = frozenset({"classification"})
    ridge: float | None = 0.0
    most: float = 1.0

    def conjugate(self, y: Array, u: Array) -> Array:
        a = -y * u
        charge = -a + 0.5 * self.ridge * a**2 if self.ridge else -a
        return np.where((a >= 0) & (a <= self.most), charge, np.inf)

    def bounds(self, y: Array) -> tuple[Array, Array]:
        signed = self.most * y
        return np.minimum(signed, 0.0), np.maximum(signed, 0.0)


class Hinge(MarginLoss, registered_as="hinge"):
    """``max(0, 1 - y f)``, ``y`` in {-1, 1}; dual ``0 <= a <= C``, ``a = y beta``.

    Examples
    --------
    >>> import numpy as np
    >>> Hinge().value(np.array([1.0, -1.0]), np.array([0.25, 0.5]))
    array([0.75, 1.5 ])
    """

    joint_form: ClassVar[str | None] = "multiclass_hinge"
    portable = True

    def value(self, y: Array, f: Array) -> Array:
        return between(1.0 - y * f, 0.0)

    def gradient(self, y: Array, f: Array) -> Array:
        return -y * (y * f < 1.0)

    def _intercept(self, y: Array, f: Array, c: Array) -> float:
        # 1 - y (f + b) changes sign at b = y - f, where the slope gains c
        return minimise_piecewise_linear(y - f, c, -float(np.sum(c[y > 0])))


class SquaredHinge(MarginLoss, registered_as="squared_hinge"):
    """``max(0, 1 - y f)^2``; dual term ``a - a^2 / 4``, ``a >= 0``."""

    smoothness = 2.0
    ridge = 0.5
    most = np.inf
    portable = True

    def value(self, y: Array, f: Array) -> Array:
        return between(1.0 - y * f, 0.0) ** 2

    def gradient(self, y: Array, f: Array) -> Array:
        return -2.0 * y * between(1.0 - y * f, 0.0)


class HuberHinge(MarginLoss, registered_as="huber_hinge"):
    """Hinge whose corner is a parabola on ``1 - width < y f < 1``; dual term ``a - width a^2 / 2``, ``0 <= a <= 1``.

    Parameters
    ----------
    width : float, default=1.0
        Full length of the quadratic zone; width -> 0 is the hinge.
    """

    portable = True
    ridge = property(attrgetter("width"))  # type: ignore[assignment]

    def __init__(self, width: float = 1.0) -> None:
        self.width = width

    def check(self) -> None:
        if not self.width > 0:
            raise ValueError(
                f"HuberHinge needs width > 0, got {self.width!r}; for the plain hinge use 'hinge'"
            )

    @property
    def smoothness(self) -> float:  # type: ignore[override]
        """Lipschitz constant of the gradient."""
        return 1.0 / self.width

    def value(self, y: Array, f: Array) -> Array:
        slack = between(1.0 - y * f, 0.0)
        return namespace(slack).where(slack < self.width, slack**2 / (2 * self.width), slack - self.width / 2)

    def gradient(self, y: Array, f: Array) -> Array:
        return -y * between((1.0 - y * f) / self.width, 0.0, 1.0)


class Logistic(MarginLoss, registered_as="logistic"):
    """``log(1 + exp(-y f))``; dual term the entropy ``-a ln a - (1-a) ln(1-a)``, ``0 <= a <= 1``.

    It has probabilities, ``P(y = 1 | f) = 1 / (1 + exp(-f))``; with several classes together it is ``multinomial``.
    """

    ridge = None
    smoothness = 0.25
    has_curvature = True
    has_probabilities = True
    sigmoid = True
    portable = True

    def probabilities(self, f: Array) -> Array:
        """Of two classes, or of each class against the rest, normalised."""
        each = expit(f)
        if f.ndim == 1:
            return np.column_stack([1.0 - each, each])
        return np.asarray(each / np.maximum(each.sum(axis=1, keepdims=True), np.finfo(float).tiny))

    def value(self, y: Array, f: Array) -> Array:
        return softplus(-y * f)

    def gradient(self, y: Array, f: Array) -> Array:
        return -y * expit(-y * f)

    def curvature(self, y: Array, f: Array) -> Array:
        p = expit(-np.abs(f))
        return p * (1.0 - p)

    def conjugate(self, y: Array, u: Array) -> Array:
        a = -y * u
        inside = (a >= 0) & (a <= 1)
        a = np.clip(a, 0.0, 1.0)
        return np.where(inside, xlogy(a, a) + xlog1py(1.0 - a, -a), np.inf)

    def dual_curvature(self, y: Array, b: Array) -> Array:
        a = np.clip(y * b, 1e-300, 1.0)
        return 1.0 / np.maximum(a * (1.0 - a), 1e-300)

    def of_several_classes(self) -> Loss:
        # a loss derived from this one is not made of probabilities of one class against the rest
        return registry["multinomial"]() if type(self) is Logistic else self


#: smallest margin that relative gaps are divided by: below it the classifier is zero for all that doubles can tell
SMALLEST_MARGIN = 1e-6


def budget_from_noise_rate(n: int, noise_rate: float, confidence: float = 0.95) -> tuple[float, float]:
    """Budget, and factor on C, that a share of wrong labels and a confidence stand for.

    With ``eps = sqrt(ln(2/delta) / (2n))`` (Proposition 1 of [YMJZY12]), ``tau = sqrt(ln(1/eta) / 2)`` (Lemma 1) and
    ``1 - delta = 1 - eta = confidence``, problem (11) has multipliers in ``[0, 1 + tau]`` whose sum is at most
    ``n (1 - q + eps + tau)``.  Divided by ``1 + tau`` that is the budget of ``BudgetedHinge``, for a larger C.

    Parameters
    ----------
    n : int
        Samples.
    noise_rate : float
        Share q of the labels that may be wrong, ``0 <= q < 1``.
    confidence : float, default=0.95
        Probability with which either bound holds, ``0 < confidence < 1``.

    Returns
    -------
    budget : float
        ``rho / n``; 1, the plain hinge, where n is too small to tell the noise from chance (``q <= eps``).
    factor : float
        ``1 + tau``: multiply C by it.

    Examples
    --------
    >>> budget, factor = budget_from_noise_rate(280, 0.2)
    >>> round(budget, 3), round(factor, 3)
    (0.947, 2.224)
    """
    if not n >= 1:
        raise ValueError(f"the number of samples must be >= 1, got {n!r}")
    if not 0.0 <= noise_rate < 1.0:
        raise ValueError(f"noise_rate must be in [0, 1), got {noise_rate!r}")
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must be in (0, 1), got {confidence!r}")
    slip = 1.0 - confidence
    eps = np.sqrt(np.log(2.0 / slip) / (2.0 * n))
    tau = np.sqrt(np.log(1.0 / slip) / 2.0)
    return float(min(1.0, (1.0 - noise_rate + eps + tau) / (1.0 + tau))), float(1.0 + tau)


class BudgetedHinge(Hinge, registered_as="budgeted_hinge"):
    """The sum of the largest hinge losses, ``budget`` of them; dual ``0 <= a <= C``, ``sum a <= budget sum C``.

    ``total = max over a of sum_i a_i (1 - y_i f_i)`` over that set: the losses of the worst ``rho = budget n`` samples,
    a fraction of the last one.  The multiplier of the budget is the threshold s, the loss of the last sample that
    counts, and ``1 - s`` the margin that remains: with a budget that binds the classifier is that of the plain hinge
    with a larger C (a nu-SVM), in smaller units.

    Parameters
    ----------
    budget : float, default=1.0
        Share of the total weight, ``rho / n``, in (0, 1]; 1 is the plain hinge.
    base : float, default=0.0
        Share of its weight that every sample has at no cost: ``sum [a_i - base C_i]_+ <= (budget - base) sum C``.
        That is the set of (10) in [YMJZY12], ``base = tau / (1 + tau)``; with 0 it is that of (11), which contains it.

    Examples
    --------
    >>> import numpy as np
    >>> y, f = np.ones(4), np.array([1.5, 0.5, 0.0, -1.0])
    >>> BudgetedHinge(budget=0.5).total(y, f, np.ones(4)), Hinge().total(y, f, np.ones(4))
    (3.0, 3.5)
    """

    joint_form = None  # every class against the rest has a budget of its own

    def __init__(self, budget: float = 1.0, base: float = 0.0) -> None:
        self.budget = budget
        self.base = base

    @classmethod
    def from_noise_rate(
        cls, n: int, noise_rate: float, confidence: float = 0.95, exact_set: bool = False
    ) -> BudgetedHinge:
        """Return the loss for a share of wrong labels; C is to be multiplied by ``budget_from_noise_rate(...)[1]``.

        With ``exact_set`` the set is that of (10), of which (11) is a relaxation.
        """
        budget, factor = budget_from_noise_rate(n, noise_rate, confidence)
        return cls(budget, 1.0 - 1.0 / factor if exact_set else 0.0)

    def check(self) -> None:
        if not 0.0 < self.budget <= 1.0:
            raise ValueError(
                f"BudgetedHinge needs 0 < budget <= 1, a share of the total weight, got {self.budget!r}"
            )
        if not 0.0 <= self.base < self.budget:
            raise ValueError(f"BudgetedHinge needs 0 <= base < budget, got base={self.base!r}")

    def worst(self, y: Array, f: Array, c: Array) -> Array:
        """Weights a that attain ``total``: the largest losses are filled first; arrays of one column."""
        return self.base * c + self._filled(self.value(y, f), c)[0]

    def _filled(self, losses: Array, c: Array) -> tuple[Array, float]:
        """Weight beyond the base that each sample gets, and the threshold: the loss of the last one to get any."""
        order = np.argsort(-losses, kind="stable")
        weight = (1.0 - self.base) * c[order]
        limit = (self.budget - self.base) * float(np.sum(c))
        before = np.concatenate([[0.0], np.cumsum(weight)])
        filled = np.empty_like(losses)
        filled[order] = np.clip(limit - before[:-1], 0.0, weight)
        # the sample at which the budget is spent, up to the rounding of the sums
        last = int(np.searchsorted(before[1:], limit * (1.0 - 1e-12)))
        return filled, float(losses[order[last]]) if last < losses.size else 0.0

    def total(self, y: Array, f: Array, c: Array) -> float:
        if self.budget >= 1.0:
            return super().total(y, f, c)
        if f.ndim == 2:
            return sum(self.total(y[:, k], f[:, k], c[:, k]) for k in range(f.shape[1]))
        return float(np.sum(self.worst(y, f, c) * self.value(y, f)))

    def gain(self, y: Array, beta: Array, c: Array) -> float:
        if self.budget < 1.0:
            columns = [(y, beta, c)] if beta.ndim == 1 else zip(y.T, beta.T, c.T, strict=True)
            for yk, bk, ck in columns:
                spent = float(np.sum(np.maximum(yk * bk - self.base * ck, 0.0)))
                if spent > (self.budget - self.base) * float(np.sum(ck)) * (1.0 + 1e-9):
                    return -np.inf
        return super().gain(y, beta, c)

    def margin(self, y: Array, f: Array, c: Array) -> float:
        """``1 - s``, s the threshold: the objective of the equivalent plain hinge is so many times larger."""
        if self.budget >= 1.0:
            return 1.0
        if f.ndim == 2:
            return min(self.margin(y[:, k], f[:, k], c[:, k]) for k in range(f.shape[1]))
        # the base holds the decision values at the margin 1, however much the budget leaves out
        return max(1.0 - self._filled(self.value(y, f), c)[1], self.base, SMALLEST_MARGIN)

    def dual_budget(self, y: Array, c: Array) -> DualBudget | None:
        if self.budget >= 1.0:
            return None
        return DualBudget(self.base * c, (self.budget - self.base) * float(np.sum(c)))

    def interior(self, y: Array, b: Array, margin: float = 1e-9) -> NDArray[np.bool_]:
        inside = super().interior(y, b, margin)
        if self.base == 0.0 or self.budget >= 1.0:
            return inside
        return np.asarray(inside & (np.abs(y * b - self.base) > margin))  # there the budget begins to charge

    def project(self, y: Array, beta: Array, c: Array, zero_sum: bool) -> Array:
        if self.budget >= 1.0:
            return super().project(y, beta, c, zero_sum)
        if beta.ndim == 2:
            columns = [self.project(y[:, k], beta[:, k], c[:, k], zero_sum) for k in range(beta.shape[1])]
            return np.stack(columns, axis=1)
        budget = self.dual_budget(y, c)
        assert budget is not None
        free = budget.free if self.base > 0 else None
        inside = project_box_budget(y * beta, c, budget.limit, free, y if zero_sum else None)
        return y * np.clip(inside, 0.0, c)  # rounding can leave it a bit outside

    def _intercept(self, y: Array, f: Array, c: Array) -> float:
        plain = super()._intercept(y, f, c)
        if self.budget >= 1.0:
            return plain
        if self.base == 0:
            # total = min over s >= 0 of rho s + sum c (1 - y (f + b) - s)_+ (notation (12)), and in u = s + b,
            # v = s - b the classes fall apart: each is a quantile
            half = 0.5 * self.budget * float(np.sum(c))
            ends = []
            for sign in (1.0, -1.0):
                members = (y == sign) & (c > 0)
                spare = float(np.sum(c[members])) - half
                if spare <= 0:  # the smaller class cannot spend its half: the budget does not bind
                    return plain
                ends.append(minimise_piecewise_linear(1.0 - sign * f[members], c[members], -spare))
            u, v = ends
            return 0.5 * (u - v) if u + v > 0 else plain

        # a convex piecewise linear function: the pieces left and right of its minimum are intersected
        def piece(b: float) -> tuple[float, float]:
            a, losses = self.worst(y, f + b, c), self.value(y, f + b)
            return float(a @ losses), -float(np.sum((a * y)[losses > 0]))

        reach = 2.0 * (1.0 + float(np.max(np.abs(f), initial=0.0)))
        left, right = min(plain, -reach), max(plain, reach)
        (height_l, slope_l), (height_r, slope_r) = piece(left), piece(right)
        best = min((height_l, left), (height_r, right), (piece(plain)[0], plain))
        for k in range(200):
            if not (slope_l < 0 < slope_r and left < right):
                break
            cross = (height_r - height_l + slope_l * left - slope_r * right) / (slope_l - slope_r)
            promised = height_l + slope_l * (cross - left)
            # now and then the middle: pieces met at the crossing alone may be taken one by one
            b = cross if k % 3 < 2 else 0.5 * (left + right)
            height, slope = piece(b)
            best = min(best, (height, b))
            if best[0] <= promised + 1e-14 * abs(promised) or slope == 0:
                break
            if slope < 0:
                left, height_l, slope_l = b, height, slope
            else:
                right, height_r, slope_r = b, height, slope
        return best[1]


class _CorrectedForNoise:
    """A loss whose expectation under label noise is that of the clean label (Natarajan et al. 2013).

    With ``rho_y`` the share of class y that is labelled otherwise and ``kappa = 1 - rho_+ - rho_-``, the estimator
    ``((1 - rho_{-y}) l(f, y) - rho_y l(f, -y)) / kappa`` of the clean loss is unbiased.  It is convex for losses with
    ``l(f, y) - l(f, -y)`` linear in f: the logistic loss gets a linear term, the squared loss other targets.
    """

    def __init__(self, positive_rate: float = 0.0, negative_rate: float = 0.0) -> None:
        self.positive_rate = positive_rate
        self.negative_rate = negative_rate

    def check(self) -> None:
        """Raise where the rates do not leave the labels with information."""
        for name in ("positive_rate", "negative_rate"):
            rate = getattr(self, name)
            if not 0.0 <= rate < 1.0:
                raise ValueError(f"{name} must be a share in [0, 1), got {rate!r}")
        if self.positive_rate + self.negative_rate >= 1.0:
            raise ValueError(
                f"positive_rate + negative_rate must be below 1, got {self.positive_rate + self.negative_rate:g}: "
                "labels that noisy say nothing, or the opposite"
            )


class CorrectedLogistic(_CorrectedForNoise, Logistic):
    """Logistic loss minus ``(rho_y / kappa) y f``.

    Not bounded below in f, unlike the clean one: the norm keeps the problem bounded.

    Parameters
    ----------
    positive_rate, negative_rate : float, default=0.0
        Share of the positive (negative) samples that are labelled otherwise.
    """

    def _tilt(self, y: Array) -> Array:
        own = np.where(y > 0, self.positive_rate, self.negative_rate)
        return y * own / (1.0 - self.positive_rate - self.negative_rate)

    def value(self, y: Array, f: Array) -> Array:
        return super().value(y, f) - self._tilt(y) * f

    def gradient(self, y: Array, f: Array) -> Array:
        return super().gradient(y, f) - self._tilt(y)

    def conjugate(self, y: Array, u: Array) -> Array:
        return super().conjugate(y, u + self._tilt(y))

    def dual_curvature(self, y: Array, b: Array) -> Array:
        return super().dual_curvature(y, b - self._tilt(y))

    def bounds(self, y: Array) -> tuple[Array, Array]:
        low, high = super().bounds(y)
        return low + self._tilt(y), high + self._tilt(y)


class CorrectedSquared(_CorrectedForNoise, Squared):
    """Squared loss with the targets ``y (1 - rho_{-y} + rho_y) / kappa``: the clean squared loss but for a constant.

    Parameters
    ----------
    positive_rate, negative_rate : float, default=0.0
        Share of the positive (negative) samples that are labelled otherwise.
    """

    tasks = frozenset({"classification"})
    least_squares = False  # its targets are not y

    def _target(self, y: Array) -> Array:
        own = np.where(y > 0, self.positive_rate, self.negative_rate)
        other = np.where(y > 0, self.negative_rate, self.positive_rate)
        return y * (1.0 - other + own) / (1.0 - self.positive_rate - self.negative_rate)
