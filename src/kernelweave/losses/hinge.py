"""The hinge loss of the support vector machine."""

from __future__ import annotations

import numpy as np

from .._numerics.scalar import minimise_piecewise_linear
from ._base import Array, Loss, QuadraticDual

__all__ = ["Hinge", "margin_bounds"]


def margin_bounds(y: Array, most: float = 1.0) -> tuple[Array, Array]:
    """Bounds ``0 <= y b <= most`` of a loss of the margin, on the signed coefficient."""
    return np.where(y < 0, -most, 0.0), np.where(y > 0, most, 0.0)


class Hinge(Loss, registered_as="hinge"):
    """``max(0, 1 - y f)``, ``y`` in {-1, 1}; dual ``0 <= a <= C``, ``a = y beta``.

    Examples
    --------
    >>> import numpy as np
    >>> Hinge().value(np.array([1.0, -1.0]), np.array([0.25, 0.5]))
    array([0.75, 1.5 ])
    """

    tasks = frozenset({"classification"})

    def value(self, y: Array, f: Array) -> Array:
        return np.maximum(0.0, 1.0 - y * f)

    def gradient(self, y: Array, f: Array) -> Array:
        return np.where(y * f < 1.0, -y, 0.0)

    def conjugate(self, y: Array, u: Array) -> Array:
        a = -y * u
        return np.where((a >= 0) & (a <= 1), -a, np.inf)

    def bounds(self, y: Array) -> tuple[Array, Array]:
        return margin_bounds(y)

    def quadratic_dual(self, y: Array) -> QuadraticDual:
        return QuadraticDual(y, 0.0, 0.0, *self.bounds(y))

    def of_several_classes(self) -> Loss:
        from .multiclass_hinge import MulticlassHinge

        return MulticlassHinge()

    def _intercept(self, y: Array, f: Array, c: Array) -> float:
        # 1 - y (f + b) changes sign at b = y - f, where the slope gains c
        return minimise_piecewise_linear(y - f, c, -float(np.sum(c[y > 0])))
