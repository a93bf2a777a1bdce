"""Banks whose rows are on the workers of a cluster: the interface of any other bank, one round per method."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..banks import Array, Bank, Index, support
from ..banks.lowrank import SweptBank
from .workers import ClusterCost, Workers

__all__ = ["ClusterFeatureBank", "ClusterKernelBank"]


class _OnWorkers:
    """What both banks have: parts, and whether these are asked for double precision."""

    workers: Workers
    double: bool
    passes: float

    def exact(self) -> Any:
        """Return a bank on the same parts that computes in double precision."""
        if self.double:
            return self
        twin = copy(self)
        twin.double, twin.passes = True, 0.0
        return twin

    @property
    def nbytes(self) -> int:
        return self.workers.cost.stored

    @property
    def cluster_cost(self) -> ClusterCost:
        return self.workers.cost


def _shares(bounds: Index, rows: Index) -> list[Index]:
    """Which of some rows each part has, as positions in ``rows``."""
    part = np.searchsorted(bounds, rows, side="right") - 1
    return [np.flatnonzero(part == k) for k in range(bounds.size - 1)]


class ClusterKernelBank(_OnWorkers, Bank):
    """Exact kernels, a run of rows a part.

    Parameters
    ----------
    workers : Workers
        Of ``KernelPart``, settled.
    bounds : array of parts + 1 ints
        Part k has rows ``bounds[k]`` to ``bounds[k + 1]``.
    m : int
        Kernels.
    double : bool
        Whether parts store, or compute, in double precision.
    stored : bool
        Whether parts store at all: those that do read the rows of samples that have coefficients, and no other.
    """

    def __init__(
        self, workers: Workers, bounds: Index, m: int, double: bool = True, stored: bool = False
    ) -> None:
        super().__init__(int(bounds[-1]), m)
        self.workers, self.bounds, self.double = workers, bounds, double
        self._stored_in_double = double if stored else None

    @property
    def _stored(self) -> bool:
        """Whether rows are stored in the precision that is asked for."""
        return self.double == self._stored_in_double

    def _gather(self, method: str, rows: Index, before: tuple[Any, ...], after: tuple[Any, ...]) -> Array:
        """Ask every part for some of its rows and put them together, rows along the axis before the last of a block."""
        shares = _shares(self.bounds, rows)
        asked = [(self.double, *before, rows[mine], *after) for mine in shares]
        answers = self.workers.ask(method, asked)
        axis = 0 if method == "mix_block" else 1
        out = np.concatenate(answers, axis=axis)
        order = np.concatenate(shares)
        if np.array_equal(order, np.arange(order.size)):
            return out
        return np.take(out, np.argsort(order), axis=axis)

    def block(self, rows: Any, cols: Any, kernels: Index) -> Array:
        rows, cols = np.atleast_1d(rows), np.atleast_1d(cols)
        return self._gather("block", rows, (), (cols, np.asarray(kernels)))

    def apply(self, a: Array, rows: Index | None = None, kernels: Index | None = None) -> Array:
        height, used = self.n if rows is None else rows.size, support(a)
        self.count(float(self.m if kernels is None else kernels.size) * height * used.size)
        if self._stored and a.ndim == 1 and used.size <= height:
            return np.sum(self.workers.ask_all("row_products", self.double, a, rows, kernels), axis=0)
        if rows is None:
            return np.concatenate(self.workers.ask_all("apply", self.double, a, None, kernels), axis=1)
        return self._gather("apply", rows, (a,), (kernels,))

    def quad(self, a: Array, kernels: Index | None = None) -> Array:
        self.count(float(self.m if kernels is None else kernels.size) * support(a).size ** 2)
        return np.sum(self.workers.ask_all("quad", self.double, a, kernels), axis=0)

    def mix_product(self, weights: Array, a: Array) -> Array:
        self.count(float(np.count_nonzero(weights)) * self.n * support(a).size)
        return np.concatenate(self.workers.ask_all("mix_product", self.double, weights, a))

    def judged(self, weights: Array, a: Array) -> tuple[Array, Array]:
        self.count(float(self.m) * self.n * support(a).size)
        by_rows = self._stored and a.ndim == 1
        answers = self.workers.ask_all("judged_by_rows" if by_rows else "judged", self.double, weights, a)
        quads, products = zip(*answers, strict=True)
        return np.sum(quads, axis=0), np.sum(products, axis=0) if by_rows else np.concatenate(products)

    def mix_block(self, weights: Array, rows: Index, cols: Index) -> Array:
        self.count(float(np.count_nonzero(weights)) * rows.size * cols.size)
        return self._gather("mix_block", rows, (weights,), (cols,))

    def combine(self, weights: Array) -> Array:
        """Mixed kernel: half of it comes back, or, where parts compute it, what is not left of their rows."""
        if self._stored:
            return self._combined(weights)
        firsts, lasts = self.bounds[:-1], self.bounds[1:]
        columns = [np.arange(first, self.n) for first in firsts]
        entries = float(np.sum((lasts - firsts) * (self.n - firsts)))
        self.count(float(np.count_nonzero(weights)) * entries)
        strips = self.workers.ask("mix_block", [(self.double, weights, None, cols) for cols in columns])
        out = np.empty((self.n, self.n))
        for first, last, strip in zip(firsts, lasts, strips, strict=True):
            out[first:last, first:] = strip
            out[last:, first:last] = strip[:, last - first :].T
        return out

    def _combined(self, weights: Array) -> Array:
        from .._numerics.stored_rows import complete, reach, unfold

        self.count(float(np.count_nonzero(weights)) * self.n * (reach(self.n) + 1))
        out = np.empty((self.n, self.n))
        strips = self.workers.ask_all("mix_windows", self.double, weights)
        for first, strip in zip(self.bounds[:-1], strips, strict=True):
            unfold(strip, int(first), out)
        complete(out)
        return out

    def diag(self) -> Array:
        return np.concatenate(self.workers.ask_all("diag", self.double), axis=1)


class ClusterFeatureBank(_OnWorkers, SweptBank):
    """Explicit features, a run of rows a part; what comes back of a sweep is a vector of features, or of samples.

    Parameters
    ----------
    workers : Workers
        Of ``FeaturePart``.
    bounds : array of parts + 1 ints
        Part k has rows ``bounds[k]`` to ``bounds[k + 1]``.
    starts : array of m + 1 ints
        Features of kernel j are ``starts[j]`` to ``starts[j + 1]``.
    double : bool
        Whether features are in double precision.
    """

    preferred_solver = "lbfgs"
    solvers = "solver='lbfgs' or solver='proximal_newton'"

    def __init__(self, workers: Workers, bounds: Index, starts: Index, double: bool = True) -> None:
        super().__init__(int(bounds[-1]), starts)
        self.workers, self.bounds, self.double = workers, bounds, double
        self._targets: tuple[Any, Any] = (None, None)

    def _cut(self, a: Array) -> list[Array]:
        return [a[first:last] for first, last in zip(self.bounds[:-1], self.bounds[1:], strict=True)]

    def features_of(self, rows: Index) -> Any:
        shares = _shares(self.bounds, rows)
        asked = [(rows[mine] - first,) for mine, first in zip(shares, self.bounds[:-1], strict=True)]
        blocks = self.workers.ask("features", asked)
        stacked = sp.vstack(blocks, format="csr") if sp.issparse(blocks[0]) else np.concatenate(blocks)
        return stacked[np.argsort(np.concatenate(shares))]

    def gram(self, rows: Index, charge: Array, columns: Index) -> Array:
        shares = _shares(self.bounds, rows)
        asked = [
            (rows[mine] - first, charge[mine], columns)
            for mine, first in zip(shares, self.bounds[:-1], strict=True)
        ]
        return np.asarray(np.sum(self.workers.ask("gram", asked), axis=0))

    def forward(self, w: Array) -> Array:
        return np.concatenate(self.workers.ask_all("forward", self.double, w))

    def adjoint(self, a: Array) -> Array:
        return np.sum(self.workers.ask("adjoint", [(self.double, part) for part in self._cut(a)]), axis=0)

    def lengths(self, mixing: Array) -> Array:
        return np.concatenate(self.workers.ask_all("lengths", self.double, mixing))

    def loss_sweep(self, w: Array, b: Array, loss: Any, y: Array, c: Array) -> tuple[float, Array, Array]:
        if self._targets[0] is not y or self._targets[1] is not c:
            self.workers.attach("attach", list(zip(self._cut(y), self._cut(c), strict=True)))
            self._targets = (y, c)
        values, along, sums = zip(*self.workers.ask_all("loss_sweep", self.double, w, b, loss), strict=True)
        return float(np.sum(values)), np.sum(along, axis=0), np.sum(sums, axis=0)

    def shuffled(self, rng: np.random.Generator) -> Iterator[tuple[Index, Any]]:
        raise ValueError(
            "stochastic steps visit single rows, which are on the workers: use solver='lbfgs', which asks for sums"
        )

    def diag(self) -> Array:
        unit = np.eye(self.m)
        rows = [self.lengths(self._mixing(unit[j])) for j in range(self.m)]
        return np.stack(rows)
