"""``distributed.fit``, and what marks samples as meant for a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ._dask import check_client, current_client, is_dask


@dataclass
class ClusterSamples:
    """Samples, and the client of the cluster that they are to be fitted on."""

    client: Any
    samples: Any


def cluster_samples(X: Any) -> ClusterSamples | None:
    """Samples for a cluster: a collection of Dask, or what ``fit`` was given; None for anything else."""
    if isinstance(X, ClusterSamples):
        return X
    return ClusterSamples(current_client(), X) if is_dask(X) else None


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
