"""Convex losses: value, gradient, conjugate, dual set."""

from ._base import Loss, QuadraticDual, make_loss, registry
from .epsilon_insensitive import EpsilonInsensitive
from .hinge import Hinge
from .huber_hinge import HuberHinge
from .logistic import Logistic
from .squared import Squared
from .squared_hinge import SquaredHinge

__all__ = [
    "EpsilonInsensitive",
    "Hinge",
    "HuberHinge",
    "Logistic",
    "Loss",
    "QuadraticDual",
    "Squared",
    "SquaredHinge",
    "make_loss",
    "registry",
]
