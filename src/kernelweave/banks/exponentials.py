"""Mixtures of kernels that are exponentials of distances, at new rows: the compiled part of prediction.

Distances are computed once per family, and the kernels of a family are powers of one another wherever squaring keeps
their digits.  Gaussians on few columns never have a matrix of distances at all (``_numerics.decays.mix_decays``); on
many columns a matrix product gives the distances, and any other distance is asked of its kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .._numerics.euclid import distances_to
from ..kernels import Kernel, n_samples, take
from ._base import Array, Index
from .lazy import base_groups
from .power import find_chains

__all__ = ["BLOCK_ENTRIES", "Exponentials", "row_slices"]

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
#: entries below are as good as zero, and not multiplied further (``_numerics.decays``)
LEAST = {np.dtype(np.float64): np.float64(1e-70), np.dtype(np.float32): np.float32(1e-8)}

Distances = Callable[[Any], Array]
#: rates, squarings and weights of the links of a family
Mixing = tuple[Array, Index, Array]
#: those of several families, and where each begins
Joined = tuple[Array, Index, Array, Index]


class Links(NamedTuple):
    """Kernels of a family in the order in which they are computed, see ``_numerics.decays``."""

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
    """``sum_j factors_j K_j(new, samples) coef`` of kernels that are exponentials.

    Parameters
    ----------
    kernels : list of Kernel
        Settled; all of them ``decay``.
    samples : samples
        Those that have coefficients.
    factors : array of shape (m,)
        Weight times normalisation of every kernel.
    coef : array of shape (n,) or (n, k)
    dtype : dtype
        Precision of the exponentials; distances are always in double precision.
    """

    def __init__(
        self, kernels: list[Kernel], samples: Any, factors: Array, coef: Array, dtype: np.dtype
    ) -> None:
        self.coef, self.dtype = coef.astype(dtype), dtype
        self.least = LEAST[dtype]
        self.narrow: list[Kernel] = []
        self.given: list[tuple[Distances, Joined]] = []
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
                self.given.append((_distances(kernels[group[0]], samples, points), _joined([mixing])))
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
        rows = np.hstack(
            [np.empty((whole, 0)), *(self._narrow_points(kernel, new) for kernel in self.narrow)]
        )
        values = np.zeros((whole, max(1, self.factors.shape[0])))
        few = self.factors.shape[0] > 0
        nothing, alone = np.empty((0, 0)), np.zeros(2, dtype=np.intp)
        if few and self.mixing is not None:  # all rows at once: no thread waits for the interpreter
            self._mix(rows, self.columns, nothing, self.mixing, values, np.empty((0, 0), dtype=self.dtype))
        for part in row_slices(whole, n, MIXED_ENTRIES) if self.given or not few else ():
            mixed = np.zeros((0 if few else part.stop - part.start, n), dtype=self.dtype)
            if not few and self.mixing is not None:
                self._mix(rows[part], self.columns, nothing, self.mixing, values[part], mixed)
            for distances, mixing in self.given:
                block = new if part == slice(0, whole) else take(new, np.arange(part.start, part.stop))
                self._mix(nothing, alone, distances(block), mixing, values[part], mixed)
            if not few:
                out[part] += mixed @ self.coef
        if few:
            out += values.reshape(out.shape)

    def _mix(
        self, rows: Array, columns: Index, given: Array, mixing: Joined, values: Array, mixed: np.ndarray
    ) -> None:
        from .._numerics.decays import PIECE, mix_decays

        work, powers = np.empty(PIECE), np.empty((2, PIECE), dtype=self.dtype)
        mix_decays(
            rows, self.table, columns, given, *mixing, self.least, self.factors, work, powers, values, mixed
        )

    @staticmethod
    def _narrow_points(kernel: Kernel, new: Any) -> Array:
        points = kernel.points(new)
        if points is None:  # sparse, and of a few columns at most
            points = kernel.points(new.toarray())
        assert points is not None
        return points


def _distances(kernel: Kernel, samples: Any, points: Array | None) -> Distances:
    """Return a function from new rows to their distances; what the training samples give to it is computed once."""

    def asked(new: Any) -> Array:
        return np.asarray(kernel.base(new, samples), dtype=float)

    if points is None:
        return asked
    squared = distances_to(points)

    def distances(new: Any) -> Array:
        rows = kernel.points(new)
        return asked(new) if rows is None else squared(rows)

    return distances


def _joined(mixings: list[Mixing]) -> Joined:
    """Links of several families one after the other, and where each begins."""
    rates, squarings, weights = (np.concatenate(part) for part in zip(*mixings, strict=True))
    return rates, squarings, weights, np.cumsum([0, *(len(mixing[0]) for mixing in mixings)])


def row_slices(rows: int, columns: int, entries: int = BLOCK_ENTRIES) -> list[slice]:
    """Cut rows into blocks of about so many entries."""
    height = max(1, entries // max(1, columns))
    return [slice(top, min(rows, top + height)) for top in range(0, rows, height)]
