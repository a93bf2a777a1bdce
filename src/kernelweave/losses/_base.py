"""The contract of a loss: a convex function of the decision value, its conjugate and its dual set.

Conventions (``docs/notation.md``): ``y`` and ``f`` have the same shape, ``(n,)`` or ``(n, k)``; every method works
entry by entry.  ``u`` is the conjugate's argument, ``b = -u`` the *unit coefficient*: the coefficient that multiplies
the kernel is ``beta = c b`` with ``c`` the sample's own C, and is signed (``a_i y_i`` for margin losses).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from .._components import Component, Registry
from .._numerics.intercepts import monotone_root, smooth_root
from .._numerics.projections import project_box_sum
from .._numerics.resources import sum_by_rows
from .._typing import Array, Index


class QuadraticDual(NamedTuple):
    """``-l*(-b) = linear b - kink |b| - ridge b^2 / 2`` on ``lower <= b <= upper``: what a box QP solver needs."""

    linear: Array
    kink: float
    ridge: float
    lower: Array
    upper: Array


class DualBudget(NamedTuple):
    """``sum_i [|beta_i| - free_i]_+ <= limit``: what a dual set may ask of all coefficients together.

    Where it is ``exact`` they have to spend the limit, and nothing is free.
    """

    free: Array
    limit: float
    exact: bool = False


class CurvatureRoot(Protocol):
    """R with ``R R'`` the second derivative of a ``total``, on the samples ``order`` in that order."""

    order: Index

    def times(self, z: Array) -> Array:
        """``R z``."""

    def transposed(self, v: Array) -> Array:
        """``R'v``; leading axes are columns."""

    def sandwich(self, K: Array) -> Array:
        """``R'K R``, of a matrix of all samples."""


registry: Registry[Loss] = Registry("loss", "kernelweave.losses")


