"""Which array library an array belongs to: code for first-order methods asks, instead of importing one."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

__all__ = ["as_like", "between", "cast", "expit", "namespace", "softplus", "to_numpy"]


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


def softplus(x: Any) -> Any:
    """``log(1 + exp(x))``, without overflow."""
    return (
        np.logaddexp(0.0, x)
        if isinstance(x, np.ndarray | np.generic | float)
        else x.new_zeros(()).logaddexp(x)
    )


def expit(x: Any) -> Any:
    """``1 / (1 + exp(-x))``, without overflow."""
    return special.expit(x) if isinstance(x, np.ndarray | np.generic | float) else x.sigmoid()


def between(x: Any, low: float, high: float | None = None) -> Any:
    """Return x, no smaller than ``low`` and no larger than ``high``."""
    if not isinstance(x, np.ndarray | np.generic | float):
        return x.clamp(low, high)
    return np.maximum(low, x) if high is None else np.clip(x, low, high)


def to_numpy(array: Any) -> np.ndarray:
    """Return an array in the memory of the host as NumPy's; no copy where it is one."""
    if isinstance(array, np.ndarray):
        return array
    return np.asarray(array.cpu() if hasattr(array, "cpu") else array)
