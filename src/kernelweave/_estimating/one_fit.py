"""A call of ``fit`` as a whole: all or nothing, one interrupt, one count of seconds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from .._numerics.resources import allowed_threads
from .._numerics.stopping import interrupted, one_interrupt, time_spent
from ..solvers import Stop


def restore_on_error(fit: Method) -> Method:
    """Make a method that fits put back every attribute of the estimator where it raises.

    Fitted attributes are replaced by a fit and never changed in place, so that the old ones are still whole: a model
    that was good before a refused input, a failing callback or a lost worker is the same model after it.
    """

    @wraps(fit)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(vars(self))
        try:
            return fit(self, *args, **kwargs)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return guarded  # type: ignore[return-value]


Method = TypeVar("Method", bound=Callable)  # type: ignore[type-arg]


def one_call(function: Method) -> Method:
    """Decorate a function that fits: Ctrl-C ends whatever it does, and its seconds are counted from here."""

    @wraps(function)
    def call(*arguments, **named):  # type: ignore[no-untyped-def]
        # numbers that are not finite are looked for where they matter, and told in a sentence
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
    """Decorate a ``fit``: one call on the threads of ``n_jobs``, and one that raises leaves the old model as it was."""
    whole = one_call(restore_on_error(method))

    @wraps(method)
    def fit(self, *arguments, **named):  # type: ignore[no-untyped-def]
        with allowed_threads(getattr(self, "n_jobs", None)):
            return whole(self, *arguments, **named)

    return fit  # type: ignore[return-value]


class TimeShares:
    """Deals out the seconds of a fit to its problems: each gets an equal part of what is left.

    Parameters
    ----------
    stop : Stop
        With the seconds of the whole fit.
    problems : int
        How many there are.
    share : float, default=1.0
        Of the seconds, for all these problems together.
    """

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
    def interrupted(self) -> bool:
        """Whether the fit was interrupted from the keyboard."""
        return interrupted()

    @property
    def used_up(self) -> bool:
        """Whether no time is left, or the fit was interrupted."""
        return interrupted() or (self.stop.max_seconds is not None and self._left() == 0.0)
