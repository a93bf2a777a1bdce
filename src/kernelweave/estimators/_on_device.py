"""From checked input to a bank on a device of torch."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..banks import Bank, BoundKernels, PrecomputedKernels, StreamedKernels
from ..banks._device import DTYPES, device_of
from ..banks.build import _check_unsure, _learn_blockwise
from ..banks.normalise import Normaliser
from ..kernels import resolve_kernels
from ._features_or_kernels import wants_features

__all__ = ["bind_on_device", "check_device_options"]

STORAGES = ("auto", "dense", "lazy", "lowrank")


def check_device_options(device: Any, storage: Any, dtype: Any) -> None:
    """Raise where a device is not there, or an option is not one on devices."""
    device_of(device)
    if storage not in STORAGES:
        raise ValueError(f"storage must be one of {', '.join(STORAGES)} with a device, got {storage!r}")
    _name_of(dtype)


def _name_of(dtype: Any) -> str:
    """Return a floating type by its name, or say which there are."""
    name = str(dtype)
    if name not in DTYPES:
        try:
            name = str(np.dtype(dtype))
        except TypeError:
            name = ""
    if name not in DTYPES:
        raise ValueError(f"dtype must be one of {', '.join(DTYPES)} with a device, got {dtype!r}")
    return name


def bind_on_device(training: Any, estimator: Any, mixing: bool, threads: int = 1) -> tuple[Bank, Any]:
    """Build the bank of the training samples on ``training.device``, and what prediction needs of it.

    Entries are computed in single precision, in double where the bank is to be stored so.  Explicit features are put
    there instead where they are all that a solver needs.
    """
    import torch

    from ..banks._device_kernels import DeviceKernels, GivenMatrices
    from ..banks.torch_bank import torch_bank
    from ..banks.torch_features import torch_feature_bank

    check_device_options(training.device, estimator.storage, estimator.dtype)
    name = _name_of(estimator.dtype)
    double = name == "float64" and estimator.storage == "dense" and training.device.type != "mps"
    dtype = torch.float64 if double else torch.float32
    n, m = training.n, len(training.names)
    normaliser = Normaliser.empty(estimator.normalize, estimator.center, m, n, training.names)
    source: DeviceKernels
    bound: Any
    if training.kernels is None:
        if normaliser.mode == "cosine":
            raise ValueError(
                "normalize='cosine' needs k(x, x) of new samples, which precomputed rows do not hold"
            )
        for j, matrix in enumerate(training.samples):
            means = matrix.mean(axis=1) if estimator.center else None
            normaliser.learn(j, np.diagonal(matrix).astype(float), means)
        source = GivenMatrices(training.samples, normaliser, training.device, dtype)
        bound = PrecomputedKernels(n, m, normaliser)
    else:
        if training.kind == "rows":
            raise ValueError("rows that are read as needed go with storage='stream' and device=None")
        kernels = resolve_kernels(training.kernels, training.samples)
        if _features_asked_for(estimator, kernels, training, normaliser):
            features = torch_feature_bank(
                kernels, training.samples, normaliser, training.device,
                dtype=name if estimator.storage == "lowrank" else "float32",
                memory_budget=estimator.memory_budget, threads=threads,
            )  # fmt: skip
            return features, StreamedKernels(kernels, training.samples, normaliser, features)
        _check_unsure(kernels, training.samples)
        _learn_blockwise(kernels, np.arange(m), training.samples, n, normaliser)
        source = DeviceKernels(kernels, training.samples, n, normaliser, training.device, dtype)
        bound = BoundKernels(kernels, training.samples, normaliser)
    bank = torch_bank(
        source, storage=estimator.storage, dtype=name, memory_budget=estimator.memory_budget, mixing=mixing
    )
    return bank, bound


def _features_asked_for(estimator: Any, kernels: list[Any], training: Any, normaliser: Normaliser) -> bool:
    """Whether explicit features go to the device: on demand, or where they are enough and are fewer than samples."""
    asked = estimator.storage == "lowrank"
    if len(getattr(training.samples, "shape", ())) != 2:
        if asked:
            raise ValueError("storage='lowrank' needs rows of numbers")
        return False
    width = int(training.samples.shape[1])
    without = [kernel.name for kernel in kernels if kernel.rank(width) is None]
    if asked and without:
        raise ValueError(
            f"storage='lowrank' needs explicit features, which {without[0]!r} does not have ({len(without)} such "
            "kernels): wrap them in kernels.nystroem(...), or use storage='auto'"
        )
    if asked and not normaliser.keeps_powers():
        raise ValueError("storage='lowrank' on a device takes normalize='trace' or None, without centring")
    if asked:
        return True
    plain = estimator.storage == "auto" and normaliser.keeps_powers()
    return plain and wants_features(estimator, kernels, training.n, width)
