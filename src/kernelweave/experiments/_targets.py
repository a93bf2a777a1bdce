"""Targets and whether they were reached: printed as lines that can be collected."""

from __future__ import annotations

from typing import NamedTuple

from ._tables import cell


class Target(NamedTuple):
    """One line: what was measured, its value, the bound, and whether it holds."""

    what: str
    measured: float
    bound: str
    reached: bool

    def __str__(self) -> str:
        verdict = "PASS" if self.reached else "FAIL"
        return f"{verdict}  {self.what}: {cell(self.measured)} ({self.bound})"


class Targets:
    """The targets of one benchmark."""

    def __init__(self) -> None:
        self.all: list[Target] = []

    def at_most(self, what: str, measured: float, limit: float) -> None:
        """Require ``measured <= limit``."""
        self._take(Target(what, float(measured), f"at most {limit:g}", bool(measured <= limit)))

    def at_least(self, what: str, measured: float, limit: float) -> None:
        """Require ``measured >= limit``."""
        self._take(Target(what, float(measured), f"at least {limit:g}", bool(measured >= limit)))

    def _take(self, target: Target) -> None:
        self.all.append(target)
        print(target, flush=True)

    def text(self) -> str:
        """The targets as a list, for the note of a table."""
        return "\n".join(f"- {target}" for target in self.all)
