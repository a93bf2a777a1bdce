"""The squared loss: kernel ridge regression, and least-squares classification with y in {-1, 1}."""

from __future__ import annotations

import numpy as np

from ._base import Array, Loss, QuadraticDual

__all__ = ["Squared"]


class Squared(Loss, registered_as="squared"):
    """``(y - f)^2`` (not halved, like the squared hinge); dual term ``y b - b^2 / 4``, b free."""

    tasks = frozenset({"classification", "regression"})
    smoothness = 2.0
    has_curvature = True
    least_squares = True
    portable = True

    def value(self, y: Array, f: Array) -> Array:
        return (y - f) ** 2

    def gradient(self, y: Array, f: Array) -> Array:
        return 2.0 * (f - y)

    def curvature(self, y: Array, f: Array) -> Array:
        return np.full_like(f, 2.0)

    def conjugate(self, y: Array, u: Array) -> Array:
        return u * y + 0.25 * u**2

    def bounds(self, y: Array) -> tuple[Array, Array]:
        return np.full_like(y, -np.inf), np.full_like(y, np.inf)

    def quadratic_dual(self, y: Array) -> QuadraticDual:
        return QuadraticDual(y, 0.0, 0.5, *self.bounds(y))

    def project(self, y: Array, beta: Array, c: Array, zero_sum: bool) -> Array:
        """Coefficients are free: what has no weight is zero, and the mean of the rest is taken off."""
        used = c > 0
        inside = np.where(used, beta, 0.0)
        if not zero_sum:
            return inside
        return np.asarray(inside - used * (inside.sum(axis=0) / np.maximum(used.sum(axis=0), 1)))

    def best_intercept(self, y: Array, f: Array, c: Array) -> float | Array:
        """Return the weighted mean of the residuals, of every column."""
        total = c.sum(axis=0)
        mean = np.sum(c * (y - f), axis=0) / np.where(total > 0, total, 1.0)
        return float(mean) if f.ndim == 1 else np.asarray(mean)
