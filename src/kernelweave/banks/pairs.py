"""Products of kernels of two sides on pairs of objects, which are multiplied without ever being formed.

With r and c the left and right objects of the n pairs, ``M`` the left x right matrix that holds coefficients at their
pairs, ``A_i`` and ``B_j`` the kernels of the sides, and ``gather`` the entries of a matrix at the pairs:

    K_ij a = gather(A_i M B_j),   a' K_ij a = <A_i M, M B_j>,   sum_ij d_ij K_ij a = gather(sum_r A~_r M B~_r)

for any split ``d = sum_r u_r v_r'``, ``A~_r = sum_i u_ri A_i``.  All p q forms cost p + q products of matrices of the
size of the sides.  Pairs of one kind have M made symmetric or antisymmetric, before and after.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._numerics.matrices import check_semidefinite
from .._numerics.stopping import check_time
from .._typing import Array, Index
from ..kernels import Kernel
from ..kernels.pairwise import PairKernel, factors_of, objects_for
from ..views import Pairs
from ..views.pairs import Side
from ._base import Storage
from .bound import BoundKernels
from .decide import Decision
from .gram import Gram
from .normalise import GONE, NOTHING, Normaliser

#: share of all possible pairs below which products go over the pairs that are there, one by one
SPARSE_SHARE = 0.04
#: entries of stacks of products that are there at once
BLOCK_ENTRIES = 4_000_000
#: singular values of the weights, relative to the largest, that are zero
RANK_TOL = 1e-15
#: rows of the eigenbasis that a model of the Hessian is computed from
MODEL_ROWS = 64
#: pairs in a Nystroem preconditioner, and entries that it may have
LANDMARKS, LANDMARK_ENTRIES = 400, 40_000_000
#: of few pairs: share of what the second space adds to the Hessian that is beyond it
BEYOND = 0.6


@dataclass(eq=False)
class Scatter:
    """Where the pairs are in the matrix of all: sends coefficients there, and collects entries."""

    rows: Index
    cols: Index
    shape: tuple[int, int]

    @cached_property
    def flat(self) -> Index:
        """Return the place of every pair in the matrix of all."""
        return np.asarray(self.rows * self.shape[1] + self.cols, dtype=np.intp)

    @cached_property
    def sparse(self) -> bool:
        """Whether so few pairs are there that products go over them one by one."""
        return self.rows.size < SPARSE_SHARE * self.shape[0] * self.shape[1]

    @cached_property
    def shares(self) -> Array:
        """Return one for every pair, or one over the number of times that the same is there."""
        return np.asarray(1.0 / np.bincount(self.flat)[self.flat])

    @cached_property
    def by_column(self) -> tuple[Index, Index]:
        """Return the pairs in the order of their right objects, and where each of these begins."""
        order = np.lexsort((self.rows, self.cols))
        return order, np.searchsorted(self.cols[order], np.arange(self.shape[1] + 1))

    @cached_property
    def by_row(self) -> tuple[Index, Index]:
        """Return the pairs in the order of their left objects, and where each of these begins."""
        order = np.lexsort((self.cols, self.rows))
        return order, np.searchsorted(self.rows[order], np.arange(self.shape[0] + 1))

    def matrix(self, a: Array) -> Array:
        """Return M, for every row of coefficients; those of the same pair are added."""
        if a.ndim == 2:
            return np.stack([self.matrix(row) for row in a])
        counted = np.bincount(self.flat, a, minlength=self.shape[0] * self.shape[1])
        return np.asarray(counted, dtype=a.dtype).reshape(self.shape)

    def entries(self, X: Array) -> Array:
        """Return the entries at the pairs."""
        return np.asarray(X.reshape(*X.shape[:-2], -1).take(self.flat, axis=-1))

    # where few pairs are there, of symmetric matrices

    def times_left(self, A: Array, a: Array) -> Array:
        """``A M``."""
        from .._numerics.pair_products import sum_rows

        (order, starts), out = self.by_column, np.empty(self.shape)
        sum_rows(starts, self.rows[order], a[order], A, np.empty((8, len(A))), out)
        return out

    def entries_of_product(self, X: Array, B: Array) -> Array:
        """Entries of ``X B`` at the pairs."""
        from .._numerics.pair_products import dots

        (order, starts), found, out = self.by_row, np.empty(self.rows.size), np.empty(self.rows.size)
        dots(starts, self.cols[order], X, B, found)
        out[order] = found
        return out


class PairProducts(Storage):
    """Kernels ``scale_t A_i(t) (x) B_j(t)`` on pairs; nothing of the size of n x n, or of n x kernels, is formed.

    Parameters
    ----------
    left, right : arrays of shape (p, a, a) and (q, b, b)
        Kernels of the objects of each side.
    terms : array of shape (m, 2)
        Which two of them each kernel is the product of.
    rows, cols : arrays of shape (n,)
        Objects of the pairs.
    symmetry : {0, 1, -1}
        Of pairs of one kind, whether kernels are made symmetric or antisymmetric.
    scale : array of shape (m,), optional
    origin : array of shape (n,), optional
        Weights, of sum one, of the pairs at whose mean the origin of feature space is: ``(I - 1 w') K (I - w 1')``.
    """

    by_products = True

    def __init__(
        self,
        left: Array,
        right: Array,
        terms: Index,
        rows: Index,
        cols: Index,
        *,
        symmetry: int = 0,
        scale: Array | None = None,
        origin: Array | None = None,
    ) -> None:
        super().__init__(rows.size, len(terms))
        self.left, self.right, self.terms, self.symmetry = left, right, terms, symmetry
        self.scale = np.ones(self.m) if scale is None else scale
        self.origin = origin
        self.at = Scatter(rows, cols, (left.shape[1], right.shape[1]))
        self.nbytes = left.nbytes + (0 if right is left else right.nbytes)
        #: the last eigenbasis, which kernels that differ by other weights share
        self.bases: dict[str, Eigenbasis] = {}

    # ---- the same kernels seen otherwise ---------------------------------------------------------------------------

    def _like(self, **changes: Any) -> PairProducts:
        made = copy(self)
        vars(made).update(changes)
        made.n, made.m = made.at.rows.size, len(made.terms)
        return made

    def select(self, kernels: Index) -> PairProducts:
        """Return some of the kernels."""
        return self._like(terms=self.terms[kernels], scale=self.scale[kernels])

    def among(self, samples: Index) -> PairProducts:
        """Return the kernels among some pairs; the origin is kept where it can be."""
        if self.origin is not None and np.any(np.delete(self.origin, samples)):
            raise ValueError("kernels of pairs that are centred cannot be cut: use center=False")
        origin = None if self.origin is None else self.origin[samples]
        at = Scatter(self.at.rows[samples], self.at.cols[samples], self.at.shape)
        return self._like(at=at, origin=origin)

    def rescaled(self, factors: Array) -> PairProducts:
        """Return the kernels times a factor each."""
        return self._like(scale=self.scale * factors)

    def recentred(self, samples: Index) -> PairProducts:
        """Return the kernels with the origin of feature space at the mean of some pairs."""
        origin = np.zeros(self.n)
        origin[samples] = 1.0 / len(samples)
        return self._like(origin=origin)

    def exact(self) -> PairProducts:
        return self

    # ---- weights ---------------------------------------------------------------------------------------------------

    def table(self, weights: Array, kernels: Index | None = None) -> Array:
        """Return weights times scales as a table ``(p, q)`` of both sides' kernels."""
        terms, scale = (
            (self.terms, self.scale) if kernels is None else (self.terms[kernels], self.scale[kernels])
        )
        out = np.zeros((len(self.left), len(self.right)))
        np.add.at(out, (terms[:, 0], terms[:, 1]), weights * scale)
        return out

    def split(self, weights: Array) -> list[tuple[Array, Array]]:
        """Return few pairs of matrices whose products add up to the mixed kernel: as many as the rank of the table."""
        table = self.table(weights)
        rows, cols = np.flatnonzero(table.any(axis=1)), np.flatnonzero(table.any(axis=0))
        if not rows.size:
            return []
        inside = table[np.ix_(rows, cols)]
        u, values, v = np.linalg.svd(inside, full_matrices=False)
        rank = int(np.count_nonzero(values > RANK_TOL * inside.shape[0] * values[0]))
        if rank < values.size:
            ones, others = (u[:, :rank] * values[:rank]).T, v[:rank]
            return [
                (_combined(self.left, rows, one), _combined(self.right, cols, other))
                for one, other in zip(ones, others, strict=True)
            ]
        if rows.size <= cols.size:
            return [
                (self.left[i], _combined(self.right, cols, one)) for i, one in zip(rows, inside, strict=True)
            ]
        return [
            (_combined(self.left, rows, one), self.right[j]) for j, one in zip(cols, inside.T, strict=True)
        ]

    # ---- products --------------------------------------------------------------------------------------------------

    def inside(self, a: Array) -> Array:
        """Coefficients as the kernels without centring take them."""
        return a if self.origin is None else a - self.origin * np.sum(a, axis=-1)[..., None]

    def outside(self, values: Array) -> Array:
        """Values as the centred kernels have them, along the last axis."""
        return values if self.origin is None else values - (values @ self.origin)[..., None]

    def symmetric_part(self, M: Array) -> Array:
        """Return ``(M + g M') / 2`` of pairs of one kind, else M."""
        return M if not self.symmetry else 0.5 * (M + self.symmetry * M.swapaxes(-1, -2))

    def matrix(self, a: Array) -> Array:
        """Return the coefficients where their pairs are in the matrix of all."""
        return self.symmetric_part(self.at.matrix(self.inside(a)))

    @property
    def one_by_one(self) -> bool:
        """Whether products go over the pairs that are there."""
        return self.at.sparse and not self.symmetry

    def product(self, parts: list[tuple[Array, Array]], a: Array) -> Array:
        """Return the product of a split mixture with coefficients ``(n,)``, or rows of them."""
        check_time()
        at, inner = self.at, self.inside(a)
        if self.one_by_one:
            out = np.zeros((a.size // self.n, self.n))
            for into, row in zip(out, inner.reshape(-1, self.n), strict=True):
                for A, B in parts:
                    into += at.entries_of_product(at.times_left(A, row), B)
            return self.outside(out.reshape(a.shape))
        kind = parts[0][0].dtype if parts else float
        M = self.symmetric_part(at.matrix(inner)).astype(kind, copy=False)
        full = np.zeros_like(M)
        for A, B in parts:
            full += A @ M @ B
        return self.outside(at.entries(self.symmetric_part(full)))

    def traces(self, M: Array, rows: Index) -> Array:
        """``tr(M K_t)`` of all kernels for a symmetric matrix on some pairs."""
        if self.origin is not None:  # the origin is the mean of other pairs, too
            whole = np.zeros((self.n, self.n))
            whole[np.ix_(rows, rows)] = M
            whole -= np.multiply.outer(self.origin, whole.sum(axis=0))
            whole -= np.multiply.outer(whole.sum(axis=1), self.origin)
            M, rows = whole, np.arange(self.n)
        if self.symmetry:
            each = [np.sum(M * self._entries(self.left[i], self.right[j], rows, rows)) for i, j in self.terms]
            return np.asarray(each) * self.scale
        r, c, size = self.at.rows[rows], self.at.cols[rows], self.at.shape[1]
        at = (c[:, None] * size + c).ravel()
        out = np.empty(self.m)
        for i in np.unique(self.terms[:, 0]):
            summed = np.bincount(at, (M * self.left[i][np.ix_(r, r)]).ravel(), minlength=size * size)
            for t in np.flatnonzero(self.terms[:, 0] == i):
                out[t] = summed @ self.right[self.terms[t, 1]].ravel()
        return out * self.scale

    def mix_product(self, weights: Array, a: Array) -> Array:
        return self.product(self.split(weights), a.T).T

    def forms(self, a: Array, z: Array) -> Array:
        """Bilinear forms ``a' K_t z`` of all kernels; on grids a block of left objects at a time."""
        lefts, rights = np.unique(self.terms[:, 0]), np.unique(self.terms[:, 1])
        total = np.zeros((len(self.left), len(self.right)))
        if self.one_by_one:
            a, z = self.inside(a), self.inside(z)
            for i in lefts:
                check_time()
                once = self.at.times_left(self.left[i], a)
                total[i, rights] = [z @ self.at.entries_of_product(once, self.right[j]) for j in rights]
            return total[self.terms[:, 0], self.terms[:, 1]] * self.scale
        M = self.matrix(a)
        N = M if z is a else self.matrix(z)
        height = max(1, BLOCK_ENTRIES // ((lefts.size + rights.size) * M.shape[1]))
        for top in range(0, M.shape[0], height):
            check_time()
            block = slice(top, min(top + height, M.shape[0]))
            ones = np.stack([(self.left[i, block] @ M).ravel() for i in lefts])
            others = np.stack([(N[block] @ self.right[j]).ravel() for j in rights])
            total[np.ix_(lefts, rights)] += ones @ others.T
        return total[self.terms[:, 0], self.terms[:, 1]] * self.scale

    def quad(self, a: Array, kernels: Index | None = None) -> Array:
        which = self if kernels is None else self.select(np.asarray(kernels))
        columns = [a] if a.ndim == 1 else list(a.T)
        return np.asarray(sum(which.forms(column, column) for column in columns))

    def judged(self, weights: Array, a: Array) -> tuple[Array, Array]:
        return self.quad(a), self.mix_product(weights, a)

    def apply(self, a: Array, rows: Index | None = None, kernels: Index | None = None) -> Array:
        if a.ndim == 2:
            return np.stack([self.apply(column, rows, kernels) for column in a.T], axis=2)
        which = np.arange(self.m) if kernels is None else np.asarray(kernels)
        inner, M = self.inside(a), None if self.one_by_one else self.matrix(a)
        out = np.empty((which.size, self.n))
        for i in np.unique(self.terms[which, 0]):
            once = self.at.times_left(self.left[i], inner) if M is None else self.left[i] @ M
            for place in np.flatnonzero(self.terms[which, 0] == i):
                check_time()
                t = which[place]
                B = self.right[self.terms[t, 1]]
                if M is None:
                    entries = self.at.entries_of_product(once, B)
                else:
                    entries = self.at.entries(self.symmetric_part(once @ B))
                out[place] = self.scale[t] * entries
        out = self.outside(out)
        return out if rows is None else out[:, rows]

    # ---- entries ---------------------------------------------------------------------------------------------------

    def _entries(self, A: Array, B: Array, rows: Index, cols: Index) -> Array:
        """Entries of one product, not centred."""
        a, b, c, d = self.at.rows[rows], self.at.cols[rows], self.at.rows[cols], self.at.cols[cols]

        def entries(
            X: Array, rows: Index, cols: Index
        ) -> Array:  # whole rows of few columns are read in order
            return np.asarray(X[:, cols][rows] if rows.size > len(X) else X[np.ix_(rows, cols)])

        out = entries(A, a, c) * entries(B, b, d)
        if self.symmetry:
            out += entries(A, b, d) * entries(B, a, c)
            out += self.symmetry * (entries(A, a, d) * entries(B, b, c) + entries(A, b, c) * entries(B, a, d))
            out *= 0.25
        return out

    def block(self, rows: Index, cols: Index, kernels: Index) -> Array:
        rows, cols, kernels = np.atleast_1d(rows), np.atleast_1d(cols), np.asarray(kernels)
        out = np.empty((kernels.size, rows.size, cols.size))
        for place, t in enumerate(kernels):
            i, j = self.terms[t]
            out[place] = self.scale[t] * self._entries(self.left[i], self.right[j], rows, cols)
        if self.origin is not None:
            plain = self._like(origin=None)
            means = plain.apply(self.origin, None, kernels)
            out -= means[:, rows, None] + means[:, None, cols] - (means @ self.origin)[:, None, None]
        return out

    def mix_block(self, weights: Array, rows: Index, cols: Index) -> Array:
        out = np.zeros((rows.size, cols.size))
        parts = self.split(weights)
        for A, B in parts:
            out += self._entries(A, B, rows, cols)
        if self.origin is not None:
            means = self._like(origin=None).product(parts, self.origin)
            out -= means[rows][:, None] + means[cols][None, :] - float(means @ self.origin)
        return out

    def mixed(self, weights: Array, rows: Index | None = None) -> Any:
        return MixedProducts(self, weights) if rows is None else self.mix_block(weights, rows, rows)

    def _side_diagonals(self) -> tuple[Array, Array]:
        return np.diagonal(self.left, axis1=1, axis2=2), np.diagonal(self.right, axis1=1, axis2=2)

    def _diagonal(self, t: int) -> Array:
        """Diagonal of one kernel, without scale and centring."""
        (i, j), r, c = self.terms[t], self.at.rows, self.at.cols
        A, B = self.left[i], self.right[j]
        if not self.symmetry:
            return np.asarray(np.diagonal(A)[r] * np.diagonal(B)[c])
        out = np.diagonal(A)[r] * np.diagonal(B)[c] + np.diagonal(A)[c] * np.diagonal(B)[r]
        return np.asarray(0.25 * (out + 2.0 * self.symmetry * A[r, c] * B[r, c]))

    def diag(self) -> Array:
        out = np.stack([self._diagonal(t) for t in range(self.m)]) * self.scale[:, None]
        if self.origin is not None:
            means = self._like(origin=None).apply(self.origin)
            out += (means @ self.origin)[:, None] - 2.0 * means
        return out

    def mean_diagonals(self, samples: Index | None = None) -> Array:
        share = np.zeros(self.n)
        share[slice(None) if samples is None else samples] = 1.0
        share /= np.sum(share)
        if self.symmetry:
            means = np.array([share @ self._diagonal(t) for t in range(self.m)])
        else:
            ones, others = self._side_diagonals()
            means = (ones @ self.at.matrix(share) @ others.T)[self.terms[:, 0], self.terms[:, 1]]
        means = means * self.scale
        if self.origin is not None:
            plain = self._like(origin=None)
            means += plain.quad(share - self.origin) - plain.quad(share)
        return np.asarray(means)


def _combined(stack: Array, which: Index, weights: Array) -> Array:
    """``sum_k weights_k stack[which_k]``, one matrix at a time."""
    out = weights[0] * stack[which[0]]
    for k in range(1, which.size):
        out += weights[k] * stack[which[k]]
    return np.asarray(out)


class PairBank(Gram):
    """Kernels of pairs: other fields are other views of the same factors, so that products stay products."""

    storage: PairProducts

    def _on_storage(self, storage: PairProducts) -> PairBank:
        made = PairBank(storage, behind=self)
        made.decision, made.source = self.decision, self.source
        return made

    def select(self, kernels: Any) -> PairBank:
        which = np.asarray(kernels, dtype=np.intp)
        made = self._on_storage(self.storage.select(which))
        made.source = None if self.source is None else self.source.choose(which)
        return made

    def among(self, samples: Index) -> PairBank:
        return self._on_storage(self.storage.among(samples))

    def rescaled(self, factors: Array) -> PairBank:
        return self._on_storage(self.storage.rescaled(np.asarray(factors, dtype=float)))

    def recentred(self, samples: Index) -> PairBank:
        return self._on_storage(self.storage.recentred(samples))

    def by_columns(self, columns: Any) -> None:
        return None

    def rounding_lengths(self) -> Any:
        return RootLengths(self.storage)


class RootLengths:
    """Bounds of the lengths ``(m, n)`` of pairs in feature space, for products that never form them.

    Of symmetric kernels ``k(x, x)`` is at most the mean of the two orders.
    """

    def __init__(self, store: PairProducts, power: int = 1, transposed: bool = False) -> None:
        self.store, self.power, self.transposed = store, power, transposed
        self.orders = [store.at]
        if store.symmetry:
            self.orders.append(Scatter(store.at.cols, store.at.rows, store.at.shape))

    def __pow__(self, power: int) -> RootLengths:
        return RootLengths(self.store, self.power * power, self.transposed)

    @property
    def T(self) -> RootLengths:
        """As rows for pairs and columns for kernels."""
        return RootLengths(self.store, self.power, not self.transposed)

    def __matmul__(self, v: Array) -> Array:
        if v.ndim == 2:
            return np.stack([self @ column for column in v.T], axis=1)
        store, terms = self.store, self.store.terms
        ones, others = (np.maximum(side, 0.0) ** (0.5 * self.power) for side in store._side_diagonals())
        scale = np.abs(store.scale) ** (0.5 * self.power) / len(self.orders) ** (0.5 * self.power)
        if not self.transposed:
            means: Any = sum(ones @ at.matrix(v) @ others.T for at in self.orders)
            return np.asarray(means[terms[:, 0], terms[:, 1]] * scale)
        table = np.zeros((len(ones), len(others)))
        np.add.at(table, (terms[:, 0], terms[:, 1]), v * scale)
        full = ones.T @ table @ others
        return np.asarray(sum(at.entries(full) for at in self.orders))


@dataclass(eq=False)
class Eigenbasis:
    """Eigenvectors of the single product that is nearest to a mixture, and all kernels' diagonals in them."""

    U: Array
    V: Array
    #: of the kernels of each side, ``(p, a)`` and ``(q, b)``
    ones: Array
    others: Array
    #: the mixture that it was made for, of unit size
    table: Array

    @classmethod
    def of(cls, store: PairProducts, table: Array) -> Eigenbasis:
        """Find the nearest product by turns; with nonnegative weights it is nonnegative."""
        size = np.linalg.norm(table)
        table = table / size if size > 0 else np.full(table.shape, 1.0 / table.size)
        weighed = table + table.T if store.symmetry and store.left is store.right else table
        grams = [stack.reshape(len(stack), -1) for stack in (store.left, store.right)]
        G, H = (flat @ flat.T for flat in grams)
        u, v = weighed.sum(axis=1), weighed.sum(axis=0)
        for _ in range(5):
            u = weighed @ H @ v
            u /= np.linalg.norm(u) or 1.0
            v = weighed.T @ G @ u
            v /= np.linalg.norm(v) or 1.0
        U = np.linalg.eigh(np.tensordot(u, store.left, axes=1))[1][:, ::-1]
        if store.symmetry:
            V = U
        else:
            V = np.linalg.eigh(np.tensordot(v, store.right, axes=1))[1][:, ::-1]
        ones = np.stack([np.einsum("ai,ai->i", U, A @ U) for A in store.left])
        others = np.stack([np.einsum("ai,ai->i", V, B @ V) for B in store.right])
        return cls(U, V, np.maximum(ones, 0.0), np.maximum(others, 0.0), table)

    def fits(self, table: Array) -> bool:
        """Whether the basis serves another mixture nearly as well: the angle between them is small."""
        size = float(np.linalg.norm(table))
        return size == 0.0 or float(np.sum(table * self.table)) >= 0.9 * size

    def spectrum(self, table: Array, symmetric: bool) -> Array:
        """The diagonal of a mixture in this basis, ``(a, b)``."""
        L = self.ones.T @ table @ self.others
        return 0.5 * (L + L.T) if symmetric else L


class MixedProducts:
    """The mixed kernel of a :class:`PairProducts` as something to multiply with, and what approximates its inverse."""

    by_products, dtype = True, np.dtype(float)

    def __init__(self, store: PairProducts, weights: Array) -> None:
        self.store, self.weights = store, weights
        self.shape = (store.n, store.n)
        self.parts = store.split(weights)
        #: what is nearly the inverse for the last noise, of few pairs
        self.known: tuple[Array, Callable[[Array], Array]] | None = None

    def __matmul__(self, a: Array) -> Array:
        return self.store.product(self.parts, a.T).T

    def as_type(self, dtype: Any) -> MixedProducts:
        """Return the same, to multiply with in another precision where products are of whole matrices."""
        if self.store.one_by_one or self.dtype == dtype:
            return self
        made = copy(self)
        made.parts = [(A.astype(dtype), B.astype(dtype)) for A, B in self.parts]
        made.dtype = np.dtype(dtype)
        return made

    def _basis(self) -> tuple[Eigenbasis, Array]:
        """Return an eigenbasis that serves the weights, and the mixture's diagonal in it."""
        store, table = self.store, self.store.table(self.weights)
        known = store.bases.get("last")
        if known is None or not known.fits(table):
            known = store.bases["last"] = Eigenbasis.of(store, table)
        return known, known.spectrum(table, store.symmetry != 0)

    def inverse(self, noise: Array) -> Callable[[Array], Array]:
        """Return nearly the product with ``(K + diag(noise))^-1``, symmetric and positive definite.

        A pair whose noise is infinite takes no part.
        """
        used = np.isfinite(noise)
        if self.store.at.sparse:
            if self.known is None or not np.array_equal(self.known[0], noise):
                self.known = noise, self._by_landmarks(noise, used)
            return self.known[1]
        level = float(np.median(noise[used])) if used.any() else 1.0
        scale = np.sqrt(np.divide(level, noise, out=np.zeros(noise.shape), where=used))
        solve = self._by_basis(level)
        return lambda a: scale * solve(scale * a)

    def _by_basis(self, level: float) -> Callable[[Array], Array]:
        store = self.store
        basis, L = self._basis()
        U, V, shrink = basis.U, basis.V, 1.0 / (L + level) - 1.0 / level
        once = np.sqrt(store.at.shares)  # so that no cell takes off more than the noise has put there

        def solve(a: Array) -> Array:
            M = store.symmetric_part(store.at.matrix(once * a))
            return np.asarray(a / level + once * store.at.entries(U @ ((U.T @ M @ V) * shrink) @ V.T))

        return solve

    def _by_landmarks(self, noise: Array, used: NDArray[np.bool_]) -> Callable[[Array], Array]:
        """Nystroem's approximation on random pairs, beside the noise, by Woodbury's identity."""
        store, rng = self.store, np.random.default_rng(0)
        there = np.flatnonzero(used)
        count = min(LANDMARKS, max(1, LANDMARK_ENTRIES // store.n), there.size)
        some = np.sort(rng.choice(there, count, replace=False))
        cross = np.empty((store.n, count))
        height = max(1, BLOCK_ENTRIES // count)
        for top in range(0, store.n, height):
            check_time()
            block = np.arange(top, min(top + height, store.n))
            cross[block] = sum(store._entries(A, B, block, some) for A, B in self.parts)
        precision = np.divide(1.0, noise, out=np.zeros(noise.shape), where=used)
        values, vectors = np.linalg.eigh(cross[some] + cross.T @ (precision[:, None] * cross))
        kept = values > 1e-12 * max(values[-1], 0.0)
        vectors = vectors[:, kept] / np.sqrt(values[kept])

        def solve(a: Array) -> Array:
            a = precision * a
            return np.asarray(a - precision * (cross @ (vectors @ (vectors.T @ (cross.T @ a)))))

        return solve

    def nearest(
        self, noise: Array, has_intercept: bool
    ) -> tuple[float, Array, Callable[[Array], tuple[Array, float]]] | None:
        """What is exact of the nearest single product P, in the place of this one: on a whole grid, all noise alike.

        The log-determinant of ``P + noise`` over that of the noise, the traces of all kernels with its inverse, both
        without the direction of the intercept, and for a vector z its product with the inverse (both in units of the
        root of the noise) and with the logarithm, ``z'log z``.
        """
        store = self.store
        whole = store.n == store.at.shape[0] * store.at.shape[1] and bool(np.all(store.at.shares == 1.0))
        if not whole or store.symmetry or store.origin is not None or np.ptp(noise) > 0.0:
            return None
        (basis, L), level = self._basis(), float(noise[0])
        logs, solve = np.log1p(L / level), self.inverse(noise)
        table = basis.ones @ (1.0 / (L + level)) @ basis.others.T
        log_det, traces = float(np.sum(logs)), table[store.terms[:, 0], store.terms[:, 1]] * store.scale
        ones = np.ones(store.n)
        along = solve(ones)

        def log_form(z: Array) -> float:
            return float(np.sum(logs * (basis.U.T @ store.at.matrix(z) @ basis.V) ** 2))

        def apart(z: Array) -> tuple[Array, float]:
            x = np.sqrt(level) * solve(z)
            return x - along * (np.sum(x) / np.sum(along)) if has_intercept else x, log_form(z)

        if has_intercept:
            log_det -= log_form(ones) / store.n
            traces = traces - store.forms(along, along) / np.sum(along)
        return log_det, np.asarray(traces), apart

    def determinant(self, noise: Array) -> tuple[float, Callable[[Array], Array]]:
        """Return nearly the log-determinant of ``K + diag(noise)``, and :meth:`inverse`."""
        used = np.isfinite(noise)
        L = self._basis()[1]
        level = float(np.median(noise[used]))
        share = float(np.sum(used)) / L.size
        return share * float(np.sum(np.log1p(L * share / level))) + float(
            np.sum(np.log(noise[used]))
        ), self.inverse(noise)

    def hessian(self, beta: Array, noise: Array, has_intercept: bool) -> Array:
        """Return a model of ``V'M V``, ``V_t = K_t beta`` where the noise is finite, for one column of coefficients.

        On a grid in the eigenbasis, from some of its rows: the strongest, and others at random.  Pairs that are not
        there are filled in, and the noise grows by what they were.  Of few pairs in two spaces.
        """
        used = np.isfinite(noise)
        if not used.any():
            return np.zeros((self.store.m, self.store.m))
        if self.store.at.sparse:
            return self._hessian_by_spaces(beta, noise, has_intercept)
        store = self.store
        (basis, L), M = self._basis(), store.matrix(beta)
        a, b = M.shape
        density = float(np.sum(store.at.shares[used])) / (a * b)
        level = float(np.median(noise[used])) / density
        turned = basis.U.T @ M @ basis.V
        energy = np.sum((L * turned) ** 2 / (L + level), axis=1)
        chosen, share = _some_rows(energy, MODEL_ROWS)
        inner = 1.0 / np.sqrt((L[chosen] + level) * share[:, None])
        U = basis.U[:, chosen].T
        stacks = np.empty((store.m, chosen.size, b))
        turned_right: dict[int, Array] = {}
        for i in np.unique(store.terms[:, 0]):
            once = (U @ store.left[i]) @ M
            for t in np.flatnonzero(store.terms[:, 0] == i):
                check_time()
                j = int(store.terms[t, 1])
                if j not in turned_right:
                    turned_right[j] = store.right[j] @ basis.V
                stacks[t] = once @ turned_right[j]
                if store.symmetry:  # S(A M B) of M = S(M): half of A M B, and half of B M A
                    other = ((U @ store.right[j]) @ M) @ (store.left[i] @ basis.V)
                    stacks[t] = 0.5 * (stacks[t] + other)
        stacks *= (store.scale[:, None, None] * inner)[...]
        flat = stacks.reshape(store.m, -1)
        H = flat @ flat.T
        if has_intercept:
            ones = ((U.sum(axis=1)[:, None] * basis.V.sum(axis=0)[None, :]) * inner).ravel()
            along = flat @ ones
            H -= np.outer(along, along) / max(float(ones @ ones), np.finfo(float).tiny)
        return np.asarray(H)

    def scaled(self, noise: Array, has_intercept: bool) -> tuple[Array, Callable[[Array], Array]]:
        """Return the roots of weights, and what takes rows z to ``z + R K R z``, R these roots.

        With an intercept it is the identity along its direction, which the roots are.
        """
        root = np.sqrt(np.divide(1.0, noise, out=np.zeros(noise.shape), where=np.isfinite(noise)))
        unit = root / (np.linalg.norm(root) or 1.0)

        def inside(Z: Array) -> Array:
            return Z - np.multiply.outer(Z @ unit, unit) if has_intercept else Z

        def system(Z: Array) -> Array:
            return Z + inside(root * self.store.product(self.parts, root * inside(Z)))

        return root, system

    def _hessian_by_spaces(self, beta: Array, noise: Array, has_intercept: bool) -> Array:
        """``V' M V``, M the inverse, in two spaces: what the preconditioner makes of V, and of what that leaves.

        Each space has a part of it, from below; what the second adds says how much there is beyond.
        """
        used, solve, ones = np.isfinite(noise), self.inverse(noise), None
        V, plain = np.where(used, self.store.apply(beta), 0.0), np.where(used, noise, 0.0)
        if has_intercept:
            ones = solve(used.astype(float))
        basis = products = np.empty((0, self.store.n))
        found, left = [np.zeros((self.store.m, self.store.m))], V
        for _ in range(2):
            new = np.array([solve(row) for row in left])
            if ones is not None:
                new -= np.multiply.outer(new.sum(axis=1), ones / np.sum(ones))
            new = np.linalg.qr(new.T)[0].T
            basis = np.concatenate([basis, new])
            products = np.concatenate(
                [products, np.where(used, self.store.product(self.parts, new) + plain * new, 0.0)]
            )
            inner = np.linalg.lstsq(
                0.5 * (basis @ products.T + products @ basis.T), basis @ V.T, rcond=1e-12
            )[0]
            found.append((V @ basis.T) @ inner)
            left = V - inner.T @ products
            if ones is not None:
                left = np.where(used, left - left[:, used].mean(axis=1)[:, None], 0.0)
        H = found[2] + BEYOND * (found[2] - found[1])
        return np.asarray(0.5 * (H + H.T))


def _some_rows(energy: Array, most: int) -> tuple[Index, Array]:
    """Return rows, half of them the largest and half drawn in proportion, and the shares at which they were drawn."""
    if energy.size <= most:
        return np.arange(energy.size), np.ones(energy.size)
    order = np.argsort(-energy, kind="stable")
    top, rest = order[: most // 2], order[most // 2 :]
    drawn = np.random.default_rng(0).choice(rest, most - most // 2, replace=False)
    return np.concatenate([top, drawn]), np.concatenate(
        [np.ones(top.size), np.full(drawn.size, drawn.size / rest.size)]
    )


# ---- binding, and prediction -----------------------------------------------------------------------------------


def pair_bank(
    kernels: list[Kernel], samples: Pairs, normalize: str | None, center: bool, decision: Decision
) -> PairBank:
    """Bind settled kernels of pairs to the training pairs: matrices of both sides, and factors that normalise."""
    if normalize == "cosine":
        raise ValueError(
            "normalize='cosine' is not for pairs: take kernels of both sides that are one between an object and itself "
            "(gaussian, tanimoto, cosine), and normalize='trace'"
        )
    pairs = [kernel for kernel in kernels if isinstance(kernel, PairKernel)]
    known = samples.compact()
    left_kernels, right_kernels, terms = factors_of(pairs)
    symmetry = pairs[0].symmetry

    def stack(side: Side, of: list[Kernel]) -> Array:
        matrices = np.empty((len(of), len(side), len(side)))
        for matrix, kernel in zip(matrices, of, strict=True):
            check_time()
            matrix[:] = kernel(objects_for(kernel, side))
            if not kernel.sure:
                check_semidefinite(matrix, f"kernel {kernel.name!r}")
        return matrices

    left = stack(known.left, left_kernels)
    same = known.one_kind and len(left_kernels) == len(right_kernels)
    same = same and all(one is other for one, other in zip(left_kernels, right_kernels, strict=True))
    right = left if same else stack(known.right, right_kernels)
    store = PairProducts(left, right, terms, known.left_of.copy(), known.right_of.copy(), symmetry=symmetry)
    plain = store.mean_diagonals()
    normaliser = Normaliser(normalize, center, np.ones(store.m), names=[kernel.name for kernel in kernels])
    for j in np.flatnonzero(~(np.abs(plain) < np.inf)):
        raise ValueError(
            f"kernel {normaliser.names[j]!r} overflows on the training pairs: scale the features first"
        )
    if center:
        store = store.recentred(np.arange(store.n))
    if normalize == "trace":
        means = store.mean_diagonals() if center else plain
        nothing = np.maximum(NOTHING, GONE * np.abs(plain)) if center else NOTHING
        normaliser.scale = np.divide(1.0, means, out=np.zeros_like(means), where=means > nothing)
        store = store.rescaled(normaliser.scale)
    bank = PairBank(store)
    bank.decision = decision
    bank.source = BoundKernels(kernels, known, normaliser)
    return bank


def pair_decision(bound: BoundKernels, new: Pairs, weights: Array, coef: Array) -> Array:
    """Return ``sum_t weights_t K_t(new, samples) coef``, ``(n_new,)`` or ``(n_new, k)``, from products of the sides."""
    known, samples = bound.normaliser, bound.samples.compact()
    columns = coef[:, None] if coef.ndim == 1 else coef
    own = np.broadcast_to(weights, (columns.shape[1], weights.shape[-1])) * known.scale
    targets = [new, bound.samples] if known.center else [new]
    out = []
    for place in targets:
        cross = CrossProducts(bound.kernels, place, samples)
        if known.center:  # as products with the centred kernels are
            columns = columns - columns.mean(axis=0)
        out.append(np.stack([cross.product(w, a) for w, a in zip(own, columns.T, strict=True)], axis=1))
    values = out[0] - out[1].mean(axis=0) if known.center else out[0]
    return np.asarray(values[:, 0] if coef.ndim == 1 else values)


class CrossProducts:
    """Kernels between new and known pairs, without being formed."""

    def __init__(self, kernels: list[Any], new: Pairs, known: Pairs) -> None:
        self.new, self.known = new.compact(), known
        self.lefts, self.rights, self.terms = factors_of(kernels)
        self.symmetry = kernels[0].symmetry if kernels else 0
        self.at = Scatter(known.left_of, known.right_of, (len(known.left), len(known.right)))

    def _cross(self, of: list[Kernel], weights: Array, new: Side, known: Side) -> Array:
        """``sum_i weights_ri k_i(new, known)`` for every row r of weights."""
        out = np.zeros((len(weights), len(new), len(known)))
        for i in np.flatnonzero(weights.any(axis=0)):
            check_time()
            entries = of[i](objects_for(of[i], new), objects_for(of[i], known))
            for into, weight in zip(out, weights[:, i], strict=True):
                into += weight * entries
        return out

    def product(self, weights: Array, a: Array) -> Array:
        """Return the product of a mixture with coefficients of the known pairs."""
        new, known, g = self.new, self.known, self.symmetry
        M = self.at.matrix(a)
        M = 0.5 * (M + g * M.T) if g else M
        place = Scatter(new.left_of, new.right_of, (len(new.left), len(new.right)))
        out = np.zeros(len(new))
        if not np.any(weights):
            return out
        table = np.zeros((len(self.lefts), len(self.rights)))
        np.add.at(table, (self.terms[:, 0], self.terms[:, 1]), weights)
        rows = np.flatnonzero(table.any(axis=1))  # zeros stay zeros
        u, values, v = np.linalg.svd(table[rows], full_matrices=False)
        kept = values > RANK_TOL * len(table) * values[0]
        ones = np.zeros((np.count_nonzero(kept), len(table)))
        ones[:, rows] = (u * values).T[kept]
        others = np.where(table.any(axis=0), v[kept], 0.0)
        lefts = self._cross(self.lefts, ones, new.left, known.left)
        rights = self._cross(self.rights, others, new.right, known.right)
        for left, right in zip(lefts, rights, strict=True):
            full = left @ M @ right.T
            out += place.entries(0.5 * (full + g * full.T) if g else full)
        return out
