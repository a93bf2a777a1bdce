"""Kernels that lean on another: on some of the columns, or under another name."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from ._kernel import Kernel, Schema
from ._selection import describe, pick, plain_columns, select

__all__ = ["Named", "OnColumns", "Wrapper", "plain_columns"]


class Wrapper(Kernel):
    """A kernel that passes everything on to the one inside; subclasses change a part."""

    kernel: Kernel

    @property
    def family(self) -> str:  # type: ignore[override]
        """The family of the kernel inside."""
        return self.kernel.family

    @property
    def decay(self) -> bool:  # type: ignore[override]
        """Whether the kernel inside decays."""
        return self.kernel.decay

    @property
    def accepts_sparse(self) -> bool:  # type: ignore[override]
        """Whether the kernel inside takes sparse samples."""
        return self.kernel.accepts_sparse

    @property
    def sure(self) -> bool:  # type: ignore[override]
        """Whether the kernel inside is one by construction."""
        return self.kernel.sure

    @property
    def quick(self) -> bool:  # type: ignore[override]
        """Whether the base of the kernel inside costs next to nothing."""
        return self.kernel.quick

    @property
    def takes_objects(self) -> bool:  # type: ignore[override]
        """Whether the kernel inside takes objects."""
        return self.kernel.takes_objects

    @property
    def takes_indices(self) -> bool:  # type: ignore[override]
        """Whether the kernel inside takes sample indices."""
        return self.kernel.takes_indices

    @property
    def always(self) -> float | None:  # type: ignore[override]
        """The given weight of the kernel inside, if it has one."""
        return self.kernel.always

    @property
    def exponent(self) -> float:
        """The exponent of the kernel inside."""
        return self.kernel.exponent

    def looks_at(self, n_columns: int) -> frozenset[int]:
        """Return the columns of the kernel inside."""
        return self.kernel.looks_at(n_columns)


class Named(Wrapper):
    """A kernel under a display name of its own: what ``kernel.named("...")`` gives."""

    def __init__(self, kernel: Kernel, label: str) -> None:
        self.kernel = kernel
        self.label = label

    @property
    def name(self) -> str:
        """The given name."""
        return str(self.label)

    @property
    def columns(self) -> Any:
        """The columns of the kernel inside."""
        return self.kernel.columns

    @property
    def _picks_columns(self) -> bool:
        return self.kernel._picks_columns

    @property
    def is_settled(self) -> bool:  # type: ignore[override]
        """Whether the kernel inside has learnt all there is to learn."""
        return self.kernel.is_settled

    @property
    def base_key(self) -> Hashable:
        """A name does not change the base matrix."""
        return self.kernel.base_key

    def base(self, A: Any, B: Any) -> np.ndarray:
        """Return the base matrix of the kernel inside."""
        return self.kernel.base(A, B)

    def base_diag(self, A: Any) -> np.ndarray:
        """Return the diagonal of the base matrix of the kernel inside."""
        return self.kernel.base_diag(A)

    def points(self, A: Any) -> np.ndarray | None:
        """Return the rows of the kernel inside."""
        return self.kernel.points(A)

    def features(self, A: Any) -> Any:
        """Return the features of the kernel inside."""
        return self.kernel.features(A)

    def portable_features(self, A: Any) -> Any:
        """Return the features of the kernel inside."""
        return self.kernel.portable_features(A)

    def feature_columns(self, n_columns: int) -> np.ndarray | None:
        """Return the columns of the kernel inside."""
        return self.kernel.feature_columns(n_columns)

    def linear_columns(self, n_columns: int) -> np.ndarray | None:
        """Return the columns of the kernel inside."""
        return self.kernel.linear_columns(n_columns)

    def rank(self, n_columns: int) -> int | None:
        """Return the rank of the kernel inside."""
        return self.kernel.rank(n_columns)

    def resolve(self, A: Any, shared: dict[Hashable, Any] | None = None) -> Named:
        """Settle the kernel inside."""
        return Named(self.kernel.resolve(A, shared), self.label)

    def recentred(self, A: Any) -> Named:
        """Settle the kernel inside around the mean of the samples."""
        return Named(self.kernel.recentred(A), self.label)

    def expand(self, schema: Schema) -> list[Kernel]:
        """Return the named kernel with its columns as positions."""
        return [Named(kernel, self.label) for kernel in self.kernel.expand(schema)]


class OnColumns(Wrapper):
    """A kernel on some of the columns: what ``kernel.on(columns)`` gives.

    Parameters
    ----------
    kernel : Kernel
    columns : int, str, slice, or a sequence of int, str or bool
        A text is the name of a view where the samples have views, else that of a column.  After :meth:`expand` always
        a tuple of positions.
    label : str or None
        How the columns are called in the kernel's name.
    single : bool
        Whether one column was asked for by itself, not as a list: kernels on objects then get its entries
        rather than rows of length one.
    """

    def __init__(self, kernel: Kernel, columns: Any, label: str | None = None, single: bool = False) -> None:
        self.kernel = kernel
        self.columns = columns
        self.label = label
        self.single = single

    @property
    def name(self) -> str:
        """The name of the kernel inside, and where it looks."""
        return f"{self.kernel.name} on {self.label or describe(self.columns)}"

    @property
    def is_settled(self) -> bool:  # type: ignore[override]
        """Whether the kernel inside has learnt all there is to learn."""
        return self.kernel.is_settled

    @property
    def base_key(self) -> Hashable:
        """The key of the kernel inside with these columns in the place of its None."""
        inside = self.kernel.base_key
        columns: Hashable = (
            self.columns if isinstance(self.columns, (tuple, int, str)) else repr(self.columns)
        )
        if self.takes_objects and self.single:
            columns = ("entries of", columns)
        if isinstance(inside, tuple) and len(inside) == 2 and inside[1] is None:
            return inside[0], columns
        return inside, columns

    def _picked(self, A: Any) -> Any:
        positions, single = pick(self.columns, Schema.of(A))
        return select(A, positions, as_objects=self.takes_objects, single=single or self.single)

    def base(self, A: Any, B: Any) -> np.ndarray:
        """Return the base matrix of the chosen columns."""
        left = self._picked(A)
        return self.kernel.base(left, left if A is B else self._picked(B))

    def base_diag(self, A: Any) -> np.ndarray:
        """Return the diagonal of the base matrix of the chosen columns."""
        return self.kernel.base_diag(self._picked(A))

    def points(self, A: Any) -> np.ndarray | None:
        """Return the chosen columns, where the kernel inside compares them by their squared distances."""
        return self.kernel.points(self._picked(A))

    def features(self, A: Any) -> Any:
        """Return the features of the chosen columns."""
        return self.kernel.features(self._picked(A))

    def portable_features(self, A: Any) -> Any:
        """Return the features of the chosen columns."""
        return self.kernel.portable_features(A[:, list(pick(self.columns, Schema(A.shape[1]))[0])])

    def looks_at(self, n_columns: int) -> frozenset[int]:
        """Return the chosen columns."""
        return frozenset(pick(self.columns, Schema(n_columns))[0])

    def feature_columns(self, n_columns: int) -> np.ndarray | None:
        """Return those of the chosen columns that the kernel inside uses as they are."""
        return self._among_chosen(self.kernel.feature_columns)

    def linear_columns(self, n_columns: int) -> np.ndarray | None:
        """Return those of the chosen columns that the kernel inside is an inner product of."""
        return self._among_chosen(self.kernel.linear_columns)

    def _among_chosen(self, of: Callable[[int], np.ndarray | None]) -> np.ndarray | None:
        positions = isinstance(self.columns, tuple) and all(type(column) is int for column in self.columns)
        if not positions:
            return None
        inside = of(len(self.columns))
        return None if inside is None else np.asarray(self.columns, dtype=np.intp)[inside]

    def rank(self, n_columns: int) -> int | None:
        """Return the rank on the chosen columns."""
        if isinstance(self.columns, str):
            return self.kernel.rank(1)
        if isinstance(self.columns, tuple) and not any(isinstance(column, bool) for column in self.columns):
            return self.kernel.rank(len(self.columns))  # also by name: how many is enough
        return self.kernel.rank(len(pick(self.columns, Schema(n_columns))[0]))

    def resolve(self, A: Any, shared: dict[Hashable, Any] | None = None) -> OnColumns:
        """Settle the kernel inside on the chosen columns; what it shares is kept apart from other columns."""
        if self.is_settled:
            return self
        if type(self.kernel).resolve is Kernel.resolve:  # nothing to settle: no columns are cut out
            return self
        aside = None if shared is None else shared.setdefault(("columns", repr(self.columns)), {})
        inside = self.kernel.resolve(self._picked(A), aside)
        return self if inside is self.kernel else OnColumns(inside, self.columns, self.label, self.single)

    def recentred(self, A: Any) -> OnColumns:
        """Settle the kernel inside around the mean of the chosen columns."""
        inside = self.kernel.recentred(self._picked(A))
        return self if inside is self.kernel else OnColumns(inside, self.columns, self.label, self.single)

    def expand(self, schema: Schema) -> list[Kernel]:
        """Return the kernel with its columns as positions; columns that are not there are named."""
        positions, single = pick(self.columns, schema)
        label = self.label or self._view_names(schema) or describe(positions, schema.feature_names)
        names = schema.feature_names
        inner = Schema(len(positions), None if names is None else tuple(names[j] for j in positions))
        return [
            OnColumns(kernel, positions, label, self.single or single) for kernel in self.kernel.expand(inner)
        ]

    def _view_names(self, schema: Schema) -> str | None:
        """Return the names of the views that were asked for, where nothing but views was."""
        wanted = self.columns if isinstance(self.columns, tuple) else (self.columns,)
        known = schema.views or {}
        return ", ".join(wanted) if all(isinstance(c, str) and c in known for c in wanted) else None
