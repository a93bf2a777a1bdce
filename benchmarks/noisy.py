"""Which method for wrong labels: flipped labels on small sets, and annotators who err, on clean test samples.

Run ``python benchmarks/noisy.py``; ``--sets heart wine`` runs some of the sets and joins them with what was measured
before, ``--quick`` takes one split of two sets and writes nothing.  Data come from scikit-learn and from the folder
named by ``KERNELWEAVE_DATA``.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Collection
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    StratifiedKFold,
    StratifiedShuffleSplit,
    cross_val_predict,
    train_test_split,
)
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from _measure import RUNS, Targets, machine, pin, show, write_table
from kernelweave import MeanKernelRidgeClassifier, MKLClassifier, MKLClassifierCV, NoisyLabelMKLClassifier
from kernelweave._numerics.significance import corrected_t_test
from kernelweave.losses import BudgetedHinge
from kernelweave_studies.datasets import load_crowd, load_uci

SPLITS, MOST, TOL = 5, 400, 1e-2
#: sets of ten classes have fewer splits and rows: their fits are the dear ones
SPLITS_OF_TEN, MOST_OF_TEN = 2, 250
RATES = (0.0, 0.2, 0.3)
CS = (0.1, 1.0, 10.0, 100.0)
#: how much suspected labels count was settled on other splits of these sets, and on these alone
SETTLED_ON = ("heart", "ionosphere", "breast", "wine", "liver")
METHODS = (
    "SVC", "l1-MKL", "uniform", "SiPMKL", "StPMKL", "VI", "MiPMKL", "filtered SVC",
    "confident", "confident, left out", "auto", "auto, half", "auto, left out", "auto, half if trusted",
)  # fmt: skip
#: those of the table about the filter alone, which has more splits: they take no time
FILTERS = ("auto", "auto, half", "auto, left out", "auto, half if trusted")
FILTER_SPLITS = 20
NOTE = f"""Accuracy in % on clean test samples, mean over {SPLITS} splits, {SPLITS_OF_TEN} of sets with ten classes
(70 % to train on, at most {MOST} rows, {MOST_OF_TEN} of sets with ten classes); each training label was replaced by
another class, drawn alike, with probability q. Default bank (Gaussians of 1/4 to 4 median distances and the linear
kernel), columns standardised on the
training part, trace normalisation. Everything is tuned on noisy labels. *SVC*: a Gaussian, C and width by five folds.
*l1-MKL*, *uniform*: `MKLClassifierCV`, C by five folds. *SiPMKL* (l1-MKL), *StPMKL* (budget too) and *MiPMKL*
(trimmed): without intercept, tuned on 10 % of the training part, as in their paper; *VI*: StPMKL's problem by
`solver="variational"`, at most 100 iterations. *filtered SVC*: out-of-fold decision values of the SVC, calibrated;
labels that they contradict with confidence are dropped, C and width chosen again. *confident*:
`method="confident", norm="uniform"`, suspected labels count half, C by five folds; *left out*: `suspect_weight=0`.
*auto*: squared loss on the mean kernel, C by leave-one-out; *half*, *left out*: the same with suspected labels at half
weight, or none; *half if trusted*: half weight where leave-one-out predictions contradict at most a third of the labels
(`suspect_weight=0.5`). *music crowd*: real annotators, the majority vote of 700 tracks, 300 to test on, one
split, without the methods that take minutes there. Sets of ten classes have no row without noise. *settled on*
and *others*: the means over {", ".join(SETTLED_ON)}, on other splits of which the weight of suspected labels was
settled, and over the remaining sets (without the crowd).

{{targets}}"""

FILTER_NOTE = f"""Suspected labels in `NoisyLabelMKLClassifier`: accuracy in % on clean test samples as in
[noisy](noisy.md), of methods that take no time and therefore on {FILTER_SPLITS} splits, none of which was seen when the
rule was made. *auto*: no filter. *half*, *left out*: suspected labels count half, or not at all. *half if trusted*:
half where leave-one-out predictions contradict at most a third of the labels, else all alike (`suspect_weight=0.5`);
*filtered*: in what share of the splits labels were suspected then. That suspected labels count half was settled on
other splits of {", ".join(SETTLED_ON)}, and looked at on the others afterwards; that a third is the limit,
a round number, on other splits of all sets. *p*: of *half if trusted* and *auto*, means over the sets, a t-test
corrected for overlapping splits.

