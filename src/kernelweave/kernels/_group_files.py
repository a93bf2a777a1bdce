"""Files of groups: gene sets in GMT, and tables of columns and groups."""

from __future__ import annotations

import csv
import gzip
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

__all__ = ["read_gmt", "read_groups"]


def read_gmt(path: str | Path) -> dict[str, tuple[str, ...]]:
    """Read gene sets from a GMT file, plain or compressed (``.gz``).

    A line is a set: its name, a description and its members, separated by tabs.  Empty lines are skipped, members that
    are named twice count once.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    dict
        Members by the name of their set, in the order of the file.
    """
    found: dict[str, tuple[str, ...]] = {}
    names: list[str] = []
    for number, line in _lines(path):
        name, *rest = (field.strip() for field in line.split("\t"))
        members = tuple(dict.fromkeys(member for member in rest[1:] if member))
        if not name or not members:
            raise ValueError(
                f"{path}, line {number}: a gene set is a name, a description and genes, separated by tabs; got "
                f"{line[:60]!r}"
            )
        names.append(name)
        found[name] = members
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(
            f"{path}: sets of the same name: {', '.join(map(repr, twice[:5]))}; rename or remove the copies"
        )
    if not found:
        raise ValueError(f"{path} holds no gene set: every line is empty")
    return found


def read_groups(path: str | Path) -> dict[str, tuple[str, ...]]:
    """Read groups from a CSV file with the columns ``column`` and ``group``; a column may be in several groups.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    dict
        Columns by the name of their group, in the order of the file.
    """
    lines = [line for _, line in _lines(path)]
    table = csv.DictReader(lines)
    heads = [head.strip() for head in table.fieldnames or ()]
    if not {"column", "group"} <= set(heads):
        raise ValueError(
            f"{path}: a table of groups has the columns 'column' and 'group'; got {', '.join(heads) or 'nothing'}"
        )
    table.fieldnames = heads
    found: dict[str, dict[str, None]] = {}
    for row in table:
        column, group = (row["column"] or "").strip(), (row["group"] or "").strip()
        if not column or not group:
            raise ValueError(f"{path}, line {table.line_num}: both a column and a group are needed")
        found.setdefault(group, {})[column] = None
    if not found:
        raise ValueError(f"{path} names no group: there is nothing below its heading")
    return {group: tuple(columns) for group, columns in found.items()}


def _lines(path: str | Path) -> Iterator[tuple[int, str]]:
    """Lines with something in them, and their numbers."""
    opened = gzip.open if str(path).endswith(".gz") else open
    try:
        with opened(path, "rt", encoding="utf-8-sig") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield number, line.rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is no text in UTF-8 ({error.reason} at byte {error.start})") from error
