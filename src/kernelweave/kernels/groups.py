"""Kernels on named groups of columns from files: gene sets in GMT, pathways, any table of groups."""

from __future__ import annotations

import csv
import gzip
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._components import check_choice, check_whole
from ..exceptions import KernelWeaveWarning, warn_at_caller
from ._algebra import as_spec, kernels_without_columns
from ._kernel import Kernel, NamedParts, Schema
from .columns import OnColumns, plain_columns


def read_groups(path: str | Path) -> dict[str, tuple[str, ...]]:
    """Read groups from a CSV file with the columns ``column`` and ``group``; a column may be in several groups."""
    table = csv.DictReader([line for _, line in _lines(path)])
    heads = [head.strip() for head in table.fieldnames or ()]
    if not {"column", "group"} <= set(heads):
        raise ValueError(
            f"{path}: a table of groups has the columns 'column' and 'group'; got {', '.join(heads) or 'nothing'}"
        )
    table.fieldnames = heads
    found: dict[str, dict[str, None]] = {}
    for row in table:
        column, group = (row["column"] or "").strip(), (row["group"] or "").strip()
        if not column or not group:
            raise ValueError(f"{path}, line {table.line_num}: both a column and a group are needed")
        found.setdefault(group, {})[column] = None
    if not found:
        raise ValueError(f"{path} names no group: there is nothing below its heading")
    return {group: tuple(columns) for group, columns in found.items()}


def _lines(path: str | Path) -> Iterator[tuple[int, str]]:
    """Lines with something in them, and their numbers."""
    opened = gzip.open if str(path).endswith(".gz") else open
    try:
        with opened(path, "rt", encoding="utf-8-sig") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield number, line.rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is no text in UTF-8 ({error.reason} at byte {error.start})") from error


MISSING = ("drop", "error")
RESIDUAL = "in no group"


@dataclass(frozen=True)
class Coverage:
    """Columns of the groups that a table has."""

    #: columns of every group that is kept, by position
    positions: dict[str, tuple[int, ...]]
    #: names of every group that the table does not have
    missing: dict[str, tuple[str, ...]]
    #: number of columns in the table, of the groups that have too few of them
    small: dict[str, int]
    #: columns in no kept group
    residual: tuple[int, ...]

    @property
    def n_missing(self) -> int:
        """Number of different names that the table does not have."""
        return len(set().union(*self.missing.values()))

    def __str__(self) -> str:
        """Say what was left out; nothing where all was found."""
        said = []
        if self.missing:
            some = next(iter(self.missing.values()))[0]
            said.append(
                f"{self.n_missing} names in {len(self.missing)} groups are no column and were left out ({some!r}, ...)"
            )
        if self.small:
            said.append(
                f"{len(self.small)} groups have too few columns in the table and were left out: "
                f"{_listed(list(self.small))}"
            )
        return "; ".join(said)


@dataclass(eq=False, repr=False)
class Groups(NamedParts):
    """Every kernel of some families on every group of columns; see :func:`from_groups`."""

    groups: Any
    families: Any = ()
    missing_columns: str = "drop"
    min_size: int = 1
    residual: Any = False
    columns: Any = None

    family = "from_groups"
    _sequence = "families"
    _no_columns = "from_groups places its kernels itself: choose columns in its groups"

    def coverage(self, table: Any) -> Coverage:
        """Return which columns of a table (or a schema) every group has, and which it lacks."""
        schema = table if isinstance(table, Schema) else Schema.of(table)
        if schema.n_features is None:
            raise ValueError("groups of columns need a table: an array, a sparse matrix or a data frame")
        names = schema.feature_names if self.columns is None else self.columns
        if names is not None and len(names) != schema.n_features:
            raise ValueError(f"columns has {len(names)} names for a table of {schema.n_features} columns")
        place = {name: j for j, name in enumerate(names)} if names is not None else {}
        positions: dict[str, tuple[int, ...]] = {}
        missing: dict[str, tuple[str, ...]] = {}
        small: dict[str, int] = {}
        for group, members in self.groups.items():
            found: dict[int, None] = {}
            lost: list[str] = []
            for member in members:
                at = place.get(member) if isinstance(member, str) else member
                if at is None or not 0 <= at < schema.n_features:
                    lost.append(str(member))
                else:
                    found[int(at)] = None
            if lost:
                missing[group] = tuple(lost)
            if len(found) < self.min_size:
                small[group] = len(found)
            else:
                positions[group] = tuple(found)
        used = {j for chosen in positions.values() for j in chosen}
        residual = tuple(j for j in range(schema.n_features) if j not in used)
        return Coverage(positions, missing, small, residual)

    def checked(self, table: Any) -> Coverage:
        """Return the coverage, or raise where it does not do: names that must not miss, or nothing left."""
        schema = table if isinstance(table, Schema) else Schema.of(table)
        found = self.coverage(schema)
        by_name = any(isinstance(member, str) for members in self.groups.values() for member in members)
        names = schema.feature_names if self.columns is None else list(self.columns)
        if by_name and names is None:
            raise ValueError(
                "groups name their columns, but the samples have no names: pass a data frame, or "
                "from_groups(..., columns=[...]) with the names in order"
            )
        if found.missing and self.missing_columns == "error":
            group, lost = next(iter(found.missing.items()))
            raise ValueError(
                f"{found.n_missing} names in {len(found.missing)} groups are no column of the table; group {group!r} "
                f"lacks {_listed(list(lost))}. Use missing_columns='drop' to leave them out"
            )
        if not found.positions:
            example = next(member for members in self.groups.values() for member in members)
            columns = f"; the groups name {example!r}, the table has {names[0]!r}" if names else ""
            raise ValueError(
                f"none of the {len(self.groups)} groups has {self.min_size} columns in the table{columns}: check that "
                "both use the same identifiers (symbols, Ensembl), or lower min_size"
            )
        return found

    def expand(self, schema: Schema) -> list[Kernel]:
        found = self.checked(schema)
        chosen = dict(found.positions)
        if self.residual and found.residual:
            chosen[RESIDUAL if self.residual is True else str(self.residual)] = found.residual
        if said := str(found):
            warn_at_caller(f"{said}. groups.coverage(X) has the lists.", KernelWeaveWarning)
        kernels: list[Kernel] = []
        for group, positions in chosen.items():
            inside = kernels_without_columns(self.families, Schema(len(positions), None), "from_groups")
            kernels += [OnColumns(kernel, positions, group) for kernel in inside]
        return kernels


