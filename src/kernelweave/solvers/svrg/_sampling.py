"""How often SVRG visits each sample in an epoch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

__all__ = ["draw", "shares"]


def shares(curvature: Array) -> Array:
    """Probabilities of the samples, proportional to what each adds to the curvature: the largest step is then safe.

    Where all rows have the same length and C this is the uniform law of the paper.
    """
    total = float(np.sum(curvature))
    return curvature / total if total > 0 else np.full(curvature.size, 1.0 / curvature.size)


def draw(share: Array, steps: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """How often each sample is visited: ``steps * share`` on average, and never more than one off.

    With equal shares every sample is visited once, which converges faster than drawing independently.
    """
    ends = np.floor(np.cumsum(share) * steps + rng.uniform(1e-9, 1.0 - 1e-9))
    return np.diff(ends, prepend=0.0).astype(np.intp)
