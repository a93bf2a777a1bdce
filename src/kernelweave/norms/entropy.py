"""The entropy-smoothed l1 norm: between a sparse choice and the mean kernel."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq
from scipy.special import logsumexp, softmax, xlogy

from ._base import Array, Norm

__all__ = ["Entropy"]


class Entropy(Norm, registered_as="entropy"):
    """Weights on the simplex that pay ``(lam / 2) sum_j d_j ln(m d_j)``: the model of SMKL.

    What is charged is the divergence from equal weights.  The paper's ``sum d ln d`` differs by the constant
    ``(lam / 2) ln m``, without which the objective may be negative or zero and a relative gap would mean nothing.

    ``lam = smoothing * v`` with v the optimal value on the mean kernel, so that ``smoothing`` has the same meaning on
    every data set: 0 is l1, infinity the mean kernel.

    Parameters
    ----------
    smoothing : float, default=0.1
        Strength of the smoothing relative to the mean kernel's optimal value.
    """

    smooth_conjugate = True

    def __init__(self, smoothing: float = 0.1) -> None:
        self.smoothing = smoothing
        self.lam: float | None = None

    @property
    def strength(self) -> float | None:
        return self.lam

    @property
    def label(self) -> str:
        return f"entropy({self.smoothing:g})"

    @property
    def allowed_weights(self) -> str:
        return (
            f"non-negative weights that sum to one, at what the norm {self.label} charges for unequal ones,"
        )

    def check(self, m: int) -> None:
        if not 0 < self.smoothing < np.inf:
            raise ValueError(
                f"Entropy needs a finite smoothing > 0, got {self.smoothing!r}; without smoothing it is 'l1', with "
                "infinitely much 'uniform'"
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
        return 0.5 * self._lam() * float(np.sum(xlogy(weights, weights * weights.size)))

    def half_square(self, t: Array) -> float:
        d = self.weights_of_blocks(t)
        return self._joint(t, d)

    def regulariser(self, t: Array, weights: Array) -> float:
        # the value at the weights in hand bounds the minimum over weights, and is tight at the optimum
        total = float(np.sum(weights))
        return self._joint(t, weights / total) if total > 0 else self.half_square(t)

    def _joint(self, t: Array, d: Array) -> float:
        used = t**2 > 0  # a square that underflows costs nothing
        if np.any(d[used] <= 0):
            return float(np.inf)
        return 0.5 * float(np.sum(t[used] ** 2 / d[used])) + self.penalty(d)

    def conjugate(self, s: Array) -> float:
        # (11) of [XJL10] without the -1 in the exponent
        lam = self._lam()
        return 0.5 * lam * (float(logsumexp(s / lam)) - np.log(s.size))

    def weights(self, s: Array) -> Array:
        return softmax(s / self._lam())  # (13) of [XJL10]

    def weights_of_blocks(self, t: Array) -> Array:
        # stationarity lam (ln d + 1) - t^2/d^2 = nu: increasing in d, so d(nu) is defined and increases with nu
        a = t**2 / self._lam()
        m = t.size
        # some weight is at most 1/m and some at least: that brackets nu
        low, high = (-np.log(m) - float(x) * m**2 for x in (np.max(a), np.min(a)))

        def excess(nu: float) -> float:
            return float(np.sum(_solve_log(a, nu))) - 1.0

        if excess(low) < 0.0 < excess(high):
            low = float(brentq(excess, low, high, xtol=1e-300, rtol=8.9e-16, maxiter=200, disp=False))
        d = _solve_log(a, low)
        return d / np.sum(d)

    def scaled(self, weights: Array) -> Array:
        return weights / np.sum(weights)

    def start(self, m: int) -> Array:
        return np.full(m, 1.0 / m)


def _solve_log(a: Array, nu: float) -> Array:
    """Solve ``ln d - a / d^2 = nu`` for d > 0, elementwise, by Newton in ``x = ln d`` (concave, increasing)."""
    x = np.full(a.shape, nu)  # where a = 0 that is it
    used = a > 0
    log_a = np.log(a[used])
    # z <= most, so a exp(-2z) = z - nu <= most - nu: a start on the left, from where Newton's steps are monotone
    most = np.maximum(0.5 * log_a, nu + 1.0)
    z = 0.5 * (log_a - np.log(most - nu))
    for _ in range(100):
        bend = np.exp(log_a - 2.0 * z)
        step = (nu - z + bend) / (1.0 + 2.0 * bend)
        z = z + step
        if np.all(np.abs(step) <= 1e-15 * (1.0 + np.abs(z))):
            break
    x[used] = z
    return np.exp(x)
