"""The hinge loss with its corner rounded."""

from __future__ import annotations

import numpy as np

from .._numerics.namespace import between, namespace
from ._base import Array, Loss, QuadraticDual
from .hinge import margin_bounds

__all__ = ["HuberHinge"]


class HuberHinge(Loss, registered_as="huber_hinge"):
    """Hinge whose corner is a parabola on ``1 - width < y f < 1``; dual term ``a - width a^2 / 2``, ``0 <= a <= 1``.

    Parameters
    ----------
    width : float, default=1.0
        Full length of the quadratic zone; width -> 0 is the hinge.
    """

    tasks = frozenset({"classification"})
    portable = True

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

    def conjugate(self, y: Array, u: Array) -> Array:
        a = -y * u
        return np.where((a >= 0) & (a <= 1), -a + 0.5 * self.width * a**2, np.inf)

    def bounds(self, y: Array) -> tuple[Array, Array]:
        return margin_bounds(y)

    def quadratic_dual(self, y: Array) -> QuadraticDual:
        return QuadraticDual(y, 0.0, self.width, *self.bounds(y))
