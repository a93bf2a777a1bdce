"""L-BFGS as a rival of SVRG: the objective of its own iterates, against passes and seconds."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from scipy.optimize import minimize

from ...problems import MKLProblem
from ...solvers.lbfgs import PrimalObjective

__all__ = ["lbfgs_values"]


def lbfgs_values(problem: MKLProblem, most: int) -> list[tuple[float, float, float]]:
    """Passes, seconds and best objective so far of the (2, r) form at every evaluation; a gradient is a pass."""
    objective = PrimalObjective(problem)
    seen: list[tuple[float, float, float]] = []
    began = time.perf_counter()

    def recorded(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = objective(x)
        best = min(value, seen[-1][2]) if seen else value
        seen.append((len(seen) + 1.0, time.perf_counter() - began, best))
        return value, gradient

    options: dict[str, Any] = {"maxiter": most, "maxfun": most, "maxcor": 20, "ftol": 0.0, "gtol": 0.0}
    minimize(recorded, objective.first(None), jac=True, method="L-BFGS-B", options=options)
    return seen
