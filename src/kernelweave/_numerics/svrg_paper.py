"""Algorithm 1 of [APO17] as printed: every block with its own step, length of epoch and stopping time."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .compiled import njit
from .svrg import FAST, unit_coefficient

__all__ = ["Blocks", "paper_steps"]

Array = np.ndarray[Any, np.dtype[np.float64]]
Index = np.ndarray[Any, np.dtype[np.int64]]


class Blocks(NamedTuple):
    """What differs between the blocks.

    Attributes
    ----------
    starts : array of shape (m + 1,)
        Columns of Z at which the blocks begin.
    scale : array of shape (m,)
        Features of block k are those of Z times ``scale[k]``.
    strength, step, stop : arrays of shape (m,)
        Pull of the regulariser, step length, and the time at which a block stops.
    """

    starts: Index
    scale: Array
    strength: Array
    step: Array
    stop: Index


@njit(cache=True, fastmath=FAST, nogil=True)
def paper_steps(Z, order, w, blocks, full, table, c, loss):
    """Take the steps of lines 7 to 14: block k moves while ``t < stop[k]``.

    ``w`` (R,) is overwritten; ``full`` is the gradient of the mean loss at the snapshot and ``table``
    ``-c l'`` there; ``loss`` is a ``Derivative`` with one column.
    """
    starts, scale, strength, step, stop = blocks
    kind, target, width, low, high = loss
    m = scale.size
    for t in range(order.size):
        i = order[t]
        f = 0.0
        for k in range(m):
            part = 0.0
            for q in range(starts[k], starts[k + 1]):
                part += Z[i, q] * w[q]
            f += scale[k] * part
        change = -(c[i] * unit_coefficient(kind, target[i], width, low[i], high[i], f) - table[i])
        for k in range(m):
            if t < stop[k]:
                for q in range(starts[k], starts[k + 1]):
                    # G + grad(w) - grad(snapshot), the regulariser's part of which is (lambda / d) w in sum
                    slope = full[q] + change * scale[k] * Z[i, q] + strength[k] * w[q]
                    w[q] -= step[k] * slope
