"""UFO-MKL's regulariser: a (2, r) norm and an l1 term on the block norms."""

from __future__ import annotations

import numpy as np

from ._base import Array, Norm

__all__ = ["Elastic"]


class Elastic(Norm, registered_as="elastic"):
    """``1/2 |t|_r^2 + alpha sum_j t_j`` of the block norms t: sparse through alpha, stable through r.

    Parameters
    ----------
    alpha : float, default=1.0
        Weight of the l1 term, not negative; the larger, the fewer kernels.
    r : float or None, default=None
        Block exponent, ``1 < r <= 2``; None is UFO's own choice, dual to ``max(2, 2 ln m)``.

    Examples
    --------
    >>> import numpy as np
    >>> Elastic(alpha=1.0, r=2.0).weights(np.array([4.0, 0.25]))  # the second block is below the threshold
    array([0.5, 0. ])
    """

    convex_in_weights = False

    def __init__(self, alpha: float = 1.0, r: float | None = None) -> None:
        self.alpha = alpha
        self.r = r

    @property
    def l1_term(self) -> float:  # type: ignore[override]
        return float(self.alpha)

    @property
    def label(self) -> str:
        return f"elastic({self.alpha:g})"

    def check(self, m: int) -> None:
        if not (np.isfinite(self.alpha) and self.alpha >= 0):
            raise ValueError(f"alpha of Elastic must be a finite number >= 0, got {self.alpha!r}")
        if self.r is not None and not 1.0 < self.r <= 2.0:
            raise ValueError(f"r of Elastic must be in (1, 2] or None, got {self.r!r}")

    def for_kernels(self, m: int) -> Norm:
        if self.r is not None:
            return self
        q = max(2.0, 2.0 * np.log(max(m, 1)))
        return Elastic(self.alpha, q / (q - 1.0))

    def _exponents(self, m: int) -> tuple[float, float]:
        settled = self.for_kernels(m)
        assert isinstance(settled, Elastic)
        assert settled.r is not None
        return settled.r, settled.r / (settled.r - 1.0)

    def half_square(self, t: Array) -> float:
        top = float(np.max(t, initial=0.0))
        if top <= 0:
            return 0.0
        r, _ = self._exponents(t.size)
        return 0.5 * (top * float(np.sum((t / top) ** r)) ** (1.0 / r)) ** 2 + self.alpha * float(np.sum(t))

    def _thresholded(self, s: Array) -> Array:
        return np.maximum(np.sqrt(np.maximum(s, 0.0)) - self.alpha, 0.0)

    def conjugate(self, s: Array) -> float:
        v = self._thresholded(s)
        top = float(np.max(v, initial=0.0))
        if top <= 0:
            return 0.0
        _, q = self._exponents(s.size)
        return 0.5 * (top * float(np.sum((v / top) ** q)) ** (1.0 / q)) ** 2

    def weights(self, s: Array) -> Array:
        v = self._thresholded(s)
        top = float(np.max(v, initial=0.0))
        if top <= 0:
            return np.zeros_like(s)
        _, q = self._exponents(s.size)
        size = float(np.sum((v / top) ** q)) ** (1.0 / q)
        root = np.sqrt(np.maximum(s, np.finfo(float).tiny))
        return (v / root) * (v / (top * size)) ** (q - 2.0)

    def start(self, m: int) -> Array:
        return np.full(m, 1.0 / m)
