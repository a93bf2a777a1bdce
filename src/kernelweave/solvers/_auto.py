"""Which solver for which problem."""

from __future__ import annotations

from ..losses import Loss
from ..norms import Norm
from ._base import Solver, registry

__all__ = ["choose_solver"]


def choose_solver(loss: Loss, norm: Norm, n: int, m: int) -> Solver:
    """Return the solver that ``solver="auto"`` stands for.

    Fixed weights need one inner solve.  Where the objective is convex in the weights, second-order steps take the
    fewest passes over the bank.  The maximum norm is left to alternation.
    """
    if norm.fixed:
        return registry["fixed_weights"]()
    if norm.convex_in_weights:
        return registry["newton"]()
    return registry["lp_analytic"]()
