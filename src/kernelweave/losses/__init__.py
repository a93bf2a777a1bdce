"""Convex losses: value, gradient, conjugate, dual set."""

from ._base import DualBudget, Loss, QuadraticDual, make_loss, registry
from .budgeted_hinge import BudgetedHinge, budget_from_noise_rate
from .epsilon_insensitive import EpsilonInsensitive
from .hinge import Hinge
from .huber_hinge import HuberHinge
from .logistic import Logistic
from .multiclass_hinge import MulticlassHinge, own_class
from .multinomial import Multinomial
from .squared import Squared
from .squared_hinge import SquaredHinge

__all__ = [
    "BudgetedHinge",
    "DualBudget",
    "EpsilonInsensitive",
    "Hinge",
    "HuberHinge",
    "Logistic",
    "Loss",
    "MulticlassHinge",
    "Multinomial",
    "QuadraticDual",
    "Squared",
    "SquaredHinge",
    "budget_from_noise_rate",
    "make_loss",
    "own_class",
    "registry",
]
