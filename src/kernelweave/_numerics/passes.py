"""Compiled sweeps over stored kernel matrices: the only loops that touch every entry of a bank.

Storage.  ``store[v]`` holds the lower triangle of base matrix v: entry (i, j), ``j <= i``, at ``offsets[i] + j``.
With ``offsets[i] = i (i + 1) / 2`` that is packed storage; with ``offsets[i] = i n`` an ordinary full matrix whose
upper half is never read.  Kernel k of a view is an elementwise power of the view's base.  Those powers form a *chain*:
each link is the previous one squared ``squarings[k]`` times and then multiplied by the base ``times_base[k]`` times, so
ten Gaussians of doubling widths cost one matrix in memory and no exponential (``rate[v] > 0``: the base itself is
``exp(-rate store)``, for distances kept in single precision).

A row is worked on in pieces short enough for the first-level cache.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["chain_block", "mirror", "mix_lower", "pack_rows", "products", "quadratic_forms"]

PIECE = 1024  # entries: buffer, base copy, vector and one output row stay in a 32 KiB cache


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc", "nsz"})
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


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc", "nsz"})
def _advance(buffer, base, squarings, times_base):
    """Move ``buffer`` one link along the chain."""
    size = buffer.size
    left = squarings
    while left >= 2:
        for j in range(size):
            e = buffer[j] * buffer[j]
            buffer[j] = e * e
        left -= 2
    if left == 1:
        for j in range(size):
            buffer[j] = buffer[j] * buffer[j]
    for _ in range(times_base):
        for j in range(size):
            buffer[j] = buffer[j] * base[j]


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc", "nsz"})
def _dot(x, y):
    total = 0.0
    for j in range(x.size):
        total += x[j] * y[j]
    return total


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc", "nsz"})
def _dot_axpy(x, a, scale, out):
    """Return ``x . a`` and add ``scale * x`` to ``out`` in the same sweep."""
    total = 0.0
    for j in range(x.size):
        e = x[j]
        total += e * a[j]
        out[j] += scale * e
    return total


@njit(cache=True, nogil=True)
def quadratic_forms(store, offsets, rate, first, squarings, times_base, index, gathered, a, views, out):
    """``out[k] = a' K_k a`` over the rows and columns in ``index``, for the kernels of ``views``.

    ``a`` is aligned with ``index``.  Kernels of view v are ``first[v] .. first[v + 1] - 1``.
    """
    buffer_all, base_all = np.empty(PIECE), np.empty(PIECE)
    for v in views:
        for k in range(first[v], first[v + 1]):
            out[k] = 0.0
        keep_base = False
        for k in range(first[v], first[v + 1]):
            keep_base = keep_base or times_base[k] > 0
        for p in range(index.size):
            i = index[p]
            row = store[v, offsets[i] : offsets[i] + i + 1]
            twice = 2.0 * a[p]
            for start in range(0, p + 1, PIECE):
                size = min(PIECE, p + 1 - start)
                buffer, base = buffer_all[:size], base_all[:size]
                _load(row, start, index, gathered, rate[v], buffer)
                if keep_base:
                    base[:] = buffer
                piece = a[start : start + size]
                last = start + size == p + 1
                for k in range(first[v], first[v + 1]):
                    _advance(buffer, base, squarings[k], times_base[k])
                    term = twice * _dot(buffer, piece)
                    if last:  # the diagonal was counted twice
                        term -= a[p] * a[p] * buffer[size - 1]
                    out[k] += term


@njit(cache=True, nogil=True)
def products(store, offsets, rate, first, squarings, times_base, index, gathered, a, views, out):
    """``out[k] = K_k a`` over the rows and columns in ``index``, for the kernels of ``views``."""
    buffer_all, base_all = np.empty(PIECE), np.empty(PIECE)
    for v in views:
        keep_base = False
        for k in range(first[v], first[v + 1]):
            out[k, :] = 0.0
            keep_base = keep_base or times_base[k] > 0
        for p in range(index.size):
            i = index[p]
            row = store[v, offsets[i] : offsets[i] + i + 1]
            for start in range(0, p + 1, PIECE):
                size = min(PIECE, p + 1 - start)
                buffer, base = buffer_all[:size], base_all[:size]
                _load(row, start, index, gathered, rate[v], buffer)
                if keep_base:
                    base[:] = buffer
                piece = a[start : start + size]
                last = start + size == p + 1
                for k in range(first[v], first[v + 1]):
                    _advance(buffer, base, squarings[k], times_base[k])
                    # entry (p, j) serves row p and, mirrored, row j; on the diagonal the second must not count
                    total = _dot_axpy(buffer, piece, a[p], out[k, start : start + size])
                    if last:
                        total -= a[p] * buffer[size - 1]
                    out[k, p] += total


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc", "nsz"})
def mix_lower(store, offsets, rate, first, squarings, times_base, weights, views, n, rows, out):
    """Add ``sum_k weights[k] K_k`` to the lower triangle of ``out``, rows ``rows[0] .. rows[1] - 1``."""
    buffer_all, base_all = np.empty(PIECE), np.empty(PIECE)
    for v in views:
        end = first[v]  # the chain need not be followed beyond its last kernel in use
        keep_base = False
        for k in range(first[v], first[v + 1]):
            if weights[k] != 0.0:
                end = k + 1
            keep_base = keep_base or times_base[k] > 0
        if end == first[v]:
            continue
        index = offsets[:0]
        for i in range(rows[0], rows[1]):
            row = store[v, offsets[i] : offsets[i] + i + 1]
            for start in range(0, i + 1, PIECE):
                size = min(PIECE, i + 1 - start)
                buffer, base = buffer_all[:size], base_all[:size]
                _load(row, start, index, False, rate[v], buffer)
                if keep_base:
                    base[:] = buffer
                target = out[i, start : start + size]
                for k in range(first[v], end):
                    _advance(buffer, base, squarings[k], times_base[k])
                    w = weights[k]
                    if w != 0.0:
                        for j in range(size):
                            target[j] += w * buffer[j]


@njit(cache=True, nogil=True)
def mirror(matrix):
    """Copy the lower triangle onto the upper one, tile by tile so that both stay in cache."""
    n = matrix.shape[0]
    tile = 64
    for top in range(0, n, tile):
        for left in range(0, top + 1, tile):
            for i in range(top, min(top + tile, n)):
                for j in range(left, min(left + tile, i)):
                    matrix[j, i] = matrix[i, j]


@njit(cache=True, nogil=True)
def chain_block(base, squarings, times_base, out):
    """Powers of one base block, link by link: ``out[k]`` is the k-th kernel of the chain."""
    current = base.copy()
    for k in range(squarings.size):
        _advance(current, base, squarings[k], times_base[k])
        out[k, :] = current


@njit(cache=True, nogil=True)
def pack_rows(entries, top, offsets, store):
    """Copy the lower-triangular part of rows ``top, top + 1, ...`` into packed storage."""
    for r in range(entries.shape[0]):
        i = top + r
        target = store[offsets[i] : offsets[i] + i + 1]
        source = entries[r, : i + 1]
        for j in range(i + 1):
            target[j] = source[j]
