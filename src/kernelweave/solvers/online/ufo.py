"""UFO-MKL [OJ11]: the steps of Pegasos, and block norms that are soft-thresholded."""

from __future__ import annotations

from ...problems import MKLProblem
from ._run import OnlineRun
from .pegasos import Pegasos

__all__ = ["UFO"]


class UFO(Pegasos, registered_as="ufo"):
    """UFO-MKL: Pegasos with an l1 term on the block norms, ``norm=Elastic(alpha, r)``, which keeps few kernels.

    Parameters
    ----------
    random_state : int, default=0
        Seed of the order of the samples.
    """

    needs = ("stepwise loss", "elastic norm")
    summary = "the same with an l1 term that keeps few kernels (Orabona and Luo 2011)"

    def _cut(self, problem: MKLProblem, run: OnlineRun) -> float:
        # the paper's alpha goes with the mean loss: ours over sum c
        assert problem.norm.l1_term is not None
        return problem.norm.l1_term * run.lam
