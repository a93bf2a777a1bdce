"""Block descent on explicit features: exact steps, one kernel at a time, without a matrix of n x n."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from .._numerics.stopping import check_time
from .._typing import Array, Index
from ..norms import ElasticBlocks, ElasticNet, Grouped, Norm
from ..problems import MKLProblem, Point, relative_gap
from ._base import Solver, block_sums
from .block_features import BlockFeatures, BlockModel, LossModel

# A round: which blocks are worked on, and when to go on with something else.

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

# Bounds, and the exchange for coefficients that all kernels share.

#: share of the tolerance that is aimed at, and that at which coefficients are exchanged
ALLOWED, NEAR = 0.97, 0.9
#: factor of what is aimed at where shared coefficients lost too much, and the least of it
SHARPER, FINEST = 0.1, 1e-13
#: relative gap above which no dual point is polished
ROUGH = 0.02
#: gaps, over that wanted, between which one more correction of a polished point is worth its price
GOOD, LITTLE = 0.6, 2.0
#: active blocks beyond which a system of their number is not solved
MOST_POLISHED = 600
#: least relative gap that steps in single precision can be trusted to reach
SINGLE = 1e-5
#: decision values are computed again with every so many evaluations
AFRESH = 5
#: iterations of an exchange for shared coefficients; what is not good enough after the last will be, once the
#: coordinates are better
EXCHANGES = 20

# A step on one block, and Newton's method on those that are not zero.

#: a step that raised the objective is tried again in a stiffer model, so many times
RETRIES = 8
STIFFER = 3.0
#: pull on a block of zero, over what holds it there, below which it is left alone until all blocks are evaluated again
FAR = 0.9
#: relative rise of the objective that is put down to rounding
ROUNDING = 1e-14
#: relative change of the curvatures from which a block's model is made again: of a quadratic loss for next to any
STALE, EXACTLY = 0.4, 1e-9
#: features up to which Newton's system is factorised where conjugate gradients did not solve it, and what is added to
#: its diagonal, over the mean: kernels that are there twice make it singular
LARGEST, TINY = 2000, 1e-12
#: steps along a direction, each half as long
LINE = 10


class BlockDescent(Solver, registered_as="block_descent"):
    """Minimise ``1/2 Omega(|w_1|, |w_2|, ...)^2 + sum c l(y, Z w + b)`` over one kernel's features at a time, exactly.

    Omega is l1, lp, an elastic norm or net, or a norm of groups that does not choose groups by an l1 norm.

    Kernels without explicit features are factorised once (m eigendecompositions).

    Parameters
    ----------
    epochs : int, default=8
        Most steps on every block of the working set between two evaluations of all; fewer where they win too little.
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

    def init(self, problem: MKLProblem, start: Point | None, tol: float, at: Any = None) -> BlockDescentRun:
        """Return the first state; ``at`` are coordinates ``(R, k)`` to begin with, where they are known."""
        return BlockDescentRun(problem, tol, self.epochs, self.memory, start, at)

    def step(self, problem: MKLProblem, state: BlockDescentRun) -> BlockDescentRun:
        return state.round()

    def point(self, state: BlockDescentRun) -> Point:
        return state.shared


@dataclass
class ImprovedDual:
    """Coefficients ``(n, k)`` in the dual set, ``Z'beta``, ``beta'K_j beta`` and the lower bound they prove."""

    beta: Array
    image: Array
    quad: Array
    value: float


