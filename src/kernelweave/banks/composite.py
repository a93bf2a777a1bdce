"""Several banks on the same samples as one: families here, explicit features there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ._base import Array, Bank, Index

__all__ = ["CompositeBank"]


class CompositeBank(Bank):
    """Banks side by side.

    Parameters
    ----------
    parts : list of Bank
        On the same samples.
    kernels : list of index arrays
        Which kernels of the whole each part holds; together a permutation of 0..m-1.
    """

    def __init__(self, parts: Sequence[Bank], kernels: Sequence[Index]) -> None:
        super().__init__(parts[0].n, sum(part.m for part in parts))
        self.parts = list(parts)
        self.completed = any(part.completed for part in parts)
        self.kernels = [np.asarray(index, dtype=np.intp) for index in kernels]
        self.part_of = np.empty(self.m, dtype=np.intp)
        self.place_of = np.empty(self.m, dtype=np.intp)
        for number, index in enumerate(self.kernels):
            self.part_of[index] = number
            self.place_of[index] = np.arange(index.size)

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self.parts)

    def _split(self, kernels: Index | None) -> Iterator[tuple[Bank, Index, Index | None]]:
        """Parts concerned, with the places of their answers in ours and the kernels to ask them for."""
        for number, (part, index) in enumerate(zip(self.parts, self.kernels, strict=True)):
            if kernels is None:
                yield part, index, None
            else:
                at = np.flatnonzero(self.part_of[kernels] == number)
                if at.size:
                    yield part, at, self.place_of[np.asarray(kernels)[at]]

    def _counted(self, part: Bank, before: float) -> None:
        self.passes += (part.passes - before) * part.m / self.m

    def block(self, rows: Any, cols: Any, kernels: Index) -> Array:
        out = np.empty((len(kernels), np.size(rows), np.size(cols)))
        for part, at, which in self._split(np.asarray(kernels)):
            assert which is not None
            out[at] = part.block(rows, cols, which)
        return out

    def apply(self, a: Array, rows: Index | None = None, kernels: Index | None = None) -> Array:
        height = self.n if rows is None else len(rows)
        out = np.empty((self.m if kernels is None else len(kernels), height, *a.shape[1:]))
        for part, at, which in self._split(kernels):
            before = part.passes
            out[at] = part.apply(a, rows, which)
            self._counted(part, before)
        return out

    def quad(self, a: Array, kernels: Index | None = None) -> Array:
        out = np.empty(self.m if kernels is None else len(kernels))
        for part, at, which in self._split(kernels):
            before = part.passes
            out[at] = part.quad(a, which)
            self._counted(part, before)
        return out

    def combine(self, weights: Array) -> Array:
        mixed: Array | None = None
        for part, index, _ in self._split(None):
            if np.any(weights[index]):
                before = part.passes
                share = part.combine(weights[index])
                mixed = share if mixed is None else np.add(mixed, share, out=mixed)
                self._counted(part, before)
        return np.zeros((self.n, self.n)) if mixed is None else mixed

    def mix_product(self, weights: Array, a: Array) -> Array:
        out = np.zeros(a.shape)
        for part, index, _ in self._split(None):
            before = part.passes
            out += part.mix_product(weights[index], a)
            self._counted(part, before)
        return out

    def diag(self) -> Array:
        out = np.empty((self.m, self.n))
        for part, index, _ in self._split(None):
            out[index] = part.diag()
        return out
