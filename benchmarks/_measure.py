"""What the benchmarks share: the standard problems, seconds, memory and counts, and tables.

The problems: small, mid, the UCI grid, and generated ones of any size.  All of them: features standardised on the
training rows, Gaussians of widths 2^-3..2^6 on all features and on every single one (``kernels.preset("stpmkl")``).
Real data come from the folder named by ``KERNELWEAVE_DATA``; where that has not got them, a generated problem of the
same size stands in, and says so.

A table is printed on the screen, and written as CSV and Markdown to ``docs/results``.
"""

from __future__ import annotations

import argparse
import csv
import gc
import json
import os
import resource
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

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
from kernelweave_studies import tables
from kernelweave_studies.datasets import load_uci
from kernelweave_studies.tables import Targets, cell, machine  # noqa: F401 (the scripts take them from here)

#: one thread for every program: what a ratio between two programs means otherwise depends on the machine's cores
VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)
ONE = dict.fromkeys(VARIABLES, "1")


def pin() -> None:
    """Start this program again with one thread where it has more; a BLAS reads the variables when it is loaded."""
    if all(os.environ.get(name) == "1" for name in VARIABLES):
        return
    sys.stdout.flush()
    os.environ.update(ONE)
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def in_child(script: str | list[str], case: str, **parameters: Any) -> dict[str, Any]:
    """Run ``script --case case`` with parameters as JSON, and return the JSON object on its last line.

    ``script`` is a file, or a file and the part of it.
    """
    words = [script] if isinstance(script, str) else script
    command = [sys.executable, *words, "--case", case, "--parameters", json.dumps(parameters)]
    done = subprocess.run(command, env={**os.environ, **ONE}, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"case {case!r} of {Path(words[0]).name} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def answer(values: dict[str, Any]) -> None:
    """What a case prints for ``in_child``."""
    print(json.dumps(values), flush=True)


class Timed(NamedTuple):
    """Median seconds of the repetitions, and what the last one returned."""

    seconds: float
    result: Any


def in_turns(functions: dict[str, Callable[[], Any]], repeats: int) -> dict[str, Timed]:
    """Time every function ``repeats`` times, in turns: a busy moment of the machine then hits all of them."""
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    results: dict[str, Any] = {}
    for _ in range(repeats):
        for name, function in functions.items():
            results.pop(name, None)  # two banks of the same function need not fit into memory
            gc.collect()
            start = time.perf_counter()
            results[name] = function()
            seconds[name].append(time.perf_counter() - start)
    return {name: Timed(statistics.median(seconds[name]), results[name]) for name in functions}


STATUS = Path("/proc/self/status")
GB = 1e9


def _status(field: str) -> int | None:
    """Bytes of a line of /proc/self/status, None where there is none."""
    if not STATUS.exists():
        return None
    for line in STATUS.read_text().splitlines():
        if line.startswith(field + ":"):
            return 1024 * int(line.split()[1])
    return None


def resident() -> int:
    """Bytes resident now; the peak where the system does not say."""
    now = _status("VmRSS")
    return peak() if now is None else now


def peak() -> int:
    """Most bytes resident since the start, or since ``reset_peak``."""
    # ru_maxrss is the fallback only: on Linux a child inherits the figure of the parent that started it
    high = _status("VmHWM")
    if high is not None:
        return high
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most


def reset_peak() -> bool:
    """Let the peak start from what is resident now; False where the system cannot."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


@dataclass
class Counts:
    """Inner solves (an SVM each, for the hinge loss) and the steps they took together."""

    solves: int = 0
    steps: int = 0


@contextmanager
def counted() -> Iterator[Counts]:
    """Count the inner solves inside the block."""
    from kernelweave.problems import mkl

    counts, solve = Counts(), mkl.solve_fixed

    def counting(*arguments: Any, **named: Any) -> Any:
        solution = solve(*arguments, **named)
        counts.solves += 1
        counts.steps += solution.iterations
        return solution

    mkl.solve_fixed = counting
    try:
        yield counts
    finally:
        mkl.solve_fixed = solve


def runs_by_set(
    description: str, kept: Path, sets: Sequence[str], few: Sequence[str], splits: int,
    measure: Callable[[str, int], dict[str, Any]],
) -> tuple[Any, bool]:  # fmt: skip
    """Measure splits of data sets as the command line asks for, joined with rows of other sets that were kept.

    Returns the table of all runs, and whether to write (not with ``--quick``, which takes one split of ``few`` sets).
    """
    import pandas as pd

    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="one split of three sets, nothing is written")
    parser.add_argument("--table", action="store_true", help="make the table of what was measured before")
    parser.add_argument("--splits", type=int, default=splits, help="of each set")
    parser.add_argument("--sets", nargs="*", choices=list(sets), help="only these; the others as before")
    options = parser.parse_args()
    pin()
    print(machine())
    warnings.simplefilter("ignore", UserWarning)
    names = few if options.quick else () if options.table else options.sets or list(sets)
    runs = []
    for name in names:
        for seed in range(1 if options.quick else options.splits):
            runs.append(measure(name, seed))
            print(runs[-1], flush=True)
    table = pd.DataFrame(runs)
    if (options.sets or options.table) and kept.exists():
        before = pd.read_csv(kept)
        table = pd.concat([before[~before["set"].isin(names)], table], ignore_index=True)
    return table, not options.quick


# Tables.

RESULTS = Path(__file__).resolve().parent.parent / "docs" / "results"
#: rows of single runs, from which a benchmark goes on; no page shows them
RUNS = RESULTS.parents[1] / "studies" / "results"


def show(rows: list[dict]) -> None:
    """Print a table in columns; the keys of the first row are the headings."""
    table = [list(rows[0]), *[[cell(row[key]) for key in rows[0]] for row in rows]]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for line in table:
        print("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())
    print(flush=True)


def write_table(name: str, rows: list[dict], command: str, note: str = "") -> None:
    """Write ``docs/results/<name>.csv`` and ``.md``; see ``kernelweave_studies.tables``."""
    tables.write_table(RESULTS, name, rows, command, note)


def run_part(main: Callable[[], Any], **parts: Callable[[], Any]) -> None:
    """Run the part of a script that its first argument names, or ``main`` where it names none."""
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name in parts:
        del sys.argv[1]
    sys.exit(parts.get(name, main)())


# Runs that go on where they were stopped.


class Runs:
    """Results by part, set, split and method, in a file that is written after each."""

    FIELDS = ("part", "set", "split", "method", "score", "seconds")

    def __init__(self, file: Path, processor: bool = False) -> None:
        self.file, self.processor = file, processor
        self.known = self._kept()

    def _kept(self) -> dict[tuple[str, ...], tuple[float, float]]:
        """Return what is in the file."""
        if not self.file.exists():
            return {}
        with self.file.open(newline="") as file:
            rows = list(csv.DictReader(file))
        return {
            tuple(row[name] for name in self.FIELDS[:4]): (float(row["score"]), float(row["seconds"]))
            for row in rows
        }

    def put(self, part: str, name: str, split: int, method: str, run: Callable[[], float]) -> None:
        """Run what is not known yet, and write all that is."""
        key = (part, name, str(split), method)
        if key in self.known:
            return
        clock = time.process_time if self.processor or part == "speed" else time.perf_counter
        began = clock()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            score = run()
        self.known = self._kept() | {key: (score, clock() - began)}  # other parts may be running
        print(*key, f"{score:.4f}", f"{self.known[key][1]:.1f} s", flush=True)
        with self.file.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(self.FIELDS)
            writer.writerows([*key, f"{a:.6g}", f"{b:.3g}"] for key, (a, b) in sorted(self.known.items()))

    def of(self, part: str, name: str) -> dict[str, np.ndarray]:
        """Return scores and seconds of every method, split by split."""
        found: dict[str, list[tuple[float, float]]] = {}
        for (a, b, _, method), values in sorted(self.known.items()):
            if (a, b) == (part, name):
                found.setdefault(method, []).append(values)
        return {method: np.array(values) for method, values in found.items()}


# The standard problems.

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
        return build_bank(self.expanded, self.X, **options)


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


def again_in_turns(runners: list[Any], repeats: int, long: float) -> None:
    """Run each once more per repeat, in turns, those that take long excepted: a busy machine slows all alike."""
    for _ in range(repeats - 1):
        for runner in runners:
            if runner.seconds[0] < long:
                runner.once()
