"""Kernel weights for every target: a scan over scales, then steps, batch by batch; and their standard errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._numerics.namespace import to_numpy
from .._typing import Array
from .criteria import Criterion, Spectrum
from .descent import Lattice, Watch, descend, refine
from .design import Design, Stored
from .points import Points

#: sums of the weights that the scan tries
FACTORS = np.concatenate([[0.0], np.exp(np.arange(-4.0, 7.0))])
#: bytes of the products of kernels with the coefficients of a batch, in memory and on a device
BATCH, BATCH_ON_DEVICE = 2**28, 2**32
#: targets that vary less than this, relative to their size, are constant
CONSTANT = 1e-12
#: residual of a target's linear system, relative to the target, that needs no more work, and rounds of refinement
EXACT, ROUNDS = 1e-10, 4
#: starts of a target that leaves the lattice, how many of the points they lead to are followed to the end, and the
#: multiply-adds of an inverse that all of them together may take
STARTS, FOLLOWED, CHEAP = 8, 3, 1e9


@dataclass
class WeightChoice:
    """Weights chosen for t targets; they refer to the kernels of the design."""

    weights: Array  # ``(t, m)``; the ridge is in them: the mixed kernel stands beside the identity
    coef: Array  # ``a = (I + sum_j d_j K_j)^-1 y`` for the targets of the design, ``(n, t)``
    value: Array  # the criterion
    #: R2 of held-out samples: each by itself for REML and leave-one-out, by folds for folds.  The weights have seen
    #: these samples, so that it flatters a little
    score: Array
    slope: Array  # largest derivative of the criterion's logarithm in the logarithm of a weight
    #: ``"stationary"``, ``"max_steps"`` or ``"constant"``; ``"max_seconds"``, ``"interrupted"`` or ``"stopped"`` where
    #: the choice was cut short before
    status: NDArray[np.object_]
    factorisations: NDArray[np.int64]  # how many mixtures were inverted, ``(1,)``

    @classmethod
    def empty(cls, m: int, n: int, t: int) -> WeightChoice:
        """Return one to be filled in: no weights, and constants."""
        return cls(
            np.zeros((t, m)), np.empty((n, t)), np.zeros(t), np.zeros(t), np.zeros(t),
            np.full(t, "constant", dtype=object), np.zeros(1, dtype=np.int64),
        )  # fmt: skip

    def put(self, at: NDArray[np.intp], other: WeightChoice) -> None:
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
    watch: Watch | None = None,
) -> WeightChoice:
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
        Where inverses are cheap they begin at several points, and kernels enter wherever the criterion falls.
    watch : Watch, optional
        Says when to end, in place of ``progress``; targets that it leaves no time for stay where the scan has led them.
    """
    t = Y.shape[1]
    size = batch_size(design) if targets_in_batch is None else targets_in_batch
    out, watch = WeightChoice.empty(design.m, design.n, t), watch or Watch(progress=progress)
    for first in range(0, t, size):
        centred = design.targets(Y[:, first : first + size])
        total = np.sum(centred**2, axis=0)
        varies = total > (CONSTANT * design.root @ np.abs(Y[:, first : first + size])) ** 2
        out.coef[:, first + np.flatnonzero(~varies)] = centred[:, ~varies]
        some = np.flatnonzero(varies)
        watch.finished(varies.size - some.size)
        if some.size == 0:
            continue
        # of one scale, so that sums of squares neither overflow nor vanish
        sizes = np.sqrt(total[some] / design.freedom)
        targets = design.store(np.ascontiguousarray(centred[:, some] / sizes))
        count = int(np.clip(CHEAP / design.n**3, 1, STARTS)) if exact else 1
        levels, column = starts(design, criterion, targets, count, watch)
        state = descend(design, criterion, targets[:, column], levels, watch)
        out.factorisations[0] += state.factorisations
        reached, best = state.lattice.weights(state.levels), _best_of(column, state.look.value, some.size, 1)
        weights, look, stationary = reached[best], state.look.some(best), state.stationary[best]
        if exact and not watch.ends():
            followed = _best_of(column, state.look.value, some.size, FOLLOWED)
            moved = refine(design, criterion, targets[:, column[followed]], reached[followed], watch)
            best = _best_of(column[followed], moved[1].value, some.size, 1)
            weights, look, stationary = moved[0][best], moved[1].some(best), moved[2][best]
            out.factorisations[0] += moved[3]
        at = first + some
        out.weights[at], out.coef[:, at] = weights, finished(design, targets, weights, look.coef) * sizes
        out.value[at] = look.value * sizes**2
        out.score[at] = 1.0 - look.missed / design.freedom
        out.slope[at] = np.max(np.abs(weights * look.gradient), axis=1)
        out.status[at] = np.where(stationary, "stationary", watch.reason or "max_steps")
    return out


def _best_of(column: NDArray[np.intp], value: Array, t: int, count: int) -> NDArray[np.intp]:
    """Places of the ``count`` smallest values of every one of t targets, target by target."""
    if column.size == t:
        return np.arange(t)
    places = [np.flatnonzero(column == k) for k in range(t)]
    return np.concatenate([some[np.argsort(value[some], kind="stable")[:count]] for some in places])


