"""Weights per target by evidence, beside himalaya's searches: R2 on new samples, and seconds of the processor.

Run ``python benchmarks/targets.py`` where the extra ``rivals`` is installed; ``--quick`` takes the first case and
writes nothing.

Weights per target by evidence on a GPU: 10,000 and 100,000 targets of 1,000 samples and four feature spaces.

Run ``python benchmarks/targets.py gpu`` on a machine with a GPU: a few minutes in all.  ``--himalaya`` measures
himalaya's random search with its torch backend on this machine's processor instead, on some of the targets (one
thread), and keeps it in the same table.  ``--device cpu --samples 100 --targets 50 --dry`` tries the code anywhere.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import gc
import io
import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sklearn.metrics import r2_score

from _measure import RESULTS, Targets, machine, pin, run_part, show, write_table
from kernelweave import MKLRegressorCV

# Generated encoding models: a few feature spaces, many targets, each made by some of the spaces.

#: samples that test
TEST = 500


@dataclass(frozen=True)
class Data:
    """Feature spaces and targets of the training samples, then of the others."""

    views: list[np.ndarray]
    Y: np.ndarray
    n: int

    @property
    def train(self) -> tuple[list[np.ndarray], np.ndarray]:
        """Samples to fit."""
        return [X[: self.n] for X in self.views], self.Y[: self.n]

    @property
    def test(self) -> tuple[list[np.ndarray], np.ndarray]:
        """Samples to judge by."""
        return [X[self.n :] for X in self.views], self.Y[self.n :]


@dataclass(frozen=True)
class Case:
    """One setting.

    ``kind`` is ``linear``, ``gaussian`` (targets are smooth functions of the spaces), ``correlated`` (half of the
    columns' variance is common to all spaces), ``autocorrelated`` (rows and noise follow an AR(1) process),
    ``heavy tails`` (noise of a t distribution with 2.5 degrees of freedom) or ``dense`` (every space counts).
    """

    kind: str
    n: int
    m: int
    t: int
    signal: float = 0.75
    columns: int = 200
    large: bool = False

    @property
    def title(self) -> str:
        """Name in the table."""
        return f"{self.kind}, n = {self.n:,}, m = {self.m} of {self.columns}, {self.t:,} targets"

    def data(self, seed: int = 0) -> Data:
        """Make samples and targets."""
        rng = np.random.default_rng(seed)
        N = self.n + TEST
        views = [self._rows(rng, N) for _ in range(self.m)]
        if self.kind == "correlated":
            common = rng.normal(size=(N, self.columns))
            views = [np.sqrt(0.5) * (X + common) for X in views]
        Y = np.empty((N, self.t))
        for k in range(self.t):
            parts = [
                np.sqrt(w) * self._part(rng, X)
                for w, X in zip(self._shares(rng), views, strict=True)
                if w > 0
            ]
            noise = self._noise(rng, N)
            Y[:, k] = np.sqrt(self.signal) * np.sum(parts, axis=0) + np.sqrt(1 - self.signal) * noise
        return Data(views, Y, self.n)

    def _rows(self, rng: np.random.Generator, N: int) -> np.ndarray:
        X = rng.normal(size=(N, self.columns))
        return _ar(X) if self.kind == "autocorrelated" else X

    def _noise(self, rng: np.random.Generator, N: int) -> np.ndarray:
        if self.kind == "heavy tails":
            return rng.standard_t(2.5, size=N) / np.sqrt(5.0)
        noise = rng.normal(size=N)
        return _ar(noise) if self.kind == "autocorrelated" else noise

    def _shares(self, rng: np.random.Generator) -> np.ndarray:
        """Shares of the signal by space: one to three of them, or all."""
        if self.kind == "dense":
            return rng.dirichlet(np.ones(self.m))
        shares, used = np.zeros(self.m), int(rng.integers(1, 4))
        shares[rng.choice(self.m, size=used, replace=False)] = rng.dirichlet(np.ones(used))
        return shares

    def _part(self, rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
        if self.kind == "gaussian":  # a random function of a few directions
            f = np.sum(np.sin(X @ rng.normal(size=(self.columns, 3)) / np.sqrt(self.columns) * 1.5), axis=1)
            return (f - f.mean()) / f.std()
        return X @ rng.normal(size=self.columns) / np.sqrt(self.columns)


def _ar(X: np.ndarray, memory: float = 0.8) -> np.ndarray:
    out = X.copy()
    for i in range(1, len(X)):
        out[i] = memory * out[i - 1] + np.sqrt(1 - memory**2) * X[i]
    return out


CASES = [
    Case("linear", 300, 3, 100),
    Case("linear", 300, 8, 100),
    Case("dense", 300, 8, 1000, 0.9, large=True),
    Case("linear", 300, 8, 10_000, large=True),
    Case("linear", 1000, 8, 1000, large=True),
    Case("linear", 300, 3, 100, 0.55, 40),
    Case("linear", 300, 8, 100, 0.55, 40),
    Case("gaussian", 300, 8, 100, 0.75, 10),
    Case("correlated", 300, 3, 100),
    Case("autocorrelated", 300, 3, 100),
    Case("heavy tails", 300, 8, 100),
]


RIDGES = np.logspace(-2, 3, 11)
#: seconds after which one run is enough
LONG = 4.0
#: data sets where one is not enough to tell, and what their mean is called
SETS, OF_SETS = 5, ", five data sets"
NOTE = """Generated encoding models: m feature spaces of 200, 40 or 10 columns, each target made by
one to three of them (*dense*: by all), 500 new samples; R2 is the mean over targets. Kernels are linear (Gaussian, as
wide as samples are apart, in *gaussian*), centred, of mean diagonal one; making them is in the seconds. kernelweave:
`MKLRegressorCV`, nothing set but the criterion. himalaya: 11 ridges from 1e-2 to 1e3; *random search a/b* tries a
weightings in b folds; *gradient* is its hyper-gradient with its defaults; `GroupRidgeCV` works on the columns; *mean
kernel* is `KernelRidgeCV` on the mean, 5 folds. Its targets are centred beforehand. Processor seconds of one thread,
medians of up to {repeats} runs (of one where it took more than {long:g} s); *five data sets*: means over {sets} seeds
of the generator, the first of which is that of the rows without these words. The table was made in parts, on one
core with priority beside other work on the second; the last of them on {machine}.

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
REML, SEARCHED = "kernelweave, REML", "himalaya, random search 50/3"
PROGRAMS: dict[str, tuple[Callable, bool]] = {
    REML: (lambda case, data: ours("reml", case, data), True),
    "kernelweave, leave-one-out": (lambda case, data: ours("loo", case, data), False),
    SEARCHED: (himalaya("random_search", SEARCH, 3), True),
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
    parser.add_argument("--sets", action="store_true", help="the first two cases on five data sets each")
    options = parser.parse_args()
    pin()
    warnings.simplefilter("ignore")
    ours("reml", CASES[0], Case("linear", 50, 3, 3).data())  # imports
    rows: list[dict[str, Any]] = [] if options.quick else known_rows()
    places = [0] if options.quick else options.cases or range(len(CASES))
    for case in CASES[:2] if options.sets else (CASES[place] for place in places):
        here = []
        for name, (run, on_large) in PROGRAMS.items():
            if ((case.large or options.two or options.sets) and not on_large) or (
                case.kind == "gaussian" and run is group_ridge
            ):
                continue
            here.append(
                over_sets(name, run, case) if options.sets else measured(name, run, case, options.repeats)
            )
            here[-1]["seconds over ours"] = here[-1]["seconds"] / here[0]["seconds"]
            rows = [row for row in rows if any(row[key] != here[-1][key] for key in ("problem", "program"))]
            rows.append(here[-1])
            if not options.quick:  # what there is so far is not lost
                write(rows, options.repeats)
        show(here)
    targets_of(rows)


def measured(name: str, run: Callable, case: Case, repeats: int) -> dict[str, Any]:
    """One program on one data set: R2, and the median of some runs."""
    data = case.data()
    gc.collect()
    seconds, predicted = run(case, data)
    runs = [seconds]
    while len(runs) < repeats and runs[0] <= LONG:
        runs.append(run(case, data)[0])
    return {
        "problem": case.title,
        "program": name,
        "R2": r2_score(data.test[1], predicted),
        "seconds": statistics.median(runs),
    }


def over_sets(name: str, run: Callable, case: Case) -> dict[str, Any]:
    """One program on five data sets: means."""
    found = []
    for seed in range(SETS):
        data = case.data(seed)
        seconds, predicted = run(case, data)
        found.append((r2_score(data.test[1], predicted), seconds))
    R2, seconds = np.mean(found, axis=0)
    return {"problem": case.title + OF_SETS, "program": name, "R2": float(R2), "seconds": float(seconds)}


def known_rows() -> list[dict[str, Any]]:
    """What was measured before: the table is made in parts."""
    path = RESULTS / "targets.csv"
    if not path.exists():
        return []
    with path.open() as lines:
        return [
            {key: value if key in ("problem", "program") else float(value) for key, value in row.items()}
            for row in csv.DictReader(lines)
        ]


def write(rows: list[dict[str, Any]], repeats: int) -> None:
    """Write all that is known, in the order of the cases."""
    order = [case.title for case in CASES] + [case.title + OF_SETS for case in CASES]
    programs = list(PROGRAMS)
    rows = sorted(rows, key=lambda row: (order.index(row["problem"]), programs.index(row["program"])))
    with contextlib.redirect_stdout(io.StringIO()):  # verdicts are printed once, at the end
        targets = targets_of(rows).text()
    note = NOTE.format(repeats=repeats, long=LONG, sets=SETS, machine=machine(), targets=targets)
    write_table("targets", rows, "python benchmarks/targets.py", note)


def targets_of(rows: list[dict[str, Any]]) -> Targets:
    """Say which of the project's own targets were met."""
    targets = Targets()

    def compared(problem: str) -> tuple[float, float] | None:
        found = {row["program"]: row for row in rows if row["problem"] == problem}
        if not {REML, SEARCHED} <= set(found):
            return None
        mine, other = found[REML], found[SEARCHED]
        return mine["R2"] - other["R2"], other["seconds"] / mine["seconds"]

    for case, margin, times in (
        (CASES[0], 0.010, 3.0),
        (CASES[1], 0.035, 3.0),
        (CASES[2], 0.015, 1.0),
        (CASES[3], None, 3.0),
        (CASES[4], 0.015, 2.5),
    ):
        for title in (case.title, case.title + OF_SETS):
            found = compared(title)
            if found is None:
                continue
            if margin is not None:
                targets.at_least(f"{title}: R2 above the random search", found[0], margin)
            targets.at_least(f"{title}: seconds of the random search over ours", found[1], times)
    return targets


# Ten thousand and more targets on a GPU.

M, COLUMNS, SIGNAL, NEW = 4, 200, 0.75, 500
GPU_RIDGES = np.logspace(-2, 3, 11)
TIMES = 5.0
GPU_NOTE = """As *linear* in [targets](targets.md): {m} feature spaces of {columns} columns, each target made by one to
three of them, linear kernels of mean diagonal one, centred; R2 is the mean over targets on {new} new samples.
kernelweave: `MKLRegressorCV(criterion="reml", device=...)`, the whole fit from kernel matrices and targets in memory to
a fitted model, certificates of the ridge regressions included; *inverses* is the number of distinct mixtures.
himalaya: `MultipleKernelRidgeCV`, random search, 50 weightings, 3 folds, 11 ridges, torch on the processor. Seconds on
the clock; of himalaya those of the processor, one thread.

{targets}"""


def make(n: int, t: int, seed: int = 0) -> tuple[list[np.ndarray], np.ndarray]:
    """Feature spaces and targets of n samples to fit, then of those to judge by."""
    rng = np.random.default_rng(seed)
    views = [rng.normal(size=(n + NEW, COLUMNS)) for _ in range(M)]
    shares = rng.exponential(size=(M, t)) * (
        np.argsort(rng.random((M, t)), axis=0) < rng.integers(1, 4, size=t)
    )
    shares /= shares.sum(axis=0)
    Y = np.sqrt(1.0 - SIGNAL) * rng.standard_normal(size=(n + NEW, t))
    for X, share in zip(views, shares, strict=True):
        Y += X @ (rng.standard_normal(size=(COLUMNS, t)) * np.sqrt(SIGNAL * share / COLUMNS))
    return views, Y


def kernels(rows: list[np.ndarray], columns: list[np.ndarray]) -> np.ndarray:
    return np.array([A @ B.T for A, B in zip(rows, columns, strict=True)])


def gpu_ours(n: int, t: int, device: str | None) -> dict[str, Any]:
    """One fit, after a small one that loads what there is to load."""
    from kernelweave import MKLRegressorCV

    views, Y = make(n, t)
    K = kernels([X[:n] for X in views], [X[:n] for X in views])
    model = MKLRegressorCV("precomputed", criterion="reml", device=device, verbose=1)
    model.fit(K[:, :50, :50], Y[:50, :5])
    began = time.perf_counter()
    model.fit(K, Y[:n])
    if device == "cuda":
        torch.cuda.synchronize()
    seconds = time.perf_counter() - began
    some = slice(0, 10_000)  # enough for a mean, and new predictions of all would take long on the host
    K_new = kernels([X[n:] for X in views], [X[:n] for X in views])
    R2 = r2_score(Y[n:, some], model.predict(K_new)[:, some])
    return {"seconds": seconds, "R2": R2, "inverses": model.n_iter_}


def gpu_himalaya(n: int, t: int) -> dict[str, Any]:
    """Random search with one thread of torch."""
    from himalaya.backend import set_backend
    from himalaya.kernel_ridge import KernelCenterer, MultipleKernelRidgeCV

    backend = set_backend("torch")
    views, Y = make(n, t)
    means = Y[:n].mean(axis=0)
    K = kernels([X[:n] for X in views], [X[:n] for X in views])
    K_new = kernels([X[n:] for X in views], [X[:n] for X in views])
    for j in range(M):
        centre = KernelCenterer()
        K[j], K_new[j] = np.asarray(centre.fit_transform(K[j])), np.asarray(centre.transform(K_new[j]))
        size = np.mean(np.diagonal(K[j]))
        K[j], K_new[j] = K[j] / size, K_new[j] / size
    began = time.process_time()  # one thread: the seconds of the clock on an idle machine
    model = MultipleKernelRidgeCV(
        kernels="precomputed", solver="random_search", cv=3, random_state=0,
        solver_params={"n_iter": 50, "alphas": GPU_RIDGES, "progress_bar": False},
    ).fit(backend.asarray(K), backend.asarray(Y[:n] - means))  # fmt: skip
    seconds = time.process_time() - began
    predicted = np.asarray(model.predict(backend.asarray(K_new))) + means
    return {"seconds": seconds, "R2": r2_score(Y[n:], predicted), "inverses": ""}


def place(device: str | None) -> str:
    """Return what computes."""
    if device == "cuda":
        return f"{torch.cuda.get_device_name()}, torch {torch.__version__}"
    return machine().partition(", load")[0] + f", torch {torch.__version__}"


def gpu_main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--targets", type=int, nargs="*", default=[10_000, 100_000])
    parser.add_argument("--himalaya", action="store_true")
    parser.add_argument("--dry", action="store_true", help="write nothing")
    options = parser.parse_args()
    n, rows = options.samples, gpu_known_rows()
    if options.himalaya:
        torch.set_num_threads(1)
        program, at = "himalaya, random search 50/3, torch on the processor, one thread", None
        sizes = options.targets if options.targets != [10_000, 100_000] else [10_000]
    else:
        program, at = f"kernelweave, REML, {options.device}", options.device
        sizes = options.targets
    for t in sizes:
        row = {"program": program, "n": n, "targets": t}
        row |= gpu_himalaya(n, t) if options.himalaya else gpu_ours(n, t, at)
        row |= {"how": "measured", "machine": place(at)}
        rows = keep(rows, row)
        show([{key: value for key, value in row.items() if key != "machine"}])
        if not options.dry:
            gpu_write(rows)


def gpu_known_rows() -> list[dict[str, Any]]:
    """What was measured before, here or on another machine."""
    path = RESULTS / "targets_gpu.csv"
    if not path.exists():
        return []
    with path.open() as lines:
        return [
            {**row, "seconds": float(row["seconds"]), "R2": float(row["R2"]), "targets": int(row["targets"])}
            for row in csv.DictReader(lines)
        ]


def keep(rows: list[dict[str, Any]], row: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows with one more, or with one measured again."""
    same = ("program", "targets")
    return [old for old in rows if any(old[key] != row[key] for key in same)] + [row]


def gpu_write(rows: list[dict[str, Any]]) -> None:
    targets, at = Targets(), 10_000
    gpu = [row for row in rows if "cuda" in row["program"] and row["targets"] == at]
    other = [row for row in rows if "himalaya" in row["program"] and row["targets"] == at]
    if gpu and other:
        times = other[0]["seconds"] / gpu[0]["seconds"]
        targets.at_least(
            f"{at:,} targets: himalaya on the processor over kernelweave on the GPU", times, TIMES
        )
    note = GPU_NOTE.format(m=M, columns=COLUMNS, new=NEW, targets=targets.text())
    write_table("targets_gpu", rows, "python benchmarks/targets.py gpu", note)


if __name__ == "__main__":
    run_part(main, gpu=gpu_main)
