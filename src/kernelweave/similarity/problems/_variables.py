"""Where the kernels of a problem live: positive semi-definite matrices of one trace, and how to move among them."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ..._numerics.projections import project_simplex
from ...problems.certificate import Array
from ..traces import entropic_matrix, project_trace

__all__ = ["FLOOR", "KernelVariables"]

#: share of the identity in every kernel of (6) and (7): F is not Lipschitz where a gamma may vanish
FLOOR = 1e-6


class KernelVariables:
    """One kernel for all similarities, or one per similarity, as symmetric matrices.

    What an objective and a solver do with kernels goes through these methods alone, so that a problem whose kernels are
    something else (eigenvalues, in (7)) redefines them and nothing more.

    Parameters
    ----------
    similarities : array of shape (m, n, n), or (n, n) for one
    trace : float, optional
        tau, n by default.
    """

    #: one kernel with all the losses, or one per similarity
    shared: ClassVar[bool] = False
    #: the kernels that are minimised over, as they are read behind "no"
    allowed_kernels: ClassVar[str]

    def __init__(self, similarities: Array, trace: float | None = None) -> None:
        stack = np.asarray(similarities, dtype=float)
        stack = stack[None] if stack.ndim == 2 else stack
        self.similarities = 0.5 * (stack + stack.transpose(0, 2, 1))
        self.trace = float(self.n if trace is None else trace)
        #: eigendecompositions so far
        self.decompositions = 0

    @property
    def n(self) -> int:
        """Number of samples."""
        return int(self.similarities.shape[1])

    @property
    def m(self) -> int:
        """Number of similarities."""
        return int(self.similarities.shape[0])

    @property
    def k(self) -> int:
        """Number of kernels."""
        return 1 if self.shared else self.m

    @property
    def targets(self) -> Array:
        """What the losses measure the distance to."""
        return self.similarities

    def residuals(self, kernels: Array) -> Array:
        """``K - S_i``, for every i."""
        return kernels - self.targets

    def pull(self, multipliers: Array) -> Array:
        """Add up what the multipliers ask of every kernel."""
        return multipliers.sum(axis=0, keepdims=True) if self.shared else multipliers

    def copies(self, weights: Array) -> Array:
        """Sum of one weight a similarity over the similarities of every kernel, to be multiplied with kernels."""
        total = np.array([weights.sum()]) if self.shared else weights
        return total.reshape(-1, *[1] * (self.targets.ndim - 1))

    def products(self, kernels: Array, beta: Array) -> Array:
        """``K_i beta``."""
        return np.stack([K @ beta for K in kernels])

    def mixed(self, kernels: Array, weights: Array) -> Array:
        """Return the matrix ``sum_i weights_i K_i``, which an SVM sees."""
        return np.tensordot(weights, kernels, axes=1)

    def matrices(self, kernels: Array) -> Array:
        """Return the kernels as ``(k, n, n)``."""
        return kernels

    def slope(self, beta: Array, shares: Array) -> Array:
        """Derivative of Omega in the kernels, ``-beta beta' / (2 gamma_i)``."""
        columns = beta.reshape(self.n, -1)
        outer: Array = -0.5 * (columns @ columns.T)
        return outer / shares[:, None, None]

    def extremes(self, gradient: Array) -> tuple[Array, Array]:
        """Smallest and largest eigenvalue of every gradient."""
        self.decompositions += self.k
        values: Array = np.asarray(np.linalg.eigvalsh(gradient), dtype=np.float64)
        return values[:, 0], values[:, -1]

    def project(self, kernels: Array) -> Array:
        """Nearest feasible kernels."""
        self.decompositions += self.k
        return np.stack([project_trace(K, self.trace) for K in kernels])

    def from_logs(self, logs: Array) -> Array:
        """``tau softmax(B_i)``, with a floor where there are several kernels."""
        self.decompositions += self.k
        kernels = np.stack([entropic_matrix(B, self.trace) for B in logs])
        if not self.shared:
            kernels *= 1.0 - FLOOR
            kernels += FLOOR * self.trace / self.n * np.eye(self.n)
        return kernels

    def first_logs(self, uniform: bool = False) -> Array:
        """``log(.95 Proj(mean S) + .05 (tau/n) I)``, or of the identity."""
        if uniform:
            return np.zeros((self.k, self.n, self.n))
        logs = []
        for S in self.pull(self.targets) / self.copies(np.ones(self.m)):
            values, vectors = np.linalg.eigh(S)
            start = 0.95 * project_simplex(values, self.trace) + 0.05 * self.trace / self.n
            logs.append((vectors * np.log(start)) @ vectors.T)
        self.decompositions += self.k
        return np.stack(logs)
