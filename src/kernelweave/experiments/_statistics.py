"""Means with their spread, and the runs of all methods side by side."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

__all__ = ["mean_sd", "wide"]

Array = NDArray[np.float64]


def mean_sd(values: Array | pd.Series, scale: float = 100.0) -> str:
    """Return mean and standard deviation as tables print them.

    >>> mean_sd(np.array([0.8, 0.9]))
    '85.0 ± 7.1'
    """
    v = scale * np.asarray(values, dtype=float)
    return f"{v.mean():.1f} ± {v.std(ddof=1):.1f}" if v.size > 1 else f"{v.mean():.1f}"


def wide(rows: pd.DataFrame, index: str | list[str], value: str = "accuracy") -> pd.DataFrame:
    """Return one row per run and one column per method; runs that lack a method are left out."""
    return rows.pivot_table(index=index, columns="method", values=value, sort=False).dropna()
