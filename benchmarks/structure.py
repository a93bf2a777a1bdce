"""Structure in the weights: elastic, groups, at most k kernels; passes, planted views, proofs, accuracy.

Run ``python benchmarks/structure.py``; ``--quick`` takes a part of every table and writes nothing, ``--parts`` some of
the tables.  The rows of a part are kept beside the tables, so that parts can be run one by one.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale
from sklearn.svm import SVC

from _problems import SETTING, uci
from _report import RESULTS, machine, show
from _targets import Targets
from _threads import pin
from kernelweave import MKLClassifier, MKLClassifierCV, norms
from kernelweave import kernels as kw
from kernelweave._numerics.significance import corrected_t_test
from kernelweave.datasets import load_mfeat, load_uci
from kernelweave.exceptions import KernelWeaveWarning
from kernelweave.experiments._tables import markdown

COLUMNS = ("part", "problem", "method", "measure", "value")
Row = dict[str, Any]


def row(part: str, problem: str, method: str, measure: str, value: float) -> Row:
    """Return one number with what it is."""
    return dict(zip(COLUMNS, (part, problem, method, measure, value), strict=True))


# ---- passes to a gap of 1e-3 ---------------------------------------------------------------------------------------

NORMS = {
    "l1": "l1",
    "elastic net, mix 0.2": norms.ElasticNet(0.2),
    "elastic net, mix 0.8": norms.ElasticNet(0.8),
    "elastic, alpha 1, r 2": norms.Elastic(1.0, 2.0),
    "grouped (1, 2)": norms.Grouped(1, 2),
    "grouped (2, 1)": norms.Grouped(2, 1),
    "grouped (1, 4/3)": norms.Grouped(1, 4 / 3),
}


def mfeat(n: int) -> tuple[np.ndarray, np.ndarray, Any]:
    """Even against odd digits by six views, Gaussians of six widths on each."""
    data = load_mfeat(download=False)
    X = scale(data.data)
    rows = np.random.default_rng(0).permutation(len(X))[:n]
    y = np.where(np.asarray(data.target).astype(int) % 2 == 0, 1.0, -1.0)
    widths = [2.0, 4.0, 8.0, 16.0, 32.0, 64.0]
    return X[rows], y[rows], kw.per_view(data.views, kw.gaussian(widths))


def passes(quick: bool) -> list[Row]:
    """Passes over the bank of every norm, for C = 1 and 10."""
    rows = []
    for name in ("ionosphere", "pima") if quick else ("ionosphere", "sonar", "pima", "wdbc", "mfeat"):
        if name == "mfeat":
            X, y, kernels = mfeat(500)
        else:
            problem = uci(name)
            X, y, kernels = problem.X, problem.y, problem.kernels
        for label, norm in NORMS.items():
            for C in (1.0, 10.0):
                began = time.process_time()
                model = MKLClassifier(kernels, norm=norm, C=C).fit(X, y)
                seconds = time.process_time() - began
                title = f"{name}, C = {C:g}"
                rows += [
                    row("passes", title, label, "passes", model.n_passes_),
                    row("passes", title, label, "gap", model.certificate_.relative_gap),
                    row("passes", title, label, "seconds", seconds),
                ]
    return rows


# ---- planted views -------------------------------------------------------------------------------------------------


def planted(quick: bool) -> list[Row]:
    """20 views of five similar kernels, three views with the label in them."""
    rows = []
    methods = {
        "l1": "l1",
        "elastic net, mix 0.5": norms.ElasticNet(0.5),
        "grouped (1, 2)": norms.Grouped(1, 2),
    }
    for draw in range(3 if quick else 20):
        X, y, kernels, truth = planted_problem(draw)
        for label, norm in methods.items():
            model = MKLClassifier(kernels, norm=norm).fit(X, y)
            share = view_shares(model.weights_)
            found = set(np.flatnonzero(share > 0.01))
            rows += [
                row("planted", f"draw {draw}", label, "three largest", set(np.argsort(-share)[:3]) == truth),
                row("planted", f"draw {draw}", label, "exactly", found == truth),
                row("planted", f"draw {draw}", label, "views", len(found)),
                row("planted", f"draw {draw}", label, "jaccard", refit_jaccard(kernels, norm, X, y, draw)),
            ]
    return rows


def planted_problem(seed: int, n: int = 200, views: int = 20) -> tuple[np.ndarray, np.ndarray, Any, set[int]]:
    """Five columns a view; the label is the sign of a sum over three views, with noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5 * views))
    truth = rng.choice(views, 3, replace=False)
    score = sum(X[:, 5 * v : 5 * v + 5] @ rng.choice([-1.0, 1.0], 5) for v in truth)
    y = np.where(score + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    places = {f"view {v}": list(range(5 * v, 5 * v + 5)) for v in range(views)}
    return X, y, kw.per_view(places, kw.gaussian([2.0, 2.8, 4.0, 5.6, 8.0])), set(truth.tolist())


def view_shares(weights: np.ndarray) -> np.ndarray:
    """Shares of the weight by view of five kernels."""
    sums = weights.reshape(-1, 5).sum(axis=1)
    return sums / sums.sum()


def refit_jaccard(kernels: Any, norm: Any, X: np.ndarray, y: np.ndarray, seed: int) -> float:
    """Mean agreement of the kernels chosen on pairs of random 80 % of the samples."""
    rng = np.random.default_rng(seed)
    chosen = []
    for _ in range(4):
        rows = np.sort(rng.permutation(len(y))[: int(0.8 * len(y))])
        weights = MKLClassifier(kernels, norm=norm).fit(X[rows], y[rows]).weights_
        chosen.append(weights > 1e-3 * weights.sum())
    return float(np.mean([np.sum(a & b) / np.sum(a | b) for a, b in combinations(chosen, 2)]))


# ---- at most k kernels ---------------------------------------------------------------------------------------------


def thirty(d: int, m: int = 30) -> Any:
    """Gaussians, Laplacians and polynomials on all features, then Gaussians on single ones, m in all."""
    unit = float(np.sqrt(d))
    whole = kw.gaussian([unit * w for w in (0.25, 0.5, 1.0, 2.0)]) + kw.laplacian([d * 0.25, d * 1.0])
    whole = whole + kw.linear() + kw.polynomial(2) + kw.polynomial(3)
    single = [kw.gaussian(width).on(j) for width in (1.0, 0.5, 2.0) for j in range(d)]
    bank = list(whole)[: m if m < 9 else 9]
    return kw.Stack(tuple(bank + single[: m - len(bank)]))


def subsets(quick: bool) -> list[Row]:
    """Proofs for m = 30, and the enumeration of all subsets for m = 12."""
    rows = []
    for name in ("sonar",) if quick else ("ionosphere", "sonar", "pima"):
        problem = uci(name)
        X, y = problem.X, problem.y
        for k in (3, 5):
            began, clock = time.process_time(), time.perf_counter()
            model = MKLClassifier(thirty(X.shape[1]), norm=norms.AtMost(k), max_seconds=300).fit(X, y)
            title = f"{name}, m = 30, k = {k}"
            rows += [
                row("subsets", title, "at most k", "gap", model.certificate_.relative_gap),
                row("subsets", title, "at most k", "seconds", time.process_time() - began),
                row("subsets", title, "at most k", "clock", time.perf_counter() - clock),
                row("subsets", title, "at most k", "inner solves", len(model.certificate_.cuts)),
                row("subsets", title, "at most k", "objective", model.certificate_.primal),
            ]
        rows += enumerated(name, X, y, 3)
    return rows


def enumerated(name: str, X: np.ndarray, y: np.ndarray, k: int) -> list[Row]:
    """The best of all subsets of 12 kernels, one SVM each, beside the two bounds."""
    bank = thirty(X.shape[1], 12)
    model = MKLClassifier(bank, norm=norms.AtMost(k)).fit(X, y)
    best = np.inf
    for chosen in combinations(range(12), k):
        weights = np.isin(np.arange(12), chosen) / k
        best = min(best, MKLClassifier(bank, norm=norms.Fixed(weights)).fit(X, y).certificate_.dual)
    title = f"{name}, m = 12, k = {k}"
    return [
        row("subsets", title, "at most k", "gap", model.certificate_.relative_gap),
        row("subsets", title, "at most k", "objective", model.certificate_.primal),
        row("subsets", title, "at most k", "bound", model.certificate_.dual),
        row("subsets", title, "enumeration", "objective", best),
    ]


# ---- accuracy ------------------------------------------------------------------------------------------------------

CS = (1.0, 10.0, 100.0)
RIVALS = {
    "l1": "l1",
    "l2": 2,
    "uniform": "uniform",
    "elastic net, mix 0.5": norms.ElasticNet(0.5),
    "at most 3": norms.AtMost(3),
    "at most 5": norms.AtMost(5),
}


def accuracy(quick: bool) -> list[Row]:
    """Accuracy on the other half of the samples; every C by three folds."""
    rows = []
    for name in ("heart",) if quick else ("heart", "ionosphere", "sonar"):
        X, y = load_uci(name, return_X_y=True, download=False)
        for split in range(2 if quick else 6):
            halves = train_test_split(X, y, test_size=0.5, stratify=y, random_state=split)
            for method in (*RIVALS, "SVC, tuned"):
                began = time.process_time()
                value = score(method, *halves)
                rows.append(row("accuracy", f"{name}, split {split}", method, "accuracy", value))
                rows.append(
                    row("accuracy", f"{name}, split {split}", method, "seconds", time.process_time() - began)
                )
    return rows


def score(method: str, X: np.ndarray, new: np.ndarray, y: np.ndarray, wanted: np.ndarray) -> float:
    """Fit on one half, return the accuracy on the other."""
    scaler = StandardScaler().fit(X)
    X, new = scaler.transform(X), scaler.transform(new)
    if method == "SVC, tuned":
        grid = {"svc__C": CS, "svc__gamma": [g / X.shape[1] for g in (0.03, 0.1, 0.3, 1.0, 3.0)]}
        return float(GridSearchCV(make_pipeline(SVC()), grid, cv=3).fit(X, y).score(new, wanted))
    model = MKLClassifierCV(thirty(X.shape[1]), norms=[RIVALS[method]], Cs=CS, cv=3, tol=1e-2)
    return float(model.fit(X, y).score(new, wanted))


# ---- tables --------------------------------------------------------------------------------------------------------

PARTS = {"passes": passes, "planted": planted, "subsets": subsets, "accuracy": accuracy}


def of(rows: list[Row], **wanted: Any) -> np.ndarray:
    """Values of the rows that have all of these."""
    return np.array(
        [float(r["value"]) for r in rows if all(r[key] == value for key, value in wanted.items())]
    )


def names_of(rows: list[Row], column: str) -> list[str]:
    return list(dict.fromkeys(r[column] for r in rows))


def passes_table(rows: list[Row], targets: Targets) -> list[Row]:
    table = []
    for problem in names_of(rows, "problem"):
        line: Row = {"problem": problem}
        for method in names_of(rows, "method"):
            line[method] = of(rows, problem=problem, method=method, measure="passes")[0]
        table.append(line)
    worst = max(max(line[method] for method in NORMS) / line["l1"] for line in table)
    targets.at_most("passes of any norm over those of l1", worst, 2.0)
    targets.at_most("largest certified gap", float(np.max(of(rows, measure="gap"))), 1e-3)
    return table


def planted_table(rows: list[Row], targets: Targets) -> list[Row]:
    table = []
    for method in names_of(rows, "method"):
        measured = {m: of(rows, method=method, measure=m) for m in names_of(rows, "measure")}
        table.append(
            {
                "norm": method,
                "draws": len(measured["exactly"]),
                "three largest views are the true ones": int(measured["three largest"].sum()),
                "views with more than 1 %: exactly the true ones": int(measured["exactly"].sum()),
                "views with more than 1 %, mean": float(measured["views"].mean()),
                "Jaccard of the kernels of refits, mean": float(measured["jaccard"].mean()),
            }
        )
    by = {line["norm"]: line for line in table}
    column = "views with more than 1 %: exactly the true ones"
    more = by["grouped (1, 2)"][column] - by["l1"][column]
    targets.at_least("draws in which grouped finds exactly the true views and l1 does not", more, 1)
    column = "Jaccard of the kernels of refits, mean"
    stable = by["elastic net, mix 0.5"][column] - by["l1"][column]
    targets.at_least("Jaccard of elastic net, above that of l1", stable, 0.0)
    return table


def subsets_table(rows: list[Row], targets: Targets) -> list[Row]:
    measures = ("gap", "objective", "bound", "seconds", "clock", "inner solves")
    table = []
    for problem in names_of(rows, "problem"):
        line: Row = {"problem": problem}
        for measure in measures:
            value = of(rows, problem=problem, method="at most k", measure=measure)
            line[measure] = float(value[0]) if value.size else None
        value = of(rows, problem=problem, method="enumeration", measure="objective")
        line["best of all subsets"] = float(value[0]) if value.size else None
        table.append(line)
        if value.size:
            # the enumeration's own fits are lower bounds within 1e-3
            outside = max(line["bound"] / value[0] - 1.0, value[0] / line["objective"] - 1.0)
            targets.at_most(f"{problem}: best of all subsets outside of the bounds by", outside, 1e-3)
        else:
            targets.at_most(f"{problem}: gap", line["gap"], 1e-3)
            targets.at_most(f"{problem}: seconds", line["seconds"], 60.0)
    return table


def accuracy_table(rows: list[Row], targets: Targets) -> list[Row]:
    table = []
    sets = list(dict.fromkeys(problem.split(",")[0] for problem in names_of(rows, "problem")))
    for name in sets:
        mine = [r for r in rows if r["problem"].split(",")[0] == name]
        line: Row = {"data": name}
        best = of(mine, method="l1", measure="accuracy")
        for method in names_of(mine, "method"):
            values = of(mine, method=method, measure="accuracy")
            p = corrected_t_test(values, best, 1.0)
            mark = "" if method == "l1" or p > 0.05 else f" (p = {p:.2g})"
            line[method] = f"{100 * values.mean():.1f}{mark}"
        table.append(line)
    return table


TABLES = {
    "passes": ("Passes to a certified gap of 1e-3", passes_table),
    "planted": ("Planted views", planted_table),
    "subsets": ("At most k kernels", subsets_table),
    "accuracy": ("Accuracy in %", accuracy_table),
}
NOTES = {
    "passes": f"""{SETTING} UCI sets: 80 % of the samples, Gaussians of ten widths on all features and on every
single one; the groups are the features. mfeat: 500 digits, even against odd, six views, Gaussians of six widths on
each.""",
    "planted": """200 samples, 20 views of five standard normal columns, Gaussians of five neighbouring widths on
each; the label is the sign of a sum over three of the views, with noise. C = 1. Refits: pairs of four random 80 % of
the samples; a kernel is chosen that has more than 0.1 % of the weight.""",
    "subsets": """`norms.AtMost(k)`, hinge, C = 1, tol 1e-3, 80 % of the samples. Gaussians, Laplacians and
polynomials on all features and Gaussians on single ones. Seconds are of the processor, the clock is that of a busy
machine. The enumeration fits an SVM for each of the 220 subsets of 12 kernels.""",
    "accuracy": """Six stratified halves, features standardised on the training half, the 30 kernels of the table
above (trace-normalised, hinge, intercept), C of 1, 10, 100 by three folds, tol 1e-2. SVC: one Gaussian, C and five
widths by three folds. In brackets: corrected paired t-test against l1, where below 0.05.""",
}


def load_rows() -> list[Row]:
    path = RESULTS / "structure.csv"
    if not path.exists():
        return []
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def write(rows: list[Row]) -> None:
    """Write all rows as CSV, and the tables made of them as Markdown."""
    with open(RESULTS / "structure.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    parts = ["# structure", f"`python benchmarks/structure.py`, on {machine()}."]
    for part, (title, table) in TABLES.items():
        mine = [r for r in rows if r["part"] == part]
        if mine:
            targets = Targets()
            lines = table(mine, targets)
            parts += [f"## {title}", NOTES[part], markdown(lines), targets.text()]
    (RESULTS / "structure.md").write_text("\n\n".join(text for text in parts if text) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a part of every table; nothing is written")
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    options = parser.parse_args()
    pin()
    warnings.simplefilter("ignore", KernelWeaveWarning)
    print(machine())
    for part in options.parts:
        rows = [{**r, "value": float(r["value"])} for r in PARTS[part](options.quick)]
        targets = Targets()
        show(TABLES[part][1](rows, targets))
        if not options.quick:
            write([r for r in load_rows() if r["part"] != part] + rows)


if __name__ == "__main__":
    main()
