"""Figure 4: MNIST in four blocks with three kernels each, test error against time for several training sizes."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from kernelweave.estimators import MeanKernelRidgeClassifier, MKLClassifier, MKLClassifierCV
from kernelweave.estimators.baselines import leave_one_out
from kernelweave.exceptions import KernelWeaveConvergenceWarning
from kernelweave.norms import Block
from kernelweave.solvers.online import Obscure

from ..study import Key, Report, Row
from .data import bind, mnist_kernels, mnist_split, problem_of
from .walk import error_on, walk

SIZES, LARGE = (1_000, 2_000, 5_000), (20_000, 60_000)
DEGREES, WIDTHS = (2, 3), (0.35, 0.5)
EXPONENTS, CS = (1.25, 1.75), (1.0, 10.0, 100.0)
#: samples that parameters are chosen on, epochs of OBSCURE; its curve is drawn with every so many-th test image
SOME, EPOCHS, SHOWN, CLASSES = 2_000, 50, 5, 10
OBSCURE, DEFAULT, MEAN, BEST, RIDGE = (
    "OBSCURE", "default solver", "mean kernel", "best kernel", "mean kernel, ridge",
)  # fmt: skip
SETTINGS = {
    "degrees": DEGREES, "widths": WIDTHS, "p": EXPONENTS, "C": CS, "some": SOME, "epochs": EPOCHS, "version": 1,
}  # fmt: skip


SMALL_SETTINGS = {**SETTINGS, "shown": SHOWN, "version": 2}


def small_keys(repeats: int) -> list[Key]:
    """Every method at the sizes that take minutes, as many of them as repeats, the smallest first.

    No eigendecompositions of the largest matrices.
    """
    methods = (OBSCURE, DEFAULT, MEAN, BEST, RIDGE)
    return [{"n": n, "method": m} for n in SIZES[:repeats] for m in methods if m != RIDGE or n <= SOME]


def large_keys(repeats: int) -> list[Key]:
    """The sizes of the targets, as many of them as repeats; at the smaller one the baselines as well."""
    methods = {LARGE[0]: (DEFAULT, MEAN, BEST)}
    return [{"n": n, "method": m} for n in LARGE[:repeats] for m in methods.get(n, (DEFAULT,))]


@cache
def chosen(n: int) -> tuple[int, float, float, float, float, float]:
    """Degree and width by leave-one-out of ridge on the mean kernel, p and C by two folds; on training data alone.

    The last two are the C of the mean kernel and the seconds that it all took.
    """
    began = time.process_time()
    some = mnist_split(min(n, SOME))
    table = np.where(some.y[:, None] == np.arange(CLASSES), 1.0, -1.0)
    errors = {}
    for degree in DEGREES:
        for width in WIDTHS:
            bank, _ = bind(mnist_kernels(degree, width), some.X)
            left_out = leave_one_out(bank.combine(np.full(bank.m, 1.0 / bank.m)), table, intercept=False)
            errors[degree, width] = float(np.mean(np.argmax(left_out.predictions, axis=1) != some.y))
    degree, width = min(errors, key=lambda pair: errors[pair])
    kernels = mnist_kernels(degree, width)
    options: dict[str, Any] = {"Cs": list(CS), "cv": 2, "fit_intercept": False, "tol": 1e-2}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KernelWeaveConvergenceWarning)
        search = MKLClassifierCV(kernels, norms=[Block(p) for p in EXPONENTS], **options).fit(some.X, some.y)
        mean = MKLClassifierCV(kernels, norm="uniform", **options).fit(some.X, some.y)
    seconds = time.process_time() - began
    return degree, width, float(search.norm_.r or 1.0), float(search.C_), float(mean.C_), seconds


def work(key: Key) -> list[Row]:
    """One method at one size."""
    n, method = int(key["n"]), str(key["method"])
    degree, width, p, C, C_mean, tuning = chosen(min(n, SOME))
    split, kernels = mnist_split(n), mnist_kernels(degree, width)
    about: Row = {"degree": degree, "width": width, "p": p, "C": C, "tuning_seconds": tuning}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KernelWeaveConvergenceWarning)
        if method == OBSCURE:
            return [
                {**row, **about, "peak_gb": peak(), "elapsed": np.nan} for row in _curve(kernels, split, p, C)
            ]
        model = _model(method, kernels, split, p, C, C_mean)
        began, worked = time.perf_counter(), time.process_time()
        model.fit(split.X, split.y)
        elapsed, seconds = time.perf_counter() - began, time.process_time() - worked
    wrong = 1.0 - float(model.score(split.X_test, split.y_test))
    certificate = model.certificate_
    unit = C * n if method == DEFAULT else np.nan
    row = {
        "epoch": 0, "seconds": seconds, "objective": certificate.primal / unit, "bound": certificate.dual / unit,
        "error": wrong, "stage": "batch", **about, "peak_gb": peak(), "elapsed": elapsed,
    }  # fmt: skip
    return [row]


def _model(method: str, kernels: Any, split: Any, p: float, C: float, C_mean: float) -> Any:
    plain: dict[str, Any] = {"fit_intercept": False, "tol": 1e-3}
    if len(split.y) > SIZES[-1]:
        # kernels that do not fit are computed where they are read, in single precision
        plain.update(tol=1e-2, solver="working_set", storage="lazy", dtype="float32", n_jobs=2)
    if method == DEFAULT:
        return MKLClassifier(kernels, norm=Block(p), C=C, **plain)
    if method == MEAN:
        return MKLClassifier(kernels, norm="uniform", C=C_mean, **plain)
    if method == RIDGE:
        return MeanKernelRidgeClassifier(kernels, fit_intercept=False)
    some = mnist_split(min(len(split.y), SOME))
    bank, bound = bind(kernels, some.X)
    table = np.where(some.y[:, None] == np.arange(CLASSES), 1.0, -1.0)
    everyone = np.arange(bank.n)
    errors = []
    for j in range(bank.m):
        left_out = leave_one_out(bank.block(everyone, everyone, np.array([j]))[0], table, intercept=False)
        errors.append(float(np.mean(np.argmax(left_out.predictions, axis=1) != some.y)))
    return MKLClassifier(bound.kernels[int(np.argmin(errors))], norm="uniform", C=C_mean, **plain)


def _curve(kernels: Any, split: Any, p: float, C: float) -> list[Row]:
    """OBSCURE's way; the error of the last look is that on all test images."""
    began = time.process_time()
    bank, bound = bind(kernels, split.X)
    building = time.process_time() - began
    cross = bound.cross(split.X_test[::SHOWN]).astype(np.float32)
    error = error_on(cross, split.y_test[::SHOWN], np.arange(CLASSES))
    last: list[Any] = []

    def remember(point: Any) -> float:
        last[:] = [point]
        return error(point)

    rows = walk(problem_of(bank, split.y, Block(p), C), Obscure(), EPOCHS, remember, 600.0)
    values = bound.decision(split.X_test, last[0].weights, last[0].beta)
    rows[-1]["error"] = float(np.mean(np.argmax(values, axis=1) != split.y_test))
    return [{**row, "seconds": row["seconds"] + building} for row in rows]


