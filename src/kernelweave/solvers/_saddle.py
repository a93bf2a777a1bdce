"""The saddle form of a problem and the two steps that methods for it are made of.

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

from .._numerics.namespace import as_like, namespace, to_numpy
from ..problems import MKLProblem, Point
from ._start import begin

__all__ = ["Average", "Blocks", "Saddle", "paper_step", "share_coefficients"]


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
        return Average(
            self.weight + weight, self.f.plus(f, weight), self.u + weight * u, self.image + weight * image
        )


class Saddle:
    """``F`` of one problem: gradient steps in u, proximal steps in f, and points for the judge."""

    def __init__(self, problem: MKLProblem) -> None:
        self.problem = problem
        quadratic = problem.loss.quadratic_dual(problem.y)
        assert quadratic is not None
        self.linear = quadratic.linear
        self.size = problem.y.size
        self.unit = max(float(np.mean(problem.c)), np.finfo(float).tiny)
        self.lam = 1.0 / (self.unit * self.size)

    def image(self, u: Any) -> Any:
        """Products ``K_j u``: one pass over the bank."""
        return self.problem.bank.apply(to_numpy(u))

    def begin(self, start: Point | None) -> tuple[Blocks, Any, Any]:
        """First f, u and its image: zero, as in the paper, or what a point with shared coefficients stands for."""
        if start is None:  # the image of nothing reads nothing, and is an array of the bank's kind
            beta, weights = np.zeros(self.problem.y.shape), np.zeros(self.problem.m)
        else:
            beta, weights = self.problem.repair(start.beta), self.problem.norm.scaled(start.weights)
        image = self.image(beta)
        xp = namespace(image)
        scale = xp.reshape(as_like(weights, image), (-1,) + (1,) * beta.ndim)
        first = as_like(beta, image)
        coefficients = scale * first[None]
        return Blocks(coefficients, scale * image), first / self.unit, image / self.unit

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

    def point(self, average: Average) -> Point:
        """The averages: f by its block norms and values, u as the coefficients, weights that the blocks ask for."""
        w = average.weight
        u, image = to_numpy(average.u) / w, average.image
        blocks = np.sqrt(average.f.squares) / w
        weights = self.problem.norm.weights_of_blocks(blocks)
        pairs = image * average.u
        quad = to_numpy(pairs.sum(axis=tuple(range(1, pairs.ndim)))) * (self.unit / w) ** 2
        decision = to_numpy(average.f.decision) / w
        return Point(self.unit * u, weights, np.maximum(quad, 0.0), decision, blocks=blocks)


def paper_step(problem: MKLProblem) -> float:
    """Step length ``sqrt(n / (2m))``: what kernels of mean diagonal one call for at worst."""
    return float(np.sqrt(problem.n / (2.0 * problem.m)))


def share_coefficients(problem: MKLProblem, best: Point) -> Point:
    """Solve on the kernel that the blocks of the best point mix: coefficients shared by all kernels.

    With ``d`` the weights that attain ``Omega(blocks)``, f is one of the functions over which that SVM minimises
    ``sum_j |f_j|^2 / (2 d_j) + loss``: the objective can only fall, but for what the inner solve leaves open.
    """
    gap = problem.certificate(best).relative_gap
    _, inner = begin(problem, best)
    return problem.oracle(best.weights, inner, float(np.clip(0.01 * gap, 1e-9, 1e-4))).point
