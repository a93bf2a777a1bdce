"""Convex losses: value, gradient, conjugate, dual set."""

from ._base import CurvatureRoot, DualBudget, Loss, QuadraticDual, make_loss, registry
from .margin import BudgetedHinge, Hinge, HuberHinge, Logistic, SquaredHinge, budget_from_noise_rate
from .multiclass import MulticlassHinge, Multinomial, own_class
from .novelty import OneClass
from .ordinal import Ordinal
from .regression import EpsilonInsensitive, Huber, Pinball, Poisson, Squared
from .survival import CensoredSquared, Cox, SurvivalLoss

__all__ = [
    "BudgetedHinge", "CensoredSquared", "Cox", "CurvatureRoot", "DualBudget", "EpsilonInsensitive", "Hinge", "Huber",
    "HuberHinge", "Logistic", "Loss", "MulticlassHinge", "Multinomial", "OneClass", "Ordinal", "Pinball", "Poisson",
    "QuadraticDual", "Squared", "SquaredHinge", "SurvivalLoss", "budget_from_noise_rate", "make_loss", "own_class",
    "registry",
]  # fmt: skip

__dir__ = __all__.copy  # completion shows the public names alone
