"""Parts of a bank on the workers of a Dask cluster: made, asked in rounds, and made again where a worker is lost.

A round is one message to every part and one answer from it, carried by Dask's actors: no task is scheduled.  Parts hold
nothing that they were not made of or had attached, so a round that a worker did not survive is simply asked again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._numerics.resources import in_threads
from .._typing import Array, Index
from ..banks import Computed, FeatureStream, Normaliser, Storage, support
from ..banks.build import row_means
from ._dask import check_client, read_rows

#: rows that a thread mixes at a time
TILE = 64


class _Part:
    """An object on a worker: some rows of the bank, and the sums over them that a round asks for.

    It keeps no state of the fit beyond what it was made of and what was attached to it (normalisation, targets), so a
    part that is lost is made again elsewhere and the round is asked again.
    """

    #: the bank of these rows, by whether double precision is asked for
    banks: dict[bool, Any]

    def call(self, method: str, *args: Any) -> tuple[float, Any]:
        """Run a method; return its seconds here, which tell work from waiting, and its result."""
        began = time.perf_counter()
        result = getattr(self, method)(*args)
        return time.perf_counter() - began, result

    def read(self, double: bool, method: str, *args: Any) -> Any:
        """Run a method of the bank of these rows."""
        return getattr(self.banks[double], method)(*args)


class StoredRows(Storage):
    """Rows ``first`` to ``last`` of every kernel, kept as they are: ``(m, rows, n)``."""

    def __init__(self, source: Storage, first: int, last: int, dtype: Any, threads: int = 1) -> None:
        super().__init__(source.n, source.m)
        self.first, self.threads = first, threads
        self.entries = np.empty((self.m, last - first, self.n), dtype=dtype)
        self._windows: Array | None = None
        everyone, which = np.arange(self.n), np.arange(self.m)
        height = max(1, self.block_entries // (self.n * self.m))
        for top in range(first, last, height):  # kernels of a family share what is computed for a block
            rows = np.arange(top, min(last, top + height))
            self.entries[:, rows - first] = source.block(rows, everyone, which)
        self.nbytes = int(self.entries.nbytes)

    def _own(self, rows: Index) -> slice | Index:
        """Rows as they are stored here; without a copy where all are meant."""
        mine = np.asarray(rows) - self.first
        return slice(None) if mine.size == self.entries.shape[1] and np.all(np.diff(mine) == 1) else mine

    def block(self, rows: Index, cols: Index, kernels: Index) -> Array:
        return self.entries[np.ix_(kernels, rows - self.first, cols)].astype(float, copy=False)

    def apply(self, a: Array, rows: Index | None = None, kernels: Index | None = None) -> Array:
        assert rows is not None
        which = np.arange(self.m) if kernels is None else kernels
        out = np.empty((which.size, rows.size, *a.shape[1:]))
        mine = self._own(rows)
        # reading rows that are not asked for is cheaper than copying most of those that are
        most = not isinstance(mine, slice) and 3 * rows.size >= self.entries.shape[1]
        height = self.entries.shape[1] if self.entries.dtype == np.float64 else max(1, 100_000 // self.n)
        for at, j in enumerate(which):
            part = self.entries[j] if most else self.entries[j, mine]
            found = np.empty((part.shape[0], *a.shape[1:]))
            # single precision is widened while it is in the cache
            for top in range(0, part.shape[0], height):
                found[top : top + height] = part[top : top + height].astype(float, copy=False) @ a
            out[at] = found[mine] if most else found
        return out

    def row_products(self, a: Array, rows: Index | None = None, kernels: Index | None = None) -> Array:
        """Share of ``K_j a`` of the coefficients of the rows here, at some or all samples."""
        from .._numerics.passes import row_products

        which = np.arange(self.m) if kernels is None else kernels
        here = a[self.first : self.first + self.entries.shape[1]]
        used, out = np.flatnonzero(here), np.zeros((which.size, self.n))

        def run(at: int) -> None:
            row_products(self.entries, which[at : at + 1], used, here[used], out[at : at + 1])

        in_threads(run, range(which.size), self.threads)
        return out if rows is None else out[:, rows]

    def mix_windows(self, weights: Array) -> Array:
        """Return what rows here read of the mixed kernel; valid until the next call.

        New memory would cost as much as mixing a few kernels, and an answer has arrived before the next round begins.
        """
        from .._numerics.passes import mix_windows, reach

        if self._windows is None:
            self._windows = np.empty((self.entries.shape[1], reach(self.n) + 1))
        active, out = np.flatnonzero(weights), self._windows

        def run(top: int) -> None:
            mix_windows(self.entries, weights, active, self.first, top, out[top : top + TILE])

        in_threads(run, range(0, len(out), TILE), self.threads)
        return out

    def mix_block(self, weights: Array, rows: Index, cols: Index) -> Array:
        from .._numerics.passes import mix_rows

        active = np.flatnonzero(weights)
        out = np.zeros((rows.size, cols.size))
        start = self.n - cols.size
        if cols.size and np.array_equal(cols, np.arange(start, self.n)):  # all, or all from one on
            mix_rows(self.entries, weights, active, rows - self.first, start, out)
            return out
        mine = self._own(rows)
        for j in active:
            out += weights[j] * self.entries[j, mine][:, cols]
        return out


class KernelPart(_Part):
    """Rows ``first`` to ``last`` of the kernels on all n samples, stored or computed whenever they are read."""

    def __init__(
        self, kernels: list[Any], samples: Any, n: int, first: int, last: int, dtype: str, stored: bool, threads: int
    ) -> None:  # fmt: skip
        self.kernels, self.samples, self.n = kernels, samples, n
        self.rows = np.arange(first, last)
        self.dtype, self.stored, self.threads = np.dtype(dtype), stored, threads

    def row_means(self) -> Array:
        """Means of the raw kernels over all samples, for centring."""
        return row_means(self.kernels, np.arange(len(self.kernels)), self.samples, self.rows)

    def settle(self, normaliser: Normaliser) -> int:
        """Take over what was learnt of all rows, and store; return the bytes."""
        given = self.kernels, self.samples, self.n, normaliser
        precise = Computed(*given, threads=self.threads)
        if self.stored:
            first, last = int(self.rows[0]), int(self.rows[-1]) + 1
            bank: Storage = StoredRows(precise, first, last, self.dtype, self.threads)
        else:
            bank = Computed(*given, self.dtype, threads=self.threads)
        self.banks = {False: bank, True: bank if self.dtype == np.float64 else precise}
        return bank.nbytes

    def diag(self, double: bool) -> Array:
        """Diagonals at these rows."""
        bank, kernels = self.banks[double], np.arange(len(self.kernels))
        return np.concatenate(
            [bank.block(np.array([i]), np.array([i]), kernels)[:, 0] for i in self.rows], axis=1
        )

    def apply(self, double: bool, a: Array, rows: Index | None, kernels: Index | None) -> Array:
        """Products with every kernel at some of the rows."""
        return self.banks[double].apply(a, self.rows if rows is None else rows, kernels)

    def quad(self, double: bool, a: Array, kernels: Index | None) -> Array:
        """This part's share of the quadratic forms."""
        bank, used = self.banks[double], self.rows[support(a[self.rows])]
        if isinstance(bank, StoredRows) and a.ndim == 1:
            return bank.row_products(a, kernels=kernels) @ a
        products = bank.apply(a, used, kernels)
        return np.asarray(np.sum(products * a[used], axis=tuple(range(1, products.ndim))))

    def mix_product(self, double: bool, weights: Array, a: Array) -> Array:
        """The mixed kernel's product at these rows, from the kernels with weight alone."""
        active = np.flatnonzero(weights)
        return np.tensordot(weights[active], self.banks[double].apply(a, self.rows, active), axes=1)

    def judged(self, double: bool, weights: Array, a: Array) -> tuple[Array, Array]:
        """This part's share of the quadratic forms and of the mixed kernel's product, from one pass.

        Stored rows give a share of the product at all samples, others the product at these rows.
        """
        bank = self.banks[double]
        if isinstance(bank, StoredRows) and a.ndim == 1:
            products = bank.row_products(a)
            return products @ a, weights @ products
        products = bank.apply(a, self.rows)
        quad = np.sum(products * a[self.rows], axis=tuple(range(1, products.ndim)))
        return quad, np.tensordot(weights, products, axes=1)

    def mix_block(self, double: bool, weights: Array, rows: Index | None, cols: Index) -> Array:
        """Some rows and columns of the mixed kernel."""
        return self.banks[double].mix_block(weights, self.rows if rows is None else rows, cols)


