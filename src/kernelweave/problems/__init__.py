"""Problems: primal, dual, certificate."""

from .certificate import Certificate, Point, relative_gap
from .fixed import FixedSolution, solve_fixed
from .mkl import MKLProblem, Oracle
from .rounding import refuse_crossed_bounds

__all__ = [
    "Certificate",
    "FixedSolution",
    "MKLProblem",
    "Oracle",
    "Point",
    "refuse_crossed_bounds",
    "relative_gap",
    "solve_fixed",
]
