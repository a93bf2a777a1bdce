"""Cutting compiled work into pieces that a time limit can come between."""

from __future__ import annotations

import math
import time

from .deadline import time_left

__all__ = ["Pieces"]

#: operations in a second until they were measured: fewer than any machine manages, so that the first piece is short
SLOW = 1e8
#: no piece takes less than this many seconds
SHORTEST = 2e-3


class Pieces:
    """Says how much work to do before the next look at the clock: as much as fits into half of the time left.

    Long pieces as long as there is time, short ones towards the end; without a limit there is one piece.
    """

    def __init__(self) -> None:
        self._speed = SLOW
        self._began = 0.0

    def next(self) -> float:
        """Return the operations that may be done in the next piece, and start its clock."""
        left = time_left()
        if left == math.inf:
            return math.inf
        self._began = time.perf_counter()
        return self._speed * max(0.5 * left, SHORTEST)

    def done(self, operations: float) -> None:
        """Learn from the piece how many operations fit into a second."""
        seconds = time.perf_counter() - self._began
        if self._began and seconds > 0.5 * SHORTEST:
            self._speed = max(operations / seconds, SLOW * 1e-3)
