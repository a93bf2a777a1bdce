"""Prediction on collections of Dask: nothing is computed before it is asked for, and then chunk by chunk."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from ._dask import check_whole_rows, is_dask, is_frame, load_dask

__all__ = ["lazily"]

Method = TypeVar("Method", bound=Callable[..., Any])


def lazily(method: Method) -> Method:
    """Let a method of one argument, rows, also take a collection of Dask and return one."""

    @wraps(method)
    def either(self: Any, X: Any) -> Any:
        return _on_chunks(self, method, X) if is_dask(X) else method(self, X)

    return either  # type: ignore[return-value]


def _on_chunks(estimator: Any, method: Callable[..., Any], X: Any) -> Any:
    load_dask()
    import dask.array as da
    from dask import delayed

    if is_frame(X):
        sample = X._meta_nonempty.iloc[:1]
        parts = X.to_delayed()
        sizes: tuple[Any, ...] = (np.nan,) * len(parts)
    else:
        check_whole_rows(X)  # unlike in fit, the number of rows need not be known
        sample = np.zeros((1, X.shape[1]))
        parts = list(X.to_delayed()[:, 0])
        sizes = X.chunks[0]
    # also says what is wrong with the columns, now and not later
    shown = np.asarray(method(estimator, sample))
    fitted = delayed(estimator, pure=False)
    predict = delayed(_call, pure=False)
    chunks = [
        da.from_delayed(predict(method, fitted, part), (size, *shown.shape[1:]), dtype=shown.dtype)
        for part, size in zip(parts, sizes, strict=True)
    ]
    return da.concatenate(chunks, axis=0, allow_unknown_chunksizes=True)


def _call(method: Callable[..., Any], estimator: Any, rows: Any) -> Any:
    return method(estimator, rows) if len(rows) else method(estimator, np.zeros((1, rows.shape[1])))[:0]
