"""SVRG on a million rows: 8 views of 256 random features each, computed block by block from a Parquet file.

Run ``python benchmarks/streaming.py``; ``--quick`` takes 20,000 rows at most and writes nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from _measure import GB, answer, in_child, peak
from _report import Targets, machine, show, write_table

VIEWS, COLUMNS, FEATURES, WIDTH = 8, 3, 256, 2.0
C, P, TOL = 1.0, 1.5, 1e-2
GROUP = 16_384
TEST = 20_000
SGD_EPOCHS = 5
SIZES = (250_000, 500_000, 1_000_000)
NOTE = f"""Rows of N(0, I_{VIEWS * COLUMNS}) in a Parquet file (float32, row groups of {GROUP} rows), {VIEWS} views of
{COLUMNS} columns, {FEATURES} random Fourier features of a Gaussian of width {WIDTH:g} each, computed again in every
sweep: {VIEWS * FEATURES} features in double precision, which would be 16 GB at a million rows. `y = sign(x1 +
.5 x4 x5 + sin(2 x7) + .5 noise)`: the first three views count. Logistic loss, p = {P:g}, C = {C:g}, no intercept, trace
normalisation, to a certified relative gap of {TOL:g}: `MKLClassifier(views, loss="logistic", norm={P:g},
solver="svrg", fit_intercept=False, tol={TOL:g}, n_jobs=2)`. Seconds are those of the whole fit, with the sweep that
learns the traces, the final certificate and the sweep that prepares prediction; two threads, one of BLAS.

*SGDClassifier*: logistic loss, alpha = 1 / (C n), {SGD_EPOCHS} epochs of `partial_fit` on the same features side by
side, computed by the same code (two threads prepare, one learns). It has no weights of views and no certificate.

*Peak*: most memory the process had, of it {{before:.2f}} GB before the fit (the interpreter, the libraries, the
compiled code and the fit of 4000 rows that compiled it). What grows with n are vectors of one number a row,
{{slope:.0f}} bytes a row between the smallest and the largest n; the features of a row are {8 * VIEWS * FEATURES}
bytes. Accuracy on {TEST} new rows. The machine was shared with other work: see the load, and the processor's seconds
beside the clock's.

{{targets}}"""


def rows_of(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and labels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, VIEWS * COLUMNS)).astype(np.float32)
    signal = X[:, 0] + 0.5 * X[:, 3] * X[:, 4] + np.sin(2 * X[:, 6])
    return X, np.where(signal + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)


def write(path: Path, n: int) -> np.ndarray:
    """Write n rows, a row group at a time; return the labels."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [f"x{k}" for k in range(VIEWS * COLUMNS)]
    schema = pa.schema([(name, pa.float32()) for name in names])
    labels = []
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for number, top in enumerate(range(0, n, GROUP)):
            X, y = rows_of(min(GROUP, n - top), 1 + number)
            writer.write_table(pa.table({name: X[:, k] for k, name in enumerate(names)}, schema=schema))
            labels.append(y)
    return np.concatenate(labels)


def views() -> Any:
    """The kernels."""
    from kernelweave import kernels as kw

    names = {f"view {k}": list(range(COLUMNS * k, COLUMNS * k + COLUMNS)) for k in range(VIEWS)}
    return kw.per_view(names, kw.random_fourier(WIDTH, n_features=FEATURES))


def fit(path: str, labels: str, n: int) -> dict[str, Any]:
    """The whole fit, in a process of its own."""
    from kernelweave import MKLClassifier
    from kernelweave.banks import ParquetRows

    def model() -> MKLClassifier:
        options: dict[str, Any] = {"loss": "logistic", "norm": P, "C": C, "solver": "svrg", "tol": TOL}
        return MKLClassifier(views(), fit_intercept=False, n_jobs=2, **options)

    X, y = rows_of(4000, 0)
    with tempfile.TemporaryDirectory() as folder:  # compiles
        model().set_params(tol=0.5).fit(
            ParquetRows(_small(Path(folder))), write(Path(folder) / "small", 4000)
        )
    before = peak()
    y = np.load(labels)
    rows = ParquetRows(path)
    began, busy = time.perf_counter(), time.process_time()
    fitted = model().fit(rows, y)
    seconds, cpu = time.perf_counter() - began, time.process_time() - busy
    X, test = rows_of(TEST, 0)
    return {
        "n": n,
        "seconds": seconds,
        "processor seconds": cpu,
        "peak": peak(),
        "before": before,
        "relative gap": fitted.certificate_.relative_gap,
        "passes": fitted.n_passes_,
        "epochs": fitted.n_iter_,
        "status": fitted.status_,
        "accuracy": fitted.score(X, test),
        "weights": fitted.weights_.tolist(),
        "load": os.getloadavg()[0],
    }


