"""Weights that are given: the mean kernel, one kernel, alignment weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._base import Array, Norm

__all__ = ["Fixed", "Uniform"]


class Fixed(Norm):
    """The weights are given and stay: a plain SVM on ``sum_j d_j K_j``; ``Omega^2 = sum_j |f_j|^2 / d_j``.

    Parameters
    ----------
    given : array-like of shape (m,)
        Non-negative weights, not all zero.
    """

    fixed = True
    convex_in_weights = False
    smooth_conjugate = True
    smooth_on_blocks = True

    def __init__(self, given: Any) -> None:
        self.given = given

    @property
    def label(self) -> str:
        return "fixed"

    @property
    def allowed_weights(self) -> str:
        return ""

    def check(self, m: int) -> None:
        d = np.asarray(self.given, dtype=float)
        if d.shape != (m,):
            raise ValueError(f"Fixed has {d.size} weights for a bank of {m} kernels")
        if not (np.all(np.isfinite(d)) and np.all(d >= 0) and np.any(d > 0)):
            raise ValueError("Fixed needs finite weights >= 0, at least one of them positive")

    def _weights(self, m: int) -> Array:
        return np.asarray(self.given, dtype=float)

    def half_square(self, t: Array) -> float:
        d = self._weights(t.size)
        used = t > 0
        if np.any(d[used] == 0):
            return float(np.inf)
        return 0.5 * float(np.sum(t[used] ** 2 / d[used]))

    def block_gradient(self, t: Array) -> Array:
        d = self._weights(t.size)
        return np.divide(t, d, out=np.zeros_like(t), where=d > 0)

    def conjugate(self, s: Array) -> float:
        return 0.5 * float(self._weights(s.size) @ s)

    def weights(self, s: Array) -> Array:
        return self._weights(s.size).copy()

    def weights_of_blocks(self, t: Array) -> Array:
        return self._weights(t.size).copy()

    def start(self, m: int) -> Array:
        return self._weights(m).copy()

    def scaled(self, weights: Array) -> Array:
        return self._weights(weights.size).copy()

    def project(self, weights: Array) -> Array:
        return self._weights(weights.size).copy()

    def prox(self, t: Array, mu: float) -> Array:
        d = self._weights(t.size)
        return t * d / (d + mu)

    def restricted(self, kernels: NDArray[np.intp]) -> Norm:
        return Fixed(self._weights(0)[kernels])


class Uniform(Fixed, registered_as="uniform"):
    """The mean kernel: weights 1/m, nothing learnt."""

    def __init__(self) -> None:
        pass

    @property
    def label(self) -> str:
        return "uniform"

    @property
    def weights_rule(self) -> str:
        return "all kernels have the same one"

    def check(self, m: int) -> None:
        """Any number of kernels has a mean."""

    def restricted(self, kernels: NDArray[np.intp]) -> Norm:
        """Return the mean of those kernels."""
        return self

    def _weights(self, m: int) -> Array:
        return np.full(m, 1.0 / m)
