"""Seconds, memory and counts: functions that take turns, processes of their own, peaks, inner solves."""

from __future__ import annotations

import argparse
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

    from _report import machine

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
