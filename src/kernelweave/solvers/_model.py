"""Quadratic models of J and their minimisation over the weights."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from .._numerics.small_qp import solve_qp
from ..norms import Norm
from ..problems import Oracle

Array = NDArray[np.float64]

__all__ = ["SimplexModel", "minimise_smooth_model"]


class SimplexModel:
    """``max over cuts + (z - d)'(A'A + damping I)(z - d) / 2`` on the simplex, minimised on a working set of kernels.

    The cut at the centre is always in the model.  Other cuts enter only where they lie above the model's value at its
    minimiser: near a smooth optimum the curvature already accounts for them, and counting both would shorten the
    Newton steps.
    """

    def __init__(self, centre: Oracle, cuts: list[tuple[float, Array]], damping: float) -> None:
        assert centre.root is not None
        self.d = centre.weights
        self.root = centre.root
        self.gains = np.array([gain for gain, _ in cuts])
        self.slopes = -0.5 * np.array([quad for _, quad in cuts])
        # the value at the centre, from its own coefficients
        self.centre_slope = -0.5 * centre.quad
        self.centre_gain = centre.inner.dual + float(0.5 * centre.quad @ centre.weights)
        self.mean_curvature = float(np.mean(np.sum(self.root**2, axis=0))) + 1e-6 * float(np.mean(centre.quad))
        # a trace of damping makes the minimiser unique where kernels coincide
        self.damping = damping + 1e-9 * self.mean_curvature

    def minimise(self) -> Array:
        """Return weights that minimise the model."""
        rows = np.zeros((1, self.d.size)) + self.centre_slope
        gains = np.array([self.centre_gain])
        included: set[int] = set()
        working = self._first_working_set()
        z = self.d
        for _ in range(30):
            z, multipliers, working = self._on_working_sets(rows, gains, working)
            shift = z - self.d
            bend = 0.5 * float(np.sum((self.root @ shift) ** 2))
            value = float(np.max(gains + rows @ z)) + bend
            heights = self.gains + self.slopes @ z
            scale = 1e-9 * abs(value)
            above = [k for k in np.argsort(-heights) if heights[k] > value + scale and k not in included][:5]
            if not above:
                break
            included.update(above)
            rows = np.vstack([rows, self.slopes[above]])
            gains = np.concatenate([gains, self.gains[above]])
        return z

    def _first_working_set(self) -> NDArray[np.intp]:
        top = np.argsort(self.centre_slope)[:20]
        return np.union1d(np.flatnonzero(self.d), top)

    def _on_working_sets(
        self, rows: Array, gains: Array, working: NDArray[np.intp]
    ) -> tuple[Array, Array, NDArray[np.intp]]:
        """Solve on a working set, add the kernels that would lower the model, repeat."""
        z = self.d
        for _ in range(50):
            z, multipliers = self._solve(rows, gains, working)
            shift = z - self.d
            gradient = rows.T @ multipliers + self.root.T @ (self.root @ shift) + self.damping * shift
            price = float(gradient @ z)  # the multiplier of the sum, as z'(gradient - price) = 0
            reduced = gradient - price
            reduced[working] = 0.0
            slack = 1e-9 * float(np.max(np.abs(self.centre_slope)))
            entering = np.flatnonzero(reduced < -slack)
            if entering.size == 0:
                return z, multipliers, working
            best = entering[np.argsort(reduced[entering])[:40]]
            # kernels that stayed at zero leave, so that the set stays small
            working = np.union1d(working[(z[working] > 0) | (self.d[working] > 0)], best)
        return z, multipliers, working

    def _solve(self, rows: Array, gains: Array, working: NDArray[np.intp]) -> tuple[Array, Array]:
        """QP in the weights of the working set, and the height t of the cuts where there are several."""
        w, k = working.size, gains.size
        d = self.d[working]
        root = self.root[:, working]
        scale = float(np.max(np.abs(self.centre_slope)))  # dimensionless, for the interior point method's sake
        hessian = (root.T @ root + self.damping * np.eye(w)) / scale
        # weights outside the working set are zero in z but may not be in d: none are, by construction
        P = np.zeros((w + 1, w + 1))
        P[:w, :w] = hessian
        q = np.zeros(w + 1)
        q[:w] = -hessian @ d
        q[w] = 1.0
        G = np.zeros((w + k, w + 1))
        G[:w, :w] = -np.eye(w)
        G[w:, :w] = rows[:, working] / scale
        G[w:, w] = -1.0
        base = float(gains[0])
        h = np.concatenate([np.zeros(w), (base - gains) / scale])
        A = np.zeros((1, w + 1))
        A[0, :w] = 1.0
        x, multipliers = solve_qp(P, q, G, h, A, np.ones(1), tol=1e-11)
        z = np.zeros(self.d.size)
        kept = np.where(x[:w] > 1e-8, x[:w], 0.0)
        z[working] = kept / np.sum(kept)
        cut = multipliers[w:]
        return z, cut / max(float(np.sum(cut)), 1e-300)


def minimise_smooth_model(norm: Norm, quad: Array, root: Array, d: Array) -> Array:
    """Minimise ``-s'(z - d)/2 + |A (z - d)|^2 / 2 + penalty(z)`` over the weights of a norm whose maximiser is unique.

    Dualising the quadratic leaves the norm's own conjugate:
    ``max over w of -|w|^2/2 - w'A d - conjugate(s - 2 A'w)``, and the minimiser is ``weights(s - 2 A'w)``.
    """
    if root.shape[0] == 0:
        return norm.weights(quad)
    # w lives in the range of A: the thinner of the two sides is used
    offset = root @ d

    def negative(w: Array) -> tuple[float, Array]:
        tilted = quad - 2.0 * (root.T @ w)
        z = norm.weights(tilted)
        value = 0.5 * float(w @ w) + float(w @ offset) + norm.conjugate(tilted)
        return value, w + offset - root @ z

    found = minimize(negative, np.zeros(root.shape[0]), jac=True, method="L-BFGS-B",
                     options={"maxiter": 500, "maxcor": 30, "ftol": 1e-15, "gtol": 1e-12})  # fmt: skip
    return norm.weights(quad - 2.0 * (root.T @ found.x))
