"""Problem (2): IndSVM, the squared loss and no trace."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._numerics.spectrum import clip_spectrum
from ...problems.certificate import Array
from ..points import DualPoint, SimilarityPoint
from .full_kernels import SingleKernelProblem

__all__ = ["IndefiniteSVMProblem"]


class IndefiniteSVMProblem(SingleKernelProblem):
    """(2), IndSVM: the squared loss, and kernels of any trace.

    The loss is ``(1/n) |X|_F^2``, so that rho means the same as in (4).
    """

    allowed_kernels = "positive semidefinite kernel"

    def __init__(self, similarities: Array, y: Array, **parameters: Any) -> None:
        super().__init__(similarities, y, **{**parameters, "loss": "squared"})

    def project(self, kernels: Array) -> Array:
        self.decompositions += 1
        return clip_spectrum(kernels[0])[None]

    def bound(self, dual: DualPoint) -> float:
        """Value at the kernel that is best for these coefficients, (3): a minimum over all kernels, hence a bound."""
        beta = self.repair(dual.beta)
        weight = self.rho * self.m / self.n
        slope = self.slope(beta, np.ones(1))
        K = self.project(self.similarities.mean(axis=0)[None] - slope / (2.0 * weight))
        return self.gain(beta) + float(np.sum(slope * K)) + self.rho * float(self.losses(K).sum())

    def _free_bound(self, point: SimilarityPoint) -> DualPoint:
        return DualPoint(np.zeros_like(self.y), np.ones(1))
