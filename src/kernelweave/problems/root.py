"""A root of the Hessian of J, of which only the columns that somebody asks for are computed.

A model of J is minimised over the kernels in use and a few others; of thousands of kernels the other columns are never
looked at one by one, and products with the whole root need a single triangular solve.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .._numerics.tiles import Factor
from .certificate import Array

__all__ = ["Root", "RootPart"]


class RootPart(NamedTuple):
    """``A = P L^-1 V``: a Cholesky factor, and a projection off the normals of the constraints, orthogonal vectors.

    Without a factor it is V itself.
    """

    V: Array
    factor: Factor | None = None
    normals: Sequence[Array] = ()

    def solved(self, right: Array) -> Array:
        """``P L^-1 right``, of a vector or of columns."""
        return right if self.factor is None else self._projected(self.factor.solve(right))

    def transposed(self, left: Array) -> Array:
        """``A' left``."""
        if self.factor is not None:
            left = self.factor.solve_transposed(self._projected(left))
        return np.asarray(self.V.T @ left)

    def _projected(self, values: Array) -> Array:
        for normal in self.normals:
            values = values - np.multiply.outer(normal, (normal @ values) / (normal @ normal))
        return values


class Root:
    """A matrix A of m columns with ``A'A = H``.

    Parameters
    ----------
    parts : list of RootPart
        Rows of A, one part below the other.
    m : int
        Number of columns.
    """

    def __init__(self, parts: Sequence[RootPart], m: int) -> None:
        self.parts = [part for part in parts if part.V.shape[0]]
        self.shape = (sum(part.V.shape[0] for part in self.parts), m)
        self._known = np.empty(self.shape, order="F")
        self._there = np.zeros(m, dtype=bool)

    def columns(self, which: np.ndarray) -> Array:
        """Columns of A by their numbers."""
        return self._with(which)[:, which]

    @property
    def dense(self) -> Array:
        """All of A."""
        return self._with(np.arange(self.shape[1]))

    def _with(self, which: np.ndarray) -> Array:
        """A, in which these columns are known."""
        new = which[~self._there[which]]
        if new.size:
            self._known[:, new] = self._stacked(
                [part.solved(part.V[:, new]) for part in self.parts], new.size
            )
            self._there[new] = True
        return self._known

    def among(self, kernels: np.ndarray) -> Root:
        """The root of some of the kernels."""
        if kernels.size == self.shape[1]:
            return self
        return Root([part._replace(V=part.V[:, kernels]) for part in self.parts], kernels.size)

    def times(self, z: Array) -> Array:
        """``A z``."""
        used = z.nonzero()[0]
        if self._there[used].all():
            return np.asarray(self._known[:, used] @ z[used])
        return self._stacked([part.solved(part.V @ z) for part in self.parts])

    def transposed(self, w: Array) -> Array:
        """``A' w``."""
        out, first = np.zeros(self.shape[1]), 0
        for part in self.parts:
            out += part.transposed(w[first : first + part.V.shape[0]])
            first += part.V.shape[0]
        return out

    def _stacked(self, rows: list[Array], *width: int) -> Array:
        return rows[0] if len(rows) == 1 else np.concatenate([np.zeros((0, *width)), *rows])
