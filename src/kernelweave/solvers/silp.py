"""Semi-infinite linear programming: cutting planes, one LP per iteration."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._cuts import Cuts, CuttingPlanes

Array = NDArray[np.float64]

__all__ = ["Silp"]


class Silp(CuttingPlanes, registered_as="silp"):
    """Minimise the cutting-plane model by an LP (HiGHS), solve there, add the cut (Sonnenburg et al. 2006)."""

    summary = "cutting planes, one LP per iteration (Sonnenburg et al. 2006)"

    def choose(self, cuts: Cuts, lowest: Array, last: Array, lower: float, upper: float) -> Array:
        return lowest
