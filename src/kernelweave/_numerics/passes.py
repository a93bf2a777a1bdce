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

PIECE = 1024  # entries: buffer, base copy, vector and one output row stay in a 32 KiB cache
#: numbers that a turn of a compiled loop takes; ``a`` and ``out`` of a sweep are padded with zeros to a multiple of it
LANES = 16
#: the smallest number whose fourth power is taken.  Numbers near the end of the range are many times as slow to
#: multiply on some processors, and a narrow kernel has plenty of them; 1e-280 is zero, too, and far from the end
LEAST = 1e-70
#: the same for the power 64, where the diagonal is one: what is taken for zero adds 1e-18 to the first power at most
LEAST_OF_THREE = 3e-5


@inner(nogil=True)
def copy_vector(values, out):
    """Fill ``out`` with the numbers of ``values``; ``out[:] = values`` takes numba five seconds to compile."""
    for i in range(out.size):
        out[i] = values[i]


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


@inner(nogil=True, inline="always")
def _squared_twice(x):
    e = x * x
    return e * e


@inner(nogil=True, fastmath={"contract", "reassoc", "nsz"})
def _load(stored, row, first, size, index, gathered, rate, buffer):
    """Copy so many entries of the row that begins at ``row`` into ``buffer``; the rest of that is zero."""
    if gathered:
        for j in range(size):
            buffer[j] = stored[row + index[first + j]]
    else:
        piece = stored[row + first : row + first + size]
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
def _dots(x, z, a):
    """Return ``x . a`` and ``z . a``."""
    of_x, of_z = 0.0, 0.0
    for j in range(x.size):
        of_x += x[j] * a[j]
        of_z += z[j] * a[j]
    return of_x, of_z


@inner(nogil=True, fastmath={"contract", "reassoc", "nsz"})
def _dots_three(x, z, a, sums):
    """``_dots`` for the powers 4, 16 and 64 of x and z, the last left there; dot products go to ``sums``."""
    x1, x2, x3, z1, z2, z3 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for j in range(x.size):
        e, f = fourth(x[j], LEAST_OF_THREE), fourth(z[j], LEAST_OF_THREE)
        x1 += e * a[j]
        z1 += f * a[j]
        e, f = _squared_twice(e), _squared_twice(f)
        x2 += e * a[j]
        z2 += f * a[j]
        e, f = _squared_twice(e), _squared_twice(f)
        x3 += e * a[j]
        z3 += f * a[j]
        x[j] = e
        z[j] = f
    sums[0], sums[1], sums[2] = x1, x2, x3
    sums[3], sums[4], sums[5] = z1, z2, z3


@inner(nogil=True, fastmath={"contract", "reassoc", "nsz"})
def _both(x, z, a, s, t, out):
    """``_dots``, and add ``s x + t z`` to ``out`` in the same sweep."""
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
        e, f = fourth(x[j], LEAST_OF_THREE), fourth(z[j], LEAST_OF_THREE)
        x1 += e * a[j]
        z1 += f * a[j]
        out1[j] += s * e + t * f
        e, f = _squared_twice(e), _squared_twice(f)
        x2 += e * a[j]
        z2 += f * a[j]
        out2[j] += s * e + t * f
        e, f = _squared_twice(e), _squared_twice(f)
        x3 += e * a[j]
        z3 += f * a[j]
        out3[j] += s * e + t * f
        x[j] = e
        z[j] = f
    sums[0], sums[1], sums[2] = x1, x2, x3
    sums[3], sums[4], sums[5] = z1, z2, z3


@inner(nogil=True)
def _three_fourths(squarings, by_link, k, end):
    """Whether kernels k, k + 1, k + 2 are each the fourth power of the one before: Gaussians of halving widths."""
    if by_link or k + 3 > end:
        return False
    return squarings[k] == 2 and squarings[k + 1] == 2 and squarings[k + 2] == 2


@inner(nogil=True, fastmath={"contract", "reassoc", "nsz"})
def mix_three(x, w1, w2, w3, out):
    """Add ``w1 x^4 + w2 x^16 + w3 x^64`` to ``out``, x at most one; the last power is left in x."""
    for j in range(x.size):
        e = fourth(x[j], LEAST_OF_THREE)
        total = w1 * e
        e = _squared_twice(e)
        total += w2 * e
        e = _squared_twice(e)
        out[j] += total + w3 * e
        x[j] = e


def workspace():
    """Return what sweeps work on."""
    return np.empty((5, PIECE))


