"""Rivals of SVRG on the same objective, as objective values against passes: L-BFGS, and plain SGD (Pegasos's step)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize

from ..problems import MKLProblem
from ..solvers.lbfgs import _Objective
from ..solvers.svrg import _Run

__all__ = ["lbfgs_values", "sgd_values"]


def lbfgs_values(problem: MKLProblem, most: int) -> list[tuple[float, float]]:
    """Objective of the (2, r) form at every evaluation, the best so far; a gradient is a pass."""
    objective = _Objective(problem)
    seen: list[float] = []

    def recorded(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = objective(x)
        seen.append(min(value, seen[-1]) if seen else value)
        return value, gradient

    options: dict[str, Any] = {"maxiter": most, "maxfun": most, "maxcor": 20, "ftol": 0.0, "gtol": 0.0}
    minimize(recorded, objective.first(None), jac=True, method="L-BFGS-B", options=options)
    return [(float(k + 1), value) for k, value in enumerate(seen)]


def sgd_values(problem: MKLProblem, epochs: int, seed: int) -> list[tuple[float, float]]:
    """Plain stochastic gradients in the geometry of fixed weights, steps ``1 / (1 + L + t)``, weights each epoch.

    The step on sample i is SVRG's without the correction.  With ``lambda = 1 / S`` it is Pegasos's ``1 / (lambda t)``
    for a smooth loss, started where its step is stable.
    """
    from .._numerics.svrg import dense_steps

    run = _Run(problem, 1.0, seed)
    loss = run.derivative
    Z = np.ascontiguousarray(run.factors.features)  # type: ignore[attr-defined]
    n = problem.n
    a, u = np.zeros((n, 1)), np.zeros((run.block_of.size, 1))
    d = problem.norm.start(problem.m)
    zero, nothing = np.zeros((n, 1)), np.zeros_like(u)
    share = np.full(n, 1.0 / n)
    values: list[tuple[float, float]] = []
    taken = 0
    for epoch in range(epochs):
        e = run.mixing(d)
        L = float(problem.loss.smoothness or 1.0) * n * float(np.max(problem.c * run.factors.lengths(e)))
        order = run.rng.permutation(n)
        for part in np.array_split(order, 10):  # the step is constant in a tenth of an epoch
            last, eta = np.zeros(n, dtype=np.int64), 1.0 / (1.0 + L + taken)
            powers = np.ones(part.size + 1)
            dense_steps(
                Z, part, np.arange(n), u, e, nothing, eta, share, a, last, powers, 0, zero, run.c, loss.kind,
                loss.target, loss.width, loss.low, loss.high, np.zeros(1), 0.0, np.zeros(1),
            )  # fmt: skip
            taken += part.size
        d = problem.norm.weights_of_blocks(d * np.sqrt(run.quad(u)))
        f = run.factors.forward(run.mixing(d) * u[:, 0])
        blocks = d * np.sqrt(run.quad(u))
        value = problem.norm.half_square(blocks) + problem.loss.total(problem.y, f, problem.c)
        values.append((epoch + 1.0, min(value, values[-1][1]) if values else value))
    return values
