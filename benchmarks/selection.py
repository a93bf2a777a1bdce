"""Does choosing the norm pay?  ``MKLClassifierCV`` with three norms beside always-l1, always-uniform and a tuned SVC.

Run ``python benchmarks/selection.py``; ``--sets iris wine`` runs some of the sets and joins them with what was measured
before, ``--quick`` takes one split of three sets and writes nothing.  Data come from scikit-learn and from the folder
named by ``KERNELWEAVE_DATA``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.model_selection import GridSearchCV, StratifiedKFold, StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from _measure import runs_by_set
from _report import RUNS, Targets, show, write_table
from kernelweave import MKLClassifier, MKLClassifierCV
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


if __name__ == "__main__":
    main()
