"""Convex losses: value, gradient, conjugate, dual set."""

from ._base import DualBudget, Loss, QuadraticDual, make_loss, registry
from .margin import BudgetedHinge, Hinge, HuberHinge, Logistic, SquaredHinge, budget_from_noise_rate
from .multiclass import MulticlassHinge, Multinomial, own_class
from .novelty import OneClass
from .regression import EpsilonInsensitive, Squared

__all__ = [
    "BudgetedHinge", "DualBudget", "EpsilonInsensitive", "Hinge", "HuberHinge", "Logistic", "Loss",
    "MulticlassHinge", "Multinomial", "OneClass", "QuadraticDual", "Squared", "SquaredHinge", "budget_from_noise_rate",
    "make_loss", "own_class", "registry",
]  # fmt: skip

__dir__ = __all__.copy  # completion shows the public names alone
