"""From checked training input and a plan to a bank: in memory, on a device or on a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._components import same_component
from ..banks import (
    Bank,
    BoundKernels,
    Features,
    PrecomputedKernels,
    PredictingKernels,
    build_bank,
    check_kernels,
    check_storage,
    completed_bank,
    completed_matrices,
    learn_blockwise,
    precomputed_bank,
)
from ..banks.decide import Decision, Facts, keep
from ..banks.devices import budget_of
from ..banks.facts import facts_of_kernels
from ..banks.normalise import Normaliser
from ..banks.streaming import spread_rows
from ..cluster import cluster_feature_bank, cluster_kernel_bank
from ..exceptions import ScaleWarning, warn_at_caller
from ..kernels import Kernel, resolve_kernels, take, view_of
from ._inputs import Training
from ._parameters import Codes
from ._plan import BankPlan, dtype_name, keeps_factors


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
    bank, kernels = _built(training, plan)
    return Bound(bank, kernels, training, scale_findings(training, kernels, plan, warn))


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


def _built(training: Training, plan: BankPlan) -> tuple[Bank, PredictingKernels]:
    """Build the bank of the training samples where they are to be, and what prediction needs of it."""
    if training.client is not None:
        return _on_cluster(training, plan)
    if training.device is not None:
        return _on_device(training, plan)
    if plan.missing != "error":
        return completed(training, plan)
    options: dict[str, Any] = {
        "normalize": plan.normalize, "center": plan.center, "memory_budget": plan.memory_budget,
        "threads": plan.threads,
    }  # fmt: skip
    if training.kernels is None:
        given, normaliser = precomputed_bank(training.samples, **options)
        return given, PrecomputedKernels(given.n, given.m, normaliser)
    samples = training.samples
    if training.kind == "rows":
        samples = samples[spread_rows(training.n)]  # widths and landmarks are settled on a part that fits
    resolved = resolve_kernels(training.kernels, samples)
    if plan.center:
        resolved = [kernel.recentred(samples) for kernel in resolved]
    bank, normaliser = build_bank(
        resolved, training.samples, decision=_decided(training, plan, resolved), **options
    )
    if isinstance(bank, Features) and bank.streams:
        return bank, BoundKernels(resolved, training.samples, normaliser, bank)
    return bank, BoundKernels(resolved, training.samples, normaliser)


def _decided(training: Training, plan: BankPlan, kernels: list[Kernel], **others: Any) -> Decision:
    """Decide how settled kernels are kept on the training samples."""
    facts = facts_of_kernels(
        kernels, training.samples, keeps_factors(plan), kind="rows" if training.kind == "rows" else "", can=plan.can,
        memory_budget=plan.memory_budget, **others,
    )  # fmt: skip
    return keep(facts, plan.asked())


def _on_cluster(training: Training, plan: BankPlan) -> tuple[Bank, PredictingKernels]:
    """Build the bank on the workers of ``training.client``."""
    options: dict[str, Any] = {
        "storage": plan.storage, "dtype": plan.dtype, "memory_budget": plan.memory_budget,
    }  # fmt: skip
    n, m = training.n, len(training.names)
    normaliser = Normaliser.empty(plan.normalize, plan.center, m, n, training.names)
    assert training.kernels is not None  # matrices are refused where samples are on a cluster
    if training.kind == "rows":
        kernels = resolve_kernels(training.kernels, training.samples[spread_rows(n)])
        rows = cluster_feature_bank(training.client, kernels, training.samples, normaliser, **options)
        return rows, BoundKernels(kernels, training.samples, normaliser, rows)
    check_storage(plan.storage, "cluster")
    kernels = resolve_kernels(training.kernels, training.samples)
    check_kernels(kernels, training.samples)
    bank = cluster_kernel_bank(training.client, kernels, training.samples, n, normaliser, **options)
    return bank, BoundKernels(kernels, training.samples, normaliser)


def _on_device(training: Training, plan: BankPlan) -> tuple[Bank, PredictingKernels]:
    """Build the bank on ``training.device``.

    Entries are computed in single precision, in double where the bank is to be stored so.  Explicit features are put
    there instead where they are all that a solver needs.
    """
    import torch

    from ..banks.torch_bank import DeviceKernels, block_bytes, torch_bank, torch_feature_bank

    check_storage(plan.storage, "device")  # X may be a tensor where no device was named
    name = dtype_name(plan.dtype)
    double = name == "float64" and plan.storage == "dense" and training.device.type != "mps"
    dtype = torch.float64 if double else torch.float32
    n, m = training.n, len(training.names)
    normaliser = Normaliser.empty(plan.normalize, plan.center, m, n, training.names)
    here: dict[str, Any] = {
        "place": "device", "device": training.device.type, "memory": budget_of(training.device, plan.memory_budget),
        "block_bytes": block_bytes(n, training.device, dtype.itemsize),
    }  # fmt: skip
    if training.kernels is None:
        if normaliser.mode == "cosine":
            raise ValueError(
                "normalize='cosine' needs k(x, x) of new samples, which precomputed rows do not hold"
            )
        for j, matrix in enumerate(training.samples):
            means = matrix.mean(axis=1) if normaliser.center else None
            normaliser.learn(j, np.diagonal(matrix).astype(float), means)
        decision = keep(
            Facts(n, m, plan.can, samples="matrices", factors=keeps_factors(plan), **here), plan.asked()
        )
        source = DeviceKernels([], training.samples, n, normaliser, training.device, dtype)
        return torch_bank(source, decision), PrecomputedKernels(n, m, normaliser)
    kernels = resolve_kernels(training.kernels, training.samples)
    decision = _decided(training, plan, kernels, **here)
    if decision.representation == "features":
        features = torch_feature_bank(
            kernels, training.samples, normaliser, training.device, decision, plan.threads
        )
        return features, BoundKernels(kernels, training.samples, normaliser, features)
    check_kernels(kernels, training.samples)
    learn_blockwise(kernels, np.arange(m), training.samples, n, normaliser)
    source = DeviceKernels(kernels, training.samples, n, normaliser, training.device, dtype)
    return torch_bank(source, decision), BoundKernels(kernels, training.samples, normaliser)


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
        how=plan.missing, normalize=plan.normalize, center=plan.center, memory_budget=plan.memory_budget,
        threads=plan.threads, train=train,
    )  # fmt: skip


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
            bank, _ = _built(replace(training, kernels=resolved), plan)
    if plan.center:
        bank = bank.recentred(train)
    if plan.normalize != "trace":
        return bank
    means = bank.diag()[:, train].mean(axis=1)
    # a kernel that vanishes on the fold stays at zero, as it does where it vanishes on all samples
    return bank.rescaled(np.divide(1.0, means, out=np.zeros_like(means), where=means > 0))


def nuisance_kernels(
    nuisance: Sequence[str | int] | str | int | None, training: Training
) -> NDArray[np.bool_]:
    """Return which kernels are left out at prediction, from names of kernels or views, or positions."""
    m = len(training.names)
    out = np.zeros(m, dtype=bool)
    if nuisance is None:
        return out
    views = [view_of(kernel) for kernel in training.kernels or []] or list(training.names)
    for one in [nuisance] if isinstance(nuisance, str | int | np.integer) else nuisance:
        if isinstance(one, int | np.integer):
            hits = np.arange(m) == (one + m if one < 0 else one)
        else:
            hits = np.array(
                [one in (name, view) for name, view in zip(training.names, views, strict=True)], dtype=bool
            )
        if not np.any(hits):
            known = ", ".join(map(str, training.names[:8])) + (", ..." if m > 8 else "")
            raise ValueError(
                f"nuisance names {one!r}, which is no kernel, view or position: the {m} kernels are {known}"
            )
        out |= hits
    if np.all(out):
        raise ValueError("all kernels are nuisance, and nothing is left to predict with: name fewer")
    return out
