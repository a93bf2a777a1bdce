"""Solving the tasks of a fit on one bank, and certifying them again from the kernels alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

import numpy as np

from .._estimating import TimeShares
from .._typing import Array
from ..banks import Bank, BoundKernels, Computed, Gram
from ..exceptions import KernelWeaveConvergenceWarning, warn_at_caller
from ..losses import Loss
from ..norms import Norm
from ..problems import Certificate, MKLProblem, Point, with_certain_bounds, without_crossed_bounds
from ..solvers import MESSAGES, Solution, Solver, Stop, final_status, solve, without_caches
from ._bind import Bound
from ._parameters import FileName, Label
from ._plan import Plan, Task

#: relative error of a bank's products from which a certificate of exact kernels may say something else
COARSE = 1e-5
#: times that coefficients are refined by exact sums, at most: what the first leaves is the rounding of its many steps
REFINED = 4
#: why a fit ended that nothing is to be added to: the user or a limit said so
ENDED = ("interrupted", "max_seconds", "max_iter", "stopped")


@dataclass(frozen=True)
class Fit:
    """A solved problem: the final point, certified again from the bank, what that proves, and the way there."""

    beta: Array
    weights: Array
    certificate: Certificate
    status: str
    n_iter: int
    trace: list[tuple[float, ...]]
    loss: Loss
    norm: Norm
    solver: str
    #: ``sum_j d_j K_j beta`` of the training samples, without the intercept, as the certificate read it
    decision: Array


def fit_tasks(bound: Bound, plan: Plan, tasks: list[Task]) -> tuple[list[Fit], float]:
    """Solve every task on one bank, sharing the seconds of the fit; return the fits and the passes they took."""
    bank, source = bound.bank, bound.bank.source
    exact = bank.exact()
    if exact is None:  # to certify with: the bank itself unless it is stored in single precision
        exact = bank
        single = np.dtype(plan.bank.dtype) != np.float64
        if single and isinstance(source, BoundKernels) and source.samples is not None:
            threads = plan.bank.threads
            exact = Gram(Computed(source.kernels, source.samples, bank.n, source.normaliser, threads=threads))
    by_columns = cache(partial(_by_columns, source, exact))
    stops = TimeShares(plan.stop, len(tasks))
    fits: list[Fit] = []
    for k, task in enumerate(tasks):
        checkpoint, label = plan.checkpoint, ""
        if len(tasks) > 1:
            label = f"{task.of} {plain(task.label)!r}: "
            if checkpoint is not None:
                path = Path(checkpoint)
                checkpoint = path.with_name(f"{path.stem}-{k}{path.suffix}")
        solver = plan.solver_for(task.loss, task.norm, bank)
        attempt = partial(run, task, plan, solver, stops(), bank, exact, by_columns, checkpoint, label)
        try:
            fits.append(attempt())
        except KeyboardInterrupt:  # before there was a point, which now is made in no time
            if not fits:
                raise
            fits.append(attempt())
    return fits, bank.passes + (exact.passes if exact is not bank else 0.0)


def plain(label: Label) -> Label:
    """Return a label as people write it: ``'a'`` rather than ``np.str_('a')``."""
    return label.item() if isinstance(label, np.generic) else label


def _by_columns(source: object, exact: Bank) -> Bank | None:
    """Return a bank that sums exactly what kernels are known by, to certify with; None where no kernel is."""
    if exact.on_device or exact.streams or exact.cluster_cost is not None:
        return None
    return exact.by_columns(source.exact_columns() if isinstance(source, BoundKernels) else {})


def run(
    task: Task,
    plan: Plan,
    solver: Solver,
    stop: Stop,
    bank: Bank,
    exact: Bank,
    by_columns: Callable[[], Bank | None],
    checkpoint: FileName | None,
    label: str,
) -> Fit:
    """Solve, certify the point that will predict from the kernels alone, and say of the fit what that proves."""
    narrow, axes, tol = task, None, stop.tol
    if task.y.ndim == 2 and task.loss.least_squares and task.y.shape[1] > task.y.shape[0]:
        # the targets Y have a rank of at most n: with F = Y Q, Q of orthonormal columns and F F' = Y Y', objective,
        # weights and quadratic forms are the same, and coefficients and intercepts turn with the targets
        axes, triangle = np.linalg.qr(task.y.T)
        start = None if task.start is None else Point(task.start.beta @ axes, task.start.weights)
        narrow = replace(task, y=np.ascontiguousarray(triangle.T), start=start)
    problem = narrow.problem(bank, plan.fit_intercept)
    solution = solve(
        problem, solver, stop, start=narrow.start, callback=plan.callback, verbose=plan.verbose, checkpoint=checkpoint
    )  # fmt: skip
    certifying, summed, certify = problem.on(exact), None, final_certificate
    best = certify(certifying, solution)
    if best.certificate.relative_gap > tol and solution.status not in ENDED:
        # coefficients cancel in the entries of a matrix: where kernels are known by columns, nothing is lost
        summed = by_columns()
    if summed is not None:
        certifying, certify = problem.on(summed), partial(_refined, tol=tol)
        best = certify(certifying, solution)
    # Where to solve on, and to which gap, when a solver's figures promised more than the kernels hold: first a little
    # further on what is stored, because most often a few digits are missing; then on kernels that are computed as they
    # are read, in the precision of the device where half of it is stored, else in double precision.  A solver that
    # found nothing on kernels of single precision, which need not even be positive semidefinite, goes on in double.
    further_on: list[tuple[Bank, float]] = [] if exact is bank else [(exact, tol)]
    if solution.status == "converged":
        computed = bank.computed() if bank.rounding > COARSE else exact
        further_on = [(bank, 0.3 * tol), (computed, 0.3 * tol), (exact, 0.03 * tol)]
    for other, goal in further_on:
        gap = best.certificate.relative_gap
        only_rounding = best.unrounded <= tol and gap - best.unrounded > goal  # which no solver takes away
        if solution.status in ENDED or gap <= tol or only_rounding:
            break
        so_far = replace(solution, point=best.point)
        further = _go_on(problem.on(other), solver, replace(stop, tol=goal), so_far)
        if other is not bank and other is not exact:
            bank.passes += other.passes
        again = certify(certifying, further)
        improved = again.certificate.primal <= best.certificate.primal
        better, worse = (again, best) if improved else (best, again)
        # where the old point is the better one, the way there is reported all the same
        solution = replace(further, point=better.point)
        best = replace(better, certificate=better.certificate.with_dual_of(worse.certificate))
    certificate = without_crossed_bounds(certifying, best.point, best.certificate)
    work = f"after {solution.n_iter} iterations of {solver.registered_as!r}"
    status = conclude(solution.status, certificate.relative_gap, tol, label, work)
    point, beta, decision = best.point, best.point.beta, best.decision
    if axes is not None:
        known = point, certificate, axes
        beta, certificate = _turned_back(*known, task.problem(exact, plan.fit_intercept))
        if status == "converged" and certificate.relative_gap > tol:
            summed = by_columns()
            if summed is not None:
                beta, certificate = _turned_back(*known, task.problem(summed, plan.fit_intercept))
        gap, warned = certificate.relative_gap, status != "converged"
        status = final_status(status, gap, tol) if warned else conclude(status, gap, tol, label, work)
        decision = decision @ axes.T
    return Fit(
        beta, point.weights, certificate, status, solution.n_iter, solution.trace, problem.loss, problem.norm,
        solver.registered_as or type(solver).__name__, decision,
    )  # fmt: skip


def _turned_back(
    point: Point, proved: Certificate, axes: Array, problem: MKLProblem
) -> tuple[Array, Certificate]:
    """Return the coefficients for the targets themselves, and what ``problem`` proves of them.

    ``proved`` is the certificate of fewer columns: the coefficients of its lower bound are taken over.
    """
    beta, dual = point.beta @ axes.T, proved.dual_point @ axes.T
    cuts = None if proved.cuts is None else proved.cuts @ axes.T
    decision = problem.bank.mix_product(point.weights, beta)
    # quadratic forms of more columns than rows are those of a square factor of their Gram matrix
    forms, dual_forms = (
        problem.bank.quad(np.asarray(np.linalg.qr(coef.T, mode="r")).T)
        for coef in (beta, problem.repair(dual))
    )
    turned = Point(beta, point.weights, forms, decision, dual, dual_forms, cuts=cuts)
    return beta, with_certain_bounds(problem, turned, problem.certificate(turned))


def conclude(status: str, gap: float, tol: float, label: str, work: str, chosen: bool = False) -> str:
    """Return what may be said of a fit that stopped for a reason, and warn unless it is solved to the tolerance.

    ``label`` says which of several problems it is, ``work`` what was done; the rest is as for ``final_status``.
    """
    status = final_status(status, gap, tol, chosen)
    # of steps that might still gain a little the table tells
    if status in ("converged", "stationary", "max_steps"):
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
    last, status = so_far.trace[-1], solution.status
    trace = [(row[0] + last[0], row[1] + last[1], row[2] + last[2], *row[3:]) for row in solution.trace]
    if so_far.converged and status not in ("interrupted", "max_seconds"):
        status = "converged"  # closer than asked for, or as close as these kernels allow: the certificate will tell
    return replace(
        solution, trace=so_far.trace + trace, n_iter=so_far.n_iter + solution.n_iter,
        seconds=so_far.seconds + solution.seconds, passes=so_far.passes + solution.passes, status=status,
    )  # fmt: skip


@dataclass(frozen=True)
class Certified:
    """A point that predicts, its certificate and decision values, and its relative gap had nothing been rounded."""

    point: Point
    certificate: Certificate
    decision: Array
    unrounded: float


def _refined(problem: MKLProblem, solution: Solution, tol: float) -> Certified:
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


def final_certificate(problem: MKLProblem, solution: Solution) -> Certified:
    """Recompute both bounds without anything the solver carried along, and take off what rounding may have added.

    The point is the solver's, or the function that is zero where the kernels say that it is better.
    """
    point = without_caches(solution.point)
    quad, decision = problem.bank.judged(point.weights, point.beta)
    known = replace(point, quad=quad, decision=decision)
    found = problem.certificate(known)
    certain = with_certain_bounds(problem, known, found)
    beta = solution.certificate.dual_point
    # of the same coefficients the solver's figure differs by rounding alone
    if solution.certificate.dual > found.dual and not np.array_equal(beta, found.dual_point):
        forms = problem.bank.quad(beta)
        other = replace(found, dual=problem.dual(beta, forms), dual_point=beta)
        found = found.with_dual_of(other)
        known = replace(known, dual_beta=beta, dual_quad=forms)
        certain = certain.with_dual_of(with_certain_bounds(problem, known, replace(other, cuts=None)))
    zero, nothing = problem.at_zero
    if not certain.primal <= nothing.primal:
        point, decision = without_caches(zero), np.zeros_like(decision)
        found, certain = nothing.with_dual_of(found), nothing.with_dual_of(certain)
    return Certified(point, certain, decision, found.relative_gap)
