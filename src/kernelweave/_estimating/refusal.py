"""A fit that raises leaves the estimator as it was before."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

__all__ = ["unchanged_where_it_raises"]

Method = TypeVar("Method", bound=Callable[..., Any])


def unchanged_where_it_raises(fit: Method) -> Method:
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
