"""The elastic net on the weights: between a sparse choice and Kloft's p = 2, without a unit."""

from __future__ import annotations

import numpy as np

from .._numerics.barrier import Boundary
from .._numerics.scalar import monotone_root
from ._base import Along, Array
from ._mixed import MixedNorm

__all__ = ["ElasticNet"]


class ElasticNet(MixedNorm, registered_as="elastic_net"):
    """Weights in ``mix sum_j d_j + (1 - mix) sum_j d_j^2 <= 1``: few kernels, and similar ones share their weight.

    The constraint of Yang et al. (2011) and of Citi's elastic-net MKL (2015).  ``mix -> 1`` is l1, ``mix -> 0`` Kloft's
    p = 2.  The elastic net of PRoNTo is another one, on the block norms: ``ElasticBlocks``.

    Parameters
    ----------
    mix : float, default=0.5
        Share of the l1 part, ``0 < mix < 1``; the larger, the fewer kernels.

    Examples
    --------
    >>> import numpy as np
    >>> ElasticNet(0.8).weights(np.array([4.0, 4.0, 1.0]))  # equal kernels share, a poor one is left out
    array([0.54950976, 0.54950976, 0.        ])
    """

    at_zero = "norm=2"

    @property
    def label(self) -> str:
        return f"elastic net({self.mix:g})"

    @property
    def allowed_weights(self) -> str:
        return f"non-negative weights d with {self.mix:g} sum d + {1.0 - self.mix:g} sum d^2 at most one"

    def _charge(self, weights: Array) -> float:
        return self.mix * float(np.sum(weights)) + (1.0 - self.mix) * float(np.sum(weights**2))

    # ---- the dual -------------------------------------------------------------------------------------------

    def conjugate(self, s: Array) -> float:
        return 0.5 * float(self.weights(s) @ s)

    def weights(self, s: Array) -> Array:
        # d = (theta s - mix)_+ / (2 (1 - mix)); with k positive weights the constraint is
        # theta^2 (sum of their s^2) = 4 (1 - mix) + k mix^2
        top = float(np.max(s, initial=0.0))
        if top <= 0:
            return self.start(s.size)
        share = np.maximum(s, 0.0) / top
        ordered = np.sort(share)[::-1]
        k = np.arange(1, s.size + 1)
        theta = np.sqrt((4.0 * (1.0 - self.mix) + k * self.mix**2) / np.cumsum(ordered**2))
        positive = np.flatnonzero(theta * ordered > self.mix)
        return np.maximum(theta[positive[-1]] * share - self.mix, 0.0) / (2.0 * (1.0 - self.mix))

    # ---- on the blocks --------------------------------------------------------------------------------------

    def half_square(self, t: Array) -> float:
        top = float(np.max(t, initial=0.0))
        if top <= 0:
            return 0.0
        u = t / top
        used = u > 0
        return 0.5 * top**2 * float(np.sum(u[used] ** 2 / self._best(u, 0.0)[used]))

    has_block_step = True

    def along(self, t: Array, j: int) -> Along:
        others = t.copy()
        others[j] = 0.0
        return Along(True, 0.0, self.mix, blocks=others[others > 0.0])

    def block_hessian(self, t: Array) -> Array:
        # the gradient is t / d; log d follows log(price t^2) at these rates, and the price keeps the charge at one
        d = self.weights_of_blocks(t)
        pay = self.mix + 2.0 * (1.0 - self.mix) * d
        rate = 1.0 / (2.0 + 2.0 * (1.0 - self.mix) * d / pay)
        moved = rate * t / d
        square = float(np.sum(rate * t**2 / d))
        return np.diag((1.0 - 2.0 * rate) / d) + 2.0 / square * np.outer(moved, moved)

    def weights_of_blocks(self, t: Array) -> Array:
        top = float(np.max(t, initial=0.0))
        return self._best(t / top, 0.0) if top > 0 else self.start(t.size)

    def prox(self, t: Array, mu: float) -> Array:
        # with weights d the prox is t d / (d + mu), at a value of sum t^2 mu / (d + mu) / 2: the best d is asked for
        top = float(np.max(t, initial=0.0))
        if mu == 0.0 or top <= 0.0:
            return t.copy()
        d = self._best(t / top, mu)
        return t * d / (d + mu)

    def _best(self, t: Array, mu: float) -> Array:
        """Weights that minimise ``sum_j t_j^2 / (d_j + mu)``."""

        def excess(log_price: float) -> float:
            return self._charge(self._at_price(t, mu, log_price)) - 1.0

        return self._at_price(t, mu, monotone_root(excess, 0.0))

    def _at_price(self, t: Array, mu: float, log_price: float) -> Array:
        """Solve ``(d + mu)^2 (mix + 2 (1 - mix) d) = price t^2`` for d >= 0: convex and increasing in d."""
        bend = 2.0 * (1.0 - self.mix)
        goal = np.exp(log_price) * t**2
        enters = goal > self.mix * mu**2
        d = np.cbrt(goal / bend)  # right of the root, from where Newton's steps are monotone
        for _ in range(200):
            pay = self.mix + bend * d
            value = (d + mu) ** 2 * pay - goal
            slope = (d + mu) * (2.0 * pay + bend * (d + mu))
            step = np.divide(value, slope, out=np.zeros_like(d), where=enters & (slope > 0))
            d = np.maximum(d - step, 0.0)
            if np.all(np.abs(step) <= 4e-16 * d):
                break
        return np.where(enters, d, 0.0)

    # ---- on the weights -------------------------------------------------------------------------------------

    def boundary(self, place: Array) -> Boundary:
        bend = 2.0 * (1.0 - self.mix)
        values, slopes = np.array([self._charge(place) - 1.0]), (self.mix + bend * place)[None, :]
        return Boundary(values, slopes, lambda price: price[0] * bend * np.eye(place.size))

    def project(self, weights: Array) -> Array:
        v = np.maximum(weights, 0.0)
        if self._charge(v) <= 1.0:
            return v

        def at(price: float) -> Array:
            return np.maximum(v - price * self.mix, 0.0) / (1.0 + 2.0 * price * (1.0 - self.mix))

        return self.scaled(at(np.exp(monotone_root(lambda log: 1.0 - self._charge(at(np.exp(log)))))))

    def scaled(self, weights: Array) -> Array:
        # the positive root c of (1 - mix) |d|^2 c^2 + mix (sum d) c = 1
        total, square = self.mix * float(np.sum(weights)), (1.0 - self.mix) * float(weights @ weights)
        return weights * (2.0 / (total + np.sqrt(total**2 + 4.0 * square)))

    def start(self, m: int) -> Array:
        return self.scaled(np.ones(m))