def _listed(names: list[str]) -> str:
    return ", ".join(map(repr, names[:5])) + (", ..." if len(names) > 5 else "")


def from_groups(
    groups: Mapping[str, Any] | str | Path,
    *families: Any,
    missing_columns: str = "drop",
    min_size: int = 1,
    residual: bool | str = False,
    columns: Sequence[str] | None = None,
) -> Groups:
    """Return every kernel of these families on every group of columns; groups may overlap.

    Unlike :func:`per_view`, a group may name columns that the table does not have, as gene sets do.

    Parameters
    ----------
    groups : mapping from a name to columns, or path
        Names or positions of columns; or a CSV file with the columns ``column`` and ``group``.
    *families : Kernel, Stack or function of two samples
    missing_columns : {"drop", "error"}, default="drop"
        Whether names that are no column are left out, with a warning that counts them, or refused.
    min_size : int, default=1
        Groups with fewer columns in the table are left out.
    residual : bool or str, default=False
        Whether all columns that are in no group make one more, and how it is called.
    columns : sequence of str, optional
        Names of the columns, for tables without names (arrays, sparse matrices).

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import kernels as kw
    >>> sets = {"growth": ["MYC", "EGFR"], "repair": ["TP53", "EGFR"]}
    >>> spec = kw.from_groups(sets, kw.linear(), residual=True, columns=["MYC", "EGFR", "TP53", "ACTB"])
    >>> [kernel.name for kernel in spec.expand(kw.Schema(4))]
    ['linear on growth', 'linear on repair', 'linear on in no group']
    """
    made = read_groups(groups) if isinstance(groups, (str, Path)) else groups
    if not isinstance(made, Mapping) or not made:
        raise ValueError(
            'from_groups needs a mapping from names to columns: from_groups({"growth": ["MYC", "EGFR"]}, ...)'
        )
    if not families:
        raise ValueError("from_groups needs at least one family, for example from_groups(groups, linear())")
    check_choice("missing_columns", missing_columns, MISSING)
    check_whole("min_size", min_size)
    members: dict[str, tuple[Any, ...]] = {}
    for group, names in made.items():
        plain = plain_columns(names)
        members[str(group)] = own = plain if isinstance(plain, tuple) else (plain,)
        if not own or not all(type(member) in (int, str) for member in own):
            raise ValueError(
                f"group {str(group)!r}: a group is a list of names or positions of columns, got {names!r}"
            )
    if len(members) < len(made):
        raise ValueError("groups of the same name: their names must differ as text")
    called = None if columns is None else tuple(map(str, columns))
    return Groups(members, tuple(map(as_spec, families)), missing_columns, min_size, residual, called)


def from_gmt(
    path: str | Path,
    *families: Any,
    missing_columns: str = "drop",
    min_size: int = 1,
    residual: bool | str = False,
    columns: Sequence[str] | None = None,
) -> Groups:
    """Return every kernel of these families on every gene set of a GMT file.

    Parameters
    ----------
    path : str or Path
        Gene sets, one to a line: name, description and genes, separated by tabs; plain or ``.gz``.
    *families : Kernel, Stack or function of two samples
    missing_columns, min_size, residual, columns
        As for :func:`from_groups`.
    """
    found: dict[str, tuple[str, ...]] = {}
    names: list[str] = []
    for number, line in _lines(path):
        name, *rest = (field.strip() for field in line.split("\t"))
        members = tuple(dict.fromkeys(filter(None, rest[1:])))  # those named twice count once
        if not name or not members:
            raise ValueError(
                f"{path}, line {number}: a gene set is a name, a description and genes, separated by tabs; got "
                f"{line[:60]!r}"
            )
        names.append(name)
        found[name] = members
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        some = ", ".join(map(repr, twice[:5]))
        raise ValueError(f"{path}: sets of the same name: {some}; rename or remove the copies")
    if not found:
        raise ValueError(f"{path} holds no gene set: every line is empty")
    return from_groups(
        found,
        *families,
        missing_columns=missing_columns,
        min_size=min_size,
        residual=residual,
        columns=columns,
    )
