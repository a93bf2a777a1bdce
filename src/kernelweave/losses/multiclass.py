"""Losses of all classes together: the multiclass hinge and the multinomial loss."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from .._numerics.intercepts import best_softmax_shift, log_sums, probabilities
from .._numerics.namespace import namespace
from .._numerics.projections import balance_rows, project_rows
from .._typing import Array
from ._base import Loss


def own_class(y: Array) -> NDArray[np.intp]:
    """Column of the 1 in every row of a table of -1 and 1."""
    return np.argmax(y, axis=1)


class MulticlassHinge(Loss, registered_as="multiclass_hinge"):
    """``max_k ([k != own] + f_k) - f_own``: how far the best other class comes too close, one value a row.

    ``y`` is a table ``(n, k)`` of -1 and 1 with the 1 at the sample's own class.  Dual set: every row of the
    coefficients is ``c (e_own - a)``, a on the simplex; its part of the dual objective is ``beta_own``.  Two classes
    are the binary hinge of ``f_2 - f_1`` with twice the C.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array([[1.0, -1.0, -1.0], [-1.0, 1.0, -1.0]])
    >>> MulticlassHinge().value(y, np.array([[2.0, 0.5, 1.5], [0.0, 0.0, 0.25]]))
    array([0.5 , 1.25])
    """

    tasks = frozenset({"classification"})
    joint = True
    portable = True

    def scores(self, y: Array, f: Array) -> Array:
        """``f_k + [k != own]``: the loss is the largest of these less ``f_own``."""
        return f + (y < 0)

    def value(self, y: Array, f: Array) -> Array:
        xp = namespace(f)
        return xp.max(self.scores(y, f), axis=1) - xp.where(y > 0, f, 0.0 * y).sum(axis=1)

    def gradient(self, y: Array, f: Array) -> Array:
        xp = namespace(f)
        worst = xp.argmax(self.scores(y, f), axis=1)
        hit = xp.cumsum(xp.ones_like(f), axis=1) - 1.0 == worst[:, None]
        # at a tie the own class wins, so that a loss of zero has no gradient
        return xp.where(self.value(y, f)[:, None] > 0, 1.0 * hit - 1.0 * (y > 0), 0.0 * y)

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
        upper, size = np.where(y > 0, c, 0.0), np.sum(np.abs(beta), axis=1)
        rows_in = not (np.any(beta > upper) or np.any(np.abs(np.sum(beta, axis=1)) > 4e-15 * size))
        if rows_in and (not zero_sum or np.max(np.abs(beta.sum(axis=0))) <= 4e-15 * np.sum(size)):
            return np.asarray(beta)  # in the set up to the rounding of its sums
        projected = balance_rows(beta, upper)[0] if zero_sum else project_rows(beta, upper)
        from .._numerics.rows import make_rows_feasible

        exact = np.array(projected, dtype=float, order="C")
        make_rows_feasible(exact, own_class(y), np.ascontiguousarray(c[:, 0]), zero_sum)
        return exact

    def best_intercept(self, y: Array, f: Array, c: Array) -> Any:
        from .._numerics.rows import best_shift

        return best_shift(self.scores(y, f), own_class(y), c[:, 0])


class Multinomial(MulticlassHinge, registered_as="multinomial"):
    """``log sum_k exp(f_k) - f_own``: minus the log of the own class's probability, ``P(k | f) ~ exp(f_k)``.

    Targets and dual set are those of the multiclass hinge; its part of the dual objective is the entropy
    ``-sum_k a_k ln a_k``, and at the optimum a are the probabilities.  Two classes are the logistic loss of
    ``f_2 - f_1``, with twice the C.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array([[1.0, -1.0, -1.0]])
    >>> Multinomial().value(y, np.log([[0.5, 0.25, 0.25]])).round(4)
    array([0.6931])
    """

    portable = False
    #: largest eigenvalue of ``diag(p) - p p'``
    smoothness = 0.5
    has_curvature = True
    has_probabilities = True

    probabilities = staticmethod(probabilities)  # type: ignore[assignment]

    def value(self, y: Array, f: Array) -> Array:
        return log_sums(f - f[np.arange(f.shape[0]), own_class(y)][:, None])

    def gradient(self, y: Array, f: Array) -> Array:
        return probabilities(f) - (y > 0)

    def curvature(self, y: Array, f: Array) -> Array:
        """Diagonal of the second derivative, ``p (1 - p)``."""
        p = probabilities(f)
        return np.asarray(p * (1.0 - p))

    def conjugate(self, y: Array, u: Array) -> Array:
        a = u + (y > 0)
        inside = np.all(a >= 0, axis=1) & (np.abs(np.sum(u, axis=1)) <= 1e-9)
        return np.where(inside, np.sum(xlogy(np.maximum(a, 0.0), np.maximum(a, 0.0)), axis=1), np.inf)

    def gain(self, y: Array, beta: Array, c: Array) -> float:
        used = c[:, 0] > 0
        a = np.maximum((y[used] > 0) - beta[used] / c[used], 0.0)
        return -float(np.sum(c[used] * xlogy(a, a)))

    def best_intercept(self, y: Array, f: Array, c: Array) -> Any:
        return best_softmax_shift(f, own_class(y), c[:, 0])
