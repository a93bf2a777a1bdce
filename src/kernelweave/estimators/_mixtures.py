"""Fixed mixtures worth trying before any weights are learnt: all kernels alike, groups of them, groups alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Mixture", "kernel_groups", "mixtures"]

#: more groups than this are not told apart
MOST_GROUPS = 20


@dataclass(frozen=True)
class Mixture:
    """Weights that sum to one, and what they are called."""

    name: str
    weights: np.ndarray


def kernel_groups(kernels: Sequence[Any] | None, m: int) -> dict[str, np.ndarray]:
    """Kernels by how many columns they see: single features, pairs, views, all of them.

    Within a group kernels are alike in kind; between groups it is the number of kernels, not their worth, that decides
    what the mean of all is made of.  Ten kernels on all features vanish beside hundreds on single ones.
    """
    if kernels is None:
        if m > MOST_GROUPS:
            return {"all kernels": np.arange(m)}
        return {f"kernel {j}": np.array([j]) for j in range(m)}
    widths = [-1 if kernel.columns is None else np.size(kernel.columns) for kernel in kernels]
    by_width = {width: np.flatnonzero(np.array(widths) == width) for width in dict.fromkeys(widths)}
    if len(by_width) > MOST_GROUPS:
        return {"all kernels": np.arange(m)}
    return {_title(width): index for width, index in by_width.items()}


def _title(width: int) -> str:
    return {-1: "kernels on all columns", 1: "kernels on single columns"}.get(
        width, f"kernels on {width} columns"
    )


def mixtures(groups: dict[str, np.ndarray]) -> list[Mixture]:
    """All kernels alike first, then, where there are several groups, each of them alone and all groups alike."""
    m = int(sum(index.size for index in groups.values()))
    out = [Mixture("the mean kernel", np.full(m, 1.0 / m))]
    if len(groups) == 1:
        return out
    alike = np.zeros(m)
    for name, index in groups.items():
        alone = np.zeros(m)
        alone[index] = 1.0 / index.size
        alike[index] = 1.0 / (index.size * len(groups))
        out.append(Mixture(f"the mean of the {name}", alone))
    return [*out, Mixture("the mean of all groups of kernels alike", alike)]
