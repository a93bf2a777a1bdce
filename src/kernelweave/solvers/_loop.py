"""The loop that every solver runs in: its clock, its progress, the best point so far, and the reasons to stop."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from .._numerics.resources import one_blas_thread
from .._numerics.stopping import Deadline, OutOfTime, one_interrupt, time_limit
from ..exceptions import NotFiniteError
from ..problems import Certificate, MKLProblem, Point
from ._base import Solver
from ._checkpoint import Best, Checkpoint

MESSAGES = {
    "converged": "the relative gap reached the tolerance",
    "stationary": "no step of the weights promises a gain worth having, and the fit with them reached the tolerance",
    "max_steps": "the steps allowed were used up before the weights were stationary",
    "max_iter": "the iterations allowed were used up",
    "max_seconds": "the time allowed was used up",
    "interrupted": "interrupted from the keyboard; the best point was kept",
    "stopped": "a callback asked to stop",
    "stalled": "the solver could not improve any further",
    "failed": "the solver broke down numerically; the best point before that was kept",
    "non_finite": "the solver produced values that are not finite; the best point before that was kept",
    "imprecise": "the solver's own figures reached the tolerance, the certificate recomputed from the kernels did not",
}


def final_status(status: str, gap: float, tol: float, chosen: bool = False) -> str:
    """Return what may be said of a point with this gap: ``converged`` exactly where it is within the tolerance.

    Parameters
    ----------
    status : str
        Why the solver stopped.
    gap : float
        Relative gap of the certificate; NaN is no gap at all.
    tol : float
    chosen : bool, default=False
        Whether the weights were chosen by a criterion that is not convex: then the gap is that of the fit with these
        weights, which says nothing of the choice, and the status of the choice is all that may be said of it.
    """
    if gap <= tol:
        return status if chosen else "converged"
    return "imprecise" if status in ("converged", "stationary", "constant", "max_steps") else status


class Progress:
    """Shows how far the relative gap has come on its way to the tolerance.

    Parameters
    ----------
    verbose : int
        0 nothing, 1 a bar, 2 one line per iteration.
    """

    def __init__(self, verbose: int, tol: float, label: str) -> None:
        self.verbose = int(verbose)
        self.goal = max(-math.log10(tol), 1e-9) if 0 < tol < 1 else 1.0
        self.label = label
        self.bar: Any = None

    def show(self, row: dict[str, float]) -> None:
        """Take one row of the trace."""
        if self.verbose == 1:
            if self.bar is None:
                from tqdm.auto import tqdm

                shape = "{desc} |{bar}| {unit} [{elapsed}]"
                self.bar = tqdm(total=self.goal, desc=self.label, bar_format=shape, leave=True)
            gap = max(row["relative_gap"], 1e-16)
            self.bar.n = min(self.goal, max(0.0, -math.log10(gap)))
            # in the place of the unit, because tqdm puts a comma before its own postfix
            self.bar.unit = f"gap {gap:.1e}, {row['passes']:.1f} passes, {row['active_kernels']:.0f} kernels"
            self.bar.refresh()
        elif self.verbose >= 2:
            print(
                f"{self.label} {row['iteration']:5.0f}  {row['seconds']:8.3f} s  {row['passes']:8.2f} passes  "
                f"primal {row['primal']:.8g}  dual {row['dual']:.8g}  gap {row['relative_gap']:.2e}  "
                f"{row['active_kernels']:.0f} kernels"
            )

    def close(self) -> None:
        """Leave the bar as it is."""
        if self.bar is not None:
            self.bar.close()


# ------------------------------------------------------------------------------------------------------------
# One run of a solver: its clock, its checkpoint, the best point so far, and the reasons to stop.


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
    """State of the loop beside the solver's own.

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


#: what to say where there is no point at all
BROKEN = (
    "solver {!r} produced values that are not finite at its first point: scale the features and the targets "
    "(StandardScaler), use normalize='trace', or choose a C nearer to 1"
)


@dataclass(frozen=True)
class Solution:
    """Result of the loop: the best point with its certificate, why it stopped, and how it got there."""

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
    with one_interrupt(), one_blas_thread(problem.n), time_limit(stop.max_seconds) as deadline:
        run = Run(problem, solver, stop, deadline, start, checkpoint)
        status = _complete(run, callback, Progress(verbose, stop.tol, str(solver.registered_as)))
        return _solution(run, status)


def _complete(run: Run, callback: Callback | None, progress: Progress) -> str:
    """Iterate and finish, whatever interrupts or breaks down; return why it ended, as a key of ``MESSAGES``."""
    fit = run.deadline.outermost
    fit.winding_up = False
    try:
        status = _iterate(run, callback, progress)
        if status != "non_finite":
            run.finish()
        fit.winding_up = True
    except KeyboardInterrupt:
        fit.interrupt()  # a callback may have raised it
        if run.best.point is None:
            raise
        status = "interrupted"
    except (np.linalg.LinAlgError, FloatingPointError) as error:
        if run.best.point is None:
            raise NotFiniteError(f"{BROKEN.format(run.solver.registered_as)} ({error})") from error
        status = "failed"
    finally:
        fit.winding_up = True
        progress.close()
        run.end()
    return status


def _iterate(run: Run, callback: Callback | None, progress: Progress) -> str:
    """Let the solver take steps until there is a reason to stop, and return that reason."""
    for iteration in run.iterations:
        try:
            point, certificate = run.advance()
        except OutOfTime:
            run.take_start(iteration)
            return run.out_of_time
        if not certificate.finite:
            return "non_finite"
        run.take(point, certificate, iteration)
        progress.show(run.best.row)
        run.save()
        reason = run.reason_to_stop(callback)
        if reason is not None:
            return reason
    return "max_iter"


def _solution(run: Run, status: str) -> Solution:
    """Return the best point of a run with its certificate."""
    best = run.best
    best.share_coefficients(run.problem)
    best.no_worse_than_zero(run.problem)
    if best.point is None or best.certificate is None:
        raise NotFiniteError(BROKEN.format(run.solver.registered_as))
    # blocks may have had the gap that the coefficients that predict have not
    status = final_status(status, best.gap, run.stop.tol)
    point = best.point
    if (
        best.certificate.cuts is not None
    ):  # what proves the bound goes with the point, so that it can be proved again
        point = replace(point, cuts=best.certificate.cuts, cuts_bound=None)
    return Solution(point, best.certificate, status, best.trace, len(best.trace), run.seconds, run.passes)
