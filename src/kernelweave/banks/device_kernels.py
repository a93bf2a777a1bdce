"""Kernel values computed on a device, block by block, families sharing their base matrix.

Kernels of distances and inner products are computed where the samples lie; any other kernel computes its blocks on the
host, from where they are copied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..kernels import Kernel, take
from ..kernels.columns import Named, OnColumns
from ..kernels.dotproduct import Linear, Polynomial
from ..kernels.stationary import Gaussian, Laplacian
from ._base import Array, Index
from .devices import load_torch, wide_dtype
from .lazy import base_groups
from .normalise import Normaliser

__all__ = ["DeviceKernels", "GivenMatrices"]

Base = Callable[[Any, Any], Any]


class DeviceKernels:
    """Normalised kernel values of training samples on a device, in one floating type."""

    def __init__(
        self, kernels: list[Kernel], samples: Any, n: int, normaliser: Normaliser, device: Any, dtype: Any
    ) -> None:
        self.kernels, self.samples, self.n, self.normaliser = kernels, samples, n, normaliser
        self.device, self.dtype = device, dtype
        self.m = len(kernels)
        self._bases: dict[Any, Base] = {}
        self._placed: Any = None

    def with_dtype(self, dtype: Any) -> DeviceKernels:
        """Return the same kernels computed in another precision."""
        other = DeviceKernels(self.kernels, self.samples, self.n, self.normaliser, self.device, dtype)
        other._placed = self._placed
        return other

    def visit(self, rows: Index, cols: Index, which: Index) -> Iterator[tuple[int, Any]]:
        """Yield (kernel, its entries at rows x cols), kernels of a family one after the other."""
        where = self._index(rows), self._index(cols)
        for group in base_groups(self.kernels, np.unique(which)):
            base = self._base(group[0])(*where)
            for place, j in enumerate(group):
                entries = base if place == len(group) - 1 else base.clone()
                yield j, self.normalised(j, self._of_base(self.kernels[j], entries), rows, cols)

    def diag(self) -> Array:
        """Normalised diagonals, ``(m, n)``, on the host."""
        out = np.empty((self.m, self.n))
        for j, kernel in enumerate(self.kernels):
            out[j] = normalised_diagonal(self.normaliser, j, kernel.diag(self.samples))
        return out

    def normalised(self, j: int, entries: Any, rows: Index, cols: Index) -> Any:
        """What ``Normaliser.train_block`` does, on the device and in place."""
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

    def _tensor(self, values: Any) -> Any:
        return load_torch().as_tensor(values, dtype=self.dtype, device=self.device)

    def _of_base(self, kernel: Kernel, base: Any) -> Any:
        if kernel.decay:
            base *= -kernel.exponent
            return base.exp_()
        power = kernel.exponent
        if power == 1.0:
            return base
        return base.square_() if power == 2.0 else base.pow_(power)

    def _base(self, j: int) -> Base:
        key = self.kernels[j].base_key
        if key not in self._bases:
            self._bases[key] = self._make_base(self.kernels[j])
        return self._bases[key]

    def _make_base(self, kernel: Kernel) -> Base:
        inside, columns = _peeled(kernel)
        plain = (
            isinstance(self.samples, np.ndarray)
            and self.samples.ndim == 2
            and self.samples.dtype.kind in "fiub"
        )
        if plain and type(inside) in (Gaussian, Laplacian, Linear, Polynomial):
            X = self._columns(columns)
            if isinstance(inside, Gaussian):
                return self._squared_distances(X)
            if isinstance(inside, Laplacian):
                return self._city_block(X)
            gamma, coef0 = inside._checked() if isinstance(inside, Polynomial) else (1.0, 0.0)
            return self._inner_products(X, gamma, coef0)
        return lambda rows, cols: self._tensor(
            kernel.base(take(self.samples, self._on_host(rows)), take(self.samples, self._on_host(cols)))
        )

    def _columns(self, columns: list[int] | None) -> Any:
        """Some columns of the samples on the device, in its best precision; picked there, which hosts do slowly."""
        if self._placed is None:
            wide = wide_dtype(self.device)
            self._placed = load_torch().as_tensor(self.samples, device=self.device).to(wide)
        return self._placed if columns is None else self._placed[:, columns]

    def _squared_distances(self, X: Any) -> Base:
        torch = load_torch()
        X = X - X.mean(dim=0)  # distances do not change with the origin, but the digits lost do
        norms, X = (X * X).sum(dim=1).to(self.dtype), X.to(self.dtype)

        def base(rows: Any, cols: Any) -> Any:
            squares = torch.addmm(norms[cols][None, :], X[rows], X[cols].T, alpha=-2.0)
            squares += norms[rows][:, None]
            squares.clamp_(min=0.0)
            return _zero_where_equal(squares, rows, cols)

        return base

    def _city_block(self, X: Any) -> Base:
        torch = load_torch()
        X = X.to(self.dtype)
        return lambda rows, cols: torch.cdist(X[rows], X[cols], p=1.0)

    def _inner_products(self, X: Any, gamma: float, coef0: float) -> Base:
        X = X.to(self.dtype)

        def base(rows: Any, cols: Any) -> Any:
            products = X[rows] @ X[cols].T
            if gamma != 1.0:
                products *= gamma
            if coef0 != 0.0:
                products += coef0
            return products

        return base

    def _index(self, at: Index) -> Any:
        """Rows as a slice where they are a range, which costs no copy, else as indices on the device."""
        if at.size and at[-1] - at[0] == at.size - 1 and (at.size < 2 or np.all(np.diff(at) == 1)):
            return slice(int(at[0]), int(at[-1]) + 1)
        return load_torch().as_tensor(at, device=self.device)

    def _on_host(self, at: Any) -> Index:
        return np.arange(at.start, at.stop) if isinstance(at, slice) else at.cpu().numpy()


class GivenMatrices(DeviceKernels):
    """Kernels that came as matrices: copied from the host block by block."""

    def __init__(self, matrices: Any, normaliser: Normaliser, device: Any, dtype: Any) -> None:
        super().__init__([], None, matrices[0].shape[0], normaliser, device, dtype)
        self.matrices, self.m = matrices, len(matrices)

    def with_dtype(self, dtype: Any) -> GivenMatrices:
        return GivenMatrices(self.matrices, self.normaliser, self.device, dtype)

    def visit(self, rows: Index, cols: Index, which: Index) -> Iterator[tuple[int, Any]]:
        for j in np.unique(which):
            entries = self._tensor(self.matrices[j][np.ix_(rows, cols)].astype(float))
            yield int(j), self.normalised(int(j), entries, rows, cols)

    def diag(self) -> Array:
        raw = [np.diagonal(matrix).astype(float) for matrix in self.matrices]
        return np.stack([normalised_diagonal(self.normaliser, j, diagonal) for j, diagonal in enumerate(raw)])


def normalised_diagonal(normaliser: Normaliser, j: int, diagonal: Array) -> Array:
    """Diagonal of a training kernel after normalisation."""
    if normaliser.center:
        assert normaliser.row_means is not None
        assert normaliser.grand_means is not None
        diagonal = diagonal - 2.0 * normaliser.row_means[j] + normaliser.grand_means[j]
    if normaliser.diagonal is not None:
        diagonal = diagonal / normaliser.diagonal[j]
    return diagonal * normaliser.scale[j]


def _peeled(kernel: Kernel) -> tuple[Kernel, Any]:
    """Return the kernel under its names, and the columns it looks at (None for all)."""
    columns = None
    while isinstance(kernel, Named | OnColumns):
        if isinstance(kernel, OnColumns):
            if columns is not None or not isinstance(kernel.columns, tuple):
                return kernel, None
            columns = list(kernel.columns)
        kernel = kernel.kernel
    return kernel, columns


def _zero_where_equal(squares: Any, rows: Any, cols: Any) -> Any:
    """Make the distance of a sample to itself exactly zero."""
    if isinstance(rows, slice) and isinstance(cols, slice):
        offset = rows.start - cols.start
        if -squares.shape[0] < offset < squares.shape[1]:
            squares.diagonal(offset).zero_()
        return squares
    torch = load_torch()
    left = torch.arange(rows.start, rows.stop, device=squares.device) if isinstance(rows, slice) else rows
    right = torch.arange(cols.start, cols.stop, device=squares.device) if isinstance(cols, slice) else cols
    return squares.masked_fill_(left[:, None] == right[None, :], 0.0)
