"""Recompute both bounds of a fit from ``docs/notation.md``, with NumPy and the definitions of ``references.py`` alone.

Nothing here imports the library, and nothing but the judge imports this.  Everything is computed in extended precision
from the raw samples, and every value comes with a *doubt*: how much the rounding of double precision alone may have
moved it.  The library is held to its word up to a multiple of that doubt.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

import references as ref

LONG = np.longdouble
EPS = float(np.finfo(float).eps)
#: coefficients that leave the dual set by more than this, in their own unit, prove nothing
OUTSIDE = 1e-9


# ---- kernels -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class KernelCase:
    """One kernel: its family, its numbers, and the columns it looks at (None: all)."""

    family: str
    number: float = 1.0
    relative: bool = False
    columns: tuple[int, ...] | None = None
    #: of a kernel of pairs, those of its two sides
    factors: tuple[KernelCase, KernelCase] | None = None


def distances(A, B, squared: bool):
    """Sums of squared (or absolute) differences, from the differences themselves."""
    difference = A[:, None, :] - B[None, :, :]
    return np.sum(difference**2 if squared else np.abs(difference), axis=2)


def typical_distance(X, squared: bool) -> float:
    """Median over pairs; the mean of the positive ones where that is zero; 1 where all are."""
    between = distances(X, X, squared)
    pairs = (np.sqrt(between) if squared else between)[np.tri(len(X), k=-1, dtype=bool)]
    median = np.median(pairs) if pairs.size else 0.0
    if median > 0:
        return median
    return np.mean(pairs[pairs > 0]) if np.any(pairs > 0) else LONG(1.0)


def raw_kernel(kernel: KernelCase, A, B, train):
    """``k(a, b)`` by its definition, and the relative rounding that double precision may add to it."""
    if kernel.factors is not None:
        (one, blur), (other, more) = (raw_kernel(factor, A, B, train) for factor in kernel.factors)
        return one * other, blur + more + 4 * EPS
    columns = slice(None) if kernel.columns is None else list(kernel.columns)
    A, B, train = (np.asarray(Z, dtype=LONG)[:, columns] for Z in (A, B, train))
    if kernel.family in ("gaussian", "laplacian"):
        squared = kernel.family == "gaussian"
        width = LONG(kernel.number) * (typical_distance(train, squared) if kernel.relative else 1)
        exponent = distances(A, B, squared) / (2 * width**2 if squared else width)
        # the exponent's own rounding is amplified by its size; the distances cancel at large offsets
        spread = np.max(np.abs(train - np.mean(train, axis=0))) if train.size else LONG(0)
        reach = 4 * spread**2 * train.shape[1] / (2 * width**2) if squared else spread / width
        return np.exp(-exponent), 8 * EPS * (1 + np.minimum(exponent, 750) + np.minimum(reach * 1e-6, 1))
    if kernel.family in ("constant", "identity"):
        same = np.all(A[:, None, :] == B[None, :, :], axis=2)
        return np.asarray(same | (kernel.family == "constant"), dtype=LONG), np.full(same.shape, LONG(0))
    inner = A @ B.T
    size = np.sqrt(np.sum(A**2, axis=1)[:, None] * np.sum(B**2, axis=1)[None, :])
    if kernel.family == "linear":
        value = inner
    elif kernel.family == "cosine":
        value, size = np.divide(inner, size, out=np.zeros_like(inner), where=size > 0), np.minimum(size, 1)
    else:
        value, size = (inner + 1) ** int(kernel.number), (size + 1) ** int(kernel.number)
    # absolute rounding is relative to the product of the lengths, not to a product that cancels
    relative = np.divide(size, np.abs(value), out=np.full(value.shape, LONG(1)), where=value != 0)
    return value, 8 * EPS * A.shape[1] * relative


def training_matrices(kernels, X, normalize, center):
    """Normalised kernels on the training samples, ``(m, n, n)``, and the absolute rounding of their entries."""
    moved = np.asarray(X, dtype=LONG) - np.mean(np.asarray(X, dtype=LONG), axis=0)
    # a linear kernel that is centred does not feel the origin, and has more digits around the mean
    raw = []
    for kernel in kernels:
        Z = moved if center and kernel.family == "linear" else X
        raw.append(raw_kernel(kernel, Z, Z, Z))
    return normalised(
        [value for value, _ in raw], [abs(value) * doubt for value, doubt in raw], normalize, center
    )


def normalised(matrices, doubts, normalize, center):
    """Centre and scale matrices; a kernel with nothing left on the diagonal is zero."""
    made, unsure = [], []
    for K, doubt in zip(matrices, doubts, strict=True):
        K = np.asarray(K, dtype=LONG)
        doubt = np.asarray(doubt, dtype=LONG) + 4 * EPS * np.abs(K)
        before = np.abs(np.diagonal(K))
        if center:
            means = np.mean(K, axis=1)
            doubt = doubt + 16 * EPS * np.max(np.abs(K), initial=0)
            K = K - means[:, None] - means[None, :] + np.mean(means)
        diagonal = np.diagonal(K).copy()
        nothing = np.maximum(1e-300, 1e-12 * before if center else 0 * before)
        if normalize == "trace":
            mean = np.mean(diagonal)
            factor = 1 / mean if mean > np.mean(nothing) else LONG(0)
            K, doubt = K * factor, doubt * factor
        elif normalize == "cosine":
            root = np.where(diagonal > nothing, np.sqrt(np.maximum(diagonal, nothing)), np.inf)
            K, doubt = K / np.outer(root, root), doubt / np.outer(root, root)
        made.append(K)
        unsure.append(doubt)
    return np.stack(made), np.stack(unsure)


def digits_are_gone(kernels, X, every: bool) -> bool:
    """Whether centring leaves so little of some kernel that double precision cannot tell it from rounding.

    Of the mean over the samples, or of ``every`` sample, where each is brought to length one.
    """
    for kernel in kernels:
        if kernel.family in ("polynomial", "gaussian", "laplacian", "cosine"):
            K, _ = raw_kernel(kernel, X, X, X)
            means = np.mean(K, axis=1)
            left = np.diagonal(K) - 2 * means + np.mean(means)
            least = np.min(left) if every else np.mean(left)
            if least < 1e-8 * np.mean(np.abs(np.diagonal(K))) and np.ptp(K) > 0:
                return True
    return False


# ---- losses and norms: the definitions are those of the other tests, here is what a judge asks besides ---------------


def slope_bound(loss: ref.RefLoss, y, f):
    """Bound of the loss's derivative, by entry."""
    if loss.name == "squared_hinge":
        return 2 * np.maximum(1 - y * f, 0)
    if loss.name == "squared":
        return 2 * np.abs(y - f)
    if loss.name == "censored_squared":
        return 2 * np.abs(np.log(np.abs(y)) - f)
    if loss.name == "poisson":
        return np.abs(np.exp(f) - y)
    if loss.name == "huber":
        return np.full(y.shape, loss.parameters["delta"])
    if loss.ordered:
        return np.full(y.shape, float(np.max(y)))
    return np.full(y.shape, 2.0 if loss.joint else 1.0)


