"""Two workers of Dask on this machine: agreement with one process, rounds, a million rows, a worker that is killed.

Run ``python benchmarks/cluster.py``; it needs ``kernelweave[dask]``.  ``--quick`` takes small problems and writes
nothing.  Times stand beside the limit: bytes that are read, over the bandwidth of reading memory on the same machine.
"""

from __future__ import annotations

import argparse
import os
import signal
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from dask.distributed import Client, LocalCluster
from sklearn.datasets import make_classification

from _measure import GB, peak
from _report import Targets, show, write_table
from kernelweave import MKLClassifier, distributed
from kernelweave import kernels as kw
from kernelweave.banks import Features, Normaliser, ParquetRows
from kernelweave.cluster import cluster_kernel_bank
from streaming import COLUMNS, FEATURES, TEST, TOL, VIEWS, C, P, rows_of, views, write

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
NOTE = f"""`LocalCluster(n_workers=..., threads_per_worker=1, memory_limit="{LIMIT}")`, messages through the scheduler,
as Dask sends them; one thread of BLAS. *Round*: a message to every part and its answer; *overhead*: what a round takes
beyond the work of its slowest part. *Bytes per round*: arrays sent and received, over all parts. *Limit*: bytes of the
bank that the rounds read, over the bandwidth at which all workers together read memory ({{bandwidth}}); *reading*: the
work of the slowest parts in those rounds, and *ratio* the one over the other. *Worker*: most memory of a process.

*kernels*: `make_classification`, 20 features, Gaussians on all and on single features, stored in double precision, l1,
hinge, `newton` to 1e-3; *features*: the rows of `benchmarks/streaming.py` in a Parquet file that workers read
themselves, {VIEWS} views of {COLUMNS} columns, {FEATURES} random Fourier features each, kept in single precision
(`dtype="float32"`, `memory_budget="5GB"`), logistic loss, p = {P:g}, C = {C:g}, with intercept, `lbfgs` to a certified
relative gap of {TOL:g}; *features, l1*: the same under the l1 norm, by `proximal_newton`. The certificate is computed
from features in double precision, computed again. *killed*: the same as the first, one of the two
workers killed after the first certificate. Seconds are those of the whole fit.

{{targets}}"""


def cluster(workers: int) -> Any:
    """Workers in processes of their own."""
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


def kernels(n: int, m: int) -> tuple[np.ndarray, np.ndarray, Any]:
    """Samples, labels and m Gaussians."""
    X, y = make_classification(n, 20, n_informative=8, random_state=0)
    bank = kw.gaussian([2.0, 4.0, 8.0, 16.0]) + kw.per_feature(kw.gaussian([0.5, 2.0]))
    return X, y, kw.Stack(tuple(kw.expand_kernels(bank, kw.Schema(20)))[:m])


class Watched(MKLClassifier):
    """The classifier, which also adds up the seconds of rounds that read what is stored, and their looks at it."""

    def _solve(self, bound: Any, *rest: Any) -> None:
        bank = bound.bank
        self.reading_, self.looks_, ask = 0.0, 0, bank.storage.workers.ask
        single = isinstance(bank, Features)  # exact rounds compute their features there

        def watched(method: str, arguments: Any) -> Any:
            before = bank.cluster_cost.busy
            answers = ask(method, arguments)
            if method in LOOKS and not (single and arguments[0][0]):
                self.reading_ += bank.cluster_cost.busy - before
                self.looks_ += LOOKS[method]
            return answers

        bank.storage.workers.ask = watched
        super()._solve(bound, *rest)


def row_of(
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
        "ratio": model.reading_ / limit,
        "worker, GB": memory / GB,
        "rebuilt": cost.rebuilt,
    }


def agreement(client: Client, targets: Targets) -> None:
    """The exact path against one process."""
    X, y, bank = kernels(300, 30)
    worst = 0.0
    for options in ({}, {"norm": 1.5}, {"norm": 2, "loss": "logistic"}, {"center": True}):
        model = MKLClassifier(bank, tol=1e-9, **options)
        alone = model.fit(X, y).certificate_.primal
        together = distributed.fit(client, model, X, y).certificate_.primal
        worst = max(worst, abs(together - alone) / alone)
    targets.at_most("exact path against one process, relative difference of the objective", worst, 1e-8)


def overhead(client: Client, targets: Targets, rounds: int = 300) -> None:
    """Rounds with next to no work: what a message costs."""
    X, _, spec = kernels(1000, 20)
    resolved = [k.resolve(X) for k in kw.expand_kernels(spec, kw.Schema(20))]
    empty = Normaliser.empty("trace", False, len(resolved), 1000, [k.name for k in resolved])
    bank = cluster_kernel_bank(client, resolved, X, 1000, empty)
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
    X, y, bank = kernels(n, m)
    began = time.perf_counter()
    model = distributed.fit(client, Watched(bank, storage="dense", memory_budget="5GB"), X, y)
    seconds = time.perf_counter() - began
    read = model.n_passes_ * model.cluster_.stored
    memory = max(client.run(peak).values())
    return row_of("kernels", workers, model, seconds, read, bandwidth, memory)


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
    row = row_of(what, workers, model, seconds, model.looks_ * model.cluster_.stored, bandwidth, memory)
    return row, model.score(X, labels)


def main() -> None:
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
                    agreement(client, targets)
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
            "python benchmarks/cluster.py",
            NOTE.format(bandwidth=speed, targets=targets.text()),
        )


if __name__ == "__main__":
    main()
