"""Problems: primal, dual, certificate."""

from .certificate import Certificate, Point, joined, relative_gap, scope_of
from .fixed import FixedSolution, solve_fixed
from .mkl import MKLProblem, Oracle
from .root import Root
from .rounding import without_crossed_bounds

__all__ = [
    "Certificate",
    "FixedSolution",
    "MKLProblem",
    "Oracle",
    "Point",
    "Root",
    "joined",
    "relative_gap",
    "scope_of",
    "solve_fixed",
    "without_crossed_bounds",
]
