"""The loop that every solver runs in.  What it keeps on the way, and why it stops, is in ``_run.py``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from .._numerics.deadline import OutOfTime, time_limit
from .._numerics.interrupts import one_interrupt
from .._numerics.threads import few_blas_threads
from ..exceptions import NotFiniteError
from ..problems import Certificate, Point
from ._base import Solver
from ._progress import Progress
from ._run import Callback, Run, Stop
from ._status import MESSAGES, final_status

__all__ = ["Solution", "Stop", "solve"]

#: what to say where there is no point at all
BROKEN = (
    "solver {!r} produced values that are not finite at its first point: scale the features and the targets "
    "(StandardScaler), use normalize='trace', or choose a C nearer to 1"
)


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
