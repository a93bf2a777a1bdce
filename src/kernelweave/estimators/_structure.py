"""The norm as the kernels of a fit make it: groups by name or view, and kernels whose weight is given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..kernels import view_of
from ..norms import FixedParts, Norm

if TYPE_CHECKING:
    from ._inputs import Training
    from ._plan import Plan

__all__ = ["norm_of_kernels", "plan_for_kernels", "refuse_fixed_parts"]


def norm_of_kernels(norm: Norm, training: Training) -> Norm:
    """Return a norm that knows the names and views of the kernels, and leaves out those that always count."""
    kernels = training.kernels or []
    given = {j: float(kernel.always) for j, kernel in enumerate(kernels) if kernel.always is not None}
    views = [view_of(kernel) for kernel in kernels] or None
    bound = (FixedParts(norm, given) if given else norm).with_names(training.names, views)
    bound.check(len(training.names))
    return bound


def plan_for_kernels(plan: Plan, training: Training) -> Plan:
    """Return the plan with its norm bound to the kernels, checked to fit the solver."""
    norm = norm_of_kernels(plan.norm, training)
    return plan if norm is plan.norm else plan.with_norm(norm)


def refuse_fixed_parts(norm: Norm, m: int, who: str) -> None:
    """Raise where weights come from a rule that would overrule those that are given."""
    if norm.learnt(m).size < m:
        raise ValueError(
            f"{who} takes the weights of all kernels from a rule, and kernels.always(...) gives some: use "
            "MKLClassifier or MKLRegressor (norm='uniform' learns nothing either)"
        )
