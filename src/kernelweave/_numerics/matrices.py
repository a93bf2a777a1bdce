"""Checks of matrices: whether one is a kernel, how to make it one, whether a sparse one is what it says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

#: the classical ways from the eigenvalues of a similarity to those of a kernel
EIGENVALUES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "denoise": lambda values: np.maximum(values, 0.0),
    "flip": np.abs,
    "shift": lambda values: values + max(-float(values.min()), 0.0),
    "square": np.square,
}


#: of the mean or largest eigenvalue: a negative one that is smaller is taken for rounding
TOLERANCE = 1e-7


def check_symmetric(matrix: np.ndarray, name: str, tolerance: float = 1e-6) -> None:
    """Raise where the two halves differ by more than ``tolerance`` of the largest entry."""
    size = max(float(np.max(np.abs(matrix))), np.finfo(float).tiny)
    skew = float(np.max(np.abs(matrix - matrix.T))) / size
    if skew > tolerance:
        raise ValueError(
            f"{name} is not symmetric (largest difference {skew:.2g} of its largest entry); "
            "if it is a similarity, symmetrise it with (S + S.T) / 2"
        )


def check_semidefinite(matrix: np.ndarray, name: str, tolerance: float = TOLERANCE) -> None:
    """Raise where the smallest eigenvalue is below ``-tolerance`` times the largest.

    A Cholesky factorisation of the slightly lifted matrix is tried first: it costs a tenth of the eigenvalues, which
    are computed only to say how indefinite the matrix is.
    """
    matrix = np.asarray(matrix, dtype=float)
    n = matrix.shape[0]
    # the mean eigenvalue, at most the largest: a matrix that passes here is within the tolerance
    lifted = matrix.copy()
    lifted.flat[:: n + 1] += tolerance * max(float(np.trace(matrix)) / n, 0.0) + 1e-300
    try:
        np.linalg.cholesky(lifted)
        return
    except np.linalg.LinAlgError:
        values = np.linalg.eigvalsh(matrix)
    bound = -tolerance * max(float(values[-1]), 1e-300)
    if values[0] < bound:
        negative = float(-np.sum(values[values < 0]) / np.sum(np.abs(values)))
        raise ValueError(
            f"{name} is not positive semi-definite: {int(np.sum(values < bound))} of {n} eigenvalues are negative, "
            f"the smallest is {values[0]:.3g} (largest {values[-1]:.3g}), {100 * negative:.2g} % of the spectrum. "
            "MKL needs kernels: make it one with kernelweave.kernels.clip_spectrum (negative eigenvalues to zero), "
            "flip_spectrum (their absolute values) or shift_spectrum (all raised), and pass the matrices as "
            "kernels.held(...) or kernels='precomputed'"
        )


def _spectrum(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    matrix = np.asarray(matrix, dtype=float)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"the spectrum needs a square matrix, got shape {matrix.shape}")
    if not np.all(np.isfinite(matrix)):
        raise ValueError("the matrix contains NaN or infinite entries")
    return np.linalg.eigh((matrix + matrix.T) / 2.0)


def clip_spectrum(matrix: np.ndarray) -> np.ndarray:
    """Nearest positive semi-definite matrix: negative eigenvalues become zero ("denoise").

    Examples
    --------
    >>> import numpy as np
    >>> clip_spectrum(np.array([[0.0, 1.0], [1.0, 0.0]])).round(3)
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """
    values, vectors = _spectrum(matrix)
    return (vectors * EIGENVALUES["denoise"](values)) @ vectors.T


def flip_spectrum(matrix: np.ndarray) -> np.ndarray:
    """Positive semi-definite matrix with the absolute values of the eigenvalues."""
    values, vectors = _spectrum(matrix)
    return (vectors * EIGENVALUES["flip"](values)) @ vectors.T


def shift_spectrum(matrix: np.ndarray) -> np.ndarray:
    """Raise all eigenvalues by the most negative one: only the diagonal changes."""
    values, _ = _spectrum(matrix)
    matrix = (np.asarray(matrix, dtype=float) + np.asarray(matrix, dtype=float).T) / 2.0
    return matrix + max(-float(values[0]), 0.0) * np.eye(matrix.shape[0])


# SciPy's compiled code, like ours, reads and writes wherever the indices say: a matrix that was put together by hand,
# or that comes from a file, is checked once before anything is computed with it.


def check_sparse(matrix: Any, name: str = "X") -> None:
    """Raise a ValueError where the parts of a sparse matrix do not fit together.

    >>> import scipy.sparse as sp
    >>> matrix = sp.csr_array([[0.0, 1.0], [2.0, 0.0]])
    >>> check_sparse(matrix)
    >>> matrix.indices[0] = 7
    >>> check_sparse(matrix)
    Traceback (most recent call last):
        ...
    ValueError: X is a damaged sparse matrix: it has an index of 7, but 2 columns
    """
    if len(matrix.shape) != 2:
        raise ValueError(f"Expected 2D array, got {len(matrix.shape)}D sparse array instead")
    if matrix.format in ("csr", "csc", "bsr"):
        check_compressed(matrix.format, matrix.data, matrix.indices, matrix.indptr, matrix.shape, name)
        return
    if matrix.format == "dia" and np.shape(matrix.data)[:1] != np.shape(matrix.offsets):
        count = np.size(matrix.offsets)
        raise _damaged(name, f"it has {count} diagonals, but values of {np.shape(matrix.data)}")
    # lists, dictionaries and diagonals are turned into coordinates without any compiled code
    plain = matrix if matrix.format == "coo" else matrix.tocoo()
    check_coordinates(plain.data, plain.row, plain.col, plain.shape, name)


def check_compressed(kind: str, data: Any, indices: Any, indptr: Any, shape: Any, name: str = "X") -> None:
    """Raise a ValueError where the parts of a CSR, CSC or BSR matrix do not fit together."""
    data, indices, indptr = np.asarray(data), np.asarray(indices), np.asarray(indptr)
    rows, columns = _checked_shape(shape, data, 3 if kind == "bsr" else 1, name)
    if kind == "bsr":
        height, width = data.shape[1:]
        if min(height, width) < 1 or rows % height or columns % width:
            raise _damaged(name, f"blocks of {height} x {width} do not fill {rows} x {columns}")
        rows, columns = rows // height, columns // width
    outer, inner = (columns, rows) if kind == "csc" else (rows, columns)
    what = ("columns", "rows") if kind == "csc" else ("rows", "columns")
    for part, values in (("indices", indices), ("pointers", indptr)):
        _check_whole(values, part, name)
    if indptr.size != outer + 1:
        raise _damaged(name, f"it has {indptr.size} pointers for {outer} {what[0]}")
    stored = int(indptr[-1])
    if int(indptr[0]) != 0 or np.any(indptr[1:] < indptr[:-1]):
        raise _damaged(name, "its pointers do not rise from 0")
    if stored > indices.size or indices.size != len(data):
        sizes = f"{indices.size} indices and {len(data)} values"
        raise _damaged(name, f"its pointers end at {stored}, with {sizes}")
    _check_range(indices[:stored], inner, what[1], name)


def check_coordinates(data: Any, row: Any, col: Any, shape: Any, name: str = "X") -> None:
    """Raise a ValueError where the parts of a COO matrix do not fit together."""
    data = np.asarray(data)
    rows, columns = _checked_shape(shape, data, 1, name)
    for values, size, what in ((row, rows, "rows"), (col, columns, "columns")):
        values = np.asarray(values)
        _check_whole(values, "indices", name)
        if values.size != data.size:
            raise _damaged(name, f"it has {values.size} indices of {what} for {data.size} values")
        _check_range(values, size, what, name)


def without_duplicates(matrix: Any) -> Any:
    """Return a CSR matrix that names every entry once: itself, or a copy in which repeated entries are summed."""
    if matrix.has_canonical_format:
        return matrix
    matrix = matrix.copy()
    matrix.sum_duplicates()
    return matrix


def _checked_shape(shape: Any, data: Any, axes: int, name: str) -> tuple[int, int]:
    """Return rows and columns, where shape and values are what those of a matrix can be."""
    numbers = np.asarray(shape)
    if numbers.shape != (2,) or numbers.dtype.kind not in "iu" or np.any(numbers < 0):
        raise _damaged(name, f"its shape is {shape}")
    if data.ndim != axes:
        raise _damaged(name, f"its values are an array of shape {data.shape}")
    if data.dtype.kind not in "fiub":
        raise ValueError(f"{name} is a sparse matrix of {data.dtype}, not of numbers")
    return int(numbers[0]), int(numbers[1])


def _check_whole(values: Any, part: str, name: str) -> None:
    if values.ndim != 1 or values.dtype.kind not in "iu":
        found = f"{values.dtype} of shape {values.shape}"
        raise _damaged(name, f"its {part} are {found}, not a row of whole numbers")


def _check_range(indices: Any, size: int, what: str, name: str) -> None:
    if indices.size:
        low, high = int(indices.min()), int(indices.max())
        if low < 0 or high >= size:
            raise _damaged(name, f"it has an index of {low if low < 0 else high}, but {size} {what}")


def _damaged(name: str, why: str) -> ValueError:
    return ValueError(f"{name} is a damaged sparse matrix: {why}")


#: stored numbers of sparse rows below which compiled code is not worth loading
FEW = 20_000
#: share of non-zero numbers from which a product of dense matrices is quicker
DENSE = 0.2


def row_products(left: Any, right: Any, by_column: Any = None) -> np.ndarray:
    """Return ``left @ right.T`` of CSR matrices, dense; ``by_column`` is right as CSC, perhaps with more rows below.

    Symmetric to the bit where both are the same.
    """
    if left.nnz < FEW:
        return np.asarray((left @ right.T).toarray())
    if right.nnz > DENSE * right.shape[0] * right.shape[1]:
        mine = left.toarray()
        return np.asarray(mine @ (mine if left is right else right.toarray()).T)
    from .passes import add_products

    columns = right.tocsc() if by_column is None else by_column
    out = np.zeros((left.shape[0], right.shape[0]))
    add_products(left.indptr, left.indices, left.data, columns.indptr, columns.indices, columns.data, out)
    return out
