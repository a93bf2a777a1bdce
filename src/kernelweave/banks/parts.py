"""Parts of a bank that samples have or lack as a whole, on the samples that have them.

Both kinds answer the same questions: raw kernels on the samples at hand, decision values of new samples that have the
part, and their mean kernel with the training samples, which is what other parts are predicted from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from .._numerics.spectrum import check_semidefinite
from ..kernels import Kernel, n_samples, resolve_kernels, take
from ._base import Array, Index
from .bound import BoundKernels
from .exponentials import BLOCK_ENTRIES
from .function import active_kernels
from .lazy import base_groups
from .normalise import Normaliser

__all__ = ["MatrixPart", "MeanScale", "SampledPart"]


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
    """Kernels on the training samples that have a part.

    Parameters
    ----------
    name : str
        What to call it: the view, or the views joined.
    needs : tuple of int
        Views that a sample must have.
    members : list of int
        Places of the kernels in the bank; -1 where a kernel is needed for prediction of other parts only.
    bound : BoundKernels
    scale : MeanScale
    """

    name: str
    needs: tuple[int, ...]
    members: list[int]
    bound: BoundKernels
    scale: MeanScale | None = None

    @classmethod
    def settle(
        cls,
        name: str,
        needs: tuple[int, ...],
        members: list[int],
        kernels: Sequence[Kernel],
        samples: Any,
        mode: str | None,
        center: bool,
    ) -> SampledPart:
        """Settle kernels on training samples that have the part; nothing else is read."""
        settled = resolve_kernels(kernels, samples)
        if center:
            settled = [kernel.recentred(samples) for kernel in settled]
        names = [kernel.name for kernel in settled]
        normaliser = Normaliser.empty(mode, center, len(settled), n_samples(samples), names)
        return cls(name, needs, members, BoundKernels(list(settled), samples, normaliser))

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
        """What was learnt about the kernels."""
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
        used = active_kernels(weights)
        bound, coef = self.bound.restrict(used, coef)
        return bound.decision(new, weights[..., used], coef, dtype)

    def mean_cross(self, new: Any) -> Array:
        """Return the centred and scaled mean kernel between new samples that have the part and the training samples."""
        assert self.scale is not None
        total = np.zeros((n_samples(new), n_samples(self.bound.samples)))
        height = max(1, BLOCK_ENTRIES // max(1, total.shape[1]))
        for top in range(0, total.shape[0], height):
            part = np.arange(top, min(total.shape[0], top + height))
            block = new if part.size == total.shape[0] else take(new, part)

            def add(j: int, entries: Array, part: Index = part) -> None:
                total[part] += entries

            self.bound.visit(block, add)
        return self.scale(total / len(self.bound.kernels), slice(None))

    def own(self) -> Any:
        """Return the training samples that have the part, as new samples."""
        return self.bound.samples

    def keep(self, kernels: Index) -> SampledPart:
        """Renumber the kernels to their places among those that are kept."""
        return replace(self, members=_renumbered(self.members, kernels))


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

    def _normalised(self, new: Any) -> Array:
        entries = np.asarray(new[self.needs[0]][:, self.rows], dtype=float)
        return self.normaliser.cross_block(0, entries, None, slice(None))

    def decision(self, new: Any, weights: Array, coef: Array, dtype: Any = np.float64) -> Array:
        """Return ``weight K(new, samples) coef``."""
        return self._normalised(new) @ (coef * weights[..., 0])

    def mean_cross(self, new: Any) -> Array:
        """Return the centred and scaled kernel between new rows and the training samples."""
        assert self.scale is not None
        return self.scale(self._normalised(new), slice(None))

    def own(self) -> Any:
        """Return the training samples that have the part, as new rows."""
        rows = np.full((self.rows.size, int(self.rows[-1]) + 1), np.nan)
        rows[:, self.rows] = self.matrix
        return {self.needs[0]: rows}

    def keep(self, kernels: Index) -> MatrixPart:
        """Renumber the matrix to its place among those that are kept."""
        return replace(self, members=_renumbered(self.members, kernels))


def _renumbered(members: list[int], kernels: Index) -> list[int]:
    place = {int(j): k for k, j in enumerate(kernels)}
    return [place.get(j, -1) for j in members]
