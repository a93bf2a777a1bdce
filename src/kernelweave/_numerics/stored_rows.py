"""Sweeps over rows of symmetric kernels that are stored one after the other, each part of a cluster with some rows.

Products take the rows of samples that have coefficients, and no other: kernels are symmetric, so that a row is a column
as well.  Of the mixed kernel one of two samples alone reads what the kernels say of both: sample i reads the columns up
to ``reach(n)`` before it, and goes round the end where there are fewer.  So every part reads half of its rows.
"""

from __future__ import annotations

from .compiled import inner, njit

__all__ = ["complete", "mix_rows", "mix_windows", "reach", "row_products", "unfold"]

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
