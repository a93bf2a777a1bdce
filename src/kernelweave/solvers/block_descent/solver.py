"""Block descent on explicit features: exact steps, one kernel at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...problems import MKLProblem, Point
from .._base import Solver
from ._run import Run

Array = NDArray[np.float64]

__all__ = ["BlockDescent"]


class BlockDescent(Solver, registered_as="block_descent"):
    """Minimise ``1/2 Omega(|w_1|, |w_2|, ...)^2 + sum c l(y, Z w + b)`` over one kernel's features at a time, exactly.

    Omega is l1, lp, an elastic norm or net, or a norm of groups that does not choose groups by an l1 norm.

    Kernels without explicit features are factorised once (m eigendecompositions).

    Parameters
    ----------
    epochs : int, default=8
        Most steps on every block of the working set between two looks at all blocks; fewer where they win too little.
    memory : int, default=5
        Iterates that Anderson acceleration remembers.
    """

    needs = ("block loss", "block step")
    default_max_iter = 500
    summary = "exact steps on one kernel's features at a time"
    mixes = False

    def __init__(self, epochs: int = 8, memory: int = 5) -> None:
        self.epochs = epochs
        self.memory = memory

    def init(self, problem: MKLProblem, start: Point | None, tol: float, at: Array | None = None) -> Run:
        """Return the first state; ``at`` are coordinates ``(R, k)`` to begin with, where they are known."""
        run = Run(problem, tol, self.epochs, self.memory)
        return run.begin(start) if at is None else run.begin_at(at)

    def step(self, problem: MKLProblem, state: Run) -> Run:
        return state.round()

    def point(self, state: Run) -> Point:
        return state.point()
