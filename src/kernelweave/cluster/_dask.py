"""``distributed.fit``, and Dask collections: found, checked, read chunk by chunk on the workers, predicted lazily."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from .._numerics.matrices import check_sparse
from ..banks import ArrayRows, Rows


def load_dask() -> Any:
    """Return ``dask.distributed``, or say how to get it."""
    try:
        import distributed
    except ImportError as error:
        raise ImportError(
            "fitting on a cluster needs Dask, which is not installed: pip install 'kernelweave[dask]'"
        ) from error
    return distributed


def is_dask(X: Any) -> bool:
    """Whether X is a collection of Dask; Dask is not imported to find out."""
    return type(X).__module__.partition(".")[0] in ("dask", "dask_expr") and hasattr(X, "__dask_graph__")


def is_frame(X: Any) -> bool:
    """Whether a collection of Dask is a table."""
    return is_dask(X) and hasattr(X, "npartitions") and hasattr(X, "columns")


def check_client(client: Any) -> Any:
    """Return a client that is connected and has workers, or say which of both it lacks."""
    distributed = load_dask()
    if not isinstance(client, distributed.Client):
        raise TypeError(f"client must be a dask.distributed.Client, got {type(client).__name__}")
    if client.asynchronous:
        raise ValueError("the client is asynchronous: make one with Client(..., asynchronous=False)")
    if client.status != "running":
        raise ConnectionError(
            f"the Dask scheduler at {client.scheduler.address if client.scheduler else 'its address'} is gone (client "
            f"{client.status}): start a cluster, make a new Client, and fit again; with checkpoint=... a fit goes on "
            "from its best point"
        )
    if not client.nthreads():
        raise ConnectionError(
            f"the Dask scheduler at {client.scheduler.address} has no workers: start some (client.wait_for_workers "
            "waits for them), and fit again"
        )
    return client


def check_whole_rows(X: Any) -> None:
    """Raise where an array of Dask is not a table of numbers whose chunks are whole rows."""
    if X.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {X.ndim}D array instead: a Dask array of shape (n, features)"
        )
    if len(X.chunks[1]) > 1:
        raise ValueError(
            f"X is cut into {len(X.chunks[1])} chunks along its features: kernels need whole rows, so call "
            "X.rechunk({1: -1}) first"
        )


def in_memory(values: Any) -> Any:
    """Compute a collection of Dask (targets, sample weights); anything else as it is."""
    return values.compute() if is_dask(values) else values


@dataclass
class ClusterSamples:
    """Samples, and the client of the cluster that they are to be fitted on."""

    client: Any
    samples: Any


def cluster_samples(X: Any) -> ClusterSamples | None:
    """Samples for a cluster: a collection of Dask, or what ``fit`` was given; None for anything else."""
    if isinstance(X, ClusterSamples):
        return X
    if not is_dask(X):
        return None
    try:
        client = load_dask().get_client()
    except ValueError:
        raise ValueError(
            "X is a collection of Dask, and there is no client to compute it: make one with "
            "dask.distributed.Client(), or pass X.compute()"
        ) from None
    return ClusterSamples(check_client(client), X)


def fit(client: Any, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
    """Fit an estimator with the rows of its bank on the workers of a cluster.

    The answer is that of ``estimator.fit(X, y)``: the same problem, solver and certificate; what is read of the bank is
    read where it lies.  Kernels with explicit features stay on the workers as such where the solver needs no more (a
    smooth loss: ``lbfgs``, ``proximal_newton``), so that n is bounded by the workers' memory alone; other kernels keep
    m n numbers a row there, or compute them (``storage``).  ``memory_budget`` is that of one worker, half of its limit
    by default.  ``cluster_`` says what the cluster did.

    Parameters
    ----------
    client : dask.distributed.Client
        Of a ``LocalCluster``, a scheduler address, or whatever Dask deploys on.
    estimator : MKLClassifier, MKLRegressor or an estimator made of them
    X : array, sparse matrix, data frame, rows of a file, or a collection of Dask
        Chunks of a Dask array must be whole rows.  Workers read files themselves (``banks.ParquetRows``,
        ``numpy.memmap``), so these have to be where every worker finds them.
    y, sample_weight : arrays or collections of Dask
        As in ``fit``.

    Returns
    -------
    estimator

    Examples
    --------
    >>> from dask.distributed import Client, LocalCluster
    >>> from sklearn.datasets import load_wine
    >>> from kernelweave import MKLClassifier, distributed, kernels as kw
    >>> X, y = load_wine(return_X_y=True)
    >>> options = {"processes": False, "dashboard_address": ":0"}
    >>> with LocalCluster(n_workers=2, threads_per_worker=1, **options) as cluster, Client(cluster) as client:
    ...     clf = distributed.fit(client, MKLClassifier(kw.per_feature(kw.gaussian(1.0, relative=True))), X, y)
    >>> clf.cluster_.parts, bool(clf.certificate_.relative_gap <= 1e-3)
    (2, True)
    """
    samples = ClusterSamples(check_client(client), X)
    weights = {} if sample_weight is None else {"sample_weight": sample_weight}
    with client.as_current():  # targets and weights that are collections are computed here, too
        return estimator.fit(samples, y, **weights)


class DaskRows(Rows):
    """Rows of a Dask array; what is indexed is computed and sent to the client.

    Parameters
    ----------
    array : dask.array.Array or dask.dataframe.DataFrame
        Its chunks must be whole rows of known number; partitions of a table are counted, which computes them once.
    client : dask.distributed.Client
        Where it is computed.
    """

    def __init__(self, array: Any, client: Any) -> None:
        names = [str(name) for name in array.columns] if hasattr(array, "columns") else None
        self.table = names is not None
        if is_frame(array):
            array = array.to_dask_array(lengths=True)
        else:
            check_whole_rows(array)
            if any(size != size for size in array.chunks[0]):
                raise ValueError(
                    "the chunk sizes of X are unknown (nan), so its rows cannot be told apart: call "
                    "X.compute_chunk_sizes(), or X.to_dask_array(lengths=True) on the table it came from"
                )
        self.array, self.client = array, client
        super().__init__(self.array.shape[0], self.array.shape[1], names)

    def __getitem__(self, rows: Any) -> Any:
        return self.client.compute(self.array[rows]).result()


def cut_rows(source: Any, n: int, parts: int) -> np.ndarray:
    """Where each of at most so many parts of n rows begins and ends: alike in size, and between the chunks of Dask."""
    parts = max(1, min(parts, n))
    even = np.linspace(0, n, parts + 1).round().astype(np.intp)
    if not isinstance(source, DaskRows):
        return np.unique(even)
    most = -(-n // parts)  # chunks that are larger are cut
    if max(source.array.chunks[0]) > most:
        source.array = source.array.rechunk({0: most})
    edges = np.concatenate([[0], np.cumsum(source.array.chunks[0])]).astype(np.intp)
    nearest = [int(edges[np.argmin(np.abs(edges - cut))]) for cut in even[1:-1]]
    return np.unique([0, *nearest, n])


def send_rows(source: Rows, first: int, last: int, client: Any, worker: str) -> Any:
    """Return what a worker needs to have these rows: futures, or a description of where they are."""
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
        self.place: dict[str, Any] = {"filename": str(array.filename), "dtype": array.dtype}
        self.place |= {"offset": array.offset, "order": "C" if array.flags.c_contiguous else "F"}

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
    """On the worker: rows from what ``send_rows`` sent."""
    if isinstance(sent, Rows):
        return sent
    chunks = sent if isinstance(sent, Sequence) else [sent]
    if sp.issparse(chunks[0]):
        for chunk in chunks:
            check_sparse(chunk)
        return ArrayRows(sp.vstack(chunks, format="csr").astype(float))
    made = np.concatenate([np.asarray(chunk, dtype=float) for chunk in chunks])
    if not np.all(np.isfinite(made)):
        raise ValueError("Input X contains NaN or infinity: fill or drop them in the Dask collection first")
    return ArrayRows(made)


Method = TypeVar("Method", bound=Callable[..., Any])


def lazily(method: Method) -> Method:
    """Let a method of one argument, rows, also take a collection of Dask and return one."""

    @wraps(method)
    def either(self: Any, X: Any) -> Any:
        if not is_dask(X):
            return method(self, X)
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
        shown = np.asarray(method(self, sample))
        fitted, predict = delayed(self, pure=False), delayed(_call, pure=False)
        chunks = [
            da.from_delayed(predict(method, fitted, part), (size, *shown.shape[1:]), dtype=shown.dtype)
            for part, size in zip(parts, sizes, strict=True)
        ]
        return da.concatenate(chunks, axis=0, allow_unknown_chunksizes=True)

    return either  # type: ignore[return-value]


def _call(method: Callable[..., Any], estimator: Any, rows: Any) -> Any:
    return method(estimator, rows) if len(rows) else method(estimator, np.zeros((1, rows.shape[1])))[:0]
