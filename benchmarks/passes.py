"""Passes over the bank to a certified relative gap of 1e-3, for every C of the grid on the UCI sets.

Run ``python benchmarks/passes.py``; ``--quick`` takes two sets and three C and writes nothing.

Paths and searches: 30 values of C by one warm-started path against 30 cold fits; cross-validation on one bank.

Run ``python benchmarks/passes.py path``; ``--quick`` takes smaller problems and writes nothing.

Objective and certified gap against passes and seconds, on explicit features: SVRG and its rivals.

Run ``python benchmarks/passes.py convergence``; ``--quick`` takes 300 rows and writes nothing.

Which exact algorithm: second order in the weights against the others, by passes, inner solves and seconds.

Run ``python benchmarks/passes.py engines``; ``--quick`` takes a smaller second problem, one run each, writes nothing.

The SMO engine against libsvm (scikit-learn's SVC on a precomputed Gram matrix), cold and warm.

Run ``python benchmarks/passes.py svm``; ``--quick`` leaves out the larger problems and writes nothing.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import tempfile
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC

from _measure import (
    C_GRID,
    RESULTS,
    RUNS,
    SETTING,
    UCI,
    Case,
    Counts,
    Problem,
    Runner,
    Targets,
    again_in_turns,
    counted,
    generated,
    in_turns,
    machine,
    mid,
    pin,
    run_part,
    show,
    small,
    uci,
    write_table,
)
from kernelweave import MKLClassifier, MKLClassifierCV, mkl_path
from kernelweave._numerics.smo import solve_box_qp
from kernelweave.banks import Bank
from kernelweave.exceptions import KernelWeaveWarning
from kernelweave.norms import L1, Lp
from kernelweave.problems import MKLProblem
from kernelweave.solvers import Stop, registry, solve
from kernelweave_studies.svrg.data import lbfgs_values, view_problem

TOL = 1e-3
NOTE = f"""{SETTING} UCI sets: 80 % of the data, stratified, seed 0. `MKLClassifier(kernels.preset("stpmkl"), C=C)`,
every other parameter at its default: l1 norm, stopped at a certified relative gap of {TOL:g}.

*Passes*: entries of the (m, n, n) tensor read in the whole fit, over m n^2, the final certificate, computed again from
the bank, included. *SVMs*: inner solves; *SMO steps*: those of all of them. *Seconds*: the fit with the building of
the bank, median of {{repeats}}; counts do not depend on the machine, seconds do.

{{sources}}

{{targets}}"""


def row(problem: Problem, C: float, repeats: int) -> dict[str, Any]:
    """One fit, counted, and its seconds."""

    def fit() -> MKLClassifier:
        return MKLClassifier(problem.kernels, C=C, tol=TOL).fit(problem.X, problem.y)

    with counted() as counts:
        model = fit()
    seconds = in_turns({"fit": fit}, repeats)["fit"].seconds
    return {
        "problem": problem.name,
        "n": problem.n,
        "m": problem.m,
        "C": C,
        "passes": model.n_passes_,
        "iterations": model.n_iter_,
        "SVMs": counts.solves,
        "SMO steps": counts.steps,
        "kernels in use": int((model.weights_ > 0).sum()),
        "support": int(model.support_.size),
        "relative gap": model.certificate_.relative_gap,
        "seconds": seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two sets, three C, nothing is written")
    quick = parser.parse_args().quick
    pin()
    # a fit that stops short shows in the table: its gap is the certified one
    warnings.simplefilter("ignore", KernelWeaveWarning)
    print(machine())
    repeats = 1 if quick else 5
    problems = [uci(name) for name in (("ionosphere", "heart") if quick else UCI)]
    row(problems[0], 1.0, 1)  # compiles
    rows = [row(p, C, repeats) for p in problems for C in (C_GRID[:3] if quick else C_GRID)]
    problems.append(mid())
    rows.append(row(problems[-1], 1.0, repeats))
    show(rows)
    targets = Targets()
    standard = [r for r in rows if r["C"] == 1.0 and r["problem"].startswith(("ionosphere", "mid"))]
    for r in standard:
        targets.at_most(f"passes, standard problem {r['problem']}, C = 1", r["passes"], 12)
    worst = max(rows[:-1], key=lambda r: r["passes"])
    targets.at_most(f"most passes on the grid ({worst['problem']}, C = {worst['C']:g})", worst["passes"], 25)
    targets.at_most("largest certified relative gap of all fits", max(r["relative gap"] for r in rows), TOL)
    if not quick:
        sources = "\n".join(f"- {p.source}" for p in problems)
        note = NOTE.format(repeats=repeats, sources=sources, targets=targets.text())
        write_table("passes", rows, "python benchmarks/passes.py", note)


# Paths over C and cross-validation on one bank.

CS = np.logspace(-2, 3, 30)
PATH_NOTE = f"""\
{SETTING} l1 norm, every fit to a certified relative gap of 1e-3; seconds are medians of {{repeats}}, and
the building of the bank counts wherever it happens.

