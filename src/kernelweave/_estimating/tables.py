"""Data frames of a fitted estimator as plain arrays: what files can hold."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["PlainState", "SavedTable", "is_frame"]


def is_frame(what: Any) -> bool:
    """Whether something is a data frame of pandas."""
    return hasattr(what, "iloc") and getattr(what, "ndim", 0) == 2


class SavedTable:
    """Columns of a data frame (labels, kinds and values), and the names of its rows if they have any."""

    #: kind, values and name of the index; None where rows are numbered
    index: list[Any] | None = None

    def __init__(
        self,
        labels: list[Any],
        kinds: list[str],
        values: list[Any],
        rows: int,
        index: list[Any] | None = None,
    ) -> None:
        self.labels, self.kinds, self.values, self.rows, self.index = labels, kinds, values, rows, index

    @classmethod
    def of(cls, frame: Any) -> SavedTable:
        """Take a data frame apart."""
        kinds, values = [], []
        for position, label in enumerate(frame.columns):
            kind, value = _take_apart(frame.iloc[:, position], label)
            kinds.append(kind)
            values.append(value)
        labels = [label.item() if isinstance(label, np.generic) else label for label in frame.columns]
        return cls(labels, kinds, values, len(frame), _names_apart(frame.index))

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
        if self.index is not None:
            kind, value, name = self.index
            frame.index = pd.Index(_put_together(kind, value), name=name)
        return frame


def _names_apart(index: Any) -> list[Any] | None:
    """Kind, values and name of an index; None where it is rows that are numbered, or of several levels."""
    if _is_counted(index) or index.nlevels > 1:
        return None
    name = index.name if isinstance(index.name, str) else None
    return [*_take_apart(index.to_series(), "index"), name]


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


class PlainState:
    """Gives an estimator a state without data frames, which ``skops.io.dumps`` takes; ``__setstate__`` undoes it."""

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()  # type: ignore[assignment]
        return {name: _plain(value) for name, value in state.items()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        whole = {
            name: value.frame() if isinstance(value, SavedTable) else value for name, value in state.items()
        }
        super().__setstate__(whole)  # type: ignore[misc]


def _plain(value: Any) -> Any:
    """A data frame taken apart, where its rows and columns are numbers or words; else as it is."""
    if not is_frame(value) or value.index.nlevels > 1:
        return value
    try:
        return SavedTable.of(value)
    except TypeError:
        return value


def _is_counted(index: Any) -> bool:
    return type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1
