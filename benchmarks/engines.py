"""Which exact algorithm: second order in the weights against the others, by passes, inner solves and seconds.

Run ``python benchmarks/engines.py``; ``--quick`` takes a smaller second problem, one run each and writes nothing.

The SMO engine against libsvm (scikit-learn's SVC on a precomputed Gram matrix), cold and warm.

Run ``python benchmarks/engines.py svm``; ``--quick`` leaves out the larger problems and writes nothing.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from _measure import Counts, counted, pin
from _problems import SETTING, Case, Runner, generated, in_turns, mid, small
from _report import Targets, machine, run_part, show, write_table
from kernelweave.banks import Bank

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
PASSES, SECONDS, GAP = 2, 1, 5  # columns of the trace
FLOOR = 3e-8


def draw(first: list[Any], second: list[Any], path: Path | None) -> None:
    """Draw the runs of two cases, one a row; without a path into a file that is thrown away, to see that it works."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(10, 7.4), layout="constrained", sharey="row")
    for row, runs in zip(axes, (first, second), strict=True):
        for ax, column, what in zip(row, (PASSES, SECONDS), ("passes over the bank", "seconds"), strict=True):
            _panel(ax, runs, column, what)
        problem, tol = runs[0].case.problem, runs[0].case.tol
        row[0].set_ylabel("certified relative gap")
        row[0].set_title(f"{problem.title}, l1 norm, to {_power(tol)}", loc="left", fontsize=11)
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
        x, gap = trace[:, column], np.maximum(np.minimum.accumulate(trace[:, GAP]), FLOOR)
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


L1 = ("newton", "level", "silp", "simplemkl", "subgradient")
LP = ("newton", "lp_analytic", "subgradient")
PS = (1.1, 1.5, 2.0)
NOTE = f"""{SETTING} C = 1; stopped at the certified relative gap of the column *to*, after {{cap:g}} s or after the
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
    in_turns(runners, repeats, long)
    return runners


def row(run: Engine, newton: Engine) -> dict[str, Any]:
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


def cases(quick: bool) -> list[Case]:
    """The l1 norm on both problems, to a fine gap on the small one, and lp norms."""
    first, second = small(), generated(400, 10, name="mid, smaller") if quick else mid()
    out = [Case(first, "l1", tol, L1) for tol in (1e-3, 1e-6)] + [Case(second, "l1", 1e-3, L1)]
    for p in PS:
        out += [Case(first, p, tol, LP) for tol in (1e-3, 1e-6)] + [Case(second, p, 1e-3, LP)]
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a smaller second problem, nothing is written")
    parser.add_argument("--cap", type=float, default=None, help="most seconds a run (60, quick: 3)")
    options = parser.parse_args()
    pin()
    quick = options.quick
    cap, repeats, long = options.cap or (3.0 if quick else 60.0), 1 if quick else 9, 10.0
    print(machine())
    everything = cases(quick)
    banks = {problem.name: problem.bank() for problem in (everything[0].problem, everything[2].problem)}
    for case in (replace(everything[0], tol=0.1), replace(everything[3], tol=0.1)):  # compiles
        measure(case, banks[case.problem.name], 1, 1.0, 0.0)
    runs = []
    for case in everything:
        runs.append(measure(case, banks[case.problem.name], repeats, cap, long))
        show([row(run, runs[-1][0]) for run in runs[-1]])
    targets = Targets()
    judge("l1", [group for group in runs if group[0].case.norm == "l1"], targets)
    judge("lp", [group for group in runs if group[0].case.norm != "l1"], targets)
    draw(runs[1], runs[2], None if quick else PICTURE)
    if not quick:
        sources = "\n".join(f"- {p}" for p in dict.fromkeys(case.problem.source for case in everything))
        note = NOTE.format(cap=cap, repeats=repeats, long=long, sources=sources, targets=targets.text())
        rows = [row(run, group[0]) for group in runs for run in group]
        write_table("engines", rows, "python benchmarks/engines.py", note)


# The SMO engine against libsvm.

# One thread for every program, and before anything loads a BLAS.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_name] = "1"

import statistics  # noqa: E402
import time  # noqa: E402

from sklearn.datasets import make_classification  # noqa: E402
from sklearn.metrics.pairwise import rbf_kernel  # noqa: E402
from sklearn.svm import SVC  # noqa: E402

from kernelweave._numerics.smo import solve_box_qp  # noqa: E402

TOL = 1e-3
REPEATS = 5
SVM_NOTE = f"""One thread, seconds, median of {REPEATS} after compilation, both to the tolerance {TOL:g}; libsvm is
`SVC(kernel="precomputed", tol={TOL:g}, cache_size=1000)`, with shrinking. *Warm*: 5 % of the kernel weights
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
        for k, solve in enumerate(solvers):
            start = time.perf_counter()
            results[k] = solve()
            seconds[k].append(time.perf_counter() - start)
    return [(statistics.median(times), result) for times, result in zip(seconds, results, strict=True)]


def ours(K, y, c, beta=None):
    fit = solve_box_qp(K, y, np.minimum(0.0, c * y), np.maximum(0.0, c * y), tol=TOL, beta=beta)
    assert fit.converged
    return fit.beta, fit.iterations


def libsvm(K, y, c):
    model = SVC(C=c, kernel="precomputed", tol=TOL, cache_size=1000, shrinking=True).fit(K, y)
    beta = np.zeros(y.size)
    beta[model.support_] = model.dual_coef_[0]
    return beta, int(model.n_iter_[0])


def difference(K, y, beta, other):
    """Relative difference of the dual objectives of two sets of coefficients."""
    values = [y @ b - 0.5 * b @ K @ b for b in (beta, other)]
    return float((values[0] - values[1]) / abs(values[1]))


def case(kind, n, c):
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
                rows.append(case(kind, n, c))
                shown = {k: f"{v:.3g}" if isinstance(v, float) else v for k, v in rows[-1].items()}
                print("  ".join(f"{k} {v}" for k, v in shown.items()), flush=True)
    rows += summary(rows)
    print(rows[-2]["cold ratio"], rows[-2]["warm ratio"], rows[-1]["cold ratio"], rows[-1]["warm ratio"])
    if not quick:
        write_table("svm_engine", rows, "python benchmarks/engines.py svm", SVM_NOTE)


if __name__ == "__main__":
    run_part(main, svm=svm_main)
