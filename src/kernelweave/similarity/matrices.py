"""Similarity matrices that are no kernels: checked, made symmetric, made comparable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..exceptions import KernelWeaveWarning, warn_at_caller

__all__ = ["as_similarities", "asymmetry", "positive_scale", "symmetrised"]

#: relative asymmetry below which the two halves are the same up to rounding
ROUNDING = 1e-6


def asymmetry(matrix: np.ndarray) -> float:
    """``|S - S'|_F / |S + S'|_F``: 0 for a symmetric matrix, 1 where the halves share nothing on average.

    >>> asymmetry(np.array([[1.0, 2.0], [0.0, 1.0]])).__round__(3)
    0.707
    """
    size = float(np.linalg.norm(matrix + matrix.T))
    return float(np.linalg.norm(matrix - matrix.T)) / max(size, np.finfo(float).tiny)


def as_similarities(X: Any, what: str = "similarities") -> np.ndarray:
    """Return one matrix, a list of them or an array of three dimensions as ``(m, rows, columns)``.

    >>> as_similarities(np.eye(3)).shape
    (1, 3, 3)
    """
    try:
        stack = np.asarray(X, dtype=float)
    except (TypeError, ValueError) as error:
        shapes = [np.shape(matrix) for matrix in X] if isinstance(X, Sequence) else "no array"
        raise ValueError(f"{what} must be matrices of numbers and of one shape, got {shapes}") from error
    stack = stack[None] if stack.ndim == 2 else stack
    if stack.ndim != 3 or stack.size == 0:
        raise ValueError(f"{what} must be one matrix, a list of matrices or (m, rows, n), got {np.shape(X)}")
    if not np.isfinite(stack).all():
        worst = int(np.argmax(~np.isfinite(stack).all(axis=(1, 2))))
        raise ValueError(f"{what}: matrix {worst} contains NaN or infinity")
    return stack


def symmetrised(stack: np.ndarray, names: Sequence[str]) -> np.ndarray:
    """Return ``(S + S') / 2`` of square matrices, with a warning where that changes more than rounding."""
    if stack.shape[1] != stack.shape[2]:
        raise ValueError(
            f"similarities of the training samples must be square, (n, n) or (m, n, n), got {stack.shape[-2:]}"
        )
    for name, S in zip(names, stack, strict=True):
        if (skew := asymmetry(S)) > ROUNDING:
            warn_at_caller(
                f"{name} is not symmetric: |S - S'| is {100 * skew:.2g} % of |S + S'|. (S + S') / 2 is used",
                KernelWeaveWarning,
            )
    return 0.5 * (stack + stack.transpose(0, 2, 1))


def positive_scale(values: np.ndarray, name: str) -> float:
    """``n / tr(S_+)`` from the eigenvalues: the factor that gives the positive part a mean diagonal of one."""
    positive = float(np.sum(values[values > 0]))
    size = float(np.max(np.abs(values)))
    if size == 0.0:
        raise ValueError(f"{name} is zero: it says nothing about any sample")
    if positive <= 1e-12 * size * values.size:
        raise ValueError(
            f"{name} has no positive eigenvalue (largest {values.max():.3g}): it looks like a dissimilarity; pass "
            "its negative, or exp(-distance)"
        )
    return values.size / positive
