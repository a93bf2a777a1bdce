"""Ctrl-C: work that must not be cut in two, fits that return the best they have, and series of fits that end at once.

One fit keeps its best point, with the status ``interrupted``.  Whoever makes several fits to compare them needs all of
them complete: inside ``one_interrupt(keeps_best=False)`` an interrupted fit raises ``KeyboardInterrupt`` instead.

Signals reach the main thread alone; elsewhere, and where a program has a handler of its own, nothing is changed.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .deadline import Deadline, given_up, time_limit

__all__ = ["one_interrupt", "uninterrupted"]

#: seconds after the first Ctrl-C in which further ones are taken for the same wish
SAME_WISH = 5.0


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold Ctrl-C back until the work inside is complete: an import or a compilation cut in two stays broken."""
    before = signal.getsignal(signal.SIGINT) if _in_main_thread() else None
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


class _FirstRaises:
    """Handler of Ctrl-C during a fit: the first ends the fit's time and raises, its echoes do nothing."""

    def __init__(self, fit: Deadline) -> None:
        self.fit = fit.outermost
        self.first: float | None = None

    def __call__(self, number: int, frame: Any) -> None:
        now = time.monotonic()
        self.first = now if self.first is None else self.first
        held_back = (self.fit.interrupted or self.fit.winding_up) and now - self.first < SAME_WISH
        self.fit.interrupt()
        if not held_back:
            raise KeyboardInterrupt


@contextmanager
def one_interrupt(whole_fit: bool = False, keeps_best: bool = True) -> Iterator[Deadline]:
    """Let the first Ctrl-C inside end the work, and the ones right after it not disturb the winding up.

    The first raises ``KeyboardInterrupt``, which the loop of a fit catches where it has a point to keep, and leaves no
    time to whatever comes after it inside.  Those that come within seconds of it do nothing, nor does the first where
    the fit is being wound up; later ones raise again.

    Parameters
    ----------
    whole_fit : bool, default=False
        Whether a fit begins here.
    keeps_best : bool, default=True
        False where a half-done fit is of no use: neither this block nor a fit inside it then ends, after an interrupt,
        without ``KeyboardInterrupt``.
    """
    with time_limit(None, whole_fit) as fit:
        fit.keeps_best = fit.keeps_best and keeps_best
        ours = _in_main_thread() and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if ours:  # not in a part of a fit, in a thread, or in a program that deals with signals itself
            signal.signal(signal.SIGINT, _FirstRaises(fit))
        try:
            yield fit
        finally:
            if whole_fit or not keeps_best:
                fit.outermost.winding_up = False
            if ours:
                signal.signal(signal.SIGINT, signal.default_int_handler)
        if given_up():
            raise KeyboardInterrupt
