"""Matrices of one trace, seen through their logarithms; and the nearest such matrix."""

from __future__ import annotations

import numpy as np

from .._numerics.projections import project_simplex

__all__ = ["entropic_matrix", "entropic_vector", "project_trace"]


def entropic_vector(logs: np.ndarray, total: float) -> np.ndarray:
    """``total * softmax(logs)``."""
    weights = np.exp(logs - np.max(logs))
    return weights * (total / np.sum(weights))


def entropic_matrix(logs: np.ndarray, total: float) -> np.ndarray:
    """``total * exp(B) / tr exp(B)`` of a symmetric matrix B."""
    values, vectors = np.linalg.eigh(logs)
    return (vectors * entropic_vector(values, total)) @ vectors.T


def project_trace(matrix: np.ndarray, total: float) -> np.ndarray:
    """Nearest positive semi-definite matrix of this trace: the eigenvalues are projected on a simplex.

    >>> project_trace(np.diag([3.0, -1.0]), 2.0).tolist()
    [[2.0, 0.0], [0.0, 0.0]]
    """
    values, vectors = np.linalg.eigh(matrix)
    moved = project_simplex(values, total)
    kept = moved > 0
    return (vectors[:, kept] * moved[kept]) @ vectors[:, kept].T
