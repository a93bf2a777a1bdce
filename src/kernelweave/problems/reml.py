"""Kernel weights by restricted maximum likelihood where kernels are only multiplied with: ``banks.pairs``.

``y ~ N(b, s^2 G)``, ``G = E + sum_j d_j K_j`` with E the inverse weights of the samples; the variance and the intercept
are profiled out.  With M the inverse of G without the direction of the intercept, ``a = M y`` and f dimensions left,

    L = [log|G| + f log(y'a / f)] / f,    dL/dd_j = tr(M K_j) / f - a'K_j a / y'a

Few samples have both exactly.  Of many, block Lanczos processes from the same random signs throughout find ``log|G|``
and the traces (Hutchinson), less what a single product of kernels explains of them where that can be computed (a whole
grid): what they leave open is nearly the same at two points, so that differences of L are precise.

A step minimises the slopes and a damped model of second derivatives (the average information) over weights that are not
negative, and is taken where L falls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.optimize import nnls

from .._numerics.lanczos import block_lanczos
from .._numerics.stopping import interrupted, out_of_time
from .._typing import Array
from .by_products import solve_system

#: samples up to which all is exact; probes beyond, entries of their bases, and relative residual of the target's system
EXACT, PROBES, BASIS_ENTRIES, RESIDUAL = 1500, 6, 60_000_000, 1e-4
#: blocks of a basis at most; change of the log-likelihood in a block, and relative residual, that are small enough
MOST_BLOCKS, CHANGE, PROBE_RESIDUAL = 60, 1.0, 0.1
#: share of the noise that rounding in single precision may be
ROUNDING = 0.1
#: steps at most, and gains of the log-likelihood that are not worth another
MOST, WORTH, WORTH_OF_PROBES = 40, 0.02, 0.5
#: damping at first and at least, of second derivatives; shares of what a step promised with which it changes
DAMPING, LEAST_DAMPING, GOOD, POOR = 0.1, 0.005, 0.6, 0.2
#: last steps whose slopes correct the model, and share of its own bend that they have to leave
SEEN, LEAST_BEND = 4, 0.2
#: sums of equal weights that are tried first
FACTORS = np.exp(np.arange(-4.0, 9.0))


@dataclass
class RemlPoint:
    """The criterion and its slope at weights d, and a model of its second derivatives."""

    d: Array
    gradient: Array
    hessian: Array
    coef: Array
    value: float

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
        #: of the target, at the last weights
        self.last: Array | None = None
        self.exact = self.used.size <= EXACT
        self.probes = np.random.default_rng(0).choice([-1.0, 1.0], (PROBES, y.size))

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
        V = self.bank.apply(coef, rows)
        hessian = V @ M @ V.T
        return self._point(d, coef, self.bank.storage.traces(M, rows), hessian, log_det)

    def _by_probes(self, d: Array) -> RemlPoint:
        K, storage = self.bank.mixed(d), self.bank.storage
        coef = solve_system(K, self.noise, self.y, 0.0 if self.has_intercept else None, RESIDUAL, self.last)
        self.last = coef
        bound = float(np.sum(d * self.bank.mean_diagonals(self.used))) * float(np.sum(1.0 / self.noise))
        rough = K.as_type(np.float32 if np.finfo(np.float32).eps * bound < ROUNDING else float)
        # samples times the roots of their weights have noise of one, and the intercept is a direction among them
        root, system = rough.scaled(self.noise, self.has_intercept)
        probes = np.where(root > 0, self.probes, 0.0)
        if self.has_intercept:
            probes -= np.multiply.outer(probes @ root, root) / float(root @ root)
        # as many at once as their basis may have entries
        step = int(np.clip(BASIS_ENTRIES // (MOST_BLOCKS * self.y.size), 1, len(probes)))
        log_det, traces = 0.0, np.zeros(self.bank.m)
        known = K.nearest(self.noise, self.has_intercept)
        for first in range(0, len(probes), step):
            some = probes[first : first + step]
            solved, logs = block_lanczos(
                system, some.astype(rough.dtype), MOST_BLOCKS, 0.5 * len(probes) * CHANGE, PROBE_RESIDUAL
            )
            log_det += float(np.sum(logs)) / len(probes)
            for x, z in zip(solved, some, strict=True):
                x = root * x
                if known is not None:
                    near, log = known[2](z)
                    x, log_det = x - near, log_det - log / len(probes)
                traces += storage.forms(x, root * z) / len(probes)
        if known is not None:
            log_det, traces = log_det + known[0], traces + known[1]
        hessian = K.hessian(coef, self.noise, self.has_intercept)
        return self._point(d, coef, traces, hessian, log_det)

    def _point(self, d: Array, coef: Array, traces: Array, hessian: Array, log_det: float) -> RemlPoint:
        q = max(float(self.y @ coef), np.finfo(float).tiny)
        shares = self.bank.quad(coef) / q
        value = log_det / self.freedom + float(np.log(q / self.freedom))
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
    """Choose weights for one target by damped second-order steps."""
    if criterion.constant:
        m, nothing = criterion.bank.m, 0.0 * criterion.y
        here = RemlPoint(np.full(m, 1e-8 / m), np.zeros(m), np.zeros((m, m)), nothing, np.nan)
        return RemlChoice(here, "constant", 0)
    here, damping, status, steps = criterion.look(criterion.start()), DAMPING, "max_steps", 1
    half, worth = 0.5 * criterion.freedom, WORTH if criterion.exact else WORTH_OF_PROBES
    idle = 0
    seen: list[tuple[Array, Array]] = []
    for _ in range(MOST):
        row = {"iteration": steps, "criterion": here.value, "active_kernels": np.count_nonzero(here.d)}
        if out_of_time() or (callback is not None and callback(row)):
            status = ("interrupted" if interrupted() else "max_seconds") if out_of_time() else "stopped"
            break
        d, promise = _step(here, seen, damping)
        if half * promise <= worth or idle > 1:
            status = "stationary"
            break
        there, steps = criterion.look(d), steps + 1
        fell = here.value - there.value
        # by how much of what it promised came true; a step that does not lead down is not taken
        change = 0.25 if fell > GOOD * promise else 1.0 if fell > POOR * promise else 6.0
        damping = max(LEAST_DAMPING, change * damping)
        idle += half * abs(fell) <= worth
        seen = [*seen[1 - SEEN :], (there.d - here.d, there.gradient - here.gradient)]
        here = there if fell > 0.0 else here
    return RemlChoice(here, status, steps)


def _step(here: RemlPoint, seen: list[tuple[Array, Array]], damping: float) -> tuple[Array, float]:
    """Return the weights that minimise a damped model, and the fall that the model promises.

    The model of second derivatives is made to agree with changes of slopes that were seen, the last best: damped BFGS.
    """
    g = here.gradient
    size = np.sqrt(np.maximum(np.maximum(np.diagonal(here.hessian), g**2), np.finfo(float).tiny))
    H = here.hessian / np.multiply.outer(size, size)
    values, axes = np.linalg.eigh(0.5 * (H + H.T))
    H = (axes * np.maximum(values, 1e-6)) @ axes.T
    for step, change in seen:
        step, change = size * step, change / size
        along = H @ step
        bend, bent = float(step @ along), float(step @ change)
        share = 1.0 if bent >= LEAST_BEND * bend else (1.0 - LEAST_BEND) * bend / (bend - bent)
        change = share * change + (1.0 - share) * along
        H += np.outer(change, change) / float(step @ change) - np.outer(along, along) / bend
    R = np.linalg.cholesky(H + damping * np.eye(g.size)).T
    # nonnegative least squares: of half the squared length of R (x - d) + R'^-1 g
    d = nnls(R, R @ (size * here.d) - solve_triangular(R, g / size, trans="T"), maxiter=30 * g.size)[0]
    step = d - size * here.d
    promise = -float((g / size) @ step) - 0.5 * float(step @ H @ step)
    return (d / size if d.any() else 1e-8 * here.d), promise
