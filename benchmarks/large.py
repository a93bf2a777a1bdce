"""Large problems: a million rows as a stream, on a GPU, on a cluster.

Run ``python benchmarks/large.py streaming``: SVRG on a million rows, 8 views of 256 random features each, computed
block by block from a Parquet file.  ``--quick`` takes 20,000 rows at most and writes nothing.

Run ``python benchmarks/large.py gpu``: MNIST with 60,000 images and a binary problem with 50 kernels on a GPU, time
beside the limit of its memory.  It needs torch, a GPU and ``KERNELWEAVE_DATA``; ``--device cpu --images 600 --samples
300 --rows 2000 --quick`` tries the same code anywhere and writes nothing.

Run ``python benchmarks/large.py cluster``: two workers of Dask on this machine, agreement with one process, rounds, a
million rows, a worker that is killed.  It needs ``kernelweave[dask]``; ``--quick`` takes small problems and writes
nothing.  Times stand beside the limit: bytes that are read, over the bandwidth of reading memory on the same machine.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import signal
import statistics
import tempfile
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.datasets import make_classification

from _measure import GB, Targets, answer, in_child, machine, peak, run_part, show, write_table
from kernelweave import MKLClassifier, distributed
from kernelweave import kernels as kw
from kernelweave.banks import Features, FeatureStream, Normaliser, ParquetRows
from kernelweave.cluster import cluster_bank
from kernelweave.losses import Logistic
from kernelweave.norms import Block
from kernelweave_studies.obscure.data import mnist_kernels, mnist_split

if TYPE_CHECKING:
    from dask.distributed import Client

# A million rows as a stream.

VIEWS, COLUMNS, FEATURES, WIDTH = 8, 3, 256, 2.0
C, P, TOL = 1.0, 1.5, 1e-2
GROUP = 16_384
TEST = 20_000
SGD_EPOCHS = 5
SIZES = (250_000, 500_000, 1_000_000)
STREAMING_NOTE = f"""Rows of N(0, I_{VIEWS * COLUMNS}) in a Parquet file (float32, row groups of {GROUP} rows), {VIEWS}
views of {COLUMNS} columns, {FEATURES} random Fourier features of a Gaussian of width {WIDTH:g} each, computed again in
every sweep: {VIEWS * FEATURES} features in double precision, which would be 16 GB at a million rows. `y = sign(x1 +
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

    from kernelweave.kernels import Schema, expand_kernels, resolve_kernels

    y = np.load(labels)
    X, test = rows_of(TEST, 0)
    kernels = resolve_kernels(expand_kernels(views(), Schema(VIEWS * COLUMNS)), X[:1000])
    model = SGDClassifier(loss="log_loss", alpha=1.0 / (C * n), fit_intercept=False, random_state=0)
    bank = Features(FeatureStream(kernels, ParquetRows(path), threads=2))
    rng = np.random.default_rng(0)
    model.partial_fit(bank.storage._features(X[:10]), test[:10], classes=[-1.0, 1.0])
    began, busy = time.perf_counter(), time.process_time()
    for _ in range(SGD_EPOCHS):
        for rows, Z in bank.shuffled(rng):
            model.partial_fit(Z, y[rows])
    seconds, cpu = time.perf_counter() - began, time.process_time() - busy
    accuracy = float(model.score(bank.storage._features(X), test))
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


def streaming_main() -> None:
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
            fits.append(in_child([__file__, "streaming"], "fit", **files))
            rows.append(line("svrg", fits[-1]))
            print(rows[-1], fits[-1]["weights"], flush=True)
        rows.append(line("SGDClassifier", in_child([__file__, "streaming"], "sgd", **files)))
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
        note = STREAMING_NOTE.format(before=last["before"] / GB, slope=slope, targets=targets.text())
        write_table("streaming", rows, "python benchmarks/large.py streaming", note)


# On a GPU.

DEGREE, MNIST_WIDTH, MNIST_C, R = 3, 0.5, 10.0, 4.0 / 3.0
#: fits that take seconds, of which the median counts: hosts of one kind differ by a quarter from run to run
REPEATS = 3
GPU_NOTE = f"""\
MNIST: a linear, a cubic and a Gaussian kernel ({MNIST_WIDTH} median distances wide) on each of four 14 x 14
blocks, pixels from 0 to 1, normalised by their trace, multiclass hinge, block norm r = 4/3, C = {MNIST_C:g}, no
intercept, to a certified relative gap of 1e-2; all 10,000 test images. Width, r and C are taken over from runs with
fewer images on a CPU. Binary: `make_classification`, 20 features, 50 Gaussians on subsets of the features, l1, C = 1,
with intercept, to 1e-3. *Fit* holds building the bank, solving and the exact certificate (kernel values in double
precision, computed again); the data are in the host's memory before, and a fit of 10,000 rows has compiled what is
compiled; medians of {REPEATS} for the features and for `working_set`. *Limit*: bytes of the stored bank over the
bandwidth of a copy on the same device. *Features*: rows and views of `benchmarks/large.py streaming`, 2048 random
Fourier features made and kept on the device, logistic loss, p = {P:g}, C = 1, with intercept; a pass goes from the
weights over decision values and losses to the gradient, all there, and reads the features twice. *Prediction*: 10,000
images, 1,000 rows, 20,000 rows; on the device, and by the same model on the host (one core)."""


def synchronize(device):
    import torch

    if device == "cuda":
        torch.cuda.synchronize()


def median_seconds(work, device, repeats=5):
    """Median of some runs after one to warm up."""
    work()
    taken = []
    for _ in range(repeats):
        synchronize(device)
        began = time.perf_counter()
        work()
        synchronize(device)
        taken.append(time.perf_counter() - began)
    return float(np.median(taken))


def copy_bandwidth(device):
    """Bytes a second, read and written, of a large copy."""
    import torch

    size = 1 << (31 if device == "cuda" else 26)
    source = torch.rand(size // 4, device=device)
    target = torch.empty_like(source)
    return 2.0 * size / median_seconds(lambda: target.copy_(source), device)


class Timed(MKLClassifier):
    """The classifier, which also keeps its bank, so that a pass over it can be timed."""

    def _solve(self, bound, *rest):
        self.bank_, self.built_ = bound.bank, time.perf_counter()
        return super()._solve(bound, *rest)


def fitted_on(model, X, y, device, few=10_000, repeats=1):
    """Fit, after a fit of few rows that compiles what is compiled; return seconds of building and of all of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X[:few], y[:few])
    runs = []
    for _ in range(repeats):
        began = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            model.fit(X, y)
        synchronize(device)
        runs.append((model.built_ - began, time.perf_counter() - began))
    return tuple(statistics.median(each) for each in zip(*runs, strict=True))


def gpu_row(model, what, n, m, build, total, device, bandwidth, columns):
    """One row of the table; the pass is with as many columns as the problem has."""
    import torch

    bank = model.bank_
    a = np.random.default_rng(0).standard_normal((n, columns) if columns > 1 else n)
    taken = median_seconds(lambda: bank.storage.products(a), device, 3)
    limit = bank.nbytes / bandwidth if bank.nbytes else float("nan")
    peak = torch.cuda.max_memory_allocated() / 1e9 if device == "cuda" else float("nan")
    return {
        "problem": what, "n": n, "m": m, "solver": model.solver_, "bank": bank.decision.dtype,
        "bank, GB": bank.nbytes / 1e9, "building, s": build, "fit, s": total,
        "relative gap": model.certificate_.relative_gap, "objective": model.certificate_.primal,
        "passes": model.n_passes_, "iterations": model.n_iter_,
        "support": int(model.support_.size), "pass, ms": 1e3 * taken, "limit, ms": 1e3 * limit, "ratio": taken / limit,
        "peak, GB": peak, "prediction, s": float("nan"), "on the host, s": float("nan"), "test error, %": float("nan"),
    }  # fmt: skip


def predicted(model, X, y, device):
    """Error on new rows, in percent, and seconds of prediction on the device and on the host."""
    seconds, errors = [], []
    for place in (device, None):
        model.device = place
        began = time.perf_counter()
        errors.append(100.0 * float(np.mean(model.predict(X) != y)))
        seconds.append(time.perf_counter() - began)
    model.device = device
    return {"test error, %": errors[0], "prediction, s": seconds[0], "on the host, s": seconds[1]}


def mnist(options, bandwidth, targets, solver):
    split = mnist_split(options.images)
    model = Timed(
        mnist_kernels(options.degree, MNIST_WIDTH), norm=Block(R), C=MNIST_C, fit_intercept=False, tol=1e-2,
        solver=solver, device=options.device, dtype="float32",
    )  # fmt: skip
    quick = solver == "working_set"
    build, total = fitted_on(model, split.X, split.y, options.device, repeats=REPEATS if quick else 1)
    print(model.trace_.to_string(), flush=True)
    row = gpu_row(model, "MNIST", len(split.y), 12, build, total, options.device, bandwidth, 10)
    del model.bank_.storage.store[:]
    row |= predicted(model, split.X_test, split.y_test, options.device)
    show([row])
    name = f"MNIST, {len(split.y):,} images, {solver}"
    targets.at_most(f"{name}: certified relative gap", row["relative gap"], 1e-2)
    targets.at_most(f"{name}: seconds after loading", total, 7.0 if solver == "working_set" else 60.0)
    targets.at_most(f"{name}: test error, %", row["test error, %"], 1.5)
    if np.isfinite(row["limit, ms"]):
        targets.at_most(f"{name}: one pass over the stored bank, ms", row["pass, ms"], 1.5 * 33.0)
    return row


def binary(options, bandwidth, targets, solver):
    X, y = make_classification(
        options.samples, 20, n_informative=8, n_redundant=4, flip_y=0.05, class_sep=0.8, random_state=0
    )
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    rng = np.random.default_rng(0)
    views = {f"view {v}": sorted(rng.choice(20, 6, replace=False).tolist()) for v in range(10)}
    bank = kw.per_view(views, kw.gaussian([0.25, 0.5, 1.0, 2.0, 4.0], relative=True))
    model = Timed(bank, norm="l1", C=1.0, tol=1e-3, solver=solver, device=options.device, dtype="float32")
    build, total = fitted_on(model, X, y, options.device)
    print(model.trace_.tail(5).to_string(), flush=True)
    row = gpu_row(model, "binary l1", len(y), 50, build, total, options.device, bandwidth, 1)
    row |= predicted(model, X[:1000], y[:1000], options.device) | {"test error, %": float("nan")}
    show([row])
    targets.at_most(
        f"binary, n = {len(y):,}, m = 50, {solver}: certified relative gap", row["relative gap"], 1e-3
    )
    targets.at_most(f"binary, n = {len(y):,}, m = 50, {solver}: seconds", total, 60.0)
    return row


def gpu_features(options, bandwidth, targets, solver, dtype="float32"):
    """A million rows of explicit features: the problem of ``streaming``, features kept on the device."""
    import torch

    X, y = rows_of(options.rows, 1)
    X = X.astype(float)
    model = Timed(
        views(),
        loss="logistic",
        norm=P,
        C=1.0,
        tol=1e-2,
        solver=solver,
        device=options.device,
        dtype=dtype,
        n_jobs=-1,
    )
    build, total = fitted_on(model, X, y, options.device, repeats=REPEATS)
    print(model.trace_.to_string(), flush=True)
    bank = model.bank_
    w, b, signs, costs = (
        np.ones((int(bank.starts[-1]), 1)),
        np.zeros(1),
        np.where(y > 0, 1.0, -1.0),
        np.ones(bank.n),
    )
    taken = median_seconds(lambda: bank.loss_sweep(w, b, Logistic(), signs, costs), options.device)
    limit = 2.0 * bank.nbytes / bandwidth
    new, labels = rows_of(20_000, 0)
    row = {
        "problem": "features", "n": len(y), "m": bank.m, "solver": model.solver_, "bank": f"{dtype} features",
        "bank, GB": bank.nbytes / 1e9, "building, s": build, "fit, s": total,
        "relative gap": model.certificate_.relative_gap, "objective": model.certificate_.primal,
        "passes": model.n_passes_, "iterations": model.n_iter_, "support": int(model.support_.size),
        "pass, ms": 1e3 * taken, "limit, ms": 1e3 * limit, "ratio": taken / limit,
        "peak, GB": torch.cuda.max_memory_allocated() / 1e9 if options.device == "cuda" else float("nan"),
    } | predicted(model, new.astype(float), labels, options.device)  # fmt: skip
    show([row])
    name = f"features, n = {len(y):,}, {dtype}"
    targets.at_most(f"{name}: certified relative gap", row["relative gap"], 1e-2)
    targets.at_most(f"{name}: seconds", total, 4.0)
    targets.at_most(f"{name}: a pass, in times of a copy", row["ratio"], 1.3)
    return row


def half_features(*arguments):
    """The same in half precision, sums in single, certified in double."""
    return gpu_features(*arguments, dtype="float16")


def gpu_agreement(options, targets):
    """A small problem on the device and with NumPy."""
    X, y = make_classification(400, 10, n_informative=6, n_classes=3, random_state=1)
    objectives = []
    for device in (None, options.device):
        model = MKLClassifier(
            kw.gaussian([0.5, 1.0, 2.0], relative=True), norm=2.0, C=1.0, tol=1e-4, device=device
        )
        objectives.append(model.fit(X, y).certificate_.primal)
    targets.at_most(
        "objective on the device against NumPy, relative", abs(objectives[1] / objectives[0] - 1.0), 1e-3
    )


def gpu_main():
    import torch

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--images", type=int, default=60_000)
    parser.add_argument("--samples", type=int, default=20_000)
    parser.add_argument("--degree", type=int, default=DEGREE)
    parser.add_argument("--solvers", default="working_set,lp_analytic", help="of MNIST")
    parser.add_argument("--binary", default="newton,nesterov", help="solvers of the binary problem")
    parser.add_argument("--rows", type=int, default=1_000_000, help="of explicit features; 0 leaves them out")
    parser.add_argument("--quick", action="store_true", help="write nothing")
    options = parser.parse_args()
    targets, rows = Targets(), []
    gpu_agreement(options, targets)
    bandwidth = copy_bandwidth(options.device)
    name = torch.cuda.get_device_name() if options.device == "cuda" else platform.processor() or "CPU"
    print(f"{name}, torch {torch.__version__}, copy {bandwidth / 1e12:.3g} TB/s", flush=True)
    jobs = [(gpu_features, "lbfgs"), (half_features, "lbfgs")] if options.rows else []
    jobs += [(binary, solver) for solver in filter(None, options.binary.split(","))]
    jobs += [(mnist, solver) for solver in filter(None, options.solvers.split(","))]
    for job, solver in jobs:
        gc.collect()
        if options.device == "cuda":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        rows.append(job(options, bandwidth, targets, solver))
        if not options.quick:
            place = f"{name}, torch {torch.__version__}, copy {bandwidth / 1e12:.3g} TB/s"
            note = f"{place}. {GPU_NOTE}\n\n{targets.text()}"
            write_table("gpu_mnist", rows, "python benchmarks/large.py gpu", note)


# On a cluster.

LIMIT = "6GB"
#: methods of parts that read the stored bank, and how often they look at it
LOOKS = {
    "apply": 1,
    "quad": 1,
    "mix_product": 1,
    "judged": 1,
    "judged_by_rows": 1,
    "mix_block": 1,
    "row_products": 1,
    "mix_windows": 1,
    "loss_sweep": 2,
    "forward": 1,
    "adjoint": 1,
}
CLUSTER_NOTE = f"""\
`LocalCluster(n_workers=..., threads_per_worker=1, memory_limit="{LIMIT}")`, messages through the scheduler,
as Dask sends them; one thread of BLAS. *Round*: a message to every part and its answer; *overhead*: what a round takes
beyond the work of its slowest part. *Bytes per round*: arrays sent and received, over all parts. *Limit*: bytes of the
bank that the rounds read, over the bandwidth at which all workers together read memory ({{bandwidth}}); *reading*: the
work of the slowest parts in those rounds, and *ratio* the one over the other. *Worker*: most memory of a process.

*kernels*: `make_classification`, 20 features, Gaussians on all and on single features, stored in double precision, l1,
hinge, `newton` to 1e-3; *features*: the rows of `benchmarks/large.py streaming` in a Parquet file that workers read
themselves, {VIEWS} views of {COLUMNS} columns, {FEATURES} random Fourier features each, kept in single precision
(`dtype="float32"`, `memory_budget="5GB"`), logistic loss, p = {P:g}, C = {C:g}, with intercept, `lbfgs` to a certified
relative gap of {TOL:g}; *features, l1*: the same under the l1 norm, by `proximal_newton`. The certificate is computed
from features in double precision, computed again. *killed*: the same as the first, one of the two
workers killed after the first certificate. Seconds are those of the whole fit.

{{targets}}"""


def cluster(workers: int) -> Any:
    """Workers in processes of their own."""
    from dask.distributed import LocalCluster

    return LocalCluster(
        n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=":0", memory_limit=LIMIT
    )


def read_bandwidth(size: int = 1 << 30) -> float:
    """Bytes a second that one process reads: sums of an array far beyond the caches."""
    block = np.ones(size // 8)
    taken = []
    for _ in range(7):
        began = time.perf_counter()
        float(block @ block)  # one vector, read once for both sides
        taken.append(time.perf_counter() - began)
    return size / float(np.median(taken))


def bandwidth_of(client: Client) -> float:
    """Return the bytes per second of all workers at once."""
    jobs = [client.submit(read_bandwidth, workers=[w], pure=False) for w in client.nthreads()]
    return float(sum(client.gather(jobs)))


def cluster_kernels(n: int, m: int) -> tuple[np.ndarray, np.ndarray, Any]:
    """Samples, labels and m Gaussians."""
    X, y = make_classification(n, 20, n_informative=8, random_state=0)
    bank = kw.gaussian([2.0, 4.0, 8.0, 16.0]) + kw.per_feature(kw.gaussian([0.5, 2.0]))
    return X, y, kw.Stack(tuple(kw.expand_kernels(bank, kw.Schema(20)))[:m])


class Watched(MKLClassifier):
    """The classifier, which also adds up the seconds of rounds that read what is stored, and their looks at it."""

    def _solve(self, bound: Any, *rest: Any) -> Any:
        bank = bound.bank
        self.reading_, self.looks_, ask = 0.0, 0, bank.storage.workers.ask
        single = isinstance(bank, Features)  # exact rounds compute their features there

        def watched(method: str, arguments: Any) -> Any:
            before = bank.cluster_cost.busy
            answers = ask(method, arguments)
            of_storage = arguments[0][1] if method == "read" else method
            if of_storage in LOOKS and not (single and arguments[0][0]):
                self.reading_ += bank.cluster_cost.busy - before
                self.looks_ += LOOKS[of_storage]
            return answers

        bank.storage.workers.ask = watched
        return super()._solve(bound, *rest)


def cluster_row(
    what: str,
    workers: int,
    model: MKLClassifier,
    seconds: float,
    read: float,
    bandwidth: float,
    memory: float,
) -> dict[str, Any]:
    """A row of the table; ``read`` are the bytes of the bank that the fit's rounds read."""
    cost = model.cluster_
    limit = read / bandwidth
    return {
        "problem": what,
        "workers": workers,
        "n": len(model.dual_coef_),
        "m": model.weights_.size,
        "bank, GB": cost.stored / GB,
        "fit, s": seconds,
        "relative gap": model.certificate_.relative_gap,
        "objective": model.certificate_.primal,
        "rounds": cost.rounds,
        "overhead a round, ms": 1e3 * cost.overhead,
        "sent a round, kB": cost.sent / cost.rounds / 1e3,
        "received a round, kB": cost.received / cost.rounds / 1e3,
        "reading, s": model.reading_,
        "limit, s": limit,
        "ratio": model.reading_ / limit if limit else float("nan"),
        "worker, GB": memory / GB,
        "rebuilt": cost.rebuilt,
    }


def cluster_agreement(client: Client, targets: Targets) -> None:
    """The exact path against one process."""
    X, y, bank = cluster_kernels(300, 30)
    worst = 0.0
    for options in ({}, {"norm": 1.5}, {"norm": 2, "loss": "logistic"}, {"center": True}):
        model = MKLClassifier(bank, tol=1e-9, **options)
        alone = model.fit(X, y).certificate_.primal
        together = distributed.fit(client, model, X, y).certificate_.primal
        worst = max(worst, abs(together - alone) / alone)
    targets.at_most("exact path against one process, relative difference of the objective", worst, 1e-8)


def overhead(client: Client, targets: Targets, rounds: int = 300) -> None:
    """Rounds with next to no work: what a message costs."""
    X, _, spec = cluster_kernels(1000, 20)
    resolved = [k.resolve(X) for k in kw.expand_kernels(spec, kw.Schema(20))]
    empty = Normaliser.empty("trace", False, len(resolved), 1000, [k.name for k in resolved])
    bank = cluster_bank(client, resolved, X, empty)
    cost, a = bank.cluster_cost, np.ones(1000)
    taken = []
    for _ in range(rounds):
        before = (cost.seconds, cost.busy)
        bank.quad(a)
        taken.append((cost.seconds - before[0]) - (cost.busy - before[1]))
    low, middle, high = np.percentile(1e3 * np.array(taken), [5, 50, 95])
    print(f"overhead of a round, ms: median {middle:.1f}, 5 to 95 % {low:.1f} to {high:.1f}", flush=True)
    targets.at_most("overhead of a round, ms (median of 300)", middle, 15.0)


def fit_kernels(client: Client, workers: int, n: int, m: int, bandwidth: float) -> dict[str, Any]:
    """l1-MKL on exact kernels."""
    X, y, bank = cluster_kernels(n, m)
    began = time.perf_counter()
    model = distributed.fit(client, Watched(bank, storage="dense", memory_budget="5GB"), X, y)
    seconds = time.perf_counter() - began
    read = model.n_passes_ * model.cluster_.stored
    memory = max(client.run(peak).values())
    return cluster_row("kernels", workers, model, seconds, read, bandwidth, memory)


def fit_features(
    client: Client,
    workers: int,
    path: Path,
    y: np.ndarray,
    bandwidth: float,
    kill: bool = False,
    norm: Any = P,
) -> tuple[dict[str, Any], float]:
    """A smooth loss on explicit features; return the row and the accuracy on new rows."""
    killed = []

    def killer(row: dict[str, float]) -> None:
        if kill and not killed:
            killed.append(row["iteration"])
            os.kill(max(client.run(os.getpid).values()), signal.SIGKILL)

    options = {
        "loss": "logistic",
        "norm": norm,
        "C": C,
        "tol": TOL,
        "dtype": "float32",
        "memory_budget": "5GB",
    }
    began = time.perf_counter()
    model = Watched(views(), **options, callback=killer)
    distributed.fit(client, model, ParquetRows(path), y)
    seconds = time.perf_counter() - began
    memory = max(client.run(peak).values())
    X, labels = rows_of(TEST, 0)
    what = "features, killed" if kill else "features" if norm == P else f"features, {norm}"
    row = cluster_row(what, workers, model, seconds, model.looks_ * model.cluster_.stored, bandwidth, memory)
    return row, model.score(X, labels)


def cluster_main() -> None:
    from dask.distributed import Client

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    exact, sizes, large = (
        ((600, 20), (10_000, 20_000), 20_000) if quick else ((3000, 40), (250_000, 500_000), 1_000_000)
    )
    targets, rows = Targets(), []
    with tempfile.TemporaryDirectory() as folder:
        labels = {n: write(Path(folder) / f"{n}.parquet", n) for n in {*sizes, large}}
        speeds = {}
        for workers in (1, 2):
            with cluster(workers) as made, Client(made) as client:
                client.wait_for_workers(workers)
                speeds[workers] = bandwidth_of(client)
                fit_kernels(client, workers, 200, 20, speeds[workers])  # compiles
                if workers == 2:
                    cluster_agreement(client, targets)
                    overhead(client, targets)
                rows.append(fit_kernels(client, workers, *exact, speeds[workers]))
                show(rows[-1:])
            for n in sizes if workers == 2 else sizes[:1]:
                with cluster(workers) as made, Client(made) as client:
                    client.wait_for_workers(workers)
                    row, _ = fit_features(
                        client, workers, Path(folder) / f"{n}.parquet", labels[n], speeds[workers]
                    )
                    rows.append(row)
                    show(rows[-1:])
        with cluster(2) as made, Client(made) as client:
            client.wait_for_workers(2)
            path = Path(folder) / f"{sizes[0]}.parquet"
            row, _ = fit_features(client, 2, path, labels[sizes[0]], speeds[2], norm="l1")
            rows.append(row)
            show(rows[-1:])
            smooth = next(r for r in rows if r["problem"] == "features" and r["workers"] == 2)
            targets.at_most("l1: certified relative gap", row["relative gap"], TOL)
            targets.at_most(f"l1: seconds over those of p = {P:g}", row["fit, s"] / smooth["fit, s"], 1.0)
        with cluster(2) as made, Client(made) as client:
            client.wait_for_workers(2)
            path = Path(folder) / f"{sizes[0]}.parquet"
            row, _ = fit_features(client, 2, path, labels[sizes[0]], speeds[2], kill=True)
            rows.append(row)
            show(rows[-1:])
            calm = next(r for r in rows if r["problem"] == "features" and r["workers"] == 2)
            targets.at_least("a killed worker: parts made again", row["rebuilt"], 1)
            apart = abs(row["objective"] - calm["objective"]) / calm["objective"]
            targets.at_most("a killed worker: relative difference of the objective", apart, 1e-4)
            targets.at_most("a killed worker: certified relative gap", row["relative gap"], TOL)
        with cluster(2) as made, Client(made) as client:
            client.wait_for_workers(2)
            row, accuracy = fit_features(
                client, 2, Path(folder) / f"{large}.parquet", labels[large], speeds[2]
            )
            rows.append(row)
            show(rows[-1:])
            print(f"accuracy on {TEST} new rows: {accuracy:.3f}")
            targets.at_most(f"features, n = {large}: certified relative gap", row["relative gap"], TOL)
            targets.at_most(f"features, n = {large}: most memory of a worker, GB", row["worker, GB"], 6.0)
            smooth = row
        with cluster(2) as made, Client(made) as client:
            client.wait_for_workers(2)
            path = Path(folder) / f"{large}.parquet"
            row, _ = fit_features(client, 2, path, labels[large], speeds[2], norm="l1")
            rows.append(row)
            show(rows[-1:])
            targets.at_most(f"l1, n = {large}: certified relative gap", row["relative gap"], TOL)
            targets.at_most(
                f"l1, n = {large}: seconds over those of p = {P:g}", row["fit, s"] / smooth["fit, s"], 1.0
            )
    show(rows)
    print(targets.text())
    if not quick:
        speed = ", ".join(f"{workers}: {speed / GB:.1f} GB/s" for workers, speed in speeds.items())
        write_table(
            "cluster",
            rows,
            "python benchmarks/large.py cluster",
            CLUSTER_NOTE.format(bandwidth=speed, targets=targets.text()),
        )


if __name__ == "__main__":
    run_part(streaming_main, streaming=streaming_main, gpu=gpu_main, cluster=cluster_main)
