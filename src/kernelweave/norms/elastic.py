"""The elastic norm on the blocks: a (2, r) norm for stability and an l1 term for sparsity."""

from __future__ import annotations

import numpy as np

from .._numerics.scalar import monotone_root
from ._base import Array, Norm, is_number
from .lp import Block

__all__ = ["Elastic"]


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

    def __init__(self, alpha: float = 1.0, r: float | None = None) -> None:
        self.alpha = alpha
        self.r = r

    @property
    def l1_term(self) -> float:  # type: ignore[override]
        return self.alpha

    @property
    def label(self) -> str:
        return f"elastic({self.alpha})"

    @property
    def allowed_weights(self) -> str:
        return f"non-negative weights, at what the norm {self.label} charges for them,"

    def check(self, m: int) -> None:
        if not (is_number(self.alpha) and 0.0 <= self.alpha < np.inf):
            raise ValueError(f"alpha of Elastic must be a finite number >= 0, got {self.alpha!r}")
        if self.r is not None and not (is_number(self.r) and 1.0 < self.r <= 2.0):
            raise ValueError(f"r of Elastic must be in (1, 2] or None, got {self.r!r}")

    def for_kernels(self, m: int) -> Norm:
        return self if self.r is not None else Elastic(self.alpha, self._exponent(m))

    def _exponent(self, m: int) -> float:
        if self.r is not None:
            return float(self.r)
        q = max(2.0, 2.0 * float(np.log(max(m, 1))))
        return q / (q - 1.0)

    def _block(self, m: int) -> Norm:
        """The (2, r) norm without the l1 term."""
        return Block(self._exponent(m))

    # ---- on the blocks --------------------------------------------------------------------------------------

    def half_square(self, t: Array) -> float:
        return self._block(t.size).half_square(t) + self.alpha * float(np.sum(t))

    def prox(self, t: Array, mu: float) -> Array:
        # on x >= 0 the l1 term is linear: it moves the point, and the block norm does the rest
        return self._block(t.size).prox(np.maximum(t - mu * self.alpha, 0.0), mu)

    # ---- the dual -------------------------------------------------------------------------------------------

    def _thresholded(self, s: Array) -> Array:
        return np.maximum(np.sqrt(np.maximum(s, 0.0)) - self.alpha, 0.0)

    def conjugate(self, s: Array) -> float:
        v = self._thresholded(s)
        top = float(np.max(v, initial=0.0))
        if top <= 0:
            return 0.0
        q = _dual_exponent(self._exponent(s.size))
        return 0.5 * (top * float(np.sum((v / top) ** q)) ** (1.0 / q)) ** 2

    def weights(self, s: Array) -> Array:
        v = self._thresholded(s)
        top = float(np.max(v, initial=0.0))
        if top <= 0:
            return np.zeros_like(s)
        q = _dual_exponent(self._exponent(s.size))
        size = float(np.sum((v / top) ** q)) ** (1.0 / q)
        root = np.sqrt(np.maximum(s, np.finfo(float).tiny))
        return (v / root) * (v / (top * size)) ** (q - 2.0)

    # ---- on the weights -------------------------------------------------------------------------------------

    def penalty(self, weights: Array) -> float:
        """``max over s of d's/2 - conjugate(s)``: convex, because parallel sums of weights are concave.

        The weights of the two terms, e of the l1 term at a charge of ``alpha^2 e / 2`` and those of the lp ball, add up
        as resistances in parallel do.
        """
        w = weights[weights > 0]
        if w.size == 0 or self.alpha == 0.0:
            inside = w.size == 0 or self._size(weights) <= 1.0 + 1e-9
            return 0.0 if inside else float(np.inf)
        if self._size(weights) >= 1.0:
            return float(np.inf)
        v = self._attaining(w, weights.size)
        q = _dual_exponent(self._exponent(weights.size))
        size = float(np.sum(v**q)) ** (2.0 / q)
        return 0.5 * float(w @ (v + self.alpha) ** 2) - 0.5 * size

    def _size(self, weights: Array) -> float:
        """``|d|_p``: below one the penalty is finite."""
        r = self._exponent(weights.size)
        top = float(np.max(weights))
        if r == 2.0 or top <= 0.0:
            return top
        p = r / (2.0 - r)
        return top * float(np.sum((weights / top) ** p)) ** (1.0 / p)

    def _attaining(self, w: Array, m: int) -> Array:
        """``sqrt(s) - alpha`` for the s whose weights are w > 0."""
        r = self._exponent(m)
        if r == 2.0:
            return self.alpha * w / (1.0 - w)
        q = _dual_exponent(r)

        def at(log_size: float) -> Array:
            # w = v / (v + alpha) (v / N)^(q-2) at the size N of v: increasing in v
            return _solve_share(w, self.alpha * np.exp(-log_size), q) * np.exp(log_size)

        def excess(log_size: float) -> float:
            v = at(log_size) / np.exp(log_size)
            return 1.0 - float(np.sum(v**q)) ** (1.0 / q)

        return at(monotone_root(excess, np.log(self.alpha)))

    def weights_of_blocks(self, t: Array) -> Array:
        # d_j = t_j / (derivative of the charge in t_j)
        pull = self.alpha + self._block(t.size).block_gradient(t)
        return np.divide(t, pull, out=np.zeros_like(t), where=pull > 0)

    def scaled(self, weights: Array) -> Array:
        size = self._size(weights)
        return weights.copy() if size <= 0.5 else weights * (0.5 / size)

    def start(self, m: int) -> Array:
        return np.full(m, 1.0 / m)


def _dual_exponent(r: float) -> float:
    return r / (r - 1.0)


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
