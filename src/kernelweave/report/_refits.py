"""Refits on folds: held-out predictions of the model and of what it has to beat, its weights, and p-values of views."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GridSearchCV

from ..inspection import WeightStability, contributions, final_estimator, kernel_families
from ..inspection.permutation import test_views
from ..inspection.views import group_shares, kernel_groups, learnt_weights, transformed
from ..kernels import take
from ..persistence import cleared
from ._measures import REGRESSION, Measure, Measured, classification, confusion, measured
from ._methods import Method, methods_for, parted
from .folds import chooses_by_folds, fitted_on, folds_of

__all__ = ["Choice", "HeldOut", "Refits", "refit"]

Array = NDArray[np.float64]
PERMUTATIONS = 999
#: views up to which each gets a p-value
MOST_VIEWS = 60
#: standard errors by which a mean must be above zero
SURE = 1.96


@dataclass(frozen=True)
class HeldOut:
    """Predictions of one method for every sample, each by a fit that did not see it; one row per round of folds.

    Attributes
    ----------
    name, about : str
    predicted : array of shape (rounds, n)
    decision : array of shape (rounds, n) or (rounds, n, k), or None
    probability : array of shape (rounds, n, k), or None
    measures : mapping
        What the measures say of them.
    """

    name: str
    about: str
    predicted: NDArray[Any]
    decision: Array | None
    probability: Array | None
    measures: dict[str, Measured]

    @property
    def mean(self) -> float:
        """The first measure."""
        return next(iter(self.measures.values())).mean

    @property
    def p_value(self) -> float:
        """Of the first measure, against the model."""
        return next(iter(self.measures.values())).p_value


@dataclass(frozen=True)
class Choice:
    """C and norm of one refit."""

    C: float
    norm: str


@dataclass(frozen=True)
class Refits:
    """Everything that needed a refit.

    Attributes
    ----------
    y : array of shape (n,)
    splits : list of (train, held out)
    rounds : int
    methods : list of HeldOut
        The model first, what looks at no feature last.
    measures : sequence of Measure
    stability : WeightStability
    choices : list of Choice
        Of every refit of the model.
    chosen_inside : bool
        Whether each refit chose C by itself.
    views : DataFrame or None
        P-values of views; None where there is a single one.
    statuses : list of str
        Why every refit of the model and of the methods on kernels ended.
    alone : str
        Why no method is fitted on the columns themselves; empty where some are.
    """

    y: NDArray[Any]
    splits: list[Any]
    rounds: int
    methods: list[HeldOut]
    measures: Sequence[Measure]
    stability: WeightStability
    choices: list[Choice]
    chosen_inside: bool
    views: Any
    classes: NDArray[Any] | None
    statuses: list[str]
    alone: str = ""

    @property
    def folds(self) -> int:
        """Folds of one round."""
        return len(self.splits) // self.rounds

    @property
    def classify(self) -> bool:
        """Whether the targets are classes."""
        return self.classes is not None

    @property
    def main(self) -> Measure:
        """The measure that tiles and pictures show."""
        return self.measures[0]

    @property
    def ours(self) -> HeldOut:
        """The model."""
        return self.methods[0]

    @property
    def baseline(self) -> HeldOut:
        """What looks at no feature."""
        return self.methods[-1]

    @cached_property
    def confusion(self) -> Array:
        """Held-out samples by class and prediction, the mean over rounds; the accuracy is its diagonal's share."""
        assert self.classes is not None
        tables = [confusion(self.y, row, self.classes) for row in self.ours.predicted]
        return np.asarray(np.mean(tables, axis=0))

    @cached_property
    def per_sample(self) -> Array:
        """Share of rounds in which a sample was predicted right, or its mean squared error."""
        right = self._right(self.ours)
        return right if self.classify else -right

    @cached_property
    def better_than_guessing(self) -> bool:
        """Whether held-out predictions are beyond doubt better than those of the method without features.

        Sample by sample, which needs no more than one round of folds.  Classes are counted alike: a model that finds
        the rare class may have a lower accuracy than one that always says the frequent one.
        """
        gain = self._right(self.ours) - self._right(self.baseline)
        if self.classify:
            _, codes, counts = np.unique(self.y, return_inverse=True, return_counts=True)
            gain = gain * (len(self.y) / (counts.size * counts))[codes]
        spread = float(np.std(gain, ddof=1)) / np.sqrt(len(gain))
        return bool(np.mean(gain) > SURE * spread)

    def _right(self, method: HeldOut) -> Array:
        """Share of rounds in which each sample was predicted right, or minus its mean squared error."""
        if self.classify:
            return np.asarray(np.mean(method.predicted == self.y, axis=0))
        return -np.asarray(np.mean((method.predicted.astype(float) - self.y) ** 2, axis=0))


