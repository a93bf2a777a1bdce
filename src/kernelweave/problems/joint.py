"""Inner problems of several classes together: the multiclass hinge row by row, the multinomial loss by Newton's
method.

    maximise  sum_i beta_i,own - tr(beta' K beta) / 2    beta_i <= c_i e_own and sum_y beta_iy = 0 for every row,
                                                         with an intercept sum_i beta_iy = 0 for every class as well

Row-wise exact ascent (``_numerics.rows``) comes first: it finds the classes that matter to each row.  What it leaves
is Newton's method on those free coordinates, made globally convergent by a proximal term: around the last
coefficients the smoothed primal problem

    min over U, b   tr(U' K U) / 2 - min over beta of sum_i [beta_i's_i + hold_i/2 |beta_i - centre_i|^2],
                    s_i = (K U)_i + b + [y != own_i]

is piecewise quadratic and convex.  A Newton step, no longer than the objective falls, reaches its minimum after a few
factorisations of K on the free coordinates; there U is the response beta, the next centre.  ``hold`` shrinks as fast
as steps stay few; b has no such term, its steps are damped.  Where c is large, bounds grow to it in stages.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from .._numerics.by_class import ClassFactors, factor_flops
from .._numerics.intercepts import probabilities
from .._numerics.stopping import out_of_time
from .._typing import Array
from ..losses import own_class
from .certificate import TINY
from .fixed import FixedSolution, Inner
from .newton import descend

#: row epochs in one go, and at most; weight of the column sums over the mean diagonal during them
EPOCHS, MOST_EPOCHS, PENALTY = 5, 400, 0.2
#: attempts at the rows over which their progress is measured
MEASURED = 3
#: operations beyond which a factorisation is out of the question, and rows have to do
MOST_FLOPS = 3e11
#: operations that could have been done while the calls for one class are made
OF_A_CLASS = 2e5
#: Newton steps of a round, rounds, and rounds without progress, at most
STEPS, ROUNDS, IDLE = 60, 200, 12
#: steps in a row after which what is left, a share of all coefficients no larger than that, is rounding
STUCK, ROUNDING = 2, 1e-9
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
#: relative gap up to which a start was useful, and beyond which another is tried
USEFUL = 1e-2


def solve_joint(
    inner: Inner, target: float, start: FixedSolution | None, keep_product: bool
) -> FixedSolution:
    """Solve the inner problem; ``solve_fixed`` says what the arguments are."""
    rows = _Rows(inner)
    if start is not None:
        # moved into the dual set where it is not in it; a product that is known is that of the coefficients as given
        rows.beta = np.array(start.beta, dtype=float, order="C")
        if keep_product:
            rows.product = np.array(start.decision.T, dtype=float, order="C")
        rows.settle(keep_product)
        if inner.fit_intercept and np.ndim(start.intercept):
            rows.b = np.array(start.intercept, dtype=float)
    best = rows.solution()
    if best.relative_gap <= target:
        return best
    if start is not None and np.any(start.beta):
        best = rows.improve(best, target)
        if best.relative_gap <= max(target, USEFUL) or out_of_time():
            return best
        # large coefficients of another kernel were a bad start
        rows = _Rows(inner)
    rows.grow()
    other = rows.improve(rows.solution(), target)
    return other if other.relative_gap < best.relative_gap else best


class _Rows:
    """Coefficients, their product with K and the intercepts, on the way to the optimum."""

    def __init__(self, inner: Inner) -> None:
        K, y, c, fit_intercept = inner.K, inner.y, inner.c, inner.fit_intercept
        self.K, self.fit_intercept = K, fit_intercept
        self.own = np.ascontiguousarray(own_class(y), dtype=np.int64)
        self.bound = np.ascontiguousarray(c[:, 0], dtype=float)
        #: mean diagonal; with an intercept that of the centred matrix, from some of the rows: a constant means nothing
        self.size = float(np.mean(np.diagonal(K)))
        if fit_intercept:
            some = K[:: max(1, K.shape[0] // SOME)]
            self.size = max(self.size - float(np.sum(some)) / some.size, 1e-12 * self.size)
        self.iterations = 0
        self.beta = np.zeros(y.shape)
        self.product = np.zeros(y.shape[::-1])
        self.b = np.zeros(y.shape[1])

    def settle(self, known: bool = True) -> None:
        """Move beta into the dual set, exactly; its product with K follows where it is ``known``, or is computed."""
        from .._numerics.rows import add_products, move_into_set

        move_into_set(self.K, self.own, self.bound, self.fit_intercept, self.beta, self.product)
        if known:
            return
        if np.count_nonzero(self.beta) > 0.3 * self.beta.size:
            self.product = np.ascontiguousarray(self.beta.T) @ self.K
        else:  # where much of beta is zero, from the rest alone
            self.product = np.zeros(self.beta.shape[::-1])
            add_products(self.K, self.beta, self.product)

    def solution(self, bounds: tuple[float, float] | None = None) -> FixedSolution:
        """Return beta, which is in the dual set, with its bounds; computed ones take the best intercepts."""
        from .._numerics.rows import bounds_at

        primal, dual = bounds or bounds_at(
            self.own, self.bound, self.fit_intercept, self.beta, self.product, self.b
        )
        b: Any = self.b.copy() if self.fit_intercept else 0.0
        decision = np.ascontiguousarray(self.product.T)
        return FixedSolution(self.beta.copy(), decision, b, primal, dual, self.iterations)

    def grow(self) -> None:
        """Solve roughly under small bounds, and let them grow: rows at their bound follow it."""
        whole, high = self.bound, float(np.max(self.bound))
        if not high * self.size > AT_ONCE:
            return
        cap = high / STAGE ** np.ceil(np.log(high * self.size) / np.log(STAGE))
        while cap < high and not out_of_time():
            old = self.bound
            self.bound = np.minimum(whole, cap)
            held = (self.beta[np.arange(old.size), self.own] >= old) & (old > 0) & (self.bound > old)
            self.beta[held] *= (self.bound[held] / old[held])[:, None]
            self.settle(known=False)
            self._take(self.improve(self.solution(), STAGE_GAP))
            cap *= STAGE
        self.bound = whole

    def _take(self, solution: FixedSolution) -> None:
        self.beta, self.product = solution.beta.copy(), np.ascontiguousarray(solution.decision.T)
        if self.fit_intercept:
            self.b = np.array(solution.intercept, dtype=float)

    @property
    def loose(self) -> np.ndarray:
        """Entries below their bounds: the weight of the row for its own class, zero for others."""
        upper = np.zeros(self.beta.shape)
        upper[np.arange(self.own.size), self.own] = self.bound
        return np.asarray(self.beta < upper)

    def newton_work(self) -> float:
        """Return the operations in which a round of Newton steps is expected to leave 1/e of the gap."""
        from .._numerics.rows import count_loose

        n, sizes = self.own.size, np.empty(self.b.size)
        rows = count_loose(self.beta, self.own, self.bound, sizes)
        of_classes = float(np.sum(((6.0 * sizes + 100.0) * sizes + 20.0 * n) * sizes))
        return of_classes + (2.0 * rows + 100.0) * rows * rows + 500.0 * n + OF_A_CLASS * sizes.size

    def improve(self, best: FixedSolution, target: float) -> FixedSolution:
        """Go on from the present point, with bounds ``best``, until the gap is reached or nothing more is gained."""
        if best.relative_gap > target:
            best = self.ascend(best, target)
        while best.relative_gap > target and factor_flops(self.loose) > MOST_FLOPS and not out_of_time():
            before = best.relative_gap
            best = self.ascend(best, target)
            if best.relative_gap > 0.99 * before:
                return best
        if best.relative_gap > target:
            best = self.newton(best, target)
        return best

    def ascend(self, best: FixedSolution, target: float) -> FixedSolution:
        """Run epochs over the rows until the gap is reached or Newton's method is expected to be quicker.

        After every few epochs the multipliers move by the column sums, and a copy of the rows that is moved into the
        dual set is evaluated with the best intercepts for it; the best of these is kept.
        """
        from .._numerics.rows import ascend, bounds_at, move_into_set

        rho = PENALTY * self.size if self.fit_intercept else 0.0
        if self.fit_intercept and not rho > 1e-100:
            return best
        n, (primal, dual) = self.own.size, (best.primal, best.dual)
        rows, scores, multipliers = self.beta.copy(), self.product.copy(), self.b.copy()
        gaps, work, window = [best.relative_gap], 0.0, MEASURED
        for attempt in range(MOST_EPOCHS // EPOCHS):
            goal = 0.3 * target * max(abs(primal), abs(dual))
            moved = ascend(
                self.K, self.own, self.bound, rows, scores, multipliers, rho, goal, EPOCHS, attempt
            )
            self.iterations += moved
            if self.fit_intercept:
                multipliers += rho * np.sum(rows, axis=0)
            inside, its_scores, its_b = rows.copy(), scores.copy(), multipliers.copy()
            move_into_set(self.K, self.own, self.bound, self.fit_intercept, inside, its_scores)
            upper, lower = bounds_at(self.own, self.bound, self.fit_intercept, inside, its_scores, its_b)
            gap = (upper - lower) / max(abs(upper), abs(lower), TINY)
            if gap < gaps[-1]:
                self.beta, self.product, self.b = inside, its_scores, its_b
                primal, dual = upper, lower
            gaps.append(min(gap, gaps[-1]))
            if gaps[-1] <= target or moved == 0 or out_of_time():
                break
            work += 6.0 * moved * n
            if attempt + 1 < window:
                continue
            # progress is not even: what counts are as many attempts as cost half of what Newton's method would
            other, each = self.newton_work(), work / (attempt + 1)
            window = max(MEASURED, int(0.5 * other / each) + 1)
            if attempt + 1 >= window and np.log(gaps[-1 - window] / gaps[-1]) * other < each * window:
                break
        return self.solution((primal, dual))

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
            # what coefficients are off by, the losses are off by times K and the bounds; the bounds of a poor start are
            # far too wide to measure by
            enough = min(
                1e-2 * target * max(abs(best.primal), abs(best.dual))
                / max(1.0, float(np.sum(self.bound)) * self.size),
                ENOUGH * float(np.sum(np.abs(self.beta))),
            )  # fmt: skip
            # the minimum of the smoothed problem around the present point
            self.product, self.b = self.product.copy(), self.b.copy()
            steps = self.newton_round(hold * first, STAY * float(np.sum(reach)), enough)
            self.iterations += steps
            self.settle()
            solution = self.solution()
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

    def newton_round(self, hold: Array, stay: float, enough: float) -> int:
        """Minimise the smoothed problem around beta by Newton's method; beta becomes the responses at its minimum.

        ``hold`` are the rows' proximal terms, ``stay`` damps the intercepts, and ``enough`` is the sum of what may be
        left of rows and columns.  Return the steps taken, which are ``STEPS`` where they did not converge: until then
        the responses are rows of the dual set whose columns do not sum to zero.
        """
        from .._numerics.rows import add_products, respond, step_length

        K, own, c, centre, product = self.K, self.own, self.bound, self.beta, self.product
        U, off = centre.copy(), np.zeros(self.b.size)
        self.beta = np.zeros(centre.shape)
        steps, stuck, least = 0, 0, np.inf
        while True:
            respond(product, own, c, self.b, centre, hold, self.beta)
            rest, size = U - self.beta, float(np.sum(np.abs(self.beta)))
            if self.fit_intercept:
                off = -np.sum(self.beta, axis=0)
            left = float(np.sum(np.abs(rest)) + np.sum(np.abs(off)))
            stuck = 0 if left <= 0.5 * least else stuck + 1
            least = min(least, left)
            if left <= max(enough, 1e-13 * size) or steps == STEPS or out_of_time():
                break
            if stuck >= STUCK and left <= ROUNDING * size:
                break
            # loose entries z move so that (K + hold) z + b = K rest there, the others become what they respond
            factors = ClassFactors(K, self.loose, hold, stay, self.fit_intercept)
            pull = np.zeros(product.shape)
            add_products(K, rest, pull)
            moves, shift = factors.step(factors.gather(pull.T), off)
            moves -= rest
            change = np.zeros(product.shape)
            add_products(K, moves, change)
            alpha = step_length(product, change, own, c, self.b, shift, centre, hold, U, moves)
            if alpha == 0.0:
                steps = STEPS
                break
            steps += 1
            U += alpha * moves
            product += alpha * change
            self.b += alpha * shift
        add_products(K, self.beta - U, product)
        return steps


#: conjugate gradient steps at most, and unknowns up to which none are taken
MOST, DIRECT = 1000, 400
#: bounds times the mean diagonal up to which a problem is solved at once, the factor between stages, the smallest one
#: that is tried, and their precision
SOFTMAX_AT_ONCE, SOFTMAX_STAGE, SMALLEST_STAGE, ROUGH = 10.0, 10.0, 1.05, 0.1


class SoftmaxSystem:
    """``I + R'K R`` at probabilities p, on ``sum_i (R z)_i = 0`` where there is an intercept.

    Of the multinomial loss, ``min over B, b  tr(B'K B) / 2 + sum_i c_i [log sum_y exp f_iy - f_i,own]`` with
    ``f = K B + b``, has the curvature ``W_i = c_i (diag(p_i) - p_i p_i') = R_i R_i'``,
    ``R_i = sqrt(c_i) (diag(sqrt p_i) - p_i sqrt(p_i)')``.  A Newton step is ``dB = -(B + g) + R z``, g the gradient of
    the loss in f, with

        (I + R'K R) z = R'K (B + g),

    n k unknowns, positive definite with eigenvalues from 1 on.  It is solved by conjugate gradients on the subspace,
    directly where it is small; the preconditioner is ``I + S K S`` for every class alike, ``s_i^2`` the mean eigenvalue
    of W_i, a single Cholesky factor.  The same system gives the second derivatives of J in the kernel weights.
    """

    def __init__(self, K: Array, p: Array, c: Array, fit_intercept: bool) -> None:
        n, k = p.shape
        self.K, self.p, self.root = K, p, np.sqrt(p)
        self.size = np.sqrt(c)[:, None]
        scale = np.sqrt(c * np.maximum(1.0 - np.sum(p * p, axis=1), 0.0) / k)
        system = (scale[:, None] * K) * scale[None, :]
        system.flat[:: n + 1] += 1.0
        self.factor = cho_factor(system, lower=True, overwrite_a=True, check_finite=False)
        self.normals: Array | None = None
        if fit_intercept:
            each = np.zeros((k, n, k))
            each[np.arange(k), :, np.arange(k)] = 1.0
            normals = self.transposed(each)
            self.behind = self._precondition(normals)
            self.normals = normals
            between = np.einsum("aik,bik->ab", normals, self.behind)
            self.small = np.linalg.pinv(between, rcond=1e-12, hermitian=True)

    def times(self, z: Array) -> Array:
        """``R z``; leading axes are columns."""
        along = np.sum(self.root * z, axis=-1, keepdims=True)
        return self.size * (self.root * z - self.p * along)

    def transposed(self, v: Array) -> Array:
        """``R'v``."""
        along = np.sum(self.p * v, axis=-1, keepdims=True)
        return self.size * self.root * (v - along)

    def _precondition(self, r: Array) -> Array:
        """The preconditioner on the subspace, or everywhere where that is not known."""
        flat = np.moveaxis(r, -2, 0).reshape(self.K.shape[0], -1)
        found = cho_solve(self.factor, flat, check_finite=False)
        x = np.moveaxis(found.reshape(r.shape[-2], *r.shape[:-2], r.shape[-1]), 0, -2)
        if self.normals is None:
            return x
        share = np.einsum("aik,...ik->...a", self.normals, x) @ self.small
        return x - np.einsum("...a,aik->...ik", share, self.behind)

    def _direct(self, right: Array) -> Array:
        """``z`` by one factorisation of the whole system: for small problems, however badly they are scaled."""
        n, k = self.p.shape
        # R_i in its columns: sqrt(c_i) (diag(sqrt p_i) - p_i sqrt(p_i)')
        R = self.size[:, :, None] * (
            self.root[:, :, None] * np.eye(k) - self.p[:, :, None] * self.root[:, None, :]
        )
        system = np.einsum("iya,ij,jyb->iajb", R, self.K, R, optimize=True).reshape(n * k, n * k)
        values, vectors = np.linalg.eigh(system)
        shrink = 1.0 / (1.0 + np.maximum(values, 0.0))

        def inverse(r: Array) -> Array:
            flat = r.reshape(-1, n * k).T
            return np.asarray((vectors @ (shrink[:, None] * (vectors.T @ flat))).T.reshape(r.shape))

        z = inverse(right)
        if self.normals is None:
            return z
        behind = inverse(self.normals)
        small = np.linalg.pinv(np.einsum("aik,bik->ab", self.normals, behind), rcond=1e-12, hermitian=True)
        share = np.einsum("aik,...ik->...a", self.normals, z) @ small
        return np.asarray(z - np.einsum("...a,aik->...ik", share, behind))

    def solve(self, right: Array, tol: float) -> Array:
        """``z`` for one right side ``(n, k)`` or several ``(m, n, k)``, to a relative residual of tol."""
        if self.p.size <= DIRECT:
            return self._direct(right)
        z = np.zeros_like(right)
        r = right.copy()
        x = self._precondition(r)
        d = x.copy()
        rx = np.sum(r * x, axis=(-2, -1), keepdims=True)
        first = rx.copy()
        for _ in range(MOST):
            if np.all(rx <= tol * tol * first):
                break
            Rd = self.times(d)
            flat = np.moveaxis(Rd, -2, 0).reshape(self.K.shape[0], -1)
            KRd = np.moveaxis((self.K @ flat).reshape(Rd.shape[-2], *Rd.shape[:-2], Rd.shape[-1]), 0, -2)
            q = d + self.transposed(KRd)
            bend = np.sum(d * q, axis=(-2, -1), keepdims=True)
            step = np.divide(rx, bend, out=np.zeros_like(rx), where=bend > 0)
            z += step * d
            r -= step * q
            x = self._precondition(r)
            new = np.maximum(np.sum(r * x, axis=(-2, -1), keepdims=True), 0.0)
            d = x + np.divide(new, rx, out=np.zeros_like(rx), where=rx > 0) * d
            rx = new
        return z


def solve_softmax(inner: Inner, target: float, start: FixedSolution | None) -> FixedSolution:
    """Solve the inner problem to a relative gap of ``target``.

    Far from the solution most probabilities are 0 or 1, and the curvature is lost: large bounds are raised in stages.
    """
    high, size = float(np.max(inner.c)), float(np.mean(np.diagonal(inner.K)))
    reached = min(high, SOFTMAX_AT_ONCE / size) if size > 0 else high
    best: FixedSolution | None = None
    if start is not None or reached >= high:
        best = _newton(inner, target, start)
        if best.relative_gap <= max(target, ROUGH):
            return best
    stage = _newton(replace(inner, c=np.minimum(inner.c, reached)), ROUGH, None)
    factor = SOFTMAX_STAGE
    while reached < high and factor > SMALLEST_STAGE and not out_of_time():
        cap = min(factor * reached, high)
        wanted = target if cap >= high else ROUGH
        trial = _newton(replace(inner, c=np.minimum(inner.c, cap)), wanted, stage)
        if trial.relative_gap > max(wanted, ROUGH):
            factor = np.sqrt(factor)
            continue
        stage, reached = trial, cap
    if reached < high:  # what was found under smaller bounds is a point under these
        stage = _newton(inner, target, stage)
    return stage if best is None or stage.gap < best.gap else best


def _newton(inner: Inner, target: float, start: FixedSolution | None) -> FixedSolution:
    bound = np.ascontiguousarray(inner.c[:, 0])

    def direction(beta: Array, f: Array, gradient: Array, precise: float) -> Array:
        rest = beta + gradient
        system = SoftmaxSystem(inner.K, probabilities(f), bound, inner.fit_intercept)
        return system.times(system.solve(system.transposed(inner.K @ rest), precise)) - rest

    beta = np.zeros(inner.y.shape) if start is None else inner.project(start.beta)
    decision = inner.K @ beta if np.any(beta) else np.zeros(inner.y.shape)
    return descend(inner, direction, beta, decision, target, exact=False)
