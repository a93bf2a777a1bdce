"""Copies between arrays inside compiled code.

``out[:] = values`` takes numba five seconds to compile, in every process that does, all for the message of its error.
"""

from __future__ import annotations

from .compiled import inner, njit

__all__ = ["copy_table", "copy_vector"]


@inner(nogil=True)
def copy_vector(values, out):
    """Fill ``out`` with the numbers of ``values``, of the same length."""
    for i in range(out.size):
        out[i] = values[i]


@njit(cache=True, nogil=True)
def copy_table(values, out):
    """Fill ``out`` with the numbers of ``values``, of the same shape."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = values[i, j]
