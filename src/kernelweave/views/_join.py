"""Blocks of several views brought to the same samples, by the names of their rows where they have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ._tables import Block, take_rows, unlike

__all__ = ["align"]


def align(blocks: Mapping[str, Block], index: Any = None) -> tuple[list[Any], np.ndarray, np.ndarray | None]:
    """Return the values of every view on the same samples, which samples were found in each, and their names.

    Tables without names of rows are taken as they are and must have the same length.  Tables with names are joined by
    them: on ``index`` where it is given, else on all names in the order in which they appear.
    """
    names = {view: block.samples for view, block in blocks.items() if block.samples is not None}
    for view, own in names.items():
        _refuse_twice(f"view {view!r}", own)
    if index is not None:
        samples = np.asarray(index)
        _refuse_twice("index", samples)
    elif names:
        samples = _all_names(list(names.values()))
    else:
        return _by_position(blocks)
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
            raise ValueError(
                f"no row of view {view!r} ({unlike(block.samples)}) is named like a sample ({unlike(samples)})"
            )
        values.append(take_rows(block.values, rows))
    return values, found, samples


def _by_position(blocks: Mapping[str, Block]) -> tuple[list[Any], np.ndarray, None]:
    lengths = {view: block.values.shape[0] for view, block in blocks.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{view!r} {length}" for view, length in lengths.items())
        raise ValueError(
            f"the views have different numbers of rows ({listed}) and no names to join them by: give all of them an "
            "index (or a column named by id=), or NaN in the rows of samples that lack a view"
        )
    found = np.ones((next(iter(lengths.values())), len(blocks)), dtype=np.bool_)
    return [block.values for block in blocks.values()], found, None


def _all_names(names: list[np.ndarray]) -> np.ndarray:
    """All names in the order in which they appear."""
    if all(np.array_equal(own, names[0]) for own in names):
        return names[0]
    order = dict.fromkeys(name for own in names for name in own.tolist())
    together = np.empty(len(order), dtype=object)
    together[:] = list(order)
    return together


def _refuse_twice(what: str, names: np.ndarray) -> None:
    import pandas as pd

    index = pd.Index(names)
    if index.has_duplicates:
        raise ValueError(f"{what} has two rows named {unlike(index[index.duplicated()][:1].tolist())}")
