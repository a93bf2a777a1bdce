"""Kernels given as a function, on samples of any kind: strings, graphs, rows."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from ._helpers import Same, n_samples, take
from ._kernel import Kernel

__all__ = ["Function", "check_returned", "evaluate_pairs", "function"]


class Function(Kernel, registered_as="function"):
    """A kernel from a function; see :func:`function`."""

    takes_objects = True
    sure = False

    def __init__(self, function: Callable[..., Any], label: str | None = None, pairwise: bool = True) -> None:
        self.function = function
        self.label = label
        self.pairwise = pairwise

    @property
    def name(self) -> str:
        """The given name, else that of the function."""
        return self.label or name_of(self.function)

    @property
    def base_key(self) -> Hashable:
        """Shared by kernels of the very same function."""
        return ("function", Same(self.function), bool(self.pairwise)), None

    def base(self, A: Any, B: Any) -> np.ndarray:
        """Return the matrix of the function's values."""
        if self.pairwise:
            return evaluate_pairs(self.function, A, B, f"kernel {self.name!r}")
        values = self.function(A, B)
        shape = n_samples(A), n_samples(B)
        return check_returned(values, shape, f"kernel {self.name!r}", symmetric=A is B)

    def base_diag(self, A: Any) -> np.ndarray:
        """Return the function of every sample with itself."""
        if self.pairwise:
            rows = rows_of(A)
            return np.array([_value(self.function, row, row, f"kernel {self.name!r}") for row in rows], float)
        return super().base_diag(A)


def name_of(function: Callable[..., Any]) -> str:
    """Return what a function is called."""
    return getattr(function, "__name__", type(function).__name__)


def rows_of(A: Any) -> list[Any]:
    """Return the samples one by one: rows of an array, entries of a list."""
    if hasattr(A, "iloc"):
        A = A.to_numpy()
    if hasattr(A, "tocsr"):
        return [take(A, [i]) for i in range(n_samples(A))]
    return list(A)


def _value(function: Callable[..., Any], a: Any, b: Any, who: str) -> float:
    try:
        value = function(a, b)
    except Exception as error:
        error.add_note(
            f"{who} called its function on one pair of samples; see pairwise=False for sets of samples"
        )
        raise
    if np.ndim(value) != 0:
        raise ValueError(
            f"{who}: the function returned an array of shape {np.shape(value)} for one pair; if it "
            "takes two sets of samples and returns their matrix, say pairwise=False"
        )
    try:
        number = float(value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{who}: the function returned {value!r}, which is not a number") from error
    if not np.isfinite(number):
        raise ValueError(f"{who}: the function returned {value!r} for a pair of samples")
    return number


def evaluate_pairs(function: Callable[..., Any], A: Any, B: Any, who: str) -> np.ndarray:
    """Return the values of a function of two samples on all pairs; each pair once when A is B."""
    left = rows_of(A)
    if A is not B:
        right = rows_of(B)
        values = [_value(function, a, b, who) for a in left for b in right]
        return np.array(values, dtype=np.float64).reshape(len(left), len(right))
    matrix = np.empty((len(left), len(left)))
    for i, a in enumerate(left):
        for j in range(i + 1):
            matrix[i, j] = matrix[j, i] = _value(function, a, left[j], who)
    return matrix


def check_returned(values: Any, shape: tuple[int, int], who: str, symmetric: bool = False) -> np.ndarray:
    """Return a user's matrix as a fresh float64 array, or say what is wrong with it."""
    try:
        matrix = np.array(values, dtype=np.float64)  # a copy: the function may keep its own
    except (TypeError, ValueError) as error:
        raise ValueError(f"{who}: the function returned something that is no matrix of numbers") from error
    if matrix.shape != shape:
        raise ValueError(f"{who}: the function returned shape {matrix.shape} where {shape} was expected")
    if not np.isfinite(matrix).all():
        i, j = np.argwhere(~np.isfinite(matrix))[0]
        raise ValueError(f"{who}: the function returned {matrix[i, j]} for samples {i} and {j}")
    if symmetric and matrix.size:
        skew = np.abs(matrix - matrix.T)
        if skew.max() > 1e-6 * np.abs(matrix).max():
            i, j = np.unravel_index(skew.argmax(), shape)
            raise ValueError(
                f"{who} is not symmetric: {matrix[i, j]:g} for samples {i} and {j}, "
                f"but {matrix[j, i]:g} for {j} and {i}"
            )
        matrix = 0.5 * (matrix + matrix.T)  # rounding apart, to the bit
    return matrix


def function(f: Callable[..., Any], name: str | None = None, pairwise: bool = True) -> Function:
    """Return a kernel from a function.

    Parameters
    ----------
    f : callable
        ``f(a, b) -> float`` on two samples, or with ``pairwise=False`` ``f(A, B) -> matrix`` on two sets of
        samples.  It should be symmetric and positive semidefinite; of ``f(a, b)`` and ``f(b, a)`` only one is
        evaluated on the training samples.
    name : str or None
        A display name; by default that of the function.
    pairwise : bool

    Examples
    --------
    >>> from kernelweave import kernels as kw
    >>> def common_letters(a, b):
    ...     return len(set(a) & set(b))
    >>> kw.function(common_letters)(["weave", "wave"])
    array([[4., 4.],
           [4., 4.]])
    """
    if isinstance(f, Kernel) or not callable(f):
        raise ValueError(f"function needs a plain callable, got {f!r}")
    return Function(f, name, pairwise)
