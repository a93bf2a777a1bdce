"""The time limit that a fit opens around its work, for tests of what has to look at it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kernelweave._numerics.stopping import Deadline, OutOfTime, time_limit


@contextmanager
def fit_with_a_point() -> Iterator[Deadline]:
    """Pretend to be a fit that has something to return, so that a step may be left: ``interrupt()`` ends its time."""
    with time_limit(None) as deadline:
        deadline.has_point = True
        yield deadline


def is_left(step: Callable[[], object]) -> bool:
    """Whether a step ends because there is no time."""
    try:
        step()
    except OutOfTime:
        return True
    return False
