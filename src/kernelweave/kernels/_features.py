"""Explicit features of many kernels side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from ..views import Views
from ._helpers import refuse_non_finite
from ._kernel import Kernel

__all__ = ["stack_features"]


#: rows from which features are written where they belong: side by side only afterwards, they would be there twice
MANY = 1000


def stack_features(kernels: Sequence[Kernel], A: Any) -> tuple[Any, np.ndarray]:
    """Return the features of all kernels as one matrix, and where each kernel's columns start.

    The matrix is sparse where all parts are.
    """
    if isinstance(A, np.ndarray | Views) and A.shape[0] > MANY:
        few, starts = _side_by_side(kernels, A[:2])
        if not sparse.issparse(few):
            out, top = np.empty((A.shape[0], few.shape[1])), 0
            for part, widths in _parts(kernels, A):
                columns = slice(top, top := top + sum(widths))
                out[:, columns] = part.toarray() if sparse.issparse(part) else part
            return out, starts
    return _side_by_side(kernels, A)


def _side_by_side(kernels: Sequence[Kernel], A: Any) -> tuple[Any, np.ndarray]:
    made = list(_parts(kernels, A))
    parts = [part for part, _ in made]
    starts = np.concatenate([[0], np.cumsum([width for _, widths in made for width in widths])]).astype(
        np.intp
    )
    if len(parts) == 1:
        return parts[0], starts
    if all(sparse.issparse(part) for part in parts):
        return sparse.hstack(parts, format="csr"), starts
    return np.hstack([part.toarray() if sparse.issparse(part) else part for part in parts]), starts


def _parts(kernels: Sequence[Kernel], A: Any) -> Iterator[tuple[Any, list[int]]]:
    """Features of kernels one after the other, with the widths of those that a part holds.

    Runs of kernels whose features are columns of the samples, such as one linear kernel a term of a text, are cut out
    in one go: column by column that would take minutes for thousands of kernels.
    """
    run: list[np.ndarray] = []
    width = A.shape[1] if len(getattr(A, "shape", ())) == 2 else None
    for kernel in kernels:
        columns = None if width is None else kernel.feature_columns(int(width))
        if columns is not None:
            run.append(columns)
            continue
        if run:
            yield _columns(A, np.concatenate(run)), [columns.size for columns in run]
            run = []
        features = kernel.features(A)
        if features is None:
            raise ValueError(f"kernel {kernel.name!r} has no explicit features")
        yield features, [features.shape[1]]
    if run:
        yield _columns(A, np.concatenate(run)), [columns.size for columns in run]


def _columns(A: Any, columns: np.ndarray) -> Any:
    if isinstance(A, Views):
        A, columns = A.select_columns(columns), np.arange(columns.size)
    if sparse.issparse(A):
        part = sparse.csr_matrix(sparse.csc_matrix(A)[:, columns], dtype=np.float64)
        refuse_non_finite(part.data, "features")
        return part
    dense = np.ascontiguousarray(np.asarray(A)[:, columns], dtype=np.float64)
    refuse_non_finite(dense, "features")
    return dense
