"""The contract of a bank: m kernels bound to n samples, the (m, n, n) tensor that need not exist.

``block`` is the one abstract method; everything else derives from it and is overridden where storage makes it quicker.
A bank counts its passes: logical entries of the tensor read, over ``m n^2``.
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

if TYPE_CHECKING:
    from .lowrank import FeatureBank


def support(a: Array) -> Index:
    """Return the rows of ``a`` (``(n,)`` or ``(n, k)``) that are not zero."""
    return np.flatnonzero(a if a.ndim == 1 else np.any(a != 0, axis=1))


class Bank(ABC):
    """m kernel matrices on the same n samples.

    Attributes
    ----------
    n, m : int
        Samples and kernels.
    passes : float
        Entries read so far, in units of the whole tensor.
    """

    #: entries of a temporary block in the derived methods
    block_entries: int = 4_000_000
    #: whether explicit features are computed again in every sweep, because they would not fit into memory
    streams: bool = False
    #: whether kernels live outside the host's memory, and inner problems are solved there
    on_device: bool = False
    #: relative error of a product beyond that of double precision
    rounding: float = 0.0
    #: whether kernels were completed for samples that lack a view, so that they are not those of the samples alone
    completed: bool = False
    #: how the kernels are kept: what the choice of a solver goes by
    decision: Decision = Decision()
    #: bytes of an entry of a mixed kernel
    mixed_itemsize: int = 8
    #: bytes that the stored kernels take
    nbytes: int = 0
    #: cost of the bank on a cluster, None where it is not on one
    cluster_cost: Any = None

    def __init__(self, n: int, m: int) -> None:
        self.n = n
        self.m = m
        self.passes = 0.0

    @abstractmethod
    def block(self, rows: Any, cols: Any, kernels: Index) -> Array:
        """Entries ``(len(kernels), len(rows), len(cols))``; not counted as a pass."""

    def count(self, entries: float) -> None:
        """Add ``entries`` of the logical tensor to the passes."""
        self.passes += entries / (self.m * float(self.n) ** 2)

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
        self.count(float(which.size) * where.size * used.size)
        out = np.zeros((which.size, where.size, *a.shape[1:]))
        for k, r, entries in self._blocks(where, used, which):
            out[k, r] = entries @ a[used]
        return out

    def quad(self, a: Array, kernels: Index | None = None) -> Array:
        """Quadratic forms ``s_j = a' K_j a``, summed over the columns of ``a``; read on the support alone."""
        used = support(a)
        products = self.apply(a, used, kernels)
        return np.asarray(np.sum(products * a[used], axis=tuple(range(1, products.ndim))))

    def combine(self, weights: Array) -> Array:
        """Mixed kernel ``sum_j weights_j K_j``, ``(n, n)``."""
        everyone = np.arange(self.n)
        return self.mix_block(weights, everyone, everyone)

    def mixed(self, weights: Array, rows: Index | None = None) -> Any:
        """Mixed kernel of all or some samples as an array of the bank's own kind, for inner solvers."""
        return self.combine(weights) if rows is None else self.mix_block(weights, rows, rows)

    def mix_block(self, weights: Array, rows: Index, cols: Index) -> Array:
        """Some rows and columns of the mixed kernel."""
        active = np.flatnonzero(weights)
        self.count(float(active.size) * rows.size * cols.size)
        out = np.zeros((rows.size, cols.size))
        for k, r, entries in self._blocks(rows, cols, active):
            out[r] += np.tensordot(weights[active[k]], entries, axes=1)
        return out

    def mix_product(self, weights: Array, a: Array) -> Array:
        """``sum_j weights_j K_j a``, over the kernels that have weight."""
        active = np.flatnonzero(weights)
        if active.size == 0:
            return np.zeros(a.shape)
        return np.tensordot(weights[active], self.apply(a, kernels=active), axes=1)

    def judged(self, weights: Array, a: Array) -> tuple[Array, Array]:
        """Quadratic forms of a and the mixed kernel's product with it: all that a certificate reads of a bank."""
        return self.quad(a), self.mix_product(weights, a)

    def exact(self) -> Bank | None:
        """Return the bank in double precision, itself where it is; None where the bank alone cannot tell."""
        return None

    def image(self, a: Array) -> Any:
        """Return the image of ``a`` after one pass over the bank: what first-order methods keep of a product.

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

    def rounding_lengths(self) -> Array:
        """Lengths ``(m, n)`` of the samples by which entries were rounded: zero where no sum suffers from that."""
        return np.sqrt(np.maximum(self.diag(), 0.0))

    def rows(self, index: Index, kernels: Index | None = None) -> Array:
        """Whole rows of the kernels, ``(m, len(index), n)``."""
        which = np.arange(self.m) if kernels is None else kernels
        self.count(float(which.size) * len(index) * self.n)
        return self.block(np.asarray(index), np.arange(self.n), which)

    def factors(self, tol: float = 1e-12) -> FeatureBank:
        """Explicit features of every kernel, by eigendecomposition; eigenvalues below ``tol`` of the largest drop."""
        from .lowrank import LowRankBank

        everyone = np.arange(self.n)
        blocks, starts = [], [0]
        longest = 0.0
        for j in range(self.m):
            check_time(needed=longest, preparing=True)
            began = time.perf_counter()
            values, vectors = np.linalg.eigh(self.block(everyone, everyone, np.array([j]))[0])
            kept = values > tol * max(values[-1], 0.0)
            blocks.append(vectors[:, kept] * np.sqrt(values[kept]))
            starts.append(starts[-1] + int(np.count_nonzero(kept)))
            longest = max(longest, time.perf_counter() - began)
        return LowRankBank(np.hstack(blocks), starts)

    def select(self, kernels: Sequence[int] | Index) -> Bank:
        """Return the bank of some of the kernels; storage is shared where it can be."""
        from .views import Selection

        return Selection(self, np.asarray(kernels, dtype=np.intp))
