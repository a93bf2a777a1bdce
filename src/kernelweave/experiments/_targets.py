"""Targets and whether they were reached: printed as lines that can be collected."""

from __future__ import annotations

from math import isnan
from typing import NamedTuple

from ._tables import cell


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
