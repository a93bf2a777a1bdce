"""Losses of the residual ``y - f``: squared and epsilon-insensitive."""

from __future__ import annotations

from operator import attrgetter

import numpy as np

from .._numerics.intercepts import minimise_piecewise_linear
from .._typing import Array
from ._base import Loss, QuadraticDual


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
