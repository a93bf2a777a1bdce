"""Proximal Newton steps on explicit features that are swept: streamed, on a device or on a cluster.

    minimise  1/2 |w|_{2,r}^2 + sum c l(y, Z w + b)

A step replaces the losses by their second-order model on a sample of the rows, as large as the features at work make
necessary.  With the model's Hessian ``L L'`` that is a problem of the same norm and the squared loss, on as many
"samples" as there are features: block descent solves it, in memory, and all that is asked of the bank are sums over
samples.  The gradient is of all rows, so the sample costs steps and no precision.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular

from ..banks import LowRankBank
from ..losses import Squared
from ..problems import MKLProblem, Point
from ._base import Solver
from ._preconditioner import bend_of
from .block_descent import BlockDescent

Array = NDArray[np.float64]
Index = NDArray[np.intp]

__all__ = ["ProximalNewton"]

#: rows per feature in the sample that the curvature is estimated on, also where most features are at work (steps that
#: are as dear as that should be few), and the fewest
ROWS_A_FEATURE, OF_MOST, FEWEST = 8, 16, 2000
#: kernels that join those at work, at least
JOINING = 10
#: relative gap of the model at first, as a share of the tolerance; where a step gains less than that, a smaller one
INNER, CLOSER, CLOSEST = 0.05, 0.01, 1e-13
#: share of the largest second derivative that every loss is given
STRAIGHT = 1e-6
#: halvings of a step that is too long
HALVINGS = 30


class ProximalNewton(Solver, registered_as="proximal_newton"):
    """Second-order steps on explicit features, asking for nothing but sums over samples.

    Kernels without explicit features are factorised once (m eigendecompositions).

    Parameters
    ----------
    random_state : int, default=0
        Of the samples of rows.
    """

    needs = ("simple derivative", "block exponent")
    default_max_iter = 200
    summary = "second-order steps on swept features, also with the l1 norm"
    mixes = False

    def __init__(self, random_state: int = 0) -> None:
        self.random_state = random_state

    def init(self, problem: MKLProblem, start: Point | None, tol: float) -> _Run:
        return _Run(problem, tol, self.random_state, start)

    def step(self, problem: MKLProblem, state: _Run) -> _Run:
        return state.step()

    def point(self, state: _Run) -> Point:
        return state.point()


class _Run:
    """One fit; it is its own state."""

    def __init__(self, problem: MKLProblem, tol: float, seed: int, start: Point | None) -> None:
        self.problem, self.tol = problem, tol
        self.factors = problem.bank.factors()
        self.block_of = np.repeat(np.arange(problem.m), self.factors.ranks)
        self.root = np.sqrt(self.factors.scale)[self.block_of][:, None]
        self.rng = np.random.default_rng(seed)
        self.shape = (problem.n, 1 if problem.y.ndim == 1 else problem.y.shape[1])
        self.finished = False
        self.inner = INNER * tol
        self.w, self.f = np.zeros((self.block_of.size, self.shape[1])), np.zeros(self.shape)
        if start is not None:
            self.weights, self.beta = problem.norm.scaled(start.weights), problem.repair(start.beta)
            self.image = self._adjoint(self.beta.reshape(self.shape))
            self.w = self.weights[self.block_of][:, None] * self.image
            self.f = self._forward(self.w)
        self.value, self.b = self._judge(self.w, self.f)
        #: whether the coefficients are those of the losses here; at first they are those of the start
        self.looked = start is None
        if self.looked:
            self._look()

    # ---- the objective ---------------------------------------------------------------------------------------

    def _forward(self, w: Array) -> Array:
        return self.factors.forward(self.root * w)

    def _adjoint(self, a: Array) -> Array:
        self.problem.bank.count(self.problem.m * float(self.problem.n) ** 2)
        return self.root * self.factors.adjoint(a)

    def _like_y(self, f: Array) -> Array:
        return f[:, 0] if self.problem.y.ndim == 1 else f

    def _lengths(self, w: Array) -> Array:
        squares = np.append(np.sum(w**2, axis=1), 0.0)
        return np.sqrt(np.add.reduceat(squares, self.factors.starts[:-1]) * (self.factors.ranks > 0))

    def _judge(self, w: Array, f: Array) -> tuple[float, Array]:
        """Objective with the best intercept, and that intercept."""
        problem, values = self.problem, self._like_y(f)
        b = problem.loss.best_intercept(problem.y, values, problem.c) if problem.fit_intercept else 0.0
        charged = problem.loss.total(problem.y, values + b, problem.c)
        return problem.norm.half_square(self._lengths(w)) + charged, np.atleast_1d(np.asarray(b, dtype=float))

    def _look(self) -> None:
        """Coefficients of the losses here, in the dual set, and their image: half a pass."""
        problem, self.looked = self.problem, True
        gradient = problem.loss.gradient(problem.y, self._like_y(self.f + self.b))
        self.beta = problem.repair(-problem.c * gradient)
        self.image = self._adjoint(self.beta.reshape(self.shape))
        self.weights = problem.norm.weights_of_blocks(self._lengths(self.w))

    def point(self) -> Point:
        """Return the coefficients of the losses, under the weights of the blocks."""
        shared = self._forward(self.weights[self.block_of][:, None] * self.image)
        return Point(self.beta, self.weights, self._lengths(self.image) ** 2, self._like_y(shared))

    # ---- a step ----------------------------------------------------------------------------------------------

    def step(self) -> _Run:
        """Minimise the model on the kernels at work, and go there, or as far as the objective falls."""
        if not self.looked:
            self._look()
        working = self._working_set()
        if working.size == 0:
            self.finished = True
            return self
        columns = np.flatnonzero(np.isin(self.block_of, working))
        along = np.zeros_like(self.w)
        along[columns] = self._towards(working, columns)
        moved = self._forward(along)
        length = 1.0
        for _ in range(HALVINGS):
            w, f = self.w + length * along, self.f + length * moved
            value, b = self._judge(w, f)
            if value < self.value:
                break
            length *= 0.5
        else:
            return self._closer()
        gained, self.w, self.f, self.value, self.b = self.value - value, w, f, value, b
        self._look()
        # coefficients that all kernels share know of the coordinates to first order, the objective to second
        return self._closer() if gained < self.inner * abs(value) else self

    def _closer(self) -> _Run:
        """Solve the next model more precisely, while there are digits to gain."""
        self.finished = self.inner <= CLOSEST
        self.inner = max(CLOSER * self.inner, CLOSEST)
        return self

    def _working_set(self) -> Index:
        """Kernels with a block, and those without whose images are the longest beyond what the norm allows them."""
        t, lengths = self._lengths(self.w), self._lengths(self.image)
        least = 0.999 * float(np.sum(t)) if self.problem.norm.simplex else 0.0
        others = np.flatnonzero((t == 0.0) & (lengths > least))
        most = max(JOINING, 2 * np.count_nonzero(t)) if self.problem.norm.simplex else others.size
        joining = others[np.argsort(-lengths[others], kind="stable")[:most]]
        return np.sort(np.concatenate([np.flatnonzero(t > 0.0), joining]))

    def _towards(self, working: Index, columns: Index) -> Array:
        """The way to the minimum of the second-order model in these columns."""
        problem = self.problem
        size = columns.size
        hessian = self._hessian(columns)
        hessian[np.diag_indices(size)] += 1e-10 * float(np.trace(hessian)) / size + np.finfo(float).tiny
        factor = cholesky(hessian, lower=True, overwrite_a=True, check_finite=False)
        here = self.w[columns]
        # 1/2 |L'v - target|^2 has the model's Hessian, and at w its gradient, which is minus the image
        target = factor.T @ here + solve_triangular(
            factor, self.image[columns], lower=True, check_finite=False
        )
        ranks = self.factors.ranks[working]
        bank = LowRankBank(np.ascontiguousarray(factor.T), np.concatenate([[0], np.cumsum(ranks)]))
        model = MKLProblem(bank, Squared(), problem.norm, self._like_y(target), C=0.5, fit_intercept=False)
        solver = BlockDescent()
        state = solver.init(model, None, self.inner, here if np.any(here) else None)
        while state.bounds.gap > self.inner and not state.finished and state.looks < 200:
            state = solver.step(model, state)
        return state.at.w - here

    def _hessian(self, columns: Index) -> Array:
        """Second derivatives of the losses in these columns, the intercept left to follow: from a sample of rows."""
        problem, n = self.problem, self.problem.n
        rows_a_feature = OF_MOST if 2 * columns.size > self.block_of.size else ROWS_A_FEATURE
        size = min(n, max(FEWEST, rows_a_feature * columns.size))
        rows = np.arange(n) if size == n else np.sort(self.rng.choice(n, size, replace=False))
        problem.bank.count(problem.m * float(n) * size)
        f = self._like_y(self.f[rows] + self.b)
        most = float(problem.loss.smoothness or 1.0)
        # where losses are straight lines the model needs a little curvature to have a minimum at all
        bend = np.maximum(bend_of(problem.loss, problem.y[rows], f), STRAIGHT * most)
        charge = (n / size) * problem.c[rows] * bend
        charge = charge if charge.ndim == 1 else charge.mean(axis=1)  # one metric for all columns of targets
        gram = self.factors.gram(rows, charge, columns)
        scale = self.root[columns, 0]
        hessian, beside = gram[:-1, :-1] * np.outer(scale, scale), gram[:-1, -1] * scale
        if problem.fit_intercept and gram[-1, -1] > 0:
            hessian -= np.outer(beside, beside) / gram[-1, -1]
        return hessian
