"""Does choosing the norm pay?  ``MKLClassifierCV`` with three norms beside always-l1, always-uniform and a tuned SVC.

Run ``python benchmarks/selection.py``; ``--sets iris wine`` runs some of the sets and joins them with what was measured
before, ``--quick`` takes one split of three sets and writes nothing.  Data come from scikit-learn and from the folder
named by ``KERNELWEAVE_DATA``.

Which norm should ``MKLRegressorCV`` choose by default?  Rules over four norms beside l1 alone, by squared error.

Run ``python benchmarks/selection.py regression``; ``--sets friedman1 heart`` runs some of the sets and joins them with
what was measured before, ``--quick`` takes one split of three sets and writes nothing.  Data come from scikit-learn and
from the folder named by ``KERNELWEAVE_DATA``.

What scaling is worth, and what is said where it was left out: raw and scaled columns under the default call.

Run ``python benchmarks/selection.py scales``; ``--quick`` takes one split of two sets and writes nothing.

When is MKL not worth it?  On one table of columns, beside a tuned SVC, tuned boosted trees and a random forest.

Run ``python benchmarks/selection.py trees``; ``--sets iris wine`` runs some of the sets and joins them with what was
measured before, ``--quick`` takes one split of three sets and writes nothing.

Is ``SimilarityClassifier()`` a safe choice?  Its error beside those of every method it could have been told to use.

Run ``python benchmarks/selection.py similarity``; ``--quick`` takes two splits of six sets and writes nothing.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    load_wine,
    make_friedman1,
    make_friedman2,
    make_friedman3,
    make_regression,
    make_swiss_roll,
)
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    ShuffleSplit,
    StratifiedKFold,
    StratifiedShuffleSplit,
    train_test_split,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from _measure import RUNS, Targets, machine, pin, run_part, runs_by_set, show, write_table
from kernelweave import MKLClassifier, MKLClassifierCV, MKLRegressor, MKLRegressorCV, SimilarityClassifier
from kernelweave import kernels as kw
from kernelweave.banks import scales
from kernelweave.exceptions import ScaleWarning
from kernelweave_studies.datasets import load_mfeat, load_similarity, load_uci
from kernelweave_studies.similarity.data import FAMILIES, REAL, UCI, protein_split, single_split

MOST, SPLITS, FOLDS = 600, 5, 5
#: sets of ten classes have fewer rows: their fits are the dear ones
MOST_OF_TEN = 300
NORMS = ("l1", 2, "uniform")
CS = (0.1, 1.0, 10.0, 100.0)
GRID = {"svc__C": [0.1, 1.0, 10.0, 100.0], "svc__gamma": ["scale", 0.01, 0.03, 0.1, 0.3]}
METHODS = ("chosen", "largest mean", "always l1", "always uniform", "tuned SVC")
QUICK = ("iris", "wine", "heart")
NOTE = f"""Test accuracy in %, mean over at most {SPLITS} stratified splits into halves, of at most {MOST} rows of each
set ({MOST_OF_TEN} of those with ten classes), columns standardised on the training half. *chosen*:
`MKLClassifierCV` with norms=["l1", 2, "uniform"], which keeps l1 unless another norm is ahead by more than
a standard error; *largest mean*: the pair of norm and C with the largest mean score, without that caution;
*always l1*, *always uniform*: C alone chosen; *tuned SVC*: a Gaussian kernel on all columns, C and width
chosen by a grid search. C in {list(CS)} throughout, {FOLDS} folds, trace normalisation, hinge loss of all
classes together. Kernels: the default bank (Gaussians of 1/4 to 4 median distances and the linear kernel);
on sets with views the same on each view. *seconds*: of the processor, of one search over the three norms.

