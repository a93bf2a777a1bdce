"""Algorithm 1 of [APO17] with the schedule of its Proposition 1, misprints of the formulas repaired, the rest kept.

What is kept, and why it does not converge as claimed, is in ``docs/svrg.md``: blocks that stop at different times,
strong convexity clipped at L/2 (line 16) although the step is taken on the unclipped problem, and a promise that
forgets that the weights change.  ``Delta_j`` (4) is garbled in print; taken as ``(eps / prod c)^(1 / (J - j + 1))``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...banks import LowRankBank
from ...problems import MKLProblem, Point
from .._derivatives import Derivative

Array = NDArray[np.float64]

__all__ = ["PaperRun", "schedule", "work_done"]

#: an epoch longer than so many passes is cut: early in a run, the schedule asks for more steps than anyone would take
LONGEST = 100.0


def schedule(delta: Array, L: float, strength: Array) -> tuple[Array, Array]:
    """Step and number of steps of (5) for a decrease by ``delta`` of a problem with this strong convexity."""
    kappa = L / strength  # at least 2, by the clip of line 16
    step = 1.0 / (4.0 / delta * (L - strength) + 2.0 * L)
    many = 4.0 * (kappa - 1.0) / delta + 2.0 * kappa
    return step, many * np.log(2.0 / delta + (2.0 * kappa - 1.0) / (kappa - 1.0))


def work_done(L: float, strength: Array, step: Array, many: Array) -> Array:
    """Decrease c of (6) by an epoch of so many such steps."""
    left = np.exp(many * np.log1p(-np.minimum(strength * step, 1.0 - 1e-12)))
    room = 1.0 - 2.0 * L * step
    return left / np.maximum((1.0 - left) * room, 1e-300) + 2.0 * (L - strength) * step / room


class PaperRun:
    """A run of the printed method; it is its own state.

    Only problems with one column and no intercept, as in the paper.
    """

    def __init__(self, problem: MKLProblem, accuracy: float, seed: int) -> None:
        if problem.fit_intercept or problem.y.ndim == 2:
            raise ValueError(
                "svrg(variant='paper') has no intercept and one target, as in the paper: use fit_intercept=False and "
                "two classes (or multi_class='ovr'), or variant='corrected'"
            )
        factors = problem.bank.factors()
        if not isinstance(factors, LowRankBank):
            raise ValueError("svrg(variant='paper') needs its features in memory: use variant='corrected'")
        self.problem, self.accuracy = problem, accuracy
        self.rng = np.random.default_rng(seed)
        features = factors.features
        self.Z = np.ascontiguousarray(features.toarray() if hasattr(features, "toarray") else features)
        self.starts, self.root = factors.starts, np.sqrt(factors.scale)
        self.block_of = np.repeat(np.arange(problem.m), factors.ranks)
        self.total = float(np.sum(problem.c))
        self.lam = 1.0 / self.total  # the paper's objective is ours over the sum of c
        loss = Derivative.of(problem.loss, problem.y)
        self.loss = loss._replace(target=loss.target[:, 0], low=loss.low[:, 0], high=loss.high[:, 0])
        lengths = factors.diag().sum(axis=0)
        assert problem.loss.smoothness is not None
        # L bounds the gradient of every sample's loss
        self.L = float(problem.loss.smoothness) * float(np.max(problem.c * lengths)) * problem.n / self.total
        self.w = np.zeros(self.Z.shape[1])
        self.d = np.full(problem.m, 1.0 / problem.m)  # line 1; F^(-1/p) would be right
        self.epochs = max(1, int(np.ceil(np.log(1.0 / accuracy))))
        self.done = 0
        self.steps: list[Array] = []
        self.counts: list[Array] = []
        self._snapshot()

    @property
    def finished(self) -> bool:
        """J epochs, and no more."""
        return self.done >= self.epochs or not np.all(np.isfinite(self.w))

    def _snapshot(self) -> None:
        problem = self.problem
        problem.bank.count(problem.m * float(problem.n) ** 2)
        self.f = self.Z @ (self.root[self.block_of] * self.w)
        self.beta = problem.repair(-problem.c * problem.loss.gradient(problem.y, self.f))
        self.G = self.root[self.block_of] * (self.Z.T @ self.beta)

    def _squares(self, values: Array) -> Array:
        squares = np.append(values**2, 0.0)
        return np.add.reduceat(squares, self.starts[:-1]) * (np.diff(self.starts) > 0)

    def next_epoch(self) -> PaperRun:
        """Lines 3 to 17."""
        from ..._numerics.svrg_paper import Blocks, paper_steps

        problem, n = self.problem, self.problem.n
        clipped = np.minimum(self.lam / np.maximum(self.d, 1e-300), 0.5 * self.L)  # line 16
        past = np.ones(problem.m)
        for step, many in zip(self.steps, self.counts, strict=True):  # line 17
            past *= np.minimum(work_done(self.L, clipped, step, many), 1e30)
        left = self.epochs - self.done
        # an epoch that by (6) did nothing asks the impossible of the next: kept within what can be run
        delta = np.clip((self.accuracy / np.clip(past, 1e-300, 1e300)) ** (1.0 / left), 1e-6, 0.99)
        step, many = schedule(delta, self.L, clipped)
        many = np.minimum(np.ceil(many), LONGEST * n)
        # line 4, with the normaliser that its law lacks: T = t with probability (1 - strength step)^(m - t)
        rate = -np.log1p(-np.maximum(clipped * step, 1e-300))
        whole = -np.expm1(-many * rate)
        back = -np.log1p(-self.rng.uniform(size=problem.m) * whole) / rate
        stop = np.maximum(many - np.floor(back), 1.0).astype(np.int64)
        order = self.rng.integers(0, n, size=int(stop.max()))
        w = self.w.copy()
        strength = self.lam / np.maximum(self.d, 1e-300)
        with np.errstate(over="ignore", invalid="ignore"):
            paper_steps(
                self.Z, order, w, Blocks(self.starts, self.root, strength, step, stop),
                -self.G / self.total, self.beta * n / self.total, problem.c * n / self.total, self.loss,
            )  # fmt: skip
        # a block that has stopped costs nothing: inner steps count by the blocks that moved
        problem.bank.count(float(stop.sum()) * n)
        self.steps.append(step)
        self.counts.append(many)
        self.done += 1
        self.w = w
        blocks = np.sqrt(self._squares(w))
        if np.all(np.isfinite(blocks)):
            self.d = self.problem.norm.weights_of_blocks(blocks)
        self._snapshot()
        return self

    def point(self) -> Point:
        """Blocks with coefficients of their own; those of the gradient are what they can be exchanged for."""
        blocks = np.sqrt(self._squares(self.w))
        return Point(
            self.beta,
            self.problem.norm.weights_of_blocks(blocks),
            self._squares(self.G),
            self.f,
            blocks=blocks,
        )
