"""Products with matrices of which few entries are there, for pairs that are far from a whole grid."""

from __future__ import annotations

from .._typing import Array, Index
from .compiled import njit


@njit(makes_arrays=False)
def add_rows(starts: Index, rows: Index, values: Array, A: Array, out: Array) -> None:
    """``out[c] += sum_k values_k A[rows_k]`` over the entries k of column c, ``starts[c] .. starts[c + 1]``."""
    for c in range(starts.size - 1):
        into = out[c]
        for k in range(starts[c], starts[c + 1]):
            value, row = values[k], A[rows[k]]
            if value != 0.0:
                for i in range(row.size):
                    into[i] += value * row[i]


@njit(makes_arrays=False, fastmath=True)
def add_dots(rows: Index, columns: Index, A: Array, B: Array, out: Array) -> None:
    """``out_k += A[rows_k]'B[columns_k]``."""
    for k in range(rows.size):
        one, other, total = A[rows[k]], B[columns[k]], 0.0
        for i in range(one.size):
            total += one[i] * other[i]
        out[k] += total