class BlockDescentRun:
    """A run; it is its own state."""

    #: when all blocks were evaluated last: the objective, the dual point found there, and the point with coefficients
    #: shared by all kernels that came with it
    upper: float
    here: ImprovedDual
    shared: Point
    #: the best dual point so far, and the relative gap to it
    lower: ImprovedDual
    gap: float

    def __init__(
        self, problem: MKLProblem, tol: float, epochs: int, memory: int, start: Point | None, w: Array | None
    ) -> None:
        self.problem, self.tol, self.epochs, self.memory = problem, tol, epochs, memory
        self.at = at = Iterate(problem, BlockFeatures(problem, single=tol >= SINGLE), LossModel(problem))
        #: the last places, which Anderson acceleration extrapolates
        self.places: list[Place] = []
        #: relative gap that the coordinates are to reach: smaller than ``tol`` where shared coefficients lose too much
        self.aim = tol
        self.evaluations = 0
        #: whether all blocks that should have joined the last working set fit into it
        self.complete = False
        self.finished = False
        if w is None and start is not None:  # the function of coefficients and weights that were found before
            d = problem.norm.scaled(start.weights)[at.features.block_of]
            w = d[:, None] * at.features.adjoint_all(start.beta.reshape(at.f.shape))
        if w is not None:
            at.w, at.t = w.copy(), at.features.norms(w)
            at.recompute()
            at.rescale()
            at.refresh()
        self._evaluate()

    def round(self) -> BlockDescentRun:
        """Epochs on a working set, and both bounds; a Newton step where epochs do too little."""
        at, norm, before, active = self.at, self.problem.norm, self.gap, self.at.active
        # active blocks, and those with the longest images beyond what the norm allows a block of zero
        lengths, zero = np.sqrt(self.here.quad), np.flatnonzero(at.t == 0.0)
        if not norm.group_names and zero.size:  # equal for all blocks
            held = np.full(zero.size, Charge(norm, at.t, int(zero[0])).held)
        else:
            held = np.array([Charge(norm, at.t, int(j)).held for j in zero])
        # as long as the gap is wide, blocks that are a little too short may still be wanted
        border = 0.999 - min(self.gap, 0.1) if norm.simplex else 1.0
        wanted = lengths[zero] > border * held
        others = zero[wanted]
        least = max(JOINING, int(SHARE * self.problem.m))
        most = max(least, GROWTH * active.size) if norm.simplex else others.size
        first = np.argsort(-lengths[others], kind="stable")[:most]
        joining = others[first]
        at.features.bring(joining[lengths[joining] > LIKELY * held[wanted][first]])
        self.complete = joining.size == others.size
        working = np.concatenate([active, joining])
        if working.size == 0:
            self.finished = True
            return self
        # an epoch costs as much as there are blocks at work, an evaluation as much as there are blocks
        roughly = 0.0 if self.complete else ROUGHLY * working.size / self.problem.m * min(self.gap, 1.0)
        enough, won = max(MIN_PROGRESS * self.aim, roughly), 0.0
        for _ in range(self.epochs):
            value, won_before, near = at.objective, won, []
            for j in working:  # one exact step on each of the blocks
                check_time()
                near.append(at.step(int(j)))
            if self.gap < 1.0:  # without a lower bound to speak of, what is far off may come back
                working = working[np.array(near, dtype=bool)]
            self._extrapolate()
            won = value - at.objective
            # still to come, where each epoch wins the same share of what the one before it won
            to_come = won * won / (won_before - won) if won_before > 2.0 * won else won
            if to_come <= enough * abs(at.objective):
                break
        at.rescale()
        self._evaluate()
        settled = np.setxor1d(active, at.active).size <= 0.1 * active.size
        if settled and self.gap > max(SLOW * before, self.aim):
            moved = False
            for _ in range(SEVERAL):  # several in a row where they are what brings the objective down
                value = at.objective
                if not newton_step(at, self.gap < CLOSE):
                    break
                moved = True
                if not at.hard or value - at.objective < MIN_PROGRESS * self.aim * abs(value):
                    break
            if moved:
                self._evaluate()
        return self

    def _extrapolate(self) -> None:
        """Anderson acceleration: go to the extrapolation of the last places where that is lower."""
        at = self.at
        self.places.append(Place(at.w.copy(), at.b.copy(), at.f.copy()))
        if len(self.places) <= self.memory:
            return
        self.places = places = self.places[-self.memory - 1 :]
        moves = np.array([(b.w - a.w).ravel() for a, b in pairwise(places)])
        gram = moves @ moves.T
        trace = float(np.trace(gram))
        if trace == 0.0:
            return
        share = np.linalg.solve(gram + 1e-10 * trace * np.eye(len(moves)), np.ones(len(moves)))
        total = float(np.sum(share))
        if total == 0.0:
            return
        share = share / total
        w = sum(c * place.w for c, place in zip(share, places[1:], strict=True))
        f = sum(c * (place.f - place.b) for c, place in zip(share, places[1:], strict=True))
        if at.try_place(Place(np.asarray(w), np.zeros_like(at.b), np.asarray(f))):
            self.places = [Place(at.w.copy(), at.b.copy(), at.f.copy())]

    def _evaluate(self) -> None:
        """Both bounds here, and the point with shared coefficients that comes with them."""
        at, norm = self.at, self.problem.norm
        self.evaluations += 1
        if self.evaluations % AFRESH == 0:
            at.recompute()
        at.refresh()
        self.here = here = self._dual_point()
        if self.evaluations == 1 or here.value >= self.lower.value:
            self.lower = here
        self.upper = at.objective
        self.gap = relative_gap(self.upper, self.lower.value, self.problem.tiny)
        weights, best, least = norm.weights_of_blocks(at.t), None, np.inf
        allowed = ALLOWED * self.tol * abs(self.upper)
        if not np.any(at.t):
            best = self._point(np.zeros_like(at.f), np.zeros_like(at.w), weights)
        elif not self.gap > NEAR * self.tol:
            # coefficients are exchanged until their gap is small enough; those that promise too little are passed over
            for beta, image, excess, last in exchanges(at, here.beta, here.image, weights, EXCHANGES):
                if excess > allowed and not last:
                    continue
                point = self._point(beta, image, weights)
                value = self.problem.primal(point)[0]
                if best is None or value < least:
                    best, least = point, value
                if least <= self.lower.value + allowed:
                    break
            else:
                # the coordinates are asked for a smaller gap, in double precision where single would not do
                at.hard = True
                self.aim = max(SHARPER * self.aim, FINEST)
                if at.features.single and self.aim < SINGLE:
                    at.features.single = False
                    at.models.clear()
                    at.recompute()
        self.shared = self._point(here.beta, here.image, weights) if best is None else best

    def _dual_point(self) -> ImprovedDual:
        """Return a dual point from where we are: a polished one where the bounds are near enough for that."""
        at, tiny = self.at, self.problem.tiny
        active = at.active
        if not (self.problem.norm.simplex and 1 < active.size <= MOST_POLISHED):
            return dual_point(at, at.beta)
        # the polish asks for the active blocks alone; where it is likely to follow, the others can wait for it
        waits = self.complete and active.size <= 0.5 * self.problem.m
        plain = dual_point(at, at.beta, active_only=waits)
        gap = relative_gap(at.objective, plain.value, tiny)
        if ROUGH > gap > 0.1 * self.aim:
            # decision values (n, k, active) of the active blocks, each of length one: they sum to those of the iterate
            V, directions = np.empty((*at.f.shape, active.size)), at.directions
            for column, j in enumerate(active):
                V[:, :, column] = at.features.push(int(j), directions[at.features.place(j)])
            if not at.features.single:
                at.move(V @ at.t[active])
            here = polished(at, plain, V, self.tol)
            if here.value >= plain.value:
                return here
            if waits and relative_gap(at.objective, here.value, tiny) < 1.5 * gap:
                return here
        return dual_point(at, at.beta) if waits else plain

    def _point(self, beta: Array, image: Array, weights: Array) -> Point:
        at, shape, lower = self.at, self.problem.y.shape, self.lower
        w = weights[at.features.block_of][:, None] * image
        f = at.features.forward_of(w, at.active).reshape(shape)
        quad = at.features.norms(image) ** 2
        return Point(beta.reshape(shape), weights, quad, f, lower.beta.reshape(shape), lower.quad)


