"""The multiclass hinge loss of Crammer and Singer."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._numerics.row_simplex import project_rows, project_rows_balanced
from ._base import Array, Loss

__all__ = ["MulticlassHinge", "own_class"]


def own_class(y: Array) -> NDArray[np.intp]:
    """Column of the 1 in every row of a table of -1 and 1."""
    return np.argmax(y, axis=1)


class MulticlassHinge(Loss, registered_as="multiclass_hinge"):
    """``max_k ([k != own] + f_k) - f_own``: how far the best other class comes too close, one value a row.

    ``y`` is a table ``(n, k)`` of -1 and 1 with the 1 at the sample's own class.  Dual set: every row of the
    coefficients is ``c (e_own - a)``, a on the simplex; its part of the dual objective is ``beta_own``.

    Two classes are the binary hinge with twice the C: ``f_2 - f_1`` is the binary decision value and
    ``|f_1|^2 + |f_2|^2`` half its squared norm.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array([[1.0, -1.0, -1.0], [-1.0, 1.0, -1.0]])
    >>> MulticlassHinge().value(y, np.array([[2.0, 0.5, 1.5], [0.0, 0.0, 0.25]]))
    array([0.5 , 1.25])
    """

    tasks = frozenset({"classification"})
    joint = True

    def scores(self, y: Array, f: Array) -> Array:
        """``f_k + [k != own]``: the loss is the largest of these less ``f_own``."""
        return f + (y < 0)

    def value(self, y: Array, f: Array) -> Array:
        return np.max(self.scores(y, f), axis=1) - f[np.arange(f.shape[0]), own_class(y)]

    def gradient(self, y: Array, f: Array) -> Array:
        rows = np.arange(f.shape[0])
        out = np.zeros_like(f)
        # at a tie the own class wins, so that a loss of zero has no gradient
        worst = np.where(self.value(y, f) > 0, np.argmax(self.scores(y, f), axis=1), own_class(y))
        out[rows, worst] += 1.0
        out[rows, own_class(y)] -= 1.0
        return out

    def conjugate(self, y: Array, u: Array) -> Array:
        own = u[np.arange(u.shape[0]), own_class(y)]
        others = np.where(y < 0, u, 0.0)
        inside = np.all(others >= 0, axis=1) & (own >= -1.0) & (np.abs(np.sum(u, axis=1)) <= 1e-9)
        return np.where(inside, own, np.inf)

    def bounds(self, y: Array) -> tuple[Array, Array]:
        return np.where(y > 0, 0.0, -1.0), np.where(y > 0, 1.0, 0.0)

    def total(self, y: Array, f: Array, c: Array) -> float:
        return float(c[:, 0] @ self.value(y, f))

    def gain(self, y: Array, beta: Array, c: Array) -> float:
        return float(np.sum(beta[y > 0]))

    def project(self, y: Array, beta: Array, c: Array, zero_sum: bool) -> Array:
        upper = np.where(y > 0, c, 0.0)
        if _inside(beta, upper, zero_sum):
            return np.asarray(beta)
        projected = (project_rows_balanced if zero_sum else project_rows)(beta, upper)
        from .._numerics.row_sets import hand_over

        exact = np.array(projected, dtype=float, order="C")
        hand_over(exact, own_class(y), np.ascontiguousarray(c[:, 0]), zero_sum)
        return exact

    def best_intercept(self, y: Array, f: Array, c: Array) -> Any:
        from .._numerics.best_shift import best_shift

        return best_shift(self.scores(y, f), own_class(y), c[:, 0])


def _inside(beta: Array, upper: Array, zero_sum: bool) -> bool:
    """Whether beta is in the dual set up to the rounding of its sums."""
    size = np.sum(np.abs(beta), axis=1)
    if np.any(beta > upper) or np.any(np.abs(np.sum(beta, axis=1)) > 4e-15 * size):
        return False
    return not zero_sum or float(np.max(np.abs(np.sum(beta, axis=0)))) <= 4e-15 * float(np.sum(size))
