"""Elastic norms: sums of an l1 and a squared part, on weights and on block norms."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter

import numpy as np

from .._components import is_number
from .._numerics.intercepts import monotone_root
from .._numerics.quadratic import Boundary
from .._typing import Array
from ._base import Norm, p_norm
from .lp import Block


class MixedNorm(Norm):
    """A norm between l1 (``mix -> 1``) and a dense one (``mix -> 0``)."""

    analytic = True
    smooth_conjugate = True
    constrained = True
    has_prox = has_projection = has_boundary = has_block_step = True
    #: how to ask for the norm at ``mix = 0``
    at_zero: str
    #: cost of weights, at most one in the set; the point of the set that is nearest at a price of that cost
    _charge: Callable[[Array], float]
    _nearest: Callable[[Array, float], Array]

    def __init__(self, mix: float = 0.5) -> None:
        self.mix = mix

    @property
    def rest(self) -> float:
        """Share of the squared part."""
        return 1.0 - self.mix

    def check(self, m: int) -> None:
        if not (is_number(self.mix) and 0.0 < self.mix < 1.0):
            raise ValueError(
                f"{type(self).__name__} needs 0 < mix < 1, got {self.mix!r}; "
                f"mix = 1 is norm='l1', mix = 0 is {self.at_zero}"
            )

    def project(self, weights: Array) -> Array:
        v = np.maximum(weights, 0.0)
        if self._charge(v) <= 1.0:
            return v
        price = np.exp(monotone_root(lambda log: 1.0 - self._charge(self._nearest(v, np.exp(log)))))
        return self.scaled(self._nearest(v, price))


class ElasticNet(MixedNorm, registered_as="elastic_net"):
    """Weights in ``mix sum_j d_j + (1 - mix) sum_j d_j^2 <= 1``: few kernels, and similar ones share their weight.

    The constraint of Yang et al. (2011) and of Citi (2015); ``mix -> 0`` is Kloft's p = 2.  PRoNTo's elastic net is on
    the block norms: ``ElasticBlocks``.

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
    label_text = "elastic net({0.mix:g})"
    allowed_text = "non-negative weights d with {0.mix:g} sum d + {0.rest:g} sum d^2 at most one"

    def _charge(self, weights: Array) -> float:
        return self.mix * float(np.sum(weights)) + self.rest * float(np.sum(weights**2))

    def weights(self, s: Array) -> Array:
        # d = (theta s - mix)_+ / (2 (1 - mix)); with k positive weights the constraint is
        # theta^2 (sum of their s^2) = 4 (1 - mix) + k mix^2
        top = float(np.max(s, initial=0.0))
        if top <= 0:
            return self.start(s.size)
        share = np.maximum(s, 0.0) / top
        ordered = np.sort(share)[::-1]
        k = np.arange(1, s.size + 1)
        theta = np.sqrt((4.0 * self.rest + k * self.mix**2) / np.cumsum(ordered**2))
        positive = np.flatnonzero(theta * ordered > self.mix)
        return np.maximum(theta[positive[-1]] * share - self.mix, 0.0) / (2.0 * self.rest)

    def half_square(self, t: Array) -> float:
        top = float(np.max(t, initial=0.0))
        if top <= 0:
            return 0.0
        u = t / top
        used = u > 0
        return 0.5 * top**2 * float(np.sum(u[used] ** 2 / self._best(u, 0.0)[used]))

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
        bend = 2.0 * self.rest
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

    def boundary(self, place: Array) -> Boundary:
        bend = 2.0 * self.rest
        values, slopes = np.array([self._charge(place) - 1.0]), (self.mix + bend * place)[None, :]
        return Boundary(values, slopes, lambda price: price[0] * bend * np.eye(place.size))

    def _nearest(self, v: Array, price: float) -> Array:
        return np.maximum(v - price * self.mix, 0.0) / (1.0 + 2.0 * price * self.rest)

    def scaled(self, weights: Array) -> Array:
        # the positive root c of (1 - mix) |d|^2 c^2 + mix (sum d) c = 1
        total, square = self.mix * float(np.sum(weights)), self.rest * float(weights @ weights)
        return weights * (2.0 / (total + np.sqrt(total**2 + 4.0 * square)))


