"""Inverses of mixtures of kernels, for targets that share them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from .._numerics.namespace import cast, namespace, to_numpy
from .design import Array, Design, Stored, reordered
from .inverse import STEEP, invert, invert_whole

__all__ = ["Points"]

#: condition up to which single precision is enough to choose by
WELL_CONDITIONED = 1e4


class Points:
    """``V = G^-1`` of ``G = I + sum_j d_j K_j`` for some weights d, and the targets that are judged there.

    Parameters
    ----------
    design : Design
    weights : array of shape (p, m)
    counts : array of shape (p,)
        Targets of every point: the first columns of a table of targets belong to the first point, and so on.
    single : bool, default=False
        Whether in single precision.

    Attributes
    ----------
    inverse : array of shape (p, n, n)
        M: V without the direction of the intercept.
    log_det : array of shape (p,)
        ``log |G|``.
    """

    def __init__(
        self, design: Design, weights: Array, counts: NDArray[np.int64], single: bool = False
    ) -> None:
        self.design, self.weights, self.counts = design, weights, counts
        self.ends = np.concatenate([[0], np.cumsum(counts)])
        xp = namespace(design.kernels)
        self.flat = design.flat_single if single else design.flat
        mixed = (cast(design.store(weights), self.flat.dtype) @ self.flat).reshape(-1, design.n, design.n)
        intercept, k = bool(np.any(design.direction)), design.pivot
        if intercept:
            # the direction of the intercept is the coordinate k, and has nothing to do with the others
            mixed = design.reflected(mixed)
            mixed[:, k, :] = 0.0
            mixed[:, :, k] = 0.0
        mixed.reshape(len(weights), -1)[:, :: design.n + 1] += 1.0
        self.inverse = mixed
        # kernels have a mean diagonal of one, so that no eigenvalue is above n
        steep = 1.0 + design.n * np.sum(weights, axis=1) > STEEP
        if design.on_host:
            self.log_det = np.array([_inverted(G, wild) for G, wild in zip(self.inverse, steep, strict=True)])
        elif not np.any(steep):
            self.log_det = to_numpy(cast(invert(self.inverse), xp.float64))
        else:
            each = [_inverted(self.inverse[p : p + 1], steep[p]) for p in range(len(steep))]
            self.log_det = to_numpy(cast(xp.concat(each), xp.float64))
        if not np.all(np.isfinite(self.log_det)):
            raise np.linalg.LinAlgError("a mixture of kernels is not positive semidefinite")
        if intercept:
            self.inverse[:, k, k] = 0.0
            self.inverse = design.reflected(self.inverse)

    @staticmethod
    def well_conditioned(design: Design, weights: Array) -> NDArray[np.bool_]:
        """Whether mixtures of weights ``(p, m)`` can be inverted in single precision."""
        return 1.0 + weights @ design.largest <= WELL_CONDITIONED

    @property
    def where(self) -> NDArray[np.intp]:
        """Point of every target."""
        return np.repeat(np.arange(len(self.counts)), self.counts)

    def members(self, p: int) -> slice:
        """Targets of a point."""
        return slice(int(self.ends[p]), int(self.ends[p + 1]))

    def groups(self) -> Iterator[tuple[slice, slice | NDArray[np.intp], int]]:
        """Points, their targets one point after the other, and the targets of each, to be worked on together.

        In memory one point at a time.  A device wants many: neighbours whose numbers of targets are within a factor of
        two go together, the shorter ones filled up with targets of their own.
        """
        if self.design.on_host:
            for p, count in enumerate(self.counts):
                yield slice(p, p + 1), self.members(p), int(count)
            return
        first = 0
        while first < len(self.counts):
            width = 1 << int(self.counts[first] - 1).bit_length()
            last = first + 1
            while last < len(self.counts) and width // 2 < self.counts[last] <= width:
                last += 1
            counts = self.counts[first:last, None]
            places = self.ends[first:last, None] + np.minimum(np.arange(counts.max()), counts - 1)
            yield slice(first, last), places.ravel(), places.shape[1]
            first = last

    def apply(self, B: Stored) -> Stored:
        """``M B`` for ``(c, n, t)``, every target with the M of its point, in double precision."""
        c, n, _ = B.shape
        wide, out = B.dtype, namespace(B).empty_like(B)
        for points, places, width in self.groups():
            part = B[:, :, places].reshape(c, n, -1, width)
            part = cast(reordered(part, (2, 1, 0, 3)), self.flat.dtype).reshape(-1, n, c * width)
            solved = cast(self.inverse[points] @ part, wide).reshape(-1, n, c, width)
            out[:, :, places] = reordered(solved, (2, 1, 0, 3)).reshape(c, n, -1)
        return out

    def solve(self, Y: Stored) -> tuple[Stored, Stored]:
        """Coefficients ``a = M Y`` of targets ``(n, t)``, each at its point, and ``K_j a``, ``(m, n, t)``.

        In single precision a is refined once by its residual in double; the products are those of before.
        """
        solved = self.apply(Y[None])[0]
        products = self.design.times(solved)
        if self.flat.dtype != Y.dtype:
            left = self.design.residual(Y, solved, self.weights[self.where], products)
            solved = solved + self.apply(left[None])[0]
        return solved, products

    def traces(self) -> Array:
        """``tr(M K_j)``, ``(p, m)``."""
        traces = self.inverse.reshape(len(self.counts), -1) @ self.flat.T
        return np.asarray(to_numpy(traces), dtype=float)

    def leverage(self) -> Array:
        """Diagonals of M, ``(p, n)``."""
        n, rows = self.design.n, self.inverse.reshape(len(self.counts), -1)
        return np.asarray(to_numpy(rows[:, :: n + 1]), dtype=float)

    def matrix(self, p: int) -> Stored:
        """M of one point in double precision."""
        return cast(self.inverse[p], self.design.kernels.dtype)


def _inverted(G: Stored, steep: bool) -> Stored:
    return invert_whole(G) if steep else invert(G)
