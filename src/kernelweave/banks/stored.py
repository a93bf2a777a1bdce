"""Filling a bank of stored triangles: one per chain of powers, in parts that threads share.

Gaussians on few columns, of which most banks have many, are compiled (``_numerics.decays.fill_decays``): all of them in
one call per part, so that no thread waits for the interpreter.  Other bases are asked of their kernels, block by block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from .._numerics.euclid import distances_among
from .._numerics.threads import in_threads, one_blas_thread
from ..kernels import Kernel, take
from ._base import Array, Index
from .lazy import base_groups
from .normalise import Normaliser
from .power import Chain, PowerBank, mirror_lower, packed_offsets, triangle_cuts

__all__ = ["stored_bank"]

#: entries of a block that is computed at once: it stays in the second-level cache
CACHED_ENTRIES = 100_000
#: the same of distances on many columns, whose matrix product wants blocks that are not too flat
PRODUCT_ENTRIES = 400_000
#: blocks from which building is divided among threads
MANY_BLOCKS = 64
#: columns up to which differences are quicker than a matrix product
FEW_COLUMNS = 16
#: parts that the triangles of compiled families are cut into at most, whatever the number of threads
MOST_PARTS = 64


def _row_blocks(n: int, kernel: Kernel, by_products: bool) -> Iterator[tuple[int, int]]:
    """Row ranges whose part left of the diagonal is computed at once: small enough for the second-level cache.

    A user's function is asked for the whole matrix, which it computes in halves itself.
    """
    entries = PRODUCT_ENTRIES if by_products else CACHED_ENTRIES
    if not kernel.sure or n * n <= CACHED_ENTRIES:
        yield 0, n
        return
    top = 0
    while top < n:
        height = int((np.sqrt(top**2 + 4.0 * entries) - top) / 2.0)  # height * (top + height) entries
        bottom = min(n, top + max(height, 1))
        yield top, bottom
        top = bottom


def _base_of(
    kernel: Kernel, samples: Any, n: int, diagonal: Array, points: Array | None = None
) -> Callable[[int, int], Array]:
    """Return the function of ``top, bottom`` that gives base entries left of the diagonal, which is exact.

    Of many blocks of distances between ``points``, what all of them need is computed once.
    """
    among = distances_among(points) if points is not None and n * n > CACHED_ENTRIES else None

    def base(top: int, bottom: int) -> Array:
        if among is not None:
            entries = among(top, bottom)
        elif bottom - top == n:
            entries = kernel.base(samples, samples)
        else:
            entries = kernel.base(take(samples, np.arange(top, bottom)), take(samples, np.arange(bottom)))
        at = np.arange(bottom - top)
        entries[at, at + top] = diagonal[top:bottom]
        return entries

    return base


class _Families(NamedTuple):
    """Gaussians on few columns that are filled by compiled code: their columns, and which views hold which widths."""

    points: list[Array]
    views: list[list[int]]
    rates: list[list[float]]

    def fill(self, store: Array, offsets: Index, threads: int) -> None:
        """Fill their triangles; parts are of rows and families, and do not depend on the number of threads."""
        from .._numerics.decays import PIECE, fill_decays

        if not self.points:
            return
        table = np.ascontiguousarray(np.concatenate([points.T for points in self.points]))
        columns = np.cumsum([0, *(points.shape[1] for points in self.points)])
        links = np.cumsum([0, *map(len, self.views)])
        rates, views = np.concatenate(self.rates), np.concatenate(self.views)
        everyone = np.arange(len(self.points))
        cuts = triangle_cuts(offsets.size, MOST_PARTS // len(everyone))
        groups = np.array_split(everyone, min(everyone.size, 4 * threads if threads > 1 else 1))

        def run(part: tuple[Index, int]) -> None:
            families, at = part
            rows = np.array(cuts[at : at + 2])
            fill_decays(table, columns, links, rates, views, families, rows, offsets, np.empty(PIECE), store)

        in_threads(run, [(group, at) for at in range(len(cuts) - 2, -1, -1) for group in groups], threads)


class _Block(NamedTuple):
    """Rows ``top .. bottom - 1`` of a base, which some views are powers of."""

    kernel: Kernel
    views: list[int]
    #: gives the entries of rows ``top .. bottom - 1`` and columns ``0 .. bottom - 1``
    base: Callable[[int, int], Array]
    top: int
    bottom: int


def stored_bank(
    kernels: list[Kernel],
    chains: list[Chain],
    samples: Any,
    n: int,
    normaliser: Normaliser,
    dtype: np.dtype,
    threads: int,
) -> PowerBank:
    """Learn the normalisation and store a triangle for every chain."""
    from .._numerics.passes import pack_rows

    single = dtype == np.float32 and _fits_single(kernels, chains, samples)
    heads = [kernels[chain.kernels[0]] for chain in chains]
    powers = normaliser.keeps_powers()
    store, offsets, square = _room_for(chains, n, single)
    # a single-precision power squared many times loses digits: keep the distances instead
    rate = np.array([head.exponent if single and powers and head.decay else 0.0 for head in heads])
    families, blocks = _Families([], [], []), []
    ones: list[int] = []
    for first, views in _views_of_bases(kernels, chains):
        points = first.points(samples) if powers and first.decay else None
        if points is not None and not single and 0 < points.shape[1] <= FEW_COLUMNS:
            families.points.append(points)
            families.views.append(views)
            families.rates.append([heads[v].exponent for v in views])
            ones += [j for v in views for j in chains[v].kernels]
            continue
        diagonal = first.base_diag(samples)
        if not powers:
            base = _base_of(first, samples, n, diagonal)(0, n)
            for v in views:
                j = chains[v].kernels[0]
                pack_rows(_normalised(heads[v].of_base(base), j, normaliser), 0, offsets, store[v])
            continue
        held = [j for v in views for j in chains[v].kernels]
        plain = first.decay and not np.any(diagonal)  # a diagonal of ones: nothing to compute
        ones += held if plain else []
        for j in () if plain else held:
            normaliser.learn(j, kernels[j].of_base(diagonal))
        base_of = _base_of(first, samples, n, diagonal, points)
        blocks += [_Block(first, views, base_of, *rows) for rows in _row_blocks(n, first, points is not None)]
    if ones:
        normaliser.learn_traces(np.array(ones), np.ones(len(ones)))

    def fill(block: _Block) -> None:
        base = block.base(block.top, block.bottom)
        for v in block.views:
            last = base if v == block.views[-1] else None  # the last may overwrite what all of them come from
            entries = base if rate[v] > 0 else heads[v].of_base(base, out=last)
            pack_rows(entries, block.top, offsets, store[v])

    families.fill(store, offsets, threads)
    _fill_all(fill, blocks, threads)
    if square:
        mirror_lower(store.reshape(n, n), threads)
    local, order = _in_own_order(chains)
    # where matrices are stored normalised, the scale is in them already
    scale = normaliser.scale[order] if powers else None
    return PowerBank(store, offsets, local, scale, rate, threads, square)


def _room_for(chains: list[Chain], n: int, single: bool) -> tuple[np.ndarray, Index, bool]:
    """Triangles to be filled, where their rows start, and whether there is but one, and room for its other half.

    The only kernel there is needs no mixing, but a whole matrix instead of a triangle and a mixed kernel.
    """
    if len(chains) == 1 and len(chains[0].kernels) == 1 and not single:
        return np.empty((1, n * n)), n * np.arange(n), True
    dtype = np.float32 if single else np.float64
    return np.empty((len(chains), n * (n + 1) // 2), dtype=dtype), packed_offsets(n), False


def _views_of_bases(kernels: list[Kernel], chains: list[Chain]) -> list[tuple[Kernel, list[int]]]:
    """A kernel of every base that chains are powers of, and which chains those are."""
    heads = [chain.kernels[0] for chain in chains]
    view_of = {head: v for v, head in enumerate(heads)}
    groups = base_groups(kernels, np.array(heads))
    return [(kernels[group[0]], [view_of[j] for j in group]) for group in groups]


def _normalised(entries: Array, j: int, normaliser: Normaliser) -> Array:
    """Learn the normalisation of kernel j from its matrix, and apply it in place."""
    everyone = np.arange(len(entries))
    normaliser.learn(j, np.diagonal(entries).copy(), np.mean(entries, axis=1))
    return normaliser.train_block(j, entries, everyone, everyone)


def _in_own_order(chains: list[Chain]) -> tuple[list[Chain], list[int]]:
    """Chains with positions among the kernels that they hold, which keep their order; and those kernels."""
    order = sorted(j for chain in chains for j in chain.kernels)
    place = {j: k for k, j in enumerate(order)}
    return [Chain(tuple(place[j] for j in c.kernels), c.squarings, c.times_base) for c in chains], order


def _fill_all(fill: Callable[[_Block], None], blocks: list[_Block], threads: int) -> None:
    """Fill the blocks of kernels of the library in threads; functions of users are called by this one alone."""
    if len(blocks) < MANY_BLOCKS:
        for block in blocks:
            fill(block)
        return
    with one_blas_thread():
        in_threads(fill, [block for block in blocks if block.kernel.sure], threads)
    for block in blocks:
        if not block.kernel.sure:
            fill(block)


def _fits_single(kernels: list[Kernel], chains: list[Chain], samples: Any) -> bool:
    """Whether entries, and the squares of them that sweeps form, are far from the ends of single precision."""
    powers = [kernels[j] for chain in chains for j in chain.kernels if not kernels[j].decay]
    with np.errstate(over="ignore"):
        tops = [float(np.max(np.abs(kernel.diag(samples)), initial=0.0)) for kernel in powers]
    return all(top == 0.0 or 1e-15 < top < 1e15 for top in tops)