class FeaturePart(_Part):
    """Explicit features of some rows, kept or computed again in every sweep."""

    def __init__(self, kernels: list[Any], sent: Any, dtype: str, stored: bool, threads: int) -> None:
        self.rows = read_rows(sent)
        self.bank = FeatureStream(kernels, self.rows, dtype=dtype, threads=threads)
        self.banks = {False: self.bank, True: self.bank.exact()}
        if stored:
            self.bank.keep()
        self.y: Array | None = None
        self.c: Array | None = None

    def shape(self) -> tuple[Index, int]:
        """Where each kernel's features begin, and the bytes that are kept."""
        return self.bank.starts, self.bank.nbytes

    def attach(self, y: Array, c: Array) -> None:
        """Keep the targets and the cost of every row."""
        self.y, self.c = y, c

    def loss_sweep(self, double: bool, w: Array, b: Array, loss: Any) -> tuple[float, Array, Array]:
        """Loss and gradient of these rows, reading each once."""
        assert self.y is not None
        assert self.c is not None
        return self.banks[double].loss_sweep(w, b, loss, self.y, self.c)


#: seconds between two checks whether a worker that does not answer is still there
PATIENCE = 5.0
#: seconds until a lost worker has to be missed by the scheduler, or another one to turn up
GRACE = 60.0
#: losses per part, on average, after which the fit gives up: so many are no accident
LOSSES = 4


