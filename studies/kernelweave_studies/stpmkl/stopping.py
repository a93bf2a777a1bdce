"""What early stopping does: StPMKL by the paper's solver after so many iterations, against its optimum.

The paper stops after 1,000 iterations of a constant step, far from the optimum.  If the accuracy depends on where it
stops, the figure is about the stopping as much as about the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from kernelweave.banks import build_bank
from kernelweave.kernels import Schema
from kernelweave.solvers import Stop, make_solver, solve
from kernelweave.solvers.saddle import MirrorProx

from ..study import Key, Report, Row
from ..tables import mean_sd
from .data import flipped_split, problem_of, study_kernels

NOISE, LAMS, RHO = (0.2, 0.4), (0.001, 0.01), 100.0
STEPS = (10, 30, 100, 300, 1000)
SETTINGS = {"noise": NOISE, "lams": LAMS, "rho": RHO, "steps": STEPS}


def keys(sets: Sequence[str], repeats: int) -> list[Key]:
    """Every set, noise and lambda; a trial of all before the next."""
    return [
        {"data": name, "q": q, "lam": lam, "seed": seed}
        for seed in range(repeats) for name in sets for q in NOISE for lam in LAMS
    ]  # fmt: skip


def work(key: Key) -> list[Row]:
    """Test accuracy of the averaged f after some iterations, and of the optimum."""
    split = flipped_split(str(key["data"]), float(key["q"]), int(key["seed"]))
    n = split.y.size
    problem = problem_of(split, float(key["lam"]), RHO)
    # Gaussians have ones on their diagonal, so that samples of both parts share a bank without being normalised again
    expanded = study_kernels().expand(Schema(split.X.shape[1]))
    both = build_bank(expanded, np.vstack([split.X, split.X_test]), normalize=None)
    cross = both.block(np.arange(n, both.n), np.arange(n), np.arange(both.m))

    def row(when: str, coefficients: np.ndarray, gap: float) -> Row:
        decision = np.einsum("jti,ji->t", cross, coefficients, optimize=True)
        accuracy = float(np.mean(np.sign(decision) == split.y_test))
        return {"stopped": when, "accuracy": accuracy, "gap": gap}

    rows = []
    solver = MirrorProx(variant="paper")
    state: Any = None
    unit = float(np.sum(problem.c))
    for step in range(1, max(STEPS) + 1):
        state = solver.init(problem, None, 1e-6) if state is None else solver.step(problem, state)
        if step in STEPS:
            certificate = problem.certificate(solver.point(state))
            average = state.average
            rows.append(row(str(step), average.f.coefficients / average.weight, certificate.gap / unit))
    solution = solve(problem, make_solver("newton", problem.loss, problem.norm), Stop(1e-4, 300))
    optimum = solution.point.weights[:, None] * solution.point.beta[None, :]
    return [*rows, row("optimum", optimum, solution.certificate.gap / unit)]


def report(rows: pd.DataFrame, report: Report) -> Sequence[str]:
    """Accuracy by iteration."""
    order = [*map(str, STEPS), "optimum"]
    rows = rows.assign(stopped=rows["stopped"].astype(str))
    table = []
    for (data, q, lam), these in rows.groupby(["data", "q", "lam"], sort=False):
        line: Row = {"data": data, "q": q, "lam": lam, "trials": int(these["seed"].nunique())}
        line.update({when: mean_sd(these[these["stopped"] == when]["accuracy"]) for when in order})
        last = these[these["stopped"] == order[-2]]["gap"].median()
        table.append({**line, f"gap after {order[-2]}": float(last)})
    note = (
        f"Test accuracy (%) of StPMKL, rho = {RHO:g}, after so many iterations of accelerated mirror prox with the "
        "paper's step (averaged iterates), and at the optimum by the default solver. Splits as in the accuracy part, "
        "no intercept, nothing tuned. *Gap*: absolute, of the objective over C n, median."
    )
    report.table(table, note, "StPMKL: stopped early and converged")
    return []
