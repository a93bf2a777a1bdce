"""Kernels of which nothing is stored: blocks computed when they are read, and quicker mixtures of exponentials."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from .._numerics.euclid import distances_to
from .._numerics.resources import in_threads
from .._numerics.stopping import check_time
from .._typing import Array, Index
from ..kernels import Kernel, n_samples, take
from ._base import Storage, support
from .normalise import Normaliser
from .power import base_groups, find_chains, mirror_lower

#: entries of a block that a thread works on
LAZY_PIECE = 2_000_000
#: kernel values up to which NumPy is done before compiled code would be loaded, let alone compiled
FEW_VALUES = 10_000_000


class Computed(Storage):
    """Kernels and samples; every pass computes its entries again, one base matrix per family and block.

    Parameters
    ----------
    kernels, samples, n, normaliser :
        Resolved kernels, what they are evaluated on, how many, and what is done to raw entries.
    dtype : dtype, default=float64
        Precision of kernels that are exponentials, while they exist; distances and other kernels are always double.
    threads : int, default=1
        Threads that share the rows of a sweep.
    """

    def __init__(
        self,
        kernels: list[Kernel],
        samples: Any,
        n: int,
        normaliser: Normaliser,
        dtype: Any = np.float64,
        threads: int = 1,
    ) -> None:
        super().__init__(n, len(kernels))
        self.kernels = kernels
        self.dtype = np.dtype(dtype)
        self.samples = samples
        self.normaliser = normaliser
        self.threads = threads
        self.mixed_itemsize = self.dtype.itemsize
        self._narrow: NarrowFamilies | None = None
        #: by kernel, one that takes the samples in another form, and they in that form
        self._prepared: dict[int, tuple[Kernel, Any]] = {}

    def block(self, rows: Any, cols: Any, kernels: Index) -> Array:
        rows, cols = np.atleast_1d(rows), np.atleast_1d(cols)
        out = np.empty((len(kernels), rows.size, cols.size))
        for at, entries in self._each(rows, cols, np.asarray(kernels)):
            out[at] = entries
        return out

    def _each(self, rows: Index, cols: Index, kernels: Index) -> Iterator[tuple[int, Array]]:
        """Yield the entries of every kernel in turn, which the next overwrites; those of a family share their base."""
        left, right = take(self.samples, rows), take(self.samples, cols)
        for group in base_groups(self.kernels, np.unique(kernels)):
            if group[0] not in self._prepared:
                self._prepared[group[0]] = self.kernels[group[0]].prepare(self.samples)
            worker, samples = self._prepared[group[0]]
            own = samples is not self.samples
            base = worker.base(take(samples, rows), take(samples, cols)) if own else worker.base(left, right)
            if self.kernels[group[0]].decay:  # only exponentials gain by it, and powers would overflow
                base = base.astype(self.dtype, copy=False)
            buffer = np.empty((rows.size, cols.size), dtype=base.dtype)
            for j in group:
                self.kernels[j].of_base(base, out=buffer)
                entries = self.normaliser.train_block(j, buffer, rows, cols)
                for at in np.flatnonzero(kernels == j):  # the same kernel may have been asked for twice
                    yield int(at), entries

    def _sweep(
        self, rows: Index, cols: Index, kernels: Index, use: Callable[[int, slice, Array], None]
    ) -> None:
        """Call ``use`` with all entries in pieces of rows, shared among the threads."""

        def run(part: slice) -> None:
            for at, entries in self._each(rows[part], cols, kernels):
                use(at, part, entries)

        in_threads(run, row_slices(rows.size, cols.size, LAZY_PIECE), self.threads)

    def _families(self, kernels: int, rows: int, cols: int) -> NarrowFamilies | None:
        """Kernels that compiled code computes, where so many entries are asked for that it is worth its loading."""
        if not self.normaliser.keeps_powers() or float(kernels) * rows * cols <= FEW_VALUES:
            return None
        if self._narrow is None:
            scale = self.normaliser.scale
            self._narrow = NarrowFamilies(self.kernels, self.samples, scale, self.dtype, self.threads)
        return self._narrow if self._narrow.groups else None

    def apply(self, a: Array, rows: Index | None = None, kernels: Index | None = None) -> Array:
        where = np.arange(self.n) if rows is None else rows
        which = np.arange(self.m) if kernels is None else kernels
        used = support(a)
        out = np.zeros((which.size, where.size, *a.shape[1:]))
        families = self._families(which.size, where.size, used.size) if used.size else None
        quick = np.zeros(which.size, dtype=bool) if families is None else families.member[which]
        if families is not None and np.any(quick):
            products = families.products(a[used], where, used, which[quick])
            out[quick] = products.reshape(-1, where.size, *a.shape[1:])
        slow = np.flatnonzero(~quick)
        part_of_a = {np.dtype(kind): a[used].astype(kind) for kind in {self.dtype, np.dtype(np.float64)}}

        def multiply(at: int, part: slice, entries: Array) -> None:
            out[slow[at], part] = entries @ part_of_a[entries.dtype]

        if used.size and slow.size:
            self._sweep(where, used, which[slow], multiply)
        return out

    def mixed(self, weights: Array, rows: Index | None = None) -> np.ndarray:
        where = np.arange(self.n) if rows is None else rows
        return self.mix_block(weights, where, where, self.dtype)  # half the memory in single precision

    def mix_block(self, weights: Array, rows: Index, cols: Index, dtype: Any = np.float64) -> np.ndarray:
        active = np.flatnonzero(weights)
        out = np.zeros((rows.size, cols.size), dtype=dtype)
        families = self._families(active.size, rows.size, cols.size)
        if families is not None:
            families.add_mixture(weights, rows, cols, out)
            active = active[~families.member[active]]

        def add(at: int, part: slice, entries: Array) -> None:
            entries *= weights[active[at]]
            out[part] += entries

        if active.size:
            self._sweep(rows, cols, active, add)
        return out

    def judged(self, weights: Array, a: Array) -> tuple[Array, Array] | None:
        active, used = np.count_nonzero(weights), support(a).size
        if self.m * self.n >= self.m * used + active * self.n:
            return None
        products = self.apply(a)  # one sweep for both reads less
        return self.image_quad(products, a), self.image_mix(products, weights)

    def diag(self) -> Array:
        if not self.normaliser.keeps_powers():
            return super().diag()
        raw = np.array([kernel.diag(self.samples) for kernel in self.kernels])
        return raw * self.normaliser.scale[:, None]


#: entries that a thread works on at a time
PIECE = 4_000_000


class _Chosen(NamedTuple):
    """Some kernels of the families: what compiled code reads, and which kernels the links are."""

    table: Array  # a column per sample
    columns: Index
    rates: Array
    squarings: Index
    starts: Index
    kernels: Index


class NarrowFamilies:
    """Those kernels of a bank that are exponentials of squared distances on few columns; there may be none.

    Distances are computed once per family and piece of a row, the kernels of a family by squaring wherever that keeps
    their digits (``_numerics.exponentials``), and nothing but the answer is ever stored.  That is about as quick as
    reading stored matrices, and costs no memory.  Exponentials are in ``dtype``, sums and mixtures in double precision.
    """

    def __init__(
        self, kernels: list[Kernel], samples: Any, scale: Array, dtype: np.dtype, threads: int
    ) -> None:
        self.scale, self.dtype, self.threads = scale, dtype, threads
        self.groups: list[list[int]] = []
        self.points: list[Array] = []  # columns of every family, a row each
        for group in base_groups(kernels, range(len(kernels))):
            first = kernels[group[0]]
            rows = first.points(samples) if first.decay else None
            if rows is not None and 0 < rows.shape[1] <= FEW_COLUMNS:
                self.groups.append(group)
                self.points.append(np.ascontiguousarray(rows.T))
        self.exponents = np.array([kernel.exponent for kernel in kernels], dtype=float)
        self.member = np.zeros(scale.size, dtype=bool)
        self.member[[j for group in self.groups for j in group]] = True

    def _chosen(self, kernels: Index) -> _Chosen:
        """Families that some of these kernels belong to, and no more links than they need."""
        wanted = set(map(int, kernels))
        tables, links, names = [], [], []
        for group, points in zip(self.groups, self.points, strict=True):
            here = np.array([j for j in group if j in wanted], dtype=np.intp)
            if here.size:
                order = Links.of(list(self.exponents[here]), MOST_SQUARINGS[self.dtype])
                tables.append(points)
                links.append(order)
                names.append(here[order.kernels])
        return _Chosen(
            np.concatenate(tables),
            np.cumsum([0, *map(len, tables)]),
            np.concatenate([order.rates for order in links]),
            np.concatenate([order.squarings for order in links]),
            np.cumsum([0, *map(len, names)]),
            np.concatenate(names),
        )

    def products(self, values: Array, rows: Index, used: Index, kernels: Index) -> Array:
        """``K_j[rows, used] values`` for kernels that are members: ``(kernels, rows, columns of values)``."""
        from .._numerics.exponentials import PIECE as WIDTH
        from .._numerics.exponentials import decay_products

        chosen = self._chosen(kernels)
        new = np.ascontiguousarray(chosen.table[:, rows].T)
        table = np.ascontiguousarray(chosen.table[:, used])
        coef = np.ascontiguousarray(values.reshape(used.size, -1).T, dtype=self.dtype)
        out = np.zeros((rows.size, chosen.kernels.size, coef.shape[0]))

        def run(part: slice) -> None:
            check_time()
            decay_products(
                new[part], table, chosen.columns, chosen.rates, chosen.squarings, chosen.starts, LEAST[self.dtype],
                coef, np.empty(WIDTH), np.empty(WIDTH, dtype=self.dtype), out[part],
            )  # fmt: skip

        in_threads(run, row_slices(rows.size, used.size, PIECE), self.threads)
        place = np.argsort(chosen.kernels)[np.searchsorted(np.sort(chosen.kernels), kernels)]
        return np.ascontiguousarray(out.transpose(1, 0, 2)[place]) * self.scale[kernels][:, None, None]

    def add_mixture(self, weights: Array, rows: Index, cols: Index, out: np.ndarray) -> None:
        """Add ``sum_j weights_j K_j[rows, cols]`` over the members to ``out``, which is zero where ``rows is cols``.

        Among the same samples half of the entries are computed, and mirrored.
        """
        from .._numerics.exponentials import PIECE as WIDTH
        from .._numerics.exponentials import mix_decays

        kernels = np.flatnonzero((weights != 0) & self.member)
        if not kernels.size:
            return
        chosen, among = self._chosen(kernels), rows is cols
        table = np.ascontiguousarray(chosen.table[:, cols])
        new = np.ascontiguousarray(chosen.table[:, rows].T)
        factors = (weights * self.scale)[chosen.kernels].astype(self.dtype)
        none = np.empty((0, 0))

        def run(part: slice) -> None:
            check_time()
            width, height = part.stop if among else cols.size, part.stop - part.start
            mixed = np.zeros((height, width), dtype=self.dtype)
            mix_decays(
                new[part], np.ascontiguousarray(table[:, :width]), chosen.columns, none, chosen.rates, chosen.squarings,
                factors, chosen.starts, LEAST[self.dtype], none.astype(self.dtype), np.empty(WIDTH),
                np.empty((2, WIDTH), dtype=self.dtype), np.zeros((height, 1)), mixed,
            )  # fmt: skip
            out[part, :width] += mixed

        in_threads(run, row_slices(rows.size, cols.size, PIECE)[::-1], self.threads)
        if among:
            mirror_lower(out, self.threads)


#: entries of a block of kernel values
BLOCK_ENTRIES = 250_000
#: entries of a mixture, which stays in the second-level cache
MIXED_ENTRIES = 1 << 16
#: columns of coefficients up to which sums over a piece are quicker than a matrix product
FEW_TARGETS = 16
#: columns up to which differences are quicker than a matrix product
FEW_COLUMNS = 16
#: squarings in a row: each doubles the relative error of an entry
MOST_SQUARINGS = {np.dtype(np.float64): 10, np.dtype(np.float32): 4}
#: entries below are as good as zero, and not multiplied further (``_numerics.exponentials``)
LEAST = {np.dtype(np.float64): np.float64(1e-70), np.dtype(np.float32): np.float32(1e-8)}

#: rates, squarings and weights of the links of a family
Mixing = tuple[Array, Index, Array]
#: those of several families, and where each begins
Joined = tuple[Array, Index, Array, Index]


class Links(NamedTuple):
    """Kernels of a family in the order in which they are computed, see ``_numerics.exponentials``."""

    kernels: Index
    rates: Array
    squarings: Index

    @classmethod
    def of(cls, exponents: list[float], most: int) -> Links:
        """Square where it is exact enough, else take an exponential.

        >>> Links.of([0.5, 2.0, 3.0], 10)
        Links(kernels=array([0, 1, 2]), rates=array([0.5, 0. , 3. ]), squarings=array([0, 2, 0]))
        """
        kernels: list[int] = []
        rates: list[float] = []
        squarings: list[int] = []
        for chain in find_chains(exponents, most):
            so_far = 0
            for k, times, products in zip(chain.kernels, chain.squarings, chain.times_base, strict=True):
                anew = not kernels or k == chain.kernels[0] or products > 0 or so_far + times > most
                so_far = 0 if anew else so_far + times
                kernels.append(k)
                rates.append(exponents[k] if anew else 0.0)
                squarings.append(0 if anew else times)
        return cls(np.array(kernels), np.array(rates), np.array(squarings))


class Exponentials:
    """``sum_j factors_j K_j(new, samples) coef`` of kernels that are exponentials: the compiled part of prediction.

    Distances are computed once per family, in double precision, and the kernels of a family are powers of one another
    wherever squaring keeps their digits.  Gaussians on few columns never have a matrix of distances at all; on many
    columns a matrix product gives the distances, and any other distance is asked of its kernel.  ``factors`` are weight
    times normalisation, ``samples`` those that have coefficients.
    """

    def __init__(
        self, kernels: list[Kernel], samples: Any, factors: Array, coef: Array, dtype: np.dtype
    ) -> None:
        self.coef, self.dtype = coef.astype(dtype), dtype
        self.least = LEAST[dtype]
        self.narrow: list[Kernel] = []
        #: a kernel of every other family, its distances to the samples where a matrix product gives them, and its links
        self.given: list[tuple[Kernel, Callable[[Array], Array] | None, Joined]] = []
        self.samples = samples
        tables, mixings = [np.empty((0, coef.shape[0]))], []
        for group in base_groups(kernels, range(len(kernels))):
            order = Links.of([kernels[j].exponent for j in group], MOST_SQUARINGS[dtype])
            mixing = order.rates, order.squarings, factors[np.array(group)[order.kernels]].astype(dtype)
            points = kernels[group[0]].points(samples)
            if points is not None and 0 < points.shape[1] <= FEW_COLUMNS:
                self.narrow.append(kernels[group[0]])
                tables.append(points.T)
                mixings.append(mixing)
            else:
                squared = None if points is None else distances_to(points)
                self.given.append((kernels[group[0]], squared, _joined([mixing])))
        self.table = np.ascontiguousarray(np.concatenate(tables))
        self.columns = np.cumsum([0, *map(len, tables[1:])])
        self.mixing = _joined(mixings) if mixings else None
        table = self.coef.reshape(coef.shape[0], -1)
        #: few columns are multiplied while a piece of the mixture is at hand, many by a matrix product
        few = table.shape[1] <= FEW_TARGETS
        self.factors = np.ascontiguousarray(table.T) if few else np.empty((0, 0), dtype=dtype)

    def add(self, new: Any, out: Array) -> None:
        """Add the values at new rows to ``out``, ``(n_new,)`` or ``(n_new, k)``."""
        whole, n = n_samples(new), self.coef.shape[0]
        columns: list[Any] = [np.empty((whole, 0))]
        for kernel in self.narrow:
            points = kernel.points(new)
            # none where they are sparse, and then of a few columns at most
            columns.append(kernel.points(new.toarray()) if points is None else points)
        rows = np.hstack(columns)
        values = np.zeros((whole, max(1, self.factors.shape[0])))
        few = self.factors.shape[0] > 0
        nothing, alone = np.empty((0, 0)), np.zeros(2, dtype=np.intp)
        if few and self.mixing is not None:  # all rows at once: no thread waits for the interpreter
            self._mix(rows, self.columns, nothing, self.mixing, values, np.empty((0, 0), dtype=self.dtype))
        for part in row_slices(whole, n, MIXED_ENTRIES) if self.given or not few else ():
            mixed = np.zeros((0 if few else part.stop - part.start, n), dtype=self.dtype)
            if not few and self.mixing is not None:
                self._mix(rows[part], self.columns, nothing, self.mixing, values[part], mixed)
            for kernel, squared, mixing in self.given:
                block = new if part == slice(0, whole) else take(new, np.arange(part.start, part.stop))
                own = None if squared is None else kernel.points(block)
                if squared is None or own is None:
                    distances = np.asarray(kernel.base(block, self.samples), dtype=float)
                else:
                    distances = squared(own)
                self._mix(nothing, alone, distances, mixing, values[part], mixed)
            if not few:
                out[part] += mixed @ self.coef
        if few:
            out += values.reshape(out.shape)

    def _mix(
        self, rows: Array, columns: Index, given: Array, mixing: Joined, values: Array, mixed: np.ndarray
    ) -> None:
        from .._numerics.exponentials import PIECE, mix_decays

        work, powers = np.empty(PIECE), np.empty((2, PIECE), dtype=self.dtype)
        mix_decays(
            rows, self.table, columns, given, *mixing, self.least, self.factors, work, powers, values, mixed
        )


def _joined(mixings: list[Mixing]) -> Joined:
    """Links of several families one after the other, and where each begins."""
    rates, squarings, weights = (np.concatenate(part) for part in zip(*mixings, strict=True))
    return rates, squarings, weights, np.cumsum([0, *(len(mixing[0]) for mixing in mixings)])


def row_slices(rows: int, columns: int, entries: int = BLOCK_ENTRIES) -> list[slice]:
    """Cut rows into blocks of about so many entries."""
    height = max(1, entries // max(1, columns))
    return [slice(top, min(rows, top + height)) for top in range(0, rows, height)]