*path*: 30 values of C from 1e-2 to 1e3: `kernelweave.mkl_path`, one bank and every fit started from the last, against
30 calls of `MKLClassifier(C=C).fit`. *search*: 5 stratified folds x 10 values of C from 1e-2 to 1e3 and a last fit of
all samples: `MKLClassifierCV`, folds as weights on one bank, against `GridSearchCV(MKLClassifier(), ...)`. Kernels
are normalised on the training samples of each fold on both sides. *Agreement*: the largest relative difference of the
objectives along the path, the largest difference of the mean scores of the search.

{{sources}}

{{targets}}"""


def cold(problem: Problem, Cs: np.ndarray) -> list[MKLClassifier]:
    """A fit from scratch for every C."""
    return [MKLClassifier(problem.kernels, C=C).fit(problem.X, problem.y) for C in Cs]


def path_row(problem: Problem, Cs: np.ndarray, repeats: int) -> dict[str, Any]:
    """The path against the cold fits."""
    timed = in_turns(
        {
            "warm": lambda: mkl_path(problem.X, problem.y, problem.kernels, Cs=Cs),
            "cold": lambda: cold(problem, Cs),
        },
        repeats,
    )
    (warm_seconds, path), (cold_seconds, fits) = timed["warm"], timed["cold"]
    warm = np.array([bounds.primal for bounds in path.certificates])
    alone = np.array([fit.certificate_.primal for fit in fits])
    gaps = [bounds.relative_gap for bounds in path.certificates] + [
        fit.certificate_.relative_gap for fit in fits
    ]
    return {
        "what": "path",
        "problem": problem.title,
        "fits": len(Cs),
        "seconds": warm_seconds,
        "cold seconds": cold_seconds,
        "ratio": cold_seconds / warm_seconds,
        "passes": float(np.sum(path.passes)),
        "cold passes": float(sum(fit.n_passes_ for fit in fits)),
        "largest gap": max(gaps),
        "agreement": float(np.max(np.abs(warm - alone) / alone)),
    }


def search_row(problem: Problem, Cs: np.ndarray, repeats: int) -> dict[str, Any]:
    """Cross-validation on one bank against scikit-learn's search."""
    grid, folds = {"C": list(Cs)}, StratifiedKFold(5)
    timed = in_turns(
        {
            "shared": lambda: MKLClassifierCV(problem.kernels, Cs=Cs, cv=folds).fit(problem.X, problem.y),
            "search": lambda: GridSearchCV(MKLClassifier(problem.kernels), grid, cv=folds).fit(
                problem.X, problem.y
            ),
        },
        repeats,
    )
    (shared_seconds, shared), (search_seconds, search) = timed["shared"], timed["search"]
    scores = shared.cv_results_.groupby("C")["score"].mean().to_numpy()
    return {
        "what": "search",
        "problem": problem.title,
        "fits": 5 * len(Cs) + 1,
        "seconds": shared_seconds,
        "cold seconds": search_seconds,
        "ratio": search_seconds / shared_seconds,
        "passes": float(shared.cv_results_["passes"].sum()),
        "cold passes": "not counted",
        "largest gap": float(shared.cv_results_["relative_gap"].max()),
        "agreement": float(np.max(np.abs(scores - search.cv_results_["mean_test_score"]))),
    }