def finished(design: Design, Y: Stored, weights: Array, coef: Stored) -> Array:
    """Coefficients as exact as double precision has them; those that are not yet are computed again.

    They are free of the intercept's direction, in which nothing else holds them: the model multiplies the rounding
    there by the weights, which may be large, and by kernels that need not be centred.
    """
    out = design.without_direction(coef)
    size = np.sqrt(np.sum(to_numpy(Y) ** 2, axis=0))

    def left_over(A: Stored, at: NDArray[np.intp] | slice) -> tuple[Stored, Array]:
        left = design.residual(Y[:, at], A, weights[at], design.times(A))
        return left, np.sqrt(np.sum(to_numpy(left) ** 2, axis=0)) / size[at]

    coarse = np.flatnonzero(left_over(out, slice(None))[1] > EXACT)
    distinct, which = np.unique(weights[coarse], axis=0, return_inverse=True)
    for p, d in enumerate(distinct):
        at = coarse[which.ravel() == p]
        point = Points(design, d[None], np.array([at.size]))
        a = design.without_direction(point.solve(Y[:, at])[0])
        left, error = left_over(a, at)
        for _ in range(ROUNDS):
            trial = design.without_direction(a + point.apply(left[None])[0])
            left, after = left_over(trial, at)
            better = after < error
            if not np.any(better):
                break
            places, error = np.flatnonzero(better), np.minimum(after, error)
            a[:, places] = trial[:, places]
        out[:, at] = a
    return np.asarray(to_numpy(out))


def starts(
    design: Design, criterion: Criterion, Y: Stored, count: int, watch: Watch
) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """Levels to begin with, and their targets: the ``count`` best multiples of equal weights and single kernels."""
    t, m, lattice = Y.shape[1], design.m, Lattice.of(design.m)
    present = design.scale > 0
    mixtures = [np.eye(m)[j] for j in np.flatnonzero(present)]
    if len(mixtures) != 1:
        mixtures.insert(0, present / max(int(np.count_nonzero(present)), 1))
    values: list[Array] = []
    levels: list[NDArray[np.int64]] = []
    for weights in mixtures:
        if values and watch.ends():
            break
        scanned = criterion.scan(Spectrum(design, weights, Y), FACTORS)
        which = np.argmin(np.where(np.isfinite(scanned), scanned, np.inf), axis=0)
        values.append(scanned[which, np.arange(t)])
        levels.append(lattice.levels(np.multiply.outer(FACTORS[which], weights)))
    order = np.argsort(np.array(values), axis=0, kind="stable")[:count]
    chosen = np.array(levels)[order, np.arange(t)].reshape(-1, m)
    column = np.tile(np.arange(t), len(order))
    if count > 1:
        places = np.unique(np.column_stack([column, chosen]), axis=0, return_index=True)[1]
        chosen, column = chosen[places], column[places]
    return chosen, column


@dataclass(frozen=True)
class Components:
    """Variances that kernels of mean diagonal one and the noise contribute to one target."""

    variance: Array  # of the kernels, then of the noise, ``(m + 1,)``
    #: of the estimates, from the expected information; not a number for kernels without weight, whose estimate lies on
    #: the boundary
    covariance: Array

    @property
    def error(self) -> Array:
        """Standard errors of the variances."""
        return np.sqrt(np.diagonal(self.covariance))

    @property
    def share(self) -> Array:
        """Variances over their sum."""
        return np.asarray(self.variance / self.variance.sum())

    @property
    def share_error(self) -> Array:
        """Standard errors of the shares, to first order."""
        total, known = self.variance.sum(), np.isfinite(np.diagonal(self.covariance))
        slopes = (np.eye(len(self.variance)) - self.share[:, None]) / total
        slopes, covariance = slopes[np.ix_(known, known)], self.covariance[np.ix_(known, known)]
        out = np.full(len(self.variance), np.nan)
        out[known] = np.sqrt(np.maximum(np.diagonal(slopes @ covariance @ slopes.T), 0.0))
        return out


def variance_components(design: Design, weights: Array, y: Array) -> Components:
    """Return the components that weights ``(m,)`` stand for, for a target ``(n,)``.

    With ``P = M / s^2``, the information about the variances of kernels j and k is ``1/2 tr(P K_j P K_k)``, the
    identity in the place of a kernel for the noise.
    """
    active = np.flatnonzero(weights > 0)
    M = Points(design, weights[None], np.array([1])).inverse[0]
    target = design.targets(y[:, None])[:, 0]
    noise = float(target @ M @ target) / design.freedom
    turned = [*(M @ design.kernels[j] for j in active), M]
    information = np.array([[0.5 * np.sum(A * B.T) for A in turned] for B in turned]) / noise**2
    known = np.append(active, design.m)
    covariance = np.full((design.m + 1, design.m + 1), np.nan)
    covariance[np.ix_(known, known)] = np.linalg.pinv(information, hermitian=True)
    return Components(noise * np.append(weights, 1.0), covariance)
