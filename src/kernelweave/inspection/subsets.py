"""Models on subsets of views, with one view more, and with one less."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone, is_classifier
from sklearn.model_selection import RepeatedKFold, RepeatedStratifiedKFold
from sklearn.pipeline import Pipeline

from .._estimating import several_fits
from .._numerics.significance import corrected_t_test
from ..estimators.fitted import known_views
from ..estimators.subsets import SubsetFits
from ..kernels import Chosen, Schema, Stack, as_spec, default_bank, expand_kernels
from .views import final_estimator, kernel_views, paired, transformed

#: views of which all subsets are tried
MOST_VIEWS = 5


@several_fits
def view_subsets(
    model: Any, X: Any, y: Any, *, n_folds: int = 5, random_state: int = 0, splits: Any = None
) -> Any:
    """Return how good the model is on every subset of its views, each fold on one bank.

    Parameters
    ----------
    model : estimator or pipeline
        Fitted; of at most five views.
    X, y : samples and targets
        Those of the fit.
    n_folds : int, default=5
    random_state : int, default=0
    splits : list of (train, held out), optional
        Folds of your own, instead of these.

    Returns
    -------
    DataFrame
        ``views``, ``kernels`` (their number), ``score`` and ``sd`` over held-out folds, ``seconds`` of a fit; the best
        first.
    """
    of_kernel, names = views_of_kernels(model)
    if len(names) > MOST_VIEWS:
        raise ValueError(f"{len(names)} views have {2 ** len(names) - 1} subsets: at most {MOST_VIEWS} views")
    chosen = list(chain.from_iterable(combinations(names, k) for k in range(1, len(names) + 1)))
    subsets = [np.flatnonzero(np.isin(of_kernel, subset)) for subset in chosen]
    X, y = paired(model, X, y)
    fits = SubsetFits(final_estimator(model), transformed(model, X), y)
    if splits is None:
        splits = shuffled_folds(y, is_classifier(final_estimator(model)), n_folds, random_state)
    scores, seconds = fits.scores(subsets, list(splits))
    head = {"views": [", ".join(some) for some in chosen], "kernels": [some.size for some in subsets]}
    found = {"score": scores.mean(axis=1), "sd": scores.std(axis=1, ddof=1), "seconds": seconds.mean(axis=1)}
    return pd.DataFrame(head | found).sort_values(
        ["score", "kernels"], ascending=[False, True], ignore_index=True
    )


def views_of_kernels(model: Any) -> tuple[np.ndarray, list[str]]:
    """View of every kernel, and the views in order."""
    of_kernel = np.array([str(view) for view in kernel_views(model)], dtype=object)
    return of_kernel, list(dict.fromkeys(of_kernel.tolist()))


def shuffled_folds(
    y: np.ndarray, classify: bool, n_folds: int, seed: Any, n_repeats: int = 1
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Return training and held-out samples of folds, stratified by class; fewer where a class has fewer samples.

    Times to an event are stratified by event.
    """
    if y.dtype.names:
        y, classify = y["event"], True
    kind: Any = RepeatedKFold
    if classify:
        rarest = int(np.unique(y, return_counts=True)[1].min())
        if rarest < 2:
            raise ValueError(
                "folds need at least two samples of every class: a class with a single sample cannot be in two parts, "
                "leave it out"
            )
        kind, n_folds = RepeatedStratifiedKFold, min(n_folds, rarest)
    return kind(n_splits=n_folds, n_repeats=n_repeats, random_state=seed).split(np.zeros((len(y), 1)), y)


def compare_subsets(
    fits: SubsetFits, whole: Any, subsets: list[Any], splits: list[Any]
) -> list[tuple[float, float, float]]:
    """Return for every subset the mean score of all kernels, its own, and the p-value of the difference."""
    scores, _ = fits.scores([whole, *subsets], splits)
    ratio = len(splits[0][1]) / len(splits[0][0])
    return [
        (float(scores[0].mean()), float(some.mean()), corrected_t_test(scores[0], some, ratio))
        for some in scores[1:]
    ]


#: by how much prepared views may differ, relative to their largest entry, and count as the same
ROUNDING = 1e-9


@dataclass(frozen=True)
class _Compared:
    model: Any
    view: str
    score_with: float
    score_without: float
    p_value: float

    def __str__(self) -> str:
        return (
            f"{self.score_with:.3f} with view {self.view!r}, {self.score_without:.3f} without it "
            f"(p = {self.p_value:.2g})"
        )


class WithoutView(_Compared):
    """A model refitted without a view, and the accuracy of both on held-out folds.

    Attributes
    ----------
    model : estimator or pipeline
        Fitted on all samples without the view; with it, in ``WithView``.
    view : str
    score_with, score_without : float
        Mean accuracy (R2 of a regression) on held-out folds.
    p_value : float
        Of the difference between the two, corrected for the overlap of the folds.
    """


class WithView(_Compared):
    """A model refitted with one more view, and the accuracy of both; the attributes are those of ``WithoutView``."""


