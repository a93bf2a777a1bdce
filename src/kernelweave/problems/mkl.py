"""The problem: bank x loss x norm, and what evaluates every solver.

    P(f) = 1/2 Omega(|f_1|, ..., |f_m|)^2 + sum_i c_i l(y_i, f(x_i) + b),       f_j = d_j sum_i beta_i k_j(x_i, .)
    D(beta) = sum_i c_i (-l*(-beta_i / c_i)) - Omega_dual(s)^2 / 2,             s_j = beta' K_j beta

``D(beta) <= P(f)`` for every beta in the dual set and every f: the gap certifies a point whoever found it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._numerics.resources import default_budget
from .._numerics.stopping import check_time, time_left
from .._typing import Array
from ..banks import Bank, support
from ..banks.memory import refuse
from ..losses import Loss
from ..norms import Norm
from .by_products import serves
from .certificate import TINY, Certificate, Point, scope_of
from .curvature import Curvature
from .fixed import FixedSolution, solve_fixed

#: seconds that the program over all cuts may take where the time is over, for the certificate of what is returned
LAST_PROGRAM = 2.0
#: relative gap up to which the value of an inner problem is known
KNOWN = 1e-3
#: relative gap from which an inner problem was not solved
UNSOLVED = 0.1
#: bytes of a mixed kernel that fit anywhere
SMALL = 2**26


@dataclass(frozen=True)
class Oracle:
    """Result of one solve with given weights: the value J, its gradient ``-quad / 2`` and a certified point.

    ``curvature`` holds the Hessian of J, where it was asked for.
    """

    weights: Array
    inner: FixedSolution
    quad: Array
    curvature: Curvature | None = None

    @property
    def value(self) -> float:
        """J at the weights, from below; exact up to the inner gap."""
        return self.inner.dual

    @property
    def point(self) -> Point:
        """The point, with what is known of it."""
        return Point(self.inner.beta, self.weights, self.quad, self.inner.decision)


class MKLProblem:
    """Learn coefficients and kernel weights together.

    Parameters
    ----------
    bank : Bank
        m kernels on n samples.
    loss : Loss
    norm : Norm
    y : array of shape (n,) or (n, k)
        Targets, -1 and 1 for classification; columns are tasks that share the kernel weights.
    C : float
        Weight of the loss.
    sample_weight : array of shape (n,) or of y's shape, optional
        Multiplies C sample by sample.
    fit_intercept : bool
        Whether f has a free constant.
    given : sequence of str
        What the caller chose before, for the words of the certificate; see ``scope_of``.
    """

    def __init__(
        self,
        bank: Bank,
        loss: Loss,
        norm: Norm,
        y: Array,
        C: float = 1.0,
        sample_weight: Array | None = None,
        fit_intercept: bool = True,
        given: Sequence[str] = (),
    ) -> None:
        self.bank, self.n, self.m = bank, bank.n, bank.m
        self.loss = loss
        self.y = np.asarray(y, dtype=float)
        weight = np.ones(self.y.shape) if sample_weight is None else np.asarray(sample_weight, dtype=float)
        if weight.ndim < self.y.ndim:
            weight = np.repeat(weight[:, None], self.y.shape[1], axis=1)
        self.c = float(C) * weight
        self.fit_intercept = fit_intercept
        #: inner problems in a row that could not be solved: double precision does not hold them
        self.unsolved = 0
        #: what rounding alone makes of the objective where a regression fits its targets exactly
        fitted = loss.nearly_exact(self.y, 1e4 * float(np.finfo(float).eps))
        self.tiny = TINY if fitted is None else max(loss.total(self.y, fitted, self.c), TINY)
        if not loss.has_intercept:  # the optimum is zero where the origin is among the samples
            if fit_intercept:
                raise ValueError(f"{loss!r} has an offset of its own: use fit_intercept=False")
            size = 1e6 * float(np.finfo(float).eps) * float(np.mean(bank.diag()))
            self.tiny = max(abs(loss.total(self.y, np.full_like(self.y, size), self.c)), TINY)
        norm.check(bank.m)
        self.norm = norm.for_kernels(bank.m).settle(self.mean_kernel_value)
        self.zero_bound = self._bound_at_zero()
        columns = 1 if self.y.ndim == 1 else self.y.shape[1]
        self.scope = scope_of(self.norm, bank.m, columns, bank.completed, given)

    @property
    def passes(self) -> float:
        """Passes over the bank so far."""
        return self.bank.passes

    def on(self, bank: Bank) -> MKLProblem:
        """Return the same problem on another bank of the same kernels: stored otherwise, or more precise."""
        other = copy(self)
        other.bank, other.n, other.m = bank, bank.n, bank.m
        return other

    def among(self, samples: NDArray[np.intp]) -> MKLProblem:
        """Return the problem of some of the samples, with the same kernels."""
        other = self.on(self.bank.among(samples))
        other.y, other.c = self.y[samples], self.c[samples]
        other.__dict__.pop("at_zero", None)
        other.zero_bound = other._bound_at_zero()
        return other

    def _bound_at_zero(self) -> float:
        """Lower bound that coefficients of zero prove, for nothing; none where zero is not in the dual set."""
        zero = np.zeros_like(self.y)
        inside = not np.any(self.loss.project(self.y, zero, self.c, self.fit_intercept))
        return self.gain(zero) - self.norm.conjugate(np.zeros(self.m)) if inside else -np.inf

    @cached_property
    def at_zero(self) -> tuple[Point, Certificate]:
        """The function that is zero, with the best intercept: a point that every solver has, for nothing."""
        zero = np.zeros_like(self.y)
        point = Point(zero, self.norm.start(self.m), quad=np.zeros(self.m), decision=zero)
        return point, self.certificate(point)

    def primal(self, point: Point) -> tuple[float, Any]:
        """Objective at a point, and the best intercept there."""
        quad, decision = self._known(point)
        blocks = point.blocks
        if blocks is None:
            blocks = point.weights * np.sqrt(np.maximum(quad, 0.0))
        b: Any = 0.0 if self.y.ndim == 1 else np.zeros(self.y.shape[1])
        if self.fit_intercept:
            b = self.loss.best_intercept(self.y, decision, self.c)
        try:
            with np.errstate(over="ignore"):
                value = self.norm.regulariser(blocks, point.weights)
        except OverflowError:  # of Python's numbers
            value = np.inf
        return value + self.loss.total(self.y, decision + b, self.c), b

    def dual(self, beta: Array, quad: Array | None = None) -> float:
        """Dual objective at coefficients in the dual set."""
        s = self.bank.quad(beta) if quad is None else quad
        # forms below zero are rounding, and would raise the bound
        return self.gain(beta) - self.norm.conjugate(np.maximum(s, 0.0))

    def gain(self, beta: Array) -> float:
        """The loss's part of the dual objective."""
        return self.loss.gain(self.y, beta, self.c)

    def repair(self, beta: Array) -> Array:
        """Nearest coefficients in the dual set; the same array where beta is in it up to rounding."""
        repaired = self.loss.project(self.y, beta, self.c, self.fit_intercept)
        if repaired is beta:
            return beta
        scale = 1e-13 * max(float(np.max(np.abs(beta), initial=0.0)), np.finfo(float).tiny)
        if float(np.max(np.abs(repaired - beta))) > scale:
            return repaired
        # within rounding of the set: clip exactly into the box so that the conjugate is finite
        return np.clip(beta, *self.loss.box(self.y, self.c))

    def certificate(self, point: Point) -> Certificate:
        """Bounds from any point: valid whatever the solver did."""
        quad, decision = self._known(point)
        primal, intercept = self.primal(replace(point, quad=quad, decision=decision))
        candidates = [] if point.dual_beta is None else [(point.dual_beta, point.dual_quad)]
        if point.dual_quad is None:  # other coefficients of which all is known take the place of beta
            candidates.append((point.beta, quad))
        bounds = []
        for given, forms in candidates:
            beta = self.repair(given)
            if beta is not given:  # the forms are used only where the repair changed nothing
                moved = float(np.max(np.abs(beta - given), initial=0.0))
                if not moved <= 1e-13 * float(np.max(np.abs(beta), initial=0.0)):
                    forms = None
            bounds.append((self.dual(beta, forms), beta))
        dual, beta = max(bounds, key=lambda bound: bound[0])
        if not dual >= self.zero_bound:
            dual, beta = self.zero_bound, np.zeros_like(beta)
        margin = self.loss.margin(self.y, decision + intercept, self.c)
        unit = self.loss.unit(self.y, self.c)
        certificate = Certificate(
            primal,
            dual,
            beta,
            intercept,
            self.tiny,
            margin,
            scope=self.scope,
            unit=unit,
            unit_name=self.loss.unit_name,
            strength=self.loss.strength,
        )
        if point.cuts is None:
            return certificate
        # the better of a single dual point's bound and that of many cuts, recomputed unless it is known
        bound = self.bound_of_cuts(point.cuts) if point.cuts_bound is None else point.cuts_bound
        return replace(certificate, dual=bound, cuts=point.cuts) if bound > dual else certificate

    def bound_of_cuts(self, betas: Array, gain_doubts: Any = 0.0, form_doubts: Any = 0.0) -> float:
        """Lower bound that coefficients prove together, for weights that are a choice among subsets.

        ``gain_doubts (c,)`` and ``form_doubts (c, m)`` are what rounding may have done to the parts of every cut: the
        bound then holds in spite of it.
        """
        repaired = [self.repair(beta) for beta in betas]
        gains = np.array([self.gain(beta) for beta in repaired]) - gain_doubts
        quads = np.maximum([self.bank.quad(beta) for beta in repaired], 0.0) + form_doubts
        relaxed = self.norm.lowest_of_cuts(gains, quads, whole=False).bound
        seconds = max(time_left(), LAST_PROGRAM)
        return max(relaxed, self.norm.lowest_of_cuts(gains, quads, seconds=seconds).bound)

    def _known(self, point: Point) -> tuple[Array, Array]:
        quad, decision = point.quad, point.decision
        if decision is None and point.blocks is not None:
            raise ValueError("a point with block norms of its own needs its decision values, too")
        if quad is None and decision is None:
            return self.bank.judged(point.weights, point.beta)
        if quad is None:
            quad = self.bank.quad(point.beta)
        if decision is None:
            decision = self.bank.mix_product(point.weights, point.beta)
        return quad, decision

    def oracle(
        self,
        weights: Array,
        start: FixedSolution | None = None,
        target: float = 1e-4,
        curvature: bool = False,
        expect_last: bool = False,
    ) -> Oracle:
        """Solve with these weights to a relative gap of ``target``, starting from an earlier solution.

        ``expect_last``: the Hessian will hardly be asked for, so nothing is read for it before it is.
        """
        needed = 0 if self.by_products else self.bank.mixed_itemsize * self.n**2
        # asking the system for its limits takes longer than a small problem
        if needed > SMALL and needed > default_budget() and not self.bank.on_device:
            raise refuse(
                f"the mixed kernel of {self.n} samples", needed, default_budget(),
                ["a hinge loss, for which solver='working_set' mixes support vectors alone",
                 "explicit features (kernels.nystroem) and a smooth loss, for which no solver needs that kernel"],
            )  # fmt: skip
        check_time()
        K = self._mixed(weights)
        inner = solve_fixed(K, self.loss, self.y, self.c, self.fit_intercept, target, start)
        self.unsolved = self.unsolved + 1 if inner.relative_gap > max(target, UNSOLVED) else 0
        if not curvature:
            return Oracle(weights, inner, self.bank.quad(inner.beta))
        # a coupled loss bends along samples whose coefficients happen to be zero, too
        rows = np.flatnonzero(self.c > 0) if self.loss.coupled else support(inner.beta)
        if expect_last or self.by_products:  # a model of the Hessian needs no products with all kernels
            return Oracle(weights, inner, self.bank.quad(inner.beta), Curvature(self, K, inner, rows))
        # the products on the support give the quadratic forms too: one read for both
        products = self.bank.apply(inner.beta, rows)
        quad = np.sum(products * inner.beta[rows], axis=tuple(range(1, products.ndim)))
        return Oracle(weights, inner, quad, Curvature(self, K, inner, rows, products))

    @property
    def by_products(self) -> bool:
        """Whether the mixed kernel is only multiplied with: the bank can, and the loss is smooth."""
        return self.bank.by_products and serves(self.loss, self.y, self.c)

    def _mixed(self, weights: Array) -> Any:
        """Return the mixed kernel as inner solvers want it."""
        if self.bank.by_products and not self.by_products:
            return self.bank.combine(weights)
        return self.bank.mixed(weights)

    def refined(self, point: Point, target: float) -> Point:
        """Solve on with the weights of a point, to a relative gap of the inner problem.

        The bank may know more digits of the products that it begins with than the mixed kernel has.
        """
        decision = self.bank.mix_product(point.weights, point.beta)
        start = FixedSolution(point.beta, decision, 0.0, np.inf, -np.inf, 0)
        K = self._mixed(point.weights)
        inner = solve_fixed(
            K, self.loss, self.y, self.c, self.fit_intercept, target, start, keep_product=True
        )
        return Point(inner.beta, point.weights)

    def mean_kernel_value(self) -> float:
        """Optimal value with the mean kernel: the scale of the objective."""
        K = self._mixed(np.full(self.m, 1.0 / self.m))
        primal = np.inf
        with suppress(np.linalg.LinAlgError):  # digits are gone
            inner = solve_fixed(K, self.loss, self.y, self.c, self.fit_intercept, 1e-6)
            if inner.relative_gap <= KNOWN:
                return inner.dual
            primal = inner.primal
        # the bounds are of no use: the function that is zero costs no more than this on any kernel
        zero = np.zeros_like(self.y)
        b: Any = self.loss.best_intercept(self.y, zero, self.c) if self.fit_intercept else 0.0
        return min(primal, self.loss.total(self.y, zero + b, self.c))
