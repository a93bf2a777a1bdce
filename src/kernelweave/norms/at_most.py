"""At most k kernels, with equal weights: a choice among subsets."""

from __future__ import annotations

import numpy as np

from .._numerics.subset_program import lowest_subset
from ._base import Array, Lowest, Norm

__all__ = ["AtMost"]


class AtMost(Norm, registered_as="at_most"):
    """Weights 1/k on at most k kernels and zero elsewhere: the best subset, not its convex relaxation.

    ``k = 1`` is the best single kernel, ``k = m`` the mean kernel.  No single dual point proves a subset best; the
    certificate carries the coefficients of many cuts, and its lower bound is that of the mixed-integer program over all
    of them (solver ``outer_approximation``).

    Parameters
    ----------
    k : int, default=3
        Number of kernels, at least 1.

    Examples
    --------
    >>> import numpy as np
    >>> AtMost(2).weights(np.array([1.0, 4.0, 3.0]))
    array([0. , 0.5, 0.5])
    """

    convex_in_weights = False
    combinatorial = True

    def __init__(self, k: int = 3) -> None:
        self.k = k

    @property
    def label(self) -> str:
        return f"at most {self.k}"

    @property
    def allowed_weights(self) -> str:
        each = "the weight 1" if self.k == 1 else f"the weight 1/{self.k} each"
        return f"choice of at most {self.k} kernel{'s' if self.k > 1 else ''} with {each}"

    def check(self, m: int) -> None:
        if isinstance(self.k, bool) or not isinstance(self.k, int | np.integer) or self.k < 1:
            raise ValueError(f"AtMost needs a whole number k >= 1 of kernels, got {self.k!r}")

    def for_kernels(self, m: int) -> Norm:
        return self if self.k <= m else AtMost(m)

    def half_square(self, t: Array) -> float:
        used = t > 0
        return (
            float(np.inf) if np.count_nonzero(used) > self.k else 0.5 * self.k * float(np.sum(t[used] ** 2))
        )

    def conjugate(self, s: Array) -> float:
        return 0.5 * float(self.weights(s) @ s)

    def weights(self, s: Array) -> Array:
        d = np.zeros_like(s)
        d[np.argsort(-s, kind="stable")[: self.k]] = 1.0 / self.k
        return d

    def weights_of_blocks(self, t: Array) -> Array:
        return self.weights(t)

    def scaled(self, weights: Array) -> Array:
        return self.weights(weights)

    def start(self, m: int) -> Array:
        return self.weights(np.ones(m))

    def lowest_of_cuts(
        self, gains: Array, quads: Array, whole: bool = True, gap: float = 1e-6, seconds: float = np.inf
    ) -> Lowest:
        # weights z / k turn d's / 2 into z's / (2k)
        bound, chosen = lowest_subset(gains, quads / (2.0 * self.k), self.k, whole, gap, seconds)
        return Lowest(bound, None if chosen is None else chosen / self.k)
