"""Samples that stay where they are: an array, a file that is mapped, Arrow or Parquet batches.

A ``Rows`` has a shape and can be indexed by row numbers like an array, but reads no more than it is asked for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._numerics.sparse_format import check_sparse, without_duplicates
from ._base import Index

__all__ = ["ArrayRows", "ArrowRows", "ParquetRows", "Rows", "as_rows", "spread_rows"]

#: rows that lie side by side in a file and are read together
STRIPE = 512


class Rows(ABC):
    """n rows of numbers.

    Attributes
    ----------
    shape : (n, number of columns)
    names : tuple of str or None
        Names of the columns.
    """

    ndim = 2
    #: whether rows are those of a table, whose names new rows should have as well
    table = False

    def __init__(self, n: int, width: int, names: Sequence[str] | None = None) -> None:
        self.shape = (int(n), int(width))
        self.names = None if names is None else tuple(str(name) for name in names)

    @property
    def columns(self) -> tuple[str, ...] | None:
        """Names of the columns, as a table has them."""
        return self.names

    def __len__(self) -> int:
        return self.shape[0]

    @abstractmethod
    def __getitem__(self, rows: Any) -> Any:
        """Return some rows, by their numbers or a slice, as an array or a CSR matrix."""

    def pieces(self) -> list[Index]:
        """Row numbers that are best read together; all rows, once."""
        return [np.arange(top, min(top + STRIPE, len(self))) for top in range(0, len(self), STRIPE)]


class ArrayRows(Rows):
    """Rows of an array, a ``numpy.memmap`` or a CSR matrix."""

    def __init__(self, array: Any) -> None:
        if sp.issparse(array):
            check_sparse(array)
            array = without_duplicates(array.tocsr())
        elif array.ndim != 2:
            raise ValueError(f"rows need a two-dimensional array, got {array.ndim} dimension(s)")
        super().__init__(*array.shape)
        self.array = array

    def __getitem__(self, rows: Any) -> Any:
        part = self.array[rows]
        return part if sp.issparse(part) else np.asarray(part)

    def pieces(self) -> list[Index]:
        # what is in memory may be read in any order
        return super().pieces() if isinstance(self.array, np.memmap) else [np.arange(len(self))]


class _Batches(Rows):
    """Rows in batches that are decoded as a whole; a few are remembered."""

    #: decoded batches that are kept
    remembered = 2

    def __init__(self, sizes: Sequence[int], names: Sequence[str]) -> None:
        self.ends = np.cumsum(np.asarray(sizes, dtype=np.intp))
        super().__init__(int(self.ends[-1]) if len(sizes) else 0, len(names), names)
        self._decoded: OrderedDict[int, np.ndarray] = OrderedDict()

    def _decode(self, batch: int) -> np.ndarray:
        raise NotImplementedError

    def _batch(self, batch: int) -> np.ndarray:
        if batch not in self._decoded:
            while len(self._decoded) >= self.remembered:
                self._decoded.popitem(last=False)
            self._decoded[batch] = self._decode(batch)
        self._decoded.move_to_end(batch)
        return self._decoded[batch]

    def __getitem__(self, rows: Any) -> np.ndarray:
        wanted = np.arange(len(self))[rows] if isinstance(rows, slice) else np.atleast_1d(np.asarray(rows))
        batch = np.searchsorted(self.ends, wanted, side="right")
        out = np.empty((wanted.size, self.shape[1]))
        for number in np.unique(batch):
            inside = np.flatnonzero(batch == number)
            first = self.ends[number - 1] if number else 0
            out[inside] = self._batch(int(number))[wanted[inside] - first]
        return out

    def pieces(self) -> list[Index]:
        starts = np.concatenate([[0], self.ends[:-1]])
        return [np.arange(first, last) for first, last in zip(starts, self.ends, strict=True) if last > first]

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_decoded": OrderedDict()}


def _arrow(what: str) -> Any:
    """Return a module of pyarrow, or say how to get it."""
    from importlib import import_module

    try:
        return import_module(what)
    except ImportError as error:
        raise ImportError(
            "reading Arrow and Parquet needs pyarrow: pip install 'kernelweave[parquet]'"
        ) from error


def _numbers(table: Any, names: Sequence[str]) -> np.ndarray:
    """Columns of an Arrow table or batch as one array of float64."""
    out = np.empty((table.num_rows, len(names)))
    for k, name in enumerate(names):
        try:
            out[:, k] = table.column(name).to_numpy(zero_copy_only=False)
        except (TypeError, ValueError) as error:
            raise ValueError(f"column {name!r} does not hold numbers: {error}") from error
    return out


def _chosen(known: Sequence[str], columns: Sequence[str] | None) -> list[str]:
    if columns is None:
        return list(known)
    missing = [name for name in columns if name not in known]
    if missing:
        raise ValueError(f"no column {missing[0]!r}; there are {', '.join(map(repr, known))}")
    return list(columns)


class ParquetRows(_Batches):
    """Rows of Parquet files, a row group at a time.

    Parameters
    ----------
    paths : path or sequence of paths
        Files with the same columns, one after the other.
    columns : sequence of str, optional
        The columns to read, in this order; all by default.
    """

    def __init__(self, paths: Any, columns: Sequence[str] | None = None) -> None:
        parquet = _arrow("pyarrow.parquet")
        self.paths = [Path(path) for path in ([paths] if isinstance(paths, str | Path) else paths)]
        missing = [str(path) for path in self.paths if not path.exists()]
        if missing or not self.paths:
            raise ValueError(f"no Parquet file {missing[0]!r}" if missing else "no Parquet file given")
        self._places: list[tuple[int, int]] = []
        sizes: list[int] = []
        names: list[str] = []
        for number, path in enumerate(self.paths):
            about = parquet.ParquetFile(path)
            names = names or _chosen(about.schema_arrow.names, columns)
            _chosen(about.schema_arrow.names, names)
            for group in range(about.metadata.num_row_groups):
                self._places.append((number, group))
                sizes.append(about.metadata.row_group(group).num_rows)
        super().__init__(sizes, names)

    def _decode(self, batch: int) -> np.ndarray:
        file, group = self._places[batch]
        assert self.names is not None
        # the file is opened for every group: an open reader holds on to memory
        with _arrow("pyarrow.parquet").ParquetFile(self.paths[file]) as reader:
            return _numbers(reader.read_row_group(group, columns=list(self.names)), self.names)


class ArrowRows(_Batches):
    """Rows of an Arrow table, of record batches, or of an Arrow file that is mapped into memory.

    Parameters
    ----------
    source : path, pyarrow.Table or sequence of pyarrow.RecordBatch
    columns : sequence of str, optional
        The columns to read, in this order; all by default.
    """

    def __init__(self, source: Any, columns: Sequence[str] | None = None) -> None:
        pa = _arrow("pyarrow")
        if isinstance(source, str | Path):
            if not Path(source).exists():
                raise ValueError(f"no Arrow file {str(source)!r}")
            table = _arrow("pyarrow.ipc").open_file(pa.memory_map(str(source))).read_all()
        else:
            table = source if isinstance(source, pa.Table) else pa.Table.from_batches(list(source))
        self.batches = table.to_batches()
        super().__init__([batch.num_rows for batch in self.batches], _chosen(table.schema.names, columns))

    def _decode(self, batch: int) -> np.ndarray:
        assert self.names is not None
        return _numbers(self.batches[batch], self.names)


def as_rows(samples: Any) -> Rows:
    """Return what gives rows on demand, from rows, an array, a mapped file or a sparse matrix."""
    return samples if isinstance(samples, Rows) else ArrayRows(samples)


def spread_rows(n: int, most: int = 10_000) -> Index:
    """Row numbers of at most ``most`` rows: runs from all over, because files are read in runs."""
    if n <= most:
        return np.arange(n)
    runs = 20
    first = np.linspace(0, n - most // runs, runs).astype(np.intp)
    return np.concatenate([np.arange(start, start + most // runs) for start in first])
