"""Folds to refit on: stratified by class, and whole groups together where samples belong to groups."""

from __future__ import annotations

from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold
from sklearn.pipeline import Pipeline

from ..inspection import final_estimator
from ..inspection.subsets import shuffled_folds

Split = tuple[NDArray[np.intp], NDArray[np.intp]]


def folds_of(y: Any, classify: bool, n_folds: int, n_repeats: int, seed: int, groups: Any) -> list[Split]:
    """Return training and held-out samples of every fold, round by round; every class is in every training part."""
    if y.dtype.names:
        y, classify = y["event"].astype(int), True
    if groups is None:
        return list(shuffled_folds(y, classify, n_folds, seed, n_repeats))
    splits: list[Split] = []
    rows = np.zeros((len(y), 1))
    n_folds = most_folds(y, groups, n_folds, classify)
    for number in range(n_repeats):
        splits += group_folds(n_folds, classify, seed + number).split(rows, y, groups)
    if classify and any(np.unique(y[train]).size < np.unique(y).size for train, _ in splits):
        raise ValueError("a fold of whole groups has no training sample of some class: use fewer folds")
    return splits


def most_folds(y: Any, groups: Any, n_folds: int, classify: bool) -> int:
    """Return how many folds whole groups can be cut into, at most ``n_folds``."""
    count = _groups(y, groups, classify)
    if count < 2:
        raise ValueError("folds of whole groups need at least two groups (of every class)")
    return min(n_folds, count)


def _groups(y: Any, groups: Any, classify: bool) -> int:
    """Return how many groups there are, of the class that has the fewest."""
    if not classify:
        return len(np.unique(groups))
    return min(len(np.unique(np.asarray(groups)[y == label])) for label in np.unique(y))


def group_folds(n_folds: int, classify: bool, seed: int | None = 0) -> Any:
    """Return a splitter that keeps groups together."""
    kind = StratifiedGroupKFold if classify else GroupKFold
    return kind(n_folds, shuffle=True, random_state=seed)


def fitted_on(model: Any, X: Any, y: Any, groups: Any, classify: bool, n_folds: int, **beside: Any) -> Any:
    """Return a copy of the model fitted; its own cross-validation, where it has one, keeps groups together.

    ``beside`` is what its fit, or that of the last step of a pipeline, is given beside samples and targets, where it
    takes that.
    """
    copy = clone(model)
    takes = signature((copy.steps[-1][1] if isinstance(copy, Pipeline) else copy).fit).parameters
    beside = {name: value for name, value in beside.items() if name in takes}
    before = f"{copy.steps[-1][0]}__" if isinstance(copy, Pipeline) else ""
    kinds, of_classes = (y["event"].astype(int), True) if y.dtype.names else (y, classify)
    whole = groups is not None and _groups(kinds, groups, of_classes) > 1
    if chooses_by_folds(copy) and "groups" in takes:
        if groups is not None:
            beside["groups"] = groups
        if whole and isinstance(final_estimator(copy).cv, int | None):  # folds that would not look at groups
            inner = group_folds(most_folds(kinds, groups, n_folds, of_classes), of_classes)
            copy.set_params(**{f"{before}cv": inner})
    elif whole and (isinstance(copy, GridSearchCV) or chooses_by_folds(copy)):
        inner = group_folds(most_folds(y, groups, n_folds, classify), classify)
        copy.set_params(cv=list(inner.split(np.zeros((len(y), 1)), y, groups)))
    elif isinstance(copy, GridSearchCV):
        rarest = int(np.unique(y, return_counts=True)[1].min()) if classify else len(y)
        kind = StratifiedKFold if classify else KFold
        copy.set_params(cv=kind(max(2, min(n_folds, rarest)), shuffle=True, random_state=0))
    return copy.fit(X, y, **{before + name: value for name, value in beside.items()})


def chooses_by_folds(model: Any) -> bool:
    """Whether a model chooses its C by cross-validation inside its fit."""
    try:
        return getattr(final_estimator(model), "Cs", None) is not None
    except ValueError:  # no kernels: a baseline
        return False
