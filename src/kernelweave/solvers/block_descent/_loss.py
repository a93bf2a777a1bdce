"""The loss as block descent sees it: values, slopes and curvature in columns, with the intercept's part taken out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ...problems import MKLProblem
from .._derivatives import Derivative, columns_of

Array = NDArray[np.float64]

__all__ = ["LossModel"]

#: share of the largest curvature that block steps count on everywhere
LEAST = 1e-3


class LossModel:
    """Loss of decision values ``(n, k)``, its slopes and its curvature, every sample with its own C."""

    def __init__(self, problem: MKLProblem) -> None:
        self.problem = problem
        self.c = columns_of(problem.c)
        self.softmax = problem.loss.joint
        if not self.softmax:
            made = Derivative.of(problem.loss, problem.y)
            self.derivative = (made.kind, made.target, made.width, made.low, made.high)
            assert problem.loss.smoothness is not None
            self.steepest = float(problem.loss.smoothness) * self.c

    @property
    def constant(self) -> bool:
        """Whether the curvature is the same everywhere, so that a quadratic model is exact."""
        quadratic = self.problem.loss.quadratic_dual(self.problem.y)
        return quadratic is not None and bool(np.all(np.isinf(quadratic.lower) & np.isinf(quadratic.upper)))

    def evaluate(self, f: Array) -> tuple[float, Array]:
        """Return the loss, and ``beta = -c l'(f)``."""
        if self.softmax:
            y, c = self.problem.y, self.problem.c
            return self.problem.loss.total(y, f, c), -c * self.problem.loss.gradient(y, f)
        from ..._numerics.block_steps import loss_and_slopes

        beta = np.empty_like(f)
        return float(loss_and_slopes(f, self.c, *self.derivative, beta)), beta

    def best_intercept(self, f: Array) -> Array:
        """Return the constants that suit decision values without any."""
        problem = self.problem
        if not problem.fit_intercept:
            return np.zeros(f.shape[1])
        b = problem.loss.best_intercept(problem.y, f.reshape(problem.y.shape), problem.c)
        return np.atleast_1d(np.asarray(b, dtype=float))

    def common_curvature(self, f: Array) -> Array:
        """One number for every sample that bounds the curvature of all its columns: exact where there is one."""
        if self.softmax:
            p = self.problem.loss.probabilities(f)
            # Gershgorin: diag(p) - pp' is at most 2 p (1 - p), and never more than 1/2
            return np.asarray(self.c[:, 0] * np.minimum(np.max(2.0 * p * (1.0 - p), axis=1), 0.5))
        # a piecewise quadratic loss is a line at most samples, perhaps at all: steps would have no measure
        return np.max(self.curvature(f, LEAST), axis=1)

    def curvature(self, f: Array, least: float = 0.0) -> Array:
        """``c l''(f)`` of every sample and column, at least a share of the largest, where there is no softmax."""
        from ..._numerics.block_steps import loss_curvature

        h = np.empty_like(f)
        loss_curvature(f, self.c, *self.derivative, h)
        return np.maximum(h, least * self.steepest) if least > 0.0 else h

    def hessian(self, f: Array, least: float = 0.0) -> Callable[[Array], Array]:
        """Return the map of directions ``(n, k)`` to ``H x``, the intercept moving along as is best.

        No curvature is below a share of the largest (but for a softmax, which has none that is zero).
        """
        if self.softmax:
            return self._softmax_hessian(f)
        h = self.curvature(f, least)
        total = np.sum(h, axis=0)
        shifted = self.problem.fit_intercept & (total > 0)

        def bend(x: Array) -> Array:
            along = h * x
            mean = np.where(shifted, np.sum(along, axis=0) / np.where(shifted, total, 1.0), 0.0)
            return np.asarray(along - h * mean)

        return bend

    def _softmax_hessian(self, f: Array) -> Callable[[Array], Array]:
        p, c = self.problem.loss.probabilities(f), self.c

        def plain(x: Array) -> Array:
            return np.asarray(c * p * (x - np.sum(p * x, axis=1, keepdims=True)))

        if not self.problem.fit_intercept:
            return plain
        # constants of the columns: a small system, singular along equal ones
        inverse = np.linalg.pinv(np.diag(np.sum(c * p, axis=0)) - (c * p).T @ p, hermitian=True)

        def bend(x: Array) -> Array:
            along = plain(x)
            return along - plain(np.broadcast_to(inverse @ np.sum(along, axis=0), x.shape))

        return bend
