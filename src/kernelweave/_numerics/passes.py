"""Compiled sweeps over stored kernel matrices: the only loops that touch every entry of a bank.

Storage.  ``store[v]`` holds the lower triangle of base matrix v: entry (i, j), ``j <= i``, at ``offsets[i] + j``.
With ``offsets[i] = i (i + 1) / 2`` that is packed storage; with ``offsets[i] = i n`` an ordinary full matrix whose
upper half is never read.  Kernel k of a view is an elementwise power of the view's base.  Those powers form a *chain*:
each link is the previous one squared ``squarings[k]`` times and then multiplied by the base ``times_base[k]`` times, so
ten Gaussians of doubling widths cost one matrix in memory and no exponential (``rate[v] > 0``: the base itself is
``exp(-rate store)``, for distances kept in single precision).

A row is worked on in pieces short enough for the first-level cache.  What limits a sweep then is the traffic between
that cache and the registers, so three links of a doubling family (two squarings each) are taken at a time, one load and
one store of the powers for three kernels, and two rows at a time, one load and one store of the products for both.
Pieces are filled up with zeros to whole numbers of registers, ``LANES``: rows of a small problem are so short that what
is left over would take as long as the rest.
"""

from __future__ import annotations

import numpy as np

from .compiled import inner, njit
from .copying import copy_vector

__all__ = [
    "LANES",
    "chain_block",
    "fourth",
    "mirror",
    "mix_lower",
    "mix_three",
    "next_power",
    "pack_rows",
    "sweep",
    "unpack_block",
    "workspace",
]

PIECE = 1024  # entries: buffer, base copy, vector and one output row stay in a 32 KiB cache
#: numbers that a turn of a compiled loop takes; ``a`` and ``out`` of a sweep are padded with zeros to a multiple of it
LANES = 16
#: the smallest number whose fourth power is taken.  Numbers near the end of the range are many times as slow to
#: multiply on some processors, and a narrow kernel has plenty of them; 1e-280 is zero, too, and far from the end
LEAST = 1e-70


@inner(nogil=True, inline="always")
def padded(size):
    """Return the next multiple of ``LANES``."""
    return (size + LANES - 1) // LANES * LANES


@inner(nogil=True, inline="always")
def fourth(x, least):
    """Return the fourth power of x, of ``least`` where x is smaller."""
    e = abs(x)
    e = least if e < least else e  # in this order: what is not a number stays that
    e = e * e
    return e * e


@inner(nogil=True, fastmath={"contract", "reassoc", "nsz"})
def _load(row, first, size, index, gathered, rate, buffer):
    """Copy so many entries of a stored row into ``buffer``, gathering and decaying where asked; the rest is zero."""
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
    for j in range(max(size, 0), buffer.size):
        buffer[j] = 0.0


@inner(nogil=True, fastmath={"contract", "reassoc", "nsz"})
def _advance(buffer, base, squarings, times_base):
    """Move ``buffer`` one link along the chain."""
    size = buffer.size
    left = squarings
    while left >= 2:
        for j in range(size):
            buffer[j] = fourth(buffer[j], LEAST)
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
def _dot_three(x, a, sums):
    """Put dot products of ``a`` with ``x^4``, ``x^16`` and ``x^64`` into ``sums``; the last power is left in x."""
    first, second, third = 0.0, 0.0, 0.0
    for j in range(x.size):
        e = fourth(x[j], LEAST)
        first += e * a[j]
        e = fourth(e, LEAST)
        second += e * a[j]
        e = fourth(e, LEAST)
        third += e * a[j]
        x[j] = e
    sums[0], sums[1], sums[2] = first, second, third


@inner(nogil=True, fastmath={"contract", "reassoc", "nsz"})
def _both(x, z, a, s, t, out):
    """Return ``x . a`` and ``z . a``, and add ``s x + t z`` to ``out`` in the same sweep."""
    of_x, of_z = 0.0, 0.0
    for j in range(x.size):
        e, f = x[j], z[j]
        of_x += e * a[j]
        of_z += f * a[j]
        out[j] += s * e + t * f
    return of_x, of_z


