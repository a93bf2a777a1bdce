"""Decision values on their way to labels."""

from __future__ import annotations

import numpy as np

from ..exceptions import NotFiniteError

__all__ = ["finite_decision"]


def finite_decision(values: np.ndarray) -> np.ndarray:
    """Return decision values, or raise where one is not a number: no label may be made of it."""
    if isinstance(values, np.ndarray) and not np.all(np.isfinite(values)):
        row = int(np.flatnonzero(~np.isfinite(values).reshape(len(values), -1).all(axis=1))[0])
        raise NotFiniteError(
            f"the decision value of row {row} is not finite: its kernel values overflow, or it contains NaN; bring new "
            "samples to the scale of the training samples, and impute what is missing"
        )
    return values
