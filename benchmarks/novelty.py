"""Which norm should ``MKLOneClass`` have?  Area under the ROC curve with one class as usual, beside ``OneClassSVM``.

Run ``python benchmarks/novelty.py``; ``--sets wine heart`` runs some of the sets and joins them with what was measured
before, ``--quick`` takes one split of three sets and writes nothing.  Data come from scikit-learn and from the folder
named by ``KERNELWEAVE_DATA``.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

from _measure import RUNS, Targets, run_part, runs_by_set, show, write_table
from kernelweave import MKLOneClass
from kernelweave import kernels as kw
from selection import SETS as ALL

SPLITS, MOST, NU, CLASSES = 3, 200, 0.1, 4
NAMES = ("wine", "digits", "breast cancer", "sonar", "ionosphere", "heart", "pima", "liver")
QUICK = ("wine", "heart", "sonar")
NORMS: dict[str, Any] = {"uniform": "uniform", "p = 2": 2, "p = 4/3": 4 / 3, "l1": "l1"}
BANKS: dict[str, Any] = {
    "widths": kw.gaussian([0.25, 0.5, 1.0, 2.0, 4.0], relative=True),
    "columns": kw.per_feature(kw.gaussian(1.0, relative=True)),
}
NOTE = f"""Area under the ROC curve of `score_samples` on samples that were not learnt from, one class being usual and
all others not: means over the (first {CLASSES}) classes of each set in turn and {SPLITS} draws of half of that class,
at most {MOST} samples, columns standardised on them; nu = {NU}. *widths*: Gaussians of 1/4 to 4 median distances on all
columns; *columns*: a Gaussian on each. *OneClassSVM*: scikit-learn's, one Gaussian, `gamma="scale"`. *largest gap*: of
the certificates, which ask for 1e-3.

{{targets}}"""


def measure(name: str, seed: int) -> dict[str, Any]:
    """Return the areas of every method on one draw, means over the classes."""
    X, y, _ = ALL[name]()
    rows = []
    for usual in np.unique(y)[:CLASSES]:
        own = np.random.default_rng(seed).permutation(np.flatnonzero(y == usual))
        train = own[: min(len(own) // 2, MOST)]
        test = np.setdiff1d(np.arange(len(y)), train)
        scaler = StandardScaler().fit(X[train])
        A, B, inside = scaler.transform(X[train]), scaler.transform(X[test]), y[test] == usual
        row: dict[str, Any] = {"gap": 0.0}
        began = time.process_time()
        for where, bank in BANKS.items():
            for what, norm in NORMS.items():
                model = MKLOneClass(bank, norm=norm, nu=NU).fit(A)
                row[f"{where}, {what}"] = roc_auc_score(inside, model.score_samples(B))
                row["gap"] = max(row["gap"], model.certificate_.relative_gap)
        row["seconds"] = time.process_time() - began
        row["OneClassSVM"] = roc_auc_score(inside, OneClassSVM(nu=NU).fit(A).score_samples(B))
        rows.append(row)
    table = pd.DataFrame(rows)
    return {"set": name, "split": seed, **table.mean().to_dict(), "gap": table["gap"].max()}


def rows_of(runs: pd.DataFrame) -> list[dict[str, Any]]:
    """Return a row for each set, and one of their means."""
    rows = []
    columns = [*(f"{where}, {what}" for where in BANKS for what in NORMS), "OneClassSVM"]
    for name in [name for name in NAMES if name in set(runs["set"])]:
        these = runs[runs["set"] == name]
        areas = {column: round(float(these[column].mean()), 3) for column in columns}
        rows.append({"set": name, **areas, "largest gap": float(these["gap"].max())})
    means = {column: round(float(np.mean([row[column] for row in rows])), 3) for column in columns}
    return [*rows, {"set": "mean", **means, "largest gap": max(row["largest gap"] for row in rows)}]


def main() -> None:
    kept = RUNS / "novelty_runs.csv"
    table, write = runs_by_set(__doc__, kept, list(NAMES), QUICK, SPLITS, measure)
    if write:
        table.round(5).to_csv(kept, index=False)
    rows = rows_of(table)
    show(rows)
    targets, mean = Targets(), rows[-1]
    for where in BANKS:
        best = max(mean[f"{where}, {what}"] for what in NORMS)
        lost = round(best - mean[f"{where}, uniform"], 3)
        targets.at_most(f"area that equal weights lose to the best norm, {where}", lost, 0.02)
    lost = round(mean["OneClassSVM"] - mean["widths, uniform"], 3)
    targets.at_most("area that equal weights lose to OneClassSVM, widths", lost, 0.01)
    targets.at_most("largest gap", mean["largest gap"], 1e-3)
    if write:
        write_table("novelty", rows, "python benchmarks/novelty.py", NOTE.format(targets=targets.text()))


if __name__ == "__main__":
    run_part(main)
