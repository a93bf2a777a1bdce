"""Which views are worth measuring: a model on every subset of them."""

from __future__ import annotations

from itertools import chain, combinations
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.model_selection import KFold, StratifiedKFold

from .._estimating import several_fits
from ..estimators.subsets import SubsetFits
from .views import final_estimator, kernel_views, paired, transformed

__all__ = ["folds_for", "view_subsets", "views_of_kernels"]

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
    import pandas as pd

    of_kernel, names = views_of_kernels(model)
    if len(names) > MOST_VIEWS:
        raise ValueError(f"{len(names)} views have {2 ** len(names) - 1} subsets: at most {MOST_VIEWS} views")
    chosen = list(chain.from_iterable(combinations(names, k) for k in range(1, len(names) + 1)))
    subsets = [np.flatnonzero(np.isin(of_kernel, subset)) for subset in chosen]
    X, y = paired(model, X, y)
    fits = SubsetFits(final_estimator(model), transformed(model, X), y)
    folds = folds_for(final_estimator(model), y, n_folds, random_state) if splits is None else list(splits)
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


def views_of_kernels(model: Any) -> tuple[np.ndarray, list[str]]:
    """View of every kernel, and the views in order."""
    of_kernel = np.array([str(view) for view in kernel_views(model)], dtype=object)
    return of_kernel, list(dict.fromkeys(of_kernel.tolist()))


def folds_for(estimator: Any, y: Any, n_folds: int, seed: int) -> list[Any]:
    """Return shuffled folds, stratified by class; fewer where a class has fewer samples."""
    labels = np.asarray(y)
    if not is_classifier(estimator):
        return list(KFold(n_folds, shuffle=True, random_state=seed).split(labels))
    rarest = int(np.unique(labels, return_counts=True)[1].min())
    if rarest < 2:
        raise ValueError("folds need at least two samples of every class")
    folds = StratifiedKFold(min(n_folds, rarest), shuffle=True, random_state=seed)
    return list(folds.split(np.zeros((labels.size, 1)), labels))
