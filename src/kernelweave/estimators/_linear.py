"""A model whose kernels are all linear is a linear model: its weights on the columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..views import Views
from ._types import Array

if TYPE_CHECKING:
    from ..banks import Term
    from ._base import BaseMKL

__all__ = ["linear_weights", "weights_of_columns"]


def linear_weights(estimator: BaseMKL) -> Array:
    """Return w with ``decision = X w' + intercept``, ``(1, p)`` or ``(k, p)``; raise AttributeError without one."""
    function = vars(estimator).get("_function")
    if function is None:
        raise AttributeError("coef_ is there once the estimator is fitted")
    width = getattr(estimator, "n_features_in_", None)
    if width is None:
        raise AttributeError("coef_ needs a model that was fitted on rows of numbers")
    total = np.zeros((width, np.size(estimator.intercept_)))
    for term in function.each():
        if not getattr(term.kernels, "kernels", None) or getattr(term.kernels.samples, "ndim", 0) != 2:
            raise AttributeError("coef_ needs a model that was fitted on rows of numbers in memory")
        kernel, normaliser = term.kernels.kernels[0], term.kernels.normaliser
        columns = kernel.feature_columns(width)
        if columns is None or normaliser.center or normaliser.mode == "cosine":
            raise AttributeError(
                f"coef_ needs linear kernels alone, not centred and not cosine-normalised: {kernel.name!r} has weight; "
                "inspection.feature_weights shows what its linear kernels do"
            )
        total[columns] += weights_of_columns(term, columns).reshape(len(columns), -1)
    if total.shape[1] == 2 and len(getattr(estimator, "classes_", ())) == 2:
        total = total[:, 1:] - total[:, :1]  # two classes with a function each: what tells them apart
    return np.ascontiguousarray(total.T)


def weights_of_columns(term: Term, columns: Array) -> Array:
    """``d_j s_j sum_i beta_i x_i`` of one linear kernel, centred where it is; one column per function."""
    samples, normaliser = term.kernels.samples, term.kernels.normaliser
    rows = samples.select_columns(columns) if isinstance(samples, Views) else samples[:, columns]
    values = np.asarray(rows.toarray() if hasattr(rows, "tocsr") else rows, dtype=float)
    if normaliser.center:
        values = values - values.mean(axis=0)
    return np.asarray(values.T @ term.coef * (term.weights[..., 0] * normaliser.scale[0]))
