"""Quadratic models of J on sets of weights with a curved boundary: groups of kernels, the elastic net."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._numerics.barrier import minimise_on_set
from ._model import CutModel

Array = NDArray[np.float64]

__all__ = ["SetModel"]

#: weights below this share of the multiplier that holds them up are zero, as far as a barrier can tell
TRACE = 1e-2


class SetModel(CutModel):
    """The model on a norm's own set of weights, minimised from the inside."""

    def _minimise_with(self, rows: Array, gains: Array) -> tuple[Array, Array]:
        norm, m = self.norm, self.d.size
        scale = float(np.max(np.abs(self.centre_slope))) or 1.0  # dimensionless, for the tolerances' sake
        start = norm.inside(0.5 * norm.scaled(self.d) + 0.5 * norm.start(m))
        hessian = np.zeros((start.size, start.size))
        hessian[:m, :m] = (self.root.T @ self.root + self.damping * np.eye(m)) / scale
        linear, slopes = np.zeros(start.size), np.zeros((gains.size, start.size))
        linear[:m] = -hessian[:m, :m] @ self.d
        slopes[:, :m] = rows / scale
        place, bounds, multipliers = minimise_on_set(
            hessian, linear, slopes, (gains - gains[0]) / scale, norm.boundary, start
        )
        z = place[:m]
        # complementarity tells the zeros: there the multiplier is the larger of the two, by far
        z = np.where(z > TRACE * bounds[:m], z, 0.0)
        total = float(np.sum(multipliers))
        return norm.scaled(z), multipliers / max(total, np.finfo(float).tiny)
