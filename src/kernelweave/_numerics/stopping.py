"""The time limit of a fit, and Ctrl-C: what inner solvers ask, and what happens to work that is interrupted.

A fit opens a limit; whatever runs inside it, at any depth, asks ``out_of_time()`` between two pieces of work and
returns its best so far, or calls ``check_time()`` where it has nothing of its own to return and the fit has.  Limits
nest: the earliest end counts.  A limit belongs to the thread that opened it.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: multiply-adds between two looks at the clock where there is a time limit
GLANCE = 10_000_000


class OutOfTime(Exception):
    """Leave a step that the time limit has overtaken; the loop keeps the best point it has."""


class Deadline:
    """When a fit has to end."""

    def __init__(
        self, seconds: float | None = None, outer: Deadline | None = None, whole_fit: bool = False
    ) -> None:
        self.outer, self.whole_fit = outer, whole_fit
        #: the limit around all others: that of the whole fit, or of the command that it is part of
        self.outermost: Deadline = self if outer is None else outer.outermost
        #: whether a whole fit is around it, which has work to do after the limit
        self.in_whole_fit: bool = whole_fit or (outer is not None and outer.in_whole_fit)
        #: whether an interrupted fit returns its best point; see ``one_interrupt``
        self.keeps_best: bool = outer is None or outer.keeps_best
        self.began = time.perf_counter()
        self.ends = math.inf if seconds is None else self.began + seconds
        #: seconds before the end which are kept for what comes after the solver
        self.reserved = 0.0
        #: whether the fit can return something by now: only then may a step be left in the middle
        self.has_point = False
        #: whether what was found is being put in order: an interrupt need not, and must not, stop that
        self.winding_up = False
        self._interrupted = False

    @property
    def interrupted(self) -> bool:
        """Whether the fit was interrupted from the keyboard."""
        return self.outermost._interrupted

    def interrupt(self) -> None:
        """Let no time be left to the whole fit, from now on."""
        self.outermost._interrupted = True

    @property
    def left(self) -> float:
        """Seconds left; negative when there are none, infinite without a limit."""
        if self.outermost._interrupted:
            return -math.inf
        ends, around = self.ends - self.reserved, self.outer
        while around is not None:
            ends, around = min(ends, around.ends - around.reserved), around.outer
        return ends - time.perf_counter()


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
    deadline = _current.get()
    return deadline is not None and deadline.left <= 0.0


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


#: operations in a second until they were measured: fewer than any machine manages, so that the first piece is short
SLOW = 1e8
#: no piece takes less than this many seconds
SHORTEST = 2e-3


class Pieces:
    """Says how much work to do before the clock is read again: as much as fits into half of the time left.

    Long pieces as long as there is time, short ones towards the end; without a limit there is one piece.
    """

    _speed = SLOW
    _began = 0.0

    def next(self) -> float:
        """Return the operations that may be done in the next piece, and start its clock."""
        deadline = _current.get()
        if deadline is None or deadline.left == math.inf:
            return math.inf
        self._began = time.perf_counter()
        return self._speed * max(0.5 * deadline.left, SHORTEST)

    def done(self, operations: float) -> None:
        """Learn from the piece how many operations fit into a second."""
        seconds = time.perf_counter() - self._began
        if self._began and seconds > 0.5 * SHORTEST:
            self._speed = max(operations / seconds, SLOW * 1e-3)


# Ctrl-C.  One fit keeps its best point, with the status ``interrupted``.  Whoever makes several fits to compare them
# needs all of them complete: inside ``one_interrupt(keeps_best=False)`` an interrupted fit raises
# ``KeyboardInterrupt`` instead.  Signals reach the main thread alone; elsewhere, and where a program has a handler of
# its own, nothing is changed.

#: seconds after the first Ctrl-C in which further ones are taken for the same wish
SAME_WISH = 5.0


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold Ctrl-C back until the work inside is complete: an import or a compilation cut in two stays broken."""
    main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGINT) if main else None
    if before is None:
        yield
        return
    waiting: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: waiting.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if waiting:
            signal.raise_signal(signal.SIGINT)


@contextmanager
def one_interrupt(whole_fit: bool = False, keeps_best: bool = True) -> Iterator[Deadline]:
    """Let the first Ctrl-C inside end the work, and the ones right after it not disturb the winding up.

    The first raises ``KeyboardInterrupt``, which the loop of a fit catches where it has a point to keep, and leaves no
    time to whatever comes after it inside.  Those that come within seconds of it do nothing, nor does the first where
    the fit is being wound up; later ones raise again.  ``whole_fit`` says that a fit begins here.  ``keeps_best`` is
    False where a half-done fit is of no use: neither this block nor a fit inside it then ends, after an interrupt,
    without ``KeyboardInterrupt``.
    """
    with time_limit(None, whole_fit) as fit:
        fit.keeps_best = fit.keeps_best and keeps_best
        whole, first = fit.outermost, math.inf

        def end_fit(number: int, frame: Any) -> None:
            nonlocal first
            now = time.monotonic()
            first = min(first, now)
            held_back = (whole.interrupted or whole.winding_up) and now - first < SAME_WISH
            whole.interrupt()
            if not held_back:
                raise KeyboardInterrupt

        main = threading.current_thread() is threading.main_thread()
        # not in a part of a fit, in a thread, or in a program that deals with signals itself
        ours = main and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if ours:
            signal.signal(signal.SIGINT, end_fit)
        try:
            yield fit
        finally:
            if whole_fit or not keeps_best:
                whole.winding_up = False
            if ours:
                signal.signal(signal.SIGINT, signal.default_int_handler)
        if fit.interrupted and not fit.keeps_best:
            raise KeyboardInterrupt
