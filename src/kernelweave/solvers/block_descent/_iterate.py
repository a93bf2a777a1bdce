"""Where block descent stands: a function in feature space, its decision values, and moves that lower the objective."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..._numerics.deadline import check_time
from ...problems import MKLProblem
from ._charge import Charge
from ._features import BlockFeatures, BlockModel
from ._loss import LossModel

Array = NDArray[np.float64]
Index = NDArray[np.intp]

__all__ = ["Iterate", "Place"]

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
