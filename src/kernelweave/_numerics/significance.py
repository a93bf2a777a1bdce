"""Tests between methods that were run on the same splits."""

from __future__ import annotations

import numpy as np
from scipy import stats

from .._typing import Array


def corrected_t_test(first: Array, second: Array, test_share: float) -> float:
    """Two-sided p-value of a paired t-test over repeated random splits (Nadeau and Bengio 2003).

    Splits overlap, so their differences are not independent and the plain test is far too sure of itself; the variance
    is multiplied by ``1/J + n_test/n_train`` instead of ``1/J``.  ``first`` and ``second`` are scores on the same J
    splits, ``test_share`` is ``n_test / n_train``.

    >>> a = np.array([0.90, 0.91, 0.92, 0.93])
    >>> corrected_t_test(a, a, 4.0)
    1.0
    """
    d = np.asarray(first, dtype=float) - np.asarray(second, dtype=float)
    if d.size < 2:
        return float("nan")
    spread = float(np.var(d, ddof=1)) * (1.0 / d.size + test_share)
    if spread == 0.0:
        return 1.0 if not d.any() else 0.0
    return float(2.0 * stats.t.sf(abs(d.mean()) / np.sqrt(spread), d.size - 1))


def holm(p_values: Array) -> Array:
    """Holm's adjustment of several p-values.

    >>> holm(np.array([0.01, 0.04, 0.03])).round(2).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=float)
    order = np.argsort(p)
    adjusted = np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1))
    out = np.empty_like(p)
    out[order] = np.minimum(adjusted, 1.0)
    return out
