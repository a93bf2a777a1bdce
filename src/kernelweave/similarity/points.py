"""What solvers propose and what the judge answers: kernels with coefficients, points of the dual, certificates."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..problems.certificate import Array, Certificate, Point

__all__ = ["DualPoint", "SimilarityCertificate", "SimilarityPoint"]


@dataclass(frozen=True)
class DualPoint:
    """What a lower bound stands on: coefficients, shares gamma, and multipliers, or kernels to take them from."""

    beta: Array
    shares: Array
    multipliers: Array | None = None
    kernels: Array | None = None


@dataclass(frozen=True)
class SimilarityPoint(Point):
    """Coefficients, weights ``1 / gamma`` of the kernels, the kernels, and points for the lower bound.

    ``kernels`` is ``(k, n, n)`` with k = 1 or m, for (7) the ``(m, n)`` eigenvalues.
    """

    kernels: Array = None  # type: ignore[assignment]
    duals: tuple[DualPoint, ...] = ()


@dataclass(frozen=True, repr=False)
class SimilarityCertificate(Certificate):
    """A certificate whose lower bound is recomputed from ``witness`` by ``problem.bound(witness)``."""

    witness: DualPoint | None = None

    def with_dual_of(self, other: Certificate) -> Certificate:
        """Return this primal value with the better of the two dual bounds."""
        if other.dual > self.dual and isinstance(other, SimilarityCertificate):
            return replace(self, dual=other.dual, dual_point=other.dual_point, witness=other.witness)
        return self
