"""A bank of which nothing is stored: blocks are computed when they are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .._numerics.threads import in_threads
from ..kernels import Kernel, take
from ._base import Array, Bank, Index, support
from .normalise import Normaliser

if TYPE_CHECKING:
    from .narrow import NarrowFamilies

__all__ = ["FEW_VALUES", "LazyBank", "base_groups"]

#: entries of a block that a thread works on
PIECE = 2_000_000
#: kernel values up to which NumPy is done before compiled code would be loaded, let alone compiled
FEW_VALUES = 10_000_000


def base_groups(kernels: list[Kernel], which: Index | range) -> list[list[int]]:
    """Positions of kernels that share a base matrix, in order of first appearance."""
    groups: dict[Any, list[int]] = {}
    for j in which:
        groups.setdefault(kernels[j].base_key, []).append(int(j))
    return list(groups.values())


class LazyBank(Bank):
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

    def block(self, rows: Any, cols: Any, kernels: Index) -> Array:
        rows, cols = np.atleast_1d(rows), np.atleast_1d(cols)
        out = np.empty((len(kernels), rows.size, cols.size))

        def keep(at: int, part: slice, entries: Array) -> None:
            out[at, part] = entries

        self._each(rows, cols, np.asarray(kernels), keep, slice(0, rows.size))
        return out

    def _each(
        self, rows: Index, cols: Index, kernels: Index, use: Callable[[int, slice, Array], None], part: slice
    ) -> None:
        """Compute the entries of every kernel in turn and hand them over; kernels of a family share their base."""
        left, right = take(self.samples, rows), take(self.samples, cols)
        for group in base_groups(self.kernels, np.unique(kernels)):
            base = self.kernels[group[0]].base(left, right)
            if self.kernels[group[0]].decay:  # only exponentials gain by it, and powers would overflow
                base = base.astype(self.dtype, copy=False)
            buffer = np.empty((rows.size, cols.size), dtype=base.dtype)
            for j in group:
                self.kernels[j].of_base(base, out=buffer)
                entries = self.normaliser.train_block(j, buffer, rows, cols)
                for at in np.flatnonzero(kernels == j):  # the same kernel may have been asked for twice
                    use(int(at), part, entries)

    def _sweep(
        self, rows: Index, cols: Index, kernels: Index, use: Callable[[int, slice, Array], None]
    ) -> None:
        """Hand over all entries in pieces of rows, shared among the threads."""
        height = max(1, PIECE // max(1, cols.size))

        def run(top: int) -> None:
            part = slice(top, min(top + height, rows.size))
            self._each(rows[part], cols, kernels, use, part)

        in_threads(run, range(0, rows.size, height), self.threads)

    def _families(self, kernels: int, rows: int, cols: int) -> NarrowFamilies | None:
        """Kernels that compiled code computes, where so many entries are asked for that it is worth its loading."""
        from .narrow import NarrowFamilies

        if not self.normaliser.keeps_powers() or float(kernels) * rows * cols <= FEW_VALUES:
            return None
        if self._narrow is None:
            self._narrow = NarrowFamilies.of(
                self.kernels, self.samples, self.normaliser.scale, self.dtype, self.threads
            )
        return self._narrow if self._narrow.groups else None

    def apply(self, a: Array, rows: Index | None = None, kernels: Index | None = None) -> Array:
        where = np.arange(self.n) if rows is None else rows
        which = np.arange(self.m) if kernels is None else kernels
        used = support(a)
        self.count(float(which.size) * where.size * used.size)
        out = np.zeros((which.size, where.size, *a.shape[1:]))
        part_of_a = {np.dtype(kind): a[used].astype(kind) for kind in {self.dtype, np.dtype(np.float64)}}

        def multiply(at: int, part: slice, entries: Array) -> None:
            out[at, part] = entries @ part_of_a[entries.dtype]

        families = self._families(which.size, where.size, used.size) if used.size else None
        quick = np.zeros(which.size, dtype=bool) if families is None else families.member[which]
        if families is not None and np.any(quick):
            products = families.products(a[used], where, used, which[quick])
            out[quick] = products.reshape(-1, where.size, *a.shape[1:])
        if used.size and not np.all(quick):
            slow = np.flatnonzero(~quick)
            self._sweep(where, used, which[slow], lambda at, part, entries: multiply(slow[at], part, entries))
        return out

    def mix_block(self, weights: Array, rows: Index, cols: Index) -> Array:
        return self._mixed(weights, rows, cols, np.dtype(float))

    def mixed(self, weights: Array, rows: Index | None = None) -> np.ndarray:
        """As of any bank; half the memory where the bank is in single precision."""
        where = np.arange(self.n) if rows is None else rows
        return self._mixed(weights, where, where, self.dtype)

    def _mixed(self, weights: Array, rows: Index, cols: Index, dtype: np.dtype) -> np.ndarray:
        active = np.flatnonzero(weights)
        self.count(float(active.size) * rows.size * cols.size)
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

    def combine(self, weights: Array) -> Array:
        everyone = np.arange(self.n)
        return self.mix_block(weights, everyone, everyone)

    def judged(self, weights: Array, a: Array) -> tuple[Array, Array]:
        active, used = np.count_nonzero(weights), support(a).size
        if self.m * self.n < self.m * used + active * self.n:  # one sweep for both, where it reads less
            products = self.apply(a)
            return self.image_quad(products, a), self.image_mix(products, weights)
        return super().judged(weights, a)

    def diag(self) -> Array:
        if not self.normaliser.keeps_powers():
            return super().diag()
        raw = np.array([kernel.diag(self.samples) for kernel in self.kernels])
        return raw * self.normaliser.scale[:, None]
