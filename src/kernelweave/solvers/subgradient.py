"""Projected subgradient descent on the weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..problems import MKLProblem, Oracle, Point, relative_gap
from ._base import Solver
from ._start import begin, inner_target

__all__ = ["Subgradient"]

#: relative gap of an inner solve below which double precision has no more digits
FINEST = 1e-15


@dataclass
class _State:
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

    def init(self, problem: MKLProblem, start: Point | None, tol: float) -> _State:
        weights, inner = begin(problem, start)
        oracle = problem.oracle(weights, inner, inner_target(1e-2, tol))
        return _State(oracle, tol, _first_step(oracle), (oracle.inner.primal,))

    def step(self, problem: MKLProblem, state: _State) -> _State:
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
        return _State(trial, state.tol, _spectral_step(here, trial, state.step), recent, state.target)

    def _sharpen(self, problem: MKLProblem, state: _State, target: float) -> _State:
        """Stay, but solve more precisely: no step goes down along an inexact gradient, or none is needed."""
        target = 0.1 * min(target, max(state.oracle.inner.relative_gap, FINEST))
        oracle = problem.oracle(state.oracle.weights, state.oracle.inner, target)
        finished = target < 0.01 * FINEST
        return _State(oracle, state.tol, _first_step(oracle), (oracle.inner.primal,), target, finished)

    def point(self, state: _State) -> Point:
        return state.oracle.point


def _first_step(oracle: Oracle) -> float:
    """Step length that would carry the weights across about half of their set."""
    spread = float(np.linalg.norm(oracle.quad - np.mean(oracle.quad)))
    return float(np.linalg.norm(oracle.weights)) / max(spread, 1e-300)


def _spectral_step(old: Oracle, new: Oracle, fallback: float) -> float:
    """Step length that fits the last change of weights and gradient; doubled where the gradient did not change."""
    moved: NDArray[np.float64] = new.weights - old.weights
    change = float(moved @ (-0.5 * (new.quad - old.quad)))
    if change <= 0:
        return 2.0 * fallback
    return float(np.clip(float(moved @ moved) / change, 1e-12 * fallback, 1e6 * fallback))
