"""Which groups of columns the kernels of a bank look at: the views behind them, where nobody named any."""

from __future__ import annotations

from collections.abc import Sequence

from ._kernel import Kernel
from ._selection import describe
from .columns import OnColumns

__all__ = ["column_groups"]


def column_groups(
    kernels: Sequence[Kernel], n_columns: int, names: Sequence[str] | None = None
) -> dict[str, tuple[int, ...]]:
    """Return the largest groups of columns that no kernel divides, each under a name.

    Groups are called as the kernels on them call their columns (the views of ``per_view``), else by their columns.
    Columns that no kernel looks at are in no group.

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
