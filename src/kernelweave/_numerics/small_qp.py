"""A dense convex QP of a few hundred variables by a primal-dual interior point method."""

from __future__ import annotations

import numpy as np

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

    Mehrotra's predictor and corrector with one factorisation an iteration.

    Returns
    -------
    x : array
        Solution.
    z : array
        Multipliers of the inequalities.
    """
    n, rows, equalities = q.size, h.size, b.size
    x = np.linalg.lstsq(A, b, rcond=None)[0] if equalities else np.zeros(n)
    slack = np.maximum(h - G @ x, 1.0)
    z = np.ones(rows)
    y = np.zeros(equalities)
    scale = 1.0 + max(float(np.max(np.abs(q), initial=0.0)), float(np.max(np.abs(h), initial=0.0)))
    identity = 1e-14 * scale * np.eye(n)
    best, best_error = (x, z), np.inf
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
        if error < best_error:
            best, best_error = (x, z), error
        if error <= tol * scale:
            break
        ratio = z / slack
        matrix = np.zeros((n + equalities, n + equalities))
        matrix[:n, :n] = P + (G.T * ratio) @ G + identity
        matrix[:n, n:] = A.T
        matrix[n:, :n] = A
        try:
            inverse = np.linalg.inv(matrix)
        except np.linalg.LinAlgError:
            break

        def direction(
            complementarity: np.ndarray,
            ratio: np.ndarray = ratio,
            inverse: np.ndarray = inverse,
            slack: np.ndarray = slack,
            residuals: tuple[np.ndarray, ...] = (dual_residual, primal_residual, equality_residual),
        ) -> tuple[np.ndarray, ...]:
            dual, primal, equality = residuals
            rhs = -dual - G.T @ (ratio * primal - complementarity / slack)
            solved = inverse @ np.concatenate([rhs, -equality])
            dx = solved[:n]
            ds = -primal - G @ dx
            return dx, solved[n:], ds, -complementarity / slack - ratio * ds

        _, _, ds, dz = direction(slack * z)
        length = min(_longest(slack, ds), _longest(z, dz))
        predicted = float((slack + length * ds) @ (z + length * dz)) / rows
        centring = (predicted / mu) ** 3 * mu
        dx, dy, ds, dz = direction(slack * z + ds * dz - centring)
        length = 0.995 * min(_longest(slack, ds), _longest(z, dz))
        length = min(length, 1.0)
        x, y, slack, z = x + length * dx, y + length * dy, slack + length * ds, z + length * dz
    return best


def _longest(value: np.ndarray, change: np.ndarray) -> float:
    """Largest step <= 1/0.995 that keeps ``value + step * change`` non-negative."""
    falling = change < 0
    if not np.any(falling):
        return 1.0 / 0.995
    return min(1.0 / 0.995, float(np.min(-value[falling] / change[falling])))
