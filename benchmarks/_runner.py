"""One solver on one problem, again and again, timed."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from typing import Any

from _problems import Problem
from kernelweave.banks import Bank
from kernelweave.losses import Hinge
from kernelweave.norms import make_norm
from kernelweave.problems import MKLProblem
from kernelweave.solvers import Solution, Solver, Stop, make_solver, solve

ENDED = {"converged": "reached", "max_seconds": "time", "max_iter": "iterations"}


@dataclass(frozen=True)
class Case:
    """A problem, a norm and a tolerance, and the solvers that it is given to."""

    problem: Problem
    norm: Any
    tol: float
    solvers: tuple[str, ...]
    C: float = 1.0

    @property
    def norm_name(self) -> str:
        """The norm as the table calls it."""
        return self.norm if isinstance(self.norm, str) else f"p = {self.norm:g}"

    @property
    def label(self) -> str:
        """The case in a few words."""
        return f"{self.problem.name}, {self.norm_name}, C = {self.C:g}, to {self.tol:g}"


class Runner:
    """One solver on one case; ``solution`` is the last one, ``seconds`` those of all runs."""

    solution: Solution

    def __init__(self, case: Case, bank: Bank, solver: str, cap: float) -> None:
        self.case, self.bank, self.solver = case, bank, solver
        self.norm = make_norm(case.norm)
        self.stop = Stop(case.tol, None, cap)
        self.seconds: list[float] = []

    def make_solver(self) -> Solver:
        """Return the solver by its name."""
        return make_solver(self.solver, Hinge(), self.norm)

    def make_problem(self) -> MKLProblem:
        """Return the case on its bank."""
        return MKLProblem(self.bank, Hinge(), self.norm, self.case.problem.y, self.case.C)

    def once(self) -> None:
        """Solve, timed."""
        problem, solver = self.make_problem(), self.make_solver()
        start = time.perf_counter()
        self.solution = solve(problem, solver, self.stop)
        self.seconds.append(time.perf_counter() - start)

    @property
    def reached(self) -> bool:
        """Whether the gap asked for was certified."""
        return self.solution.converged

    @property
    def ended(self) -> str:
        """Why it stopped."""
        return ENDED.get(self.solution.status, self.solution.status)

    @property
    def median(self) -> float:
        """Median of the seconds."""
        return statistics.median(self.seconds)

    def times(self, newton: Runner) -> float | str:
        """Seconds over those of ``newton``; a lower bound where the gap was not reached."""
        ratio = self.median / newton.median
        return ratio if self.reached else f"> {ratio:.3g}"


def in_turns(runners: list[Any], repeats: int, long: float) -> None:
    """Run each once more per repeat, in turns, those that take long excepted: a busy machine slows all alike."""
    for _ in range(repeats - 1):
        for runner in runners:
            if runner.seconds[0] < long:
                runner.once()
