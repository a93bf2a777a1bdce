"""Weights per target by evidence, beside himalaya's searches: R2 on new samples, and seconds of the processor.

Run ``python benchmarks/targets.py`` where the extra ``rivals`` is installed; ``--quick`` takes the first case and
writes nothing.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.metrics import r2_score

from _encoding_cases import CASES, Case, Data
from _report import machine, show, write_table
from _targets import Targets
from _threads import pin
from kernelweave import MKLRegressorCV

RIDGES = np.logspace(-2, 3, 11)
#: seconds after which one run is enough
LONG = 4.0
NOTE = """Encoding models (`_encoding_cases.py`): m feature spaces of 200, 40 or 10 columns, each target made by
one to three of them (*dense*: by all), 500 new samples; R2 is the mean over targets. Kernels are linear (Gaussian, as
wide as samples are apart, in *gaussian*), centred, of mean diagonal one; making them is in the seconds. kernelweave:
`MKLRegressorCV`, nothing set but the criterion. himalaya: 11 ridges from 1e-2 to 1e3; *random search a/b* tries a
weightings in b folds; *gradient* is its hyper-gradient with its defaults; `GroupRidgeCV` works on the columns; *mean
kernel* is `KernelRidgeCV` on the mean, 5 folds. Its targets are centred beforehand. Processor seconds of one thread,
medians of {repeats} runs (of one where it took more than {long:g} s), {machine}.

