"""Choosing columns: what the user may write, which positions that means, and the samples cut to them."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse

from ..views import Views
from ._kernel import Schema

__all__ = ["describe", "pick", "plain_columns", "select"]


def plain_columns(columns: Any) -> Any:
    """Return columns in plain Python (int, str, slice, tuple), which print, hash, compare and pickle well."""
    if isinstance(columns, np.generic):
        columns = columns.item()
    if isinstance(columns, (str, slice)):
        return columns
    if isinstance(columns, (list, tuple, range, set, frozenset)) or hasattr(columns, "__array__"):
        values = np.asarray(
            sorted(columns, key=str) if isinstance(columns, (set, frozenset)) else columns, object
        )
        if values.ndim == 1:
            return tuple(value.item() if isinstance(value, np.generic) else value for value in values)
    if isinstance(columns, Integral) and not isinstance(columns, bool):
        return int(columns)
    raise ValueError(
        f"columns must be a position, a name, a list of these, a slice or a mask, got {columns!r}"
    )


def pick(columns: Any, schema: Schema) -> tuple[tuple[int, ...], bool]:
    """Return the positions that ``columns`` means, and whether it is one column and no list.

    >>> pick("dose", Schema(2, ("age", "dose")))
    ((1,), True)
    >>> pick(slice(0, 2), Schema(3))
    ((0, 1), False)
    """
    n = schema.n_features
    if n is not None and _are_positions(
        columns, n
    ):  # settled before: a view may have thousands, and be asked often
        return columns, False
    columns = plain_columns(columns)
    if schema.views is not None and isinstance(columns, str) and columns in schema.views:
        return schema.views[columns], len(schema.views[columns]) == 1
    if n is None:
        raise ValueError(
            f"columns {columns!r} were asked for, but the samples are a list of objects without columns"
        )
    if isinstance(columns, slice):
        if any(isinstance(end, str) for end in (columns.start, columns.stop)):
            raise ValueError(
                f"a slice of columns takes positions, not names: {columns!r}; list the names instead"
            )
        positions = tuple(range(n))[columns]
    elif not isinstance(columns, tuple):
        return (_position(columns, schema),), True
    elif columns and all(isinstance(column, bool) for column in columns):
        if len(columns) != n:
            raise ValueError(f"a mask of {len(columns)} columns for samples with {n} features")
        positions = tuple(j for j in range(n) if columns[j])
    else:
        columns = _without_views(columns, schema)
        _check_known(columns, schema)
        positions = tuple(_position(column, schema) for column in columns)
    if not positions:
        raise ValueError(f"columns {columns!r} choose no column of the {n}")
    if len(set(positions)) < len(positions):
        raise ValueError(f"columns {columns!r} name a column twice")
    return positions, False


def _are_positions(columns: Any, n: int) -> bool:
    """Whether columns are a tuple of different positions from 0 to n - 1, which says all there is to say."""
    if not (isinstance(columns, tuple) and columns and all(type(column) is int for column in columns)):
        return False
    return min(columns) >= 0 and max(columns) < n and len(set(columns)) == len(columns)


def _without_views(columns: tuple[Any, ...], schema: Schema) -> tuple[Any, ...]:
    """Put the columns of a view in the place of its name."""
    if schema.views is None:
        return columns
    known = schema.views
    return tuple(
        position
        for column in columns
        for position in (known[column] if isinstance(column, str) and column in known else (column,))
    )


def _check_known(columns: tuple[Any, ...], schema: Schema) -> None:
    """Refuse names that are no column, all at once, each with the nearest one that is."""
    names = schema.feature_names
    wanted = [column for column in columns if isinstance(column, str)]
    if not wanted:
        return
    if names is None and schema.views is not None:
        raise ValueError(f"there is no view {wanted[0]!r}; views: {', '.join(schema.views)}")
    if names is None:
        raise ValueError(
            f"columns by name ({wanted[0]!r}) need a data frame with named columns; give positions"
        )
    missing = [column for column in wanted if column not in names]
    if missing:
        lower = {name.lower(): name for name in names}
        said = []
        for column in missing:
            close = get_close_matches(column.lower(), lower, n=1, cutoff=0.5)
            said.append(f"{column!r} (did you mean {lower[close[0]]!r}?)" if close else repr(column))
        raise ValueError(f"there is no column {', '.join(said)} among the {len(names)} of the samples")


def _position(column: Any, schema: Schema) -> int:
    n, names = schema.n_features, schema.feature_names
    if isinstance(column, str):
        _check_known((column,), schema)
        return names.index(column)  # type: ignore[union-attr]
    if isinstance(column, bool) or not isinstance(column, int):
        raise ValueError(f"a column is a position or a name, got {column!r}")
    if not -n <= column < n:  # type: ignore[operator]
        raise ValueError(f"there is no column {column}: the samples have {n} features, 0 to {n - 1}")  # type: ignore[operator]
    return column % n  # type: ignore[operator]


def select(A: Any, positions: tuple[int, ...], as_objects: bool, single: bool) -> Any:
    """Return the samples cut to some columns; for objects a single column becomes a one-dimensional array."""
    if isinstance(A, Views):
        A = A.select_columns(positions)
    elif hasattr(A, "iloc"):
        A = A.iloc[:, list(positions)].to_numpy(dtype=object if as_objects else None)
    elif sparse.issparse(A):
        A = A[:, list(positions)] if A.format in ("csr", "csc") else A.tocsc()[:, list(positions)]
    else:
        first, last = positions[0], positions[-1]
        consecutive = positions == tuple(range(first, last + 1))
        A = np.asarray(A)
        if consecutive:
            A = A[:, first : last + 1]
        elif A.flags.c_contiguous:
            A = np.take(A, positions, axis=1)
        else:  # of which take would make a whole copy first, as of a table's columns
            A = np.ascontiguousarray(A[:, list(positions)])
    return A[:, 0] if as_objects and single else A


def describe(columns: Any, names: Sequence[str] | None = None) -> str:
    """Return how columns are called in the name of a kernel.

    >>> describe((0, 1, 2, 3)), describe((0, 2)), describe((1,), ("age", "dose"))
    ('features 0-3', 'features 0, 2', 'dose')
    """
    if isinstance(columns, (int, str)):
        columns = (columns,)
    if not isinstance(columns, tuple) or (columns and all(isinstance(column, bool) for column in columns)):
        if isinstance(columns, slice):
            parts = (columns.start, columns.stop, columns.step)
            return "features " + ":".join(
                "" if part is None else str(part) for part in parts[: 2 + bool(parts[2])]
            )
        return f"{sum(columns)} features" if isinstance(columns, tuple) else str(columns)
    by_name = names is not None or any(isinstance(column, str) for column in columns)
    called = [names[j] if names is not None and isinstance(j, int) else str(j) for j in columns]
    if by_name:
        return (
            ", ".join(called)
            if len(called) <= 3
            else f"{called[0]} ... {called[-1]} ({len(called)} features)"
        )
    if len(columns) == 1:
        return f"feature {columns[0]}"
    if len(columns) > 2 and columns == tuple(range(columns[0], columns[-1] + 1)):
        return f"features {columns[0]}-{columns[-1]}"
    if len(columns) <= 6:
        return "features " + ", ".join(called)
    return f"{len(columns)} features ({', '.join(called[:3])} ... {called[-1]})"