def peak() -> float:
    """Most memory that this process has had, in GB; not a number where the system does not say (Windows)."""
    try:
        import resource
    except ImportError:
        return float("nan")
    unit = 1.0 if sys.platform == "darwin" else 1024.0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9


def _table(rows: pd.DataFrame) -> list[Row]:
    table: list[Row] = []
    for (n, method), these in rows.groupby(["n", "method"], sort=False):
        last = these.sort_values("epoch").iloc[-1]
        online = these[these["stage"] == "online"].sort_values("epoch")
        table.append(
            {
                "n": int(n), "method": method, "test error, %": 100 * float(last["error"]),
                "seconds": float(last["seconds"]), "on the clock": float(last["elapsed"]),
                "objective": float(last["objective"]), "lower bound": float(last["bound"]),
                "degree": int(last["degree"]), "width": float(last["width"]),
                "p": float(last["p"]) if method in (OBSCURE, DEFAULT) else "",
                "C": float(last["C"]) if method in (OBSCURE, DEFAULT) else "",
                "after the online stage, %": 100 * float(online["error"].iloc[-1]) if len(online) else "",
                "seconds to choose": float(last["tuning_seconds"]), "peak, GB": float(last["peak_gb"]),
            }
        )  # fmt: skip
    return table


NOTE = (
    "MNIST, four blocks of 14 x 14 pixels, a linear, a polynomial and a Gaussian kernel on each (12 kernels), pixels "
    f"from 0 to 1, all 10,000 test images, no intercept. Degree ({', '.join(map(str, DEGREES))}) and width "
    f"({', '.join(map(str, WIDTHS))} median distances) by leave-one-out of ridge on the mean kernel, p "
    f"({', '.join(map(str, EXPONENTS))}) and C (1, 10, 100) by two folds, all on at most {SOME:,} training images. "
    "Seconds include the kernels and are processor time, all threads together. Objectives are over C n, as the "
    "paper's. Peak memory is that of the process so far, the choice of parameters and the runs above included."
)