def dual_point(at: Iterate, beta: Array, active_only: bool = False) -> ImprovedDual:
    """Move coefficients into the dual set, and compute what they prove: one read of all features.

    With ``active_only`` it is what they would prove if no other block counted, as quick as a step, and no bound.
    """
    problem, features = at.problem, at.features
    inside = problem.repair(beta.reshape(problem.y.shape))
    beta = inside.reshape(beta.shape)
    image = features.adjoint_of(beta, at.active, quick=True) if active_only else features.adjoint_all(beta)
    quad = features.norms(image) ** 2
    return ImprovedDual(beta, image, quad, problem.gain(inside) - problem.norm.conjugate(quad))


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


class Charge:
    """The norm as a function of the length x of block j alone, at the lengths t of the others.

    ``1/2 (others + (within + x^exponent)^(r / exponent))^(2/r)``, or that of an elastic net on the weights, r its share
    of the l1 part and ``blocks`` the lengths of the other blocks; ``extra x`` beside it.
    """

    def __init__(self, norm: Norm, t: Array, j: int) -> None:
        from .._numerics.block_steps import NET, POWERS

        self.extra = float(norm.l1_term or 0.0)
        rest = t.copy()
        rest[j] = 0.0
        kind, within, exponent, blocks = POWERS, 0.0, 1.0, np.zeros(0)
        if isinstance(norm, ElasticNet):
            kind, others, r, blocks = NET, 0.0, norm.mix, rest[rest > 0.0]
        elif isinstance(norm, ElasticBlocks):
            # mix (rest + x) + (1 - mix) x = mix rest + x: the pull of the l1 norm with less of the others
            others, r = norm.mix * float(np.sum(t) - t[j]), 1.0
        elif isinstance(norm, Grouped):
            r, exponent = float(norm.outer_norm.r or 1.0), float(norm.inner_norm.r or 1.0)
            labels = norm.for_kernels(t.size).labels
            sums = np.bincount(labels, rest**exponent)
            sums[labels[j]] = 0.0
            others = float(np.sum(sums ** (r / exponent)))
            within = float(np.sum(rest[labels == labels[j]] ** exponent))
        else:
            assert norm.r is not None
            r = float(norm.r)
            powers = t**r
            powers[j] = 0.0
            others = float(np.sum(powers))
        self.numbers: tuple[Any, ...] = (kind, others, r, within, exponent, blocks)

    @property
    def held(self) -> float:
        """Pull that a block of zero withstands."""
        from .._numerics.block_steps import block_held

        return self.extra + float(block_held(*self.numbers))

    def pull(self, t: float) -> float:
        """Return the derivative of the charge at the length t."""
        from .._numerics.block_steps import block_pull

        return self.extra + float(block_pull(t, *self.numbers)[0])


