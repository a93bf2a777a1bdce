"""How far a kernel may be from a similarity, ``L(K - S)``, and at what price.

The weights keep rho free of dimension: with matrices of trace n, residuals of the size of the matrices cost about the
same under every loss, whatever n is.  On the *spectrum* (REKL) ``X`` is the vector of differences of eigenvalues; the
formulas of the losses that depend on eigenvalues alone are the same there.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..._components import Component, Registry

Array = NDArray[np.float64]

__all__ = ["Array", "SimilarityLoss", "similarity_losses"]


similarity_losses: Registry[SimilarityLoss] = Registry("similarity loss", "kernelweave.similarity.losses")


class SimilarityLoss(Component):
    """A convex function of ``X = K - S``.

    ``value`` and ``subgradient`` are needed.  ``conjugate`` (of any point that is a mixture of subgradients) gives the
    Fenchel-Jensen bound; ``curvature`` or ``prox`` gives the partial dual, the tight one.
    """

    components = similarity_losses
    #: the value depends on the eigenvalues of X alone, and is the same function of the vector of them
    spectral: ClassVar[bool] = False
    #: the squared distance from the mean of the similarities, up to a constant
    quadratic: ClassVar[bool] = False

    def value(self, X: Array) -> float:
        """Return the loss."""
        raise NotImplementedError

    def subgradient(self, X: Array) -> Array:
        """Return a subgradient."""
        raise NotImplementedError

    def conjugate(self, Z: Array) -> float | None:
        """``max over X of <Z, X> - L(X)``, None where it is not known."""
        return None

    def curvature(self, X: Array) -> float | None:
        """Return c with ``L(X') <= L(X) + c (|X'|^2 - |X|^2)`` for every X', None where there is none."""
        return None

    def prox(self, X: Array, step: float) -> Array | None:
        """``argmin over x of L(x) + |x - X|^2 / (2 step)``, None where it is not known."""
        return None

    def aggregate(self, rows: Array, shares: Array) -> Array:
        """Several similarities of a new row in one, ``(m, ...) -> (...)``: what the loss makes of several."""
        return np.tensordot(shares, rows, axes=1)

    def shares(self, residuals: Array) -> Array:
        """Return how much each similarity says in ``aggregate``: by the slope of its loss per distance."""
        size = np.array([np.linalg.norm(X) for X in residuals])
        slope = np.array([np.linalg.norm(self.subgradient(X)) for X in residuals])
        pull = slope / np.maximum(size, 1e-9 * max(float(size.max()), 1e-300))
        return pull / pull.sum() if pull.sum() > 0 else np.full(size.size, 1.0 / size.size)
