"""Small convex programs: dense quadratic ones, quadratics under cuts with curved boundaries, cuts over subsets."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs

from .._typing import Array


def solve_qp(
    P: Array, q: Array, G: Array, h: Array, A: Array, b: Array, tol: float = 1e-10, max_iter: int = 60
) -> tuple[Array, Array]:
    """Minimise ``x'Px/2 + q'x`` subject to ``G x <= h``, ``A x = b``; return x and the multipliers of ``G x <= h``."""
    # Mehrotra's predictor and corrector with one factorisation per iteration; multipliers start at one: the objective
    # is put in units in which that is a fair guess
    unit = float(np.max(np.abs(q), initial=0.0)) or 1.0
    P, q = P / unit, q / unit
    x = np.asarray(np.linalg.lstsq(A, b, rcond=None)[0], dtype=float)
    y = np.zeros(b.size)
    slack, z = np.maximum(h - G @ x, 1.0), np.ones(h.size)
    scale = 1.0 + max(float(np.max(np.abs(q), initial=0.0)), float(np.max(np.abs(h), initial=0.0)))
    best, best_error, idle = (x, z), np.inf, 0
    for _ in range(max_iter):
        stationarity = P @ x + q + G.T @ z + A.T @ y
        primal, equality = G @ x + slack - h, A @ x - b
        mu = float(slack @ z) / h.size
        residuals = (stationarity, primal, equality)
        error = max(*(float(np.max(np.abs(residual))) for residual in residuals if residual.size), mu)
        if not np.isfinite(error):
            break
        if error < 0.9 * best_error:
            best, best_error, idle = (x, z), error, 0
        else:
            idle += 1
        rounding = idle >= 3 and best_error <= 1e-6 * scale  # has taken over
        if error <= tol * scale or rounding:
            break
        ratio = z / slack
        factor = _factor(P + (G.T * ratio) @ G, 1e-13)
        if factor is None:
            break
        lifted = _solved(factor, A.T)
        small = A @ lifted
        complementarity = slack * z
        for correcting in (False, True):
            rhs = -stationarity - G.T @ (ratio * primal - complementarity / slack)
            first = _solved(factor, rhs)
            left = A @ first + equality
            dy = left / small[0] if left.size == 1 else np.linalg.solve(small, left)
            dx = first - lifted @ dy
            ds = -primal - G @ dx
            dz = -complementarity / slack - ratio * ds
            # the longest step, at most 1/0.995, that keeps slacks and multipliers non-negative
            length = 1.0 / max(float(np.max(-ds / slack)), float(np.max(-dz / z)), 0.995)
            if not correcting:
                predicted = float((slack + length * ds) @ (z + length * dz)) / z.size
                complementarity = slack * z + ds * dz - (predicted / mu) ** 3 * mu
        length = min(0.995 * length, 1.0)
        x, y, slack, z = x + length * dx, y + length * dy, slack + length * ds, z + length * dz
    return best[0], unit * best[1]


# A convex quadratic under cuts on a set with curved boundaries, minimised from the inside.
#
# Steps in which slacks and multipliers are numbers of their own take about ten factorisations.  Groups that vanish sit
# at the tip of a cone, where such steps may go astray or end in rounding.  A barrier alone, with its own Hessian, does
# not: its minimiser is followed inwards instead, which takes five times as many.

#: factors by which the barrier's strength falls: the boldest, and the one after which to give up
FALL, SLOWEST = 0.03, 0.8
#: decrement that counts as the minimiser of a barrier, and Newton's steps to it
CENTRED, MOST_STEPS = 0.1, 40
#: steps with prices after which these have gone astray, steps in a row that leave most of the error after which they
#: have too, that share of it, and how far slopes and slacks may be from their balance
MOST_PAIRS, MOST_SLOW, SLOW, UNBALANCED = 60, 4, 0.8, 1e-8


class Boundary(NamedTuple):
    """Convex functions that are <= 0 on a set, at one point."""

    values: Array  # ``(k,)``
    slopes: Array  # ``(k, w)``
    bend: Callable[[Array], Array]  # of multipliers: the Hessian of ``multipliers'values``


def minimise_on_set(
    P: Array, c: Array, rows: Array, gains: Array, boundary: Callable[[Array], Boundary], start: Array
) -> tuple[Array, Array, Array]:
    """Minimise ``x'Px/2 + c'x + max_k (gains_k + rows_k'x)`` over ``x >= 0, boundary(x).values <= 0``.

    Numbers should be of the order of one.  ``start`` is strictly inside: its entries are positive, the values negative.
    Returns x and the multipliers of ``x >= 0`` and of the rows.
    """
    task, tol = _Task(P, c, rows, gains, boundary), 1e-11
    place = _BarrierPoint(task, np.append(start, float(np.max(gains + rows @ start)) + 1.0))
    w = start.size
    # steps in which slacks and prices are numbers of their own: far fewer than a barrier's, where they go well
    here, slow = _Pair(place, place.slack, 1.0 / place.slack), 0
    for _ in range(MOST_PAIRS):
        if here.gap <= tol and here.unbalanced <= UNBALANCED:
            return here.place.v[:w], here.prices[:w], here.prices[w : w + gains.size]
        there = here.following(tol)
        if there is None:
            break
        slow = slow + 1 if there.merit > SLOW * here.merit else 0
        if slow == MOST_SLOW:
            break
        here = there
    strength, fall = 1.0, FALL
    kept: _BarrierPoint | None = None
    reached = strength
    while reached * place.slack.size > tol:
        centred = _centre(place, strength)
        if centred is not None:
            (kept, step, tangent), reached = centred, strength
            fall = max(FALL, fall**1.5)
        elif kept is None or fall > SLOWEST:  # rounding has taken over
            break
        else:
            fall = fall**0.5
        strength = max(fall * reached, 0.9 * tol / place.slack.size)
        # where the minimiser is expected, or less far: slacks may shrink to about the share of the strength
        place, move, length = kept, step + (strength - reached) * tangent, 1.0
        for _ in range(20):
            trial = _BarrierPoint(task, kept.v + length * move)
            if trial.inside and np.all(trial.slack > 0.1 * (strength / reached) * kept.slack):
                place = trial
                break
            length *= 0.7
    kept = place if kept is None else kept
    multipliers = reached / kept.slack
    return kept.v[:w], multipliers[:w], multipliers[w : w + gains.size]


class _Task(NamedTuple):
    P: Array
    c: Array
    rows: Array
    gains: Array
    boundary: Callable[[Array], Boundary]


class _BarrierPoint:
    """A point ``v = (x, height of the cuts)`` with its slacks: of the bounds, the cuts and the curved boundaries."""

    def __init__(self, task: _Task, v: Array) -> None:
        self.task, self.v = task, v
        x = v[:-1]
        self.positive = self.inside = bool(np.all(x > 0.0))
        if not self.positive:
            return
        self.curved = task.boundary(x)
        self.slack = np.concatenate([x, v[-1] - task.gains - task.rows @ x, -self.curved.values])
        self.inside = bool(np.all(self.slack > 0.0) and np.all(np.isfinite(self.slack)))

    def value(self, strength: float) -> float:
        x = self.v[:-1]
        charged = 0.5 * float(x @ self.task.P @ x) + float(self.task.c @ x) + float(self.v[-1])
        return charged / strength - float(np.sum(np.log(self.slack)))


class _Pair:
    """A place with slacks and prices beside it: at the solution the slacks are those of the place."""

    def __init__(self, place: _BarrierPoint, slack: Array, prices: Array) -> None:
        self.place, self.slack, self.prices = place, slack, prices
        self.gap = float(prices @ slack)
        # gradient of the objective and of the slacks at their prices: zero at the solution
        task, x = place.task, place.v[:-1]
        w, k = x.size, task.gains.size
        bounds, cuts, curved = prices[:w], prices[w : w + k], prices[w + k :]
        inner = task.P @ x + task.c - bounds + task.rows.T @ cuts + place.curved.slopes.T @ curved
        self.left, self.apart = np.append(inner, 1.0 - float(np.sum(cuts))), slack - place.slack
        self.unbalanced = max(float(np.max(np.abs(self.left))), float(np.max(np.abs(self.apart))))
        self.merit = float(np.linalg.norm(self.left) + np.linalg.norm(self.apart)) + self.gap

    def following(self, tol: float) -> _Pair | None:
        """Mehrotra's two steps from one factorisation: one tells how much can be had, the other goes there."""
        slack, prices, apart, task = self.slack, self.prices, self.apart, self.place.task
        w, k = self.place.v.size - 1, task.gains.size
        # slopes of what must not be positive, and the matrix of a step with prices
        jacobian = np.zeros((slack.size, w + 1))
        jacobian[np.arange(w), np.arange(w)] = -1.0
        jacobian[w : w + k, :w], jacobian[w : w + k, w] = task.rows, -1.0
        jacobian[w + k :, :w] = self.place.curved.slopes
        weighted = jacobian[w:] * np.sqrt(prices[w:] / slack[w:])[:, None]
        system = weighted.T @ weighted
        system[:w, :w] += task.P + self.place.curved.bend(prices[w + k :])
        system[np.arange(w), np.arange(w)] += prices[:w] / slack[:w]
        factor = _factor(system, 1e-14)
        if factor is None:
            return None
        fixed = self.left + jacobian.T @ (prices / slack * apart - prices)

        def step(aimed: Array) -> tuple[Array, Array, Array]:
            """Where slacks times prices are to become ``aimed``."""
            right = -(fixed + jacobian.T @ (aimed / slack))
            dv = _solved(factor, right)
            dv += _solved(factor, right - system @ dv)
            ds = -apart - jacobian @ dv
            return dv, ds, (aimed - prices * ds) / slack - prices

        _, ds, dp = step(np.zeros_like(prices))
        length = min(_room(slack, ds), _room(prices, dp))
        share = float((slack + length * ds) @ (prices + length * dp)) / self.gap
        dv, ds, dp = step(max(share**3 * self.gap, 0.1 * tol) / prices.size - ds * dp)
        length = 0.99 * min(_room(slack, ds), _room(prices, dp))
        for _ in range(12):
            trial = _BarrierPoint(task, self.place.v + length * dv)
            if trial.positive:
                there = _Pair(trial, slack + length * ds, prices + length * dp)
                if there.merit <= (1.0 - 0.01 * length) * self.merit:
                    return there
            length *= 0.6
        return None


def _room(values: Array, change: Array) -> float:
    """How far positive values can move before one vanishes, at most all the way."""
    falling = change < 0.0
    return min(1.0, float(np.min(values[falling] / -change[falling], initial=1.0)))


def _centre(place: _BarrierPoint, strength: float) -> tuple[_BarrierPoint, Array, Array] | None:
    """Minimiser of objective / strength + barrier, the step left there, its move with the strength; None: failed."""
    for _ in range(MOST_STEPS):
        task, x, slopes = place.task, place.v[:-1], place.curved.slopes
        w, k = x.size, task.gains.size
        inverse = 1.0 / place.slack
        bounds, cuts, curved = inverse[:w], inverse[w : w + k], inverse[w + k :]
        barrier = np.append(-bounds + task.rows.T @ cuts + slopes.T @ curved, -float(np.sum(cuts)))
        gradient = np.append(task.P @ x + task.c, 1.0) / strength + barrier
        flat, bend = np.zeros((w + 1, w + 1)), np.zeros((w + 1, w + 1))
        flat[:w, :w] = task.P
        scaled, weighted = slopes * curved[:, None], task.rows * cuts[:, None]
        bend[:w, :w] = place.curved.bend(curved) + scaled.T @ scaled + weighted.T @ weighted
        bend[np.arange(w), np.arange(w)] += bounds**2
        bend[:w, w] = bend[w, :w] = -weighted.T @ cuts
        bend[w, w] = float(cuts @ cuts)
        factor = _factor(flat / strength + bend, 1e-14)
        if factor is None:
            return None
        step, tangent = _solved(factor, -np.stack([gradient, barrier / strength], axis=1)).T
        square = -float(gradient @ step)
        if not np.isfinite(square) or square < -1e-6:
            return None
        if square <= CENTRED**2:
            return place, step, tangent
        length, here = 1.0, place.value(strength)
        for _ in range(60):
            trial = _BarrierPoint(task, place.v + length * step)
            if trial.inside and trial.value(strength) <= here - 0.1 * length * square + 1e-12 * abs(here):
                break
            length *= 0.5
        else:
            return (place, step, tangent) if square < 1.0 else None
        place = trial
    return None


def _factor(system: Array, lift: float) -> tuple[Array, Array] | None:
    """Cholesky in units in which the diagonal is one and ``lift``: near the solution it spans twenty powers of ten."""
    unit = 1.0 / np.sqrt(np.maximum(np.diagonal(system), 1e-300))
    scaled = system * np.multiply.outer(unit, unit)
    scaled.flat[:: unit.size + 1] += lift
    # LAPACK itself: what SciPy's functions check on the way takes longer than so small a matrix
    lower, failed = dpotrf(scaled.T, lower=1, clean=0, overwrite_a=1)
    return (lower, unit) if failed == 0 else None


def _solved(factor: tuple[Array, Array], right: Array) -> Array:
    lower, unit = factor
    units = unit if right.ndim == 1 else unit[:, None]
    return np.asarray(units * dpotrs(lower, units * right, lower=1)[0])


# The lowest point of a model made of cuts over subsets: by trying all of few, else a mixed-integer program (HiGHS).

#: relative error of a constraint that HiGHS lets pass, by which the bound is lowered
SLACK = 1e-6
#: subsets that are tried one by one, at most: that is exact, where the program's constraints have the slack
FEW_SUBSETS = 50_000


class SubsetBound(NamedTuple):
    """A lower bound of the program, and where it is attained."""

    bound: float
    chosen: Array | None  # shares in [0, 1], whole where asked; None where the time was over before


def lowest_subset(
    gains: Array, slopes: Array, k: int, whole: bool = True, gap: float = 1e-6, seconds: float = np.inf
) -> SubsetBound:
    """Minimise ``max_i gains_i - slopes_i'z`` over ``0 <= z <= 1, sum z <= k``, z whole or not; slopes >= 0.

    The program is left at the relative ``gap`` or after so many ``seconds``; the bound is valid at any.
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
