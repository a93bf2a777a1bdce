"""From samples on a cluster to a bank there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..banks import (
    Bank,
    BoundKernels,
    Normaliser,
    PredictingKernels,
    Rows,
    StreamedKernels,
    as_rows,
    check_kernels,
    check_storage,
)
from ..banks.rows import spread_rows
from ..banks.storages import STORAGES
from ..cluster import ClusterSamples, DaskRows, cluster_feature_bank, cluster_kernel_bank, is_dask
from ..kernels import KernelSpec, Schema, expand_kernels, resolve_kernels
from ._features_or_kernels import wants_features
from ._plan import BankPlan
from ._types import Samples

if TYPE_CHECKING:
    from ._inputs import Training

__all__ = ["bind_on_cluster", "features_suffice", "gathered"]


def features_suffice(plan: BankPlan, given: ClusterSamples, spec: KernelSpec) -> Rows | None:
    """Rows that are to stay where they are, because explicit features of them are all that will be needed.

    None where kernels have none, or the solver asks for kernel matrices: then samples come to the client, and kernel
    values stay on the workers.
    """
    if "features on a cluster" not in STORAGES.get(plan.storage, ()):
        return None
    rows = _as_rows(given)
    if rows is None:
        return None
    insists = plan.storage != "auto" or isinstance(given.samples, Rows)
    if not insists and (plan.center or plan.normalize == "cosine"):
        return None
    kernels = expand_kernels(spec, Schema.of(rows))
    without = [kernel.name for kernel in kernels if kernel.rank(rows.shape[1]) is None]
    if without:
        if insists:
            raise ValueError(
                f"features on a cluster are asked for, which {without[0]!r} does not have ({len(without)} such "
                "kernels): wrap them in kernels.nystroem(...), use kernels.random_fourier, or storage='dense'"
            )
        return None
    return rows if insists or wants_features(plan, kernels, *rows.shape) else None


def _as_rows(given: ClusterSamples) -> Rows | None:
    """Samples as rows of numbers that stay where they are, or None where they are something else."""
    samples = given.samples
    kinds = getattr(samples, "dtypes", None)  # of a table
    if kinds is not None and any(kind.kind not in "fiub" for kind in kinds):
        return None
    if is_dask(samples):
        return DaskRows(samples, given.client)
    if hasattr(samples, "iloc"):
        made = as_rows(samples.to_numpy(dtype=float))
        made.names, made.table = tuple(map(str, samples.columns)), True
        return made
    if isinstance(samples, Rows) or (getattr(samples, "ndim", 0) == 2 and samples.dtype.kind in "fiub"):
        return as_rows(samples)
    return None


def gathered(given: ClusterSamples) -> Samples:
    """Samples in the client's memory, as numbers or as a table."""
    samples = given.samples
    if isinstance(samples, DaskRows):
        return samples[:]
    if not is_dask(samples):
        return samples
    if not hasattr(samples, "columns"):
        samples = DaskRows(samples, given.client).array
    return given.client.compute(samples).result()


def bind_on_cluster(training: Training, plan: BankPlan) -> tuple[Bank, PredictingKernels]:
    """Build the bank of the training samples on the workers, and what prediction needs of it."""
    options: dict[str, Any] = {
        "storage": plan.storage,
        "dtype": plan.dtype,
        "memory_budget": plan.memory_budget,
    }
    n, m = training.n, len(training.names)
    normaliser = Normaliser.empty(plan.normalize, plan.center, m, n, training.names)
    assert training.kernels is not None  # matrices are refused where samples are on a cluster
    if training.kind == "rows":
        kernels = resolve_kernels(training.kernels, training.samples[spread_rows(n)])
        rows = cluster_feature_bank(training.client, kernels, training.samples, normaliser, **options)
        return rows, StreamedKernels(kernels, training.samples, normaliser, rows)
    check_storage(plan.storage, "cluster")
    kernels = resolve_kernels(training.kernels, training.samples)
    check_kernels(kernels, training.samples)
    bank = cluster_kernel_bank(training.client, kernels, training.samples, n, normaliser, **options)
    return bank, BoundKernels(kernels, training.samples, normaliser)