@several_fits
def drop_view(
    model: Any, X: Any, y: Any, view: str, *, n_folds: int = 5, random_state: int = 0
) -> WithoutView:
    """Refit a model without one of its views, on the same bank, and compare the two by cross-validation.

    C and norm remain those of the model.

    Parameters
    ----------
    model : estimator or pipeline
        Fitted.
    X, y : samples and targets
        Those of the fit.
    view : str
        As ``kernel_views`` calls it.
    n_folds : int, default=5
    random_state : int, default=0

    Returns
    -------
    WithoutView

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelweave import MKLClassifier, kernels as kw
    >>> X, y = load_iris(return_X_y=True)
    >>> views = {"sepal": X[:, :2], "petal": X[:, 2:]}
    >>> clf = MKLClassifier(kw.gaussian(1.0, relative=True)).fit(views, y)
    >>> less = drop_view(clf, views, y, "sepal")
    >>> less.score_without > 0.9, less.model.predict({"petal": X[:2, 2:]}).tolist()
    (True, [0, 0])
    """
    of_kernel, names = views_of_kernels(model)
    if view not in names:
        raise ValueError(f"the model has no view {view!r}; views: {', '.join(names)}")
    keep = np.flatnonzero(of_kernel != view)
    if keep.size == 0:
        raise ValueError(f"{view!r} is the only view of the model")
    estimator = final_estimator(model)
    X, y = paired(model, X, y)
    fits = SubsetFits(estimator, transformed(model, X), y)
    folds = list(shuffled_folds(y, is_classifier(estimator), n_folds, random_state))
    (scores,) = compare_subsets(fits, np.arange(of_kernel.size), [keep], folds)
    reduced: Any = fits.model(keep, [name for name in names if name != view])
    if isinstance(model, Pipeline):
        reduced = Pipeline([*model.steps[:-1], (model.steps[-1][0], reduced)])
    return WithoutView(reduced, view, *scores)


@several_fits
def add_view(
    model: Any,
    X: Any,
    y: Any,
    view: str,
    table: Any,
    *,
    kernels: Any = None,
    missing: str | None = None,
    n_folds: int = 5,
    random_state: int = 0,
) -> WithView:
    """Refit a model with one more view, and compare the two by cross-validation.

    All kernels are computed once, for both models and for the folds; C and norm remain those of the model.

    Parameters
    ----------
    model, X, y, n_folds, random_state
        As for :func:`drop_view`; the model fitted on a dict of views (or a list of them, or ``Views``).
    view : str
        What to call the view.
    table : array or table
        The view of the same samples: in their order, or joined by name where both have names.
    kernels : kernels, optional
        For the view; by default those that the model has on every view.
    missing : {"error", "mean", "predict"}, optional
        What becomes of samples that lack the view; by default as the model has it.

    Returns
    -------
    WithView

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelweave import MKLClassifier, kernels as kw
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = MKLClassifier(kw.gaussian(1.0, relative=True)).fit({"sepal": X[:, :2]}, y)
    >>> more = add_view(clf, {"sepal": X[:, :2]}, y, "petal", X[:, 2:])
    >>> more.score_with > 0.9 > more.score_without
    True
    >>> more.model.predict({"sepal": X[:2, :2], "petal": X[:2, 2:]}).tolist()
    [0, 0]
    """
    estimator = final_estimator(model)
    fitted_on = known_views(estimator)
    if fitted_on is None or fitted_on.groups is not None:
        raise ValueError(
            "add_view needs a model that was fitted on a dict of views (or Views): fit others again, with the new "
            "columns or matrices"
        )
    X, y = paired(model, X, y)
    before = transformed(model, X)
    extended, steps = X.with_view(view, table), []
    if isinstance(model, Pipeline) and len(model.steps) > 1:
        prepare = clone(model[:-1]).fit(extended, y)
        extended, steps = prepare.transform(extended), prepare.steps
        for name, block in before.items():
            here = before.present[:, before.position(name)]
            if not _same(extended[name][here], block[here]):
                raise ValueError(
                    f"the steps before the model prepare view {name!r} differently where there is one view more: fit "
                    "the pipeline on all views"
                )
    bank = estimator.kernels
    if kernels is not None:
        own = default_bank() if bank is None else bank
        known = tuple(kernel.name for kernel in expand_kernels(own, Schema.of(before)))
        bank = Stack((Chosen(own, known), as_spec(kernels).on(view)))
    larger = clone(estimator).set_params(kernels=bank)
    if missing is not None:
        larger.set_params(missing=missing)
    fits = SubsetFits(estimator, extended, y, larger)
    settled = fits.training.kernels
    assert settled is not None
    columns, width = set(extended.groups[view]), extended.shape[1]
    old = [j for j, kernel in enumerate(settled) if not columns & kernel.looks_at(width)]
    if len(old) == len(settled):
        raise ValueError(
            f"no kernel of the model looks at view {view!r}, because they name their columns: give its own, such as "
            "kernels=kw.gaussian([0.5, 1.0, 2.0], relative=True)"
        )
    if [fits.training.names[j] for j in old] != [str(name) for name in estimator.kernel_names_]:
        raise ValueError(
            f"the kernels on the other views change when {view!r} is added: give its kernels with kernels=..., which "
            "leaves the others as they are"
        )
    everything = np.arange(len(fits.training.names))
    folds = list(shuffled_folds(y, is_classifier(estimator), n_folds, random_state))
    (scores,) = compare_subsets(fits, everything, [np.array(old, dtype=np.intp)], folds)
    fitted: Any = fits.model(everything, extended.names)
    if steps:
        fitted = Pipeline([*steps, (model.steps[-1][0], fitted)])
    return WithView(fitted, view, *scores)


def _same(left: Any, right: Any) -> bool:
    if left.shape != right.shape:
        return False
    if hasattr(left, "toarray"):
        return bool(abs(left - right).max() <= ROUNDING * abs(right).max())
    if left.dtype == object:
        return bool(np.all(left == right))
    return bool(np.max(np.abs(left - right), initial=0.0) <= ROUNDING * np.max(np.abs(right), initial=0.0))
