"""Kernels that explain the training samples and are left out at prediction: repeated measures, batches, sessions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..kernels import view_of
from ._inputs import Training

__all__ = ["nuisance_kernels"]


def nuisance_kernels(
    nuisance: Sequence[str | int] | str | int | None, training: Training
) -> NDArray[np.bool_]:
    """Return which kernels are left out at prediction, from names of kernels or views, or positions."""
    m = len(training.names)
    out = np.zeros(m, dtype=bool)
    if nuisance is None:
        return out
    views = [view_of(kernel) for kernel in training.kernels or []] or list(training.names)
    for one in [nuisance] if isinstance(nuisance, str | int | np.integer) else nuisance:
        if isinstance(one, int | np.integer):
            hits = np.arange(m) == (one + m if one < 0 else one)
        else:
            hits = np.array(
                [one in (name, view) for name, view in zip(training.names, views, strict=True)], dtype=bool
            )
        if not np.any(hits):
            known = ", ".join(map(str, training.names[:8])) + (", ..." if m > 8 else "")
            raise ValueError(
                f"nuisance names {one!r}, which is no kernel, view or position: the {m} kernels are {known}"
            )
        out |= hits
    if np.all(out):
        raise ValueError("all kernels are nuisance, and nothing is left to predict with: name fewer")
    return out
