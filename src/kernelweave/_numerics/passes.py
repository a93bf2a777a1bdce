"""Compiled sweeps over stored kernel matrices: the only loops that touch every entry of a bank.

Storage.  ``store[v]`` holds the lower triangle of base matrix v: entry (i, j), ``j <= i``, at ``offsets[i] + j``.
With ``offsets[i] = i (i + 1) / 2`` that is packed storage; with ``offsets[i] = i n`` an ordinary full matrix whose
upper half is never read.  Kernel k of a view is an elementwise power of the view's base.  Those powers form a *chain*:
each link is the previous one squared ``squarings[k]`` times and then multiplied by the base ``times_base[k]`` times, so
ten Gaussians of doubling widths cost one matrix in memory and no exponential (``rate[v] > 0``: the base itself is
``exp(-rate store)``, for distances kept in single precision).

A row is worked on in pieces short enough for the first-level cache.  What limits a sweep then is the traffic between
that cache and the registers, so three links of a doubling family (two squarings each) are taken at a time: one load and
one store of the powers for three kernels.
"""

from __future__ import annotations

import numpy as np

from .compiled import inner, njit
from .copying import copy_vector

__all__ = [
    "above",
    "chain_block",
    "mirror",
    "mix_lower",
    "mix_three",
    "next_power",
    "pack_rows",
    "sweep",
    "unpack_block",
]

PIECE = 1024  # entries: buffer, base copy, vector and one output row stay in a 32 KiB cache
#: smaller entries count as zero where their fourth power is taken: numbers near the end of the range are many times as
#: slow to multiply on some processors, and a narrow kernel has plenty of them
LEAST = 1e-77


@inner(nogil=True, inline="always")
def above(x, least):
    """Return x, or zero where its size is not above ``least``."""
    return x if abs(x) > least else x - x


@inner(nogil=True, fastmath={"contract", "reassoc", "nsz"})
def _load(row, first, index, gathered, rate, buffer):
    """Copy a piece of a stored row into ``buffer`` as double precision, gathering and decaying where asked."""
    size = buffer.size
    if gathered:
        for j in range(size):
            buffer[j] = row[index[first + j]]
    else:
        piece = row[first : first + size]
        for j in range(size):
            buffer[j] = piece[j]
    if rate > 0.0:
        for j in range(size):
            buffer[j] = np.exp(-rate * buffer[j])


@inner(nogil=True, fastmath={"contract", "reassoc", "nsz"})
def _advance(buffer, base, squarings, times_base):
    """Move ``buffer`` one link along the chain."""
    size = buffer.size
    left = squarings
    while left >= 2:
        for j in range(size):
            e = above(buffer[j], LEAST)
            e = e * e
            buffer[j] = e * e
        left -= 2
    if left == 1:
        for j in range(size):
            buffer[j] = buffer[j] * buffer[j]
    for _ in range(times_base):
        for j in range(size):
            buffer[j] = buffer[j] * base[j]


@inner(nogil=True, fastmath={"contract", "reassoc", "nsz"})
def _dot(x, y):
    total = 0.0
    for j in range(x.size):
        total += x[j] * y[j]
    return total


@inner(nogil=True, fastmath={"contract", "reassoc", "nsz"})
def _dot_axpy(x, a, scale, out):
    """Return ``x . a`` and add ``scale * x`` to ``out`` in the same sweep."""
    total = 0.0
    for j in range(x.size):
        e = x[j]
        total += e * a[j]
        out[j] += scale * e
    return total


@inner(nogil=True, inline="always")
def _three_fourths(squarings, times_base, k, end):
    """Whether kernels k, k + 1, k + 2 are each the fourth power of the one before: Gaussians of halving widths."""
    if k + 3 > end or times_base[k] + times_base[k + 1] + times_base[k + 2] > 0:
        return False
    return squarings[k] == 2 and squarings[k + 1] == 2 and squarings[k + 2] == 2


