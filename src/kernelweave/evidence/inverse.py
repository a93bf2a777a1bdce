"""Inverses of positive definite matrices by halves: products of matrices do nearly all of the work."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import lapack

from .._numerics.namespace import namespace
from .._numerics.spectrum import TOLERANCE

__all__ = ["STEEP", "invert", "invert_whole"]

#: sizes that are left to a factorisation; a device wants fewer, larger calls
SMALL, SMALL_ON_DEVICE = 80, 128
#: condition beyond which halves lose too much: the rounding of a Schur complement grows with its square
STEEP = 1.0 / TOLERANCE
#: LAPACK's Cholesky factor and the inverse from it, by the type of the entries
LAPACK = {"f": (lapack.spotrf, lapack.spotri), "d": (lapack.dpotrf, lapack.dpotri)}


def invert(G: Any) -> Any:
    """Replace a symmetric matrix ``(n, n)`` of NumPy or a stack ``(p, n, n)`` of torch by its inverse.

    With blocks A, B', B, C and the Schur complement ``S = C - B A^-1 B'`` the inverse has the blocks
    ``A^-1 + W'S^-1 W``, ``-S^-1 W`` and ``S^-1``, where ``W = B A^-1``.

    Returns
    -------
    float or tensor of shape (p,)
        Logarithms of the determinants; not a number where a matrix is not positive definite.
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
    half = torch.linalg.solve_triangular(
        factor, torch.eye(G.shape[-1], dtype=G.dtype, device=G.device), upper=False
    )
    G[...] = half.swapaxes(-1, -2) @ half
    return torch.where(info == 0, log_det, torch.nan)
