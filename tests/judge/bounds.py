"""Recompute both bounds of a fit from ``docs/notation.md``, with NumPy alone.

Nothing here imports the library, and nothing but the judge imports this.  Everything is computed in extended precision
from the raw samples, and every value comes with a *doubt*: how much the rounding of double precision alone may have
moved it.  The library is held to its word up to a multiple of that doubt.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np

LONG = np.longdouble
EPS = float(np.finfo(float).eps)


# ---- kernels -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class KernelCase:
    """One kernel: its family, its numbers, and the columns it looks at (None: all)."""

    family: str
    number: float = 1.0
    relative: bool = False
    columns: tuple[int, ...] | None = None


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


# ---- losses --------------------------------------------------------------------------------------------------------


def _a_ln_a(a):
    return np.where(a > 0, a * np.log(np.where(a > 0, a, 1)), 0)


def _softplus(z):
    return np.maximum(z, 0) + np.log1p(np.exp(-np.abs(z)))


@dataclass(frozen=True)
class LossCase:
    """A loss by name, with its numbers: ``(width,)``, ``(epsilon,)`` or ``(budget, base)``."""

    name: str
    numbers: tuple[float, ...] = ()

    def values(self, y, f):
        """Loss by entry (by row for the joint ones), and a bound of its slope there."""
        if self.name in ("multiclass_hinge", "softmax"):
            scores = f - np.sum(np.where(y > 0, f, 0), axis=1, keepdims=True)
            if self.name == "multiclass_hinge":
                return np.max(scores + (y < 0), axis=1), 2 * np.ones(len(y))
            top = np.max(scores, axis=1)
            return top + np.log(np.sum(np.exp(scores - top[:, None]), axis=1)), 2 * np.ones(len(y))
        z = 1 - y * f
        if self.name in ("hinge", "budgeted_hinge"):
            return np.maximum(z, 0), np.ones(y.shape)
        if self.name == "squared_hinge":
            return np.maximum(z, 0) ** 2, 2 * np.maximum(z, 0)
        if self.name == "huber_hinge":
            width = self.numbers[0]
            inner = np.maximum(z, 0) ** 2 / (2 * width)
            return np.where(z <= width, inner, z - width / 2), np.ones(y.shape)
        if self.name == "logistic":
            return _softplus(-y * f), np.ones(y.shape)
        if self.name == "squared":
            return (y - f) ** 2, 2 * np.abs(y - f)
        assert self.name == "epsilon_insensitive"
        return np.maximum(np.abs(y - f) - self.numbers[0], 0), np.ones(y.shape)

    def total(self, y, f, c):
        """What the objective charges; the budgeted hinge only the largest losses."""
        values, _ = self.values(y, f)
        if self.name != "budgeted_hinge":
            return np.sum((c[:, 0] if values.ndim < c.ndim else c) * values)
        if y.ndim == 2:
            return sum(self.total(y[:, k], f[:, k], c[:, k]) for k in range(y.shape[1]))
        budget, base = self.numbers
        left, total = (budget - base) * np.sum(c), LONG(0)
        for i in np.argsort(-values, kind="stable"):
            extra = min(left, (1 - base) * c[i])
            total += (base * c[i] + extra) * values[i]
            left -= extra
        return total

    def slope(self, y, f):
        """Bound of the derivative by entry."""
        _, slope = self.values(y, f)
        return np.repeat(slope[:, None], y.shape[1], axis=1) if slope.ndim < y.ndim else slope

    def gain(self, y, beta, c):
        """``-total*(-beta)`` for coefficients in the dual set, and how far outside it they are (0 is inside)."""
        used = c > 0
        outside = float(np.max(np.abs(np.where(used, 0, beta)), initial=0))
        unit = np.where(used, beta / np.where(used, c, 1), 0)
        if self.name in ("multiclass_hinge", "softmax"):
            a = np.where(y > 0, 1 - unit, -unit)  # rows on the simplex: beta = c (e_own - a)
            live = used[:, 0]
            off = np.abs(np.sum(unit, axis=1)) + np.sum(np.maximum(-a, 0), axis=1)
            outside = max(outside, float(np.max(np.where(live, off, 0), initial=0)))
            a = np.maximum(a, 0)
            if self.name == "multiclass_hinge":
                rows = np.sum(np.where(y < 0, a, 0), axis=1)
            else:
                rows = -np.sum(_a_ln_a(a), axis=1)
            return np.sum(np.where(live, c[:, 0] * rows, 0)), outside
        a = y * unit
        most = np.inf
        if self.name in ("hinge", "budgeted_hinge"):
            value, low, most = a, 0.0, 1.0
        elif self.name == "squared_hinge":
            value, low = a - a**2 / 4, 0.0
        elif self.name == "huber_hinge":
            value, low, most = a - self.numbers[0] * a**2 / 2, 0.0, 1.0
        elif self.name == "logistic":
            clipped = np.clip(a, 0, 1)
            value, low, most = -_a_ln_a(clipped) - _a_ln_a(1 - clipped), 0.0, 1.0
        elif self.name == "squared":
            a, low = unit, -np.inf
            value = unit * y - unit**2 / 4
        else:
            a, low, most = unit, -1.0, 1.0
            value = unit * y - self.numbers[0] * np.abs(unit)
        over = np.maximum(np.maximum(low - a, a - most), 0)
        outside = max(outside, float(np.max(np.where(used, over, 0), initial=0)))
        if self.name == "budgeted_hinge":
            budget, base = self.numbers
            limit = (budget - base) * np.sum(c, axis=0)
            spent = np.sum(np.maximum(y * beta - base * c, 0), axis=0)
            outside = max(outside, float(np.max((spent - limit) / np.where(limit > 0, limit, 1))))
        return np.sum(np.where(used, c * value, 0)), outside

    def margin(self, y, f, c):
        """What relative gaps are divided by: 1, or what the budget leaves of the margin."""
        if self.name != "budgeted_hinge" or self.numbers[0] >= 1:
            return 1.0
        if y.ndim == 2:
            return min(self.margin(y[:, k], f[:, k], c[:, k]) for k in range(y.shape[1]))
        budget, base = self.numbers
        values, _ = self.values(y, f)
        left = (budget - base) * np.sum(c)
        threshold = 0.0
        for i in np.argsort(-values, kind="stable"):
            left -= (1 - base) * c[i]
            if left <= 1e-12 * np.sum(c):
                threshold = float(values[i])
                break
        return max(1.0 - threshold, base, 1e-6)


# ---- norms ---------------------------------------------------------------------------------------------------------


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

    def split(self, values):
        """The values of the kernels that are learnt and of the others, the weights of these, and the norm of the first."""
        held = [j for j, _ in self.held]
        learnt = [j for j in range(len(values)) if j not in held]
        own = replace(self, held=(), groups=tuple(self.groups[j] for j in learnt) if self.groups else ())
        return values[learnt], values[held], np.asarray([w for _, w in self.held], dtype=LONG), own

    def half_square(self, t, d):
        """``Omega(t)^2 / 2``; of the entropy its value at the weights d, an upper bound."""
        if self.held:
            learnt, others, weights, own = self.split(t)
            return own.half_square(learnt, self.split(d)[0]) + np.sum(others**2 / weights) / 2
        if self.name == "l1":
            return np.sum(t) ** 2 / 2
        if self.name == "max":
            return np.max(t, initial=0) ** 2 / 2
        if self.name == "lp":
            return _size(t, _block_exponent(self.number)) ** 2 / 2
        if self.name == "grouped":
            sizes = [_size(t[at], _block_exponent(self.second)) for at in self.members()]
            return _size(np.asarray(sizes), _block_exponent(self.number)) ** 2 / 2
        if self.name == "elastic":
            return _size(t, self.elastic_exponent(t.size)) ** 2 / 2 + self.number * np.sum(t)
        if self.name == "elastic_blocks":
            return (self.number * np.sum(t) ** 2 + (1 - self.number) * np.sum(t**2)) / 2
        if self.name == "elastic_net":
            top = np.max(t, initial=0)
            return top**2 * _net_half_square(t / top, LONG(self.number)) if top > 0 else LONG(0)
        if self.name == "at_most":
            k = min(int(self.number), t.size)
            return k * np.sum(t**2) / 2 if np.count_nonzero(t) <= k else LONG(np.inf)
        if self.name == "entropy":
            d = d / np.sum(d)
            used = t**2 > 0
            if np.any(d[used] <= 0):
                return LONG(np.inf)
            return np.sum(t[used] ** 2 / d[used]) / 2 + self.number / 2 * np.sum(
                _a_ln_a(d) + d * np.log(LONG(d.size))
            )
        assert self.name == "fixed", self.name
        given = np.asarray(self.given or np.full(t.size, 1.0 / t.size), dtype=LONG)
        used = t > 0
        return np.sum(t[used] ** 2 / given[used]) / 2 if np.all(given[used] > 0) else LONG(np.inf)

    def conjugate(self, s):
        """What the dual pays."""
        if self.held:
            learnt, others, weights, own = self.split(s)
            return own.conjugate(learnt) + np.sum(weights * np.maximum(others, 0)) / 2
        s = np.maximum(s, 0)
        top = np.max(s)
        if top <= 0:
            return LONG(0)
        if self.name == "l1":
            return top / 2
        if self.name == "max":
            return np.sum(np.sqrt(s)) ** 2 / 2
        if self.name == "lp":
            return _size(s, _conjugate_exponent(self.number)) / 2
        if self.name == "grouped":
            forms = [_size(s[at], _conjugate_exponent(self.second)) for at in self.members()]
            return _size(np.asarray(forms), _conjugate_exponent(self.number)) / 2
        if self.name == "elastic":
            above = np.maximum(np.sqrt(s) - self.number, 0)
            return _size(above, _conjugate_exponent(self.elastic_exponent(s.size))) ** 2 / 2
        if self.name == "elastic_blocks":
            # the best t is (sqrt(s) - mix T)_+ / (1 - mix), T its sum: the k largest take part
            root = np.sort(np.sqrt(s))[::-1]
            totals = np.cumsum(root) / (1 - self.number + self.number * np.arange(1, s.size + 1))
            part = root > self.number * totals
            t = np.maximum(root - self.number * totals[np.flatnonzero(part)[-1]], 0) / (1 - self.number)
            return np.sum(t * root) - self.half_square(t, t)
        if self.name == "elastic_net":
            # d = (theta s - mix)_+ / (2 - 2 mix), with the charge of the k largest equal to one
            ordered, k = np.sort(s / top)[::-1], np.arange(1, s.size + 1)
            theta = np.sqrt((4 - 4 * LONG(self.number) + k * LONG(self.number) ** 2) / np.cumsum(ordered**2))
            theta = theta[np.flatnonzero(theta * ordered > self.number)[-1]]
            d = np.maximum(theta * s / top - self.number, 0) / (2 - 2 * LONG(self.number))
            return np.sum(d * s) / 2
        if self.name == "at_most":
            k = min(int(self.number), s.size)
            return np.mean(np.sort(s)[::-1][:k]) / 2
        if self.name == "entropy":
            return (top + self.number * np.log(np.mean(np.exp((s - top) / self.number)))) / 2
        assert self.name == "fixed", self.name
        given = np.asarray(self.given or np.full(s.size, 1.0 / s.size), dtype=LONG)
        return given @ s / 2

    def lowest_of_cuts(self, gains, quads):
        """``min over subsets of max over cuts``, notation (21), by trying every subset of k kernels."""
        m = quads.shape[1]
        held = dict(self.held)
        learnt = [j for j in range(m) if j not in held]
        k = min(int(self.number), len(learnt))
        gains = gains - quads[:, list(held)] @ np.asarray(list(held.values()), dtype=LONG) / 2
        subsets = np.array(list(itertools.combinations(learnt, k)))
        worst = np.full(len(subsets), -np.inf, dtype=LONG)
        for gain, quad in zip(gains, quads, strict=True):
            worst = np.maximum(worst, gain - np.sum(quad[subsets], axis=1) / (2 * k))
        return np.min(worst)

    def outside(self, d) -> float:
        """How far weights are outside their set (0 is inside)."""
        if self.held:
            learnt, others, weights, own = self.split(np.asarray(d))
            return max(own.outside(learnt), float(np.max(np.abs(others - weights))))
        worst = max(0.0, -float(np.min(d)))
        if self.name in ("l1", "entropy"):
            return max(worst, abs(float(np.sum(d)) - 1.0))
        if self.name == "lp":
            return max(worst, float(_size(d, self.number)) - 1.0)
        if self.name == "grouped":
            sizes = np.asarray([_size(d[at], self.second) for at in self.members()])
            return max(worst, float(_size(sizes, self.number)) - 1.0)
        if self.name == "elastic":
            r = self.elastic_exponent(d.size)
            return max(worst, float(_size(d, r / (2 - r) if r < 2 else np.inf)) - 1.0)
        if self.name == "elastic_blocks":
            left = 1 - (1 - self.number) * d
            if np.any(left <= 0):
                return float(np.max(d))
            return max(worst, self.number * float(np.sum(d / left)) - 1.0)
        if self.name == "elastic_net":
            charge = self.number * np.sum(d) + (1 - self.number) * np.sum(d**2)
            return max(worst, float(charge) - 1.0)
        if self.name == "at_most":
            k = min(int(self.number), d.size)
            many = max(0, np.count_nonzero(d) - k)
            return max(worst, float(many), float(np.max(np.minimum(np.abs(d), np.abs(d - 1 / k)))))
        if self.name == "fixed":
            return max(
                worst, float(np.max(np.abs(d - np.asarray(self.given or np.full(d.size, 1 / d.size)))))
            )
        assert self.name == "max", self.name  # any weights: none is convex in them
        return worst

    def members(self):
        """Positions of the kernels of every group."""
        labels = np.asarray(self.groups)
        return [np.flatnonzero(labels == g) for g in np.unique(labels)]

    def elastic_exponent(self, m: int) -> float:
        """r, by default dual to ``max(2, 2 ln m)``."""
        return float(self.second) or _conjugate_exponent(max(2.0, 2.0 * float(np.log(m))))


def _size(values, exponent):
    """The norm of an exponent, of values that may be far from one."""
    top = np.max(np.abs(values), initial=0)
    if top <= 0 or np.isinf(exponent):
        return LONG(top)
    return top * np.sum((np.abs(values) / top) ** LONG(exponent)) ** (1 / LONG(exponent))


def _block_exponent(p):
    """r = 2p / (p + 1)."""
    return 2.0 if np.isinf(p) else 2 * LONG(p) / (LONG(p) + 1)


def _conjugate_exponent(p):
    """q with 1/p + 1/q = 1."""
    return 1.0 if np.isinf(p) else np.inf if p == 1 else LONG(p) / (LONG(p) - 1)


def _net_half_square(t, mix):
    """``min over d of sum_j t_j^2 / d_j / 2`` with ``mix sum d + (1 - mix) sum d^2 <= 1``, by its conditions of first order."""
    t = t[t > 0]

    def weights(log_price):  # d^2 (mix + 2 (1 - mix) d) = price t^2: convex in d, so that Newton is monotone
        goal = np.exp(log_price) * t**2
        d = np.cbrt(goal / (2 - 2 * mix))
        for _ in range(300):
            step = (d**2 * (mix + (2 - 2 * mix) * d) - goal) / (2 * d * mix + 3 * d**2 * (2 - 2 * mix))
            d = d - step
            if np.all(np.abs(step) <= 1e-18 * d):
                break
        return d

    def charge(log_price):
        d = weights(log_price)
        return mix * np.sum(d) + (1 - mix) * np.sum(d**2)

    low, high = LONG(-1), LONG(1)
    while charge(low) > 1:
        low *= 2
    while charge(high) < 1:
        high *= 2
    for _ in range(70):
        middle = (low + high) / 2
        low, high = (middle, high) if charge(middle) < 1 else (low, middle)
    return np.sum(t**2 / weights(low)) / 2


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
    loss: LossCase
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
        slope = self.loss.slope(self.y, f)
        bend = 2.0 if self.loss.name.startswith("squared") else 0.0
        moved = np.sum(c * (slope * blur + bend * blur**2))
        value = regulariser + charge
        return Value(float(value), float(high - low + moved + 64 * EPS * (abs(regulariser) + abs(charge))))

    def dual(self, beta, intercept) -> Value:
        """Dual objective; infinitely bad where the coefficients are not in the dual set up to rounding.

        Columns that miss their sum of zero by rounding are worth that times the size of the intercept.
        """
        c = np.asarray(self.c, dtype=LONG)
        gain, outside = self.loss.gain(self.y, np.asarray(beta, dtype=LONG), c)
        s, doubt = self.quad(beta)
        paid, most = self.norm.conjugate(s), self.norm.conjugate(np.maximum(s, 0) + doubt)
        if outside > 1e-9 or self.unbalanced(beta) > 1e-9:
            return Value(-np.inf, 0.0)
        return Value(float(gain - paid), float(most - paid) + self.gain_doubt(beta, gain, paid, intercept))

    def gain_doubt(self, beta, gain, paid, intercept) -> float:
        """What rounding may have added to the loss's part of the dual objective."""
        terms = abs(gain)
        if self.loss.name in ("squared", "epsilon_insensitive"):
            terms = np.sum(np.abs(np.asarray(beta) * self.y)) + abs(gain)
        elif self.loss.name == "squared_hinge":
            terms = np.sum(np.abs(beta)) + abs(gain)
        off = np.sum(np.abs(np.sum(beta, axis=0)) * np.abs(intercept)) if self.fit_intercept else 0.0
        return float(64 * EPS * (terms + abs(paid)) + off)

    def dual_of_cuts(self, betas, intercept) -> Value:
        """What the coefficients of several cuts prove together, where the weights are a choice among subsets."""
        c = np.asarray(self.c, dtype=LONG)
        gains, quads, doubts = [], [], []
        for beta in np.asarray(betas, dtype=LONG):
            gain, outside = self.loss.gain(self.y, beta, c)
            s, doubt = self.quad(beta)
            if outside > 1e-9 or self.unbalanced(beta) > 1e-9:
                continue  # no cut: the others have to prove the bound without it
            gains.append(gain)
            quads.append(np.maximum(s, 0))
            doubts.append(np.max(doubt) + self.gain_doubt(beta, gain, np.max(s), intercept))
        if not gains:
            return Value(-np.inf, 0.0)
        return Value(
            float(self.norm.lowest_of_cuts(np.asarray(gains), np.asarray(quads))), float(max(doubts))
        )

    def at_zero(self) -> float:
        """Objective of f = 0 with one of the better intercepts: the optimum is not above it."""
        c = np.asarray(self.c, dtype=LONG)
        if not self.fit_intercept:
            return float(self.loss.total(self.y, np.zeros_like(self.y), c))
        if self.loss.name in ("multiclass_hinge", "softmax"):
            share = np.sum(np.where(self.y > 0, c, 0), axis=0)
            with np.errstate(divide="ignore"):
                logs = np.log(np.maximum(share, 1e-300 * np.max(share)))
            tries = [0 * share, np.where(share == np.max(share), LONG(1), LONG(0)), logs - np.max(logs)]
            return float(min(self.loss.total(self.y, b + np.zeros_like(self.y), c) for b in tries))
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
        if set(np.unique(self.y)) <= {-1, 1}:
            share = np.clip(np.sum(c[self.y > 0]) / total, 1e-12, 1 - 1e-12)
            tries += [LONG(1), LONG(-1), np.log(share / (1 - share))]
        return float(min(self.loss.total(self.y, b + np.zeros_like(self.y), c) for b in tries))

    def unbalanced(self, beta) -> float:
        """Column sums of the coefficients over their size, where an intercept asks for zero."""
        if not self.fit_intercept:
            return 0.0
        size = float(np.sum(np.abs(beta)))
        return float(np.max(np.abs(np.sum(beta, axis=0)))) / size if size > 0 else 0.0
