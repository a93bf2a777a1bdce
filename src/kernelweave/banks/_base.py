"""Two contracts: of a bank, m kernels bound to n samples, and of the storage that it reads.

The (m, n, n) tensor need not exist.  A storage has ``block``, and whatever else it answers more quickly than from
blocks; it knows nothing of passes, factors or centres.  A bank counts its passes: logical entries of the tensor read,
over ``m n^2``.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._numerics.namespace import as_like, namespace
from .._numerics.stopping import check_time
from .._typing import Array, Index
from .decide import Decision

#: seconds that the eigenvectors of a matrix take, over the cube of its size, where nothing is slow
EIGH = 1e-10

if TYPE_CHECKING:
    from ..kernels import Kernel
    from .bound import BoundKernels, Term
    from .completion import Completion
    from .lowrank import Features


def support(a: Array) -> Index:
    """Return the rows of ``a`` (``(n,)`` or ``(n, k)``) that are not zero."""
    return np.flatnonzero(a if a.ndim == 1 else np.any(a != 0, axis=1))


class Storage(ABC):
    """Values of m kernels on n samples, wherever they are: in memory, computed when read, on a device, on workers.

    ``block`` is all that a storage must have.  The other methods derive from it, and are overridden where they can be
    quicker; each reads on the support of its argument alone.

    Attributes
    ----------
    n, m : int
        Samples and kernels.
    nbytes : int
        Bytes that are stored.
    """

    nbytes: int = 0
    #: entries of a temporary block in the derived methods
    block_entries: int = 4_000_000
    #: whether explicit features are computed again in every sweep, because they would not fit into memory
    streams: bool = False
    #: whether ``mixed`` gives something to multiply with, and no matrix: see ``pairs.MixedProducts``
    by_products: bool = False
    #: whether kernels live outside the host's memory, and inner problems are solved there
    on_device: bool = False
    #: relative error of a product beyond that of double precision
    rounding: float = 0.0
    #: how the kernels are kept: what the choice of a solver goes by
    decision: Decision = Decision()
    #: bytes of an entry of a mixed kernel
    mixed_itemsize: int = 8
    #: cost of the kernels on a cluster, None where they are not on one
    cluster_cost: Any = None

    def __init__(self, n: int, m: int) -> None:
        self.n = n
        self.m = m

    @abstractmethod
    def block(self, rows: Index, cols: Index, kernels: Index) -> Array:
        """Entries ``(len(kernels), len(rows), len(cols))`` in double precision; a kernel may be asked for twice."""

    def _blocks(self, rows: Index, cols: Index, kernels: Index) -> Iterator[tuple[slice, slice, Array]]:
        """Blocks that cover ``kernels x rows x cols``, as (kernel slice, row slice, entries)."""
        height = max(1, self.block_entries // max(1, cols.size))
        depth = max(1, self.block_entries // max(1, min(height, rows.size) * cols.size))
        for top in range(0, rows.size, height):
            part = slice(top, min(top + height, rows.size))
            for first in range(0, kernels.size, depth):
                which = slice(first, min(first + depth, kernels.size))
                yield which, part, self.block(rows[part], cols, kernels[which])

    def apply(self, a: Array, rows: Index | None = None, kernels: Index | None = None) -> Array:
        """Products ``K_j a`` at ``rows``: ``(m, rows)``, or ``(m, rows, k)`` for ``a`` of shape ``(n, k)``."""
        where = np.arange(self.n) if rows is None else rows
        which = np.arange(self.m) if kernels is None else kernels
        used = support(a)
        out = np.zeros((which.size, where.size, *a.shape[1:]))
        for k, r, entries in self._blocks(where, used, which):
            out[k, r] = entries @ a[used]
        return out

    def quad(self, a: Array, kernels: Index | None = None) -> Array:
        """Quadratic forms ``a' K_j a``, summed over the columns of ``a``."""
        used = support(a)
        products = self.apply(a, used, kernels)
        return np.asarray(np.sum(products * a[used], axis=tuple(range(1, products.ndim))))

    def mix_block(self, weights: Array, rows: Index, cols: Index) -> Array:
        """Some rows and columns of ``sum_j weights_j K_j``."""
        active = np.flatnonzero(weights)
        out = np.zeros((rows.size, cols.size))
        for k, r, entries in self._blocks(rows, cols, active):
            out[r] += np.tensordot(weights[active[k]], entries, axes=1)
        return out

    def combine(self, weights: Array) -> Array:
        """``sum_j weights_j K_j``, ``(n, n)``."""
        everyone = np.arange(self.n)
        return self.mix_block(weights, everyone, everyone)

    @property
    def mixed_entries(self) -> float:
        """Entries of a kernel that ``combine`` reads."""
        return float(self.n) ** 2

    def mixed(self, weights: Array, rows: Index | None = None) -> Any:
        """Mixed kernel of all or some samples as an array of the storage's own kind, for inner solvers."""
        return self.combine(weights) if rows is None else self.mix_block(weights, rows, rows)

    def mix_product(self, weights: Array, a: Array) -> Array:
        """``sum_j weights_j K_j a``, over the kernels that have weight."""
        active = np.flatnonzero(weights)
        return np.tensordot(weights[active], self.apply(a, kernels=active), axes=1)

    def judged(self, weights: Array, a: Array) -> tuple[Array, Array] | None:
        """``quad(a)`` and ``mix_product(weights, a)`` from one pass; None where two reads are as good."""
        return None

    def image(self, a: Array) -> Any:
        """Return the image of ``a`` after one pass: what first-order methods keep of a product.

        It is linear in a, so that it can be extrapolated with it, and yields the quadratic forms and, later, any
        mixture without another pass.  All products (m, n) in general; explicit features have something far smaller.
        """
        return self.apply(a)

    def image_quad(self, image: Any, a: Any) -> Any:
        """Quadratic forms ``a' K_j a`` from the image of a."""
        return (image * a).sum(axis=tuple(range(1, image.ndim)))

    def image_mix(self, image: Any, weights: Array) -> Any:
        """``sum_j weights_j K_j a`` from the image of a."""
        xp = namespace(image)
        return xp.tensordot(as_like(weights, image), image, axes=1)

    def diag(self) -> Array:
        """Diagonals, ``(m, n)``."""
        out = np.empty((self.m, self.n))
        kernels = np.arange(self.m)
        for i in range(self.n):
            out[:, i] = self.block(np.array([i]), np.array([i]), kernels)[:, 0, 0]
        return out

    def mean_diagonals(self, samples: Index | None = None) -> Array:
        """Means of the diagonals over all or some samples, ``(m,)``."""
        diagonals = self.diag()
        return np.asarray(np.mean(diagonals if samples is None else diagonals[:, samples], axis=1))

    def exact(self) -> Storage | None:
        """Return the same kernels in double precision, itself where they are; None where it cannot tell."""
        return None

    def computed(self) -> Storage:
        """Return the same kernels computed in every pass, where half precision is stored."""
        return self