@dataclass
class ClusterCost:
    """Cost of a fit on the cluster.

    Attributes
    ----------
    parts : int
        Parts that the rows were cut into, one per worker.
    rounds : int
        Messages to all parts, and back.
    sent, received : int
        Bytes of arrays from and to the client, over all rounds and parts.
    seconds : float
        Time of all rounds on the client's clock.
    busy : float
        Time that the slowest part of each round worked; the rest is overhead.
    stored : int
        Bytes of the bank on all workers together.
    rebuilt : int
        Parts that were made again because their worker was lost.
    """

    parts: int = 0
    rounds: int = 0
    sent: int = 0
    received: int = 0
    seconds: float = 0.0
    busy: float = 0.0
    stored: int = 0
    rebuilt: int = 0

    @property
    def overhead(self) -> float:
        """Seconds a round beyond what the slowest part worked."""
        return (self.seconds - self.busy) / self.rounds if self.rounds else 0.0


@dataclass
class _Worker:
    """One part: how it is made, where it is, and what was attached to it since."""

    make: Callable[[str], Any]
    address: str = ""
    future: Any = None
    actor: Any = None
    attached: dict[str, tuple[Any, ...]] = field(default_factory=dict)


class Workers:
    """The parts of one bank.

    Parameters
    ----------
    client : dask.distributed.Client
    makers : sequence of callables
        One a part: given the address of a worker, start making the part there and return the future of its actor.
    """

    def __init__(self, client: Any, makers: Sequence[Callable[[str], Any]]) -> None:
        self.client = client
        self.places = [_Worker(make) for make in makers]
        self.cost = ClusterCost(parts=len(self.places))
        addresses = sorted(client.nthreads())
        for k, place in enumerate(self.places):
            place.address = addresses[k % len(addresses)]
            place.future = place.make(place.address)
        for place in self.places:
            try:
                self._started(place)
            except _losses() as error:
                self._await_loss(place, error)
                self._make_anew(place)

    def attach(self, name: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Ask a method of every part that changes it; it is called again where a part is made again."""
        for place, args in zip(self.places, arguments, strict=True):
            place.attached[name] = args
        return self.ask(name, arguments)

    def ask(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """One round: the method of every part, each with arguments of its own."""
        began = time.perf_counter()
        calls = [self._call(place, method, args) for place, args in zip(self.places, arguments, strict=True)]
        answers = []
        for place, args, call in zip(self.places, arguments, calls, strict=True):
            while True:
                try:
                    answers.append(self._answer(place, call))
                    break
                except _losses() as error:
                    self._await_loss(place, error)
                self._make_anew(place)
                call = self._call(place, method, args)
        self.cost.rounds += 1
        self.cost.seconds += time.perf_counter() - began
        self.cost.busy += max(seconds for seconds, _ in answers)
        self.cost.sent += sum(_bytes(args) for args in arguments)
        self.cost.received += sum(_bytes(result) for _, result in answers)
        return [result for _, result in answers]

    def ask_all(self, method: str, *args: Any) -> list[Any]:
        """One round with the same arguments for every part."""
        return self.ask(method, [args] * len(self.places))

    def _call(self, place: _Worker, method: str, args: tuple[Any, ...]) -> Any:
        try:
            return place.actor.call(method, *args)
        except RuntimeError:  # Dask knows already that the worker is lost
            return None

    def _answer(self, place: _Worker, call: Any) -> Any:
        """Wait for an answer, or a part, as long as the worker is there."""
        while call is not None:
            try:
                return call.result(timeout=PATIENCE)
            except TimeoutError:
                if place.address not in self._addresses():
                    break
            except RuntimeError:
                check_client(self.client)  # closed, with all that ran in it
                raise
        raise OSError(f"the worker at {place.address} was lost")

    def _started(self, place: _Worker) -> None:
        """Wait until a part is made, and attach what had been attached to it."""
        place.actor = self._answer(place, place.future)
        for method, args in place.attached.items():
            self._answer(place, self._call(place, method, args))

    def _await_loss(self, place: _Worker, error: Exception) -> None:
        """Return once the scheduler knows that the worker is lost; an error of a worker that is there is passed on."""
        until = time.monotonic() + GRACE
        while place.address in self._addresses():
            # an error about files says that the work failed, and not that the worker could not be reached
            of_work = isinstance(error, FileNotFoundError | PermissionError | IsADirectoryError)
            if time.monotonic() > until or of_work:
                raise error
            time.sleep(0.05)

    def _make_anew(self, place: _Worker) -> None:
        """Make a part on the worker with the fewest parts, and attach what was attached."""
        until = time.monotonic() + GRACE
        while time.monotonic() < until:
            addresses = self._addresses()
            if not addresses:
                time.sleep(0.1)
                continue
            loads = dict.fromkeys(addresses, 0)
            for other in self.places:
                if other is not place and other.address in loads:
                    loads[other.address] += 1
            place.address = min(loads, key=lambda address: (loads[address], address))
            if self.cost.rebuilt >= LOSSES * len(self.places):
                raise ConnectionError(
                    f"workers were lost {self.cost.rebuilt} times, which looks like too little memory: use more "
                    "workers, a higher memory_limit, storage='lazy' (kernels) or 'stream' (features), or a lower "
                    "memory_budget"
                )
            self.cost.rebuilt += 1
            try:
                place.future = place.make(place.address)
                return self._started(place)
            except _losses() as error:
                self._await_loss(place, error)
        raise ConnectionError(
            f"all workers of the Dask scheduler at {self.client.scheduler.address} are lost, and none came back within "
            f"{GRACE:.0f} s: start some and fit again; with checkpoint=... a fit goes on from its best point"
        )

    def _addresses(self) -> list[str]:
        """Addresses of the workers that are there, or say that the scheduler is not."""
        until = time.monotonic() + PATIENCE
        while self.client.status != "running" and time.monotonic() < until:
            time.sleep(0.1)
        if self.client.status != "running":
            check_client(self.client)
        return list(self.client.nthreads())


def _losses() -> tuple[type[Exception], ...]:
    """Errors with which Dask says that a worker, or the scheduler, is gone."""
    from distributed import KilledWorker
    from distributed.client import FutureCancelledError

    return OSError, KilledWorker, FutureCancelledError


def _bytes(value: Any) -> int:
    """Bytes of the arrays in arguments or an answer."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, tuple | list):
        return sum(_bytes(one) for one in value)
    return 8 if isinstance(value, int | float) else 0
