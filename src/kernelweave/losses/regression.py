"""Losses of numbers: squared, epsilon-insensitive, quantile and Huber of the residual ``y - f``, Poisson of counts."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import xlog1py, xlogy

from .._numerics.intercepts import minimise_piecewise_linear
from .._numerics.namespace import between
from .._typing import Array
from ._base import Loss, QuadraticDual

#: of the scale of Gaussian noise: residuals beyond are outliers, and where there are none 5 % of the precision is lost
EFFICIENT = 1.345
#: decision value from which ``exp`` goes on as a straight line, so that no step of a solver overflows
STEEP = 600.0
#: expected counts from here down are those of what does not happen
NEVER = 1e-30


class Squared(Loss, registered_as="squared"):
    """``(y - f)^2`` (not halved, like the squared hinge); dual term ``y b - b^2 / 4``, b free."""

    tasks = frozenset({"classification", "regression"})
    smoothness = 2.0
    ridge = 0.5
    has_curvature = True
    least_squares = True
    portable = True

    def _target(self, y: Array) -> Array:
        """Targets that the residuals are of: y, but for a correction."""
        return y

    def value(self, y: Array, f: Array) -> Array:
        return (self._target(y) - f) ** 2

    def gradient(self, y: Array, f: Array) -> Array:
        return 2.0 * (f - self._target(y))

    def curvature(self, y: Array, f: Array) -> Array:
        return np.full_like(f, 2.0)

    def conjugate(self, y: Array, u: Array) -> Array:
        return u * self._target(y) + 0.25 * u**2

    def bounds(self, y: Array) -> tuple[Array, Array]:
        return np.full_like(y, -np.inf), np.full_like(y, np.inf)

    def quadratic_dual(self, y: Array) -> QuadraticDual:
        return QuadraticDual(self._target(y), 0.0, 0.5, *self.bounds(y))

    def project(self, y: Array, beta: Array, c: Array, zero_sum: bool) -> Array:
        # coefficients are free: what has no weight is zero, and the mean of the rest is taken off
        used = c > 0
        inside = np.where(used, beta, 0.0)
        if not zero_sum:
            return inside
        return np.asarray(inside - used * (inside.sum(axis=0) / np.maximum(used.sum(axis=0), 1)))

    def best_intercept(self, y: Array, f: Array, c: Array) -> float | Array:
        # the weighted mean of the residuals, of every column
        total = c.sum(axis=0)
        mean = np.sum(c * (self._target(y) - f), axis=0) / np.where(total > 0, total, 1.0)
        return float(mean) if f.ndim == 1 else np.asarray(mean)


class EpsilonInsensitive(Loss, registered_as="epsilon_insensitive"):
    """``max(0, |y - f| - epsilon)``; dual term ``y b - epsilon |b|``, ``|b| <= 1``.

    Parameters
    ----------
    epsilon : float, default=0.1
        Half the width of the tube in which nothing is lost; 0 is the absolute loss.
    """

    tasks = frozenset({"regression"})
    ridge = 0.0
    kink = property(attrgetter("epsilon"))  # type: ignore[assignment]

    def __init__(self, epsilon: float = 0.1) -> None:
        self.epsilon = epsilon

    def check(self) -> None:
        if not self.epsilon >= 0:
            raise ValueError(f"EpsilonInsensitive needs epsilon >= 0, got {self.epsilon!r}")

    def value(self, y: Array, f: Array) -> Array:
        return np.maximum(0.0, np.abs(y - f) - self.epsilon)

    def gradient(self, y: Array, f: Array) -> Array:
        return np.where(np.abs(f - y) > self.epsilon, np.sign(f - y), 0.0)

    def conjugate(self, y: Array, u: Array) -> Array:
        return np.where(np.abs(u) <= 1.0, u * y + self.epsilon * np.abs(u), np.inf)

    def bounds(self, y: Array) -> tuple[Array, Array]:
        return np.full_like(y, -1.0), np.full_like(y, 1.0)

    def _intercept(self, y: Array, f: Array, c: Array) -> float:
        residual = y - f
        breaks = np.concatenate([residual - self.epsilon, residual + self.epsilon])
        return minimise_piecewise_linear(breaks, np.concatenate([c, c]), -float(np.sum(c)))


class Pinball(Loss, registered_as="quantile"):
    """``q (y - f)_+ + (1 - q) (f - y)_+``, least where f is the q-th quantile; dual term ``y b``, ``q - 1 <= b <= q``.

    Parameters
    ----------
    quantile : float or sequence of float, default=0.5
        Strictly between 0 and 1.  Several, in increasing order, are for as many columns of decision values.

    Examples
    --------
    >>> import numpy as np
    >>> Pinball(0.9).value(np.array([1.0, 1.0]), np.array([0.0, 2.0])).round(3)
    array([0.9, 0.1])
    """

    tasks = frozenset({"regression"})
    ridge = 0.0
    error = "pinball_loss"
    # a flexible function is nearer to its own samples than to others: fewer of those lie between two quantiles
    recentred = True

    def __init__(self, quantile: float | ArrayLike = 0.5) -> None:
        self.quantile = quantile

    @property
    def _q(self) -> Array:
        return np.asarray(self.quantile, dtype=float)

    @property
    def columns(self) -> int | None:  # type: ignore[override]
        """Number of quantiles, None for a single one."""
        return None if self._q.ndim == 0 else self._q.size

    def column(self, k: int) -> Loss:
        return self if self.columns is None else Pinball(float(self._q[k]))

    def check(self) -> None:
        try:
            q = np.atleast_1d(self._q)
        except (TypeError, ValueError):
            q = np.empty((0, 0))
        if q.ndim != 1 or not q.size or not (np.all((q > 0) & (q < 1)) and np.all(np.diff(q) > 0)):
            raise ValueError(
                f"a quantile must be strictly between 0 and 1, and several in increasing order, got {self.quantile!r}"
            )

    def value(self, y: Array, f: Array) -> Array:
        return np.maximum(self._q * (y - f), (1.0 - self._q) * (f - y))

    def gradient(self, y: Array, f: Array) -> Array:
        return np.where(f > y, 1.0 - self._q, np.where(f < y, -self._q, 0.0))

    def conjugate(self, y: Array, u: Array) -> Array:
        low, high = self.bounds(y)
        return np.where((-u >= low) & (-u <= high), u * y, np.inf)

    def bounds(self, y: Array) -> tuple[Array, Array]:
        zero = np.zeros_like(y)
        return zero + (self._q - 1.0), zero + self._q

    def gain(self, y: Array, beta: Array, c: Array) -> float:
        low, high = self.box(y, c)
        return float(np.sum(y * beta)) if np.all((beta >= low) & (beta <= high)) else -np.inf

    def _intercept(self, y: Array, f: Array, c: Array) -> float:
        return minimise_piecewise_linear(y - f, c, -float(self._q) * float(np.sum(c)))

    def predictions(self, f: Array) -> Array:
        # sorted, quantiles do not cross, and the sum of their losses is never larger (Chernozhukov et al. 2010)
        return f if self.columns is None else np.sort(f, axis=1)

    def deviation(self, y: Array, predicted: Array) -> Array:
        return self.value(y, predicted)


class Huber(Loss, registered_as="huber"):
    """``r^2 / 2`` of residuals ``r = y - f`` up to delta, ``delta |r| - delta^2 / 2`` beyond: outliers pull no harder.

    Its dual term is ``y b - b^2 / 2``, ``|b| <= delta``.

    Parameters
    ----------
    delta : float, optional
        From where a residual counts as an outlier.  None is 1.345 times the scale of the noise: estimators find that
        scale in the targets of samples that are neighbours, and without data it is one.

    Examples
    --------
    >>> import numpy as np
    >>> Huber(1.0).value(np.zeros(2), np.array([1.0, 10.0]))
    array([0.5, 9.5])
    """

    tasks = frozenset({"regression"})
    ridge = 1.0
    smoothness = 1.0
    portable = True
    error = "huber_loss"

    def __init__(self, delta: float | None = None) -> None:
        self.delta = delta

    @property
    def _delta(self) -> float:
        return EFFICIENT if self.delta is None else float(self.delta)

    def check(self) -> None:
        if self.delta is not None and not 0 < self.delta < np.inf:
            raise ValueError(f"Huber needs a finite delta > 0, or None to find it, got {self.delta!r}")

    def settle(self, scale: Callable[[], float]) -> Loss:
        return self if self.delta is not None else Huber(EFFICIENT * scale())

    def value(self, y: Array, f: Array) -> Array:
        size = abs(y - f)
        inside = between(size, 0.0, self._delta)
        return inside * (size - 0.5 * inside)

    def gradient(self, y: Array, f: Array) -> Array:
        return between(f - y, -self._delta, self._delta)

    def conjugate(self, y: Array, u: Array) -> Array:
        return np.where(np.abs(u) <= self._delta, u * y + 0.5 * u**2, np.inf)

    def bounds(self, y: Array) -> tuple[Array, Array]:
        return np.full_like(y, -self._delta), np.full_like(y, self._delta)

    def deviation(self, y: Array, predicted: Array) -> Array:
        return self.value(y, predicted)


class Poisson(Loss, registered_as="poisson"):
    """``exp(f) - y f - (y - y ln y)``, ``y >= 0``: half the deviance of counts whose expected value is ``exp(f)``.

    With ``v = y - b`` the dual term is ``v - v ln v - (y - y ln y)``, ``b <= y``; at the optimum v is the expected
    count.  It is curved everywhere, but not evenly: there is no Lipschitz constant of its gradient.

    Examples
    --------
    >>> import numpy as np
    >>> Poisson().value(np.array([1.0, 2.0]), np.log([1.0, 1.0])).round(4)
    array([0.    , 0.3863])
    """

    tasks = frozenset({"regression"})
    has_curvature = True
    not_negative = True
    error = "poisson_deviance"

    def value(self, y: Array, f: Array) -> Array:
        near, some = np.minimum(f, STEEP), np.where(y > 0, y, 1.0)
        over = near - np.log(some)
        # y (exp(over) - 1 - over) keeps the digits of small losses; far beyond any count a line goes on
        value = np.where(y > 0, some * (np.expm1(over) - over), np.exp(near))
        return np.maximum(value, 0.0) + (np.exp(STEEP) - y) * (f - near)

    def gradient(self, y: Array, f: Array) -> Array:
        return np.exp(np.minimum(f, STEEP)) - y

    def curvature(self, y: Array, f: Array) -> Array:
        return np.exp(np.clip(f, -STEEP, STEEP))

    def conjugate(self, y: Array, u: Array) -> Array:
        v, some = np.maximum(u + y, 0.0), np.where(y > 0, y, 1.0)
        own = np.where(
            y > 0, xlog1py(v, np.maximum(u / some, -1.0)) + u * (np.log(some) - 1.0), xlogy(v, v) - v
        )
        return np.where(u + y >= 0, own, np.inf)

    def dual_curvature(self, y: Array, b: Array) -> Array:
        return 1.0 / np.maximum(y - b, 1e-300)

    def bounds(self, y: Array) -> tuple[Array, Array]:
        return np.full_like(y, -np.inf), np.asarray(y)

    def _intercept(self, y: Array, f: Array, c: Array) -> float:
        if not np.any(c > 0):
            return 0.0
        top = float(np.max(f[c > 0]))
        total = float(np.sum(c * np.exp(np.minimum(f - top, 0.0))))
        # where there are only zeros the best expected count is none at all
        seen = max(float(np.sum(c * y)), 1e-10 * NEVER * float(np.sum(c)))
        return float(np.log(seen) - np.log(total)) - top

    def nearly_exact(self, y: Array, off: float) -> Array:
        known = np.log(np.maximum(y, NEVER))
        return known + off * (1.0 + np.abs(known))

    def predictions(self, f: Array) -> Array:
        return np.exp(f)

    def without_offset(self, y: Array, offset: Array) -> tuple[Array, Array]:
        # the deviance of a count with an exposure is the exposure times that of the rate
        exposure = np.exp(offset)
        return y / exposure, exposure

    def deviation(self, y: Array, predicted: Array) -> Array:
        return 2.0 * self.value(y, np.log(np.maximum(predicted, NEVER)))
