"""SimpleMKL: reduced gradient descent on the weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..problems import MKLProblem, Oracle, Point, relative_gap
from ._base import Solver
from ._start import begin, inner_target

Array = NDArray[np.float64]

__all__ = ["SimpleMKL"]


@dataclass
class _State:
    oracle: Oracle
    tol: float
    target: float
    finished: bool = False


class SimpleMKL(Solver, registered_as="simplemkl"):
    """Reduced gradient, descent direction emptied component by component, line search (Rakotomamonjy et al. 2008).

    Parameters
    ----------
    line_search : int, default=12
        Most inner solves in one line search.
    """

    needs = ("simplex",)
    default_max_iter = 2000
    summary = "reduced gradient on the weights (Rakotomamonjy et al. 2008)"

    def __init__(self, line_search: int = 12) -> None:
        self.line_search = line_search

    def init(self, problem: MKLProblem, start: Point | None, tol: float) -> _State:
        weights, inner = begin(problem, start)
        target = inner_target(1.0, tol, 0.02)
        return _State(problem.oracle(weights, inner, target), tol, target)

    def step(self, problem: MKLProblem, state: _State) -> _State:
        here = state.oracle
        gap = relative_gap(here.inner.primal, problem.dual(here.inner.beta, here.quad))
        # values are compared along the line: they must be known better than they differ
        target = min(state.target, inner_target(gap, state.tol, 0.02))
        if here.inner.relative_gap > target:
            here = problem.oracle(here.weights, here.inner, target)
        direction = reduced_direction(here)
        leader = int(np.argmax(here.weights))
        rounding = 1e-13 * float(np.max(np.abs(direction)))
        current = here
        while True:
            falling = direction < -rounding
            if not np.any(falling):
                return _State(
                    current, state.tol, 0.1 * target, finished=current is here and target < 1e-6 * state.tol
                )
            lengths = np.full(direction.shape, np.inf)
            lengths[falling] = -current.weights[falling] / direction[falling]
            first = int(np.argmin(lengths))
            trial_weights = np.maximum(current.weights + lengths[first] * direction, 0.0)
            trial_weights[first] = 0.0
            trial = problem.oracle(trial_weights / trial_weights.sum(), current.inner, target)
            if not trial.inner.dual < current.inner.dual:
                break
            # the component that reached zero leaves the direction, the leader takes its share over
            current = trial
            if first == leader:  # the reference itself is gone: start over with another one
                return _State(current, state.tol, target)
            direction[leader] += direction[first]
            direction[first] = 0.0
        reached = self._search(problem, current, trial, direction, float(lengths[first]), target)
        if reached.inner.dual >= here.inner.dual:
            # nothing gained: either the inner solves are too coarse, or this is the optimum
            return _State(here, state.tol, 0.1 * target, finished=target < 1e-6 * state.tol)
        return _State(reached, state.tol, target)

    def _search(
        self, problem: MKLProblem, low: Oracle, high: Oracle, direction: Array, length: float, target: float
    ) -> Oracle:
        """Find a point on the line where the slope is a tenth of the first: J is convex, its slope ``-s'D/2``."""
        origin = low.weights
        at_low, at_high = 0.0, length
        slope_low, slope_high = float(-0.5 * low.quad @ direction), float(-0.5 * high.quad @ direction)
        goal = 0.1 * abs(slope_low)
        best = low
        for _ in range(self.line_search):
            # the secant's root, kept away from the ends
            share = slope_low / (slope_low - slope_high) if slope_high > slope_low else 0.5
            at = at_low + min(max(share, 0.05), 0.95) * (at_high - at_low)
            trial = problem.oracle(np.maximum(origin + at * direction, 0.0), best.inner, target)
            if trial.inner.dual < best.inner.dual:
                best = trial
            slope = float(-0.5 * trial.quad @ direction)
            if abs(slope) <= goal and best is trial:
                break
            if slope < 0 and trial.inner.dual <= low.inner.dual:
                at_low, slope_low = at, slope
            else:
                at_high, slope_high = at, slope
        return best

    def point(self, state: _State) -> Point:
        return state.oracle.point


def reduced_direction(oracle: Oracle) -> Array:
    """Descent direction on the simplex: (12) of Rakotomamonjy et al., the largest weight as the reference."""
    gradient, d = -0.5 * oracle.quad, oracle.weights
    leader = int(np.argmax(d))
    direction = -(gradient - gradient[leader])
    direction[(d <= 0) & (direction < 0)] = 0.0
    direction[leader] = 0.0
    direction[leader] = -np.sum(direction)
    return direction
