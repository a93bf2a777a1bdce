"""Banks seen through another: some kernels or samples, other factors, another origin, several side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import chain
from math import fsum
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from .._numerics.matrices import check_semidefinite
from .._numerics.namespace import namespace
from .._typing import Array, Index
from ..kernels import Kernel, n_samples, take
from ._base import Bank, support
from .bound import BoundKernels
from .decide import Decision
from .lazy import row_slices
from .normalise import Normaliser
from .power import base_groups

if TYPE_CHECKING:
    from .lowrank import FeatureBank


class _View(Bank):
    """Another bank, seen as a bank of m kernels on n samples; reads of it are counted here, too."""

    def __init__(self, bank: Bank, n: int, m: int) -> None:
        super().__init__(n, m)
        self.bank = bank
        self.completed, self.decision, self.nbytes = (
            bank.completed,
            Decision(whole=bank.decision.whole),
            bank.nbytes,
        )
        self._size = (1.0, 1.0)  # of the tensor behind, and of this one

    def _read(self, method: Callable[..., Any], *args: Any) -> Any:
        """Call a method of the bank behind, and count what it read in units of this bank's tensor."""
        before = self.bank.passes
        answer = method(*args)
        self.passes += (self.bank.passes - before) * self._size[0] / self._size[1]
        return answer

    def apply(self, a: Array, rows: Index | None = None, kernels: Index | None = None) -> Array:
        return self._read(self.bank.apply, a, rows, kernels)


class AmongSamples(_View):
    """The kernels of another bank among some of its samples."""

    def __init__(self, bank: Bank, samples: Index) -> None:
        super().__init__(bank, samples.size, bank.m)
        self.samples = samples
        self.decision, self.nbytes = Decision(), 0
        self._size = ((bank.n / self.n) ** 2, 1.0)
        self.on_device, self.rounding = bank.on_device, bank.rounding
        self.mixed_itemsize = bank.mixed_itemsize

    def _spread(self, a: Array) -> Array:
        """Coefficients of all samples: zero for those that are left out."""
        whole = np.zeros((self.bank.n, *a.shape[1:]))
        whole[self.samples] = a
        return whole

    def block(self, rows: Any, cols: Any, kernels: Index) -> Array:
        return self.bank.block(self.samples[rows], self.samples[cols], kernels)

    def apply(self, a: Array, rows: Index | None = None, kernels: Index | None = None) -> Array:
        return super().apply(self._spread(a), self.samples if rows is None else self.samples[rows], kernels)

    def quad(self, a: Array, kernels: Index | None = None) -> Array:
        return self._read(self.bank.quad, self._spread(a), kernels)

    def mix_block(self, weights: Array, rows: Index, cols: Index) -> Array:
        return self._read(self.bank.mix_block, weights, self.samples[rows], self.samples[cols])

    def mixed(self, weights: Array, rows: Index | None = None) -> Any:
        return self._read(self.bank.mixed, weights, self.samples if rows is None else self.samples[rows])

    def diag(self) -> Array:
        return self.bank.diag()[:, self.samples]


class Rescaled(_View):
    """The kernels of another bank times a factor each; storage is shared."""

    def __init__(self, bank: Bank, factors: Array) -> None:
        super().__init__(bank, bank.n, bank.m)
        self.decision = bank.decision
        self.times = np.asarray(factors, dtype=float)
        self._factors: FeatureBank | None = None

    def factors(self, tol: float = 1e-12) -> FeatureBank:
        if self._factors is None:
            made = self._factors = copy(self.bank.factors(tol))
            made.scale, made.passes, made.notes = made.scale * self.times, 0.0, {}
        return self._factors

    def block(self, rows: Any, cols: Any, kernels: Index) -> Array:
        return self.bank.block(rows, cols, kernels) * self.times[kernels][:, None, None]

    def apply(self, a: Array, rows: Index | None = None, kernels: Index | None = None) -> Array:
        times = self.times if kernels is None else self.times[kernels]
        return super().apply(a, rows, kernels) * times.reshape(-1, *[1] * a.ndim)

    def quad(self, a: Array, kernels: Index | None = None) -> Array:
        times = self.times if kernels is None else self.times[kernels]
        return self._read(self.bank.quad, a, kernels) * times

    def combine(self, weights: Array) -> Array:
        return self._read(self.bank.combine, weights * self.times)

    def mix_product(self, weights: Array, a: Array) -> Array:
        return self._read(self.bank.mix_product, weights * self.times, a)

    def image(self, a: Array) -> Any:
        return self._read(self.bank.image, a)

    def image_quad(self, image: Any, a: Any) -> Any:
        xp = namespace(image)
        return self.bank.image_quad(image, a) * xp.asarray(self.times)

    def image_mix(self, image: Any, weights: Array) -> Any:
        return self.bank.image_mix(image, weights * self.times)

    def diag(self) -> Array:
        return self.bank.diag() * self.times[:, None]


