"""Parts of a bank that samples have or lack as a whole, on the samples that have them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._numerics.matrices import check_semidefinite
from .._typing import Array, Index
from ..kernels import n_samples, take
from .bound import BoundKernels, GivenMatrices, MatrixRows
from .lazy import row_slices
from .normalise import Normaliser
from .power import base_groups


@dataclass
class MeanScale:
    """How a mean kernel is centred and scaled: row means and grand mean over the samples that have it, a factor."""

    row_means: Array
    grand_mean: float
    factor: float

    @classmethod
    def learn(cls, mean: Array, train: Index) -> MeanScale:
        """Learn from the training samples among the rows of a mean kernel."""
        own = mean[np.ix_(train, train)]
        row_means = own.mean(axis=1)
        grand = float(row_means.mean())
        spread = float(np.mean(np.diagonal(own) - 2.0 * row_means + grand))
        size = float(np.mean(np.abs(np.diagonal(own))))
        return cls(row_means, grand, 1.0 / spread if spread > 1e-12 * size else 0.0)

    def __call__(self, cross: Array, train: Index | slice, cols: Array | None = None) -> Array:
        """Centre and scale rows of a mean kernel; ``cols`` are the means of its columns, those learnt by default."""
        means = cross[:, train].mean(axis=1)
        columns = self.row_means if cols is None else cols
        return (cross - means[:, None] - columns[None, :] + self.grand_mean) * self.factor


@dataclass
class Part:
    """Kernels on the training samples that have a part: a view, several views joined, or a matrix that is given.

    ``needs`` are the views, or the matrix, that a sample must have, ``members`` the places of the kernels in the bank,
    -1 where one is needed for prediction of other parts only.
    """

    name: str
    needs: tuple[int, ...]
    members: list[int]
    bound: BoundKernels
    scale: MeanScale | None = None

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Read parts of 0.2.0 too, where those of matrices were a class of their own."""
        if "matrix" in state:
            state = dict(state)
            known = [state.pop(name) for name in ("matrix", "rows", "normaliser")]
            state["bound"] = self.bind_matrix(known[0], state["needs"][0], *known[1:])
        vars(self).update(state)

    @staticmethod
    def bind_matrix(entries: Array, matrix: int, rows: Index, normaliser: Normaliser) -> BoundKernels:
        """Bind a matrix that is given to the samples that have it, ``rows`` of all, which are kept as new rows."""
        n = int(rows[-1]) + 1
        own = np.full((rows.size, n), np.nan)
        own[:, rows] = entries
        given = GivenMatrices(matrix + 1, n, np.array([matrix]), rows)
        return BoundKernels([], MatrixRows({matrix: own}), normaliser, given=given)

    def raw(self, samples: Any) -> Iterator[tuple[int, Array]]:
        """Yield every raw kernel matrix of samples that have the part."""
        if self.bound.given is not None:
            entries = np.asarray(samples.matrices[self.needs[0]], dtype=float)
            yield 0, np.array(entries[:, ~np.isnan(entries).all(axis=0)])
            return
        kernels = self.bound.kernels
        for group in base_groups(kernels, range(len(kernels))):
            base = kernels[group[0]].base(samples, samples)
            diagonal = kernels[group[0]].base_diag(samples)
            base.flat[:: base.shape[0] + 1] = diagonal
            for j in group:
                entries = kernels[j].of_base(base)
                if not kernels[j].sure:
                    check_semidefinite(entries, f"kernel {kernels[j].name!r}")
                yield j, entries

    def present(self, new: Any) -> np.ndarray:
        """Return which new samples have the part; of a matrix, entries for the training samples that have it."""
        if self.bound.given is not None:
            return ~np.isnan(new.matrices[self.needs[0]][:, self.bound.given.columns]).all(axis=1)
        return np.asarray(new.present[:, list(self.needs)].all(axis=1))

    def mean_kernel(self, new: Any) -> Array:
        """Return the mean kernel between new samples that have the part and the training samples."""
        total = np.zeros((n_samples(new), n_samples(self.bound.samples)))
        for part in row_slices(*total.shape):
            block = new if part == slice(0, len(total)) else take(new, np.arange(part.start, part.stop))
            for _, entries in self.bound.visit(block):
                total[part] += entries
        return total / len(self.members)
