"""Counting bytes before spending them."""

from __future__ import annotations

import re

from .._numerics.memory import default_budget
from ..exceptions import MemoryBudgetError

__all__ = ["default_budget", "human", "parse_bytes", "refuse"]

_UNITS = {
    "": 1,
    "K": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "KI": 2**10,
    "MI": 2**20,
    "GI": 2**30,
    "TI": 2**40,
}


def human(size: float) -> str:
    """Write a number of bytes for people.

    >>> human(3_520_000_000)
    '3.5 GB'
    """
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if size < 1000 or unit == "TB":
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000.0
    raise AssertionError


def parse_bytes(budget: int | float | str | None) -> int:
    """Return a budget in bytes from a number, a text such as ``"2GB"``, or None (half of what there is)."""
    if budget is None:
        return default_budget()
    if isinstance(budget, str):
        match = re.fullmatch(r"\s*([0-9.]+)\s*([KMGT]?I?)B?\s*", budget.upper())
        if match is None:
            raise ValueError(f"memory_budget {budget!r} is not a size: write it like '2GB' or 2e9")
        return int(float(match[1]) * _UNITS[match[2]])
    if not (isinstance(budget, int | float) and budget > 0):
        raise ValueError(
            f"memory_budget must be a positive number of bytes or a text like '2GB', got {budget!r}"
        )
    return int(budget)


def refuse(what: str, needed: int, budget: int, ways: list[str]) -> MemoryBudgetError:
    """Make the error for a request beyond the budget: the number of bytes, and the ways out."""
    return MemoryBudgetError(
        f"{what} needs {human(needed)} ({needed:,} bytes), but memory_budget is {human(budget)} "
        f"({budget:,} bytes). Ways out: {'; '.join(ways)}."
    )