{{targets}}"""

Sample = tuple[np.ndarray, np.ndarray, Any]


def _flat(load: Callable[..., Any]) -> Callable[[], Sample]:
    def read() -> Sample:
        X, y = load(return_X_y=True)
        return np.asarray(X, dtype=float), np.asarray(y), None

    return read


def _uci(name: str) -> Callable[[], Sample]:
    return _flat(lambda return_X_y: load_uci(name, return_X_y=return_X_y))


def _cancer_views() -> Sample:
    X, y = load_breast_cancer(return_X_y=True)
    return X, y, {"mean": slice(0, 10), "error": slice(10, 20), "worst": slice(20, 30)}


def _mfeat() -> Sample:
    data = load_mfeat()
    return np.asarray(data.data, dtype=float), np.asarray(data.target), data.views


SETS: dict[str, Callable[[], Sample]] = {
    "iris": _flat(load_iris),
    "wine": _flat(load_wine),
    "digits": _flat(load_digits),
    "breast cancer": _flat(load_breast_cancer),
    "breast cancer, three views": _cancer_views,
    "mfeat, six views": _mfeat,
    **{name: _uci(name) for name in ("sonar", "ionosphere", "heart", "pima", "liver")},
}


def _bank(views: Any) -> Any:
    if views is None:
        return kw.default_bank()
    return kw.per_view(views, kw.gaussian([0.25, 0.5, 1.0, 2.0, 4.0], relative=True), kw.linear())


def accuracies(name: str, seed: int) -> dict[str, Any]:
    """Return the accuracy of every method on one split."""
    X, y, views = SETS[name]()
    most = MOST_OF_TEN if np.unique(y).size > 5 else MOST
    size = min(most, len(y)) // 2
    train, test = next(
        StratifiedShuffleSplit(1, train_size=size, test_size=size, random_state=seed).split(X, y)
    )
    scaler = StandardScaler().fit(X[train])
    A, B = scaler.transform(X[train]), scaler.transform(X[test])
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    began = time.process_time()
    search = MKLClassifierCV(_bank(views), Cs=list(CS), norms=list(NORMS), cv=folds).fit(A, y[train])
    seconds = time.process_time() - began
    means = search.cv_results_.groupby(["norm", "C"], sort=False)["score"].mean()
    known = {(search.norm_.label, float(search.C_)): search.score(B, y[test])}

    def score(pairs: Any) -> float:
        """Accuracy of the pair with the largest mean, the first of several."""
        norm, C = pairs[pairs == pairs.max()].index[0]
        if (norm, float(C)) not in known:
            given = {"l1": "l1", "uniform": "uniform"}.get(norm, 2)
            known[norm, float(C)] = (
                MKLClassifier(_bank(views), norm=given, C=C).fit(A, y[train]).score(B, y[test])
            )
        return known[norm, float(C)]

    svc = GridSearchCV(make_pipeline(StandardScaler(), SVC()), GRID, cv=folds).fit(A, y[train])
    return {
        "set": name,
        "split": seed,
        "chosen": search.score(B, y[test]),
        "largest mean": score(means),
        "always l1": score(means[means.index.get_level_values(0) == "l1"]),
        "always uniform": score(means[means.index.get_level_values(0) == "uniform"]),
        "tuned SVC": svc.score(B, y[test]),
        "norm": search.norm_.label,
        "seconds": seconds,
    }


def rows_of(runs: pd.DataFrame) -> list[dict[str, Any]]:
    """Return a row for each set, and one of their means."""
    rows = []
    for name in [name for name in SETS if name in set(runs["set"])]:
        these = runs[runs["set"] == name]
        norms = these["norm"].value_counts()
        rows.append(
            {
                "set": name,
                **{method: round(100.0 * float(these[method].mean()), 1) for method in METHODS},
                "norms chosen": ", ".join(f"{norm} {count}" for norm, count in norms.items()),
                "splits": len(these),
                "seconds": round(float(these["seconds"].median()), 1),
            }
        )
    means = {method: round(float(np.mean([row[method] for row in rows])), 2) for method in METHODS}
    return [*rows, {"set": "mean", **means, "norms chosen": "", "splits": "", "seconds": ""}]


def main() -> None:
    kept = RUNS / "selection_runs.csv"
    table, write = runs_by_set(__doc__, kept, list(SETS), QUICK, SPLITS, accuracies)
    if write:
        table.round(4).to_csv(kept, index=False)
    rows = rows_of(table)
    show(rows)
    targets = Targets()
    for method in ("always l1", "always uniform", "tuned SVC"):
        lost = rows[-1][method] - rows[-1]["chosen"]
        targets.at_most(f"points that choosing loses on average against {method}", lost, 0.5)
    if write:
        write_table("selection", rows, "python benchmarks/selection.py", NOTE.format(targets=targets.text()))


# One table of columns: is MKL worth it?

ONE_TABLE = [name for name in SETS if "views" not in name]
TREES = {"learning_rate": [0.03, 0.1, 0.3], "max_leaf_nodes": [4, 16]}
TREE_METHODS = ("MKL", "tuned SVC", "boosted trees", "random forest")
TREE_NOTE = f"""Test accuracy in %, mean over {SPLITS} stratified splits into halves, of at most {MOST} rows of each set
({MOST_OF_TEN} of those with ten classes). *MKL*: `MKLClassifierCV` on the default bank, C in {list(CS)}, norms l1, 2
and uniform. *tuned SVC*: a Gaussian kernel, C and gamma by a grid search. *boosted trees*:
`HistGradientBoostingClassifier`, learning rate in {TREES["learning_rate"]} and at most {TREES["max_leaf_nodes"]} leaves
by a grid search, 100 trees. *random forest*: 300 trees. {FOLDS} folds throughout; columns standardised for MKL and SVC.
*seconds*: of the processor, of one search with MKL and with boosted trees.

