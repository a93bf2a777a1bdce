"""Decision values of new rows, computed on a device."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._numerics.namespace import to_numpy
from ._base import Array
from ._device import device_of, is_tensor, load_torch
from ._device_kernels import DeviceKernels
from .bound import BoundKernels
from .torch_bank import GPU_BLOCK, HOST_BLOCK

__all__ = ["device_decision", "prediction_device"]


def prediction_device(device: Any, X: Any, bound: Any) -> Any:
    """Return where to predict: the device of the fit, or of X; None is the host.

    The host predicts the same, so a model whose device is not here, or whose normalisation needs more than a factor of
    every kernel, is no error.
    """
    if device is None and not is_tensor(X):
        return None
    plain = isinstance(bound, BoundKernels) and isinstance(bound.samples, np.ndarray)
    if not (plain and bound.samples.ndim == 2 and bound.normaliser.keeps_powers()):
        return None
    try:
        return device_of(device, X) if device is None else device_of(device)
    except (ImportError, ValueError):
        return None


def device_decision(bound: BoundKernels, new: Array, weights: Array, coef: Array, device: Any) -> Array:
    """``BoundKernels.decision`` in single precision on a device, a block of new rows at a time."""
    torch = load_torch()
    samples = np.asarray(bound.samples, dtype=float)
    known = samples.shape[0]
    table = coef[:, None] if coef.ndim == 1 else coef
    out = np.zeros((new.shape[0], table.shape[1]))
    if not np.any(coef):
        return out[:, 0] if coef.ndim == 1 else out
    factors = torch.as_tensor(table, dtype=torch.float32, device=device)
    height = max(1, (GPU_BLOCK if device.type == "cuda" else HOST_BLOCK) // known)
    for top in range(0, new.shape[0], height):
        part = new[top : top + height]
        both = np.concatenate([samples, part])  # kernels on a device know one set of samples
        source = DeviceKernels(bound.kernels, both, both.shape[0], bound.normaliser, device, torch.float32)
        rows, cols = np.arange(known, both.shape[0]), np.arange(known)
        for j, entries in source.visit(rows, cols, np.arange(len(bound.kernels))):
            # one set of weights serves all columns of the coefficients, or each column has its own
            mixed = factors * torch.as_tensor(weights[..., j], dtype=torch.float32, device=device)
            out[top : top + height] += to_numpy(entries @ mixed)
    return out[:, 0] if coef.ndim == 1 else out
