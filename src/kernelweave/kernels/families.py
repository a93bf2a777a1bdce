"""Whole families of kernels at once: on every single feature, on every view."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from ._algebra import Stack, as_spec
from ._kernel import Kernel, KernelSpec, Schema
from ._parts import NamedParts
from ._selection import describe, pick, plain_columns
from .columns import OnColumns

__all__ = ["PerFeature", "PerView", "kernels_without_columns", "on_every_view", "per_feature", "per_view"]


def kernels_without_columns(families: tuple[Any, ...], schema: Schema, what: str) -> list[Kernel]:
    """Return the kernels of some families, none of them on columns already."""
    kernels = Stack(families).expand(schema)
    placed = [kernel.name for kernel in kernels if kernel._picks_columns]
    if placed:
        raise ValueError(f"{what} places its kernels itself, but {placed[0]!r} is already on columns")
    return kernels


class PerFeature(NamedParts):
    """Every kernel of some families on every single feature; see :func:`per_feature`."""

    _sequence = "families"

    def __init__(self, families: Any = (), columns: Any = None) -> None:
        self.families = families
        self.columns = columns

    def expand(self, schema: Schema) -> list[Kernel]:
        """Return all kernels of the first feature, then of the second, and so on."""
        if schema.n_features is None:
            raise ValueError(
                "per_feature needs samples with features: an array or a data frame, not a list of objects"
            )
        chosen = slice(None) if self.columns is None else self.columns
        one_column = Schema(1, None)
        kernels = kernels_without_columns(self.families, one_column, "per_feature")
        labels = [(j, describe((j,), schema.feature_names)) for j in pick(chosen, schema)[0]]
        return [OnColumns(kernel, (j,), label, single=True) for j, label in labels for kernel in kernels]

    def on(self, columns: Any) -> KernelSpec:
        """Refuse: the columns are a parameter here."""
        raise ValueError(
            "per_feature places its kernels itself: choose features with per_feature(..., columns=...)"
        )


class PerView(NamedParts):
    """Every kernel of some families on every view, a group of columns; see :func:`per_view`."""

    _sequence = "families"

    def __init__(self, views: Any, families: Any = ()) -> None:
        self.views = views
        self.families = families

    def expand(self, schema: Schema) -> list[Kernel]:
        """Return all kernels of the first view, then of the second, and so on."""
        kernels: list[Kernel] = []
        for view, columns in self.views.items():
            try:
                positions, single = pick(columns, schema)
            except ValueError as error:
                raise ValueError(f"view {view!r}: {error}") from error
            inside = kernels_without_columns(self.families, Schema(len(positions), None), "per_view")
            kernels += [OnColumns(kernel, positions, str(view), single) for kernel in inside]
        return kernels

    def on(self, columns: Any) -> KernelSpec:
        """Refuse: the views are the columns here."""
        raise ValueError("per_view places its kernels itself: choose columns in its views")


def on_every_view(kernels: Sequence[Kernel], views: Mapping[str, tuple[int, ...]]) -> list[Kernel]:
    """Put kernels that choose no columns on every view, all of the first view first; leave the others."""
    placed: list[Kernel] = []
    for chooses, run in groupby(kernels, key=lambda kernel: kernel._picks_columns):
        together = list(run)
        if chooses:
            placed += together
            continue
        placed += [
            OnColumns(kernel, positions, view, single=len(positions) == 1)
            for view, positions in views.items()
            for kernel in together
        ]
    return placed


def per_feature(*families: Any, columns: Any = None) -> PerFeature:
    """Return every kernel of these families on every single feature.

    Parameters
    ----------
    *families : Kernel, Stack or function of two samples
    columns : columns or None
        Only these features; by default all.

    Examples
    --------
    >>> from kernelweave import kernels as kw
    >>> spec = kw.per_feature(kw.gaussian([0.5, 1.0]), kw.linear())
    >>> [kernel.name for kernel in spec.expand(kw.Schema(1, ("age",)))]
    ['gaussian(width=0.5) on age', 'gaussian(width=1) on age', 'linear on age']
    """
    if not families:
        raise ValueError(
            "per_feature needs at least one family, for example per_feature(gaussian([0.5, 1, 2]))"
        )
    return PerFeature(tuple(map(as_spec, families)), None if columns is None else plain_columns(columns))


def per_view(views: Mapping[str, Any], *families: Any) -> PerView:
    """Return every kernel of these families on every view: a named group of columns.

    Parameters
    ----------
    views : mapping from a name to columns
    *families : Kernel, Stack or function of two samples

    Examples
    --------
    >>> from kernelweave import kernels as kw
    >>> spec = kw.per_view({"mrna": slice(0, 50), "clinical": [50, 51]}, kw.gaussian(2.0))
    >>> [kernel.name for kernel in spec.expand(kw.Schema(52))]
    ['gaussian(width=2) on mrna', 'gaussian(width=2) on clinical']
    """
    if not isinstance(views, Mapping) or not views:
        raise ValueError(
            'per_view needs a mapping from names to columns: per_view({"mrna": slice(0, 50)}, ...)'
        )
    if not families:
        raise ValueError(
            "per_view needs at least one family, for example per_view(views, gaussian([0.5, 1, 2]))"
        )
    return PerView({view: plain_columns(c) for view, c in views.items()}, tuple(map(as_spec, families)))
