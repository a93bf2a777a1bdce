"""The time limit of a fit, which inner solvers look up instead of being handed it.

A fit opens a limit; whatever runs inside it, at any depth, asks ``out_of_time()`` between two pieces of work and
returns its best so far, or calls ``check_time()`` where it has nothing of its own to return and the fit has.  Limits
nest: the earliest end counts.  A limit belongs to the thread that opened it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["Deadline", "OutOfTime", "check_time", "out_of_time", "time_left", "time_limit"]


class OutOfTime(Exception):
    """Leave a step that the time limit has overtaken; the loop keeps the best point it has."""


class Deadline:
    """When a fit has to end.

    Attributes
    ----------
    ends : float
        Moment in seconds of ``time.perf_counter``; infinite without a limit.
    has_point : bool
        Whether the fit can return something by now: only then may a step be left in the middle.
    """

    def __init__(self, seconds: float | None = None, outer: Deadline | None = None) -> None:
        self.outer = outer
        self.ends = math.inf if seconds is None else time.perf_counter() + seconds
        self.has_point = False
        self._over = False

    def end(self) -> None:
        """Let no time be left, from now on."""
        self._over = True

    def extend(self, seconds: float) -> None:
        """Grant so many more seconds, to be used up: what runs in them is not left in the middle."""
        self.ends += seconds
        self.has_point = False

    @property
    def left(self) -> float:
        """Seconds left; negative when there are none, infinite without a limit."""
        own = -math.inf if self._over else self.ends - time.perf_counter()
        return own if self.outer is None else min(own, self.outer.left)


_current: ContextVar[Deadline | None] = ContextVar("kernelweave_deadline", default=None)


@contextmanager
def time_limit(seconds: float | None) -> Iterator[Deadline]:
    """Let everything inside end after so many seconds, or with the limit around it if that is earlier."""
    deadline = Deadline(seconds, _current.get())
    token = _current.set(deadline)
    try:
        yield deadline
    finally:
        _current.reset(token)


def time_left() -> float:
    """Return the seconds left to the fit that this runs in; infinite where there is no limit."""
    deadline = _current.get()
    return math.inf if deadline is None else deadline.left


def out_of_time() -> bool:
    """Return whether to stop here, with the best that was found so far."""
    return time_left() <= 0.0


def check_time() -> None:
    """Raise ``OutOfTime`` where no time is left and the fit has a point that it can return instead."""
    deadline = _current.get()
    if deadline is not None and deadline.has_point and deadline.left <= 0.0:
        raise OutOfTime
