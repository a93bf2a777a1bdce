"""Quadratic models of J on sets of weights with a curved boundary: groups of kernels, the elastic net."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._numerics.barrier import minimise_on_set
from ._model import CutModel

Array = NDArray[np.float64]
Index = NDArray[np.intp]

__all__ = ["SetModel"]

#: weights below this share of the multiplier that holds them up are zero, as far as a barrier can tell
TRACE = 1e-2
#: kernels beyond which a working set is taken, and how often the set is asked for its steepest point to fill it
ALL, ASKED = 60, 6
#: what the model may be above its minimum on the whole set, as a share of its largest slope, and of what it falls by
SLACK, SHARE = 1e-7, 0.1
#: fall of the model, as a share of its height, after which no more kernels are asked for: that far from the optimum the
#: next model will know better, and a mixture of fewer kernels is read in less
FAR = 0.1


class SetModel(CutModel):
    """The model on a norm's own set of weights, minimised from the inside on a working set of kernels."""

    working: Index | None = None

    def _minimise_with(self, rows: Array, gains: Array) -> tuple[Array, Array]:
        if self.working is None:
            self.working = self._first_working_set()
        for _ in range(30):
            z, multipliers = self._on(self.working, rows, gains)
            # the steepest points of the whole set tell which kernels are missing
            gradient = self._gradient(z - self.d, rows, multipliers)
            fall = np.maximum(-2.0 * gradient, 0.0)
            above = float(gradient @ z) + self.norm.conjugate(fall)
            missing = np.setdiff1d(self._steepest(fall), self.working)
            if missing.size == 0 or self._enough(z, above, rows, gains):
                break
            self.working = np.union1d(self.working, missing)
        return z, multipliers

    def _enough(self, z: Array, above: float, rows: Array, gains: Array) -> bool:
        """Whether weights at which the model is so much above its minimum are worth a look at J."""
        height = float(np.max(gains + rows @ self.d))
        fall = height - float(np.max(gains + rows @ z)) - self._bent(z - self.d)
        steepest = float(np.max(np.abs(self.centre_slope)))
        return above <= max(SLACK * steepest, SHARE * fall) or fall > FAR * abs(height)

    def _first_working_set(self) -> Index:
        """All of few kernels; of many the steepest, and those in use unless they are as many (a uniform start)."""
        if self.d.size <= ALL:
            return np.arange(self.d.size)
        in_use = np.flatnonzero(self.d)
        steepest = self._steepest(-2.0 * self.centre_slope)
        return np.union1d(in_use, steepest) if in_use.size < self.d.size else steepest

    def _steepest(self, fall: Array) -> Index:
        """Kernels of the steepest point of the set, of the steepest without those, and so on."""
        left = fall.copy()
        for _ in range(ASKED):
            left[self.norm.weights(left) > 0] = 0.0
            if np.count_nonzero(left) <= max(left.size - ALL, 0):  # enough for once
                break
        return np.flatnonzero((left == 0.0) & (fall > 0))

    def _on(self, working: Index, rows: Array, gains: Array) -> tuple[Array, Array]:
        """Minimise on a working set; return all weights and the multipliers of the cuts."""
        norm, m = self.norm.restricted(working), working.size
        scale = float(np.max(np.abs(self.centre_slope))) or 1.0  # dimensionless, for the tolerances' sake
        here = self.d[working]
        near = norm.scaled(here) if np.any(here > 0) else norm.start(m)
        start = norm.inside(0.5 * near + 0.5 * norm.start(m))
        hessian = np.zeros((start.size, start.size))
        linear, slopes = np.zeros(start.size), np.zeros((gains.size, start.size))
        curved, pull = self._expanded(working, self.d)
        hessian[:m, :m], linear[:m] = curved / scale, -pull / scale
        slopes[:, :m] = rows[:, working] / scale
        place, bounds, multipliers = minimise_on_set(
            hessian, linear, slopes, (gains - gains[0]) / scale, norm.boundary, start
        )
        # complementarity tells the zeros: there the multiplier is the larger of the two, by far
        part = np.where(place[:m] > TRACE * bounds[:m], place[:m], 0.0)
        z = np.zeros(self.d.size)
        z[working] = norm.scaled(part if np.any(part > 0) else place[:m])
        return z, multipliers / max(float(np.sum(multipliers)), np.finfo(float).tiny)
