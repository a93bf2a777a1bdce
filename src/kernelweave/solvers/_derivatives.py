"""What compiled steps on single samples need of a loss: its derivative in a form they know."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..losses import Loss

Array = NDArray[np.float64]

__all__ = [
    "Derivative",
    "columns_of",
    "derivative_of",
    "has_block_steps",
    "has_bounded_steps",
    "has_simple_derivative",
]


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


def derivative_of(loss: Loss, y: Array) -> Derivative:
    """``-gradient`` of a loss for compiled steps: also of losses with a corner, and of joint ones."""
    from .._numerics.online import MULTICLASS
    from .._numerics.svrg import CLIPPED

    if loss.joint:
        low, high = loss.bounds(y)
        return Derivative(MULTICLASS, np.zeros_like(low), 1.0, low, high)
    quadratic = loss.quadratic_dual(y)
    if quadratic is not None and quadratic.kink == 0.0 and quadratic.ridge == 0.0:
        # a corner is a line of next to no width
        low, high = (columns_of(bound) for bound in loss.bounds(y))
        return Derivative(CLIPPED, columns_of(quadratic.linear), 1e-12, low, high)
    return Derivative.of(loss, y)


def has_simple_derivative(loss: Loss) -> bool:
    """Whether ``Derivative.of`` serves: a sigmoid, or the clipped line of a strongly concave quadratic dual."""
    if loss.smoothness is None:
        return False
    if loss.sigmoid:
        return True
    quadratic = loss.quadratic_dual(np.ones(1))
    return quadratic is not None and quadratic.kink == 0.0 and quadratic.ridge > 0.0


def has_block_steps(loss: Loss) -> bool:
    """Whether steps on whole blocks serve: a compiled derivative, or a softmax."""
    return has_simple_derivative(loss) or (loss.joint and loss.smoothness is not None)


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