def gain(loss: ref.RefLoss, y, beta, c):
    """``-total*(-beta)`` of the nearest coefficients in the dual set, and how far outside it they are (0 is inside)."""
    if loss.coupled:
        value, outside = loss.gain(y, beta, c)
        return (value if outside <= OUTSIDE else -np.inf), outside
    used = c > 0
    outside = float(np.max(np.abs(np.where(used, 0, beta)), initial=0))
    unit = np.where(used, beta / np.where(used, c, 1), 0)
    if loss.joint:
        a = np.where(y > 0, 1 - unit, -unit)  # rows on the simplex: beta = c (e_own - a)
        off = np.abs(np.sum(unit, axis=1)) + np.sum(np.maximum(-a, 0), axis=1)
        outside = max(outside, float(np.max(np.where(used[:, 0], off, 0), initial=0)))
        a = np.maximum(a, 0)
        inside = np.where(y > 0, 1 - a, -a)
    else:
        low, high = loss.bounds(y)
        over = np.maximum(np.maximum(low - unit, unit - high), 0)
        outside = max(outside, float(np.max(np.where(used, over, 0), initial=0)))
        inside = np.clip(unit, low, high)
    if (loss.budget != 1.0 or loss.exact) and np.any(used):
        left = float(np.max(loss.spent(y, c, beta))) - 1.0
        outside = max(outside, abs(left) if loss.exact else left)
    if outside > OUTSIDE:
        return -np.inf, outside
    return ref.loss_gain(y, c, np.where(used, c * inside, 0), loss), outside


