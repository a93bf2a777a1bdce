"""The entropy-smoothed l1 norm: between a sparse choice and the mean kernel."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import logsumexp, softmax, xlogy

from .._numerics.scalar import monotone_root
from ._base import Array, Norm

__all__ = ["Entropy"]


class Entropy(Norm, registered_as="entropy"):
    """Weights on the simplex that pay ``(lam / 2) sum_j d_j ln d_j``: the model of SMKL.

    ``lam = smoothing * v`` with v the optimal value on the mean kernel, so that ``smoothing`` has the same meaning on
    every data set: 0 is l1, infinity the mean kernel (``algorithms`` section 1).

    Parameters
    ----------
    smoothing : float, default=0.1
        Strength of the smoothing relative to the mean kernel's optimal value.
    """

    def __init__(self, smoothing: float = 0.1) -> None:
        self.smoothing = smoothing
        self.lam: float | None = None

    @property
    def label(self) -> str:
        return f"entropy({self.smoothing:g})"

    def check(self, m: int) -> None:
        if not self.smoothing > 0:
            raise ValueError(
                f"Entropy needs smoothing > 0, got {self.smoothing!r}; without smoothing it is 'l1'"
            )

    def settle(self, mean_kernel_value: Callable[[], float]) -> Norm:
        settled = Entropy(self.smoothing)
        settled.lam = self.smoothing * max(mean_kernel_value(), np.finfo(float).tiny)
        return settled

    def _lam(self) -> float:
        if self.lam is None:
            raise ValueError("Entropy's smoothing is relative to a problem: settle it there first")
        return self.lam

    def penalty(self, weights: Array) -> float:
        return 0.5 * self._lam() * float(np.sum(xlogy(weights, weights)))

    def penalty_gradient(self, weights: Array) -> Array:
        return 0.5 * self._lam() * (np.log(np.maximum(weights, np.finfo(float).tiny)) + 1.0)

    def half_square(self, t: Array) -> float:
        d = self.weights_of_blocks(t)
        return self._joint(t, d)

    def regulariser(self, t: Array, weights: Array) -> float:
        # the value at the weights in hand bounds the minimum over weights, and is tight at the optimum
        return self._joint(t, weights)

    def _joint(self, t: Array, d: Array) -> float:
        used = t > 0
        if np.any(d[used] <= 0):
            return float(np.inf)
        return 0.5 * float(np.sum(t[used] ** 2 / d[used])) + self.penalty(d)

    def conjugate(self, s: Array) -> float:
        # (11) of [XJL10] without the -1 in the exponent
        lam = self._lam()
        return 0.5 * lam * float(logsumexp(s / lam))

    def weights(self, s: Array) -> Array:
        return softmax(s / self._lam())  # (13) of [XJL10]

    def weights_of_blocks(self, t: Array) -> Array:
        # stationarity lam (ln d + 1) - t^2/d^2 = nu: increasing in d, so d(nu) is defined and increases with nu
        lam = self._lam()

        def at(nu: float) -> Array:
            return _solve_log(t**2 / lam, nu)

        nu = monotone_root(lambda nu: float(np.sum(at(nu))) - 1.0, 0.0)
        d = at(nu)
        return d / np.sum(d)

    def start(self, m: int) -> Array:
        return np.full(m, 1.0 / m)


def _solve_log(a: Array, nu: float) -> Array:
    """Solve ``ln d - a / d^2 = nu`` for d > 0, elementwise, by Newton in ``x = ln d`` (concave, increasing)."""
    # x - a exp(-2x) = nu; the function is concave, so Newton from the left converges monotonically
    x = np.minimum(nu, 0.0) + np.zeros_like(a)
    with np.errstate(divide="ignore"):
        x = np.where(
            a > 0, np.minimum(np.maximum(0.5 * np.log(np.maximum(a, 1e-300)) - 20.0, -350.0), nu), nu
        )
    for _ in range(300):
        bend = a * np.exp(-2.0 * x)
        step = (nu - x + bend) / (1.0 + 2.0 * bend)
        x = x + step
        if np.all(np.abs(step) <= 1e-15 * (1.0 + np.abs(x))):
            break
    return np.exp(x)
