"""Problems: primal, dual, certificate."""

from .certificate import Certificate, Point, joined, relative_gap, scope_of
from .fixed import FixedSolution, solve_fixed
from .mkl import MKLProblem, Oracle
from .root import Root
from .rounding import UNIT, forms_doubt, values_doubt, with_certain_bounds, without_crossed_bounds

__all__ = [
    "UNIT",
    "Certificate",
    "FixedSolution",
    "MKLProblem",
    "Oracle",
    "Point",
    "Root",
    "forms_doubt",
    "joined",
    "relative_gap",
    "scope_of",
    "solve_fixed",
    "values_doubt",
    "with_certain_bounds",
    "without_crossed_bounds",
]
