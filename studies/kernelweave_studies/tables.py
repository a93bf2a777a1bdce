"""Write reported tables: rows as CSV and Markdown with the command, the date and the machine; targets; means."""

from __future__ import annotations

import csv
import datetime
import os
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from math import isnan
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Array = NDArray[np.float64]

_PACKAGES = ("kernelweave", "numpy", "scipy", "scikit-learn", "numba")


def _processor() -> str:
    """CPU model, with its family and model number where the name alone says little."""
    facts: dict[str, str] = {}
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    for line in lines:
        key, _, value = line.partition(":")
        facts.setdefault(key.strip(), value.strip())
    name = facts.get("model name", platform.machine())
    numbers = [f"{key} {facts[key]}" for key in ("cpu family", "model") if key in facts]
    return f"{name} ({', '.join(numbers)})" if numbers else name


def _memory() -> str:
    try:
        return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB"
    except (AttributeError, ValueError, OSError):
        return "unknown memory"


def _load() -> str:
    """Load average: times from a busy machine are to be read as such."""
    return f"load average {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown load"


def _versions() -> str:
    versions = []
    for package in _PACKAGES:
        try:
            versions.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return ", ".join(versions)


def machine() -> str:
    """One line about the machine and the software on it."""
    return (
        f"{_processor()}, {os.cpu_count()} cores, {_memory()}, {_load()}, {platform.system()} {platform.release()}, "
        f"Python {platform.python_version()}, {_versions()}"
    )


def cell(value: object) -> str:
    """A value as tables show it.

    >>> cell(12345.6), cell(0.012345), cell("text")
    ('12346', '0.0123', 'text')
    """
    if not isinstance(value, float):
        return "" if value is None else str(value)
    if value != value:  # not a number: nothing was measured
        return ""
    # no exponent where the plain number is as short
    return f"{value:.0f}" if 1000.0 <= abs(value) < 1e6 else f"{value:.3g}"


def markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """Write rows as a Markdown table; the keys of the first row are the columns.

    >>> print(markdown([{"set": "sonar", "n": 208}]))
    | set | n |
    | --- | --- |
    | sonar | 208 |
    """
    columns = list(rows[0])
    lines = [columns, ["---"] * len(columns), *[[cell(row[column]) for column in columns] for row in rows]]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def write_table(
    folder: Path, name: str, rows: Sequence[Mapping[str, Any]], command: str, note: str = "", title: str = ""
) -> None:
    """Write ``name.csv`` and ``name.md`` into a folder.

    Parameters
    ----------
    folder : path
        Made where it does not exist.
    name : str
        Name of the files.
    rows : list of dict
        The table; the keys of the first row are the columns.
    command : str
        The command that produces it.
    note : str, optional
        Text between the heading and the table.
    title : str, optional
        Heading; the name by default.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / f"{name}.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    about = f"`{command}`, {datetime.date.today().isoformat()}, on {machine()}."
    parts = [f"# {title or name}", about, note, markdown(rows)]
    (folder / f"{name}.md").write_text("\n\n".join(part for part in parts if part) + "\n", encoding="utf-8")


def mean_sd(values: Array | pd.Series, scale: float = 100.0) -> str:
    """Return mean and standard deviation as tables print them.

    >>> mean_sd(np.array([0.8, 0.9]))
    '85.0 ± 7.1'
    """
    v = scale * np.asarray(values, dtype=float)
    return f"{v.mean():.1f} ± {v.std(ddof=1):.1f}" if v.size > 1 else f"{v.mean():.1f}"


def wide(rows: pd.DataFrame, index: str | list[str], value: str = "accuracy") -> pd.DataFrame:
    """Return one row per run and one column per method; runs that lack a method are left out."""
    return rows.pivot_table(index=index, columns="method", values=value, sort=False).dropna()


class Target(NamedTuple):
    """One line: what was measured, its value, the bound, and the verdict.

    ``PASS`` and ``FAIL`` are for targets of which everything was run; ``so far`` where some runs are left out, and
    ``not run`` where there is nothing to measure.
    """

    what: str
    measured: float
    bound: str
    verdict: str

    @property
    def reached(self) -> bool:
        """Whether the target is known to hold."""
        return self.verdict == "PASS"

    def __str__(self) -> str:
        value = "" if self.verdict == "not run" and isnan(self.measured) else f" {cell(self.measured)}"
        return f"{self.verdict}  {self.what}:{value} ({self.bound})"


class Targets:
    """The targets of one benchmark.

    Parameters
    ----------
    complete : bool
        Whether everything was run that the targets are about; if not, none of them is decided.
    """

    def __init__(self, complete: bool = True) -> None:
        self.all: list[Target] = []
        self.complete = complete

    def at_most(self, what: str, measured: float, limit: float) -> None:
        """Require ``measured <= limit``."""
        self._take(
            Target(what, float(measured), f"at most {limit:g}", self._verdict(measured, measured <= limit))
        )

    def at_least(self, what: str, measured: float, limit: float) -> None:
        """Require ``measured >= limit``."""
        self._take(
            Target(what, float(measured), f"at least {limit:g}", self._verdict(measured, measured >= limit))
        )

    def were_run(self, what: str, count: float, needed: float) -> None:
        """Say whether as much was run as there should be; too little is not a failure."""
        verdict = "not run" if count < needed else "PASS" if self.complete else "so far"
        self._take(Target(what, float(count), f"at least {needed:g}", verdict))

    def _verdict(self, measured: float, holds: bool) -> str:
        if self.complete:
            return "PASS" if holds else "FAIL"
        return "not run" if isnan(measured) else "so far"

    def _take(self, target: Target) -> None:
        self.all.append(target)
        print(target, flush=True)

    def text(self) -> str:
        """The targets as a list, for the note of a table."""
        return "\n".join(f"- {target}" for target in self.all)
