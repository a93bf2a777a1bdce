"""SMKL: accelerated gradients on the dual, l1 reached through its entropy smoothing ([XJL10], corrected).

The dual to be minimised is ``f(beta) = -gain(beta) + conjugate(s)``, ``s_j = beta' K_j beta``; its gradient is
``-gain' + sum_j theta_j K_j beta`` with ``theta = weights(s)``, one product with every kernel: one pass over the bank.
The bank's image of beta (the products; coordinates in feature space where those are explicit) is linear in beta and is
carried along for extrapolated points, so a trial costs one pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._components import check_choice
from .._numerics.namespace import as_like, to_numpy
from ..norms import Entropy, FixedParts, Norm
from ..problems import MKLProblem, Point
from ._base import Solver, begin


@dataclass(frozen=True)
class _NesterovPoint:
    """A dual point with its image under the bank, and the smoothed objective there."""

    beta: Any
    image: Any
    quad: np.ndarray
    theta: np.ndarray
    value: float
    gradient: Any


@dataclass
class _NesterovState:
    dual: _SmoothedDual
    stages: Iterator[_SmoothedDual]
    x: _NesterovPoint
    z: _NesterovPoint
    momentum: float = 1.0
    lipschitz: float = 1.0
    # the paper's method only
    steps: int = 0
    origin: Any = None
    gathered: Any = None


class Nesterov(Solver, registered_as="nesterov"):
    """Accelerated gradient on the (smoothed) dual, with backtracking, restart and continuation in the smoothing.

    For ``norm="l1"`` the smoothing is a tolerance: stages of 0.1, 0.01, ... times the mean kernel's value until the
    l1 gap is small.  For ``norms.Entropy(smoothing)`` it is the model, and the last stage is exactly that.

    Parameters
    ----------
    variant : {"adaptive", "paper"}, default="adaptive"
        ``paper``: Algorithm 2 of the paper with its constant step, its centre moved to the start (errata).
    smoothing : float, default=0.01
        With ``variant="paper"`` and l1, the smoothing in units of the mean kernel's value.
    """

    needs = ("quadratic dual", "smooth dual")
    default_max_iter = 20_000
    summary = "accelerated gradient on the smoothed dual (SMKL, Xu et al. 2010)"

    def __init__(self, variant: str = "adaptive", smoothing: float = 0.01) -> None:
        self.variant = variant
        self.smoothing = smoothing

    def init(self, problem: MKLProblem, start: Point | None, tol: float) -> _NesterovState:
        check_choice("Nesterov's variant", self.variant, ("adaptive", "paper"))
        weights, inner = begin(problem, start)
        if start is None:  # the SVM on the mean kernel
            weights = np.full(problem.m, 1.0 / problem.m)
        oracle = problem.oracle(weights, inner, 1e-4)
        scale = oracle.inner.dual if start is None else problem.mean_kernel_value()
        stages = _stages(problem.norm, scale)
        if self.variant == "paper":
            norm = problem.norm
            stages = iter([smoothed(self.smoothing * scale, norm) if norm.simplex else norm])
        dual = _SmoothedDual(problem, next(stages))
        image = problem.bank.image(oracle.inner.beta)
        x = dual.place(as_like(oracle.inner.beta, image), image)
        following = (_SmoothedDual(problem, norm) for norm in stages)
        return _NesterovState(dual, following, x, x, origin=x.beta, gathered=0.0 * x.beta)

    def step(self, problem: MKLProblem, state: _NesterovState) -> _NesterovState:
        if self.variant == "paper":
            # Algorithm 2: (17) and (18) with the constant of Corollary 3 as corrected
            dual, k, L = state.dual, state.steps, state.dual.lipschitz_bound()
            gathered = state.gathered + 0.5 * (k + 1) * state.z.gradient
            b = dual.project(state.z.beta - state.z.gradient / L)
            centre = dual.project(state.origin - gathered / L)
            a = (2.0 * centre + (k + 1) * b) / (k + 3)
            x = dual.place(b, problem.bank.image(to_numpy(b)))
            z = dual.place(a, problem.bank.image(to_numpy(a)))
            return replace(state, x=x, z=z, steps=k + 1, gathered=gathered, lipschitz=L)
        lam = state.dual.norm.strength
        if lam is not None and state.dual.gap(state.x) <= 0.05 * lam:
            # the smoothed gap is a twentieth of the smoothing: on to less of it
            following = next(state.stages, None)
            if following is not None:
                x = following.place(state.x.beta, state.x.image)
                state = replace(state, dual=following, x=x, z=x, momentum=1.0)
        z, L = state.z, 0.9 * state.lipschitz
        while True:
            beta = state.dual.project(z.beta - z.gradient / L)
            new = state.dual.place(beta, problem.bank.image(to_numpy(beta)))
            moved = new.beta - z.beta
            square = float((moved * moved).sum())
            # the quadratic upper bound holds at step 1/L; by gradients where values differ by rounding only, for which
            # the relative error of the bank's products counts: no shorter step makes it smaller
            rounding = problem.bank.rounding
            if square == 0.0:
                break
            if abs(new.value - z.value) < max(1e-8, 10.0 * rounding) * abs(z.value):
                size = float((new.gradient * new.gradient).sum()) ** 0.5 + float(new.beta.shape[0]) ** 0.5
                error = rounding * size * square**0.5
                accepted = float(((new.gradient - z.gradient) * moved).sum()) <= L * square + error
            else:
                accepted = new.value <= z.value + float((z.gradient * moved).sum()) + 0.5 * L * square
            if accepted:
                break
            L *= 2.0
        # restart where the momentum points uphill (O'Donoghue and Candes)
        uphill = float(((z.beta - new.beta) * (new.beta - state.x.beta)).sum()) > 0
        t = 1.0 if uphill else state.momentum
        t_next = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
        mu = (t - 1.0) / t_next
        ahead = new
        if mu > 0:
            image = new.image + mu * (new.image - state.x.image)
            ahead = state.dual.place(new.beta + mu * (new.beta - state.x.beta), image)
        return replace(state, x=new, z=ahead, momentum=t_next, lipschitz=L)

    def point(self, state: _NesterovState) -> Point:
        x = state.x
        return Point(to_numpy(x.beta), x.theta, x.quad, to_numpy(state.dual.mixed(x)))

    def finish(self, problem: MKLProblem, best: Point) -> Point | None:
        """Final SVM on the mixed kernel, the paper's last line."""
        _, inner = begin(problem, best)
        return problem.oracle(best.weights, inner, 1e-4).point


