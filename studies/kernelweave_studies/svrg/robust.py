"""A hundred random problems, badly scaled: does SVRG ever diverge, and does the printed method?"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
import pandas as pd

from kernelweave.solvers import Stop, registry, solve

from ..study import Key, Report, Row
from .data import NORMS, random_problem

PROBLEMS = 100
TOL = 1e-3
EPOCHS = 1000
SETTINGS = {"problems": PROBLEMS, "tol": TOL, "epochs": EPOCHS, "version": 3}


def keys(repeats: int) -> list[Key]:
    """The problems; ``repeats`` is how many for each norm."""
    return [{"problem": number} for number in range(repeats * len(NORMS))]


def work(key: Key) -> list[Row]:
    """Both variants on one problem; divergence is an objective above that of f = 0, or none at all."""
    rows: list[Row] = []
    for variant in ("corrected", "paper"):
        problem, about = random_problem(int(key["problem"]))
        nothing = problem.loss.total(problem.y, np.zeros(problem.n), problem.c)
        solver = registry["svrg"](variant=variant, accuracy=TOL)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            last = _last_value(problem, solver)
            problem.bank.passes = 0.0
            solution = solve(problem, solver, Stop(tol=TOL, max_iter=EPOCHS))
        rows.append(
            {
                **about,
                "variant": variant,
                "status": solution.status,
                "relative_gap": solution.certificate.relative_gap,
                "passes": solution.passes,
                "last over start": last / nothing,
                "diverged": bool(not np.isfinite(last) or last > nothing),
            }
        )
    return rows


def _last_value(problem, solver) -> float:  # type: ignore[no-untyped-def]
    """Objective at the last point of a run, not the best one, which the loop would keep."""
    state = solver.init(problem, None, TOL)
    for _ in range(EPOCHS):
        judged = problem.certificate(solver.point(state))
        if not np.isfinite(judged.primal) or judged.relative_gap <= TOL or state.finished:
            return float(judged.primal)
        state = solver.step(problem, state)
    return float(problem.certificate(solver.point(state)).primal)


def _condition(number: int) -> float:
    """Joint smoothness over strong convexity at equal weights, over the number of samples."""
    problem, _ = random_problem(number)
    lengths = problem.norm.start(problem.m) @ problem.bank.diag()
    return float(problem.loss.smoothness or np.nan) * float(problem.c @ lengths) / problem.n


def report(rows: pd.DataFrame, report: Report) -> Sequence[str]:
    """Counts for each norm and variant."""
    targets, table = report.targets(), []
    for (variant, p), these in rows.groupby(["variant", "p"], sort=False):
        solved = these["status"] == "converged"
        reached = these[solved]
        condition = these["problem"].map(lambda number: _condition(int(number)))
        table.append(
            {
                "variant": variant,
                "p": p,
                "problems": len(these),
                "diverged": int(these["diverged"].sum()),
                f"gap of {TOL:g} reached": len(reached),
                "passes there (median)": float(reached["passes"].median()) if len(reached) else np.nan,
                "passes there (most)": float(reached["passes"].max()) if len(reached) else np.nan,
                "condition, reached (median)": float(condition[solved].median()),
                "condition, not reached (median)": float(condition[~solved].median()),
            }
        )
    ours = rows[rows["variant"] == "corrected"]
    targets.at_most(
        f"random problems of {len(ours)} on which SVRG diverged", float(ours["diverged"].sum()), 0.0
    )
    note = (
        "Two to eight blocks of 1 to 14 features, 40 to 199 samples, lengths of rows over three orders of magnitude "
        "between blocks and log-normal within; logistic, squared hinge, Huber hinge or squared loss, C from 0.01 to "
        f"31.6; at most {EPOCHS} epochs. Diverged: the last objective is above that of f = 0, or not finite. "
        "*Condition*: `L_d / (lambda n)` at equal weights, about the number of epochs that SVRG needs for a digit; "
        f"where it is in the thousands, {EPOCHS} epochs do not certify a gap of {TOL:g}.\n\n" + targets.text()
    )
    report.table(table, note, "SVRG: badly scaled random problems")
    return [str(target) for target in targets.all]
