"""A convex quadratic under cuts on a set with one curved boundary, by a primal-dual interior point method."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

Array = NDArray[np.float64]
Constraint = Callable[[Array], tuple[float, Array, Array]]

__all__ = ["minimise_on_set"]

#: share of the complementarity that an iteration aims at, and of the way to the boundary that it goes
CENTRING, SHORT_OF = 0.1, 0.99


def minimise_on_set(
    P: Array,
    c: Array,
    rows: Array,
    gains: Array,
    constraint: Constraint,
    start: Array,
    tol: float = 1e-11,
    max_iter: int = 80,
) -> tuple[Array, Array, Array]:
    """Minimise ``x'Px/2 + c'x + max_k (gains_k + rows_k'x)`` over ``x >= 0, constraint(x) <= 0``.

    Numbers should be of the order of one.  ``constraint`` returns value, gradient and Hessian of a convex function at
    positive points; it is negative at ``start``, and every entry of that is positive.

    Returns
    -------
    x : array of shape (w,)
    bounds, cuts : arrays of shape (w,) and (k,)
        Multipliers of ``x >= 0`` and of the rows.
    """
    point = _Point(P, c, rows, gains, constraint, start)
    for _ in range(max_iter):
        if point.gap <= tol and point.residual(0.0)[0] <= tol:
            break
        following = point.step()
        if following is None:  # rounding has taken over
            break
        point = following
    return point.x, point.multipliers[: start.size], point.multipliers[start.size : -1]


class _Point:
    """Strictly inside, with positive multipliers: of the bounds, the cuts and the curved constraint, in this order."""

    def __init__(
        self, P: Array, c: Array, rows: Array, gains: Array, constraint: Constraint, x: Array,
        height: float | None = None, multipliers: Array | None = None,
    ) -> None:  # fmt: skip
        self.P, self.c, self.rows, self.gains, self.constraint = P, c, rows, gains, constraint
        self.x = x
        heights = gains + rows @ x
        self.height = float(np.max(heights)) + 1.0 if height is None else height
        value, self.slope, self.bend = constraint(x)
        self.slack = np.concatenate([x, self.height - heights, [-value]])
        self.multipliers = 0.1 / self.slack if multipliers is None else multipliers

    @property
    def inside(self) -> bool:
        return bool(np.all(self.slack > 0.0) and np.all(np.isfinite(self.slack)))

    @property
    def gap(self) -> float:
        return float(self.slack @ self.multipliers)

    def residual(self, aim: float) -> tuple[float, float]:
        """Sizes of what is left of stationarity, and of it together with complementarity at ``aim``."""
        w = self.x.size
        bounds, cuts, price = self.multipliers[:w], self.multipliers[w:-1], self.multipliers[-1]
        along = self.P @ self.x + self.c - bounds + self.rows.T @ cuts + price * self.slope
        up = 1.0 - float(np.sum(cuts))
        off = self.slack * self.multipliers - aim
        square = float(along @ along) + up**2
        return float(np.sqrt(square)), float(np.sqrt(square + off @ off))

    def step(self) -> _Point | None:
        """Newton's step towards a tenth of the complementarity; None where none makes the residual smaller."""
        aim = CENTRING * self.gap / self.slack.size
        moves = self._direction(aim)
        if moves is None:
            return None
        dx, rise, dm = moves
        falling = dm < 0
        length = min(1.0, SHORT_OF * float(np.min(-self.multipliers[falling] / dm[falling], initial=1e300)))
        before = self.residual(aim)[1]
        for _ in range(50):
            trial = self._moved(length, dx, rise, dm)
            if trial is not None and trial.residual(aim)[1] <= (1.0 - 0.01 * length) * before:
                return trial
            length *= 0.5 if trial is not None else 0.7
        return None

    def _moved(self, length: float, dx: Array, rise: float, dm: Array) -> _Point | None:
        x = self.x + length * dx
        if not np.all(x > 0.0):
            shrink = dx < 0
            length = min(length, SHORT_OF * float(np.min(-self.x[shrink] / dx[shrink])))
            x = self.x + length * dx
        trial = _Point(
            self.P, self.c, self.rows, self.gains, self.constraint, x,
            self.height + length * rise, self.multipliers + length * dm,
        )  # fmt: skip
        return trial if trial.inside else None

    def _direction(self, aim: float) -> tuple[Array, float, Array] | None:
        w = self.x.size
        ratio = self.multipliers / self.slack
        wanted = aim / self.slack  # what the multipliers would be on the central path
        cuts = ratio[w:-1]
        system = np.zeros((w + 1, w + 1))
        curved = self.multipliers[-1] * self.bend + ratio[-1] * np.outer(self.slope, self.slope)
        system[:w, :w] = self.P + curved + (self.rows.T * cuts) @ self.rows
        system[np.arange(w), np.arange(w)] += ratio[:w]
        system[:w, w] = system[w, :w] = -self.rows.T @ cuts
        system[w, w] = float(np.sum(cuts))
        right = np.empty(w + 1)
        along = self.P @ self.x + self.c - wanted[:w] + self.rows.T @ wanted[w:-1] + wanted[-1] * self.slope
        right[:w] = -along
        right[w] = float(np.sum(wanted[w:-1])) - 1.0
        solved = _solve(system, right)
        if solved is None:
            return None
        dx, rise = solved[:w], float(solved[w])
        into = np.concatenate([-dx, self.rows @ dx - rise, [self.slope @ dx]])
        return dx, rise, wanted - self.multipliers + ratio * into


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
