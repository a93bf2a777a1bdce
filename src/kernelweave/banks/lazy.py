"""A bank of which nothing is stored: blocks are computed when they are read."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..kernels._helpers import take
from ..kernels._kernel import Kernel
from ._base import Array, Bank, Index
from .normalise import Normaliser

__all__ = ["LazyBank", "base_groups"]


def base_groups(kernels: list[Kernel], which: Index | range) -> list[list[int]]:
    """Positions of kernels that share a base matrix, in order of first appearance."""
    groups: dict[Any, list[int]] = {}
    for j in which:
        groups.setdefault(kernels[j].base_key, []).append(int(j))
    return list(groups.values())


class LazyBank(Bank):
    """Kernels and samples; every pass computes its entries anew, one base matrix a family and block."""

    def __init__(self, kernels: list[Kernel], samples: Any, n: int, normaliser: Normaliser) -> None:
        super().__init__(n, len(kernels))
        self.kernels = kernels
        self.samples = samples
        self.normaliser = normaliser

    def block(self, rows: Any, cols: Any, kernels: Index) -> Array:
        distinct, again = np.unique(kernels, return_inverse=True)
        if distinct.size < len(kernels):
            return self.block(rows, cols, distinct)[again]
        rows, cols = np.atleast_1d(rows), np.atleast_1d(cols)
        left, right = take(self.samples, rows), take(self.samples, cols)
        out = np.empty((len(kernels), rows.size, cols.size))
        at = {int(j): k for k, j in enumerate(kernels)}
        for group in base_groups(self.kernels, kernels):
            base = self.kernels[group[0]].base(left, right)
            for j in group:
                entries = out[at[j]]
                self.kernels[j].of_base(base, out=entries)
                self.normaliser.train_block(j, entries, rows, cols)
        return out
