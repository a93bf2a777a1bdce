"""What every benchmark reports: a table on the screen, and as CSV and Markdown in ``docs/results``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kernelweave_studies import tables
from kernelweave_studies.tables import Target, Targets, cell, machine

__all__ = ["RESULTS", "RUNS", "Target", "Targets", "cell", "machine", "run_part", "show", "write_table"]

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
