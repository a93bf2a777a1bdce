"""From checked training input and a plan to a bank."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from .._components import same_component
from ..banks import (
    Bank,
    BoundKernels,
    PrecomputedKernels,
    PredictingKernels,
    Recentred,
    Rescaled,
    StreamedKernels,
    StreamingBank,
    build_bank,
    completed_bank,
    completed_matrices,
    precomputed_bank,
)
from ..banks.rows import spread_rows
from ..exceptions import ScaleWarning, warn_at_caller
from ..kernels import resolve_kernels, take
from ._inputs import Training
from ._plan import BankPlan
from ._types import Codes

__all__ = ["Bound", "bind", "completed", "fold_bank", "scale_findings"]


@dataclass(frozen=True)
class Bound:
    """Training samples on a bank: what solvers read, and what prediction will need."""

    bank: Bank
    kernels: PredictingKernels
    training: Training
    #: where kernels do not suit the scales of the samples, in sentences; for ``findings_``
    findings: tuple[str, ...] = ()


def bind(training: Training, plan: BankPlan, warn: bool = True) -> Bound:
    """Build the bank of the training samples, and warn where its kernels do not suit their scales."""
    bound = _bound(training, plan)
    return replace(bound, findings=scale_findings(training, bound.kernels, plan, warn))


def scale_findings(
    training: Training, kernels: PredictingKernels, plan: BankPlan, warn: bool = True
) -> tuple[str, ...]:
    """Return where kernels do not suit the scales of the training samples; with a warning of each, at the caller."""
    from ..banks import scales  # not needed to import the estimators

    if training.kernels is None:
        findings = scales.findings_of_matrices(training.samples, plan.center)
    else:
        settled = kernels.kernels or training.kernels
        findings = scales.findings_of_kernels(settled, training.samples, plan.center, training.columns)
    if warn:
        for sentence in findings:
            warn_at_caller(sentence, ScaleWarning)
    return findings


def _bound(training: Training, plan: BankPlan) -> Bound:
    """Build the bank of the training samples where they are to be: in memory, on a device, on a cluster."""
    if training.client is not None:
        from ._on_cluster import bind_on_cluster

        return Bound(*bind_on_cluster(training, plan), training)
    if training.device is not None:
        from ._on_device import bind_on_device

        return Bound(*bind_on_device(training, plan), training)
    return Bound(*_bind_here(training, plan), training)


def completed(
    training: Training, plan: BankPlan, train: Codes | None = None
) -> tuple[Bank, PredictingKernels]:
    """Build a bank of kernels that samples may lack, everything learnt on the samples ``train``."""
    complete = (
        partial(completed_matrices, training.samples)
        if training.kernels is None
        else partial(completed_bank, training.kernels, training.samples)
    )
    return complete(
        how=plan.missing,
        normalize=plan.normalize,
        center=plan.center,
        memory_budget=plan.memory_budget,
        threads=plan.threads,
        train=train,
    )


def fold_bank(bound: Bound, plan: BankPlan, train: Codes) -> Bank:
    """Return a bank of all samples of which everything that was learnt was learnt on the samples of a fold."""
    bank, training = bound.bank, bound.training
    if plan.missing != "error":
        return completed(training, plan, train)[0]
    if training.kernels is not None:
        resolved = resolve_kernels(training.kernels, take(training.samples, train))
        settled = bound.kernels.kernels or training.kernels
        if any(
            new is not given and not same_component(new, old)
            for new, given, old in zip(resolved, training.kernels, settled, strict=True)
        ):
            bank = _bound(replace(training, kernels=resolved), plan).bank
    if plan.center:
        bank = Recentred(bank, train)
    if plan.normalize != "trace":
        return bank
    means = bank.diag()[:, train].mean(axis=1)
    # a kernel that vanishes on the fold stays at zero, as it does where it vanishes on all samples
    return Rescaled(bank, np.divide(1.0, means, out=np.zeros_like(means), where=means > 0))


def _bind_here(training: Training, plan: BankPlan) -> tuple[Bank, PredictingKernels]:
    if plan.missing != "error":
        return completed(training, plan)
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
        subsets=plan.subsets_suffice,
    )
    if isinstance(bank, StreamingBank):
        return bank, StreamedKernels(resolved, training.samples, normaliser, bank)
    return bank, BoundKernels(resolved, training.samples, normaliser)