class Loss(Component):
    """A convex loss ``l(y, f)``.

    Subclasses give ``value``, ``gradient``, ``conjugate`` and ``bounds``; and ``smoothness`` where the gradient is
    Lipschitz, ``curvature`` where the second derivative is positive everywhere, ``ridge`` (or ``quadratic_dual``) where
    the conjugate is piecewise quadratic.  A loss that evaluates several classes together (``joint``), or weighs samples
    against each other, gives its own ``total``, ``gain``, ``project`` and intercept.
    """

    components = registry
    tasks: ClassVar[frozenset[str]] = frozenset()
    #: Lipschitz constant of the gradient, None where the loss has corners, or a gradient that grows without end
    smoothness: float | None = None
    #: whether ``curvature`` is positive everywhere, so that Newton's method applies
    has_curvature: ClassVar[bool] = False
    #: ``ridge`` and ``kink`` of ``QuadraticDual``; a ridge of None where the dual is not quadratic
    ridge: float | None = None
    kink: float = 0.0
    #: whether ``-gradient`` is a sigmoid between the bounds, ``lower + 1 / (1 + exp(f))``, for compiled steps
    sigmoid: ClassVar[bool] = False
    #: whether decision values are log-odds, so that there are probabilities
    has_probabilities: ClassVar[bool] = False
    #: whether ``value`` and ``conjugate`` are one number per row ``(k,)`` of f, and the dual set ties the row's
    #: coefficients together
    joint: ClassVar[bool] = False
    #: name of the loss that evaluates several classes together; without one, the columns' losses are added up
    joint_form: ClassVar[str | None] = None
    #: whether this is the squared loss: columns of targets then share one factorisation, and can be rotated together
    least_squares: ClassVar[bool] = False
    #: whether a constant may be added to the decision values; else the loss has one of its own
    has_intercept: ClassVar[bool] = True
    #: name of the parameter that weighs the loss, for the words of certificates
    strength: ClassVar[str] = "C"
    #: whether samples stand in each other's losses: ``total`` and its derivatives are all there is, and the second one
    #: has a root (``hessian_root``)
    coupled: ClassVar[bool] = False
    #: what ``unit`` counts in
    unit_name: ClassVar[str] = ""
    #: whether ``value`` and ``gradient`` take arrays of any library, and so can be computed where features lie
    portable: ClassVar[bool] = False
    #: whether it is for classes in an order, with thresholds between them (``thresholds``, ``class_scores``)
    ordered: ClassVar[bool] = False
    #: columns of decision values that it is made for, None for any number of them
    columns: int | None = None
    #: whether predictions are moved to where held-out samples have them, once there are some
    recentred: ClassVar[bool] = False
    #: whether targets of a regression must be >= 0
    not_negative: ClassVar[bool] = False
    #: what held-out predictions of a regression are compared by, the mean of ``deviation``
    error: ClassVar[str] = "squared_error"

    @property
    def has_quadratic_dual(self) -> bool:
        """Whether ``quadratic_dual`` is one, without a kink."""
        quadratic = self.quadratic_dual(np.ones(1))
        return quadratic is not None and quadratic.kink == 0.0

    @property
    def has_saddle_form(self) -> bool:
        """Whether the dual is linear on its set: ``total = max over beta of beta'(linear - f)``, bilinear in both."""
        quadratic = self.quadratic_dual(np.ones(1))
        return quadratic is not None and quadratic.kink == quadratic.ridge == 0.0

    def value(self, y: Array, f: Array) -> Array:
        """Loss of every entry."""
        raise NotImplementedError

    def gradient(self, y: Array, f: Array) -> Array:
        """Derivative in f; at a corner one of the subgradients."""
        raise NotImplementedError

    def curvature(self, y: Array, f: Array) -> Array:
        """Second derivative in f."""
        raise NotImplementedError

    def conjugate(self, y: Array, u: Array) -> Array:
        """``sup_f u f - l(y, f)``, infinite outside its domain."""
        raise NotImplementedError

    def bounds(self, y: Array) -> tuple[Array, Array]:
        """Smallest and largest unit coefficient ``b`` for which ``l*(-b)`` is finite."""
        raise NotImplementedError

    def quadratic_dual(self, y: Array) -> QuadraticDual | None:
        """Return the dual as a box QP, or None where it is not one."""
        return None if self.ridge is None else QuadraticDual(y, self.kink, self.ridge, *self.bounds(y))

    def dual_curvature(self, y: Array, b: Array) -> Array:
        """Second derivative of ``l*(-b)`` in b, inside the bounds."""
        quadratic = self.quadratic_dual(y)
        if quadratic is None:
            raise NotImplementedError
        return np.full(b.shape, quadratic.ridge)

    def interior(self, y: Array, b: Array, margin: float = 1e-9) -> NDArray[np.bool_]:
        """Where ``l*(-b)`` is twice differentiable: strictly inside the bounds and off any kink."""
        low, high = self.bounds(y)
        inside = np.asarray((b > low + margin) & (b < high - margin))
        return np.asarray(inside & (np.abs(b) > margin)) if self.kink > 0 else inside

    def probabilities(self, f: Array) -> Array:
        """Return the probabilities of the classes, ``(n, k)``, that decision values stand for."""
        raise NotImplementedError

    def check(self) -> None:
        """Raise ValueError where a parameter is out of range."""

    def check_targets(self, y: Array) -> None:
        """Raise ValueError where targets of a regression are not what it is for."""
        if self.not_negative and np.any(y < 0):
            raise ValueError(
                f"loss {self.registered_as!r} is for counts or rates, which are >= 0, and y has "
                f"{float(np.nanmin(y)):g}: take another loss, such as 'squared' or 'huber'"
            )

    def settle(self, scale: Callable[[], float]) -> Loss:
        """Return the loss with what it leaves to the data: ``scale()`` is that of the noise in the targets."""
        return self

    def column(self, k: int) -> Loss:
        """Return the loss of one column of decision values."""
        return self

    def nearly_exact(self, y: Array, off: float) -> Array | None:
        """Return decision values that fit targets but for a relative error, None where none do."""
        return y * (1.0 + off) if "regression" in self.tasks else None

    def predictions(self, f: Array) -> Array:
        """Return the targets that decision values of a regression predict."""
        return f

    def without_offset(self, y: Array, offset: Array) -> tuple[Array, Array]:
        """Return targets, and factors of C, with which ``f`` has the losses that ``f + offset`` has of y."""
        return y - offset, np.ones_like(y)

    def deviation(self, y: Array, predicted: Array) -> Array:
        """What predictions of held-out targets are compared by, sample by sample; ``error`` is its name."""
        return (y - predicted) ** 2

    def of_several_classes(self) -> Loss:
        """Return the loss that evaluates several classes together, where there is one, or else this one."""
        return self if self.joint_form is None else registry[self.joint_form]()

    def box(self, y: Array, c: Array) -> tuple[Array, Array]:
        """Bounds of the coefficients ``beta = c b``; a sample of weight zero is held at zero."""
        with np.errstate(invalid="ignore"):  # 0 * inf
            low, high = (bound * c for bound in self.bounds(y))
        if np.all(c > 0):
            return low, high
        return np.where(c > 0, low, 0.0), np.where(c > 0, high, 0.0)

    def total(self, y: Array, f: Array, c: Array) -> float:
        """Return what the objective charges: ``sum_i c_i l(y_i, f_i)``."""
        return float(sum_by_rows(lambda y, f, c: np.sum(c * self.value(y, f)), y, f, c))

    def total_gradient(self, y: Array, f: Array, c: Array) -> Array:
        """Return the derivative of ``total`` in f."""
        return np.asarray(c * self.gradient(y, f))

    def total_curvature(self, y: Array, f: Array, c: Array) -> Array:
        """Return the second derivative of ``total`` in every value, or an upper bound of the whole matrix."""
        return np.asarray(c * self.curvature(y, f))

    def hessian_root(self, y: Array, f: Array, c: Array) -> CurvatureRoot:
        """Return a root of the second derivative of ``total``, of a coupled loss."""
        raise NotImplementedError

    def gain(self, y: Array, beta: Array, c: Array) -> float:
        """Return the loss's part of the dual objective, ``-total*(-beta)``: ``-sum_i c_i l*(-beta_i / c_i)``."""
        used = c > 0
        if not np.all(used):
            y, beta, c = y[used], beta[used], c[used]
        value = -float(sum_by_rows(lambda y, b, c: np.sum(c * self.conjugate(y, -(b / c))), y, beta, c))
        if np.isfinite(value):
            return value
        # a coefficient at a bound of its box, divided by c, may leave the bounds of the unit coefficient by rounding
        low, high = self.box(y, c)
        unit = np.where((beta >= low) & (beta <= high), np.clip(beta / c, *self.bounds(y)), beta / c)
        return float(np.sum(c * -self.conjugate(y, -unit)))

    def thresholds(self, y: Array, f: Array, c: Array) -> Array | None:
        """Return the best thresholds between ordered classes, None of other losses."""
        return None

    def class_scores(self, f: Array, thresholds: Array | None) -> Array:
        """Return what tells classes apart, as ``decision_function`` has it, from a function's values."""
        return f

    def margin(self, y: Array, f: Array, c: Array) -> float:
        """Size of the decision values that matter, relative to 1: relative gaps are divided by it."""
        return 1.0

    def unit(self, y: Array, c: Array) -> float:
        """Return what gaps are relative to where that is less than the objective; 0: nothing.

        A gap of this size is one of ``unit_name``.
        """
        return 0.0

    def dual_budget(self, y: Array, c: Array) -> DualBudget | None:
        """Return the constraint on all coefficients of one column together, None where there is none."""
        return None

    def project(self, y: Array, beta: Array, c: Array, zero_sum: bool) -> Array:
        """Nearest coefficients in the dual set; with an intercept their columns sum to zero."""
        low, high = self.box(y, c)
        if not zero_sum:
            return np.clip(beta, low, high)
        if beta.ndim == 1:
            return project_box_sum(beta, low, high)
        columns = [project_box_sum(beta[:, k], low[:, k], high[:, k]) for k in range(beta.shape[1])]
        return np.stack(columns, axis=1)

    def best_intercept(self, y: Array, f: Array, c: Array) -> Any:
        """Return the b that minimises ``total(y, f + b, c)``: a float, or one per column."""
        if f.ndim == 2:
            return np.array([self.column(k)._intercept(y[:, k], f[:, k], c[:, k]) for k in range(f.shape[1])])
        return self._intercept(y, f, c)

    def _intercept(self, y: Array, f: Array, c: Array) -> float:
        """One column of ``best_intercept``; the derivative in b is increasing, so its root is the answer."""

        @lru_cache(maxsize=1)  # of one place both are asked for, one after the other
        def slopes(b: float) -> Array:
            def sums(y: Array, f: Array, c: Array) -> Array:
                wanted = (self.gradient, self.curvature) if self.has_curvature else (self.gradient,)
                return np.array([np.sum(c * of(y, f + b)) for of in wanted])

            return np.asarray(sum_by_rows(sums, y, f, c))

        def slope(b: float) -> float:
            return float(slopes(b)[0])

        return (
            smooth_root(slope, lambda b: float(slopes(b)[1])) if self.has_curvature else monotone_root(slope)
        )


def make_loss(loss: Any) -> Loss:
    """Return the loss that a name or an instance stands for, its parameters checked."""
    made: Loss = registry.make(loss, Loss)  # type: ignore[type-abstract]
    made.check()
    return made