@inner(nogil=True, fastmath={"contract", "reassoc", "nsz"})
def _both_three(x, z, a, s, t, out1, out2, out3, sums):
    """``_both`` for the powers 4, 16 and 64 of x and z, the last left there; dot products go to ``sums``."""
    x1, x2, x3, z1, z2, z3 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for j in range(x.size):
        e, f = fourth(x[j], LEAST), fourth(z[j], LEAST)
        x1 += e * a[j]
        z1 += f * a[j]
        out1[j] += s * e + t * f
        e, f = fourth(e, LEAST), fourth(f, LEAST)
        x2 += e * a[j]
        z2 += f * a[j]
        out2[j] += s * e + t * f
        e, f = fourth(e, LEAST), fourth(f, LEAST)
        x3 += e * a[j]
        z3 += f * a[j]
        out3[j] += s * e + t * f
        x[j] = e
        z[j] = f
    sums[0], sums[1], sums[2] = x1, x2, x3
    sums[3], sums[4], sums[5] = z1, z2, z3


@inner(nogil=True, inline="always")
def _three_fourths(squarings, times_base, k, end):
    """Whether kernels k, k + 1, k + 2 are each the fourth power of the one before: Gaussians of halving widths."""
    if k + 3 > end or times_base[k] + times_base[k + 1] + times_base[k + 2] > 0:
        return False
    return squarings[k] == 2 and squarings[k + 1] == 2 and squarings[k + 2] == 2


@inner(nogil=True, fastmath={"contract", "reassoc", "nsz"})
def mix_three(x, w1, w2, w3, least, out):
    """Add ``w1 x^4 + w2 x^16 + w3 x^64`` to ``out``; the last power is left in x."""
    for j in range(x.size):
        e = fourth(x[j], least)
        total = w1 * e
        e = fourth(e, least)
        total += w2 * e
        e = fourth(e, least)
        out[j] += total + w3 * e
        x[j] = e


def workspace():
    """Return what sweeps work on."""
    return np.empty((5, PIECE))


@njit(makes_arrays=False, nogil=True)
def sweep(
    store, offsets, rate, first, squarings, times_base, keep_base, index, gathered,
    a, views, rows, whole, work, out,
):  # fmt: skip
    """Add ``K_k a`` to ``out[k]``, or ``a' K_k a`` to ``out[k, 0]`` unless ``whole``, for the kernels of ``views``.

    Rows and columns are those in ``index``, with which ``a`` and ``out`` are aligned, up to zeros at their ends
    (``LANES``); kernels of view v are ``first[v] .. first[v + 1] - 1``, and ``keep_base[v]`` says whether some of
    them multiply by the base.  Of the lower triangle the rows ``rows[0] .. rows[1] - 1`` are read, and mirrored: the
    results of all rows add up to the products.
    """
    sums = work[4]
    for v in views:
        for p in range(rows[0], rows[1], 2):
            count = min(2, rows[1] - p)
            q = p + count - 1
            s, t = a[p], a[q] if count == 2 else 0.0
            for start in range(0, q + 1, PIECE):
                stop = min(start + PIECE, q + 1)
                end = start + padded(stop - start)
                for r in range(2):
                    i = index[q if r == 1 else p]
                    size = 0 if r == count else min(stop, p + r + 1) - start
                    row, buffer = store[v, offsets[i] : offsets[i] + i + 1], work[r, : end - start]
                    _load(row, start, size, index, gathered, rate[v], buffer)
                    if keep_base[v]:
                        copy_vector(buffer, work[2 + r, : end - start])
                x, z, piece = work[0, : end - start], work[1, : end - start], a[start:end]
                # entry (p, j) serves row p and, mirrored, row j; on the diagonal the second must not count
                own_x, at_x = s if start <= p < stop else 0.0, max(0, min(p, stop - 1) - start)
                own_z, at_z = t if start <= q < stop else 0.0, max(0, min(q, stop - 1) - start)
                k, last = first[v], first[v + 1]
                while k < last:
                    e, f = x[at_x], z[at_z]
                    links = 3 if _three_fourths(squarings, times_base, k, last) else 1
                    if links == 1:
                        for r in range(2):
                            buffer, base = work[r, : end - start], work[2 + r, : end - start]
                            _advance(buffer, base, squarings[k], times_base[k])
                        e, f = x[at_x], z[at_z]
                        if whole:
                            sums[0], sums[3] = _both(x, z, piece, s, t, out[k, start:end])
                    elif whole:
                        outs = out[k, start:end], out[k + 1, start:end], out[k + 2, start:end]
                        _both_three(x, z, piece, s, t, *outs, sums)
                    for r in range(0 if whole else 2):
                        if links == 3:
                            _dot_three(work[r, : end - start], piece, sums[3 * r :])
                        else:
                            sums[3 * r] = _dot(work[r, : end - start], piece)
                    for link in range(links):
                        if links == 3:
                            e, f = e * e * e * e, f * f * f * f
                        if whole:
                            out[k + link, p] += sums[link] - own_x * e
                            out[k + link, q] += sums[3 + link] - own_z * f
                        else:
                            of_x, of_z = sums[link] - 0.5 * own_x * e, sums[3 + link] - 0.5 * own_z * f
                            out[k + link, 0] += 2.0 * (s * of_x + t * of_z)
                    k += links


