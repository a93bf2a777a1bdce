"""Losses made of functions that a user passes, checked wherever they are called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ._base import Array, SimilarityLoss

__all__ = ["UserLoss"]


class UserLoss(SimilarityLoss):
    """A convex loss from functions of a symmetric ``(n, n)`` array.

    Parameters
    ----------
    function : callable
        ``function(X) -> float``.
    slope : callable
        ``slope(X) -> (n, n)`` array, a subgradient.
    conjugate_function, prox_function : callable, optional
        ``conjugate_function(Z) -> float`` and ``prox_function(X, step) -> (n, n)`` array: tighter certificates.

    Examples
    --------
    >>> huber = UserLoss(
    ...     lambda X: float(np.sum(np.where(abs(X) < 1, X * X / 2, abs(X) - 0.5))) / len(X),
    ...     lambda X: np.clip(X, -1, 1) / len(X),
    ... )
    >>> huber.value(np.array([[0.0, 2.0], [2.0, 0.0]]))
    1.5
    """

    registered_as = "user"

    def __init__(
        self,
        function: Callable[[Array], float],
        slope: Callable[[Array], Array],
        conjugate_function: Callable[[Array], float] | None = None,
        prox_function: Callable[[Array, float], Array] | None = None,
    ) -> None:
        self.function = function
        self.slope = slope
        self.conjugate_function = conjugate_function
        self.prox_function = prox_function

    def value(self, X: Array) -> float:
        return _number(self.function(X.copy()), "the value")

    def subgradient(self, X: Array) -> Array:
        return _matrix(self.slope(X.copy()), X.shape, "the subgradient")

    def conjugate(self, Z: Array) -> float | None:
        if self.conjugate_function is None:
            return None
        value = float(self.conjugate_function(Z.copy()))
        if np.isnan(value):
            raise ValueError("the similarity loss is not usable: its conjugate is nan")
        return value

    def prox(self, X: Array, step: float) -> Array | None:
        if self.prox_function is None:
            return None
        return _matrix(self.prox_function(X.copy(), step), X.shape, "the proximal operator")


def _number(value: Any, what: str) -> float:
    if np.ndim(value) != 0:
        raise ValueError(
            f"the similarity loss is not usable: {what} should be one number, but has shape {np.shape(value)}"
        )
    number = float(value)
    if not np.isfinite(number):
        raise ValueError(f"the similarity loss is not usable: {what} is {number}")
    return number


def _matrix(value: Any, shape: tuple[int, ...], what: str) -> Array:
    matrix = np.asarray(value, dtype=float)
    if matrix.shape != shape:
        raise ValueError(
            f"the similarity loss is not usable: {what} should have shape {shape}, but has {matrix.shape}"
        )
    if not np.isfinite(matrix).all():
        raise ValueError(f"the similarity loss is not usable: {what} contains nan or infinity")
    return 0.5 * (matrix + matrix.T)
