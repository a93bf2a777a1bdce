"""Products with matrices of which few entries are there, for pairs that are far from a whole grid."""

from __future__ import annotations

from .._typing import Array, Index
from .compiled import njit


@njit(makes_arrays=False, fastmath=True)
def sum_rows(starts: Index, rows: Index, values: Array, A: Array, buffer: Array, out: Array) -> None:
    """``out[:, c] = sum_k values_k A[rows_k]`` over the entries k of column c, ``starts[c] .. starts[c + 1]``.

    As many columns as the buffer has rows are written at once: columns one by one would be scattered.
    """
    for first in range(0, starts.size - 1, buffer.shape[0]):
        many = min(buffer.shape[0], starts.size - 1 - first)
        for j in range(many):
            into, end = buffer[j], starts[first + j + 1]
            into[:] = 0.0
            for k in range(starts[first + j], end, 4):  # four at once, of which the last may be there again
                l, m, n = min(k + 1, end - 1), min(k + 2, end - 1), min(k + 3, end - 1)
                v, w = values[k], values[l] if k + 1 < end else 0.0
                x, y = values[m] if k + 2 < end else 0.0, values[n] if k + 3 < end else 0.0
                one, two, three, four = A[rows[k]], A[rows[l]], A[rows[m]], A[rows[n]]
                for i in range(into.size):
                    into[i] += v * one[i] + w * two[i] + x * three[i] + y * four[i]
        for i in range(out.shape[0]):
            for j in range(many):
                out[i, first + j] = buffer[j, i]


@njit(makes_arrays=False, fastmath=True)
def dots(starts: Index, columns: Index, A: Array, B: Array, out: Array) -> None:
    """``out_k = A[r]'B[columns_k]`` over the entries k of row r, ``starts[r] .. starts[r + 1]``."""
    for r in range(starts.size - 1):
        row, end = A[r], starts[r + 1]
        for k in range(starts[r], end, 4):
            l, m, n = min(k + 1, end - 1), min(k + 2, end - 1), min(k + 3, end - 1)
            one, two, three, four = B[columns[k]], B[columns[l]], B[columns[m]], B[columns[n]]
            v, w, x, y = 0.0, 0.0, 0.0, 0.0
            for i in range(row.size):
                v += row[i] * one[i]
                w += row[i] * two[i]
                x += row[i] * three[i]
                y += row[i] * four[i]
            out[n], out[m], out[l], out[k] = y, x, w, v
