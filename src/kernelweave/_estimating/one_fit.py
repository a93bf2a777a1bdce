"""A call of ``fit`` as a whole: all or nothing, one interrupt, one count of seconds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from .._numerics.resources import allowed_threads
from .._numerics.stopping import interrupted, one_interrupt, time_spent
from ..solvers import Stop

Method = TypeVar("Method", bound=Callable)  # type: ignore[type-arg]


@contextmanager
def _all_or_nothing(estimator: Any) -> Iterator[None]:
    """Put back every attribute where something raises: fitted ones are replaced by a fit, never changed in place."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


def restore_on_error(fit: Method) -> Method:
    """Decorate a method that fits: where it raises, the model is the same as before."""

    @wraps(fit)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        with _all_or_nothing(self):
            return fit(self, *args, **kwargs)

    return guarded  # type: ignore[return-value]


def one_call(function: Method) -> Method:
    """Decorate a function that fits: Ctrl-C ends whatever it does, and its seconds are counted from here."""

    @wraps(function)
    def call(*arguments, **named):  # type: ignore[no-untyped-def]
        # numbers that are not finite are looked for where they matter, and reported in a sentence
        with one_interrupt(whole_fit=True), np.errstate(over="ignore", invalid="ignore"):
            return function(*arguments, **named)

    return call  # type: ignore[return-value]


def several_fits(function: Method) -> Method:
    """Decorate a function that compares fits: Ctrl-C raises ``KeyboardInterrupt``, since a half-done fit misleads."""

    @wraps(function)
    def call(*arguments, **named):  # type: ignore[no-untyped-def]
        with one_interrupt(keeps_best=False):
            return function(*arguments, **named)

    return call  # type: ignore[return-value]


def one_fit(method: Method) -> Method:
    """Decorate a ``fit``: one call, as ``one_call``, on the threads of ``n_jobs``; the old model stays if it raises."""

    @wraps(method)
    def fit(self, *arguments, **named):  # type: ignore[no-untyped-def]
        with (
            allowed_threads(getattr(self, "n_jobs", None)),
            one_interrupt(whole_fit=True),
            np.errstate(over="ignore", invalid="ignore"),
            _all_or_nothing(self),
        ):
            return method(self, *arguments, **named)

    return fit  # type: ignore[return-value]


class TimeShares:
    """Deals out the seconds of a fit to its problems: each gets an equal part of what is left of their ``share``."""

    def __init__(self, stop: Stop, problems: int, share: float = 1.0) -> None:
        self.stop, self.problems, self.share = stop, problems, share

    def __call__(self) -> Stop:
        """Return when the next problem has to stop."""
        if self.stop.max_seconds is None:
            return self.stop
        part = self._left() / max(self.problems, 1)
        self.problems -= 1
        return replace(self.stop, max_seconds=part)

    def _left(self) -> float:
        assert self.stop.max_seconds is not None
        return max(self.share * self.stop.max_seconds - time_spent(), 0.0)

    @property
    def used_up(self) -> bool:
        """Whether no time is left, or the fit was interrupted."""
        return interrupted() or (self.stop.max_seconds is not None and self._left() == 0.0)
