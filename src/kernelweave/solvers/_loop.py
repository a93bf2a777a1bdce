"""The loop that every solver runs in: its clock, its progress, the best point so far, and the reasons to stop."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from .._numerics.resources import one_blas_thread
from .._numerics.stopping import Deadline, OutOfTime, one_interrupt, time_limit
from .._typing import Array
from ..banks import Bank
from ..exceptions import NotFiniteError
from ..losses import Loss
from ..norms import Norm
from ..problems import Certificate, MKLProblem, Point
from ._base import Solver
from ._checkpoint import TRACE_COLUMNS, Checkpoint

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
    """Return what may be said of a point with this relative gap: ``converged`` exactly where it is within ``tol``.

    ``status`` is why the solver stopped; a gap of NaN is none.  Where weights were ``chosen`` by a criterion that is
    not convex, the gap is that of the fit with these weights and says nothing of the choice: only its status does.
    """
    if gap <= tol:
        return status if chosen else "converged"
    return "imprecise" if status in ("converged", "stationary", "constant", "max_steps") else status


#: share of the objective by which the function that is zero has to be better
NOTICEABLE = 1e-6
#: share of the gap that an iteration has to close, not to be idle
PROGRESS = 1e-2
#: share of ``max_seconds`` that a solver may take on top of it for its last word, and that is kept of it, at most, for
#: the certificate of what a fit returns
FINISHING = 0.1
#: inner problems in a row that could not be solved, and iterations without progress, after which no digits are left
UNSOLVED, IDLE = 4, 2

Callback = Callable[[dict[str, float]], Any]


def without_caches(point: Point) -> Point:
    """Return the bare point, so that a certificate of it is computed from the bank alone."""
    return replace(
        point, quad=None, decision=None, dual_beta=None, dual_quad=None, blocks=None, cuts_bound=None
    )


@dataclass(eq=False)
class Best:
    """Best primal and best dual so far, each from its own point, and a table with one row per iteration."""

    keeps_last: bool = False
    point: Point | None = None
    certificate: Certificate | None = None
    trace: list[tuple[float, ...]] = field(default_factory=list)
    #: iterations since the bounds came noticeably closer
    idle: int = 0

    @property
    def row(self) -> dict[str, float]:
        """Last row of the table, by the names of its columns."""
        return dict(zip(TRACE_COLUMNS, self.trace[-1], strict=True))

    def improve(self, point: Point, certificate: Certificate) -> None:
        """Take a point without a row of its own."""
        if self.certificate is None:
            self.point, self.certificate = point, certificate
            return
        # coefficients shared by all kernels are what predicts: blocks with their own give way to them
        wanted = self.point is not None and self.point.blocks is not None and point.blocks is None
        if certificate.primal < self.certificate.primal or wanted or self.keeps_last:
            self.point, self.certificate = point, certificate.with_dual_of(self.certificate)
        else:
            self.certificate = self.certificate.with_dual_of(certificate)

    def take(
        self, point: Point, certificate: Certificate, iteration: int, seconds: float, passes: float
    ) -> None:
        """Take the point of an iteration, and add its row to the table."""
        self.improve(point, certificate)
        now = self.certificate
        assert now is not None
        left = self.trace[-1][3] - self.trace[-1][4] if self.trace else np.inf
        # bounds that cross are rounding, and closer ones no progress
        self.idle = 0 if 0.0 <= now.primal - now.dual < (1.0 - PROGRESS) * left else self.idle + 1
        active = int(np.count_nonzero(point.weights))
        self.trace.append((iteration, seconds, passes, now.primal, now.dual, now.relative_gap, active))


class Progress:
    """Show how far the relative gap has come on its way to the tolerance.

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


@dataclass(frozen=True)
class Stop:
    """When to stop: at a relative gap, after iterations, after seconds; whichever comes first."""

    tol: float = 1e-3
    max_iter: int | None = None
    max_seconds: float | None = None


