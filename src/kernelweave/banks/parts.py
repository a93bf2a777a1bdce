"""Parts of a bank that samples have or lack as a whole, on the samples that have them.

Both kinds answer the same questions: raw kernels on the samples at hand, decision values of new samples that have the
part, and their mean kernel with the training samples, which is what other parts are predicted from.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .._numerics.matrices import check_semidefinite
from .._typing import Array, Index
from ..kernels import Kernel, n_samples, take
from ._base import support
from .bound import BoundKernels
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
class SampledPart:
    """Kernels on the training samples that have a part: a view, or several views joined.

    ``needs`` are the views that a sample must have, ``members`` the places of the kernels in the bank, -1 where one
    is needed for prediction of other parts only.
    """

    name: str
    needs: tuple[int, ...]
    members: list[int]
    bound: BoundKernels
    scale: MeanScale | None = None

    def raw(self, samples: Any) -> Iterator[tuple[int, Array]]:
        """Yield every raw kernel matrix of samples that have the part."""
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

    @property
    def normaliser(self) -> Normaliser:
        """Return the normalisation of the kernels."""
        return self.bound.normaliser

    @property
    def kernels(self) -> list[Kernel]:
        """Settled kernels, in the order of ``members``."""
        return self.bound.kernels

    def present(self, new: Any) -> np.ndarray:
        """Return which new samples have the part."""
        return np.asarray(new.present[:, list(self.needs)].all(axis=1))

    def take(self, new: Any, rows: Index) -> Any:
        """Return some of the new samples."""
        return take(new, rows)

    def decision(self, new: Any, weights: Array, coef: Array, dtype: Any = np.float64) -> Array:
        """Return ``sum_j weights_j K_j(new, samples) coef``."""
        used = support(weights.T)
        bound, coef = self.bound.restrict(used, coef)
        return bound.decision(new, weights[..., used], coef, dtype)

    def mean_kernel(self, new: Any) -> Array:
        """Return the mean kernel between new samples that have the part and the training samples."""
        total = np.zeros((n_samples(new), n_samples(self.bound.samples)))
        for part in row_slices(*total.shape):
            block = new if part == slice(0, len(total)) else take(new, np.arange(part.start, part.stop))
            for _, entries in self.bound.visit(block):
                total[part] += entries
        return total / len(self.bound.kernels)

    def own(self) -> Any:
        """Return the training samples that have the part, as new samples."""
        return self.bound.samples


@dataclass
class MatrixPart:
    """One matrix that the user computed, on the training samples that have it.

    ``matrix`` holds the raw entries of those samples, ``rows`` says which they are of all n.
    """

    name: str
    needs: tuple[int, ...]
    members: list[int]
    matrix: Array
    rows: Index
    normaliser: Normaliser
    scale: MeanScale | None = None

    kernels: ClassVar[tuple[Kernel, ...]] = ()

    def raw(self, samples: Any) -> Iterator[tuple[int, Array]]:
        """Yield the matrix among samples that have the part, from their rows."""
        entries = np.asarray(samples[self.needs[0]], dtype=float)
        yield 0, np.array(entries[:, ~np.isnan(entries).all(axis=0)])

    def present(self, new: Any) -> np.ndarray:
        """Return which new rows have entries for the training samples that have the part."""
        return ~np.isnan(new[self.needs[0]][:, self.rows]).all(axis=1)

    def take(self, new: Any, rows: Index) -> Any:
        """Return some of the new rows."""
        return {self.needs[0]: new[self.needs[0]][rows]}

    def mean_kernel(self, new: Any) -> Array:
        """Return the kernel between new rows and the training samples."""
        entries = np.asarray(new[self.needs[0]][:, self.rows], dtype=float)
        return self.normaliser.cross_block(0, entries, None, slice(None))

    def decision(self, new: Any, weights: Array, coef: Array, dtype: Any = np.float64) -> Array:
        """Return ``weight K(new, samples) coef``."""
        return self.mean_kernel(new) @ (coef * weights[..., 0])

    def own(self) -> Any:
        """Return the training samples that have the part, as new rows."""
        rows = np.full((self.rows.size, int(self.rows[-1]) + 1), np.nan)
        rows[:, self.rows] = self.matrix
        return {self.needs[0]: rows}
