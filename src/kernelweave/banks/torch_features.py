"""Explicit features on a device of torch: computed, multiplied and charged there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._numerics.namespace import to_numpy
from ..kernels import Kernel
from ._base import Array, Index
from .device_maps import DeviceMap
from .devices import budget_of, load_torch, wide_dtype
from .lowrank import SweptBank
from .memory import refuse
from .normalise import Normaliser
from .streaming import StreamingBank

__all__ = ["TorchFeatureBank", "columns_times", "torch_feature_bank"]

#: rows of a block, which keeps a device busy
BLOCK_ROWS = 1 << 16
#: rows of a piece of a product that sums over rows
PIECE_ROWS = 1 << 10


class TorchFeatureBank(SweptBank):
    """Features of all rows on a device, in blocks; sums over blocks are in double precision.

    Where the device can compute the features itself, nothing larger than a vector of n numbers is sent either way, and
    losses and their gradients are computed there, too.

    Parameters
    ----------
    source : StreamingBank
        Computes the features on the host, where the device cannot; and again, in double precision, for the certificate.
    device : torch.device
    dtype : torch dtype
        In which they are kept; products are never in less than single precision.
    made : DeviceMap, optional
        Computes the features on the device.
    keep : bool, default=True
        Whether to keep the features; else every sweep computes them again.
    """

    preferred_solver = "lbfgs"
    solvers = "solver='lbfgs'"

    def __init__(
        self, source: StreamingBank, device: Any, dtype: Any, made: DeviceMap | None = None, keep: bool = True
    ) -> None:
        super().__init__(source.n, source.starts, source.scale)
        self.source, self.device, self.dtype, self.made = source, device, dtype, made
        torch = load_torch()
        self.working = torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype
        self.kept: list[tuple[slice, Any]] | None = None
        self._held: dict[int, tuple[Any, Any]] = {}
        if keep:
            self.kept = list(self._made())

    def _made(self) -> Iterator[tuple[slice, Any]]:
        """Features of all rows in order, block by block."""
        if self.made is None:
            for rows, Z in self.source.blocks():
                yield rows, self._tensor(_dense(Z), self.dtype)
            return
        for top in range(0, self.n, BLOCK_ROWS):
            rows = slice(top, min(self.n, top + BLOCK_ROWS))
            yield rows, self.made.block(rows, self.dtype)

    def _blocks(self) -> Iterator[tuple[slice, Any]]:
        for rows, Z in self._made() if self.kept is None else self.kept:
            yield rows, Z.to(self.working)

    @property
    def nbytes(self) -> int:
        return sum(int(Z.nbytes) for _, Z in self.kept or ())

    def exact(self) -> SweptBank:
        wide = wide_dtype(self.device)
        if self.made is None or wide != load_torch().float64:
            return self.source.exact()
        return TorchFeatureBank(self.source, self.device, wide, self.made, keep=False)

    def _tensor(self, values: Any, dtype: Any = None) -> Any:
        return load_torch().as_tensor(
            np.ascontiguousarray(values), dtype=dtype or self.working, device=self.device
        )

    def _wide(self, values: Any) -> Any:
        """Numbers that many sweeps ask for, kept on the device in its most precise type."""
        if id(values) not in self._held:
            self._held[id(values)] = values, self._tensor(values, wide_dtype(self.device))
        return self._held[id(values)][1]

    # The host waits for the device once in each of these, when the answer is fetched.

    def _forward(self, w: Any) -> Any:
        torch = load_torch()
        out = torch.empty((self.n, *w.shape[1:]), dtype=wide_dtype(self.device), device=self.device)
        for rows, Z in self._blocks():
            out[rows] = (Z @ w).to(out.dtype)
        return out

    def _adjoint(self, a: Any) -> Any:
        torch = load_torch()
        shape = (int(self.starts[-1]), *a.shape[1:])
        out = torch.zeros(shape, dtype=wide_dtype(self.device), device=self.device)
        for rows, Z in self._blocks():
            out += columns_times(Z, a[rows]).to(out.dtype)
        return out

    def forward(self, w: Array) -> Array:
        return to_numpy(self._forward(self._tensor(w))).astype(float, copy=False)

    def adjoint(self, a: Array) -> Array:
        return to_numpy(self._adjoint(self._tensor(a))).astype(float, copy=False)

    def loss_sweep(self, w: Array, b: Array, loss: Any, y: Array, c: Array) -> tuple[float, Array, Array]:
        if not loss.computes_tensors:
            return super().loss_sweep(w, b, loss, y, c)
        wide, torch = wide_dtype(self.device), load_torch()
        targets, charge = (self._wide(values) for values in (y, c))
        narrow, shift = self._tensor(w), self._tensor(b, wide)
        total = torch.zeros((), dtype=wide, device=self.device)
        along = torch.zeros(w.shape, dtype=wide, device=self.device)
        sums = torch.zeros(w.shape[1], dtype=wide, device=self.device)
        for rows, Z in self._blocks():  # from both sides while a block is near
            f = (Z @ narrow).to(wide) + shift
            here, weight = targets[rows].reshape(f.shape), charge[rows].reshape(f.shape)
            value, g = loss.on_tensors(here, f)
            g = weight * g
            total += (weight * value).sum()
            sums += g.sum(dim=0)
            along += columns_times(Z, g.to(self.working)).to(wide)
        answer = to_numpy(torch.cat([total.reshape(1), sums, along.reshape(-1)])).astype(float, copy=False)
        k = w.shape[1]
        return float(answer[0]), answer[1 + k :].reshape(w.shape), answer[1 : 1 + k]

    def lengths(self, mixing: Array) -> Array:
        torch = load_torch()
        out, weights = torch.empty(self.n, dtype=self.working, device=self.device), self._tensor(mixing)
        for rows, Z in self._blocks():
            out[rows] = (Z * Z) @ weights
        return to_numpy(out).astype(float)

    def mean_squares(self) -> Array:
        """Mean diagonals of the raw kernels."""
        torch, wide = load_torch(), wide_dtype(self.device)
        sums = torch.zeros(int(self.starts[-1]) + 1, dtype=wide, device=self.device)
        for _, Z in self._blocks():
            sums[:-1] += (Z * Z).sum(dim=0, dtype=wide)
        return np.add.reduceat(to_numpy(sums).astype(float), self.starts[:-1]) * (self.ranks > 0) / self.n

    def features_of(self, rows: Index) -> Any:
        return self.source.features_of(rows)

    def diag(self) -> Array:
        return self.source.diag()

    def shuffled(self, rng: np.random.Generator) -> Iterator[tuple[Index, Any]]:
        return self.source.shuffled(rng)


def columns_times(Z: Any, a: Any) -> Any:
    """``Z' a`` of a tall block: by pieces of rows in one batch, because one product of that shape leaves a GPU idle."""
    rows, pieces = Z.shape[0], Z.shape[0] // PIECE_ROWS
    table = a.reshape(rows, -1)
    if Z.device.type != "cuda" or pieces < 2:
        out = Z.T @ table
    else:
        whole = pieces * PIECE_ROWS
        batch = table[:whole].reshape(pieces, PIECE_ROWS, -1).transpose(1, 2)
        out = (batch @ Z[:whole].reshape(pieces, PIECE_ROWS, -1)).sum(dim=0).T
        out = out + Z[whole:].T @ table[whole:]
    return out.reshape(Z.shape[1], *a.shape[1:])


