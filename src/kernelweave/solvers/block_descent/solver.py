"""Block descent on explicit features: exact steps, one kernel at a time."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..._typing import Array, Index
from ...problems import MKLProblem, Point, relative_gap
from .._base import Solver
from .features import BlockFeatures, LossModel
from .iterate import Anderson, Iterate, exchanges, held_at_zero, newton_step


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

    def init(
        self, problem: MKLProblem, start: Point | None, tol: float, at: Array | None = None
    ) -> BlockDescentRun:
        """Return the first state; ``at`` are coordinates ``(R, k)`` to begin with, where they are known."""
        run = BlockDescentRun(problem, tol, self.epochs, self.memory)
        return run.begin(start) if at is None else run.begin_at(at)

    def step(self, problem: MKLProblem, state: BlockDescentRun) -> BlockDescentRun:
        return state.round()

    def point(self, state: BlockDescentRun) -> Point:
        return state.point()


#: blocks that join the active ones, at least, and of all of them; and at most for every one of them
JOINING, SHARE, GROWTH = 10, 0.04, 4
#: length of a block's image, over what holds it at zero, from which it will hardly stay zero
LIKELY = 1.2
#: a gap that fell by less than this with the same active blocks calls for a Newton step
SLOW = 0.7
#: Newton steps in a row, and the gap below which they are those of the norm itself
SEVERAL, CLOSE = 10, 0.01
#: share of the tolerance that epochs to come have to win for another one to follow at once; while blocks wait to join,
#: share of the gap
MIN_PROGRESS, ROUGHLY = 0.05, 0.02
#: share of the tolerance that is aimed at, and that at which coefficients are exchanged
ALLOWED, NEAR = 0.97, 0.9
#: factor of what is aimed at where shared coefficients lost too much, and the least of it
SHARPER, FINEST = 0.1, 1e-13
#: relative gap above which no dual point is polished
ROUGH = 0.02
#: active blocks beyond which a system of their number is not solved
MOST_POLISHED = 600
#: least relative gap that steps in single precision can be trusted to reach
SINGLE = 1e-5
#: decision values are computed again with every so many looks
AFRESH = 5
#: iterations of an exchange for shared coefficients; what is not good enough after the last will be, once the
#: coordinates are better
EXCHANGES = 20


def _to_come(won: float, before: float) -> float:
    """Return the decrease still to come where each wins the same share of what the one before it won."""
    return won * won / (before - won) if before > 2.0 * won else won


@dataclass
class BlockDescentRun:
    """A run; it is its own state."""

    problem: MKLProblem
    tol: float
    epochs: int
    memory: int
    at: Iterate = field(init=False)
    bounds: Bounds = field(init=False)
    here: ImprovedDual = field(init=False)
    shared: Point = field(init=False)
    #: relative gap that the coordinates are to reach: smaller than asked for where shared coefficients lose too much
    aim: float = field(init=False)
    looks: int = 0
    #: whether all blocks that should have joined the last working set found room in it
    complete: bool = False
    settled: bool = False
    finished: bool = False

    def __post_init__(self) -> None:
        self.aim = self.tol
        features = BlockFeatures(self.problem, single=self.tol >= SINGLE)
        self.at = Iterate(self.problem, features, LossModel(self.problem))
        self.anderson = Anderson(self.memory)

    def begin(self, start: Point | None) -> BlockDescentRun:
        """Nothing, or the function of coefficients and weights that were found before."""
        at = self.at
        if start is None:
            self._look()
            return self
        beta = start.beta.reshape(at.f.shape)
        d = self.problem.norm.scaled(start.weights)[at.features.block_of]
        return self.begin_at(d[:, None] * at.features.adjoint_all(beta))

    def begin_at(self, w: Array) -> BlockDescentRun:
        """Begin with coordinates that were found before."""
        at = self.at
        at.w, at.t = w.copy(), at.features.norms(w)
        at.recompute()
        at.rescale()
        at.refresh()
        self._look()
        return self

    # ---- a round ---------------------------------------------------------------------------------------------

    def round(self) -> BlockDescentRun:
        """Epochs on a working set, and a look at all blocks; a Newton step where epochs do too little."""
        at, before, active = self.at, self.bounds.gap, self.at.active
        working = self._working_set()
        if working.size == 0:
            self.finished = True
            return self
        self._go_down(working)
        at.rescale()
        self._look()
        self.settled = np.setxor1d(active, at.active).size <= 0.1 * active.size
        if self.settled and self.bounds.gap > max(SLOW * before, self.aim) and self._newton_steps():
            self._look()
        return self

    def _newton_steps(self) -> bool:
        """Take a Newton step; several in a row where they are what brings the objective down."""
        at, moved = self.at, False
        for _ in range(SEVERAL):
            value = at.objective
            if not newton_step(at, self.bounds.gap < CLOSE):
                break
            moved = True
            if not at.hard or value - at.objective < MIN_PROGRESS * self.aim * abs(value):
                break
        return moved

    def _go_down(self, working: Index) -> None:
        """Epochs on the working set, until they win too little."""
        at, won = self.at, 0.0
        # an epoch costs as much as there are blocks at work, a look as much as there are blocks
        roughly = (
            0.0 if self.complete else ROUGHLY * working.size / self.problem.m * min(self.bounds.gap, 1.0)
        )
        enough = max(MIN_PROGRESS * self.aim, roughly)
        for _ in range(self.epochs):
            value, before = at.objective, won
            near = at.epoch(working)
            if self.bounds.gap < 1.0:  # without a lower bound to speak of, what is far off may come back
                working = near
            self.anderson.push(at)
            won = value - at.objective
            if _to_come(won, before) <= enough * abs(at.objective):
                break

    def _working_set(self) -> Index:
        """Active blocks, and those with the longest images beyond what the norm allows a block of zero."""
        at, lengths = self.at, np.sqrt(self.here.quad)
        zero = np.flatnonzero(at.t == 0.0)
        held = held_at_zero(self.problem.norm, at.t, zero)
        # as long as the gap is wide, blocks that are a little too short may still be wanted
        border = 0.999 - min(self.bounds.gap, 0.1) if self.problem.norm.simplex else 1.0
        wanted = lengths[zero] > border * held
        others = zero[wanted]
        least = max(JOINING, int(SHARE * self.problem.m))
        most = max(least, GROWTH * at.active.size) if self.problem.norm.simplex else others.size
        first = np.argsort(-lengths[others], kind="stable")[:most]
        joining = others[first]
        at.features.bring(joining[lengths[joining] > LIKELY * held[wanted][first]])
        self.complete = joining.size == others.size
        return np.concatenate([at.active, joining])

    # ---- looking ---------------------------------------------------------------------------------------------

    def _look(self) -> None:
        """Both bounds here, and the point with shared coefficients that comes with them."""
        at, problem = self.at, self.problem
        self.looks += 1
        if self.looks % AFRESH == 0:
            at.recompute()
        at.refresh()
        here = self._dual_point()
        kept = here if self.looks == 1 or here.value >= self.bounds.lower.value else self.bounds.lower
        self.here, self.bounds = here, Bounds(at.objective, kept, problem.tiny)
        self.shared = self._shared(here)

    def _dual_point(self) -> ImprovedDual:
        """Return a dual point from where we are: a polished one where the bounds are near enough for that."""
        at = self.at
        if not (self.problem.norm.simplex and 1 < at.active.size <= MOST_POLISHED):
            return dual_point(at, at.beta)
        # the polish asks for the active blocks alone; where it is likely to follow, the others can wait for it
        waits = self.complete and at.active.size <= 0.5 * self.problem.m
        plain = promise(at) if waits else dual_point(at, at.beta)
        gap = self._gap(plain.value)
        if ROUGH > gap > 0.1 * self.aim:
            V = directions(at)
            if not at.features.single:
                at.move(V @ at.t[at.active])
            here = polished(at, plain, V, self.tol)
            if here.value >= plain.value or (waits and self._gap(here.value) < 1.5 * gap):
                return here
        return dual_point(at, at.beta) if waits else plain

    def _gap(self, lower: float) -> float:
        return relative_gap(self.at.objective, lower, self.problem.tiny)

    def _shared(self, here: ImprovedDual) -> Point:
        at, problem = self.at, self.problem
        weights = problem.norm.weights_of_blocks(at.t)
        if not np.any(at.t):
            zero = np.zeros_like(at.f)
            return self._point(zero, np.zeros_like(at.w), weights)
        if self.bounds.gap > NEAR * self.tol:
            return self._point(here.beta, here.image, weights)
        return self._exchanged(here, weights)

    def _exchanged(self, here: ImprovedDual, weights: Array) -> Point:
        """Exchange coefficients until their gap is small enough; those that promise too little are passed over."""
        problem, best, least = self.problem, None, np.inf
        room = ALLOWED * self.tol * abs(self.bounds.upper)
        for exchange in exchanges(self.at, here.beta, here.image, weights, EXCHANGES):
            if exchange.excess > room and not exchange.last:
                continue
            point = self._point(exchange.beta, exchange.image, weights)
            value = problem.primal(point)[0]
            if best is None or value < least:
                best, least = point, value
            if least <= self.bounds.lower.value + room:
                break
        else:
            self.at.hard = True
            self._aim_at(SHARPER * self.aim)
        return self._point(here.beta, here.image, weights) if best is None else best

    def _aim_at(self, gap: float) -> None:
        """Ask the coordinates for a smaller gap, in double precision where single would not do."""
        self.aim = max(gap, FINEST)
        if self.at.features.single and self.aim < SINGLE:
            self.at.features.single = False
            self.at.models.clear()
            self.at.recompute()

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


# ------------------------------------------------------------------------------------------------------------
# Both bounds of the optimum from a function in feature space, and a dual point that was improved on purpose.


#: gaps, over that wanted, between which one more correction is worth its price
GOOD, LITTLE = 0.6, 2.0


@dataclass
class ImprovedDual:
    """Coefficients ``(n, k)`` in the dual set, ``Z'beta``, ``beta'K_j beta`` and the lower bound they prove."""

    beta: Array
    image: Array
    quad: Array
    value: float


@dataclass
class Bounds:
    """Objective at the coordinates, and the best dual point so far."""

    upper: float
    lower: ImprovedDual
    tiny: float

    @property
    def gap(self) -> float:
        """Relative gap of the function in feature space."""
        return relative_gap(self.upper, self.lower.value, self.tiny)


def dual_point(at: Iterate, beta: Array) -> ImprovedDual:
    """Move coefficients into the dual set, and see what they prove: one read of all features."""
    problem = at.problem
    inside = problem.repair(beta.reshape(problem.y.shape))
    beta = inside.reshape(beta.shape)
    image = at.features.adjoint_all(beta)
    quad = at.features.norms(image) ** 2
    return ImprovedDual(beta, image, quad, problem.gain(inside) - problem.norm.conjugate(quad))


def promise(at: Iterate) -> ImprovedDual:
    """Return what the coefficients would prove if no block but the active ones counted, as quick as a step.

    No bound: but one that holds is as good only where the other blocks' images are no longer.
    """
    problem = at.problem
    inside = problem.repair(at.beta.reshape(problem.y.shape))
    beta = inside.reshape(at.beta.shape)
    image = at.features.adjoint_of(beta, at.active, quick=True)
    quad = at.features.norms(image) ** 2
    return ImprovedDual(beta, image, quad, problem.gain(inside) - problem.norm.conjugate(quad))


def directions(at: Iterate) -> Array:
    """Decision values ``(n, k, active)`` of the active blocks, each of length one: they sum to those of the iterate."""
    active, directions = at.active, at.directions
    V = np.empty((*at.f.shape, active.size))
    for column, j in enumerate(active):
        V[:, :, column] = at.features.push(int(j), directions[at.features.place(j)])
    return V


def polished(at: Iterate, promised: ImprovedDual, V: Array, tol: float) -> ImprovedDual:
    """Make the images of all active blocks equally long, to first order, at the least cost: the gap's main part.

    The lower bound pays for the longest image; at the optimum all active ones are as long.  Moving the decision values
    along ``V c``, the active blocks' own directions, changes the coefficients by ``-HVc`` and the lengths by
    ``-V'HVc``.  Where the gap is then near ``tol``, what is left is corrected once more.
    """
    active = at.active
    bend = at.loss.hessian(at.f)
    if V.shape[1] == 1:
        HV = bend(V[:, 0])[:, None]
    else:
        HV = np.stack([bend(V[:, :, column]) for column in range(active.size)], axis=2)
    flat = HV.reshape(-1, active.size)
    system = V.reshape(flat.shape).T @ flat
    system[np.diag_indices_from(system)] += 1e-10 * float(np.trace(system)) + np.finfo(float).tiny
    shares = at.t[active] / float(np.sum(at.t[active]))
    beta, best = at.beta, promised
    for attempt in range(2):
        lengths = np.sqrt(best.quad[active])
        beta = beta - HV @ np.linalg.solve(system, lengths - float(shares @ lengths))
        now = dual_point(at, beta)
        if attempt and now.value <= best.value:
            break
        best = now
        gap = relative_gap(at.objective, best.value, at.problem.tiny)
        if not GOOD * tol < gap < LITTLE * tol:
            break
    return best
