"""Does choosing the norm pay?  ``MKLClassifierCV`` with three norms beside always-l1, always-uniform and a tuned SVC.

Run ``python benchmarks/selection.py``; ``--sets iris wine`` runs some of the sets and joins them with what was measured
before, ``--quick`` takes one split of three sets and writes nothing.  Data come from scikit-learn and from the folder
named by ``KERNELWEAVE_DATA``.

Which norm should ``MKLRegressorCV`` choose by default?  Rules over four norms beside l1 alone, by squared error.

Run ``python benchmarks/selection.py regression``; ``--sets friedman1 heart`` runs some of the sets and joins them with
what was measured before, ``--quick`` takes one split of three sets and writes nothing.  Data come from scikit-learn and
from the folder named by ``KERNELWEAVE_DATA``."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
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
from sklearn.model_selection import GridSearchCV, KFold, ShuffleSplit, StratifiedKFold, StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from _measure import runs_by_set
from _report import RUNS, Targets, run_part, show, write_table
from kernelweave import MKLClassifier, MKLClassifierCV, MKLRegressor, MKLRegressorCV
from kernelweave import kernels as kw
from kernelweave_studies.datasets import load_mfeat, load_uci

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


if __name__ == "__main__":
    run_part(main, regression=regression_main)
