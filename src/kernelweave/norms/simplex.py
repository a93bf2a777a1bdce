"""Norms whose weights are on the simplex: l1, its entropy smoothing, at most k kernels."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter

import numpy as np
from scipy.optimize import brentq
from scipy.special import logsumexp, softmax, xlogy

from .._numerics.projections import project_simplex
from .._numerics.quadratic import lowest_subset
from .._typing import Array
from ._base import Lowest, Norm


class L1(Norm, registered_as="l1"):
    """``Omega = sum_j |f_j|``, the classical MKL (r = p = 1).

    Examples
    --------
    >>> import numpy as np
    >>> L1().conjugate(np.array([1.0, 4.0])), L1().half_square(np.array([1.0, 2.0]))
    (2.0, 4.5)
    """

    simplex = True
    has_prox = has_projection = True
    r = p = 1.0
    allowed_text = "non-negative weights that sum to one"

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


class Entropy(Norm, registered_as="entropy"):
    """Weights on the simplex that pay ``(lam / 2) sum_j d_j ln(m d_j)``: the model of SMKL.

    The paper's ``sum d ln d`` differs by the constant ``(lam / 2) ln m``, without which the objective may be zero and a
    relative gap would mean nothing.  ``lam = smoothing * v`` with v the optimal value on the mean kernel: ``smoothing``
    0 is l1, infinity the mean kernel, on every data set.

    Parameters
    ----------
    smoothing : float, default=0.1
        Strength of the smoothing relative to the mean kernel's optimal value.
    """

    smooth_conjugate = True
    strength = property(attrgetter("lam"))  # type: ignore[assignment]
    label_text = "entropy({0.smoothing:g})"
    allowed_text = (
        "non-negative weights that sum to one, at what the norm {0.label} charges for unequal ones,"
    )

    def __init__(self, smoothing: float = 0.1) -> None:
        self.smoothing = smoothing
        self.lam: float | None = None

    def check(self, m: int) -> None:
        if not 0 < self.smoothing < np.inf:
            raise ValueError(
                f"Entropy needs a finite smoothing > 0, got {self.smoothing!r}; without smoothing it is 'l1', with "
                "infinitely much 'uniform'"
            )

    def settle(self, mean_kernel_value: Callable[[], float]) -> Norm:
        settled = Entropy(self.smoothing)
        settled.lam = self.smoothing * max(abs(mean_kernel_value()), np.finfo(float).tiny)
        return settled

    def _lam(self) -> float:
        if self.lam is None:
            raise ValueError("Entropy's smoothing is relative to a problem: settle it there first")
        return self.lam

    def penalty(self, weights: Array) -> float:
        return 0.5 * self._lam() * float(np.sum(xlogy(weights, weights * weights.size)))

    def half_square(self, t: Array) -> float:
        return self._joint(t, self.weights_of_blocks(t))

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

    scaled = L1.scaled


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


class AtMost(Norm, registered_as="at_most"):
    """Weights 1/k on at most k kernels and zero elsewhere: the best subset, not its convex relaxation.

    ``k = 1`` is the best single kernel, ``k = m`` the mean kernel.  Many cuts together prove a subset best: the lower
    bound is that of the mixed-integer program over all of them (solver ``outer_approximation``).

    Parameters
    ----------
    k : int, default=3
        Number of kernels, at least 1.

    Examples
    --------
    >>> import numpy as np
    >>> AtMost(2).weights(np.array([1.0, 4.0, 3.0]))
    array([0. , 0.5, 0.5])
    """

    convex_in_weights = False
    combinatorial = True
    label_text = "at most {0.k}"

    def __init__(self, k: int = 3) -> None:
        self.k = k

    @property
    def allowed_weights(self) -> str:
        each = "the weight 1" if self.k == 1 else f"the weight 1/{self.k} each"
        return f"choice of at most {self.k} kernel{'s' if self.k > 1 else ''} with {each}"

    def check(self, m: int) -> None:
        if isinstance(self.k, bool) or not isinstance(self.k, int | np.integer) or self.k < 1:
            raise ValueError(f"AtMost needs a whole number k >= 1 of kernels, got {self.k!r}")

    def for_kernels(self, m: int) -> Norm:
        return self if self.k <= m else AtMost(m)

    def half_square(self, t: Array) -> float:
        used = t[t > 0]
        return float(np.inf) if used.size > self.k else 0.5 * self.k * float(np.sum(used**2))

    def weights(self, s: Array) -> Array:
        d = np.zeros_like(s)
        d[np.argsort(-s, kind="stable")[: self.k]] = 1.0 / self.k
        return d

    weights_of_blocks = scaled = weights  # type: ignore[assignment]

    def lowest_of_cuts(
        self, gains: Array, quads: Array, whole: bool = True, gap: float = 1e-6, seconds: float = np.inf
    ) -> Lowest:
        # weights z / k turn d's / 2 into z's / (2k)
        bound, chosen = lowest_subset(gains, quads / (2.0 * self.k), self.k, whole, gap, seconds)
        return Lowest(bound, None if chosen is None else chosen / self.k)
