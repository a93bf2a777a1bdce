"""Kernels that come as matrices: checked, and used where they lie."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._numerics.spectrum import check_semidefinite, check_symmetric
from ._base import Array
from .memory import parse_bytes, refuse
from .normalise import Normaliser
from .power import Chain, PowerBank, packed_offsets

__all__ = ["as_stack", "check_training_stack", "precomputed_bank"]


def as_stack(kernels: Any, what: str = "kernels", gaps: bool = False) -> np.ndarray | list[np.ndarray]:
    """Return an ``(m, a, b)`` float array (no copy where it is one), or a list of equally shaped matrices.

    ``gaps`` lets NaN pass, which marks samples that lack a kernel.
    """
    if isinstance(kernels, np.ndarray) and kernels.dtype != object:
        stack = kernels[None] if kernels.ndim == 2 else kernels
        if stack.ndim != 3:
            raise ValueError(
                f"precomputed {what} must have shape (m, n, n) or be a list of matrices, got {kernels.shape}"
            )
        matrices: Any = stack
    else:
        matrices = [np.asarray(matrix) for matrix in kernels]
        shapes = sorted({matrix.shape for matrix in matrices})
        if len(shapes) != 1 or len(shapes[0]) != 2:
            raise ValueError(
                f"precomputed {what} must be matrices of one shape, got shapes {shapes or 'none at all'}"
            )
    if len(matrices) == 0:
        raise ValueError("the bank is empty: no precomputed kernel was given")
    for j, matrix in enumerate(matrices):
        if matrix.dtype.kind not in "fiub":
            raise ValueError(f"precomputed kernel {j} is not numeric (dtype {matrix.dtype})")
        if not np.all(np.isfinite(matrix) | np.isnan(matrix) if gaps else np.isfinite(matrix)):
            raise ValueError(f"precomputed kernel {j} contains NaN or infinite entries")
    return matrices


def check_training_stack(
    matrices: Any, n: int | None, check_psd: bool = True, names: list[str] | None = None
) -> None:
    """Raise where a training kernel is not square, not symmetric, or not positive semi-definite."""
    rows, cols = matrices[0].shape
    if rows != cols:
        raise ValueError(
            f"precomputed training kernels must be square, got {rows} x {cols}; inside cross-validation pass "
            "kernels=kernelweave.kernels.held(stack) and sample indices as X, so that rows and columns are cut together"
        )
    if n is not None and rows != n:
        raise ValueError(
            f"precomputed kernels are {rows} x {cols}, but y has {n} entries; inside cross-validation pass "
            "kernels=kernelweave.kernels.held(stack) and sample indices as X"
        )
    for j, matrix in enumerate(matrices):
        name = names[j] if names else f"precomputed kernel {j}"
        matrix = _of_those_who_have_it(matrix, name)
        check_symmetric(matrix, name)
        if check_psd:
            check_semidefinite(matrix, name)


def _of_those_who_have_it(matrix: np.ndarray, name: str) -> np.ndarray:
    """Return the part of samples that have a kernel; the others have NaN in their rows and columns."""
    gone = np.isnan(np.diagonal(matrix))
    if not gone.any():
        return matrix
    if not (np.isnan(matrix[gone]).all() and np.isnan(matrix[:, gone]).all()):
        raise ValueError(f"{name}: samples that lack it must have NaN in their whole row and column")
    here = np.flatnonzero(~gone)
    return matrix[np.ix_(here, here)]


def precomputed_bank(
    matrices: Any,
    *,
    normalize: str | None = "trace",
    center: bool = False,
    memory_budget: int | float | str | None = None,
    threads: int = 1,
) -> tuple[PowerBank, Normaliser]:
    """Bank on matrices in memory: used in place where they only need a factor, else packed copies."""
    from .._numerics.passes import pack_rows

    m, n = len(matrices), matrices[0].shape[0]
    normaliser = Normaliser.empty(normalize, center, m, n, [f"precomputed kernel {j}" for j in range(m)])
    if normaliser.mode == "cosine":
        raise ValueError(
            "normalize='cosine' needs k(x, x) of new samples, which precomputed rows do not hold: "
            "normalise the matrices yourself, or use kernelweave.kernels.held(stack)"
        )
    chains = [Chain((j,), (0,), (0,)) for j in range(m)]
    in_place = isinstance(matrices, np.ndarray) and matrices.dtype in (np.float64, np.float32)
    in_place = in_place and matrices.flags.c_contiguous and not center
    budget = parse_bytes(memory_budget)
    extra = 16 * n * n + (0 if in_place else m * (n * (n + 1) // 2) * 8)
    if extra > budget:
        raise refuse(
            f"fitting on {m} precomputed kernels of {n} samples", extra, budget,
            ["raise memory_budget", "pass one C-contiguous (m, n, n) array, which is used in place", "fewer samples"],
        )  # fmt: skip
    if in_place:
        for j in range(m):
            normaliser.learn(j, np.diagonal(matrices[j]).astype(float))
        _refuse_zero(normaliser)
        store = matrices.reshape(m, n * n)
        return PowerBank(
            store, np.arange(n, dtype=np.intp) * n, chains, normaliser.scale, threads=threads
        ), normaliser
    offsets = packed_offsets(n)
    store = np.empty((m, n * (n + 1) // 2))
    everyone = np.arange(n)
    for j in range(m):
        entries = np.array(matrices[j], dtype=float)
        means: Array | None = entries.mean(axis=1) if center else None
        normaliser.learn(j, np.diagonal(entries).copy(), means)
        pack_rows(normaliser.train_block(j, entries, everyone, everyone), 0, offsets, store[j])
    _refuse_zero(normaliser)
    return PowerBank(store, offsets, chains, threads=threads), normaliser


def _refuse_zero(normaliser: Normaliser) -> None:
    """Refuse a matrix of zeros: computed beforehand, it is a mistake."""
    zero = np.flatnonzero(normaliser.scale == 0.0)
    if zero.size:
        what = "is constant, so nothing is left after centring it" if normaliser.center else "has trace zero"
        raise ValueError(f"{normaliser.names[zero[0]]!r} {what}: drop it, or use normalize=None")