def smoothed(lam: float, norm: Norm | None = None) -> Norm:
    """Return the entropy norm of a given strength, beside the kernels of a norm whose weights are given."""
    entropy = Entropy()
    entropy.lam = lam
    return FixedParts(entropy, norm.given) if isinstance(norm, FixedParts) else entropy


def _stages(norm: Norm, scale: float) -> Iterator[Norm]:
    """Norms whose duals are minimised one after the other; the last one is the norm itself unless that is l1."""
    goal = 0.0 if norm.simplex else norm.strength
    if goal is None:
        yield norm
        return
    if not np.isfinite(scale):
        raise FloatingPointError(
            "the SVM on the mean kernel has no finite value: check the scale of the kernels and of C"
        )
    scale = max(abs(scale), np.finfo(float).tiny)  # nothing to learn: the value is zero
    lam = 0.1 * scale
    while lam > max(goal, 1e-12 * scale):
        yield smoothed(lam, norm)
        lam *= 0.1
    if goal > 0:
        yield norm


class _SmoothedDual:
    """``-gain + conjugate`` for one norm, and the dual set; overflow-safe through the norm's own conjugate."""

    def __init__(self, problem: MKLProblem, norm: Norm) -> None:
        self.problem = problem
        self.norm = norm
        quadratic = problem.loss.quadratic_dual(problem.y)
        assert quadratic is not None
        self.linear = quadratic.linear
        used = problem.c > 0
        self.ridge = np.divide(quadratic.ridge, problem.c, out=np.zeros_like(problem.c), where=used)

    def place(self, beta: Any, image: Any) -> _NesterovPoint:
        """Evaluate at coefficients whose image is known."""
        bank = self.problem.bank
        quad = np.maximum(to_numpy(bank.image_quad(image, beta)), 0.0)
        theta = self.norm.weights(quad)
        linear, ridge = as_like(self.linear, beta), as_like(self.ridge, beta)
        gain = float((linear * beta).sum() - 0.5 * (ridge * beta * beta).sum())
        gradient = bank.image_mix(image, theta) - linear + ridge * beta
        return _NesterovPoint(beta, image, quad, theta, self.norm.conjugate(quad) - gain, gradient)

    def mixed(self, x: _NesterovPoint) -> Any:
        """``sum_j theta_j K_j beta``, out of the gradient."""
        return x.gradient + as_like(self.linear, x.beta) - as_like(self.ridge, x.beta) * x.beta

    def project(self, beta: Any) -> Any:
        problem = self.problem
        inside = problem.loss.project(problem.y, to_numpy(beta), problem.c, problem.fit_intercept)
        return as_like(inside, beta)

    def gap(self, x: _NesterovPoint) -> float:
        """Duality gap of the smoothed problem at a point: ``theta's + loss - gain``."""
        problem = self.problem
        beta = to_numpy(x.beta)
        f = to_numpy(self.mixed(x))
        b = problem.loss.best_intercept(problem.y, f, problem.c) if problem.fit_intercept else 0.0
        charged = problem.loss.total(problem.y, f + b, problem.c)
        return float(x.theta @ x.quad) + charged - problem.gain(problem.repair(beta))

    def lipschitz_bound(self) -> float:
        """Corollary 3, corrected: ``Lam + n C^2 Lam^2 / (2 lam)``, Lam the largest eigenvalue over all kernels."""
        if not hasattr(self, "_bound"):
            problem = self.problem
            everyone = np.arange(problem.n)
            kernels = (problem.bank.block(everyone, everyone, np.array([j]))[0] for j in range(problem.m))
            top = float(max(np.linalg.eigvalsh(kernel)[-1] for kernel in kernels))
            lam = self.norm.strength or np.inf
            self._bound = top + float(np.sum(problem.c**2)) * top**2 / (2.0 * lam) + float(np.max(self.ridge))
        return self._bound
