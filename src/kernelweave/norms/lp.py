"""Kloft's lp norms, block norms, and the maximum norm."""

from __future__ import annotations

import numpy as np

from .._components import is_number
from .._numerics.intercepts import monotone_root
from .._numerics.projections import project_lp_ball, shrink_power
from .._numerics.quadratic import Boundary
from .._typing import Array
from ._base import Norm, p_norm
from .simplex import L1


class Lp(Norm, registered_as="lp"):
    """Weights in ``sum_j d_j^p <= 1`` (Kloft's p); on the blocks the (2, r) norm with ``r = 2p / (p + 1)``.

    Parameters
    ----------
    p : float, default=2.0
        Exponent on the weights, ``1 < p <= inf``; p -> 1 is sparse, inf the sum of all kernels (r = 2).

    Examples
    --------
    >>> Lp(p=2.0).r
    1.3333333333333333
    >>> Block(r=1.5)
    Lp(p=3)
    """

    analytic = True
    smooth_conjugate = True
    smooth_on_blocks = True
    has_prox = has_projection = has_boundary = True
    label_text = "l{0.p:g}"

    def __init__(self, p: float = 2.0) -> None:
        self.p = p

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:  # p is all there is to know, at its default too
        return f"Lp(p={self.p:g})" if is_number(self.p) else super().__repr__(N_CHAR_MAX)

    @property
    def allowed_weights(self) -> str:
        if np.isinf(self.p):
            return "weights between zero and one"
        return f"non-negative weights whose {self.p:g}-norm is at most one"

    def check(self, m: int) -> None:
        if not (is_number(self.p) and self.p > 1.0):
            raise ValueError(
                f"Lp needs p > 1, got {self.p!r}; p = 1 is norm='l1'. p is Kloft's exponent on the weights; "
                "for the block exponent r use kernelweave.norms.Block(r)"
            )

    @property
    def r(self) -> float:  # type: ignore[override]
        """Block exponent, ``2p / (p + 1)``."""
        return 2.0 if np.isinf(self.p) else 2.0 * self.p / (self.p + 1.0)

    @property
    def update_rate(self) -> float:  # type: ignore[override]
        # the update is d_j ~ (d_j sqrt(s_j))^(2/(p+1)): so much of an error in ln d stays; the gap is its square
        return 0.0 if np.isinf(self.p) else (2.0 / (self.p + 1.0)) ** 2

    @property
    def dual_p(self) -> float:
        """``p / (p - 1)``, half the dual block exponent."""
        return 1.0 if np.isinf(self.p) else self.p / (self.p - 1.0)

    def half_square(self, t: Array) -> float:
        top = float(np.max(t, initial=0.0))
        return 0.5 * top**2 * float(np.sum((t / top) ** self.r)) ** (2.0 / self.r) if top > 0 else 0.0

    def block_gradient(self, t: Array) -> Array:
        top = float(np.max(t, initial=0.0))
        if top <= 0:
            return np.zeros_like(t)
        u = t / top
        size = float(np.sum(u**self.r)) ** (1.0 / self.r)
        return top * size ** (2.0 - self.r) * u ** (self.r - 1.0)

    def conjugate(self, s: Array) -> float:
        return 0.5 * p_norm(np.maximum(s, 0.0), self.dual_p)

    def weights(self, s: Array) -> Array:
        # d = (s / |s|_q)^(q-1), in logarithms because q grows without bound as p -> 1
        top = float(np.max(s, initial=0.0))
        if top <= 0:
            return self.start(s.size)
        q = self.dual_p
        share = np.maximum(s, 0.0) / top
        size = float(np.sum(share**q)) ** (1.0 / q)
        return (share / size) ** (q - 1.0)

    def weights_of_blocks(self, t: Array) -> Array:
        top = float(np.max(t, initial=0.0))
        if top <= 0 or np.isinf(self.p):
            return self.start(t.size)
        u = t / top
        return u ** (2.0 / (self.p + 1.0)) / float(np.sum(u**self.r)) ** (1.0 / self.p)

    def scaled(self, weights: Array) -> Array:
        if np.isinf(self.p):
            return self.start(weights.size)
        return weights / p_norm(weights, self.p)

    def start(self, m: int) -> Array:
        return np.full(m, 1.0 if np.isinf(self.p) else m ** (-1.0 / self.p))

    def boundary(self, place: Array) -> Boundary:
        p, powers = self.p, place ** (self.p - 1.0)
        values, slopes = np.array([float(powers @ place) - 1.0]), p * powers[None, :]
        return Boundary(values, slopes, lambda price: np.diag(price[0] * p * (p - 1.0) * powers / place))

    def project(self, weights: Array) -> Array:
        return project_lp_ball(weights, self.p)

    def prox(self, t: Array, mu: float) -> Array:
        if np.isinf(self.p):
            return t / (1.0 + mu)
        top = float(np.max(t, initial=0.0))
        if top <= 0:
            return np.zeros_like(t)
        r = self.r

        def at(size: float) -> Array:
            # stationarity x + mu N^(2-r) x^(r-1) = t at the norm N = size
            return shrink_power(t, mu * size ** (2.0 - r), r - 1.0)

        def residual(log_size: float) -> float:
            size = np.exp(log_size)
            return size - float(np.sum(at(size) ** r)) ** (1.0 / r)

        return at(float(np.exp(monotone_root(residual, np.log(top)))))


def Block(r: float) -> Norm:
    """Return the norm whose block exponent is r (what OBSCURE calls p): ``p = r / (2 - r)``.

    ``Block(1)`` is l1, ``Block(2)`` the sum kernel, ``Block(inf)`` the maximum.
    """
    if not (is_number(r) and (1.0 <= r <= 2.0 or r == np.inf)):
        raise ValueError(f"Block needs 1 <= r <= 2 or r = inf, got {r!r}")
    if r in (1.0, np.inf):
        return L1() if r == 1.0 else Maximum()
    return Lp(p=np.inf if r == 2.0 else r / (2.0 - r))


#: A kernel that contributes nothing would get an infinite weight: it is capped, which is always valid.  The cap costs
#: a share of the objective in proportion to SMALLEST, rounding one in inverse proportion; here both are a few 1e-7.
SMALLEST = 2e-6


class Maximum(Norm, registered_as="max"):
    """``Omega = max_j |f_j|`` (r = inf): weights ``1 / gamma_j``, gamma on the simplex; none can be dropped."""

    analytic = True
    convex_in_weights = False
    has_prox = True
    r = np.inf
    # the objective charges the largest block norm, which is a maximum over weights: there is no minimum over them
    allowed_text = ""
    rule_text = "under the norm max a kernel has the more weight the less it does"

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
