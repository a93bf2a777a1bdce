"""Explicit features on a device of torch: products with them there, losses and sums over samples on the host."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._numerics.namespace import to_numpy
from ..kernels import Kernel
from ._base import Array, Index
from .devices import budget_of, load_torch, wide_dtype
from .lowrank import SweptBank
from .memory import refuse
from .normalise import Normaliser
from .streaming import StreamingBank

__all__ = ["TorchFeatureBank", "torch_feature_bank"]


class TorchFeatureBank(SweptBank):
    """Features of all rows on a device, in blocks; sums over blocks are in double precision.

    Parameters
    ----------
    source : StreamingBank
        Computes the features on the host, once; and again, in double precision, for the certificate.
    device : torch.device
    dtype : torch dtype
        In which they are kept.
    """

    preferred_solver = "lbfgs"
    solvers = "solver='lbfgs'"

    def __init__(self, source: StreamingBank, device: Any, dtype: Any) -> None:
        super().__init__(source.n, source.starts, source.scale)
        self.source, self.device, self.dtype = source, device, dtype
        self.kept = [(rows, self._tensor(_dense(Z))) for rows, Z in source.blocks()]

    @property
    def nbytes(self) -> int:
        return sum(int(Z.nbytes) for _, Z in self.kept)

    def exact(self) -> StreamingBank:
        return self.source.exact()

    def _tensor(self, values: Any) -> Any:
        return load_torch().as_tensor(np.ascontiguousarray(values), dtype=self.dtype, device=self.device)

    def forward(self, w: Array) -> Array:
        out, w = np.empty((self.n, *w.shape[1:])), self._tensor(w)
        for rows, Z in self.kept:
            out[rows] = to_numpy(Z @ w)
        return out

    def adjoint(self, a: Array) -> Array:
        out = np.zeros((int(self.starts[-1]), *a.shape[1:]))
        for rows, Z in self.kept:
            out += to_numpy(Z.T @ self._tensor(a[rows]))
        return out

    def lengths(self, mixing: Array) -> Array:
        out, mixing = np.empty(self.n), self._tensor(mixing)
        for rows, Z in self.kept:
            out[rows] = to_numpy((Z * Z) @ mixing)
        return out

    def mean_squares(self) -> Array:
        """Mean diagonals of the raw kernels."""
        sums = np.zeros(int(self.starts[-1]) + 1)
        for _, Z in self.kept:
            sums[:-1] += to_numpy((Z * Z).sum(axis=0, dtype=wide_dtype(self.device)))
        return np.add.reduceat(sums, self.starts[:-1]) * (self.ranks > 0) / self.n

    def features_of(self, rows: Index) -> Any:
        return self.source.features_of(rows)

    def diag(self) -> Array:
        return self.source.diag()

    def shuffled(self, rng: np.random.Generator) -> Iterator[tuple[Index, Any]]:
        return self.source.shuffled(rng)


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
    kind = torch.float64 if dtype == "float64" and device.type != "mps" else torch.float32
    # blocks of a size that keeps a device busy
    source = StreamingBank(kernels, samples, dtype=np.float32 if kind == torch.float32 else np.float64,
                           block_rows=1 << 16, threads=threads)  # fmt: skip
    needed, budget = source.n * int(source.starts[-1]) * kind.itemsize, budget_of(device, memory_budget)
    if needed > budget:
        raise refuse(
            f"{int(source.starts[-1])} features of {source.n} samples on {device.type}", needed, budget,
            ["device=None, where features that do not fit are computed in every pass", "raise memory_budget"]
            + (["dtype='float32'"] if kind == torch.float64 else []),
        )  # fmt: skip
    bank = TorchFeatureBank(source, device, kind)
    if normaliser.mode == "trace":
        normaliser.learn_traces(np.arange(bank.m), bank.mean_squares())
        bank.scale = source.scale = normaliser.scale.copy()
    return bank
