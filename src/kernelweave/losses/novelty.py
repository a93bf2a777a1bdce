"""The loss of novelty detection: there are no targets, and what counts are the lowest decision values."""

from __future__ import annotations

import numpy as np

from .._components import is_number
from .._numerics.projections import project_box_sum
from .._typing import Array
from ._base import DualBudget, Loss, QuadraticDual


class OneClass(Loss):
    """``min over rho of sum_i c_i (rho - f_i)_+ - L rho``, ``L = nu sum_i c_i``: minus the sum of the lowest values.

    The loss of the one-class SVM (Schoelkopf et al. 2001), with ``c_i = w_i / (nu sum w)`` and L = 1, at its best
    offset rho.  The dual set is ``0 <= beta_i <= c_i``, ``sum beta = L``, on which the gain is zero.  Targets are ones,
    and the offset takes the place of an intercept.

    Parameters
    ----------
    nu : float, default=0.5
        Share of the weight of samples that may lie below the offset, in (0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> f, c = np.array([1.0, 3.0, 2.0, 5.0]), np.full(4, 0.5)
    >>> OneClass(nu=0.5).total(np.ones(4), f, c), OneClass(nu=0.5).offset(f, c)
    (-1.5, 2.0)
    """

    tasks = frozenset({"novelty"})
    has_intercept = False
    strength = "nu"

    def __init__(self, nu: float = 0.5) -> None:
        self.nu = nu

    def check(self) -> None:
        if not (is_number(self.nu) and 0.0 < self.nu <= 1.0):
            raise ValueError(f"nu must be a share in (0, 1], got {self.nu!r}")

    def value(self, y: Array, f: Array) -> Array:
        return -f

    def gradient(self, y: Array, f: Array) -> Array:
        return np.full_like(f, -1.0)

    def conjugate(self, y: Array, u: Array) -> Array:
        return np.where((u <= 0.0) & (u >= -1.0), 0.0, np.inf)

    def bounds(self, y: Array) -> tuple[Array, Array]:
        return np.zeros_like(y), np.ones_like(y)

    def quadratic_dual(self, y: Array) -> QuadraticDual:
        return QuadraticDual(np.zeros_like(y), 0.0, 0.0, *self.bounds(y))

    def dual_budget(self, y: Array, c: Array) -> DualBudget:
        return DualBudget(np.zeros_like(c), self.nu * float(np.sum(c)), exact=True)

    def total(self, y: Array, f: Array, c: Array) -> float:
        return -float(self._lowest(f, c)[0] @ f)

    def offset(self, f: Array, c: Array) -> float:
        """Return the best rho: samples of at most a share nu of the weight have a decision value below it."""
        return self._lowest(f, c)[1]

    def _lowest(self, f: Array, c: Array) -> tuple[Array, float]:
        """Weight of each sample among the lowest values, which have L together, and the largest value among them."""
        order, limit = np.argsort(f, kind="stable"), self.nu * float(np.sum(c))
        before = np.concatenate([[0.0], np.cumsum(c[order])])
        weight = np.empty_like(f)
        weight[order] = np.clip(limit - before[:-1], 0.0, c[order])
        # the sample at which all is given out, up to the rounding of the sums
        last = int(np.searchsorted(before[1:], limit * (1.0 - 1e-12)))
        return weight, float(f[order[min(last, f.size - 1)]])

    def gain(self, y: Array, beta: Array, c: Array) -> float:
        limit = self.nu * float(np.sum(c))
        inside = np.all((beta >= 0.0) & (beta <= c)) and abs(float(np.sum(beta)) - limit) <= 1e-9 * limit
        return 0.0 if inside else -np.inf

    def project(self, y: Array, beta: Array, c: Array, zero_sum: bool) -> Array:
        limit = self.nu * float(np.sum(c))
        if self.nu == 1.0:
            return c.copy()
        return np.clip(project_box_sum(beta, np.zeros_like(c), c, total=limit), 0.0, c)
