"""Interleaved SMO: two coefficients move, the weights follow in closed form, and so on, without inner problems.

After Vishwanathan, Sun, Theera-Ampornpunt and Varma, "Multiple Kernel Learning and the SMO Algorithm" (2010), on this
package's own dual ``y'beta - |s|_q / 2``, ``q = p / (p - 1)``: a pair is moved to the exact maximum along its line, a
concave function of one variable that costs O(m) per value, because every quadratic form is a parabola on it.  Whole
rows of two samples then bring the products ``V_j = K_j beta`` of *all* kernels up to date: 2 m n entries per step.

The l1 norm has no closed form.  It is reached as the limit of large q (the authors' own proposal for sparse weights),
starting at ``q = 2 ln m`` and doubling whenever the surrogate is solved better than it resembles l1.

A prototype: it is measured in ``candidates.py`` and is no part of the package.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from kernelweave.norms import Lp
from kernelweave.problems import MKLProblem, Point, solve_fixed
from kernelweave.solvers import Solver

_FAST = {"reassoc", "contract", "nsz", "arcp"}


@njit(cache=True)
def _weights(s, q, d):
    """``(s / |s|_q)^(q - 1)`` into ``d``; nothing where s is zero."""
    top = 0.0
    for j in range(s.size):
        top = max(top, s[j])
    if top <= 0.0:
        return
    total = 0.0
    for j in range(s.size):
        d[j] = (max(s[j], 0.0) / top) ** (q - 1.0)
        total += d[j] * max(s[j], 0.0) / top
    size = total ** ((q - 1.0) / q)
    for j in range(s.size):
        d[j] /= size


@njit(cache=True)
def _slope(s, b, c, rise, t, q, there, d):
    """Derivative of the dual at ``t`` along the line; leaves the forms in ``there``, their weights in ``d``."""
    for j in range(s.size):
        there[j] = s[j] + t * (2.0 * b[j] + t * c[j])
    _weights(there, q, d)
    value = rise
    for j in range(s.size):
        value -= d[j] * (b[j] + t * c[j])
    return value


@njit(cache=True)
def _line_search(s, b, c, rise, most, q, there, d):
    """Root of the falling slope on ``[0, most]`` by the Illinois method; ``most`` where it stays positive."""
    left, right = 0.0, most
    at_right = _slope(s, b, c, rise, right, q, there, d)
    if at_right >= 0.0:
        return right
    at_left = _slope(s, b, c, rise, left, q, there, d)
    first, t = at_left, 0.0
    for _ in range(60):
        t = (left * at_right - right * at_left) / (at_right - at_left)
        value = _slope(s, b, c, rise, t, q, there, d)
        if abs(value) <= 1e-3 * first or right - left <= 1e-14 * most:
            break
        if value > 0.0:
            left, at_left, at_right = t, value, 0.5 * at_right
        else:
            right, at_right, at_left = t, value, 0.5 * at_left
    return t


@njit(cache=True, fastmath=_FAST)
def _bring_up_to_date(V, rows_i, rows_j, t, d, mixed):
    """``V_j += t (K_j[i] - K_j[j])`` and ``mixed = sum_j d_j V_j`` in one sweep."""
    mixed[:] = 0.0
    for j in range(V.shape[0]):
        for k in range(V.shape[1]):
            V[j, k] += t * (rows_i[j, k] - rows_j[j, k])
            mixed[k] += d[j] * V[j, k]


@njit(cache=True, fastmath=_FAST)
def _mixed_row(rows, d, out):
    out[:] = 0.0
    for j in range(rows.shape[0]):
        for k in range(rows.shape[1]):
            out[k] += d[j] * rows[j, k]


@njit(cache=True)
def smo_steps(K, V, s, beta, linear, low, high, diag, q, steps, tol):
    """Take up to ``steps`` steps in place; returns how many, and the last violation.

    ``K[i]`` holds row i of every kernel, ``V`` the products, ``s`` the quadratic forms; ``diag[i]`` the mean diagonal,
    which only steers the choice of the second variable.
    """
    m, n = V.shape
    d, b, c, there = np.zeros(m), np.empty(m), np.empty(m), np.empty(m)
    mixed, row = np.empty(n), np.empty(n)
    _weights(s, q, d)
    _mixed_row(V, d, mixed)
    gap = np.inf
    for step in range(steps):
        i, best, lowest = -1, -np.inf, np.inf
        for k in range(n):
            slope = linear[k] - mixed[k]
            if beta[k] < high[k] and slope > best:
                best, i = slope, k
            if beta[k] > low[k]:
                lowest = min(lowest, slope)
        gap = best - lowest
        if gap <= tol:
            return step, gap
        _mixed_row(K[i], d, row)
        total = 0.0
        for l in range(m):
            total += d[l]
        j, gain = -1, 0.0
        for k in range(n):
            fall = best - (linear[k] - mixed[k])
            if beta[k] > low[k] and fall > 0.0:
                bend = max(row[i] + total * diag[k] - 2.0 * row[k], 1e-12)
                if fall * fall / bend > gain:
                    gain, j = fall * fall / bend, k
        for l in range(m):
            b[l] = V[l, i] - V[l, j]
            c[l] = K[i, l, i] + K[j, l, j] - 2.0 * K[i, l, j]
        most = min(high[i] - beta[i], beta[j] - low[j])
        t = _line_search(s, b, c, linear[i] - linear[j], most, q, there, d)
        beta[i] = high[i] if t == high[i] - beta[i] else beta[i] + t
        beta[j] = low[j] if t == beta[j] - low[j] else beta[j] - t
        s[:] = there
        _bring_up_to_date(V, K[i], K[j], t, d, mixed)
    return steps, gap


@dataclass
class _State:
    beta: np.ndarray
    products: np.ndarray
    quad: np.ndarray
    q: float
    tolerance: float = 1e-2
    finished: bool = False


class InterleavedSMO(Solver):
    """SMO on the joint dual of all kernels.

    Parameters
    ----------
    stack : array of shape (n, m, n)
        Row i of every kernel, stored whole: nothing is computed on the fly.
    """

    registered_as = "smo"
    default_max_iter = 10**9

    def __init__(self, stack: np.ndarray) -> None:
        self.stack = stack
        self.diag = np.array([stack[i, :, i].mean() for i in range(stack.shape[0])])

    def init(self, problem: MKLProblem, start: Point | None, tol: float) -> _State:
        """Start from the SVM on equal weights, like the other solvers."""
        mean = problem.bank.combine(problem.norm.start(problem.m))
        inner = solve_fixed(mean, problem.loss, problem.y, problem.c, problem.fit_intercept, 1e-2)
        products = problem.bank.apply(inner.beta)
        self.norm, self.tol = problem.norm, tol
        q = 2.0 * np.log(problem.m) if problem.norm.simplex else problem.norm.dual_p  # type: ignore[attr-defined]
        return _State(inner.beta.copy(), products, products @ inner.beta, float(q))

    def step(self, problem: MKLProblem, state: _State) -> _State:
        """Take a quarter of n steps, without a certificate in between."""
        low, high = problem.loss.box(problem.y, problem.c)
        steps, violation = smo_steps(
            self.stack, state.products, state.quad, state.beta, problem.y, low, high, self.diag,
            state.q, max(problem.n // 4, 20), state.tolerance,
        )  # fmt: skip
        problem.bank.count(2.0 * steps * problem.m * problem.n)
        if problem.norm.simplex and self._surrogate_gap(problem, state) < self._distance(state):
            state.q *= 2.0
        elif violation <= state.tolerance:
            state.tolerance *= 0.3
            state.finished = state.tolerance < 1e-13
        return state

    def _surrogate_gap(self, problem: MKLProblem, state: _State) -> float:
        """Duality gap of the large-q problem that is being solved."""
        norm = Lp(state.q / (state.q - 1.0))
        other = MKLProblem(problem.bank, problem.loss, norm, problem.y, float(problem.c[0]))
        return other.certificate(self._point(state, norm.weights(state.quad))).gap

    @staticmethod
    def _distance(state: _State) -> float:
        """By how much the surrogate's regulariser is off the one of l1."""
        return Lp(state.q / (state.q - 1.0)).conjugate(state.quad) - 0.5 * float(np.max(state.quad))

    @staticmethod
    def _point(state: _State, weights: Any) -> Point:
        return Point(state.beta.copy(), weights, state.quad.copy(), weights @ state.products)

    def point(self, state: _State) -> Point:
        """The coefficients with the weights of the norm; on the simplex for l1."""
        weights = Lp(state.q / (state.q - 1.0)).weights(state.quad)
        return self._point(state, self.norm.scaled(weights))


def stack_of(bank: Any) -> np.ndarray:
    """The kernels as ``(n, m, n)``, row by row."""
    everyone, kernels = np.arange(bank.n), np.arange(bank.m)
    out = np.empty((bank.n, bank.m, bank.n))
    for i in everyone:
        out[i] = bank.block(np.array([i]), everyone, kernels)[:, 0]
    return out
