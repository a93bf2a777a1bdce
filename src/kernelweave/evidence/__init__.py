"""Weights of kernels chosen by evidence, for every target by itself: marginal likelihood, samples left out, folds."""

from .choice import Components, WeightChoice, batch_size, choose_weights, variance_components
from .criteria import Criterion, Folds, LeaveOneOut, Look, Reml, log_likelihood
from .descent import Watch
from .design import Design
from .points import Points

__all__ = [
    "Components", "Criterion", "Design", "Folds", "LeaveOneOut", "Look", "Points", "Reml", "Watch", "WeightChoice",
    "batch_size", "choose_weights", "log_likelihood", "variance_components",
]  # fmt: skip
__dir__ = __all__.copy  # completion shows the public names alone
