"""What compiled SVRG steps need of a loss, and how samples are drawn."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..losses import Loss

Array = NDArray[np.float64]

__all__ = ["Derivative", "columns_of", "draw", "has_bounded_steps", "has_simple_derivative", "shares"]


class Derivative(NamedTuple):
    """``-l'(f)`` of every sample for compiled code; see ``_numerics.svrg`` for the kinds."""

    kind: int
    target: Array
    width: float
    low: Array
    high: Array

    @classmethod
    def of(cls, loss: Loss, y: Array) -> Derivative:
        """Read the derivative off the loss: maximising the dual of one sample over b gives ``b = -l'(f)``."""
        from .._numerics.svrg import CLIPPED, SIGMOID

        low, high = (columns_of(bound) for bound in loss.bounds(y))
        if loss.sigmoid:
            return cls(SIGMOID, np.zeros_like(low), 1.0, low, high)
        quadratic = loss.quadratic_dual(y)
        assert quadratic is not None
        return cls(CLIPPED, columns_of(quadratic.linear), float(quadratic.ridge), low, high)


def has_simple_derivative(loss: Loss) -> bool:
    """Whether ``Derivative.of`` serves: a sigmoid, or the clipped line of a strongly concave quadratic dual."""
    if loss.smoothness is None:
        return False
    if loss.sigmoid:
        return True
    quadratic = loss.quadratic_dual(np.ones(1))
    return quadratic is not None and quadratic.kink == 0.0 and quadratic.ridge > 0.0


def has_bounded_steps(loss: Loss) -> bool:
    """Whether online steps serve: a sum over samples of a loss whose gradients are simple and bounded."""
    if loss.joint:
        return loss.smoothness is None
    corner = loss.has_saddle_form and type(loss).total is Loss.total
    return (corner or has_simple_derivative(loss)) and bool(np.all(np.isfinite(loss.bounds(np.ones(1)))))


def columns_of(values: Any) -> Array:
    """``(n,)`` as one column; contiguous."""
    values = np.ascontiguousarray(values, dtype=float)
    return values[:, None] if values.ndim == 1 else values


def shares(curvature: Array) -> Array:
    """Probabilities of the samples, proportional to what each adds to the curvature: the largest step is then safe.

    Where all rows have the same length and C this is the uniform law of the paper.
    """
    total = float(np.sum(curvature))
    return curvature / total if total > 0 else np.full(curvature.size, 1.0 / curvature.size)


def draw(share: Array, steps: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """How often each sample is visited: ``steps * share`` on average, and never more than one off.

    With equal shares every sample is visited once, which converges faster than drawing independently.
    """
    ends = np.floor(np.cumsum(share) * steps + rng.uniform(1e-9, 1.0 - 1e-9))
    return np.diff(ends, prepend=0.0).astype(np.intp)
