"""Candidates for the exact engine that are not in the package, against the one that is.

Run ``python benchmarks/candidates.py``; ``--quick`` takes a smaller second problem, one run each and writes nothing.
``passes.py engines`` has the solvers that are in the package; the prototypes here were written to be measured.

Safe screening: how many kernels does a certificate prove to have no weight at the optimum, and how early?

Run ``python benchmarks/candidates.py screening``; ``--quick`` takes one data set and writes nothing.

For l1-MKL, ``D(beta) = gain(beta) - max_j s_j(beta) / 2``, let (beta*, d*) be a saddle point, d any weights on the
simplex, beta_d the inner solution for them, J(d) its value, LB any lower bound of the optimum, mu the strong concavity
of the gain (the reciprocal of C times the loss's smoothness: 1 / (2 C) for the squared losses, 4 / C for the logistic
one, 0 for the hinge).  Then:

1. *The ball.*  ``L_d(beta) = gain(beta) - beta'K_d beta / 2`` is concave, strongly so in the metric M = K_d + mu I, and
   beta_d maximises it: ``L_d(beta*) <= J(d) - |beta* - beta_d|_M^2 / 2``.  As d's <= max s,
   ``L_d(beta*) >= D(beta*) >= LB``.  Hence ``|beta* - beta_d|_M <= r``, ``r^2 = 2 (J(d) - LB)``.
   An inner solution of gap e is itself within sqrt(2 e) of beta_d: r grows by that, J(d) is replaced by its primal.
2. *The threshold.*  A kernel with weight has ``s_j(beta*) = max s(beta*) >= d's(beta*) = |beta*|_{K_d}^2``, and since
   K_d <= M, ``|beta*|_{K_d} >= |beta_d|_{K_d} - r``.  The constant of this bound is one; a single kernel in the place
   of the mixture would have its own eigenvalues to pay.
3. *The rule.*  ``sqrt(s_j(beta*)) <= sqrt(s_j(beta_d)) + sqrt(l_j) r``, l_j the largest eigenvalue of K_j relative to
   M, on vectors that sum to zero (both points do).  Kernel j is out where the right hand side is below the threshold.

*Generous*: l_j itself, one eigenproblem per kernel and iteration: too expensive to use, but no rule from this ball with
the triangle inequality can prove more.  Where M is singular to rounding (hinge), eigenvalues below 1e-12 of the largest
are lifted to that, which makes l_j smaller than it is and the rule only more generous.
*Cheap*: ``lmax(K_j) / (lmin(K_d) + mu)``, lmax once and for all.
*Free*: the same with the trace in the place of lmax(K_j), which takes no pass.
For losses with mu > 0 there is also the ball around any feasible beta, ``|beta* - beta|^2 <= 2 (UB - D(beta)) / mu``,
since D itself is mu-strongly concave.  With the same bounds, around beta_d, it contains the one above, whose metric has
K_d on top.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator, eigsh

from _measure import (
    SETTING,
    UCI,
    Case,
    Problem,
    Runner,
    Targets,
    again_in_turns,
    generated,
    machine,
    mid,
    pin,
    run_part,
    show,
    small,
    uci,
    write_table,
)
from kernelweave._numerics.smo import solve_box_qp
from kernelweave.banks import Bank
from kernelweave.losses import make_loss
from kernelweave.norms import Lp, make_norm
from kernelweave.problems import MKLProblem, Point, relative_gap, solve_fixed
from kernelweave.solvers import Solver, make_solver, without_caches

# Interleaved SMO: two coefficients move, the weights follow in closed form, and so on, without inner problems.
#
# After Vishwanathan, Sun, Theera-Ampornpunt and Varma, "Multiple Kernel Learning and the SMO Algorithm" (2010), on this
# package's own dual ``y'beta - |s|_q / 2``, ``q = p / (p - 1)``: a pair is moved to the exact maximum along its line, a
# concave function of one variable that costs O(m) per value, because every quadratic form is a parabola on it.  Whole
# rows of two samples then bring the products ``V_j = K_j beta`` of *all* kernels up to date: 2 m n entries per step.
#
# The l1 norm has no closed form.  It is reached as the limit of large q (the authors' own proposal for sparse weights),
# starting at ``q = 2 ln m`` and doubling whenever the surrogate is solved better than it resembles l1.
#
# A prototype, no part of the package.

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


# A dual augmented Lagrangian with an active set of kernels, as in SpicyMKL.
#
# After Suzuki and Tomioka, "SpicyMKL: a fast algorithm for multiple kernel learning with thousands of kernels" (2011).
# Proximal minimisation of the primal,
#
#     f <- argmin  Omega(f)^2 / 2 + C sum_i l(y_i, f(x_i) + b) + sum_j |f_j - g_j|^2 / (2 gamma),    g the last f,
#
# through its dual in one coefficient vector beta.  With ``v_j = alpha_j + gamma beta`` (alpha_j the coefficients of
# g_j), ``N_j = |v_j|`` in the norm of K_j and x the proximal point of N, the dual is the loss's part minus
# ``(|N|^2 - |x - N|^2 - gamma (sum x)^2) / (2 gamma)``, smooth in beta, and the next f_j is ``x_j / N_j`` of v_j:
# kernels whose x_j is zero drop out of gradient and Hessian.  SpicyMKL's penalty is ``sum_j |f_j|``, a soft threshold
# of a given height; here it is half its square, as everywhere in this package, and the height comes with the proximal
# point.  Its losses are smooth; for the hinge each Newton step is a QP with the box, which the package's SMO engine
# solves.
#
# A prototype, no part of the package.

Array = np.ndarray


@dataclass
class _LagrangianState:
    beta: Array
    products: Array  # K_j beta
    anchors: Array  # K_j alpha_j
    forms: Array  # |alpha_j|^2 in the norm of K_j
    gamma: float
    blocks: Array  # the block norms x
    inner: int = 0
    gap: float = 1.0
    finished: bool = False

    @property
    def quad(self) -> Array:
        """``beta' K_j beta``."""
        return self.products @ self.beta


