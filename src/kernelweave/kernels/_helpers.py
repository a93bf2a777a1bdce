"""Small helpers of the room: keys for sharing, rows of any kind of samples, powers."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from .._components import Component

__all__ = ["Same", "identity", "n_samples", "power", "refuse_non_finite", "take"]


class Same:
    """A key for one object by identity; it keeps the object alive, so that its id is not reused."""

    def __init__(self, what: Any) -> None:
        self.what = what

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.what is self.what

    def __hash__(self) -> int:
        return id(self.what)


def identity(what: Any) -> Hashable:
    """Return a hashable key for a parameter: by value where that is cheap, else by identity."""
    if what is None or isinstance(what, (bool, int, float, str, np.generic)):
        return what
    if isinstance(what, (tuple, list)):
        return tuple(identity(part) for part in what)
    if isinstance(what, Component) and type(what).__hash__ is object.__hash__:
        parameters = sorted(what.everything().items())
        return type(what), tuple((name, identity(value)) for name, value in parameters)
    return Same(what)


def refuse_non_finite(values: np.ndarray, what: str) -> None:
    """Raise where numbers that a kernel is to work on are NaN or infinite."""
    # the sum of finite numbers is almost always finite: look closer only if it is not
    with np.errstate(over="ignore", invalid="ignore"):
        finite = bool(np.isfinite(values.sum()))
    if not finite and not np.isfinite(values).all():
        raise ValueError(
            f"{what}: the samples contain NaN or infinity; impute missing values first (SimpleImputer), or drop those "
            "rows"
        )


def n_samples(A: Any) -> int:
    """Return the number of samples; sparse matrices have no len."""
    shape = getattr(A, "shape", None)
    return int(shape[0]) if shape else len(A)


def take(A: Any, rows: Sequence[int] | np.ndarray) -> Any:
    """Return some samples of an array, a sparse matrix, a data frame or a list."""
    if hasattr(A, "iloc"):
        return A.iloc[np.asarray(rows)]
    if hasattr(A, "tocsr"):
        return A.tocsr()[np.asarray(rows)]
    if hasattr(A, "shape"):
        return A[np.asarray(rows)]
    return [A[i] for i in rows]


def power(base: np.ndarray, exponent: float, out: np.ndarray | None = None) -> np.ndarray:
    """Return ``base ** exponent``; small whole powers by products, which is many times quicker than pow."""
    if exponent == 1.0:
        if out is None:
            return np.array(base)
        if out is not base:
            out[...] = base
        return out
    if exponent == 2.0:
        return np.square(base, out=out)
    if exponent == 3.0:
        square = np.square(base)
        return np.multiply(square, base, out=out)
    return np.power(base, exponent, out=out)
