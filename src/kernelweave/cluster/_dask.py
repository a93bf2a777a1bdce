"""Dask, found or missed: what is one of its collections, and whether its chunks can be worked with."""

from __future__ import annotations

from typing import Any

__all__ = [
    "check_client",
    "check_whole_rows",
    "current_client",
    "in_memory",
    "is_dask",
    "is_frame",
    "load_dask",
    "whole_rows",
]


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


def current_client() -> Any:
    """Return the client that was made last, or say that one is needed."""
    distributed = load_dask()
    try:
        client = distributed.get_client()
    except ValueError:
        raise ValueError(
            "X is a collection of Dask, and there is no client to compute it: make one with "
            "dask.distributed.Client(), or pass X.compute()"
        ) from None
    return check_client(client)


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


def whole_rows(X: Any) -> Any:
    """Return an array of Dask whose chunks are whole rows of known number, or say what is wrong with them.

    A table becomes an array; its partitions are counted, which computes them once.
    """
    if is_frame(X):
        return X.to_dask_array(lengths=True)
    check_whole_rows(X)
    if any(size != size for size in X.chunks[0]):
        raise ValueError(
            "the chunk sizes of X are unknown (nan), so its rows cannot be told apart: call X.compute_chunk_sizes(), "
            "or X.to_dask_array(lengths=True) on the table it came from"
        )
    return X


def in_memory(values: Any) -> Any:
    """Compute a collection of Dask (targets, sample weights); anything else as it is."""
    return values.compute() if is_dask(values) else values
