"""Kernels as matrices: a storage seen through fields, with all that is read of it counted; storages side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from math import fsum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._numerics.namespace import as_like
from .._typing import Array, Index
from ._base import Bank, Storage, support
from .decide import Decision

if TYPE_CHECKING:
    from .bound import Term
    from .lowrank import Features


class Centre(NamedTuple):
    """Where the origin of feature space is: ``K - 1 r' - r 1' + g``.

    ``means`` r are those of the rows over the samples at whose mean it is, ``(m, samples of the storage)``, and
    ``grand`` g their means over these samples, ``(m,)``.
    """

    means: Array
    grand: Array


class Gram(Bank):
    """m kernel matrices on n samples, from a storage.

    The fields say how the kernels of the storage are seen, in this order: chosen, centred, times a factor, among some
    samples, and exact sums in the place of rounded entries.  ``select``, ``recentred``, ``rescaled``, ``among`` and
    ``by_columns`` return another bank on the same storage; what is read of it is counted by both.

    Parameters
    ----------
    storage : Storage
    chosen : index array, optional
        Kernels of the storage; all by default.
    centre : Centre, optional
        Another origin than the storage's.
    times : array of shape (m,), optional
        A factor of every kernel.
    samples : index array, optional
        Samples of the storage; all by default.
    columns : dict, optional
        Columns ``(n, width)`` X of the samples and a factor, by the place of a kernel that is ``factor X X'``.  Where
        coefficients cancel, the rounded entries of a matrix may make ``a'K a`` many times its true value; of
        ``factor |X'a|^2`` all digits are right, as those of the samples are.
    behind : Gram, optional
        The bank whose reads these are as well.
    """

    def __init__(
        self,
        storage: Storage,
        *,
        chosen: Index | None = None,
        centre: Centre | None = None,
        times: Array | None = None,
        samples: Index | None = None,
        columns: dict[int, tuple[Array, float]] | None = None,
        behind: Gram | None = None,
    ) -> None:
        n, m = storage.n if samples is None else samples.size, storage.m if chosen is None else chosen.size
        super().__init__(n, m)
        self.storage, self.behind = storage, behind
        self.chosen, self.centre, self.samples, self.columns = chosen, centre, samples, columns or {}
        self.times = None if times is None else np.asarray(times, dtype=float)
        self.streams, self.cluster_cost = storage.streams, storage.cluster_cost
        self.by_products = storage.by_products
        self.nbytes = storage.nbytes if chosen is None and samples is None else 0
        #: whether coefficients and products are the storage's up to a factor
        self._as_stored = chosen is None and centre is None and samples is None and not self.columns
        self.decision = storage.decision
        if behind is not None:
            self.completed, whole = behind.completed, behind.decision.whole or samples is not None
            self.decision = behind.decision if self._as_stored else Decision(whole=whole)
        #: whether the mixed kernel is the storage's, where its samples are
        self._mixed_there = chosen is None and centre is None and not self.columns
        if self._mixed_there:
            self.on_device, self.rounding = storage.on_device, storage.rounding
            self.mixed_itemsize = storage.mixed_itemsize
        self._factors: Features | None = None

    # ---- other fields ----------------------------------------------------------------------------------------------

    def _fields(self) -> dict[str, Any]:
        return {
            "chosen": self.chosen, "centre": self.centre, "times": self.times, "samples": self.samples,
            "columns": self.columns,
        }  # fmt: skip

    def _seen(self, **fields: Any) -> Gram:
        """Return the storage with other fields."""
        return Gram(self.storage, **{**self._fields(), **fields}, behind=self)

    def select(self, kernels: Sequence[int] | Index) -> Gram:
        which = np.asarray(kernels, dtype=np.intp)
        centre, times = self.centre, self.times
        made = self._seen(
            chosen=which if self.chosen is None else self.chosen[which],
            centre=None if centre is None else Centre(centre.means[which], centre.grand[which]),
            times=None if times is None else times[which],
            columns={at: self.columns[j] for at, j in enumerate(which.tolist()) if j in self.columns},
        )
        made.source = None if self.source is None else self.source.choose(which)
        return made

    def among(self, samples: Index) -> Gram:
        return self._seen(
            samples=samples if self.samples is None else self.samples[samples],
            columns={j: (X[samples], factor) for j, (X, factor) in self.columns.items()},
        )

    def rescaled(self, factors: Array) -> Gram:
        factors = np.asarray(factors, dtype=float)
        return self._seen(
            times=factors if self.times is None else self.times * factors,
            columns={j: (X, factor * float(factors[j])) for j, (X, factor) in self.columns.items()},
        )

    def recentred(self, samples: Index) -> Gram:
        """Return the kernels with the origin at the mean of some samples.

        Centring is a translation: it takes the place of an earlier one.  Exact sums by columns are those of the kernels
        with the storage's origin, and are left behind.
        """
        there = samples if self.samples is None else self.samples[samples]
        share = np.zeros(self.storage.n)
        share[there] = 1.0 / len(there)
        means = self.storage.apply(share, None, self.chosen)
        made = self._seen(centre=Centre(means, means[:, there].mean(axis=1)), columns={})
        made._count(self.m, self.storage.n, len(there))  # learning the means took a read
        return made

    def by_columns(self, columns: dict[int, tuple[Array, float]]) -> Gram | None:
        """Add exact sums for kernels that are known by columns, or constant on the samples; None where no kernel is.

        Columns that are not those of the bank's kernel, which may have other factors than it had, are left out.
        """
        diagonals = self.diag()
        columns = {
            j: (X, factor)
            for j, (X, factor) in columns.items()
            if len(X) == self.n
            and np.allclose(factor * np.sum(X**2, axis=1), diagonals[j], rtol=1e-9, atol=0.0)
        }
        first = self.block(np.array([0]), np.arange(self.n), np.arange(self.m))[:, 0]
        # samples that are as long as the first, and at no angle to it, are the same
        constant = np.all((diagonals == diagonals[:, :1]) & (first == diagonals[:, :1]), axis=1)
        ones = np.ones((self.n, 1))
        known = {int(j): (ones, float(diagonals[j, 0])) for j in np.flatnonzero(constant)} | columns
        return self._seen(columns=known) if known else None

    def _on(self, storage: Storage) -> Gram:
        """Return the same kernels from another storage."""
        made = Gram(storage, **self._fields())
        made.completed, made.decision, made.source = self.completed, self.decision, self.source
        return made

    def exact(self) -> Gram | None:
        found = self.storage.exact()
        return found if found is None else self if found is self.storage else self._on(found)

    def computed(self) -> Gram:
        found = self.storage.computed()
        return self if found is self.storage else self._on(found)

    def factors(self, tol: float = 1e-12) -> Features:
        if self.times is None:
            return super().factors(tol)
        if self._factors is None:  # of kernels that differ by a factor, the features do, too
            self._factors = self._seen(times=None).factors(tol).rescaled(self.times)
        return self._factors

    def restrict(self, kernels: Index, weights: Array, coef: Array) -> list[Term]:
        assert self.source is not None
        return self.source.restrict(kernels, weights, coef)

    # ---- what is read ----------------------------------------------------------------------------------------------

    def count(self, entries: float) -> None:
        super().count(entries)
        if self.behind is not None:
            self.behind.count(entries)

    def _count(self, kernels: int, rows: int, cols: int) -> None:
        self.count(float(kernels) * rows * cols)

    def _which(self, kernels: Any) -> Any:
        """Return kernels of the storage."""
        if self.chosen is None:
            return kernels
        return self.chosen if kernels is None else self.chosen[kernels]

    def _at(self, rows: Any) -> Any:
        """Return samples of the storage."""
        if self.samples is None:
            return rows
        return self.samples if rows is None else self.samples[rows]

    def _spread(self, a: Array) -> Array:
        """Coefficients of all samples of the storage: zero for those that are left out."""
        if self.samples is None:
            return a
        whole = np.zeros((self.storage.n, *a.shape[1:]))
        whole[self.samples] = a
        return whole

    def _stored_weights(self, weights: Array) -> Array:
        """Weights of the kernels of the storage, from those of the kernels here, times their factors."""
        if self.chosen is None:
            return weights
        spread = np.zeros(self.storage.m)
        np.add.at(spread, self.chosen, weights)
        return spread

    def _scaled(self, values: Any, kernels: Index | None = None) -> Any:
        """Values of kernels along the first axis, times the factors of these."""
        if self.times is None:
            return values
        times = self.times if kernels is None else self.times[kernels]
        return values * as_like(times.reshape(-1, *[1] * (values.ndim - 1)), values)

    def block(self, rows: Any, cols: Any, kernels: Index) -> Array:
        kernels = np.asarray(kernels)
        top, side = (self._at(np.atleast_1d(at)) for at in (rows, cols))
        entries = self.storage.block(top, side, self._which(kernels))
        if self.centre is not None:
            means = self.centre.means[kernels]
            entries = entries - means[:, top, None]
            entries -= means[:, None, side]
            entries = entries + self.centre.grand[kernels][:, None, None]
        return self._scaled(entries, kernels)

    def _products(self, a: Array, rows: Index | None, kernels: Index | None) -> Array:
        """Products at some samples, without the factors."""
        there, spread = self._at(rows), self._spread(a)
        out = self.storage.apply(spread, there, self._which(kernels))
        if self.centre is None:
            return out
        means, grand = self.centre if kernels is None else (part[kernels] for part in self.centre)
        total, along = np.sum(a, axis=0), means @ spread
        # one constant per kernel and column
        shift = grand.reshape(-1, *[1] * (a.ndim - 1)) * total - along
        return out + shift[:, None] - np.multiply.outer(means if there is None else means[:, there], total)

    def apply(self, a: Array, rows: Index | None = None, kernels: Index | None = None) -> Array:
        which = self.m if kernels is None else len(kernels)
        self._count(which, self.n if rows is None else len(rows), _used(a))
        out = self._scaled(self._products(a, rows, kernels), kernels)
        for place, (X, factor) in self._columns_of(kernels):
            known = X if rows is None else X[rows]
            out[place] = factor * (known @ _exact_products(X, a))
        return out

    def _columns_of(self, kernels: Index | None) -> Iterator[tuple[int, tuple[Array, float]]]:
        """Yield places among some kernels, and columns, of those that are known by them."""
        if self.columns:
            for place, j in enumerate(range(self.m) if kernels is None else kernels):
                if int(j) in self.columns:
                    yield place, self.columns[int(j)]

    def quad(self, a: Array, kernels: Index | None = None) -> Array:
        size = _used(a)
        self._count(self.m if kernels is None else len(kernels), size, size)
        if self.centre is None:
            out = self.storage.quad(self._spread(a), self._which(kernels))
        else:
            used = support(a)
            products = self._products(a, used, kernels)
            out = np.asarray(np.sum(products * a[used], axis=tuple(range(1, products.ndim))))
        out = self._scaled(out, kernels)
        if self.columns:
            out = np.array(out)
        for place, (X, factor) in self._columns_of(kernels):
            out[place] = factor * float(np.sum(_exact_products(X, a) ** 2))
        return out

    def combine(self, weights: Array) -> Array:
        weights = self._scaled(weights)
        stored, there = self._stored_weights(weights), self.samples
        read = self.storage.mixed_entries if there is None else float(self.n) ** 2
        self.count(float(np.count_nonzero(weights)) * read)
        if there is None:
            return self._mixed_centred(self.storage.combine(stored), weights, there, there)
        return self._mixed_centred(self.storage.mix_block(stored, there, there), weights, there, there)

    def mix_block(self, weights: Array, rows: Index, cols: Index) -> Array:
        weights = self._scaled(weights)
        top = self._at(rows)
        side = top if rows is cols else self._at(cols)  # a storage may see that both are the same
        self._count(int(np.count_nonzero(weights)), rows.size, cols.size)
        mixed = self.storage.mix_block(self._stored_weights(weights), top, side)
        return self._mixed_centred(mixed, weights, top, side)

    def _mixed_centred(self, mixed: Array, weights: Array, rows: Index | None, cols: Index | None) -> Array:
        """Move the origin of a mixed kernel, in place."""
        if self.centre is None:
            return mixed
        means = weights @ self.centre.means
        mixed -= (means if rows is None else means[rows])[:, None]
        mixed -= (means if cols is None else means[cols])[None, :]
        return mixed + float(weights @ self.centre.grand)

    def mixed(self, weights: Array, rows: Index | None = None) -> Any:
        if not self._mixed_there:
            return self.combine(weights) if rows is None else self.mix_block(weights, rows, rows)
        there = self._at(rows)
        read = self.storage.mixed_entries if there is None else float(there.size) ** 2
        self.count(float(np.count_nonzero(weights)) * read)
        return self.storage.mixed(self._scaled(weights), there)

    def mix_product(self, weights: Array, a: Array) -> Array:
        if self.columns:
            active = np.flatnonzero(weights)
            return np.tensordot(weights[active], self.apply(a, kernels=active), axes=1)
        weights = self._scaled(weights)
        active = np.flatnonzero(weights)
        if active.size == 0:
            return np.zeros(a.shape)
        self._count(active.size, self.n, _used(a))
        if self.centre is None and self.samples is None:
            return self.storage.mix_product(self._stored_weights(weights), a)
        return np.tensordot(weights[active], self._products(a, None, active), axes=1)

    def judged(self, weights: Array, a: Array) -> tuple[Array, Array]:
        found = self.storage.judged(self._scaled(weights), a) if self._as_stored else None
        if found is None:
            return self.quad(a), self.mix_product(weights, a)
        self._count(self.m, self.n, _used(a))
        return self._scaled(found[0]), found[1]

    def image(self, a: Array) -> Any:
        if not self._as_stored:
            return self.apply(a)
        self._count(self.m, self.n, _used(a))
        return self.storage.image(a)

    def image_quad(self, image: Any, a: Any) -> Any:
        if not self._as_stored:
            return super().image_quad(image, a)
        return self._scaled(self.storage.image_quad(image, a))

    def image_mix(self, image: Any, weights: Array) -> Any:
        if not self._as_stored:
            return super().image_mix(image, weights)
        return self.storage.image_mix(image, self._scaled(weights))

    def diag(self) -> Array:
        out = self.storage.diag()
        out = out if self.chosen is None else out[self.chosen]
        out = out if self.samples is None else out[:, self.samples]
        if self.centre is not None:
            means = self.centre.means if self.samples is None else self.centre.means[:, self.samples]
            out = out - 2.0 * means + self.centre.grand[:, None]
        return self._scaled(out)

    def mean_diagonals(self, samples: Index | None = None) -> Array:
        if self._as_stored:
            return np.asarray(self._scaled(self.storage.mean_diagonals(samples)))
        return super().mean_diagonals(samples)

    def rounding_lengths(self) -> Array:
        lengths = super().rounding_lengths()
        lengths[list(self.columns)] = 0.0
        return lengths


def _used(a: Array) -> int:
    """Rows of coefficients that are not zero."""
    return int(np.count_nonzero(a)) if a.ndim == 1 else support(a).size


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


class SideBySide(Storage):
    """Several storages, or banks, of which each holds some of the kernels.

    Parameters
    ----------
    parts : list of Storage
        On the same samples.
    kernels : list of index arrays
        Which kernels of the whole each part holds; together a permutation of 0..m-1.
    """

    def __init__(self, parts: Sequence[Storage], kernels: Sequence[Index]) -> None:
        super().__init__(parts[0].n, sum(part.m for part in parts))
        self.parts = list(parts)
        self.nbytes = sum(part.nbytes for part in parts)
        self.kernels = [np.asarray(index, dtype=np.intp) for index in kernels]
        self.part_of = np.empty(self.m, dtype=np.intp)
        self.place_of = np.empty(self.m, dtype=np.intp)
        for number, index in enumerate(self.kernels):
            self.part_of[index] = number
            self.place_of[index] = np.arange(index.size)

    def _split(self, kernels: Index | None) -> Iterator[tuple[Storage, Index, Any]]:
        """Yield parts concerned, with the places of their answers in ours and the kernels to ask them for."""
        for number, (part, at) in enumerate(zip(self.parts, self.kernels, strict=True)):
            which = None
            if kernels is not None:
                at = np.flatnonzero(self.part_of[kernels] == number)
                which = self.place_of[np.asarray(kernels)[at]]
            if at.size:
                yield part, at, which

    def block(self, rows: Index, cols: Index, kernels: Index) -> Array:
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
            if np.any(weights[index]):
                out += part.mix_product(weights[index], a)
        return out

    def diag(self) -> Array:
        out = np.empty((self.m, self.n))
        for part, index, _ in self._split(None):
            out[index] = part.diag()
        return out
