"""Multi-epoch SVRG on explicit features [APO17], corrected: stochastic steps with the noise of a snapshot removed."""

from __future__ import annotations

from ...problems import MKLProblem, Point
from .._base import Solver
from ._paper import PaperRun
from ._run import Run, State

__all__ = ["SVRG"]


class SVRG(Solver, registered_as="svrg"):
    """Epochs of variance-reduced stochastic gradients with fixed kernel weights, the weights in closed form between.

    An epoch takes a full gradient (one pass), which also gives the certificate, and as many steps on single samples as
    there are samples (another pass).  Kernels without explicit features are factorised once.

    Parameters
    ----------
    variant : {"corrected", "paper"}, default="corrected"
        The method that converges, or the printed one, for comparison.
    step_size : float, default=1.0
        Step length in units of one over the smoothness, at most 1; halved by itself where it turns out too long.
    epoch : float, default=1.0
        Steps between two full gradients, in units of the number of samples.
    accuracy : float, default=1e-4
        The relative accuracy that the schedule of ``variant="paper"`` is laid out for.
    random_state : int, default=0
        Seed of the order of the samples.

    Notes
    -----
    All iterates have one vector of coefficients a for all kernels, ``f_j = d_j sum_i a_i k_j(x_i, .)``, as those of
    every other solver: what is certified is what predicts.
    """

    needs = ("simple derivative", "smooth norm")
    default_max_iter = 5000
    summary = "variance-reduced stochastic gradients on explicit features"
    mixes = False

    def __init__(
        self,
        variant: str = "corrected",
        step_size: float = 1.0,
        epoch: float = 1.0,
        accuracy: float = 1e-4,
        random_state: int = 0,
    ) -> None:
        self.variant = variant
        self.step_size = step_size
        self.epoch = epoch
        self.accuracy = accuracy
        self.random_state = random_state

    def init(self, problem: MKLProblem, start: Point | None, tol: float) -> State | PaperRun:
        self._check()
        if self.variant == "paper":
            return PaperRun(problem, self.accuracy, self.random_state)
        run = Run(problem, float(self.epoch), self.random_state)
        return run.snapshot(run.first(start, float(self.step_size)))

    def step(self, problem: MKLProblem, state: State | PaperRun) -> State | PaperRun:
        return state.next_epoch()

    def point(self, state: State | PaperRun) -> Point:
        return state.point()

    def _check(self) -> None:
        if self.variant not in ("corrected", "paper"):
            raise ValueError(f"variant of svrg must be 'corrected' or 'paper', got {self.variant!r}")
        if not 0.0 < self.step_size <= 1.0:
            raise ValueError(f"step_size of svrg must be in (0, 1], got {self.step_size!r}")
        if not self.epoch > 0.0:
            raise ValueError(f"epoch of svrg must be > 0, got {self.epoch!r}")
        if not 0.0 < self.accuracy < 1.0:
            raise ValueError(f"accuracy of svrg must be in (0, 1), got {self.accuracy!r}")