def length_hessian(norm: Norm, t: Array) -> Array:
    """Return the second derivatives of the norm's ``half_square`` in positive block lengths."""
    if isinstance(norm, ElasticBlocks):
        return norm.mix + norm.rest * np.eye(t.size)
    if isinstance(norm, ElasticNet):
        # the gradient is t / d; log d follows log(price t^2) at these rates, and the price keeps the charge at one
        d = norm.weights_of_blocks(t)
        pay = norm.mix + 2.0 * norm.rest * d
        rate = 1.0 / (2.0 + 2.0 * norm.rest * d / pay)
        moved = rate * t / d
        square = float(np.sum(rate * t**2 / d))
        return np.diag((1.0 - 2.0 * rate) / d) + 2.0 / square * np.outer(moved, moved)
    if not isinstance(norm, Grouped):
        assert norm.r is not None
        r = float(norm.r)
        size = float(np.sum(t**r)) ** (1.0 / r)
        inner = (t / size) ** (r - 1.0)
        return (2.0 - r) * np.outer(inner, inner) + np.diag((r - 1.0) * (t / size) ** (r - 2.0))
    # a norm of norms: the groups' lengths bend outside, and each length within its group
    e, outer, lengths = float(norm.inner_norm.r or 1.0), norm.outer_norm, norm.group_lengths(t)
    slopes, bend, used = np.zeros((lengths.size, t.size)), np.zeros((t.size, t.size)), lengths > 0
    pulls = np.divide(lengths, outer.weights_of_blocks(lengths), out=np.zeros_like(lengths), where=used)
    for g, at in enumerate(norm.members(t.size)):
        if used[g]:
            slopes[g, at] = (t[at] / lengths[g]) ** (e - 1.0)
            within = np.diag((t[at] / lengths[g]) ** (e - 2.0)) - np.outer(slopes[g, at], slopes[g, at])
            bend[np.ix_(at, at)] = pulls[g] * (e - 1.0) / lengths[g] * within
    return bend + slopes[used].T @ length_hessian(outer, lengths[used]) @ slopes[used]


