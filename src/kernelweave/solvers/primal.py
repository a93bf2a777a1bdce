"""Smooth losses in the primal on explicit features: L-BFGS, and proximal Newton steps on features that are swept.

With n samples and C the Hessian's eigenvalues spread over C n, and first-order methods pay for it in sweeps over all
rows.  A few thousand rows know those eigenvalues well enough: in coordinates ``v = L' x``, ``L L'`` the sampled
Hessian, L-BFGS needs tens of sweeps whatever n is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import minimize

from .._numerics.resources import default_budget
from .._numerics.stopping import out_of_time
from .._numerics.tiles import factorise
from .._typing import Array, Index
from ..banks import FeatureMatrix, Features, FeatureStorage
from ..banks.decide import model_bytes
from ..losses import Squared
from ..problems import MKLProblem, Point
from ._base import Solver, block_sums
from .block_descent import BlockDescent

#: L-BFGS: rows per feature in the sample, the fewest rows, and how many sweeps a factorisation may cost
PRECONDITIONER_ROWS, PRECONDITIONER_FEWEST, PRECONDITIONER_WORTH = 4, 1000, 400
#: half of the distance over which gradients are compared: the hinges have no second derivative of their own
REACH = 0.5

#: proximal Newton: rows per feature in the sample that the curvature is estimated on, also where most features are at
#: work (steps that are as dear as that should be few), and the fewest
ROWS_A_FEATURE, OF_MOST, FEWEST = 8, 16, 2000
#: kernels that join those at work, at least, if the model has room for them
JOINING = 10
#: relative gap of the model at first, as a share of the tolerance; where a step gains less than that, a smaller one
INNER, CLOSER, CLOSEST = 0.05, 0.01, 1e-13
#: share of the largest second derivative that every loss is given
STRAIGHT = 1e-6
#: halvings of a step that is too long
HALVINGS = 30


def sample_rows(n: int, width: int, seed: int = 0) -> NDArray[np.intp] | None:
    """Row numbers to estimate a Hessian of so many features on; None where factorising it would cost too much."""
    size = min(n, max(PRECONDITIONER_FEWEST, PRECONDITIONER_ROWS * width))
    if width * (width / 3.0 + size) > PRECONDITIONER_WORTH * float(n):
        return None
    return np.sort(np.random.default_rng(seed).choice(n, size, replace=False))


def bend_of(loss: Any, y: Array, f: Array, c: Array) -> Array:
    """Second derivatives of the losses, over a distance, times c; of some samples' share of all."""
    if loss.coupled:  # less the mean, which is taken off with an intercept, they bound the whole matrix
        return np.asarray(loss.total_curvature(y, f, c))
    if loss.joint:  # of which a shift of all classes makes nothing
        return np.asarray(c * loss.curvature(y, f))
    return np.asarray(c * (loss.gradient(y, f + REACH) - loss.gradient(y, f - REACH)) / (2.0 * REACH))


class SampledHessian:
    """Coordinates in which the Hessian on a sample of rows is the identity: ``x = back(v)``, and the gradient in v.

    ``sample`` has the features of some rows, which the objective multiplies by ``root (R,)``; one more coordinate
    stands for the intercept, where there is one.  ``y``, ``f`` and ``c`` are targets, decision values and costs there,
    ``c`` for all samples; ``pull`` is the curvature of the regulariser.
    """

    def __init__(
        self,
        sample: FeatureStorage,
        root: Array,
        y: Array,
        f: Array,
        c: Array,
        loss: Any,
        pull: Any,
        intercept: bool,
    ) -> None:
        charge = np.maximum(bend_of(loss, y, f, c), 0.0)
        if charge.ndim == 2:  # one set of coordinates for all columns
            charge = charge.mean(axis=1)
        hessian = sample.gram(np.arange(sample.n), charge, np.arange(root.size))
        scale = np.append(root, float(intercept))
        hessian *= np.outer(scale, scale)
        at = np.arange(hessian.shape[0])
        hessian[at[:-1], at[:-1]] += pull
        hessian[at, at] += 1e-10 * float(np.trace(hessian)) / at.size + np.finfo(float).tiny
        self.factor = cholesky(hessian, lower=True, overwrite_a=True, check_finite=False)

    def into(self, x: Array) -> Array:
        """Coordinates of ``x``, ``(R + 1, k)``."""
        return self.factor.T @ x

    def back(self, v: Array) -> Array:
        """``x`` at coordinates v."""
        return solve_triangular(self.factor, v, lower=True, trans="T", check_finite=False)

    def gradient(self, g: Array) -> Array:
        """Gradient in v from that in x."""
        return solve_triangular(self.factor, g, lower=True, check_finite=False)


