"""Kernel weights by restricted maximum likelihood where kernels are only multiplied with: ``banks.pairs``.

``y ~ N(b, s^2 G)``, ``G = E + sum_j d_j K_j`` with E the inverse weights of the samples; the variance and the intercept
are profiled out.  With M the inverse of G without the direction of the intercept, ``a = M y`` and f dimensions left,

    L = [log|G| + f log(y'a / f)] / f,    dL/dd_j = tr(M K_j) / f - a'K_j a / y'a

Few samples have exact traces.  Of many, traces come from products with the same random signs throughout (Hutchinson),
less what a single product of kernels explains of them where that can be computed (a whole grid), and the change of L
from one point to another is the mean of its slopes at both, along the way between: a step is taken where it falls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from .._numerics.stopping import interrupted, out_of_time
from .._typing import Array, Index
from .by_products import solve_system

#: samples up to which traces are exact; probes beyond, and relative residuals of their systems and of the target's
EXACT, PROBES, PROBE_RESIDUAL, RESIDUAL = 1500, 6, 1e-2, 1e-4
#: steps at most, the longest in a logarithm, and gains of the log-likelihood that are not worth another
MOST, LONGEST, WORTH, WORTH_OF_PROBES = 40, 2.5, 0.02, 0.5
#: damping at first and at most; shares of what a step promised with which it grows and shrinks
DAMPING, HARDEST, GOOD, POOR = 0.02, 1e6, 0.6, 0.2
#: exponent of the multiplicative steps that come first, and how many
EXPONENT, FIRST = 0.8, 3
#: weights below this share of the sum are zero where the likelihood does not object
LEAST = 1e-5
#: sums of equal weights that are tried first
FACTORS = np.exp(np.arange(-4.0, 9.0))


@dataclass
class RemlPoint:
    """The criterion's slope at weights d, and a model of its second derivatives; its value where traces are exact."""

    d: Array
    gradient: Array
    hessian: Array
    coef: Array
    value: float = np.nan

    @property
    def slope(self) -> float:
        """Largest derivative in the logarithm of a weight."""
        return float(np.max(np.abs(self.d * self.gradient), initial=0.0))


@dataclass
class RemlChoice:
    """Weights, in which the ridge is, why the choice ended, and how often the kernels were solved with."""

    point: RemlPoint
    status: str
    steps: int