class Elastic(Norm, registered_as="elastic"):
    """``1/2 |t|_r^2 + alpha sum_j t_j`` of the block norms t: sparse through alpha, stable through r.

    With ``r = 2`` this is the elastic net of Tomioka and Suzuki (2010), with ``r`` near one UFO-MKL's regulariser.  The
    threshold alpha has the unit of a block norm, so that what it keeps depends on C and on the data; ``ElasticNet`` has
    a share between 0 and 1 in its place.

    Parameters
    ----------
    alpha : float, default=1.0
        Weight of the l1 term, not negative; the larger, the fewer kernels.  A kernel enters where
        ``sqrt(beta'K beta) > alpha``; a large alpha leaves none.
    r : float or None, default=None
        Block exponent, ``1 < r <= 2``; None is UFO's own choice, dual to ``max(2, 2 ln m)``.

    Examples
    --------
    >>> import numpy as np
    >>> Elastic(alpha=1.0, r=2.0).weights(np.array([4.0, 0.25]))  # the second block is below the threshold
    array([0.5, 0. ])
    """

    analytic = True
    smooth_conjugate = True
    #: where most blocks are well above the threshold, which is worth a try: a first step without a Hessian is cheap
    update_rate = 0.5
    has_prox = True
    l1_term = property(attrgetter("alpha"))  # type: ignore[assignment]
    label_text = "elastic({0.alpha})"
    allowed_text = "non-negative weights, at what the norm {0.label} charges for them,"

    def __init__(self, alpha: float = 1.0, r: float | None = None) -> None:
        self.alpha = alpha
        self.r = r

    def check(self, m: int) -> None:
        if not (is_number(self.alpha) and 0.0 <= self.alpha < np.inf):
            raise ValueError(f"alpha of Elastic must be a finite number >= 0, got {self.alpha!r}")
        if self.r is not None and not (is_number(self.r) and 1.0 < self.r <= 2.0):
            raise ValueError(f"r of Elastic must be in (1, 2] or None, got {self.r!r}")

    def for_kernels(self, m: int) -> Norm:
        return self if self.r is not None else Elastic(self.alpha, self._exponents(m)[0])

    def _exponents(self, m: int) -> tuple[float, float]:
        """The block exponent r and its dual, ``r / (r - 1)``."""
        if self.r is not None:
            r = float(self.r)
        else:
            q = max(2.0, 2.0 * float(np.log(max(m, 1))))
            r = q / (q - 1.0)
        return r, r / (r - 1.0)

    def half_square(self, t: Array) -> float:
        return Block(self._exponents(t.size)[0]).half_square(t) + self.alpha * float(np.sum(t))

    def prox(self, t: Array, mu: float) -> Array:
        # on x >= 0 the l1 term is linear: it moves the point, and the block norm does the rest
        return Block(self._exponents(t.size)[0]).prox(np.maximum(t - mu * self.alpha, 0.0), mu)

    def _above(self, s: Array) -> tuple[Array, float, float]:
        """``v = sqrt(s) - alpha`` where that is positive, its q-norm, and q, the dual exponent."""
        v = np.maximum(np.sqrt(np.maximum(s, 0.0)) - self.alpha, 0.0)
        q = self._exponents(s.size)[1]
        return v, p_norm(v, q), q

    def conjugate(self, s: Array) -> float:
        return 0.5 * self._above(s)[1] ** 2

    def weights(self, s: Array) -> Array:
        v, size, q = self._above(s)
        if size <= 0:
            return np.zeros_like(s)
        return (v / np.sqrt(np.maximum(s, np.finfo(float).tiny))) * (v / size) ** (q - 2.0)

    def penalty(self, weights: Array) -> float:
        """``max over s of d's/2 - conjugate(s)``: weights of the two terms add up as resistances in parallel do."""
        w = weights[weights > 0]
        if w.size == 0 or self.alpha == 0.0:
            inside = w.size == 0 or self._size(weights) <= 1.0 + 1e-9
            return 0.0 if inside else float(np.inf)
        if self._size(weights) >= 1.0:
            return float(np.inf)
        # v = sqrt(s) - alpha for the s whose weights are w: w = v / (v + alpha) (v / N)^(q-2) at the size N of v
        r, q = self._exponents(weights.size)
        if r == 2.0:
            v = self.alpha * w / (1.0 - w)
        else:

            def at(log_size: float) -> Array:
                return _solve_share(w, self.alpha * np.exp(-log_size), q) * np.exp(log_size)

            def excess(log_size: float) -> float:
                return 1.0 - float(np.sum((at(log_size) / np.exp(log_size)) ** q)) ** (1.0 / q)

            v = at(monotone_root(excess, np.log(self.alpha)))
        size = float(np.sum(v**q)) ** (2.0 / q)
        return 0.5 * float(w @ (v + self.alpha) ** 2) - 0.5 * size

    def _size(self, weights: Array) -> float:
        """``|d|_p``: below one the penalty is finite."""
        r, _ = self._exponents(weights.size)
        return float(np.max(weights)) if r == 2.0 else p_norm(weights, r / (2.0 - r))

    def weights_of_blocks(self, t: Array) -> Array:
        # d_j = t_j / (derivative of the charge in t_j)
        pull = self.alpha + Block(self._exponents(t.size)[0]).block_gradient(t)
        return np.divide(t, pull, out=np.zeros_like(t), where=pull > 0)

    def scaled(self, weights: Array) -> Array:
        size = self._size(weights)
        return weights.copy() if size <= 0.5 else weights * (0.5 / size)

    def start(self, m: int) -> Array:
        return np.full(m, 1.0 / m)


