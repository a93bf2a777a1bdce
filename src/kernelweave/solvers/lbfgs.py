"""L-BFGS on the primal in explicit features: the (2, r) form, for smooth losses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import minimize

from .._numerics.deadline import out_of_time
from ..problems import MKLProblem, Point
from ._base import Solver
from ._preconditioner import SampledHessian, sample_rows

Array = NDArray[np.float64]

__all__ = ["LBFGS", "PrimalObjective"]


@dataclass
class _State:
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

    def init(self, problem: MKLProblem, start: Point | None, tol: float) -> _State:
        objective = PrimalObjective(problem)
        return _State(objective, objective.first(start), self.chunk, tol)

    def step(self, problem: MKLProblem, state: _State) -> _State:
        most, objective = state.chunk, state.objective
        options = {"maxiter": most, "maxcor": self.memory, "ftol": 0.0, "gtol": 0.0, "maxfun": 10 * most}
        round_ = objective.coordinates(state.x) if self.precondition else None
        if round_ is None:
            result = minimize(
                objective, state.x, jac=True, method="L-BFGS-B", callback=_stop_in_time, options=options
            )
            x = result.x
        else:
            shape = (-1, objective.columns)

            def rounded(v: Array) -> tuple[float, Array]:
                value, g = objective(round_.back(v.reshape(shape)).ravel())
                return value, round_.gradient(g.reshape(shape)).ravel()

            # so little gained is time for a certificate, and for coordinates that suit the new place
            options["ftol"] = 1e-4 * state.tol
            v = round_.into(state.x.reshape(shape)).ravel()
            result = minimize(
                rounded, v, jac=True, method="L-BFGS-B", callback=_stop_in_time, options=options
            )
            x = round_.back(result.x.reshape(shape)).ravel()
        # where rounding ended the line search, a start without memory may still find a way down
        idle = 0 if result.fun < state.value else state.idle + 1
        finished = result.nit == 0 or idle == 3
        return _State(objective, x, most + (most + 1) // 2, state.tol, float(result.fun), idle, finished)

    def point(self, state: _State) -> Point:
        return state.objective.point(state.x)


def _stop_in_time(x: Array) -> None:
    """End a run of L-BFGS, with its last point, where no time is left."""
    if out_of_time():
        raise StopIteration


class PrimalObjective:
    """Value and gradient in ``x = (w, b)``; a full gradient counts as one pass."""

    def __init__(self, problem: MKLProblem) -> None:
        self.problem = problem
        self.factors = problem.bank.factors()
        self.starts = self.factors.starts
        self.block_of = np.repeat(np.arange(problem.m), self.factors.ranks)
        # a kernel that is given no weight may have no block: without features it stays at zero
        usable = problem.norm.start(problem.m) > 0
        self.root_scale = (np.sqrt(self.factors.scale) * usable)[self.block_of]
        self.columns = 1 if problem.y.ndim == 1 else problem.y.shape[1]
        self.width = int(self.starts[-1])

    def first(self, start: Point | None) -> Array:
        x = np.zeros((self.width + 1) * self.columns)
        if start is not None:
            coordinates = self._adjoint(start.beta).reshape(self.width, self.columns)
            x[: self.width * self.columns] = (coordinates * start.weights[self.block_of][:, None]).ravel()
        return x

    def coordinates(self, x: Array) -> SampledHessian | None:
        """Coordinates that suit the objective at x, or None where they would cost too much."""
        problem = self.problem
        if not hasattr(self, "_sample"):
            rows = sample_rows(problem.n, self.width)
            self._sample = None if rows is None else (rows, self.factors.features_of(rows))
            if rows is not None:
                problem.bank.count(problem.m * float(problem.n) * rows.size)
        if self._sample is None:
            return None
        rows, features = self._sample
        w, b = self._unpack(x)
        t = self._blocks(w)
        weights = problem.norm.weights_of_blocks(t) if np.any(t > 0) else problem.norm.start(problem.m)
        # a kernel without weight now may get some: it is not nailed down
        weights = np.maximum(weights, 1e-3 * float(np.max(weights)))
        scaled = features.multiply(self.root_scale) if sp.issparse(features) else features * self.root_scale
        f = np.asarray(scaled @ w) + b
        f = f[:, 0] if problem.y.ndim == 1 else f
        share = problem.n / rows.size
        return SampledHessian(
            scaled,
            problem.y[rows],
            f,
            share * problem.c[rows],
            problem.loss,
            1.0 / weights[self.block_of],
            problem.fit_intercept,
        )

    def _unpack(self, x: Array) -> tuple[Array, Array]:
        w = x[: self.width * self.columns].reshape(self.width, self.columns)
        return w, x[self.width * self.columns :]

    def _forward(self, w: Array) -> Array:
        f = self.factors.forward(self.root_scale[:, None] * w)
        return f[:, 0] if self.problem.y.ndim == 1 else f

    def _adjoint(self, g: Array) -> Array:
        return self.root_scale[:, None] * self.factors.adjoint(g.reshape(-1, self.columns))

    def _blocks(self, w: Array) -> Array:
        squares = np.append(np.sum(w**2, axis=1), 0.0)
        return np.sqrt(np.add.reduceat(squares, self.starts[:-1]) * (self.factors.ranks > 0))

    def __call__(self, x: Array) -> tuple[float, Array]:
        problem = self.problem
        problem.bank.count(problem.m * float(problem.n) ** 2)
        w, b = self._unpack(x)
        t = self._blocks(w)
        root = self.root_scale[:, None]
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
        f = self._forward(w)
        b: Any = 0.0
        if problem.fit_intercept:
            f += (
                shift[0] if f.ndim == 1 else shift
            )  # near the best one already, which is then found in few steps
            b = problem.loss.best_intercept(problem.y, f, problem.c)
        beta = problem.repair(-problem.c * problem.loss.gradient(problem.y, f + b))
        return Point(beta, problem.norm.weights_of_blocks(self._blocks(w)))
