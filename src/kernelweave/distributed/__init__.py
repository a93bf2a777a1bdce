"""Fitting on a Dask cluster: rows of the bank stay on the workers, and a round of messages is a method of the bank.

>>> from dask.distributed import Client  # doctest: +SKIP
>>> from kernelweave import MKLClassifier, distributed  # doctest: +SKIP
>>> distributed.fit(Client("tcp://scheduler:8786"), MKLClassifier(bank), X, y)  # doctest: +SKIP
"""

from ._dask import in_memory, is_dask
from ._fit import ClusterSamples, cluster_samples, fit
from ._lazy import lazily
from ._make import cluster_feature_bank, cluster_kernel_bank
from ._sources import DaskRows
from .banks import ClusterFeatureBank, ClusterKernelBank
from .workers import ClusterCost, Workers

__all__ = [
    "ClusterCost",
    "ClusterFeatureBank",
    "ClusterKernelBank",
    "ClusterSamples",
    "DaskRows",
    "Workers",
    "cluster_feature_bank",
    "cluster_kernel_bank",
    "cluster_samples",
    "fit",
    "in_memory",
    "is_dask",
    "lazily",
]
