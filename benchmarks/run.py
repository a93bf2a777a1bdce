"""Run the benchmarks, each in a process of its own, and sum up which targets were reached.

Run ``python benchmarks/run.py`` for all of them, ``python benchmarks/run.py passes startup`` for some; ``--quick``
takes minutes instead of an hour and writes nothing. Real data come from the folder named by ``KERNELWEAVE_DATA``.
"""

from __future__ import annotations

import argparse
import csv
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from _measure import ONE, RESULTS, machine, show, write_table

HERE = Path(__file__).resolve().parent
#: in this order: counts first, then the longer ones, those that need other packages last
BENCHMARKS = (
    "passes",
    "startup",
    "walk",
    "small_fit",
    "prediction",
    "path",
    "demo",
    "multiclass",
    "structure",
    "scaling",
    "engines",
    "candidates",
    "screening",
    "svm_engine",
    "single",
    "convergence",
    "streaming",
    "missing",
    "agreement",
    "targets",
    "rivals",
)
#: benchmarks that are a part of a script
PARTS = {
    "small_fit": ("startup", "small_fit"),
    "prediction": ("scaling", "prediction"),
    "path": ("passes", "path"),
    "convergence": ("passes", "convergence"),
    "engines": ("passes", "engines"),
    "svm_engine": ("passes", "svm"),
    "streaming": ("large", "streaming"),
    "screening": ("candidates", "screening"),
    "single": ("rivals", "single"),
}
#: a module without which a benchmark cannot run
NEEDS = {"rivals": "MKLpy", "targets": "himalaya", "agreement": "cvxpy", "streaming": "pyarrow"}
EXTRAS = {
    "MKLpy": "pip install 'kernelweave[rivals]', or --rivals-python",
    "himalaya": "pip install 'kernelweave[rivals]', or --rivals-python",
    "cvxpy": "pip install 'kernelweave[test]'",
    "pyarrow": "pip install 'kernelweave[parquet]'",
}
VERDICT = re.compile(r"^(PASS|FAIL)\s+(.*?)(?::\s*(\S+)\s+\((.*)\))?$")
NOTE = """What every benchmark has to reach, and what it measured; the tables beside this one say how. Written by
`benchmarks/run.py`; benchmarks that were not run this time keep their lines."""
COLUMNS = ("benchmark", "verdict", "what", "measured", "target")


class Outcome(NamedTuple):
    """How a benchmark ended: its lines of the summary, seconds, and an exit status (None: it was not run)."""

    rows: list[dict[str, str]]
    seconds: float
    status: int | None


def run(name: str, quick: bool, python: str) -> Outcome:
    """Run one benchmark, pass its output on, and collect the lines about targets."""
    file, *part = PARTS.get(name, (name,))
    script = HERE / f"{file}.py"
    missing = f"there is no {script.name}" if not script.exists() else _missing_module(name, python)
    if missing:
        print(f"=== {name}: skipped, {missing}\n", flush=True)
        return Outcome([], 0.0, None)
    command = [python, str(script), *part, *(["--quick"] if quick else [])]
    print(f"=== {' '.join(command)}", flush=True)
    start, rows = time.perf_counter(), []
    environment = {**os.environ, **ONE, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        for line in child.stdout:
            print(line, end="", flush=True)
            match = VERDICT.match(line.rstrip())
            if match:
                verdict, what, measured, target = (part or "" for part in match.groups())
                rows.append(dict(zip(COLUMNS, (name, verdict, what, measured, target), strict=True)))
    seconds = time.perf_counter() - start
    print(f"=== {name}: {seconds:.0f} s, exit status {child.returncode}\n", flush=True)
    if child.returncode != 0 and not any(row["verdict"] == "FAIL" for row in rows):
        rows.append(
            dict(zip(COLUMNS, (name, "FAIL", "the benchmark itself", "", "runs to its end"), strict=True))
        )
    return Outcome(rows, seconds, child.returncode)


def _missing_module(name: str, python: str) -> str:
    module = NEEDS.get(name)
    if (
        module is None
        or subprocess.run([python, "-c", f"import {module}"], capture_output=True).returncode == 0
    ):
        return ""
    return f"{python} has no {module} ({EXTRAS[module]})"


def earlier(names: set[str]) -> dict[str, list[dict[str, str]]]:
    """Lines of the last summary about benchmarks that were not run now."""
    kept: dict[str, list[dict[str, str]]] = {}
    path = RESULTS / "summary.csv"
    if path.exists():
        with open(path, newline="") as file:
            for row in csv.DictReader(file):
                if row["benchmark"] not in names:
                    kept.setdefault(row["benchmark"], []).append(row)
    return kept


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "names", nargs="*", metavar="name", help=f"benchmarks to run: {', '.join(BENCHMARKS)}"
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, few runs, nothing is written")
    parser.add_argument("--rivals-python", default=sys.executable, help="an interpreter that has the rivals")
    options = parser.parse_args()
    unknown = set(options.names) - set(BENCHMARKS)
    if unknown:
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}")
    print(machine(), end="\n\n")
    outcomes = {}
    for name in [name for name in BENCHMARKS if name in (options.names or BENCHMARKS)]:
        python = options.rivals_python if name in ("rivals", "targets") else sys.executable
        outcomes[name] = run(name, options.quick, python)
    ran = {name: outcome for name, outcome in outcomes.items() if outcome.status is not None}
    rows = [row for outcome in ran.values() for row in outcome.rows]
    if rows:
        show(rows)
    for name, outcome in outcomes.items():
        print(f"{name}: {f'{outcome.seconds:.0f} s' if outcome.status is not None else 'skipped'}")
    failed = [row for row in rows if row["verdict"] == "FAIL"]
    print(f"{len(rows) - len(failed)} targets reached, {len(failed)} missed")
    if rows and not options.quick:
        lines = {**earlier(set(ran)), **{name: outcome.rows for name, outcome in ran.items()}}
        table = [row for name in BENCHMARKS for row in lines.get(name, [])]
        write_table("summary", table, "python benchmarks/run.py", NOTE)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
