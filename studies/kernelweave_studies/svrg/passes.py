"""Passes to given accuracies on the problem of random cosines: SVRG, the printed method, L-BFGS, Pegasos."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from kernelweave.problems import MKLProblem
from kernelweave.solvers import Stop, registry, solve

from ..study import Key, Report, Row
from .data import lbfgs_values, optimum, view_problem

PS = (1.1, 1.5, 2.0)
ACCURACIES = (1e-2, 1e-4, 1e-8)
#: passes to 1e-8 at C = 1 that are to be reached, median over seeds
LIMITS = {1.1: 190.0, 1.5: 62.0, 2.0: 44.0}
MOST = 1000
METHODS = ("svrg", "svrg, as printed", "lbfgs", "pegasos")
SETTINGS = {
    "p": PS,
    "accuracies": ACCURACIES,
    "C": 1.0,
    "most passes": MOST,
    "methods": METHODS,
    "version": 4,
}


def keys(repeats: int) -> list[Key]:
    """Every norm on every seed."""
    return [{"p": p, "seed": seed} for seed in range(repeats) for p in PS]


def values(problem: MKLProblem, method: str, seed: int) -> list[tuple[float, float]]:
    """Passes and best objective so far."""
    if method == "lbfgs":
        return [(passes, value) for passes, _, value in lbfgs_values(problem, MOST)]
    if method == "pegasos":
        solution = solve(problem, registry["pegasos"](random_state=seed), Stop(tol=1e-9, max_iter=MOST // 5))
        return [(row[2], row[3]) for row in solution.trace]
    variant = "paper" if "printed" in method else "corrected"
    solver = registry["svrg"](variant=variant, accuracy=1e-8, random_state=seed)
    solution = solve(problem, solver, Stop(tol=1e-9, max_iter=MOST // 2))
    return [(row[2], row[3]) for row in solution.trace]


def work(key: Key) -> list[Row]:
    """All methods on one problem."""
    best = optimum(view_problem(int(key["seed"]), float(key["p"])))
    rows: list[Row] = []
    for method in METHODS:
        path = values(view_problem(int(key["seed"]), float(key["p"])), method, int(key["seed"]))
        error = np.array([(value - best) / best for _, value in path])
        row: Row = {"method": method, "last": float(error[-1])}
        for accuracy in ACCURACIES:
            reached = np.flatnonzero(error <= accuracy)
            row[f"to {accuracy:g}"] = float(path[reached[0]][0]) if reached.size else np.nan
        rows.append(row)
    return rows


def report(rows: pd.DataFrame, report: Report) -> Sequence[str]:
    """Medians and ranges, and the targets."""
    targets, table = report.targets(), []
    for (p, method), these in rows.groupby(["p", "method"], sort=False):
        line: dict[str, Any] = {"p": p, "method": method, "seeds": len(these)}
        for accuracy in ACCURACIES:
            passes = these[f"to {accuracy:g}"].fillna(np.inf)
            middle = float(np.median(passes))
            line[f"passes to {accuracy:g}"] = middle if np.isfinite(middle) else np.nan
            finite = passes[np.isfinite(passes)]
            line[f"range ({accuracy:g})"] = (
                f"{finite.min():.0f} to {finite.max():.0f}" if len(finite) else "never"
            )
            line[f"reached ({accuracy:g})"] = f"{len(finite)} of {len(passes)}"
            if method == "svrg" and accuracy == ACCURACIES[-1]:
                targets.at_most(f"p = {p:g}: median passes to {accuracy:g}, C = 1", middle, LIMITS[float(p)])
        line["last error (median)"] = float(these["last"].median())
        table.append(line)
    note = (
        "n = 500, 10 views of 20 random cosines, logistic loss, C = 1, no intercept; relative suboptimality "
        "`(f - f*) / f*` of the objective of what would predict (SVRG: shared coefficients), f* certified to 1e-11. A "
        f"full gradient is a pass, n steps are one, an epoch of SVRG is two. At most {MOST} passes (Pegasos: "
        f"{MOST // 5}). As printed: Algorithm 1 with accuracy 1e-8, ceil(ln 1e8) = 19 epochs; a block that has "
        "stopped counts nothing.\n\n" + targets.text()
    )
    report.table(table, note, "SVRG: passes to an accuracy")
    return [str(target) for target in targets.all]
