"""The logistic loss."""

from __future__ import annotations

import numpy as np
from scipy.special import xlog1py, xlogy

from .._numerics.namespace import expit, softplus
from ._base import Array, Loss
from .hinge import margin_bounds

__all__ = ["Logistic"]


class Logistic(Loss, registered_as="logistic"):
    """``log(1 + exp(-y f))``; dual term the entropy ``-a ln a - (1-a) ln(1-a)``, ``0 <= a <= 1``.

    It has probabilities: ``P(y = 1 | f) = 1 / (1 + exp(-f))``; so has ``multinomial``, what it becomes with several
    classes together.
    """

    tasks = frozenset({"classification"})
    smoothness = 0.25
    has_curvature = True
    has_probabilities = True
    sigmoid = True
    portable = True

    def probabilities(self, f: Array) -> Array:
        """Of two classes, or of each class against the rest, normalised."""
        each = expit(f)
        if f.ndim == 1:
            return np.column_stack([1.0 - each, each])
        return np.asarray(each / np.maximum(each.sum(axis=1, keepdims=True), np.finfo(float).tiny))

    def value(self, y: Array, f: Array) -> Array:
        return softplus(-y * f)

    def gradient(self, y: Array, f: Array) -> Array:
        return -y * expit(-y * f)

    def curvature(self, y: Array, f: Array) -> Array:
        p = expit(-np.abs(f))
        return p * (1.0 - p)

    def conjugate(self, y: Array, u: Array) -> Array:
        a = -y * u
        inside = (a >= 0) & (a <= 1)
        a = np.clip(a, 0.0, 1.0)
        return np.where(inside, xlogy(a, a) + xlog1py(1.0 - a, -a), np.inf)

    def dual_curvature(self, y: Array, b: Array) -> Array:
        a = np.clip(y * b, 1e-300, 1.0)
        return 1.0 / np.maximum(a * (1.0 - a), 1e-300)

    def bounds(self, y: Array) -> tuple[Array, Array]:
        return margin_bounds(y)

    def of_several_classes(self) -> Loss:
        from .multinomial import Multinomial

        # a loss derived from this one is not made of probabilities of one class against the rest
        return Multinomial() if type(self) is Logistic else self
