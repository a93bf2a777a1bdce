"""One inner solve: the mean kernel, or whatever weights are given."""

from __future__ import annotations

from dataclasses import dataclass

from ..problems import MKLProblem, Oracle, Point
from ._base import Solver
from ._start import begin

__all__ = ["FixedWeights"]


@dataclass
class _State:
    oracle: Oracle
    target: float


class FixedWeights(Solver, registered_as="fixed_weights"):
    """Solve once with the given weights; again, more precisely, as long as the certificate asks for it."""

    needs = ("fixed weights",)
    default_max_iter = 8
    summary = "one SVM on the mean kernel or on given weights"

    def init(self, problem: MKLProblem, start: Point | None, tol: float) -> _State:
        _, inner = begin(problem, start)
        return _State(problem.oracle(problem.norm.start(problem.m), inner, 0.5 * tol), 0.5 * tol)

    def step(self, problem: MKLProblem, state: _State) -> _State:
        target = 0.1 * state.target
        return _State(problem.oracle(state.oracle.weights, state.oracle.inner, target), target)

    def point(self, state: _State) -> Point:
        return state.oracle.point
