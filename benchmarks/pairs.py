"""Pairs: responses of cell lines to drugs in every setting, and grids of a million pairs.

Run ``python benchmarks/pairs.py``; ``--part response --setting left`` is one part of it.  Every fold keeps its results
in ``studies/results/pairs_runs.csv``, so that a run that was stopped goes on where it was; tables are written from what
is there (``--write``).  The data come from the folder named by ``KERNELWEAVE_DATA``: ``pairs/drug_response.npz``, as
published with pairwiseMKL (Cichonska et al. 2018), 124 drugs x 124 cell lines with 10 and 12 kernels.

New pairs of known objects are in the published ten folds, C and kernels chosen on the published three inner folds; for
new drugs, new cell lines and both new there are ten folds of ``PairKFold``, and inner folds of the same setting.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from _measure import GB, RUNS, Runs, in_child, machine, peak, pin, show, write_table
from kernelweave import MKLRegressor, MKLRegressorCV, PairKFold, Pairs
from kernelweave import kernels as kw

FILE = RUNS / "pairs_runs.csv"
DATA = Path(os.environ.get("KERNELWEAVE_DATA", "."))
SETTINGS = {"pairs": "new pair", "left": "new drug", "right": "new cell line", "both": "both new"}
#: of kernel ridge by closed forms, for kernels whose mean diagonal is one
RIDGES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
CS = (0.1, 0.3, 1.0, 3.0, 10.0)
Array = np.ndarray


# Rivals with closed forms.  They see a table of what is known of all pairs, with NaN elsewhere.


class Fill:
    """Known cells of a table of some drugs and cells; the others are filled with predictions until these agree."""

    def __init__(self, Y: Array) -> None:
        self.rows, self.cols = (
            np.flatnonzero(~np.isnan(Y).all(axis=1)),
            np.flatnonzero(~np.isnan(Y).all(axis=0)),
        )
        self.Y = Y[np.ix_(self.rows, self.cols)]
        self.known = ~np.isnan(self.Y)
        self.mean = float(self.Y[self.known].mean())
        self.centred = np.where(self.known, self.Y - self.mean, 0.0)

    def __call__(self, smooth: Any, steps: int) -> Array:
        """Return the filled table for a linear smoother; a whole table needs no step."""
        F = self.centred
        for _ in range(0 if self.known.all() else steps):
            F = np.where(self.known, self.centred, smooth(F))
        return F


class KronRLS:
    """Ridge regression with the product of one kernel of drugs and one of cells, in their eigenbases."""

    def __init__(self, fill: Fill, A: Array, B: Array, bases: dict[Any, Any], which: tuple[int, int]) -> None:
        self.fill, self.A, self.B = fill, A, B
        for side, K, places in ((0, A, fill.rows), (1, B, fill.cols)):
            if (side, which[side]) not in bases:
                bases[side, which[side]] = np.linalg.eigh(K[np.ix_(places, places)])
        (self.s, self.U), (self.t, self.V) = bases[0, which[0]], bases[1, which[1]]

    def predict(self, ridge: float, steps: int) -> Array:
        """Return predictions for all drugs and cells."""
        U, V, L = self.U, self.V, np.outer(self.s, self.t)
        F = self.fill(lambda F: U @ ((U.T @ F @ V) * (L / (L + ridge))) @ V.T, steps)
        alpha = U @ ((U.T @ F @ V) / (L + ridge)) @ V.T
        return self.fill.mean + self.A[:, self.fill.rows] @ alpha @ self.B[:, self.fill.cols].T


def two_step(fill: Fill, A: Array, B: Array, left: float, right: float, steps: int) -> Array:
    """Ridge regression over drugs, and then over cells."""
    rows, cols = fill.rows, fill.cols
    G = np.linalg.solve(A[np.ix_(rows, rows)] + left * np.eye(rows.size), A[rows]).T
    H = np.linalg.solve(B[np.ix_(cols, cols)] + right * np.eye(cols.size), B[cols]).T
    F = fill(lambda F: G[rows] @ F @ H[cols].T, steps)
    return fill.mean + G @ F @ H.T


def additive(Y: Array) -> Array:
    """Mean of the drug and of the cell, as far as either is known."""
    mean = np.nanmean(Y)
    rows, cols = np.zeros(len(Y)), np.zeros(Y.shape[1])
    for _ in range(20):
        rows = np.nan_to_num(np.nanmean(Y - mean - cols, axis=1))
        cols = np.nan_to_num(np.nanmean(Y - mean - rows[:, None], axis=0))
    return mean + rows[:, None] + cols


# Drug response.


class Response:
    """The data, the folds of a setting, and every method on one of them."""

    def __init__(self, setting: str) -> None:
        data = np.load(DATA / "pairs" / "drug_response.npz", allow_pickle=False)
        self.Y, self.setting = data["Y"], setting
        sides = [data["drug_kernels"], data["cell_kernels"]]
        self.A, self.B = ([K / np.diagonal(K).mean() for K in side] for side in sides)
        self.mean_A, self.mean_B = (np.mean(side, axis=0) for side in (self.A, self.B))
        self.X = Pairs.from_grid(len(self.Y), len(self.Y.T), self.Y)
        self.y, self.sides = self.X.labels, sides
        self.outer = data["outer_folds"]
        self.published = [data[f"inner_folds_{k}"] for k in range(10)]

    def bank(self, more: bool) -> Any:
        """Return the 120 products; with more, main effects and single objects as well."""
        return kw.pairs(left=self.sides[0], right=self.sides[1], main=more, identity=more)

    def folds(self) -> Iterator[tuple[Array, Array, list[tuple[Array, Array]]]]:
        """Yield training and test pairs, and inner folds as positions among the training pairs."""
        if self.setting == "pairs":
            for k, published in enumerate(self.published):
                train, test = np.flatnonzero(self.outer != k), np.flatnonzero(self.outer == k)
                of = published[train]
                yield train, test, [(np.flatnonzero(of != i), np.flatnonzero(of == i)) for i in range(3)]
            return
        for train, test in PairKFold(10, setting=self.setting).split(self.X):
            yield train, test, list(PairKFold(3, setting=self.setting).split(self.X[train]))

    def table(self, pairs: Array) -> Array:
        """Return what is known of some pairs as a table."""
        return self.X[pairs].to_grid(self.y[pairs])

    def error(self, predicted: Array, pairs: Array) -> float:
        """Return the root of the mean squared error of a table of predictions."""
        at = self.X.index[pairs].T
        return float(np.sqrt(np.mean((predicted[at[0], at[1]] - self.y[pairs]) ** 2)))

    def kron_rls(self, train: Array, test: Array, inner: Any) -> float:
        """One kernel on each side and the ridge, chosen on the inner folds."""
        every = [(i, j) for i in range(len(self.A)) for j in range(len(self.B))]
        errors = {(i, j, ridge): 0.0 for i, j in every for ridge in RIDGES}
        for some, held_out in inner:
            fill, bases = Fill(self.table(train[some])), {}
            for i, j in every:
                model = KronRLS(fill, self.A[i], self.B[j], bases, (i, j))
                for ridge in RIDGES:
                    errors[i, j, ridge] += self.error(model.predict(ridge, 3), train[held_out]) ** 2
        i, j, ridge = min(errors, key=lambda key: errors[key])
        best = KronRLS(Fill(self.table(train)), self.A[i], self.B[j], {}, (i, j))
        return self.error(best.predict(ridge, 100), test)

    def two_step(self, train: Array, test: Array, inner: Any) -> float:
        """Mean kernels of both sides, two ridges chosen on the inner folds."""
        errors = {(a, b): 0.0 for a in RIDGES for b in RIDGES}
        for some, held_out in inner:
            fill = Fill(self.table(train[some]))
            for a, b in errors:
                errors[a, b] += (
                    self.error(two_step(fill, self.mean_A, self.mean_B, a, b, 10), train[held_out]) ** 2
                )
        a, b = min(errors, key=lambda key: errors[key])
        return self.error(two_step(Fill(self.table(train)), self.mean_A, self.mean_B, a, b, 100), test)

    def boosting(self, train: Array, test: Array, inner: Any) -> float:
        """Boosted trees on 20 principal components of the mean kernel of each side, those of the known objects."""
        fill, parts = Fill(self.table(train)), []
        for K, known, column in ((self.mean_A, fill.rows, 0), (self.mean_B, fill.cols, 1)):
            s, U = np.linalg.eigh(K[np.ix_(known, known)])
            parts.append(
                (K[:, known] @ U[:, -20:] / np.sqrt(np.maximum(s[-20:], 1e-9)))[self.X.index[:, column]]
            )
        Z = np.hstack(parts)
        model = HistGradientBoostingRegressor(max_iter=500, learning_rate=0.05, random_state=0)
        predicted = model.fit(Z[train], self.y[train]).predict(Z[test])
        return float(np.sqrt(np.mean((predicted - self.y[test]) ** 2)))

    def ours(self, train: Array, test: Array, more: bool, **settings: Any) -> float:
        """``MKLRegressorCV`` on kernels of pairs."""
        model = MKLRegressorCV(self.bank(more), tol=1e-2, **settings).fit(self.X[train], self.y[train])
        return float(np.sqrt(np.mean((model.predict(self.X[test]) - self.y[test]) ** 2)))

    def measure(self, runs: Runs) -> None:
        for k, (train, test, inner) in enumerate(self.folds()):
            search: dict[str, Any] = {"Cs": list(CS), "cv": inner}
            for method, run in {
                "means of drug and cell line": lambda a=train, b=test: self.error(additive(self.table(a)), b),
                "KronRLS, one pair of kernels": lambda a=train, b=test, c=inner: self.kron_rls(a, b, c),
                "two-step ridge": lambda a=train, b=test, c=inner: self.two_step(a, b, c),
                "gradient boosting": lambda a=train, b=test, c=inner: self.boosting(a, b, c),
                "mean kernel": lambda a=train, b=test, s=search: self.ours(a, b, False, norm="uniform", **s),
                "l1": lambda a=train, b=test, s=search: self.ours(a, b, False, norm="l1", **s),
                "chosen in the setting": lambda a=train, b=test, s=search: self.ours(a, b, True, **s),
                "REML": lambda a=train, b=test: self.ours(a, b, True, criterion="reml"),
            }.items():
                runs.put("response", self.setting, k, method, run)


def response_rows(runs: Runs) -> list[dict[str, Any]]:
    """Errors with the paired difference from the better of mean kernel and two-step ridge."""
    rows = []
    for setting, called in SETTINGS.items():
        found = runs.of("response", setting)
        if "REML" not in found:
            continue
        size = min(len(values) for values in found.values())
        errors = {method: values[:size, 0] for method, values in found.items()}
        plain = min(("mean kernel", "two-step ridge"), key=lambda method: errors[method].mean())
        for method, values in sorted(errors.items(), key=lambda item: item[1].mean()):
            less = values - errors[plain]
            error = less.std(ddof=1) / np.sqrt(size) if size > 1 else np.nan
            rows.append({
                "setting": called, "method": method, "RMSE": f"{values.mean():.3f}",
                "against the better plain one": f"{less.mean():+.3f} +- {error:.3f}" if less.any() else "itself",
                "folds": size, "seconds a fold": f"{np.median(found[method][:, 1]):.1f}",
            })  # fmt: skip
    return rows


# Speed: generated objects, three products of kernels in the truth.


def generated(left: int, right: int, share: float, kernels: int) -> tuple[Pairs, Array, Any]:
    """Make objects with a group of four columns for each kernel, and responses that three products explain."""
    rng = np.random.default_rng(0)
    sides = [rng.normal(size=(count, 4 * kernels)) for count in (left, right)]
    views = {f"group {k}": slice(4 * k, 4 * k + 4) for k in range(kernels)}
    F = np.zeros((left, right))
    for k in range(3):
        weights = rng.normal(size=(2, 4, 6))
        F += (
            np.tanh(sides[0][:, views[f"group {k}"]] @ weights[0])
            @ np.tanh(sides[1][:, views[f"group {k}"]] @ weights[1]).T
        )
    F += F.std() * rng.normal(size=F.shape)
    if share < 1.0:
        F[rng.random(F.shape) >= share] = np.nan
    X = Pairs.from_grid(*sides, F)
    bank = kw.pairs(
        *(kw.per_view(views, kw.gaussian(1.0, relative=True)) for _ in range(2)), main=False, identity=False
    )
    return X, X.labels, bank


CASES = {
    "300 x 300, 100 kernels": {"left": 300, "right": 300, "share": 1.0, "kernels": 10},
    "1,000 x 1,000, 100 kernels": {"left": 1000, "right": 1000, "share": 1.0, "kernels": 10},
    "1 % of 5,000 x 2,000, 9 kernels": {"left": 5000, "right": 2000, "share": 0.01, "kernels": 3},
}


def speed_case(**parameters: Any) -> dict[str, float]:
    """Fit once under l1 to a relative gap of a hundredth."""
    X, y, bank = generated(**parameters)
    small = generated(20, 20, 1.0, 3)
    MKLRegressor(small[2], norm="l1").fit(small[0], small[1])  # what is compiled is loaded
    began = time.process_time()
    model = MKLRegressor(bank, norm="l1", tol=1e-2).fit(X, y)
    seconds = time.process_time() - began
    return {
        "pairs": len(X), "gap": float(model.certificate_.relative_gap), "seconds": seconds, "bytes": peak(),
        "used": int(np.count_nonzero(model.weights_)), "iterations": int(model.n_iter_),
    }  # fmt: skip


def speed(runs: Runs) -> None:
    for name, parameters in CASES.items():
        found: dict[str, Any] = {}
        for what in ("gap", "seconds", "bytes", "pairs", "used", "iterations"):
            if ("speed", name, "0", what) not in runs.known and not found:
                found = in_child(__file__, "speed", **parameters)
            runs.put("speed", name, 0, what, lambda w=what, f=found: float(f[w]))


def speed_rows(runs: Runs) -> list[dict[str, Any]]:
    rows = []
    for name in CASES:
        found = {method: float(values[0, 0]) for method, values in runs.of("speed", name).items()}
        if found:
            rows.append({
                "problem": name, "pairs": f"{found['pairs']:,.0f}", "relative gap": f"{found['gap']:.4f}",
                "kernels used": int(found["used"]), "iterations": int(found["iterations"]),
                "processor seconds": f"{found['seconds']:.1f}", "peak GB": f"{found['bytes'] / GB:.1f}",
            })  # fmt: skip
    return rows


NOTES = {
    "response": "Root mean squared error of the responses of 124 cell lines to 124 drugs (Cichonska et al. 2018), mean "
    "over ten folds; *against the better plain one* is the mean paired difference from the better of mean kernel and "
    "two-step ridge, with its standard error. New pairs: the published folds, on which pairwiseMKL is published with "
    "1.682; else folds of `PairKFold`. Everything is tuned on three inner folds of the same setting. *KronRLS*: the "
    "best of 120 pairs of kernels and seven ridges. *Two-step ridge*: mean kernels, two ridges of seven each. "
    "*Boosting*: `HistGradientBoostingRegressor`, 500 trees at a rate of 0.05, on 20 components of the mean kernel of "
    "each side, not tuned. *Mean kernel* and *l1*: 120 products. *Chosen in the setting*: `MKLRegressorCV(bank, "
    "cv=folds)`, norm and C, 166 kernels with main effects and single objects. *REML*: the same kernels, no folds. "
    "Processor seconds, tuning included.",
    "speed": "Squared loss, l1, to a relative gap of 1e-2; Gaussians on groups of four columns, generated objects. "
    "Matrices of the sides are computed inside the seconds. One thread.",
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=NOTES, action="append", help="one part; both by default")
    parser.add_argument(
        "--setting", choices=SETTINGS, action="append", help="of the responses; all by default"
    )
    parser.add_argument(
        "--write", action="store_true", help="run nothing, and write the tables of what is there"
    )
    parser.add_argument("--case", help=argparse.SUPPRESS)
    parser.add_argument("--parameters", help=argparse.SUPPRESS)
    options = parser.parse_args()
    pin()
    if options.case:
        print(json.dumps(speed_case(**json.loads(options.parameters))))
        return
    print(machine())
    runs = Runs(FILE, processor=True)
    for part in options.part or NOTES:
        if not options.write:
            if part == "speed":
                speed(runs)
            for setting in options.setting or SETTINGS if part == "response" else ():
                Response(setting).measure(runs)
        rows = {"response": response_rows, "speed": speed_rows}[part](runs)
        if rows:
            show(rows)
            write_table(f"pairs_{part}", rows, f"python benchmarks/pairs.py --part {part}", NOTES[part])


if __name__ == "__main__":
    main()
