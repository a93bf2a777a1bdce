"""Is a sparse matrix what it says it is?

SciPy checks the parts of a matrix against each other only as far as that is quick, and its compiled code, like ours,
reads and writes wherever the indices say.  A matrix that was put together by hand, or that comes from a file, is
therefore looked through once before anything is computed with it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["check_compressed", "check_coordinates", "check_sparse", "without_duplicates"]


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
        raise _damaged(
            name, f"it has {np.size(matrix.offsets)} diagonals, but values of {np.shape(matrix.data)}"
        )
    # lists, dictionaries and diagonals are turned into coordinates without any compiled code
    plain = matrix if matrix.format == "coo" else matrix.tocoo()
    check_coordinates(plain.data, plain.row, plain.col, plain.shape, name)


def check_compressed(kind: str, data: Any, indices: Any, indptr: Any, shape: Any, name: str = "X") -> None:
    """Raise a ValueError where the parts of a CSR, CSC or BSR matrix do not fit together."""
    rows, columns = _checked_shape(shape, name)
    data, indices, indptr = np.asarray(data), np.asarray(indices), np.asarray(indptr)
    if data.ndim != (3 if kind == "bsr" else 1):
        raise _damaged(name, f"its values are an array of shape {data.shape}")
    if kind == "bsr":
        height, width = data.shape[1:]
        if min(height, width) < 1 or rows % height or columns % width:
            raise _damaged(name, f"blocks of {height} x {width} do not fill {rows} x {columns}")
        rows, columns = rows // height, columns // width
    _check_values(data, name)
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
        raise _damaged(
            name, f"its pointers end at {stored}, with {indices.size} indices and {len(data)} values"
        )
    _check_range(indices[:stored], inner, what[1], name)


def check_coordinates(data: Any, row: Any, col: Any, shape: Any, name: str = "X") -> None:
    """Raise a ValueError where the parts of a COO matrix do not fit together."""
    rows, columns = _checked_shape(shape, name)
    data = np.asarray(data)
    if data.ndim != 1:
        raise _damaged(name, f"its values are an array of shape {data.shape}")
    _check_values(data, name)
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


def _checked_shape(shape: Any, name: str) -> tuple[int, int]:
    numbers = np.asarray(shape)
    if numbers.shape != (2,) or numbers.dtype.kind not in "iu" or np.any(numbers < 0):
        raise _damaged(name, f"its shape is {shape}")
    return int(numbers[0]), int(numbers[1])


def _check_values(data: Any, name: str) -> None:
    if data.dtype.kind not in "fiub":
        raise ValueError(f"{name} is a sparse matrix of {data.dtype}, not of numbers")


def _check_whole(values: Any, part: str, name: str) -> None:
    if values.ndim != 1 or values.dtype.kind not in "iu":
        raise _damaged(
            name, f"its {part} are {values.dtype} of shape {values.shape}, not a row of whole numbers"
        )


def _check_range(indices: Any, size: int, what: str, name: str) -> None:
    if indices.size:
        low, high = int(indices.min()), int(indices.max())
        if low < 0 or high >= size:
            raise _damaged(name, f"it has an index of {low if low < 0 else high}, but {size} {what}")


def _damaged(name: str, why: str) -> ValueError:
    return ValueError(f"{name} is a damaged sparse matrix: {why}")
