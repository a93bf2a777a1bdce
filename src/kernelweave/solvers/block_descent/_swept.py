"""Features that are not at hand block by block: streamed, on a device or on a cluster, where a sweep is all there is.

Steps on single blocks would be sweeps each.  Accelerated proximal steps on all blocks at once take one, and everything
else (looks at both bounds, Newton's step on the active blocks, shared coefficients) is that of block descent.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._numerics.deadline import check_time, out_of_time
from ...problems import MKLProblem
from ._features import BlockFeatures
from ._iterate import Iterate, Place

Array = NDArray[np.float64]
Index = NDArray[np.intp]

__all__ = ["SweptFeatures", "proximal_steps"]

#: rows that the models of blocks are made from: per feature of the widest block, and at least
ROWS_A_FEATURE, FEWEST = 8, 2000
#: sweeps that find the largest curvature, and what is added to it for those that did not
POWER_SWEEPS, ABOVE = 8, 1.05


class SweptFeatures(BlockFeatures):
    """Products with all blocks in one sweep; models of blocks come from a sample of the rows."""

    def __init__(self, problem: MKLProblem) -> None:
        super().__init__(problem)
        size = min(self.n, max(FEWEST, ROWS_A_FEATURE * int(np.max(self.ranks))))
        self.sample = np.sort(np.random.default_rng(0).choice(self.n, size, replace=False))
        self._sampled: Any = None

    def forward_of(self, w: Array, active: Index) -> Array:
        """``sum_j Z_j w_j``: blocks that are not active are zero in w."""
        self.count(float(self.width))
        return np.asarray(self.factors.forward(self.root[self.block_of][:, None] * w))

    def adjoint_of(self, a: Array, active: Index) -> Array:
        """``Z_j' a`` of some blocks, zeros elsewhere, in one sweep."""
        out = self.adjoint_all(a)
        used = np.zeros(self.m, dtype=bool)
        used[active] = True
        return np.where(used[self.block_of][:, None], out, 0.0)

    def forward_each(self, w: Array, active: Index) -> Array:
        """``Z_j w_j`` of some blocks, ``(n, k, active)``, in one sweep."""
        apart = np.zeros((self.width, w.shape[1], active.size))
        for column, j in enumerate(active):
            apart[self.place(j), :, column] = w[self.place(j)]
        self.count(float(self.width))
        scaled = self.root[self.block_of][:, None] * apart.reshape(self.width, -1)
        return np.asarray(self.factors.forward(scaled)).reshape(self.n, *apart.shape[1:])

    def block(self, j: int) -> Any:
        """Features of block j on the sample, without its factor."""
        if self._sampled is None:
            self._sampled = self.factors.features_of(self.sample)
            if hasattr(self._sampled, "tocsc"):
                self._sampled = self._sampled.tocsc()
        return self._sampled[:, self.place(j)]

    def model(self, j: int, h: Array, centred: bool, likeness: float) -> Any:
        """Curvature of block j as the sample has it."""
        return self._made(j, h[self.sample] * (self.n / self.sample.size), centred)

    def steepest(self, problem: MKLProblem, h: Array) -> float:
        """Bound the curvature of the loss in all coordinates and the intercept, by the power method."""
        rng = np.random.default_rng(0)
        v, shift, largest = rng.normal(size=(self.width, 1)), 1.0, 0.0
        for _ in range(POWER_SWEEPS):
            check_time()
            size = float(np.sqrt(np.sum(v**2) + shift**2))
            v, shift = v / size, shift / size
            bent = h[:, None] * (self.forward_of(v, np.arange(self.m)) + shift)
            v, shift = self.adjoint_all(bent), float(np.sum(bent)) if problem.fit_intercept else 0.0
            largest = float(np.sqrt(np.sum(v**2) + shift**2))
        return ABOVE * largest


def proximal_steps(at: Iterate, features: SweptFeatures, steepest: float, most: int) -> None:
    """Go down by accelerated proximal gradient steps, one sweep each, with a fresh start wherever momentum misleads.

    Beck and Teboulle's method with the restarts of O'Donoghue and Candes; the prox is that of the norm, on block
    lengths, and the intercept one more coordinate.
    """
    problem, root = at.problem, features.root[features.block_of][:, None]
    step = 1.0 / steepest
    w, b = at.w, at.b
    y, c, momentum = w, b, 1.0
    for _ in range(most):
        if out_of_time():
            break
        features.count(2.0 * features.width)
        _, along, sums = features.factors.loss_sweep(root * y, c, problem.loss, problem.y, problem.c)
        moved = y - step * root * along
        lengths = features.norms(moved)
        kept = problem.norm.prox(lengths, step)
        factor = np.divide(kept, lengths, out=np.zeros_like(kept), where=lengths > 0)
        new_w = factor[features.block_of][:, None] * moved
        new_b = c - step * sums if problem.fit_intercept else c
        turned = float(np.sum((y - new_w) * (new_w - w)) + np.sum((c - new_b) * (new_b - b)))
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
        push = 0.0 if turned > 0.0 else (momentum - 1.0) / following
        y, c = new_w + push * (new_w - w), new_b + push * (new_b - b)
        momentum = 1.0 if turned > 0.0 else following
        w, b = new_w, new_b
    # the last point of the run, where it is lower: momentum may have carried it past one
    at.try_place(Place(w, b, features.forward_of(w, np.arange(features.m)) + b))
