"""StPMKL's comparison: descent in the blocks and ascent in the multipliers at once, with steps that shrink."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..problems import MKLProblem, Point
from ._base import Solver
from ._saddle import Average, Blocks, Saddle, paper_step, share_coefficients

__all__ = ["Variational"]


@dataclass
class _State:
    saddle: Saddle
    f: Blocks
    u: Any
    average: Average
    steps: int = 0


class Variational(Solver, registered_as="variational"):
    """The variational inequality method of [YMJZY12], section 5: simultaneous steps ``g / sqrt(t)``, averages judged.

    Parameters
    ----------
    length : float, default=10.0
        First step in units of ``sqrt(n / (2m))``.
    """

    needs = ("saddle form", "simplex")
    default_max_iter = 10_000
    summary = "plain descent and ascent on the saddle form (VI in Yang et al. 2012)"

    def __init__(self, length: float = 10.0) -> None:
        self.length = length

    def init(self, problem: MKLProblem, start: Point | None, tol: float) -> _State:
        if not self.length > 0:
            raise ValueError(f"Variational needs length > 0, got {self.length!r}")
        saddle = Saddle(problem)
        f, u, image = saddle.begin(start)
        return self.step(problem, _State(saddle, f, u, Average.empty(f, u, image)))

    def step(self, problem: MKLProblem, state: _State) -> _State:
        saddle, f, u, t = state.saddle, state.f, state.u, state.steps + 1
        step = self.length * paper_step(problem) / float(np.sqrt(t))
        image = saddle.image(u)
        new, risen = saddle.descend(f, u, image, step), saddle.ascend(u, f.decision, step)
        return _State(saddle, new, risen, state.average.add(step, new, u, image), t)

    def point(self, state: _State) -> Point:
        return state.saddle.point(state.average)

    def finish(self, problem: MKLProblem, best: Point) -> Point | None:
        """SVM on the mixed kernel: coefficients that all kernels share."""
        return share_coefficients(problem, best)
