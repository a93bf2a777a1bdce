"""Kernel ridge with closed-form leave-one-out: every C from one eigendecomposition."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

__all__ = ["RIDGE_CS", "LeaveOneOut", "leave_one_out"]

#: values of C that ridge chooses among
RIDGE_CS = np.logspace(-4, 6, 41)


@dataclass(frozen=True)
class LeaveOneOut:
    """What leaving each sample out in turn gives.

    Attributes
    ----------
    Cs, errors : arrays
        Values of C, and the mean squared error of each.
    best : int
        Index of the smallest error.
    predictions : array of the shape of the targets
        For every sample, the prediction of the model at the best C that was fitted without it.
    """

    Cs: Array
    errors: Array
    best: int
    predictions: Array

    @property
    def C(self) -> float:
        """The C of the smallest error."""
        return float(self.Cs[self.best])


def leave_one_out(
    K: Array, targets: Array, Cs: Array = RIDGE_CS, intercept: bool = True, weight: Array | None = None
) -> LeaveOneOut:
    """Leave-one-out errors of kernel ridge for every C (``lambda = 1 / (2 C)``), and predictions at the best.

    With ``A = K + diag(lambda / weight)`` and M its inverse (deflated by the ones where there is an intercept),
    sample i left out is missed by ``(M y)_i / M_ii``.  Samples without weight are predicted by the others, and do not
    count in the errors.
    """
    y = targets if targets.ndim == 2 else targets[:, None]
    weight = np.ones(len(y)) if weight is None else weight
    used = weight > 0
    if not used.all():  # what has no weight is not there
        K_used, y_used, weight_used = K[np.ix_(used, used)], y[used], weight[used]
    else:
        K_used, y_used, weight_used = K, y, weight
    root = np.sqrt(weight_used)
    values, vectors = np.linalg.eigh(root[:, None] * K_used * root)
    values = np.maximum(values, 0.0)
    vectors = root[:, None] * vectors
    rotated, ones = vectors.T @ y_used, vectors.sum(axis=0)

    def fit(C: float) -> tuple[Array, Array, Array]:
        """Coefficients, intercepts and misses."""
        shrunk = 1.0 / (values + 0.5 / C)
        alpha, diagonal = vectors @ (shrunk[:, None] * rotated), vectors**2 @ shrunk
        b = np.zeros(y.shape[1])
        if intercept:
            u = vectors @ (shrunk * ones)
            b = (u @ y_used) / u.sum()
            alpha = alpha - np.outer(u, b)
            diagonal = diagonal - u**2 / u.sum()
        return alpha, b, alpha / np.maximum(diagonal, np.finfo(float).tiny)[:, None]

    errors = np.array(
        [float(weight_used @ np.mean(fit(C)[2] ** 2, axis=1)) / float(weight_used.sum()) for C in Cs]
    )
    best = int(np.argmin(errors))
    alpha, b, missed = fit(float(Cs[best]))
    predictions = np.empty(y.shape)
    predictions[used] = y_used - missed
    if not used.all():
        predictions[~used] = K[np.ix_(~used, used)] @ alpha + b
    return LeaveOneOut(np.asarray(Cs), errors, best, predictions.reshape(targets.shape))
