"""The default treatment of columns: numbers standardised, categories as columns of zeros and ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._views import View

__all__ = [
    "MOST_CATEGORIES",
    "blank_absent",
    "check_columns",
    "column_kinds",
    "column_transformer",
    "refuse_absent",
    "view_steps",
    "views_and_kernels",
]

#: more distinct texts than this in a column are names or notes, not categories
MOST_CATEGORIES = 30
MISSING = "missing"


def column_kinds(frame: Any, columns: Sequence[str]) -> dict[str, str]:
    """Say of every column whether it is ``numbers`` or ``categories``; name what is neither.

    Numbers (and truth values): missing ones become the median.  Texts and categories: one column of zeros and ones for
    each, a missing one being a category of its own.
    """
    import pandas as pd

    kinds = {}
    for column in columns:
        values = frame[column]
        if values.isna().all():
            raise ValueError(f"column {column!r} is empty: leave it out with --drop {column!r}")
        if pd.api.types.is_bool_dtype(values) or pd.api.types.is_numeric_dtype(values):
            kinds[column] = "numbers"
        elif isinstance(values.dtype, pd.CategoricalDtype) or pd.api.types.is_string_dtype(values.dropna()):
            distinct = values.nunique()
            if distinct > MOST_CATEGORIES:
                raise ValueError(
                    f"column {column!r} has {distinct} different texts, more than {MOST_CATEGORIES}: leave it out "
                    f"with --drop {column!r}, or make numbers of it first"
                )
            kinds[column] = "categories"
        else:
            raise ValueError(
                f"column {column!r} is of the kind {values.dtype}, which has no default treatment: leave it out with "
                f"--drop {column!r}, or make numbers of it first"
            )
    return kinds


def check_columns(frame: Any, kinds: dict[str, str]) -> Any:
    """Return the columns of a table that a model wants, in a form that its transformer takes; name what is wrong."""
    import numpy as np
    import pandas as pd

    missing = [column for column in kinds if column not in frame]
    if missing:
        rest = f" ({len(missing)} columns are missing)" if len(missing) > 1 else ""
        raise ValueError(f"the table has no column {missing[0]!r}, which the model needs{rest}")
    table = {}
    for column, kind in kinds.items():
        values = frame[column]
        if kind == "numbers":
            try:
                numbers = pd.to_numeric(values).to_numpy(dtype=float, na_value=np.nan)
            except (ValueError, TypeError):
                raise ValueError(f"column {column!r} should hold numbers, as in the training table") from None
            if np.isinf(numbers).any():
                raise ValueError(f"column {column!r} holds infinite numbers")
            table[column] = numbers
        else:
            texts = values.astype(object)
            table[column] = texts.map(str).where(values.notna(), MISSING).to_numpy(dtype=object)
    return pd.DataFrame(table)


def column_transformer(table: Any, kinds: dict[str, str], views: Sequence[View]) -> tuple[Any, list[int]]:
    """Return a transformer that puts the views side by side, and where each begins.

    The categories are those of the whole table, so that every fold of a cross-validation has the same columns.
    """
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    parts, starts = [], [0]
    for view in views:
        numbers = [column for column in view.picked if kinds[column] == "numbers"]
        texts = [column for column in view.picked if kinds[column] == "categories"]
        size = len(numbers)
        if numbers:
            fill = SimpleImputer(strategy="median", keep_empty_features=True)
            parts.append((f"{view.name}: numbers", make_pipeline(fill, StandardScaler()), numbers))
        if texts:
            categories = [sorted(set(table[column])) for column in texts]
            coder = OneHotEncoder(categories=categories, handle_unknown="ignore", sparse_output=False)
            parts.append((f"{view.name}: categories", coder, texts))
            size += sum(map(len, categories))
        starts.append(starts[-1] + size)
    return ColumnTransformer(parts, sparse_threshold=0.0, verbose_feature_names_out=False), starts


def refuse_absent(frame: Any, views: dict[str, list[str]]) -> None:
    """Raise where a row has no value in any column of a view: filling all of them would be inventing a sample."""
    for name, columns in views.items():
        gone = int(frame[columns].isna().all(axis=1).sum())
        if gone:
            raise ValueError(
                f"view {name!r} is missing for {gone} of {len(frame)} rows: --missing predict completes it from the "
                "other views, --missing mean puts its mean there; or leave the view or these rows out"
            )


def blank_absent(frame: Any, table: Any, views: dict[str, list[str]]) -> Any:
    """Return the checked table with nothing at all where a row has no value in any column of a view."""
    table = table.copy()
    for columns in views.values():
        gone = frame[columns].isna().all(axis=1).to_numpy()
        for column in columns:
            nothing = float("nan") if table[column].dtype.kind == "f" else None
            table[column] = table[column].astype(object).where(~gone, nothing).astype(table[column].dtype)
    return table


def view_steps(table: Any, kinds: dict[str, str], views: Sequence[View]) -> tuple[Any, Any]:
    """Return a transformer that makes views of the table, some of which rows may lack, and the kernels on them."""
    from .. import kernels as kw
    from ..views import ViewColumns

    parts = [(view.name, column_transformer(table, kinds, [view])[0], list(view.picked)) for view in views]
    specs = [kw.per_view({view.name: view.name}, view.spec()) for view in views]
    return ViewColumns(parts), sum(specs[1:], start=specs[0])


def views_and_kernels(views: Sequence[View], starts: list[int]) -> Any:
    """Return the kernels of all views, each on its columns of what the transformer makes."""
    from .. import kernels as kw

    specs = [
        kw.per_view({view.name: range(first, last)}, view.spec())
        for view, first, last in zip(views, starts[:-1], starts[1:], strict=True)
    ]
    return sum(specs[1:], start=specs[0])