def _small(folder: Path) -> Path:
    write(folder / "small", 4000)
    return folder / "small"


def sgd(path: str, labels: str, n: int) -> dict[str, Any]:
    """SGDClassifier on the features of all views side by side, from the same stream."""
    from sklearn.linear_model import SGDClassifier

    from kernelweave.banks import Features, FeatureStream, ParquetRows
    from kernelweave.kernels import Schema, expand_kernels, resolve_kernels

    y = np.load(labels)
    X, test = rows_of(TEST, 0)
    kernels = resolve_kernels(expand_kernels(views(), Schema(VIEWS * COLUMNS)), X[:1000])
    model = SGDClassifier(loss="log_loss", alpha=1.0 / (C * n), fit_intercept=False, random_state=0)
    bank = Features(FeatureStream(kernels, ParquetRows(path), threads=2))
    rng = np.random.default_rng(0)
    model.partial_fit(bank._features(X[:10]), test[:10], classes=[-1.0, 1.0])
    began, busy = time.perf_counter(), time.process_time()
    for _ in range(SGD_EPOCHS):
        for rows, Z in bank.shuffled(rng):
            model.partial_fit(Z, y[rows])
    seconds, cpu = time.perf_counter() - began, time.process_time() - busy
    accuracy = float(model.score(bank._features(X), test))
    return {"n": n, "seconds": seconds, "processor seconds": cpu, "peak": peak(), "accuracy": accuracy,
            "load": os.getloadavg()[0]}  # fmt: skip


def line(method: str, measured: dict[str, Any]) -> dict[str, Any]:
    """A row of the table."""
    return {
        "n": measured["n"],
        "method": method,
        "seconds": measured["seconds"],
        "processor seconds": measured["processor seconds"],
        "peak (GB)": measured["peak"] / GB,
        "certified relative gap": measured.get("relative gap"),
        "passes": measured.get("passes"),
        "epochs": measured.get("epochs", SGD_EPOCHS),
        "accuracy": measured["accuracy"],
        "load average": measured["load"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rows, nothing is written")
    parser.add_argument("--case", default=None, help="for processes of its own")
    parser.add_argument("--parameters", default="{}")
    arguments = parser.parse_args()
    if arguments.case is not None:
        answer({"fit": fit, "sgd": sgd}[arguments.case](**json.loads(arguments.parameters)))
        return
    print(machine())
    sizes = (5_000, 10_000, 20_000) if arguments.quick else SIZES
    rows, fits = [], []
    with tempfile.TemporaryDirectory() as folder:
        for n in sizes:
            path, labels = Path(folder) / f"rows-{n}.parquet", Path(folder) / f"labels-{n}.npy"
            np.save(labels, write(path, n))
            files = {"path": str(path), "labels": str(labels), "n": n}
            fits.append(in_child(__file__, "fit", **files))
            rows.append(line("svrg", fits[-1]))
            print(rows[-1], fits[-1]["weights"], flush=True)
        rows.append(line("SGDClassifier", in_child(__file__, "sgd", **files)))
    show(rows)
    first, last = fits[0], fits[-1]
    slope = (last["peak"] - first["peak"]) / (last["n"] - first["n"])
    targets = Targets()
    targets.at_most(f"certified relative gap, n = {last['n']}", last["relative gap"], TOL)
    targets.at_most(f"seconds of the fit, n = {last['n']}", last["seconds"], 1200)
    targets.at_most(f"peak memory in GB, n = {last['n']}", last["peak"] / GB, 8.0)
    targets.at_most(
        "memory added by a row, in bytes (its features have 16384)", slope, 0.05 * 8 * VIEWS * FEATURES
    )
    if not arguments.quick:
        note = NOTE.format(before=last["before"] / GB, slope=slope, targets=targets.text())
        write_table("streaming", rows, "python benchmarks/streaming.py", note)


if __name__ == "__main__":
    main()