def _dense(Z: Any) -> Any:
    return Z.toarray() if sp.issparse(Z) else Z


def torch_feature_bank(
    kernels: Sequence[Kernel],
    samples: Any,
    normaliser: Normaliser,
    device: Any,
    *,
    dtype: str,
    memory_budget: int | float | str | None,
    threads: int,
) -> TorchFeatureBank:
    """Count bytes, put the features on the device, and learn their traces there."""
    torch = load_torch()
    halves = {"float16": torch.float16, "bfloat16": torch.bfloat16}
    double = dtype == "float64" and device.type != "mps"
    kind = torch.float64 if double else halves.get(dtype, torch.float32)
    source = StreamingBank(kernels, samples, dtype=np.float64 if double else np.float32,
                           block_rows=BLOCK_ROWS, threads=threads)  # fmt: skip
    needed, budget = source.n * int(source.starts[-1]) * kind.itemsize, budget_of(device, memory_budget)
    if needed > budget:
        raise refuse(
            f"{int(source.starts[-1])} features of {source.n} samples on {device.type}", needed, budget,
            ["device=None, where features that do not fit are computed in every pass", "raise memory_budget"]
            + (["dtype='float32'"] if kind == torch.float64 else []),
        )  # fmt: skip
    bank = TorchFeatureBank(source, device, kind, DeviceMap.of(kernels, samples, device))
    if normaliser.mode == "trace":
        normaliser.learn_traces(np.arange(bank.m), bank.mean_squares())
        bank.scale = source.scale = normaliser.scale.copy()
    return bank