@dataclass
class _PrimalState:
    objective: PrimalObjective
    x: Array
    chunk: int
    tol: float
    value: float = np.inf
    idle: int = 0
    finished: bool = False


class LBFGS(Solver, registered_as="lbfgs"):
    """Minimise ``1/2 |w|_{2,r}^2 + sum c l(y, Z w + b)`` over the features of all kernels.

    Kernels without explicit features are factorised once (m eigendecompositions).

    Parameters
    ----------
    memory : int, default=20
        Pairs that L-BFGS remembers.
    chunk : int, default=20
        Iterations before the first certificate; half as many again before each further one, because L-BFGS forgets
        what it learnt of the curvature when it is interrupted.
    precondition : bool, default=True
        Whether to work in coordinates that the Hessian on a sample of the rows makes round, made again with every
        certificate; not done where factorising it would cost more than it saves.
    """

    needs = ("smooth loss", "smooth norm")
    default_max_iter = 1000
    summary = "L-BFGS on the primal in explicit features"
    mixes = False

    def __init__(self, memory: int = 20, chunk: int = 20, precondition: bool = True) -> None:
        self.memory = memory
        self.chunk = chunk
        self.precondition = precondition

    def init(self, problem: MKLProblem, start: Point | None, tol: float) -> _PrimalState:
        objective = PrimalObjective(problem)
        return _PrimalState(objective, objective.first(start), self.chunk, tol)

    def step(self, problem: MKLProblem, state: _PrimalState) -> _PrimalState:
        most, objective = state.chunk, state.objective
        options = {"maxiter": most, "maxcor": self.memory, "ftol": 0.0, "gtol": 0.0, "maxfun": 10 * most}
        round_ = objective.coordinates(state.x) if self.precondition else None
        shape, first = (-1, objective.columns), state.x

        def value(v: Array) -> tuple[float, Array]:
            if round_ is None:
                return objective(v)
            value, g = objective(round_.back(v.reshape(shape)).ravel())
            return value, round_.gradient(g.reshape(shape)).ravel()

        if round_ is not None:
            # so little gained is time for a certificate, and for coordinates that suit the new place
            options["ftol"] = 1e-4 * state.tol
            first = round_.into(first.reshape(shape)).ravel()
        result = minimize(value, first, jac=True, method="L-BFGS-B", callback=_stop_in_time, options=options)
        x = result.x if round_ is None else round_.back(result.x.reshape(shape)).ravel()
        # where rounding ended the line search, a start without memory may still find a way down
        idle = 0 if result.fun < state.value else state.idle + 1
        finished = result.nit == 0 or idle == 3
        following = most + (most + 1) // 2
        return _PrimalState(objective, x, following, state.tol, float(result.fun), idle, finished)

    def point(self, state: _PrimalState) -> Point:
        return state.objective.point(state.x)


def _stop_in_time(x: Array) -> None:
    """End a run of L-BFGS, with its last point, where no time is left."""
    if out_of_time():
        raise StopIteration