@dataclass
class Place:
    """Coordinates w, intercepts b and decision values f: all that is linear in the iterate."""

    w: Array
    b: Array
    f: Array


class Iterate:
    """The moving point of a run, and the quadratic models of its blocks.

    ``w`` are coordinates ``(R, k)`` in feature space, the kernels' factors folded in, ``t`` the block norms, ``b``
    intercepts, ``f`` decision values ``(n, k)``, and ``beta = -c l'(f)``.
    """

    def __init__(self, problem: MKLProblem, features: BlockFeatures, loss: LossModel) -> None:
        self.problem, self.features, self.loss = problem, features, loss
        self.extra = float(problem.norm.l1_term or 0.0)
        k = loss.c.shape[1]
        self.w = np.zeros((features.width, k))
        self.t = np.zeros(problem.m)
        self.models: dict[int, BlockModel] = {}
        self._means: dict[int, tuple[int, Array]] = {}
        self.h = np.zeros(problem.n)
        self.age = 0
        self.hard = False  # whether conjugate gradients failed on Newton's system
        self.singular = False  # whether its steps led nowhere, as where kernels are there twice
        #: share of the largest curvature that every sample is then given, at least: a loss of lines has none where it
        #: will soon be needed
        self.caution = 0.03
        self.move(np.zeros((problem.n, k)))
        self.refresh()

    @property
    def active(self) -> Index:
        """Blocks that are not zero."""
        return np.flatnonzero(self.t)

    @property
    def directions(self) -> Array:
        """Blocks divided by their lengths; zeros stay."""
        return self.w / np.where(self.t > 0, self.t, 1.0)[self.features.block_of][:, None]

    @property
    def objective(self) -> float:
        """Regulariser and loss."""
        return self.problem.norm.half_square(self.t) + self.charged

    def move(self, values: Array) -> None:
        """Take decision values without an intercept, and the intercept that suits them."""
        self.b = self.loss.best_intercept(values)
        self.f = values + self.b
        self.charged, self.beta = self.loss.evaluate(self.f)

    def recompute(self) -> None:
        """Compute the decision values again from the coordinates: what rounding added goes."""
        self.move(self.features.forward_of(self.w, self.active))

    def refresh(self) -> None:
        """Take the curvature of the loss here; models made elsewhere are made again when they are needed."""
        h = self.loss.common_curvature(self.f)
        if float(np.sum(np.abs(h - self.h))) > STALE * float(np.sum(self.h)):
            self.h = h
            self.age += 1

    def model(self, j: int) -> BlockModel:
        """Return the quadratic model of block j, made for curvatures near those here."""
        found = self.models.get(j)
        if found is None or found.age < self.age:
            likeness = EXACTLY if self.loss.constant else STALE
            found = self.features.model(j, self.h, self._means_of(j), likeness)
            found.age = self.age
            self.models[j] = found
        return found

    def _means_of(self, j: int) -> Array:
        """Return how the intercept follows block j; its model comes with them, but they are a fraction of its price."""
        age, means = self._means.get(j, (-1, None))
        if means is None or age < self.age:
            means = np.zeros(int(self.features.ranks[j]))
            if self.problem.fit_intercept:  # the features' means, weighted by the curvatures
                total = float(np.sum(self.h))
                means = self.features.pull(j, self.h[:, None]).ravel() / (total if total > 0.0 else 1.0)
            self._means[j] = self.age, means
        return means

    def step(self, j: int) -> bool:
        """Take an exact step on one block; return whether it is, or may soon be, other than zero."""
        features, place = self.features, self.features.place(j)
        w = self.w[place]
        pressed = np.sum(self.beta, axis=0)
        pull = features.pull(j, self.beta) - np.outer(self._means_of(j), pressed)
        charge = Charge(self.problem.norm, self.t, j)
        if self.t[j] == 0.0:
            held, length = charge.held, float(np.linalg.norm(pull))
            if length <= held:  # zero is the exact step, whatever the curvature
                return length > FAR * held
        model = self.model(j)
        free = self.problem.fit_intercept and model.total > 0.0
        before = self.objective
        for _ in range(RETRIES):
            v = _best_block(model, w, pull, charge)
            if v is None and self.t[j] == 0.0:
                return True
            along = (0.0 if v is None else v) - w
            shift = np.zeros_like(pressed)
            if free:
                shift = pressed / (model.stiffness * model.total) - model.means @ along
            f = self.f + features.push(j, along) + shift
            charged, beta = self.loss.evaluate(f)
            t = self.t.copy()
            t[j] = 0.0 if v is None else float(np.sqrt(np.sum(v**2)))
            if self.problem.norm.half_square(t) + charged <= before + ROUNDING * abs(before):
                self.w[place] = w + along
                self.t, self.f, self.b, self.charged, self.beta = t, f, self.b + shift, charged, beta
                model.stiffness = max(1.0, model.stiffness / STIFFER)
                return True
            model.stiffness = min(STIFFER * model.stiffness, 1e12)
        return True

    def rescale(self) -> None:
        """Newton's method on a common factor of all blocks and the intercept together."""
        if not np.any(self.t):
            return
        for _ in range(3):
            values = self.f - self.b
            linear = self.extra * float(np.sum(self.t))
            square = 2.0 * (self.problem.norm.half_square(self.t) - linear)
            slope = square + linear - float(np.sum(self.beta * values))
            bent = self.loss.hessian(self.f)(values)
            step = -slope / (square + float(np.sum(values * bent)))
            there = Place((1.0 + step) * self.w, self.b, (1.0 + step) * values + self.b)
            if abs(step) < 1e-6 or not self.try_place(there):
                return

    def try_place(self, other: Place) -> bool:
        """Go to another place with its best intercept, where that is lower."""
        t = self.features.norms(other.w)
        values = other.f - other.b
        b = self.loss.best_intercept(values)
        charged, beta = self.loss.evaluate(values + b)
        if not self.problem.norm.half_square(t) + charged < self.objective:
            return False
        self.w, self.b, self.f, self.t = other.w, b, values + b, t
        self.charged, self.beta = charged, beta
        return True


