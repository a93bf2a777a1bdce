"""Solving the tasks of a fit on one bank, and what an estimator keeps of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._estimating import TimeShares
from .._typing import Array
from ..banks import Bank, BoundKernels, ByColumns, LazyBank
from ..exceptions import KernelWeaveConvergenceWarning, warn_at_caller
from ..losses import Loss
from ..norms import Norm
from ..problems import Certificate, MKLProblem, Point, joined, with_certain_bounds, without_crossed_bounds
from ..solvers import MESSAGES, TRACE_COLUMNS, Solution, Solver, Stop, final_status, solve, without_caches
from ._bind import Bound
from ._evidence import rotated
from ._parameters import Callback, FileName, Label
from ._plan import Plan, Task

if TYPE_CHECKING:
    import pandas as pd

#: relative error of a bank's products from which a certificate of exact kernels may say something else
COARSE = 1e-5
#: times that coefficients are refined by exact sums, at most: what the first leaves is the rounding of its many steps
REFINED = 4
#: why a fit ended that nothing is to be added to: the user or a limit said so
ENDED = ("interrupted", "max_seconds", "max_iter", "stopped")


#: group of the kernels whose weights are given, where the others have groups
ALWAYS = "always counts"


@dataclass(frozen=True)
class Fit:
    """A solved problem: the final point, certified again from the bank, what that proves, and the way there."""

    beta: Array
    weights: Array
    certificate: Certificate
    solution: Solution
    status: str
    loss: Loss
    norm: Norm
    solver: str | None
    #: ``sum_j d_j K_j beta`` of the training samples, without the intercept, as the certificate read it
    decision: Array

    @property
    def values(self) -> Array:
        """Decision values of the training samples."""
        return np.asarray(self.decision + self.certificate.intercept)


@dataclass(frozen=True)
class Answer:
    """Result of the fits of all tasks: of a single task its own numbers, of several theirs side by side.

    Objectives of independent problems add up, and so do their bounds; ``status`` is the first that is not
    ``converged``, if there is one.
    """

    weights: Array
    beta: Array
    certificate: Certificate
    status: str
    C: float | Array
    #: of the norm's own term, where it has one
    strength: float | Array | None

    @classmethod
    def of(cls, tasks: list[Task], fits: list[Fit]) -> Answer:
        """Put fits together."""
        first, each = fits[0], [fit.certificate for fit in fits]
        status = next((fit.status for fit in fits if fit.status != "converged"), "converged")
        if len(fits) == 1:
            return cls(first.weights, first.beta, each[0], status, tasks[0].C, first.norm.strength)
        Cs = np.array([task.C for task in tasks])
        return cls(
            np.stack([fit.weights for fit in fits]),
            np.stack([fit.beta for fit in fits], axis=1),
            joined(each),
            status,
            tasks[0].C if np.ptp(Cs) == 0.0 else Cs,
            None if first.norm.strength is None else np.array([fit.norm.strength for fit in fits]),
        )


def group_weights(fits: list[Fit]) -> dict[str, float | Array] | None:
    """Weights of groups of kernels by name, where the norm has groups; arrays where there are several tasks."""
    names = fits[0].norm.group_names
    if not names:
        return None
    each = np.array([fit.norm.group_weights(fit.weights) for fit in fits])
    return {name: float(each[0, g]) if len(fits) == 1 else each[:, g] for g, name in enumerate(names)}


def kernel_groups(fits: list[Fit]) -> NDArray[Any] | None:
    """Group of every kernel, where the norm has groups; those that always count are one of their own."""
    norm, m = fits[0].norm, fits[0].weights.size
    if not norm.group_names:
        return None
    return np.array([ALWAYS if group is None else group for group in norm.kernel_groups(m)], dtype=object)


def trace_of(tasks: list[Task], fits: list[Fit]) -> pd.DataFrame:
    """Return the traces as one table; with several problems a first column says which."""
    import pandas as pd

    tables = []
    for fit, task in zip(fits, tasks, strict=True):
        numbers = np.array(fit.solution.trace, dtype=float).reshape(-1, len(TRACE_COLUMNS))
        whole = {"iteration", "active_kernels"}
        columns = {
            name: column.astype(int if name in whole else float)
            for name, column in zip(TRACE_COLUMNS, numbers.T, strict=True)
        }
        table = pd.DataFrame(columns)
        if len(fits) > 1:
            table.insert(0, "problem", task.label)
        tables.append(table)
    return tables[0] if len(tables) == 1 else pd.concat(tables, ignore_index=True)


def fit_tasks(bound: Bound, plan: Plan, tasks: list[Task]) -> tuple[list[Fit], float]:
    """Solve every task on one bank, sharing the seconds of the fit; return the fits and the passes they took."""
    stops = TimeShares(plan.stop, len(tasks))
    judge = _exact_bank(bound, plan)
    by_columns = cache(partial(_by_columns, bound, judge))
    fits: list[Fit] = []
    for k, task in enumerate(tasks):
        solver = plan.solver_for(task.loss, task.norm, bound.bank)
        attempt = partial(
            _run_task,
            task,
            bound.bank,
            plan.fit_intercept,
            solver,
            stops(),
            judge,
            by_columns=by_columns,
            callback=plan.callback,
            verbose=plan.verbose,
            checkpoint=plan.checkpoint_of(k, len(tasks)),
            label=f"{task.of} {plain(task.label)!r}: " if len(tasks) > 1 else "",
        )
        try:
            fits.append(attempt())
        except KeyboardInterrupt:  # before there was a point, which now is made in no time
            if not fits:
                raise
            fits.append(attempt())
    passes = bound.bank.passes + (judge.passes if judge is not bound.bank else 0.0)
    return fits, passes


def _run_task(
    task: Task,
    bank: Bank,
    fit_intercept: bool,
    solver: Solver,
    stop: Stop,
    judge: Bank,
    by_columns: Callable[[], Bank | None],
    **options: Any,
) -> Fit:
    """Solve one task, with as few columns of targets as it can be solved with."""
    narrow = rotated(task)
    options["by_columns"] = by_columns
    if narrow is None:
        return run(task.problem(bank, fit_intercept), solver, stop, judge, start=task.start, **options)
    turned = narrow.task
    fit = run(turned.problem(bank, fit_intercept), solver, stop, judge, start=turned.start, **options)
    found = fit.beta, fit.weights, fit.certificate
    beta, certificate = narrow.back(*found, task.problem(judge, fit_intercept))
    if fit.status == "converged" and certificate.relative_gap > stop.tol:
        exact = by_columns()
        if exact is not None:
            beta, certificate = narrow.back(*found, task.problem(exact, fit_intercept))
    status = final_status(fit.status, certificate.relative_gap, stop.tol)
    if fit.status == "converged":  # which was not worth a warning
        status = conclude(
            fit.status, certificate.relative_gap, stop.tol, options["label"],
            f"after {fit.solution.n_iter} iterations of {solver.registered_as!r}",
        )  # fmt: skip
    decision = fit.decision @ narrow.axes.T
    return replace(fit, beta=beta, certificate=certificate, status=status, decision=decision)


def plain(label: Label) -> Label:
    """Return a label as people write it: ``'a'`` rather than ``np.str_('a')``."""
    return label.item() if isinstance(label, np.generic) else label


def _exact_bank(bound: Bound, plan: Plan) -> Bank:
    """Return a bank in double precision to certify with: the bank itself unless it is stored in single precision."""
    own = bound.bank.exact()
    if own is not None:
        return own
    kernels = bound.kernels
    if np.dtype(plan.bank.dtype) == np.float64 or kernels.samples is None:
        return bound.bank
    return LazyBank(
        kernels.kernels, kernels.samples, bound.bank.n, kernels.normaliser, threads=plan.bank.threads
    )


def _by_columns(bound: Bound, judge: Bank) -> Bank | None:
    """Return a bank that sums exactly what kernels are known by, to certify with; None where no kernel is."""
    if judge.on_device or judge.streams or judge.cluster_cost is not None:
        return None
    known = bound.kernels.exact_columns() if isinstance(bound.kernels, BoundKernels) else {}
    return ByColumns.of(judge, known)


def run(
    problem: MKLProblem,
    solver: Solver,
    stop: Stop,
    judge_bank: Bank,
    *,
    by_columns: Callable[[], Bank | None] | None = None,
    start: Point | None = None,
    callback: Callback | None = None,
    verbose: int = 0,
    checkpoint: FileName | None = None,
    label: str = "",
) -> Fit:
    """Solve, certify the point that will predict from the kernels alone, and say of the fit what that proves."""
    solution = solve(
        problem, solver, stop, start=start, callback=callback, verbose=verbose, checkpoint=checkpoint
    )
    judge = problem.on(judge_bank)
    judged = final_certificate(judge, solution)
    exact = None
    if judged.certificate.relative_gap > stop.tol and solution.status not in ENDED and by_columns is not None:
        # coefficients cancel in the entries of a matrix: where kernels are known by columns, nothing is lost
        exact = by_columns()
    if exact is not None:
        judge = problem.on(exact)
        judged = _refined(judge, solution, stop.tol)
    for bank, tol in _closer_looks(solution, problem.bank, judge_bank, stop.tol):
        rounding = judged.certificate.relative_gap - judged.unrounded
        if (
            solution.status in ENDED
            or judged.certificate.relative_gap <= stop.tol
            or (judged.unrounded <= stop.tol and rounding > tol)  # which no solver takes away
        ):
            break
        further = _go_on(
            problem.on(bank), solver, replace(stop, tol=tol), replace(solution, point=judged.point)
        )
        if bank is not problem.bank and bank is not judge_bank:
            problem.bank.passes += bank.passes
        again = final_certificate(judge, further) if exact is None else _refined(judge, further, stop.tol)
        better, worse = (
            (again, judged) if again.certificate.primal <= judged.certificate.primal else (judged, again)
        )
        # where the old point is the better one, the way there is told all the same
        solution = replace(further, point=better.point)
        judged = replace(better, certificate=better.certificate.with_dual_of(worse.certificate))
    point, decision = judged.point, judged.decision
    certificate = without_crossed_bounds(judge, point, judged.certificate)
    status = conclude(
        solution.status, certificate.relative_gap, stop.tol, label,
        f"after {solution.n_iter} iterations of {solver.registered_as!r}",
    )  # fmt: skip
    return Fit(
        point.beta, point.weights, certificate, replace(solution, point=point), status, problem.loss, problem.norm,
        solver.registered_as, decision,
    )  # fmt: skip


def _closer_looks(solution: Solution, stored: Bank, exact: Bank, tol: float) -> list[tuple[Bank, float]]:
    """Where to solve on, and to which gap, when a solver's figures promised more than the kernels hold.

    First a little further on what is stored, because most often a few digits are missing; then on kernels that are
    computed as they are read: in the precision of the device where half of it is stored, else in double precision.
    A solver that came to nothing on kernels of single precision, which need not even be positive semidefinite, goes on
    in double precision.
    """
    if not solution.converged:
        return [] if exact is stored else [(exact, tol)]
    computed = stored.computed() if stored.rounding > COARSE else exact  # type: ignore[attr-defined]
    return [(stored, 0.3 * tol), (computed, 0.3 * tol), (exact, 0.03 * tol)]


def conclude(status: str, gap: float, tol: float, label: str, work: str, chosen: bool = False) -> str:
    """Return what may be said of a fit that stopped for a reason, and warn unless it is solved to the tolerance.

    Parameters
    ----------
    status, gap, tol, chosen :
        As for ``final_status``.
    label : str
        Which of several problems it is, to begin the warning with.
    work : str
        What was done, as part of a sentence.
    """
    status = final_status(status, gap, tol, chosen)
    if status in (
        "converged",
        "stationary",
        "max_steps",
    ):  # steps that might still gain a little are in the table
        return status
    if status in ("imprecise", "stalled", "failed", "non_finite"):
        advice = "scale the features (StandardScaler), use normalize='trace' and float64, or choose a C nearer to 1"
    else:
        advice = "raise max_iter or max_seconds to go on"
    kept = "The best point was kept and its certificate is valid"
    if chosen and gap <= tol:
        kept = "The best weights found were kept, and the fit with them is solved to the tolerance"
    warn_at_caller(
        f"{label}{MESSAGES[status]}: stopped at a relative gap of {gap:.2g} (tol={tol:g}) {work}. {kept}; {advice}.",
        KernelWeaveConvergenceWarning,
    )
    return status


def _go_on(problem: MKLProblem, solver: Solver, stop: Stop, so_far: Solution) -> Solution:
    """Solve on from a point, and join the two ways."""
    if stop.max_seconds is not None:
        stop = replace(stop, max_seconds=max(stop.max_seconds - so_far.seconds, 1e-3))
    solution = solve(problem, solver, stop, start=without_caches(so_far.point))
    last = so_far.trace[-1]
    trace = [(row[0] + last[0], row[1] + last[1], row[2] + last[2], *row[3:]) for row in solution.trace]
    return replace(
        solution, trace=so_far.trace + trace, n_iter=so_far.n_iter + solution.n_iter,
        seconds=so_far.seconds + solution.seconds, passes=so_far.passes + solution.passes,
        # closer than asked for, or as close as these kernels allow: the certificate will tell
        status=(
            solution.status
            if not so_far.converged or solution.status in ("interrupted", "max_seconds")
            else "converged"
        ),
    )  # fmt: skip


@dataclass(frozen=True)
class Judged:
    """A point that predicts, its certificate and decision values, and its relative gap had nothing been rounded."""

    point: Point
    certificate: Certificate
    decision: Array
    unrounded: float


def _refined(problem: MKLProblem, solution: Solution, tol: float) -> Judged:
    """Certify a point on a bank that sums exactly, or a better one: with the same weights, solved by such sums."""
    best = final_certificate(problem, solution)
    point = best.point
    for _ in range(REFINED):
        if best.certificate.relative_gap <= tol:
            break
        point = problem.refined(point, 0.1 * tol)
        again = final_certificate(problem, replace(solution, point=point))
        if again.certificate.primal < best.certificate.primal:
            best = again
    return best


def final_certificate(problem: MKLProblem, solution: Solution) -> Judged:
    """Recompute both bounds without anything the solver carried along, and take off what rounding may have added.

    The point is the solver's, or the function that is zero where the kernels say that it is better.
    """
    point = without_caches(solution.point)
    quad, decision = problem.bank.judged(point.weights, point.beta)
    known = replace(point, quad=quad, decision=decision)
    judged = problem.certificate(known)
    certain = with_certain_bounds(problem, known, judged)
    beta = solution.certificate.dual_point
    # of the same coefficients the solver's figure differs by rounding alone
    if solution.certificate.dual > judged.dual and not np.array_equal(beta, judged.dual_point):
        forms = problem.bank.quad(beta)
        other = replace(judged, dual=problem.dual(beta, forms), dual_point=beta)
        judged = judged.with_dual_of(other)
        known = replace(known, dual_beta=beta, dual_quad=forms)
        certain = certain.with_dual_of(with_certain_bounds(problem, known, replace(other, cuts=None)))
    zero, nothing = problem.at_zero
    if not certain.primal <= nothing.primal:
        point, decision = without_caches(zero), np.zeros_like(decision)
        judged, certain = nothing.with_dual_of(judged), nothing.with_dual_of(certain)
    return Judged(point, certain, decision, judged.relative_gap)
