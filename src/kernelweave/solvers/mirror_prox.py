"""StPMKL's accelerated mirror prox: two projected steps in the multipliers around one proximal step in the blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..problems import MKLProblem, Point
from ._base import Solver
from ._saddle import Average, Blocks, Saddle, paper_step, share_coefficients

__all__ = ["MirrorProx"]

#: how much longer each step tries to be than the last
GROWTH = 1.2
#: steps before the averages begin again for the first time
FIRST = 10


@dataclass
class _State:
    saddle: Saddle
    f: Blocks
    b: Any
    step: float
    average: Average
    steps: int = 0
    until: int = FIRST


class MirrorProx(Solver, registered_as="mirror_prox"):
    """Algorithm 1 of [YMJZY12] on the saddle form, its averages judged; the last act is an SVM on the mixed kernel.

    Parameters
    ----------
    variant : {"adaptive", "paper"}, default="adaptive"
        ``adaptive``: a step as long as what it adds to the proof's bound is not positive, which is checked; ``paper``:
        the constant step ``sqrt(n / (2m))``.
    ratio : float, default=1.0
        Steps are ``ratio`` times longer in the blocks and as many times shorter in the multipliers.
    restart : bool, default=True
        Begin the averages again whenever the number of steps has doubled, so that the first, poor iterates are
        forgotten; never with ``variant="paper"``.
    """

    needs = ("saddle form", "prox")
    default_max_iter = 10_000
    summary = "accelerated mirror prox on the saddle form (StPMKL, Yang et al. 2012)"

    def __init__(self, variant: str = "adaptive", ratio: float = 1.0, restart: bool = True) -> None:
        self.variant = variant
        self.ratio = ratio
        self.restart = restart

    def init(self, problem: MKLProblem, start: Point | None, tol: float) -> _State:
        if self.variant not in ("adaptive", "paper"):
            raise ValueError(f"MirrorProx's variant must be 'adaptive' or 'paper', got {self.variant!r}")
        if not self.ratio > 0:
            raise ValueError(f"MirrorProx needs ratio > 0, got {self.ratio!r}")
        saddle = Saddle(problem)
        f, b, image = saddle.begin(start)
        # every step first tries to be longer than the last: this makes the first one the paper's
        step = paper_step(problem) / (GROWTH if self.variant == "adaptive" else 1.0)
        return self.step(problem, _State(saddle, f, b, step, Average.empty(f, b, image)))

    def step(self, problem: MKLProblem, state: _State) -> _State:
        if self.variant == "paper":
            step = state.step
            new, b, u, image = self._move(state, step)
        else:
            step = GROWTH * state.step
            while True:
                new, b, u, image = self._move(state, step)
                if self._accepted(state, new, b, u, step):
                    break
                step *= 0.5
        average, until = state.average, state.until
        if self.variant == "adaptive" and self.restart and state.steps >= until:
            average, until = Average.empty(new, u, image), 2 * state.steps
        average = average.add(step, new, u, image)
        return _State(state.saddle, new, b, step, average, state.steps + 1, until)

    def _move(self, state: _State, step: float) -> tuple[Blocks, Any, Any, Any]:
        """One round of Algorithm 1, steps 4 to 6: the multipliers at f, the blocks, the multipliers at the new f."""
        saddle, f = state.saddle, state.f
        u = saddle.ascend(state.b, f.decision, step / self.ratio)
        image = saddle.image(u)
        new = saddle.descend(f, u, image, step * self.ratio)
        return new, saddle.ascend(state.b, new.decision, step / self.ratio), u, image

    def _accepted(self, state: _State, new: Blocks, b: Any, u: Any, step: float) -> bool:
        """Whether what a step adds to the bound of Theorem 2 is not positive."""
        moved = new.plus(state.f, -1.0)
        bilinear = step / state.saddle.size * float((moved.decision * (u - b)).sum())
        multipliers = float(((u - b) ** 2).sum() + ((u - state.b) ** 2).sum())
        return bilinear <= 0.5 * self.ratio * multipliers + 0.5 * float(np.sum(moved.squares)) / self.ratio

    def point(self, state: _State) -> Point:
        return state.saddle.point(state.average)

    def finish(self, problem: MKLProblem, best: Point) -> Point | None:
        """SVM on the mixed kernel: coefficients that all kernels share."""
        return share_coefficients(problem, best)
