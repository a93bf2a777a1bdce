"""Kernels known through explicit features: ``K_j = Z_j Z_j'``, never a matrix of n x n."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from .._numerics.matrices import check_sparse, row_products
from .._numerics.stopping import check_time
from .._typing import Array, Index
from ._base import Storage, support
from .decide import Decision
from .gram import Gram

if TYPE_CHECKING:
    from .bound import Term

#: entries of features that are multiplied by themselves at once, and the share of them that sparse products are for
GRAM_ENTRIES, SPARSE = 1 << 24, 0.03
#: entries of the mixed kernel that a solver may still ask for where features are swept
MIXED_ENTRIES = 400_000_000


def loss_and_gradient(loss: Any, y: Array, f: Array, c: Array) -> tuple[float, Array]:
    """Loss at decision values ``(n, k)``, and its gradient there; targets of one column have no second axis."""
    values = f[:, 0] if y.ndim == 1 else f
    return loss.total(y, values, c), loss.total_gradient(y, values, c).reshape(f.shape)


def row_lengths(Z: Any, mixing: Array) -> Array:
    """``sum_c mixing_c z_ic^2`` of every row of dense or sparse features."""
    from .._numerics.svrg import row_lengths as dense_lengths

    return np.asarray(Z.multiply(Z) @ mixing) if sp.issparse(Z) else dense_lengths(Z, mixing)


def column_squares(Z: Any) -> Array:
    """Sums of squares of the columns of dense or sparse features, without a copy of all of them."""
    squares = Z.multiply(Z).sum(axis=0) if sp.issparse(Z) else np.einsum("ij,ij->j", Z, Z)
    return np.asarray(squares, dtype=float).ravel()


def weighted_gram(Z: Any, charge: Array, columns: Index) -> Array:
    """``A' diag(charge) A``, A these columns of features in any precision, and a column of ones at the end."""
    Z = Z if np.array_equal(columns, np.arange(Z.shape[1])) else Z[:, columns]
    root, width = np.sqrt(charge), columns.size + 1
    if sp.issparse(Z) and Z.nnz <= SPARSE * Z.shape[0] * Z.shape[1]:
        check_time()
        A = sp.hstack([sp.csr_matrix(Z.multiply(root[:, None]), dtype=float), root[:, None]], format="csr")
        return np.asarray((A.T @ A).toarray())
    gram: Array | None = None
    height = max(1, GRAM_ENTRIES // width)
    for top in range(0, max(charge.size, 1), height):  # most often all rows at once
        check_time()
        part, some = slice(top, top + height), root[top : top + height]
        A = np.empty((some.size, width))
        np.multiply(Z[part].toarray() if sp.issparse(Z) else Z[part], some[:, None], out=A[:, :-1])
        A[:, -1] = some
        gram = A.T @ A if gram is None else np.add(gram, A.T @ A, out=gram)
    return np.asarray(gram)


def feature_bytes(Z: Any) -> int:
    """Bytes of dense or sparse features."""
    return int(Z.data.nbytes + Z.indices.nbytes + Z.indptr.nbytes if sp.issparse(Z) else Z.nbytes)


class FeatureStorage(Storage):
    """Explicit features Z with ``K_j = scale_j Z_j Z_j'``, in memory or not: a linear map, and what follows from it.

    Parameters
    ----------
    n : int
        Samples.
    starts : sequence of m + 1 ints
        The features of kernel j are ``starts[j]`` to ``starts[j + 1]``.
    scale : array of shape (m,), optional
        Factor of every kernel (trace normalisation).
    """

    #: features of all rows, where they are in memory
    features: Any = None
    #: solvers that need no more than sweeps over features that are not at hand all at once, for error messages
    solvers = "solver='svrg', 'lbfgs' or 'proximal_newton'"

    def __init__(self, n: int, starts: Sequence[int] | Index, scale: Array | None = None) -> None:
        self.starts = np.asarray(starts, dtype=np.intp)
        super().__init__(n, self.starts.size - 1)
        self.scale = np.ones(self.m) if scale is None else np.asarray(scale, dtype=float)
        self.ranks = np.diff(self.starts)

    @abstractmethod
    def forward(self, w: Array) -> Array:
        """``Z w``, for w of shape ``(R[, k])``."""

    @abstractmethod
    def adjoint(self, a: Array) -> Array:
        """``Z' a``, for a of shape ``(n[, k])``."""

    @abstractmethod
    def features_of(self, rows: Index) -> Any:
        """Features of some rows, in double precision."""

    @abstractmethod
    def lengths(self, mixing: Array) -> Array:
        """``sum_c mixing_c z_ic^2`` of every row."""

    @abstractmethod
    def shuffled(self, rng: np.random.Generator) -> Iterator[tuple[Index, Any]]:
        """Blocks that hold every row once, in random order, with the numbers of their rows."""

    def coordinates(self, a: Array) -> Array:
        """``Z' a``, from the rows that have coefficients alone where that is quicker."""
        return self.adjoint(a)

    def gram(self, rows: Index, charge: Array, columns: Index) -> Array:
        """``A' diag(charge) A``, A these columns of some rows, and a column of ones at the end."""
        return weighted_gram(self.features_of(rows), charge, columns)

    def subset(self, rows: Index) -> FeatureStorage:
        """Return the features of some rows, held where they are swept."""
        return FeatureMatrix(self.features_of(rows), self.starts, self.scale)

    def block_features(self, j: int, end: int | None = None) -> Any:
        """Features of kernel j in all rows, without its factor; those of kernels up to ``end`` beside them."""
        raise ValueError(
            "this solver needs explicit features in memory, all rows of a kernel at a time: use 'proximal_newton', "
            "'lbfgs' or 'svrg' with features that are streamed, on a device or on a cluster"
        )

    def sweep(
        self, w: Array, respond: Callable[[Any, Array], Array], mixing: Array, beside: Array | None = None
    ) -> tuple[Array, Array, Array, Array]:
        """``f = Z w``, ``a = respond(rows, f)``, ``Z' a`` and ``lengths(mixing)``, reading every row once.

        All of two dimensions; the columns of ``Z' beside``, where given, follow those of ``Z' a``.
        """
        f = self.forward(w)
        a = respond(slice(None), f)
        both = a if beside is None else np.hstack([a, beside])
        return f, a, self.adjoint(both), self.lengths(mixing)

    def loss_sweep(self, w: Array, b: Array, loss: Any, y: Array, c: Array) -> tuple[float, Array, Array]:
        """Loss of ``Z w + b``, and its gradients in w and b: ``Z' g`` and the sums of g, reading every row once.

        ``w`` is ``(R, k)``, ``b`` ``(k,)``; ``y`` and ``c`` are ``(n,)`` or ``(n, k)``.
        """
        value, g = loss_and_gradient(loss, y, self.forward(w) + b, c)
        return value, self.adjoint(g), np.sum(g, axis=0)

    def block(self, rows: Index, cols: Index, kernels: Index) -> Array:
        out = np.empty((len(kernels), rows.size, cols.size))
        left, right = self.features_of(rows), self.features_of(cols)
        for at, j in enumerate(kernels):
            block = slice(self.starts[j], self.starts[j + 1])
            mine, theirs = left[:, block], right[:, block]
            if sp.issparse(mine):
                mine, theirs = mine.toarray(), theirs.toarray()
            out[at] = self.scale[j] * (mine @ theirs.T)
        return out

    def image(self, a: Array) -> Array:
        """Coordinates ``Z' a`` in feature space: R numbers instead of m n."""
        return self.coordinates(a)

    def quad(self, a: Array, kernels: Index | None = None) -> Array:
        s = self.image_quad(self.coordinates(a), a)
        return s if kernels is None else s[kernels]

    def mix_product(self, weights: Array, a: Array) -> Array:
        return self.image_mix(self.coordinates(a), weights)

    def combine(self, weights: Array) -> Array:
        if self.n**2 > MIXED_ENTRIES:
            raise ValueError(
                f"this solver needs the mixed kernel, {self.n} x {self.n} numbers, which is not computed from "
                f"features that are swept: use {self.solvers} with a smooth loss and an lp norm"
            )
        return super().combine(weights)

    def judged(self, weights: Array, a: Array) -> tuple[Array, Array]:
        image = self.coordinates(a)
        return self.image_quad(image, a), self.image_mix(image, weights)

    def image_quad(self, image: Array, a: Array) -> Array:
        squares = image**2 if image.ndim == 1 else np.sum(image**2, axis=1)
        if self.m == self.ranks.sum() == np.count_nonzero(self.ranks):  # rank one throughout
            return squares * self.scale
        return np.add.reduceat(np.append(squares, 0.0), self.starts[:-1]) * (self.ranks > 0) * self.scale

    def image_mix(self, image: Array, weights: Array) -> Array:
        mixing = np.repeat(weights * self.scale, self.ranks)
        return self.forward(image * (mixing if image.ndim == 1 else mixing[:, None]))


class Features(Gram):
    """Kernels known through explicit features: matrices, and the linear map behind them.

    Solvers on the primal work with ``forward``, ``adjoint``, ``lengths``, ``sweep``, ``shuffled`` and others of the
    storage's methods; nothing of the size n x R is held where features are not in memory.

    Parameters
    ----------
    storage : FeatureStorage
    times : array of shape (m,), optional
        A factor of every kernel, beside the storage's.
    behind : Gram, optional
        The bank whose reads these are as well.

    Attributes
    ----------
    scale : array of shape (m,)
        ``K_j = scale_j Z_j Z_j'``.
    """

    storage: FeatureStorage

    def __init__(
        self, storage: FeatureStorage, times: Array | None = None, behind: Gram | None = None
    ) -> None:
        super().__init__(storage, times=times, behind=behind)
        self.starts, self.ranks, self.features = storage.starts, storage.ranks, storage.features
        self.scale = storage.scale if self.times is None else storage.scale * self.times
        #: what a solver wants to find again in the next fit on these features, by kernel
        self.notes: dict[Any, Any] = {}
        self.forward, self.adjoint, self.lengths = storage.forward, storage.adjoint, storage.lengths
        self.features_of, self.block_features, self.gram = (
            storage.features_of, storage.block_features, storage.gram,
        )  # fmt: skip
        self.sweep, self.loss_sweep, self.shuffled = storage.sweep, storage.loss_sweep, storage.shuffled

    def factors(self, tol: float = 1e-12) -> Features:
        return self

    def rescaled(self, factors: Array) -> Features:
        times = np.asarray(factors, dtype=float)
        return Features(self.storage, times if self.times is None else self.times * times, behind=self)

    def _on(self, storage: Storage) -> Features:
        assert isinstance(storage, FeatureStorage)
        made = Features(storage, self.times)
        made.source = self.source
        return made

    def restrict(self, kernels: Index, weights: Array, coef: Array) -> list[Term]:
        """Of features that are not in the host's memory, keep the direction of the function, and no sample."""
        if isinstance(self.storage, FeatureMatrix):
            return super().restrict(kernels, weights, coef)
        source: Any = self.source
        along = replace(source, samples=None, direction=self.image(coef), starts=self.starts)  # one pass
        return along.restrict(kernels, weights, coef)


class FeatureMatrix(FeatureStorage):
    """One block of columns of a feature matrix a kernel; rank-1 kernels are single columns.

    Parameters
    ----------
    features : array or CSR matrix of shape (n, R)
        The blocks side by side.
    starts : sequence of m + 1 ints
        Block j is ``features[:, starts[j]:starts[j + 1]]``.
    scale : array of shape (m,), optional
        Factor of every kernel (trace normalisation).
    precise : FeatureStorage, optional
        The same features in double precision, where they are stored in single precision.
    """

    def __init__(
        self,
        features: Any,
        starts: Sequence[int] | Index,
        scale: Array | None = None,
        precise: FeatureStorage | None = None,
    ) -> None:
        super().__init__(features.shape[0], starts, scale)
        if sp.issparse(features):
            check_sparse(features, "features")  # compiled steps write where the indices say
        self.features, self._precise = features, precise
        self._by_column: Any = None
        self.nbytes = feature_bytes(features)
        self.decision = Decision(
            representation="features", storage="lowrank", rank=int(self.ranks.max(initial=0))
        )

    def exact(self) -> FeatureStorage | None:
        return self if self.features.dtype == np.float64 else self._precise

    def features_of(self, rows: Index) -> Any:
        return self.features[rows].astype(np.float64, copy=False)

    def block_features(self, j: int, end: int | None = None) -> Any:
        mine = slice(self.starts[j], self.starts[j + 1 if end is None else end])
        if not sp.issparse(self.features):
            return self.features[:, mine]
        if self._by_column is None:
            self._by_column = self.features.tocsc()
        return self._by_column[:, mine]

    def forward(self, w: Array) -> Array:
        # of the features' own precision: numpy would make a copy of all of them in the other's
        return np.asarray(self.features @ w.astype(self.features.dtype, copy=False), dtype=float)

    def adjoint(self, a: Array) -> Array:
        return np.asarray(self.features.T @ a.astype(self.features.dtype, copy=False), dtype=float)

    def coordinates(self, a: Array) -> Array:
        used = support(a)
        if 2 * used.size > self.n:  # zeros cost less than a copy of the rows that are used
            return self.adjoint(a)
        return np.asarray(self.features[used].T @ a[used], dtype=float)

    def lengths(self, mixing: Array) -> Array:
        return row_lengths(self.features, mixing)

    def shuffled(self, rng: np.random.Generator) -> Iterator[tuple[Index, Any]]:
        z = self.features
        yield np.arange(self.n), z.tocsr() if sp.issparse(z) else np.ascontiguousarray(z)

    def apply(self, a: Array, rows: Index | None = None, kernels: Index | None = None) -> Array:
        which = np.arange(self.m) if kernels is None else kernels
        here = self.features if rows is None else self.features[rows]
        z = self.coordinates(a)
        if a.ndim == 1 and kernels is None and here.shape[0] * z.size <= self.block_entries * 8:
            # all blocks in one sweep: entries times coordinates, summed block by block
            terms = np.zeros((z.size + 1, here.shape[0]))
            terms[:-1] = (here.multiply(z).toarray() if sp.issparse(here) else here * z).T
            sums = np.add.reduceat(terms, self.starts[:-1], axis=0)
            return sums * ((self.ranks > 0) * self.scale)[:, None]
        out = np.empty((which.size, here.shape[0], *a.shape[1:]))
        here = here.tocsc() if sp.issparse(here) else here
        for at, j in enumerate(which):
            block = slice(self.starts[j], self.starts[j + 1])
            out[at] = self.scale[j] * (here[:, block] @ z[block])
        return out

    def combine(self, weights: Array) -> Array:
        mixing = np.repeat(weights * self.scale, self.ranks)
        used = np.flatnonzero(mixing)
        z = self.features[:, used]
        if sp.issparse(z):
            root = np.sqrt(mixing[used])
            z = sp.csr_matrix(z.multiply(root), dtype=float)
            return row_products(z, z)
        return np.asarray((z * mixing[used]) @ z.T, dtype=float)

    def diag(self) -> Array:
        z = self.features
        if not sp.issparse(z):
            out = np.empty((self.m, self.n))
            for j in range(self.m):
                mine = z[:, self.starts[j] : self.starts[j + 1]]
                out[j] = np.einsum("ij,ij->i", mine, mine, dtype=float)
            return out * self.scale[:, None]
        # the sums of a block's columns, as a product with a matrix that says which column belongs to which block
        width = int(self.starts[-1])
        block_of = np.repeat(np.arange(self.m), self.ranks)
        belongs = sp.csr_matrix((np.ones(width), block_of, np.arange(width + 1)), shape=(width, self.m))
        squares = z.multiply(z).astype(float) @ belongs
        return np.asarray(squares.toarray(), dtype=float).T * self.scale[:, None]
