"""Gaussians on few columns of the training samples: products and mixtures that are computed as they are read.

Distances are computed once per family and piece of a row, the kernels of a family by squaring wherever that keeps their
digits (``_numerics.decays``), and nothing but the answer is ever stored.  That is about as quick as reading stored
matrices from memory, and costs none.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._numerics.deadline import check_time
from .._numerics.threads import in_threads
from ..kernels import Kernel
from ._base import Array, Index
from .exponentials import FEW_COLUMNS, LEAST, MOST_SQUARINGS, Links, row_slices
from .lazy import base_groups
from .power import mirror_lower

__all__ = ["NarrowFamilies"]

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
    """Those kernels of a bank that are exponentials of squared distances on few columns.

    Parameters
    ----------
    groups : list of list of int
        Kernels of every family, by their places in the bank.
    exponents : array of shape (m,)
        Of all kernels of the bank.
    points : list of arrays
        Columns of every family, a row each.
    scale : array of shape (m,)
        Factor of every kernel.
    dtype : dtype
        Precision of the exponentials; distances, sums and mixtures are in double precision.
    threads : int
        Threads that share the rows.
    """

    def __init__(
        self,
        groups: list[list[int]],
        exponents: Array,
        points: list[Array],
        scale: Array,
        dtype: np.dtype,
        threads: int,
    ) -> None:
        self.groups, self.exponents, self.points = groups, exponents, points
        self.scale, self.dtype, self.threads = scale, dtype, threads
        self.member = np.zeros(scale.size, dtype=bool)
        self.member[[j for group in groups for j in group]] = True

    @classmethod
    def of(
        cls, kernels: list[Kernel], samples: Any, scale: Array, dtype: np.dtype, threads: int
    ) -> NarrowFamilies:
        """Pick them out of the kernels of a bank; there may be none."""
        groups, points = [], []
        for group in base_groups(kernels, range(len(kernels))):
            first = kernels[group[0]]
            rows = first.points(samples) if first.decay else None
            if rows is not None and 0 < rows.shape[1] <= FEW_COLUMNS:
                groups.append(group)
                points.append(np.ascontiguousarray(rows.T))
        exponents = np.array([kernel.exponent for kernel in kernels], dtype=float)
        return cls(groups, exponents, points, scale, dtype, threads)

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
        from .._numerics.decays import PIECE as WIDTH
        from .._numerics.decays import decay_products

        chosen = self._chosen(kernels)
        new, table = (
            np.ascontiguousarray(chosen.table[:, rows].T),
            np.ascontiguousarray(chosen.table[:, used]),
        )
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
        kernels = np.flatnonzero((weights != 0) & self.member)
        if not kernels.size:
            return
        chosen, among = self._chosen(kernels), rows is cols
        table = np.ascontiguousarray(chosen.table[:, cols])
        new = np.ascontiguousarray(chosen.table[:, rows].T)

        def run(part: slice) -> None:
            check_time()
            width = part.stop if among else cols.size
            out[part, :width] += self._mixed(
                chosen, weights, new[part], np.ascontiguousarray(table[:, :width])
            )

        in_threads(run, row_slices(rows.size, cols.size, PIECE)[::-1], self.threads)
        if among:
            mirror_lower(out, self.threads)

    def _mixed(self, chosen: _Chosen, weights: Array, new: Array, table: Array) -> np.ndarray:
        """Mixture between new rows and the columns of a table."""
        from .._numerics.decays import PIECE as WIDTH
        from .._numerics.decays import mix_decays

        factors = (weights * self.scale)[chosen.kernels].astype(self.dtype)
        mixed = np.zeros((new.shape[0], table.shape[1]), dtype=self.dtype)
        none = np.empty((0, 0))
        mix_decays(
            new, table, chosen.columns, none, chosen.rates, chosen.squarings, factors, chosen.starts, LEAST[self.dtype],
            none.astype(self.dtype), np.empty(WIDTH), np.empty((2, WIDTH), dtype=self.dtype),
            np.zeros((new.shape[0], 1)), mixed,
        )  # fmt: skip
        return mixed
