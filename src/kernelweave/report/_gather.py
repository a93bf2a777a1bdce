"""What a report says, computed: refits on folds give accuracy, stability, suspects and p-values at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.base import clone, is_classifier
from sklearn.model_selection import RepeatedKFold, RepeatedStratifiedKFold
from sklearn.pipeline import Pipeline

from .._numerics.significance import corrected_t_test
from ..inspection import WeightStability, contributions, final_estimator, kernel_families
from ..inspection.permutation import test_views
from ..inspection.views import group_shares, kernel_groups, learnt_weights
from ..kernels import take
from ..persistence import cleared

__all__ = ["Compared", "Findings", "Suspect", "gather"]

Array = NDArray[np.float64]
PERMUTATIONS = 999
SUSPECTS = 20


@dataclass(frozen=True)
class Compared:
    """Held-out scores of one method: mean, interval, and how it compares with the model."""

    name: str
    about: str
    scores: Array
    mean: float
    low: float
    high: float
    p_value: float


@dataclass(frozen=True)
class Suspect:
    """A training label that may be wrong."""

    row: str
    label: str
    other: str
    evidence: float


@dataclass(frozen=True)
class Findings:
    """Everything that needed a refit."""

    stability: WeightStability
    compared: list[Compared]
    views: Any  # p-values, None where they cannot be had
    suspects: list[Suspect]
    suspects_from: str
    measure: str
    folds: int
    repeats: int
    held_out: Array
    """Score of every sample on the fold of the first round that left it out: right or wrong, or the squared error."""


def gather(
    fitted: Any,
    model: Any,
    X: Any,
    y: Any,
    *,
    n_folds: int,
    n_repeats: int,
    random_state: int,
    row_names: list[str],
    progress: Callable[[int, int], None] | None,
) -> Findings:
    """Refit on folds: ``fitted`` is what the report is about, ``model`` the same on samples that can be cut."""
    model = cleared(model)  # refits neither read nor write the files of the fit
    classify = is_classifier(final_estimator(model))
    methods = [("this model", "", model), *_baselines(model, final_estimator(fitted), classify)]
    splits = _folds(y, classify, n_folds, n_repeats, random_state)
    first_round = len(splits) // n_repeats
    scores: list[list[float]] = [[] for _ in methods]
    weights, by_view, parts, margins = [], [], [], np.full(len(y), np.nan)
    predicted = np.empty(len(y), dtype=object)
    views = kernel_groups(fitted)
    for number, (train, test) in enumerate(splits):
        seen, held_out = take(X, train), take(X, test)
        for k, (_, _, method) in enumerate(methods):
            other = clone(method).fit(seen, y[train])
            scores[k].append(float(other.score(held_out, y[test])))
            if k == 0:
                weights.append(learnt_weights(other))
                by_view.append(group_shares(other, views))
                if number < first_round:
                    parts.append((contributions(other, held_out, views=views), y[test]))
                    predicted[test] = other.predict(held_out)
                    if classify:
                        margins[test] = _margins(other, held_out, y[test])
        if progress is not None:
            progress(number + 1, len(splits))
    share = len(splits[0][1]) / len(splits[0][0])
    suspects, origin = _suspects(final_estimator(fitted), classify, y, margins, predicted, row_names)
    return Findings(
        _stability(fitted, np.stack(weights), np.stack(by_view), np.array(scores[0])),
        [
            _compared(name, about, np.array(theirs), np.array(scores[0]), share)
            for (name, about, _), theirs in zip(methods, scores, strict=True)
        ],
        _p_values(parts, random_state, classify), suspects, origin,
        "accuracy" if classify else "R²", first_round, n_repeats,
        np.asarray(predicted == y if classify else (predicted - y) ** 2, dtype=float),
    )  # fmt: skip


def _folds(y: Any, classify: bool, n_folds: int, n_repeats: int, seed: int) -> list[Any]:
    kind: Any = RepeatedKFold
    if classify:
        rarest = int(np.unique(y, return_counts=True)[1].min())
        if rarest < 2:
            raise ValueError("a report needs at least two samples of every class, to refit on folds")
        kind, n_folds = RepeatedStratifiedKFold, min(n_folds, rarest)
    made = kind(n_splits=n_folds, n_repeats=n_repeats, random_state=seed)
    return list(made.split(np.zeros((len(y), 1)), y))


def _baselines(model: Any, fitted: Any, classify: bool) -> list[tuple[str, str, Any]]:
    """What the model has to beat, on the same kernels."""
    from ..estimators import (
        BestKernelClassifier,
        MeanKernelClassifier,
        MeanKernelRidgeRegressor,
        MKLClassifier,
    )
    from ..estimators.noisy import NoisyLabelMKLClassifier

    last = final_estimator(model)
    C = float(np.mean(fitted.C_))
    if not classify:
        mean = clone(last).set_params(norm="uniform", solver="auto")
        ridge = MeanKernelRidgeRegressor(last.kernels, missing=getattr(last, "missing", "error"))
        made = [
            ("mean kernel", "all kernels with the same weight, at the same C", _ending_in(model, mean)),
            ("ridge on the mean kernel", "C by leave-one-out", _ending_in(model, ridge)),
        ]
        return made[:1] if _has_fixed_parts(fitted) else made
    if isinstance(last, NoisyLabelMKLClassifier):
        fixed = _has_fixed_parts(fitted)
        mean = (
            MKLClassifier(last.kernels, "uniform", C=C) if fixed else MeanKernelClassifier(last.kernels, C=C)
        )
        about = f"SVM with all kernels weighted alike, at the model's C = {C:.3g}"
    elif hasattr(last, "Cs"):
        mean = clone(last).set_params(norm="uniform", norms=None, solver="auto")
        about = "SVM with all kernels weighted alike, C chosen as for the model"
    else:
        mean = clone(last).set_params(norm="uniform", solver="auto")
        about = "all kernels weighted alike, at the same C"
    if _has_fixed_parts(fitted):  # a single kernel cannot stand beside those that always count
        return [("mean kernel", about, _ending_in(model, mean))]
    best = BestKernelClassifier(last.kernels, C=C, missing=getattr(last, "missing", "error"))
    return [
        ("mean kernel", about, _ending_in(model, mean)),
        (
            "best single kernel",
            f"SVM on the kernel that does best in cross-validation, at the model's C = {C:.3g}",
            _ending_in(model, best),
        ),
    ]


def _has_fixed_parts(fitted: Any) -> bool:
    """Whether some kernels always count (``kernels.always``)."""
    return any(kernel.always is not None for kernel in getattr(fitted, "kernels_", None) or [])


def _ending_in(model: Any, last: Any) -> Any:
    if not isinstance(model, Pipeline):
        return last
    return Pipeline([*((name, clone(step)) for name, step in model.steps[:-1]), (model.steps[-1][0], last)])


def _stability(fitted: Any, weights: Array, by_view: Array, scores: Array) -> WeightStability:
    names, views = np.asarray(final_estimator(fitted).kernel_names_, dtype=object), kernel_groups(fitted)
    return WeightStability(
        weights, learnt_weights(fitted), names, views, kernel_families(fitted), scores,
        "folds", 0.95, 1e-3, by_view, group_shares(fitted, views),
    )  # fmt: skip


def _compared(name: str, about: str, scores: Array, ours: Array, test_share: float) -> Compared:
    """Mean with a 95 % interval for overlapping training sets (Nadeau and Bengio 2003)."""
    spread = float(np.sqrt(np.var(scores, ddof=1) * (1.0 / scores.size + test_share)))
    reach = float(stats.t.ppf(0.975, scores.size - 1)) * spread
    mean = float(scores.mean())
    p = float("nan") if scores is ours or name == "this model" else corrected_t_test(ours, scores, test_share)
    return Compared(name, about, scores, mean, mean - reach, min(mean + reach, 1.0), p)


def _margins(model: Any, X: Any, labels: Any) -> Array:
    """How clearly held-out decisions agree with the labels; negative where they contradict them."""
    values, codes = model.decision_function(X), np.searchsorted(model.classes_, labels)
    if values.ndim == 1:
        return np.where(codes == 1, values, -values)
    rows = np.arange(len(codes))
    others = values.copy()
    others[rows, codes] = -np.inf
    return np.asarray(values[rows, codes] - others.max(axis=1))


def _suspects(
    estimator: Any, classify: bool, y: Any, margins: Array, predicted: Any, names: list[str]
) -> tuple[list[Suspect], str]:
    if not classify:
        return [], ""
    if hasattr(estimator, "label_quality_"):
        order = estimator.suspects_[:SUSPECTS]
        suspects = [
            Suspect(names[i], str(y[i]), str(predicted[i]), float(estimator.label_quality_[i]))
            for i in order
            if estimator.label_quality_[i] < 0.5
        ]
        return suspects, "probability that the label is right"
    order = np.argsort(margins, kind="stable")[:SUSPECTS]
    return [
        Suspect(names[i], str(y[i]), str(predicted[i]), float(margins[i])) for i in order if margins[i] < 0
    ], "margin on the fold that left the row out"


def _p_values(parts: list[Any], seed: int, classify: bool) -> Any:
    """P-values of views, where there are at least two."""
    if len(parts[0][0].view_names) < 2:
        return None
    return test_views(parts, PERMUTATIONS, np.random.RandomState(seed), classify).set_index("view")
