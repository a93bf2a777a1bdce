"""The maximum of the block norms: every kernel works equally hard."""

from __future__ import annotations

import numpy as np

from ._base import Array, Norm
from .l1 import L1

__all__ = ["Maximum"]

#: A kernel that contributes nothing would get an infinite weight: it is capped, which is always valid.  The cap costs
#: a part of the objective that is proportional to SMALLEST; the rounding of what that kernel contributes, times its
#: weight, costs one that is inversely proportional to it, and more of it the larger C is.  Here both are a few 1e-7.
SMALLEST = 2e-6


class Maximum(Norm, registered_as="max"):
    """``Omega = max_j |f_j|`` (r = inf): weights ``1 / gamma_j`` with gamma on the simplex.

    The least sparse of all: at the optimum every kernel with a part in the answer has the same block norm, so a bad
    kernel cannot be dropped.
    """

    analytic = True
    convex_in_weights = False
    r = np.inf

    @property
    def allowed_weights(self) -> str:
        # the objective charges the largest block norm, which is a maximum over weights: there is no minimum over them
        return ""

    @property
    def weights_rule(self) -> str:
        return "under the norm max a kernel has the more weight the less it does"

    def half_square(self, t: Array) -> float:
        return 0.5 * float(np.max(t, initial=0.0)) ** 2

    def conjugate(self, s: Array) -> float:
        return 0.5 * float(np.sum(np.sqrt(np.maximum(s, 0.0)))) ** 2

    def weights(self, s: Array) -> Array:
        root = np.sqrt(np.maximum(s, 0.0))
        total = float(np.sum(root))
        if total <= 0:
            return self.start(s.size)
        return total / np.maximum(root, SMALLEST * total)

    def weights_of_blocks(self, t: Array) -> Array:
        raise TypeError("with the maximum norm the weights depend on s, not on the block norms")

    def start(self, m: int) -> Array:
        return np.full(m, float(m))

    def prox(self, t: Array, mu: float) -> Array:
        # Moreau: the conjugate of mu/2 max^2 is 1/(2 mu) l1^2
        return t - mu * L1().prox(t / mu, 1.0 / mu) if mu > 0 else t.copy()
