"""Both bounds of the optimum from a function in feature space, and a dual point that was improved on purpose."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...problems import relative_gap
from ._iterate import Iterate

Array = NDArray[np.float64]

#: gaps, over that wanted, between which one more correction is worth its price
GOOD, LITTLE = 0.6, 2.0

__all__ = ["Bounds", "DualPoint", "directions", "dual_point", "polished"]


@dataclass
class DualPoint:
    """Coefficients ``(n, k)`` in the dual set, ``Z'beta``, ``beta'K_j beta`` and the lower bound they prove."""

    beta: Array
    image: Array
    quad: Array
    value: float


@dataclass
class Bounds:
    """Objective at the coordinates, and the best dual point so far."""

    upper: float
    lower: DualPoint
    tiny: float

    @property
    def gap(self) -> float:
        """Relative gap of the function in feature space."""
        return relative_gap(self.upper, self.lower.value, self.tiny)


def dual_point(at: Iterate, beta: Array) -> DualPoint:
    """Move coefficients into the dual set, and see what they prove: one read of all features."""
    problem = at.problem
    inside = problem.repair(beta.reshape(problem.y.shape))
    beta = inside.reshape(beta.shape)
    image = at.features.adjoint_all(beta)
    quad = at.features.norms(image) ** 2
    return DualPoint(beta, image, quad, problem.gain(inside) - problem.norm.conjugate(quad))


def promise(at: Iterate) -> DualPoint:
    """Return what the coefficients would prove if no block but the active ones counted, as quick as a step.

    No bound: but one that holds is as good only where the other blocks' images are no longer.
    """
    problem = at.problem
    inside = problem.repair(at.beta.reshape(problem.y.shape))
    beta = inside.reshape(at.beta.shape)
    image = at.features.adjoint_of(beta, at.active, quick=True)
    quad = at.features.norms(image) ** 2
    return DualPoint(beta, image, quad, problem.gain(inside) - problem.norm.conjugate(quad))


def directions(at: Iterate) -> Array:
    """Decision values ``(n, k, active)`` of the active blocks, each of length one: they sum to those of the iterate."""
    active, directions = at.active, at.directions
    V = np.empty((*at.f.shape, active.size))
    for column, j in enumerate(active):
        V[:, :, column] = at.features.push(int(j), directions[at.features.place(j)])
    return V


def polished(at: Iterate, promised: DualPoint, V: Array, tol: float) -> DualPoint:
    """Make the images of all active blocks equally long, to first order, at the least cost: the gap's main part.

    The lower bound pays for the longest image; at the optimum all active ones are as long.  Moving the decision values
    along ``V c``, the active blocks' own directions, changes the coefficients by ``-HVc`` and the lengths by
    ``-V'HVc``.  Where the gap is then near ``tol``, what is left is corrected once more.
    """
    active = at.active
    bend = at.loss.hessian(at.f)
    if V.shape[1] == 1:
        HV = bend(V[:, 0])[:, None]
    else:
        HV = np.stack([bend(V[:, :, column]) for column in range(active.size)], axis=2)
    flat = HV.reshape(-1, active.size)
    system = V.reshape(flat.shape).T @ flat
    system[np.diag_indices_from(system)] += 1e-10 * float(np.trace(system)) + np.finfo(float).tiny
    shares = at.t[active] / float(np.sum(at.t[active]))
    beta, best = at.beta, promised
    for attempt in range(2):
        lengths = np.sqrt(best.quad[active])
        beta = beta - HV @ np.linalg.solve(system, lengths - float(shares @ lengths))
        now = dual_point(at, beta)
        if attempt and now.value <= best.value:
            break
        best = now
        gap = relative_gap(at.objective, best.value, at.problem.tiny)
        if not GOOD * tol < gap < LITTLE * tol:
            break
    return best