def margin(loss: ref.RefLoss, y, f, c) -> float:
    """What relative gaps are divided by: 1, or what the budget leaves of the margin."""
    if loss.budget >= 1 or loss.exact:
        return 1.0
    if y.ndim == 2:
        return min(margin(loss, y[:, k], f[:, k], c[:, k]) for k in range(y.shape[1]))
    return max(1.0 - loss.threshold(y, f, c), loss.base, 1e-6)


@dataclass(frozen=True)
class NormCase:
    """A norm by name, with its numbers; ``given`` weights where they are fixed.

    ``number`` is p, the entropy's settled ``lam``, the threshold of ``elastic``, the share of an elastic net, k of
    ``at_most``, or the exponent between groups; ``second`` the block exponent of ``elastic``, the entropy's smoothing,
    or the exponent within groups.  ``groups`` is the group of every kernel, ``held`` the kernels that always count,
    each with its weight.
    """

    name: str
    number: float = 0.0
    second: float = 0.0
    given: tuple[float, ...] = ()
    groups: tuple[int, ...] = ()
    held: tuple[tuple[int, float], ...] = ()

    def reference(self, d) -> ref.RefNorm:
        """The norm by its definition; the entropy is charged at the weights d, which is an upper bound."""
        held = dict(self.held)
        learnt = [j for j in range(len(d)) if j not in held]
        m, number, second = len(learnt), LONG(self.number), LONG(self.second)
        if self.name == "elastic":
            # r is by default dual to max(2, 2 ln m)
            exponent = second or ref.conjugate_exponent(LONG(max(2.0, 2.0 * float(np.log(m)))))
            norm = ref.elastic_norm(number, exponent)
        elif self.name == "entropy":
            own = np.asarray(d, dtype=LONG)[learnt]
            norm = replace(
                ref.entropy_norm(number),
                half_square=lambda t: ref.entropy_joint(t, own / np.sum(own), number),
            )
        elif self.name == "grouped":
            norm = ref.grouped_norm(number, second, [self.groups[j] for j in learnt])
        elif self.name == "fixed":
            norm = ref.fixed_norm(np.asarray(self.given or np.full(m, 1.0 / m), dtype=LONG))
        elif self.name == "at_most":
            norm = ref.at_most_norm(int(self.number))
        else:
            makers = {"lp": ref.lp_norm, "elastic_net": ref.elastic_net_norm}
            makers["elastic_blocks"] = ref.elastic_blocks_norm
            norm = {"l1": ref.l1_norm, "max": ref.max_norm}.get(
                self.name, lambda: makers[self.name](number)
            )()
        return ref.with_fixed_parts(norm, held) if held else norm

    def half_square(self, t, d):
        """``Omega(t)^2 / 2``."""
        return LONG(self.reference(d).half_square(t))

    def conjugate(self, s):
        """What the dual pays."""
        return LONG(self.reference(np.ones(len(s))).conjugate(np.maximum(s, 0)))

    def lowest_of_cuts(self, gains, quads):
        """What several cuts prove together, where the weights are a choice among subsets."""
        return ref.lowest_of_cuts(int(self.number), gains, quads, dict(self.held))

    def outside(self, d) -> float:
        """How far weights are outside their set (0 is inside)."""
        return self.reference(d).outside(np.asarray(d))


