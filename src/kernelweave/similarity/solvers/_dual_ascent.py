"""The squared loss: accelerated ascent on the coefficients, with the kernel in closed form.

``sum_i |K - S_i|^2 = m |K - mean S|^2 + const``, so for given coefficients the best kernel is a projection,

    K*(beta) = Proj(mean S + beta beta' / (4 r)),      r = rho m / n

(3) of [KTBB10] with a trace, and ``h(beta) = 1'a - beta'K*beta / 2 + rho sum L(K* - S_i)`` is concave with the gradient
``y - K* beta``: FISTA with backtracking, one decomposition per trial and no SVM but those for the upper bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._numerics.deadline import check_time
from ...problems import FixedSolution
from ..problems import DualPoint, SimilarityPoint, SimilarityProblem

Array = NDArray[np.float64]

__all__ = ["AscentState", "ascend", "begin", "point_of"]


@dataclass
class AscentState:
    """Coefficients, the point that momentum has carried on to, and the kernel and value at the coefficients."""

    beta: Array
    ahead: Array
    momentum: float
    lipschitz: float
    kernel: Array
    value: float
    inner: FixedSolution
    target: float
    finished: bool = False


def begin(problem: Any, start: Any, tol: float) -> AscentState:
    """Start from the SVM on the projected mean."""
    mean = problem.similarities.mean(axis=0)
    K = problem.project(mean[None])
    target = min(1e-3, max(0.1 * tol, 1e-6))
    inner = problem.svm(K, np.ones(1), target)
    beta = problem.repair(inner.beta if start is None else start.beta)
    kernel, value = _best_kernel(problem, beta)
    top = float(np.abs(np.linalg.eigvalsh(K[0])[-1])) + 1e-12
    inner = problem.svm(kernel, np.ones(1), target, inner)
    return AscentState(beta, beta, 1.0, top, kernel, value, inner, target)


def ascend(problem: SimilarityProblem, state: AscentState) -> AscentState:
    """One step of FISTA, begun again where the momentum leads downhill."""
    ahead, momentum = state.ahead, state.momentum
    while True:
        kernel, here = (
            _best_kernel(problem, ahead) if ahead is not state.beta else (state.kernel, state.value)
        )
        gradient = problem.y - kernel[0] @ ahead
        lipschitz = 0.7 * state.lipschitz
        while True:
            beta = problem.repair(ahead + gradient / lipschitz)
            moved = beta - ahead
            kernel, value = _best_kernel(problem, beta)
            promised = here + float(np.sum(gradient * moved)) - 0.5 * lipschitz * float(np.sum(moved**2))
            if value >= promised - 1e-12 * abs(here) or lipschitz > 1e12 * state.lipschitz:
                break
            lipschitz *= 2.0
        if value >= state.value or ahead is state.beta:
            break
        ahead, momentum = state.beta, 1.0
    following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
    carried = beta + (momentum - 1.0) / following * (beta - state.beta)
    inner = problem.svm(kernel, np.ones(1), state.target, state.inner)
    still = float(np.max(np.abs(beta - state.beta))) <= 1e-14 * float(np.max(np.abs(beta), initial=1e-300))
    return AscentState(beta, carried, following, lipschitz, kernel, value, inner, state.target, still)


def point_of(state: AscentState) -> SimilarityPoint:
    """Return the best kernel for the coefficients, with its SVM, and the coefficients as the dual point."""
    dual = DualPoint(state.beta, np.ones(1), kernels=state.kernel)
    return SimilarityPoint(state.inner.beta, np.ones(1), kernels=state.kernel, duals=(dual,))


def _best_kernel(problem: SimilarityProblem, beta: Array) -> tuple[Array, float]:
    """``K*`` and ``h`` at coefficients."""
    check_time()
    problem.passes += 1.0
    slope = problem.slope(beta, np.ones(1))
    mean = problem.similarities.mean(axis=0)[None]
    K = problem.project(mean - slope * (problem.n / (2.0 * problem.rho * problem.m)))
    value = float(np.sum(problem.y * beta)) + float(np.sum(slope * K))
    return K, value + problem.rho * float(problem.losses(K).sum())
