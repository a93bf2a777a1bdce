"""Distances between rows, exact where it shows: zero for equal rows, never negative, symmetric to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from .._numerics.euclid import CANCELLED, check_norms

__all__ = ["cityblock", "inner", "row_norms", "sqeuclidean"]

# up to here sums of explicit differences beat the matrix product, and they are exact
FEW_COLUMNS = 4
ENTRIES_AT_ONCE = 1 << 20


def row_norms(A: Any) -> np.ndarray:
    """Return the squared Euclidean norm of every row."""
    if sparse.issparse(A):
        return np.asarray(A.multiply(A).sum(axis=1), dtype=np.float64).ravel()
    return np.einsum("ij,ij->i", A, A)


def inner(A: Any, B: Any) -> np.ndarray:
    """Return ``A @ B.T`` dense; symmetric to the bit when A is B (BLAS uses syrk, CSR adds in one order)."""
    product = A @ B.T
    return product.toarray() if sparse.issparse(product) else product


def sqeuclidean(A: Any, B: Any) -> np.ndarray:
    """Return the squared Euclidean distances between the rows of A and of B.

    The expanded square ``|a|^2 + |b|^2 - 2 a.b`` runs at the speed of BLAS but loses close pairs to
    cancellation; those few pairs are computed again from their differences.

    >>> import numpy as np
    >>> A = np.array([[1e8, 1.0], [1e8, 2.0]])
    >>> sqeuclidean(A, A)
    array([[0., 1.],
           [1., 0.]])
    """
    if A.shape[1] <= FEW_COLUMNS:
        return _by_columns(_dense(A), _dense(B) if B is not A else None)
    if not sparse.issparse(A) and not sparse.issparse(B):
        # distances do not change with the origin, but the digits lost do
        centre = B.mean(axis=0)
        A, B = (A - centre, None) if A is B else (A - centre, B - centre)
        B = A if B is None else B
    left = row_norms(A)
    right = left if A is B else row_norms(B)
    check_norms(left, right)
    squared = inner(A, B)
    step = max(1, ENTRIES_AT_ONCE // max(1, len(right)))
    for start in range(0, len(left), step):  # in blocks of rows: no temporary as large as the result
        block = squared[start : start + step]
        scale = np.add.outer(left[start : start + step], right)
        block *= -2.0
        block += scale
        scale *= CANCELLED
        rows, columns = np.nonzero(block <= scale)
        _again(block, rows, columns, A[start : start + step], B)
    return squared


def _again(block: np.ndarray, rows: np.ndarray, columns: np.ndarray, A: Any, B: Any) -> None:
    """Overwrite some entries with sums of squared differences."""
    step = max(1, ENTRIES_AT_ONCE // A.shape[1])
    for start in range(0, len(rows), step):
        i, j = rows[start : start + step], columns[start : start + step]
        block[i, j] = row_norms(_dense(A[i]) - _dense(B[j]))


def _by_columns(A: np.ndarray, B: np.ndarray | None) -> np.ndarray:
    B = A if B is None else B
    if A.shape[1] == 0:
        return np.zeros((len(A), len(B)))
    squared = np.subtract.outer(A[:, 0], B[:, 0])
    np.square(squared, out=squared)
    for j in range(1, A.shape[1]):
        difference = np.subtract.outer(A[:, j], B[:, j])
        np.square(difference, out=difference)
        squared += difference
    return squared


def _dense(A: Any) -> np.ndarray:
    return A.toarray() if sparse.issparse(A) else A


def cityblock(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return the sums of absolute differences between the rows of A and of B."""
    if A.shape[1] == 1:
        difference = np.subtract.outer(A[:, 0], B[:, 0])
        return np.abs(difference, out=difference)
    from scipy.spatial.distance import cdist  # not needed by most banks, and slow to import

    return cdist(A, B, "cityblock")
