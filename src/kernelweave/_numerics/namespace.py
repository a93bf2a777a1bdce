"""Which array library an array belongs to, and recorded sequences of GPU kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special


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
    if isinstance(x, np.ndarray | np.generic | float):
        return np.logaddexp(0.0, x)
    return x.new_zeros(()).logaddexp(x)


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


#: runs before a recording, in which libraries choose their kernels and take their memory
WARM_UP = 3


def recorded(
    function: Callable[..., tuple[Any, ...]], times: int, *state: Any
) -> Callable[..., tuple[Any, ...]]:
    """Return what applies a function of CUDA tensors so many times to its own results, replayed as one graph.

    The function must not wait for the device, nor read a value, and its results are of the state's shapes and types.
    The state lives where the graph knows it, from the one given here on: what is passed at a replay is that state.
    """
    import torch

    def repeated(*values: Any) -> tuple[Any, ...]:
        for _ in range(times):
            values = function(*values)
        return values

    places = tuple(value.clone() for value in state)
    side = torch.cuda.Stream(device=places[0].device)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(WARM_UP):
            function(*places)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for place, result in zip(places, repeated(*places), strict=True):
            place.copy_(result)

    def replay(*_: Any) -> tuple[Any, ...]:
        graph.replay()
        return places

    return replay
