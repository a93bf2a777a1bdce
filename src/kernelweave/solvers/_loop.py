"""The loop that every solver runs in: judging, stopping, keeping the best, tracing, saving."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from .._numerics.deadline import Deadline, OutOfTime, time_limit
from .._numerics.interrupts import one_interrupt
from .._numerics.threads import few_blas_threads
from ..exceptions import NotFiniteError
from ..problems import Certificate, MKLProblem, Point
from ._base import Solver
from ._checkpoint import Checkpoint
from ._progress import Progress
from ._status import MESSAGES, final_status

__all__ = ["TRACE_COLUMNS", "Solution", "Stop", "solve"]

TRACE_COLUMNS = ("iteration", "seconds", "passes", "primal", "dual", "relative_gap", "active_kernels")

#: share of the gap that an iteration has to close, not to be idle
PROGRESS = 1e-2
#: what to say where there is no point at all
BROKEN = (
    "solver {!r} produced values that are not finite at its first point: scale the features and the targets "
    "(StandardScaler), use normalize='trace', or choose a C nearer to 1"
)
#: share of ``max_seconds`` that a solver may take on top of it for its last word, and that is kept of it, at most, for
#: the certificate of what a fit returns
FINISHING = 0.1


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
    with one_interrupt(), few_blas_threads(problem.n), time_limit(stop.max_seconds) as deadline:
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
    fit = deadline.outermost
    fit.winding_up = False
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
                    status = "interrupted" if deadline.interrupted else "max_seconds"
                    if best.point is None:  # in its preparations: there is only where it would have begun
                        point = start or _nothing(problem)
                        seconds, passes = time.perf_counter() - began, problem.passes - passes_before
                        best.take(point, problem.certificate(point), iteration, seconds, passes)
                    break
            if not (np.isfinite(judged.primal) and np.isfinite(judged.dual)):
                status = "non_finite"
                break
            seconds = time.perf_counter() - began
            best.take(point, judged, iteration, seconds, problem.passes - passes_before)
            deadline.has_point = True
            if stop.max_seconds is not None and deadline.in_whole_fit:
                deadline.reserved = min(best.two_passes, FINISHING * stop.max_seconds)
            progress.show(best.row)
            if saved is not None and best.point is not None and best.certificate is not None:
                saved.save(best.point, best.certificate.dual_point, best.trace, seconds)
            if abs(best.gap) <= stop.tol:  # bounds that cross by more are rounding, and prove nothing yet
                status = "converged"
                break
            if callback is not None and callback(best.row):
                status = "stopped"
                break
            if deadline.left <= 0.0:
                status = "interrupted" if deadline.interrupted else "max_seconds"
                break
            if getattr(state, "finished", False) or best.idle >= (solver.most_idle or np.inf):
                status = "stalled"
                break
            iteration += 1
        if best.point is not None and state is not None and status != "non_finite":
            deadline.extend(FINISHING * (stop.max_seconds or 0.0))
            better = solver.finish(problem, best.point)
            if better is not None:
                best.improve(better, problem.certificate(better))
        fit.winding_up = True
    except KeyboardInterrupt:
        fit.interrupt()  # a callback may have raised it
        if best.point is None:
            raise
        status = "interrupted"
    except (np.linalg.LinAlgError, FloatingPointError) as error:
        if best.point is None:
            raise NotFiniteError(f"{BROKEN.format(solver.registered_as)} ({error})") from error
        status = "failed"
    finally:
        fit.winding_up = True
        progress.close()
        if saved is not None and best.point is not None and best.certificate is not None:
            seconds = time.perf_counter() - began
            saved.save(best.point, best.certificate.dual_point, best.trace, seconds, force=True)
    best.share_coefficients(problem)
    if best.point is None or best.certificate is None:
        raise NotFiniteError(BROKEN.format(solver.registered_as))
    # blocks may have had the gap that the coefficients that predict have not
    status = final_status(status, best.gap, stop.tol)
    # what proves the bound goes with the point, so that it can be proved again
    point = replace(best.point, cuts=best.certificate.cuts, cuts_bound=None)
    return Solution(
        point, best.certificate, status, best.trace, len(best.trace),
        time.perf_counter() - began, problem.passes - passes_before,
    )  # fmt: skip


def _nothing(problem: MKLProblem) -> Point:
    """Return the function that is zero."""
    return Point(np.zeros(problem.y.shape), problem.norm.start(problem.m))


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
        #: iterations since the bounds came noticeably closer
        self.idle = 0

    @property
    def gap(self) -> float:
        return self.certificate.relative_gap if self.certificate is not None else np.inf

    @property
    def two_passes(self) -> float:
        """Seconds of two passes over the bank, or less: by the iteration that took the least for its passes."""
        steps = np.diff(np.array(self.trace)[:, 1:3], axis=0, prepend=0.0)
        read = steps[:, 1] > 0
        return 2.0 * float(np.min(steps[read, 0] / steps[read, 1])) if np.any(read) else 0.0

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
        left = self.trace[-1][3] - self.trace[-1][4] if self.trace else np.inf
        # bounds that cross are rounding, and closer ones no progress
        self.idle = 0 if 0.0 <= now.gap < (1.0 - PROGRESS) * left else self.idle + 1
        self.trace.append((iteration, seconds, passes, now.primal, now.dual, now.relative_gap, active))


def without_caches(point: Point) -> Point:
    """Return the bare point, so that a certificate of it is computed from the bank alone."""
    return replace(
        point, quad=None, decision=None, dual_beta=None, dual_quad=None, blocks=None, cuts_bound=None
    )
