"""Making banks on a cluster: rows are cut, sent, normalised by sums over all parts, and stored where they fit."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from ..banks import Normaliser
from ..banks.memory import parse_bytes, refuse
from ._parts import FeaturePart, KernelPart
from ._sources import cut_rows, send_rows
from .banks import ClusterFeatureBank, ClusterKernelBank
from .workers import Workers

__all__ = ["cluster_feature_bank", "cluster_kernel_bank"]


def cluster_kernel_bank(
    client: Any,
    kernels: list[Any],
    samples: Any,
    n: int,
    normaliser: Normaliser,
    *,
    storage: str = "auto",
    dtype: Any = "float64",
    memory_budget: int | float | str | None = None,
) -> ClusterKernelBank:
    """Exact kernels, a run of rows a worker; every worker has all samples, the client as well."""
    dtype = np.dtype(dtype)
    bounds = np.unique(np.linspace(0, n, min(len(client.nthreads()), n) + 1).round().astype(np.intp))
    m, height = len(kernels), int(np.max(np.diff(bounds)))
    needed, budget = m * height * n * dtype.itemsize, _budget(client, memory_budget)
    if storage == "dense" and needed > budget:
        raise refuse(
            f"{m} kernels on {n} samples, {height} rows a worker,", needed, budget,
            ["more workers", "storage='auto', which computes what does not fit", "raise memory_budget"],
        )  # fmt: skip
    stored = storage != "lazy" and needed <= budget

    def arguments(first: int, last: int, worker: str) -> tuple[Any, ...]:
        here = client.scatter(samples, workers=[worker], hash=False)
        return kernels, here, n, first, last, dtype.name, stored

    workers = _on_workers(client, KernelPart, bounds, arguments)
    means = np.concatenate(workers.ask_all("row_means"), axis=1) if normaliser.center else None
    for j, kernel in enumerate(kernels):
        normaliser.learn(j, kernel.diag(samples), None if means is None else means[j])
    everyone = [(normaliser,)] * (bounds.size - 1)
    workers.cost.stored = sum(workers.attach("settle", everyone))
    return ClusterKernelBank(workers, bounds, m, dtype == np.float64, stored)


def cluster_feature_bank(
    client: Any,
    kernels: list[Any],
    source: Any,
    normaliser: Normaliser,
    *,
    storage: str = "auto",
    dtype: Any = "float64",
    memory_budget: int | float | str | None = None,
) -> ClusterFeatureBank:
    """Explicit features of rows that are on the workers, or that these read."""
    if not normaliser.keeps_powers():
        raise ValueError(
            "features on a cluster take normalize='trace' or None, without centring: what else there is needs all rows "
            "at once; storage='dense' or 'lazy' has both"
        )
    dtype = np.dtype(dtype)
    bounds = cut_rows(source, len(client.nthreads()))
    width = sum(int(kernel.rank(source.shape[1])) for kernel in kernels)
    height = int(np.max(np.diff(bounds)))
    needed, budget = height * width * dtype.itemsize, _budget(client, memory_budget)
    if storage == "lowrank" and needed > budget:
        raise refuse(
            f"{width} features of {height} rows on a worker", needed, budget,
            ["more workers", "dtype='float32'", "storage='stream', which computes them in every sweep"],
        )  # fmt: skip
    stored = storage != "stream" and needed <= budget

    def arguments(first: int, last: int, worker: str) -> tuple[Any, ...]:
        return kernels, send_rows(source, first, last, client, worker), dtype.name, stored

    workers = _on_workers(client, FeaturePart, bounds, arguments)
    starts, stored_bytes = zip(*workers.ask_all("shape"), strict=True)
    workers.cost.stored = sum(stored_bytes)
    bank = ClusterFeatureBank(workers, bounds, starts[0], dtype == np.float64)
    if normaliser.mode == "trace":
        sums = np.sum(workers.ask_all("square_sums"), axis=0)
        normaliser.learn_traces(np.arange(bank.m), sums / bank.n)
        bank.scale = normaliser.scale.copy()
    return bank


def _on_workers(
    client: Any, kind: type, bounds: Any, arguments: Callable[[int, int, str], tuple[Any, ...]]
) -> Workers:
    """Start a part for every run of rows; it learns how many threads its worker has."""

    def maker(first: int, last: int) -> Callable[[str], Any]:
        def make(worker: str) -> Any:
            threads = client.nthreads().get(worker, 1)
            options = {"actor": True, "workers": [worker], "pure": False}
            return client.submit(kind, *arguments(first, last, worker), threads, **options)

        return make

    return Workers(client, [maker(int(first), int(last)) for first, last in pairwise(bounds)])


def _budget(client: Any, memory_budget: int | float | str | None) -> int:
    """Bytes that a part may take: what was said, else half of the smallest worker's limit."""
    if memory_budget is not None:
        return parse_bytes(memory_budget)
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    limits = [worker["memory_limit"] for worker in workers if worker["memory_limit"]]
    return min(limits) // 2 if limits else parse_bytes(None)
