"""A bank of which nothing is stored: blocks are computed when they are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._numerics.threads import in_threads
from ..kernels import Kernel, take
from ._base import Array, Bank, Index, support
from .normalise import Normaliser

__all__ = ["LazyBank", "base_groups"]

#: entries of a block that a thread works on
PIECE = 2_000_000


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

    def apply(self, a: Array, rows: Index | None = None, kernels: Index | None = None) -> Array:
        where = np.arange(self.n) if rows is None else rows
        which = np.arange(self.m) if kernels is None else kernels
        used = support(a)
        self.count(float(which.size) * where.size * used.size)
        out = np.zeros((which.size, where.size, *a.shape[1:]))
        part_of_a = {np.dtype(kind): a[used].astype(kind) for kind in {self.dtype, np.dtype(np.float64)}}

        def multiply(at: int, part: slice, entries: Array) -> None:
            out[at, part] = entries @ part_of_a[entries.dtype]

        if used.size:
            self._sweep(where, used, which, multiply)
        return out

    def mix_block(self, weights: Array, rows: Index, cols: Index) -> Array:
        active = np.flatnonzero(weights)
        self.count(float(active.size) * rows.size * cols.size)
        out = np.zeros((rows.size, cols.size))

        def add(at: int, part: slice, entries: Array) -> None:
            entries *= weights[active[at]]
            out[part] += entries

        self._sweep(rows, cols, active, add)
        return out

    def combine(self, weights: Array) -> Array:
        everyone = np.arange(self.n)
        return self.mix_block(weights, everyone, everyone)