@inner(nogil=True, fastmath={"contract", "reassoc", "nsz"})
def _dot_three(x, a):
    """Dot products of ``a`` with ``x^4``, ``x^16`` and ``x^64``; the last is left in x."""
    first, second, third = 0.0, 0.0, 0.0
    for j in range(x.size):
        e = above(x[j], LEAST)
        e = e * e
        e = e * e
        first += e * a[j]
        e = above(e, LEAST)
        e = e * e
        e = e * e
        second += e * a[j]
        e = above(e, LEAST)
        e = e * e
        e = e * e
        third += e * a[j]
        x[j] = e
    return first, second, third


@inner(nogil=True, fastmath={"contract", "reassoc", "nsz"})
def _dot_axpy_three(x, a, scale, out1, out2, out3):
    """``_dot_axpy`` for ``x^4``, ``x^16`` and ``x^64``; the last is left in x."""
    first, second, third = 0.0, 0.0, 0.0
    for j in range(x.size):
        e = above(x[j], LEAST)
        e = e * e
        e = e * e
        first += e * a[j]
        out1[j] += scale * e
        e = above(e, LEAST)
        e = e * e
        e = e * e
        second += e * a[j]
        out2[j] += scale * e
        e = above(e, LEAST)
        e = e * e
        e = e * e
        third += e * a[j]
        out3[j] += scale * e
        x[j] = e
    return first, second, third


@inner(nogil=True, fastmath={"contract", "reassoc", "nsz"})
def mix_three(x, w1, w2, w3, least, out):
    """Add ``w1 x^4 + w2 x^16 + w3 x^64`` to ``out``; the last power is left in x."""
    for j in range(x.size):
        e = above(x[j], least)
        e = e * e
        e = e * e
        total = w1 * e
        e = above(e, least)
        e = e * e
        e = e * e
        total += w2 * e
        e = above(e, least)
        e = e * e
        e = e * e
        total += w3 * e
        out[j] += total
        x[j] = e


@njit(cache=True, nogil=True)
def sweep(store, offsets, rate, first, squarings, times_base, index, gathered, a, views, rows, whole, out):
    """Add ``K_k a`` to ``out[k]``, or ``a' K_k a`` to ``out[k, 0]`` unless ``whole``, for the kernels of ``views``.

    Rows and columns are those in ``index``, with which ``a`` is aligned; kernels of view v are ``first[v] ..
    first[v + 1] - 1``.  Of the lower triangle the rows ``rows[0] .. rows[1] - 1`` are read, and mirrored: the results
    of all rows add up to the products.
    """
    buffer_all, base_all = np.empty(PIECE), np.empty(PIECE)
    for v in views:
        keep_base = False
        for k in range(first[v], first[v + 1]):
            keep_base = keep_base or times_base[k] > 0
        for p in range(rows[0], rows[1]):
            i = index[p]
            row = store[v, offsets[i] : offsets[i] + i + 1]
            factor = a[p]
            for start in range(0, p + 1, PIECE):
                size = min(PIECE, p + 1 - start)
                stop = start + size
                buffer, base = buffer_all[:size], base_all[:size]
                _load(row, start, index, gathered, rate[v], buffer)
                if keep_base:
                    copy_vector(buffer, base)
                piece = a[start:stop]
                # entry (p, j) serves row p and, mirrored, row j; on the diagonal the second must not count
                mirrored = factor if stop == p + 1 else 0.0
                k, end = first[v], first[v + 1]
                while k < end:
                    e = buffer[size - 1]
                    if _three_fourths(squarings, times_base, k, end):
                        if whole:
                            sums = _dot_axpy_three(
                                buffer, piece, factor,
                                out[k, start:stop], out[k + 1, start:stop], out[k + 2, start:stop],
                            )  # fmt: skip
                            at, scale, half = p, 1.0, mirrored
                        else:
                            sums = _dot_three(buffer, piece)
                            at, scale, half = 0, 2.0 * factor, 0.5 * mirrored
                        out[k, at] += scale * (sums[0] - half * e**4)
                        out[k + 1, at] += scale * (sums[1] - half * e**16)
                        out[k + 2, at] += scale * (sums[2] - half * e**64)
                        k += 3
                        continue
                    _advance(buffer, base, squarings[k], times_base[k])
                    if whole:
                        total = _dot_axpy(buffer, piece, factor, out[k, start:stop])
                        out[k, p] += total - mirrored * buffer[size - 1]
                    else:
                        out[k, 0] += 2.0 * factor * (_dot(buffer, piece) - 0.5 * mirrored * buffer[size - 1])
                    k += 1


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc", "nsz"})
def mix_lower(store, offsets, rate, first, squarings, times_base, weights, views, n, rows, out):
    """Write ``sum_k weights[k] K_k`` to the lower triangle of ``out``, rows ``rows[0] .. rows[1] - 1``.

    Views run inside rows: a row of ``out`` stays in cache while all of them add to it.
    """
    buffer_all, base_all = np.empty(PIECE), np.empty(PIECE)
    index = offsets[:0]
    gathered = (
        index.size > 0
    )  # no, and of the same type as in the other sweeps: one compiled `_load` serves all
    # a chain need not be followed beyond its last kernel in use
    ends = first[1:].copy()
    keep_base = np.zeros(first.size - 1, dtype=np.bool_)
    for v in views:
        while ends[v] > first[v] and weights[ends[v] - 1] == 0.0:
            ends[v] -= 1
        for k in range(first[v], ends[v]):
            keep_base[v] = keep_base[v] or times_base[k] > 0
    for i in range(rows[0], rows[1]):
        for start in range(0, i + 1, PIECE):
            size = min(PIECE, i + 1 - start)
            buffer, base = buffer_all[:size], base_all[:size]
            target = out[i, start : start + size]
            for j in range(size):
                target[j] = 0.0
            for v in views:
                row = store[v, offsets[i] : offsets[i] + i + 1]
                _load(row, start, index, gathered, rate[v], buffer)
                if keep_base[v]:
                    copy_vector(buffer, base)
                k = first[v]
                while k < ends[v]:
                    if _three_fourths(squarings, times_base, k, ends[v]):
                        mix_three(buffer, weights[k], weights[k + 1], weights[k + 2], LEAST, target)
                        k += 3
                        continue
                    _advance(buffer, base, squarings[k], times_base[k])
                    w = weights[k]
                    if w != 0.0:
                        for j in range(size):
                            target[j] += w * buffer[j]
                    k += 1


