"""The inner problem of the multinomial loss: one kernel matrix, Newton's method on all classes together.

    min over B, b   tr(B' K B) / 2 + sum_i c_i [log sum_y exp f_iy - f_i,own],      f = K B + b

With p the probabilities, ``W_i = c_i (diag(p_i) - p_i p_i') = R_i R_i'`` and
``R_i = sqrt(c_i) (diag(sqrt p_i) - p_i sqrt(p_i)')``, a Newton step is ``dB = -(B + g) + R z``, g the gradient of the
loss in f, and

    (I + R'K R) z = R'K (B + g)    with    sum_i (R z)_i = 0  where there is an intercept,

n k unknowns, positive definite with eigenvalues from 1 on.  It is solved by conjugate gradients on the subspace,
directly where it is small; the preconditioner is ``I + S K S`` for every class alike, ``s_i^2`` the mean eigenvalue of
W_i, a single Cholesky factor.
The same system gives the second derivatives of J in the kernel weights.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from .._numerics.deadline import out_of_time
from .._numerics.softmax import probabilities
from .certificate import Array
from .fixed import FixedSolution, Inner
from .newton import System, descend

__all__ = ["SoftmaxSystem", "solve_softmax"]

#: conjugate gradient steps at most, and unknowns up to which none are taken
MOST, DIRECT = 1000, 400
#: relative residuals of the first directions and of the most precise ones
FIRST, FINEST = 1e-2, 1e-10
#: bounds times the mean diagonal up to which a problem is solved at once, the factor between stages, the smallest one
#: that is tried, and their precision
AT_ONCE, STAGE, SMALLEST_STAGE, ROUGH = 10.0, 10.0, 1.05, 0.1


class SoftmaxSystem:
    """``I + R'K R`` at probabilities p, on ``sum_i (R z)_i = 0`` where there is an intercept."""

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
            self.normals = self.transposed(each)
            self.behind = self._solve(self.normals)
            self.small = np.linalg.pinv(
                np.einsum("aik,bik->ab", self.normals, self.behind), rcond=1e-12, hermitian=True
            )

    def times(self, z: Array) -> Array:
        """``R z``; leading axes are columns."""
        along = np.sum(self.root * z, axis=-1, keepdims=True)
        return self.size * (self.root * z - self.p * along)

    def transposed(self, v: Array) -> Array:
        """``R'v``."""
        along = np.sum(self.p * v, axis=-1, keepdims=True)
        return self.size * self.root * (v - along)

    def _product(self, z: Array) -> Array:
        Rz = self.times(z)
        flat = np.moveaxis(Rz, -2, 0).reshape(self.K.shape[0], -1)
        KRz = np.moveaxis((self.K @ flat).reshape(Rz.shape[-2], *Rz.shape[:-2], Rz.shape[-1]), 0, -2)
        return z + self.transposed(KRz)

    def _solve(self, r: Array) -> Array:
        flat = np.moveaxis(r, -2, 0).reshape(self.K.shape[0], -1)
        found = cho_solve(self.factor, flat, check_finite=False)
        return np.moveaxis(found.reshape(r.shape[-2], *r.shape[:-2], r.shape[-1]), 0, -2)

    def _precondition(self, r: Array) -> Array:
        """The preconditioner on the subspace."""
        x = self._solve(r)
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
            q = self._product(d)
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

    Far from the solution most probabilities are 0 or 1, and the curvature is lost.  Where bounds are large, and
    wherever Newton's method gets nowhere, they are raised in stages, smaller ones as they turn out to be needed.
    """
    high, size = float(np.max(inner.c)), float(np.mean(np.diagonal(inner.K)))
    reached = min(high, AT_ONCE / size) if size > 0 else high
    best: FixedSolution | None = None
    if start is not None or reached >= high:
        best = _newton(inner, target, start)
        if best.relative_gap <= max(target, ROUGH):
            return best
    stage = _newton(replace(inner, c=np.minimum(inner.c, reached)), ROUGH, None)
    factor = STAGE
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
    beta = np.zeros(inner.y.shape) if start is None else inner.project(start.beta)
    decision = inner.K @ beta if np.any(beta) else np.zeros(inner.y.shape)
    return descend(inner, _Classes(inner), beta, decision, target)


class _Classes(System):
    """Newton's directions by conjugate gradients, as precise as they have to be."""

    def __init__(self, inner: Inner) -> None:
        self.inner = inner
        self.bound = np.ascontiguousarray(inner.c[:, 0])
        self.precise = FIRST

    def ready(self) -> bool:
        return not out_of_time()

    def direction(self, beta: Array, f: Array, gradient: Array) -> Array:
        rest = beta + gradient
        system = SoftmaxSystem(self.inner.K, probabilities(f), self.bound, self.inner.fit_intercept)
        return system.times(system.solve(system.transposed(self.inner.K @ rest), self.precise)) - rest

    def sharpen(self) -> bool:
        if self.precise <= FINEST:
            return False
        self.precise = FINEST  # an imprecise direction: once more, as exactly as possible
        return True

    def stepped(self, length: float, relative_gap: float) -> None:
        # a short step may be the fault of an imprecise direction
        precise = 0.01 * self.precise if length < 0.5 else self.precise
        self.precise = max(min(precise, max(0.1 * relative_gap, FINEST)), 0.01 * FINEST)
