"""Variance components of a mixed model and their standard errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .design import Array, Design
from .points import Points

__all__ = ["Components", "variance_components"]


@dataclass(frozen=True)
class Components:
    """Variances that kernels of mean diagonal one and the noise contribute to one target.

    Attributes
    ----------
    variance : array of shape (m + 1,)
        Of the kernels, then of the noise.
    covariance : array of shape (m + 1, m + 1)
        Of the estimates, from the expected information; not a number for kernels without weight, whose estimate lies on
        the boundary.
    """

    variance: Array
    covariance: Array

    @property
    def error(self) -> Array:
        """Standard errors of the variances."""
        return np.sqrt(np.diagonal(self.covariance))

    @property
    def share(self) -> Array:
        """Variances over their sum."""
        return np.asarray(self.variance / self.variance.sum())

    @property
    def share_error(self) -> Array:
        """Standard errors of the shares, to first order."""
        total, known = self.variance.sum(), np.isfinite(np.diagonal(self.covariance))
        slopes = (np.eye(len(self.variance)) - self.share[:, None]) / total
        slopes, covariance = slopes[np.ix_(known, known)], self.covariance[np.ix_(known, known)]
        out = np.full(len(self.variance), np.nan)
        out[known] = np.sqrt(np.maximum(np.diagonal(slopes @ covariance @ slopes.T), 0.0))
        return out


def variance_components(design: Design, weights: Array, y: Array) -> Components:
    """Return the components that weights ``(m,)`` stand for, for a target ``(n,)``.

    With ``P = M / s^2``, the information about the variances of kernels j and k is ``1/2 tr(P K_j P K_k)``, the
    identity in the place of a kernel for the noise.
    """
    active = np.flatnonzero(weights > 0)
    M = Points(design, weights[None], np.array([1])).inverse[0]
    target = design.targets(y[:, None])[:, 0]
    noise = float(target @ M @ target) / design.freedom
    turned = [*(M @ design.kernels[j] for j in active), M]
    information = np.array([[0.5 * np.sum(A * B.T) for A in turned] for B in turned]) / noise**2
    known = np.append(active, design.m)
    covariance = np.full((design.m + 1, design.m + 1), np.nan)
    covariance[np.ix_(known, known)] = np.linalg.pinv(information, hermitian=True)
    return Components(noise * np.append(weights, 1.0), covariance)