def refit(
    fitted: Any,
    model: Any,
    X: Any,
    y: NDArray[Any],
    *,
    n_folds: int,
    n_repeats: int,
    random_state: int,
    groups: Any = None,
    progress: Callable[[int, int], None] | None = None,
) -> Refits:
    """Refit on folds: ``fitted`` is what the report is about, ``model`` the same on samples that can be cut."""
    model = cleared(model)  # refits neither read nor write the files of the fit
    last = final_estimator(fitted)
    classify = is_classifier(last)
    classes = last.classes_ if classify else None
    splits = folds_of(y, classify, n_folds, n_repeats, random_state, groups)
    kinds: Sequence[Measure] = classification(classes) if classify else REGRESSION
    steps, bare = parted(model)
    views = kernel_groups(fitted)
    matrices = last is not final_estimator(model) and getattr(last, "kernels_", None) is None
    samples = None if matrices else transformed(fitted, X)
    methods, alone = methods_for(bare, last, classify, samples, random_state)
    loop = _Loop(steps, methods, kinds, X, y, splits, n_repeats, groups, views)
    loop.run(progress)
    weights, scores = np.stack(loop.weights), loop.scores[0][kinds[0].name]
    names = np.asarray(last.kernel_names_, dtype=object)
    stability = WeightStability(
        weights, learnt_weights(fitted), names, views, kernel_families(fitted), np.array(scores),
        "folds", 1.0, 1e-3, np.stack(loop.view_weights), group_shares(fitted, views),
    )  # fmt: skip
    return Refits(
        y, splits, n_repeats, loop.outcomes(), kinds, stability, loop.choices, chooses_by_folds(model),
        _p_values(loop.parts, random_state, classify), classes, loop.statuses, alone,
    )  # fmt: skip


