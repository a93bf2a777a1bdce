"""Sparse multiple kernel learning on explicit features, as a user asks for it: a path with folds, and 100,000 samples.

Run ``python benchmarks/groups_scale.py``; ``--quick`` takes small problems and writes nothing.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from _measure import GB, answer, in_child, peak
from _report import Targets, machine, show, write_table
from _threads import pin

GROUPS, WIDTH, COLUMNS, TRUE = 50, 100, 4, 5
PATH = {"n": 10_000, "values": 30, "folds": 5}
LARGE = {"n": 100_000}
QUICK = {"path": {"n": 600, "values": 4, "folds": 2}, "large": {"n": 2000}}
NOTE = """{groups} groups of {columns} columns, {width} random Fourier features each (`kernels.from_groups`,
`kernels.random_fourier`); {true} of the groups make the target; logistic loss, l1, an intercept, tol = 1e-3. *path*:
`MKLClassifierCV` with {values} values of C from 0.003 to 1 on {folds} folds, and the fit with the chosen one. *large*:
`MKLClassifier`. *seconds* are wall-clock seconds of `fit` with the features made in it, one thread, after compilation;
*gap* is the largest relative gap of all fits, each certified in double precision; *GB* is the peak of the process, data
and libraries included. Every line is a process of its own. {machine}.

{targets}"""


def data(n: int, dtype: str) -> tuple[np.ndarray, np.ndarray, dict[str, list[int]]]:
    """Samples, labels and groups of columns."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal(size=(n, GROUPS * COLUMNS), dtype=np.dtype(dtype).type)
    signal = np.zeros(n)
    for j in range(TRUE):
        own = X[:, COLUMNS * j : COLUMNS * (j + 1)]
        signal += np.sin(own[:, 0]) + 0.5 * own[:, 1] * own[:, 2]
    y = (signal / signal.std() + 0.5 * rng.normal(size=n) > 0).astype(int)
    return X, y, {f"group {j}": list(range(COLUMNS * j, COLUMNS * (j + 1))) for j in range(GROUPS)}


def features(groups: dict[str, list[int]]) -> Any:
    """One kernel with random Fourier features per group."""
    from kernelweave import kernels as kw

    return kw.from_groups(groups, kw.random_fourier(2.0, n_features=WIDTH))


def _timed(fitted: Callable[[int], Any], n: int) -> tuple[float, Any]:
    """Seconds of a fit, and the model; a small fit before it compiles."""
    fitted(600)
    began = time.perf_counter()
    model = fitted(n)
    return time.perf_counter() - began, model


def path(n: int, values: int, folds: int) -> dict[str, Any]:
    """C by cross-validation."""
    from kernelweave import MKLClassifierCV

    Cs = np.logspace(-2.5, 0, values)

    def fitted(samples: int) -> MKLClassifierCV:
        X, y, groups = data(samples, "float64")
        bank = features(groups)
        return MKLClassifierCV(bank, loss="logistic", Cs=Cs, cv=folds).fit(X, y)

    seconds, model = _timed(fitted, n)
    gap = max(float(model.cv_results_["relative_gap"].max()), model.certificate_.relative_gap)
    what = f"path, n = {n:,}, {values} values of C x {folds} folds"
    return _row(what, "float64", model, seconds, gap) | {"chosen": f"C = {model.C_:.3g}"}


def large(n: int, C: float, dtype: str) -> dict[str, Any]:
    """One fit."""
    from kernelweave import MKLClassifier

    def fitted(samples: int) -> MKLClassifier:
        X, y, groups = data(samples, dtype)
        bank = features(groups)
        return MKLClassifier(bank, loss="logistic", C=C, dtype=dtype).fit(X, y)

    seconds, model = _timed(fitted, n)
    what = f"large, n = {n:,}"
    return _row(what, dtype, model, seconds, model.certificate_.relative_gap) | {"chosen": f"C = {C:g}"}


def _row(what: str, dtype: str, model: Any, seconds: float, gap: float) -> dict[str, Any]:
    active = int(np.count_nonzero(model.weights_))
    return {
        "problem": what, "storage": dtype, "solver": model.solver_, "seconds": seconds, "gap": gap, "active": active,
        "GB": peak() / GB,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--case", choices=("path", "large"))
    parser.add_argument("--parameters", type=json.loads, default={})
    options = parser.parse_args()
    pin()
    warnings.simplefilter("ignore")
    if options.case:
        answer({"path": path, "large": large}[options.case](**options.parameters))
        return
    sizes = QUICK if options.quick else {"path": PATH, "large": LARGE}
    rows = [in_child(__file__, "path", **sizes["path"])]
    show(rows)
    for C, dtype in ((0.01, "float32"), (0.1, "float32"), (0.01, "float64")):
        rows.append(in_child(__file__, "large", **sizes["large"], C=C, dtype=dtype))
        show(rows[-1:])
    targets = Targets()
    targets.at_most("path, seconds", rows[0]["seconds"], 60.0)
    targets.at_most("largest gap", max(row["gap"] for row in rows), 1e-3)
    targets.at_most("large, float32, GB", max(row["GB"] for row in rows if row["storage"] == "float32"), 12.0)
    if not options.quick:
        note = NOTE.format(
            groups=GROUPS, columns=COLUMNS, width=WIDTH, true=TRUE, values=PATH["values"], folds=PATH["folds"],
            machine=machine(), targets=targets.text(),
        )  # fmt: skip
        write_table("groups_scale", rows, "python benchmarks/groups_scale.py", note)


if __name__ == "__main__":
    main()
