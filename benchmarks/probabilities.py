"""Are probabilities from the folds that chose C as good as those of ``CalibratedClassifierCV``, and what do they cost?

Run ``python benchmarks/probabilities.py``; ``--sets wine heart`` runs some of the sets and joins them with what was
measured before, ``--quick`` takes one split of three sets and writes nothing.  Data come from scikit-learn and from the
folder named by ``KERNELWEAVE_DATA``; TorchKM is left out where it is not installed.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit
from sklearn.preprocessing import StandardScaler

from _measure import RUNS, Targets, run_part, runs_by_set, show, write_table
from kernelweave import MKLClassifier, MKLClassifierCV
from kernelweave import kernels as kw
from kernelweave.estimators.fitted import Calibration
from selection import SETS as ALL
from selection import load_digits

try:
    from torchkm.estimators import TorchKMSVC
except ImportError:
    TorchKMSVC = None

SPLITS, FOLDS, MOST, MOST_OF_TEN = 5, 5, 600, 400
NAMES = ("wine", "digits", "breast cancer", "sonar", "ionosphere", "heart", "pima", "liver")
QUICK = ("wine", "heart", "sonar")
METHODS = ("folds", "around the search", "around the model", "logistic", "logistic, folds", "TorchKM")
NOTE = f"""Log loss, Brier score (the sum over classes) and calibration error (ten bins of equal width, of several
classes pooled) on test samples, means over {SPLITS} stratified splits into halves, of at most {MOST} rows of each set
({MOST_OF_TEN} of digits), columns standardised on the training half. *folds*: `MKLClassifierCV()`, hinge, l1, ten
values of C, the default bank: probabilities from the {FOLDS} folds that chose C. *around the search*:
`CalibratedClassifierCV` around the same `MKLClassifierCV`, on {FOLDS} folds, by a sigmoid for two classes and a
temperature for several; *around the model*: the same around `MKLClassifier` at the C that was chosen, which nobody
knows before the search. *logistic*: `MKLClassifierCV(loss="logistic", probability=False)`, the probabilities of the
loss; *logistic, folds*: with `probability=True`. *TorchKM*: `TorchKMSVC(kernel="rbf", cv={FOLDS}, device="cpu",
probability=True)` as it comes on one Gaussian kernel, two classes only: its sigmoid came out flat where its
calibration error is near zero and its log loss near .65. *lost*: mean log loss of *folds* less that of *around the
search*, in thousandths, with its standard error over the splits. *map*: share of the seconds of *folds* that the
calibration takes; *of the search's*: its seconds over those of *around the search*; *of the model's*: seconds of the
calibration over those of *around the model*. Seconds of the processor.

