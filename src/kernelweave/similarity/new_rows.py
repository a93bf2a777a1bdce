"""What a new row of similarities becomes: the row of the learned kernel, from that row and the training block alone.

``smooth``: ``k(x) = K (K + nu I)^-1 s(x)``, ``nu = tr(K) / n``, which minimises ``|k - s|^2 + nu k'K^+ k``: a row near
the similarities that a positive semi-definite bordered matrix could have.  ``classical``: what the literature does with
a spectrum, ``V_+ V_+' s`` where negative eigenvalues are dropped, ``V sign(L) V' s`` where they are flipped, ``s``
where all are raised.

Either is linear in the row, so a decision is ``s(x)' w + b`` and w is all that is kept.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._numerics.spectrum import EIGENVALUES

__all__ = ["classical", "smooth", "spectrum_kernel"]

#: what the classical rule multiplies the row's coordinates on the eigenvectors with
ROWS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "denoise": lambda values: (values > 0).astype(float),
    "flip": np.sign,
    "shift": np.ones_like,
    "square": lambda values: values,
}


def spectrum_kernel(values: np.ndarray, vectors: np.ndarray, kind: str) -> np.ndarray:
    """Return the kernel with the new eigenvalues."""
    return (vectors * EIGENVALUES[kind](values)) @ vectors.T


def classical(values: np.ndarray, vectors: np.ndarray, kind: str, beta: np.ndarray) -> np.ndarray:
    """Return w with ``s'w = k(x)'beta``."""
    factors = ROWS[kind](values)
    coordinates = vectors.T @ beta
    return vectors @ (factors.reshape(-1, *[1] * (beta.ndim - 1)) * coordinates)


def smooth(kernel: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """Return ``w = (K + nu I)^-1 K beta``."""
    from scipy.linalg import cho_factor, cho_solve

    n = kernel.shape[0]
    nu = float(np.trace(kernel)) / n
    lifted = kernel + nu * np.eye(n)
    return cho_solve(cho_factor(lifted, lower=True, check_finite=False), kernel @ beta, check_finite=False)
