"""Solvers: one file per algorithm, one loop for all."""

from ._auto import ON_SUMS, choose_solver
from ._base import Solver, fitting_solvers, make_solver, registry
from ._best import TRACE_COLUMNS, without_caches
from ._checkpoint import check_place
from ._loop import Solution, Stop, solve
from ._path import follow_path
from ._requirements import REQUIREMENTS
from ._start import begin, inner_target
from ._status import MESSAGES, final_status

__all__ = [
    "MESSAGES",
    "ON_SUMS",
    "REQUIREMENTS",
    "TRACE_COLUMNS",
    "Solution",
    "Solver",
    "Stop",
    "begin",
    "check_place",
    "choose_solver",
    "final_status",
    "fitting_solvers",
    "follow_path",
    "inner_target",
    "make_solver",
    "registry",
    "solve",
    "without_caches",
]
