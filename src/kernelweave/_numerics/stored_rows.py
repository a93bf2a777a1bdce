"""Mixing rows of kernels that are stored one after the other."""

from __future__ import annotations

from numba import njit

__all__ = ["mix_rows"]


@njit(cache=True, fastmath={"contract", "reassoc", "nsz"})
def mix_rows(entries, weights, active, rows, first, out):
    """``out[r, c] = sum_j weights_j entries[j, rows[r], first + c]`` over active kernels; a row stays in cache."""
    for r in range(rows.size):
        mixed = out[r]
        mixed[:] = 0.0
        for j in active:
            row, weight = entries[j, rows[r], first:], weights[j]
            for c in range(mixed.size):
                mixed[c] += weight * row[c]