def _best_block(model: BlockModel, w: Array, pull: Array, charge: Charge) -> Array | None:
    """Block that minimises regulariser and model; None for zero."""
    from .._numerics.block_steps import charged_length

    bend = model.stiffness * model.bend
    inner = model.Q.T @ w
    q = bend[:, None] * inner + model.Q.T @ pull
    squares = np.sum(q**2, axis=1)
    off = None
    if model.rest is not None:
        rest = model.stiffness * model.rest
        off = rest * w + pull
        off -= model.Q @ (model.Q.T @ off)
        squares, bend = np.append(squares, np.sum(off**2)), np.append(bend, rest)
    t = float(charged_length(squares, bend, charge.extra, *charge.numbers))
    if t == 0.0:
        return None
    share = t / (bend * t + charge.pull(t))
    if off is None:
        return np.asarray(model.Q @ (share[:, None] * q))
    return np.asarray(model.Q @ (share[:-1, None] * q) + share[-1] * off)


@dataclass
class _System:
    """``(Z'HZ + regulariser) v = -g`` on the active blocks, with a preconditioner of one block at a time.

    The regulariser turns a block by its ridge, and changes lengths by the matrix ``bend``, both of the norm.
    """

    at: Iterate
    active: Index
    hessian: Callable[[Array], Array]
    ridge: Array  # of every block: factor of the identity
    u: Array  # directions of the blocks
    # (active, active): second derivatives in the lengths, less the ridge; None for zero
    bend: Array | None = None
    least: float = 0.0  # share of the largest curvature of the loss that every sample has at least
    quick: bool = False  # whether products may be as rough as those of steps
    whole: tuple[Index, Any] | None = None  # columns of the active blocks, and the factorised system

    def product(self, v: Array) -> tuple[Array, Array, Array]:
        """Return the system's product with v, ``Zv`` and ``HZv``."""
        features = self.at.features
        moved = features.forward_of(v, self.active, self.quick)
        bent = self.hessian(moved)
        ridged = self.ridge[features.block_of][:, None] * v
        if self.bend is not None:
            # products of the blocks with their directions
            sums = block_sums(np.sum(self.u * v, axis=1), features.starts)
            along = np.zeros_like(self.ridge)
            along[self.active] = self.bend @ sums[self.active]
            ridged += along[features.block_of][:, None] * self.u
        return features.adjoint_of(bent, self.active, self.quick) + ridged, moved, bent

    def __post_init__(self) -> None:
        """Factorise the whole system as a preconditioner, where blocks alone say too little of it and it is small."""
        at = self.at
        columns = np.flatnonzero(np.isin(at.features.block_of, self.active))
        if not at.hard or columns.size > LARGEST or at.f.shape[1] > 1:
            return
        A = at.features.gram(at.loss.curvature(at.f, self.least)[:, 0], columns, at.problem.fit_intercept)
        blocks = at.features.block_of[columns]
        A[np.diag_indices_from(A)] += self.ridge[blocks]
        if self.bend is not None:
            inside = np.searchsorted(self.active, blocks)
            A += self.u[columns] * self.bend[np.ix_(inside, inside)] * self.u[columns].T
        A[np.diag_indices_from(A)] += TINY * float(np.trace(A)) / columns.size
        with suppress(np.linalg.LinAlgError):
            self.whole = columns, cho_factor(A, lower=True, overwrite_a=True, check_finite=False)

    def precondition(self, x: Array) -> Array:
        out = np.zeros_like(x)
        if self.whole is not None:
            columns, factor = self.whole
            out[columns] = cho_solve(factor, x[columns], check_finite=False)
            return out
        for number, j in enumerate(self.active):
            place = self.at.features.place(j)
            own = 0.0 if self.bend is None else float(self.bend[number, number])
            out[place] = self.at.model(int(j)).solve(x[place], self.ridge[j], self.u[place], own)
        return out


