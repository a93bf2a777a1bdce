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

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Deadline",
    "OutOfTime",
    "check_time",
    "given_up",
    "in_time",
    "interrupted",
    "out_of_time",
    "time_left",
    "time_limit",
    "time_spent",
]

#: multiply-adds between two looks at the clock where there is a time limit
GLANCE = 10_000_000


class OutOfTime(Exception):
    """Leave a step that the time limit has overtaken; the loop keeps the best point it has."""


class Deadline:
    """When a fit has to end.

    Attributes
    ----------
    ends : float
        Moment in seconds of ``time.perf_counter``; infinite without a limit.
    reserved : float
        Seconds before that which are kept for what comes after the solver.
    has_point : bool
        Whether the fit can return something by now: only then may a step be left in the middle.
    winding_up : bool
        Whether what was found is being put in order: an interrupt need not, and must not, stop that.
    keeps_best : bool
        Whether an interrupted fit returns its best point; see ``interrupts.one_interrupt``.
    """

    def __init__(
        self, seconds: float | None = None, outer: Deadline | None = None, whole_fit: bool = False
    ) -> None:
        self.outer = outer
        self.whole_fit = whole_fit
        self.began = time.perf_counter()
        self.ends = math.inf if seconds is None else self.began + seconds
        self.reserved = 0.0
        self.has_point = False
        self.winding_up = False
        self.keeps_best: bool = outer is None or outer.keeps_best
        self._interrupted = False

    @property
    def outermost(self) -> Deadline:
        """The limit around all others: that of the whole fit, or of the command that it is part of."""
        return self if self.outer is None else self.outer.outermost

    @property
    def interrupted(self) -> bool:
        """Whether the fit was interrupted from the keyboard."""
        return self._interrupted or (self.outer is not None and self.outer.interrupted)

    def interrupt(self) -> None:
        """Let no time be left to the whole fit, from now on."""
        self.outermost._interrupted = True

    def extend(self, seconds: float) -> None:
        """Grant so many more seconds, to be used up: what runs in them is not left in the middle."""
        self.ends += seconds
        self.has_point = False

    @property
    def in_whole_fit(self) -> bool:
        """Whether a whole fit is around it, which has work to do after the limit."""
        return self.whole_fit or (self.outer is not None and self.outer.in_whole_fit)

    @property
    def left(self) -> float:
        """Seconds left; negative when there are none, infinite without a limit."""
        own = -math.inf if self._interrupted else self.ends - self.reserved - time.perf_counter()
        return own if self.outer is None else min(own, self.outer.left)


_current: ContextVar[Deadline | None] = ContextVar("kernelweave_deadline", default=None)


@contextmanager
def time_limit(seconds: float | None, whole_fit: bool = False) -> Iterator[Deadline]:
    """Let everything inside end after so many seconds, or with the limit around it if that is earlier.

    ``whole_fit`` says that a fit begins here, of which ``time_spent`` tells the time.
    """
    deadline = Deadline(seconds, _current.get(), whole_fit)
    token = _current.set(deadline)
    try:
        yield deadline
    finally:
        _current.reset(token)


def time_left() -> float:
    """Return the seconds left to the fit that this runs in; infinite where there is no limit."""
    deadline = _current.get()
    return math.inf if deadline is None else deadline.left


def time_spent() -> float:
    """Return the seconds since the fit began that this runs in; 0 outside of any."""
    deadline = _current.get()
    while deadline is not None and not deadline.whole_fit:
        deadline = deadline.outer
    return 0.0 if deadline is None else time.perf_counter() - deadline.began


def interrupted() -> bool:
    """Return whether the fit that this runs in was interrupted from the keyboard."""
    deadline = _current.get()
    return deadline is not None and deadline.interrupted


def given_up() -> bool:
    """Return whether the fit that this runs in was interrupted and its caller needs complete fits only."""
    deadline = _current.get()
    return deadline is not None and deadline.interrupted and not deadline.keeps_best


def out_of_time() -> bool:
    """Return whether to stop here, with the best that was found so far."""
    return time_left() <= 0.0


def check_time(needed: float = 0.0, preparing: bool = False) -> None:
    """Raise ``OutOfTime`` where less than ``needed`` seconds are left and the fit has a point to return instead.

    ``preparing`` says that the work is long and comes before any point: then the fit returns where it would have begun.
    """
    deadline = _current.get()
    if deadline is not None and (deadline.has_point or preparing) and deadline.left <= needed:
        raise OutOfTime


def in_time(order: NDArray[np.intp], price: int) -> Iterator[NDArray[np.intp]]:
    """Cut an order into parts that a time limit can come between; ``price`` is the most that a row costs."""
    size = order.size if time_left() == math.inf else max(1, GLANCE // max(price, 1))
    for first in range(0, order.size, size):
        check_time()
        yield order[first : first + size]
