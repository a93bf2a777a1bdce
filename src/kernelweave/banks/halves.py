"""Products of coefficients with matrices stored in half, single or double precision.

For half precision coefficients are split into two halves, ``a = high + low / 2048``, whose products are added up in
single precision: what is lost is lost in storing the matrix, not in multiplying with it.
"""

from __future__ import annotations

from typing import Any

from .devices import load_torch, wide_dtype

__all__ = ["HOST_BLOCK", "Factor"]

#: entries of a block that a host converts at once
HOST_BLOCK = 1 << 22
#: factor of the lower half of a coefficient
LOW = 2048.0


class Factor:
    """Coefficients ``(k, n)`` ready to be multiplied with stored matrices from the right."""

    def __init__(self, a: Any, storage: Any, device: Any) -> None:
        torch = load_torch()
        self.k = a.shape[0]
        self.half = storage in (torch.float16, torch.bfloat16)
        self.on_gpu = device.type == "cuda"
        if not self.half or not self.on_gpu:
            self.a = a.to(storage if not self.half else torch.float32)
            return
        self.size = (
            a.abs().max().clamp(min=torch.finfo(torch.float32).tiny)
        )  # on the device: nobody waits for it
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
            if (
                self.k == 1
            ):  # a product with a vector reads memory at full speed, one with a thin matrix does not
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