def _solve_share(w: Array, alpha: float, q: float) -> Array:
    """Solve ``x^(q-1) / (x + alpha) = w`` for x > 0, elementwise, by Newton in ``ln x`` (concave, increasing)."""
    # a point near the root, or right of it; after one step Newton is on the left, from where it is monotone
    x = np.log(np.maximum((2.0 * w) ** (1.0 / (q - 2.0)), (2.0 * alpha * w) ** (1.0 / (q - 1.0))))
    goal = np.log(w)
    for _ in range(100):
        share = np.exp(x)
        value = (q - 1.0) * x - np.log(share + alpha) - goal
        step = value / (q - 1.0 - share / (share + alpha))
        x = x - step
        if np.all(np.abs(step) <= 1e-15 * (1.0 + np.abs(x))):
            break
    return np.exp(x)


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
    label_text = "elastic blocks({0.mix:g})"
    allowed_text = "non-negative weights d with {0.mix:g} sum d / (1 - {0.rest:g} d) at most one"

    def half_square(self, t: Array) -> float:
        return 0.5 * (self.mix * float(np.sum(t)) ** 2 + self.rest * float(t @ t))

    def block_gradient(self, t: Array) -> Array:
        return self.mix * float(np.sum(t)) + self.rest * t

    def weights_of_blocks(self, t: Array) -> Array:
        top = float(np.max(t, initial=0.0))
        if top <= 0.0:
            return self.start(t.size)
        share = t / top
        return share / self.block_gradient(share)

    def prox(self, t: Array, mu: float) -> Array:
        # (1 + mu (1 - mix)) x_j = t_j - mu mix sum(x) on the k entries that stay, which gives the sum
        bend = 1.0 + mu * self.rest
        ordered = np.sort(t)[::-1]
        total = np.cumsum(ordered) / (bend + np.arange(1, t.size + 1) * mu * self.mix)
        stays = np.flatnonzero(ordered > mu * self.mix * total)
        if stays.size == 0:
            return np.zeros_like(t)
        return np.maximum(t - mu * self.mix * total[stays[-1]], 0.0) / bend

    def weights(self, s: Array) -> Array:
        # with d = e / (1 + (1 - mix) e) and sum(e) = 1 / mix: e = (root / theta - 1)_+ / (1 - mix), root = sqrt(s)
        root = np.sqrt(np.maximum(s, 0.0))
        top = float(np.max(root, initial=0.0))
        if top <= 0.0:
            return self.start(s.size)
        root = root / top
        ordered = np.sort(root)[::-1]
        theta = np.cumsum(ordered) / (np.arange(1, s.size + 1) + self.rest / self.mix)
        last = theta[np.flatnonzero(ordered > theta)[-1]]
        return np.where(root > last, (1.0 - last / np.where(root > last, root, 1.0)) / self.rest, 0.0)

    def _charge(self, weights: Array) -> float:
        left = 1.0 - self.rest * weights  # positive inside the set
        return self.mix * float(np.sum(weights / left)) if np.all(left > 0.0) else float(np.inf)

    def boundary(self, place: Array) -> Boundary:
        left = 1.0 - self.rest * place
        inside = np.where(left > 0.0, left, np.inf)
        values, slopes = np.array([self._charge(place) - 1.0]), (self.mix / inside**2)[None, :]
        bend = 2.0 * self.rest * self.mix / inside**3
        return Boundary(values, slopes, lambda price: price[0] * np.diag(bend))

    def _nearest(self, v: Array, price: float) -> Array:
        """Solve ``(v - d) (1 - (1 - mix) d)^2 = price mix`` for d in the set, by bisection; zero for a small v."""
        low, high = np.zeros_like(v), np.minimum(v, 1.0 / self.rest)
        for _ in range(100):
            d = 0.5 * (low + high)
            above = (v - d) * (1.0 - self.rest * d) ** 2 > price * self.mix
            low, high = np.where(above, d, low), np.where(above, high, d)
        return np.where(v > price * self.mix, low, 0.0)

    def scaled(self, weights: Array) -> Array:
        top = float(np.max(weights))
        share = weights / top
        # the charge grows from zero to infinity as the largest weight goes from 0 to 1 / (1 - mix)
        most = -np.log(self.rest)

        def excess(x: float) -> float:  # x -> the largest weight, on all of the real line
            return self._charge(share * np.exp(most - np.logaddexp(0.0, -x))) - 1.0

        return share * float(np.exp(most - np.logaddexp(0.0, -monotone_root(excess))))

    def start(self, m: int) -> Array:
        return np.full(m, 1.0 / (self.mix * m + self.rest))
