"""A dense convex QP of a few hundred variables by a primal-dual interior point method."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve

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
    rows, equalities = h.size, b.size
    # multipliers start at one: the objective is put in units in which that is a fair guess
    unit = float(np.max(np.abs(q), initial=0.0)) or 1.0
    P, q = P / unit, q / unit
    x = np.linalg.lstsq(A, b, rcond=None)[0]
    slack = np.maximum(h - G @ x, 1.0)
    z = np.ones(rows)
    y = np.zeros(equalities)
    scale = 1.0 + max(float(np.max(np.abs(q), initial=0.0)), float(np.max(np.abs(h), initial=0.0)))
    best, best_error, idle = (x, z), np.inf, 0
    for _ in range(max_iter):
        dual_residual = P @ x + q + G.T @ z + A.T @ y
        primal_residual = G @ x + slack - h
        equality_residual = A @ x - b
        mu = float(slack @ z) / rows
        error = max(
            float(np.max(np.abs(dual_residual))),
            float(np.max(np.abs(primal_residual))),
            float(np.max(np.abs(equality_residual), initial=0.0)),
            mu,
        )
        if not np.isfinite(error):
            break
        if error < 0.9 * best_error:
            best, best_error, idle = (x, z), error, 0
        else:
            idle += 1
        if error <= tol * scale or (
            idle >= 3 and best_error <= 1e-6 * scale
        ):  # idle: rounding has taken over
            break
        ratio = z / slack
        newton = _Eliminated(P + (G.T * ratio) @ G, A)
        if not newton.sound:
            break

        def direction(
            complementarity: np.ndarray,
            ratio: np.ndarray = ratio,
            newton: _Eliminated = newton,
            slack: np.ndarray = slack,
            residuals: tuple[np.ndarray, ...] = (dual_residual, primal_residual, equality_residual),
        ) -> tuple[np.ndarray, ...]:
            dual, primal, equality = residuals
            rhs = -dual - G.T @ (ratio * primal - complementarity / slack)
            dx, dy = newton.solve(rhs, -equality)
            ds = -primal - G @ dx
            return dx, dy, ds, -complementarity / slack - ratio * ds

        _, _, ds, dz = direction(slack * z)
        length = min(_longest(slack, ds), _longest(z, dz))
        predicted = float((slack + length * ds) @ (z + length * dz)) / rows
        centring = (predicted / mu) ** 3 * mu
        dx, dy, ds, dz = direction(slack * z + ds * dz - centring)
        length = 0.995 * min(_longest(slack, ds), _longest(z, dz))
        length = min(length, 1.0)
        x, y, slack, z = x + length * dx, y + length * dy, slack + length * ds, z + length * dz
    return best[0], unit * best[1]


class _Eliminated:
    """Solves ``[[M, A'], [A, 0]]``: a Cholesky factorisation of M scaled to unit diagonal, then the small rest.

    Near the solution the diagonal of M spans twenty orders of magnitude; the scaling is what keeps digits.
    """

    def __init__(self, M: np.ndarray, A: np.ndarray) -> None:
        self.A = A
        self.scale = 1.0 / np.sqrt(np.maximum(np.diagonal(M), 1e-300))
        scaled = M * self.scale[:, None] * self.scale[None, :]
        scaled.flat[:: M.shape[0] + 1] += 1e-13
        try:
            self.factor = cho_factor(scaled, lower=True, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:
            self.sound = False
            return
        self.sound = True
        self.lifted = self._inverse(A.T)
        self.small = A @ self.lifted

    def _inverse(self, rhs: np.ndarray) -> np.ndarray:
        scale = self.scale if rhs.ndim == 1 else self.scale[:, None]
        return scale * cho_solve(self.factor, scale * rhs, check_finite=False)

    def solve(self, top: np.ndarray, bottom: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        first = self._inverse(top)
        y = np.linalg.solve(self.small, self.A @ first - bottom)
        return first - self.lifted @ y, y


def _longest(value: np.ndarray, change: np.ndarray) -> float:
    """Largest step <= 1/0.995 that keeps ``value + step * change`` non-negative."""
    falling = change < 0
    if not np.any(falling):
        return 1.0 / 0.995
    return min(1.0 / 0.995, float(np.min(-value[falling] / change[falling])))
