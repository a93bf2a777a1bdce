"""The level method: cutting planes with projections that keep the iterates calm."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._numerics.small_qp import solve_qp
from ..problems import MKLProblem, Point
from ._cuts import Cuts, CuttingPlanes, State

Array = NDArray[np.float64]

__all__ = ["Level"]


class Level(CuttingPlanes, registered_as="level"):
    """Project the last weights on a level set of the cutting-plane model (Xu et al. 2009).

    Parameters
    ----------
    level : float, default=0.9
        Position of the level between the model's minimum (0) and the best value (1); the paper's lambda.
    """

    summary = "cutting planes projected on a level set (Xu et al. 2009)"

    def __init__(self, level: float = 0.9) -> None:
        self.level = level

    def init(self, problem: MKLProblem, start: Point | None, tol: float) -> State:
        if not 0.0 < self.level < 1.0:
            raise ValueError(f"Level needs 0 < level < 1, got {self.level!r}")
        return super().init(problem, start, tol)

    def choose(self, cuts: Cuts, lowest: Array, last: Array, lower: float, upper: float) -> Array:
        """Return the weights on the simplex nearest to ``last`` where the model is at most at the level."""
        level = lower + self.level * max(upper - lower, 0.0)
        m = last.size
        rows = np.vstack([-np.eye(m), cuts.slopes])
        limits = np.concatenate([np.zeros(m), level - cuts.gain])
        # the rows are scaled to the size of the simplex constraint, or the interior point method loses digits
        size = np.maximum(np.linalg.norm(rows, axis=1), 1e-300)
        x, _ = solve_qp(
            np.eye(m), -last, rows / size[:, None], limits / size, np.ones((1, m)), np.ones(1)
        )  # fmt: skip
        x = np.where(x > 1e-9, x, 0.0)
        return x / np.sum(x)
