"""Several views of the same samples in one object that indexes like an array, joined by the names of the rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from .._components import nearest
from ._tables import (
    Block,
    absent_rows,
    annotated_target,
    as_numbers,
    is_annotated,
    is_table,
    layers_of,
    missing_entries,
    read_block,
    row_names,
    take_rows,
    unlike,
)


def align(blocks: Mapping[str, Block], index: Any = None) -> tuple[list[Any], np.ndarray, np.ndarray | None]:
    """Return the values of every view on the same samples, which samples were found in each, and their names.

    Tables with names of rows are joined by them: on ``index`` where it is given, else on all names as they appear.
    """
    names = {view: block.samples for view, block in blocks.items() if block.samples is not None}
    for view, own in names.items():
        _refuse_twice(f"view {view!r}", own)
    if index is not None:
        samples = np.asarray(index)
        _refuse_twice("index", samples)
    elif names:
        every = list(names.values())
        samples = every[0]
        if not all(np.array_equal(own, samples) for own in every):
            together = list(dict.fromkeys(name for own in every for name in own.tolist()))
            samples = np.empty(len(together), dtype=object)
            samples[:] = together
    else:
        lengths = {view: block.values.shape[0] for view, block in blocks.items()}
        if len(set(lengths.values())) > 1:
            listed = ", ".join(f"{view!r} {length}" for view, length in lengths.items())
            raise ValueError(
                f"the views have different numbers of rows ({listed}) and no names to join them by: give all of them "
                "an index (or a column named by id=), or NaN in the rows of samples that lack a view"
            )
        found = np.ones((next(iter(lengths.values())), len(blocks)), dtype=np.bool_)
        return [block.values for block in blocks.values()], found, None
    values: list[Any] = []
    found = np.ones((samples.size, len(blocks)), dtype=np.bool_)
    place = {name: k for k, name in enumerate(samples.tolist())}
    for column, (view, block) in enumerate(blocks.items()):
        if block.samples is None:
            if block.values.shape[0] != samples.size:
                raise ValueError(
                    f"view {view!r} has {block.values.shape[0]} rows without names, but there are {samples.size} "
                    "samples: give it an index (or a column named by id=), so that its rows can be found"
                )
            values.append(block.values)
            continue
        rows = np.full(samples.size, -1, dtype=np.intp)
        for k, name in enumerate(block.samples.tolist()):
            if name in place:
                rows[place[name]] = k
        found[:, column] = rows >= 0
        if not found[:, column].any():
            theirs, ours = unlike(block.samples), unlike(samples)
            raise ValueError(f"no row of view {view!r} ({theirs}) is named like a sample ({ours})")
        values.append(take_rows(block.values, rows))
    return values, found, samples


def _refuse_twice(what: str, names: np.ndarray) -> None:
    import pandas as pd

    index = pd.Index(names)
    if index.has_duplicates:
        raise ValueError(f"{what} has two rows named {unlike(index[index.duplicated()][:1].tolist())}")


def samples_and_targets(X: Any, y: Any) -> tuple[Any, Any]:
    """Return X and y joined by the names of their samples; y may be the name of a column of AnnData's ``obs``.

    Several tables become views of the samples that y names, in its order.  Where tables have names and y has none, it
    is in the order of the first table, which must then have all samples.
    """
    annotated = is_annotated(X)
    if isinstance(y, str):
        if not annotated:
            raise ValueError(
                f"y={y!r} names a column, but X is {type(X).__name__}: names go with AnnData and MuData, whose .obs "
                f"has the column; pass the targets themselves, data.obs[{y!r}]"
            )
        y = annotated_target(X, y)
    names = row_names(getattr(y, "index", None))
    if annotated:
        return X if names is None else Views(X, index=names), y
    if isinstance(X, Views):
        if names is None or X.index is None or np.array_equal(X.index, names):
            return X, y
        place = {name: row for row, name in enumerate(X.index.tolist())}
        rows = np.array([place.get(name, -1) for name in names.tolist()])
        if np.all(rows < 0):
            if len(X) == len(names):  # names of another kind are no names
                return X, y
            raise ValueError(f"y names its samples {unlike(names)}, but those of X are {unlike(X.index)}")
        if np.any(rows < 0):
            raise ValueError(
                f"y has {np.count_nonzero(rows < 0)} samples that X does not have, such as {unlike(names[rows < 0])}: "
                "cut both by the same rows, with Views(tables, index=y.index)"
            )
        return X[rows], y
    tables: list[Any] = []
    if isinstance(X, Mapping):
        tables = list(X.values())
    elif isinstance(X, list | tuple) and X and all(hasattr(table, "iloc") for table in X):
        tables = list(X) if is_views(X, len(y)) else []
    if not any(row_names(getattr(table, "index", None)) is not None for table in tables):
        return X, y
    if names is not None:
        return Views(X, index=names), y
    views = Views(X)
    first = views.names[0]
    if views.matched[first] < len(views):
        raise ValueError(
            f"y has no names, and view {first!r} has {views.matched[first]} of the {len(views)} samples that the "
            "tables name: make y a pandas Series with the names of its samples as index, or give "
            "Views(tables, index=names)"
        )
    return views, y


class Views:
    """Hold several tables of the same samples, with the samples that each of them lacks.

    What estimators make of a dict or a list of tables; make it yourself for ``train_test_split`` and ``GridSearchCV``,
    which cut samples: ``X[rows]`` are the same views of some samples.  Columns are numbered through all views.

    Parameters
    ----------
    views : mapping from names to tables, sequence of tables, AnnData, MuData or Views
        Arrays, sparse matrices, pandas, polars or Arrow tables, AnnData.  Tables with an index are joined by it; a
        sample that a table does not have lacks that view, as does one whose row is all NaN.
    index : sequence, optional
        Names of the samples wanted, in order (``y.index``, say); by default all that appear in some table.
    id : str, optional
        Column that holds the names of the samples, for tables without an index.

    Attributes
    ----------
    names : tuple of str
    blocks : tuple of arrays
        One table for each view; rows of absent samples mean nothing and are never read.
    columns : tuple of (tuple of str or None)
        Names of the columns of every view, where they have any.
    present : bool array of shape (n, number of views)
    index : array of shape (n,) or None
    matched : dict
        How many samples were found in the table of each view.
    order : int array or None
        Where the columns of the table that the views were cut from are now, -1 for those in no view; None where columns
        are numbered through the views.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> mrna = pd.DataFrame({"a": [1.0, 2.0, 3.0]}, index=["p1", "p2", "p3"])
    >>> protein = pd.DataFrame({"x": [0.5, 0.1], "y": [1.0, 0.0]}, index=["p3", "p1"])
    >>> X = Views({"mrna": mrna, "protein": protein})
    >>> X
    Views of 3 samples: mrna (1 column), protein (2 columns; 1 sample without it)
    >>> X[[0, 2]].present
    array([[ True,  True],
           [ True,  True]])
    """

    ndim = 2
    order: np.ndarray | None = None

    def __init__(self, views: Any, *, index: Any = None, id: str | None = None) -> None:
        if isinstance(views, Views):
            vars(self).update(vars(views))
            return
        if is_annotated(views):
            index = views.obs_names if index is None else index
            views = layers_of(views)
        if isinstance(views, Mapping):
            tables = {str(name): table for name, table in views.items()}
        elif isinstance(views, list | tuple):
            tables = {f"view {k}": table for k, table in enumerate(views)}
        else:
            raise ValueError(f"views must be a dict or a list of tables, got {type(views).__name__}")
        if not tables:
            raise ValueError("there is no view: give at least one table")
        if len(tables) < len(views):
            raise ValueError("two views have the same name")
        blocks = {name: read_block(table, name, id) for name, table in tables.items()}
        values, found, samples = align(blocks, index)
        self.names = tuple(blocks)
        self.blocks = tuple(values)
        self.columns = tuple(block.columns for block in blocks.values())
        self.present = found & ~np.stack([absent_rows(block) for block in values], axis=1)
        self.index = samples
        self.matched = dict(zip(self.names, found.sum(axis=0).tolist(), strict=True))

    @classmethod
    def of_table(cls, table: Any, groups: Mapping[str, Sequence[int]]) -> Views:
        """Cut one table into views by positions of columns; columns keep their numbers, some may be in no view."""
        block = read_block(table, "X")
        made = cls.__new__(cls)
        made.names = tuple(groups)
        # beside objects numbers are objects, too
        made.blocks = tuple(
            as_numbers(_cut(block.values, np.asarray(columns))) for columns in groups.values()
        )
        made.columns = tuple(
            None if block.columns is None else tuple(block.columns[j] for j in columns)
            for columns in groups.values()
        )
        made.present = ~np.stack([absent_rows(values) for values in made.blocks], axis=1)
        made.index = None
        made.matched = {name: len(made) for name in made.names}
        made.order = np.full(block.values.shape[1], -1, dtype=np.intp)
        chosen = np.concatenate([np.asarray(columns) for columns in groups.values()])
        made.order[chosen] = np.arange(chosen.size)
        return made

    def _with(self, **changes: Any) -> Views:
        made = type(self).__new__(type(self))
        vars(made).update(vars(self) | changes)
        return made

    def __len__(self) -> int:
        return int(self.blocks[0].shape[0])

    @property
    def shape(self) -> tuple[int, int]:
        """Samples, and columns of all views together."""
        width = sum(int(block.shape[1]) for block in self.blocks) if self.order is None else self.order.size
        return len(self), int(width)

    def __getitem__(self, key: Any) -> Any:
        """Return some samples (numbers, a mask, a slice), or the table of one view by its name."""
        if isinstance(key, str):
            return self.blocks[self.position(key)]
        if isinstance(key, tuple):  # scikit-learn cuts samples by [rows, ...]
            if len(key) != 2 or key[1] is not Ellipsis:
                raise IndexError("views are cut by samples; columns are chosen by kernels, with .on(...)")
            key = key[0]
        rows = np.atleast_1d(np.arange(len(self))[key])
        return self._with(
            blocks=tuple(block[rows] for block in self.blocks),
            present=self.present[rows],
            index=None if self.index is None else self.index[rows],
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def items(self) -> Iterator[tuple[str, Any]]:
        """Yield every view with its name."""
        return zip(self.names, self.blocks, strict=True)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        dense = [block.toarray() if sparse.issparse(block) else block for block in self.blocks]
        dense = [
            np.where(self.present[:, [k]], block, np.nan if block.dtype != object else None)
            for k, block in enumerate(dense)
        ]
        return np.asarray(np.hstack(dense), dtype=dtype)

    def __repr__(self) -> str:
        said = []
        for k, (name, block) in enumerate(self.items()):
            width, gone = block.shape[1], int(np.count_nonzero(~self.present[:, k]))
            absent = f"; {gone} sample{'s' * (gone != 1)} without it" if gone else ""
            said.append(f"{name} ({width} column{'s' * (width != 1)}{absent})")
        return f"Views of {len(self)} sample{'s' * (len(self) != 1)}: {', '.join(said)}"

    @property
    def complete(self) -> bool:
        """Whether every sample has every view."""
        return bool(self.present.all())

    @property
    def starts(self) -> np.ndarray:
        """First column of every view, and the number of all."""
        return np.concatenate([[0], np.cumsum([block.shape[1] for block in self.blocks])]).astype(np.intp)

    @property
    def of_objects(self) -> frozenset[str]:
        """Views that hold objects, no numbers."""
        return frozenset(name for name, block in self.items() if block.dtype == object)

    @property
    def groups(self) -> dict[str, tuple[int, ...]]:
        """Columns of every view, by name."""
        view = self.view_of(np.arange(self.shape[1]))
        return {name: tuple(np.flatnonzero(view == k).tolist()) for k, name in enumerate(self.names)}

    def view_of(self, columns: Sequence[int] | np.ndarray) -> np.ndarray:
        """Return the number of the view of every column, -1 for columns in no view."""
        placed, view = self._located(columns)
        return np.where(placed < 0, -1, view)

    def _located(self, columns: Sequence[int] | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return columns as they are numbered through the views, and the number of the view of each."""
        wanted = np.asarray(columns, dtype=np.intp)
        placed = wanted if self.order is None else self.order[wanted]
        return placed, np.searchsorted(self.starts, placed, side="right") - 1

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of all columns, where all have one and no two the same."""
        if self.order is not None or any(columns is None for columns in self.columns):
            return None
        names = tuple(name for columns in self.columns for name in columns or ())
        return names if len(set(names)) == len(names) else None

    def position(self, name: str) -> int:
        """Return the number of a view; a name that is not one is refused with the nearest that is."""
        if name not in self.names:
            close = nearest(name, list(self.names))
            raise ValueError(f"there is no view {name!r}.{close} Views: {', '.join(self.names)}")
        return self.names.index(name)

    def select_columns(self, positions: Sequence[int] | np.ndarray) -> Any:
        """Return some columns as one plain table, from no other view than theirs."""
        wanted, view = self._located(positions)
        parts = [
            _cut(self.blocks[view[run[0]]], wanted[run] - self.starts[view[run[0]]])
            for run in np.split(np.arange(wanted.size), np.flatnonzero(np.diff(view)) + 1)
        ]
        return parts[0] if len(parts) == 1 else _side_by_side(parts)

    def table(self) -> Any:
        """Return all views side by side as one plain table, or the views themselves where they are of several kinds."""
        kinds = {"sparse" if sparse.issparse(block) else block.dtype.kind for block in self.blocks}
        return _side_by_side(list(self.blocks)) if kinds in ({"sparse"}, {"f"}) else self

    def only(self, names: Sequence[str]) -> Views:
        """Return some of the views."""
        chosen = [self.position(name) for name in names]
        return self._with(
            names=tuple(names),
            blocks=tuple(self.blocks[k] for k in chosen),
            columns=tuple(self.columns[k] for k in chosen),
            present=self.present[:, chosen],
            matched={name: self.matched[name] for name in names},
        )

    def with_view(self, name: str, table: Any) -> Views:
        """Return the same samples with one more view: rows in their order, or joined by name where both have names."""
        if name in self.names:
            raise ValueError(f"there is a view {name!r} already")
        if self.order is not None:
            raise ValueError("these views are columns of one table: add the new columns to it")
        added = Views({name: table}, index=self.index)
        if self.index is None and added.index is not None:
            raise ValueError(
                f"view {name!r} names its rows and the other views do not: give an array in their order, or tables "
                "with an index for all"
            )
        if len(added) != len(self):
            raise ValueError(f"view {name!r} has {len(added)} rows, but there are {len(self)} samples")
        return self._with(
            names=(*self.names, name),
            blocks=self.blocks + added.blocks,
            columns=self.columns + added.columns,
            present=np.hstack([self.present, added.present]),
            matched=self.matched | added.matched,
        )

    def with_blocks(self, blocks: Sequence[Any]) -> Views:
        """Return the same samples with other tables, view by view; names of columns stay where the widths do."""
        columns = tuple(
            known if known is not None and len(known) == block.shape[1] else None
            for known, block in zip(self.columns, blocks, strict=True)
        )
        return self._with(blocks=tuple(blocks), columns=columns)

    def bare(self) -> Views:
        """Return the views without the names of their samples and columns, as models keep them."""
        return self._with(index=None, columns=(None,) * len(self.names), matched=dict.fromkeys(self.names, 0))

    def check_values(self) -> None:
        """Raise where a view that is there has gaps or infinite numbers, or a sample has no view at all."""
        for k, (name, block) in enumerate(self.items()):
            here = np.flatnonzero(self.present[:, k])
            values = block[here]
            if sparse.issparse(values):
                bad = np.unique(np.repeat(here, np.diff(values.indptr))[~np.isfinite(values.data)])
            elif values.dtype == object:
                bad = here[missing_entries(values).any(axis=1)]
            else:
                bad = here[~np.isfinite(values).all(axis=1)]
            if bad.size:
                what = "NaN or infinity" if values.dtype != object else "missing entries"
                raise ValueError(
                    f"view {name!r} contains {what} in {bad.size} sample{'s' * (bad.size != 1)} that "
                    f"{'have' if bad.size != 1 else 'has'} other columns of it, first in row {bad[0]}: impute them "
                    "(SimpleImputer) before; only whole views may be missing"
                )
        nothing = np.flatnonzero(~self.present.any(axis=1))
        if nothing.size:
            raise ValueError(
                f"row {nothing[0]} has none of the views ({nothing.size} such rows): leave them out"
            )

    def lacking(self) -> dict[str, int]:
        """Return how many samples lack each view that is missing somewhere."""
        gone = np.count_nonzero(~self.present, axis=0)
        return {name: int(count) for name, count in zip(self.names, gone, strict=True) if count}


def is_views(X: Any, n_targets: int | None = None) -> bool:
    """Whether X is several views: a holder, a mapping, or a list of tables; without y a list may be one of samples.

    >>> is_views({"a": np.zeros((3, 2))}), is_views([np.zeros((3, 2)), np.zeros((3, 4))], 3), is_views(np.zeros((3, 2)))
    (True, True, False)
    """
    if is_annotated(X):
        return True
    if isinstance(X, Views | Mapping):
        return not sparse.issparse(X)  # scipy's matrices by keys are dictionaries, too
    if n_targets is None or not isinstance(X, list | tuple) or not len(X) or not all(map(is_table, X)):
        return False
    return len(X) != n_targets or {int(table.shape[0]) for table in X} == {n_targets}


def as_views(X: Any, index: Any = None) -> Views:
    """Return X as a holder; ``index`` names the samples wanted where the tables have names of their own."""
    return X if isinstance(X, Views) else Views(X, index=index)


def _cut(values: Any, columns: np.ndarray) -> Any:
    if columns.size == values.shape[1] and np.array_equal(columns, np.arange(columns.size)):
        return values
    if sparse.issparse(values):
        return sparse.csr_matrix(values.tocsc()[:, columns])
    consecutive = columns.size and np.array_equal(columns, np.arange(columns[0], columns[0] + columns.size))
    return values[:, columns[0] : columns[0] + columns.size] if consecutive else values[:, columns]


def _side_by_side(blocks: list[Any]) -> Any:
    if any(sparse.issparse(block) for block in blocks):
        return sparse.csr_matrix(sparse.hstack(blocks, format="csr"))
    return np.hstack(blocks)
