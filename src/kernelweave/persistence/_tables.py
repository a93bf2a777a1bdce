"""Data frames inside a model as plain arrays, and back."""

from __future__ import annotations

import copy
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from .._estimating.tables import SavedTable, is_frame
from ._powers import DROPPED

__all__ = ["with_frames", "without_frames"]


def without_frames(what: Any) -> Any:
    """Return the same objects with every data frame taken apart and orders to the machine left out.

    The originals are not touched.
    """
    return _Walk(lambda x: SavedTable.of(x) if is_frame(x) else x, DROPPED).of(what)


def with_frames(what: Any) -> Any:
    """Undo :func:`without_frames`."""
    return _Walk(lambda x: x.frame() if isinstance(x, SavedTable) else x).of(what)


class _Walk:
    """Rebuilds containers and objects in which something was exchanged; shared parts stay shared.

    Attributes called as one of ``dropped`` become None.
    """

    def __init__(self, exchange: Callable[[Any], Any], dropped: frozenset[str] = frozenset()) -> None:
        self.exchange, self.dropped = exchange, dropped
        self.done: dict[int, tuple[Any, Any]] = {}

    def of(self, what: Any) -> Any:
        # curves of SciPy 1.18 keep the module that their arrays are of, and a module is a door to everything
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
        kept = {key: None if key in self.dropped else old for key, old in state.items()}
        changed = {key: new for key, old in state.items() if (new := self.of(kept[key])) is not old}
        if not changed:
            return what
        other = copy.copy(what)
        other.__dict__.update(changed)
        return other
