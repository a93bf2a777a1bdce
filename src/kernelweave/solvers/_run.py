"""One run of a solver: its clock, its checkpoint, the best point so far, and the reasons to stop."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .._numerics.deadline import Deadline
from ..problems import Certificate, MKLProblem, Point
from ._base import Solver
from ._best import Best
from ._checkpoint import Checkpoint

__all__ = ["Callback", "Run", "Stop"]

#: share of ``max_seconds`` that a solver may take on top of it for its last word, and that is kept of it, at most, for
#: the certificate of what a fit returns
FINISHING = 0.1
#: inner problems in a row that could not be solved, and iterations without progress, after which no digits are left
UNSOLVED, IDLE = 4, 2

Callback = Callable[[dict[str, float]], Any]


@dataclass(frozen=True)
class Stop:
    """When to stop: at a relative gap, after iterations, after seconds; whichever comes first."""

    tol: float = 1e-3
    max_iter: int | None = None
    max_seconds: float | None = None


class Run:
    """What the loop keeps beside the solver's own state.

    Attributes
    ----------
    best : Best
        Best point so far, with its certificate and the trace.
    state
        What the solver returned last; None before its first step.
    iterations : range
        Numbers of the iterations that may be made; they go on from those of a checkpoint.
    """

    def __init__(
        self,
        problem: MKLProblem,
        solver: Solver,
        stop: Stop,
        deadline: Deadline,
        start: Point | None = None,
        checkpoint: str | Path | None = None,
    ) -> None:
        solver.check_intercept(getattr(problem, "fit_intercept", False))
        self.problem, self.solver, self.stop, self.deadline = problem, solver, stop, deadline
        self.start = start
        self.checkpoint = Checkpoint(checkpoint, problem) if checkpoint is not None else None
        self.best = Best(solver.keeps_last)
        self.state: Any = None
        self._passes_before = problem.passes
        spent = self._resume()
        self._began = time.perf_counter() - spent
        self._ended: float | None = None
        first = int(self.best.trace[-1][0]) + 1 if self.best.trace else 1
        max_iter = solver.default_max_iter if stop.max_iter is None else stop.max_iter
        self.iterations = range(first, first + max_iter)
        self._solved = self._solved_already()

    # ---- the clock -------------------------------------------------------------------------------------------

    @property
    def seconds(self) -> float:
        """Seconds of the run so far, those before a resumption included."""
        return (time.perf_counter() if self._ended is None else self._ended) - self._began

    @property
    def passes(self) -> float:
        """Passes over the bank so far, likewise."""
        return self.problem.passes - self._passes_before

    # ---- the checkpoint --------------------------------------------------------------------------------------

    def _resume(self) -> float:
        """Go on from the checkpoint where there is one, and return the seconds that had been spent."""
        saved = self.checkpoint.load() if self.checkpoint is not None else None
        if saved is None or self.checkpoint is None:
            return 0.0
        try:
            with np.errstate(all="ignore"):
                certificate = self.problem.certificate(saved.point)
        except ArithmeticError as error:
            raise self.checkpoint.damaged(f"its point cannot be evaluated: {error}") from error
        if not certificate.finite:
            raise self.checkpoint.damaged("the objective or the bound of its point is not finite")
        self.start = self.best.point = saved.point
        self.best.certificate, self.best.trace = certificate, saved.trace
        self._passes_before -= saved.trace[-1][2] if saved.trace else 0.0
        self.deadline.ends -= saved.seconds  # what went before the resumption counts
        return saved.seconds

    def end(self) -> None:
        """Stop the clock and save: what a file says of the time is what the solution says of it."""
        self._ended = time.perf_counter()
        self.save(force=True)

    def save(self, force: bool = False) -> None:
        """Write the best point to the checkpoint, if there are both; not more often than it allows unless forced."""
        point, certificate = self.best.point, self.best.certificate
        if self.checkpoint is not None and point is not None and certificate is not None:
            self.checkpoint.save(point, certificate.dual_point, self.best.trace, self.seconds, force=force)

    # ---- iterations ------------------------------------------------------------------------------------------

    def _solved_already(self) -> Certificate | None:
        """Certificate of a start that is a solution; only where all it takes is known, so that no pass is spent."""
        start = self.start
        if start is None or start.quad is None or start.decision is None or start.blocks is not None:
            return None
        certificate = self.problem.certificate(start)
        return certificate if certificate.relative_gap <= self.stop.tol else None

    def advance(self) -> tuple[Point, Certificate]:
        """Let the solver take its next step, and return its point with the problem's certificate."""
        if self._solved is not None and self.start is not None:
            return self.start, self._solved
        if self.state is None:
            self.state = self.solver.init(self.problem, self.start, self.stop.tol)
        else:
            self.state = self.solver.step(self.problem, self.state)
        point = self.solver.point(self.state)
        return point, self.problem.certificate(point)

    def take(self, point: Point, certificate: Certificate, iteration: int) -> None:
        """Keep what an iteration brought, and set time aside for certifying what the fit returns."""
        self.best.take(point, certificate, iteration, self.seconds, self.passes)
        self.deadline.has_point = True
        if self.stop.max_seconds is not None and self.deadline.in_whole_fit:
            self.deadline.reserved = min(self.best.two_passes, FINISHING * self.stop.max_seconds)

    def take_start(self, iteration: int) -> None:
        """Keep the start, or else the function that is zero, where no time was left for a first point."""
        if self.best.point is None:
            problem = self.problem
            point = self.start or Point(np.zeros(problem.y.shape), problem.norm.start(problem.m))
            seconds, passes = self.seconds, self.passes
            certificate = problem.certificate(point)
            if certificate.finite:
                self.best.take(point, certificate, iteration, seconds, passes)

    def finish(self) -> None:
        """Let the solver improve the best point once more, in a little time of its own."""
        if self.best.point is None or self.state is None:
            return
        self.deadline.extend(FINISHING * (self.stop.max_seconds or 0.0))
        better = self.solver.finish(self.problem, self.best.point)
        if better is not None:
            self.best.improve(better, self.problem.certificate(better))

    # ---- stopping --------------------------------------------------------------------------------------------

    @property
    def out_of_time(self) -> str:
        """Why no time is left."""
        return "interrupted" if self.deadline.interrupted else "max_seconds"

    def reason_to_stop(self, callback: Callback | None) -> str | None:
        """Return why to stop after the iteration just taken, as a key of ``MESSAGES``; None where to go on."""
        if (
            abs(self.best.gap) <= self.stop.tol
        ):  # bounds that cross by more are rounding, and prove nothing yet
            return "converged"
        if callback is not None and callback(self.best.row):
            return "stopped"
        if self.deadline.left <= 0.0:
            return self.out_of_time
        if getattr(self.state, "finished", False) or self.best.idle >= (self.solver.most_idle or np.inf):
            return "stalled"
        if getattr(self.problem, "unsolved", 0) >= UNSOLVED and self.best.idle >= IDLE:
            return "stalled"
        return None
