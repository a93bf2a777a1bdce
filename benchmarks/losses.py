"""How many new samples lie below predicted quantiles?

Run ``python benchmarks/losses.py quantiles``; ``--quick`` takes two splits and writes nothing.  Data come from
scikit-learn and from the folder named by ``KERNELWEAVE_DATA``.

What is the order of classes worth?

Run ``python benchmarks/losses.py ordinal``; ``--quick`` takes two splits and writes nothing.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes, make_friedman1, make_friedman3
from sklearn.linear_model import QuantileRegressor
from sklearn.metrics import mean_pinball_loss
from sklearn.model_selection import ShuffleSplit
from sklearn.preprocessing import StandardScaler

from _measure import pin, run_part, show, write_table
from kernelweave import MKLClassifierCV, MKLRegressorCV
from kernelweave import kernels as kw

LEVELS = [0.05, 0.5, 0.95]
#: training samples at most, and splits
MOST, SPLITS = 400, 10
#: ordered classes that a target is cut into, and training samples of them
FIFTHS, FEWER = 5, 200
Sample = tuple[np.ndarray, np.ndarray]


def _table(*parts: str) -> pd.DataFrame:
    return pd.read_csv(Path(os.environ["KERNELWEAVE_DATA"], *parts))


def _esol() -> Sample:
    table = _table("molecules", "ESOL.csv")
    return table.iloc[:, 2:8].to_numpy(float), table.iloc[:, 8].to_numpy(float)


def _texture() -> Sample:
    table = _table("uci", "wdbc.csv")
    return table.drop(columns=["f2", "f22", "label"]).to_numpy(float), table["f2"].to_numpy(float)


NUMBERS: dict[str, Callable[[], Sample]] = {
    "diabetes": lambda: load_diabetes(return_X_y=True),
    "ESOL": _esol,
    "wdbc, texture": _texture,
    "friedman1": lambda: make_friedman1(600, noise=1.0, random_state=0),
    "friedman3": lambda: make_friedman3(600, noise=0.3, random_state=0),
}


def _bank() -> Any:
    return kw.gaussian([0.25, 0.5, 1.0, 2.0, 4.0], relative=True) + kw.linear()


def _splits(X: np.ndarray, number: int) -> Any:
    for train, test in ShuffleSplit(number, test_size=1 / 3, random_state=0).split(X):
        train = train[:MOST]
        scaler = StandardScaler().fit(X[train])
        yield scaler.transform(X[train]), scaler.transform(X[test]), train, test


def quantiles_row(name: str, number: int) -> dict[str, Any]:
    """Shares of new samples below each quantile, in percent, and pinball losses beside linear quantile regression."""
    X, y = NUMBERS[name]()
    below, losses, seconds = [], [], []
    for before, after, train, test in _splits(X, number):
        centre, scale = y[train].mean(), y[train].std()
        targets, new = (y[train] - centre) / scale, (y[test] - centre) / scale
        began = time.process_time()
        model = MKLRegressorCV(_bank(), loss="quantile", quantiles=LEVELS, norm="l1").fit(before, targets)
        seconds.append(time.process_time() - began)
        predicted = model.predict(after)
        below.append(np.mean(new[:, None] <= predicted, axis=0))
        linear = [
            QuantileRegressor(quantile=q, alpha=0.0).fit(before, targets).predict(after) for q in LEVELS
        ]
        losses.append(
            [
                np.mean([mean_pinball_loss(new, f, alpha=q) for f, q in zip(table, LEVELS, strict=True)])
                for table in (predicted.T, linear)
            ]
        )
    shares, (ours, theirs) = 100 * np.mean(below, axis=0), np.mean(losses, axis=0)
    return {
        "set": name, "n": len(y), "below q5": shares[0], "below q50": shares[1], "below q95": shares[2],
        "between q5 and q95": shares[2] - shares[0], "pinball loss": ours, "of linear quantiles": theirs,
        "seconds": np.mean(seconds),
    }  # fmt: skip


def quantiles_main() -> None:
    """Measure quantiles on every set."""
    options = _options()
    rows = [quantiles_row(name, 2 if options.quick else SPLITS) for name in NUMBERS]
    show(rows)
    if not options.quick:
        off = max(abs(row["between q5 and q95"] - 90) for row in rows)
        note = (
            "Shares of new samples (percent) below predicted quantiles, means over 10 splits into two thirds (at most\n"
            "400) for training and one third for the test. `MKLRegressorCV(loss='quantile', quantiles=[.05, .5, .95],\n"
            "norm='l1')`, C by the pinball loss of five folds, for each quantile by itself; Gaussians of 1/4 to 4\n"
            "median distances and the linear kernel. Pinball loss: the mean over the three quantiles, of targets of\n"
            "variance one, beside `QuantileRegressor(alpha=0)` on the same columns. Largest distance of the share\n"
            f"between the outer quantiles from 90: {off:.1f} points.\n"
        )
        write_table("quantiles", rows, "python benchmarks/losses.py quantiles", note)


def ordinal_row(name: str, number: int) -> dict[str, Any]:
    """Errors on new samples of the fifths of a target, as ordered classes, as unordered ones, and as numbers."""
    X, y = NUMBERS[name]()
    off: dict[str, list[float]] = {}
    for before, after, train, test in _splits(X, number):
        before, train = before[:FEWER], train[:FEWER]
        edges = np.quantile(y[train], np.arange(1, FIFTHS) / FIFTHS)
        codes, new = np.searchsorted(edges, y[train]), np.searchsorted(edges, y[test])
        said = {}
        for title, loss in (("ordinal", "ordinal"), ("multinomial", "logistic")):
            model = MKLClassifierCV(_bank(), loss=loss, scoring="neg_mean_absolute_error", Cs=6)
            began = time.process_time()
            said[title] = model.fit(before, codes).predict(after)
            off.setdefault(f"seconds, {title}", []).append(time.process_time() - began)
        numbers = MKLRegressorCV(_bank(), norm="l1").fit(before, codes).predict(after)
        said["rounded"] = np.clip(np.round(numbers), 0, FIFTHS - 1).astype(int)
        for title, codes_said in said.items():
            off.setdefault(f"steps off, {title}", []).append(float(np.mean(np.abs(codes_said - new))))
            off.setdefault(f"right, {title}", []).append(100 * float(np.mean(codes_said == new)))
    return {"set": name} | {
        title: float(np.mean(values)) for title, values in sorted(off.items(), reverse=True)
    }


def ordinal_main() -> None:
    """Measure ordered classes on every set."""
    options = _options()
    rows = [ordinal_row(name, 2 if options.quick else 4) for name in NUMBERS]
    show(rows)
    if not options.quick:
        note = (
            "Targets cut at the fifths of the training samples: five ordered classes. Steps between predicted and\n"
            "true class on new samples, and percent right, means over 4 splits into training (at most 200) and test\n"
            "(a third). *ordinal*: `MKLClassifierCV(loss='ordinal')`, *multinomial*: `loss='logistic'`, C of the\n"
            "fewest steps over five folds among six; *rounded*: `MKLRegressorCV(norm='l1')` on the numbers 0 to 4,\n"
            "rounded. Seconds of the processor, of one search.\n"
        )
        write_table("ordinal", rows, "python benchmarks/losses.py ordinal", note)


def _options() -> Any:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    pin()
    warnings.simplefilter("ignore")
    return parser.parse_args()


if __name__ == "__main__":
    run_part(quantiles_main, quantiles=quantiles_main, ordinal=ordinal_main)
