"""Times to an event: the sets of scikit-survival, planted views, and seconds, beside Cox, Coxnet, forest and SSVM.

Run ``python benchmarks/survival.py``; ``--part sets`` (planted, speed) is one part of it.  All of it takes about ten
minutes of one processor.  Seconds are those of the processor, not of the clock.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from _measure import machine, pin, show, write_table
from kernelweave import MKLClassifier, MKLSurvival, MKLSurvivalCV, metrics
from kernelweave import kernels as kw

#: gaussians of every view, in median distances
WIDTHS = [0.5, 1.0, 2.0]
CS = np.logspace(-3, 1, 7)


# Sets: those of scikit-survival, folds stratified by event; every method chooses its constants inside the fold.


def load(name: str) -> tuple[pd.DataFrame, Any, dict[str, list[int]]]:
    """Return columns of numbers, targets, and the columns of the views."""
    from sksurv import datasets
    from sksurv.column import encode_categorical

    read = {
        "veteran": datasets.load_veterans_lung_cancer, "WHAS500": datasets.load_whas500,
        "GBSG2": datasets.load_gbsg2, "GSE7390": datasets.load_breast_cancer,
    }  # fmt: skip
    frame, y = read[name]()
    genes = [column for column in frame.columns if column.endswith("_at")]  # of the others none
    table = encode_categorical(frame).astype(float)
    table = table.loc[:, table.std() > 0]
    clinic = [j for j, column in enumerate(table.columns) if column not in genes]
    views = {"clinic": clinic}
    if genes:
        views["genes"] = [j for j, column in enumerate(table.columns) if column in genes]
    return table, metrics.survival(*metrics.read_survival(y)), views


def bank_of(views: dict[str, list[int]], columns: int) -> Any:
    """Gaussians and a linear kernel on every view and on all columns; of a single view also one for each column."""
    every = kw.gaussian(WIDTHS, relative=True) + kw.linear()
    if len(views) > 1:
        return kw.per_view({**views, "everything": list(range(columns))}, every)
    return every + kw.per_feature(kw.gaussian(1.0))


def methods_of(views: dict[str, list[int]], columns: int) -> dict[str, Callable[[], Any]]:
    from sksurv.ensemble import RandomSurvivalForest
    from sksurv.linear_model import CoxnetSurvivalAnalysis, CoxPHSurvivalAnalysis
    from sksurv.svm import FastKernelSurvivalSVM

    bank = bank_of(views, columns)
    folds = StratifiedKFold(3, shuffle=True, random_state=0)

    def mkl(norm: Any = None, **options: Any) -> Any:
        given = (
            {"Cs": CS, "cv": 3, "random_state": 0} | ({"norm": norm} if norm is not None else {}) | options
        )
        return MKLSurvivalCV(bank, **given)

    def search(model: Any, **grid: Any) -> Any:
        return _Search(model, grid, folds)

    return {
        "ridge Cox": lambda: search(CoxPHSurvivalAnalysis(), alpha=[0.1, 1.0, 10.0, 100.0]),
        "Coxnet": lambda: search(CoxnetSurvivalAnalysis(l1_ratio=0.9, fit_baseline_model=True),
                                 alphas=[[a] for a in (0.003, 0.01, 0.03, 0.1)]),
        "forest": lambda: RandomSurvivalForest(200, min_samples_leaf=10, random_state=0),
        "kernel SSVM": lambda: search(FastKernelSurvivalSVM(kernel="rbf", random_state=0), alpha=[0.01, 0.1, 1.0]),
        "mean kernel": lambda: mkl("uniform"),
        "MKL l1": lambda: mkl("l1"),
        "MKL l2": lambda: mkl(2),
        "MKL, norm chosen": lambda: mkl(norms=["l1", 2, "uniform"]),
    }  # fmt: skip


class _Search:
    """Their model with a constant chosen by concordance on folds stratified by event."""

    def __init__(self, model: Any, grid: dict[str, Any], folds: Any) -> None:
        self.model, self.grid, self.folds = model, grid, folds

    def fit(self, X: Any, y: Any) -> Any:
        splits = list(self.folds.split(X, y["event"]))
        return GridSearchCV(self.model, self.grid, cv=splits, error_score=0.5).fit(X, y).best_estimator_


def sets(quick: bool) -> list[dict[str, Any]]:
    rows = []
    for name in ("GSE7390", "WHAS500", "GBSG2", "veteran"):
        table, y, views = load(name)
        found: dict[str, list[tuple[float, float, float]]] = {}
        folds = StratifiedKFold(2 if quick else 5, shuffle=True, random_state=0)
        for train, test in folds.split(table, y["event"]):
            scaler = StandardScaler().fit(table.iloc[train])
            X, new = (scaler.transform(table.iloc[part]) for part in (train, test))
            for method, make in methods_of(views, X.shape[1]).items():
                began = time.process_time()
                model = make().fit(X, y[train])
                risk, took = model.predict(new), time.process_time() - began
                brier = np.nan
                if hasattr(model, "predict_survival_function"):
                    at = metrics.times_between(y[test], float(y["time"][train].max()))
                    curves = model.predict_survival_function(new)
                    last = min(float(curve.x[-1]) for curve in curves)
                    survived = np.array([curve(np.minimum(at, last)) for curve in curves])
                    brier = metrics.integrated_brier_score(y[train], y[test], survived, at)
                found.setdefault(method, []).append((metrics.concordance(y[test], risk), brier, took))
            print(name, len(found["MKL l1"]), "folds", flush=True)
        share = len(test) / len(train)
        ours = np.array(found["MKL, norm chosen"])
        for method, kept in found.items():
            values = np.array(kept)
            less = ours[:, 0] - values[:, 0]
            error = np.sqrt((1.0 / len(less) + share) * less.var(ddof=1))
            rows.append({
                "set": name, "samples": len(y), "events": int(y["event"].sum()), "method": method,
                "concordance": f"{values[:, 0].mean():.3f}", "sd": f"{values[:, 0].std(ddof=1):.3f}",
                "Brier": "" if np.isnan(values[:, 1]).any() else f"{values[:, 1].mean():.4f}",
                "MKL more by": "" if error == 0 else f"{less.mean():+.3f} (t = {less.mean() / error:+.1f})",
                "seconds": f"{np.median(values[:, 2]):.2f}",
            })  # fmt: skip
    return rows


# Planted: 20 views of 10 columns, of which three matter; whether they are found, and how many others with them.


def planted_data(seed: int, curved: bool, n: int = 300) -> tuple[np.ndarray, Any, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 200)) + np.repeat(rng.normal(size=(n, 20)), 10, axis=1)
    true = np.sort(rng.choice(20, 3, replace=False))
    f = np.zeros(n)
    for view in true:
        columns = X[:, 10 * view : 10 * view + 5]
        part = np.abs(columns.sum(axis=1)) if curved else columns @ rng.choice([-1.0, 1.0], 5)
        f += 0.8 * (part - part.mean()) / part.std()
    dies, leaves = 10 * rng.weibull(1.2, n) * np.exp(-f / 1.2), rng.exponential(20.0, n)
    return X, metrics.survival(np.minimum(dies, leaves), dies <= leaves), true


def planted(quick: bool) -> list[dict[str, Any]]:
    from sksurv.linear_model import CoxnetSurvivalAnalysis

    views = {f"view {k + 1}": slice(10 * k, 10 * k + 10) for k in range(20)}
    bank = kw.per_view(views, kw.linear() + kw.gaussian([0.5, 1.0], relative=True))
    rows = []
    for curved in (False, True):
        found: dict[str, list[tuple[float, ...]]] = {}
        for seed in range(2 if quick else 10):
            X, y, true = planted_data(seed, curved)
            train, test = np.arange(200), np.arange(200, 300)
            scaler = StandardScaler().fit(X[train])
            Z = scaler.transform(X)

            def lasso(ratio: float, Z: Any = Z, y: Any = y, train: Any = train) -> tuple[np.ndarray, Any]:
                net = CoxnetSurvivalAnalysis(l1_ratio=ratio)
                model = _Search(net, {"alphas": [[a] for a in np.logspace(-2, -0.3, 10)]},
                                StratifiedKFold(5, shuffle=True, random_state=0)).fit(Z[train], y[train])  # fmt: skip
                return np.abs(model.coef_[:, 0]).reshape(20, 10).sum(axis=1), model

            def mkl(bank: Any, Z: Any = Z, y: Any = y, train: Any = train) -> tuple[np.ndarray, Any]:
                model = MKLSurvivalCV(bank, Cs=CS, cv=5, random_state=0).fit(Z[train], y[train])
                return model.weights_.reshape(20, -1).sum(axis=1), model

            for method, run in {
                "MKL l1, linear and Gaussian": lambda: mkl(bank),
                "MKL l1, linear": lambda: mkl(kw.per_view(views, kw.linear())),
                "Coxnet, l1": lambda: lasso(1.0),
                "Coxnet, half l1": lambda: lasso(0.5),
            }.items():
                began = time.process_time()
                weight, model = run()
                took = time.process_time() - began
                top, chosen = np.argsort(-weight, kind="stable")[:3], np.flatnonzero(weight > 0)
                found.setdefault(method, []).append((
                    np.isin(true, top[weight[top] > 0]).sum(), np.isin(true, chosen).sum(),
                    chosen.size - np.isin(chosen, true).sum(),
                    metrics.concordance(y[test], model.predict(Z[test])), took,
                ))  # fmt: skip
        for method, kept in found.items():
            means = np.mean(kept, axis=0)
            rows.append({
                "effect": "curved" if curved else "linear", "method": method, "data sets": len(kept),
                "of 3 among the heaviest 3": f"{means[0]:.1f}", "of 3 with weight": f"{means[1]:.1f}",
                "of 17 others with weight": f"{means[2]:.1f}", "concordance": f"{means[3]:.3f}",
                "seconds": f"{means[4]:.2f}",
            })  # fmt: skip
    return rows


# Speed: kernels on groups of columns, certified to 1e-3 nats per event; a logistic fit on the same kernels beside it.


def speed_data(n: int, m: int) -> tuple[np.ndarray, Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 5 * m))
    f = X[:, 0] + X[:, 5] - np.sin(2 * X[:, 10])
    dies, leaves = rng.exponential(np.exp(-f)), rng.exponential(2.0, n)
    bank = kw.per_view({str(k): slice(5 * k, 5 * k + 5) for k in range(m)}, kw.gaussian(1.0, relative=True))
    return X, metrics.survival(np.minimum(dies, leaves), dies <= leaves), bank


def speed(quick: bool) -> list[dict[str, Any]]:
    from sksurv.svm import FastKernelSurvivalSVM

    rows: list[dict[str, Any]] = []

    def timed(what: str, fit: Callable[[], Any], repeats: int = 3) -> None:
        seconds, model = [], None
        for _ in range(1 if quick else repeats):
            began = time.process_time()
            model = fit()
            seconds.append(time.process_time() - began)
        known = hasattr(model, "certificate_")
        rows.append({
            "fit": what, "seconds, best of 3": f"{min(seconds):.2f}",
            "passes": f"{model.n_passes_:.1f}" if known else "",
            "gap": f"{model.certificate_.relative_gap:.1e}" if known else "",
        })  # fmt: skip
        print(rows[-1], flush=True)

    X, y, bank = speed_data(500, 20)
    MKLSurvival(bank).fit(X, y)  # what is compiled is loaded
    MKLClassifier(bank, loss="logistic").fit(X, y["event"])
    for norm in ("l1", 2):
        for C in (0.1, 1.0, 10.0):
            timed(
                f"n = 500, m = 20, {norm}, C = {C:g}",
                lambda norm=norm, C=C: MKLSurvival(bank, norm=norm, C=C).fit(X, y),
            )
    big, times, many = speed_data(2000, 50)
    timed("n = 2,000, m = 50, l1, C = 1", lambda: MKLSurvival(many).fit(big, times))
    timed("the same, logistic loss on who has the event",
          lambda: MKLClassifier(many, loss="logistic").fit(big, times["event"]))  # fmt: skip
    one = kw.gaussian(1.0, relative=True)
    timed("one kernel, n = 2,000", lambda: MKLSurvival(one).fit(big, times))
    timed("one kernel, n = 2,000, gap 1e-6", lambda: MKLSurvival(one, tol=1e-6).fit(big, times))
    gamma = 1.0 / np.median(((big[:200, None] - big[None, :200]) ** 2).sum(-1)[~np.eye(200, dtype=bool)])
    machine_ = make_pipeline(FastKernelSurvivalSVM(kernel="rbf", gamma=gamma, random_state=0))
    timed("FastKernelSurvivalSVM, one kernel, n = 2,000", lambda: machine_.fit(big, times), 1)
    return rows


PARTS = {
    "sets": (
        sets,
        "Harrell's concordance and the integrated Brier score on held-out folds (5 folds, stratified by event). "
        "Constants are chosen inside each fold: MKL and mean kernel by the partial likelihood, the others by "
        "concordance, on 3 folds; the forest has 200 trees with leaves of 10 samples. *MKL more by*: concordance of "
        "MKL with the norm chosen among l1, 2 and uniform, less that of the method, with the t of Nadeau and Bengio; "
        "of 28 comparisons some are beyond 2 by chance. Seconds of one fold, of the processor, the search included.",
    ),
    "planted": (
        planted,
        "200 samples to learn from, 100 to test; 20 views of 10 correlated columns, three of which matter: by a linear "
        "sum of five of their columns, or by the absolute value of their sum. C or alpha by 5 folds. Weight of a view: "
        "the sum of its kernels' weights, or of the absolute coefficients of its columns. Means over the data sets.",
    ),
    "speed": (
        speed,
        "Seconds of one processor, certified to 1e-3 nats per event where nothing else is said.",
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=PARTS, action="append", help="one part; all of them by default")
    parser.add_argument("--quick", action="store_true", help="fewer folds and data sets; nothing is written")
    options = parser.parse_args()
    pin()
    print(machine())
    for part in options.part or PARTS:
        measure, note = PARTS[part]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rows = measure(options.quick)
        show(rows)
        if not options.quick:
            name = "survival" if part == "sets" else f"survival_{part}"
            write_table(name, rows, f"python benchmarks/survival.py --part {part}", note)


if __name__ == "__main__":
    main()