def _iterations(system: _System, residual: Array, most: int) -> Iterator[tuple[Array, Array, Array, Array]]:
    """Conjugate gradients from zero: v, the residual, ``Zv`` and ``HZv`` after every iteration."""
    n, k = system.at.f.shape
    v, moved, bent = np.zeros_like(residual), np.zeros((n, k)), np.zeros((n, k))
    z = system.precondition(residual)
    p, size = z, float(np.sum(residual * z))
    for _ in range(most):
        check_time()
        image, forth, back = system.product(p)
        curvature = float(np.sum(p * image))
        if not curvature > 0.0 or not size > 0.0:
            return
        step = size / curvature
        v, residual = v + step * p, residual - step * image
        moved, bent = moved + step * forth, bent + step * back
        yield v, residual, moved, bent
        z = system.precondition(residual)
        before, size = size, float(np.sum(residual * z))
        p = z + size / before * p


def newton_step(at: Iterate, near: bool = True, most: int = 20, share: float = 0.1) -> bool:
    """Take one Newton step among the blocks that are not zero, as long as it lowers the objective.

    At lengths t, directions u and weights ``d = weights_of_blocks(t)`` the regulariser has the gradient ``w_j / d_j``
    and the Hessian ``(I - u_j u_j') / d_j``, and between blocks ``u_j M_jl u_l'`` with M the norm's own on lengths.
    Where conjugate gradients failed before, the system is factorised if it is small; and unless the end is ``near``, a
    bound of the regulariser takes its place, ``1/2 sum_j |w_j|^2 / d_j``, which has no direction without curvature.
    """
    active = at.active
    if active.size == 0:
        return False
    norm, t = at.problem.norm, at.t
    d = norm.weights_of_blocks(t)
    ridge = np.zeros_like(t)
    ridge[active] = 1.0 / d[active]
    bend, near = None, (near and not at.singular) or not at.hard
    if near:
        bend = length_hessian(norm.restricted(active), t[active]) - np.diag(ridge[active])
    u, spread = at.directions, at.features.block_of
    least = at.caution if at.hard else 0.0
    system = _System(at, active, at.loss.hessian(at.f, least), ridge, u, bend, least, quick=not at.hard)
    gradient = at.features.adjoint_of(at.beta, active) - ridge[spread][:, None] * at.w
    goal = share * float(np.sqrt(np.sum(gradient**2)))
    v, moved = None, None
    for v, residual, moved, _ in _iterations(system, gradient, most):  # noqa: B007
        if float(np.sqrt(np.sum(residual**2))) <= goal:
            break
    else:
        at.hard = True
    if v is None or moved is None:
        return False
    # as far along as shorter and shorter steps lower the objective more and more
    start, step = Place(at.w, at.b, at.f), 0.0
    for length in (0.5**shorter for shorter in range(LINE)):
        if at.try_place(Place(start.w + length * v, start.b, start.f + length * moved)):
            step = length
        elif step > 0.0:
            break
    if at.hard and near and step < 0.25:
        at.singular = True
    elif step == 1.0:
        at.caution *= 0.25
    elif step < 0.5:
        at.caution = min(2.0 * at.caution, 1.0)
    return step > 0.0


