"""A bank on a device of torch: stored there in some precision, or computed again in every pass.

Stored entries are divided by the largest of their kernel first, so that half precision never overflows.  Results leave
in double precision.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._numerics.namespace import to_numpy
from ._base import Array, Bank, Index, support
from .device_kernels import DeviceKernels
from .devices import DTYPES, budget_of, load_torch, wide_dtype
from .halves import HOST_BLOCK, Factor
from .memory import refuse

__all__ = ["TorchBank", "torch_bank"]

#: entries of a block while it is computed on a GPU
GPU_BLOCK = 1 << 27
#: blocks of that size that exist at once while kernels are computed
BLOCKS_AT_ONCE = 5


class TorchBank(Bank):
    """m kernels on a device.

    Parameters
    ----------
    source : DeviceKernels
        Computes normalised entries on the device.
    storage : torch dtype or None
        Precision in which the kernels are stored; None computes them in every pass.
    """

    on_device = True

    def __init__(self, source: DeviceKernels, storage: Any = None) -> None:
        super().__init__(source.n, source.m)
        self.source = source
        self.device = source.device
        self.storage = storage
        self.wide = wide_dtype(self.device)
        self.block_entries = GPU_BLOCK if self.device.type == "cuda" else HOST_BLOCK
        kept = source.dtype if storage is None else storage
        self.rounding = 0.0 if kept.itemsize == 8 else float(load_torch().finfo(kept).eps)
        self.store: list[Any] = []
        self.factor = np.ones(self.m)
        if storage is not None:
            self._fill()

    @property
    def precision(self) -> str:
        """How the kernels are kept, for people."""
        return "computed" if self.storage is None else str(self.storage).removeprefix("torch.")

    @property
    def nbytes(self) -> int:
        return sum(int(matrix.nbytes) for matrix in self.store)

    def exact(self) -> TorchBank:
        """Return a bank that computes every entry in the device's best precision: the one to certify with."""
        return TorchBank(self.source.with_dtype(self.wide))

    def computed(self) -> TorchBank:
        """Return a bank that computes every entry in the precision of the source, which half types are not."""
        return TorchBank(self.source)

    def _fill(self) -> None:
        torch = load_torch()
        top = self.source.diag().max(axis=1)  # a positive semi-definite matrix is largest on its diagonal
        self.factor = np.where(top > 0, top, 1.0)
        everyone, which = np.arange(self.n), np.arange(self.m)
        self.store = [
            torch.empty((self.n, self.n), dtype=self.storage, device=self.device) for _ in range(self.m)
        ]
        for part in self._parts(self.n, self.n):
            for j, entries in self.source.visit(everyone[part], everyone, which):
                self.store[j][part] = entries.div_(self.factor[j])

    def _parts(self, rows: int, cols: int) -> list[slice]:
        """Slices of rows that make blocks of the size that is computed at once."""
        height = max(1, self.block_entries // max(1, cols))
        return [slice(top, min(rows, top + height)) for top in range(0, rows, height)]

    def _tensor(self, values: Any) -> Any:
        return load_torch().as_tensor(np.ascontiguousarray(values), dtype=self.wide, device=self.device)

    def _index(self, at: Index) -> Any:
        return load_torch().as_tensor(at, device=self.device)

    # ---- products --------------------------------------------------------------------------------------------

    def products(self, a: Array, rows: Index | None = None, kernels: Index | None = None) -> Any:
        """``apply`` as a tensor on the device, in its best precision."""
        torch = load_torch()
        which = np.arange(self.m) if kernels is None else kernels
        used = support(a)
        where = self.n if rows is None else rows.size
        self.count(float(which.size) * where * used.size)
        table = a[:, None] if a.ndim == 1 else a
        out = torch.zeros((which.size, where, table.shape[1]), dtype=self.wide, device=self.device)
        if used.size and where:
            (self._stored_products if self.store else self._computed_products)(table, used, rows, which, out)
        return out if a.ndim == 2 else out[:, :, 0]

    def _stored_products(self, a: Array, used: Index, rows: Index | None, which: Index, out: Any) -> None:
        part = None if 3 * used.size >= self.n else self._index(used)
        at = None if rows is None else self._index(rows)
        halves = Factor(self._tensor(a if part is None else a[used]).T, self.storage, self.device)
        height = self.n if part is None else max(1, self.block_entries // self.n)
        for place, j in enumerate(which):
            if part is None:
                products = halves.times(self.store[j], slice(None))
            else:  # rows of the kernel are gathered, piece by piece: it is symmetric
                products = sum(
                    halves.times(self.store[j][part[first : first + height]], slice(first, first + height))
                    for first in range(0, used.size, height)
                )
            products = products.T * float(self.factor[j])
            out[place] = products if at is None else products[at]

    def _computed_products(self, a: Array, used: Index, rows: Index | None, which: Index, out: Any) -> None:
        where = np.arange(self.n) if rows is None else rows
        table = self._tensor(a[used]).to(self.source.dtype)
        places = {int(j): np.flatnonzero(which == j) for j in which}
        for part in self._parts(where.size, used.size):
            for j, entries in self.source.visit(where[part], used, which):
                products = (entries @ table).to(self.wide)
                for place in places[j]:
                    out[place, part] = products

    def apply(self, a: Array, rows: Index | None = None, kernels: Index | None = None) -> Array:
        return to_numpy(self.products(a, rows, kernels)).astype(float, copy=False)

    def quad(self, a: Array, kernels: Index | None = None) -> Array:
        used = support(a)
        products = self.products(a, used, kernels)
        forms = (products * self._tensor(a[used])).sum(axis=tuple(range(1, products.ndim)))
        return to_numpy(forms).astype(float)

    def image(self, a: Array) -> Any:
        return self.products(np.asarray(a, dtype=float))

    def mix_product(self, weights: Array, a: Array) -> Array:
        active = np.flatnonzero(weights)
        if active.size == 0:
            return np.zeros(a.shape)
        mixed = load_torch().tensordot(
            self._tensor(weights[active]), self.products(a, kernels=active), dims=1
        )
        return to_numpy(mixed).astype(float)

    # ---- the mixed kernel ------------------------------------------------------------------------------------

    def mixed(self, weights: Array, rows: Index | None = None) -> Any:
        where = np.arange(self.n) if rows is None else rows
        return self._mixed(weights, where, where)

    def _mixed(self, weights: Array, rows: Index, cols: Index) -> Any:
        torch = load_torch()
        active = np.flatnonzero(weights)
        self.count(float(active.size) * rows.size * cols.size)
        double = self.storage == torch.float64 or (
            self.storage is None and self.source.dtype == torch.float64
        )
        kind = torch.float64 if double else torch.float32
        out = torch.zeros((rows.size, cols.size), dtype=kind, device=self.device)
        if rows.size == 0 or cols.size == 0:
            return out
        whole_rows, whole_cols = rows.size == self.n, cols.size == self.n
        at = self._index(cols)
        for part in self._parts(rows.size, self.n if self.store else cols.size):
            if not self.store:
                for j, entries in self.source.visit(rows[part], cols, active):
                    out[part].add_(entries, alpha=float(weights[j]))
                continue
            some = self._index(rows[part])
            for j in active.tolist():
                entries = self.store[j][part] if whole_rows else self.store[j][some]
                entries = entries if whole_cols else entries[:, at]
                out[part].add_(entries, alpha=float(weights[j] * self.factor[j]))
        return out

    def mix_block(self, weights: Array, rows: Index, cols: Index) -> Array:
        return to_numpy(self._mixed(weights, rows, cols)).astype(float)

    # ---- entries ---------------------------------------------------------------------------------------------

    def block(self, rows: Any, cols: Any, kernels: Index) -> Array:
        rows, cols, kernels = np.atleast_1d(rows), np.atleast_1d(cols), np.asarray(kernels)
        out = np.empty((kernels.size, rows.size, cols.size))
        if self.store:
            r, c = self._index(rows), self._index(cols)
            for place, j in enumerate(kernels):
                entries = self.store[j][r][:, c].to(self.wide)
                out[place] = to_numpy(entries) * self.factor[j]
            return out
        for j, entries in self.source.visit(rows, cols, kernels):
            out[kernels == j] = to_numpy(entries)
        return out

    def diag(self) -> Array:
        return self.source.diag()


def torch_bank(
    source: DeviceKernels,
    *,
    storage: str = "auto",
    dtype: Any = "float32",
    memory_budget: int | float | str | None = None,
    mixing: bool = True,
) -> TorchBank:
    """Count bytes, then build: with ``storage="auto"`` the first of these that fits: single precision, half, nothing.

    A solver that mixes no whole kernel (``mixing=False``) is spared the half.

    Parameters
    ----------
    source : DeviceKernels
    storage : {"auto", "dense", "lazy"}
        ``dense`` stores in ``dtype``, ``lazy`` computes entries in every pass.
    dtype : {"float64", "float32", "float16", "bfloat16"}
        Of ``dense`` storage; ``auto`` starts with single precision, or with a half type that is asked for.
    memory_budget : int, str or None
        None is nine tenths of the memory that is free on a GPU, half of a host's.
    mixing : bool
        Whether the mixed kernel, a matrix in single precision, will be wanted as well.
    """
    torch = load_torch()
    name = str(np.dtype(dtype)) if str(dtype) not in DTYPES else str(dtype)
    if storage not in ("auto", "dense", "lazy"):
        raise ValueError(f"storage must be auto, dense or lazy on a device, got {storage!r}")
    device, n, m = source.device, source.n, source.m
    budget = budget_of(device, memory_budget)
    block = min(GPU_BLOCK if device.type == "cuda" else HOST_BLOCK, n * n)
    working = BLOCKS_AT_ONCE * block * source.dtype.itemsize + (4 * n * n if mixing else 0)
    steps = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2}
    wanted = [name]
    if storage == "auto":
        # a solver that reads a few columns at a time is better served by exact ones than by half of the digits
        wanted = [name] if steps[name] == 2 else ["float32", "float16"] if mixing else ["float32"]
    if storage != "lazy":
        for kind in wanted:
            if m * n * n * steps[kind] + working <= budget:
                return TorchBank(source, getattr(torch, kind))
    if storage != "dense" and working <= budget:
        return TorchBank(source, None)
    total = working + (m * n * n * steps[name] if storage == "dense" else 0)
    ways = ["raise memory_budget", "fewer samples"]
    if storage == "dense":
        cheaper = [kind for kind in ("float32", "float16") if steps[kind] < steps[name]]
        fitting = [kind for kind in cheaper if m * n * n * steps[kind] + working <= budget]
        ways = [f"dtype={fitting[0]!r}"] if fitting else []
        ways += ["storage='lazy', which computes entries in every pass", "raise memory_budget"]
    elif mixing:
        ways.insert(0, "solver='working_set', which mixes support vectors alone")
    raise refuse(f"a bank of {m} kernels on {n} samples on {device.type}", total, budget, ways)
