"""The l1 block norm: weights on the simplex, a sparse choice of kernels."""

from __future__ import annotations

import numpy as np

from .._numerics.projections import project_simplex
from ._base import Array, Norm

__all__ = ["L1"]


class L1(Norm, registered_as="l1"):
    """``Omega = sum_j |f_j|``, the classical MKL (r = p = 1).

    Examples
    --------
    >>> import numpy as np
    >>> L1().conjugate(np.array([1.0, 4.0])), L1().half_square(np.array([1.0, 2.0]))
    (2.0, 4.5)
    """

    simplex = True
    r = 1.0

    @property
    def allowed_weights(self) -> str:
        return "non-negative weights that sum to one"

    def half_square(self, t: Array) -> float:
        return 0.5 * float(np.sum(t)) ** 2

    def conjugate(self, s: Array) -> float:
        return 0.5 * float(np.max(s))

    def weights(self, s: Array) -> Array:
        d = np.zeros_like(s)
        d[np.argmax(s)] = 1.0
        return d

    def weights_of_blocks(self, t: Array) -> Array:
        total = float(np.sum(t))
        return t / total if total > 0 else self.start(t.size)

    def scaled(self, weights: Array) -> Array:
        return weights / np.sum(weights)

    def start(self, m: int) -> Array:
        return np.full(m, 1.0 / m)

    def project(self, weights: Array) -> Array:
        return project_simplex(weights)

    def prox(self, t: Array, mu: float) -> Array:
        # all survivors pay the same threshold mu * sum(x); k survivors give sum(x) = S_k / (1 + mu k)
        ordered = np.sort(t)[::-1]
        k = np.arange(1, t.size + 1)
        total = np.cumsum(ordered) / (1.0 + mu * k)
        alive = np.nonzero(ordered > mu * total)[0]
        if alive.size == 0:
            return np.zeros_like(t)
        return np.maximum(t - mu * total[alive[-1]], 0.0)