class Run:
    """State of the loop beside the solver's own."""

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
        self.state: Any = None  # what the solver returned last
        self.ended: float | None = None  # when the clock was stopped
        self._passes_before, spent = problem.passes, 0.0
        saved = self.checkpoint.load() if self.checkpoint is not None else None
        if saved is not None and self.checkpoint is not None:
            try:
                with np.errstate(all="ignore"):
                    certificate = problem.certificate(saved.point)
            except ArithmeticError as error:
                raise self.checkpoint.damaged(f"its point cannot be evaluated: {error}") from error
            if not certificate.finite:
                raise self.checkpoint.damaged("the objective or the bound of its point is not finite")
            self.start, spent = saved.point, saved.seconds
            self.best = Best(solver.keeps_last, saved.point, certificate, saved.trace)
            self._passes_before -= saved.trace[-1][2] if saved.trace else 0.0
            deadline.ends -= spent  # what went before the resumption counts
        self._began = time.perf_counter() - spent
        first = int(self.best.trace[-1][0]) + 1 if self.best.trace else 1
        max_iter = solver.default_max_iter if stop.max_iter is None else stop.max_iter
        self.iterations = range(first, first + max_iter)
        # a start that is a solution, where all it takes is known, so that no pass is spent
        self._solved: Certificate | None = None
        start = self.start
        if (
            start is not None
            and start.quad is not None
            and start.decision is not None
            and start.blocks is None
        ):
            certificate = problem.certificate(start)
            self._solved = certificate if certificate.relative_gap <= stop.tol else None

    @property
    def seconds(self) -> float:
        """Seconds of the run so far, those before a resumption included."""
        return (time.perf_counter() if self.ended is None else self.ended) - self._began

    @property
    def passes(self) -> float:
        """Passes over the bank so far, likewise."""
        return self.problem.passes - self._passes_before

    def save(self, force: bool = False) -> None:
        """Write the best point to the checkpoint, if there are both; not more often than it allows unless forced."""
        point, certificate = self.best.point, self.best.certificate
        if self.checkpoint is not None and point is not None and certificate is not None:
            self.checkpoint.save(point, certificate.dual_point, self.best.trace, self.seconds, force=force)

    def iterate(self, callback: Callback | None, progress: Progress) -> str:
        """Let the solver take steps until there is a reason to stop; return it, as a key of ``MESSAGES``."""
        problem, solver, deadline, best = self.problem, self.solver, self.deadline, self.best
        for iteration in self.iterations:
            try:
                if self._solved is not None and self.start is not None:
                    point, certificate = self.start, self._solved
                else:
                    if self.state is None:
                        self.state = solver.init(problem, self.start, self.stop.tol)
                    else:
                        self.state = solver.step(problem, self.state)
                    point = solver.point(self.state)
                    certificate = problem.certificate(point)
            except OutOfTime:
                # no time was left for a first point: the start, or the function that is zero
                if best.point is None:
                    point = self.start or Point(np.zeros(problem.y.shape), problem.norm.start(problem.m))
                    seconds, passes = self.seconds, self.passes
                    certificate = problem.certificate(point)
                    if certificate.finite:
                        best.take(point, certificate, iteration, seconds, passes)
                return "interrupted" if deadline.interrupted else "max_seconds"
            if not certificate.finite:
                return "non_finite"
            best.take(point, certificate, iteration, self.seconds, self.passes)
            deadline.has_point = True
            if self.stop.max_seconds is not None and deadline.in_whole_fit:
                # two passes over the bank are kept for certifying what the fit returns, by the iteration that took the
                # least for its passes
                steps = np.diff(np.array(best.trace)[:, 1:3], axis=0, prepend=0.0)
                steps = steps[steps[:, 1] > 0]
                two_passes = 2.0 * float(np.min(steps[:, 0] / steps[:, 1])) if steps.size else 0.0
                deadline.reserved = min(two_passes, FINISHING * self.stop.max_seconds)
            if progress.verbose > 0:
                progress.show(best.row)
            if self.checkpoint is not None:
                self.save()
            # bounds that cross by more are rounding, and prove nothing yet
            if best.certificate is not None and abs(best.certificate.relative_gap) <= self.stop.tol:
                return "converged"
            if callback is not None and callback(best.row):
                return "stopped"
            if deadline.left <= 0.0:
                return "interrupted" if deadline.interrupted else "max_seconds"
            if self._stalled():
                return "stalled"
        return "max_iter"

    def _stalled(self) -> bool:
        """Whether the solver says so, or nothing has come of too many iterations or inner problems."""
        unsolved = getattr(self.problem, "unsolved", 0) >= UNSOLVED and self.best.idle >= IDLE
        idle = self.best.idle >= (self.solver.most_idle or np.inf)
        return getattr(self.state, "finished", False) or idle or unsolved


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
        Or any other problem with ``n``, ``passes`` and ``certificate(point)``.
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
        progress = Progress(verbose, stop.tol, str(solver.registered_as))
        best, broken, fit = run.best, BROKEN.format(solver.registered_as), deadline.outermost
        fit.winding_up = False
        try:
            status = run.iterate(callback, progress)
            if status != "non_finite" and best.point is not None and run.state is not None:
                # the solver may improve the best point once more, in a little time of its own
                deadline.ends += FINISHING * (stop.max_seconds or 0.0)
                deadline.has_point = False  # to be used up: what runs in it is not left in the middle
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
                raise NotFiniteError(f"{broken} ({error})") from error
            status = "failed"
        finally:
            fit.winding_up = True
            if progress.bar is not None:
                progress.bar.close()
            run.ended = time.perf_counter()  # what a file says of the time is what the solution says of it
            if run.checkpoint is not None:
                run.save(force=True)
        if best.point is None or best.certificate is None:
            raise NotFiniteError(broken)
        point, certificate = best.point, best.certificate
        if point.blocks is not None:
            # a fit was cut short: blocks with coefficients of their own are exchanged for what can predict
            point = without_caches(point)
            certificate = problem.certificate(point).with_dual_of(certificate)
        if hasattr(problem, "at_zero"):
            # where the function that is zero is better than anything found, digits are gone; not for rounding alone:
            # coefficients that cost as much may prove a better bound
            zero, at_zero = problem.at_zero
            if not certificate.primal - at_zero.primal <= NOTICEABLE * abs(at_zero.primal):
                point, certificate = zero, at_zero.with_dual_of(certificate)
        # blocks may have had the gap that the coefficients that predict have not
        status = final_status(status, certificate.relative_gap, stop.tol)
        # what proves the bound goes with the point, so that it can be proved again
        if certificate.cuts is not None:
            point = replace(point, cuts=certificate.cuts, cuts_bound=None)
        return Solution(point, certificate, status, best.trace, len(best.trace), run.seconds, run.passes)


