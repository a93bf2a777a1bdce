"""Kernels on some of the columns: what the user may write, which positions that means, views behind them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse

from .._components import closest
from ..views import Views
from ._kernel import Kernel, Schema, subsample


def plain_columns(columns: Any) -> Any:
    """Return columns in plain Python (int, str, slice, tuple), which print, hash, compare and pickle well.

    What selects columns of a table, such as ``make_column_selector``, stays.
    """
    if isinstance(columns, np.generic):
        columns = columns.item()
    if isinstance(columns, (str, slice)) or callable(columns):
        return columns
    if isinstance(columns, (list, tuple, range, set, frozenset)) or hasattr(columns, "__array__"):
        ordered = sorted(columns, key=str) if isinstance(columns, (set, frozenset)) else columns
        values = np.asarray(ordered, object)
        if values.ndim == 1:
            return tuple(value.item() if isinstance(value, np.generic) else value for value in values)
    if isinstance(columns, Integral) and not isinstance(columns, bool):
        return int(columns)
    raise ValueError(
        "columns must be a position, a name or a pattern of names, a list of these, a slice, a mask or a selector, "
        f"got {columns!r}"
    )


def _matching(pattern: str, schema: Schema) -> list[str]:
    """Return the views, or else the columns, that a pattern with * and ? means."""
    for names in (schema.views, schema.feature_names):
        if found := [name for name in names or () if fnmatchcase(name, pattern)]:
            return found
    return []


def _selected(selector: Any, schema: Schema) -> tuple[Any, ...]:
    """Return the columns of a table that a callable chooses, as scikit-learn's ColumnTransformer asks it."""
    if schema.feature_names is None:
        raise ValueError(f"columns {selector!r} are selected by name or type: pass X as a data frame")
    import pandas as pd

    dtypes = schema.dtypes or (float,) * len(schema.feature_names)
    table = {name: pd.Series(dtype=kind) for name, kind in zip(schema.feature_names, dtypes, strict=True)}
    chosen = plain_columns(selector(pd.DataFrame(table)))
    return chosen if isinstance(chosen, tuple) else (chosen,)


def _are_positions(columns: Any) -> bool:
    return isinstance(columns, tuple) and bool(columns) and all(type(column) is int for column in columns)


def pick(columns: Any, schema: Schema) -> tuple[tuple[int, ...], bool]:
    """Return the positions that ``columns`` means, and whether it is one column and no list.

    >>> pick("dose", Schema(2, ("age", "dose")))
    ((1,), True)
    >>> pick(slice(0, 2), Schema(3))
    ((0, 1), False)
    >>> pick("a*", Schema(3, ("age", "dose", "area")))
    ((0, 2), False)
    """
    n = schema.n_features
    # settled before: a view may have thousands, and be asked for often
    known = n and _are_positions(columns) and len(set(columns)) == len(columns)
    if known and 0 <= min(columns) <= max(columns) < n:
        return columns, False
    asked = columns = plain_columns(columns)
    if callable(columns):
        columns = _selected(columns, schema)
    if n is None:
        raise ValueError(
            f"columns {columns!r} were asked for, but the samples are a list of objects without columns"
        )
    single = not isinstance(columns, tuple | slice)
    several = (columns,) if single else columns
    if isinstance(columns, slice):
        if any(isinstance(end, str) for end in (columns.start, columns.stop)):
            raise ValueError(
                f"a slice of columns takes positions, not names: {columns!r}; list the names instead"
            )
        positions = tuple(range(n)[columns])
    elif columns and not single and all(isinstance(column, bool) for column in columns):
        if len(columns) != n:
            raise ValueError(f"a mask of {len(columns)} columns for samples with {n} features")
        positions = tuple(j for j in range(n) if columns[j])
    else:
        _check_known(several, schema)
        positions = tuple(j for column in several for j in _positions(column, schema))
        if any(_is_pattern(column, schema) for column in several):  # two may mean the same column
            positions, single = tuple(dict.fromkeys(positions)), False
    if not positions:
        raise ValueError(f"columns {asked!r} choose no column of the {n}")
    if len(set(positions)) < len(positions):
        raise ValueError(f"columns {columns!r} name a column twice")
    return positions, single and len(positions) == 1