{{targets}}"""

Sample = tuple[np.ndarray, np.ndarray]


def _codes(y: Any) -> np.ndarray:
    return np.unique(np.asarray(y), return_inverse=True)[1]


def _flat(load: Callable[..., Any]) -> Callable[[], Sample]:
    def read() -> Sample:
        X, y = load(return_X_y=True)
        return np.asarray(X, dtype=float), _codes(y)

    return read


def _uci(name: str) -> Callable[[], Sample]:
    return _flat(lambda return_X_y: load_uci(name, return_X_y=return_X_y))


def _music() -> Sample:
    data = load_crowd()
    labels = np.concatenate([np.asarray(data.target), np.asarray(data.test_target)])
    return np.vstack([data.data, data.test_data]), _codes(labels)


SETS: dict[str, Callable[[], Sample]] = {
    **{name: _uci(name) for name in ("heart", "ionosphere", "breast")},
    "wine": _flat(load_wine),
    **{name: _uci(name) for name in ("liver", "sonar", "pima", "wdbc")},
    "iris": _flat(load_iris),
    "digits": _flat(load_digits),
    "music": _music,
}
CROWD = "music crowd"
TEN_CLASSES = ("digits", "music")


def split_of(name: str, q: float, seed: int) -> tuple[np.ndarray, ...]:
    """Return training samples with noisy labels, and test samples with clean ones."""
    if name == CROWD:
        data = load_crowd()
        scaler = StandardScaler().fit(data.data)
        table, n = data.annotations, len(data.data)
        codes = {label: k for k, label in enumerate(np.unique(np.asarray(data.target)))}
        votes = np.zeros((n, len(codes)))
        np.add.at(votes, (table["task"].to_numpy(), [codes[label] for label in table["label"]]), 1.0)
        voted = np.flatnonzero(votes.sum(axis=1))
        test = np.array([codes[label] for label in data.test_target])
        return (
            scaler.transform(data.data)[voted], np.argmax(votes[voted], axis=1),
            scaler.transform(data.test_data), test,
        )  # fmt: skip
    X, y = SETS[name]()
    k = int(y.max()) + 1
    size = min(MOST_OF_TEN if k > 5 else MOST, int(0.7 * len(y)))
    splitter = StratifiedShuffleSplit(1, train_size=size, test_size=0.3, random_state=100 + seed)
    train, test = next(splitter.split(X, y))
    rng = np.random.default_rng(1000 + seed)
    flips = rng.random(size) < q
    noisy = np.where(flips, (y[train] + rng.integers(1, k, size)) % k, y[train])
    scaler = StandardScaler().fit(X[train])
    return scaler.transform(X[train]), noisy, scaler.transform(X[test]), y[test]


def _by_validation(makes: list[Any], X: np.ndarray, y: np.ndarray, seed: int) -> Any:
    """Fit the estimator that does best on a tenth of the noisy training part; ties go to the first."""
    A, A_val, b, b_val = train_test_split(X, y, test_size=0.1, stratify=y, random_state=seed)
    scores = [make.fit(A, b).score(A_val, b_val) for make in makes]
    return makes[int(np.argmax(scores))].fit(X, y)


def accuracies(name: str, q: float, seed: int, methods: Collection[str] = METHODS) -> list[dict[str, Any]]:
    """Return the accuracy of methods on one split."""
    X, y, X_test, y_test = split_of(name, q, seed)
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    svc_grid = {"C": list(CS), "gamma": ["scale", 0.3 / X.shape[1], 3.0 / X.shape[1]]}
    noisy = {"tol": TOL, "fit_intercept": False}
    budgets = (0.5, 0.75, 1.0)
    two = np.unique(y).size == 2

    def svc(A: np.ndarray, b: np.ndarray) -> Any:
        return GridSearchCV(SVC(), svc_grid, cv=folds).fit(A, b)

    def filtered() -> Any:
        best = svc(X, y).best_estimator_
        values = cross_val_predict(best, X, y, cv=folds, method="decision_function").reshape(len(y), -1)
        P = LogisticRegression(C=1e3, max_iter=1000).fit(values, y).predict_proba(values)
        thresholds = np.array([P[y == j, j].mean() for j in range(P.shape[1])])
        above = thresholds <= P
        kept = ~above.any(axis=1) | (np.argmax(np.where(above, P, -1.0), axis=1) == y)
        for j in range(P.shape[1]):  # a class keeps its labels rather than half of them and more
            own = y == j
            if np.count_nonzero(kept & own) < max(5, np.count_nonzero(own) / 2):
                kept |= own
        return svc(X[kept], y[kept])

    def stochastic(C: float, budget: float, **options: Any) -> Any:
        if two:
            return MKLClassifier(loss=BudgetedHinge(budget), C=C, **noisy, **options)
        return NoisyLabelMKLClassifier(method="stochastic", budget=budget, C=C, **noisy, **options)

    def confident(weight: float) -> Any:
        model = NoisyLabelMKLClassifier(method="confident", norm="uniform", suspect_weight=weight, tol=TOL)
        return GridSearchCV(model, {"C": list(CS)}, cv=folds).fit(X, y)

    @cache
    def suspects() -> np.ndarray:
        model = NoisyLabelMKLClassifier(method="confident", norm="uniform", suspect_weight=0.0, tol=0.1)
        return model.fit(X, y).sample_share_ == 0

    def counted(weight: float) -> np.ndarray:
        return np.where(suspects(), weight, 1.0)

    fits: dict[str, Callable[[], Any]] = {
        "SVC": lambda: svc(X, y),
        "l1-MKL": lambda: MKLClassifierCV(Cs=list(CS), cv=folds, tol=TOL).fit(X, y),
        "uniform": lambda: MKLClassifierCV(Cs=list(CS), cv=folds, norm="uniform", tol=TOL).fit(X, y),
        "SiPMKL": lambda: _by_validation([MKLClassifier(C=C, **noisy) for C in CS], X, y, seed),
        "StPMKL": lambda: _by_validation([stochastic(C, b) for C in CS for b in budgets], X, y, seed),
        "MiPMKL": lambda: _by_validation(
            [NoisyLabelMKLClassifier(method="trimmed", C=C, **noisy) for C in CS], X, y, seed
        ),
        "filtered SVC": filtered,
        "confident": lambda: confident(0.5),
        "confident, left out": lambda: confident(0.0),
        "auto": lambda: NoisyLabelMKLClassifier().fit(X, y),
        "auto, half": lambda: MeanKernelRidgeClassifier().fit(X, y, sample_weight=counted(0.5)),
        "auto, left out": lambda: MeanKernelRidgeClassifier().fit(X, y, sample_weight=counted(0.0)),
        "auto, half if trusted": lambda: NoisyLabelMKLClassifier(suspect_weight=0.5).fit(X, y),
    }
    rows = []
    for method, fit in fits.items():
        if method not in methods:
            continue
        if name == CROWD and method in ("l1-MKL", "SiPMKL", "StPMKL", "MiPMKL"):
            continue  # minutes each; studies/results/stpmkl_crowd.md has the first
        began = time.process_time()
        model = fit()
        seconds = time.process_time() - began
        row = {"set": name, "q": q, "split": seed, "method": method}
        rows.append({**row, "accuracy": model.score(X_test, y_test), "seconds": seconds})
        if method == FILTERS[-1]:
            rows[-1]["filtered"] = float(np.any(model.sample_share_ < 1))
        if method == "StPMKL":
            budget = model.loss.budget if two else model.budget
            began = time.process_time()
            model = stochastic(model.C, budget, solver="variational", max_iter=100).fit(X, y)
            seconds = time.process_time() - began
            rows.append({**row, "method": "VI", "accuracy": model.score(X_test, y_test), "seconds": seconds})
    return rows


def rows_of(runs: pd.DataFrame) -> list[dict[str, Any]]:
    """Return a row for each set and rate, and the means over sets."""
    runs = runs[runs["split"] < SPLITS]
    means = 100.0 * runs.groupby(["set", "q", "method"])["accuracy"].mean().unstack()[list(METHODS)]
    names = [name for name in (*SETS, CROWD) if name in set(runs["set"])]
    rows = [
        {"set": name, "q": q, **means.loc[(name, q)].round(1).to_dict()}
        for name in names
        for q in sorted(runs[runs["set"] == name]["q"].unique())
    ]
    flipped = means.drop(index=CROWD, level="set", errors="ignore")
    first = flipped.index.get_level_values("set").isin(SETTLED_ON)
    for title, part in (("settled on", flipped[first]), ("others", flipped[~first])):
        for q, mean in part.groupby("q").mean().iterrows():
            rows.append({"set": title, "q": q, **mean.round(2).to_dict()})
    seconds = runs[runs["set"] != CROWD].groupby("method")["seconds"].median()
    return [*rows, {"set": "seconds, median", "q": "", **seconds[list(METHODS)].round(2).to_dict()}]


def filter_rows(runs: pd.DataFrame) -> list[dict[str, Any]]:
    """Return a row for each set and rate of the methods with and without the filter, and the means over sets."""
    means = 100.0 * runs.groupby(["set", "q", "method"])["accuracy"].mean().unstack()[list(FILTERS)]
    share = runs[runs["method"] == FILTERS[-1]].groupby(["set", "q"])["filtered"].mean()
    rows = [
        {"set": name, "q": q, **means.loc[(name, q)].round(1).to_dict(), "filtered": share[name, q], "p": ""}
        for name in SETS
        if name in set(runs["set"])
        for q in RATES[1:]
    ]
    for title, chosen in (("settled on", True), ("others", False)):
        part = runs[runs["set"].isin(SETTLED_ON) == chosen]
        for q in RATES[1:]:
            each = part[part["q"] == q].groupby(["split", "method"])["accuracy"].mean().unstack()
            if each.empty:
                continue
            # a test part of 30 % beside a training part of at most 70 %
            p = corrected_t_test(each[FILTERS[-1]].to_numpy(), each["auto"].to_numpy(), 3 / 7)
            row = {"set": title, "q": q, **(100.0 * each[list(FILTERS)].mean()).round(2).to_dict()}
            rows.append({**row, "filtered": part[part["q"] == q]["filtered"].mean(), "p": round(p, 3)})
    return [{**row, "filtered": round(float(row["filtered"]), 2)} for row in rows]


def measure_filter(names: Collection[str]) -> None:
    """Write the table about the filter."""
    kept = RUNS / "noisy_filter_runs.csv"
    for name in names:
        runs = [
            row
            for q in RATES[1:]
            for seed in range(200, 200 + FILTER_SPLITS)
            for row in accuracies(name, q, seed, FILTERS)
        ]
        table = pd.read_csv(kept) if kept.exists() else pd.DataFrame({"set": []})
        table = pd.concat([table[table["set"] != name], pd.DataFrame(runs)], ignore_index=True)
        table.drop(columns="seconds").round(4).to_csv(kept, index=False)
        print(name, flush=True)
    rows = filter_rows(pd.read_csv(kept))
    show(rows)
    targets = Targets()
    for row in rows:
        if row["set"] == "others":
            gain = row[FILTERS[-1]] - row["auto"]
            targets.at_least(f"q = {row['q']:g}: what the filter adds on the other sets, points", gain, 0.0)
    write_table(
        "noisy_filter",
        rows,
        "python benchmarks/noisy.py --filter",
        FILTER_NOTE.format(targets=targets.text()),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one split of two sets, nothing is written")
    parser.add_argument("--table", action="store_true", help="make the table of what was measured before")
    parser.add_argument(
        "--sets", nargs="*", choices=[*SETS, CROWD], help="only these; the others as measured before"
    )
    parser.add_argument(
        "--methods", nargs="*", choices=METHODS, default=METHODS, help="of these sets, only these"
    )
    parser.add_argument(
        "--filter", action="store_true", help="the table about the filter alone, on more splits"
    )
    options = parser.parse_args()
    pin()
    print(machine())
    warnings.simplefilter("ignore")
    if options.filter:
        measure_filter([] if options.table else [name for name in options.sets or SETS if name != CROWD])
        return
    kept = RUNS / "noisy_runs.csv"
    names = ("heart", "iris") if options.quick else () if options.table else options.sets or [*SETS, CROWD]
    table = pd.read_csv(kept) if kept.exists() and (options.sets or options.table) else pd.DataFrame()
    for name in names:
        runs = []
        rates = (0.29,) if name == CROWD else RATES[1:] if name in TEN_CLASSES else RATES
        for q in (0.2,) if options.quick else rates:
            splits = SPLITS_OF_TEN if name in TEN_CLASSES else SPLITS
            for seed in range(1 if options.quick or name == CROWD else splits):
                runs += accuracies(name, q, seed, options.methods)
            print({**runs[-1], "accuracy": round(runs[-1]["accuracy"], 3)}, flush=True)
        if options.sets and kept.exists():  # sets may be measured side by side
            table = pd.read_csv(kept)
        same = (table["set"] == name) & table["method"].isin(options.methods) if len(table) else []
        others = table[~same] if len(table) else table
        table = pd.concat([others, pd.DataFrame(runs)], ignore_index=True)
        if not options.quick:
            table.round(4).to_csv(kept, index=False)
    rows = rows_of(table)
    show(rows)
    targets = Targets()
    mean = {(row["set"], row["q"]): row for row in rows}
    for q in RATES:
        row = mean.get(("others", q))
        if row is not None:
            gain = row[FILTERS[-1]] - row["auto"]
            targets.at_least(f"q = {q:g}: what the filter adds on the other sets, points", gain, 0.0)
            best = max(row[name] for name in ("SVC", "l1-MKL", "uniform", "SiPMKL", "StPMKL", "VI", "MiPMKL"))
            targets.at_least(
                f"q = {q:g}: auto above the best plain or published method there, points",
                row["auto"] - best,
                -0.5,
            )
    if not options.quick:
        write_table("noisy", rows, "python benchmarks/noisy.py", NOTE.format(targets=targets.text()))


if __name__ == "__main__":
    main()
