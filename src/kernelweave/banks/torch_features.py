"""Explicit features on a device of torch: made there, kept there, and judged there.

Of the size of the samples, only targets, coefficients and decision values cross the bus; of the size of the features
nothing does.  One sweep, from the decision values to the gradient, waits for the device once.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._numerics.namespace import to_numpy
from ..kernels import Kernel
from ._base import Array, Index
from .devices import budget_of, load_torch, wide_dtype
from .halves import Factor
from .lowrank import SweptBank
from .memory import refuse
from .normalise import Normaliser
from .streaming import StreamingBank

__all__ = ["TorchFeatureBank", "torch_feature_bank"]

#: rows of a block that is made, and of one that is only read; both keep a device busy
BLOCK_ROWS, READ_ROWS = 1 << 16, 1 << 18
#: numbers of a block whose products with itself are added up
GRAM_ENTRIES = 1 << 27


class DeviceSweeps(SweptBank):
    """Features that a device goes through block by block; sums over blocks are in its best precision.

    Parameters
    ----------
    source : StreamingBank
        The same features on the host.
    device : torch.device
    """

    preferred_solver = "lbfgs"
    solvers = "solver='lbfgs' or solver='proximal_newton'"

    def __init__(self, source: StreamingBank, device: Any) -> None:
        super().__init__(source.n, source.starts, source.scale)
        self.source, self.device, self.wide = source, device, wide_dtype(device)
        self._placed: list[tuple[Array, Any]] = []

    @abstractmethod
    def blocks(self, height: int = BLOCK_ROWS) -> Iterator[tuple[slice, Any]]:
        """All rows in order, as (rows, features on the device)."""

    def _slices(self, height: int) -> Iterator[slice]:
        for top in range(0, self.n, height):
            yield slice(top, min(self.n, top + height))

    def _tensor(self, values: Any) -> Any:
        return load_torch().as_tensor(np.ascontiguousarray(values), dtype=self.wide, device=self.device)

    def _once(self, values: Array) -> Any:
        """Targets and weights of a problem, which stay the same arrays from sweep to sweep, on the device."""
        for known, tensor in self._placed:
            if known is values:
                return tensor
        self._placed = [*self._placed[-1:], (values, self._tensor(values))]
        return self._placed[-1][1]

    def forward(self, w: Array) -> Array:
        return to_numpy(self._decision(self._tensor(w).reshape(w.shape[0], -1))).reshape(self.n, *w.shape[1:])

    def _decision(self, w: Any) -> Any:
        out = load_torch().empty((self.n, w.shape[1]), dtype=self.wide, device=self.device)
        factor = None
        for rows, Z in self.blocks(READ_ROWS):
            factor = factor or Factor(w.T, Z.dtype, self.device)
            out[rows] = factor.times(Z.T, slice(None)).T
        return out

    def adjoint(self, a: Array) -> Array:
        columns = self._tensor(a).reshape(self.n, -1)
        out = load_torch().zeros(
            (int(self.starts[-1]), columns.shape[1]), dtype=self.wide, device=self.device
        )
        for rows, Z in self.blocks(READ_ROWS):
            out += Factor(columns[rows].T, Z.dtype, self.device).times(Z, slice(None)).T
        return to_numpy(out).reshape(-1, *a.shape[1:])

    def loss_sweep(self, w: Array, b: Array, loss: Any, y: Array, c: Array) -> tuple[float, Array, Array]:
        if not loss.portable:
            return super().loss_sweep(w, b, loss, y, c)
        torch = load_torch()
        targets, charges, shift = self._once(y), self._once(c), self._tensor(b)
        value = torch.zeros((), dtype=self.wide, device=self.device)
        along = torch.zeros(w.shape, dtype=self.wide, device=self.device)
        sums = torch.zeros(b.shape, dtype=self.wide, device=self.device)
        factor = None
        columns = self._tensor(w).T
        for rows, Z in self.blocks(READ_ROWS):
            factor = factor or Factor(columns, Z.dtype, self.device)
            f = (factor.times(Z.T, slice(None)).T + shift).reshape(targets[rows].shape)
            value += (charges[rows] * loss.value(targets[rows], f)).sum()
            g = (charges[rows] * loss.gradient(targets[rows], f)).reshape(-1, w.shape[1])
            along += Factor(g.T, Z.dtype, self.device).times(Z, slice(None)).T
            sums += g.sum(dim=0)
        # one wait for all three
        told = to_numpy(torch.cat([value[None], sums, along.reshape(-1)])).astype(float)
        return float(told[0]), told[1 + b.size :].reshape(w.shape), told[1 : 1 + b.size]

    def lengths(self, mixing: Array) -> Array:
        out = load_torch().empty(self.n, dtype=self.wide, device=self.device)
        mixed = self._tensor(mixing)
        for rows, Z in self.blocks():
            out[rows] = (Z.to(self.wide) ** 2) @ mixed
        return to_numpy(out)

    def mean_squares(self) -> Array:
        """Mean diagonals of the raw kernels."""
        sums = load_torch().zeros(int(self.starts[-1]) + 1, dtype=self.wide, device=self.device)
        for _, Z in self.blocks():
            sums[:-1] += (Z.to(self.wide) ** 2).sum(dim=0)
        return np.add.reduceat(to_numpy(sums), self.starts[:-1]) * (self.ranks > 0) / self.n

    def gram(self, rows: Index, charge: Array, columns: Index) -> Array:
        torch = load_torch()
        at, among = (torch.as_tensor(index, device=self.device) for index in (rows, columns))
        out = torch.zeros((columns.size + 1,) * 2, dtype=self.wide, device=self.device)
        root = self._tensor(np.sqrt(charge))[:, None]
        height = max(1, GRAM_ENTRIES // (columns.size + 1))
        for top in range(0, rows.size, height):
            part = slice(top, top + height)
            A = torch.ones((at[part].shape[0], columns.size + 1), dtype=self.wide, device=self.device)
            A[:, :-1] = self._rows(at[part])[:, among].to(self.wide)
            A *= root[part]
            out += A.T @ A
        return to_numpy(out)

    @abstractmethod
    def _rows(self, at: Any) -> Any:
        """Features of some rows on the device."""

    def features_of(self, rows: Index) -> Any:
        return self.source.features_of(rows)

    def diag(self) -> Array:
        return self.source.diag()

    def shuffled(self, rng: np.random.Generator) -> Iterator[tuple[Index, Any]]:
        return self.source.shuffled(rng)


class ComputedFeatures(DeviceSweeps):
    """Features made on the device whenever they are needed, in its best precision.

    Parameters
    ----------
    source : StreamingBank
        Its samples are an array of numbers, its kernels have ``portable_features``.
    device : torch.device
    """

    def __init__(self, source: StreamingBank, device: Any) -> None:
        super().__init__(source, device)
        self.samples = self._tensor(source.source[slice(0, source.n)])

    def blocks(self, height: int = BLOCK_ROWS) -> Iterator[tuple[slice, Any]]:
        for rows in self._slices(min(height, BLOCK_ROWS)):
            raw = self.samples[rows]
            yield rows, self._of(raw)

    def _of(self, raw: Any) -> Any:
        return load_torch().cat([kernel.portable_features(raw) for kernel in self.source.kernels], dim=1)

    def _rows(self, at: Any) -> Any:
        return self._of(self.samples[at])


class TorchFeatureBank(DeviceSweeps):
    """Features of all rows, kept on a device.

    Parameters
    ----------
    source : StreamingBank
        Makes those features on the host that the device cannot make, once; and again for the certificate.
    device : torch.device
    dtype : torch dtype
        In which they are kept.  Half precision costs digits of the features alone: sums are in single precision, and
        what is certified are features in double.
    """

    def __init__(self, source: StreamingBank, device: Any, dtype: Any) -> None:
        super().__init__(source, device)
        self.dtype = dtype
        self.computed = ComputedFeatures(source, device) if _made_on_device(source) else None
        self.kept = load_torch().empty((self.n, int(self.starts[-1])), dtype=dtype, device=device)
        for rows, Z in (self.computed or source).blocks():
            self.kept[rows] = Z if self.computed else self._tensor(Z.toarray() if sp.issparse(Z) else Z)
        if dtype == load_torch().float16 and not bool(self.kept.isfinite().all()):
            raise ValueError(
                "some features are too large for dtype='float16': standardise the columns, or use dtype='bfloat16'"
            )

    @property
    def nbytes(self) -> int:
        return int(self.kept.nbytes)

    def exact(self) -> SweptBank:
        if self.computed is None or self.wide.itemsize < 8:
            return self.source.exact()
        self.computed.scale = self.scale
        return self.computed

    def blocks(self, height: int = BLOCK_ROWS) -> Iterator[tuple[slice, Any]]:
        for rows in self._slices(height):
            yield rows, self.kept[rows]

    def _rows(self, at: Any) -> Any:
        return self.kept[at]


def _made_on_device(source: StreamingBank) -> bool:
    """Whether the device can make all features: from an array of numbers, by kernels that know how."""
    first = source.source[:1]
    if not isinstance(first, np.ndarray) or first.ndim != 2 or first.dtype.kind not in "fiub":
        return False
    row = load_torch().as_tensor(np.asarray(first, dtype=float))
    return all(kernel.portable_features(row) is not None for kernel in source.kernels)


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
    kind = getattr(torch, "float32" if dtype == "float64" and device.type == "mps" else dtype)
    source = StreamingBank(kernels, samples, dtype=np.float64 if kind == torch.float64 else np.float32,
                           block_rows=BLOCK_ROWS, threads=threads)  # fmt: skip
    needed, budget = source.n * int(source.starts[-1]) * kind.itemsize, budget_of(device, memory_budget)
    if needed > budget:
        smaller = {8: ["dtype='float32'", "dtype='float16'"], 4: ["dtype='float16'"]}.get(kind.itemsize, [])
        raise refuse(
            f"{int(source.starts[-1])} features of {source.n} samples on {device.type}", needed, budget,
            ["device=None, where features that do not fit are computed in every pass", "raise memory_budget", *smaller],
        )  # fmt: skip
    bank = TorchFeatureBank(source, device, kind)
    if normaliser.mode == "trace":
        normaliser.learn_traces(np.arange(bank.m), bank.mean_squares())
        bank.scale = source.scale = normaliser.scale.copy()
    return bank