class ProductReml:
    """The criterion of one target ``(n,)`` on a bank of products; ``noise`` is infinite for samples without weight."""

    def __init__(self, bank: Any, y: Array, noise: Array, has_intercept: bool) -> None:
        self.bank, self.noise, self.has_intercept = bank, noise, has_intercept
        self.used = np.flatnonzero(np.isfinite(noise))
        self.y = np.where(np.isfinite(noise), y, 0.0)
        self.freedom = max(self.used.size - has_intercept, 1)
        known = self.y[self.used]
        spread = known - (np.mean(known) if has_intercept else 0.0)
        #: whether there is nothing to learn
        self.constant = bool(np.linalg.norm(spread) <= 1e-12 * np.linalg.norm(known))
        #: solutions at the last weights, to start from: of the target, and of every probe
        self.known: dict[int, Array] = {}
        self.exact = self.used.size <= EXACT
        signs = np.random.default_rng(0).choice([-1.0, 1.0], (PROBES, y.size))
        self.probes = np.where(np.isfinite(noise), signs, 0.0)

    def look(self, d: Array) -> RemlPoint:
        """Evaluate the criterion at weights."""
        return self._exactly(d) if self.exact else self._by_probes(d)

    def _exactly(self, d: Array) -> RemlPoint:
        rows = self.used
        G = self.bank.mix_block(d, rows, rows) + np.diag(self.noise[rows])
        factor = cho_factor(G, lower=True)
        M = cho_solve(factor, np.eye(rows.size))
        # of the samples times the roots of their weights, without the direction of the intercept
        log_det = float(2.0 * np.sum(np.log(np.diagonal(factor[0]))) - np.sum(np.log(self.noise[rows])))
        if self.has_intercept:
            ones = M.sum(axis=0)
            log_det += float(np.log(ones.sum() / np.sum(1.0 / self.noise[rows])))
            M -= np.outer(ones, ones) / ones.sum()
        coef = np.zeros(self.y.size)
        coef[rows] = M @ self.y[rows]
        q = float(self.y @ coef)
        V = self.bank.apply(coef, rows)
        hessian = V @ M @ V.T
        value = log_det / self.freedom + float(np.log(q / self.freedom))
        return self._point(d, coef, self.bank.storage.traces(M, rows), hessian, value)

    def _by_probes(self, d: Array) -> RemlPoint:
        K, total = self.bank.mixed(d), 0.0 if self.has_intercept else None
        coef = solve_system(K, self.noise, self.y, total, RESIDUAL, self.known.get(-1))
        solved = {-1: coef}
        nearly = K.inverse(self.noise)
        traces, known = np.zeros(self.bank.m), K.traces(self.noise)
        if known is not None and self.has_intercept:
            ones = nearly((self.noise < np.inf).astype(float))
            known = known - self.bank.quad(ones) / np.sum(ones)
        for k, z in enumerate(self.probes):
            x = solved[k] = solve_system(K, self.noise, z, total, PROBE_RESIDUAL, self.known.get(k))
            if known is not None:
                shift = nearly(z)
                x = x - (shift - ones * (np.sum(shift) / np.sum(ones)) if self.has_intercept else shift)
            traces += self.bank.storage.forms(x, z) / len(self.probes)
        self.known = solved
        return self._point(
            d,
            coef,
            traces if known is None else traces + known,
            K.hessian(coef, self.noise, self.has_intercept),
        )

    def _point(
        self, d: Array, coef: Array, traces: Array, hessian: Array, value: float = np.nan
    ) -> RemlPoint:
        q = max(float(self.y @ coef), np.finfo(float).tiny)
        shares = self.bank.quad(coef) / q
        hessian = hessian / q - np.outer(shares, shares)
        return RemlPoint(d, np.maximum(traces, 0.0) / self.freedom - shares, hessian, coef, value)

    def start(self) -> Array:
        """Equal weights, times the factor that is best where the nearest single product stands for the kernels."""
        equal = (self.bank.mean_diagonals(self.used) > 0) / self.bank.m
        best, factor = np.inf, 1.0
        for one in FACTORS:
            log_det, solve = self.bank.mixed(one * equal).determinant(self.noise)
            y = self.y - (np.sum(self.y) / self.used.size if self.has_intercept else 0.0)
            y = np.where(np.isfinite(self.noise), y, 0.0)
            value = log_det / self.freedom + float(np.log(max(y @ solve(y), np.finfo(float).tiny)))
            if value < best:
                best, factor = value, one
        return np.asarray(factor * equal)


def choose_by_products(criterion: ProductReml, callback: Any = None) -> RemlChoice:
    """Choose weights for one target: multiplicative steps, then damped second-order ones in the logarithms."""
    if criterion.constant:
        little = np.full(criterion.bank.m, 1e-8 / criterion.bank.m)
        none = np.zeros(criterion.bank.m)
        return RemlChoice(
            RemlPoint(little, none, np.zeros((none.size, none.size)), 0.0 * criterion.y), "constant", 0
        )
    here, damping, status, steps = criterion.look(criterion.start()), DAMPING, "max_steps", 1
    half, worth = 0.5 * criterion.freedom, WORTH if criterion.exact else WORTH_OF_PROBES
    for _ in range(MOST):
        row = {"iteration": steps, "criterion": here.value, "active_kernels": np.count_nonzero(here.d)}
        if out_of_time() or (callback is not None and callback(row)):
            status = ("interrupted" if interrupted() else "max_seconds") if out_of_time() else "stopped"
            break
        if steps <= FIRST:
            here, steps = _multiplied(criterion, here), steps + 1
            continue
        on, (entering, gain, weight) = np.flatnonzero(here.d), _entering(here)
        step, promise = _step(here, on, damping)
        if half * max(promise, gain) <= worth:
            status = "stationary"
            break
        moved, expected = here.d.copy(), promise
        moved[on] *= np.exp(step)
        if half * gain > worth:
            moved[entering], expected = weight, promise + gain
        there, steps = criterion.look(_without_least(moved, here)), steps + 1
        fell = -_change(here, there) / expected
        # by how much of what it promised came true; a step that does not lead down is not taken
        damping *= 0.25 if fell > GOOD else 1.0 if fell > POOR else 6.0
        while fell <= 0.0 and damping < HARDEST and not out_of_time():
            step, expected = _step(here, on, damping)
            moved = here.d.copy()
            moved[on] *= np.exp(step)
            there, steps = criterion.look(_without_least(moved, here)), steps + 1
            fell = -_change(here, there) / expected
            damping *= 1.0 if fell > POOR else 6.0
        if fell <= 0.0:
            break
        here = there
    return RemlChoice(here, status, steps)