@njit(makes_arrays=False, nogil=True)
def sweep(
    store, offsets, rate, first, squarings, times_base, by_link, index, gathered, a, views, rows, whole, work, out
):  # fmt: skip
    """Add ``K_k a`` to ``out[k]``, or ``a' K_k a`` to ``out[k, 0]`` unless ``whole``, for the kernels of ``views``.

    Rows and columns are those in ``index``, with which ``a`` and ``out`` are aligned, up to zeros at their ends
    (``LANES``); kernels of view v are ``first[v] .. first[v + 1] - 1``, and ``by_link[v]`` says that they must be taken
    one by one: some multiply by the base, or its diagonal is not one.  Of the lower triangle the rows
    ``rows[0] .. rows[1] - 1`` are read, and mirrored: the results of all rows add up to the products.
    """
    sums = work[4]
    for v in views:
        stored = store[v]
        for p in range(rows[0], rows[1], 2):
            q = min(p + 1, rows[1] - 1)
            s, t = a[p], a[q] if q > p else 0.0
            for start in range(0, q + 1, PIECE):
                stop = min(start + PIECE, q + 1)
                end = start + padded(stop - start)
                x, z, piece = work[0, : end - start], work[1, : end - start], a[start:end]
                x_base, z_base = work[2, : end - start], work[3, : end - start]
                second = stop - start if q > p else 0
                _load(stored, offsets[index[p]], start, min(stop, p + 1) - start, index, gathered, rate[v], x)
                _load(stored, offsets[index[q]], start, second, index, gathered, rate[v], z)
                if by_link[v]:
                    copy_vector(x, x_base)
                    copy_vector(z, z_base)
                # entry (p, j) serves row p and, mirrored, row j; on the diagonal the second must not count
                own_x, at_x = s if start <= p < stop else 0.0, max(0, min(p, stop - 1) - start)
                own_z, at_z = t if start <= q < stop else 0.0, max(0, min(q, stop - 1) - start)
                k, last = first[v], first[v + 1]
                while k < last:
                    e, f = x[at_x], z[at_z]
                    links = 3 if _three_fourths(squarings, by_link[v], k, last) else 1
                    if links == 1:
                        _advance(x, x_base, squarings[k], times_base[k])
                        _advance(z, z_base, squarings[k], times_base[k])
                        e, f = x[at_x], z[at_z]
                        if whole:
                            sums[0], sums[3] = _both(x, z, piece, s, t, out[k, start:end])
                        else:
                            sums[0], sums[3] = _dots(x, z, piece)
                    elif whole:
                        outs = out[k, start:end], out[k + 1, start:end], out[k + 2, start:end]
                        _both_three(x, z, piece, s, t, *outs, sums)
                    else:
                        _dots_three(x, z, piece, sums)
                    for link in range(links):
                        if links == 3:
                            e, f = e * e * e * e, f * f * f * f
                        # the dot products of both rows, without the entries on the diagonal
                        of_x, of_z, one_x, one_z = sums[link], sums[3 + link], own_x * e, own_z * f
                        if whole:
                            out[k + link, p] += of_x - one_x
                            out[k + link, q] += of_z - one_z
                        else:
                            out[k + link, 0] += 2.0 * (s * (of_x - 0.5 * one_x) + t * (of_z - 0.5 * one_z))
                    k += links


@njit(makes_arrays=False, nogil=True, fastmath={"contract", "reassoc", "nsz"})
def mix_lower(
    store, offsets, rate, first, squarings, times_base, by_link, last, weights, views, rows, work, out
):
    """Write ``sum_k weights[k] K_k`` to the lower triangle of ``out``, rows ``rows[0] .. rows[1] - 1``.

    Of the chain of view v, ``last[v] - 1`` is the last kernel in use.  Views run inside pieces: a piece of a row, or of
    several short ones, stays in cache while all of them add to it.
    """
    index = offsets[:0]
    gathered = index.size > 0  # no, and of the same type as in the other sweeps: one `_load` serves all
    i, past = rows[0], rows[0]
    while i < rows[1]:
        # rows that lie behind each other are taken together as long as a piece holds them
        length = i + 1
        past = i + 1
        while past < rows[1] and length + past < PIECE and offsets[past] == offsets[i] + length:
            length += past + 1
            past += 1
        for start in range(0, length, PIECE):
            size = min(PIECE, length - start)
            width = padded(size)
            buffer, base, total = work[0, :width], work[1, :width], work[2, :width]
            for j in range(width):
                total[j] = 0.0
            for v in views:
                _load(store[v], offsets[i], start, size, index, gathered, rate[v], buffer)
                if by_link[v]:
                    copy_vector(buffer, base)
                k = first[v]
                while k < last[v]:
                    if _three_fourths(squarings, by_link[v], k, last[v]):
                        mix_three(buffer, weights[k], weights[k + 1], weights[k + 2], total)
                        k += 3
                        continue
                    _advance(buffer, base, squarings[k], times_base[k])
                    w = weights[k]
                    if w != 0.0:
                        for j in range(width):
                            total[j] += w * buffer[j]
                    k += 1
            # a piece holds whole rows, or a part of one
            for r in range(i, past):
                at = offsets[r] - offsets[i]
                size = min(r + 1 - start, PIECE)
                copy_vector(total[at : at + size], out[r, start : start + size])
        i = past


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


