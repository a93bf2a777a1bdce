"""Mixing rows of kernels that are stored one after the other."""

from __future__ import annotations

from .compiled import njit

__all__ = ["mix_rows"]


@njit(cache=True, fastmath={"contract", "reassoc", "nsz"})
def mix_rows(entries, weights, active, rows, first, out):
    """``out[r, c] = sum_j weights_j entries[j, rows[r], first + c]`` over active kernels; a row stays in cache.

    Four kernels at a time: loading and storing the mixed row for each would cost as much as reading the kernels.
    """
    whole = active.size - active.size % 4
    for r in range(rows.size):
        mixed, i = out[r], rows[r]
        mixed[:] = 0.0
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