def exchanges(
    at: Iterate, beta: Array, image: Array, weights: Array, most: int
) -> Iterator[tuple[Array, Array, float, bool]]:
    """Coefficients whose function, with the weights at hand, comes closer and closer to that of the coordinates.

    Yields coefficients shared by all kernels, their image ``Z'beta`` on the active blocks and zeros elsewhere, how far
    their function is expected above the Newton point, were the blocks not alike at all, and whether they are the last.
    The first are those to begin with.

    What predicts is ``w_j = d_j Z_j'beta``.  With ``beta = -c l'(f)`` that is a gradient step of length one from w, far
    too long where C is large.  ``beta - HZv`` gives ``w + v + d r`` with r the residual of Newton's system for fixed
    weights: solved exactly it is the Newton point, a better one than w.
    """
    active = np.flatnonzero(weights)
    ridge = np.zeros_like(weights)
    ridge[active] = 1.0 / weights[active]
    system = _System(at, active, at.loss.hessian(at.f), ridge, at.directions)
    spread = at.features.block_of
    image = np.where((weights > 0)[spread][:, None], image, 0.0)
    residual = image - ridge[spread][:, None] * at.w
    yield beta, image, _excess(at, weights, residual), False
    for done, (v, left, _, bent) in enumerate(_iterations(system, residual, most), start=1):
        # Z'(beta - HZv) = image - Z'HZv, and Z'HZv = residual - left - v / d
        moved = image - (residual - left - ridge[spread][:, None] * v)
        yield beta - bent, moved, _excess(at, weights, left), done == most


def _excess(at: Iterate, weights: Array, left: Array) -> float:
    """``1/2 (d r)'(A + 1/d)(d r)`` summed over the blocks: what a step too far by ``d r`` costs."""
    total = 0.0
    for j in np.flatnonzero(weights):
        r = left[at.features.place(int(j))]
        total += weights[j] ** 2 * at.model(int(j)).bent(r) + weights[j] * float(np.sum(r**2))
    return 0.5 * total
