"""Which data sets can be had here, asked once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

__all__ = ["at_hand", "not_at_hand"]


@cache
def _reason(load: Callable[[str], Any], name: str) -> str:
    """Return why a set cannot be loaded, or nothing."""
    try:
        load(name)
    except (OSError, ValueError) as error:
        return str(error)
    return ""


def at_hand(load: Callable[[str], Any], names: Sequence[str]) -> list[str]:
    """Return the sets that load."""
    return [name for name in names if not _reason(load, name)]


def not_at_hand(load: Callable[[str], Any], names: Sequence[str]) -> list[str]:
    """Return a sentence about each of the others."""
    return [reason.rstrip(".") for name in names if (reason := _reason(load, name))]
