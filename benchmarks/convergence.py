"""Objective and certified gap against passes and seconds, on explicit features: SVRG and its rivals.

Run ``python benchmarks/convergence.py``; ``--quick`` takes 300 rows and writes nothing.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from typing import Any

import numpy as np

from _report import RESULTS, RUNS, Targets, machine, show, write_table
from _threads import pin
from kernelweave.exceptions import KernelWeaveWarning
from kernelweave.norms import L1, Lp
from kernelweave.problems import MKLProblem
from kernelweave.solvers import Stop, registry, solve
from kernelweave_studies.svrg.data import lbfgs_values, view_problem

C, P = 1.0, 1.5
ACCURACIES = (1e-2, 1e-4, 1e-8)
GAPS = (1e-2, 1e-4)
SECONDS = 30.0
NOTE = """Problem of random cosines of `kernelweave reproduce svrg`: n = {n}, {F} views of 20 features, logistic loss,
C = {C:g}, no intercept. Most methods minimise the same objective, p = {P:g}; *level* has l1 on the same data, and *ufo*
its own norm: each is measured against its own optimum. Suboptimality `(f - f*) / f*` is that of the best point so far.
*lbfgs* is shown by the objective of its own iterates, without a certificate; the solver `lbfgs` certifies by
coefficients that all kernels share, seldom: *lbfgs (solver)*. A full gradient is a pass, n steps on samples are one;
for the solvers on kernel matrices (newton, lp_analytic, level) a pass is one over the {F} matrices of n x n, n / 20
times as much arithmetic. One thread; at most {seconds:g} s for each, on a machine that was shared: see the load. An
empty cell: not reached. No other solver has the norm of *ufo*: its optimum is known no better than by its own last gap,
which is where its suboptimality ends.

{missing}{targets}"""


def problems(n: int, F: int) -> dict[str, tuple[Any, Any]]:
    """Method -> (what makes its problem, its solver); those of which the solver is not there are left out."""

    def with_norm(norm: Any) -> Any:
        def make() -> MKLProblem:
            base = view_problem(0, P, C, n=n, views=F)
            return MKLProblem(base.bank, base.loss, norm, base.y, C, None, False)

        return make

    lp = with_norm(Lp(P))
    chosen: dict[str, tuple[Any, Any]] = {
        "svrg": (lp, registry["svrg"]()),
        "svrg, as printed": (lp, registry["svrg"](variant="paper", accuracy=1e-8)),
        "lbfgs (solver)": (lp, registry["lbfgs"]()),
        "newton": (lp, registry["newton"]()),
        "lp_analytic": (lp, registry["lp_analytic"]()),
        "level": (with_norm(L1()), registry["level"]()),
    }
    for name in ("pegasos", "obscure"):
        if name in registry:
            chosen[name] = (lp, registry[name]())
    if "ufo" in registry:
        from kernelweave.norms import Elastic

        chosen["ufo"] = (with_norm(Elastic(alpha=0.01)), registry["ufo"]())
    return chosen


def curve(make: Any, solver: Any) -> tuple[np.ndarray, float]:
    """Passes, seconds, objective and certified gap of a run; and the best lower bound."""
    solve(make(), solver, Stop(tol=1e-10, max_iter=2))  # compiles
    solution = solve(make(), solver, Stop(tol=1e-9, max_iter=20_000, max_seconds=SECONDS))
    points = np.array([(row[2], row[1], row[3], row[5]) for row in solution.trace])
    return points, solution.certificate.dual


def first(points: np.ndarray, column: int, limit: float, what: int) -> float:
    """Passes (0) or seconds (1) at which a column first is at most a limit."""
    reached = np.flatnonzero(points[:, column] <= limit)
    return float(points[reached[0], what]) if reached.size else np.nan


def line(method: str, points: np.ndarray) -> dict[str, Any]:
    """A row of the table."""
    row: dict[str, Any] = {"method": method}
    for accuracy in ACCURACIES:
        row[f"passes to {accuracy:g}"] = first(points, 2, accuracy, 0)
        row[f"s to {accuracy:g}"] = first(points, 2, accuracy, 1)
    for gap in GAPS:
        row[f"passes to a certified {gap:g}"] = first(points, 3, gap, 0)
        row[f"s to a certified {gap:g}"] = first(points, 3, gap, 1)
    row["last gap"] = float(points[-1, 3])
    return row


def draw(curves: dict[str, np.ndarray]) -> Any:
    """Four panels: suboptimality and gap against passes and seconds."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.5, 7.0), layout="constrained")
    axes = figure.subplots(2, 2, sharey="row", sharex="col")
    for number, (method, points) in enumerate(curves.items()):
        style = {
            "color": f"C{number}" if number < 10 else "black",
            "ls": "-" if method.startswith("svrg") else "--",
        }
        width = 2.2 if method == "svrg" else 1.2
        for row, column in ((0, 2), (1, 3)):
            for at in (0, 1):
                values = np.clip(points[:, column], 1e-10, None)
                axes[row, at].loglog(np.maximum(points[:, at], 1e-4), values, label=method, lw=width, **style)
    axes[0, 0].set_ylabel("relative suboptimality")
    axes[1, 0].set_ylabel("certified relative gap")
    axes[1, 0].set_xlabel("passes")
    axes[1, 0].set_xlim(left=0.8)
    axes[1, 1].set_xlabel("seconds")
    for ax in axes.ravel():
        ax.set_ylim(1e-10, 3.0)
        ax.grid(alpha=0.3)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside right upper", fontsize="small")
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="300 rows, nothing is written")
    quick = parser.parse_args().quick
    pin()
    warnings.simplefilter("ignore", KernelWeaveWarning)
    print(machine())
    n, F = (300, 10) if quick else (2000, 10)
    chosen = problems(n, F)
    best: dict[int, float] = {}
    curves: dict[str, np.ndarray] = {}
    for method, (make, solver) in chosen.items():
        curves[method], bound = curve(make, solver)
        best[id(make)] = max(bound, best.get(id(make), -np.inf))
        print(method, curves[method][-1], flush=True)
    lp = chosen["svrg"][0]
    curves["lbfgs"] = np.array([(*point, np.nan) for point in lbfgs_values(lp(), 2000)])
    for method, points in curves.items():
        f = best[id(chosen.get(method, chosen["svrg"])[0])]
        points[:, 2] = (points[:, 2] - f) / f
    rows = [line(method, points) for method, points in curves.items()]
    show(rows)
    targets = Targets()
    reached = rows[0]["passes to 1e-08"]
    targets.at_most(f"passes of SVRG to 1e-8, p = {P:g}, n = {n}", reached, 62)
    if quick:
        return
    absent = [name for name in ("pegasos", "ufo", "obscure") if name not in registry]
    missing = f"**Not run**: {', '.join(absent)}: no solver of that name.\n\n" if absent else ""
    note = NOTE.format(n=n, F=F, C=C, P=P, seconds=SECONDS, missing=missing, targets=targets.text())
    write_table("convergence", rows, "python benchmarks/convergence.py", note)
    with open(RUNS / "convergence_curves.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["method", "passes", "seconds", "suboptimality", "certified_gap"])
        for method, points in curves.items():
            kept = np.unique(np.geomspace(1, len(points), 60).astype(int) - 1)
            writer.writerows([method, *(f"{value:.6g}" for value in points[k])] for k in kept)
    draw(curves).savefig(RESULTS / "convergence.png", dpi=110)


if __name__ == "__main__":
    main()
