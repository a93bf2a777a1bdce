"""The standard problems: small, mid, the UCI grid, and generated ones of any size.

All of them: features standardised on the training rows, Gaussians of widths 2^-3..2^6 on all features and on every
single one (``kernels.preset("stpmkl")``).  Real data come from the folder named by ``KERNELWEAVE_DATA``; where that
has not got them, a generated problem of the same size stands in, and says so.
"""

from __future__ import annotations

import statistics
import sys
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import scale

from kernelweave import kernels as kw
from kernelweave.banks import Bank, build_bank
from kernelweave.losses import Hinge
from kernelweave.norms import make_norm
from kernelweave.problems import MKLProblem
from kernelweave.solvers import Solution, Solver, Stop, make_solver, solve
from kernelweave_studies.datasets import load_uci

#: samples and features, for the stand-ins
UCI = {"ionosphere": (351, 33), "sonar": (208, 60), "pima": (768, 8), "wdbc": (569, 30), "heart": (270, 13)}
C_GRID = (0.1, 1.0, 10.0, 100.0, 1000.0)
#: what every table has to say about the problems
SETTING = (
    "Features standardised on the training rows, kernels trace-normalised, hinge loss with an intercept, one "
    "thread, after compilation."
)


@dataclass(frozen=True)
class Problem:
    """Training samples with labels -1 and 1, kernels, and a sentence about where they come from."""

    name: str
    X: np.ndarray
    y: np.ndarray
    kernels: Any
    source: str

    @property
    def n(self) -> int:
        """Number of samples."""
        return self.X.shape[0]

    @property
    def expanded(self) -> list[Any]:
        """The kernels one by one."""
        return self.kernels.expand(kw.Schema(self.X.shape[1]))

    @property
    def m(self) -> int:
        """Number of kernels."""
        return len(self.expanded)

    @property
    def title(self) -> str:
        """Name and sizes."""
        return f"{self.name} (n = {self.n}, m = {self.m})"

    def bank(self, **options: Any) -> Bank:
        """The kernels on the samples."""
        return build_bank(self.expanded, self.X, **options)[0]


def uci(name: str, seed: int = 0) -> Problem:
    """80 % of a UCI set, stratified, or a generated problem of that size, which has it in its name."""
    try:
        X, y = load_uci(name, return_X_y=True, download=False)
        source = f"{name}: UCI, 80 %, stratified, seed {seed}"
    except FileNotFoundError:
        n, d = UCI[name]
        X, y = _generated_sample(n, d, seed)
        source = f"{name}: GENERATED stand-in of the same size, as KERNELWEAVE_DATA has no {name}; 80 %, stratified"
        name = f"{name} (stand-in)"
        print(source, file=sys.stderr)
    X, _, y, _ = train_test_split(X, y, train_size=0.8, stratify=y, random_state=seed)
    return Problem(name, _scaled(X), _signs(y), kw.preset("stpmkl"), source)


def small() -> Problem:
    """Ionosphere: n = 280, m = 340."""
    return uci("ionosphere")


def mid() -> Problem:
    """Generated, n = 2,000, m = 110."""
    return generated(2000, 10, name="mid")


def generated(
    n: int, features: int, *, kernels: Any = None, seed: int = 0, name: str | None = None
) -> Problem:
    """Two classes in overlapping clusters, 5 % of the labels flipped."""
    X, y = _generated_sample(n, features, seed)
    source = f"generated (make_classification), n = {n}, {features} features, seed {seed}"
    spec = kw.preset("stpmkl") if kernels is None else kernels
    return Problem(name or f"n = {n}", _scaled(X), _signs(y), spec, source)


def _generated_sample(n: int, d: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    informative = max(2, min(6, (2 * d) // 3))
    return make_classification(
        n, d, n_informative=informative, n_redundant=min(2, d - informative), flip_y=0.05, class_sep=0.8,
        random_state=seed,
    )  # fmt: skip


def _scaled(X: np.ndarray) -> np.ndarray:
    return scale(X)


def _signs(y: np.ndarray) -> np.ndarray:
    return np.where(y == np.unique(y)[1], 1.0, -1.0)


# One solver on one problem, again and again, timed.

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
