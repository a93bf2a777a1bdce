"""What a block pays for its length while the others keep theirs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...norms import Norm

Array = NDArray[np.float64]

__all__ = ["Charge", "held_at_zero"]


class Charge:
    """The norm as a function of the length of block j alone, at the lengths t of the others."""

    def __init__(self, norm: Norm, t: Array, j: int) -> None:
        from ..._numerics.block_steps import NET, POWERS

        along = norm.along(t, j)
        self.extra = float(norm.l1_term or 0.0)
        self.numbers: tuple[Any, ...] = (NET if along.net else POWERS, *along[1:])

    @property
    def held(self) -> float:
        """Pull that a block of zero withstands."""
        from ..._numerics.block_steps import block_held

        return self.extra + float(block_held(*self.numbers))

    def pull(self, t: float) -> float:
        """Return the derivative of the charge at the length t."""
        from ..._numerics.block_steps import block_pull

        return self.extra + float(block_pull(t, *self.numbers))

    def length(self, squares: Array, bend: Array) -> float:
        """Return the best length beside a quadratic model with the curvatures ``bend`` and the squared slopes."""
        from ..._numerics.block_steps import charged_length

        return float(charged_length(squares, bend, self.extra, *self.numbers))


def held_at_zero(norm: Norm, t: Array, blocks: NDArray[np.intp]) -> Array:
    """Pulls that blocks of zero withstand; equal for all where the norm knows no groups."""
    if not norm.group_names and blocks.size:
        return np.full(blocks.size, Charge(norm, t, int(blocks[0])).held)
    return np.array([Charge(norm, t, int(j)).held for j in blocks])
