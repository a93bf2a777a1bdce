"""Methods for the saddle form of a problem: StPMKL's accelerated mirror prox and the variational comparison.

Where the dual of the loss is linear on its set (``loss.has_saddle_form``) the problem is, divided by ``sum c``,

    min over f, max over u of F(f, u) = lam/2 Omega(f)^2 + <u, linear - f> / N,      lam = 1 / sum c,   N = y.size

over ``u = beta / mean(c)`` in the dual set, signed: (11) of [YMJZY12] with ``u = a y``.  Every block of f has
coefficients of its own until the optimum; they are carried with their products, which are linear in them, so that a
step in f costs one product with every kernel and O(m n) beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._components import check_choice
from .._numerics.namespace import as_like, namespace, to_numpy
from ..problems import MKLProblem, Point
from ._base import Solver, begin


@dataclass(frozen=True)
class Blocks:
    """``f_j = sum_i coefficients_ji k_j(x_i, .)`` with its values ``products_j = K_j coefficients_j``; (m, n[, k])."""

    coefficients: Any
    products: Any

    @property
    def squares(self) -> np.ndarray:
        """Squared norms of the blocks."""
        pairs = self.coefficients * self.products
        return np.maximum(to_numpy(pairs.sum(axis=tuple(range(1, pairs.ndim)))), 0.0)

    @property
    def decision(self) -> Any:
        """Values of f, the sum of the blocks."""
        return self.products.sum(axis=0)

    def plus(self, other: Blocks, share: float) -> Blocks:
        """Return ``self + share other``."""
        return Blocks(self.coefficients + share * other.coefficients, self.products + share * other.products)


@dataclass
class Average:
    """Weighted sums of the iterates of f and u, and of the products of u; ``weight`` is the sum of the weights."""

    weight: float
    f: Blocks
    u: Any
    image: Any

    @classmethod
    def empty(cls, f: Blocks, u: Any, image: Any) -> Average:
        """Return sums of nothing, of the shapes of these iterates."""
        return cls(0.0, Blocks(0.0 * f.coefficients, 0.0 * f.products), 0.0 * u, 0.0 * image)

    def add(self, weight: float, f: Blocks, u: Any, image: Any) -> Average:
        """Return the sums with one more iterate."""
        u, image = self.u + weight * u, self.image + weight * image
        return Average(self.weight + weight, self.f.plus(f, weight), u, image)


class Saddle:
    """``F`` of one problem: gradient steps in u, proximal steps in f."""

    def __init__(self, problem: MKLProblem) -> None:
        self.problem = problem
        quadratic = problem.loss.quadratic_dual(problem.y)
        assert quadratic is not None
        self.linear = quadratic.linear
        self.size = problem.y.size
        self.unit = max(float(np.mean(problem.c)), np.finfo(float).tiny)
        self.lam = 1.0 / (self.unit * self.size)

    def ascend(self, u: Any, decision: Any, step: float) -> Any:
        """Projected gradient step in u."""
        problem = self.problem
        moved = to_numpy(u) + (step / self.size) * (self.linear - to_numpy(decision))
        inside = problem.loss.project(problem.y, self.unit * moved, problem.c, problem.fit_intercept)
        return as_like(inside / self.unit, decision)

    def descend(self, f: Blocks, u: Any, image: Any, step: float) -> Blocks:
        """Proximal gradient step in f: blocks are moved along ``K_j u`` and shrunk by the norm's prox (Lemma 3)."""
        share = step / self.size
        moved = f.plus(Blocks(u[None], image), share)
        norms = np.sqrt(moved.squares)
        shrunk = self.problem.norm.prox(norms, step * self.lam)
        kept = np.divide(shrunk, norms, out=np.zeros_like(norms), where=norms > 0)
        xp = namespace(image)
        scale = xp.reshape(as_like(kept, image), (-1,) + (1,) * (image.ndim - 1))
        return Blocks(scale * moved.coefficients, scale * moved.products)


#: how much longer each step tries to be than the last
GROWTH = 1.2
#: steps before the averages begin again for the first time
FIRST = 10


@dataclass
class _SaddleState:
    saddle: Saddle
    f: Blocks
    u: Any
    step: float
    average: Average
    steps: int = 0
    until: int = FIRST


