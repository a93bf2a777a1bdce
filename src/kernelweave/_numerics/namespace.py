"""Which array library an array belongs to: code for first-order methods asks, instead of importing one."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["namespace", "to_numpy"]


def namespace(array: Any) -> Any:
    """Return the array-API namespace of an array: numpy for NumPy arrays, torch's for tensors."""
    if isinstance(array, np.ndarray | np.generic):
        return np
    if type(array).__module__.partition(".")[0] == "torch":
        from sklearn.externals.array_api_compat import torch

        return torch
    return array.__array_namespace__()


def to_numpy(array: Any) -> np.ndarray:
    """Return an array in the memory of the host as NumPy's; no copy where it is one."""
    if isinstance(array, np.ndarray):
        return array
    return np.asarray(array.cpu() if hasattr(array, "cpu") else array)
