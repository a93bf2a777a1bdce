"""Kernels and targets in the form in which an intercept and the weights of samples have been dealt with.

Rows are multiplied by the roots of their weights, and the direction of the intercept is projected out of kernels and
targets.  What remains is a ridge regression with unit noise, ``G = I + sum_j d_j K_j``, whose weights d have the ridge
in them; ``V = G^-1`` leaves the direction u of the intercept as it is, and ``M = V - u u'`` is without it.

M is computed in coordinates of which u is one, so that nothing is subtracted: where one sample has a million times the
weight of the others, its entry of M is a millionth of its entry of V.

Kernels are arrays of NumPy, or of torch on one of its devices; everything below asks no more of them than both have.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from .._numerics.namespace import as_like, cast, namespace, to_numpy
from .._typing import Array

#: of the library that the kernels of a design belong to
Stored = Any


#: bytes of the inverses that are computed together, in memory and on a device
CHUNK, CHUNK_ON_DEVICE = 2**25, 2**32
#: rounds of the power method, and what makes its answer an upper bound in practice
ROUNDS, MARGIN = 12, 1.5


@dataclass(eq=False)
class Design:
    """Kernels of mean diagonal one, ready for the criteria."""

    kernels: Stored  # weighted, projected, scaled, ``(m, n, n)``
    scale: Array  # ``d_j scale_j`` is the weight of the kernel that was given; zero for one that vanishes
    root: Array  # roots of the samples' weights
    direction: Array  # unit vector of the intercept, zero without one
    #: whether inverses are computed in single precision where their condition allows it; coefficients are refined in
    #: double precision either way
    single: bool = False

    def __post_init__(self) -> None:
        self.on_host = isinstance(self.kernels, np.ndarray)
        self.m, self.n = len(self.kernels), int(self.kernels.shape[1])
        self.freedom = self.n - int(np.any(self.direction))  # dimensions that the intercept leaves
        self.pivot = int(np.argmax(self.root))  # sample of the largest weight, the intercept's coordinate
        self.flat = self.kernels.reshape(self.m, -1)  # kernels as rows, for mixing many at once

    @classmethod
    def of(
        cls, kernels: Array, weight: Array | None = None, intercept: bool = True, single: bool = False
    ) -> Design:
        """Prepare kernels ``(m, n, n)``; ``weight`` are positive weights of the samples."""
        m, n, _ = kernels.shape
        root = np.ones(n) if weight is None else np.sqrt(weight)
        direction = root / np.linalg.norm(root) if intercept else np.zeros(n)
        made, scale = np.empty((m, n, n)), np.zeros(m)
        for j in range(m):
            K = root[:, None] * kernels[j] * root
            means = K @ direction
            rest = means - (direction @ means) * direction
            K -= np.multiply.outer(direction, means) + np.multiply.outer(rest, direction)
            size = float(np.trace(K)) / n
            original = float(np.mean(np.diagonal(kernels[j]) * root**2))
            # what is constant up to rounding explains nothing
            scale[j] = 1.0 / size if size > 1e-12 * original else 0.0
            np.multiply(0.5 * scale[j], K + K.T, out=made[j])
        return cls(made, scale, root, direction, single)

    def on(self, device: Any) -> Design:
        """Return the same design with its kernels on a device of torch."""
        import torch

        return replace(self, kernels=torch.as_tensor(self.kernels, dtype=torch.float64, device=device))

    @property
    def chunk(self) -> int:
        """Inverses that are computed together."""
        return max(1, (CHUNK if self.on_host else CHUNK_ON_DEVICE) // (8 * self.n**2))

    def targets(self, Y: Array) -> Array:
        """Return targets ``(n, t)`` weighted and projected like the kernels."""
        rows = self.root[:, None] * Y
        # twice, because the first leaves the rounding of a mean that may be large
        for _ in range(2):
            rows = self.without_direction(rows)
        return np.asarray(rows)

    def without_direction(self, A: Stored) -> Stored:
        """Take the direction of the intercept out of columns ``(n, t)``."""
        u = as_like(self.direction, A)
        return A - u[:, None] * (u @ A)

    def reflected(self, stack: Stored) -> Stored:
        """``H A H`` of symmetric matrices ``(p, n, n)``, with the reflection H that takes the intercept to the pivot.

        ``H = I - v v' / (1 + u_k)``, ``v = u + e_k``: as the pivot k has the largest weight, no digits are lost where
        weights differ by powers of ten.  H is its own inverse.
        """
        v = cast(self.store(self.direction + 0.0), stack.dtype)
        v[self.pivot] += 1.0
        v = v / float(1.0 + self.direction[self.pivot]) ** 0.5
        image = stack @ v
        image = image - 0.5 * (image @ v)[:, None] * v
        stack -= v[:, None] * image[:, None, :]
        stack -= image[:, :, None] * v
        return stack

    def store(self, values: Array) -> Stored:
        """Return an array where the kernels are."""
        return as_like(values, self.kernels)

    @cached_property
    def flat_single(self) -> Stored:
        """Kernels as rows, in single precision."""
        return cast(self.flat, namespace(self.kernels).float32)

    @cached_property
    def largest(self) -> Array:
        """Bounds of the kernels' largest eigenvalues, by the power method."""
        vectors = self.store(np.random.default_rng(0).normal(size=(self.m, self.n, 1)))
        size = np.ones(self.m)
        for _ in range(ROUNDS):
            vectors = self.kernels @ vectors
            size = np.sqrt(np.sum(to_numpy(vectors)[:, :, 0] ** 2, axis=1))
            vectors = vectors / self.store(np.where(size > 0, size, 1.0))[:, None, None]
        return np.asarray(MARGIN * size)

    def times(self, A: Stored) -> Stored:
        """``K_j A`` of all kernels, ``(m, n, columns)``."""
        return (self.kernels.reshape(-1, self.n) @ A).reshape(self.m, self.n, -1)

    def residual(self, Y: Stored, A: Stored, weights: Array, products: Stored) -> Stored:
        """``Y - G A`` of targets that have weights ``(t, m)`` each; ``products`` are ``times(A)``."""
        left = Y - A
        for d, product in zip(self.store(np.ascontiguousarray(weights.T)), products, strict=True):
            left -= d * product
        return left
