"""Data frames inside a model as plain arrays, and back."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from ._powers import DROPPED

__all__ = ["SavedTable", "with_frames", "without_frames"]


class SavedTable:
    """Columns of a data frame: their labels, their kind and their values.  The index is not kept."""

    def __init__(self, labels: list[Any], kinds: list[str], values: list[Any], rows: int) -> None:
        self.labels, self.kinds, self.values, self.rows = labels, kinds, values, rows

    @classmethod
    def of(cls, frame: Any) -> SavedTable:
        """Take a data frame apart."""
        kinds, values = [], []
        for position, label in enumerate(frame.columns):
            kind, value = _take_apart(frame.iloc[:, position], label)
            kinds.append(kind)
            values.append(value)
        labels = [label.item() if isinstance(label, np.generic) else label for label in frame.columns]
        return cls(labels, kinds, values, len(frame))

    def frame(self) -> Any:
        """Put the data frame together again."""
        import pandas as pd

        columns = [
            pd.Series(_put_together(kind, value)) for kind, value in zip(self.kinds, self.values, strict=True)
        ]
        if not columns:
            return pd.DataFrame(index=range(self.rows))
        frame = pd.concat(columns, axis=1)
        frame.columns = self.labels
        return frame


def _take_apart(column: Any, label: Any) -> tuple[str, Any]:
    import pandas as pd

    if isinstance(column.dtype, pd.CategoricalDtype):
        entries = column.cat.categories.to_numpy(dtype=object)
        return "category", [entries, column.cat.codes.to_numpy(), bool(column.cat.ordered)]
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "fiub":
        return "numbers", column.to_numpy()
    if column.dtype.kind in "OUST" or isinstance(column.dtype, pd.StringDtype):
        plain = [value.item() if isinstance(value, np.generic) else value for value in column]
        odd = [value for value in plain if not (value is None or isinstance(value, str | int | float | bool))]
        odd = [value for value in odd if value is not pd.NA]
        if not odd:
            entries = np.empty(len(plain), dtype=object)
            entries[:] = [None if value is pd.NA else value for value in plain]
            return ("str" if isinstance(column.dtype, pd.StringDtype) else "object"), entries
        raise TypeError(f"column {label!r} of a table holds a {type(odd[0]).__name__}")
    raise TypeError(f"column {label!r} of a table is of the kind {column.dtype}")


def _put_together(kind: str, value: Any) -> Any:
    import pandas as pd

    if kind == "category":
        entries, codes, ordered = value
        return pd.Categorical.from_codes(codes, pd.Index(list(entries)), ordered=ordered)
    if kind == "str":
        return pd.array(list(value), dtype="str" if int(pd.__version__.split(".")[0]) >= 3 else object)
    return value


def without_frames(what: Any) -> Any:
    """Return the same objects with every data frame taken apart and orders to the machine left out.

    The originals are not touched.
    """
    return _Walk(lambda x: SavedTable.of(x) if _is_frame(x) else x, DROPPED).of(what)


def with_frames(what: Any) -> Any:
    """Undo :func:`without_frames`."""
    return _Walk(lambda x: x.frame() if isinstance(x, SavedTable) else x).of(what)


def _is_frame(what: Any) -> bool:
    return hasattr(what, "iloc") and getattr(what, "ndim", 0) == 2


class _Walk:
    """Rebuilds containers and objects in which something was exchanged; shared parts stay shared.

    Attributes called as one of ``dropped`` become None.
    """

    def __init__(self, exchange: Callable[[Any], Any], dropped: frozenset[str] = frozenset()) -> None:
        self.exchange, self.dropped = exchange, dropped
        self.done: dict[int, tuple[Any, Any]] = {}

    def of(self, what: Any) -> Any:
        if what is None or isinstance(what, str | int | float | bool | np.ndarray | np.generic | type):
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
