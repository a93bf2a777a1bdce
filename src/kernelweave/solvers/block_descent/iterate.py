"""The current point of block descent, its moves, and Newton's method on the blocks that are not zero."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from ..._numerics.stopping import check_time
from ..._typing import Array, Index
from ...norms import Norm
from ...problems import MKLProblem
from .features import BlockFeatures, BlockModel, LossModel


class Charge:
    """The norm as a function of the length of block j alone, at the lengths t of the others."""

    def __init__(self, norm: Norm, t: Array, j: int) -> None:
        from ..._numerics.block_steps import NET, POWERS

        along = norm.along(t, j)
        self.extra = float(norm.l1_term or 0.0)
        self.numbers: tuple[Any, ...] = (NET if along.net else POWERS, *along[1:])

    @property
    def held(self) -> float:
        """Pull that a block of zero withstands."""
        from ..._numerics.block_steps import block_held

        return self.extra + float(block_held(*self.numbers))

    def pull(self, t: float) -> float:
        """Return the derivative of the charge at the length t."""
        from ..._numerics.block_steps import block_pull

        return self.extra + float(block_pull(t, *self.numbers))

    def length(self, squares: Array, bend: Array) -> float:
        """Return the best length beside a quadratic model with the curvatures ``bend`` and the squared slopes."""
        from ..._numerics.block_steps import charged_length

        return float(charged_length(squares, bend, self.extra, *self.numbers))


def held_at_zero(norm: Norm, t: Array, blocks: NDArray[np.intp]) -> Array:
    """Pulls that blocks of zero withstand; equal for all where the norm knows no groups."""
    if not norm.group_names and blocks.size:
        return np.full(blocks.size, Charge(norm, t, int(blocks[0])).held)
    return np.array([Charge(norm, t, int(j)).held for j in blocks])


class Anderson:
    """Remember the last places of an iterate, and try their extrapolation."""

    def __init__(self, memory: int = 5) -> None:
        self.memory = memory
        self.places: list[Place] = []

    def push(self, at: Iterate) -> None:
        """Note where the iterate is, and go to the extrapolated place where that is lower."""
        self.places.append(at.place())
        if len(self.places) <= self.memory:
            return
        places = self.places[-self.memory - 1 :]
        self.places = places
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
            self.places = [at.place()]


# ------------------------------------------------------------------------------------------------------------
# Where block descent stands: a function in feature space, its decision values, and moves that lower the
# objective.


#: a step that raised the objective is tried again in a stiffer model, so many times
RETRIES = 8
STIFFER = 3.0
#: pull on a block of zero, over what holds it there, below which it is left alone until all blocks are looked at again
FAR = 0.9
#: relative rise of the objective that is put down to rounding
ROUNDING = 1e-14
#: relative change of the curvatures from which a block's model is made again: of a quadratic loss for next to any
STALE, EXACTLY = 0.4, 1e-9


@dataclass
class Place:
    """Coordinates w, intercepts b and decision values f: all that is linear in the iterate."""

    w: Array
    b: Array
    f: Array


class Iterate:
    """The moving point of a run, and the quadratic models of its blocks.

    Attributes
    ----------
    w : array of shape (R, k)
        Coordinates in feature space, the kernels' factors folded in.
    b : array of shape (k,)
    f : array of shape (n, k)
        Decision values.
    beta : array of shape (n, k)
        ``-c l'(f)``.
    t : array of shape (m,)
        Block norms.
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
        """Look at the curvature of the loss here; models made elsewhere are made again when they are needed."""
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
            width = int(self.features.ranks[j])
            means = self.features.means(j, self.h) if self.problem.fit_intercept else np.zeros(width)
            self._means[j] = self.age, means
        return means

    # ---- moves -----------------------------------------------------------------------------------------------

    def epoch(self, blocks: Index) -> Index:
        """One exact step on each of the blocks; return those that are worth another one soon."""
        near = []
        for j in blocks:
            check_time()
            near.append(self._step(int(j)))
        return blocks[np.array(near, dtype=bool)]

    def _step(self, j: int) -> bool:
        """Return whether the block is, or may soon be, other than zero."""
        features, place = self.features, self.features.place(j)
        w = self.w[place]
        pressed = np.sum(self.beta, axis=0)
        pull = features.pull(j, self.beta) - np.outer(self._means_of(j), pressed)
        charge = Charge(self.problem.norm, self.t, j)
        if self.t[j] == 0.0:
            room, length = charge.held, float(np.linalg.norm(pull))
            if length <= room:  # zero is the exact step, whatever the curvature
                return length > FAR * room
        model = self.model(j)
        free = self.problem.fit_intercept and model.total > 0.0
        before = self.objective
        for _ in range(RETRIES):
            v = _best_block(model, w, pull, charge)
            if v is None and self.t[j] == 0.0:
                return True
            along = (0.0 if v is None else v) - w
            shift = (
                pressed / (model.stiffness * model.total) - model.means @ along
                if free
                else np.zeros_like(pressed)
            )
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
            if abs(step) < 1e-6 or not self.try_place(
                Place((1.0 + step) * self.w, self.b, (1.0 + step) * values + self.b)
            ):
                return

    def place(self) -> Place:
        """Return a copy of where we are."""
        return Place(self.w.copy(), self.b.copy(), self.f.copy())

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
    t = charge.length(squares, bend)
    if t == 0.0:
        return None
    share = t / (bend * t + charge.pull(t))
    if off is None:
        return np.asarray(model.Q @ (share[:, None] * q))
    return np.asarray(model.Q @ (share[:-1, None] * q) + share[-1] * off)


