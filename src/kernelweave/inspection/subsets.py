"""Which views are worth measuring: a model without one of them, and on every subset of them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, combinations
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import Pipeline

from .._numerics.significance import corrected_t_test
from ..estimators.subsets import SubsetFits
from .views import final_estimator, kernel_views, transformed

__all__ = ["WithoutView", "drop_view", "view_subsets"]

#: views of which all subsets are tried
MOST_VIEWS = 5


@dataclass(frozen=True)
class WithoutView:
    """A model refitted without a view, and the accuracy of both on held-out folds.

    Attributes
    ----------
    model : estimator or pipeline
        Fitted on all samples without the view.
    view : str
    score_with, score_without : float
        Mean accuracy (R2 of a regression) on held-out folds.
    p_value : float
        Of the difference between the two, corrected for the overlap of the folds.
    """

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
    of_kernel, names = _views(model)
    if view not in names:
        raise ValueError(f"the model has no view {view!r}; views: {', '.join(names)}")
    keep = np.flatnonzero(of_kernel != view)
    if keep.size == 0:
        raise ValueError(f"{view!r} is the only view of the model")
    fits = SubsetFits(final_estimator(model), transformed(model, X), y)
    splits = _folds(final_estimator(model), y, n_folds, random_state)
    scores, _ = fits.scores([np.arange(of_kernel.size), keep], splits)
    p_value = corrected_t_test(scores[0], scores[1], len(splits[0][1]) / len(splits[0][0]))
    reduced: Any = fits.model(keep, [name for name in names if name != view])
    if isinstance(model, Pipeline):
        reduced = Pipeline([*model.steps[:-1], (model.steps[-1][0], reduced)])
    return WithoutView(reduced, view, float(scores[0].mean()), float(scores[1].mean()), p_value)


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
    import pandas as pd

    of_kernel, names = _views(model)
    if len(names) > MOST_VIEWS:
        raise ValueError(f"{len(names)} views have {2 ** len(names) - 1} subsets: at most {MOST_VIEWS} views")
    chosen = list(chain.from_iterable(combinations(names, k) for k in range(1, len(names) + 1)))
    subsets = [np.flatnonzero(np.isin(of_kernel, subset)) for subset in chosen]
    fits = SubsetFits(final_estimator(model), transformed(model, X), y)
    folds = _folds(final_estimator(model), y, n_folds, random_state) if splits is None else list(splits)
    scores, seconds = fits.scores(subsets, folds)
    table = pd.DataFrame(
        {
            "views": [", ".join(subset) for subset in chosen],
            "kernels": [subset.size for subset in subsets],
            "score": scores.mean(axis=1),
            "sd": scores.std(axis=1, ddof=1),
            "seconds": seconds.mean(axis=1),
        }
    )
    return table.sort_values(["score", "kernels"], ascending=[False, True], ignore_index=True)


def _views(model: Any) -> tuple[np.ndarray, list[str]]:
    """View of every kernel, and the views in order."""
    of_kernel = np.array([str(view) for view in kernel_views(model)], dtype=object)
    return of_kernel, list(dict.fromkeys(of_kernel.tolist()))


def _folds(estimator: Any, y: Any, n_folds: int, seed: int) -> list[Any]:
    labels = np.asarray(y)
    if not is_classifier(estimator):
        return list(KFold(n_folds, shuffle=True, random_state=seed).split(labels))
    rarest = int(np.unique(labels, return_counts=True)[1].min())
    if rarest < 2:
        raise ValueError("folds need at least two samples of every class")
    folds = StratifiedKFold(min(n_folds, rarest), shuffle=True, random_state=seed)
    return list(folds.split(np.zeros((labels.size, 1)), labels))
