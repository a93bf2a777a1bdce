"""A convex quadratic under cuts on a set with curved boundaries, minimised from the inside.

Steps in which slacks and multipliers are numbers of their own take about ten factorisations.  Groups that vanish sit at
the tip of a cone, where such steps may go astray or end in rounding.  A barrier alone, with its own Hessian, does not:
its minimiser is followed inwards instead, which takes five times as many.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs

Array = NDArray[np.float64]

__all__ = ["Boundary", "minimise_on_set"]

#: factors by which the barrier's strength falls: the boldest, and the one after which to give up
FALL, SLOWEST = 0.03, 0.8
#: decrement that counts as the minimiser of a barrier, and Newton's steps to it
CENTRED, MOST_STEPS = 0.1, 40
#: steps with prices after which these have gone astray, steps in a row that leave most of the error after which they
#: have too, that share of it, and how far slopes and slacks may be from their balance
MOST_PAIRS, MOST_SLOW, SLOW, UNBALANCED = 60, 4, 0.8, 1e-8


class Boundary(NamedTuple):
    """Convex functions that are <= 0 on a set, at one point.

    ``values`` has shape (k,), ``slopes`` (k, w); ``bend(multipliers)`` is the Hessian of ``multipliers'values``.
    """

    values: Array
    slopes: Array
    bend: Callable[[Array], Array]


def minimise_on_set(
    P: Array,
    c: Array,
    rows: Array,
    gains: Array,
    boundary: Callable[[Array], Boundary],
    start: Array,
    tol: float = 1e-11,
) -> tuple[Array, Array, Array]:
    """Minimise ``x'Px/2 + c'x + max_k (gains_k + rows_k'x)`` over ``x >= 0, boundary(x).values <= 0``.

    Numbers should be of the order of one.  ``start`` is strictly inside: its entries are positive, the values negative.

    Returns
    -------
    x : array of shape (w,)
    bounds, cuts : arrays of shape (w,) and (k,)
        Multipliers of ``x >= 0`` and of the rows.
    """
    task = _Task(P, c, rows, gains, boundary)
    place = _Place(task, np.append(start, float(np.max(gains + rows @ start)) + 1.0))
    w = start.size
    pair = _primal_dual(place, tol)
    if pair is not None:
        return pair.place.v[:w], pair.prices[:w], pair.prices[w : w + gains.size]
    strength, fall = 1.0, FALL
    kept: _Place | None = None
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
        place = _predicted(kept, step + (strength - reached) * tangent, strength / reached)
    kept = place if kept is None else kept
    multipliers = reached / kept.slack
    return kept.v[:w], multipliers[:w], multipliers[w : w + gains.size]


class _Task(NamedTuple):
    P: Array
    c: Array
    rows: Array
    gains: Array
    boundary: Callable[[Array], Boundary]


class _Place:
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

    def residual(self, prices: Array) -> Array:
        """Gradient of the objective and of the slacks at their prices: zero at the solution."""
        task, x = self.task, self.v[:-1]
        w, k = x.size, task.gains.size
        bounds, cuts, curved = prices[:w], prices[w : w + k], prices[w + k :]
        inner = task.P @ x + task.c - bounds + task.rows.T @ cuts + self.curved.slopes.T @ curved
        return np.append(inner, 1.0 - float(np.sum(cuts)))

    def system(self, prices: Array, slack: Array) -> tuple[Array, Array]:
        """Slopes of what must not be positive, and the matrix of a step with prices."""
        task, w = self.task, self.v.size - 1
        k = task.gains.size
        jacobian = np.zeros((slack.size, w + 1))
        jacobian[np.arange(w), np.arange(w)] = -1.0
        jacobian[w : w + k, :w], jacobian[w : w + k, w] = task.rows, -1.0
        jacobian[w + k :, :w] = self.curved.slopes
        weighted = jacobian[w:] * np.sqrt(prices[w:] / slack[w:])[:, None]
        system = weighted.T @ weighted
        system[:w, :w] += task.P + self.curved.bend(prices[w + k :])
        system[np.arange(w), np.arange(w)] += prices[:w] / slack[:w]
        return jacobian, system

    def derivatives(self) -> tuple[Array, Array, Array, Array]:
        """Gradients of the objective and of the barrier, and their Hessians."""
        task, x = self.task, self.v[:-1]
        w, k = x.size, task.gains.size
        inverse = 1.0 / self.slack
        bounds, cuts, curved = inverse[:w], inverse[w : w + k], inverse[w + k :]
        objective = np.append(task.P @ x + task.c, 1.0)
        barrier = np.append(
            -bounds + task.rows.T @ cuts + self.curved.slopes.T @ curved, -float(np.sum(cuts))
        )
        flat, bend = np.zeros((w + 1, w + 1)), np.zeros((w + 1, w + 1))
        flat[:w, :w] = task.P
        scaled = self.curved.slopes * curved[:, None]
        weighted = task.rows * cuts[:, None]
        bend[:w, :w] = self.curved.bend(curved) + scaled.T @ scaled + weighted.T @ weighted
        bend[np.arange(w), np.arange(w)] += bounds**2
        bend[:w, w] = bend[w, :w] = -weighted.T @ cuts
        bend[w, w] = float(cuts @ cuts)
        return objective, barrier, flat, bend


def _primal_dual(place: _Place, tol: float) -> _Pair | None:
    """Steps in which slacks and prices are numbers of their own: far fewer than a barrier's, or None."""
    here, slow = _Pair(place, place.slack, 1.0 / place.slack), 0
    for _ in range(MOST_PAIRS):
        if here.gap <= tol and here.unbalanced <= UNBALANCED:
            return here
        there = here.following(tol)
        if there is None:
            break
        slow = slow + 1 if there.merit > SLOW * here.merit else 0
        if slow == MOST_SLOW:
            break
        here = there
    return None


class _Pair:
    """A place with slacks and prices beside it: at the solution the slacks are those of the place."""

    def __init__(self, place: _Place, slack: Array, prices: Array) -> None:
        self.place, self.slack, self.prices = place, slack, prices
        self.gap = float(prices @ slack)
        self.left, self.apart = place.residual(prices), slack - place.slack
        self.unbalanced = max(float(np.max(np.abs(self.left))), float(np.max(np.abs(self.apart))))
        self.merit = float(np.linalg.norm(self.left) + np.linalg.norm(self.apart)) + self.gap

    def following(self, tol: float) -> _Pair | None:
        """Mehrotra's two steps from one factorisation: one tells how much can be had, the other goes there."""
        jacobian, system = self.place.system(self.prices, self.slack)
        factor = _factor(system)
        if factor is None:
            return None
        slack, prices, apart = self.slack, self.prices, self.apart
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
            trial = _Place(self.place.task, self.place.v + length * dv)
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


def _centre(place: _Place, strength: float) -> tuple[_Place, Array, Array] | None:
    """Newton's steps to the minimiser of objective / strength + barrier; None where they fail.

    Returns the place, the step that is left from there, and how the minimiser moves with the strength.
    """
    for _ in range(MOST_STEPS):
        objective, barrier, flat, bend = place.derivatives()
        gradient = objective / strength + barrier
        solved = _solve(flat / strength + bend, -np.stack([gradient, barrier / strength], axis=1))
        if solved is None:
            return None
        step, tangent = solved.T
        square = -float(gradient @ step)
        if not np.isfinite(square) or square < -1e-6:
            return None
        if square <= CENTRED**2:
            return place, step, tangent
        following = _searched(place, step, square, strength)
        if following is None:
            return (place, step, tangent) if square < 1.0 else None
        place = following
    return None


def _searched(place: _Place, step: Array, square: float, strength: float) -> _Place | None:
    length, here = 1.0, place.value(strength)
    for _ in range(60):
        trial = _Place(place.task, place.v + length * step)
        if trial.inside and trial.value(strength) <= here - 0.1 * length * square + 1e-12 * abs(here):
            return trial
        length *= 0.5
    return None


def _predicted(place: _Place, move: Array, share: float) -> _Place:
    """Where the minimiser is expected after ``move``, by which slacks may shrink to about a ``share``; or less far."""
    length = 1.0
    for _ in range(20):
        trial = _Place(place.task, place.v + length * move)
        if trial.inside and np.all(trial.slack > 0.1 * share * place.slack):
            return trial
        length *= 0.7
    return place


def _factor(system: Array) -> tuple[Array, Array] | None:
    """Cholesky in units in which the diagonal is one: near the solution it spans many powers of ten."""
    unit = 1.0 / np.sqrt(np.maximum(np.diagonal(system), 1e-300))
    scaled = system * np.multiply.outer(unit, unit)
    scaled.flat[:: unit.size + 1] += 1e-14
    # LAPACK itself: what SciPy's functions check on the way takes longer than so small a matrix
    lower, failed = dpotrf(scaled.T, lower=1, clean=0, overwrite_a=1)
    return (lower, unit) if failed == 0 else None


def _solved(factor: tuple[Array, Array], right: Array) -> Array:
    lower, unit = factor
    units = unit if right.ndim == 1 else unit[:, None]
    return np.asarray(units * dpotrs(lower, units * right, lower=1)[0])


def _solve(system: Array, right: Array) -> Array | None:
    factor = _factor(system)
    return None if factor is None else _solved(factor, right)
