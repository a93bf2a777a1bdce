"""Kernels on rows of numbers: the checks they share, and exact distances between rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from functools import wraps
from inspect import signature
from numbers import Real
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
from scipy import sparse

from .._components import nearest
from .._numerics.euclid import CANCELLED, check_norms
from .._numerics.matrices import without_duplicates
from ._algebra import Stack
from ._kernel import Kernel, refuse_non_finite, several

# up to here sums of explicit differences beat the matrix product, and they are exact
FEW_COLUMNS = 4
ENTRIES_AT_ONCE = 1 << 20


def row_norms(A: Any) -> np.ndarray:
    """Return the squared Euclidean norm of every row."""
    if sparse.issparse(A):
        return np.asarray(A.multiply(A).sum(axis=1), dtype=np.float64).ravel()
    return np.einsum("ij,ij->i", A, A)


def inner(A: Any, B: Any) -> np.ndarray:
    """Return ``A @ B.T`` dense; symmetric to the bit when A is B (BLAS uses syrk, CSR adds in one order)."""
    product = A @ B.T
    return product.toarray() if sparse.issparse(product) else product


def sqeuclidean(A: Any, B: Any) -> np.ndarray:
    """Return the squared Euclidean distances between the rows of A and of B.

    The expanded square ``|a|^2 + |b|^2 - 2 a.b`` loses close pairs to cancellation; those few are computed again from
    their differences.  Equal rows have distance zero, and the distances of A to itself are symmetric to the bit.

    >>> import numpy as np
    >>> A = np.array([[1e8, 1.0], [1e8, 2.0]])
    >>> sqeuclidean(A, A)
    array([[0., 1.],
           [1., 0.]])
    """
    if A.shape[1] <= FEW_COLUMNS:
        left = A.toarray() if sparse.issparse(A) else A
        right = left if B is A else B.toarray() if sparse.issparse(B) else B
        squared = np.zeros((len(left), len(right)))
        for j in range(A.shape[1]):
            difference = np.subtract.outer(left[:, j], right[:, j])
            np.square(difference, out=difference)
            if j:
                squared += difference
            else:
                squared = difference
        return squared
    if not sparse.issparse(A) and not sparse.issparse(B):
        # distances do not change with the origin, but the digits lost do
        centre = B.mean(axis=0)
        same = A is B
        A = A - centre
        B = A if same else B - centre
    left = row_norms(A)
    right = left if A is B else row_norms(B)
    check_norms(left, right)
    squared = inner(A, B)
    step = max(1, ENTRIES_AT_ONCE // max(1, len(right)))
    for start in range(0, len(left), step):  # in blocks of rows: no temporary as large as the result
        block = squared[start : start + step]
        scale = np.add.outer(left[start : start + step], right)
        block *= -2.0
        block += scale
        scale *= CANCELLED
        rows, columns = np.nonzero(block <= scale)
        _again(block, rows, columns, A[start : start + step], B)
    return squared


def _again(block: np.ndarray, rows: np.ndarray, columns: np.ndarray, A: Any, B: Any) -> None:
    """Overwrite some entries with sums of squared differences."""
    step = max(1, ENTRIES_AT_ONCE // A.shape[1])
    for start in range(0, len(rows), step):
        i, j = rows[start : start + step], columns[start : start + step]
        left, right = (part.toarray() if sparse.issparse(part) else part for part in (A[i], B[j]))
        block[i, j] = row_norms(left - right)


def euclidean(A: Any, B: Any) -> np.ndarray:
    """Return the Euclidean distances between the rows of A and of B."""
    squared = sqeuclidean(A, B)
    return np.sqrt(squared, out=squared)


def cityblock(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return the sums of absolute differences between the rows of A and of B."""
    if A.shape[1] == 1:
        difference = np.subtract.outer(A[:, 0], B[:, 0])
        return np.abs(difference, out=difference)
    from scipy.spatial.distance import cdist  # not needed by most banks, and slow to import

    return cdist(A, B, "cityblock")