{{targets}}"""


def beside_trees(name: str, seed: int) -> dict[str, Any]:
    """Return the accuracy of every method on one split of one table."""
    X, y, _ = SETS[name]()
    size = min(MOST_OF_TEN if np.unique(y).size > 5 else MOST, len(y)) // 2
    train, test = next(
        StratifiedShuffleSplit(1, train_size=size, test_size=size, random_state=seed).split(X, y)
    )
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    search = MKLClassifierCV(None, Cs=list(CS), norms=list(NORMS), cv=folds)
    boosted = HistGradientBoostingClassifier(max_iter=100, random_state=seed)
    models = {
        "MKL": make_pipeline(StandardScaler(), search),
        "tuned SVC": GridSearchCV(make_pipeline(StandardScaler(), SVC()), GRID, cv=folds),
        "boosted trees": GridSearchCV(boosted, TREES, cv=folds),
        "random forest": RandomForestClassifier(300, random_state=seed),
    }
    row, seconds = {"set": name, "split": seed}, {}
    for method, model in models.items():
        began = time.process_time()
        model.fit(X[train], y[train])
        seconds[method] = time.process_time() - began
        row[method] = model.score(X[test], y[test])
    return row | {f"seconds, {method}": seconds[method] for method in ("MKL", "boosted trees")}


def trees_main() -> None:
    kept = RUNS / "one_table_runs.csv"
    table, write = runs_by_set(__doc__, kept, ONE_TABLE, QUICK, SPLITS, beside_trees)
    if write:
        table.round(4).to_csv(kept, index=False)
    rows = []
    for name in [name for name in ONE_TABLE if name in set(table["set"])]:
        these = table[table["set"] == name]
        seconds = {key: round(float(these[key].median()), 1) for key in these if key.startswith("seconds")}
        scores = {method: round(100.0 * float(these[method].mean()), 1) for method in TREE_METHODS}
        rows.append({"set": name, **scores, **seconds})
    means = {method: round(float(np.mean([row[method] for row in rows])), 2) for method in TREE_METHODS}
    rows.append({"set": "mean", **means, **dict.fromkeys(list(rows[0])[1 + len(means) :], "")})
    show(rows)
    targets = Targets()
    for method in TREE_METHODS[1:]:
        lost = rows[-1][method] - rows[-1]["MKL"]
        targets.at_most(f"points that MKL loses on average against {method}", lost, 1.0)
    if write:
        command = "python benchmarks/selection.py trees"
        write_table("one_table", rows, command, TREE_NOTE.format(targets=targets.text()))


# Which norm should a regression choose?

REGRESSION_SPLITS, REGRESSION_FOLDS, TRAIN, TEST = 4, 5, 150, 300
REGRESSION_NORMS = ("l1", 4 / 3, 2, "uniform")
REGRESSION_CS = np.logspace(-2, 3, 10)
#: beside "l1": C by the mean R2 over the folds, which was the default until now
RULES = ("four, least error", "four, largest R2", "four, l1 in doubt", "p = 4/3", "p = 2", "uniform")
REGRESSION_QUICK = ("friedman1", "heart", "iris")
REGRESSION_NOTE = f"""Squared error on new samples, as 100 log(MSE / MSE of l1 alone): -5 is an error 5 % smaller. Means
over {REGRESSION_SPLITS} splits into at most {TRAIN} training and {TEST} test samples; *mean* and its standard error are
over the sets. *l1*: C by the mean R2 of {REGRESSION_FOLDS} shuffled folds. *four, least error*: l1, p = 4/3, p = 2 and
uniform weights, norm and C of the least squared error over the folds. *four, largest R2*: of the largest mean R2 over
the folds. *four, l1 in doubt*: as the first, but l1 unless the lead is larger than a standard error of the difference
over the folds. *p = 4/3*, *p = 2*, *uniform*: that norm alone, C by the least error. C in ten values from 1e-2 to 1e3,
squared loss, centred kernels of mean diagonal 1, columns and targets standardised on the training samples. Kernels:
Gaussians of 1/4 to 4 median distances and the linear kernel on each view (one view where none is named), a linear and a
Gaussian kernel on each column (*by column*), a linear kernel on each view (*linear*), or those published with the data
(drug response). Real targets are columns of the UCI sets (scikit-learn's iris and wine) that the other columns predict.
*seconds*: of the processor, of one search over the four norms.

{{targets}}"""

WIDE = kw.gaussian([0.25, 0.5, 1.0, 2.0, 4.0], relative=True), kw.linear()


def _data(*parts: str) -> Path:
    return Path(os.environ["KERNELWEAVE_DATA"]).joinpath(*parts)


def _uci_column(
    name: str, target: int, without: tuple[int, ...] = (), views: dict[str, list[int]] | None = None
) -> Any:
    """Predict one column by the others, but for some."""

    def read(_: int) -> Sample:
        table = pd.read_csv(_data("uci", f"{name}.csv")).drop(columns="label").to_numpy(dtype=float)
        columns = [c for c in range(table.shape[1]) if c != target and c not in without]
        named = None
        if views is not None:
            named = {view: [columns.index(c) for c in these if c in columns] for view, these in views.items()}
        bank = kw.per_view(named, *WIDE) if named else sum(WIDE[1:], WIDE[0])
        return table[:, columns], table[:, target], bank

    return read


def _own(load: Callable[..., Any], target: int) -> Any:
    def read(_: int) -> Sample:
        table = load(return_X_y=True)[0]
        return np.delete(table, target, axis=1), table[:, target], sum(WIDE[1:], WIDE[0])

    return read


def _made(make: Callable[[int], tuple[np.ndarray, np.ndarray]], bank: Any) -> Any:
    def read(seed: int) -> Sample:
        X, y = make(seed)
        return X, y, bank

    return read


def _mfeat_feature(_: int) -> Sample:
    """One morphological feature of a handwritten digit, from three other views of it."""
    data = np.load(_data("mfeat", "mfeat.npz"))
    parts = {name: data[name].astype(float) for name in ("fou", "kar", "zer")}
    ends = np.cumsum([0, *(part.shape[1] for part in parts.values())])
    views = {name: slice(a, b) for name, a, b in zip(parts, ends[:-1], ends[1:], strict=True)}
    return np.hstack(list(parts.values())), data["mor"][:, 3].astype(float), kw.per_view(views, *WIDE)


def _response(of: str) -> Any:
    """Responses of the cell lines to one drug, or of one cell line to the drugs; another one on every split."""

    def read(seed: int) -> Sample:
        data = np.load(_data("pairs", "drug_response.npz"), allow_pickle=True)
        Y = data["Y"] if of == "cell" else data["Y"].T
        one = int(np.argsort(-Y.std(axis=1))[5 * seed])
        return np.arange(Y.shape[1]), Y[one], kw.held(data[f"{of}_kernels"].astype(float))

    return read


def _planted(share: float, features: int = 60) -> Callable[[int], tuple[np.ndarray, np.ndarray]]:
    """Twelve views of five columns, of which a share carries a linear signal; half of the variance is noise."""

    def make(seed: int) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(TRAIN + TEST, features))
        used = max(1, round(share * features / 5)) * 5
        signal = X[:, :used] @ rng.normal(size=used)
        return X, signal / signal.std() + rng.normal(size=len(X))

    return make


def _additive(used: int) -> Callable[[int], tuple[np.ndarray, np.ndarray]]:
    """A sum of smooth functions of some of twenty columns."""

    def make(seed: int) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(seed)
        X = rng.uniform(-2.0, 2.0, size=(TRAIN + TEST, 20))
        phase = rng.uniform(0.0, 3.0, size=used)
        signal = np.sin(2.0 * X[:, :used] + phase).sum(axis=1)
        return X, signal / signal.std() + 0.5 * rng.normal(size=len(X))

    return make


def _noisy(make: Callable[..., Any], seed: int) -> tuple[np.ndarray, np.ndarray]:
    X, y = make(TRAIN + TEST, noise=0.0, random_state=seed)
    return X, y + 0.3 * y.std() * np.random.default_rng(seed).normal(size=len(y))


EACH = kw.per_feature(kw.linear(), kw.gaussian(1.0, relative=True))
FIVES = kw.per_view({f"view {k}": slice(5 * k, 5 * k + 5) for k in range(12)}, kw.linear())
BREAST = {"mean": list(range(10)), "error": list(range(10, 20)), "worst": list(range(20, 30))}
TENS = {f"{k}": list(range(10 * k, 10 * k + 10)) for k in range(6)}
REGRESSION_SETS: dict[str, Callable[[int], Sample]] = {
    "friedman1": _made(lambda seed: make_friedman1(TRAIN + TEST, noise=1.0, random_state=seed), sum(WIDE[1:], WIDE[0])),
    "friedman1, by column": _made(lambda seed: make_friedman1(TRAIN + TEST, noise=1.0, random_state=seed), EACH),
    "friedman2, by column": _made(lambda seed: _noisy(make_friedman2, seed), EACH),
    "friedman3, by column": _made(lambda seed: _noisy(make_friedman3, seed), EACH),
    "sparse, linear": _made(_planted(1 / 12), FIVES),
    "a third, linear": _made(_planted(1 / 3), FIVES),
    "dense, linear": _made(_planted(1.0), FIVES),
    "additive 2 of 20, by column": _made(_additive(2), EACH),
    "additive 10 of 20, by column": _made(_additive(10), EACH),
    "additive 20 of 20, by column": _made(_additive(20), EACH),
    "make_regression, low rank": _made(
        lambda seed: make_regression(
            TRAIN + TEST, 60, n_informative=20, effective_rank=10, noise=0.5, random_state=seed
        ),
        FIVES,
    ),
    "swiss roll": _made(
        lambda seed: make_swiss_roll(TRAIN + TEST, noise=0.5, random_state=seed), sum(WIDE[1:], WIDE[0])
    ),
    "iris": _own(load_iris, 3),
    "wine": _own(load_wine, 12),
    "liver": _uci_column("liver", 5),
    "heart": _uci_column("heart", 7),
    "pima": _uci_column("pima", 1),
    "breast": _uci_column("breast", 0),
    "wdbc, three views": _uci_column("wdbc", 15, (5, 25), BREAST),
    "sonar, six views": _uci_column("sonar", 29, tuple(range(25, 34)), TENS),
    "ionosphere": _uci_column("ionosphere", 8),
    "mfeat, three views": _mfeat_feature,
    "one drug, cell kernels": _response("cell"),
    "one cell line, drug kernels": _response("drug"),
}  # fmt: skip


def errors(name: str, seed: int) -> dict[str, Any]:
    """Return the squared error of every rule on one split."""
    X, y, bank = REGRESSION_SETS[name](seed)
    size = min(TRAIN, int(0.7 * len(y)))
    train, test = next(
        ShuffleSplit(1, train_size=size, test_size=min(TEST, len(y) - size), random_state=seed).split(
            y[:, None]
        )
    )
    if X.ndim == 2:
        scaler = StandardScaler().fit(X[train])
        A, B = scaler.transform(X[train]), scaler.transform(X[test])
    else:
        A, B = X[train], X[test]
    mean, spread = y[train].mean(), y[train].std()
    a, b = (y[train] - mean) / spread, (y[test] - mean) / spread
    folds = KFold(REGRESSION_FOLDS, shuffle=True, random_state=seed)
    began = time.process_time()
    search = MKLRegressorCV(
        bank, Cs=REGRESSION_CS, norms=REGRESSION_NORMS, cv=folds, scoring="neg_mean_squared_error"
    ).fit(A, a)
    seconds = time.process_time() - began
    scores = search.cv_results_.pivot_table(index="fold", columns=["norm", "C"], values="score", sort=False)
    variance = np.array([np.var(a[held_out]) for _, held_out in folds.split(a)])
    labels = list(dict.fromkeys(search.cv_results_["norm"]))
    given = dict(zip(labels, REGRESSION_NORMS, strict=True))
    known: dict[Any, float] = {}

    def error(pair: Any) -> float:
        if pair not in known:
            fitted = MKLRegressor(bank, norm=given[pair[0]], C=pair[1], center=True).fit(A, a)
            known[pair] = float(np.mean((fitted.predict(B) - b) ** 2))
        return known[pair]

    means = scores.mean()
    best = means.idxmax()
    sparse = ("l1", means["l1"].idxmax())
    lead = scores[best] - scores[sparse]
    clear = best[0] != "l1" and lead.mean() > lead.std(ddof=1) / np.sqrt(len(lead))
    by_r2 = (1.0 + scores.div(variance, axis=0)).mean()
    return {
        "set": name,
        "split": seed,
        "l1": error(("l1", by_r2["l1"].idxmax())),
        "four, least error": error(best),
        "four, largest R2": error(by_r2.idxmax()),
        "four, l1 in doubt": error(best if clear else sparse),
        **{
            rule: error((label, means[label].idxmax()))
            for rule, label in zip(RULES[3:], labels[1:], strict=True)
        },
        "norm": best[0],
        "seconds": seconds,
    }


def regression_rows(runs: pd.DataFrame) -> list[dict[str, Any]]:
    """Return a row for each set, one of their means, and one of the standard errors."""
    rows = []
    for name in [name for name in REGRESSION_SETS if name in set(runs["set"])]:
        these = runs[runs["set"] == name]
        norms = these["norm"].value_counts()
        rows.append(
            {
                "set": name,
                "MSE of l1": float(these["l1"].mean()),
                **{rule: float(np.mean(100.0 * np.log(these[rule] / these["l1"]))) for rule in RULES},
                "norms chosen": ", ".join(f"{norm} {count}" for norm, count in norms.items()),
                "seconds": float(these["seconds"].median()),
            }
        )
    table = pd.DataFrame(rows)
    last = {"MSE of l1": "", "norms chosen": "", "seconds": ""}
    shown = [{**row, **{key: round(row[key], 2) for key in RULES}, "MSE of l1": round(row["MSE of l1"], 3),
              "seconds": round(row["seconds"], 1)} for row in rows]  # fmt: skip
    means = {rule: round(float(table[rule].mean()), 2) for rule in RULES}
    spread = {rule: round(float(table[rule].std(ddof=1)) / np.sqrt(len(table)), 2) for rule in RULES}
    worst = {rule: round(float(table[rule].max()), 2) for rule in RULES}
    return [*shown, *({"set": name, **last, **values} for name, values in
                      (("mean", means), ("its standard error", spread), ("worst set", worst)))]  # fmt: skip


def regression_main() -> None:
    kept = RUNS / "regression_norms_runs.csv"
    table, write = runs_by_set(
        __doc__, kept, list(REGRESSION_SETS), REGRESSION_QUICK, REGRESSION_SPLITS, errors
    )
    rows = regression_rows(table)
    show(rows)
    targets = Targets()
    ours = next(row for row in rows if row["set"] == "mean")["four, least error"]
    targets.at_most(
        "100 log(MSE / MSE of l1) of four norms by the least error, mean over the sets", ours, 0.0
    )
    if write:
        table.round(5).to_csv(kept, index=False)
        command = "python benchmarks/selection.py regression"
        write_table("regression_norms", rows, command, REGRESSION_NOTE.format(targets=targets.text()))


# What scaling is worth.

SCALES_SPLITS = 5
SCALES_NOTE = f"""\
`MKLClassifierCV(random_state=split).fit(X, y)` with all defaults on 70 % of the rows, stratified, and
the same behind `StandardScaler()` in a pipeline; accuracy in % on the other 30 %, mean over {SCALES_SPLITS} splits.
*said, raw*: the warning about scales, with the number of splits that had it; *said, scaled*: the same behind the
scaler. *looking*: time of the look at the kernels, in % of the whole fit, median.

{{targets}}"""

SCALES_SETS: dict[str, Callable[..., Any]] = {
    "wine": load_wine,
    "breast cancer": load_breast_cancer,
    **{
        name: lambda return_X_y, name=name: load_uci(name, return_X_y=return_X_y)
        for name in ("heart", "pima", "liver", "ionosphere")
    },
}


def tried(model: Any, X: np.ndarray, y: np.ndarray, seed: int) -> tuple[float, list[str], float]:
    """Return accuracy on held-out rows, what was said of scales, and the share of the time that looking took."""
    A, B, a, b = train_test_split(X, y, test_size=0.3, stratify=y, random_state=seed)
    spent = 0.0
    look = scales.findings_of_kernels

    def timed(*given: Any) -> tuple[str, ...]:
        nonlocal spent
        began = time.perf_counter()
        found = look(*given)
        spent += time.perf_counter() - began
        return found

    scales.findings_of_kernels = timed
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            began = time.perf_counter()
            model.fit(A, a)
            whole = time.perf_counter() - began
    finally:
        scales.findings_of_kernels = look
    said = [str(one.message) for one in caught if one.category is ScaleWarning]
    return float(model.score(B, b)), said, spent / whole


def scales_row(name: str, splits: int) -> dict[str, Any]:
    """Return the row of one set."""
    X, y = SCALES_SETS[name](return_X_y=True)
    X, y = np.asarray(X, dtype=float), np.asarray(y)
    raw, scaled = [], []
    for seed in range(splits):
        raw.append(tried(MKLClassifierCV(random_state=seed), X, y, seed))
        scaled.append(tried(make_pipeline(StandardScaler(), MKLClassifierCV(random_state=seed)), X, y, seed))

    def sayings(results: list[tuple[float, list[str], float]]) -> str:
        # the figures differ from split to split: what comes before them is the same
        counts = Counter(sentence.split(". ")[0] for _, said, _ in results for sentence in said[:1])
        first = next(iter(counts), "nothing")
        return f"{first} ({sum(counts.values())} of {splits})" if counts else first

    return {
        "set": name,
        "n": len(y),
        "columns": X.shape[1],
        "raw": round(100 * float(np.mean([accuracy for accuracy, _, _ in raw])), 1),
        "scaled": round(100 * float(np.mean([accuracy for accuracy, _, _ in scaled])), 1),
        "said, raw": sayings(raw),
        "said, scaled": sayings(scaled),
        "looking": round(100 * float(np.median([share for _, _, share in raw + scaled])), 2),
    }


def scales_main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one split of two sets, nothing is written")
    quick = parser.parse_args().quick
    pin()
    print(machine())
    MKLClassifierCV(Cs=[1.0], cv=2).fit(np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 2)
    rows = []
    for name in list(SCALES_SETS)[:2] if quick else SCALES_SETS:
        rows.append(scales_row(name, 1 if quick else SCALES_SPLITS))
        print(rows[-1], flush=True)
    show(rows)
    targets = Targets()
    lost = [row for row in rows if row["scaled"] - row["raw"] > 2.0]
    silent = sum(row["said, raw"] == "nothing" for row in lost)
    targets.at_most("sets that lose more than two points and are told nothing", silent, 0)
    alarms = sum(row["said, scaled"] != "nothing" for row in rows)
    targets.at_most("sets that are told something though they are scaled", alarms, 0)
    targets.at_most(
        "largest share of the time that looking takes, %", max(row["looking"] for row in rows), 1.0
    )
    if not quick:
        write_table(
            "scales",
            rows,
            "python benchmarks/selection.py scales",
            SCALES_NOTE.format(targets=targets.text()),
        )


# The default on similarities.

# Similarity sets: name, kind, and a split of each by number.

#: similarities of all samples (m, n, n), labels, training and test samples
Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
NAMES = ("smith_waterman", "needleman_wunsch", "psi_blast")
#: samples of the sets with several superfamilies, and the share to train on
MOST_OF_FAMILIES, SHARE = 320, 0.6


def _single(name: str, seed: int) -> Split:
    split = single_split(name, seed)
    return split.stack, split.y, split.train, split.test


def _family(family: str, which: slice, seed: int) -> Split:
    split = protein_split(family, seed)
    return split.stack[which], split.y, split.train, split.test


def _several(families: tuple[str, ...], which: slice, seed: int) -> Split:
    """Superfamilies as they come, not balanced."""
    loaded = load_similarity("scop40")
    rng = np.random.default_rng([seed, 5])
    rows = rng.permutation(np.flatnonzero(np.isin(loaded.target, families)))[:MOST_OF_FAMILIES]
    stack = loaded.similarities[which][:, rows][:, :, rows]
    first = round(SHARE * rows.size)
    return stack, loaded.target[rows], np.arange(first), np.arange(first, rows.size)


def _linear(name: str, seed: int) -> Split:
    """The linear kernel of standardised columns: positive semidefinite and of low rank."""
    X, y = load_uci(name, return_X_y=True)
    rows = np.random.default_rng([seed, 9]).permutation(len(y))[:200]
    X, y = X[rows], y[rows]
    X = (X - X[:120].mean(axis=0)) / np.maximum(X[:120].std(axis=0), 1e-12)
    return (X @ X.T)[None], y, np.arange(120), np.arange(120, 200)


def _all() -> dict[str, Callable[[int], Split]]:
    sets: dict[str, Callable[[int], Split]] = {name: partial(_single, name) for name in (*UCI, *REAL)}
    every = slice(None)
    for family in FAMILIES:
        sets[f"{family}, three similarities"] = partial(_family, family, every)
        for j, name in enumerate(NAMES):
            sets[f"{family}, {name}"] = partial(_family, family, slice(j, j + 1))
    for count in (4, 8):
        families = FAMILIES[:count]
        sets[f"{count} superfamilies, three similarities"] = partial(_several, families, every)
        for j, name in enumerate(NAMES):
            sets[f"{count} superfamilies, {name}"] = partial(_several, families, slice(j, j + 1))
    for name in ("sonar", "wdbc"):
        sets[f"{name}, linear kernel"] = partial(_linear, name)
    return sets


SIMILARITY_SETS = _all()


SIMILARITY_SPLITS = 20
#: by the rule of the literature, and by the smooth one
SIMILARITY_METHODS = (
    ("denoise", "classical"),
    ("flip", "classical"),
    ("features", "classical"),
    ("denoise", "smooth"),
    ("flip", "smooth"),
)
SIMILARITY_QUICK = (
    "sonar",
    "aural_sonar",
    "voting",
    "a.4.1, three similarities",
    "c.47.1, needleman_wunsch",
    "wdbc, linear kernel",
)
SIMILARITY_NOTE = f"""\
Test error in %, mean over {SIMILARITY_SPLITS} splits. *default*: `SimilarityClassifier()`, chooses method and rule
by cross-validation on the training block; *denoise*, *flip*, *features*: told to use that method, the first three with
rule="classical", then with rule="smooth". C = 1 throughout, similarities scaled on the training block. *above*: the
default's error less that of the best of the first three columns on that set; *above any*: less that of the best of
all five, which nobody can know before. *chosen*: what the default took, by number of splits; *gap*: the largest
relative gap of a certificate; *seconds*: of the processor, of one default fit.

Sets: noisy Gaussians of UCI columns (48 + 48 training samples at most), Aural Sonar and Voting, each of eight protein
superfamilies against the rest with three similarities together and one by one (40 + 40 training samples), four and
eight superfamilies as classes ({320} samples, 60 % of them to train on), and linear kernels, which are positive
semidefinite and of low rank.

{{targets}}"""


def _title(method: str, rule: str) -> str:
    return method if method == "features" else f"{method}, {rule}"


def errors_of(split: Split) -> tuple[dict[tuple[str, str], float], dict[str, Any]]:
    """Return the error of every method on one split, and what the default did."""
    stack, y, train, test = split
    block, rows = stack[:, train][:, :, train], stack[:, test][:, :, train]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        began = time.process_time()
        default = SimilarityClassifier().fit(block, y[train])
        seconds = time.process_time() - began
        told = {}
        for method, rule in SIMILARITY_METHODS:
            told[method, rule] = 1.0 - SimilarityClassifier(method=method, rule=rule).fit(
                block, y[train]
            ).score(rows, y[test])
    return told, {
        "error": 1.0 - default.score(rows, y[test]),
        "chosen": _title(default.method_, default.rule_),
        "gap": float(default.certificate_.relative_gap),
        "findings": len(default.findings_),
        "seconds": seconds,
    }


def similarity_row(name: str, splits: int) -> dict[str, Any]:
    """Return the row of one set."""
    pairs = [errors_of(SIMILARITY_SETS[name](seed)) for seed in range(splits)]
    told = {
        pair: 100.0 * float(np.mean([errors[pair] for errors, _ in pairs])) for pair in SIMILARITY_METHODS
    }
    mine = [facts for _, facts in pairs]
    error = 100.0 * float(np.mean([facts["error"] for facts in mine]))
    best = min(told[pair] for pair in SIMILARITY_METHODS[:3])
    chosen = Counter(facts["chosen"] for facts in mine).most_common()
    return {
        "set": name,
        "default": round(error, 1),
        **{
            f"{method}, {rule}" if method != "features" else method: round(told[method, rule], 1)
            for method, rule in SIMILARITY_METHODS
        },
        "above": round(error - best, 2),
        "above any": round(error - min(told.values()), 2),
        "chosen": "; ".join(f"{what} {count}" for what, count in chosen),
        "gap": max(facts["gap"] for facts in mine),
        "findings": sum(facts["findings"] for facts in mine),
        "seconds": round(float(np.median([facts["seconds"] for facts in mine])), 2),
    }


def similarity_main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two splits of six sets, nothing is written")
    quick = parser.parse_args().quick
    pin()
    print(machine())
    rows = []
    for name in SIMILARITY_QUICK if quick else SIMILARITY_SETS:
        rows.append(similarity_row(name, 2 if quick else SIMILARITY_SPLITS))
        print(rows[-1], flush=True)
    show(rows)
    targets = Targets()
    worst = max(rows, key=lambda row: row["above"])
    targets.at_most(
        f"points above the best of denoise, flip and features, at worst ({worst['set']})", worst["above"], 2.0
    )
    targets.at_most("largest relative gap of a default fit", max(row["gap"] for row in rows), 0.01)
    below = np.mean([row["default"] for row in rows])
    best = min(np.mean([row[key] for row in rows]) for key in list(rows[0])[2:7])
    targets.at_most("mean error over all sets, less that of the best single method", float(below - best), 0.5)
    if not quick:
        write_table(
            "similarity_defaults",
            rows,
            "python benchmarks/selection.py similarity",
            SIMILARITY_NOTE.format(targets=targets.text()),
        )


if __name__ == "__main__":
    run_part(
        main, trees=trees_main, regression=regression_main, scales=scales_main, similarity=similarity_main
    )
