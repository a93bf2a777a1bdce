"""Where a bank can be stored, and bytes counted before they are spent."""

from __future__ import annotations

import re
from typing import Literal, get_args

from .._numerics.resources import default_budget
from ..exceptions import MemoryBudgetError

#: memory of this process; a device of torch; workers of a cluster, with kernel values or with explicit features
Place = Literal["host", "device", "cluster", "features on a cluster"]

#: storage -> the places that have it
STORAGES: dict[str, tuple[Place, ...]] = {
    "auto": get_args(Place),
    "family": ("host",),
    "dense": ("host", "device", "cluster"),
    "lowrank": ("host", "device", "features on a cluster"),
    "lazy": ("host", "device", "cluster"),
    "stream": ("host", "features on a cluster"),
}

WORDS = {"device": " with a device"}


def check_storage(storage: object, place: Place = "host") -> str:
    """Return the storage, or raise a ValueError that lists those of the place."""
    if isinstance(storage, str) and place in STORAGES.get(storage, ()):
        return storage
    names = [name for name, places in STORAGES.items() if place in places]
    there = ", ".join(names if place == "host" else sorted(names))
    if place == "cluster":
        raise ValueError(
            f"storage must be one of {there} for kernels on a cluster, or lowrank or stream for kernels with explicit "
            f"features, got {storage!r}"
        )
    raise ValueError(f"storage must be one of {there}{WORDS.get(place, '')}, got {storage!r}")


_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_UNITS |= {"KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}


def human(size: float) -> str:
    """Write a number of bytes in readable units.

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
