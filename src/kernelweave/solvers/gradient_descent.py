"""Descent on the weights: SimpleMKL's reduced gradient, and projected subgradients."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..problems import MKLProblem, Oracle, Point, relative_gap
from ._base import Solver, begin, inner_target


@dataclass
class _SimpleMKLState:
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

    def init(self, problem: MKLProblem, start: Point | None, tol: float) -> _SimpleMKLState:
        weights, inner = begin(problem, start)
        target = inner_target(1.0, tol, 0.02)
        return _SimpleMKLState(problem.oracle(weights, inner, target), tol, target)

    def step(self, problem: MKLProblem, state: _SimpleMKLState) -> _SimpleMKLState:
        here = state.oracle
        gap = relative_gap(here.inner.primal, problem.dual(here.inner.beta, here.quad))
        # values are compared along the line: they must be known better than they differ
        target = min(state.target, inner_target(gap, state.tol, 0.02))
        if here.inner.relative_gap > target:
            here = problem.oracle(here.weights, here.inner, target)
        # (12) of the paper: the reduced gradient, the largest weight as the reference
        gradient, leader = -0.5 * here.quad, int(np.argmax(here.weights))
        direction = -(gradient - gradient[leader])
        direction[(here.weights <= 0) & (direction < 0)] = 0.0
        direction[leader] = -np.sum(direction)
        rounding = 1e-13 * float(np.max(np.abs(direction)))
        current = here
        while True:
            falling = direction < -rounding
            if not np.any(falling):
                finished = current is here and target < 1e-6 * state.tol
                return _SimpleMKLState(current, state.tol, 0.1 * target, finished)
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
                return _SimpleMKLState(current, state.tol, target)
            direction[leader] += direction[first]
            direction[first] = 0.0
        # a point on the line where the slope is a tenth of the first: J is convex, its slope -s'D/2
        at_low, at_high, low, reached = 0.0, float(lengths[first]), current.inner.dual, current
        slope_low, slope_high = (float(-0.5 * end.quad @ direction) for end in (current, trial))
        goal = 0.1 * abs(slope_low)
        for _ in range(self.line_search):
            # the secant's root, kept away from the ends
            share = slope_low / (slope_low - slope_high) if slope_high > slope_low else 0.5
            at = at_low + min(max(share, 0.05), 0.95) * (at_high - at_low)
            trial = problem.oracle(np.maximum(current.weights + at * direction, 0.0), reached.inner, target)
            if trial.inner.dual < reached.inner.dual:
                reached = trial
            slope = float(-0.5 * trial.quad @ direction)
            if abs(slope) <= goal and reached is trial:
                break
            if slope < 0 and trial.inner.dual <= low:
                at_low, slope_low = at, slope
            else:
                at_high, slope_high = at, slope
        if reached.inner.dual >= here.inner.dual:
            # nothing gained: either the inner solves are too coarse, or this is the optimum
            return _SimpleMKLState(here, state.tol, 0.1 * target, finished=target < 1e-6 * state.tol)
        return _SimpleMKLState(reached, state.tol, target)


#: relative gap of an inner solve below which double precision has no more digits
FINEST = 1e-15


@dataclass
class _SubgradientState:
    oracle: Oracle
    tol: float
    step: float
    recent: tuple[float, ...]
    target: float = 1e-2
    finished: bool = False


class Subgradient(Solver, registered_as="subgradient"):
    """Step along ``s / 2``, project, and search the line back where the value did not fall.

    J is differentiable almost everywhere, so the step length is taken from the last change of the gradient (Barzilai
    and Borwein); a step is accepted against the worst of the last few values, as is usual for such steps.

    Parameters
    ----------
    memory : int, default=5
        Values among which the worst is the bar for the next one.
    """

    needs = ("projection",)
    default_max_iter = 5000
    summary = "projected subgradient on the weights, spectral step length"

    def __init__(self, memory: int = 5) -> None:
        self.memory = memory

    def init(self, problem: MKLProblem, start: Point | None, tol: float) -> _SubgradientState:
        weights, inner = begin(problem, start)
        oracle = problem.oracle(weights, inner, inner_target(1e-2, tol))
        return _SubgradientState(oracle, tol, _first_step(oracle), (oracle.inner.primal,))

    def step(self, problem: MKLProblem, state: _SubgradientState) -> _SubgradientState:
        here, norm = state.oracle, problem.norm
        gap = relative_gap(here.inner.primal, problem.dual(here.inner.beta, here.quad))
        target = min(state.target, inner_target(gap, state.tol, 0.02))
        gradient = -0.5 * here.quad
        goal = norm.project(here.weights - state.step * gradient)
        direction = goal - here.weights
        slope = float(gradient @ direction)
        # what the step promises must stand out from what the inner solve left open, or it follows rounding
        open_ = max(here.inner.primal - here.inner.dual, 0.0)
        if not slope < 0 or (open_ > -0.1 * slope and state.target > FINEST):
            return self._sharpen(problem, state, target)
        length, trial = 1.0, here
        for _ in range(40):
            weights = np.maximum(here.weights + length * direction, 0.0)
            weights[weights < 1e-14 * np.max(weights)] = 0.0
            trial = problem.oracle(weights, here.inner, target)
            if trial.inner.dual <= max(state.recent) + 1e-4 * length * slope:
                break
            length *= 0.5
        else:
            return self._sharpen(problem, state, target)
        recent = (*state.recent, trial.inner.primal)[-self.memory :]
        # the step length that fits the last change of weights and gradient; doubled where the gradient did not change
        moved, step = trial.weights - here.weights, 2.0 * state.step
        change = float(moved @ (-0.5 * (trial.quad - here.quad)))
        if change > 0:
            step = float(np.clip(float(moved @ moved) / change, 1e-12 * state.step, 1e6 * state.step))
        return _SubgradientState(trial, state.tol, step, recent, state.target)

    def _sharpen(self, problem: MKLProblem, state: _SubgradientState, target: float) -> _SubgradientState:
        """Stay, but solve more precisely: no step goes down along an inexact gradient, or none is needed."""
        target = 0.1 * min(target, max(state.oracle.inner.relative_gap, FINEST))
        oracle = problem.oracle(state.oracle.weights, state.oracle.inner, target)
        recent, finished = (oracle.inner.primal,), target < 0.01 * FINEST
        return _SubgradientState(oracle, state.tol, _first_step(oracle), recent, target, finished)


def _first_step(oracle: Oracle) -> float:
    """Step length that would carry the weights across about half of their set."""
    spread = float(np.linalg.norm(oracle.quad - np.mean(oracle.quad)))
    return float(np.linalg.norm(oracle.weights)) / max(spread, 1e-300)
