"""The elastic net on the block norms, squared: what PRoNTo's elastic-net MKL minimises."""

from __future__ import annotations

import numpy as np

from .._numerics.barrier import Boundary
from .._numerics.scalar import monotone_root
from ._base import Along, Array
from ._mixed import MixedNorm

__all__ = ["ElasticBlocks"]


class ElasticBlocks(MixedNorm, registered_as="elastic_blocks"):
    """``mix (sum_j t_j)^2 + (1 - mix) sum_j t_j^2`` of the block norms t: sparse, and similar kernels share.

    The fixed point of the update ``d_j = t_j / (mix sum_k t_k + (1 - mix) t_j)`` in the elastic-net MKL of PRoNTo
    (Mourao-Miranda et al. 2025, whose mu is ``mix``).  As a set of weights it is
    ``mix sum_j d_j / (1 - (1 - mix) d_j) <= 1``.  ``mix -> 1`` is l1, ``mix -> 0`` the sum of all kernels.

    Parameters
    ----------
    mix : float, default=0.5
        Share of the l1 part, ``0 < mix < 1``; the larger, the fewer kernels.

    Examples
    --------
    >>> import numpy as np
    >>> ElasticBlocks(0.5).weights_of_blocks(np.array([2.0, 2.0, 0.0]))
    array([0.66666667, 0.66666667, 0.        ])
    """

    at_zero = "norm=np.inf"

    @property
    def label(self) -> str:
        return f"elastic blocks({self.mix:g})"

    @property
    def allowed_weights(self) -> str:
        return f"non-negative weights d with {self.mix:g} sum d / (1 - {self._rest:g} d) at most one"

    @property
    def _rest(self) -> float:
        return 1.0 - self.mix

    # ---- on the blocks --------------------------------------------------------------------------------------

    def half_square(self, t: Array) -> float:
        return 0.5 * (self.mix * float(np.sum(t)) ** 2 + self._rest * float(t @ t))

    def block_gradient(self, t: Array) -> Array:
        return self.mix * float(np.sum(t)) + self._rest * t

    has_block_step = True

    def along(self, t: Array, j: int) -> Along:
        # mix (rest + x) + (1 - mix) x = mix rest + x: the pull of the l1 norm with less of the others
        return Along(False, self.mix * float(np.sum(t) - t[j]), 1.0)

    def block_hessian(self, t: Array) -> Array:
        return self.mix + self._rest * np.eye(t.size)

    def weights_of_blocks(self, t: Array) -> Array:
        top = float(np.max(t, initial=0.0))
        if top <= 0.0:
            return self.start(t.size)
        share = t / top
        return share / self.block_gradient(share)

    def prox(self, t: Array, mu: float) -> Array:
        # (1 + mu (1 - mix)) x_j = t_j - mu mix sum(x) on the k entries that stay, which gives the sum
        bend = 1.0 + mu * self._rest
        ordered = np.sort(t)[::-1]
        total = np.cumsum(ordered) / (bend + np.arange(1, t.size + 1) * mu * self.mix)
        stays = np.flatnonzero(ordered > mu * self.mix * total)
        if stays.size == 0:
            return np.zeros_like(t)
        return np.maximum(t - mu * self.mix * total[stays[-1]], 0.0) / bend

    # ---- the dual -------------------------------------------------------------------------------------------

    def conjugate(self, s: Array) -> float:
        return 0.5 * float(self.weights(s) @ s)

    def weights(self, s: Array) -> Array:
        # with d = e / (1 + (1 - mix) e) and sum(e) = 1 / mix: e = (root / theta - 1)_+ / (1 - mix), root = sqrt(s)
        root = np.sqrt(np.maximum(s, 0.0))
        top = float(np.max(root, initial=0.0))
        if top <= 0.0:
            return self.start(s.size)
        root = root / top
        ordered = np.sort(root)[::-1]
        theta = np.cumsum(ordered) / (np.arange(1, s.size + 1) + self._rest / self.mix)
        last = theta[np.flatnonzero(ordered > theta)[-1]]
        return np.where(root > last, (1.0 - last / np.where(root > last, root, 1.0)) / self._rest, 0.0)

    # ---- on the weights -------------------------------------------------------------------------------------

    def _left(self, weights: Array) -> Array:
        """``1 - (1 - mix) d``, positive inside the set."""
        return 1.0 - self._rest * weights

    def _charge(self, weights: Array) -> float:
        left = self._left(weights)
        return self.mix * float(np.sum(weights / left)) if np.all(left > 0.0) else float(np.inf)

    def boundary(self, place: Array) -> Boundary:
        left = self._left(place)
        inside = np.where(left > 0.0, left, np.inf)
        values, slopes = np.array([self._charge(place) - 1.0]), (self.mix / inside**2)[None, :]
        bend = 2.0 * self._rest * self.mix / inside**3
        return Boundary(values, slopes, lambda price: price[0] * np.diag(bend))

    def project(self, weights: Array) -> Array:
        v = np.maximum(weights, 0.0)
        if self._charge(v) <= 1.0:
            return v
        nearest = monotone_root(lambda log: 1.0 - self._charge(self._at_price(v, np.exp(log))))
        return self.scaled(self._at_price(v, float(np.exp(nearest))))

    def _at_price(self, v: Array, price: float) -> Array:
        """Solve ``(v - d) (1 - (1 - mix) d)^2 = price mix`` for d in the set, by bisection; zero for a small v."""
        low, high = np.zeros_like(v), np.minimum(v, 1.0 / self._rest)
        for _ in range(100):
            d = 0.5 * (low + high)
            above = (v - d) * self._left(d) ** 2 > price * self.mix
            low, high = np.where(above, d, low), np.where(above, high, d)
        return np.where(v > price * self.mix, low, 0.0)

    def scaled(self, weights: Array) -> Array:
        top = float(np.max(weights))
        share = weights / top
        # the charge grows from zero to infinity as the largest weight goes from 0 to 1 / (1 - mix)
        most = -np.log(self._rest)

        def excess(x: float) -> float:  # x -> the largest weight, on all of the real line
            return self._charge(share * np.exp(most - np.logaddexp(0.0, -x))) - 1.0

        found = np.exp(most - np.logaddexp(0.0, -monotone_root(excess)))
        return share * float(found)

    def start(self, m: int) -> Array:
        return np.full(m, 1.0 / (self.mix * m + self._rest))