class PrimalFeatures:
    """Explicit features of a problem, with the kernels' factors."""

    def __init__(self, problem: MKLProblem) -> None:
        self.problem = problem
        self.factors = problem.bank.factors()
        self.block_of = np.repeat(np.arange(problem.m), self.factors.ranks)
        self.columns = 1 if problem.y.ndim == 1 else problem.y.shape[1]
        self.root = np.sqrt(self.factors.scale)[self.block_of][:, None]

    def like_y(self, f: Array) -> Array:
        return f[:, 0] if self.problem.y.ndim == 1 else f

    def lengths(self, w: Array) -> Array:
        """Norms of the blocks."""
        return np.sqrt(block_sums(np.sum(w**2, axis=1), self.factors.starts))


class PrimalObjective(PrimalFeatures):
    """Value and gradient in ``x = (w, b)``; a full gradient counts as one pass."""

    def __init__(self, problem: MKLProblem) -> None:
        super().__init__(problem)
        # a kernel that is given no weight may have no block: without features it stays at zero
        usable = problem.norm.start(problem.m) > 0
        self.root = (np.sqrt(self.factors.scale) * usable)[self.block_of][:, None]
        self.width = self.block_of.size
        #: row numbers of a sample and their features, None where a factorisation would cost too much
        self._sampled = False
        self._sample: tuple[Index, FeatureStorage] | None = None

    def first(self, start: Point | None) -> Array:
        x = np.zeros((self.width + 1) * self.columns)
        if start is not None:
            adjoint = self.factors.adjoint(start.beta.reshape(-1, self.columns))
            coordinates = (self.root * adjoint).reshape(self.width, self.columns)
            x[: self.width * self.columns] = (coordinates * start.weights[self.block_of][:, None]).ravel()
        return x

    def coordinates(self, x: Array) -> SampledHessian | None:
        """Coordinates that suit the objective at x, or None where they would cost too much."""
        problem = self.problem
        if not self._sampled:
            self._sampled = True
            rows = sample_rows(problem.n, self.width)
            if rows is not None:
                self._sample = rows, self.factors.storage.subset(rows)
                problem.bank.count(problem.m * float(problem.n) * rows.size)
        if self._sample is None:
            return None
        rows, sample = self._sample
        w, b = self._unpack(x)
        t = self.lengths(w)
        weights = problem.norm.weights_of_blocks(t) if np.any(t > 0) else problem.norm.start(problem.m)
        # a kernel without weight now may get some: it is not held at zero
        weights = np.maximum(weights, 1e-3 * float(np.max(weights)))
        f = self.like_y(sample.forward(self.root * w) + b)
        c, pull = problem.n / rows.size * problem.c[rows], 1.0 / weights[self.block_of]
        root = self.root[:, 0]
        return SampledHessian(sample, root, problem.y[rows], f, c, problem.loss, pull, problem.fit_intercept)

    def _unpack(self, x: Array) -> tuple[Array, Array]:
        end = self.width * self.columns
        return x[:end].reshape(self.width, self.columns), x[end:]

    def __call__(self, x: Array) -> tuple[float, Array]:
        problem = self.problem
        problem.bank.count(problem.m * float(problem.n) ** 2)
        w, b = self._unpack(x)
        t = self.lengths(w)
        root = self.root
        charged, along, db = self.factors.loss_sweep(root * w, b, problem.loss, problem.y, problem.c)
        pull = np.divide(problem.norm.block_gradient(t), t, out=np.zeros_like(t), where=t > 0)
        dw = pull[self.block_of][:, None] * w + root * along
        if not problem.fit_intercept:
            db = np.zeros(self.columns)
        return problem.norm.half_square(t) + charged, np.concatenate([dw.ravel(), db])

    def point(self, x: Array) -> Point:
        """Coefficients from the gradient of the loss at the best intercept, weights from the block norms."""
        problem = self.problem
        w, shift = self._unpack(x)
        f = self.like_y(self.factors.forward(self.root * w))
        b: Any = 0.0
        if problem.fit_intercept:
            # near the best one already, which is then found in few steps
            f += shift[0] if f.ndim == 1 else shift
            b = problem.loss.best_intercept(problem.y, f, problem.c)
        beta = problem.repair(-problem.loss.total_gradient(problem.y, f + b, problem.c))
        return Point(beta, problem.norm.weights_of_blocks(self.lengths(w)))


