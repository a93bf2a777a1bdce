"""Problems of the SVRG study: views of random cosines, badly scaled random ones; their optima, and L-BFGS on them."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from scipy.optimize import minimize

from kernelweave.banks import FeatureMatrix, Features
from kernelweave.losses import make_loss
from kernelweave.norms import Lp
from kernelweave.problems import MKLProblem
from kernelweave.solvers import Stop, registry, solve
from kernelweave.solvers.primal import PrimalObjective

NORMS = (1.05, 1.1, 1.5, 2.0, 4.0)
LOSSES = ("logistic", "squared_hinge", "huber_hinge", "squared")


def cosine_views(
    seed: int, n: int = 500, views: int = 10, width: int = 20
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, starts of the views, and labels.

    Rows of N(0, I_5), ``y = sign(z1 + .5 z2 z3 + .3 noise)``; view k has ``width`` random cosines of 2 + (k mod 3) of
    the coordinates, of frequency scale .3 (1 + (k mod 5)), every row of a view of length one.
    """
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, 5))
    y = np.where(Z[:, 0] + 0.5 * Z[:, 1] * Z[:, 2] + 0.3 * rng.normal(size=n) > 0, 1.0, -1.0)
    blocks = []
    for k in range(views):
        columns = rng.choice(5, size=2 + k % 3, replace=False)
        frequencies = 0.3 * (1 + k % 5) * rng.normal(size=(columns.size, width))
        block = np.cos(Z[:, columns] @ frequencies + rng.uniform(0.0, 2.0 * np.pi, size=width))
        blocks.append(block / np.linalg.norm(block, axis=1, keepdims=True))
    return np.hstack(blocks), np.arange(views + 1) * width, y


def view_problem(
    seed: int, p: float, C: float = 1.0, loss: str = "logistic", n: int = 500, views: int = 10
) -> MKLProblem:
    """The problem of ``cosine_views``; lambda = 1 / (C n), no intercept."""
    features, starts, y = cosine_views(seed, n, views)
    return MKLProblem(Features(FeatureMatrix(features, starts)), make_loss(loss), Lp(p), y, C, None, False)


def random_problem(number: int) -> tuple[MKLProblem, dict[str, object]]:
    """One of the badly scaled problems, and what it is.

    Blocks of unequal width, lengths of rows over three orders of magnitude between blocks and heavy tails within.
    """
    rng = np.random.default_rng([2017, number])
    n, m = int(rng.integers(40, 200)), int(rng.integers(2, 9))
    p, loss, C = float(NORMS[number % len(NORMS)]), str(rng.choice(LOSSES)), float(10 ** rng.uniform(-2, 1.5))
    ranks = rng.integers(1, 15, size=m)
    blocks = [
        10 ** rng.uniform(-1.5, 1.5) * rng.normal(size=(n, rank)) * np.exp(rng.normal(size=(n, 1)))
        for rank in ranks
    ]
    direction = [
        rng.normal(size=rank) / np.linalg.norm(block) for rank, block in zip(ranks, blocks, strict=True)
    ]
    signal = sum(block @ w for block, w in zip(blocks, direction, strict=True))
    noisy = signal / np.std(signal) + 0.5 * rng.normal(size=n)
    y = noisy if loss == "squared" else np.where(noisy > np.median(noisy), 1.0, -1.0)
    starts = np.concatenate([[0], np.cumsum(ranks)])
    problem = MKLProblem(
        Features(FeatureMatrix(np.hstack(blocks), starts)), make_loss(loss), Lp(p), y, C, None, False
    )
    return problem, {"n": n, "m": m, "p": p, "loss": loss, "C": C}


def optimum(problem: MKLProblem, tol: float = 1e-11) -> float:
    """Optimal value, from below, of a run to a certified gap of ``tol``."""
    return solve(problem, registry["svrg"](random_state=99), Stop(tol=tol, max_iter=20_000)).certificate.dual


def lbfgs_values(problem: MKLProblem, most: int) -> list[tuple[float, float, float]]:
    """Return passes, seconds and best objective so far of the (2, r) form at every evaluation; a gradient is a pass."""
    objective = PrimalObjective(problem)
    seen: list[tuple[float, float, float]] = []
    began = time.perf_counter()

    def recorded(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = objective(x)
        best = min(value, seen[-1][2]) if seen else value
        seen.append((len(seen) + 1.0, time.perf_counter() - began, best))
        return value, gradient

    options: dict[str, Any] = {"maxiter": most, "maxfun": most, "maxcor": 20, "ftol": 0.0, "gtol": 0.0}
    minimize(recorded, objective.first(None), jac=True, method="L-BFGS-B", options=options)
    return seen
