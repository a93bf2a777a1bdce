"""Kernels whose rows are on the workers of a cluster: made there, and asked one round per method."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._typing import Array, Index
from ..banks import BoundKernels, Features, FeatureStorage, Gram, Normaliser, Rows, Storage, support
from ..banks.decide import Asked, Decision, keep
from ..banks.facts import facts_of_kernels
from ..banks.memory import parse_bytes
from ..kernels import n_samples
from ._dask import cut_rows, send_rows
from .workers import FeaturePart, KernelPart, Workers


class _OnWorkers:
    """Base of both storages: parts, and whether these are asked for double precision."""

    workers: Workers
    double: bool
    stored: bool

    def exact(self) -> Any:
        """Return the same parts, which compute in double precision."""
        if self.double:
            return self
        twin = copy(self)
        twin.double, twin.stored = True, False
        return twin


def _shares(bounds: Index, rows: Index) -> list[Index]:
    """Which of some rows each part has, as positions in ``rows``."""
    part = np.searchsorted(bounds, rows, side="right") - 1
    return [np.flatnonzero(part == k) for k in range(bounds.size - 1)]


class WorkerKernels(_OnWorkers, Storage):
    """Exact kernels, a run of rows a part.

    Part k of the ``workers`` (settled) has rows ``bounds[k]`` to ``bounds[k + 1]``, in ``double`` precision or not.
    Parts that are ``stored`` read the rows of samples that have coefficients, and no other.
    """

    def __init__(
        self, workers: Workers, bounds: Index, m: int, double: bool = True, stored: bool = False
    ) -> None:
        super().__init__(int(bounds[-1]), m)
        self.workers, self.bounds, self.double, self.stored = workers, bounds, double, stored
        self.nbytes, self.cluster_cost = workers.cost.stored, workers.cost

    def _gather(
        self, method: str, rows: Index, before: tuple[Any, ...], after: tuple[Any, ...], axis: int = 1
    ) -> Array:
        """Ask every part for some of its rows and put the answers together along an axis."""
        shares = _shares(self.bounds, rows)
        asked = [(self.double, *before, rows[mine], *after) for mine in shares]
        answers = self.workers.ask(method, asked)
        out = np.concatenate(answers, axis=axis)
        order = np.concatenate(shares)
        if np.array_equal(order, np.arange(order.size)):
            return out
        return np.take(out, np.argsort(order), axis=axis)

    def block(self, rows: Index, cols: Index, kernels: Index) -> Array:
        return self._gather("read", rows, ("block",), (cols, np.asarray(kernels)))

    def apply(self, a: Array, rows: Index | None = None, kernels: Index | None = None) -> Array:
        height, used = self.n if rows is None else rows.size, support(a)
        if self.stored and a.ndim == 1 and used.size <= height:
            return np.sum(self.workers.ask_all("read", self.double, "row_products", a, rows, kernels), axis=0)
        if rows is None:
            return np.concatenate(self.workers.ask_all("apply", self.double, a, None, kernels), axis=1)
        return self._gather("apply", rows, (a,), (kernels,))

    def quad(self, a: Array, kernels: Index | None = None) -> Array:
        return np.sum(self.workers.ask_all("quad", self.double, a, kernels), axis=0)

    def mix_product(self, weights: Array, a: Array) -> Array:
        return np.concatenate(self.workers.ask_all("mix_product", self.double, weights, a))

    def judged(self, weights: Array, a: Array) -> tuple[Array, Array]:
        quads, products = zip(*self.workers.ask_all("judged", self.double, weights, a), strict=True)
        by_rows = self.stored and a.ndim == 1
        return np.sum(quads, axis=0), np.sum(products, axis=0) if by_rows else np.concatenate(products)

    def mix_block(self, weights: Array, rows: Index, cols: Index) -> Array:
        return self._gather("mix_block", rows, (weights,), (cols,), axis=0)

    def combine(self, weights: Array) -> Array:
        """Mixed kernel: half of it comes back, or, where parts compute it, what is not left of their rows."""
        from .._numerics.passes import complete, unfold

        out = np.empty((self.n, self.n))
        if self.stored:
            strips = self.workers.ask_all("read", self.double, "mix_windows", weights)
            for first, strip in zip(self.bounds[:-1], strips, strict=True):
                unfold(strip, int(first), out)
            complete(out)
            return out
        firsts, lasts = self.bounds[:-1], self.bounds[1:]
        columns = [np.arange(first, self.n) for first in firsts]
        strips = self.workers.ask("mix_block", [(self.double, weights, None, cols) for cols in columns])
        for first, last, strip in zip(firsts, lasts, strips, strict=True):
            out[first:last, first:] = strip
            out[last:, first:last] = strip[:, last - first :].T
        return out

    @property
    def mixed_entries(self) -> float:
        from .._numerics.passes import reach

        if self.stored:
            return float(self.n) * (reach(self.n) + 1)
        firsts = self.bounds[:-1]
        return float(np.sum(np.diff(self.bounds) * (self.n - firsts)))

    def diag(self) -> Array:
        return np.concatenate(self.workers.ask_all("diag", self.double), axis=1)


class WorkerFeatures(_OnWorkers, FeatureStorage):
    """Explicit features, a run of rows a part; what comes back of a sweep is a vector of features, or of samples.

    Part k has rows ``bounds[k]`` to ``bounds[k + 1]``, kernel j the features ``starts[j]`` to ``starts[j + 1]``.
    """

    decision = Decision(representation="features", storage="lowrank", place="cluster")
    solvers = "solver='lbfgs' or solver='proximal_newton'"

    def __init__(self, workers: Workers, bounds: Index, starts: Index, double: bool = True) -> None:
        super().__init__(int(bounds[-1]), starts)
        self.workers, self.bounds, self.double, self.stored = workers, bounds, double, False
        self.nbytes, self.cluster_cost = workers.cost.stored, workers.cost
        self._targets: tuple[Any, Any] = (None, None)

    def _cut(self, a: Array) -> list[Array]:
        return [a[first:last] for first, last in zip(self.bounds[:-1], self.bounds[1:], strict=True)]

    def features_of(self, rows: Index) -> Any:
        shares = _shares(self.bounds, rows)
        pairs = zip(shares, self.bounds[:-1], strict=True)
        blocks = self.workers.ask(
            "read", [(True, "features_of", rows[mine] - first) for mine, first in pairs]
        )
        stacked = sp.vstack(blocks, format="csr") if sp.issparse(blocks[0]) else np.concatenate(blocks)
        return stacked[np.argsort(np.concatenate(shares))]

    def gram(self, rows: Index, charge: Array, columns: Index) -> Array:
        shares = _shares(self.bounds, rows)
        asked = [
            (False, "gram", rows[mine] - first, charge[mine], columns)
            for mine, first in zip(shares, self.bounds[:-1], strict=True)
        ]
        return np.asarray(np.sum(self.workers.ask("read", asked), axis=0))

    def forward(self, w: Array) -> Array:
        return np.concatenate(self.workers.ask_all("read", self.double, "forward", w))

    def adjoint(self, a: Array) -> Array:
        asked = [(self.double, "adjoint", part) for part in self._cut(a)]
        return np.sum(self.workers.ask("read", asked), axis=0)

    def lengths(self, mixing: Array) -> Array:
        return np.concatenate(self.workers.ask_all("read", self.double, "lengths", mixing))

    def loss_sweep(self, w: Array, b: Array, loss: Any, y: Array, c: Array) -> tuple[float, Array, Array]:
        if loss.coupled:  # parts know the risk sets of their own rows alone
            return super().loss_sweep(w, b, loss, y, c)
        if self._targets[0] is not y or self._targets[1] is not c:
            self.workers.attach("attach", list(zip(self._cut(y), self._cut(c), strict=True)))
            self._targets = (y, c)
        values, along, sums = zip(*self.workers.ask_all("loss_sweep", self.double, w, b, loss), strict=True)
        return float(np.sum(values)), np.sum(along, axis=0), np.sum(sums, axis=0)

    def shuffled(self, rng: np.random.Generator) -> Iterator[tuple[Index, Any]]:
        raise ValueError(
            "stochastic steps visit single rows, which are on the workers: use solver='lbfgs', which asks for sums"
        )

    def diag(self) -> Array:
        return np.stack([self.lengths(np.repeat(one * self.scale, self.ranks)) for one in np.eye(self.m)])


def cluster_bank(
    client: Any,
    kernels: list[Any],
    samples: Any,
    normaliser: Normaliser,
    *,
    storage: str = "auto",
    dtype: Any = "float64",
    memory_budget: int | float | str | None = None,
) -> Gram:
    """Kernels on a cluster, a run of rows a worker.

    Of rows that are on the workers, or that these read (``Rows``), explicit features are kept or computed; of samples
    in memory, which the client and every worker have, exact kernels.
    """
    number, n, m, threads = np.dtype(dtype), n_samples(samples), len(kernels), len(client.nthreads())
    sweeps = isinstance(samples, Rows)
    bounds = cut_rows(samples, n, threads)
    facts = facts_of_kernels(
        kernels, samples, normaliser.mode, normaliser.center, place="cluster", kind="rows" if sweeps else "other",
        height=int(np.max(np.diff(bounds))), memory=memory_of_workers(client, memory_budget),
    )  # fmt: skip
    decision = keep(facts, Asked(storage=storage, dtype=number.name))
    stored = decision.storage in ("dense", "lowrank")

    def make(first: int, last: int, worker: str) -> Any:
        """Start the part of some rows, which learns how many threads its worker has."""
        if sweeps:
            parts: tuple[Any, ...] = (send_rows(samples, first, last, client, worker),)
        else:
            parts = client.scatter(samples, workers=[worker], hash=False), n, first, last
        own, options = client.nthreads().get(worker, 1), {"actor": True, "workers": [worker], "pure": False}
        kind = FeaturePart if sweeps else KernelPart
        return client.submit(kind, kernels, *parts, number.name, stored, own, **options)

    workers = Workers(client, [partial(make, int(first), int(last)) for first, last in pairwise(bounds)])
    if sweeps:
        starts, stored_bytes = zip(*workers.ask_all("shape"), strict=True)
        workers.cost.stored = sum(stored_bytes)
        features = WorkerFeatures(workers, bounds, starts[0], number == np.float64)
        if normaliser.mode == "trace":
            means = workers.ask_all("read", False, "mean_squares")
            sums = np.sum([mean * size for mean, size in zip(means, np.diff(bounds), strict=True)], axis=0)
            normaliser.learn_traces(np.arange(m), sums / n)
            features.scale = normaliser.scale.copy()
        bank: Gram = Features(features)
    else:
        row_means = np.concatenate(workers.ask_all("row_means"), axis=1) if normaliser.center else None
        for j, kernel in enumerate(kernels):
            normaliser.learn(j, kernel.diag(samples), None if row_means is None else row_means[j])
        everyone = [(normaliser,)] * (bounds.size - 1)
        workers.cost.stored = sum(workers.attach("settle", everyone))
        bank = Gram(WorkerKernels(workers, bounds, m, number == np.float64, stored))
    bank.decision, bank.source = decision, BoundKernels(kernels, samples, normaliser)
    return bank


def memory_of_workers(client: Any, memory_budget: int | float | str | None) -> int:
    """Bytes that a part may take: what was said, else half of the smallest worker's limit."""
    if memory_budget is not None:
        return parse_bytes(memory_budget)
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    limits = [worker["memory_limit"] for worker in workers if worker["memory_limit"]]
    return min(limits) // 2 if limits else parse_bytes(None)
