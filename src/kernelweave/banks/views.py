"""Banks seen through another: some kernels or samples only, other factors, another origin.  Storage is shared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._numerics.namespace import namespace
from ._base import Array, Bank, Index

if TYPE_CHECKING:
    from .lowrank import FeatureBank

__all__ = ["AmongSamples", "Recentred", "Rescaled", "Selection"]


class AmongSamples(Bank):
    """The kernels of another bank among some of its samples."""

    def __init__(self, bank: Bank, samples: Index) -> None:
        super().__init__(samples.size, bank.m)
        self.bank, self.samples = bank, samples
        self.completed = bank.completed
        self.on_device, self.rounding = bank.on_device, bank.rounding
        self.mixed_itemsize = bank.mixed_itemsize

    def _spread(self, a: Array) -> Array:
        """Coefficients of all samples: zero for those that are left out."""
        whole = np.zeros((self.bank.n, *a.shape[1:]))
        whole[self.samples] = a
        return whole

    def _counted(self, before: float) -> None:
        self.passes += (self.bank.passes - before) * (self.bank.n / self.n) ** 2

    def block(self, rows: Any, cols: Any, kernels: Index) -> Array:
        return self.bank.block(self.samples[rows], self.samples[cols], kernels)

    def apply(self, a: Array, rows: Index | None = None, kernels: Index | None = None) -> Array:
        before = self.bank.passes
        out = self.bank.apply(self._spread(a), self.samples if rows is None else self.samples[rows], kernels)
        self._counted(before)
        return out

    def quad(self, a: Array, kernels: Index | None = None) -> Array:
        before = self.bank.passes
        out = self.bank.quad(self._spread(a), kernels)
        self._counted(before)
        return out

    def mix_block(self, weights: Array, rows: Index, cols: Index) -> Array:
        before = self.bank.passes
        out = self.bank.mix_block(weights, self.samples[rows], self.samples[cols])
        self._counted(before)
        return out

    def mixed(self, weights: Array, rows: Index | None = None) -> Any:
        before = self.bank.passes
        out = self.bank.mixed(weights, self.samples if rows is None else self.samples[rows])
        self._counted(before)
        return out

    def diag(self) -> Array:
        return self.bank.diag()[:, self.samples]


class Rescaled(Bank):
    """The kernels of another bank times a factor each; storage is shared."""

    def __init__(self, bank: Bank, factors: Array) -> None:
        super().__init__(bank.n, bank.m)
        self.bank = bank
        self.completed = bank.completed
        self.mixes_whole = bank.mixes_whole
        self.times = np.asarray(factors, dtype=float)
        self._factors: FeatureBank | None = None

    @property
    def nbytes(self) -> int:
        return self.bank.nbytes

    @property
    def thin(self) -> bool:
        return self.bank.thin

    @property
    def low_rank(self) -> bool:
        return self.bank.low_rank

    @property
    def suits_blocks(self) -> bool:
        return self.bank.suits_blocks

    def factors(self, tol: float = 1e-12) -> FeatureBank:
        if self._factors is None:
            self._factors = self.bank.factors(tol).rescaled(self.times)
        return self._factors

    def _read(self, answer: Array, before: float, kernels: Index | None) -> Array:
        """Scale an answer of the bank behind, and count what it read."""
        self.passes += self.bank.passes - before
        times = self.times if kernels is None else self.times[kernels]
        return answer * times.reshape(-1, *([1] * (answer.ndim - 1)))

    def block(self, rows: Any, cols: Any, kernels: Index) -> Array:
        return self.bank.block(rows, cols, kernels) * self.times[kernels][:, None, None]

    def apply(self, a: Array, rows: Index | None = None, kernels: Index | None = None) -> Array:
        before = self.bank.passes
        return self._read(self.bank.apply(a, rows, kernels), before, kernels)

    def quad(self, a: Array, kernels: Index | None = None) -> Array:
        before = self.bank.passes
        return self._read(self.bank.quad(a, kernels), before, kernels)

    def combine(self, weights: Array) -> Array:
        before = self.bank.passes
        mixed = self.bank.combine(weights * self.times)
        self.passes += self.bank.passes - before
        return mixed

    def mix_product(self, weights: Array, a: Array) -> Array:
        before = self.bank.passes
        product = self.bank.mix_product(weights * self.times, a)
        self.passes += self.bank.passes - before
        return product

    def image(self, a: Array) -> Any:
        before = self.bank.passes
        image = self.bank.image(a)
        self.passes += self.bank.passes - before
        return image

    def image_quad(self, image: Any, a: Any) -> Any:
        xp = namespace(image)
        return self.bank.image_quad(image, a) * xp.asarray(self.times)

    def image_mix(self, image: Any, weights: Array) -> Any:
        return self.bank.image_mix(image, weights * self.times)

    def diag(self) -> Array:
        return self.bank.diag() * self.times[:, None]


class Selection(Bank):
    """Some kernels of another bank."""

    def __init__(self, bank: Bank, kernels: Index) -> None:
        super().__init__(bank.n, kernels.size)
        self.bank = bank
        self.completed = bank.completed
        self.mixes_whole = bank.mixes_whole
        self.chosen = kernels

    def block(self, rows: Any, cols: Any, kernels: Index) -> Array:
        return self.bank.block(rows, cols, self.chosen[kernels])

    def apply(self, a: Array, rows: Index | None = None, kernels: Index | None = None) -> Array:
        which = self.chosen if kernels is None else self.chosen[kernels]
        before = self.bank.passes
        out = self.bank.apply(a, rows, which)
        self.passes += (self.bank.passes - before) * self.bank.m / self.m
        return out

    def combine(self, weights: Array) -> Array:
        spread = np.zeros(self.bank.m)
        np.add.at(spread, self.chosen, weights)
        self.count(float(np.count_nonzero(weights)) * self.n**2)
        return self.bank.combine(spread)


class Recentred(Bank):
    """The kernels of another bank with the origin of feature space at the mean of some samples.

    ``K - 1 r' - r 1' + g`` with r the mean of the rows over those samples and g the mean of r over them.  Centring is a
    translation, so the bank behind may be centred elsewhere already.
    """

    def __init__(self, bank: Bank, samples: Index) -> None:
        super().__init__(bank.n, bank.m)
        self.bank = bank
        self.completed = bank.completed
        self.mixes_whole = bank.mixes_whole
        share = np.zeros(bank.n)
        share[samples] = 1.0 / len(samples)
        self.means = bank.apply(share)
        self.grand = self.means[:, samples].mean(axis=1)
        self.passes = bank.passes  # learning the means took a read

    @property
    def nbytes(self) -> int:
        return self.bank.nbytes

    def block(self, rows: Any, cols: Any, kernels: Index) -> Array:
        entries = self.bank.block(rows, cols, kernels)
        entries -= self.means[kernels][:, np.atleast_1d(rows), None]
        entries -= self.means[kernels][:, None, np.atleast_1d(cols)]
        return entries + self.grand[kernels][:, None, None]

    def apply(self, a: Array, rows: Index | None = None, kernels: Index | None = None) -> Array:
        which = np.arange(self.m) if kernels is None else kernels
        before = self.bank.passes
        out = self.bank.apply(a, rows, kernels)
        self.passes += self.bank.passes - before
        means = self.means[which] if rows is None else self.means[which][:, rows]
        total, along = np.sum(a, axis=0), self.means[which] @ a
        shift = (
            self.grand[which].reshape(-1, *[1] * (a.ndim - 1)) * total - along
        )  # one constant per kernel and column
        return out + shift[:, None] - np.multiply.outer(means, total)

    def combine(self, weights: Array) -> Array:
        before = self.bank.passes
        mixed = self.bank.combine(weights)
        self.passes += self.bank.passes - before
        means = weights @ self.means
        mixed -= means[:, None]
        mixed -= means[None, :]
        return mixed + float(weights @ self.grand)

    def diag(self) -> Array:
        return self.bank.diag() - 2.0 * self.means + self.grand[:, None]