class SpicyDAL(Solver):
    """Augmented Lagrangian on the dual of l1-MKL; one Newton step of an inner problem per iteration.

    Parameters
    ----------
    gamma : float
        First proximal step length.
    growth : float
        Its factor from one inner problem to the next.
    share : float
        An inner problem is done when a Newton step promises less than this share of what the last f moved by.
    """

    registered_as = "dal"
    default_max_iter = 10**6

    def __init__(self, gamma: float = 0.1, growth: float = 1.5, share: float = 0.3) -> None:
        self.gamma, self.growth, self.share = gamma, growth, share

    def init(self, problem: MKLProblem, start: Point | None, tol: float) -> _LagrangianState:
        """Start from the SVM on equal weights, like the other solvers."""
        weights = problem.norm.start(problem.m)
        mean = problem.bank.combine(weights)
        beta = solve_fixed(mean, problem.loss, problem.y, problem.c, problem.fit_intercept, 1e-2).beta
        products = problem.bank.apply(beta)
        quad = products @ beta
        anchors = weights[:, None] * products
        state = _LagrangianState(
            beta, products, anchors, weights**2 * quad, self.gamma, weights * np.sqrt(quad)
        )
        self.norm, self.tol = problem.norm, tol
        return state

    def _proximal(self, state: _LagrangianState, beta: Array, products: Array) -> tuple[float, Array, Array]:
        """Value of the smooth part of the dual, N and x."""
        g = state.gamma
        # |alpha_j + gamma beta|^2; anchors are K_j alpha_j, so the cross term is a plain product
        square = state.forms + 2.0 * g * (state.anchors @ beta) + g * g * (products @ beta)
        N = np.sqrt(np.maximum(square, 0.0))
        x = self.norm.prox(N, g)
        charged = 0.5 * float(np.sum((x - N) ** 2)) + g * self.norm.half_square(x)
        return (0.5 * float(np.sum(square)) - charged) / g, N, x

    def step(self, problem: MKLProblem, state: _LagrangianState) -> _LagrangianState:
        """One Newton step on the inner dual; the next inner problem where it promised little."""
        g, bank = state.gamma, problem.bank
        _, N, x = self._proximal(state, state.beta, state.products)
        active = np.flatnonzero(x > 0)
        shrink = np.zeros(problem.m)
        shrink[active] = x[active] / N[active]
        gradient = shrink @ (state.anchors + g * state.products)
        # Hessian: a mixture of the active kernels, and a term of rank one for each of them
        hessian = bank.combine(g * shrink)
        unit = (state.anchors[active] + g * state.products[active]) / N[active, None]
        tau = g * float(np.sum(x))
        hessian += (unit * (g * tau / N[active])[:, None]).T @ unit
        total = unit.sum(axis=0)
        hessian -= np.outer((g * g / (1.0 + g * active.size)) * total, total)
        low, high = problem.loss.box(problem.y, problem.c)
        scale = float(np.mean(np.diagonal(hessian)))
        solved = solve_box_qp(
            hessian / scale, (problem.y - gradient + hessian @ state.beta) / scale, low, high,
            equality=problem.fit_intercept, tol=1e-2 * min(state.gap, 1e-1) / scale, beta=state.beta,
        )  # fmt: skip
        direction = solved.beta - state.beta
        linear = float(problem.y @ direction)
        promised = linear - float(gradient @ direction) - 0.5 * float(direction @ hessian @ direction)
        along = bank.apply(direction)
        t = self._line_search(state, direction, along, linear)
        state.beta, state.products = state.beta + t * direction, state.products + t * along
        _, N, x = self._proximal(state, state.beta, state.products)
        state.blocks, state.inner = x, state.inner + 1
        certificate = problem.certificate(self.point(state))
        state.gap = min(state.gap, max(certificate.relative_gap, 1e-14))
        shrink = np.divide(x, N, out=np.zeros_like(x), where=N > 0)
        moved = x**2 - 2.0 * shrink * (state.forms + g * (state.anchors @ state.beta)) + state.forms
        if promised <= self.share * float(np.sum(moved)) / (2.0 * g) or state.inner >= 50:
            self._next(state, shrink, x)
        return state

    def _line_search(self, state: _LagrangianState, direction: Array, along: Array, linear: float) -> float:
        """Where the slope of the inner dual changes sign on [0, 1], by bisection: values cost no pass."""

        def slope(t: float) -> float:
            products = state.products + t * along
            _, N, x = self._proximal(state, state.beta + t * direction, products)
            active = np.flatnonzero(x > 0)
            values = (state.anchors[active] + state.gamma * products[active]) @ direction
            return linear - float((x[active] / N[active]) @ values)

        if slope(1.0) >= 0.0:
            return 1.0
        low, high = 0.0, 1.0
        for _ in range(12):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if slope(middle) > 0 else (low, middle)
        return 0.5 * (low + high)

    def _next(self, state: _LagrangianState, shrink: Array, x: Array) -> None:
        """Move the anchor to the proximal point."""
        state.anchors = shrink[:, None] * (state.anchors + state.gamma * state.products)
        state.forms = x**2
        state.gamma *= self.growth
        state.inner = 0

    def point(self, state: _LagrangianState) -> Point:
        """One coefficient vector for all kernels, weights from the block norms."""
        weights = self.norm.weights_of_blocks(state.blocks)
        return Point(state.beta, weights, state.quad, weights @ state.products)


