"""Is this matrix a kernel, and how to make it one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

__all__ = [
    "EIGENVALUES",
    "TOLERANCE",
    "check_semidefinite",
    "check_symmetric",
    "clip_spectrum",
    "flip_spectrum",
    "shift_spectrum",
]

#: the classical ways from the eigenvalues of a similarity to those of a kernel
EIGENVALUES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "denoise": lambda values: np.maximum(values, 0.0),
    "flip": np.abs,
    "shift": lambda values: values + max(-float(values.min()), 0.0),
    "square": np.square,
}


#: of the mean or largest eigenvalue: a negative one that is smaller is taken for rounding
TOLERANCE = 1e-7


def check_symmetric(matrix: np.ndarray, name: str, tolerance: float = 1e-6) -> None:
    """Raise where the two halves differ by more than ``tolerance`` of the largest entry."""
    size = max(float(np.max(np.abs(matrix))), np.finfo(float).tiny)
    skew = float(np.max(np.abs(matrix - matrix.T))) / size
    if skew > tolerance:
        raise ValueError(
            f"{name} is not symmetric (largest difference {skew:.2g} of its largest entry); "
            "if it is a similarity, symmetrise it with (S + S.T) / 2"
        )


def check_semidefinite(matrix: np.ndarray, name: str, tolerance: float = TOLERANCE) -> None:
    """Raise where the smallest eigenvalue is below ``-tolerance`` times the largest.

    A Cholesky factorisation of the slightly lifted matrix is tried first: it costs a tenth of the eigenvalues, which
    are computed only to say how indefinite the matrix is.
    """
    matrix = np.asarray(matrix, dtype=float)
    n = matrix.shape[0]
    # the mean eigenvalue, at most the largest: a matrix that passes here is within the tolerance
    lifted = matrix.copy()
    lifted.flat[:: n + 1] += tolerance * max(float(np.trace(matrix)) / n, 0.0) + 1e-300
    try:
        np.linalg.cholesky(lifted)
        return
    except np.linalg.LinAlgError:
        values = np.linalg.eigvalsh(matrix)
    bound = -tolerance * max(float(values[-1]), 1e-300)
    if values[0] < bound:
        negative = float(-np.sum(values[values < 0]) / np.sum(np.abs(values)))
        raise ValueError(
            f"{name} is not positive semi-definite: {int(np.sum(values < bound))} of {n} eigenvalues are negative, "
            f"the smallest is {values[0]:.3g} (largest {values[-1]:.3g}), {100 * negative:.2g} % of the spectrum. "
            "MKL needs kernels: make it one with kernelweave.kernels.clip_spectrum (negative eigenvalues to zero), "
            "flip_spectrum (their absolute values) or shift_spectrum (all raised), and pass the matrices as "
            "kernels.held(...) or kernels='precomputed'"
        )


def _spectrum(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    matrix = np.asarray(matrix, dtype=float)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"the spectrum needs a square matrix, got shape {matrix.shape}")
    if not np.all(np.isfinite(matrix)):
        raise ValueError("the matrix contains NaN or infinite entries")
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2.0)
    return values, vectors


def clip_spectrum(matrix: np.ndarray) -> np.ndarray:
    """Nearest positive semi-definite matrix: negative eigenvalues become zero ("denoise").

    Examples
    --------
    >>> import numpy as np
    >>> clip_spectrum(np.array([[0.0, 1.0], [1.0, 0.0]])).round(3)
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """
    values, vectors = _spectrum(matrix)
    return (vectors * EIGENVALUES["denoise"](values)) @ vectors.T


def flip_spectrum(matrix: np.ndarray) -> np.ndarray:
    """Positive semi-definite matrix with the absolute values of the eigenvalues."""
    values, vectors = _spectrum(matrix)
    return (vectors * EIGENVALUES["flip"](values)) @ vectors.T


def shift_spectrum(matrix: np.ndarray) -> np.ndarray:
    """Raise all eigenvalues by the most negative one: only the diagonal changes."""
    values, _ = _spectrum(matrix)
    matrix = (np.asarray(matrix, dtype=float) + np.asarray(matrix, dtype=float).T) / 2.0
    return matrix + max(-float(values[0]), 0.0) * np.eye(matrix.shape[0])