class ProximalNewton(Solver, registered_as="proximal_newton"):
    """Second-order steps on explicit features, asking for nothing but sums over samples.

    To minimise ``1/2 |w|_{2,r}^2 + sum c l(y, Z w + b)`` a step replaces the losses by their second-order model on a
    sample of the rows, as large as the features at work make necessary.  With the model's Hessian ``L L'`` that is a
    problem of the same norm and the squared loss, on as many "samples" as there are features: block descent solves it,
    in memory.  The gradient is of all rows, so the sample costs steps and no precision.

    Kernels without explicit features are factorised once (m eigendecompositions).

    Parameters
    ----------
    random_state : int, default=0
        Of the samples of rows.
    """

    needs = ("summed loss", "block exponent")
    default_max_iter = 200
    summary = "second-order steps on swept features, also with the l1 norm"
    mixes = False

    def __init__(self, random_state: int = 0) -> None:
        self.random_state = random_state

    def init(self, problem: MKLProblem, start: Point | None, tol: float) -> ProximalRun:
        return ProximalRun(problem, tol, self.random_state, start)

    def step(self, problem: MKLProblem, state: ProximalRun) -> ProximalRun:
        """Minimise the model on the kernels at work, and go there, or as far as the objective falls."""
        run, simplex = state, problem.norm.simplex
        if not run.at_losses:
            run.take_coefficients()
        # kernels with a block, and those without whose images are the longest beyond what the norm allows them
        t, lengths = run.lengths(run.w), run.lengths(run.image)
        others = np.flatnonzero((t == 0.0) & (lengths > (0.999 * float(np.sum(t)) if simplex else 0.0)))
        most = max(JOINING, 2 * np.count_nonzero(t)) if simplex else others.size
        joining = others[np.argsort(-lengths[others], kind="stable")[:most]]
        if simplex:  # as many as a model has room for
            ranks = run.factors.ranks
            taken = np.sum(ranks[t > 0.0]) + np.cumsum(ranks[joining])
            joining = joining[model_bytes(taken) <= default_budget()]
        working = np.sort(np.concatenate([np.flatnonzero(t > 0.0), joining]))
        if working.size == 0:
            run.finished = True
            return run
        columns = np.flatnonzero(np.isin(run.block_of, working))
        along = np.zeros_like(run.w)
        along[columns] = run.towards(working, columns)
        moved = run.factors.forward(run.root * along)
        length, gained = 1.0, 0.0
        for _ in range(HALVINGS):
            w, f = run.w + length * along, run.f + length * moved
            value, b = run.evaluate(w, f)
            if value < run.value:
                gained, run.w, run.f, run.value, run.b = run.value - value, w, f, value, b
                run.take_coefficients()
                break
            length *= 0.5
        # coefficients that all kernels share know of the coordinates to first order, the objective to second: the next
        # model is solved more precisely, while there are digits to gain
        if gained < run.inner * abs(value) or gained == 0.0:
            run.finished = run.inner <= CLOSEST
            run.inner = max(CLOSER * run.inner, CLOSEST)
        return run

    def point(self, state: ProximalRun) -> Point:
        """Return the coefficients of the losses, under the weights of the blocks."""
        run = state
        shared = run.factors.forward(run.root * (run.weights[run.block_of][:, None] * run.image))
        return Point(run.beta, run.weights, run.lengths(run.image) ** 2, run.like_y(shared))


