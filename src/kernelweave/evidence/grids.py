"""Ridge regressions on whole grids of pairs, and what they say of pairs and objects that are left out, in closed form.

The kernel has one for each side, A and B, and besides ``tau A (x) I`` and ``sigma I (x) B``: with ``A = U s U'`` and
``B = V t V'`` it is diagonal in U and V, with a ridge

    G = W diag(1 / g) W',   1 / g = s t' + tau s 1' + sigma 1 t' + ridge

where ``ridge = tau sigma`` is two-step ridge regression, ``(A + sigma)^-1 Y (B + tau)^-1``.  The block of the inverse
that belongs to one object is diagonal in the basis of the other side, so that leaving it out costs two products; an
intercept that is not penalised adds a matrix of rank one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._typing import Array

#: of the kernels of one side alone, times identity, that are tried
RIDGES = (0.01, 0.1, 1.0, 10.0)


@dataclass(frozen=True)
class GridKernel:
    """Eigenvectors and eigenvalues of a kernel of each side."""

    U: Array
    s: Array
    V: Array
    t: Array

    @classmethod
    def of(cls, A: Array, B: Array) -> GridKernel:
        """Decompose two kernels."""
        (s, U), (t, V) = np.linalg.eigh(A), np.linalg.eigh(B)
        return cls(U, np.maximum(s, 0.0), V, np.maximum(t, 0.0))

    def inverse(self, tau: float, sigma: float, ridge: float) -> Array:
        """Return g."""
        s, t = self.s[:, None], self.t
        return np.asarray(1.0 / (s * t + tau * s + sigma * t + ridge))

    def coefficients(self, Y: Array, g: Array, has_intercept: bool) -> tuple[Array, Array]:
        """Return the coefficients, and what the intercept takes off them, over the root of its sum."""
        U, V = self.U, self.V
        alpha = U @ ((U.T @ Y @ V) * g) @ V.T
        if not has_intercept:
            return alpha, np.zeros_like(alpha)
        ones = U @ (np.multiply.outer(U.sum(axis=0), V.sum(axis=0)) * g) @ V.T
        return alpha - ones * (np.sum(alpha) / np.sum(ones)), ones / np.sqrt(np.sum(ones))

    def left_out(self, Y: Array, g: Array, setting: str, has_intercept: bool = True) -> Array:
        """Return predictions of every pair without it, or without all of its left, or right, object.

        The same kernels and ridge for all, as a fit on the other pairs has them.
        """
        if setting == "right":
            other = GridKernel(self.V, self.t, self.U, self.s)
            return other.left_out(Y.T, g.T, "left", has_intercept).T
        alpha, ones = self.coefficients(Y, g, has_intercept)
        if setting == "pairs":
            return np.asarray(Y - alpha / ((self.U**2) @ g @ (self.V**2).T - ones**2))
        inverse, V = (self.U**2) @ g, self.V
        missed, along = ((X @ V / inverse) @ V.T for X in (alpha, ones))
        share = np.sum(ones * missed, axis=1) / (1.0 - np.sum(ones * along, axis=1))
        return np.asarray(Y - missed - along * share[:, None])

    def both_left_out(self, Y: Array, tau: float, sigma: float) -> Array:
        """Return what two-step ridge regression says of each pair without both of its objects; no intercept."""
        hats = []
        for W, values, ridge in ((self.U, self.s, sigma), (self.V, self.t, tau)):
            H = (W * (values / (values + ridge))) @ W.T
            own = np.diagonal(H).copy()
            np.fill_diagonal(H, 0.0)
            hats.append(H / (1.0 - own)[:, None])
        return np.asarray(hats[0] @ Y @ hats[1].T)

    def best_ridges(self, Y: Array, ridges: Array, setting: str, has_intercept: bool) -> tuple[float, float]:
        """Return tau and sigma of the least squared error in a setting, with the best of some ridges."""
        best, found = np.inf, (1.0, 1.0)
        centred = Y - np.mean(Y) if has_intercept else Y
        for tau in RIDGES:
            for sigma in RIDGES:
                if setting == "both":
                    errors = [np.sum((centred - self.both_left_out(centred, tau, sigma)) ** 2)]
                else:
                    errors = [
                        np.sum(
                            (Y - self.left_out(Y, self.inverse(tau, sigma, ridge), setting, has_intercept))
                            ** 2
                        )
                        for ridge in ridges
                    ]
                if np.min(errors) < best:
                    best, found = float(np.min(errors)), (tau, sigma)
        return found
