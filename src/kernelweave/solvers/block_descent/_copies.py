"""Copies of single blocks in single precision, each in one piece: what steps read again and again."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ...banks.memory import default_budget

Single = NDArray[np.float32]

__all__ = ["Copies"]

#: numbers that memory is asked for at once: for pieces as large as this a system has large pages
PIECE = 1 << 24
#: share of the memory there is that copies may take
SHARE = 0.25
#: largest entries of a block whose squares single precision can add up
SMALL, LARGE = 1e-12, 1e12


class Copies:
    """Blocks that lie side by side, row by row, in double precision: each is copied when it is first wanted.

    A step reads its block twice.  In a copy that is half of the bytes, one after the other, instead of short stretches
    far apart: three times as quick.
    """

    def __init__(self, bank: Any) -> None:
        features = getattr(bank, "features", None)
        dense = isinstance(features, np.ndarray) and not sp.issparse(features)
        self.possible = (
            dense and features.dtype == np.float64 and 4 * features.size <= SHARE * default_budget()
        )
        self._notes = bank.notes
        self._piece: Single = np.empty(0, dtype=np.float32)

    def found(self, j: int) -> Single | None:
        """Return the copy of block j, if there is one: also one of an earlier fit."""
        return self._notes.get(("copy", j))

    def made(self, j: int, Z: Any) -> Any:
        """Return the copy of block j, whose features are Z; Z itself where single precision cannot hold it."""
        copy = self.found(j)
        if copy is not None:
            return copy
        if self._piece.size < Z.size:
            self._piece = np.empty(max(PIECE, Z.size), dtype=np.float32)
        copy = self._piece[: Z.size].reshape(Z.shape)
        with np.errstate(over="ignore"):
            copy[...] = Z
        if not SMALL < max(float(np.max(copy)), -float(np.min(copy))) < LARGE:
            return Z
        self._piece = self._piece[Z.size :]
        self._notes["copy", j] = copy
        return copy
