"""Ways to learn from samples that lack views, each a function from training and new views to predicted labels."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator

import numpy as np
from sklearn.impute import KNNImputer
from sklearn.linear_model import RidgeCV

from kernelweave import MKLClassifier
from kernelweave import kernels as kw
from kernelweave.exceptions import KernelWeaveWarning
from kernelweave.kernels import Schema, expand_kernels
from kernelweave.views import Views

Predict = Callable[[Views, np.ndarray, Views], np.ndarray]
#: one Gaussian per view, of the median distance
KERNELS = kw.gaussian(1.0, relative=True)
ROUNDS = 5
NEIGHBOURS = 5


def completed(how: str) -> Predict:
    """Complete kernels in feature space."""

    def predict(train: Views, y: np.ndarray, new: Views) -> np.ndarray:
        return _quietly(MKLClassifier(KERNELS, norm=2, C=1.0, missing=how), train, y, new)

    return predict


def _quietly(model: MKLClassifier, train: Views, y: np.ndarray, new: Views) -> np.ndarray:
    """Fit and predict; that views are lost by class, or more often than before, is what is studied here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KernelWeaveWarning)
        return model.fit(train, y).predict(new)


def zeros(train: Views, y: np.ndarray, new: Views) -> np.ndarray:
    """Let samples have no similarity to any other in the views they lack."""
    stack = np.zeros((len(train.names), len(train), len(train)))
    cross = np.zeros((len(train.names), len(new), len(train)))
    for j, kernel in enumerate(expand_kernels(KERNELS, Schema.of(train))):
        have, theirs = np.flatnonzero(train.present[:, j]), np.flatnonzero(new.present[:, j])
        settled = kernel.resolve(train[have])
        stack[j][np.ix_(have, have)] = settled(train[have])
        cross[j][np.ix_(theirs, have)] = settled(new[theirs], train[have])
    return MKLClassifier("precomputed", norm=2, C=1.0, normalize=None).fit(stack, y).predict(cross)


def _on_columns(train: np.ndarray, y: np.ndarray, new: np.ndarray, like: Views) -> np.ndarray:
    """Fit the same kernels on tables without gaps."""
    bank = kw.per_view(like.groups, KERNELS)
    return MKLClassifier(bank, norm=2, C=1.0).fit(train, y).predict(new)


def column_mean(train: Views, y: np.ndarray, new: Views) -> np.ndarray:
    """Put the mean of every column in the gaps."""
    filled, means = np.asarray(train, dtype=float), np.nanmean(np.asarray(train, dtype=float), axis=0)
    other = np.asarray(new, dtype=float)
    filled, other = (np.where(np.isnan(table), means, table) for table in (filled, other))
    return _on_columns(filled, y, other, train)


def neighbours(train: Views, y: np.ndarray, new: Views) -> np.ndarray:
    """Put the mean of the nearest samples in the gaps, by the columns that both have."""
    imputer = KNNImputer(n_neighbors=NEIGHBOURS).fit(np.asarray(train, dtype=float))
    tables = (imputer.transform(np.asarray(table, dtype=float)) for table in (train, new))
    return _on_columns(next(tables), y, next(tables), train)


def column_ridge(train: Views, y: np.ndarray, new: Views) -> np.ndarray:
    """Predict the columns of every view from all others by ridge regression, in rounds."""
    tables = [np.asarray(table, dtype=float) for table in (train, new)]
    means = np.nanmean(tables[0], axis=0)
    tables = [np.where(np.isnan(table), means, table) for table in tables]
    starts = train.starts
    for _ in range(ROUNDS):
        for k in range(len(train.names)):
            own = np.arange(starts[k], starts[k + 1])
            others = np.setdiff1d(np.arange(starts[-1]), own)
            have = train.present[:, k]
            ridge = RidgeCV(np.logspace(0, 4, 5)).fit(tables[0][have][:, others], tables[0][have][:, own])
            for table, views in zip(tables, (train, new), strict=True):
                gone = ~views.present[:, k]
                if gone.any():
                    table[np.ix_(gone, own)] = ridge.predict(table[gone][:, others])
    return _on_columns(tables[0], y, tables[1], train)


def complete_samples(train: Views, y: np.ndarray, new: Views) -> np.ndarray:
    """Learn from complete samples alone and complete new ones by them; no labels where a class has none."""
    whole = np.flatnonzero(train.present.all(axis=1))
    if np.unique(y[whole]).size < np.unique(y).size:
        return np.full(len(new), -1)
    return completed("predict")(train[whole], y[whole], new)


def views_of_pattern(train: Views, y: np.ndarray, new: Views) -> np.ndarray:
    """Fit one model for every pattern of new samples, on its views and all samples that have one of them (*mean*)."""
    labels = np.empty(len(new), dtype=y.dtype)
    for names, rows in _patterns(new):
        mine, theirs = train.only(names), new.only(names)[rows]
        have = np.flatnonzero(mine.present.any(axis=1))
        labels[rows] = completed("mean")(mine[have], y[have], theirs)
    return labels


def _patterns(new: Views) -> Iterator[tuple[list[str], np.ndarray]]:
    """Yield the views of every pattern, and who has it."""
    for pattern in np.unique(new.present, axis=0):
        names = [name for name, here in zip(new.names, pattern, strict=True) if here]
        yield names, np.flatnonzero(np.all(new.present == pattern, axis=1))


def model_per_pattern(train: Views, y: np.ndarray, new: Views) -> np.ndarray:
    """Fit one model for every pattern of new samples, on its views and the training samples that have them."""
    labels = np.empty(len(new), dtype=y.dtype)
    for names, rows in _patterns(new):
        have = np.flatnonzero(train.only(names).present.all(axis=1))
        values, counts = np.unique(y[have] if have.size else y, return_counts=True)
        if values.size < 2 or have.size < 2:
            labels[rows] = values[np.argmax(counts)]
            continue
        model = MKLClassifier(KERNELS, norm=2, C=1.0)
        labels[rows] = model.fit(train.only(names)[have], y[have]).predict(new.only(names)[rows])
    return labels


METHODS: dict[str, Predict] = {
    "predict": completed("predict"),
    "mean": completed("mean"),
    "zeros": zeros,
    "column mean": column_mean,
    "column neighbours": neighbours,
    "column ridge": column_ridge,
    "views of the pattern": views_of_pattern,
    "model per pattern": model_per_pattern,
    "complete samples": complete_samples,
}
