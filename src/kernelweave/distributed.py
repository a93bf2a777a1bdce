"""Fitting on a Dask cluster: the public API of ``kernelweave.cluster``.

Behind it is ``cluster``, so that inside the package ``distributed`` is Dask's own and nothing else;
programs import from here.

>>> from dask.distributed import Client  # doctest: +SKIP
>>> from kernelweave import MKLClassifier, distributed  # doctest: +SKIP
>>> distributed.fit(Client("tcp://scheduler:8786"), MKLClassifier(bank), X, y)  # doctest: +SKIP
"""

from .cluster import (
    ClusterCost,
    ClusterSamples,
    DaskRows,
    WorkerFeatures,
    WorkerKernels,
    Workers,
    cluster_bank,
    cluster_samples,
    fit,
    in_memory,
    is_dask,
    lazily,
)

__all__ = [
    "ClusterCost", "ClusterSamples", "DaskRows", "WorkerFeatures", "WorkerKernels", "Workers",
    "cluster_bank", "cluster_samples", "fit", "in_memory", "is_dask", "lazily",
]  # fmt: skip
__dir__ = __all__.copy  # completion shows the public names alone
