"""The epsilon-insensitive loss of support vector regression."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._numerics.scalar import minimise_piecewise_linear
from ._base import Array, Loss, QuadraticDual

__all__ = ["EpsilonInsensitive"]


class EpsilonInsensitive(Loss, registered_as="epsilon_insensitive"):
    """``max(0, |y - f| - epsilon)``; dual term ``y b - epsilon |b|``, ``|b| <= 1``.

    Parameters
    ----------
    epsilon : float, default=0.1
        Half the width of the tube in which nothing is lost; 0 is the absolute loss.
    """

    tasks = frozenset({"regression"})

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

    def quadratic_dual(self, y: Array) -> QuadraticDual:
        return QuadraticDual(y, self.epsilon, 0.0, *self.bounds(y))

    def interior(self, y: Array, b: Array, margin: float = 1e-9) -> NDArray[np.bool_]:
        inside = super().interior(y, b, margin)
        return np.asarray(inside & (np.abs(b) > margin)) if self.epsilon > 0 else inside

    def _intercept(self, y: Array, f: Array, c: Array) -> float:
        residual = y - f
        breaks = np.concatenate([residual - self.epsilon, residual + self.epsilon])
        return minimise_piecewise_linear(breaks, np.concatenate([c, c]), -float(np.sum(c)))
