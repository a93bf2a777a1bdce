"""Solvers: a file per kind of algorithm, one loop for all."""

from ..banks.decide import ON_SUMS
from ._base import (
    REQUIREMENTS,
    Solver,
    abilities,
    begin,
    choose_solver,
    fitting_solvers,
    inner_target,
    make_solver,
    registry,
)
from ._checkpoint import TRACE_COLUMNS, check_place
from ._loop import MESSAGES, Solution, Stop, final_status, follow_path, solve, without_caches

__all__ = [
    "MESSAGES", "ON_SUMS", "REQUIREMENTS", "TRACE_COLUMNS", "Solution", "Solver", "Stop", "abilities",
    "begin", "check_place", "choose_solver", "final_status", "fitting_solvers", "follow_path", "inner_target",
    "make_solver", "registry", "solve", "without_caches",
]  # fmt: skip
__dir__ = __all__.copy  # completion shows the public names alone
