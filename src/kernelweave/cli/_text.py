"""Plain-text tables and lists that fit the terminal."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Sequence

__all__ = ["listing", "table", "width"]


def width(most: int = 110) -> int:
    """Columns to write in: the terminal's, 80 where the output is a file or a pipe, never absurdly many."""
    return max(60, min(most, shutil.get_terminal_size((80, 24)).columns))


def listing(entries: Sequence[tuple[str, str, str]], columns: int | None = None) -> str:
    """Write names with a text and a note each, wrapped beside the names.

    Examples
    --------
    >>> print(listing([("level", "cutting planes", "needs norm='l1'"), ("l1", "the sum", "")], columns=60))
      level  cutting planes
             needs norm='l1'
      l1     the sum
    """
    size = max(len(name) for name, _, _ in entries)
    room = (columns or width()) - size - 4
    lines = []
    for name, *texts in entries:
        wrapped = [line for text in texts for line in textwrap.wrap(text, room)]
        lines += [f"  {(name if k == 0 else '').ljust(size)}  {line}" for k, line in enumerate(wrapped)]
    return "\n".join(lines)


def table(head: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    """Write a table; the columns in ``right`` are aligned to the right.

    Examples
    --------
    >>> print(table(["name", "n"], [["iris", "150"], ["digits", "1797"]], right=[1]))
      name       n
      ------  ----
      iris     150
      digits  1797
    """
    sizes = [max(len(row[k]) for row in [head, *rows]) for k in range(len(head))]
    lines = []
    for row in [head, ["-" * size for size in sizes], *rows]:
        cells = zip(row, sizes, strict=True)
        padded = [c.rjust(size) if k in right else c.ljust(size) for k, (c, size) in enumerate(cells)]
        lines.append(("  " + "  ".join(padded)).rstrip())
    return "\n".join(lines)
