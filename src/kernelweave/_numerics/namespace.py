"""Which array library an array belongs to: code for first-order methods asks, instead of importing one."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["as_like", "cast", "namespace", "to_numpy"]


def namespace(array: Any) -> Any:
    """Return the array-API namespace of an array: numpy for NumPy arrays, torch's for tensors."""
    if isinstance(array, np.ndarray | np.generic):
        return np
    if type(array).__module__.partition(".")[0] == "torch":
        from sklearn.externals.array_api_compat import torch

        return torch
    return array.__array_namespace__()


def as_like(values: Any, array: Any) -> Any:
    """Return values as an array of the library, the type and the device of another."""
    if isinstance(array, np.ndarray | np.generic):
        return np.asarray(values)
    return namespace(array).asarray(values, dtype=array.dtype, device=array.device)


def cast(array: Any, dtype: Any) -> Any:
    """Return the array in another type of its own library."""
    return array.astype(dtype, copy=False) if isinstance(array, np.ndarray) else array.to(dtype)


def to_numpy(array: Any) -> np.ndarray:
    """Return an array in the memory of the host as NumPy's; no copy where it is one."""
    if isinstance(array, np.ndarray):
        return array
    return np.asarray(array.cpu() if hasattr(array, "cpu") else array)
