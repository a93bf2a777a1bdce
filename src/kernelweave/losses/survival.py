"""Losses of a time to an event that may be censored: Cox's partial likelihood, and squares of the log time.

A target is one number, positive where the event was seen and negative where the sample was censored before it.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._typing import Array
from ._base import CurvatureRoot, Loss, QuadraticDual


class SurvivalLoss(Loss):
    """What an estimator of survival needs of a loss beside the loss itself."""

    tasks = frozenset({"survival"})
    #: whether f multiplies the hazard, ``h(t) = h_0(t) exp(f)``; if not it is a log time, ``t = t_0 exp(f)``
    proportional: ClassVar[bool] = True
    error = "loss"
    #: what the negative loss of held-out samples is called
    held_out_score: ClassVar[str] = "minus the loss"

    def encode(self, time: Array, event: NDArray[np.bool_], stratum: NDArray[np.intp]) -> Array:
        """Return the targets of times and events; ``stratum`` numbers the groups that have a baseline of their own."""
        raise NotImplementedError


class Cox(SurvivalLoss, registered_as="cox"):
    """Minus the log of Cox's partial likelihood, with Breslow's ties.

    It is ``sum_k D_k ln S_k - sum_events c_i (f_i + ln c_i)``: ``D_k`` are the weighted events at event time k and
    ``S_k`` the sum of ``c_j exp(f_j)`` over those at risk then.  Samples stand in each other's risk sets, so there is
    no loss of a single sample.  A constant added to f changes nothing; the intercept is the one that makes the mean of
    f zero.

    Examples
    --------
    >>> import numpy as np
    >>> loss, everybody = Cox(), np.zeros(3, dtype=int)
    >>> y = loss.encode(np.array([1.0, 2.0, 3.0]), np.array([True, False, True]), everybody)
    >>> bool(np.isclose(loss.total(y, np.zeros(3), np.ones(3)), np.log(3)))
    True
    """

    has_curvature = True
    coupled = True
    unit_name = "nats per event"
    held_out_score = "log partial likelihood per event"

    def encode(self, time: Array, event: NDArray[np.bool_], stratum: NDArray[np.intp]) -> Array:
        # the whole part of |y| is the stratum, from 1 on, and the rest the rank of the time: exact in binary
        times, rank = np.unique(time, return_inverse=True)
        below_one = 2.0 ** -np.ceil(np.log2(times.size + 1))
        return np.where(event, 1.0, -1.0) * (stratum + 1.0 + rank * below_one)

    def bounds(self, y: Array) -> tuple[Array, Array]:
        return np.full_like(y, -np.inf), np.where(y > 0, 1.0, 0.0)

    def total(self, y: Array, f: Array, c: Array) -> float:
        from .._numerics.risk_sets import RiskSets, hazards_at

        sets = RiskSets.of(y, c)
        return hazards_at(sets, f[sets.order]).total

    def total_gradient(self, y: Array, f: Array, c: Array) -> Array:
        return self._expected(y, f, c) - np.where(y > 0, c, 0.0)

    def total_curvature(self, y: Array, f: Array, c: Array) -> Array:
        return self._expected(y, f, c)  # W = diag(u) - a matrix that is positive semidefinite

    def _expected(self, y: Array, f: Array, c: Array) -> Array:
        """Events that were to be expected of every sample, times c."""
        from .._numerics.risk_sets import RiskSets, hazards_at

        sets, u = RiskSets.of(y, c), np.zeros_like(f)
        at = hazards_at(sets, f[sets.order])
        u[sets.order] = np.exp(at.x + at.log_h)
        return u

    def hessian_root(self, y: Array, f: Array, c: Array) -> CurvatureRoot:
        from .._numerics.risk_sets import HessianRoot, RiskSets, hazards_at

        sets = RiskSets.of(y, c)
        return HessianRoot(sets, hazards_at(sets, f[sets.order]))

    def gain(self, y: Array, beta: Array, c: Array) -> float:
        from .._numerics.risk_sets import RiskSets, dual_gain

        sets = RiskSets.of(y, c)
        if np.any(beta[c <= 0]):
            return -np.inf
        slack = 1e-10 * float(np.sum(sets.events))
        u = sets.events - beta[sets.order]
        return float(dual_gain(u, sets.c, sets.events, sets.tie, sets.last, slack))

    def project(self, y: Array, beta: Array, c: Array, zero_sum: bool) -> Array:
        """Return coefficients in the dual set, near to these; all that are in it sum to zero in every stratum."""
        from .._numerics.risk_sets import RiskSets, make_feasible

        sets, out = RiskSets.of(y, c), np.zeros_like(beta)
        u = np.maximum(sets.events - beta[sets.order], 0.0)
        make_feasible(u, sets.c, sets.events, sets.tie, sets.last)
        out[sets.order] = sets.events - u
        return out

    def unit(self, y: Array, c: Array) -> float:
        return float(np.sum(c[(y > 0) & (c > 0)]))

    def best_intercept(self, y: Array, f: Array, c: Array) -> Any:
        return -float(np.sum(c * f) / np.sum(c))


class CensoredSquared(SurvivalLoss, registered_as="censored_squared"):
    """``(ln t - f)^2`` of events, ``max(0, ln t - f)^2`` of samples censored at t, which may have lived any longer.

    Dual term ``b ln t - b^2 / 4``, b free for events and not negative for the others.  Targets are times, with a minus
    where they are censored.

    Examples
    --------
    >>> import numpy as np
    >>> CensoredSquared().value(np.array([1.0, -1.0]), np.array([2.0, 2.0]))
    array([4., 0.])
    """

    smoothness = 2.0
    ridge = 0.5
    proportional = False

    def encode(self, time: Array, event: NDArray[np.bool_], stratum: NDArray[np.intp]) -> Array:
        if not np.all(time > 0):
            row = int(np.argmin(time > 0))
            raise ValueError(
                f"loss='censored_squared' takes the logarithm of times, and {np.sum(time <= 0)} of them are zero, the "
                f"first in row {row}: use loss='cox', for which the order of times is enough"
            )
        if np.any(stratum):
            raise ValueError("strata are groups with a baseline hazard of their own: use loss='cox'")
        return np.where(event, time, -time)

    def value(self, y: Array, f: Array) -> Array:
        return self._missed(y, f) ** 2

    def gradient(self, y: Array, f: Array) -> Array:
        return -2.0 * self._missed(y, f)

    def _missed(self, y: Array, f: Array) -> Array:
        missed = np.log(np.abs(y)) - f
        return np.where(y > 0, missed, np.maximum(missed, 0.0))

    def conjugate(self, y: Array, u: Array) -> Array:
        return np.where((y > 0) | (u <= 0), u * np.log(np.abs(y)) + 0.25 * u**2, np.inf)

    def bounds(self, y: Array) -> tuple[Array, Array]:
        return np.where(y > 0, -np.inf, 0.0), np.full_like(y, np.inf)

    def quadratic_dual(self, y: Array) -> QuadraticDual:
        return QuadraticDual(np.log(np.abs(y)), 0.0, 0.5, *self.bounds(y))

    def nearly_exact(self, y: Array, off: float) -> Array:
        return np.log(np.abs(y)) * (1.0 + off)
