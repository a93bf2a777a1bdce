"""A convex quadratic under cuts on a set with curved boundaries: a barrier, and its minimiser followed inwards.

Groups that vanish sit at the tip of a cone.  There steps that let multipliers move with their constraints go astray;
the barrier alone, with its own Hessian, does not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

Array = NDArray[np.float64]

__all__ = ["Boundary", "minimise_on_set"]

#: factors by which the barrier's strength falls: the boldest, and the one after which to give up
FALL, SLOWEST = 0.03, 0.8
#: decrement that counts as the minimiser of a barrier, and Newton's steps to it
CENTRED, MOST_STEPS = 0.1, 40


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
    strength, fall = 1.0, FALL
    kept: _Place | None = None
    reached = strength
    while reached * place.slack.size > tol:
        centred = _centre(place, strength)
        if centred is not None:
            kept, reached = centred, strength
            fall = max(FALL, fall**1.5)
        elif kept is None or fall > SLOWEST:  # rounding has taken over
            break
        else:
            fall = fall**0.5
        strength = max(fall * reached, 0.9 * tol / place.slack.size)
        place = _predicted(kept, reached, strength)
    kept = place if kept is None else kept
    multipliers = reached / kept.slack
    w = start.size
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
        self.inside = bool(np.all(x > 0.0))
        if not self.inside:
            return
        self.curved = task.boundary(x)
        self.slack = np.concatenate([x, v[-1] - task.gains - task.rows @ x, -self.curved.values])
        self.inside = bool(np.all(self.slack > 0.0) and np.all(np.isfinite(self.slack)))

    def value(self, strength: float) -> float:
        x = self.v[:-1]
        charged = 0.5 * float(x @ self.task.P @ x) + float(self.task.c @ x) + float(self.v[-1])
        return charged / strength - float(np.sum(np.log(self.slack)))

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


def _centre(place: _Place, strength: float) -> _Place | None:
    """Newton's steps to the minimiser of objective / strength + barrier; None where they fail."""
    for _ in range(MOST_STEPS):
        objective, barrier, flat, bend = place.derivatives()
        gradient = objective / strength + barrier
        step = _solve(flat / strength + bend, -gradient)
        if step is None:
            return None
        square = -float(gradient @ step)
        if not np.isfinite(square) or square < -1e-6:
            return None
        if square <= CENTRED**2:
            return place
        following = _searched(place, step, square, strength)
        if following is None:
            return place if square < 1.0 else None
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


def _predicted(place: _Place, strength: float, following: float) -> _Place:
    """Where the minimiser moves as the barrier weakens, to first order; as much of it as stays inside."""
    _, barrier, flat, bend = place.derivatives()
    tangent = _solve(flat + strength * bend, -barrier)
    if tangent is None:
        return place
    move = (following - strength) * tangent
    length = 1.0
    for _ in range(20):
        trial = _Place(place.task, place.v + length * move)
        if trial.inside and np.all(trial.slack > 0.1 * (following / strength) * place.slack):
            return trial
        length *= 0.7
    return place


def _solve(system: Array, right: Array) -> Array | None:
    """Cholesky in units in which the diagonal is one: near the solution it spans many powers of ten."""
    unit = 1.0 / np.sqrt(np.maximum(np.diagonal(system), 1e-300))
    scaled = system * unit[:, None] * unit[None, :]
    scaled.flat[:: right.size + 1] += 1e-14
    try:
        factor = cho_factor(scaled, lower=True, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError:
        return None
    return np.asarray(unit * cho_solve(factor, unit * right, check_finite=False))