L1 = ("newton", "smo", "dal", "nesterov")
LP = ("newton", "smo", "nesterov", "lp_analytic")
HARDER = ("newton", "smo", "lp_analytic")
PS = (1.1, 1.5, 2.0)
NOTE = f"""{SETTING} Stopped at the certified relative gap of the column *to*, after {{cap:g}} s or where nothing
more could be gained (*ended*). All run in the package's own loop, on the same bank, which is built before, start from
the SVM on equal weights and are judged by the same certificate, recomputed from the kernels at the end (*relative
gap*).

- `newton`: the package's engine.
- `smo`: interleaved SMO (Vishwanathan et al. 2010), a prototype in `candidates.py`. Two coefficients move to the
  exact maximum of the joint dual on their line, second-order choice of the pair, weights in closed form after every
  step. For l1 the limit of large q, from 2 ln m on, doubled whenever the surrogate is solved better than it resembles
  l1. A step reads two rows of every kernel: 2 m n entries. It is given all kernels as one stored array, row by row, in
  double precision; making that array and its memory ({{stacks}}, the banks take {{banks}}) count for nothing here.
- `dal`: dual augmented Lagrangian with an active set of kernels (SpicyMKL, Suzuki and Tomioka 2011), a prototype in
  `candidates.py`, for half the squared block norm instead of SpicyMKL's plain one; hinge loss by a box QP per
  Newton step, on the package's SMO engine. First step length {SpicyDAL().gamma:g}, then times
  {SpicyDAL().growth:g}: the best of a small grid on the small problem. l1 only.
- `nesterov`: accelerated gradients on the smoothed dual, as it is in the package (Xu et al. 2010; `docs/solvers.md`).
- `lp_analytic`: SVM and closed-form weights in turn, from the package, beside the candidates for lp norms.

*Passes*: entries of the (m, n, n) tensor read, over m n^2. *Steps*: iterations of the loop; for `smo` each is n / 4
pair moves. *Seconds*: median of {{repeats}}, of one run where that took more than {{long:g}} s. *Times newton*: seconds
over those of `newton` on the same case; a lower bound where the candidate did not get there.

{{sources}}

{{targets}}"""


