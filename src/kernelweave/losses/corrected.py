"""Losses whose expectation under label noise is the loss of the clean label (Natarajan et al. 2013).

With ``rho_y`` the share of class y that is labelled otherwise and ``kappa = 1 - rho_+ - rho_-``, the estimator
``((1 - rho_{-y}) l(f, y) - rho_y l(f, -y)) / kappa`` of the clean loss is unbiased.  It is convex for losses with
``l(f, y) - l(f, -y)`` linear in f: the logistic loss gets a linear term, the squared loss other targets.
"""

from __future__ import annotations

import numpy as np

from ._base import Array
from .logistic import Logistic
from .squared import Squared

__all__ = ["CorrectedLogistic", "CorrectedSquared"]


class _Rates:
    """Checks and the factors both losses need."""

    positive_rate: float
    negative_rate: float

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

    def _of(self, y: Array) -> tuple[Array, Array, float]:
        """Rate of the label's own class, rate of the other one, and kappa."""
        own = np.where(y > 0, self.positive_rate, self.negative_rate)
        other = np.where(y > 0, self.negative_rate, self.positive_rate)
        return own, other, 1.0 - self.positive_rate - self.negative_rate


class CorrectedLogistic(_Rates, Logistic):
    """Logistic loss minus ``(rho_y / kappa) y f``.

    Not bounded below in f, unlike the clean one: the norm keeps the problem bounded.

    Parameters
    ----------
    positive_rate, negative_rate : float, default=0.0
        Share of the positive (negative) samples that are labelled otherwise.
    """

    def __init__(self, positive_rate: float = 0.0, negative_rate: float = 0.0) -> None:
        self.positive_rate = positive_rate
        self.negative_rate = negative_rate

    def _tilt(self, y: Array) -> Array:
        own, _, kappa = self._of(y)
        return y * own / kappa

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


class CorrectedSquared(_Rates, Squared):
    """Squared loss with the targets ``y (1 - rho_{-y} + rho_y) / kappa``: the clean squared loss but for a constant.

    Parameters
    ----------
    positive_rate, negative_rate : float, default=0.0
        Share of the positive (negative) samples that are labelled otherwise.
    """

    tasks = frozenset({"classification"})
    least_squares = False  # its targets are not y

    def __init__(self, positive_rate: float = 0.0, negative_rate: float = 0.0) -> None:
        self.positive_rate = positive_rate
        self.negative_rate = negative_rate

    def _target(self, y: Array) -> Array:
        own, other, kappa = self._of(y)
        return y * (1.0 - other + own) / kappa

    def value(self, y: Array, f: Array) -> Array:
        return super().value(self._target(y), f)

    def gradient(self, y: Array, f: Array) -> Array:
        return super().gradient(self._target(y), f)

    def conjugate(self, y: Array, u: Array) -> Array:
        return super().conjugate(self._target(y), u)

    def quadratic_dual(self, y: Array):  # type: ignore[no-untyped-def]
        return super().quadratic_dual(self._target(y))

    def best_intercept(self, y: Array, f: Array, c: Array) -> float | Array:
        return super().best_intercept(self._target(y), f, c)