{{targets}}"""


def scores(y: np.ndarray, shares: np.ndarray, classes: np.ndarray) -> tuple[float, float, float]:
    """Return log loss, Brier score and calibration error."""
    happened = y[:, None] == classes
    columns = [1] if classes.size == 2 else range(classes.size)
    p = np.concatenate([shares[:, k] for k in columns])
    t = np.concatenate([happened[:, k] for k in columns]).astype(float)
    bins = np.minimum((10 * p).astype(int), 9)
    gaps = np.abs(np.bincount(bins, p - t, 10))
    brier = float(np.mean(np.sum((shares - happened) ** 2, axis=1)))
    return float(log_loss(y, shares, labels=classes)), brier, float(gaps.sum() / p.size)


def measure(name: str, seed: int) -> dict[str, Any]:
    """Return the scores and seconds of every method on one split."""
    X, y, _ = ALL[name]()
    size = min(MOST_OF_TEN if name == "digits" else MOST, len(y)) // 2
    train, test = next(
        StratifiedShuffleSplit(1, train_size=size, test_size=size, random_state=seed).split(X, y)
    )
    scaler = StandardScaler().fit(X[train])
    A, B = scaler.transform(X[train]), scaler.transform(X[test])
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    bank, row = kw.default_bank(), {"set": name, "split": seed}
    classes = np.unique(y)
    method = "sigmoid" if classes.size == 2 else "temperature"
    learn, spent = Calibration.learn, []

    def timed(held_out: Any) -> Any:
        began = time.process_time()
        found = learn(held_out)
        spent.append(time.process_time() - began)
        return found

    def keep(what: str, fit: Callable[[], Any]) -> Any:
        began = time.process_time()
        model = fit()
        row[f"{what}: seconds"] = time.process_time() - began
        add(what, model.predict_proba(B))
        return model

    def add(what: str, shares: np.ndarray) -> None:
        found = scores(y[test], shares, classes)
        row.update(
            {
                f"{what}: {kind}": value
                for kind, value in zip(("log loss", "brier", "error"), found, strict=True)
            }
        )

    search = MKLClassifierCV(bank, cv=folds)
    Calibration.learn = timed
    chosen = keep("folds", lambda: search.fit(A, y[train]))
    Calibration.learn = learn
    row["map seconds"] = spent[0]
    keep(
        "around the search",
        lambda: CalibratedClassifierCV(MKLClassifierCV(bank), method=method, cv=folds).fit(A, y[train]),
    )
    model = MKLClassifier(bank, C=chosen.C_)
    keep("around the model", lambda: CalibratedClassifierCV(model, method=method, cv=folds).fit(A, y[train]))
    logistic = keep(
        "logistic, folds", lambda: MKLClassifierCV(bank, loss="logistic", cv=folds).fit(A, y[train])
    )
    add("logistic", logistic.loss_.probabilities(logistic.decision_function(B)))
    if TorchKMSVC is not None and classes.size == 2:
        signs = np.where(y == classes[1], 1, -1)
        other = TorchKMSVC(kernel="rbf", cv=FOLDS, device="cpu", probability=True, random_state=seed)
        keep("TorchKM", lambda: other.fit(A, signs[train]))
    return row


def rows_of(runs: pd.DataFrame) -> list[dict[str, Any]]:
    """Return a row for each set, and one of their means."""
    rows = []
    for name in [name for name in NAMES if name in set(runs["set"])]:
        these = runs[runs["set"] == name]
        lost = 1000.0 * (these["folds: log loss"] - these["around the search: log loss"])
        row: dict[str, Any] = {"set": name}
        for kind, title in (("log loss", ""), ("brier", "Brier, "), ("error", "error, ")):
            for method in METHODS:
                column = f"{method}: {kind}"
                known = column in these and these[column].notna().all()
                row[f"{title}{method}"] = round(float(these[column].mean()), 3) if known else ""
        row["lost"] = round(float(lost.mean()), 1)
        row["of which noise"] = (
            round(float(lost.std(ddof=1) / np.sqrt(max(len(lost), 2))), 1) if len(lost) > 1 else ""
        )
        seconds = {what: float(these[f"{what}: seconds"].sum()) for what in METHODS[:3]}
        row["seconds"] = round(seconds["folds"] / len(these), 2)
        row["map"] = float(these["map seconds"].sum()) / seconds["folds"]
        row["of the search's"] = round(seconds["folds"] / seconds["around the search"], 3)
        row["of the model's"] = float(these["map seconds"].sum()) / seconds["around the model"]
        rows.append(row)
    means = []
    for title, those in (
        ("mean, two classes", [row for row in rows if row["TorchKM"] != ""]),
        ("mean", rows),
    ):
        mean: dict[str, Any] = {"set": title}
        for key in list(rows[0])[1:]:
            numbers = [row[key] for row in those if row[key] != ""]
            mean[key] = round(float(np.mean(numbers)), 5) if len(numbers) == len(those) > 0 else ""
        means.append(mean)
    return [*rows, *means]


def main() -> None:
    warnings.simplefilter("ignore")
    # compile before anything is timed
    X, y = load_digits(return_X_y=True)
    for k in (2, 3):
        MKLClassifierCV(kw.default_bank(), Cs=[1.0], cv=2).fit(X[y < k][:60] / 16.0, y[y < k][:60])
        MKLClassifierCV(kw.default_bank(), loss="logistic", Cs=[1.0], cv=2).fit(
            X[y < k][:60] / 16.0, y[y < k][:60]
        )
    kept = RUNS / "probabilities_runs.csv"
    table, write = runs_by_set(__doc__, kept, list(NAMES), QUICK, SPLITS, measure)
    if write:
        table.round(5).to_csv(kept, index=False)
    rows = rows_of(table)
    show(rows)
    targets = Targets()
    for other in ("around the search", "around the model"):  # paired by split, and sets as units
        lost = (table["folds: log loss"] - table[f"{other}: log loss"]).groupby(table["set"]).mean()
        error = float(lost.std(ddof=1) / np.sqrt(lost.size))
        what = f"mean log loss above that {other} (standard error {error:.4f})"
        targets.at_most(what, float(lost.mean()), 0.005)
    map_share, of_model = (max(row[key] for row in rows) for key in ("map", "of the model's"))
    targets.at_most("share of the fit's seconds that the calibration takes, the largest", map_share, 0.2)
    targets.at_most("its seconds over those around the model, the largest", of_model, 0.2)
    targets.at_most(
        "seconds of search, fit and calibration over those around the search",
        rows[-1]["of the search's"],
        0.3,
    )
    if write:
        write_table(
            "probabilities", rows, "python benchmarks/probabilities.py", NOTE.format(targets=targets.text())
        )


if __name__ == "__main__":
    run_part(main)