def _multiplied(criterion: ProductReml, here: RemlPoint) -> RemlPoint:
    """Step of an over-relaxed fixed point: a weight grows with what its kernel explains, over what chance would."""
    shares = criterion.bank.quad(here.coef) / max(float(criterion.y @ here.coef), np.finfo(float).tiny)
    traces = np.maximum(here.gradient + shares, 1e-3 * shares)
    ratio = np.divide(shares, traces, out=np.ones_like(shares), where=traces > 0)
    return criterion.look(here.d * np.clip(ratio**EXPONENT, np.exp(-LONGEST), np.exp(LONGEST)))


def _step(here: RemlPoint, on: Index, damping: float) -> tuple[Array, float]:
    """Step in the logarithms of weights that are not zero, no longer than it may be, and the fall that it promises."""
    d = here.d[on]
    g, H = d * here.gradient[on], d[:, None] * here.hessian[np.ix_(on, on)] * d
    # where a weight shrinks, its own slope is a part of the second derivative in the logarithm
    H = 0.5 * (H + H.T) + np.diag(np.maximum(g, 0.0))
    values, axes = np.linalg.eigh(H)
    values, along = np.maximum(values, 0.0), axes.T @ g
    added = max(damping, 1e-9) * max(values[-1], float(np.max(np.abs(g))), np.finfo(float).tiny)
    while np.max(np.abs(axes @ (along / (values + added)))) > LONGEST:
        added *= 2.0
    step = -axes @ (along / (values + added))
    return step, -float(g @ step) - 0.5 * float(step @ H @ step)


def _entering(here: RemlPoint) -> tuple[int, float, float]:
    """Return which kernel without weight promises most, the fall, and the weight to begin with."""
    off = np.flatnonzero((here.d == 0.0) & (here.gradient < 0.0))
    if not off.size:
        return 0, 0.0, 0.0
    curvature = np.maximum(np.diagonal(here.hessian)[off], np.finfo(float).tiny)
    weight = np.minimum(-here.gradient[off] / curvature, float(np.sum(here.d)) or 1.0)
    gain = -here.gradient[off] * weight - 0.5 * curvature * weight**2
    k = int(np.argmax(gain))
    return int(off[k]), float(gain[k]), float(weight[k])


def _without_least(d: Array, here: RemlPoint) -> Array:
    """Leave out what is too small to matter, and was to shrink."""
    small = (d < LEAST * np.sum(d)) & (here.gradient >= 0.0)
    return np.where(small, 0.0, d)


def _change(here: RemlPoint, there: RemlPoint) -> float:
    """Change of the criterion between two points: exact, or the mean of both slopes along the logarithms."""
    if np.isfinite(here.value):
        return there.value - here.value
    both = (here.d > 0) & (there.d > 0)
    way = np.log(there.d[both] / here.d[both])
    slopes = 0.5 * (here.d * here.gradient + there.d * there.gradient)[both]
    other = ~both
    moved = (there.d - here.d)[other] * 0.5 * (here.gradient + there.gradient)[other]
    return float(slopes @ way) + float(np.sum(moved))