def path_main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller problems, nothing is written")
    quick = parser.parse_args().quick
    pin()
    print(machine())
    repeats = 1 if quick else 3
    first = generated(400, 10, name="mid, smaller") if quick else mid()
    second = generated(200 if quick else 500, 10, name="searched")
    tiny = generated(60, 2)
    cold(tiny, CS[:1])  # compiles
    rows = [path_row(first, CS, repeats)]
    show(rows)
    rows.append(search_row(second, np.logspace(-2, 3, 10), repeats))
    show(rows[1:])
    targets = Targets()
    if not quick:  # the ratio asked for is that of the mid problem
        targets.at_least("mid: seconds of 30 cold fits over those of the path", rows[0]["ratio"], 6)
    targets.at_most("path: largest certified relative gap", rows[0]["largest gap"], 1e-3)
    targets.at_most("path: relative difference to the cold objectives", rows[0]["agreement"], 2e-3)
    targets.at_least("seconds of GridSearchCV over those of MKLClassifierCV", rows[1]["ratio"], 1)
    if not quick:
        sources = "\n".join(f"- {problem.name}: {problem.source}" for problem in (first, second))
        note = PATH_NOTE.format(repeats=repeats, sources=sources, targets=targets.text())
        write_table("path", rows, "python benchmarks/passes.py path", note)


# Objective and gap against passes and seconds on explicit features.

C, P = 1.0, 1.5
ACCURACIES = (1e-2, 1e-4, 1e-8)
GAPS = (1e-2, 1e-4)
SECONDS = 30.0
CONVERGENCE_NOTE = """\
Problem of random cosines of `kernelweave reproduce svrg`: n = {n}, {F} views of 20 features, logistic loss,
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


def convergence_main() -> None:
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
    note = CONVERGENCE_NOTE.format(
        n=n, F=F, C=C, P=P, seconds=SECONDS, missing=missing, targets=targets.text()
    )
    write_table("convergence", rows, "python benchmarks/passes.py convergence", note)
    with open(RUNS / "convergence_curves.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["method", "passes", "seconds", "suboptimality", "certified_gap"])
        for method, points in curves.items():
            kept = np.unique(np.geomspace(1, len(points), 60).astype(int) - 1)
            writer.writerows([method, *(f"{value:.6g}" for value in points[k])] for k in kept)
    draw(curves).savefig(RESULTS / "convergence.png", dpi=110)


# Which exact algorithm.

# The picture: certified gap against passes and against seconds.

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "images" / "performance_engines.png"
#: line style, width and grey of every solver: they differ without colour, and the first one stands out
LOOKS: dict[str, dict[str, Any]] = {
    "newton": {"linestyle": "-", "linewidth": 2.6, "color": "#12304a", "marker": "o", "markersize": 4},
    "level": {"linestyle": "--", "linewidth": 1.5, "color": "#b4521a"},
    "silp": {"linestyle": ":", "linewidth": 1.9, "color": "#6b7f2a"},
    "simplemkl": {"linestyle": "-.", "linewidth": 1.5, "color": "#777777"},
    "subgradient": {"linestyle": (0, (6, 1, 1, 1, 1, 1)), "linewidth": 1.4, "color": "#5b6fa8"},
}
PASSES_COLUMN, SECONDS_COLUMN, GAP_COLUMN = 2, 1, 5  # columns of the trace
FLOOR = 3e-8


def draw_engines(first: list[Any], second: list[Any], path: Path | None) -> None:
    """Draw the runs of two cases, one a row; without a path into a file that is thrown away, to see that it works."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(10, 7.4), layout="constrained", sharey="row")
    for panels, runs in zip(axes, (first, second), strict=True):
        for ax, column, what in zip(
            panels, (PASSES_COLUMN, SECONDS_COLUMN), ("passes over the bank", "seconds"), strict=True
        ):
            _panel(ax, runs, column, what)
        problem, tol = runs[0].case.problem, runs[0].case.tol
        panels[0].set_ylabel("certified relative gap")
        panels[0].set_title(f"{problem.title}, l1 norm, to {_power(tol)}", loc="left", fontsize=11)
    with tempfile.TemporaryDirectory() as folder:
        target = path or Path(folder) / "picture.png"
        target.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(target, dpi=130)
    plt.close(figure)


def _power(value: float) -> str:
    return f"$10^{{{round(np.log10(value))}}}$"


def _panel(ax: Any, runs: list[Any], column: int, what: str) -> None:
    ends = []
    for run in runs:
        trace = np.array(run.solution.trace)
        x, gap = trace[:, column], np.maximum(np.minimum.accumulate(trace[:, GAP_COLUMN]), FLOOR)
        # steps: between two iterations nothing is certified
        ax.plot(
            x, gap, drawstyle="steps-post", zorder=3 if run.solver == "newton" else 2, **LOOKS[run.solver]
        )
        ends.append((run.solver, x[-1], gap[-1]))
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel(what)
    tol = runs[0].case.tol
    ax.axhline(tol, color="#888888", linewidth=0.9)
    ax.annotate("asked for", (0.0, tol), (4, 3), xycoords=("axes fraction", "data"), textcoords="offset points",
                ha="left", fontsize=8.5, color="#666666")  # fmt: skip
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(color="#e3e6e9", linewidth=0.7)
    ax.set_axisbelow(True)
    ax.set_ylim(0.3 * min(gap for _, _, gap in ends), 3.0)
    _label_curves(ax, ends)