# Sweeps over rows of symmetric kernels that are stored one after the other, each part of a cluster with some rows.
#
# Products take the rows of samples that have coefficients, and no other: kernels are symmetric, so that a row is a
# column as well.  Of the mixed kernel one of two samples alone reads what the kernels say of both: sample i reads the
# columns up to ``reach(n)`` before it, and goes round the end where there are fewer.  So every part reads half of its
# rows.

FAST = {"contract", "reassoc", "nsz"}


def reach(n):
    """How many columns before its own a row reads."""
    return n // 2


@njit(makes_arrays=False, nogil=True, fastmath=FAST)
def row_products(entries, kernels, rows, a, out):
    """Add ``sum_r a_r entries[j, rows[r]]`` to ``out``; four rows at a time, which spares reading the sums."""
    whole = rows.size - rows.size % 4
    for t in range(kernels.size):
        table, sums = entries[kernels[t]], out[t]
        for r in range(0, whole, 4):
            x, y, z, w = table[rows[r]], table[rows[r + 1]], table[rows[r + 2]], table[rows[r + 3]]
            for c in range(sums.size):
                sums[c] += a[r] * x[c] + a[r + 1] * y[c] + a[r + 2] * z[c] + a[r + 3] * w[c]
        for r in range(whole, rows.size):
            x = table[rows[r]]
            for c in range(sums.size):
                sums[c] += a[r] * x[c]


@inner(nogil=True, fastmath=FAST)
def _mix(entries, weights, active, i, first, mixed):
    """Mix a stretch of a row; four kernels at a time, since the mixed row would cost as much as reading the kernels."""
    for k in range(mixed.size):
        mixed[k] = 0.0
    whole = active.size - active.size % 4
    for t in range(0, whole, 4):
        a, b, c, d = active[t], active[t + 1], active[t + 2], active[t + 3]
        wa, wb, wc, wd = weights[a], weights[b], weights[c], weights[d]
        ra, rb = entries[a, i, first:], entries[b, i, first:]
        rc, rd = entries[c, i, first:], entries[d, i, first:]
        for k in range(mixed.size):
            mixed[k] += wa * ra[k] + wb * rb[k] + wc * rc[k] + wd * rd[k]
    for t in range(whole, active.size):
        weight, row = weights[active[t]], entries[active[t], i, first:]
        for k in range(mixed.size):
            mixed[k] += weight * row[k]


@njit(makes_arrays=False, nogil=True)
def mix_rows(entries, weights, active, rows, first, out):
    """``out[r, c] = sum_j weights_j entries[j, rows[r], first + c]`` over active kernels; a row stays in cache."""
    for r in range(rows.size):
        _mix(entries, weights, active, rows[r], first, out[r])


@njit(makes_arrays=False, nogil=True)
def mix_windows(entries, weights, active, first, top, out):
    """Mix what the rows ``top, top + 1, ...`` here read: the columns up to its own, then those at the end.

    ``first`` is the sample whose row is the first here.
    """
    n, width = entries.shape[2], out.shape[1]
    for r in range(out.shape[0]):
        i = first + top + r
        start = max(0, i + 1 - width)
        near = i + 1 - start
        _mix(entries, weights, active, top + r, start, out[r, :near])
        _mix(entries, weights, active, top + r, n - width + near, out[r, near:])


def unfold(strips, first, out):
    """Write what rows ``first, first + 1, ...`` have read to their rows of a matrix."""
    n, width = out.shape[0], strips.shape[1]
    for i, strip in enumerate(strips, first):
        start = max(0, i + 1 - width)
        out[i, start : i + 1] = strip[: i + 1 - start]
        out[i, n - width + i + 1 - start :] = strip[i + 1 - start :]


@njit(makes_arrays=False, nogil=True)
def complete(matrix):
    """Copy what one of two samples has read to the other; in tiles that stay in cache."""
    n, tile = matrix.shape[0], 64
    before = n // 2
    for top in range(0, n, tile):
        for left in range(0, top + 1, tile):
            for i in range(top, min(top + tile, n)):
                for j in range(left, min(left + tile, i)):
                    if i - j <= before:
                        matrix[j, i] = matrix[i, j]
                    else:
                        matrix[i, j] = matrix[j, i]


@njit(makes_arrays=False, nogil=True)
def add_products(
    starts: np.ndarray,
    columns: np.ndarray,
    values: np.ndarray,
    tops: np.ndarray,
    rows: np.ndarray,
    others: np.ndarray,
    out: np.ndarray,
) -> None:
    """Add to ``out`` the products of CSR rows with the first rows of a matrix that is given by its columns (CSC).

    Rows in a column are in order, and those beyond the columns of ``out`` are left out.  Terms of an entry are added in
    the order of the columns, from both sides alike: products of a matrix with itself are symmetric to the bit.
    """
    for i in range(out.shape[0]):
        for p in range(starts[i], starts[i + 1]):
            value = values[p]
            for q in range(tops[columns[p]], tops[columns[p] + 1]):
                row = rows[q]
                if row >= out.shape[1]:
                    break
                out[i, row] += value * others[q]
