"""StPMKL with a budget that binds against l1-MKL at the lambda that the equivalence names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from kernelweave.losses import Hinge
from kernelweave.norms import L1
from kernelweave.problems import MKLProblem
from kernelweave.solvers import Stop, make_solver, solve

from ..study import Key, Report, Row
from .data import flipped_split, problem_of

LAMS = (0.1, 0.03, 0.01, 0.003, 0.001)
SHARES = (0.2, 0.4, 0.6)
NOISE = 0.2
TOL = 1e-7
SETTINGS = {"lams": LAMS, "shares": SHARES, "tol": TOL}


def keys(sets: Sequence[str]) -> list[Key]:
    """Every set, lambda and budget."""
    return [{"data": name, "lam": lam, "share": share} for name in sets for lam in LAMS for share in SHARES]


def _decision(problem: MKLProblem) -> tuple[np.ndarray, Any]:
    solution = solve(problem, make_solver("newton", problem.loss, problem.norm), Stop(TOL, 300))
    return problem.bank.mix_product(solution.point.weights, solution.point.beta), solution.certificate


def work(key: Key) -> list[Row]:
    """Signs of StPMKL against those of l1-MKL at ``lam r``, and as a control at lam itself."""
    lam, share = float(key["lam"]), float(key["share"])
    split = flipped_split(str(key["data"]), NOISE, 0)
    n = split.y.size
    problem = problem_of(split, lam, share * n)
    f, certificate = _decision(problem)
    r = float(certificate.margin)
    row: Row = {"r": r, "gap": certificate.relative_gap}
    if r <= 1e-4:  # the classifier is zero: there is nothing to agree on
        return [row]
    for name, other in (("agreement", lam * r), ("control", lam)):
        plain = MKLProblem(problem.bank, Hinge(), L1(), problem.y, 1.0 / (other * n), fit_intercept=False)
        g, _ = _decision(plain)
        scale = r if name == "agreement" else 1.0
        row[name] = float(np.mean(np.sign(f) == np.sign(g)))
        row[f"{name}_difference"] = float(np.max(np.abs(f - scale * g)) / np.max(np.abs(f)))
    return [row]


def report(rows: pd.DataFrame, report: Report) -> Sequence[str]:
    """Agreement along the path of lambda."""
    targets = report.targets()
    binding = rows[(rows["r"] > 1e-4) & (rows["r"] < 1.0 - 1e-6)]
    targets.at_least("share of signs that agree, the least", float(binding["agreement"].min()), 1.0 - 1e-3)
    table = [
        {
            "data": data, "lam": lam, "problems": len(these), "r, least": float(these["r"].min()),
            "signs that agree at lam r, least": float(these["agreement"].min()),
            "largest difference of values": float(these["agreement_difference"].max()),
            "signs that agree at lam, least": float(these["control"].min()),
        }
        for (data, lam), these in binding.groupby(["data", "lam"], sort=False)
    ]  # fmt: skip
    note = (
        "StPMKL and l1-MKL at lam r, both solved to a certified relative gap of 1e-7; r is one minus the loss of the "
        "last sample that the budget reaches. Training samples, 20 % of the labels flipped, budgets of 0.2, 0.4 and "
        "0.6 n, only those that bind. Values are compared after multiplying those of l1-MKL by r. The last column, a "
        "control: l1-MKL at lam itself.\n\n" + targets.text()
    )
    report.table(table, note, "StPMKL is l1-MKL at a smaller lambda")
    report.picture(_draw(binding))
    return [str(target) for target in targets.all]


def _draw(rows: pd.DataFrame) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    ax = figure.subplots()
    for k, (data, these) in enumerate(rows.groupby("data", sort=False)):
        means = these.groupby("lam")[["agreement", "control"]].mean()
        ax.semilogx(means.index, 100 * means["agreement"], color=f"C{k}", marker="o", label=str(data))
        ax.semilogx(means.index, 100 * means["control"], color=f"C{k}", ls=":", marker="x")
    ax.plot([], [], color="0.4", marker="o", label="l1-MKL at lam r")
    ax.plot([], [], color="0.4", ls=":", marker="x", label="l1-MKL at lam")
    ax.set_xlabel("lam")
    ax.set_ylabel("training samples with StPMKL's sign, %")
    ax.legend(fontsize="small", ncols=2)
    return figure