def report(rows: pd.DataFrame, report: Report) -> Sequence[str]:
    """Errors and seconds, and the picture."""
    note = (
        f"{NOTE} OBSCURE: {EPOCHS} epochs, eta = 2; its error after the online stage is on every fifth test image. "
        "The default solver stops at a certified relative gap of 1e-3."
    )
    report.table(_table(rows), note, "MNIST: error and objective against time (Figure 4)")
    report.picture(_draw(rows))
    return []


def large_report(rows: pd.DataFrame, report: Report) -> Sequence[str]:
    """The targets at 20,000 and 60,000."""
    targets = report.targets()
    for n, error, seconds, memory in ((20_000, 2.2, 600.0, None), (60_000, 1.7, None, 6.0)):
        these = rows[(rows["n"] == n) & (rows["method"] == DEFAULT)]
        if not len(these):
            continue
        row = these.iloc[0]
        targets.at_most(f"MNIST, {n:,} to train on: test error, %", 100 * float(row["error"]), error)
        if seconds is not None:
            targets.at_most(f"MNIST, {n:,}: seconds on the clock", float(row["elapsed"]), seconds)
            # a busy machine lengthens that; two cores have this much to give in the same time
            targets.at_most(f"MNIST, {n:,}: seconds of both cores", float(row["seconds"]), 2 * seconds)
        if memory is not None:
            targets.at_most(f"MNIST, {n:,}: peak memory, GB", float(row["peak_gb"]), memory)
    note = f"{NOTE} The solver for large n (`working_set`), to a relative gap of 1e-2, two threads.\n\n{targets.text()}"
    rows = rows.sort_values("n", kind="stable")
    report.table(_table(rows), note, "MNIST with 20,000 and 60,000 images")
    return [str(target) for target in targets.all]


def _draw(rows: pd.DataFrame) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.5, 4.0), layout="constrained")
    left, right = figure.subplots(1, 2)
    marks = {DEFAULT: "D", MEAN: "o", BEST: "v", RIDGE: "s"}
    for k, (n, these) in enumerate(rows.groupby("n")):
        way = these[these["method"] == OBSCURE].sort_values("epoch")
        left.semilogx(way["seconds"], 100 * (1 - way["error"]), color=f"C{k}", label=f"OBSCURE, n = {n:,}")
        right.loglog(way["seconds"], way["objective"], color=f"C{k}", label=f"OBSCURE, n = {n:,}")
        for method, mark in marks.items():
            of_method = these[these["method"] == method]
            left.plot(of_method["seconds"], 100 * (1 - of_method["error"]), mark, color=f"C{k}", ms=5)
            if method == DEFAULT:
                right.plot(of_method["seconds"], of_method["objective"], mark, color=f"C{k}", ms=5)
    for method, mark in marks.items():
        left.plot([], [], mark, color="0.4", label=method)
    left.set_ylabel("test accuracy, %")
    right.set_ylabel("objective")
    for ax in (left, right):
        ax.set_xlabel("seconds")
    left.legend(fontsize="x-small")
    return figure
