"""The lowest point of a model made of cuts over subsets: by trying all of few, else a mixed-integer program (HiGHS)."""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

__all__ = ["SubsetBound", "lowest_subset"]

#: relative error of a constraint that HiGHS lets pass, by which the bound is lowered
SLACK = 1e-6
#: subsets that are tried one by one, at most: that is exact, where the program's constraints have the slack
FEW_SUBSETS = 50_000


class SubsetBound(NamedTuple):
    """A lower bound of the program, and where it is attained: shares in [0, 1], whole where they were asked to be.

    ``chosen`` is None where the time was over before there was a subset.
    """

    bound: float
    chosen: Array | None


def lowest_subset(
    gains: Array, slopes: Array, k: int, whole: bool = True, gap: float = 1e-6, seconds: float = np.inf
) -> SubsetBound:
    """Minimise ``max_i gains_i - slopes_i'z`` over ``0 <= z <= 1, sum z <= k``, z whole or not.

    Parameters
    ----------
    gains : array of shape (c,)
    slopes : array of shape (c, m)
        Not negative.
    k : int
    whole : bool
        Whether z is a subset; without that a linear program.
    gap : float
        Relative gap at which the program is left; the bound is valid at any.
    seconds : float
        Likewise.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    cuts, m = slopes.shape
    if whole and comb(m, min(k, m)) <= FEW_SUBSETS:
        subsets = _subsets(m, min(k, m))  # slopes are not negative: more kernels are never worse
        height = np.full(len(subsets), -np.inf)
        for gain, slope in zip(gains, slopes, strict=True):
            np.maximum(height, gain - np.sum(slope[subsets], axis=1), out=height)
        lowest = int(np.argmin(height))
        chosen = np.zeros(m)
        chosen[subsets[lowest]] = 1.0
        return SubsetBound(float(height[lowest]), chosen)
    scale = float(np.max(np.abs(gains))) or 1.0
    heights = LinearConstraint(np.hstack([slopes / scale, np.ones((cuts, 1))]), lb=gains / scale)
    few = LinearConstraint(np.append(np.ones(m), 0.0)[None, :], ub=float(k))
    options = {"mip_rel_gap": gap} | ({"time_limit": max(seconds, 0.01)} if np.isfinite(seconds) else {})
    result = milp(
        np.append(np.zeros(m), 1.0),
        integrality=np.append(np.full(m, float(whole)), 0.0),
        bounds=Bounds(np.append(np.zeros(m), -np.inf), np.append(np.ones(m), np.inf)),
        constraints=[heights, few],
        options=options,
    )
    bound = result.mip_dual_bound if whole else result.fun
    if bound is None or not np.isfinite(bound):
        bound = -np.inf
    found = None if result.x is None else np.clip(result.x[:m], 0.0, 1.0)
    if whole and found is not None:
        found = np.abs(np.round(found))  # no zeros with a sign
    return SubsetBound(scale * (float(bound) - SLACK), found)


@lru_cache(maxsize=8)
def _subsets(m: int, k: int) -> NDArray[np.intp]:
    """All subsets of k of m kernels, as rows."""
    return np.array(list(combinations(range(m), k)), dtype=np.intp).reshape(-1, k)