def follow_path(
    bank: Bank,
    loss: Loss,
    norm: Norm,
    solver: Solver,
    y: Array,
    Cs: Sequence[float],
    stop: Stop | Callable[[], Stop],
    *,
    sample_weight: Array | None = None,
    fit_intercept: bool = True,
    callback: Any = None,
    verbose: int = 0,
    known: Mapping[float, Array] | None = None,
) -> Iterator[tuple[float, MKLProblem, Solution]]:
    """Solve for every C in turn, smallest first, and yield each with its problem.

    The weights and coefficients of one C are the start of the next; coefficients at their bound move with it.  ``stop``
    may be asked for every C.  ``known`` has the weights that were found on nearly the same samples, by C: on the next
    fold they are a better start than those of the last C.
    """
    start: Point | None = None
    last: MKLProblem | None = None
    known = {} if known is None else known
    for C in sorted(float(c) for c in Cs):
        problem = MKLProblem(bank, loss, norm, y, C, sample_weight, fit_intercept)
        if start is not None and last is not None:
            # coefficients at their bound follow it, free ones stay (for large C all of them do)
            beta, used = start.beta.copy(), last.c > 0
            if last.loss.joint:  # a row is at its bound where its own class is, and follows as a whole
                held = used[:, 0] & (np.max(start.beta, axis=1) >= (1.0 - 1e-7) * last.c[:, 0])
            else:
                unit = np.divide(beta, last.c, out=np.zeros_like(beta), where=used)
                held = used & ~last.loss.interior(last.y, unit, 1e-7)
            beta[held] *= problem.c[held] / last.c[held]
            # where no coefficient is at its bound the old solution is the new one, and all is known about it
            start = start if np.array_equal(beta, start.beta) else Point(beta, known.get(C, start.weights))
        elif C in known:
            start = Point(np.zeros(problem.y.shape), known[C])
        own_stop = stop if isinstance(stop, Stop) else stop()
        solution = solve(problem, solver, own_stop, start=start, callback=callback, verbose=verbose)
        start, last = solution.point, problem
        yield C, problem, solution
