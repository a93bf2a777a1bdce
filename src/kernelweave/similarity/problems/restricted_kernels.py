"""Problem (7): kernels on the eigenvectors of the similarities."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._numerics.projections import project_simplex
from ...problems.certificate import Array
from ..traces import entropic_vector
from ._base import SimilarityProblem
from ._variables import FLOOR

__all__ = ["RestrictedKernelsProblem"]


class RestrictedKernelsProblem(SimilarityProblem):
    """(7), summed to n: kernels are the eigenvalues mu_i on the eigenvectors of S_i.

    Losses of the eigenvalues are losses of vectors; the others need the matrices, but no decomposition.
    """

    allowed_kernels = "kernels of trace n on the eigenvectors of the similarities"

    def __init__(self, similarities: Array, y: Array, **parameters: Any) -> None:
        super().__init__(similarities, y, **parameters)
        self.decompositions += self.m
        spectra = [np.linalg.eigh(S) for S in self.similarities]
        self.values = np.stack([values for values, _ in spectra])
        self.vectors = np.stack([vectors for _, vectors in spectra])

    @property
    def targets(self) -> Array:
        """Eigenvalues of the similarities, or the similarities for losses of the entries."""
        return self.values if self.loss.spectral else self.similarities

    def residuals(self, kernels: Array) -> Array:
        """``mu_i - lambda_i``, or the matrices for losses of the entries."""
        return (kernels if self.loss.spectral else self.matrices(kernels)) - self.targets

    def pull(self, multipliers: Array) -> Array:
        """Return the part of the multipliers on the eigenvectors."""
        if multipliers.ndim == 2:
            return multipliers
        return np.stack([np.sum(V * (Z @ V), axis=0) for V, Z in zip(self.vectors, multipliers, strict=True)])

    def copies(self, weights: Array) -> Array:
        return weights[:, None]

    def products(self, kernels: Array, beta: Array) -> Array:
        columns = beta.reshape(self.n, -1)
        products = [V @ (mu[:, None] * (V.T @ columns)) for V, mu in zip(self.vectors, kernels, strict=True)]
        return np.stack([product.reshape(beta.shape) for product in products])

    def mixed(self, kernels: Array, weights: Array) -> Array:
        total = np.zeros((self.n, self.n))
        for V, mu, w in zip(self.vectors, kernels, weights, strict=True):
            root = V * np.sqrt(w * mu)
            total += root @ root.T
        return total

    def matrices(self, kernels: Array) -> Array:
        return np.stack([(V * mu) @ V.T for V, mu in zip(self.vectors, kernels, strict=True)])

    def slope(self, beta: Array, shares: Array) -> Array:
        columns = beta.reshape(self.n, -1)
        squares = np.stack([np.sum((V.T @ columns) ** 2, axis=1) for V in self.vectors])
        return -0.5 * squares / shares[:, None]

    def extremes(self, gradient: Array) -> tuple[Array, Array]:
        return gradient.min(axis=1), gradient.max(axis=1)

    def project(self, kernels: Array) -> Array:
        return np.stack([project_simplex(mu, self.trace) for mu in kernels])

    def from_logs(self, logs: Array) -> Array:
        kernels = np.stack([entropic_vector(B, self.trace) for B in logs])
        return (1.0 - FLOOR) * kernels + FLOOR * self.trace / self.n

    def first_logs(self, uniform: bool = False) -> Array:
        if uniform:
            return np.zeros((self.m, self.n))
        return np.log(0.95 * self.project(self.values) + 0.05 * self.trace / self.n)