class SaddleSolver(Solver):
    """A method for the saddle form whose averages are evaluated; the last act is an SVM on the mixed kernel."""

    default_max_iter = 10_000

    def point(self, state: _SaddleState) -> Point:
        """The averages: f by its block norms and values, u as the coefficients, weights that the blocks ask for."""
        saddle, average, w = state.saddle, state.average, state.average.weight
        blocks = np.sqrt(average.f.squares) / w
        weights = saddle.problem.norm.weights_of_blocks(blocks)
        pairs = average.image * average.u
        quad = to_numpy(pairs.sum(axis=tuple(range(1, pairs.ndim)))) * (saddle.unit / w) ** 2
        beta, decision = saddle.unit * (to_numpy(average.u) / w), to_numpy(average.f.decision) / w
        return Point(beta, weights, np.maximum(quad, 0.0), decision, blocks=blocks)

    def finish(self, problem: MKLProblem, best: Point) -> Point | None:
        """Solve on the kernel that the blocks of the best point mix: coefficients shared by all kernels.

        With ``d`` the weights that attain ``Omega(blocks)``, f is one of the functions over which that SVM minimises
        ``sum_j |f_j|^2 / (2 d_j) + loss``: the objective can only fall, but for what the inner solve leaves open.
        """
        gap = problem.certificate(best).relative_gap
        _, inner = begin(problem, best)
        return problem.oracle(best.weights, inner, float(np.clip(0.01 * gap, 1e-9, 1e-4))).point

    def _begin(self, problem: MKLProblem, start: Point | None) -> _SaddleState:
        """Return the first state, with the step ``sqrt(n / (2m))``: what unit mean diagonals call for at worst."""
        saddle = Saddle(problem)
        # f and u are zero, as in the paper, or what a point with shared coefficients stands for
        beta, weights = np.zeros(problem.y.shape), np.zeros(problem.m)
        if start is not None:
            beta, weights = problem.repair(start.beta), problem.norm.scaled(start.weights)
        image = problem.bank.apply(beta)  # of nothing it reads nothing, and is an array of the bank's kind
        scale = namespace(image).reshape(as_like(weights, image), (-1,) + (1,) * beta.ndim)
        first = as_like(beta, image)
        f, u, image = Blocks(scale * first[None], scale * image), first / saddle.unit, image / saddle.unit
        step = float(np.sqrt(problem.n / (2.0 * problem.m)))
        return _SaddleState(saddle, f, u, step, Average.empty(f, u, image))


class MirrorProx(SaddleSolver, registered_as="mirror_prox"):
    """Algorithm 1 of [YMJZY12] on the saddle form, its averages evaluated.

    Parameters
    ----------
    variant : {"adaptive", "paper"}, default="adaptive"
        ``adaptive``: a step as long as what it adds to the proof's bound is not positive, which is checked; ``paper``:
        the constant step ``sqrt(n / (2m))``.
    ratio : float, default=1.0
        Steps are ``ratio`` times longer in the blocks and as many times shorter in the multipliers.
    restart : bool, default=True
        Begin the averages again whenever the number of steps has doubled, so that the first, poor iterates are
        forgotten; never with ``variant="paper"``.
    """

    needs = ("saddle form", "prox")
    summary = "accelerated mirror prox on the saddle form (StPMKL, Yang et al. 2012)"

    def __init__(self, variant: str = "adaptive", ratio: float = 1.0, restart: bool = True) -> None:
        self.variant = variant
        self.ratio = ratio
        self.restart = restart

    def init(self, problem: MKLProblem, start: Point | None, tol: float) -> _SaddleState:
        check_choice("MirrorProx's variant", self.variant, ("adaptive", "paper"))
        if not self.ratio > 0:
            raise ValueError(f"MirrorProx needs ratio > 0, got {self.ratio!r}")
        state = self._begin(problem, start)
        # a step first tries to be longer than the last: this makes the first one the paper's
        if self.variant == "adaptive":
            state.step /= GROWTH
        return self.step(problem, state)

    def step(self, problem: MKLProblem, state: _SaddleState) -> _SaddleState:
        saddle, f, paper = state.saddle, state.f, self.variant == "paper"
        step = state.step if paper else GROWTH * state.step
        while True:
            # steps 4 to 6 of the algorithm: the multipliers at f, the blocks, the multipliers at the new f
            u = saddle.ascend(state.u, f.decision, step / self.ratio)
            image = problem.bank.apply(to_numpy(u))
            new = saddle.descend(f, u, image, step * self.ratio)
            b = saddle.ascend(state.u, new.decision, step / self.ratio)
            if paper:
                break
            # the step is accepted if what it adds to the bound of Theorem 2 is not positive
            moved = new.plus(f, -1.0)
            bilinear = step / saddle.size * float((moved.decision * (u - b)).sum())
            multipliers = float(((u - b) ** 2).sum() + ((u - state.u) ** 2).sum())
            if bilinear <= 0.5 * self.ratio * multipliers + 0.5 * float(np.sum(moved.squares)) / self.ratio:
                break
            step *= 0.5
        average, until = state.average, state.until
        if not paper and self.restart and state.steps >= until:
            average, until = Average.empty(new, u, image), 2 * state.steps
        average = average.add(step, new, u, image)
        return _SaddleState(saddle, new, b, step, average, state.steps + 1, until)


class Variational(SaddleSolver, registered_as="variational"):
    """The variational inequality method of [YMJZY12], section 5: simultaneous steps ``g / sqrt(t)``, averaged.

    Parameters
    ----------
    length : float, default=10.0
        First step in units of ``sqrt(n / (2m))``.
    """

    needs = ("saddle form", "simplex")
    summary = "plain descent and ascent on the saddle form (VI in Yang et al. 2012)"

    def __init__(self, length: float = 10.0) -> None:
        self.length = length

    def init(self, problem: MKLProblem, start: Point | None, tol: float) -> _SaddleState:
        if not self.length > 0:
            raise ValueError(f"Variational needs length > 0, got {self.length!r}")
        state = self._begin(problem, start)
        state.step *= self.length
        return self.step(problem, state)

    def step(self, problem: MKLProblem, state: _SaddleState) -> _SaddleState:
        saddle, f, u, t = state.saddle, state.f, state.u, state.steps + 1
        step = state.step / float(np.sqrt(t))
        image = problem.bank.apply(to_numpy(u))
        new, risen = saddle.descend(f, u, image, step), saddle.ascend(u, f.decision, step)
        return _SaddleState(saddle, new, risen, state.step, state.average.add(step, new, u, image), t)