class Selection(_View):
    """Some kernels of another bank."""

    def __init__(self, bank: Bank, kernels: Index) -> None:
        super().__init__(bank, bank.n, kernels.size)
        self.nbytes, self._size = 0, (bank.m, self.m)
        self.chosen = kernels

    def block(self, rows: Any, cols: Any, kernels: Index) -> Array:
        return self.bank.block(rows, cols, self.chosen[kernels])

    def apply(self, a: Array, rows: Index | None = None, kernels: Index | None = None) -> Array:
        return super().apply(a, rows, self.chosen if kernels is None else self.chosen[kernels])

    def combine(self, weights: Array) -> Array:
        spread = np.zeros(self.bank.m)
        np.add.at(spread, self.chosen, weights)
        self.count(float(np.count_nonzero(weights)) * self.n**2)
        return self.bank.combine(spread)


class Recentred(_View):
    """The kernels of another bank with the origin of feature space at the mean of some samples.

    ``K - 1 r' - r 1' + g`` with r the mean of the rows over those samples and g the mean of r over them.  Centring is a
    translation, so the bank behind may be centred elsewhere already.
    """

    def __init__(self, bank: Bank, samples: Index) -> None:
        super().__init__(bank, bank.n, bank.m)
        share = np.zeros(bank.n)
        share[samples] = 1.0 / len(samples)
        self.means = bank.apply(share)
        self.grand = self.means[:, samples].mean(axis=1)
        self.passes = bank.passes  # learning the means took a read

    def block(self, rows: Any, cols: Any, kernels: Index) -> Array:
        entries = self.bank.block(rows, cols, kernels)
        entries -= self.means[kernels][:, np.atleast_1d(rows), None]
        entries -= self.means[kernels][:, None, np.atleast_1d(cols)]
        return entries + self.grand[kernels][:, None, None]

    def apply(self, a: Array, rows: Index | None = None, kernels: Index | None = None) -> Array:
        which = np.arange(self.m) if kernels is None else kernels
        out = super().apply(a, rows, kernels)
        means = self.means[which] if rows is None else self.means[which][:, rows]
        total, along = np.sum(a, axis=0), self.means[which] @ a
        # one constant per kernel and column
        shift = self.grand[which].reshape(-1, *[1] * (a.ndim - 1)) * total - along
        return out + shift[:, None] - np.multiply.outer(means, total)

    def combine(self, weights: Array) -> Array:
        mixed = self._read(self.bank.combine, weights)
        means = weights @ self.means
        mixed -= means[:, None]
        mixed -= means[None, :]
        return mixed + float(weights @ self.grand)

    def diag(self) -> Array:
        return self.bank.diag() - 2.0 * self.means + self.grand[:, None]


