"""Devices that torch computes on: found, checked, measured, and products with matrices in half precision."""

from __future__ import annotations

from typing import Any

from .._numerics.resources import default_budget
from .memory import parse_bytes

DEVICES = ("cuda", "cpu", "mps")
DTYPES = ("float64", "float32", "float16", "bfloat16")


def load_torch() -> Any:
    """Return torch, or say how to get it."""
    try:
        import torch
    except ImportError as error:
        raise ImportError(
            "device=... needs torch, which is not installed: pip install 'kernelweave[torch]', or use device=None"
        ) from error
    return torch


def is_tensor(X: Any) -> bool:
    """Whether X is a torch tensor; torch is not imported to find out."""
    return type(X).__module__.partition(".")[0] == "torch" and hasattr(X, "device")


def on_host(X: Any) -> Any:
    """Return a tensor, or a list of them, as NumPy arrays; anything else as it is."""
    if is_tensor(X):
        return X.detach().cpu().numpy()
    if isinstance(X, list | tuple) and len(X) and is_tensor(X[0]):
        return [on_host(view) for view in X]
    return X


def device_of(device: Any, *tensors: Any) -> Any:
    """Return the device to compute on, None for NumPy: the one named, or where the tensors are."""
    places = {str(tensor.device) for tensor in tensors if is_tensor(tensor)}
    if device is None and not places:
        return None
    torch = load_torch()
    if len(places) > 1:
        raise ValueError(
            f"the tensors are on several devices ({', '.join(sorted(places))}): move them to one with .to(...)"
        )
    if device is None:
        return torch.device(places.pop())
    try:
        made = torch.device(device)
        known = made.type in DEVICES
    except (RuntimeError, TypeError):
        known = False
    if not known:
        raise ValueError(f"device must be one of {', '.join(DEVICES)} or None, got {device!r}")
    if made.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(
            "device='cuda' was asked for, but torch sees no GPU: use device='cpu' or device=None"
        )
    if made.type == "cuda" and (made.index or 0) >= torch.cuda.device_count():
        raise ValueError(
            f"device={device!r} was asked for, but torch sees {torch.cuda.device_count()} GPU(s), counted from 0: "
            "use device='cuda' for the first"
        )
    if made.type == "mps" and not torch.backends.mps.is_available():
        raise ValueError(
            "device='mps' was asked for, but torch sees no Apple GPU: use device='cpu' or device=None"
        )
    for place in places:
        if torch.device(place).type != made.type:
            raise ValueError(
                f"X is on {place} and device={str(device)!r} was asked for: move X there with .to(...), or drop device"
            )
    return made


def wide_dtype(device: Any) -> Any:
    """Return the most precise floating type of a device: Apple's have no double precision."""
    torch = load_torch()
    return torch.float32 if device.type == "mps" else torch.float64


def budget_of(device: Any, memory_budget: int | float | str | None) -> int:
    """Bytes that may be used: what was said, else nine tenths of what is free on a GPU, half of a host's memory."""
    if memory_budget is not None or device.type != "cuda":
        return parse_bytes(memory_budget) if memory_budget is not None else default_budget()
    return int(0.9 * load_torch().cuda.mem_get_info(device)[0])


#: entries of a block that a host converts at once
HOST_BLOCK = 1 << 22
#: factor of the lower half of a coefficient
LOW = 2048.0


class Factor:
    """Coefficients ``(k, n)`` ready to be multiplied with matrices stored in half, single or double precision.

    For half precision they are split into two halves, ``a = high + low / 2048``, whose products are added up in single
    precision: what is lost is lost in storing the matrix, not in multiplying with it.
    """

    def __init__(self, a: Any, storage: Any, device: Any) -> None:
        torch = load_torch()
        self.k = a.shape[0]
        self.half = storage in (torch.float16, torch.bfloat16)
        self.on_gpu = device.type == "cuda"
        if not self.half or not self.on_gpu:
            self.a = a.to(storage if not self.half else torch.float32)
            return
        self.size = a.abs().max().clamp(min=torch.finfo(torch.float32).tiny)  # stays on the device
        unit = a / self.size
        high = unit.to(storage)
        low = ((unit - high.to(unit.dtype)) * LOW).to(storage)
        pad = -2 * self.k % 8  # rows in eights are what the matrix units take
        self.a = torch.cat([high, low, torch.zeros((pad, a.shape[1]), dtype=storage, device=a.device)])

    def times(self, matrix: Any, part: slice) -> Any:
        """``a[:, part] @ matrix``, in double precision."""
        torch = load_torch()
        wide = wide_dtype(matrix.device)
        if not self.half:
            # a product with a vector reads memory at full speed, one with a thin matrix does not
            if self.k == 1:
                return (matrix.T @ self.a[0, part])[None].to(wide)
            return (self.a[:, part] @ matrix).to(wide)
        if self.on_gpu:
            both = torch.mm(self.a[:, part], matrix, out_dtype=torch.float32).to(wide)
            return (both[: self.k] + both[self.k : 2 * self.k] / LOW) * self.size
        factor, out = self.a[:, part], 0.0
        height = max(1, HOST_BLOCK // matrix.shape[1])
        for top in range(0, matrix.shape[0], height):  # hosts multiply in single precision
            out = out + (factor[:, top : top + height] @ matrix[top : top + height].float()).to(wide)
        return out
