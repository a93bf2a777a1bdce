"""Stored matrices and their elementwise powers: dense, packed and Gaussian-family storage in one.

Dense storage keeps one base matrix per kernel.  A family such as Gaussians of doubling widths, or polynomials of degree
1, 2, 3, keeps one base matrix for the whole family and raises it on the fly (``_numerics.passes``): a tenth of the
memory for ten widths, and quicker than reading a stored stack.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._numerics.resources import in_threads
from .._typing import Array, Index
from ..kernels import Kernel
from ._base import Storage, support


class Chain(NamedTuple):
    """Kernels that are powers of one base: ``kernels[0]`` is the base itself."""

    kernels: tuple[int, ...]
    squarings: tuple[int, ...]
    times_base: tuple[int, ...]


def base_groups(kernels: list[Kernel], which: Index | range) -> list[list[int]]:
    """Positions of kernels that share a base matrix, in order of first appearance."""
    groups: dict[Any, list[int]] = {}
    for j in which:
        groups.setdefault(kernels[j].base_key, []).append(int(j))
    return list(groups.values())


def find_chains(exponents: Sequence[float], most_squarings: int = 40) -> list[Chain]:
    """Split powers ``u^e`` of one matrix into chains that squarings and products with the base can follow.

    Examples
    --------
    >>> find_chains([8.0, 0.5, 2.0])  # Gaussians of widths 0.25, 1, 0.5
    [Chain(kernels=(1, 2, 0), squarings=(0, 2, 2), times_base=(0, 0, 0))]
    >>> find_chains([1, 2, 3])
    [Chain(kernels=(0, 1, 2), squarings=(0, 1, 0), times_base=(0, 0, 1))]
    """
    return list(_chains_of(tuple(exponents), most_squarings))


@lru_cache(maxsize=128)  # the same widths on every feature
def _chains_of(exponents: tuple[float, ...], most_squarings: int) -> tuple[Chain, ...]:
    left = sorted(range(len(exponents)), key=lambda j: exponents[j])
    chains = []
    while left:
        base = left.pop(0)
        kernels, squarings, times = [base], [0], [0]
        for j in list(left):
            ratio = exponents[j] / exponents[kernels[-1]]
            if not ratio < math.inf:
                continue
            doubling, base_power = math.log2(ratio), exponents[base]
            steps = (exponents[j] - exponents[kernels[-1]]) / base_power
            if abs(doubling - round(doubling)) < 1e-12 and 0 <= round(doubling) <= most_squarings:
                squared, multiplied = round(doubling), 0
            elif steps > 0 and steps == round(steps) <= 3 and float(base_power).is_integer():
                squared, multiplied = 0, round(steps)
            else:
                continue
            left.remove(j)
            kernels.append(j)
            squarings.append(squared)
            times.append(multiplied)
        chains.append(Chain(tuple(kernels), tuple(squarings), tuple(times)))
    return tuple(chains)


#: entries of a tile that stays in cache
TILE = 32_768
#: parts that a sweep over all views is cut into at most, whatever the number of threads
MOST_PARTS = 64
#: a triangle that is summed over has a part for so many rows, so that small ones are not cut
ROWS_TO_CUT = 500
#: one whose entries are written has more, which cost nothing: threads wait less for the last of them
ROWS_TO_WRITE = 100
#: rows up to which a mixed kernel's product is one with the mixed kernel, mixing is quicker than a product per kernel;
#: and quadratic forms of several columns are sums of entries, times those of a matrix of this size
MIXED_TO_MULTIPLY = 2000


def packed_offsets(n: int) -> Index:
    """Where each row of a packed lower triangle starts."""
    i = np.arange(n, dtype=np.intp)
    return i * (i + 1) // 2


class _Products(NamedTuple):
    """Products with several columns: rows of a tile left of the diagonal serve both sides of it."""

    columns: Array

    @property
    def shape(self) -> tuple[int, ...]:
        return self.columns.shape

    def add(self, tile: Array, top: int, bottom: int, out: Array, at: int) -> None:
        """Add what rows ``top .. bottom - 1`` of a lower triangle make; square on the diagonal."""
        out[at, top:bottom] += tile @ self.columns[:bottom]
        out[at, :top] += tile[:, :top].T @ self.columns[top:bottom]


class _Forms(NamedTuple):
    """Quadratic forms, summed over columns: sums of the entries times the columns' products with each other."""

    products: Array

    @property
    def shape(self) -> tuple[int, ...]:
        return ()

    def add(self, tile: Array, top: int, bottom: int, out: Array, at: int) -> None:
        """Add what rows ``top .. bottom - 1`` of a lower triangle make; square on the diagonal."""
        here = self.products[top:bottom]
        left = np.einsum("ij,ij->", tile[:, :top], here[:, :top])
        out[at] += 2.0 * left + np.einsum("ij,ij->", tile[:, top:], here[:, top:bottom])