#: a parameter that makes one kernel, and several that make a stack
Number: TypeAlias = float | np.integer[Any] | np.floating[Any]
Numbers: TypeAlias = Sequence[Number] | AbstractSet[Number] | np.ndarray[Any, Any]
OneKernel = TypeVar("OneKernel", bound=Kernel)


class NumericKernel(Kernel):
    """A kernel on the rows of a matrix: the input is checked here, the subclass sees clean float64.

    Subclasses define ``_base(A, B)`` and ``_base_diag(A)`` (or ``_diagonal``, where the base is the same for every
    sample with itself) on contiguous float64 arrays (or CSR matrices where ``accepts_sparse``); ``A is B`` is kept.
    """

    needs_nonnegative: bool = False
    _diagonal: float | None = None

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
        if self._diagonal is None:
            raise NotImplementedError
        return np.full(A.shape[0], self._diagonal)

    def _clean(self, A: Any) -> Any:
        """Return samples as contiguous float64 or CSR; anything else is refused in this kernel's name."""
        if sparse.issparse(A):
            if not self.accepts_sparse:
                raise ValueError(
                    f"kernel {self.name!r} does not take sparse input: densify with X.toarray() or use "
                    "gaussian, linear, polynomial or cosine"
                )
            # sorted indices make A @ A.T exactly symmetric
            A = without_duplicates(sparse.csr_matrix(A, dtype=np.float64))
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
        refuse_non_finite(values, self)
        if self.needs_nonnegative and values.size and values.min() < 0:
            least = f"got {values.min():g}"
            raise ValueError(
                f"kernel {self.name!r} needs non-negative features (counts, histograms), {least}"
            )
        return A


Factory = TypeVar("Factory", bound=Callable[..., Any])


def accepts(**earlier: str) -> Callable[[Factory], Factory]:
    """Decorate a function whose keywords had other names earlier, which keep working; a wrong name lists all."""

    def decorate(make: Factory) -> Factory:
        names = list(signature(make).parameters)

        @wraps(make)
        def call(*arguments: Any, **named: Any) -> Any:
            wrong = [name for name in named if name not in names and name not in earlier]
            if wrong:
                raise TypeError(
                    f"{make.__name__} has no parameter {wrong[0]!r}.{nearest(wrong[0], names)} Its parameters: "
                    f"{', '.join(names)}."
                )
            if twice := [name for name in named if earlier.get(name) in named]:
                raise TypeError(f"{make.__name__}: {twice[0]!r} is another word for {earlier[twice[0]]!r}")
            return make(*arguments, **{earlier.get(name, name): value for name, value in named.items()})

        return cast(Factory, call)

    return decorate


def family_of(
    make: Callable[..., OneKernel],
    values: Number | Numbers,
    what: str,
    *others: Any,
    whole: bool = False,
    strict: bool = True,
) -> OneKernel | Stack:
    """Return ``make(value, *others)`` for one number, called ``what``, or the stack of these; each is checked first."""
    kernels = []
    every: Any = values if several(values) else (values,)
    for value in sorted(every) if isinstance(every, set) else every:
        # numpy scalars as Python numbers, which print and compare better
        number = value.item() if isinstance(value, np.generic) else value
        checked_number(number, what, whole=whole, strict=strict)
        kernels.append(make(number, *others))
    if not kernels:
        raise ValueError("an empty sequence of parameters gives no kernel")
    return Stack(tuple(kernels)) if several(values) else kernels[0]


def checked_number(
    value: Any, what: str, *, low: float = 0.0, strict: bool = True, whole: bool = False
) -> float:
    """Return a parameter as a float, or refuse it with a sentence that names it."""
    # called for every kernel of a large bank: plain numbers are recognised first
    right_kind = type(value) is float or (isinstance(value, Real) and not isinstance(value, bool))
    try:
        finite = right_kind and math.isfinite(value)
    except OverflowError:  # a whole number that no float can hold
        finite = False
    if not finite or value < low or (strict and value == low) or (whole and value % 1):
        kind = "whole number" if whole else "number"
        raise ValueError(f"{what} must be a finite {kind} {'>' if strict else '>='} {low:g}, got {value!r}")
    return float(value)
