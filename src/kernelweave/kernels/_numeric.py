"""Kernels on rows of numbers: the checks they share, and small helpers for parameters and names."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from numbers import Real
from typing import Any, TypeAlias, TypeVar

import numpy as np
from scipy import sparse

from ._algebra import Stack
from ._helpers import n_samples, refuse_non_finite
from ._kernel import Kernel

__all__ = [
    "Number",
    "Numbers",
    "NumericKernel",
    "checked_number",
    "family_of",
    "is_sequence",
    "readable",
    "subsample",
]

#: a parameter that makes one kernel, and several that make a stack
Number: TypeAlias = float | np.integer[Any] | np.floating[Any]
Numbers: TypeAlias = Sequence[Number] | AbstractSet[Number] | np.ndarray[Any, Any]
OneKernel = TypeVar("OneKernel", bound=Kernel)


class NumericKernel(Kernel):
    """A kernel on the rows of a matrix: the input is checked here, the subclass sees clean float64.

    Subclasses define ``_base(A, B)`` and ``_base_diag(A)`` on contiguous float64 arrays (or CSR matrices
    where ``accepts_sparse``); ``A is B`` is kept.
    """

    needs_nonnegative: bool = False

    def base(self, A: Any, B: Any) -> np.ndarray:
        """Return the base matrix after checking the samples."""
        left = self._clean(A)
        right = left if A is B else self._clean(B)
        if left.shape[1] != right.shape[1]:
            raise ValueError(
                f"kernel {self.name!r}: the two sets of samples have {left.shape[1]} and "
                f"{right.shape[1]} features"
            )
        return self._base(left, right)

    def base_diag(self, A: Any) -> np.ndarray:
        """Return the diagonal of the base matrix after checking the samples."""
        return self._base_diag(self._clean(A))

    def _base(self, A: Any, B: Any) -> np.ndarray:
        raise NotImplementedError

    def _base_diag(self, A: Any) -> np.ndarray:
        raise NotImplementedError

    def _clean(self, A: Any) -> Any:
        """Return samples as contiguous float64 or CSR; anything else is refused in this kernel's name."""
        if sparse.issparse(A):
            if not self.accepts_sparse:
                raise ValueError(
                    f"kernel {self.name!r} does not take sparse input: densify with X.toarray() or use "
                    "gaussian, linear, polynomial or cosine"
                )
            A = sparse.csr_matrix(A, dtype=np.float64)
            if not A.has_canonical_format:
                A = A.copy()
                A.sum_duplicates()  # sorted indices make A @ A.T exactly symmetric
            values = A.data
        else:
            try:
                A = values = np.ascontiguousarray(A, dtype=np.float64)
            except (TypeError, ValueError) as error:
                raise ValueError(
                    f"kernel {self.name!r} needs a two-dimensional array of numbers: {error}. For strings, "
                    "graphs and other objects see kernels.function."
                ) from error
        if A.ndim != 2:
            raise ValueError(
                f"kernel {self.name!r} needs a two-dimensional array of numbers, got {A.ndim} dimension(s); "
                "one feature is X.reshape(-1, 1)"
            )
        refuse_non_finite(values, f"kernel {self.name!r}")
        if self.needs_nonnegative and values.size and values.min() < 0:
            raise ValueError(
                f"kernel {self.name!r} needs non-negative features (counts, histograms), got {values.min():g}"
            )
        return A


def is_sequence(value: Any) -> bool:
    """Tell a sequence of parameters from a single one."""
    return isinstance(value, (list, tuple, set, range)) or getattr(value, "ndim", 0) == 1


def family_of(make: Callable[[Any], OneKernel], values: Number | Numbers) -> OneKernel | Stack:
    """Return one kernel for a scalar, a stack of kernels for a sequence of values."""
    if not is_sequence(values):
        return make(plain(values))
    kernels = tuple(make(plain(value)) for value in _ordered(values))
    if not kernels:
        raise ValueError("an empty sequence of parameters gives no kernel")
    return Stack(kernels)


def _ordered(values: Any) -> Iterable[Any]:
    return sorted(values) if isinstance(values, set) else values


def plain(value: Any) -> Any:
    """Return numpy scalars as Python numbers, which print and compare better."""
    return value.item() if isinstance(value, np.generic) else value


def checked_number(
    value: Any, what: str, *, low: float = 0.0, strict: bool = True, whole: bool = False
) -> float:
    """Return a parameter as a float, or refuse it with a sentence that names it."""
    # asked of every kernel of a large bank: plain numbers are known at a glance
    right_kind = type(value) is float or (isinstance(value, Real) and not isinstance(value, bool))
    if (
        not right_kind
        or not _finite(value)
        or value < low
        or (strict and value == low)
        or (whole and value % 1)
    ):
        kind = "whole number" if whole else "number"
        raise ValueError(f"{what} must be a finite {kind} {'>' if strict else '>='} {low:g}, got {value!r}")
    return float(value)


def _finite(value: Any) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number that no float can hold
        return False


def readable(value: Any) -> str:
    """Return a number as short as a plot wants it."""
    return f"{value:.6g}" if type(value) is float or isinstance(value, Real) else str(value)


def subsample(A: Any, most: int = 1000) -> np.ndarray:
    """Return at most ``most`` evenly spaced row numbers: deterministic, and fair to sorted data."""
    n = n_samples(A)
    return np.arange(n) if n <= most else np.linspace(0, n - 1, most).astype(np.intp)
