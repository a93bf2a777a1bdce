"""A dual augmented Lagrangian with an active set of kernels, as in SpicyMKL.

After Suzuki and Tomioka, "SpicyMKL: a fast algorithm for multiple kernel learning with thousands of kernels" (2011).
Proximal minimisation of the primal,

    f <- argmin  Omega(f)^2 / 2 + C sum_i l(y_i, f(x_i) + b) + sum_j |f_j - g_j|^2 / (2 gamma),    g the last f,

through its dual in one coefficient vector beta.  With ``v_j = alpha_j + gamma beta`` (alpha_j the coefficients of g_j),
``N_j = |v_j|`` in the norm of K_j and x the proximal point of N, the dual is the loss's part minus
``(|N|^2 - |x - N|^2 - gamma (sum x)^2) / (2 gamma)``, smooth in beta, and the next f_j is ``x_j / N_j`` of v_j: kernels
whose x_j is zero drop out of gradient and Hessian.  SpicyMKL's penalty is ``sum_j |f_j|``, a soft threshold of a given
height; here it is half its square, as everywhere in this package, and the height comes with the proximal point.  Its
losses are smooth; for the hinge each Newton step is a QP with the box, which the package's SMO engine solves.

A prototype: it is measured in ``candidates.py`` and is no part of the package.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelweave._numerics.smo import solve_box_qp
from kernelweave.problems import MKLProblem, Point, solve_fixed
from kernelweave.solvers import Solver

Array = np.ndarray


@dataclass
class _State:
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

    def init(self, problem: MKLProblem, start: Point | None, tol: float) -> _State:
        """Start from the SVM on equal weights, like the other solvers."""
        weights = problem.norm.start(problem.m)
        mean = problem.bank.combine(weights)
        beta = solve_fixed(mean, problem.loss, problem.y, problem.c, problem.fit_intercept, 1e-2).beta
        products = problem.bank.apply(beta)
        quad = products @ beta
        anchors = weights[:, None] * products
        state = _State(beta, products, anchors, weights**2 * quad, self.gamma, weights * np.sqrt(quad))
        self.norm, self.tol = problem.norm, tol
        return state

    def _proximal(self, state: _State, beta: Array, products: Array) -> tuple[float, Array, Array]:
        """Value of the smooth part of the dual, N and x."""
        g = state.gamma
        # |alpha_j + gamma beta|^2; anchors are K_j alpha_j, so the cross term is a plain product
        square = state.forms + 2.0 * g * (state.anchors @ beta) + g * g * (products @ beta)
        N = np.sqrt(np.maximum(square, 0.0))
        x = self.norm.prox(N, g)
        charged = 0.5 * float(np.sum((x - N) ** 2)) + g * self.norm.half_square(x)
        return (0.5 * float(np.sum(square)) - charged) / g, N, x

    def step(self, problem: MKLProblem, state: _State) -> _State:
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

    def _line_search(self, state: _State, direction: Array, along: Array, linear: float) -> float:
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

    def _next(self, state: _State, shrink: Array, x: Array) -> None:
        """Move the anchor to the proximal point."""
        state.anchors = shrink[:, None] * (state.anchors + state.gamma * state.products)
        state.forms = x**2
        state.gamma *= self.growth
        state.inner = 0

    def point(self, state: _State) -> Point:
        """One coefficient vector for all kernels, weights from the block norms."""
        weights = self.norm.weights_of_blocks(state.blocks)
        return Point(state.beta, weights, state.quad, weights @ state.products)
