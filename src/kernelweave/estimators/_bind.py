"""From checked training input and a plan to a bank."""

from __future__ import annotations

from dataclasses import dataclass

from ..banks import (
    Bank,
    BoundKernels,
    PrecomputedKernels,
    PredictingKernels,
    StreamedKernels,
    StreamingBank,
    build_bank,
    precomputed_bank,
)
from ..banks.rows import spread_rows
from ..kernels import resolve_kernels
from ._inputs import Training
from ._plan import BankPlan

__all__ = ["Bound", "bind"]


@dataclass(frozen=True)
class Bound:
    """Training samples on a bank: what solvers read, and what prediction will need."""

    bank: Bank
    kernels: PredictingKernels
    training: Training


def bind(training: Training, plan: BankPlan) -> Bound:
    """Build the bank of the training samples where they are to be: in memory, on a device, on a cluster."""
    if training.client is not None:
        from ._on_cluster import bind_on_cluster

        return Bound(*bind_on_cluster(training, plan), training)
    if training.device is not None:
        from ._on_device import bind_on_device

        return Bound(*bind_on_device(training, plan), training)
    return Bound(*_bind_here(training, plan), training)


def _bind_here(training: Training, plan: BankPlan) -> tuple[Bank, PredictingKernels]:
    if training.kernels is None:
        given, normaliser = precomputed_bank(
            training.samples,
            normalize=plan.normalize,
            center=plan.center,
            memory_budget=plan.memory_budget,
            threads=plan.threads,
        )
        return given, PrecomputedKernels(given.n, given.m, normaliser)
    samples, storage = training.samples, plan.storage
    if training.kind == "rows":
        if storage not in ("auto", "stream"):
            raise ValueError(f"rows that are read as needed go with storage='stream', not {storage!r}")
        storage = "stream"
        samples = samples[spread_rows(training.n)]  # widths and landmarks are settled on a part that fits
    resolved = resolve_kernels(training.kernels, samples)
    if plan.center:
        resolved = [kernel.recentred(samples) for kernel in resolved]
    bank, normaliser = build_bank(
        resolved,
        training.samples,
        normalize=plan.normalize,
        center=plan.center,
        storage=storage,
        dtype=plan.dtype,
        memory_budget=plan.memory_budget,
        threads=plan.threads,
        mixing=plan.mixing,
        blocks=plan.blocks_suffice,
    )
    if isinstance(bank, StreamingBank):
        return bank, StreamedKernels(resolved, training.samples, normaliser, bank)
    return bank, BoundKernels(resolved, training.samples, normaliser)
