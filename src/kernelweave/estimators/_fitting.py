"""Fitting one problem or several on the same bank, and what an estimator keeps of it."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..banks import Bank, BoundKernels, LazyBank
from ..exceptions import KernelWeaveConvergenceWarning
from ..problems import Certificate, MKLProblem, Point
from ..solvers import TRACE_COLUMNS, Solution, Solver, Stop, solve, without_caches

Array = NDArray[np.float64]

#: relative error of a bank's products from which a certificate of exact kernels may say something else
COARSE = 1e-5

__all__ = ["Fit", "exact_bank", "run", "stack_fits"]


@dataclass(frozen=True)
class Fit:
    """A solved problem: the final point, certified anew from the bank, and the way there."""

    beta: Array
    weights: Array
    certificate: Certificate
    solution: Solution


def exact_bank(bank: Bank, bound: Any, dtype: Any) -> Bank:
    """Return a bank in double precision to certify with: the bank itself unless it is stored in single precision."""
    own = bank.exact()
    if own is not None:
        return own
    if np.dtype(dtype) == np.float64 or not isinstance(bound, BoundKernels):
        return bank
    return LazyBank(bound.kernels, bound.samples, bank.n, bound.normaliser)


def run(
    problem: MKLProblem,
    solver: Solver,
    stop: Stop,
    judge_bank: Bank,
    *,
    start: Point | None = None,
    callback: Any = None,
    verbose: int = 0,
    checkpoint: str | Path | None = None,
    label: str = "",
) -> Fit:
    """Solve, then certify the point that will predict from the kernels alone."""
    solution = solve(
        problem, solver, stop, start=start, callback=callback, verbose=verbose, checkpoint=checkpoint
    )
    certificate = final_certificate(problem, solution, judge_bank)
    if solution.converged and certificate.relative_gap > stop.tol and problem.bank.rounding > COARSE:
        solution = _go_on(problem, solver, stop, solution)
        certificate = final_certificate(problem, solution, judge_bank)
    if not solution.converged:
        warnings.warn(
            f"{label}{solution.message}: stopped at a relative gap of {certificate.relative_gap:.2g} "
            f"(tol={stop.tol:g}) after {solution.n_iter} iterations of {solver.registered_as!r}. The best point "
            "was kept and its certificate is valid; raise max_iter or max_seconds, or scale the data, to go on.",
            KernelWeaveConvergenceWarning,
            stacklevel=4,
        )
    return Fit(solution.point.beta, solution.point.weights, certificate, solution)


def _go_on(problem: MKLProblem, solver: Solver, stop: Stop, so_far: Solution) -> Solution:
    """Solve on from where a bank in half precision led, with kernels computed as they are read."""
    stored = problem.bank
    problem.bank = stored.computed()  # type: ignore[attr-defined]
    try:
        solution = solve(problem, solver, stop, start=without_caches(so_far.point))
        stored.passes += problem.bank.passes
    finally:
        problem.bank = stored
    last = so_far.trace[-1]
    trace = [(row[0] + last[0], row[1] + last[1], row[2] + last[2], *row[3:]) for row in solution.trace]
    return replace(
        solution, trace=so_far.trace + trace, n_iter=so_far.n_iter + solution.n_iter,
        seconds=so_far.seconds + solution.seconds, passes=so_far.passes + solution.passes,
    )  # fmt: skip


def final_certificate(problem: MKLProblem, solution: Solution, judge_bank: Bank) -> Certificate:
    """Recompute both bounds without anything the solver carried along."""
    bank = problem.bank
    problem.bank = judge_bank
    try:
        judged = problem.certificate(without_caches(solution.point))
        if solution.certificate.dual > judged.dual:
            beta = solution.certificate.dual_point
            other = replace(judged, dual=problem.dual(beta), dual_point=beta)
            judged = judged.with_dual_of(other)
    finally:
        problem.bank = bank
    return judged


def stack_fits(fits: list[Fit]) -> Certificate:
    """One certificate for independent problems: their objectives add up, and so do their bounds."""
    return Certificate(
        primal=sum(fit.certificate.primal for fit in fits),
        dual=sum(fit.certificate.dual for fit in fits),
        dual_point=np.stack([fit.certificate.dual_point for fit in fits], axis=1),
        intercept=np.array([fit.certificate.intercept for fit in fits]),
        margin=min(fit.certificate.margin for fit in fits),
    )


def trace_table(fits: list[Fit], labels: list[Any]) -> Any:
    """The traces as one table; with several problems a first column says which."""
    import pandas as pd

    tables = []
    for fit, label in zip(fits, labels, strict=True):
        table = pd.DataFrame(fit.solution.trace, columns=list(TRACE_COLUMNS))
        table = table.astype({"iteration": int, "active_kernels": int})
        if len(fits) > 1:
            table.insert(0, "problem", label)
        tables.append(table)
    return pd.concat(tables, ignore_index=True)