class Bank(Storage):
    """m kernel matrices on the same n samples, and a count of what is read of them: what problems and solvers ask.

    Attributes
    ----------
    n, m : int
        Samples and kernels.
    passes : float
        Entries read so far, in units of the whole tensor.
    """

    #: explicit features of all kernels, where they are in memory: an array or a CSR matrix
    features: Any = None
    #: whether kernels were completed for samples that lack a view, so that they are not those of the samples alone
    completed: bool = False
    #: kernels and samples behind the bank, where values of new samples come from
    source: BoundKernels | Completion | None = None

    def __init__(self, n: int, m: int) -> None:
        super().__init__(n, m)
        self.passes = 0.0

    def count(self, entries: float) -> None:
        """Add ``entries`` of the logical tensor to the passes."""
        self.passes += entries / (self.m * float(self.n) ** 2)

    @abstractmethod
    def judged(self, weights: Array, a: Array) -> tuple[Array, Array]:
        """Quadratic forms of a and the mixed kernel's product with it: all that a certificate reads of a bank."""

    @abstractmethod
    def exact(self) -> Bank | None:
        """Return the bank in double precision, itself where it is; None where the bank alone cannot tell."""

    @abstractmethod
    def computed(self) -> Bank:
        """Return the bank with entries that are computed in every pass, where half precision is stored."""

    @abstractmethod
    def select(self, kernels: Sequence[int] | Index) -> Bank:
        """Return the bank of some of the kernels; storage is shared."""

    @abstractmethod
    def among(self, samples: Index) -> Bank:
        """Return the kernels among some of the samples; storage is shared."""

    @abstractmethod
    def rescaled(self, factors: Array) -> Bank:
        """Return the kernels times a factor each; storage is shared."""

    @abstractmethod
    def recentred(self, samples: Index) -> Bank:
        """Return the kernels with the origin of feature space at the mean of some samples; storage is shared."""

    @abstractmethod
    def by_columns(self, columns: dict[int, tuple[Array, float]]) -> Bank | None:
        """Return the bank with exact sums for kernels that are known by columns; None where no kernel is."""

    @property
    def kernels(self) -> list[Kernel]:
        """Settled kernels; none where the user computes them."""
        return [] if self.source is None else self.source.kernels

    @property
    def completion(self) -> Completion | None:
        """What a function needs to know of samples that lack kernels; None where none can."""
        return None if self.source is None else self.source.completion

    @abstractmethod
    def restrict(self, kernels: Index, weights: Array, coef: Array) -> list[Term]:
        """Return what predicts: the terms of a function of some kernels; ``weights`` are those of all."""

    def rounding_lengths(self) -> Array:
        """Lengths ``(m, n)`` of the samples by which entries were rounded: zero where no sum suffers from that."""
        return np.sqrt(np.maximum(self.diag(), 0.0))

    def rows(self, index: Index, kernels: Index | None = None) -> Array:
        """Whole rows of the kernels, ``(m, len(index), n)``."""
        which = np.arange(self.m) if kernels is None else kernels
        self.count(float(which.size) * len(index) * self.n)
        return self.block(np.asarray(index), np.arange(self.n), which)

    def factors(self, tol: float = 1e-12) -> Features:
        """Explicit features of every kernel, by eigendecomposition; eigenvalues below ``tol`` of the largest drop."""
        from .lowrank import FeatureMatrix, Features

        everyone = np.arange(self.n)
        blocks, starts = [], [0]
        longest = 0.0
        for j in range(self.m):
            # before one was timed: what the quickest machines need
            check_time(needed=longest or EIGH * float(self.n) ** 3, preparing=True)
            began = time.perf_counter()
            values, vectors = np.linalg.eigh(self.block(everyone, everyone, np.array([j]))[0])
            kept = values > tol * max(values[-1], 0.0)
            blocks.append(vectors[:, kept] * np.sqrt(values[kept]))
            starts.append(starts[-1] + int(np.count_nonzero(kept)))
            longest = max(longest, time.perf_counter() - began)
        return Features(FeatureMatrix(np.hstack(blocks), starts))
