"""Products with matrices of which few entries are there, for pairs that are far from a whole grid."""

from __future__ import annotations

from .._typing import Array, Index
from .compiled import njit


@njit(makes_arrays=False, fastmath=True)
def add_rows(starts: Index, rows: Index, values: Array, A: Array, out: Array) -> None:
    """``out[c] += sum_k values_k A[rows_k]`` over the entries k of column c, ``starts[c] .. starts[c + 1]``."""
    for c in range(starts.size - 1):
        into, k, end = out[c], starts[c], starts[c + 1]
        while k + 4 <= end:  # four at once: what they are added to is read and written once
            one, two, three, four = A[rows[k]], A[rows[k + 1]], A[rows[k + 2]], A[rows[k + 3]]
            v, w, x, y = values[k], values[k + 1], values[k + 2], values[k + 3]
            for i in range(into.size):
                into[i] += v * one[i] + w * two[i] + x * three[i] + y * four[i]
            k += 4
        while k < end:
            one, v = A[rows[k]], values[k]
            for i in range(into.size):
                into[i] += v * one[i]
            k += 1


@njit(makes_arrays=False, fastmath=True)
def add_dots(starts: Index, columns: Index, A: Array, B: Array, out: Array) -> None:
    """``out_k += A[r]'B[columns_k]`` over the entries k of row r, ``starts[r] .. starts[r + 1]``."""
    for r in range(starts.size - 1):
        row, k, end = A[r], starts[r], starts[r + 1]
        while k + 4 <= end:
            one, two, three, four = B[columns[k]], B[columns[k + 1]], B[columns[k + 2]], B[columns[k + 3]]
            v, w, x, y = 0.0, 0.0, 0.0, 0.0
            for i in range(row.size):
                v += row[i] * one[i]
                w += row[i] * two[i]
                x += row[i] * three[i]
                y += row[i] * four[i]
            out[k] += v
            out[k + 1] += w
            out[k + 2] += x
            out[k + 3] += y
            k += 4
        while k < end:
            one, v = B[columns[k]], 0.0
            for i in range(row.size):
                v += row[i] * one[i]
            out[k] += v
            k += 1
