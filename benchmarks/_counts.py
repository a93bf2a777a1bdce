"""Counting what no machine changes: inner solves and their steps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import kernelweave.problems.mkl as mkl


@dataclass
class Counts:
    """Inner solves (an SVM each, for the hinge loss) and the steps they took together."""

    solves: int = 0
    steps: int = 0


@contextmanager
def counted() -> Iterator[Counts]:
    """Count the inner solves inside the block."""
    counts, solve = Counts(), mkl.solve_fixed

    def counting(*arguments: Any, **named: Any) -> Any:
        solution = solve(*arguments, **named)
        counts.solves += 1
        counts.steps += solution.iterations
        return solution

    mkl.solve_fixed = counting
    try:
        yield counts
    finally:
        mkl.solve_fixed = solve