{targets}"""


def gaussian(A: np.ndarray, B: np.ndarray, width: float) -> np.ndarray:
    squares = np.sum(A**2, axis=1)[:, None] + np.sum(B**2, axis=1) - 2.0 * A @ B.T
    return np.exp(-np.maximum(squares, 0.0) / (2 * width**2))


def matrices(case: Case, rows: list[np.ndarray], columns: list[np.ndarray]) -> np.ndarray:
    """Kernels between samples, ``(m, rows, columns)``."""
    if case.kind == "gaussian":
        return np.array(
            [gaussian(A, B, np.sqrt(2.0 * A.shape[1])) for A, B in zip(rows, columns, strict=True)]
        )
    return np.array([A @ B.T for A, B in zip(rows, columns, strict=True)])


def ours(criterion: str, case: Case, data: Data) -> tuple[float, np.ndarray]:
    views, Y = data.train
    began = time.process_time()
    model = MKLRegressorCV("precomputed", criterion=criterion).fit(matrices(case, views, views), Y)
    seconds = time.process_time() - began
    return seconds, model.predict(matrices(case, data.test[0], views))


def himalaya(solver: str, options: dict[str, Any], folds: int, backend: str = "numpy") -> Callable:
    """MultipleKernelRidgeCV with one of its solvers."""

    def run(case: Case, data: Data) -> tuple[float, np.ndarray]:
        from himalaya.backend import set_backend
        from himalaya.kernel_ridge import KernelCenterer, MultipleKernelRidgeCV

        library = set_backend(backend)
        views, Y = data.train
        means = Y.mean(axis=0)
        K_new = matrices(case, data.test[0], views)
        began = time.process_time()
        K = matrices(case, views, views)
        for j in range(case.m):
            centre = KernelCenterer()
            K[j], K_new[j] = _host(centre.fit_transform(K[j])), _host(centre.transform(K_new[j]))
            size = np.mean(np.diagonal(K[j]))
            K[j] /= size
            K_new[j] /= size
        settings = dict(progress_bar=False, **options)
        model = MultipleKernelRidgeCV(
            kernels="precomputed", solver=solver, solver_params=settings, cv=folds, random_state=0
        ).fit(library.asarray(K), library.asarray(Y - means))
        seconds = time.process_time() - began
        return seconds, _host(model.predict(library.asarray(K_new))) + means

    return run


def group_ridge(case: Case, data: Data) -> tuple[float, np.ndarray]:
    """Banded ridge on the columns."""
    from himalaya.backend import set_backend
    from himalaya.ridge import GroupRidgeCV

    set_backend("numpy")
    views, Y = data.train
    means = Y.mean(axis=0)
    began = time.process_time()
    options = {"n_iter": 50, "alphas": RIDGES * 300, "progress_bar": False}
    model = GroupRidgeCV("input", cv=3, random_state=0, fit_intercept=True, solver_params=options).fit(
        views, Y - means
    )
    seconds = time.process_time() - began
    return seconds, model.predict(data.test[0]) + means


def mean_kernel(case: Case, data: Data) -> tuple[float, np.ndarray]:
    """Ridge on the mean kernel, its strength per target."""
    from himalaya.backend import set_backend
    from himalaya.kernel_ridge import KernelRidgeCV

    set_backend("numpy")
    views, Y = data.train
    means = Y.mean(axis=0)
    began = time.process_time()
    K = matrices(case, views, views).mean(axis=0)
    size = np.mean(np.diagonal(K))
    model = KernelRidgeCV(kernel="precomputed", alphas=RIDGES, cv=5).fit(K / size, Y - means)
    seconds = time.process_time() - began
    return seconds, model.predict(matrices(case, data.test[0], views).mean(axis=0) / size) + means


def _host(values: Any) -> np.ndarray:
    return values.cpu().numpy() if hasattr(values, "cpu") else np.asarray(values)


SEARCH = {"n_iter": 50, "alphas": RIDGES}
PROGRAMS: dict[str, tuple[Callable, bool]] = {
    "kernelweave, REML": (lambda case, data: ours("reml", case, data), True),
    "kernelweave, leave-one-out": (lambda case, data: ours("loo", case, data), False),
    "himalaya, random search 50/3": (himalaya("random_search", SEARCH, 3), True),
    "himalaya, random search 50/3, torch": (himalaya("random_search", SEARCH, 3, "torch"), False),
    "himalaya, random search 100/5": (himalaya("random_search", {"n_iter": 100, "alphas": RIDGES}, 5), False),
    "himalaya, gradient": (himalaya("hyper_gradient", {}, 5), False),
    "himalaya, GroupRidgeCV": (group_ridge, False),
    "himalaya, mean kernel": (mean_kernel, False),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--cases", type=int, nargs="*", help="positions of the cases to run")
    parser.add_argument(
        "--two", action="store_true", help="REML and the random search that it is held to, no more"
    )
    options = parser.parse_args()
    pin()
    warnings.simplefilter("ignore")
    rows: list[dict[str, Any]] = []
    ours("reml", CASES[0], Case("linear", 50, 3, 3).data())  # imports
    places = [0] if options.quick else options.cases or range(len(CASES))
    for case in (CASES[place] for place in places):
        data = case.data()
        here = []
        for name, (run, on_large) in PROGRAMS.items():
            if ((case.large or options.two) and not on_large) or (
                case.kind == "gaussian" and run is group_ridge
            ):
                continue
            gc.collect()
            seconds, predicted = run(case, data)
            runs = [seconds]
            while len(runs) < options.repeats and runs[0] <= LONG:
                runs.append(run(case, data)[0])
            seconds = statistics.median(runs)
            here.append(
                {
                    "problem": case.title,
                    "program": name,
                    "R2": r2_score(data.test[1], predicted),
                    "seconds": seconds,
                }
            )
        for row in here:
            row["seconds over ours"] = row["seconds"] / here[0]["seconds"]
        show(here)
        rows += here
        if not options.quick:  # what there is so far is not lost
            write_table("targets", rows, "python benchmarks/targets.py", "")
    targets = targets_of(rows)
    if not options.quick:
        note = NOTE.format(repeats=options.repeats, long=LONG, machine=machine(), targets=targets.text())
        write_table("targets", rows, "python benchmarks/targets.py", note)


def targets_of(rows: list[dict[str, Any]]) -> Targets:
    """Say which of the project's own targets were met."""
    targets = Targets()

    def compared(problem: str) -> tuple[float, float] | None:
        mine = [row for row in rows if row["problem"] == problem and row["program"] == "kernelweave, REML"]
        other = [
            row
            for row in rows
            if row["problem"] == problem and row["program"] == "himalaya, random search 50/3"
        ]
        if not mine or not other:
            return None
        return mine[0]["R2"] - other[0]["R2"], other[0]["seconds"] / mine[0]["seconds"]

    for place, margin, times in (
        (0, 0.010, 3.0),
        (1, 0.035, 3.0),
        (6, 0.015, 1.0),
        (7, None, 3.0),
        (8, 0.015, 2.5),
    ):
        title = CASES[place].title
        found = compared(title)
        if found is None:
            continue
        if margin is not None:
            targets.at_least(f"{title}: R2 above the random search", found[0], margin)
        targets.at_least(f"{title}: seconds of the random search over ours", found[1], times)
    return targets


if __name__ == "__main__":
    main()
