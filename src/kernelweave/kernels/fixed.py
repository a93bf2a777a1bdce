"""The constant kernel."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from ._helpers import n_samples
from ._kernel import Kernel
from ._numeric import checked_number, readable

__all__ = ["Constant", "constant"]


class Constant(Kernel, registered_as="constant"):
    """The same number for every pair; see :func:`constant`."""

    accepts_sparse = True

    def __init__(self, value: float = 1.0) -> None:
        self.value = value

    @property
    def name(self) -> str:
        """The value, where it is not 1."""
        return "constant" if self.value == 1 else f"constant({readable(self.value)})"

    def _checked(self) -> float:
        return checked_number(self.value, "the value of a constant kernel", strict=False)

    def base(self, A: Any, B: Any) -> np.ndarray:
        """Return a matrix of one value."""
        return np.full((n_samples(A), n_samples(B)), self._checked())

    def base_diag(self, A: Any) -> np.ndarray:
        """Return a vector of one value."""
        return np.full(n_samples(A), self._checked())

    def features(self, A: Any) -> np.ndarray:
        """Return one column."""
        return np.full((n_samples(A), 1), sqrt(self._checked()))

    def rank(self, n_columns: int) -> int:
        """Return 1."""
        return 1


def constant(value: float = 1.0) -> Constant:
    """Return the kernel that is the same number for every pair: a penalised intercept.

    >>> constant(2.0)([[0.0], [1.0]])
    array([[2., 2.],
           [2., 2.]])
    """
    checked_number(value, "the value of a constant kernel", strict=False)
    return Constant(value)
