"""Data frames and curves inside a model as plain arrays, and back."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import numpy as np

from .._estimating.tables import SavedTable, is_frame
from ._curves import SavedCurve, is_curve
from ._powers import DROPPED, is_default

__all__ = ["put_together", "taken_apart"]


def taken_apart(what: Any) -> Any:
    """Return the same objects with every data frame and curve taken apart and orders to the machine left out.

    The originals are not touched.
    """
    return _Walk(_plain, DROPPED).of(what)


def put_together(what: Any) -> Any:
    """Undo :func:`taken_apart`."""
    return _Walk(_rebuilt).of(what)


def _plain(what: Any) -> Any:
    if is_frame(what):
        return SavedTable.of(what)
    return SavedCurve.of(what) if is_curve(what) else what


def _rebuilt(what: Any) -> Any:
    if isinstance(what, SavedTable):
        return what.frame()
    return what.spline() if isinstance(what, SavedCurve) else what


class _Walk:
    """Rebuilds containers and objects in which something was exchanged; shared parts stay shared.

    Attributes called as one of ``dropped`` get the value that is there.
    """

    def __init__(self, exchange: Callable[[Any], Any], dropped: Mapping[str, Any] | None = None) -> None:
        self.exchange, self.dropped = exchange, dropped or {}
        self.done: dict[int, tuple[Any, Any]] = {}

    def of(self, what: Any) -> Any:
        # a module is a door to everything
        if what is None or isinstance(
            what, str | int | float | bool | np.ndarray | np.generic | type | ModuleType
        ):
            return what
        if id(what) not in self.done:
            self.done[id(what)] = what, self._rebuilt(what)  # the first keeps the id from being used again
        return self.done[id(what)][1]

    def _rebuilt(self, what: Any) -> Any:
        new = self.exchange(what)
        if new is not what:
            return new
        if type(what) in (list, tuple):
            parts = [self.of(part) for part in what]
            same = all(new is old for new, old in zip(parts, what, strict=True))
            return what if same else type(what)(parts)
        if type(what) is dict:
            entries = {key: self.of(value) for key, value in what.items()}
            return what if all(entries[key] is what[key] for key in what) else entries
        state = getattr(what, "__dict__", None)
        if not isinstance(state, dict):
            return what
        kept = {
            key: self.dropped[key] if key in self.dropped and not is_default(key, old) else old
            for key, old in state.items()
        }
        changed = {key: new for key, old in state.items() if (new := self.of(kept[key])) is not old}
        if not changed:
            return what
        other = copy.copy(what)
        other.__dict__.update(changed)
        return other
