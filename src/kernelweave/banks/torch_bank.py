"""Matrices and explicit features on a device of torch, and prediction there.

Stored entries are divided by the largest of their kernel first, so that half precision never overflows.  Results leave
in double precision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from .._numerics.namespace import to_numpy
from .._typing import Array, Index
from ..kernels import Kernel, take
from ..kernels.columns import Named, OnColumns
from ..kernels.dotproduct import Linear, Polynomial
from ..kernels.stationary import Gaussian, Laplacian
from ._base import Storage, support
from .build import check_kernels
from .decide import Decision
from .devices import HOST_BLOCK, Factor, budget_of, device_of, is_tensor, load_torch, wide_dtype
from .lazy import row_slices
from .lowrank import FeatureStorage
from .normalise import Normaliser
from .power import base_groups
from .streaming import FeatureStream

if TYPE_CHECKING:
    from .bound import BoundKernels

Base = Callable[[Index, Index], Any]


def to_device(values: Any, dtype: Any, device: Any) -> Any:
    """Return an array as a tensor on a device."""
    return load_torch().as_tensor(np.ascontiguousarray(values), dtype=dtype, device=device)


class DeviceKernels:
    """Normalised kernel values of training samples on a device, in one floating type; families share their base.

    Kernels of distances and inner products are computed where the samples lie; any other kernel computes its blocks on
    the host, from where they are copied.  Without kernels, ``samples`` are their matrices, copied block by block.
    """

    def __init__(
        self, kernels: list[Kernel], samples: Any, n: int, normaliser: Normaliser, device: Any, dtype: Any
    ) -> None:
        self.kernels, self.samples, self.n, self.normaliser = kernels, samples, n, normaliser
        self.device, self.dtype = device, dtype
        self.m = len(kernels) or len(samples)
        self._tensor = partial(to_device, dtype=dtype, device=device)
        self._bases: dict[Any, Base] = {}
        self._placed: Any = None
        self._indices: list[tuple[Any, Any]] = [(None, None), (None, None)]

    def visit(self, rows: Index, cols: Index, which: Index) -> Iterator[tuple[int, Any]]:
        """Yield (kernel, its entries at rows x cols), kernels of a family one after the other."""
        for j in () if self.kernels else np.unique(which).tolist():
            entries = self._tensor(self.samples[j][np.ix_(rows, cols)].astype(float))
            yield j, self.normalised(j, entries, rows, cols)
        if not self.kernels:
            return
        for group in base_groups(self.kernels, np.unique(which)):
            first = self.kernels[group[0]]
            if first.base_key not in self._bases:
                self._bases[first.base_key] = self._base(first)
            base = self._bases[first.base_key](rows, cols)
            for place, j in enumerate(group):
                entries = base if place == len(group) - 1 else base.clone()
                power = self.kernels[j].exponent
                if self.kernels[j].decay:
                    entries *= -power
                    entries.exp_()
                elif power != 1.0:
                    entries = entries.square_() if power == 2.0 else entries.pow_(power)
                yield j, self.normalised(j, entries, rows, cols)

    def otherwise(self, dtype: Any, normaliser: Normaliser) -> DeviceKernels:
        """Return the kernels of the same samples in another type, normalised otherwise."""
        other = copy(self)
        other.dtype, other.normaliser, other._bases = dtype, normaliser, {}
        other._tensor = partial(to_device, dtype=dtype, device=self.device)
        return other

    def learn(self) -> None:
        """Learn the normalisation from raw diagonals, and row means where kernels are centred."""
        raw = self.otherwise(wide_dtype(self.device), Normaliser.empty(None, False, self.m, self.n, []))
        means, everyone, centred = np.empty((self.m, self.n)), np.arange(self.n), self.normaliser.center
        for part in row_slices(self.n, self.n, block_entries(self.device)) if centred else ():
            for j, entries in raw.visit(everyone[part], everyone, np.arange(self.m)):
                means[j, part] = to_numpy(entries.mean(dim=1))
        for j, diagonal in enumerate(raw.diag()):
            self.normaliser.learn(j, diagonal, means[j] if centred else None)

    def diag(self) -> Array:
        """Normalised diagonals, ``(m, n)``, on the host; their sums are made where the samples lie."""
        known, out = self.normaliser, np.empty((self.m, self.n))
        for j in range(self.m):
            placed = self._columns(self.kernels[j]) if self.kernels else None
            if placed is not None:
                inside, X, gamma, coef0 = placed
                flat = isinstance(inside, Gaussian | Laplacian)
                base = np.zeros(self.n) if flat else gamma * to_numpy((X * X).sum(dim=1)) + coef0
                diagonal = self.kernels[j].of_base(base.astype(float))
            elif self.kernels:
                diagonal = self.kernels[j].diag(self.samples)
            else:
                diagonal = np.diagonal(self.samples[j]).astype(float)
            if known.center:
                assert known.row_means is not None
                assert known.grand_means is not None
                diagonal = diagonal - 2.0 * known.row_means[j] + known.grand_means[j]
            if known.diagonal is not None:
                diagonal = diagonal / known.diagonal[j]
            out[j] = diagonal * known.scale[j]
        return out

    def normalised(self, j: int, entries: Any, rows: Index, cols: Index) -> Any:
        """Normalise a block as ``Normaliser.train_block`` does, on the device and in place."""
        known = self.normaliser
        if known.center:
            assert known.row_means is not None
            assert known.grand_means is not None
            entries -= self._tensor(known.row_means[j, rows])[:, None]
            entries -= self._tensor(known.row_means[j, cols])[None, :]
            entries += float(known.grand_means[j])
        if known.diagonal is not None:
            entries /= self._tensor(np.sqrt(known.diagonal[j, rows]))[:, None]
            entries /= self._tensor(np.sqrt(known.diagonal[j, cols]))[None, :]
        entries *= float(known.scale[j])
        return entries

    def _columns(self, kernel: Kernel) -> tuple[Kernel, Any, float, float] | None:
        """Return the kernel under its names, its columns, its slope and constant; None where it is not known here."""
        inside, columns, samples = kernel, None, self.samples
        while isinstance(inside, Named | OnColumns):
            if isinstance(inside, OnColumns):
                if columns is not None or not isinstance(inside.columns, tuple):
                    break
                columns = list(inside.columns)
            inside = inside.kernel
        plain = isinstance(samples, np.ndarray) and samples.ndim == 2 and samples.dtype.kind in "fiub"
        if not plain or type(inside) not in (Gaussian, Laplacian, Linear, Polynomial):
            return None
        if self._placed is None:
            self._placed = load_torch().as_tensor(samples, device=self.device).to(wide_dtype(self.device))
        # columns are picked on the device, which hosts do slowly
        X = self._placed if columns is None else self._placed[:, columns]
        return inside, X, *(inside._checked() if isinstance(inside, Polynomial) else (1.0, 0.0))

    def _base(self, kernel: Kernel) -> Base:
        """Return the function of rows and columns that gives the base matrix of a kernel."""
        torch, samples = load_torch(), self.samples
        placed = self._columns(kernel)
        if placed is None:
            return lambda rows, cols: self._tensor(kernel.base(take(samples, rows), take(samples, cols)))
        inside, X, gamma, coef0 = placed
        if isinstance(inside, Gaussian):
            X = X - X.mean(dim=0)  # distances do not change with the origin, but the digits lost do
            norms = (X * X).sum(dim=1).to(self.dtype)
        X = X.to(self.dtype)

        def base(rows: Index, cols: Index) -> Any:
            r, c = self._index(rows, 0), self._index(cols, 1)
            if isinstance(inside, Laplacian):
                return torch.cdist(X[r], X[c], p=1.0)
            if not isinstance(inside, Gaussian):
                products = X[r] @ X[c].T
                if gamma != 1.0:
                    products *= gamma
                if coef0 != 0.0:
                    products += coef0
                return products
            squares = torch.addmm(norms[c][None, :], X[r], X[c].T, alpha=-2.0)
            squares += norms[r][:, None]
            squares.clamp_(min=0.0)
            # the distance of a sample to itself is exactly zero
            if not (isinstance(r, slice) and isinstance(c, slice)):
                left, right = (
                    torch.arange(at.start, at.stop, device=self.device) if isinstance(at, slice) else at
                    for at in (r, c)
                )
                squares.masked_fill_(left[:, None] == right[None, :], 0.0)
            elif -squares.shape[0] < r.start - c.start < squares.shape[1]:
                squares.diagonal(r.start - c.start).zero_()
            return squares

        return base

    def _index(self, at: Index, side: int) -> Any:
        """Rows or columns as a slice where they are a range, else as indices, which stay here for the next block."""
        if at.size and at[-1] - at[0] == at.size - 1 and (at.size < 2 or np.all(np.diff(at) == 1)):
            return slice(int(at[0]), int(at[-1]) + 1)
        if self._indices[side][0] is not at:  # a copy waits for all that the device has to do
            self._indices[side] = at, load_torch().as_tensor(at, device=self.device)
        return self._indices[side][1]


#: entries of a block while it is computed on a GPU
GPU_BLOCK = 1 << 27
#: blocks of that size that exist at once while kernels are computed
BLOCKS_AT_ONCE = 5


def block_entries(device: Any) -> int:
    """Return the entries of a block while it is computed."""
    return GPU_BLOCK if device.type == "cuda" else HOST_BLOCK


class DeviceMatrices(Storage):
    """m kernels on a device, stored in a precision, or computed in every pass where ``storage`` is None."""

    on_device = True

    def __init__(self, source: DeviceKernels, storage: Any = None) -> None:
        super().__init__(source.n, source.m)
        self.source = source
        self.device = source.device
        self.storage = storage
        self.precision = "computed" if storage is None else str(storage).removeprefix("torch.")
        self.wide = wide_dtype(self.device)
        self._tensor = partial(to_device, dtype=self.wide, device=self.device)
        self.block_entries = block_entries(self.device)
        kept = source.dtype if storage is None else storage
        self.rounding = 0.0 if kept.itemsize == 8 else float(load_torch().finfo(kept).eps)
        self.store: list[Any] = []
        self.factor = np.ones(self.m)
        if storage is None:
            return
        top = source.diag().max(axis=1)  # a positive semi-definite matrix is largest on its diagonal
        self.factor = np.where(top > 0, top, 1.0)
        everyone, which = np.arange(self.n), np.arange(self.m)
        whole = {"dtype": storage, "device": self.device}
        self.store = [load_torch().empty((self.n, self.n), **whole) for _ in which]
        for part in row_slices(self.n, self.n, self.block_entries):
            for j, entries in source.visit(everyone[part], everyone, which):
                self.store[j][part] = entries.div_(self.factor[j])
        self.nbytes = sum(int(matrix.nbytes) for matrix in self.store)

    def exact(self) -> DeviceMatrices:
        """Compute every entry in the device's best precision, to certify with."""
        return DeviceMatrices(self.source.otherwise(self.wide, self.source.normaliser))

    def computed(self) -> DeviceMatrices:
        """Compute every entry in the precision of the source, which half types are not."""
        return DeviceMatrices(self.source)

    def products(self, a: Array, rows: Index | None = None, kernels: Index | None = None) -> Any:
        """``apply`` as a tensor on the device, in its best precision."""
        torch = load_torch()
        which = np.arange(self.m) if kernels is None else kernels
        used = support(a)
        height = self.n if rows is None else rows.size
        table = a[:, None] if a.ndim == 1 else a
        out = torch.zeros((which.size, height, table.shape[1]), dtype=self.wide, device=self.device)
        if used.size and height and self.store:
            part = None if 3 * used.size >= self.n else torch.as_tensor(used, device=self.device)
            at = slice(None) if rows is None else torch.as_tensor(rows, device=self.device)
            halves = Factor(self._tensor(table if part is None else table[used]).T, self.storage, self.device)
            piece = self.n if part is None else max(1, self.block_entries // self.n)
            for place, j in enumerate(which):
                if part is None:
                    products = halves.times(self.store[j], slice(None))
                else:  # rows of the kernel are gathered, piece by piece: it is symmetric
                    products = sum(
                        halves.times(self.store[j][part[first : first + piece]], slice(first, first + piece))
                        for first in range(0, used.size, piece)
                    )
                out[place] = (products.T * float(self.factor[j]))[at]
        elif used.size and height:
            where = np.arange(self.n) if rows is None else rows
            coef = self._tensor(table[used]).to(self.source.dtype)
            for some in row_slices(where.size, used.size, self.block_entries):
                for j, entries in self.source.visit(where[some], used, which):
                    products = (entries @ coef).to(self.wide)
                    for place in np.flatnonzero(which == j).tolist():
                        out[place, some] = products
        return out if a.ndim == 2 else out[:, :, 0]

    def apply(self, a: Array, rows: Index | None = None, kernels: Index | None = None) -> Array:
        return to_numpy(self.products(a, rows, kernels)).astype(float, copy=False)

    def quad(self, a: Array, kernels: Index | None = None) -> Array:
        used = support(a)
        products = self.products(a, used, kernels)
        forms = (products * self._tensor(a[used])).sum(axis=tuple(range(1, products.ndim)))
        return to_numpy(forms).astype(float)

    def judged(self, weights: Array, a: Array) -> tuple[Array, Array]:
        image = self.image(a)
        forms, mixed = self.image_quad(image, self._tensor(a)), self.image_mix(image, weights)
        return to_numpy(forms).astype(float), to_numpy(mixed).astype(float)

    def image(self, a: Array) -> Any:
        return self.products(np.asarray(a, dtype=float))

    def mix_product(self, weights: Array, a: Array) -> Array:
        active = np.flatnonzero(weights)
        mixed = load_torch().tensordot(
            self._tensor(weights[active]), self.products(a, kernels=active), dims=1
        )
        return to_numpy(mixed).astype(float)

    def mixed(self, weights: Array, rows: Index | None = None) -> Any:
        where = np.arange(self.n) if rows is None else rows
        return self._mixed(weights, where, where)

    def _mixed(self, weights: Array, rows: Index, cols: Index) -> Any:
        torch = load_torch()
        active = np.flatnonzero(weights)
        double = (self.storage or self.source.dtype) == torch.float64
        kind = torch.float64 if double else torch.float32
        out = torch.zeros((rows.size, cols.size), dtype=kind, device=self.device)
        if rows.size == 0 or cols.size == 0:
            return out
        whole_rows, whole_cols = rows.size == self.n, cols.size == self.n
        at = torch.as_tensor(cols, device=self.device)
        for part in row_slices(rows.size, self.n if self.store else cols.size, self.block_entries):
            if not self.store:
                for j, entries in self.source.visit(rows[part], cols, active):
                    out[part].add_(entries, alpha=float(weights[j]))
                continue
            some = torch.as_tensor(rows[part], device=self.device)
            for j in active.tolist():
                entries = self.store[j][part] if whole_rows else self.store[j][some]
                entries = entries if whole_cols else entries[:, at]
                out[part].add_(entries, alpha=float(weights[j] * self.factor[j]))
        return out

    def mix_block(self, weights: Array, rows: Index, cols: Index) -> Array:
        return to_numpy(self._mixed(weights, rows, cols)).astype(float)

    def block(self, rows: Any, cols: Any, kernels: Index) -> Array:
        rows, cols, kernels = np.atleast_1d(rows), np.atleast_1d(cols), np.asarray(kernels)
        out = np.empty((kernels.size, rows.size, cols.size))
        if self.store:
            r, c = (load_torch().as_tensor(at, device=self.device) for at in (rows, cols))
            for place, j in enumerate(kernels):
                entries = self.store[j][r][:, c].to(self.wide)
                out[place] = to_numpy(entries) * self.factor[j]
            return out
        for j, entries in self.source.visit(rows, cols, kernels):
            out[kernels == j] = to_numpy(entries)
        return out

    def diag(self) -> Array:
        return self.source.diag()


def device_facts(n: int, device: Any, storage: str, dtype: str, memory_budget: Any) -> dict[str, Any]:
    """Return the facts that a device adds: its kind, its memory, the blocks that exist at once while it computes."""
    block = min(block_entries(device), n * n)
    return {
        "place": "device", "device": device.type, "memory": budget_of(device, memory_budget),
        "block_bytes": BLOCKS_AT_ONCE * block * computed_dtype(device, storage, dtype).itemsize,
    }  # fmt: skip


def computed_dtype(device: Any, storage: str, dtype: str) -> Any:
    """Return the type that entries are computed in: single precision, double where they are to be stored so."""
    torch = load_torch()
    double = dtype == "float64" and storage == "dense" and device.type != "mps"
    return torch.float64 if double else torch.float32


#: rows of a block that is made, and of one that is only read; both keep a device busy
BLOCK_ROWS, READ_ROWS = 1 << 16, 1 << 18
#: numbers of a block whose products with itself are added up
GRAM_ENTRIES = 1 << 27


def all_portable(kernels: list[Kernel], rows: Any) -> bool:
    """Whether features of such rows can be made on a device."""
    if not (isinstance(rows, np.ndarray) and rows.ndim == 2 and rows.dtype.kind in "fiub"):
        return False
    row = load_torch().as_tensor(np.asarray(rows[:1], dtype=float))
    return all(kernel.portable_features(row) is not None for kernel in kernels)


class DeviceFeatures(FeatureStorage):
    """Explicit features of all rows, kept on a device, or made there whenever they are needed.

    Of the size of the samples, only targets, coefficients and decision values cross the bus; of the size of the
    features nothing does.  Sums over blocks are in the device's best precision, and one sweep, from the decision values
    to the gradient, waits for the device once.

    ``source`` has the same features on the host: it makes those that the device cannot make, once, and again for the
    certificate.  Features are kept in ``dtype``; half precision costs digits of the features alone.  Where it is None,
    they are made in every sweep, in the device's best precision, from an array of numbers and by kernels that have
    ``portable_features``.
    """

    decision = Decision(representation="features", storage="lowrank", place="device")
    solvers = "solver='lbfgs' or solver='proximal_newton'"

    def __init__(self, source: FeatureStream, device: Any, dtype: Any = None) -> None:
        super().__init__(source.n, source.starts, source.scale)
        self.source, self.device, self.wide, self.dtype = source, device, wide_dtype(device), dtype
        self._tensor = partial(to_device, dtype=self.wide, device=device)
        self._placed: list[tuple[Array, Any]] = []
        self.kept: Any = None
        self.made_here: DeviceFeatures | None = None
        if dtype is None:
            self.streams = True
            self.samples = self._tensor(source.source[slice(0, source.n)])
            return
        torch = load_torch()
        if all_portable(source.kernels, source.source[:1]):
            self.made_here = DeviceFeatures(source, device)
        self.kept = torch.empty((self.n, int(self.starts[-1])), dtype=dtype, device=device)
        for rows, Z in (self.made_here or source).blocks():
            self.kept[rows] = Z if self.made_here else self._tensor(Z.toarray() if sp.issparse(Z) else Z)
        if dtype == torch.float16 and not bool(self.kept.isfinite().all()):
            raise ValueError(
                "some features are too large for dtype='float16': standardise the columns, or use dtype='bfloat16'"
            )
        self.nbytes = int(self.kept.nbytes)

    def exact(self) -> FeatureStorage | None:
        if self.kept is None:
            return None
        if self.made_here is None or self.wide.itemsize < 8:
            return self.source.exact()
        self.made_here.scale = self.scale
        return self.made_here

    def blocks(self, height: int = BLOCK_ROWS) -> Iterator[tuple[slice, Any]]:
        """All rows in order, as (rows, features on the device)."""
        height = min(height, BLOCK_ROWS) if self.kept is None else height
        for top in range(0, self.n, height):
            rows = slice(top, min(self.n, top + height))
            yield rows, self._rows(rows)

    def _rows(self, at: Any) -> Any:
        """Features of some rows on the device."""
        if self.kept is not None:
            return self.kept[at]
        raw = self.samples[at]
        return load_torch().cat([kernel.portable_features(raw) for kernel in self.source.kernels], dim=1)

    def _once(self, values: Array) -> Any:
        """Targets and weights of a problem, which stay the same arrays from sweep to sweep, on the device."""
        for known, tensor in self._placed:
            if known is values:
                return tensor
        self._placed = [*self._placed[-1:], (values, self._tensor(values))]
        return self._placed[-1][1]

    def forward(self, w: Array) -> Array:
        columns = self._tensor(w).reshape(w.shape[0], -1).T
        out = load_torch().empty((self.n, columns.shape[0]), dtype=self.wide, device=self.device)
        factor = None
        for rows, Z in self.blocks(READ_ROWS):
            factor = factor or Factor(columns, Z.dtype, self.device)
            out[rows] = factor.times(Z.T, slice(None)).T
        return to_numpy(out).reshape(self.n, *w.shape[1:])

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
        flat = to_numpy(torch.cat([value[None], sums, along.reshape(-1)])).astype(float)
        return float(flat[0]), flat[1 + b.size :].reshape(w.shape), flat[1 : 1 + b.size]

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

    def features_of(self, rows: Index) -> Any:
        return self.source.features_of(rows)

    def subset(self, rows: Index) -> FeatureStorage:
        if self.kept is None:
            return super().subset(rows)
        some = copy(self)
        some.n, some._placed = rows.size, []
        some.kept = self.kept[load_torch().as_tensor(rows, device=self.device)]
        return some

    def diag(self) -> Array:
        exact = self.exact()
        if exact is not None:
            return exact.diag()
        out = load_torch().empty((self.m, self.n), dtype=self.wide, device=self.device)
        for rows, Z in self.blocks():
            for j, (first, last) in enumerate(zip(self.starts[:-1], self.starts[1:], strict=True)):
                out[j, rows] = (Z[:, first:last] ** 2).sum(dim=1)
        return to_numpy(out) * self.scale[:, None]

    def shuffled(self, rng: np.random.Generator) -> Iterator[tuple[Index, Any]]:
        return self.source.shuffled(rng)


def device_storage(
    kernels: list[Kernel] | None,
    samples: Any,
    n: int,
    normaliser: Normaliser,
    decision: Decision,
    device: Any,
    threads: int,
) -> Storage:
    """Put features or matrices on a device in the type that was decided, or compute entries there in every pass."""
    kept = getattr(load_torch(), decision.dtype)
    if kernels is None:
        for j, matrix in enumerate(samples):
            means = matrix.mean(axis=1) if normaliser.center else None
            normaliser.learn(j, np.diagonal(matrix).astype(float), means)
    elif decision.representation == "features":
        source = FeatureStream(kernels, samples, dtype=np.float64 if kept.itemsize == 8 else np.float32,
                               block_rows=BLOCK_ROWS, threads=threads)  # fmt: skip
        features = DeviceFeatures(source, device, kept)
        if normaliser.mode == "trace":
            normaliser.learn_traces(np.arange(features.m), features.mean_squares())
            features.scale = source.scale = normaliser.scale.copy()
        return features
    else:
        check_kernels(kernels, samples)
    computed = computed_dtype(device, decision.storage, decision.dtype)
    values = DeviceKernels(kernels or [], samples, n, normaliser, device, computed)
    if kernels is not None:
        values.learn()
    return DeviceMatrices(values, kept if decision.storage == "dense" else None)


def prediction_device(device: Any, X: Any) -> Any:
    """Return where to predict: the device of the fit, or of X; None is the host.

    The host predicts the same, so a model whose device is not here is no error.
    """
    if device is None and not is_tensor(X):
        return None
    try:
        return device_of(device, X) if device is None else device_of(device)
    except (ImportError, ValueError):
        return None


def device_decision(bound: BoundKernels, device: Any, new: Array, weights: Array, coef: Array) -> Array:
    """Decide in single precision on a device, a block of new rows at a time; as ``BoundKernels.decision``.

    Kernels are evaluated on rows of numbers, with a factor of every kernel as their normalisation.
    """
    torch = load_torch()
    samples = np.asarray(bound.samples, dtype=float)
    known = samples.shape[0]
    table = coef[:, None] if coef.ndim == 1 else coef
    out = np.zeros((new.shape[0], table.shape[1]))
    if not np.any(coef):
        return out[:, 0] if coef.ndim == 1 else out
    factors = torch.as_tensor(table, dtype=torch.float32, device=device)
    height = max(1, block_entries(device) // known)
    for top in range(0, new.shape[0], height):
        # kernels on a device know one set of samples
        both = np.concatenate([samples, new[top : top + height]])
        source = DeviceKernels(bound.kernels, both, both.shape[0], bound.normaliser, device, torch.float32)
        rows, cols = np.arange(known, both.shape[0]), np.arange(known)
        for j, entries in source.visit(rows, cols, np.arange(len(bound.kernels))):
            # one set of weights serves all columns of the coefficients, or each column has its own
            weighted = factors * torch.as_tensor(weights[..., j], dtype=torch.float32, device=device)
            out[top : top + height] += to_numpy(entries @ weighted)
    return out[:, 0] if coef.ndim == 1 else out


def decision_along(kernels: list[Kernel], device: Any, new: Any, direction: Array) -> Array | None:
    """Values ``Z @ direction`` at new rows, from features that are made on a device; None where it cannot."""
    if not all_portable(kernels, new):
        return None
    place = partial(to_device, dtype=wide_dtype(device), device=device)
    along, out = place(direction), np.empty((new.shape[0], *direction.shape[1:]))
    for part in row_slices(new.shape[0], direction.shape[0], block_entries(device)):
        raw = place(new[part])
        out[part] = to_numpy(
            load_torch().cat([kernel.portable_features(raw) for kernel in kernels], dim=1) @ along
        )
    return out
