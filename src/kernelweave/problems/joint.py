"""The inner problem of a multiclass loss: one kernel matrix, coefficients ``(n, k)`` tied together row by row.

    maximise  sum_i beta_i,own - tr(beta' K beta) / 2    beta_i <= c_i e_own and sum_y beta_iy = 0 for every row,
                                                         with an intercept sum_i beta_iy = 0 for every class as well

Row-wise exact ascent (``_numerics.row_ascent``) comes first: it finds out which classes each row is torn between.  What
it leaves is Newton's method on those free coordinates, made globally convergent by a proximal term: around the last
coefficients the smoothed primal problem

    min over U, b   tr(U' K U) / 2 - min over beta of sum_i [beta_i's_i + hold_i/2 |beta_i - centre_i|^2],
                    s_i = (K U)_i + b + [y != own_i]

is piecewise quadratic and convex.  A Newton step, no longer than the objective falls, reaches its minimum after a few
factorisations of K on the free coordinates; there U is the response beta, the next centre.  ``hold`` shrinks as fast
as steps stay few; b has no such term, its steps are damped.  Where c is large, bounds grow to it in stages.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._numerics.deadline import out_of_time
from ..losses import own_class
from .certificate import Array
from .fixed import FixedSolution, Inner

__all__ = ["solve_joint"]

#: row epochs in one go, and at most; weight of the column sums over the mean diagonal during them
EPOCHS, MOST_EPOCHS, PENALTY = 5, 400, 0.2
#: attempts at the rows over which their progress is measured
LOOK = 3
#: free directions beyond which factorisations are out of the question, and rows have to do
TOO_MANY = 5000
#: Newton steps of a round, rounds, and rounds without progress, at most
STEPS, ROUNDS, IDLE = 60, 200, 12
#: first proximal term over the mean diagonal, how it shrinks and grows from round to round, and its least share
HOLD, SHRINK, GROW, LEAST = 1e-1, 0.1, 5.0, 1e-12
#: least first proximal term, relative to the one that changes the slopes of a loss by one
FELT = 1e-2
#: times the largest coefficient that rows are expected to move at most in a round
REACH = 10.0
#: rows at least that tell what a kernel has in common
SOME = 50
#: damping of the intercepts over the sum of what all rows may reach
STAY = 1e-6
#: bounds times the mean diagonal up to which a problem is solved at once, the factor between stages, their precision
AT_ONCE, STAGE, STAGE_GAP = 100.0, 10.0, 3e-2

#: share of all coefficients that a round leaves undone at most
ENOUGH = 1e-6
#: relative gap that a start may leave, and beyond which another is tried
ASTRAY = 1e-2


def solve_joint(
    inner: Inner, target: float, start: FixedSolution | None, keep_product: bool
) -> FixedSolution:
    """Solve the inner problem; ``solve_fixed`` says what the arguments are."""
    rows, y = _Rows(inner), inner.y
    if start is not None:
        product = np.array(start.decision.T, dtype=float, order="C") if keep_product else None
        b = np.array(start.intercept, dtype=float) if np.ndim(start.intercept) else np.zeros(y.shape[1])
        rows.put(start.beta, product, b)
    best = rows.judge()
    if best.relative_gap <= target:
        return best
    if start is not None and np.any(start.beta):
        best = rows.improve(best, target)
        if best.relative_gap <= max(target, ASTRAY) or out_of_time():
            return best
        # large coefficients of another kernel led astray
        rows = _Rows(inner)
    rows.grow()
    other = rows.improve(rows.judge(), target)
    return other if other.relative_gap < best.relative_gap else best


class _Rows:
    """Coefficients, their product with K and the intercepts, on the way to the optimum."""

    def __init__(self, inner: Inner) -> None:
        K, y, c, fit_intercept = inner.K, inner.y, inner.c, inner.fit_intercept
        self.K, self.loss, self.y, self.c, self.fit_intercept = K, inner.loss, y, c, fit_intercept
        self.own = np.ascontiguousarray(own_class(y), dtype=np.int64)
        self.bound = np.ascontiguousarray(c[:, 0], dtype=float)
        self.size = _spread(K, fit_intercept)
        self.iterations = 0
        self.beta = np.zeros(y.shape)
        self.product = np.zeros(y.shape[::-1])
        self.b = np.zeros(y.shape[1])

    def put(self, beta: Array, product: Array | None, b: Array) -> None:
        """Begin at beta, moved into the dual set where it is not in it; ``product`` is that of beta as given."""
        self.beta = np.array(beta, dtype=float, order="C")
        if product is None:
            self._settle()
            self.product = self._times(self.beta)
        else:
            self.product = product
            self._settle()
        if self.fit_intercept:
            self.b = b

    def _settle(self) -> None:
        """Move beta into the dual set, exactly."""
        from .._numerics.row_sets import move_into_set

        move_into_set(self.K, self.own, self.bound, self.fit_intercept, self.beta, self.product)

    def _times(self, beta: Array) -> Array:
        """``(K beta)'``; where much of beta is zero, from the rest alone."""
        from .._numerics.row_sets import add_products

        if np.count_nonzero(beta) > 0.3 * beta.size:
            return np.ascontiguousarray(beta.T) @ self.K
        out = np.zeros(beta.shape[::-1])
        add_products(self.K, beta, out)
        return out

    def judge(self) -> FixedSolution:
        """Bounds at beta, which is in the dual set; the intercepts become the best ones."""
        from .._numerics.row_sets import bounds_at

        primal, dual = bounds_at(self.own, self.bound, self.fit_intercept, self.beta, self.product, self.b)
        return self._solution(primal, dual)

    def _solution(self, primal: float, dual: float) -> FixedSolution:
        b: Any = self.b.copy() if self.fit_intercept else 0.0
        decision = np.ascontiguousarray(self.product.T)
        return FixedSolution(self.beta.copy(), decision, b, primal, dual, self.iterations)

    def grow(self) -> None:
        """Solve roughly under small bounds, and let them grow: rows at their bound follow it."""
        whole, high = self.c, float(np.max(self.bound))
        if not high * self.size > AT_ONCE:
            return
        cap = high / STAGE ** np.ceil(np.log(high * self.size) / np.log(STAGE))
        while cap < high and not out_of_time():
            old = self.bound
            self.c = np.minimum(whole, cap)
            self.bound = np.ascontiguousarray(self.c[:, 0])
            held = (self.beta[np.arange(old.size), self.own] >= old) & (old > 0) & (self.bound > old)
            self.beta[held] *= (self.bound[held] / old[held])[:, None]
            self._settle()
            self.product = self._times(self.beta)
            best = self.improve(self.judge(), STAGE_GAP)
            self._take(best)
            cap *= STAGE
        self.c, self.bound = whole, np.ascontiguousarray(whole[:, 0])

    def _take(self, solution: FixedSolution) -> None:
        self.beta, self.product = solution.beta.copy(), np.ascontiguousarray(solution.decision.T)
        if self.fit_intercept:
            self.b = np.array(solution.intercept, dtype=float)

    def improve(self, best: FixedSolution, target: float) -> FixedSolution:
        """Go on from the present point, with bounds ``best``, until the gap is reached or nothing more is gained."""
        if best.relative_gap > target:
            best = self.ascend(best, target)
        while best.relative_gap > target and self._free() > TOO_MANY and not out_of_time():
            before = best.relative_gap
            best = self.ascend(best, target)
            if best.relative_gap > 0.99 * before:
                return best
        if best.relative_gap > target:
            best = self.newton(best, target)
        return best

    def _free(self) -> int:
        from .._numerics.row_newton import free_directions

        return int(free_directions(self.beta, self.own, self.bound)[0].size)

    # ---- rows by themselves ----------------------------------------------------------------------------------

    def ascend(self, best: FixedSolution, target: float) -> FixedSolution:
        """Epochs over the rows, for as long as they pay."""
        from .._numerics.row_ascent import ascend_to

        rho = PENALTY * self.size if self.fit_intercept else 0.0
        if self.fit_intercept and not rho > 1e-100:
            return best
        left, done = MOST_EPOCHS // EPOCHS, False
        # between two looks at the clock no more than about a second
        attempts = int(np.clip(2e8 / self.own.size**2, LOOK + 1, left))
        primal, dual = best.primal, best.dual
        while left > 0 and not done and not out_of_time():
            primal, dual, moved, done = ascend_to(
                self.K, self.own, self.bound, self.fit_intercept, self.beta, self.product, self.b, rho, target,
                EPOCHS, attempts, LOOK,
            )  # fmt: skip
            left -= attempts
            self.iterations += moved
        return self._solution(primal, dual)

    # ---- rows together ---------------------------------------------------------------------------------------

    def newton(self, best: FixedSolution, target: float) -> FixedSolution:
        """Proximal rounds of Newton steps on the free coordinates."""
        self._take(best)
        # over the reach of a row, its bound or some times the largest coefficient so far, the term changes slopes of
        # the size of one by hold times the reach: heavy rows may have to go far, and light ones have to feel it
        reach = np.where(self.bound > 0, self.bound, np.max(self.bound))
        if np.any(self.beta):
            reach = np.minimum(reach, REACH * float(np.max(np.abs(self.beta))))
        whole = 1.0 / reach
        first = np.clip(HOLD * self.size, FELT * whole, whole)
        hold, least, idle = 1.0, LEAST, 0
        here = best
        for _ in range(ROUNDS):
            solution, steps = self._round(hold * first, STAY * float(np.sum(reach)), target, best)
            left, gained = solution.primal - solution.dual, solution.dual - here.dual
            idle = 0 if left < 0.7 * (best.primal - best.dual) or gained > 0.02 * left else idle + 1
            if solution.relative_gap < best.relative_gap:
                best = solution
            if best.relative_gap <= target or idle >= IDLE or out_of_time():
                break
            if solution.dual < here.dual - 1e-12 * abs(here.dual):  # the round was broken off: a shorter way
                self._take(here)
                hold *= GROW
                continue
            if solution.relative_gap > here.relative_gap and gained <= 1e-9 * abs(here.dual) and hold < 1.0:
                # responses are scores over the term, and so are their roundings: no smaller one is of use
                self._take(here)
                hold = least = hold / SHRINK
                continue
            here = solution
            factor = SHRINK if steps <= 8 else 0.3 if steps <= 15 else 1.0
            hold = max(factor * hold, least)
        return best

    def _round(
        self, holds: Array, stay: float, target: float, best: FixedSolution
    ) -> tuple[FixedSolution, int]:
        """Minimise the smoothed problem around the present point and move there; return it and the steps taken."""
        from .._numerics.row_newton import newton_round

        scale = max(abs(best.primal), abs(best.dual))
        # what coefficients are off by, the losses are off by times K and the bounds; the bounds of a poor start are far
        # too wide to measure by
        enough = min(
            1e-2 * target * scale / max(1.0, float(np.sum(self.bound)) * self.size),
            ENOUGH * float(np.sum(np.abs(self.beta))),
        )
        self.product, self.b = self.product.copy(), self.b.copy()
        self.beta, steps = newton_round(
            self.K,
            self.own,
            self.bound,
            self.beta,
            self.product,
            self.b,
            holds,
            stay,
            self.fit_intercept,
            STEPS,
            enough,
        )
        self.iterations += steps
        self._settle()
        return self.judge(), steps


def _spread(K: Array, fit_intercept: bool) -> float:
    """Mean diagonal; with an intercept that of the centred matrix, from some of the rows: a constant means nothing."""
    size = float(np.mean(np.diagonal(K)))
    if not fit_intercept:
        return size
    some = K[:: max(1, K.shape[0] // SOME)]
    return max(size - float(np.sum(some)) / some.size, 1e-12 * size)
