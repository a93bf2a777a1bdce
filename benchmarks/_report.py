"""What every benchmark reports: the machine, and a table as CSV and as Markdown."""

from __future__ import annotations

import csv
import datetime
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

RESULTS = Path(__file__).resolve().parent.parent / "docs" / "results"
_PACKAGES = ("kernelweave", "numpy", "scipy", "scikit-learn", "numba")


def _processor() -> str:
    """CPU model, with its family and model number where the name alone says little."""
    found: dict[str, str] = {}
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    for line in lines:
        key, _, value = line.partition(":")
        found.setdefault(key.strip(), value.strip())
    name = found.get("model name", platform.machine())
    numbers = [f"{key} {found[key]}" for key in ("cpu family", "model") if key in found]
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
    found = []
    for package in _PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return ", ".join(found)


def machine() -> str:
    """One line about the machine and the software on it."""
    return (
        f"{_processor()}, {os.cpu_count()} cores, {_memory()}, {_load()}, {platform.system()} {platform.release()}, "
        f"Python {platform.python_version()}, {_versions()}"
    )


def cell(value: object) -> str:
    """A value as tables show it."""
    if not isinstance(value, float):
        return str(value)
    # no exponent where the plain number is as short
    return f"{value:.0f}" if 1000.0 <= abs(value) < 1e6 else f"{value:.3g}"


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def show(rows: list[dict]) -> None:
    """Print a table in columns; the keys of the first row are the headings."""
    table = [list(rows[0]), *[[cell(row[key]) for key in rows[0]] for row in rows]]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for line in table:
        print("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())
    print(flush=True)


def write_table(name: str, rows: list[dict], command: str, note: str = "") -> None:
    """Write ``docs/results/<name>.csv`` and ``.md``.

    Parameters
    ----------
    name : str
        Name of the benchmark, and of the files.
    rows : list of dict
        The table; the keys of the first row are the columns.
    command : str
        The command that produces it.
    note : str, optional
        Text between the heading and the table.
    """
    RESULTS.mkdir(parents=True, exist_ok=True)
    columns = list(rows[0])
    with open(RESULTS / f"{name}.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)
    table = [_line(columns), _line(["---"] * len(columns))]
    table += [_line([cell(row[column]) for column in columns]) for row in rows]
    about = f"`{command}`, {datetime.date.today().isoformat()}, on {machine()}."
    parts = [f"# {name}", about, note, "\n".join(table)]
    (RESULTS / f"{name}.md").write_text("\n\n".join(part for part in parts if part) + "\n")