def _is_pattern(column: Any, schema: Schema) -> bool:
    """Whether a column is no name but a pattern of names."""
    known = isinstance(column, str) and column in (*(schema.views or ()), *(schema.feature_names or ()))
    return isinstance(column, str) and not known and bool(_matching(column, schema))


def _check_known(columns: tuple[Any, ...], schema: Schema) -> None:
    """Refuse names that are no view and no column, all at once, each with the nearest one that is."""
    names, views = schema.feature_names, schema.views or {}
    wanted = [column for column in columns if isinstance(column, str) and column not in views]
    wanted = [column for column in wanted if not _is_pattern(column, schema)]
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
        said = []
        for column in missing:
            close = closest(column, list(names))
            said.append(f"{column!r} (did you mean {close!r}?)" if close else repr(column))
        raise ValueError(f"there is no column {', '.join(said)} among the {len(names)} of the samples")


def _positions(column: Any, schema: Schema) -> tuple[int, ...]:
    """Return the position of one column, or those of the columns of a view."""
    n = schema.n_features or 0
    if isinstance(column, str):
        if schema.views is not None and column in schema.views:
            return schema.views[column]
        if _is_pattern(column, schema):
            return tuple(j for name in _matching(column, schema) for j in _positions(name, schema))
        _check_known((column,), schema)
        return ((schema.feature_names or ()).index(column),)
    if isinstance(column, bool) or not isinstance(column, int):
        raise ValueError(f"a column is a position or a name, got {column!r}")
    if not -n <= column < n:
        raise ValueError(f"there is no column {column}: the samples have {n} features, 0 to {n - 1}")
    return (column % n,)


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
    if callable(columns):
        return f"columns of {columns!r}"
    if not isinstance(columns, tuple) or (columns and all(isinstance(column, bool) for column in columns)):
        if isinstance(columns, slice):
            parts = (columns.start, columns.stop, columns.step)[: 2 + bool(columns.step)]
            return "features " + ":".join("" if part is None else str(part) for part in parts)
        return f"{sum(columns)} features" if isinstance(columns, tuple) else str(columns)
    by_name = names is not None or any(isinstance(column, str) for column in columns)
    called = [names[j] if names is not None and isinstance(j, int) else str(j) for j in columns]
    if by_name:
        few = len(called) <= 3
        return ", ".join(called) if few else f"{called[0]} ... {called[-1]} ({len(called)} features)"
    if len(columns) == 1:
        return f"feature {columns[0]}"
    if len(columns) > 2 and columns == tuple(range(columns[0], columns[-1] + 1)):
        return f"features {columns[0]}-{columns[-1]}"
    if len(columns) <= 6:
        return "features " + ", ".join(called)
    return f"{len(columns)} features ({', '.join(called[:3])} ... {called[-1]})"


ALL = "all features"
SEVERAL = "several views"


def view_of(kernel: Kernel) -> str:
    """Return the label of the columns that a kernel is on; a held matrix is a view of its own.

    That of a kernel of pairs is its left factor.

    >>> from kernelweave import kernels as kw
    >>> view_of(kw.linear()), view_of(kw.linear().on([0, 1])), view_of(kw.linear().on(0) * kw.linear().on(1))
    ('all features', 'features 0, 1', 'several views')
    """
    if kernel.family == "held":
        return str(kernel.name)
    if kernel.family == "pair":
        return str(kernel.left.name)  # type: ignore[attr-defined]
    labels: set[str] = set()
    remaining: list[Any] = [kernel]
    while remaining:
        one = remaining.pop()
        if isinstance(one, OnColumns):
            labels.add(str(one.label or describe(one.columns)))
            continue
        parts = [*(getattr(one, "kernels", None) or ()), *([one.kernel] if hasattr(one, "kernel") else ())]
        remaining += parts
        if not parts:
            labels.add(ALL)
    return labels.pop() if len(labels) == 1 else SEVERAL


