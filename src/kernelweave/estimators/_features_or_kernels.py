"""Whether explicit features serve a fit better than kernel values."""

from __future__ import annotations

from ..kernels import Kernel
from ._plan import BankPlan

__all__ = ["wants_features"]


def wants_features(plan: BankPlan, kernels: list[Kernel], n: int, width: int) -> bool:
    """Whether features are all that the fit needs, and every kernel has some, fewer in all than samples."""
    ranks = [kernel.rank(width) for kernel in kernels]
    return plan.features_suffice and None not in ranks and sum(rank or 0 for rank in ranks) <= n