class Powers(Storage):
    """Base matrices with their chains of powers.

    Parameters
    ----------
    store : array of shape (v, entries)
        Lower triangles, float64 or float32, entry (i, j) at ``offsets[i] + j``.
    offsets : array of shape (n,)
        Row starts: ``packed_offsets(n)``, or ``arange(n) * n`` for full matrices.
    chains : one Chain a base matrix
        Which kernels each base carries; every kernel in exactly one chain.
    scale : array of shape (m,)
        Factor of every kernel (trace normalisation).
    rate : array of shape (v,), optional
        Where positive, the base is ``exp(-rate * store)``: distances are stored.
    threads : int
        Threads for the sweeps; what comes out does not depend on them.
    square : bool
        Whether ``store`` is one whole matrix, of the only kernel there is: then inner solvers work on it as it is.
    """

    def __init__(
        self,
        store: np.ndarray,
        offsets: Index,
        chains: Sequence[Chain],
        scale: Array | None = None,
        rate: Array | None = None,
        threads: int = 1,
        square: bool = False,
    ) -> None:
        m = sum(len(chain.kernels) for chain in chains)
        super().__init__(offsets.size, m)
        self.store = store
        self.offsets = offsets
        self.chains = list(chains)
        self.scale = np.ones(m) if scale is None else np.asarray(scale, dtype=float)
        self.rate = np.zeros(len(chains)) if rate is None else np.asarray(rate, dtype=float)
        self.threads = threads
        self.square = square
        # slots: kernels in the order of the chains; slot_of[kernel] and kernel_of[slot] translate
        self.kernel_of = np.array([j for chain in chains for j in chain.kernels], dtype=np.intp)
        self.slot_of = np.argsort(self.kernel_of)
        self.first = np.cumsum([0] + [len(chain.kernels) for chain in chains]).astype(np.intp)
        self.squarings = np.array([x for chain in chains for x in chain.squarings], dtype=np.int64)
        self.times_base = np.array([x for chain in chains for x in chain.times_base], dtype=np.int64)
        self.by_link = np.array([any(chain.times_base) for chain in chains], dtype=bool)
        # three powers at a time are those of numbers up to one, as in a kernel whose diagonal is one
        long = np.diff(self.first) > 3
        if np.any(long & ~self.by_link):
            self.by_link |= long & ~self._base_diagonals[1]
        self.view_of_slot = np.repeat(np.arange(len(chains)), np.diff(self.first))
        self.nbytes = int(store.nbytes)
        #: what compiled sweeps read
        self._stored = store, offsets, self.rate, self.first, self.squarings, self.times_base, self.by_link

    def block(self, rows: Any, cols: Any, kernels: Index) -> Array:
        from .._numerics.passes import chain_block, unpack_block

        rows, cols = np.atleast_1d(rows), np.atleast_1d(cols)
        out = np.empty((len(kernels), rows.size, cols.size))
        slots = self.slot_of[kernels]
        base = np.empty((rows.size, cols.size))
        for v in np.unique(self.view_of_slot[slots]):
            unpack_block(self.store[v], self.offsets, self.rate[v], rows, cols, base)
            here = slice(self.first[v], self.first[v + 1])
            powers = np.empty((here.stop - here.start, base.size))
            chain_block(base.ravel(), self.squarings[here], self.times_base[here], powers)
            for at in np.flatnonzero(self.view_of_slot[slots] == v):
                entries = powers[slots[at] - here.start].reshape(base.shape)
                np.multiply(entries, self.scale[kernels[at]], out=out[at])
        return out

    def _views(self, kernels: Index | None) -> tuple[int, list[Index]]:
        """Count the bases of some kernels, and put them into groups for the threads, which change no result."""
        views = np.arange(len(self.chains))
        if kernels is not None:
            views = np.unique(self.view_of_slot[self.slot_of[kernels]])
        groups = 1 if self.threads == 1 else 4 * self.threads
        return views.size, np.array_split(views, min(views.size, groups)) if views.size else []

    def _sweep(self, a: Array, where: Index, kernels: Index | None, whole: bool) -> Array:
        """Products ``(m, where)``, or quadratic forms ``(m, 1)``, by slot: parts of rows and views in threads."""
        from .._numerics.passes import LANES, sweep, workspace

        n_views, groups = self._views(kernels)
        cuts = triangle_cuts(where.size, MOST_PARTS // max(1, n_views))
        values = np.zeros(-(-where.size // LANES) * LANES)
        values[: where.size] = a[where]
        out = np.zeros((len(cuts) - 1, self.m, values.size if whole else 1))
        gathered = where.size < self.n

        def run(part: tuple[Index, int]) -> None:
            some, at = part
            rows = np.array(cuts[at : at + 2])
            sweep(*self._stored, where, gathered, values, some, rows, whole, workspace(), out[at])

        in_threads(run, [(group, at) for at in reversed(range(len(out))) for group in groups], self.threads)
        total = out[0] if len(out) == 1 else out.sum(axis=0)
        return total[:, : where.size] if whole else total

    def quad(self, a: Array, kernels: Index | None = None) -> Array:
        if a.ndim == 2 and a.shape[1] > 1:
            used = support(a)
            if used.size > MIXED_TO_MULTIPLY:
                return super().quad(a, kernels)
            columns = np.ascontiguousarray(a[used])
            return self._by_tiles(used, kernels, _Forms(columns @ columns.T))
        a = a.reshape(self.n)
        where = support(a)
        which = np.arange(self.m) if kernels is None else kernels
        forms = self._sweep(a, where, kernels, whole=False)[:, 0]
        return forms[self.slot_of[which]] * self.scale[which]

    def apply(self, a: Array, rows: Index | None = None, kernels: Index | None = None) -> Array:
        used = support(a)
        # the sweep reads a square: the rows asked for and the columns in use
        where = np.arange(self.n) if rows is None else np.union1d(rows, used)
        if a.ndim == 2:
            products = self._by_tiles(where, kernels, _Products(np.ascontiguousarray(a[where])))
        else:
            which = np.arange(self.m) if kernels is None else kernels
            products = self._sweep(a, where, kernels, whole=True)[self.slot_of[which]]
            products *= self.scale[which][:, None]
        if rows is None or np.array_equal(rows, where):  # as where rows with coefficients are asked for
            return products
        return products[:, np.searchsorted(where, rows)]

    def _by_tiles(self, where: Index, kernels: Index | None, of: _Products | _Forms) -> Array:
        """What ``of`` makes of the lower triangle of every kernel among some samples, ``(kernels, ...)``.

        A tile of rows goes through its chain while it is in cache.
        """
        from .._numerics.passes import next_power, unpack_block

        which = np.arange(self.m) if kernels is None else np.asarray(kernels)
        if kernels is None:
            wanted, again = np.arange(self.m), self.slot_of
        else:  # a kernel twice is computed once
            wanted, again = np.unique(self.slot_of[which], return_inverse=True)
        out = np.zeros((wanted.size, *of.shape))
        place = np.full(self.m, -1)
        place[wanted] = np.arange(wanted.size)
        height = max(16, TILE // max(1, where.size))

        def run(views: Index) -> None:
            for v in views:
                slots = np.arange(self.first[v], self.first[v + 1])
                slots = slots[: np.flatnonzero(place[slots] >= 0)[-1] + 1]
                for top in range(0, where.size, height):
                    bottom = min(top + height, where.size)
                    base = np.empty((bottom - top, bottom))
                    unpack_block(
                        self.store[v], self.offsets, self.rate[v], where[top:bottom], where[:bottom], base
                    )
                    current = base.copy() if np.any(self.times_base[slots]) else base
                    for slot in slots:
                        next_power(current.ravel(), base.ravel(), self.squarings[slot], self.times_base[slot])
                        if place[slot] >= 0:
                            of.add(current, top, bottom, out, place[slot])

        if where.size and which.size:
            in_threads(run, self._views(kernels)[1], self.threads)
        scale = self.scale[self.kernel_of[wanted]]
        out *= scale.reshape(-1, *(1,) * (out.ndim - 1))
        return out[again]

    def mix_product(self, weights: Array, a: Array) -> Array:
        if self.n > MIXED_TO_MULTIPLY or not np.any(a):
            return super().mix_product(weights, a)
        return (
            np.asarray(self.combine(weights) @ a)
            if a.ndim == 2
            else np.einsum("ij,j->i", self.combine(weights), a)
        )

    def combine(self, weights: Array) -> Array:
        from .._numerics.passes import mix_lower, workspace

        by_slot = (weights * self.scale)[self.kernel_of]
        used = np.flatnonzero(by_slot)
        views = np.unique(self.view_of_slot[used])
        last = np.zeros(len(self.chains), dtype=np.intp)
        last[self.view_of_slot[used]] = used + 1  # of several slots the highest, which comes last
        out = np.empty((self.n, self.n))
        cuts = triangle_cuts(self.n, MOST_PARTS, ROWS_TO_WRITE)

        def run(at: int) -> None:
            bounds = np.array(cuts[at : at + 2])
            mix_lower(*self._stored, last, by_slot, views, bounds, workspace(), out)

        in_threads(run, range(len(cuts) - 2, -1, -1), self.threads)
        mirror_lower(out, self.threads)
        return out

    def mixed(self, weights: Array, rows: Index | None = None) -> Any:
        if not self.square or rows is not None:
            return super().mixed(weights, rows)
        whole, factor = self.store.reshape(self.n, self.n), float(weights[0] * self.scale[0])
        return whole if factor == 1.0 else whole * factor

    @cached_property
    def _base_diagonals(self) -> tuple[Array, NDArray[np.bool_]]:
        """Diagonals of the bases, and whether each is one, and with it that of all its powers."""
        base = self.store[:, self.offsets + np.arange(self.n)].astype(float)
        decays = self.rate > 0
        base[decays] = np.exp(-self.rate[decays, None] * base[decays])
        return base, np.asarray(np.all(base == 1.0, axis=1))

    def diag(self) -> Array:
        bases, has_ones = self._base_diagonals
        if has_ones.all():
            return np.broadcast_to(self.scale[:, None], (self.m, self.n))
        exponents = np.ones(self.m)  # powers of their base that the kernels are, by slot
        for slot in np.setdiff1d(np.arange(self.m), self.first):
            exponents[slot] = exponents[slot - 1] * 2.0 ** self.squarings[slot] + self.times_base[slot]
        view_of, exponents = self.view_of_slot[self.slot_of], exponents[self.slot_of]
        out = bases[view_of]
        further = (exponents != 1.0) & ~has_ones[view_of]
        out[further] **= exponents[further, None]
        return out * self.scale[:, None]


def triangle_cuts(n: int, parts: int, rows: int = ROWS_TO_CUT) -> list[int]:
    """Cut the rows of a lower triangle into at most so many parts of one size; small triangles stay whole.

    >>> triangle_cuts(100, 8), triangle_cuts(4000, 4)
    ([0, 100], [0, 2000, 2828, 3464, 4000])
    """
    parts = max(1, min(parts, n // rows)) if n >= ROWS_TO_CUT else 1
    return [round(n * float(np.sqrt(part / parts))) for part in range(parts + 1)]


def mirror_lower(matrix: np.ndarray, threads: int) -> None:
    """Copy the lower triangle of a matrix onto the upper one."""
    from .._numerics.passes import mirror

    cuts = triangle_cuts(len(matrix), MOST_PARTS, ROWS_TO_WRITE)
    in_threads(lambda at: mirror(matrix, np.array(cuts[at : at + 2])), range(len(cuts) - 2, -1, -1), threads)