# ------------------------------------------------------------------------------------------------------------
# Newton's method on the blocks that are not zero, by conjugate gradients, and what it says of shared
# coefficients.


#: features up to which Newton's system is factorised where conjugate gradients did not solve it, and what is added to
#: its diagonal, over the mean: kernels that are there twice make it singular
LARGEST, TINY = 2000, 1e-12
#: steps along a direction, each half as long
LINE = 10


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
    bend: Array | None = (
        None  # (active, active): second derivatives in the lengths, less the ridge; None for zero
    )
    least: float = 0.0  # share of the largest curvature of the loss that every sample has at least
    quick: bool = False  # whether products may be as rough as those of steps
    whole: tuple[Index, Any] | None = None  # columns of the active blocks, and the factorised system

    def product(self, v: Array) -> tuple[Array, Array, Array]:
        """Return the system's product with v, ``Zv`` and ``HZv``."""
        features = self.at.features
        moved = features.forward_of(v, self.active, self.quick)
        bent = self.hessian(moved)
        out = features.adjoint_of(bent, self.active, self.quick) + self.regulariser(v)
        return out, moved, bent

    def regulariser(self, v: Array) -> Array:
        spread = self.at.features.block_of
        out = self.ridge[spread][:, None] * v
        if self.bend is not None:
            along = np.zeros_like(self.ridge)
            along[self.active] = self.bend @ _block_sums(self.at, self.u * v)[self.active]
            out += along[spread][:, None] * self.u
        return out

    def factorise(self) -> None:
        """Have the whole system for a preconditioner, where blocks alone say too little of it and it is small."""
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


def _block_sums(at: Iterate, values: Array) -> Array:
    sums = np.append(np.sum(values, axis=1), 0.0)
    return np.add.reduceat(sums, at.features.starts[:-1]) * (at.features.ranks > 0)


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
        bend = norm.restricted(active).block_hessian(t[active]) - np.diag(ridge[active])
    u, spread = at.directions, at.features.block_of
    least = at.caution if at.hard else 0.0
    system = _System(at, active, at.loss.hessian(at.f, least), ridge, u, bend, least, quick=not at.hard)
    system.factorise()
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
    step = _go_along(at, v, moved)
    if at.hard and near and step < 0.25:
        at.singular = True
    elif step == 1.0:
        at.caution *= 0.25
    elif step < 0.5:
        at.caution = min(2.0 * at.caution, 1.0)
    return step > 0.0


def _go_along(at: Iterate, v: Array, moved: Array) -> float:
    """Go along a direction as far as shorter and shorter steps lower the objective more and more; return how far."""
    start, best = Place(at.w, at.b, at.f), 0.0
    for shorter in range(LINE):
        step = 0.5**shorter
        if at.try_place(Place(start.w + step * v, start.b, start.f + step * moved)):
            best = step
        elif best > 0.0:
            break
    return best


@dataclass
class Exchange:
    """Coefficients shared by all kernels, with their image ``Z'beta`` on the active blocks and zeros elsewhere.

    ``excess`` is how far their function is expected above the Newton point, were the blocks not alike at all.
    """

    beta: Array
    image: Array
    excess: float
    last: bool


def exchanges(at: Iterate, beta: Array, image: Array, weights: Array, most: int) -> Iterator[Exchange]:
    """Coefficients whose function, with the weights at hand, comes closer and closer to that of the coordinates.

    The first are those to begin with.

    What predicts is ``w_j = d_j Z_j'beta``.  With ``beta = -c l'(f)`` that is a gradient step of length one from w, far
    too long where C is large.  ``beta - HZv`` gives ``w + v + d r`` with r the residual of Newton's system for fixed
    weights: solved exactly it is the Newton point, a better one than w.

    Parameters
    ----------
    at : Iterate
    beta, image : arrays of shape (n, k) and (R, k)
        Coefficients to begin with, and ``Z'beta``.
    weights : array of shape (m,)
    most : int
        Iterations.
    """
    active = np.flatnonzero(weights)
    ridge = np.zeros_like(weights)
    ridge[active] = 1.0 / weights[active]
    system = _System(at, active, at.loss.hessian(at.f), ridge, at.directions)
    system.factorise()
    spread = at.features.block_of
    image = np.where((weights > 0)[spread][:, None], image, 0.0)
    residual = image - ridge[spread][:, None] * at.w
    yield Exchange(beta, image, _excess(at, weights, residual), False)
    for done, (v, left, _, bent) in enumerate(_iterations(system, residual, most), start=1):
        # Z'(beta - HZv) = image - Z'HZv, and Z'HZv = residual - left - v / d
        moved = image - (residual - left - ridge[spread][:, None] * v)
        yield Exchange(beta - bent, moved, _excess(at, weights, left), done == most)


def _excess(at: Iterate, weights: Array, left: Array) -> float:
    """``1/2 (d r)'(A + 1/d)(d r)`` summed over the blocks: what a step too far by ``d r`` costs."""
    total = 0.0
    for j in np.flatnonzero(weights):
        r = left[at.features.place(int(j))]
        total += weights[j] ** 2 * at.model(int(j)).bent(r) + weights[j] * float(np.sum(r**2))
    return 0.5 * total