# ---- the two bounds ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Value:
    """A number, and how much double precision alone may have moved it."""

    value: float
    doubt: float


@dataclass(frozen=True)
class ProblemCase:
    """One problem: matrices with their rounding, targets, costs, loss, norm, intercept."""

    K: np.ndarray
    unsure: np.ndarray
    y: np.ndarray
    c: np.ndarray
    loss: ref.RefLoss
    norm: NormCase
    fit_intercept: bool

    def decision(self, beta, d):
        """``sum_j d_j K_j beta`` and its rounding, entry by entry."""
        beta, d = np.asarray(beta, dtype=LONG), np.asarray(d, dtype=LONG)
        mixed, unsure = np.tensordot(d, self.K, axes=1), np.tensordot(d, self.unsure, axes=1)
        rounding = 8 * EPS * np.tensordot(d, np.abs(self.K), axes=1)
        return mixed @ beta, (unsure + rounding) @ np.abs(beta)

    def quad(self, beta):
        """``s_j = beta'K_j beta`` and their rounding."""
        beta = np.asarray(beta, dtype=LONG)
        columns = beta if beta.ndim == 2 else beta[:, None]
        size = np.abs(columns)
        s = np.array([np.sum(columns * (K @ columns)) for K in self.K])
        doubt = np.array(
            [
                np.sum(size * ((unsure + 8 * EPS * np.abs(K)) @ size))
                for K, unsure in zip(self.K, self.unsure, strict=True)
            ]
        )
        return s, doubt

    def primal(self, beta, d, intercept) -> Value:
        """Objective of the function that predicts, at its own intercept."""
        f, blur = self.decision(beta, d)
        f = f + np.asarray(intercept, dtype=LONG)
        blur = blur + 8 * EPS * (np.abs(f) + np.abs(np.asarray(intercept, dtype=LONG)))
        s, doubt = self.quad(beta)
        d = np.asarray(d, dtype=LONG)
        blocks = d * np.sqrt(np.maximum(s, 0))
        regulariser = self.norm.half_square(blocks, d)
        high = self.norm.half_square(d * np.sqrt(np.maximum(s, 0) + doubt), d)
        low = self.norm.half_square(d * np.sqrt(np.maximum(np.maximum(s, 0) - doubt, 0)), d)
        c = np.asarray(self.c, dtype=LONG)
        charge = self.loss.total(self.y, f, c)
        slope = slope_bound(self.loss, self.y, f)
        bend = 2.0 if "squared" in self.loss.name else 0.0
        if self.loss.name == "poisson":
            bend = np.exp(f + np.minimum(blur, 1))
        moved = np.sum(c * (slope * blur + bend * blur**2))
        if self.loss.coupled:  # every event pulls its risk set up and itself down
            moved = 2 * np.sum(c[self.y > 0]) * np.max(blur)
        value = regulariser + charge
        return Value(float(value), float(high - low + moved + 64 * EPS * (abs(regulariser) + abs(charge))))

    def dual(self, beta, intercept) -> Value:
        """Dual objective; infinitely bad where the coefficients are not in the dual set up to rounding.

        Columns that miss their sum of zero by rounding are worth that times the size of the intercept.
        """
        c = np.asarray(self.c, dtype=LONG)
        value, outside = gain(self.loss, self.y, np.asarray(beta, dtype=LONG), c)
        s, doubt = self.quad(beta)
        paid, most = self.norm.conjugate(s), self.norm.conjugate(np.maximum(s, 0) + doubt)
        if outside > OUTSIDE or self.unbalanced(beta) > OUTSIDE:
            return Value(-np.inf, 0.0)
        return Value(float(value - paid), float(most - paid) + self.gain_doubt(beta, value, paid, intercept))

    def gain_doubt(self, beta, gain, paid, intercept) -> float:
        """What rounding may have added to the loss's part of the dual objective."""
        terms = abs(gain)
        if self.loss.regression:
            terms = np.sum(np.abs(np.asarray(beta) * self.y)) + abs(gain)
            if self.loss.name == "censored_squared":
                terms += np.sum(np.abs(np.asarray(beta) * np.log(np.abs(self.y))))
        elif self.loss.name == "squared_hinge":
            terms = np.sum(np.abs(beta)) + abs(gain)
        off = np.sum(np.abs(np.sum(beta, axis=0)) * np.abs(intercept)) if self.fit_intercept else 0.0
        return float(64 * EPS * (terms + abs(paid)) + off)

    def dual_of_cuts(self, betas, intercept) -> Value:
        """What the coefficients of several cuts prove together, where the weights are a choice among subsets."""
        c = np.asarray(self.c, dtype=LONG)
        gains, quads, doubts = [], [], []
        for beta in np.asarray(betas, dtype=LONG):
            value, outside = gain(self.loss, self.y, beta, c)
            s, doubt = self.quad(beta)
            if outside > OUTSIDE or self.unbalanced(beta) > OUTSIDE:
                continue  # no cut: the others have to prove the bound without it
            gains.append(value)
            quads.append(np.maximum(s, 0))
            doubts.append(np.max(doubt) + self.gain_doubt(beta, value, np.max(s), intercept))
        if not gains:
            return Value(-np.inf, 0.0)
        return Value(
            float(self.norm.lowest_of_cuts(np.asarray(gains), np.asarray(quads))), float(max(doubts))
        )

    def at_zero(self) -> float:
        """Objective of f = 0 with one of the better intercepts: the optimum is not above it."""
        c = np.asarray(self.c, dtype=LONG)
        if not self.fit_intercept or self.loss.ordered:
            return float(self.loss.total(self.y, np.zeros_like(self.y), c))
        if self.loss.joint:
            share = np.sum(np.where(self.y > 0, c, 0), axis=0)
            with np.errstate(divide="ignore"):
                logs = np.log(np.maximum(share, 1e-300 * np.max(share)))
            tries = [0 * share, np.where(share == np.max(share), LONG(1), LONG(0)), logs - np.max(logs)]
            return float(min(self.loss.total(self.y, b + np.zeros_like(self.y), c) for b in tries))
        if self.loss.coupled:  # a constant is all the same
            return float(self.loss.total(self.y, np.zeros_like(self.y), c))
        if self.y.ndim == 2:
            return sum(
                replace(self, y=self.y[:, k], c=self.c[:, k]).at_zero() for k in range(self.y.shape[1])
            )
        total = np.sum(c)
        if total <= 0:
            return 0.0
        order = np.argsort(self.y)
        median = self.y[order][np.searchsorted(np.cumsum(c[order]), total / 2)]
        tries = [LONG(0), np.sum(c * self.y) / total, median]
        if self.loss.name == "censored_squared":
            tries.append(np.sum(c * np.log(np.abs(self.y))) / total)
        if self.loss.regression == "counts":
            tries = [LONG(0), np.log(np.maximum(tries[1], LONG(1e-300)))]
        if set(np.unique(self.y)) <= {-1, 1}:
            share = np.clip(np.sum(c[self.y > 0]) / total, 1e-12, 1 - 1e-12)
            tries += [LONG(1), LONG(-1), np.log(share / (1 - share))]
        return float(min(self.loss.total(self.y, b + np.zeros_like(self.y), c) for b in tries))

    def unbalanced(self, beta) -> float:
        """Column sums of the coefficients over their size, where an intercept asks for zero."""
        if not self.fit_intercept or self.loss.coupled:  # of a coupled loss the dual set says it
            return 0.0
        size = float(np.sum(np.abs(beta)))
        return float(np.max(np.abs(np.sum(beta, axis=0)))) / size if size > 0 else 0.0
