"""Theorems 1 and 2 of [OJC10], watched along runs: updates of the online stage, the radius R, the rate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from kernelweave.norms import Block
from kernelweave.solvers.online import Obscure

from ..study import Key, Report, Row
from .data import MFEAT, bind, mfeat_split, one_per_view, problem_of, several_per_view, splits_of
from .walk import Optimum, block_norm, looks_until

N, ONLINE, EPOCHS = 300, 500, 100
CS, ETAS = (100.0,), (0.5, 2.0)
EXPONENTS = (1.05, 1.50, 2.0)
#: nothing but the loss counts: the optimum of the separable problem is a separating function of least norm
HARD = 1e4
SETTINGS = {"n": N, "online": ONLINE, "epochs": EPOCHS, "hard": HARD, "version": 2}
BANKS = {6: one_per_view, 36: several_per_view}


def keys(repeats: int) -> list[Key]:
    """Every p, number of kernels, C and step."""
    return [
        {"p": p, "kernels": m, "C": C, "eta": eta, "seed": t}
        for t in range(repeats)
        for p in EXPONENTS
        for m in BANKS
        for C in CS
        for eta in ETAS
    ]


def work(key: Key) -> list[Row]:
    """Both bounds and what they bound, on one run."""
    from kernelweave._numerics.online import UPDATES

    split = mfeat_split(N, int(key["seed"]))
    p, m, C, eta = float(key["p"]), int(key["kernels"]), float(key["C"]), float(key["eta"])
    bank, _ = bind(BANKS[m](), split.X)  # Gaussians: every feature vector has length 1, as the theorems ask
    norm, q = Block(p), p / (p - 1.0)
    separating = _separating(problem_of(bank, split.y, norm, HARD))
    problem = problem_of(bank, split.y, norm, C)
    best = Optimum(problem)
    solver = Obscure(eta=eta, online_epochs=ONLINE, patience=None, iterate="averaged")
    state = solver.init(problem, None, 1e-3)
    while state.radius is None:
        state = solver.step(problem, state)
    updates, R = float(state.run.scalars[UPDATES]), float(state.radius)
    ended = state.run.epochs < ONLINE
    lam, worst = 1.0 / (C * N), 0.0
    unit = C * N
    looks = set(looks_until(EPOCHS))
    for epoch in range(1, EPOCHS + 1):
        state = solver.step(problem, state)
        if epoch in looks:
            excess = problem.primal(solver.point(state))[0] / unit - best.objective
            worst = max(worst, excess / _theorem_1(q, m, lam, R, epoch * N))
    factor = m ** (2.0 / q)
    return [
        {
            "ended": ended, "updates": updates, "updates_bound": 2 * q * (1 / eta + factor) * separating**2,
            "R": R, "R_bound": 2 * (1 + eta * factor) * separating, "optimum": best.norm, "excess_share": worst,
        }
    ]  # fmt: skip


def _separating(problem: Any) -> float:
    """Norm of a function that separates every sample by a margin of 1; infinite where none was found."""
    optimum = Optimum(problem, 1e-3)
    f = problem.bank.mix_product(optimum.point.weights, optimum.point.beta)
    own = f[problem.y > 0]
    rivals = np.where(problem.y > 0, -np.inf, f).max(axis=1)
    margin = float(np.min(own - rivals))
    t = optimum.point.weights * np.sqrt(np.maximum(problem.bank.quad(optimum.point.beta), 0.0))
    return block_norm(t, problem.norm) / margin if margin > 0 else float("inf")


def _theorem_1(q: float, m: int, lam: float, R: float, T: int) -> float:
    """The bound of Theorem 1 with delta = 1: that of the mean over the choices of samples."""
    c = np.sqrt(2.0) * m ** (1.0 / q) + lam * R
    rate = c * np.sqrt(q) * np.sqrt(1.0 + np.log(T))
    return float(rate * min(rate / (lam * T), 4.0 * R / np.sqrt(T)))


def report(rows: pd.DataFrame, report: Report) -> Sequence[str]:
    """How much of every bound is used, and whether any is broken."""
    targets = report.targets()
    rows = rows.assign(
        share_updates=rows["updates"] / rows["updates_bound"],
        share_R=rows["R"] / rows["R_bound"],
        too_small=rows["optimum"] / rows["R"],
    )
    ended = rows[rows["ended"].astype(bool)]
    targets.at_most(
        "Theorem 2: updates of the online stage over their bound, largest", ended["share_updates"].max(), 1.0
    )
    targets.at_most("Theorem 2: R over its bound, largest", ended["share_R"].max(), 1.0)
    targets.at_most("(10): norm of the optimum over R, largest", rows["too_small"].max(), 1.0)
    targets.at_most(
        "Theorem 1: excess of the averaged iterate over its bound, largest", rows["excess_share"].max(), 1.0
    )
    table: list[Row] = []
    for (p, m, C, eta), these in rows.groupby(["p", "kernels", "C", "eta"]):
        table.append(
            {
                "p": p, "kernels": int(m), "C": C, "eta": eta, "online updates": float(these["updates"].mean()),
                "of the bound": float(these["share_updates"].mean()), "R": float(these["R"].mean()),
                "R of its bound": float(these["share_R"].mean()), "optimum of R": float(these["too_small"].mean()),
                "excess of Theorem 1": float(these["excess_share"].mean()),
            }
        )  # fmt: skip
    note = (
        f"{MFEAT}; {N} to train on, {splits_of(rows)}, Gaussian kernels (length 1), 6 or 36 of "
        "them. Bounds: updates < `2q(1/eta + F^(2/q)) |u|^2`, R < `2(1 + eta F^(2/q)) |u|`, u the separating function "
        f"of least norm (the optimum at C = {HARD:g}, scaled to margin 1); the online stage ended without an update in "
        f"{len(ended)} of {len(rows)} runs. (10): `|w*| <= R`. Theorem 1 with delta = 1, for the averaged iterate "
        f"after 1 to {EPOCHS} epochs. All columns *of the bound* are shares: 1 is the bound.\n\n{targets.text()}"
    )
    report.table(table, note, "Theorems 1 and 2")
    return [str(target) for target in targets.all]
