"""Samples that stay where they are (arrays, mapped files, Arrow or Parquet batches), and features computed from them.

Nothing of the size n x R is ever held: a sweep reads raw rows, turns them into features and lets them go.  What grows
with n is a handful of vectors, the targets and the coefficients.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._numerics.matrices import check_sparse, without_duplicates
from .._typing import Array, Index
from ..kernels import Kernel, stack_features
from .decide import Decision
from .lowrank import (
    FeatureStorage,
    column_squares,
    feature_bytes,
    loss_and_gradient,
    row_lengths,
    weighted_gram,
)

#: rows that lie side by side in a file and are read together
STRIPE = 512


class Rows(ABC):
    """n rows of numbers that are indexed by row numbers like an array, and read no more than they are asked for.

    Attributes
    ----------
    shape : (n, number of columns)
    names, columns : tuple of str or None
        Names of the columns.
    """

    ndim = 2
    #: whether rows are those of a table, whose names new rows should have as well
    table = False

    def __init__(self, n: int, width: int, names: Sequence[str] | None = None) -> None:
        self.shape = (int(n), int(width))
        self.names = None if names is None else tuple(str(name) for name in names)
        self.columns = self.names

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

    @abstractmethod
    def _decode(self, batch: int) -> np.ndarray:
        """Return all rows of a batch."""

    def __getitem__(self, rows: Any) -> np.ndarray:
        wanted = np.arange(len(self))[rows] if isinstance(rows, slice) else np.atleast_1d(np.asarray(rows))
        batch = np.searchsorted(self.ends, wanted, side="right")
        out = np.empty((wanted.size, self.shape[1]))
        for number in np.unique(batch).tolist():
            if number not in self._decoded:
                while len(self._decoded) >= self.remembered:
                    self._decoded.popitem(last=False)
                self._decoded[number] = self._decode(number)
            self._decoded.move_to_end(number)
            inside = np.flatnonzero(batch == number)
            first = self.ends[number - 1] if number else 0
            out[inside] = self._decoded[number][wanted[inside] - first]
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


#: bytes of one block of features
BLOCK_BYTES = 32_000_000
#: where a file gives rows in runs, so many blocks and so many runs from all over it are shuffled together, ...
SHUFFLED_BLOCKS, SHUFFLED_RUNS = 4, 8
#: ... unless the raw rows would take more bytes than this
SHUFFLED_BYTES = 256_000_000


class FeatureStream(FeatureStorage):
    """Kernels with explicit features on rows that are not in memory, or whose features are not.

    Parameters
    ----------
    kernels : list of Kernel
        Settled, and with features.
    samples : Rows, array, numpy.memmap or sparse matrix
    scale : array of shape (m,), optional
        Factor of every kernel.
    dtype : float64 or float32
        Of the features; sums are in double precision.
    block_rows : int, optional
        Rows in a block; by default what makes about 32 MB of features.
    threads : int
        Workers that prepare the next blocks while one is used; 1 prepares them in turn.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import kernels as kw
    >>> X = np.random.default_rng(0).normal(size=(1000, 3))
    >>> kernels = [kw.random_fourier(width, n_features=50).resolve(X) for width in (1.0, 2.0)]
    >>> stream = FeatureStream(kernels, X, block_rows=100)
    >>> stream.forward(np.ones(100)).shape
    (1000,)
    """

    streams = True
    decision = Decision(representation="features", storage="stream")

    def __init__(
        self,
        kernels: Sequence[Kernel],
        samples: Any,
        scale: Array | None = None,
        *,
        dtype: Any = np.float64,
        block_rows: int | None = None,
        threads: int = 1,
    ) -> None:
        self.kernels = list(kernels)
        self.source: Rows = as_rows(samples)
        _, starts = stack_features(self.kernels, self.source[:1])
        super().__init__(len(self.source), starts, scale)
        self.dtype = np.dtype(dtype)
        self.threads = threads
        width = max(1, int(self.starts[-1]))
        self.kept: list[tuple[slice, Any]] | None = None
        self.block_rows = block_rows or max(64, BLOCK_BYTES // (self.dtype.itemsize * width))

    def exact(self) -> FeatureStream:
        if self.dtype == np.float64:
            return self
        return FeatureStream(self.kernels, self.source, self.scale, threads=self.threads)

    def _features(self, raw: Any) -> Any:
        Z, _ = stack_features(self.kernels, raw)
        if sp.issparse(Z):
            return Z.tocsr().astype(self.dtype, copy=False)
        return np.ascontiguousarray(Z, dtype=self.dtype)

    def _in_turn(self, parts: Iterator[tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
        """Features of raw parts, prepared ahead by the workers."""
        if self.threads <= 1:
            yield from ((rows, self._features(raw)) for rows, raw in parts)
            return
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(self.threads) as pool:
            ahead: deque[tuple[Any, Any]] = deque()
            for rows, raw in parts:
                ahead.append((rows, pool.submit(self._features, raw)))
                if len(ahead) > self.threads:
                    first, made = ahead.popleft()
                    yield first, made.result()
            while ahead:
                first, made = ahead.popleft()
                yield first, made.result()

    def keep(self) -> None:
        """Compute the features once and keep them, block by block."""
        self.kept = list(self.blocks())
        self.nbytes = sum(feature_bytes(Z) for _, Z in self.kept)

    def blocks(self) -> Iterator[tuple[slice, Any]]:
        """All rows in order, as (rows, features)."""
        if self.kept is not None:
            return iter(self.kept)
        tops = range(0, self.n, self.block_rows)
        slices = (slice(top, min(self.n, top + self.block_rows)) for top in tops)
        return self._in_turn((rows, self.source[rows]) for rows in slices)

    def shuffled(self, rng: np.random.Generator) -> Iterator[tuple[Index, Any]]:
        return self._in_turn(self._shuffled_parts(rng))

    def _shuffled_parts(self, rng: np.random.Generator) -> Iterator[tuple[Index, Any]]:
        """Raw rows in random order; runs that a file reads together are mixed with others before they are cut."""
        pieces = self.source.pieces()
        wanted = SHUFFLED_BLOCKS * self.block_rows
        gathered: list[Index] = []
        size = 0
        for at, number in enumerate(rng.permutation(len(pieces))):
            gathered.append(pieces[number])
            size += pieces[number].size
            enough = len(gathered) >= SHUFFLED_RUNS or 8 * size * self.source.shape[1] >= SHUFFLED_BYTES
            if at < len(pieces) - 1 and not (size >= wanted and enough):
                continue
            rows = np.concatenate(gathered)
            gathered, size = [], 0
            in_memory = len(pieces) == 1  # any order is as good
            raw = None if in_memory else self.source[rows]
            order = rng.permutation(rows.size)
            for top in range(0, rows.size, self.block_rows):
                part = order[top : top + self.block_rows]
                yield rows[part], self.source[rows[part]] if raw is None else raw[part]

    def forward(self, w: Array) -> Array:
        out = np.empty((self.n, *w.shape[1:]))
        for rows, Z in self.blocks():
            out[rows] = Z @ w.astype(Z.dtype, copy=False)
        return out

    def adjoint(self, a: Array) -> Array:
        out = np.zeros((int(self.starts[-1]), *a.shape[1:]))
        for rows, Z in self.blocks():
            out += Z.T @ a[rows].astype(Z.dtype, copy=False)
        return out

    def lengths(self, mixing: Array) -> Array:
        out = np.empty(self.n)
        for rows, Z in self.blocks():
            out[rows] = row_lengths(Z, mixing)
        return out

    def sweep(
        self, w: Array, respond: Callable[[Any, Array], Array], mixing: Array, beside: Array | None = None
    ) -> tuple[Array, Array, Array, Array]:
        f, a, lengths = np.empty((self.n, w.shape[1])), np.empty((self.n, w.shape[1])), np.empty(self.n)
        adjoint = np.zeros((w.shape[0], w.shape[1] * (1 if beside is None else 2)))
        narrow = w.astype(self.dtype, copy=False)
        for rows, Z in self.blocks():
            f[rows] = Z @ narrow
            a[rows] = respond(rows, f[rows])
            both = a[rows] if beside is None else np.hstack([a[rows], beside[rows]])
            adjoint += Z.T @ both.astype(self.dtype, copy=False)
            lengths[rows] = row_lengths(Z, mixing)
        return f, a, adjoint, lengths

    def loss_sweep(self, w: Array, b: Array, loss: Any, y: Array, c: Array) -> tuple[float, Array, Array]:
        if loss.coupled:  # all decision values first
            return super().loss_sweep(w, b, loss, y, c)
        value, adjoint, sums = 0.0, np.zeros(w.shape), np.zeros(w.shape[1])
        narrow = w.astype(self.dtype, copy=False)
        for rows, Z in self.blocks():
            here, g = loss_and_gradient(loss, y[rows], Z @ narrow + b, c[rows])
            value += here
            adjoint += Z.T @ g.astype(self.dtype, copy=False)
            sums += np.sum(g, axis=0)
        return value, adjoint, sums

    def mean_squares(self) -> Array:
        """Mean diagonal of every raw kernel."""
        sums = np.zeros(int(self.starts[-1]) + 1)
        for _, Z in self.blocks():
            sums[:-1] += column_squares(Z)
        return np.add.reduceat(sums, self.starts[:-1]) * (self.ranks > 0) / self.n

    def features_of(self, rows: Index) -> Any:
        return stack_features(self.kernels, self.source[rows])[0]

    def gram(self, rows: Index, charge: Array, columns: Index) -> Array:
        if self.kept is None:
            return super().gram(rows, charge, columns)
        # sums of squares stay such sums when the features are rounded: what is kept will do
        order = np.argsort(rows, kind="stable")
        ends = np.searchsorted(rows, [part.start for part, _ in self.kept] + [self.n], sorter=order)
        found = [
            Z[rows[order[first:last]] - part.start]
            for (part, Z), first, last in zip(self.kept, ends[:-1], ends[1:], strict=True)
        ]
        stacked = sp.vstack(found, format="csr") if sp.issparse(found[0]) else np.concatenate(found)
        return weighted_gram(stacked, charge[order], columns)

    def diag(self) -> Array:
        out = np.empty((self.m, self.n))
        for rows, Z in self.blocks():
            squares = np.asarray(Z.toarray() if sp.issparse(Z) else Z, dtype=float) ** 2
            padded = np.hstack([squares, np.zeros((squares.shape[0], 1))])
            out[:, rows] = np.add.reduceat(padded, self.starts[:-1], axis=1).T
        return out * ((self.ranks > 0) * self.scale)[:, None]
