"""From checked training input and a plan to a bank: in memory, on a device or on a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._components import same_component
from ..banks import Bank, build_bank, check_kernels, check_storage, completed_bank
from ..banks.decide import keep
from ..banks.facts import facts_of_kernels
from ..banks.normalise import Normaliser
from ..banks.streaming import spread_rows
from ..cluster import cluster_bank
from ..exceptions import ScaleWarning, warn_at_caller
from ..kernels import Kernel, resolve_kernels, take, view_of
from ..kernels.pairwise import factors_of
from ..views import Pairs
from ._inputs import Training
from ._parameters import Codes
from ._plan import BankPlan, dtype_name


@dataclass(frozen=True)
class Bound:
    """Training samples on a bank: what solvers read, and what prediction will need."""

    bank: Bank
    training: Training
    #: where kernels do not suit the scales of the samples, in sentences; for ``findings_``
    findings: tuple[str, ...] = ()


def bind(training: Training, plan: BankPlan, warn: bool = True) -> Bound:
    """Build the bank of the training samples, and warn where its kernels do not suit their scales."""
    bank = _built(training, plan)
    return Bound(bank, training, scale_findings(training, bank.kernels, plan, warn))


def scale_findings(
    training: Training, settled: list[Kernel], plan: BankPlan, warn: bool = True
) -> tuple[str, ...]:
    """Return where kernels do not suit the scales of the training samples; with a warning of each, at the caller."""
    from ..banks import scales  # not needed to import the estimators

    if training.kernels is None:
        findings = scales.findings_of_matrices(training.samples, plan.center)
    elif isinstance(training.samples, Pairs):
        findings = ()
        sides, used = factors_of(settled), training.samples.compact()
        for side, factors in zip((used.left, used.right), sides[:2], strict=True):
            own = [kernel for kernel in factors if kernel.family not in ("constant", "identity")]
            findings += scales.findings_of_kernels(own, side.objects, False) if own else ()
        findings = tuple(dict.fromkeys(findings))
    else:
        kernels = settled or training.kernels
        findings = scales.findings_of_kernels(kernels, training.samples, plan.center, training.columns)
    if warn:
        for sentence in findings:
            warn_at_caller(sentence, ScaleWarning)
    return findings


def _built(training: Training, plan: BankPlan) -> Bank:
    """Build the bank of the training samples where they are to be."""
    if training.client is not None:
        return _on_cluster(training, plan)
    if plan.missing != "error":
        return completed(training, plan)
    kernels, samples, device = training.kernels, training.samples, training.device
    rows = training.kind == "rows"
    others: dict[str, Any] = {}
    if device is not None:
        from ..banks.torch_bank import device_facts

        check_storage(plan.storage, "device")  # X may be a tensor where no device was named
        others = device_facts(training.n, device, plan.storage, dtype_name(plan.dtype), plan.memory_budget)
    if kernels is not None:
        # widths and landmarks are settled on a part that fits
        part = samples[spread_rows(training.n)] if rows else samples
        kernels = resolve_kernels(kernels, part)
        if plan.center and device is None and training.kind != "pairs":
            kernels = [kernel.recentred(part) for kernel in kernels]
    facts = facts_of_kernels(
        kernels, samples, plan.normalize, plan.center, kind="rows" if rows else "", can=plan.can,
        memory_budget=plan.memory_budget, **others,
    )  # fmt: skip
    return build_bank(
        kernels, samples, normalize=plan.normalize, center=plan.center, threads=plan.threads,
        decision=keep(facts, plan.asked()), device=device,
    )  # fmt: skip


def _on_cluster(training: Training, plan: BankPlan) -> Bank:
    """Build the bank on the workers of ``training.client``."""
    n, samples, rows = training.n, training.samples, training.kind == "rows"
    normaliser = Normaliser.empty(plan.normalize, plan.center, len(training.names), n, training.names)
    assert training.kernels is not None  # matrices are refused where samples are on a cluster
    if not rows:
        check_storage(plan.storage, "cluster")
    kernels = resolve_kernels(training.kernels, samples[spread_rows(n)] if rows else samples)
    if not rows:
        check_kernels(kernels, samples)
    return cluster_bank(
        training.client, kernels, samples, normaliser, storage=plan.storage, dtype=plan.dtype,
        memory_budget=plan.memory_budget,
    )  # fmt: skip


def completed(training: Training, plan: BankPlan, train: Codes | None = None) -> Bank:
    """Build a bank of kernels that samples may lack, everything learnt on the samples ``train``."""
    return completed_bank(
        training.kernels, training.samples, plan.missing, normalize=plan.normalize, center=plan.center,
        memory_budget=plan.memory_budget, threads=plan.threads, train=train,
    )  # fmt: skip


def fold_bank(bound: Bound, plan: BankPlan, train: Codes) -> Bank:
    """Return a bank of all samples of which everything that was learnt was learnt on the samples of a fold."""
    bank, training = bound.bank, bound.training
    if plan.missing != "error":
        return completed(training, plan, train)
    if training.kernels is not None:
        resolved = resolve_kernels(training.kernels, take(training.samples, train))
        settled = bank.kernels or training.kernels
        if any(
            new is not given and not same_component(new, old)
            for new, given, old in zip(resolved, training.kernels, settled, strict=True)
        ):
            bank = _built(replace(training, kernels=resolved), plan)
    if plan.center:
        bank = bank.recentred(train)
    if plan.normalize != "trace":
        return bank
    means = bank.mean_diagonals(train)
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
