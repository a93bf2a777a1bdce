"""The multinomial logistic loss: softmax over all classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import logsumexp, softmax, xlogy

from ._base import Array
from .multiclass_hinge import MulticlassHinge, own_class

__all__ = ["Multinomial"]


class Multinomial(MulticlassHinge, registered_as="multinomial"):
    """``log sum_k exp(f_k) - f_own``: minus the log of the own class's probability, ``P(k | f) ~ exp(f_k)``.

    ``y`` is a table ``(n, k)`` of -1 and 1 with the 1 at the sample's own class.  The dual set is that of the
    multiclass hinge, rows ``c (e_own - a)`` with a on the simplex; its part of the dual objective is the entropy
    ``-sum_k a_k ln a_k``, and at the optimum a are the probabilities.  Two classes are the logistic loss of
    ``f_2 - f_1``, with twice the C.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array([[1.0, -1.0, -1.0]])
    >>> Multinomial().value(y, np.log([[0.5, 0.25, 0.25]])).round(4)
    array([0.6931])
    """

    #: largest eigenvalue of ``diag(p) - p p'``
    smoothness = 0.5
    has_curvature = True
    has_probabilities = True

    def probabilities(self, f: Array) -> Array:
        return np.asarray(softmax(f, axis=1))

    def value(self, y: Array, f: Array) -> Array:
        return np.asarray(logsumexp(f - f[np.arange(f.shape[0]), own_class(y)][:, None], axis=1))

    def gradient(self, y: Array, f: Array) -> Array:
        return np.asarray(softmax(f, axis=1)) - (y > 0)

    def curvature(self, y: Array, f: Array) -> Array:
        """Diagonal of the second derivative, ``p (1 - p)``."""
        p = softmax(f, axis=1)
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
        from .._numerics.softmax import best_softmax_shift

        return best_softmax_shift(f, own_class(y), c[:, 0])
