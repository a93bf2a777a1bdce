"""IndSVM: problem (2) of [KTBB10], from Luss and d'Aspremont (2007)."""

from __future__ import annotations

from typing import Any

from ..problems import IndefiniteSVMProblem, SimilarityPoint
from ._base import SimilaritySolver
from ._dual_ascent import AscentState, ascend, begin, point_of

__all__ = ["IndSVM"]


class IndSVM(SimilaritySolver, registered_as="indsvm"):
    """Accelerated ascent on the coefficients with the kernel in closed form, (3)."""

    problem = IndefiniteSVMProblem
    summary = "one kernel of any trace, squared loss"

    def init(self, problem: Any, start: Any, tol: float) -> AscentState:
        """Return the state at the clipped mean."""
        return begin(problem, start, tol)

    def step(self, problem: Any, state: AscentState) -> AscentState:
        """Return the next state."""
        return ascend(problem, state)

    def point(self, state: AscentState) -> SimilarityPoint:
        """Return the point to be judged."""
        return point_of(state)