def _label_curves(ax: Any, ends: list[tuple[str, float, float]]) -> None:
    """The first name beside its line, the others in the margin, in the order of their gaps, with thin leaders."""
    from matplotlib.patheffects import withStroke

    first, *others = ends
    clear = [
        withStroke(linewidth=3, foreground="white")
    ]  # the line of the tolerance may run through the name
    ax.annotate(
        first[0], first[1:], (7, 0), textcoords="offset points", va="center",
        color=LOOKS[first[0]]["color"], fontsize=10, fontweight="bold", path_effects=clear,
    )  # fmt: skip
    low, high = np.log10(ax.get_ylim())
    height = -np.inf
    for name, x, gap in sorted(others, key=lambda end: end[2]):
        # as a share of the axis, pushed up where it would touch the one below
        height = max((np.log10(gap) - low) / (high - low), height + 0.06)
        color = LOOKS[name]["color"]
        leader = {"arrowstyle": "-", "color": color, "linewidth": 0.7, "shrinkA": 0, "shrinkB": 2}
        ax.annotate(
            name, (x, gap), (1.02, height), textcoords="axes fraction", va="center", color=color, fontsize=9.5,
            arrowprops={**leader, "relpos": (0.0, 0.5)},
        )  # fmt: skip


OF_L1 = ("newton", "level", "silp", "simplemkl", "subgradient")
OF_LP = ("newton", "lp_analytic", "subgradient")
PS = (1.1, 1.5, 2.0)
ENGINES_NOTE = f"""\
{SETTING} C = 1; stopped at the certified relative gap of the column *to*, after {{cap:g}} s or after the
solver's own number of iterations, whichever came first (*ended*). All solvers share the bank, which is built before,
the SMO engine, its warm starts and the judge that computes the gap; inner problems are solved to a share of the gap
that is left. `subgradient` is projected gradient descent with spectral step lengths.

*Passes*: entries of the (m, n, n) tensor read, over m n^2. *SVMs*: inner solves; *SMO steps*: those of all of them.
*Seconds*: median of {{repeats}}, of one run where that took more than {{long:g}} s. *Times newton*: seconds over
those of `newton` on the same line's problem; a lower bound where the solver did not get there.

{{sources}}

{{targets}}"""


class Engine(Runner):
    """A solver of the package, its inner solves and their steps counted the first time."""

    counts: Counts

    def first(self) -> None:
        """Solve, timed and counted."""
        with counted() as self.counts:
            self.once()


def measure(case: Case, bank: Bank, repeats: int, cap: float, long: float) -> list[Engine]:
    """Run all solvers once, counted, then the quick ones in turns."""
    runners = [Engine(case, bank, solver, cap) for solver in case.solvers]
    for runner in runners:
        runner.first()
    again_in_turns(runners, repeats, long)
    return runners


def engine_row(run: Engine, newton: Engine) -> dict[str, Any]:
    """Return a line of the table."""
    return {
        "problem": run.case.problem.name,
        "norm": run.case.norm_name,
        "to": run.case.tol,
        "solver": run.solver,
        "passes": run.solution.passes,
        "SVMs": run.counts.solves,
        "SMO steps": run.counts.steps,
        "seconds": run.median,
        "times newton": run.times(newton),
        "relative gap": run.solution.certificate.relative_gap,
        "ended": run.ended,
        "runs": len(run.seconds),
    }


def engine_cases(quick: bool) -> list[Case]:
    """The l1 norm on both problems, to a fine gap on the small one, and lp norms."""
    first, second = small(), generated(400, 10, name="mid, smaller") if quick else mid()
    out = [Case(first, "l1", tol, OF_L1) for tol in (1e-3, 1e-6)] + [Case(second, "l1", 1e-3, OF_L1)]
    for p in PS:
        out += [Case(first, p, tol, OF_LP) for tol in (1e-3, 1e-6)] + [Case(second, p, 1e-3, OF_LP)]
    return out


