"""Whether explicit features serve a fit better than kernel values."""

from __future__ import annotations

from typing import Any

from ..solvers import registry

__all__ = ["wants_features"]


def wants_features(estimator: Any, kernels: list[Any], n: int, width: int) -> bool:
    """Whether every kernel has features, fewer in all than samples, and the solver needs no more than those.

    A solver that is left open is L-BFGS where the loss and the norm are smooth.
    """
    ranks = [kernel.rank(width) for kernel in kernels]
    if any(rank is None for rank in ranks) or sum(ranks) > n:
        return False
    loss, norm, solver = estimator._components()
    return not solver.mixes if solver is not None else not registry["lbfgs"]().unmet(loss, norm)