@njit(cache=True, nogil=True)
def mirror(matrix, rows):
    """Copy rows of the lower triangle, ``rows[0] .. rows[1] - 1``, onto the upper one; in tiles that stay in cache."""
    tile = 64
    for top in range(rows[0], rows[1], tile):
        bottom = min(top + tile, rows[1])
        for left in range(0, bottom, tile):
            for i in range(top, bottom):
                for j in range(left, min(left + tile, i)):
                    matrix[j, i] = matrix[i, j]


@njit(cache=True, nogil=True)
def chain_block(base, squarings, times_base, out):
    """Powers of one base block, link by link: ``out[k]`` is the k-th kernel of the chain."""
    current = base.copy()
    for k in range(squarings.size):
        _advance(current, base, squarings[k], times_base[k])
        copy_vector(current, out[k])


@njit(cache=True, nogil=True)
def next_power(current, base, squarings, times_base):
    """Turn one kernel of a chain into the next, in place, entry by entry."""
    _advance(current, base, squarings, times_base)


@njit(cache=True, nogil=True)
def unpack_block(stored, offsets, rate, rows, cols, out):
    """Copy any rows and columns of one stored base matrix into a full block."""
    for r in range(rows.size):
        i = rows[r]
        start = offsets[i]
        for c in range(cols.size):
            j = cols[c]
            out[r, c] = stored[start + j] if j <= i else stored[offsets[j] + i]
    if rate > 0.0:
        for r in range(rows.size):
            for c in range(cols.size):
                out[r, c] = np.exp(-rate * out[r, c])


@njit(cache=True, nogil=True)
def pack_rows(entries, top, offsets, store):
    """Copy the lower-triangular part of rows ``top, top + 1, ...`` into packed storage."""
    for r in range(entries.shape[0]):
        i = top + r
        target = store[offsets[i] : offsets[i] + i + 1]
        source = entries[r, : i + 1]
        for j in range(i + 1):
            target[j] = source[j]
