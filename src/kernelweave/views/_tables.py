"""One table of any kind as a block of values with names: data frames, AnnData and MuData."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Number
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from .._components import nearest
from .._numerics.matrices import check_sparse, without_duplicates
from ..exceptions import KernelWeaveWarning, warn_at_caller


class Block(NamedTuple):
    """Values ``(n, width)`` (numbers, sparse numbers or objects), names of the columns, and of the rows if any."""

    values: Any
    columns: tuple[str, ...] | None
    samples: np.ndarray | None


def is_table(what: Any) -> bool:
    """Whether something has rows and columns: an array, a sparse matrix, a pandas, polars or Arrow table."""
    return len(getattr(what, "shape", ())) == 2


def _named_columns(what: Any) -> dict[str, np.ndarray] | None:
    """Return the columns of a polars or Arrow table by their names; None for anything else."""
    module = type(what).__module__.partition(".")[0]
    if module == "pyarrow" and hasattr(what, "num_rows") and hasattr(what, "column_names"):
        return {name: what.column(name).to_numpy(zero_copy_only=False) for name in what.column_names}
    if module == "polars" and is_table(what):
        return {name: what[name].to_numpy() for name in what.columns}
    return None


def is_row(what: Any) -> bool:
    """Whether something can be a row of numbers."""
    if isinstance(what, np.ndarray):
        return what.ndim == 1 and what.dtype.kind in "fiub"
    return isinstance(what, list | tuple) and all(isinstance(value, Number) for value in what)


def is_object_list(what: Any) -> bool:
    """Whether something is a list of single things that are no numbers, some of which may be missing.

    >>> is_object_list(["ACGT", None]), is_object_list([[1, 2], [3, 4]]), is_object_list([1.0, 2.0])
    (True, False, False)
    """
    if not isinstance(what, list | tuple):
        return False
    first = next((one for one in what if one is not None), 0.0)
    return not isinstance(first, Number | np.generic) and not is_row(first)


def object_column(objects: Sequence[Any]) -> np.ndarray:
    """Return a column of objects, which may be sequences of their own: NumPy would take them apart."""
    column = np.empty((len(objects), 1), dtype=object)
    for i, one in enumerate(objects):
        column[i, 0] = one
    return column


def as_frame(what: Any) -> Any:
    """Return a polars or Arrow table as a data frame, so that its columns keep their names; anything else as it is."""
    columns = _named_columns(what)
    if columns is None:
        return what
    import pandas as pd

    return pd.DataFrame(columns)


def read_block(table: Any, view: str, identity: str | None = None) -> Block:
    """Read the table of one view; ``identity`` is the column with the names of the samples, where there is one."""
    if is_modality(table):
        table = Layer(table)
    if isinstance(table, Layer):
        values, genes, cells = table.read(view)
        return Block(read_block(values, view).values, genes, cells)
    if sparse.issparse(table):
        check_sparse(table, f"view {view!r}")
        return Block(without_duplicates(sparse.csr_matrix(table, dtype=np.float64)), None, None)
    module = type(table).__module__.partition(".")[0]
    if module == "polars" and len(table.shape) == 1:
        table = table.to_frame()
    if (columns := _named_columns(table)) is not None:
        samples = None
        if identity is not None:
            if identity not in columns:
                raise ValueError(f"view {view!r} has no column {identity!r} with the names of its samples")
            samples = np.asarray(columns.pop(identity))
        if not columns:
            raise ValueError(f"view {view!r} has no column")
        kind = np.float64 if all(part.dtype.kind in "fiub" for part in columns.values()) else object
        values = np.column_stack([np.asarray(part, dtype=kind) for part in columns.values()])
        return Block(values, tuple(columns), samples)
    if hasattr(table, "iloc"):
        return _pandas_block(table, view, identity)
    if module in ("torch", "dask"):
        raise ValueError(
            f"view {view!r} is a {type(table).__name__} of {module}: views are tables in memory; pass a NumPy "
            "array, or one table with columns by view"
        )
    values = object_column(table) if is_object_list(table) else np.asarray(table)
    if values.dtype.kind in "fiub":
        values = np.asarray(values, dtype=np.float64)
    elif values.dtype.kind in "OUS":
        values = values.astype(object)
    else:
        raise ValueError(f"view {view!r} holds {values.dtype}, neither numbers nor objects")
    values = values.reshape(-1, 1) if values.ndim == 1 else values
    if values.ndim != 2:
        raise ValueError(
            f"view {view!r} has {values.ndim} dimensions: a view is a table, one row for each sample"
        )
    if values.shape[1] == 0:
        raise ValueError(f"view {view!r} has no column")
    return Block(values, None, None)


def _pandas_block(table: Any, view: str, identity: str | None) -> Block:
    import pandas as pd

    if table.ndim == 1:
        table = table.to_frame()
    index = table.index
    if identity is not None and identity in table.columns:
        index, table = table[identity], table.drop(columns=identity)
    elif identity is not None and index.name != identity:
        raise ValueError(f"view {view!r} has no column {identity!r} with the names of its samples")
    names = tuple(map(str, table.columns)) if all(isinstance(c, str) for c in table.columns) else None
    numeric = all(pd.api.types.is_numeric_dtype(kind) for kind in table.dtypes)
    values = table.to_numpy(dtype=float, na_value=np.nan) if numeric else table.to_numpy(dtype=object)
    return Block(values, names, row_names(index))


def row_names(index: Any) -> np.ndarray | None:
    """Return the names that an index of pandas (or a column) gives to rows; None where it only counts them."""
    import pandas as pd

    if not isinstance(index, pd.Index | pd.Series):
        return None
    counted = isinstance(index, pd.RangeIndex) and index.equals(pd.RangeIndex(len(index)))
    return None if counted else np.asarray(index)


def missing_entries(values: Any) -> np.ndarray:
    """Where a dense block has no value: NaN, or None among objects."""
    if values.dtype != object:
        return np.isnan(values)
    import pandas as pd

    return np.asarray(pd.isna(values))


def as_numbers(values: Any) -> Any:
    """Return a block of objects all of which are numbers, or missing, as numbers; anything else as it is."""
    if values.dtype != object or not all(one is None or isinstance(one, Number) for one in values.flat):
        return values
    return values.astype(np.float64)


def absent_rows(values: Any) -> np.ndarray:
    """Rows of which no entry is there."""
    if sparse.issparse(values):
        stored = np.diff(values.indptr)
        gone = np.bincount(np.repeat(np.arange(stored.size), stored), np.isnan(values.data), stored.size)
        return np.asarray(np.equal(gone, values.shape[1]))
    return np.asarray(missing_entries(values).all(axis=1))


def take_rows(values: Any, rows: np.ndarray) -> Any:
    """Return rows of a block by number; -1 gives a row without values."""
    if np.all(rows >= 0):
        return values[rows]
    taken = values[np.maximum(rows, 0)]
    if sparse.issparse(values):
        keep = sparse.diags((rows >= 0).astype(float))
        return sparse.csr_matrix(keep @ taken)
    taken[rows < 0] = None if values.dtype == object else np.nan
    return taken


def unlike(names: Sequence[Any] | np.ndarray, most: int = 3) -> str:
    """List a few names for a message."""
    listed = ", ".join(repr(getattr(name, "item", lambda name=name: name)()) for name in names[:most])
    return listed + (", ..." if len(names) > most else "")


# AnnData (one view) and MuData (one view per modality) are recognised by what they offer, and neither package is
# imported: whatever has ``obs``, ``obs_names`` and ``X`` with ``var_names``, or ``mod``, will do.

#: what a view of X itself is called; one of a layer has the layer's name
MATRIX = "X"
#: whole numbers up to more than this are counts that nobody has put on another scale
COUNTS = 100.0


def is_annotated(what: Any) -> bool:
    """Whether something is an AnnData or a MuData."""
    # a table may have columns of these names
    cells = hasattr(what, "obs") and hasattr(what, "obs_names") and not hasattr(what, "iloc")
    return cells and (
        hasattr(what, "mod") or all(hasattr(what, name) for name in ("var_names", "layers", "X"))
    )


def is_modality(what: Any) -> bool:
    """Whether something is one annotated matrix: an AnnData."""
    return is_annotated(what) and not hasattr(what, "mod")


@dataclass(frozen=True)
class Layer:
    """One matrix of an AnnData, with the names of its cells and genes: a layer by its name, or X."""

    data: Any
    name: str | None = None

    def read(self, view: str) -> tuple[Any, tuple[str, ...], np.ndarray]:
        """Return the values (sparse ones as they are), the names of the columns and those of the cells."""
        for what, names, repair in (
            ("columns", self.data.var_names, "var_names_make_unique"),
            ("cells", self.data.obs_names, "obs_names_make_unique"),
        ):
            if not names.is_unique:
                twice = names[names.duplicated()][0]
                raise ValueError(f"view {view!r} has two {what} named {twice!r}: call .{repair}() first")
        layers = self.data.layers
        if self.name is None and self.data.X is None:
            raise ValueError(f"view {view!r} has no X: choose a layer, {_listed(layers)}")
        if self.name is not None and self.name not in layers:
            close = nearest(self.name, list(layers))
            raise ValueError(f"there is no layer {self.name!r}.{close} Layers: {_listed(layers)}")
        values = self.data.X if self.name is None else layers[self.name]
        # matrices in a file that is open: all of it, rows as they are
        values = values.to_memory() if hasattr(values, "to_memory") else values
        if sparse.issparse(values):
            values = sparse.csr_matrix(values)
        entries = values.data if sparse.issparse(values) else np.asarray(values)
        if entries.size and entries.dtype.kind in "fiu":
            # of raw counts, the few genes with the most of them would be all that a kernel sees
            largest = float(np.max(entries))
            counts = COUNTS < largest < np.inf and float(np.min(entries)) >= 0.0
            if counts and np.array_equal(entries, np.round(entries)):
                warn_at_caller(
                    f"view {view!r} holds raw counts (up to {largest:.0f}): a few columns with many counts decide "
                    "then. Divide by the cells' totals and take logarithms (scanpy: normalize_total, log1p), or choose "
                    "a layer with such values: omics.cells(data, layer=...)",
                    KernelWeaveWarning,
                )
        return values, tuple(map(str, self.data.var_names)), np.asarray(self.data.obs_names)


def _listed(names: Any) -> str:
    return ", ".join(map(repr, names)) or "of which there are none"


def layers_of(
    data: Any, layer: str | Mapping[str, str] | None = None, modalities: Any = None
) -> dict[str, Layer]:
    """Return the matrices of an AnnData or a MuData by the name of their view."""
    if is_modality(data):
        if modalities is not None or isinstance(layer, Mapping):
            raise ValueError("modalities are those of MuData: an AnnData has X and layers")
        return {MATRIX if layer is None else str(layer): Layer(data, layer)}
    known = list(data.mod)
    chosen = known if modalities is None else [str(name) for name in modalities]
    chosen_layers = dict(layer) if isinstance(layer, Mapping) else dict.fromkeys(chosen, layer)
    for name in [*chosen, *chosen_layers]:
        if name not in known:
            close = nearest(name, known)
            raise ValueError(f"there is no modality {name!r}.{close} Modalities: {_listed(known)}")
    return {name: Layer(data.mod[name], chosen_layers.get(name)) for name in chosen}


def annotated_target(data: Any, name: str) -> Any:
    """Return a column of ``obs`` as a target, or say what is wrong with it; warn of classes of one cell."""
    columns = [str(column) for column in data.obs.columns]
    if name not in columns:
        close = nearest(name, columns)
        raise ValueError(f".obs has no column {name!r}.{close} Its columns are {_listed(columns)}")
    column = data.obs[name]
    gone = int(column.isna().sum())
    if gone:
        raise ValueError(
            f"{gone} of {len(column)} cells have no {name!r}: leave them out, data[data.obs[{name!r}].notna()]"
        )
    if column.dtype.kind in "fc":
        return column.astype(float)
    # strings of any kind and categories alike
    labels = column.astype(column.cat.categories.dtype) if hasattr(column, "cat") else column
    counts = labels.value_counts()
    alone = counts.index[counts == 1]
    if 0 < len(alone) < len(labels):
        warn_at_caller(
            f"classes of {name!r} with one cell only: {_listed(alone[:5])}{', ...' * (len(alone) > 5)}. Nothing can be "
            "learnt or checked from one: leave them out, or merge them with others",
            KernelWeaveWarning,
        )
    return labels.astype(object) if labels.dtype.kind not in "iub" else labels
