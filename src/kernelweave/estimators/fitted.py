"""What inspection, displays and model files may ask of a fitted estimator, beside its attributes."""

from __future__ import annotations

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ..banks import KernelFunction
from ..views import KnownViews, Views
from ._inputs import is_precomputed, new_samples
from ._linear import weights_of_columns
from ._types import Samples

__all__ = [
    "function_of",
    "has_function",
    "is_precomputed",
    "knows_tables",
    "samples_for",
    "views_for",
    "weights_of_columns",
]


def has_function(estimator: BaseEstimator) -> bool:
    """Whether the decisions of an estimator are sums over kernels, and known."""
    return isinstance(vars(estimator).get("_function"), KernelFunction)


def function_of(estimator: BaseEstimator) -> KernelFunction:
    """Return the learnt function, or raise where an estimator has none that is a sum over kernels."""
    check_is_fitted(estimator, "dual_coef_")
    if not has_function(estimator):
        raise ValueError(f"the decisions of {type(estimator).__name__} are no sum over kernels")
    function: KernelFunction = estimator._function
    return function


def views_for(estimator: BaseEstimator, X: Samples) -> Views | None:
    """Return new samples as the views that the estimator was fitted on; None where it knows of none."""
    known: KnownViews | None = vars(estimator).get("_views")
    return None if known is None else known.bring(X)


def knows_tables(estimator: BaseEstimator) -> bool:
    """Whether an estimator was fitted on views that are tables of their own."""
    known: KnownViews | None = vars(estimator).get("_views")
    return known is not None and known.groups is None


def samples_for(estimator: BaseEstimator, X: Samples) -> Samples:
    """Check new samples against what the estimator was fitted on, and return them as its kernels take them."""
    return new_samples(estimator, X, estimator._kind)
