"""From checked input to a bank on a device of torch."""

from __future__ import annotations

import numpy as np

from ..banks import (
    Bank,
    BoundKernels,
    PrecomputedKernels,
    PredictingKernels,
    StreamedKernels,
    check_kernels,
    check_storage,
    learn_blockwise,
)
from ..banks.normalise import Normaliser
from ..kernels import Kernel, resolve_kernels
from ._features_or_kernels import wants_features
from ._inputs import Training
from ._plan import BankPlan, dtype_name

__all__ = ["bind_on_device"]


def bind_on_device(training: Training, plan: BankPlan) -> tuple[Bank, PredictingKernels]:
    """Build the bank of the training samples on ``training.device``, and what prediction needs of it.

    Entries are computed in single precision, in double where the bank is to be stored so.  Explicit features are put
    there instead where they are all that a solver needs.
    """
    import torch

    from ..banks.device_kernels import DeviceKernels, GivenMatrices
    from ..banks.torch_bank import torch_bank
    from ..banks.torch_features import torch_feature_bank

    check_storage(plan.storage, "device")  # X may be a tensor where no device was named
    name = dtype_name(plan.dtype)
    double = name == "float64" and plan.storage == "dense" and training.device.type != "mps"
    dtype = torch.float64 if double else torch.float32
    n, m = training.n, len(training.names)
    normaliser = Normaliser.empty(plan.normalize, plan.center, m, n, training.names)
    source: DeviceKernels
    bound: PredictingKernels
    if training.kernels is None:
        _learn_given(training, normaliser)
        source = GivenMatrices(training.samples, normaliser, training.device, dtype)
        bound = PrecomputedKernels(n, m, normaliser)
    else:
        if training.kind == "rows":
            raise ValueError("rows that are read as needed go with storage='stream' and device=None")
        kernels = resolve_kernels(training.kernels, training.samples)
        if _features_asked_for(plan, kernels, training, normaliser):
            features = torch_feature_bank(
                kernels, training.samples, normaliser, training.device,
                dtype=name if plan.storage == "lowrank" or "16" in name else "float32",
                memory_budget=plan.memory_budget, threads=plan.threads,
            )  # fmt: skip
            return features, StreamedKernels(kernels, training.samples, normaliser, features)
        check_kernels(kernels, training.samples)
        learn_blockwise(kernels, np.arange(m), training.samples, n, normaliser)
        source = DeviceKernels(kernels, training.samples, n, normaliser, training.device, dtype)
        bound = BoundKernels(kernels, training.samples, normaliser)
    bank = torch_bank(
        source, storage=plan.storage, dtype=name, memory_budget=plan.memory_budget,
        mixing=plan.mixing or training.kernels is None,
    )  # fmt: skip
    return bank, bound


def _learn_given(training: Training, normaliser: Normaliser) -> None:
    """Learn the normalisation of matrices that were given."""
    if normaliser.mode == "cosine":
        raise ValueError(
            "normalize='cosine' needs k(x, x) of new samples, which precomputed rows do not hold"
        )
    for j, matrix in enumerate(training.samples):
        means = matrix.mean(axis=1) if normaliser.center else None
        normaliser.learn(j, np.diagonal(matrix).astype(float), means)


def _features_asked_for(
    plan: BankPlan, kernels: list[Kernel], training: Training, normaliser: Normaliser
) -> bool:
    """Whether explicit features go to the device: on demand, or where they are enough and are fewer than samples."""
    asked = plan.storage == "lowrank"
    if len(getattr(training.samples, "shape", ())) != 2:
        if asked:
            raise ValueError("storage='lowrank' needs rows of numbers")
        return False
    without = [kernel.name for kernel in kernels if kernel.rank(training.width) is None]
    if asked and without:
        raise ValueError(
            f"storage='lowrank' needs explicit features, which {without[0]!r} does not have ({len(without)} such "
            "kernels): wrap them in kernels.nystroem(...), or use storage='auto'"
        )
    if asked and not normaliser.keeps_powers():
        raise ValueError("storage='lowrank' on a device takes normalize='trace' or None, without centring")
    if asked:
        return True
    plain = plan.storage == "auto" and normaliser.keeps_powers()
    return plain and wants_features(plan, kernels, training.n, training.width)
