"""Samples and targets brought together by the names of the samples, where both have names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ._tables import row_names, unlike
from .annotated import annotated_target, is_annotated
from .holder import Views, is_views

__all__ = ["samples_and_targets"]


def samples_and_targets(X: Any, y: Any) -> tuple[Any, Any]:
    """Return X and y joined by the names of their samples; y may be the name of a column of AnnData's ``obs``."""
    if isinstance(y, str):
        if not is_annotated(X):
            raise ValueError(
                f"y={y!r} names a column, but X is {type(X).__name__}: names go with AnnData and MuData, whose .obs "
                f"has the column; pass the targets themselves, data.obs[{y!r}]"
            )
        y = annotated_target(X, y)
    return _in_order_of(X, y), y


def _in_order_of(X: Any, y: Any) -> Any:
    """Return several tables as views of the samples that y names, in its order; anything else as it is.

    Tables without names are taken by position.  Where tables have names and y has none, it is taken to be in the order
    of the first table, which must then have all samples: any other order would be a guess.
    """
    names = row_names(getattr(y, "index", None))
    if is_annotated(X):
        return X if names is None else Views(X, index=names)
    if isinstance(X, Views):
        return X if names is None or X.index is None else _in_order(X, names)
    tables = _tables(X, y)
    if not any(row_names(getattr(table, "index", None)) is not None for table in tables):
        return X
    if names is not None:
        return Views(X, index=names)
    views = Views(X)
    first = views.names[0]
    if views.matched[first] < len(views):
        raise ValueError(
            f"y has no names, and view {first!r} has {views.matched[first]} of the {len(views)} samples that the "
            "tables name: make y a pandas Series with the names of its samples as index, or give "
            "Views(tables, index=names)"
        )
    return views


def _tables(X: Any, y: Any) -> list[Any]:
    """Tables of a mapping, or of a list that is one of tables."""
    if isinstance(X, Mapping):
        return list(X.values())
    several = isinstance(X, list | tuple) and len(X) > 0 and all(hasattr(table, "iloc") for table in X)
    return list(X) if several and is_views(X, len(y)) else []


def _in_order(X: Views, names: np.ndarray) -> Views:
    """Bring views whose samples have names into the order of others; names of another kind are no names."""
    if X.index is None or np.array_equal(X.index, names):
        return X
    place = {name: row for row, name in enumerate(X.index.tolist())}
    rows = np.array([place.get(name, -1) for name in names.tolist()])
    if np.all(rows < 0):
        if len(X) == len(names):
            return X
        raise ValueError(f"y names its samples {unlike(names)}, but those of X are {unlike(X.index)}")
    if np.any(rows < 0):
        raise ValueError(
            f"y has {np.count_nonzero(rows < 0)} samples that X does not have, such as {unlike(names[rows < 0])}: cut "
            "both by the same rows, with Views(tables, index=y.index)"
        )
    return X[rows]
