"""Solvers of the OBSCURE study, epoch by epoch: objective and test error against seconds.

Seconds are processor time, which other work on the machine does not lengthen; everything here runs in one thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from kernelweave.banks import build_bank
from kernelweave.norms import Block
from kernelweave.problems import MKLProblem, Point
from kernelweave.solvers import Stop, solve
from kernelweave.solvers.online import DualAscent, Obscure

from ..study import Row
from .data import problem_of


def looks_until(epochs: int) -> list[int]:
    """Epochs to look at: every one at first, then ever fewer.

    >>> looks_until(30)
    [1, 2, 3, 4, 5, 7, 10, 14, 20, 28, 30]
    """
    return sorted(
        {int(x) for x in [*range(1, 6), *(5 * 2 ** (0.5 * k) for k in range(30))] if x <= epochs} | {epochs}
    )


def warm_up(solver: Any, problem: MKLProblem) -> None:
    """Compile what the solver needs, on a small problem of the same kind, so that no compiler is timed."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(3, 20, 5))
    bank = build_bank(None, Z @ Z.transpose(0, 2, 1))
    small = problem_of(bank, np.arange(20) % 3, problem.norm, 1.0)
    state = solver.init(small, None, 1e-3)
    for _ in range(12):
        state = solver.step(small, state)


def error_on(cross: np.ndarray, y_test: np.ndarray, classes: np.ndarray) -> Callable[[Point], float]:
    """Test error of a point, from the kernels ``(m, n_test, n)`` between test and training samples."""

    def error(point: Point) -> float:
        values = np.tensordot(point.weights, cross @ point.beta.astype(cross.dtype), axes=1)
        return float(np.mean(classes[np.argmax(values, axis=1)] != y_test))

    return error


class Optimum:
    """The optimum in the paper's units (the objective over C n), and the norm of the solution."""

    def __init__(self, problem: MKLProblem, tol: float = 1e-4) -> None:
        solution = solve(problem, DualAscent(), Stop(tol, 5000, 120.0))
        self.unit = float(np.sum(problem.c[:, 0]))
        self.objective = solution.certificate.primal / self.unit
        self.bound = solution.certificate.dual / self.unit
        self.point = solution.point
        quad = problem.bank.quad(solution.point.beta)
        self.norm = block_norm(solution.point.weights * np.sqrt(np.maximum(quad, 0.0)), problem.norm)


def block_norm(t: np.ndarray, norm: Any) -> float:
    """``|w|_(2,r)`` from the norms of the blocks."""
    return float(np.sqrt(2.0 * norm.half_square(t)))


def optimum(bank: Any, y: np.ndarray, p: float, C: float, tol: float = 1e-4) -> Optimum:
    """Solve (9) of [OJC10] by exact dual ascent."""
    return Optimum(problem_of(bank, y, Block(p), C), tol)


def walk(
    problem: MKLProblem,
    solver: Any,
    epochs: int,
    error: Callable[[Point], float],
    most_seconds: float = 60.0,
) -> list[Row]:
    """Run epochs and look at some of them; the seconds are the solver's alone, ``setup`` what it took to begin."""
    warm_up(solver, problem)
    unit = float(np.sum(problem.c[:, 0]))
    looks, rows = set(looks_until(epochs)), []
    began = time.process_time()
    state = solver.init(problem, None, 1e-3)
    seconds = setup = time.process_time() - began
    best_dual = -np.inf
    for epoch in range(1, epochs + 1):
        began = time.process_time()
        state = solver.step(problem, state)
        seconds += time.process_time() - began
        done = bool(getattr(state, "finished", False)) or seconds > most_seconds
        if epoch not in looks and not done:
            continue
        point = solver.point(state)
        certificate = problem.certificate(point)
        best_dual = max(best_dual, certificate.dual)
        online = isinstance(solver, Obscure) and state.radius is None
        rows.append(
            {
                "epoch": epoch,
                "seconds": seconds,
                "objective": certificate.primal / unit,
                "bound": best_dual / unit,
                "error": error(point),
                "stage": "online" if online else "batch",
                "setup": setup,
            }
        )
        if done:
            break
    return rows