class Given(NamedTuple):
    """What is made before the clock starts: a bank, and all its kernels as one array."""

    bank: Bank
    stack: np.ndarray


class Candidate(Runner):
    """A prototype or a solver of the package; ``stack`` are all kernels as one array."""

    def __init__(self, case: Case, bank: Bank, stack: np.ndarray, solver: str, cap: float) -> None:
        super().__init__(case, bank, solver, cap)
        self.stack = stack

    def make_solver(self) -> Solver:
        """Return the prototype or the solver by its name."""
        if self.solver == "smo":
            return InterleavedSMO(self.stack)
        return SpicyDAL() if self.solver == "dal" else super().make_solver()

    @property
    def gap(self) -> float:
        """Relative gap of the point, primal and dual from the kernels alone."""
        problem = self.make_problem()
        judged = problem.certificate(without_caches(self.solution.point))
        dual = problem.dual(self.solution.certificate.dual_point)
        return replace(judged, dual=max(judged.dual, dual)).relative_gap

    def row(self, newton: Candidate) -> dict[str, Any]:
        """Return a line of the table."""
        return {
            "problem": self.case.problem.name,
            "norm": self.case.norm_name,
            "C": self.case.C,
            "to": self.case.tol,
            "candidate": self.solver,
            "passes": self.solution.passes,
            "steps": self.solution.n_iter,
            "seconds": self.median,
            "times newton": self.times(newton),
            "relative gap": self.gap,
            "ended": self.ended,
            "runs": len(self.seconds),
        }


def measure(case: Case, given: Given, repeats: int, cap: float, long: float) -> list[Candidate]:
    """Run all candidates once, then the quick ones in turns."""
    runners = [Candidate(case, given.bank, given.stack, solver, cap) for solver in case.solvers]
    for runner in runners:
        runner.once()
    again_in_turns(runners, repeats, long)
    return runners


def cases(quick: bool) -> list[Case]:
    """The l1 norm and two lp norms on both problems, to a fine gap on the small one."""
    first, second = small(), generated(400, 10, name="mid, smaller") if quick else mid()
    out = []
    for norm, candidates in (("l1", L1), *((p, LP) for p in PS)):
        out += [Case(first, norm, tol, candidates) for tol in (1e-3, 1e-6)]
        out.append(Case(second, norm, 1e-3, candidates))
        if norm != "l1":
            out.append(Case(second, norm, 1e-3, HARDER, C=10.0))
    return out


