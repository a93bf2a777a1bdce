"""OBSCURE [OJC10]: online steps of fixed length first, then strongly convex ones in a ball of known radius."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ...problems import MKLProblem, Point
from .._base import Solver
from ._products import block_exponent
from ._run import OnlineRun

__all__ = ["Obscure"]

ITERATES = ("last", "best", "averaged")
#: the objective of the online stage falls as long as ``patience`` epochs take this share of it away
FALL = 0.1


@dataclass
class _State:
    run: OnlineRun
    radius: float | None = None
    # while the online stage lasts: the point of its last epoch, and the objectives at the ends of all
    reached: Point | None = None
    objectives: list[float] = field(default_factory=list)


class Obscure(Solver, registered_as="obscure"):
    """Two stages of online steps for (2, r)-norm MKL; an iteration is an epoch over the samples.

    The first stage finds a region of good solutions quickly and, through Theorem 2, a radius R that the optimum lies
    within; the second converges at the rate of Theorem 1.

    Parameters
    ----------
    eta : float, default=2.0
        Step length of the first stage (the paper's 2 for kernels of unit diagonal).
    online_epochs : int, default=500
        Most epochs of the first stage; it ends before that after an epoch without an update.
    patience : int or None, default=10
        The first stage also ends when its objective has not fallen by a tenth in this many epochs: soon where C is
        small, where steps of a fixed length go on beyond the optimum, and late where it is large.  None: never, as in
        the paper.
    iterate : {"best", "last", "averaged"}, default="best"
        Which point to return: the best or the last of those at the ends of epochs, or the best mean of all coefficients
        of the second stage so far, to which Theorem 1 applies.
    certify_every : int, default=5
        Epochs between two looks at the lower bound, which costs a pass where kernels are not explicit features.
    random_state : int, default=0
        Seed of the order of the samples.
    """

    needs = ("stepwise loss", "block norm")
    intercepts = False
    default_max_iter = 1000
    mixes = False
    summary = "online, then strongly convex stochastic steps in a ball (Orabona et al. 2010)"

    def __init__(
        self,
        eta: float = 2.0,
        online_epochs: int = 500,
        patience: int | None = 10,
        iterate: str = "best",
        certify_every: int = 5,
        random_state: int = 0,
    ) -> None:
        self.eta = eta
        self.online_epochs = online_epochs
        self.patience = patience
        self.iterate = iterate
        self.certify_every = certify_every
        self.random_state = random_state

    @property
    def keeps_last(self) -> bool:  # type: ignore[override]
        return self.iterate == "last"

    def init(self, problem: MKLProblem, start: Point | None, tol: float) -> _State:
        if self.iterate not in ITERATES:
            raise ValueError(f"iterate of obscure must be one of {', '.join(ITERATES)}, got {self.iterate!r}")
        if not self.eta > 0:
            raise ValueError(f"eta of obscure must be > 0, got {self.eta!r}")
        if self.patience is not None and not self.patience >= 1:
            raise ValueError(f"patience of obscure must be >= 1 or None, got {self.patience!r}")
        return _State(OnlineRun(problem, block_exponent(problem.norm), self.random_state))

    def step(self, problem: MKLProblem, state: _State) -> _State:
        from ..._numerics.online import FIXED_STEP, STRONGLY_CONVEX

        run = state.run
        if state.radius is None:
            updates = run.epoch(FIXED_STEP, self.eta)
            state.reached = self._last(run)
            state.objectives.append(problem.primal(state.reached)[0])
            if updates == 0 or run.epochs >= self.online_epochs or self._stands_still(state.objectives):
                state.radius, state.reached = radius_of(run, min(state.objectives)), None
                run.restart_clock()
            return state
        run.epoch(STRONGLY_CONVEX, radius=state.radius)
        if run.visits % self.certify_every == 0 or run.visits < 3:
            run.take_dual()
        return state

    def _stands_still(self, objectives: list[float]) -> bool:
        """Whether the best objective of the last epochs is hardly below that of the epochs before them."""
        if self.patience is None or len(objectives) <= self.patience:
            return False
        return min(objectives[-self.patience :]) > (1.0 - FALL) * min(objectives[: -self.patience])

    def point(self, state: _State) -> Point:
        if state.reached is not None:
            return state.reached
        if self.iterate == "averaged" and state.radius is not None and state.run.visits > 0:
            return state.run.averaged(1.0 / state.run.q, state.run.problem.norm.weights)
        return self._last(state.run)

    def _last(self, run: OnlineRun) -> Point:
        # w_j = (1/q) (|theta_j| / |theta|_q)^(q-2) theta_j
        return run.point(run.factors, 1.0 / run.q)


def radius_of(run: OnlineRun, objective: float) -> float:
    """Theorem 2: the optimum's norm is at most ``sqrt(2 objective / lam)`` at any point, and ``1 / sqrt(lam)``."""
    return float(min(np.sqrt(2.0 * (objective / run.total) / run.lam), 1.0 / np.sqrt(run.lam)))