def judge(what: str, runs: list[list[Engine]], targets: Targets) -> None:
    """Check that Newton reaches the gap, and that no other that does is quicker, by passes or seconds, in any case."""
    certified = {_label(run[0]): run[0].solution.certificate.relative_gap / run[0].case.tol for run in runs}
    passes: dict[str, float] = {}
    seconds: dict[str, float] = {}
    for newton, *others in runs:
        for other in others:
            if other.reached:
                passes[_label(other)] = other.solution.passes / newton.solution.passes
                seconds[_label(other)] = other.median / newton.median
    worst = max(certified, key=lambda label: certified[label])
    targets.at_most(f"{what}: certified gap over the one asked for ({worst})", certified[worst], 1.0)
    for unit, ratios in (("passes", passes), ("seconds", seconds)):
        if ratios:
            best = min(ratios, key=lambda label: ratios[label])
            targets.at_least(f"{what}: {unit} of the best other over newton's ({best})", ratios[best], 1.0)


def _label(run: Engine) -> str:
    return f"{run.solver}, {run.case.problem.name}, {run.case.norm_name}, to {run.case.tol:g}"


def engines_main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a smaller second problem, nothing is written")
    parser.add_argument("--cap", type=float, default=None, help="most seconds a run (60, quick: 3)")
    options = parser.parse_args()
    pin()
    quick = options.quick
    cap, repeats, long = options.cap or (3.0 if quick else 60.0), 1 if quick else 9, 10.0
    print(machine())
    everything = engine_cases(quick)
    banks = {problem.name: problem.bank() for problem in (everything[0].problem, everything[2].problem)}
    for case in (replace(everything[0], tol=0.1), replace(everything[3], tol=0.1)):  # compiles
        measure(case, banks[case.problem.name], 1, 1.0, 0.0)
    runs = []
    for case in everything:
        runs.append(measure(case, banks[case.problem.name], repeats, cap, long))
        show([engine_row(run, runs[-1][0]) for run in runs[-1]])
    targets = Targets()
    judge("l1", [group for group in runs if group[0].case.norm == "l1"], targets)
    judge("lp", [group for group in runs if group[0].case.norm != "l1"], targets)
    draw_engines(runs[1], runs[2], None if quick else PICTURE)
    if not quick:
        sources = "\n".join(f"- {p}" for p in dict.fromkeys(case.problem.source for case in everything))
        note = ENGINES_NOTE.format(
            cap=cap, repeats=repeats, long=long, sources=sources, targets=targets.text()
        )
        rows = [engine_row(run, group[0]) for group in runs for run in group]
        write_table("engines", rows, "python benchmarks/passes.py engines", note)


# The SMO engine against libsvm.

SVM_TOL = 1e-3
REPEATS = 5
SVM_NOTE = f"""One thread, seconds, median of {REPEATS} after compilation, both to the tolerance {SVM_TOL:g}; libsvm is
`SVC(kernel="precomputed", tol={SVM_TOL:g}, cache_size=1000)`, with shrinking. *Warm*: 5 % of the kernel weights
moved, and the engine started from the solution for the old ones; libsvm cannot be started, so it solves the new
problem from scratch. *Objective*: the relative difference of the dual objectives, positive where the engine's is
better. The last two rows give the range and the geometric mean of the ratios."""


def sample(n):
    x, y = make_classification(
        n, 20, n_informative=8, n_redundant=4, flip_y=0.05, class_sep=0.8, random_state=0
    )
    return (x - x.mean(axis=0)) / x.std(axis=0), 2.0 * y - 1.0


