"""Banks seen through another: some kernels or samples only, other factors, another origin.  Storage is shared."""

from __future__ import annotations

from itertools import chain
from math import fsum
from typing import TYPE_CHECKING, Any

import numpy as np

from .._numerics.namespace import namespace
from ._base import Array, Bank, Index

if TYPE_CHECKING:
    from .lowrank import FeatureBank

__all__ = ["AmongSamples", "ByColumns", "Recentred", "Rescaled", "Selection"]


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


class ByColumns(Bank):
    """Another bank of which some kernels are ``factor X X'`` with columns X of the samples: their forms are exact sums.

    Where coefficients cancel, what the rounded entries of a matrix make of ``a'K a`` may be many times what is left of
    it; of ``factor |X'a|^2`` all digits are right, as those of the samples are.

    Parameters
    ----------
    bank : Bank
        In memory, in double precision.
    columns : dict
        Columns ``(n, width)`` and factor, by the place of a kernel.
    """

    def __init__(self, bank: Bank, columns: dict[int, tuple[Array, float]]) -> None:
        super().__init__(bank.n, bank.m)
        self.bank, self.columns = bank, columns
        self.completed = bank.completed
        self.mixes_whole = bank.mixes_whole

    @classmethod
    def of(cls, bank: Bank, columns: dict[int, tuple[Array, float]]) -> ByColumns | None:
        """Add kernels that are constant on the samples; None where there are neither these nor any columns.

        Columns that are not those of the bank's kernel, which may have other factors than it had, are left out.
        """
        diagonals = bank.diag()
        columns = {
            j: (X, factor)
            for j, (X, factor) in columns.items()
            if len(X) == bank.n
            and np.allclose(factor * np.sum(X**2, axis=1), diagonals[j], rtol=1e-9, atol=0.0)
        }
        first = bank.block(np.array([0]), np.arange(bank.n), np.arange(bank.m))[:, 0]
        # samples that are as long as the first, and at no angle to it, are the same
        constant = np.all((diagonals == diagonals[:, :1]) & (first == diagonals[:, :1]), axis=1)
        ones = np.ones((bank.n, 1))
        known = {int(j): (ones, float(diagonals[j, 0])) for j in np.flatnonzero(constant)} | columns
        return cls(bank, known) if known else None

    @property
    def nbytes(self) -> int:
        return self.bank.nbytes

    def block(self, rows: Any, cols: Any, kernels: Index) -> Array:
        return self.bank.block(rows, cols, kernels)

    def apply(self, a: Array, rows: Index | None = None, kernels: Index | None = None) -> Array:
        which = np.arange(self.m) if kernels is None else kernels
        before = self.bank.passes
        out = self.bank.apply(a, rows, kernels)
        self.passes += self.bank.passes - before
        where = np.arange(self.n) if rows is None else rows
        for place, j in enumerate(which):
            if int(j) in self.columns:
                X, factor = self.columns[int(j)]
                out[place] = factor * (X[where] @ _exact_products(X, a))
        return out

    def quad(self, a: Array, kernels: Index | None = None) -> Array:
        which = np.arange(self.m) if kernels is None else kernels
        before = self.bank.passes
        out = np.array(self.bank.quad(a, kernels))
        self.passes += self.bank.passes - before
        for place, j in enumerate(which):
            if int(j) in self.columns:
                X, factor = self.columns[int(j)]
                out[place] = factor * float(np.sum(_exact_products(X, a) ** 2))
        return out

    def combine(self, weights: Array) -> Array:
        before = self.bank.passes
        mixed = self.bank.combine(weights)
        self.passes += self.bank.passes - before
        return mixed

    def diag(self) -> Array:
        return self.bank.diag()

    def rounding_lengths(self) -> Array:
        lengths = super().rounding_lengths()
        lengths[list(self.columns)] = 0.0
        return lengths


def _exact_products(X: Array, a: Array) -> Array:
    """``X'a``, each number rounded once: products in two parts (Dekker), and their exact sum."""
    shape = (X.shape[1], *a.shape[1:])
    a = a.reshape(len(a), -1)

    def halves(values: Array) -> tuple[Array, Array]:
        high = 134217729.0 * values  # 2^27 + 1
        high = high - (high - values)
        return high, values - high

    out = np.empty((X.shape[1], a.shape[1]))
    with np.errstate(over="ignore", invalid="ignore"):
        (x_high, x_low), (a_high, a_low) = halves(X), halves(a)
        for p in range(X.shape[1]):
            products = X[:, p, None] * a
            rest = x_high[:, p, None] * a_high - products
            rest += x_high[:, p, None] * a_low + x_low[:, p, None] * a_high
            rest += x_low[:, p, None] * a_low
            if not np.all(np.isfinite(rest)):  # numbers beyond 1e292 have no halves
                rest = np.zeros_like(products)
            out[p] = [fsum(chain(products[:, k], rest[:, k])) for k in range(a.shape[1])]
    return out.reshape(shape)
