"""The loop that every solver runs in: judging, stopping, keeping the best, tracing, saving."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from .._numerics.deadline import Deadline, OutOfTime, time_limit
from .._numerics.threads import few_blas_threads
from ..problems import Certificate, MKLProblem, Point
from ._base import Solver
from ._checkpoint import Checkpoint
from ._progress import Progress

__all__ = ["TRACE_COLUMNS", "Solution", "Stop", "solve"]

TRACE_COLUMNS = ("iteration", "seconds", "passes", "primal", "dual", "relative_gap", "active_kernels")

#: share of ``max_seconds`` on top of it that a solver may take for its last word
FINISHING = 0.1

MESSAGES = {
    "converged": "the relative gap reached the tolerance",
    "max_iter": "the iterations allowed were used up",
    "max_seconds": "the time allowed was used up",
    "interrupted": "interrupted from the keyboard; the best point was kept",
    "stopped": "a callback asked to stop",
    "stalled": "the solver could not improve any further",
    "failed": "the solver broke down numerically; the best point before that was kept",
    "non_finite": "the solver produced values that are not finite; the best point before that was kept",
}


@dataclass(frozen=True)
class Stop:
    """When to stop: at a relative gap, after iterations, after seconds; whichever comes first."""

    tol: float = 1e-3
    max_iter: int | None = None
    max_seconds: float | None = None


@dataclass(frozen=True)
class Solution:
    """What the loop returns: the best point with its certificate, why it stopped, and how it got there."""

    point: Point
    certificate: Certificate
    status: str
    trace: list[tuple[float, ...]]
    n_iter: int
    seconds: float
    passes: float

    @property
    def converged(self) -> bool:
        """Whether the certificate reached the tolerance."""
        return self.status == "converged"

    @property
    def message(self) -> str:
        """The status in a sentence."""
        return MESSAGES[self.status]

    def __repr__(self) -> str:
        return (
            f"Solution: {self.status} after {self.n_iter} iterations, {self.passes:.1f} passes over the bank and "
            f"{self.seconds:.2f} s. {self.certificate!r}"
        )


Callback = Callable[[dict[str, float]], Any]


def solve(
    problem: Any,
    solver: Solver,
    stop: Stop | None = None,
    *,
    start: Point | None = None,
    callback: Callback | None = None,
    verbose: int = 0,
    checkpoint: str | Path | None = None,
) -> Solution:
    """Run a solver on a problem until the certificate says enough.

    Parameters
    ----------
    problem : MKLProblem
        Or any other judge: a problem with ``n``, ``passes`` and ``certificate(point)``.
    solver : Solver
    stop : Stop
    start : Point, optional
        Where to start (warm start).
    callback : callable, optional
        Called after every iteration with the row of the trace as a dictionary; a true answer stops the loop.
    verbose : int
        1 shows a progress bar, 2 prints every iteration.
    checkpoint : path, optional
        NPZ file that is rewritten as the fit goes on and resumed from where it exists and fits the problem.
    """
    stop = stop or Stop()
    with few_blas_threads(problem.n), time_limit(stop.max_seconds) as deadline:
        return _solve(problem, solver, stop, deadline, start, callback, verbose, checkpoint)


def _solve(
    problem: Any,
    solver: Solver,
    stop: Stop,
    deadline: Deadline,
    start: Point | None,
    callback: Callback | None,
    verbose: int,
    checkpoint: str | Path | None,
) -> Solution:
    solver.check_intercept(getattr(problem, "fit_intercept", False))
    max_iter = solver.default_max_iter if stop.max_iter is None else stop.max_iter
    saved = Checkpoint(checkpoint, problem) if checkpoint is not None else None
    best = _Best(solver.keeps_last)
    spent = 0.0
    passes_before = problem.passes
    if saved is not None and (resumed := saved.load()) is not None:
        start, best.trace, spent = resumed.point, resumed.trace, resumed.seconds
        best.point, best.certificate = resumed.point, problem.certificate(resumed.point)
        passes_before -= best.trace[-1][2] if best.trace else 0.0
        deadline.ends -= spent  # what went before the resumption counts
    began = time.perf_counter() - spent
    iteration = int(best.trace[-1][0]) + 1 if best.trace else 1
    last = iteration + max_iter - 1
    status = "max_iter"
    progress = Progress(verbose, stop.tol, str(solver.registered_as))
    state: Any = None
    ready = _good_enough(problem, start, stop.tol)
    try:
        while iteration <= last:
            if ready is not None and start is not None:
                point, judged = start, ready
            else:
                try:
                    state = (
                        solver.init(problem, start, stop.tol)
                        if state is None
                        else solver.step(problem, state)
                    )
                    point = solver.point(state)
                    judged = problem.certificate(point)
                except OutOfTime:
                    status = "max_seconds"
                    break
            if not (np.isfinite(judged.primal) and np.isfinite(judged.dual)):
                status = "non_finite"
                break
            seconds = time.perf_counter() - began
            best.take(point, judged, iteration, seconds, problem.passes - passes_before)
            deadline.has_point = True
            progress.show(best.row)
            if saved is not None and best.point is not None and best.certificate is not None:
                saved.save(best.point, best.certificate.dual_point, best.trace, seconds)
            if best.gap <= stop.tol:
                status = "converged"
                break
            if callback is not None and callback(best.row):
                status = "stopped"
                break
            if deadline.left <= 0.0:
                status = "max_seconds"
                break
            if getattr(state, "finished", False):
                status = "stalled"
                break
            iteration += 1
        if best.point is not None and state is not None and status != "non_finite":
            deadline.extend(FINISHING * (stop.max_seconds or 0.0))
            better = solver.finish(problem, best.point)
            if better is not None:
                best.improve(better, problem.certificate(better))
                if best.gap <= stop.tol:
                    status = "converged"
                elif status == "converged":  # blocks had the gap, the coefficients that predict have not
                    status = "stalled"
    except KeyboardInterrupt:
        if best.point is None:
            raise
        status = "interrupted"
    except (np.linalg.LinAlgError, FloatingPointError):
        if best.point is None:
            raise
        status = "failed"
    finally:
        progress.close()
        if saved is not None and best.point is not None and best.certificate is not None:
            seconds = time.perf_counter() - began
            saved.save(best.point, best.certificate.dual_point, best.trace, seconds, force=True)
    best.share_coefficients(problem)
    if best.point is None or best.certificate is None:
        raise FloatingPointError(
            f"solver {solver.registered_as!r} produced values that are not finite at its first point; check the scale "
            "of the kernels and of C"
        )
    return Solution(
        best.point, best.certificate, status, best.trace, len(best.trace),
        time.perf_counter() - began, problem.passes - passes_before,
    )  # fmt: skip


def _good_enough(problem: MKLProblem, start: Point | None, tol: float) -> Certificate | None:
    """Certificate of a start that is a solution already, where all is known that it takes: no pass is spent on it."""
    if start is None or start.quad is None or start.decision is None or start.blocks is not None:
        return None
    judged = problem.certificate(start)
    return judged if judged.relative_gap <= tol else None


class _Best:
    """Best primal and best dual so far, each from its own point, and the table of how they came."""

    def __init__(self, keeps_last: bool = False) -> None:
        self.keeps_last = keeps_last
        self.point: Point | None = None
        self.certificate: Certificate | None = None
        self.trace: list[tuple[float, ...]] = []

    @property
    def gap(self) -> float:
        return self.certificate.relative_gap if self.certificate is not None else np.inf

    @property
    def row(self) -> dict[str, float]:
        return dict(zip(TRACE_COLUMNS, self.trace[-1], strict=True))

    def improve(self, point: Point, judged: Certificate) -> None:
        """Take a last point without a row of its own."""
        assert self.certificate is not None
        # coefficients shared by all kernels are what predicts: blocks with their own give way to them
        wanted = self.point is not None and self.point.blocks is not None and point.blocks is None
        if judged.primal < self.certificate.primal or wanted or self.keeps_last:
            self.point, self.certificate = point, judged.with_dual_of(self.certificate)
        else:
            self.certificate = self.certificate.with_dual_of(judged)

    def share_coefficients(self, problem: MKLProblem) -> None:
        """Exchange blocks with coefficients of their own, where a fit was cut short, for what can predict."""
        if self.point is not None and self.certificate is not None and self.point.blocks is not None:
            shared = without_caches(self.point)
            self.point, self.certificate = (
                shared,
                problem.certificate(shared).with_dual_of(self.certificate),
            )

    def take(self, point: Point, judged: Certificate, iteration: int, seconds: float, passes: float) -> None:
        if self.certificate is None:
            self.point, self.certificate = point, judged
        else:
            self.improve(point, judged)
        active = int(np.count_nonzero(point.weights))
        now = self.certificate
        assert now is not None
        self.trace.append((iteration, seconds, passes, now.primal, now.dual, now.relative_gap, active))


def without_caches(point: Point) -> Point:
    """Return the bare point, so that a certificate of it is computed from the bank alone."""
    return replace(point, quad=None, decision=None, dual_beta=None, dual_quad=None, blocks=None)
