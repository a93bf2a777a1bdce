"""Explicit features computed on a device, from rows that lie there: nothing of the size of the features is sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..kernels import Kernel
from .devices import load_torch, wide_dtype

__all__ = ["DeviceMap"]


class DeviceMap:
    """Random Fourier features and columns of the samples, for rows of numbers on a device.

    Parameters
    ----------
    kernels : sequence of Kernel
        Settled; each with ``waves`` or ``feature_columns``.
    rows : tensor of shape (n, columns)
        In the most precise type of the device.
    """

    def __init__(self, kernels: Sequence[Kernel], rows: Any) -> None:
        self.rows, self.parts = rows, []
        for kernel in kernels:
            plain = kernel.feature_columns(rows.shape[1])
            waves = kernel.waves(rows.shape[1])
            columns = plain if plain is not None else waves[0]  # type: ignore[index]
            frequencies = None if plain is not None else self._tensor(waves[1])  # type: ignore[index]
            self.parts.append((load_torch().as_tensor(columns, device=rows.device), frequencies))

    @classmethod
    def of(cls, kernels: Sequence[Kernel], samples: Any, device: Any) -> DeviceMap | None:
        """Return the map where the device can compute it; None where features have to be asked of the kernels."""
        numbers = isinstance(samples, np.ndarray) and samples.ndim == 2 and samples.dtype.kind in "fiub"
        if not numbers:
            return None
        width = samples.shape[1]
        if any(k.feature_columns(width) is None and k.waves(width) is None for k in kernels):
            return None
        rows = load_torch().as_tensor(samples, device=device).to(wide_dtype(device))
        # rows that are not finite are refused by the kernels, in a sentence
        return cls(kernels, rows) if bool(rows.isfinite().all()) else None

    def _tensor(self, values: Any) -> Any:
        return load_torch().as_tensor(values, dtype=self.rows.dtype, device=self.rows.device)

    def block(self, part: Any, dtype: Any) -> Any:
        """Return the features of some rows, computed in the type of the rows, in another type."""
        rows, torch = self.rows[part], load_torch()
        made = []
        for columns, frequencies in self.parts:
            here = rows[:, columns]
            if frequencies is None:
                made.append(here.to(dtype))
                continue
            angles = here @ frequencies
            scale = float(1.0 / np.sqrt(frequencies.shape[1]))
            made += [(angles.cos() * scale).to(dtype), (angles.sin() * scale).to(dtype)]
        return torch.hstack(made)