def judge(what: str, runs: list[list[Candidate]], targets: Targets) -> None:
    """Check that no candidate that reaches the gap is ahead of Newton, which is in the package.

    For lp norms passes are shown and not judged: those of `smo` are over an array of all kernels, which no
    bank keeps.
    """
    ratios: dict[str, dict[str, float]] = {"passes": {}, "seconds": {}}
    for newton, *others in runs:
        for other in (other for other in others if other.reached):
            label = f"{other.solver}, {other.case.label}"
            ratios["passes"][label] = other.solution.passes / newton.solution.passes
            ratios["seconds"][label] = other.median / newton.median
    least = {"passes": 1.0, "seconds": 1.0} if what == "l1" else {"seconds": 1.0}
    for unit, bound in least.items():
        values = ratios[unit]
        if values:
            best = min(values, key=lambda label: values[label])
            targets.at_least(
                f"{what}: {unit} of the best candidate over newton's ({best})", values[best], bound
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a smaller second problem, nothing is written")
    parser.add_argument("--cap", type=float, default=None, help="most seconds per run (60, quick: 3)")
    options = parser.parse_args()
    pin()
    quick = options.quick
    cap, repeats, long = options.cap or (3.0 if quick else 60.0), 1 if quick else 3, 5.0
    print(machine())
    everything = cases(quick)
    given: dict[str, Given] = {}
    for case in everything:
        if case.problem.name not in given:
            bank = case.problem.bank()
            given[case.problem.name] = Given(bank, stack_of(bank))
    for case in (everything[0], everything[3]):  # compiles
        measure(case, given[case.problem.name], 1, 1.0, 0.0)
    runs = []
    for case in everything:
        runs.append(measure(case, given[case.problem.name], repeats, cap, long))
        show([runner.row(runs[-1][0]) for runner in runs[-1]])
    targets = Targets()
    for norm in dict.fromkeys(case.norm for case in everything):
        same = [run for run in runs if run[0].case.norm == norm]
        judge(same[0][0].case.norm_name, same, targets)
    if not quick:
        sources = "\n".join(f"- {p}" for p in dict.fromkeys(case.problem.source for case in everything))
        stacks = " and ".join(f"{case.stack.nbytes / 2**30:.2g} GiB" for case in given.values())
        banks = " and ".join(f"{case.bank.nbytes / 2**30:.2g} GiB" for case in given.values())
        note = NOTE.format(
            banks=banks,
            cap=cap,
            repeats=repeats,
            long=long,
            sources=sources,
            targets=targets.text(),
            stacks=stacks,
        )
        rows = [runner.row(run[0]) for run in runs for runner in run]
        write_table("candidates", rows, "python benchmarks/candidates.py", note)


# Safe screening.

LOSSES = ("hinge", "squared_hinge", "logistic", "squared")
CS = (0.1, 1.0, 10.0)
GAPS = tuple(10.0**-k for k in range(2, 9))
FINE = 1e-9
GOALS = (1e-3, 1e-6)
SCREENING_NOTE = """Features standardised on the training rows, kernels trace-normalised, an intercept, l1 norm.
`newton` runs to a certified relative gap of 1e-9 or {most} iterations. The three rules of `benchmarks/candidates.py
screening`, whose derivation stands there, are tried at its first iterate at or below 1e-1 and each gap of the columns
on the right, with the best lower bound known by then; once out, a kernel stays out. Those columns have the kernels
proven out, *free / cheap / generous*; as `newton` squares its error, one iterate often answers for several columns; "-"
where it did not get there. *Zero*: kernels without weight at the end, the ones that could be proven out. *Passes*: what
`newton` reads to 1e-3 and to 1e-6; *saved*: the most that leaving out the proven kernels from then on would have saved
of it, for each rule, the price of proving not counted. That price is, for *free*, the smallest eigenvalue of every
mixture, O(n^3); for *cheap* also the largest of every kernel, once (a pass for a rough bound, ten for a good one); for
*generous* an eigenproblem a kernel and an iterate. The inner problem is solved once more for the rules, to 1e-12, for
nothing. *Wrong*: kernels proven out by any rule that have weight at the end.

{sources}

{targets}"""
MOST = 60


@dataclass(frozen=True)
class Iterate:
    """Weights, the best lower bound when they were found, and what it took."""

    weights: Array
    lower: float
    gap: float
    passes: float


def iterates(problem: MKLProblem, most: int = MOST) -> list[Iterate]:
    """Every new best of `newton`, down to ``FINE``."""
    solver = make_solver("newton", problem.loss, problem.norm)
    before, upper, lower = problem.bank.passes, np.inf, -np.inf
    state: Any = None
    out: list[Iterate] = []
    weights = np.zeros(problem.m)
    for _ in range(most):
        state = solver.init(problem, None, FINE) if state is None else solver.step(problem, state)
        point = solver.point(state)
        judged = problem.certificate(point)
        lower = max(lower, judged.dual)
        if judged.primal < upper:
            upper, weights = judged.primal, point.weights
        gap = relative_gap(upper, lower)
        out.append(Iterate(weights, lower, gap, problem.bank.passes - before))
        if gap <= FINE:
            break
    return out


class Screen:
    """The rules for one problem, with what does not change from one iterate to the next."""

    def __init__(self, stack: Array, largest: Array, problem: MKLProblem) -> None:
        self.stack, self.largest, self.problem = stack, largest, problem
        self.traces = np.trace(stack, axis1=1, axis2=2)
        smoothness = problem.loss.smoothness
        self.mu = 1.0 / (smoothness * float(problem.c[0])) if smoothness else 0.0

    def at(self, iterate: Iterate, before: Array) -> Array:
        """Kernels out by each of the rules, on top of those that were out before: (3, m)."""
        problem, d = self.problem, iterate.weights
        oracle = problem.oracle(d, None, 1e-12)
        inner = oracle.inner
        lower = max(iterate.lower, problem.dual(inner.beta, oracle.quad))
        slack = max(inner.primal - inner.dual, 0.0)
        radius = np.sqrt(2.0 * max(inner.primal - lower, 0.0)) + np.sqrt(2.0 * slack)
        roots = np.sqrt(np.maximum(oracle.quad, 0.0))
        room = np.sqrt(max(float(d @ oracle.quad), 0.0)) - radius - roots  # what sqrt(l_j) r may be
        values, vectors = eigh(self._inside(problem.bank.combine(d)))
        smallest = max(float(values[0]), 0.0) + self.mu
        with np.errstate(divide="ignore"):
            free = before[0] | (np.sqrt(self.traces / smallest) * radius < room)
            cheap = before[1] | free | (np.sqrt(self.largest / smallest) * radius < room)
        generous = before[2] | cheap
        scales = np.maximum(values, 1e-12 * values[-1]) + self.mu
        # Rayleigh quotients of a few vectors bound l_j from below: many kernels fall by them already
        basis = self._outside(vectors[:, :8])
        open_ = np.flatnonzero((room > 0) & ~generous)
        forms = np.einsum("jab,ak,bk->jk", self.stack[open_], basis, basis, optimize=True)
        needed = np.sqrt(np.max(np.maximum(forms, 0.0) / scales[:8], axis=1)) * radius
        root = (vectors / np.sqrt(scales)) @ vectors.T
        for j in open_[needed < room[open_]]:
            generous[j] = np.sqrt(self._relative(j, root)) * radius < room[j]
        return np.stack([free, cheap, generous])

    def _relative(self, j: int, root: Array) -> float:
        """Largest eigenvalue of K_j relative to M, both on vectors that sum to zero."""
        inside = self._inside(self.stack[j])
        size = root.shape[0]

        def times(x: Array) -> Array:
            return root @ (inside @ (root @ np.ravel(x)))

        operator = LinearOperator((size, size), matvec=times, dtype=float)
        return 1.001 * float(eigsh(operator, 1, which="LA", tol=1e-3, return_eigenvectors=False)[0])

    def _reflector(self) -> Array:
        """Householder vector that takes the constant vector to the last axis."""
        n = self.problem.n
        u = np.full(n, 1.0 / np.sqrt(n))
        u[-1] += 1.0
        return u / np.linalg.norm(u)

    def _inside(self, K: Array) -> Array:
        """K on an orthonormal basis of the vectors that sum to zero."""
        u = self._reflector()
        Ku = K @ u
        turned = K - 2.0 * np.outer(u, Ku) - 2.0 * np.outer(Ku, u) + 4.0 * float(u @ Ku) * np.outer(u, u)
        return turned[:-1, :-1]

    def _outside(self, x: Array) -> Array:
        """Vectors of that basis as vectors of length n."""
        u = self._reflector()
        full = np.vstack([x, np.zeros((1, x.shape[1]))])
        return full - 2.0 * np.outer(u, u @ full)


def row_of(problem: Problem, mkl: MKLProblem, stack: Array, largest: Array) -> dict[str, Any]:
    """A line of the table: what is proven at every gap, and what that could have saved."""
    steps = iterates(mkl)
    final = steps[-1].weights
    screen = Screen(stack, largest, mkl)
    crossings = {
        gap: next((k for k, step in enumerate(steps) if step.gap <= gap), None) for gap in (0.1, *GAPS)
    }
    out = np.zeros((3, mkl.m), dtype=bool)
    counts: list[Array] = []
    wrong = 0
    for k, iterate in enumerate(steps):
        if k in crossings.values():
            out = screen.at(iterate, out)
            wrong = max(wrong, int(np.count_nonzero(out[2] & (final > 0))))
        counts.append(np.count_nonzero(out, axis=1))
    row: dict[str, Any] = {
        "problem": problem.name,
        "loss": mkl.loss.registered_as,
        "C": float(mkl.c[0]),
        "kernels": mkl.m,
        "zero": int(np.count_nonzero(final == 0)),
    }
    for gap in GOALS:
        last = crossings[gap]
        row[f"passes to {gap:g}"] = "-" if last is None else steps[last].passes
        row[f"saved to {gap:g}"] = "-" if last is None else _saved(steps, counts, last, mkl.m)
    for gap in GAPS:
        at = crossings[gap]
        row[f"{gap:g}"] = "-" if at is None else " / ".join(map(str, counts[at]))
    row["wrong"] = wrong
    return row


def _saved(steps: list[Iterate], counts: list[Array], last: int, m: int) -> str:
    """Passes that would not have been read, had the proven kernels been left out of everything that followed."""
    read = np.diff([step.passes for step in steps[: last + 1]])
    saved = read @ np.array(counts[:last]).reshape(-1, 3) / m
    return " / ".join(f"{value:.2g}" for value in saved)


def rows_of(problem: Problem, Cs: tuple[float, ...]) -> list[dict[str, Any]]:
    """All lines of one data set."""
    bank = problem.bank()
    everyone = np.arange(bank.n)
    stack = bank.block(everyone, everyone, np.arange(bank.m))
    # a thousandth on top, for the tolerance
    largest = 1.001 * np.array([eigsh(K, 1, tol=1e-3, return_eigenvectors=False)[0] for K in stack])
    out = []
    for loss in LOSSES:
        for C in Cs:
            mkl = MKLProblem(bank, make_loss(loss), make_norm("l1"), problem.y, C)
            out.append(row_of(problem, mkl, stack, largest))
    show(out)
    return out


def screening_main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="one data set, one C, nothing is written")
    options = parser.parse_args()
    pin()
    print(machine())
    names = ("heart",) if options.quick else tuple(UCI)
    problems = [uci(name) for name in names]
    rows = []
    for problem in problems:
        rows += rows_of(problem, CS[1:2] if options.quick else CS)
    targets = Targets()
    targets.at_most("kernels proven out that have weight at the end", sum(row["wrong"] for row in rows), 0)
    if not options.quick:
        sources = "\n".join(f"- {problem.source}" for problem in problems)
        note = SCREENING_NOTE.format(most=MOST, sources=sources, targets=targets.text())
        write_table("screening", rows, "python benchmarks/candidates.py screening", note)


if __name__ == "__main__":
    run_part(main, screening=screening_main)
