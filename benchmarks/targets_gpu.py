"""Weights per target by evidence on a GPU: 10,000 and 100,000 targets of 1,000 samples and four feature spaces.

Run ``python benchmarks/targets_gpu.py`` on a machine with a GPU: a few minutes in all.  ``--himalaya`` measures
himalaya's random search with its torch backend on this machine's processor instead, on some of the targets (one
thread), and keeps it in the same table.  ``--device cpu --samples 100 --targets 50 --dry`` tries the code anywhere.
"""

from __future__ import annotations

import argparse
import csv
import time
from typing import Any

import numpy as np
import torch
from sklearn.metrics import r2_score

from _report import RESULTS, Targets, machine, show, write_table

M, COLUMNS, SIGNAL, NEW = 4, 200, 0.75, 500
RIDGES = np.logspace(-2, 3, 11)
TIMES = 5.0
NOTE = """As *linear* in [targets](targets.md): {m} feature spaces of {columns} columns, each target made by one to
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


def ours(n: int, t: int, device: str | None) -> dict[str, Any]:
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


def himalaya(n: int, t: int) -> dict[str, Any]:
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
        solver_params={"n_iter": 50, "alphas": RIDGES, "progress_bar": False},
    ).fit(backend.asarray(K), backend.asarray(Y[:n] - means))  # fmt: skip
    seconds = time.process_time() - began
    predicted = np.asarray(model.predict(backend.asarray(K_new))) + means
    return {"seconds": seconds, "R2": r2_score(Y[n:], predicted), "inverses": ""}


def place(device: str | None) -> str:
    """Return what computes."""
    if device == "cuda":
        return f"{torch.cuda.get_device_name()}, torch {torch.__version__}"
    return machine().partition(", load")[0] + f", torch {torch.__version__}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--targets", type=int, nargs="*", default=[10_000, 100_000])
    parser.add_argument("--himalaya", action="store_true")
    parser.add_argument("--dry", action="store_true", help="write nothing")
    options = parser.parse_args()
    n, rows = options.samples, known_rows()
    if options.himalaya:
        torch.set_num_threads(1)
        program, at = "himalaya, random search 50/3, torch on the processor, one thread", None
        sizes = options.targets if options.targets != [10_000, 100_000] else [10_000]
    else:
        program, at = f"kernelweave, REML, {options.device}", options.device
        sizes = options.targets
    for t in sizes:
        row = {"program": program, "n": n, "targets": t}
        row |= himalaya(n, t) if options.himalaya else ours(n, t, at)
        row |= {"how": "measured", "machine": place(at)}
        rows = keep(rows, row)
        show([{key: value for key, value in row.items() if key != "machine"}])
        if not options.dry:
            write(rows)


def known_rows() -> list[dict[str, Any]]:
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


def write(rows: list[dict[str, Any]]) -> None:
    targets, at = Targets(), 10_000
    gpu = [row for row in rows if "cuda" in row["program"] and row["targets"] == at]
    other = [row for row in rows if "himalaya" in row["program"] and row["targets"] == at]
    if gpu and other:
        times = other[0]["seconds"] / gpu[0]["seconds"]
        targets.at_least(
            f"{at:,} targets: himalaya on the processor over kernelweave on the GPU", times, TIMES
        )
    note = NOTE.format(m=M, columns=COLUMNS, new=NEW, targets=targets.text())
    write_table("targets_gpu", rows, "python benchmarks/targets_gpu.py", note)


if __name__ == "__main__":
    main()