class _Loop:
    """All methods on all folds, behind the steps that come before the model."""

    def __init__(
        self, steps: Any, methods: list[Method], kinds: Sequence[Measure], X: Any, y: NDArray[Any], splits: list[Any],
        rounds: int, groups: Any, views: NDArray[Any],
    ) -> None:  # fmt: skip
        self.steps = steps
        self.methods, self.kinds, self.X, self.y, self.splits = methods, kinds, X, y, splits
        self.rounds, self.groups, self.views = rounds, None if groups is None else np.asarray(groups), views
        self.weights: list[Array] = []
        self.view_weights: list[Array] = []
        self.choices: list[Choice] = []
        self.parts: list[Any] = []
        self.statuses: list[str] = []
        self.scores: list[dict[str, list[float]]] = [{kind.name: [] for kind in kinds} for _ in methods]
        self.predicted = [np.empty((rounds, len(y)), dtype=object) for _ in methods]
        self.decisions: list[Array | None] = [None] * len(methods)
        self.shares: Array | None = None

    def run(self, progress: Callable[[int, int], None] | None) -> None:
        """Fit and predict; what only the model is asked for is asked here."""
        per_round = len(self.splits) // self.rounds
        todo, done = len(self.splits) * len(self.methods), 0
        classify = is_classifier(self.methods[0].estimator)
        for number, (train, test) in enumerate(self.splits):
            seen, held_out = take(self.X, train), take(self.X, test)
            groups = None if self.groups is None else self.groups[train]
            if self.steps is not None:  # once for all methods, which see the same columns
                steps = clone(self.steps).fit(seen, self.y[train])
                seen, held_out = steps.transform(seen), steps.transform(held_out)
            for k, method in enumerate(self.methods):
                known, new = method.view(seen), method.view(held_out)
                with warnings.catch_warnings():
                    if isinstance(method.estimator, GridSearchCV):  # of values that are not chosen, mostly
                        warnings.simplefilter("ignore")
                    other = fitted_on(method.estimator, known, self.y[train], groups, classify, per_round)
                if hasattr(other, "status_"):
                    self.statuses.append(other.status_)
                self._keep(method, k, other, new, number // per_round, test)
                if k == 0:
                    self._keep_model(other, held_out, number // per_round, test)
                done += 1
                if progress is not None:
                    progress(done, todo)

    def _keep(
        self, method: Method, k: int, other: Any, held_out: Any, round_: int, test: NDArray[np.intp]
    ) -> None:
        predicted = other.predict(held_out)
        self.predicted[k][round_, test] = predicted
        values = None
        if hasattr(other, "decision_function"):
            values = np.asarray(other.decision_function(held_out))
        elif hasattr(other, "predict_proba") and method.sees != "nothing":
            values = np.asarray(other.predict_proba(held_out))
            values = values[:, 1] if values.shape[1] == 2 else values
        elif hasattr(other, "classes_"):  # guessing has shares only: no sample is before another
            values = np.zeros((len(test), len(other.classes_)) if len(other.classes_) > 2 else len(test))
        if values is not None:
            kept = self.decisions[k]
            if kept is None:
                kept = self.decisions[k] = np.full((self.rounds, len(self.y), *values.shape[1:]), np.nan)
            kept[round_, test] = values
        for kind in self.kinds:
            self.scores[k][kind.name].append(kind.of(self.y[test], predicted, values))

    def _keep_model(self, other: Any, held_out: Any, round_: int, test: NDArray[np.intp]) -> None:
        last = final_estimator(other)
        self.weights.append(learnt_weights(other))
        self.view_weights.append(group_shares(other, self.views))
        norm = getattr(last, "norm_", last.norm)
        label = getattr(norm, "label", None) or str(norm)
        self.choices.append(Choice(float(np.mean(last.C_)), label))
        if round_ == 0:
            self.parts.append((contributions(other, held_out, views=self.views), self.y[test]))
        if hasattr(other, "predict_proba"):
            shares = other.predict_proba(held_out)
            if self.shares is None:
                self.shares = np.full((self.rounds, len(self.y), shares.shape[1]), np.nan)
            self.shares[round_, test] = shares

    def outcomes(self) -> list[HeldOut]:
        """Return what every method came to."""
        sizes = np.array([len(test) for _, test in self.splits], dtype=float)
        share = len(self.splits[0][1]) / len(self.splits[0][0])
        made = []
        for k, method in enumerate(self.methods):
            measures = {}
            for kind in self.kinds:
                ours = None if k == 0 else np.array(self.scores[0][kind.name])
                scores = np.array(self.scores[k][kind.name])
                # where rounds can be taken as wholes they are: the numbers are then those of the confusion matrix
                whole = [kind.of(self.y, row, None) for row in self.predicted[k]] if kind.pooled else None
                measures[kind.name] = measured(scores, sizes, share, ours, kind.most, whole)
            shares = self.shares if k == 0 else None
            made.append(
                HeldOut(method.name, method.about, self.predicted[k], self.decisions[k], shares, measures)
            )
        return made


def _p_values(parts: list[Any], seed: int, classify: bool) -> Any:
    """P-values of views, where there are at least two."""
    if not 2 <= len(parts[0][0].view_names) <= MOST_VIEWS:
        return None
    return test_views(parts, PERMUTATIONS, np.random.RandomState(seed), classify).set_index("view")