def column_groups(
    kernels: Sequence[Kernel], n_columns: int, names: Sequence[str] | None = None
) -> dict[str, tuple[int, ...]]:
    """Return the largest groups of columns that no kernel divides, each under the name that kernels on it give it.

    >>> from kernelweave import kernels as kw
    >>> bank = kw.per_view({"a": [0, 1], "b": [2]}, kw.linear()) + kw.gaussian(1.0)
    >>> column_groups(bank.expand(kw.Schema(3)), 3)
    {'a': (0, 1), 'b': (2,)}
    """
    looked_at = [kernel.looks_at(n_columns) for kernel in kernels]
    together: dict[tuple[int, ...], list[int]] = {}
    for column in range(n_columns):
        who = tuple(j for j, columns in enumerate(looked_at) if column in columns)
        if who:
            together.setdefault(who, []).append(column)
    labels = {
        tuple(sorted(columns)): kernel.label
        for kernel, columns in zip(kernels, looked_at, strict=True)
        if isinstance(kernel, OnColumns) and kernel.label
    }
    groups: dict[str, tuple[int, ...]] = {}
    for columns in map(tuple, together.values()):
        name = labels.get(columns) or ("all features" if len(together) == 1 else describe(columns, names))
        groups[name if name not in groups else f"{name} ({len(groups)})"] = columns
    return groups


class Wrapper(
    Kernel,
    passes_on="family decay accepts_sparse sure quick takes_objects takes_indices takes_numbers nonzeros "
    "always exponent looks_at",
):
    """A kernel that passes everything on to the one inside; subclasses change a part."""

    kernel: Kernel

    def expand(self, schema: Schema) -> list[Kernel]:
        return [self._with(kernel=kernel) for kernel in self.kernel.expand(schema)]

    def _plain(self) -> list[Kernel]:
        kernels = self.kernel._plain()
        return [self] if len(kernels) == 1 else [self._with(kernel=kernel) for kernel in kernels]

    def _parameters(self) -> dict[str, Any]:
        return self.kernel._parameters() | super()._parameters()


class Named(
    Wrapper,
    passes_on="columns _picks_columns is_settled base_key base base_diag points features portable_features "
    "feature_columns linear_columns rank check_samples prepare",
):
    """A kernel under a display name of its own: what ``kernel.named("...")`` gives."""

    def __init__(self, kernel: Kernel, label: str) -> None:
        self.kernel = kernel
        self.label = label

    @property
    def name(self) -> str:
        return str(self.label)

    def resolve(self, A: Any, shared: dict[Hashable, Any] | None = None) -> Named:
        return self._with(kernel=self.kernel.resolve(A, shared))

    def recentred(self, A: Any) -> Named:
        return self._with(kernel=self.kernel.recentred(A))


