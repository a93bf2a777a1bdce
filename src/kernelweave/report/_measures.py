"""Measures of held-out predictions: what they are called, how they are shown, and how they are averaged over folds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.metrics import r2_score, roc_auc_score, root_mean_squared_error

from .._numerics.significance import corrected_t_test
from ._html import number, percent

__all__ = ["REGRESSION", "Measure", "Measured", "auroc", "classification", "confusion", "measured"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Measure:
    """A measure of predictions.

    Attributes
    ----------
    name, about : str
    of : callable
        ``of(targets, predicted, decision)``: its value on some samples; NaN where these do not define it.
    shown : callable
        Writes a value for people.
    pooled : bool
        Whether the predictions of all folds are judged together.
    most : float
        The best possible value.
    """

    name: str
    about: str
    of: Callable[[Any, Any, Any], float]
    shown: Callable[[float], str]
    pooled: bool = False
    most: float = 1.0


@dataclass(frozen=True)
class Measured:
    """A measure of one method: on every fold, its mean with an interval, and how it compares with the model."""

    scores: Array
    mean: float
    low: float
    high: float
    p_value: float


def measured(
    scores: Array,
    sizes: Array,
    test_share: float,
    ours: Array | None,
    most: float,
    whole: Sequence[float] | None,
) -> Measured:
    """Return the mean over folds, each with the weight of its samples, and what can be said of it.

    The 95 % interval and the p-value allow for the overlap of the training sets (Nadeau and Bengio 2003).  ``ours`` are
    the scores of the model to compare with, None for the model itself; ``most`` is the largest possible value;
    ``whole`` are the values of whole rounds, where these are averaged instead.
    """
    known = np.isfinite(scores)
    if not known.any():
        return Measured(scores, np.nan, np.nan, np.nan, np.nan)
    mean = float(np.average(scores[known], weights=sizes[known]) if whole is None else np.mean(whole))
    if known.sum() < 2:
        return Measured(scores, mean, np.nan, np.nan, np.nan)
    spread = float(np.sqrt(np.var(scores[known], ddof=1) * (1.0 / known.sum() + test_share)))
    reach = float(stats.t.ppf(0.975, int(known.sum()) - 1)) * spread
    p = np.nan
    if ours is not None:
        both = known & np.isfinite(ours)
        p = corrected_t_test(ours[both], scores[both], test_share)
    return Measured(scores, mean, mean - reach, min(mean + reach, most), float(p))


def confusion(y: Any, predicted: Any, classes: Any) -> Array:
    """Return how many samples of each class (rows) were predicted as each class (columns)."""
    codes, found = np.searchsorted(classes, y), np.searchsorted(classes, predicted)
    table = np.zeros((len(classes), len(classes)))
    np.add.at(table, (codes, found), 1.0)
    return table


def auroc(y: Any, decision: Array, classes: Any) -> float:
    """Return the area under the ROC curve; of several classes the mean of each against the rest.

    NaN where a class is absent.
    """
    if decision is None or len(np.unique(y)) < len(classes):
        return float("nan")
    if decision.ndim == 1:
        return float(roc_auc_score(y == classes[1], decision))
    return float(np.mean([roc_auc_score(y == label, decision[:, k]) for k, label in enumerate(classes)]))


def _balanced(y: Any, predicted: Any, _: Any) -> float:
    return float(np.mean([np.mean(predicted[y == label] == label) for label in np.unique(y)]))


def _accuracy(y: Any, predicted: Any, _: Any) -> float:
    return float(np.mean(predicted == y))


def classification(classes: Any) -> Sequence[Measure]:
    """Return the measures of a classifier."""
    macro = "" if len(classes) == 2 else ", the mean of each class against the rest"
    return (
        Measure("accuracy", "share of samples predicted right", _accuracy, percent, pooled=True),
        Measure(
            "balanced accuracy",
            "mean over classes of the share predicted right",
            _balanced,
            percent,
            pooled=True,
        ),
        Measure(
            "AUROC",
            f"area under the ROC curve{macro}",
            lambda y, _, values: auroc(y, values, classes),
            number,
        ),
    )


def _r2(y: Any, predicted: Any, _: Any) -> float:
    return float(r2_score(y, predicted)) if len(y) > 1 else float("nan")


def _rmse(y: Any, predicted: Any, _: Any) -> float:
    return float(root_mean_squared_error(y, predicted))


REGRESSION: Sequence[Measure] = (
    Measure("R²", "share of the variance that is predicted", _r2, number),
    Measure("RMSE", "root of the mean squared error", _rmse, number, most=float("inf")),
)