@njit(makes_arrays=False, nogil=True, fastmath={"contract", "reassoc", "nsz"})
def mix_lower(
    store, offsets, rate, first, squarings, times_base, keep_base, last, weights, views, rows, work, out
):
    """Write ``sum_k weights[k] K_k`` to the lower triangle of ``out``, rows ``rows[0] .. rows[1] - 1``.

    Of the chain of view v, ``last[v] - 1`` is the last kernel in use.  Views run inside rows: a piece of a row stays in
    cache while all of them add to it.
    """
    index = offsets[:0]
    gathered = (
        index.size > 0
    )  # no, and of the same type as in the other sweeps: one compiled `_load` serves all
    for i in range(rows[0], rows[1]):
        for start in range(0, i + 1, PIECE):
            size = min(PIECE, i + 1 - start)
            width = padded(size)
            buffer, base, total = work[0, :width], work[1, :width], work[2, :width]
            for j in range(width):
                total[j] = 0.0
            for v in views:
                row = store[v, offsets[i] : offsets[i] + i + 1]
                _load(row, start, size, index, gathered, rate[v], buffer)
                if keep_base[v]:
                    copy_vector(buffer, base)
                k = first[v]
                while k < last[v]:
                    if _three_fourths(squarings, times_base, k, last[v]):
                        mix_three(buffer, weights[k], weights[k + 1], weights[k + 2], LEAST, total)
                        k += 3
                        continue
                    _advance(buffer, base, squarings[k], times_base[k])
                    w = weights[k]
                    if w != 0.0:
                        for j in range(width):
                            total[j] += w * buffer[j]
                    k += 1
            copy_vector(total[:size], out[i, start : start + size])


@njit(makes_arrays=False, nogil=True)
def mirror(matrix, rows):
    """Copy rows of the lower triangle, ``rows[0] .. rows[1] - 1``, onto the upper one; in tiles that stay in cache."""
    tile = 64
    for top in range(rows[0], rows[1], tile):
        bottom = min(top + tile, rows[1])
        for left in range(0, bottom, tile):
            for i in range(top, bottom):
                for j in range(left, min(left + tile, i)):
                    matrix[j, i] = matrix[i, j]


@njit(makes_arrays=False, nogil=True)
def chain_block(base, squarings, times_base, out):
    """Powers of one base block, link by link: ``out[k]`` is the k-th kernel of the chain."""
    for k in range(squarings.size):
        copy_vector(base if k == 0 else out[k - 1], out[k])
        _advance(out[k], base, squarings[k], times_base[k])


@njit(makes_arrays=False, nogil=True)
def next_power(current, base, squarings, times_base):
    """Turn one kernel of a chain into the next, in place, entry by entry."""
    _advance(current, base, squarings, times_base)


@njit(makes_arrays=False, nogil=True)
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


@njit(makes_arrays=False, nogil=True)
def pack_rows(entries, top, offsets, store):
    """Copy the lower-triangular part of rows ``top, top + 1, ...`` into packed storage."""
    for r in range(entries.shape[0]):
        i = top + r
        target = store[offsets[i] : offsets[i] + i + 1]
        source = entries[r, : i + 1]
        for j in range(i + 1):
            target[j] = source[j]
