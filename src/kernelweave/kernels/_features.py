"""Explicit features of many kernels side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from ..views import Views
from ._helpers import refuse_non_finite
from ._kernel import Kernel

__all__ = ["stack_features"]


def stack_features(kernels: Sequence[Kernel], A: Any) -> tuple[Any, np.ndarray]:
    """Return the features of all kernels as one matrix, and where each kernel's columns start.

    Runs of kernels whose features are columns of the samples, such as one linear kernel a term of a text, are cut out
    in one go: column by column that would take minutes for thousands of kernels.  The matrix is sparse where all parts
    are.
    """
    parts: list[Any] = []
    ranks: list[int] = []
    run: list[np.ndarray] = []
    width = A.shape[1] if len(getattr(A, "shape", ())) == 2 else None

    def close_run() -> None:
        if run:
            parts.append(_columns(A, np.concatenate(run)))
            run.clear()

    for kernel in kernels:
        columns = None if width is None else kernel.feature_columns(int(width))
        if columns is not None:
            run.append(columns)
            ranks.append(columns.size)
            continue
        close_run()
        features = kernel.features(A)
        if features is None:
            raise ValueError(f"kernel {kernel.name!r} has no explicit features")
        parts.append(features)
        ranks.append(features.shape[1])
    close_run()
    starts = np.concatenate([[0], np.cumsum(ranks)]).astype(np.intp)
    if len(parts) == 1:
        return parts[0], starts
    if all(sparse.issparse(part) for part in parts):
        return sparse.hstack(parts, format="csr"), starts
    return np.hstack([part.toarray() if sparse.issparse(part) else part for part in parts]), starts


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
