"""Problems: primal, dual, certificate."""

from .certificate import (
    UNIT,
    Certificate,
    Point,
    forms_doubt,
    joined,
    relative_gap,
    scope_of,
    values_doubt,
    with_certain_bounds,
    without_crossed_bounds,
)
from .curvature import Root
from .fixed import FixedSolution, solve_fixed
from .left_out import left_out_values
from .mkl import MKLProblem, Oracle

__all__ = [
    "UNIT", "Certificate", "FixedSolution", "MKLProblem", "Oracle", "Point", "Root", "forms_doubt", "joined",
    "left_out_values", "relative_gap", "scope_of", "solve_fixed", "values_doubt", "with_certain_bounds",
    "without_crossed_bounds",
]  # fmt: skip

__dir__ = __all__.copy  # completion shows the public names alone
