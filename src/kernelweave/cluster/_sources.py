"""Where a worker gets its rows from: chunks of Dask, a slice of an array that the client holds, or a file it reads."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._numerics.sparse_format import check_sparse
from ..banks import ArrayRows, Rows
from ._dask import whole_rows

__all__ = ["DaskRows", "cut_rows", "read_rows", "send_rows"]


class DaskRows(Rows):
    """Rows of a Dask array; what is indexed is computed and comes to the client.

    Parameters
    ----------
    array : dask.array.Array or dask.dataframe.DataFrame
        Its chunks must be whole rows.
    client : dask.distributed.Client
        Where it is computed.
    """

    def __init__(self, array: Any, client: Any) -> None:
        names = [str(name) for name in array.columns] if hasattr(array, "columns") else None
        self.table = names is not None
        self.array = whole_rows(array)
        self.client = client
        super().__init__(self.array.shape[0], self.array.shape[1], names)

    def __getitem__(self, rows: Any) -> Any:
        return self.client.compute(self.array[rows]).result()

    def spread(self, parts: int) -> None:
        """Cut chunks that are larger than a part of so many."""
        most = -(-len(self) // parts)
        if max(self.array.chunks[0]) > most:
            self.array = self.array.rechunk({0: most})


def cut_rows(source: Rows, parts: int) -> np.ndarray:
    """Where each of at most so many parts begins and ends: alike in size, and between the chunks of Dask."""
    n = len(source)
    parts = max(1, min(parts, n))
    even = np.linspace(0, n, parts + 1).round().astype(np.intp)
    if not isinstance(source, DaskRows):
        return np.unique(even)
    source.spread(parts)
    edges = np.concatenate([[0], np.cumsum(source.array.chunks[0])]).astype(np.intp)
    nearest = [int(edges[np.argmin(np.abs(edges - cut))]) for cut in even[1:-1]]
    return np.unique([0, *nearest, n])


def send_rows(source: Rows, first: int, last: int, client: Any, worker: str) -> Any:
    """What to hand to a worker so that it has these rows: futures, or a description of where they are."""
    if isinstance(source, DaskRows):
        edges = np.concatenate([[0], np.cumsum(source.array.chunks[0])])
        chunks = source.array.to_delayed()[:, 0]
        mine = [chunk for chunk, top in zip(chunks, edges[:-1], strict=True) if first <= top < last]
        return client.compute(mine, workers=[worker], allow_other_workers=True)
    if isinstance(source, ArrayRows):
        if not MappedRows.can(source.array):
            return client.scatter(source[first:last], workers=[worker], hash=False)
        source = MappedRows(source.array)
    return _SomeRows(source, first, last)


class MappedRows(Rows):
    """Rows of a ``numpy.memmap`` that travel as the name of its file: an array would be sent with all that is in it."""

    def __init__(self, array: np.memmap) -> None:
        super().__init__(*array.shape)
        self.place: dict[str, Any] = {
            "filename": str(array.filename),
            "dtype": array.dtype,
            "offset": array.offset,
        }
        self.place["order"] = "C" if array.flags.c_contiguous else "F"

    @staticmethod
    def can(array: Any) -> bool:
        """Whether an array is a whole mapped file; of a part of one, numpy does not say where it begins."""
        return isinstance(array, np.memmap) and isinstance(array.base, mmap.mmap)

    def __getitem__(self, rows: Any) -> Any:
        whole = np.memmap(**self.place, mode="r", shape=self.shape)
        return np.array(whole[rows])


class _SomeRows(Rows):
    """A run of the rows of another source."""

    def __init__(self, source: Rows, first: int, last: int) -> None:
        super().__init__(last - first, source.shape[1], source.names)
        self.source, self.first = source, first

    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, slice):
            start, stop, step = rows.indices(len(self))
            return self.source[slice(self.first + start, self.first + stop, step)]
        return self.source[np.asarray(rows) + self.first]


def read_rows(sent: Any) -> Rows:
    """On the worker: rows from what ``send_rows`` handed over."""
    if isinstance(sent, Rows):
        return sent
    return ArrayRows(_numbers(sent if isinstance(sent, Sequence) else [sent]))


def _numbers(chunks: Sequence[Any]) -> Any:
    """Chunks below each other, as an array of float64 or a CSR matrix."""
    if sp.issparse(chunks[0]):
        for chunk in chunks:
            check_sparse(chunk)
        return sp.vstack(chunks, format="csr").astype(float)
    made = np.concatenate([np.asarray(chunk, dtype=float) for chunk in chunks])
    if not np.all(np.isfinite(made)):
        raise ValueError("Input X contains NaN or infinity: fill or drop them in the Dask collection first")
    return made
