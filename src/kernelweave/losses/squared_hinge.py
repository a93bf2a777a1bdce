"""The squared hinge loss."""

from __future__ import annotations

import numpy as np

from .._numerics.namespace import between
from ._base import Array, Loss, QuadraticDual
from .hinge import margin_bounds

__all__ = ["SquaredHinge"]


class SquaredHinge(Loss, registered_as="squared_hinge"):
    """``max(0, 1 - y f)^2``; dual term ``a - a^2 / 4``, ``a >= 0``."""

    tasks = frozenset({"classification"})
    smoothness = 2.0
    portable = True

    def value(self, y: Array, f: Array) -> Array:
        return between(1.0 - y * f, 0.0) ** 2

    def gradient(self, y: Array, f: Array) -> Array:
        return -2.0 * y * between(1.0 - y * f, 0.0)

    def conjugate(self, y: Array, u: Array) -> Array:
        a = -y * u
        return np.where(a >= 0, -a + 0.25 * a**2, np.inf)

    def bounds(self, y: Array) -> tuple[Array, Array]:
        return margin_bounds(y, np.inf)

    def quadratic_dual(self, y: Array) -> QuadraticDual:
        return QuadraticDual(y, 0.0, 0.5, *self.bounds(y))