@dataclass(eq=False, repr=False)
class OnColumns(Wrapper, passes_on="is_settled"):
    """A kernel on some of the columns: what ``kernel.on(columns)`` gives.

    In ``columns`` a text is the name of a view where the samples have views, else that of a column, or a pattern of
    names with * and ?; after ``expand`` they are a tuple of positions.  ``label`` is how the kernel's name calls them,
    ``single`` whether one column was asked for by itself, not as a list: kernels on objects then get its entries rather
    than rows of length one.
    """

    kernel: Kernel
    columns: Any = None
    label: Any = None
    single: Any = False

    @property
    def name(self) -> str:
        return f"{self.kernel.name} on {self.label or describe(self.columns)}"

    @property
    def base_key(self) -> Hashable:
        """The key of the kernel inside with these columns in the place of its None."""
        key = self.kernel.base_key
        columns: Hashable = (
            self.columns if isinstance(self.columns, (tuple, int, str)) else repr(self.columns)
        )
        if self.takes_objects and self.single:
            columns = ("entries of", columns)
        if isinstance(key, tuple) and len(key) == 2 and key[1] is None:
            return key[0], columns
        return key, columns

    def _picked(self, A: Any) -> Any:
        positions, single = pick(self.columns, Schema.of(A))
        return select(A, positions, as_objects=self.takes_objects, single=single or self.single)

    def base(self, A: Any, B: Any) -> np.ndarray:
        left = self._picked(A)
        return self.kernel.base(left, left if A is B else self._picked(B))

    def base_diag(self, A: Any) -> np.ndarray:
        return self.kernel.base_diag(self._picked(A))

    def check_samples(self, A: Any, where: str = "", rows: np.ndarray | None = None) -> None:
        if type(self.kernel).check_samples is Kernel.check_samples:  # no columns are cut out
            return
        if isinstance(A, Views):  # samples that lack the view have nothing to be looked at
            rows = np.flatnonzero(A.present[:, np.unique(A.view_of(self.columns))].all(axis=1))
            A = A[rows]
        self.kernel.check_samples(self._picked(A), f" on {self.label or describe(self.columns)!r}", rows)

    def prepare(self, A: Any) -> tuple[Kernel, Any]:
        return (
            (self, A) if type(self.kernel).prepare is Kernel.prepare else self.kernel.prepare(self._picked(A))
        )

    def points(self, A: Any) -> np.ndarray | None:
        return self.kernel.points(self._picked(A))

    def features(self, A: Any) -> Any:
        return self.kernel.features(self._picked(A))

    def portable_features(self, A: Any) -> Any:
        return self.kernel.portable_features(A[:, list(pick(self.columns, Schema(A.shape[1]))[0])])

    def looks_at(self, n_columns: int) -> frozenset[int]:
        return frozenset(pick(self.columns, Schema(n_columns))[0])

    def feature_columns(self, n_columns: int) -> np.ndarray | None:
        return self._among_chosen(self.kernel.feature_columns)

    def linear_columns(self, n_columns: int) -> np.ndarray | None:
        return self._among_chosen(self.kernel.linear_columns)

    def _among_chosen(self, of: Callable[[int], np.ndarray | None]) -> np.ndarray | None:
        if not _are_positions(self.columns):
            return None
        used = of(len(self.columns))
        return None if used is None else np.asarray(self.columns, dtype=np.intp)[used]

    def rank(self, n_columns: int) -> int | None:
        if isinstance(self.columns, str):
            return self.kernel.rank(1)
        if isinstance(self.columns, tuple) and not any(isinstance(column, bool) for column in self.columns):
            return self.kernel.rank(len(self.columns))  # also by name: how many is enough
        return self.kernel.rank(len(pick(self.columns, Schema(n_columns))[0]))

    def resolve(self, A: Any, shared: dict[Hashable, Any] | None = None) -> OnColumns:
        """Settle the kernel inside on the chosen columns; what it shares is kept apart from other columns."""
        # nothing to settle: no columns are cut out
        if self.kernel.is_settled or type(self.kernel).resolve is Kernel.resolve:
            return self
        aside = None if shared is None else shared.setdefault(("columns", repr(self.columns)), {})
        some = subsample(A) if self.kernel.settles_on_some else A  # columns of many rows take long to cut out
        settled = self.kernel.resolve(self._picked(some), aside)
        return self if settled is self.kernel else self._with(kernel=settled)

    def recentred(self, A: Any) -> OnColumns:
        settled = self.kernel.recentred(self._picked(A))
        return self if settled is self.kernel else self._with(kernel=settled)

    def expand(self, schema: Schema) -> list[Kernel]:
        positions, single = pick(self.columns, schema)
        names = schema.feature_names
        label = self.label
        if not label:
            wanted = self.columns if isinstance(self.columns, tuple) else (self.columns,)
            only_views = all(
                isinstance(c, str) and (c in (schema.views or {}) or _is_pattern(c, schema)) for c in wanted
            )
            label = (", ".join(wanted) if only_views else "") or describe(positions, names)
        inner = Schema(len(positions), None if names is None else tuple(names[j] for j in positions))
        return [
            OnColumns(kernel, positions, label, self.single or single) for kernel in self.kernel.expand(inner)
        ]
