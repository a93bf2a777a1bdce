"""Banks on a Dask cluster: rows stay on the workers, and a round of messages is a method of the bank.

Programs reach this subpackage as ``kernelweave.distributed``.
"""

from ._dask import ClusterSamples, DaskRows, cluster_samples, fit, in_memory, is_dask, lazily
from .banks import WorkerFeatures, WorkerKernels, cluster_bank
from .workers import ClusterCost, Workers

__all__ = [
    "ClusterCost", "ClusterSamples", "DaskRows", "WorkerFeatures", "WorkerKernels", "Workers",
    "cluster_bank", "cluster_samples", "fit", "in_memory", "is_dask", "lazily",
]  # fmt: skip