class ProximalRun(PrimalFeatures):
    """Coordinates, decision values and coefficients of one fit; it is its own state."""

    def __init__(self, problem: MKLProblem, tol: float, seed: int, start: Point | None) -> None:
        super().__init__(problem)
        self.rng = np.random.default_rng(seed)
        self.shape = (problem.n, self.columns)
        self.finished = False
        self.inner = INNER * tol
        self.w, self.f = np.zeros((self.block_of.size, self.shape[1])), np.zeros(self.shape)
        if start is not None:
            self.weights, self.beta = problem.norm.scaled(start.weights), problem.repair(start.beta)
            self.image = self._adjoint(self.beta)
            self.w = self.weights[self.block_of][:, None] * self.image
            self.f = self.factors.forward(self.root * self.w)
        self.value, self.b = self.evaluate(self.w, self.f)
        #: whether the coefficients are those of the losses here; at first they are those of the start
        self.at_losses = False
        if start is None:
            self.take_coefficients()

    def _adjoint(self, a: Array) -> Array:
        self.problem.bank.count(self.problem.m * float(self.problem.n) ** 2)
        return self.root * self.factors.adjoint(a.reshape(self.shape))

    def evaluate(self, w: Array, f: Array) -> tuple[float, Array]:
        """Objective with the best intercept, and that intercept."""
        problem, values = self.problem, self.like_y(f)
        b = problem.loss.best_intercept(problem.y, values, problem.c) if problem.fit_intercept else 0.0
        charged = problem.loss.total(problem.y, values + b, problem.c)
        return problem.norm.half_square(self.lengths(w)) + charged, np.atleast_1d(np.asarray(b, dtype=float))

    def take_coefficients(self) -> None:
        """Coefficients of the losses here, in the dual set, and their image: half a pass."""
        problem, self.at_losses = self.problem, True
        gradient = problem.loss.total_gradient(problem.y, self.like_y(self.f + self.b), problem.c)
        self.beta = problem.repair(-gradient)
        self.image = self._adjoint(self.beta)
        self.weights = problem.norm.weights_of_blocks(self.lengths(self.w))

    def towards(self, working: Index, columns: Index) -> Array:
        """The way to the minimum of the second-order model in these columns."""
        problem, n, size = self.problem, self.problem.n, columns.size
        # second derivatives of the losses, the intercept left to follow: from a sample of rows
        rows_a_feature = OF_MOST if 2 * size > self.block_of.size else ROWS_A_FEATURE
        sampled = min(n, max(FEWEST, rows_a_feature * size))
        rows = np.arange(n) if sampled == n else np.sort(self.rng.choice(n, sampled, replace=False))
        problem.bank.count(problem.m * float(n) * sampled)
        # where losses are straight lines the model needs a little curvature to have a minimum at all
        c = (n / sampled) * problem.c[rows]
        bend = bend_of(problem.loss, problem.y[rows], self.like_y(self.f[rows] + self.b), c)
        charge = np.maximum(bend, STRAIGHT * float(problem.loss.smoothness or 1.0) * c)
        charge = charge if charge.ndim == 1 else charge.mean(axis=1)  # one metric for all columns of targets
        gram, scale = self.factors.gram(rows, charge, columns), self.root[columns, 0]
        beside, hessian = gram[:-1, -1] * scale, gram[:-1, :-1]
        hessian *= scale
        hessian *= scale[:, None]
        if problem.fit_intercept and gram[-1, -1] > 0:
            hessian -= np.outer(beside, beside) / gram[-1, -1]
        hessian[np.diag_indices(size)] += 1e-10 * float(np.trace(hessian)) / size + np.finfo(float).tiny
        factor = factorise(hessian, timed=True).lower
        here, image = self.w[columns], self.image[columns]
        # 1/2 |L'v - target|^2 has the model's Hessian, and at w its gradient, which is minus the image
        target = factor.T @ here + solve_triangular(factor, image, lower=True, check_finite=False)
        starts = np.concatenate([[0], np.cumsum(self.factors.ranks[working])])
        bank = Features(FeatureMatrix(np.ascontiguousarray(factor.T), starts))
        model = MKLProblem(bank, Squared(), problem.norm, self.like_y(target), C=0.5, fit_intercept=False)
        solver = BlockDescent()
        state = solver.init(model, None, self.inner, here if np.any(here) else None)
        while state.gap > self.inner and not state.finished and state.evaluations < 200:
            state = solver.step(model, state)
        return state.at.w - here
