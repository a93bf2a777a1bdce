"""A run of online epochs: the arrays that compiled steps change, and the point they stand for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...problems import MKLProblem, Point
from .._derivatives import derivative_of
from ._products import Products, products_of

Array = NDArray[np.float64]

__all__ = ["OnlineRun"]

#: epochs after which norms and products are computed afresh: updates leave rounding behind
REFRESH = 20


class OnlineRun:
    """Coefficients, products and norms under online steps, in the papers' scale.

    The papers minimise ``lam/2 |w|^2 + mean loss`` with ``lam = 1 / sum c``, our objective over ``sum c``; ``share`` is
    a sample's weight in that mean.
    """

    def __init__(self, problem: MKLProblem, q: float, seed: int) -> None:
        from ..._numerics.online import SIG

        self.problem, self.q, self.seed = problem, q, seed
        self.products: Products = products_of(problem)
        cost = problem.c if problem.c.ndim == 1 else problem.c[:, 0]
        self.total = float(np.sum(cost))
        self.lam = 1.0 / self.total
        self.share = np.ascontiguousarray(cost * problem.n / self.total)
        shape = (problem.n, self.products.columns)
        self.A, self.H, self.window = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        self.older, self.visits, self.older_visits, self.next_reset = np.zeros(shape), 0, 0, 1
        self.sq, self.factors = np.zeros(problem.m), np.zeros(problem.m)
        self.scalars = np.zeros(6)
        self.scalars[SIG] = 1.0
        self.derivative = derivative_of(problem.loss, problem.y)
        self.epochs = 0
        self.dual_beta: Array | None = None
        self.dual_quad: Array | None = None

    # ---- work -----------------------------------------------------------------------------------------------

    def epoch(self, rule: int, eta: float = 0.0, radius: float = 1.0, cut: float = 0.0) -> int:
        """Visit every sample once; return how many coefficients changed."""
        order = np.random.default_rng([self.seed, self.epochs]).permutation(self.problem.n)
        return self.visit(order, rule, eta, radius, cut)

    def visit(self, order: Any, rule: int, eta: float, radius: float, cut: float) -> int:
        """Visit these samples in this order."""
        from ..._numerics.online import UPDATES, Coefficients, Norms, Steps, Work

        before = self.scalars[UPDATES]
        coefficients = Coefficients(self.A, self.H, self.window)
        norms = Norms(self.sq, self.factors, self.scalars)
        steps = Steps(rule, self.q, self.lam, float(eta), float(radius), float(cut))
        self.products.epoch(order, Work(self.share, coefficients, norms, steps, self.derivative))
        self.epochs += 1
        self.visits += 1
        if self.epochs % REFRESH == 0:
            self._refresh()
        return int(self.scalars[UPDATES] - before)

    def _refresh(self) -> None:
        from ..._numerics.online import SIG

        self.products.reset(self.A)
        self.sq[:] = self.products.quad(self.A) * self.scalars[SIG] ** 2

    def restart_clock(self) -> None:
        """Begin another stage: the time of its steps starts at zero, and so do the average and the dual point."""
        from ..._numerics.online import EXTRA, SUM_SIG, TIME

        self.scalars[TIME] = self.scalars[EXTRA] = self.scalars[SUM_SIG] = 0.0
        self.H[:] = 0.0
        self.window[:] = self.older[:] = 0.0
        self.visits = self.older_visits = 0
        self.next_reset = 1

    # ---- what it stands for ---------------------------------------------------------------------------------

    def point(self, factors: Array, shrink: float) -> Point:
        """The function ``shrink sum_j factors_j theta_j`` with what is known of it."""
        from ..._numerics.online import SIG

        shape = self.problem.y.shape
        if not np.any(factors > 0):
            return self._with_dual(Point(np.zeros(shape), self.problem.norm.start(self.problem.m)))
        scale = shrink * self.scalars[SIG]
        decision = (scale * self.products.mixture(factors)).reshape(shape)
        beta = (scale * self.A).reshape(shape)
        return self._with_dual(Point(beta, factors.copy(), shrink**2 * self.sq, decision))

    def averaged(self, shrink: float, of_norms: Any) -> Point:
        """The mean of the coefficients of this stage times ``shrink``, the factors from its norms; costs a pass."""
        from ..._numerics.online import SUM_SIG, TIME

        steps = max(self.scalars[TIME], 1.0)
        mean = shrink * (self.scalars[SUM_SIG] * self.A - self.H) / steps
        quad = self.problem.bank.quad(mean.reshape(self.problem.y.shape))
        point = Point(mean.reshape(self.problem.y.shape), of_norms(quad), quad)
        return self._with_dual(point)

    def _with_dual(self, point: Point) -> Point:
        if self.dual_beta is None:
            # nothing known yet: zero is in every dual set
            zero = np.zeros(self.problem.y.shape)
            return replace(point, dual_beta=zero, dual_quad=np.zeros(self.problem.m))
        return replace(point, dual_beta=self.dual_beta, dual_quad=self.dual_quad)

    def take_dual(self) -> None:
        """Make a dual point of the last visits (at least the last half of them) and keep it if it is the best so far.

        A sample's mean negative gradient over some visits is in its dual set, whatever the visits were.
        """
        visits = self.visits + self.older_visits
        if visits == 0:
            return
        cost = self.share * self.total / self.problem.n
        beta = ((self.window + self.older) * (cost[:, None] / visits)).reshape(self.problem.y.shape)
        self.offer_dual(beta, self.problem.bank.quad(beta))
        if self.visits >= self.next_reset:
            self.older[:], self.older_visits = self.window, self.visits
            self.window[:] = 0.0
            self.visits, self.next_reset = 0, 2 * self.next_reset

    def offer_dual(self, beta: Array, quad: Array) -> None:
        """Keep a dual point if it is the best so far."""
        if self.dual_beta is None or self.problem.dual(beta, quad) > self.problem.dual(
            self.dual_beta, self.dual_quad
        ):
            self.dual_beta, self.dual_quad = beta, quad
