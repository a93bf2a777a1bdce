"""Algorithm 1 of [APO17] as printed: every block with its own step, length of epoch and stopping time."""

from __future__ import annotations

from .compiled import njit
from .svrg import FAST, unit_coefficient

__all__ = ["paper_steps"]


@njit(cache=True, fastmath=FAST, nogil=True)
def paper_steps(
    Z, order, starts, scale, w, full, strength, step, stop, table, c, kind, target, width, low, high
):
    """Line 7 to 14: block k moves while ``t < stop[k]``, with the steps ``step[k]`` and the pull ``strength[k]``.

    ``w`` (R,) is overwritten; ``full`` is the gradient of the mean loss at the snapshot and ``table``
    ``-c l'`` there.  Features of block k are those of Z times ``scale[k]``.
    """
    blocks = starts.size - 1
    for t in range(order.size):
        i = order[t]
        f = 0.0
        for k in range(blocks):
            part = 0.0
            for q in range(starts[k], starts[k + 1]):
                part += Z[i, q] * w[q]
            f += scale[k] * part
        change = -(c[i] * unit_coefficient(kind, target[i], width, low[i], high[i], f) - table[i])
        for k in range(blocks):
            if t < stop[k]:
                for q in range(starts[k], starts[k + 1]):
                    # G + grad(w) - grad(snapshot), the regulariser's part of which is (lambda / d) w in sum
                    slope = full[q] + change * scale[k] * Z[i, q] + strength[k] * w[q]
                    w[q] -= step[k] * slope
