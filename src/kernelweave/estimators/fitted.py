"""Questions that inspection, displays and model files may ask of a fitted estimator, beside its attributes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from .._fitted import ATTRIBUTES as ATTRIBUTES
from .._fitted import FittedModel as FittedModel
from ..banks import KernelFunction
from ..views import KnownViews
from ._base import weights_of_columns as weights_of_columns
from ._calibration import Calibration as Calibration
from ._inputs import is_precomputed as is_precomputed
from ._inputs import new_samples
from ._parameters import Samples


def has_function(estimator: BaseEstimator) -> bool:
    """Whether the decisions of an estimator are sums over kernels, and known."""
    return isinstance(vars(estimator).get(ATTRIBUTES["function"]), KernelFunction)


def function_of(estimator: BaseEstimator) -> KernelFunction:
    """Return the learnt function, or raise where an estimator has none that is a sum over kernels."""
    function = FittedModel.of(estimator).function
    if function is None:
        raise ValueError(f"the decisions of {type(estimator).__name__} are no sum over kernels")
    return function


def known_views(estimator: BaseEstimator) -> KnownViews | None:
    """Return the views that an estimator was fitted on; None where it knows of none."""
    return vars(estimator).get("_views")


@dataclass(frozen=True)
class WeightOrigin:
    """Where the weights of a fitted estimator come from."""

    #: which of them were learnt from the data
    learnt: NDArray[np.bool_]
    #: what was not learnt, for people; empty where everything was
    sentence: str

    @property
    def nothing(self) -> bool:
        """Whether no weight was learnt, so that weights say nothing about the kernels."""
        return not self.learnt.any()


def weight_origin(estimator: BaseEstimator) -> WeightOrigin:
    """Say which weights of a fitted estimator were learnt: what may be said of weights depends on it."""
    fitted = FittedModel.of(estimator)
    learnt = np.asarray(fitted.learnt_kernels, dtype=bool)
    given = int(np.count_nonzero(~learnt))
    if not given:
        return WeightOrigin(learnt, "")
    if given < learnt.size:
        were = "weight of 1 kernel was" if given == 1 else f"weights of {given} kernels were"
        return WeightOrigin(learnt, f"The {were} given, not learnt: only those of the others are a finding.")
    return WeightOrigin(learnt, f"The weights were not learnt: {fitted.weights_rule}.")


def samples_for(estimator: BaseEstimator, X: Samples) -> Samples:
    """Check new samples against what the estimator was fitted on, and return them as its kernels take them."""
    return new_samples(estimator, X, FittedModel.of(estimator).kind)
