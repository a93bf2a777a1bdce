"""A dense convex QP of a few hundred variables by a primal-dual interior point method."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

__all__ = ["solve_qp"]


def solve_qp(
    P: np.ndarray,
    q: np.ndarray,
    G: np.ndarray,
    h: np.ndarray,
    A: np.ndarray,
    b: np.ndarray,
    tol: float = 1e-10,
    max_iter: int = 60,
) -> tuple[np.ndarray, np.ndarray]:
    """Minimise ``x'Px/2 + q'x`` subject to ``G x <= h`` and ``A x = b``.

    Mehrotra's predictor and corrector with one factorisation per iteration.

    Returns
    -------
    x : array
        Solution.
    z : array
        Multipliers of the inequalities.
    """
    # multipliers start at one: the objective is put in units in which that is a fair guess
    unit = float(np.max(np.abs(q), initial=0.0)) or 1.0
    problem = _Problem(P / unit, q / unit, G, h, A, b)
    x = np.linalg.lstsq(A, b, rcond=None)[0]
    here = _Iterate(x, np.zeros(b.size), np.maximum(h - G @ x, 1.0), np.ones(h.size))
    scale = 1.0 + max(float(np.max(np.abs(problem.q), initial=0.0)), float(np.max(np.abs(h), initial=0.0)))
    best, best_error, idle = here, np.inf, 0
    for _ in range(max_iter):
        residuals = problem.residuals(here)
        mu = float(here.slack @ here.z) / h.size
        error = max(*(float(np.max(np.abs(residual))) for residual in residuals if residual.size), mu)
        if not np.isfinite(error):
            break
        if error < 0.9 * best_error:
            best, best_error, idle = here, error, 0
        else:
            idle += 1
        rounding = idle >= 3 and best_error <= 1e-6 * scale  # has taken over
        if error <= tol * scale or rounding:
            break
        newton = _Eliminated(problem.P + (G.T * (here.z / here.slack)) @ G, A)
        if not newton.sound:
            break
        here = _step(problem, here, residuals, newton, mu)
    return best.x, unit * best.z


class _Iterate(NamedTuple):
    """Variables, multipliers of the equalities, slacks of the inequalities and their multipliers."""

    x: np.ndarray
    y: np.ndarray
    slack: np.ndarray
    z: np.ndarray


class _Residuals(NamedTuple):
    """What is left of the conditions: stationarity, inequalities with their slacks, equalities."""

    dual: np.ndarray
    primal: np.ndarray
    equality: np.ndarray


class _Problem(NamedTuple):
    P: np.ndarray
    q: np.ndarray
    G: np.ndarray
    h: np.ndarray
    A: np.ndarray
    b: np.ndarray

    def residuals(self, at: _Iterate) -> _Residuals:
        """Return what is left of the optimality conditions, complementarity aside."""
        dual = self.P @ at.x + self.q + self.G.T @ at.z + self.A.T @ at.y
        return _Residuals(dual, self.G @ at.x + at.slack - self.h, self.A @ at.x - self.b)


def _step(problem: _Problem, at: _Iterate, left: _Residuals, newton: _Eliminated, mu: float) -> _Iterate:
    """Predict, correct, and go almost as far as slacks and multipliers stay positive."""
    G, ratio = problem.G, at.z / at.slack

    def direction(complementarity: np.ndarray) -> _Iterate:
        rhs = -left.dual - G.T @ (ratio * left.primal - complementarity / at.slack)
        dx, dy = newton.solve(rhs, -left.equality)
        ds = -left.primal - G @ dx
        return _Iterate(dx, dy, ds, -complementarity / at.slack - ratio * ds)

    def longest(move: _Iterate) -> float:
        """Largest step <= 1/0.995 that keeps slacks and multipliers non-negative."""
        fastest = max(float(np.max(-move.slack / at.slack)), float(np.max(-move.z / at.z)))
        return 1.0 / max(fastest, 0.995)

    move = direction(at.slack * at.z)
    length = longest(move)
    predicted = float((at.slack + length * move.slack) @ (at.z + length * move.z)) / at.z.size
    centring = (predicted / mu) ** 3 * mu
    move = direction(at.slack * at.z + move.slack * move.z - centring)
    length = min(0.995 * longest(move), 1.0)
    return _Iterate(*(value + length * change for value, change in zip(at, move, strict=True)))


class _Eliminated:
    """Solves ``[[M, A'], [A, 0]]``: a Cholesky factorisation of M scaled to unit diagonal, then the small rest.

    Near the solution the diagonal of M spans twenty orders of magnitude; the scaling is what keeps digits.
    """

    def __init__(self, M: np.ndarray, A: np.ndarray) -> None:
        self.A = A
        self.scale = 1.0 / np.sqrt(np.maximum(np.diagonal(M), 1e-300))
        scaled = M * np.multiply.outer(self.scale, self.scale)
        scaled.flat[:: M.shape[0] + 1] += 1e-13
        # LAPACK itself: what SciPy's functions check on the way takes longer than so small a matrix
        self.factor, failed = dpotrf(scaled.T, lower=1, clean=0, overwrite_a=1)
        self.sound = failed == 0
        if self.sound:
            self.lifted = self._inverse(A.T)
            self.small = A @ self.lifted

    def _inverse(self, rhs: np.ndarray) -> np.ndarray:
        scale = self.scale if rhs.ndim == 1 else self.scale[:, None]
        return scale * dpotrs(self.factor, scale * rhs, lower=1)[0]

    def solve(self, top: np.ndarray, bottom: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        first = self._inverse(top)
        left = self.A @ first - bottom
        y = left / self.small[0] if left.size == 1 else np.linalg.solve(self.small, left)
        return first - self.lifted @ y, y
