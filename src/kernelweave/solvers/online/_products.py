"""What the solvers that step on single samples share: products with every kernel, and reading rows in chunks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..._numerics.deadline import check_time, in_time
from ...banks import LowRankBank
from ...banks.memory import default_budget, refuse
from ...losses import own_class
from ...problems import MKLProblem

if TYPE_CHECKING:  # with numba, which is imported where something is compiled
    from ..._numerics.online import Work
    from ..._numerics.online_ascent import Rows

Array = NDArray[np.float64]
Index = NDArray[np.intp]

__all__ = ["Products", "block_exponent", "classes_and_bounds", "products_of"]

#: entries of kernel rows, or of features, at hand at a time
CHUNK = 20_000_000


def block_exponent(norm: Any) -> float:
    """The dual exponent q of a (2, r) norm."""
    r = float(norm.r)
    return r / (r - 1.0)


class Products:
    """Products of every sample with every block ``theta_j = sum_i a_i phi_j(x_i)``, which compiled steps keep."""

    def __init__(self, problem: MKLProblem) -> None:
        self.problem = problem
        self.n, self.m = problem.n, problem.m
        self.columns = 1 if problem.y.ndim == 1 else problem.y.shape[1]
        self.diag = np.ascontiguousarray(problem.bank.diag())

    #: the array that the steps keep up to date, linear in the coefficients
    stored: Array

    def chunks(self, order: Index) -> Iterator[tuple[Index, Index, Any]]:
        """Parts of ``order`` with where their rows are found, and the rows."""
        raise NotImplementedError

    def epoch(self, order: Index, work: Work) -> None:
        """Run online steps on the samples in order; coefficients and norms change in place."""
        raise NotImplementedError

    def ascend(self, order: Index, rows: Rows) -> int:
        """Run exact ascent on the rows in order, in place; return how many moved."""
        raise NotImplementedError

    def mixture(self, factors: Array) -> Array:
        """``sum_j factors_j`` times the products with block j, ``(n, k)``."""
        raise NotImplementedError

    def quad(self, a: Array) -> Array:
        """``a'K_j a`` for the coefficients a that ``stored`` belongs to."""
        raise NotImplementedError

    def reset(self, a: Array) -> None:
        """Make ``stored`` belong to the coefficients a."""
        raise NotImplementedError

    def count(self, updates: float) -> None:
        """Count kernel rows that were read as part of a pass."""
        self.problem.bank.count(updates * self.m * self.n)


class KernelProducts(Products):
    """``P (k, m, n)``: every step that changes coefficients reads a row of every kernel."""

    def __init__(self, problem: MKLProblem) -> None:
        super().__init__(problem)
        budget = default_budget()
        needed = 8 * self.columns * self.m * self.n
        if needed > budget:
            raise refuse(
                f"products of {self.n} samples with {self.m} kernels and {self.columns} classes", needed, budget,
                ["explicit features (kernels.nystrom, kernels.fourier)", "solver='auto'", "fewer kernels"],
            )  # fmt: skip
        self.stored = np.zeros((self.columns, self.m, self.n))
        self.stack: Array | None = None
        # rows are kept where they take no more than a quarter of what is left, else computed whenever they are read
        if 8 * self.m * self.n**2 <= (budget - needed) // 4:
            everyone = np.arange(self.n)
            check_time(preparing=True)
            self.stack = np.ascontiguousarray(problem.bank.block(everyone, everyone, np.arange(self.m)))

    def chunks(self, order: Index) -> Iterator[tuple[Index, Index, Any]]:
        if self.stack is not None:
            for part in in_time(order, self.m * self.n * self.columns):
                yield part, part, self.stack
            return
        size = max(1, CHUNK // (self.m * self.n))
        for first in range(0, order.size, size):
            check_time()
            part = order[first : first + size]
            yield part, np.arange(part.size), self.problem.bank.rows(part)

    def epoch(self, order: Index, work: Work) -> None:
        from ..._numerics.online import UPDATES, kernel_steps

        before = work.norms.scalars[UPDATES]
        for part, where, kernels in self.chunks(order):
            kernel_steps(part, where, kernels, self.stored, self.diag, *work)
        if self.stack is not None:
            self.count(work.norms.scalars[UPDATES] - before)

    def ascend(self, order: Index, rows: Rows) -> int:
        from ..._numerics.online_ascent import ascend_kernel

        updates = 0
        for part, where, kernels in self.chunks(order):
            updates += ascend_kernel(part, where, kernels, self.stored, self.diag, rows)
        if self.stack is not None:
            self.count(updates)
        return updates

    def mixture(self, factors: Array) -> Array:
        return np.tensordot(factors, self.stored, axes=(0, 1)).T

    def quad(self, a: Array) -> Array:
        return np.einsum("kmn,nk->m", self.stored, a)

    def reset(self, a: Array) -> None:
        self.stored[:] = self.problem.bank.apply(a).transpose(2, 0, 1)


class FeatureProducts(Products):
    """``W (k, D)``: a step reads and changes the features of one sample, whatever n is."""

    def __init__(self, problem: MKLProblem, factors: LowRankBank) -> None:
        super().__init__(problem)
        self.factors = factors
        self.starts = factors.starts.astype(np.int64)
        self.stored = np.zeros((self.columns, int(self.starts[-1])))

    def chunks(self, order: Index) -> Iterator[tuple[Index, Index, Any]]:
        features = self.factors.features
        if isinstance(features, np.ndarray) and features.dtype == np.float64 and features.flags.c_contiguous:
            for part in in_time(order, self.columns * int(self.starts[-1])):
                yield part, part, features
            return
        size = max(1, CHUNK // max(1, int(self.starts[-1])))
        for first in range(0, order.size, size):
            check_time()
            part = order[first : first + size]
            rows = features[part]
            dense = np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, dtype=float)
            yield part, np.arange(part.size), np.ascontiguousarray(dense)

    def epoch(self, order: Index, work: Work) -> None:
        from ..._numerics.online import Features, feature_steps

        for part, where, Z in self.chunks(order):
            features = Features(Z, self.starts, self.factors.scale)
            feature_steps(part, where, features, self.stored, self.diag, *work)
        self.count(order.size)

    def ascend(self, order: Index, rows: Rows) -> int:
        from ..._numerics.online import Features
        from ..._numerics.online_ascent import ascend_features

        updates = 0
        for part, where, Z in self.chunks(order):
            features = Features(Z, self.starts, self.factors.scale)
            updates += ascend_features(part, where, features, self.stored, self.diag, rows)
        self.count(order.size)
        return updates

    def mixture(self, factors: Array) -> Array:
        spread = np.repeat(factors * self.factors.scale, self.factors.ranks)
        return np.asarray(self.factors.features @ (self.stored * spread).T)

    def quad(self, a: Array) -> Array:
        squares = np.append(np.sum(self.stored**2, axis=0), 0.0)
        sums = np.add.reduceat(squares, self.starts[:-1]) * (self.factors.ranks > 0)
        return np.asarray(sums * self.factors.scale)

    def reset(self, a: Array) -> None:
        self.stored[:] = np.asarray(self.factors.features.T @ a).T


def products_of(problem: MKLProblem) -> Products:
    """Explicit features where the bank is made of them, products with every sample elsewhere."""
    if isinstance(problem.bank, LowRankBank):
        return FeatureProducts(problem, problem.bank)
    return KernelProducts(problem)


def classes_and_bounds(problem: MKLProblem) -> tuple[Index, Array]:
    """Own class and upper bound of every row, for a joint loss."""
    return own_class(problem.y), np.ascontiguousarray(problem.c[:, 0])
