"""Training input that consists of views: a dict of tables, or one table whose rows may lack a view's columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.base import BaseEstimator

from ..kernels import Kernel, KernelSpec, Schema, column_groups, expand_kernels
from ..views import KnownViews, Presence, Views, as_views, refuse_missing
from ._types import Samples

__all__ = ["cut_into_views", "expand_on_views", "matrices_with_gaps"]


def expand_on_views(
    estimator: BaseEstimator, X: Samples, spec: KernelSpec, missing: str
) -> tuple[list[Kernel], Samples]:
    """Return kernels on views and the samples; the estimator remembers what the views were."""
    views = as_views(X)
    if len(views) < 2:
        raise ValueError(f"Found views with {len(views)} sample(s) while a minimum of 2 is required.")
    kernels = expand_kernels(spec, Schema.of(views))
    looked_at = frozenset().union(*(kernel.looks_at(views.shape[1]) for kernel in kernels))
    used = [views.names[k] for k in np.unique(views.view_of(sorted(looked_at)))]
    views.only(used).check_values()
    if missing == "error":
        refuse_missing(views.only(used), completes=hasattr(estimator, "missing"))
    estimator.n_features_in_ = views.shape[1]
    vars(estimator).pop("feature_names_in_", None)
    if views.feature_names is not None:
        estimator.feature_names_in_ = np.array(views.feature_names, dtype=object)
    estimator._views = KnownViews.of(views, missing, used)
    return kernels, views.table() if missing == "error" else views.bare()


def cut_into_views(estimator: BaseEstimator, X: Samples, kernels: Sequence[Kernel], missing: str) -> Views:
    """Return one table as the views that its kernels look at, so that rows may lack some of them."""
    names = getattr(estimator, "feature_names_in_", None)
    groups = column_groups(kernels, X.shape[1], None if names is None else list(names))
    views = Views.of_table(X, groups)
    views.check_values()
    estimator._views = KnownViews.of(views, missing, views.names, groups)
    return views.bare()


def matrices_with_gaps(matrices: Samples, what: str) -> Presence:
    """Return who has which matrix; raise where one has NaN for some entries of a sample only."""
    for j, matrix in enumerate(matrices):
        gaps = np.isnan(matrix)
        rows, columns = ~gaps.all(axis=1), ~gaps.all(axis=0)
        if gaps[np.ix_(rows, columns)].any():
            raise ValueError(
                f"{what}: matrix {j} has single entries of NaN; a sample that lacks a kernel has NaN in its whole row "
                "(and column)"
            )
    present = np.stack([~np.isnan(matrix).all(axis=1) for matrix in matrices], axis=1)
    return Presence([f"kernel {j}" for j in range(len(matrices))], present)
