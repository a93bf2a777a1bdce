"""One fit by block descent: which blocks, for how long, and what is handed to the judge."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ...problems import MKLProblem, Point, relative_gap
from ._acceleration import Anderson
from ._bounds import Bounds, DualPoint, directions, dual_point, polished
from ._features import BlockFeatures
from ._iterate import Iterate
from ._loss import LossModel
from ._newton import exchanges, newton_step

Array = NDArray[np.float64]
Index = NDArray[np.intp]

__all__ = ["Run"]

#: blocks that join the active ones, at least, and at most for every one of them
JOINING, GROWTH = 10, 4
#: a gap that fell by less than this with the same active blocks calls for a Newton step
SLOW = 0.7
#: share of the tolerance that an epoch has to win for another one to follow at once
WON = 0.3
#: relative gap above which no dual point is polished
ROUGH = 0.3
#: active blocks beyond which a system of their number is not solved
MOST_POLISHED = 600
#: decision values are computed again with every so many looks
AFRESH = 5
#: iterations of an exchange for shared coefficients after which their function is looked at; what is not good enough
#: after the last will be, once the coordinates are better
EXCHANGES = (1, 2, 3, 5, 8, 12, 16, 20)


@dataclass
class Run:
    """A run; it is its own state."""

    problem: MKLProblem
    tol: float
    epochs: int
    memory: int
    at: Iterate = field(init=False)
    bounds: Bounds = field(init=False)
    here: DualPoint = field(init=False)
    shared: Point = field(init=False)
    looks: int = 0
    settled: bool = False
    finished: bool = False

    def __post_init__(self) -> None:
        features = BlockFeatures(self.problem)
        self.at = Iterate(self.problem, features, LossModel(self.problem))
        self.anderson = Anderson(self.memory)

    def begin(self, start: Point | None) -> Run:
        """Nothing, or the function of coefficients and weights that were found before."""
        at = self.at
        if start is not None:
            beta = start.beta.reshape(at.f.shape)
            d = self.problem.norm.scaled(start.weights)[at.features.block_of]
            at.w = d[:, None] * at.features.adjoint_all(beta)
            at.t = at.features.norms(at.w)
            at.recompute()
            at.rescale()
            at.refresh()
        self._look()
        return self

    # ---- a round ---------------------------------------------------------------------------------------------

    def round(self) -> Run:
        """Epochs on a working set, and a look at all blocks; a Newton step where epochs do too little."""
        at, before, active = self.at, self.bounds.gap, self.at.active
        working = self._working_set()
        if working.size == 0:
            self.finished = True
            return self
        self._go_down(working)
        at.rescale()
        self._look()
        same = np.array_equal(active, at.active)
        self.settled = np.setxor1d(active, at.active).size <= 0.1 * active.size
        if same and self.bounds.gap > max(SLOW * before, self.tol) and newton_step(at):
            self._look()
        return self

    def _go_down(self, working: Index) -> None:
        """Epochs on the working set, until they win too little."""
        at = self.at
        # a look at all blocks is dear where few of them are at work: more epochs, once it is known which
        for _ in range(2 * self.epochs if self.settled else self.epochs):
            value = at.objective
            at.epoch(working)
            self.anderson.push(at)
            # what is left is mostly less than the last epoch won, where the blocks are not much alike: time for a look
            if value - at.objective <= WON * self.tol * abs(at.objective):
                break

    def _working_set(self) -> Index:
        """Active blocks, and those with the longest images beyond what the norm allows a block of zero."""
        at, lengths = self.at, np.sqrt(self.here.quad)
        if self.problem.norm.simplex:
            others = np.flatnonzero((at.t == 0.0) & (lengths > 0.999 * float(np.sum(at.t))))
        else:
            others = np.flatnonzero((at.t == 0.0) & (lengths > at.extra))
        most = max(JOINING, GROWTH * at.active.size) if self.problem.norm.simplex else others.size
        joining = others[np.argsort(-lengths[others], kind="stable")[:most]]
        return np.concatenate([at.active, joining])

    # ---- looking ---------------------------------------------------------------------------------------------

    def _look(self) -> None:
        """Both bounds here, and the point with shared coefficients that comes with them."""
        at, problem = self.at, self.problem
        self.looks += 1
        if self.looks % AFRESH == 0:
            at.recompute()
        at.refresh()
        here = dual_point(at, at.beta)
        if self._worth_polishing(here):
            V = directions(at)
            at.move(V @ at.t[at.active])
            better = polished(at, here, V)
            here = better if better.value > here.value else here
        kept = here if self.looks == 1 or here.value >= self.bounds.lower.value else self.bounds.lower
        self.here, self.bounds = here, Bounds(at.objective, kept, problem.tiny)
        self.shared = self._shared(here)

    def _worth_polishing(self, here: DualPoint) -> bool:
        """Whether the norm's dual has corners, and the bounds are near enough for first-order corrections."""
        active = self.at.active.size
        gap = relative_gap(self.at.objective, here.value, self.problem.tiny)
        return self.problem.norm.simplex and 1 < active <= MOST_POLISHED and ROUGH > gap > 0.1 * self.tol

    def _shared(self, here: DualPoint) -> Point:
        at, problem = self.at, self.problem
        weights = problem.norm.weights_of_blocks(at.t)
        if not np.any(at.t):
            zero = np.zeros_like(at.f)
            return self._point(zero, np.zeros_like(at.w), weights)
        point = self._point(here.beta, here.image, weights)
        if self.bounds.gap > 0.9 * self.tol:
            return point
        best, value = point, problem.primal(point)[0]
        goal = self.bounds.lower.value + 0.9 * self.tol * abs(self.bounds.upper)
        for done, exchange in enumerate(
            exchanges(at, here.beta, here.image, weights, EXCHANGES[-1]), start=1
        ):
            if value <= goal:
                break
            if done not in EXCHANGES:
                continue
            point = self._point(exchange.beta, exchange.image, weights)
            now = problem.primal(point)[0]
            if now < value:
                best, value = point, now
        return best

    def _point(self, beta: Array, image: Array, weights: Array) -> Point:
        at, shape = self.at, self.problem.y.shape
        w = weights[at.features.block_of][:, None] * image
        f = at.features.forward_of(w, at.active)
        lower = self.bounds.lower
        return Point(
            beta.reshape(shape),
            weights,
            at.features.norms(image) ** 2,
            f.reshape(shape),
            lower.beta.reshape(shape),
            lower.quad,
        )

    def point(self) -> Point:
        """Return the point with shared coefficients."""
        return self.shared