class ByColumns(_View):
    """Another bank of which some kernels are ``factor X X'`` with columns X of the samples: their forms are exact sums.

    Where coefficients cancel, the rounded entries of a matrix may make ``a'K a`` many times its true value; of
    ``factor |X'a|^2`` all digits are right, as those of the samples are.

    Parameters
    ----------
    bank : Bank
        In memory, in double precision.
    columns : dict
        Columns ``(n, width)`` and factor, by the place of a kernel.
    """

    def __init__(self, bank: Bank, columns: dict[int, tuple[Array, float]]) -> None:
        super().__init__(bank, bank.n, bank.m)
        self.columns = columns

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

    def apply(self, a: Array, rows: Index | None = None, kernels: Index | None = None) -> Array:
        out = super().apply(a, rows, kernels)
        where = np.arange(self.n) if rows is None else rows
        for place, j in enumerate(range(self.m) if kernels is None else kernels):
            if int(j) in self.columns:
                X, factor = self.columns[int(j)]
                out[place] = factor * (X[where] @ _exact_products(X, a))
        return out

    def quad(self, a: Array, kernels: Index | None = None) -> Array:
        out = np.array(self._read(self.bank.quad, a, kernels))
        for place, j in enumerate(range(self.m) if kernels is None else kernels):
            if int(j) in self.columns:
                X, factor = self.columns[int(j)]
                out[place] = factor * float(np.sum(_exact_products(X, a) ** 2))
        return out

    def block(self, rows: Any, cols: Any, kernels: Index) -> Array:
        return self.bank.block(rows, cols, kernels)

    def combine(self, weights: Array) -> Array:
        return self._read(self.bank.combine, weights)

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
    split = 134217729.0  # 2^27 + 1
    out = np.empty((X.shape[1], a.shape[1]))
    with np.errstate(over="ignore", invalid="ignore"):
        x_high, a_high = split * X, split * a
        x_high, a_high = x_high - (x_high - X), a_high - (a_high - a)
        x_low, a_low = X - x_high, a - a_high
        for p in range(X.shape[1]):
            products = X[:, p, None] * a
            rest = x_high[:, p, None] * a_high - products
            rest += x_high[:, p, None] * a_low + x_low[:, p, None] * a_high
            rest += x_low[:, p, None] * a_low
            if not np.all(np.isfinite(rest)):  # numbers beyond 1e292 have no halves
                rest = np.zeros_like(products)
            out[p] = [fsum(chain(products[:, k], rest[:, k])) for k in range(a.shape[1])]
    return out.reshape(shape)


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
        self.nbytes = sum(part.nbytes for part in parts)
        self.kernels = [np.asarray(index, dtype=np.intp) for index in kernels]
        self.part_of = np.empty(self.m, dtype=np.intp)
        self.place_of = np.empty(self.m, dtype=np.intp)
        for number, index in enumerate(self.kernels):
            self.part_of[index] = number
            self.place_of[index] = np.arange(index.size)

    def _split(self, kernels: Index | None) -> Iterator[tuple[Bank, Index, Any]]:
        """Yield parts concerned, with the places of their answers in ours and the kernels to ask them for.

        What a part reads until the next one is asked for is counted.
        """
        for number, (part, at) in enumerate(zip(self.parts, self.kernels, strict=True)):
            which = None
            if kernels is not None:
                at = np.flatnonzero(self.part_of[kernels] == number)
                which = self.place_of[np.asarray(kernels)[at]]
            if at.size:
                before = part.passes
                yield part, at, which
                self.passes += (part.passes - before) * part.m / self.m

    def block(self, rows: Any, cols: Any, kernels: Index) -> Array:
        out = np.empty((len(kernels), np.size(rows), np.size(cols)))
        for part, at, which in self._split(np.asarray(kernels)):
            out[at] = part.block(rows, cols, which)
        return out

    def apply(self, a: Array, rows: Index | None = None, kernels: Index | None = None) -> Array:
        height = self.n if rows is None else len(rows)
        out = np.empty((self.m if kernels is None else len(kernels), height, *a.shape[1:]))
        for part, at, which in self._split(kernels):
            out[at] = part.apply(a, rows, which)
        return out

    def quad(self, a: Array, kernels: Index | None = None) -> Array:
        out = np.empty(self.m if kernels is None else len(kernels))
        for part, at, which in self._split(kernels):
            out[at] = part.quad(a, which)
        return out

    def combine(self, weights: Array) -> Array:
        mixed: Array | None = None
        for part, index, _ in self._split(None):
            if np.any(weights[index]):
                share = part.combine(weights[index])
                mixed = share if mixed is None else np.add(mixed, share, out=mixed)
        return np.zeros((self.n, self.n)) if mixed is None else mixed

    def mix_product(self, weights: Array, a: Array) -> Array:
        out = np.zeros(a.shape)
        for part, index, _ in self._split(None):
            out += part.mix_product(weights[index], a)
        return out

    def diag(self) -> Array:
        out = np.empty((self.m, self.n))
        for part, index, _ in self._split(None):
            out[index] = part.diag()
        return out


# Parts of a bank that samples have or lack as a whole, on the samples that have them.  Both kinds answer the same
# questions: raw kernels on the samples at hand, decision values of new samples that have the part, and their mean
# kernel with the training samples, which is what other parts are predicted from.


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
