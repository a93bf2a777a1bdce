"""Inverses of mixtures of kernels, for targets that share them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from .._numerics.matrices import TOLERANCE
from .._numerics.namespace import cast, namespace, to_numpy
from .._typing import Array
from .design import Design, Stored

#: sizes that are left to a factorisation; a device wants fewer, larger calls
SMALL, SMALL_ON_DEVICE = 80, 128
#: condition beyond which halves lose too much: the rounding of a Schur complement grows with its square
STEEP = 1.0 / TOLERANCE
#: LAPACK's Cholesky factor and the inverse from it, by the type of the entries
LAPACK = {"f": (lapack.spotrf, lapack.spotri), "d": (lapack.dpotrf, lapack.dpotri)}


def invert(G: Any) -> Any:
    """Replace a symmetric matrix ``(n, n)`` of NumPy or a stack ``(p, n, n)`` of torch by its inverse.

    With blocks A, B', B, C and the Schur complement ``S = C - B A^-1 B'`` the inverse has the blocks
    ``A^-1 + W'S^-1 W``, ``-S^-1 W`` and ``S^-1``, where ``W = B A^-1``.  Returns the logarithms of the determinants,
    not a number where a matrix is not positive definite.
    """
    n = G.shape[-1]
    on_host = isinstance(G, np.ndarray)
    if n <= (SMALL if on_host else SMALL_ON_DEVICE):
        return _small(G) if on_host else _small_on_device(G)
    half = n // 2
    A, B, C = G[..., :half, :half], G[..., half:, :half], G[..., half:, half:]
    log_det = invert(A)
    W = B @ A
    C -= W @ B.swapaxes(-1, -2)
    log_det = log_det + invert(C)
    turned = C @ W
    A += W.swapaxes(-1, -2) @ turned
    B[...] = -turned
    G[..., :half, half:] = B.swapaxes(-1, -2)
    return log_det


def invert_whole(G: Any) -> Any:
    """Like ``invert``, by one factorisation: for one matrix of any condition.

    Where there is none, the diagonal is raised by ``TOLERANCE`` of its mean: by so much rounding may have lowered the
    eigenvalues of a kernel that is positive semidefinite.
    """
    small = _small if isinstance(G, np.ndarray) else _small_on_device
    given = G + 0.0
    log_det = small(G)
    if np.isfinite(float(log_det)):
        return log_det
    places = np.arange(G.shape[-1])
    given[..., places, places] *= 1.0 + TOLERANCE
    G[...] = given
    return small(G)


def _small(G: np.ndarray) -> float:
    factorise, finish = LAPACK[G.dtype.char]
    factor, info = factorise(G, lower=0, clean=1)
    if info:
        return float("nan")
    log_det = 2.0 * float(np.sum(np.log(factor.diagonal())))
    upper, _ = finish(factor, lower=0, overwrite_c=1)
    diagonal = upper.diagonal().copy()
    np.add(upper, upper.T, out=G)
    np.fill_diagonal(G, diagonal)
    return log_det


def _small_on_device(G: Any) -> Any:
    torch = namespace(G)
    factor, info = torch.linalg.cholesky_ex(G)
    log_det = 2.0 * torch.sum(torch.log(torch.diagonal(factor, dim1=-2, dim2=-1)), dim=-1)
    identity = torch.eye(G.shape[-1], dtype=G.dtype, device=G.device)
    half = torch.linalg.solve_triangular(factor, identity, upper=False)
    G[...] = half.swapaxes(-1, -2) @ half
    return torch.where(info == 0, log_det, torch.nan)


#: condition up to which single precision is enough to choose by
WELL_CONDITIONED = 1e4


class Points:
    """``M``, which is ``V = G^-1`` of ``G = I + sum_j d_j K_j`` without the direction of the intercept, for weights d.

    The first ``counts[0]`` columns of a table of targets belong to the first row of ``weights (p, m)``, and so on.
    ``inverse (p, n, n)`` are the matrices M, ``log_det`` is ``log |G|``.
    """

    def __init__(
        self, design: Design, weights: Array, counts: NDArray[np.int64], single: bool = False
    ) -> None:
        self.design, self.weights, self.counts = design, weights, counts
        self.ends = np.concatenate([[0], np.cumsum(counts)])
        self.where = np.repeat(np.arange(len(counts)), counts)  # point of every target
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
            pairs = zip(self.inverse, steep, strict=True)
            self.log_det = np.array([(invert_whole if one else invert)(G) for G, one in pairs])
        elif not np.any(steep):
            self.log_det = to_numpy(cast(invert(self.inverse), xp.float64))
        else:
            each = [(invert_whole if one else invert)(self.inverse[p : p + 1]) for p, one in enumerate(steep)]
            self.log_det = to_numpy(cast(xp.concat(each), xp.float64))
        if not np.all(np.isfinite(self.log_det)):
            raise np.linalg.LinAlgError("a mixture of kernels is not positive semidefinite")
        if intercept:
            self.inverse[:, k, k] = 0.0
            self.inverse = design.reflected(self.inverse)

    def members(self, p: int) -> slice:
        """Targets of a point."""
        return slice(int(self.ends[p]), int(self.ends[p + 1]))

    def groups(self) -> Iterator[tuple[slice, slice | NDArray[np.intp], int]]:
        """Points, their targets one point after the other, and the targets of each, to be worked on together."""
        if self.design.on_host:
            for p, count in enumerate(self.counts):
                yield slice(p, p + 1), self.members(p), int(count)
            return
        # a device wants many: neighbours whose numbers of targets are within a factor of two, filled up with their own
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
            part = cast(part.swapaxes(0, 2), self.flat.dtype).reshape(-1, n, c * width)
            solved = cast(self.inverse[points] @ part, wide).reshape(-1, n, c, width)
            out[:, :, places] = solved.swapaxes(0, 2).reshape(c, n, -1)
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

    def leverage(self) -> Array:
        """Diagonals of M, ``(p, n)``."""
        n, rows = self.design.n, self.inverse.reshape(len(self.counts), -1)
        return np.asarray(to_numpy(rows[:, :: n + 1]), dtype=float)
