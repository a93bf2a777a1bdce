"""Copies of single blocks in single precision, each in one piece: what steps read again and again."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...banks.memory import default_budget

Single = NDArray[np.float32]

__all__ = ["Copies"]

#: numbers that memory is asked for at once: for pieces as large as this a system has large pages
PIECE = 1 << 24
#: share of the memory there is that copies may take
SHARE = 0.25
#: rows that are copied at once
ROWS = 1024
#: largest entries of a block whose squares single precision can add up
SMALL, LARGE = 1e-12, 1e12


class Copies:
    """Blocks that lie side by side, row by row, in double precision: each is copied when it is first wanted.

    A step reads its block twice.  In a copy that is half of the bytes, one after the other, instead of short stretches
    far apart: three times as quick.
    """

    def __init__(self, bank: Any) -> None:
        features = getattr(bank, "features", None)
        self.possible = (
            isinstance(features, np.ndarray)
            and features.dtype == np.float64
            and 4 * features.size <= SHARE * default_budget()
        )
        self._notes = bank.notes
        self._piece: Single = np.empty(0, dtype=np.float32)

    def found(self, j: int) -> Single | None:
        """Return the copy of block j, if there is one: also one of an earlier fit."""
        return self._notes.get(("copy", j))

    def make(self, blocks: list[tuple[int, Any]]) -> None:
        """Copy blocks, given with their features, that have no copy yet and that single precision can hold.

        Their rows are next to one another, so that several are copied in little more time than one.
        """
        new = [(j, Z, self._room(Z)) for j, Z in blocks if self.found(j) is None]
        with np.errstate(over="ignore"):
            for top in range(0, new[0][1].shape[0] if new else 0, ROWS):
                for _, Z, copy in new:
                    copy[top : top + ROWS] = Z[top : top + ROWS]
        for j, _, copy in new:
            if SMALL < max(float(np.max(copy)), -float(np.min(copy))) < LARGE:
                self._notes["copy", j] = copy

    def _room(self, Z: Any) -> Single:
        if self._piece.size < Z.size:
            self._piece = np.empty(max(PIECE, Z.size), dtype=np.float32)
        room, self._piece = self._piece[: Z.size].reshape(Z.shape), self._piece[Z.size :]
        return room
