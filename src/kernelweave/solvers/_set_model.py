"""Quadratic models of J on sets of weights with a curved boundary: groups of kernels, the elastic net."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._numerics.barrier import minimise_on_set
from ._model import CutModel

Array = NDArray[np.float64]

__all__ = ["SetModel"]

#: weights below this share of the largest are zero, as far as an interior point method can tell
TRACE = 1e-9


class SetModel(CutModel):
    """The model on ``{d >= 0: constraint(d) <= 0}`` of a norm, minimised from the inside."""

    def _minimise_with(self, rows: Array, gains: Array) -> tuple[Array, Array]:
        norm, m = self.norm, self.d.size
        scale = float(np.max(np.abs(self.centre_slope))) or 1.0  # dimensionless, for the tolerances' sake
        hessian = (self.root.T @ self.root + self.damping * np.eye(m)) / scale
        inside = 0.9 * norm.scaled(0.5 * norm.scaled(self.d) + 0.5 * norm.start(m))
        z, bounds, multipliers = minimise_on_set(
            hessian,
            -hessian @ self.d,
            rows / scale,
            (gains - gains[0]) / scale,
            norm.constraint,
            inside,
        )
        # complementarity tells the zeros: there the multiplier is the larger of the two
        z = np.where((z > bounds) | (z > TRACE * np.max(z)), z, 0.0)
        total = float(np.sum(multipliers))
        return norm.scaled(z), multipliers / max(total, np.finfo(float).tiny)