def grams(kind, x):
    """The Gram matrix, and the one after 5 % of the weight moved."""
    d = x.shape[1]
    if kind == "linear":
        parts, weights, moved = [x @ x.T / d, x[:, : d // 2] @ x[:, : d // 2].T / d], [1.0, 0.0], [0.95, 0.05]
    elif kind == "mixture of 6":
        parts = [rbf_kernel(x, gamma=g / d) for g in (0.03, 0.1, 0.3, 1.0, 3.0)] + [x @ x.T / d]
        weights = np.array([0.3, 0.2, 0.2, 0.1, 0.1, 0.1])
        moved = weights * np.array([0.95, 1.05, 0.95, 1.05, 0.95, 1.05])
    elif kind == "mixture of 2":
        parts = [rbf_kernel(x, gamma=0.2 / d), rbf_kernel(x, gamma=5.0 / d)]
        weights, moved = [0.7, 0.3], [0.65, 0.35]
    else:
        gamma = float(kind.split()[-1])
        parts, weights, moved = (
            [rbf_kernel(x, gamma=g / d) for g in (gamma, 2 * gamma)],
            [1.0, 0.0],
            [0.95, 0.05],
        )
    return tuple(
        np.ascontiguousarray(sum(w * part for w, part in zip(ws, parts, strict=True)))
        for ws in (weights, moved)
    )


def timed(*solvers):
    """Median seconds and last result of each; in turns, so that a busy moment is shared."""
    seconds, results = [[] for _ in solvers], [None for _ in solvers]
    for _ in range(REPEATS):
        for k, solver in enumerate(solvers):
            start = time.perf_counter()
            results[k] = solver()
            seconds[k].append(time.perf_counter() - start)
    return [(statistics.median(times), result) for times, result in zip(seconds, results, strict=True)]


def ours(K, y, c, beta=None):
    fit = solve_box_qp(K, y, np.minimum(0.0, c * y), np.maximum(0.0, c * y), tol=SVM_TOL, beta=beta)
    assert fit.converged
    return fit.beta, fit.iterations


def libsvm(K, y, c):
    model = SVC(C=c, kernel="precomputed", tol=SVM_TOL, cache_size=1000, shrinking=True).fit(K, y)
    beta = np.zeros(y.size)
    beta[model.support_] = model.dual_coef_[0]
    return beta, int(model.n_iter_[0])


def difference(K, y, beta, other):
    """Relative difference of the dual objectives of two sets of coefficients."""
    values = [y @ b - 0.5 * b @ K @ b for b in (beta, other)]
    return float((values[0] - values[1]) / abs(values[1]))


def svm_row(kind, n, c):
    x, y = sample(n)
    K, moved = grams(kind, x)
    (cold, (beta, steps)), (libsvm_cold, (other, libsvm_steps)) = timed(
        lambda: ours(K, y, c), lambda: libsvm(K, y, c)
    )
    (warm, (beta_moved, _)), (libsvm_moved, (other_moved, _)) = timed(
        lambda: ours(moved, y, c, beta), lambda: libsvm(moved, y, c)
    )
    return {
        "kernel": kind,
        "n": n,
        "C": c,
        "free": int(np.sum((np.abs(beta) > 0.0) & (np.abs(beta) < c))),
        "steps": steps,
        "libsvm steps": libsvm_steps,
        "cold": cold,
        "libsvm": libsvm_cold,
        "cold ratio": libsvm_cold / cold,
        "objective": difference(K, y, beta, other),
        "warm": warm,
        "libsvm, moved": libsvm_moved,
        "warm ratio": libsvm_moved / warm,
        "warm objective": difference(moved, y, beta_moved, other_moved),
    }


def summary(rows):
    """The range and the geometric mean of the ratios, as rows of the same table."""
    blank = dict.fromkeys(rows[0], "")
    ends, means = blank | {"kernel": "range"}, blank | {"kernel": "geometric mean"}
    for key in ("cold ratio", "warm ratio"):
        ratios = [row[key] for row in rows]
        ends[key] = f"{min(ratios):.2f} to {max(ratios):.2f}"
        means[key] = float(np.exp(np.mean(np.log(ratios))))
    return [ends, means]


def svm_main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="n = 500 only, nothing is written")
    quick = parser.parse_args().quick
    pin()
    print(machine())
    x, y = sample(60)
    ours(grams("linear", x)[0], y, 1.0)
    rows = []
    kinds = (
        "gaussian 0.1",
        "gaussian 0.5",
        "gaussian 1",
        "gaussian 5",
        "linear",
        "mixture of 2",
        "mixture of 6",
    )
    for kind in kinds:
        for n in (500,) if quick else (500, 1000, 2000):
            for c in (1.0, 100.0):
                rows.append(svm_row(kind, n, c))
                shown = {k: f"{v:.3g}" if isinstance(v, float) else v for k, v in rows[-1].items()}
                print("  ".join(f"{k} {v}" for k, v in shown.items()), flush=True)
    rows += summary(rows)
    print(rows[-2]["cold ratio"], rows[-2]["warm ratio"], rows[-1]["cold ratio"], rows[-1]["warm ratio"])
    if not quick:
        write_table("svm_engine", rows, "python benchmarks/passes.py svm", SVM_NOTE)


if __name__ == "__main__":
    run_part(main, path=path_main, convergence=convergence_main, engines=engines_main, svm=svm_main)
