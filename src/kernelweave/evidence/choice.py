"""Kernel weights for every target: a scan over scales, then steps, batch by batch of targets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._numerics.namespace import to_numpy
from .criteria import Criterion
from .descent import Lattice, descend
from .design import Array, Design, Stored
from .points import Points
from .refine import refine
from .spectrum import Spectrum

__all__ = ["Choice", "choose_weights"]

#: sums of the weights that the scan tries
FACTORS = np.concatenate([[0.0], np.exp(np.arange(-4.0, 7.0))])
#: bytes of the products of kernels with the coefficients of a batch, in memory and on a device
BATCH, BATCH_ON_DEVICE = 2**28, 2**32
#: targets that vary less than this, relative to their size, are constant
CONSTANT = 1e-12
#: residual of a target's linear system, relative to the target, that needs no more work
EXACT = 1e-10


@dataclass
class Choice:
    """Weights chosen for t targets; they refer to the kernels of the design.

    Attributes
    ----------
    weights : array of shape (t, m)
        The ridge is in them: the mixed kernel stands beside the identity.
    coef : array of shape (n, t)
        ``a = (I + sum_j d_j K_j)^-1 y`` for the targets of the design.
    value : array of shape (t,)
        The criterion.
    score : array of shape (t,)
        R2 of held-out samples: each by itself for REML and leave-one-out, by folds for folds.  The weights have seen
        these samples, so that it flatters a little.
    slope : array of shape (t,)
        Largest derivative of the criterion's logarithm in the logarithm of a weight.
    status : array of shape (t,)
        ``"stationary"``, ``"max_steps"`` or ``"constant"``.
    factorisations : array of shape (1,)
        How many mixtures were inverted.
    """

    weights: Array
    coef: Array
    value: Array
    score: Array
    slope: Array
    status: NDArray[np.object_]
    factorisations: NDArray[np.int64]

    @classmethod
    def empty(cls, m: int, n: int, t: int) -> Choice:
        """Return one to be filled in: no weights, and constants."""
        return cls(
            np.zeros((t, m)), np.empty((n, t)), np.zeros(t), np.zeros(t), np.zeros(t),
            np.full(t, "constant", dtype=object), np.zeros(1, dtype=np.int64),
        )  # fmt: skip

    def batch(self, at: slice) -> Choice:
        """Return the part of some targets, which writes through."""
        return Choice(
            self.weights[at], self.coef[:, at], self.value[at], self.score[at], self.slope[at], self.status[at],
            self.factorisations,
        )  # fmt: skip

    def put(self, at: NDArray[np.intp], other: Choice) -> None:
        """Take over what was chosen for some targets, but for the coefficients."""
        self.weights[at], self.value[at], self.score[at] = other.weights, other.value, other.score
        self.slope[at], self.status[at] = other.slope, other.status
        self.factorisations += other.factorisations


def batch_size(design: Design) -> int:
    """Targets whose products with all kernels fit into the memory that is meant for them."""
    return max(1, (BATCH if design.on_host else BATCH_ON_DEVICE) // (8 * design.m * design.n))


def choose_weights(
    design: Design,
    Y: Array,
    criterion: Criterion,
    targets_in_batch: int | None = None,
    progress: Callable[[int], object] | None = None,
    exact: bool = False,
) -> Choice:
    """Choose weights for the targets ``(n, t)``, each by itself.

    Parameters
    ----------
    design : Design
    Y : array of shape (n, t)
        As they are: weighted and projected here.
    criterion : Criterion
    targets_in_batch : int, optional
        Targets that are worked on together; more share more factorisations and need more memory.  What is chosen does
        not depend on it.
    progress : callable, optional
        Called with numbers of targets that were finished.
    exact : bool, default=False
        Whether targets leave the lattice in the end, for where the criterion is flat: some inverses for each of them.
    """
    t = Y.shape[1]
    size = batch_size(design) if targets_in_batch is None else targets_in_batch
    out = Choice.empty(design.m, design.n, t)
    for first in range(0, t, size):
        batch = slice(first, min(first + size, t))
        _choose_batch(design, Y[:, batch], criterion, out.batch(batch), progress, exact)
    return out


def _choose_batch(
    design: Design,
    Y: Array,
    criterion: Criterion,
    out: Choice,
    progress: Callable[[int], object] | None,
    exact: bool,
) -> None:
    """Choose for some targets, and write it where it belongs."""
    centred = design.targets(Y)
    total = np.sum(centred**2, axis=0)
    varies = total > (CONSTANT * design.root @ np.abs(Y)) ** 2
    out.status[:] = np.where(varies, "max_steps", "constant")
    out.coef[:, ~varies] = centred[:, ~varies]
    at = np.flatnonzero(varies)
    tell = progress or (lambda count: None)
    tell(Y.shape[1] - at.size)
    if at.size == 0:
        return
    # of one scale, so that sums of squares neither overflow nor vanish
    sizes = np.sqrt(total[at] / design.freedom)
    targets = design.store(np.ascontiguousarray(centred[:, at] / sizes))
    state = descend(design, criterion, targets, starts(design, criterion, targets), tell)
    weights, look = state.weights, state.look
    if exact:
        weights, look, more = refine(design, criterion, targets, weights)
        out.factorisations[0] += more
    out.weights[at], out.coef[:, at] = weights, finished(design, targets, weights, look.coef) * sizes
    out.value[at] = look.value * sizes**2
    out.score[at] = 1.0 - look.missed / design.freedom
    out.slope[at] = np.max(np.abs(weights * look.gradient), axis=1)
    out.status[at[state.stationary]] = "stationary"
    out.factorisations[0] += state.factorisations


def finished(design: Design, Y: Stored, weights: Array, coef: Stored) -> Array:
    """Coefficients as exact as double precision has them; those that are not yet are computed again."""
    left = to_numpy(design.residual(Y, coef, weights, design.times(coef)))
    size = np.sqrt(np.sum(to_numpy(Y) ** 2, axis=0))
    coarse = np.flatnonzero(np.sqrt(np.sum(left**2, axis=0)) > EXACT * size)
    distinct, which = np.unique(weights[coarse], axis=0, return_inverse=True)
    out = to_numpy(coef)
    for p, d in enumerate(distinct):
        at = coarse[which.ravel() == p]
        point = Points(design, d[None], np.array([at.size]))
        a, products = point.solve(Y[:, at])
        left = design.residual(Y[:, at], a, weights[at], products)
        out[:, at] = to_numpy(a + point.apply(left[None])[0])
    return out


def starts(design: Design, criterion: Criterion, Y: Stored) -> NDArray[np.int64]:
    """Levels to begin with: the best multiple of equal weights or of a single kernel, or nothing at all."""
    t, m, lattice = Y.shape[1], design.m, Lattice.of(design.m)
    present = design.scale > 0
    best, levels = np.full(t, np.inf), np.full((t, m), Lattice.OFF, dtype=np.int64)
    mixtures = [np.eye(m)[j] for j in np.flatnonzero(present)]
    if len(mixtures) != 1:
        mixtures.insert(0, present / max(int(np.count_nonzero(present)), 1))
    for weights in mixtures:
        values = criterion.scan(Spectrum(design, weights, Y), FACTORS)
        which = np.argmin(values, axis=0)
        value = values[which, np.arange(t)]
        better = value < best
        best[better] = value[better]
        levels[better] = lattice.levels(np.multiply.outer(FACTORS[which[better]], weights))
    return levels
