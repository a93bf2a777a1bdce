"""Decision values of new rows, computed on a device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._numerics.namespace import to_numpy
from ._base import Array
from .bound import BoundKernels
from .device_kernels import DeviceKernels
from .devices import device_of, is_tensor, load_torch
from .torch_bank import GPU_BLOCK, HOST_BLOCK

__all__ = ["at_device", "prediction_device"]


def prediction_device(device: Any, X: Any) -> Any:
    """Return where to predict: the device of the fit, or of X; None is the host.

    The host predicts the same, so a model whose device is not here is no error.
    """
    if device is None and not is_tensor(X):
        return None
    try:
        return device_of(device, X) if device is None else device_of(device)
    except (ImportError, ValueError):
        return None


def at_device(kernels: Any, device: Any) -> Any:
    """Return the kernels such that they decide on a device; as they are where they need the host.

    On a device they are evaluated on rows of numbers, with a factor of every kernel as their normalisation.
    """
    rows = getattr(kernels.samples, "ndim", 0) == 2 and isinstance(kernels.samples, np.ndarray)
    return _AtDevice(kernels, device) if rows and kernels.normaliser.keeps_powers() else kernels


@dataclass(frozen=True)
class _AtDevice:
    """Bound kernels that decide in single precision on a device, a block of new rows at a time."""

    kernels: BoundKernels
    device: Any

    def decision(self, new: Array, weights: Array, coef: Array, dtype: Any = np.float32) -> Array:
        """As for ``BoundKernels``."""
        torch = load_torch()
        samples = np.asarray(self.kernels.samples, dtype=float)
        known = samples.shape[0]
        table = coef[:, None] if coef.ndim == 1 else coef
        out = np.zeros((new.shape[0], table.shape[1]))
        if not np.any(coef):
            return out[:, 0] if coef.ndim == 1 else out
        factors = torch.as_tensor(table, dtype=torch.float32, device=self.device)
        height = max(1, (GPU_BLOCK if self.device.type == "cuda" else HOST_BLOCK) // known)
        for top in range(0, new.shape[0], height):
            both = np.concatenate(
                [samples, new[top : top + height]]
            )  # kernels on a device know one set of samples
            source = DeviceKernels(
                self.kernels.kernels, both, both.shape[0], self.kernels.normaliser, self.device, torch.float32
            )
            rows, cols = np.arange(known, both.shape[0]), np.arange(known)
            for j, entries in source.visit(rows, cols, np.arange(len(self.kernels.kernels))):
                # one set of weights serves all columns of the coefficients, or each column has its own
                weighted = factors * torch.as_tensor(weights[..., j], dtype=torch.float32, device=self.device)
                out[top : top + height] += to_numpy(entries @ weighted)
        return out[:, 0] if coef.ndim == 1 else out
