"""Refits on folds: held-out predictions of the model and of simpler methods, and how they are measured."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, stats
from sklearn.base import clone, is_classifier
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import r2_score, roc_auc_score, root_mean_squared_error
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import _num_samples

from .._numerics.significance import corrected_t_test
from .._typing import Array
from ..inspection import (
    TiedViews,
    WeightStability,
    contributions,
    final_estimator,
    kernel_families,
    tied_views,
)
from ..inspection.importance import test_views
from ..inspection.views import group_shares, kernel_groups, learnt_weights, transformed
from ..kernels import take
from ..persistence import cleared
from ._html import number, percent
from .folds import chooses_by_folds, fitted_on, folds_of

# ------------------------------------------------------------------------------------------------------------
# Measures of held-out predictions: what they are called, how they are shown, and how they are averaged over
# folds.


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


# ------------------------------------------------------------------------------------------------------------
# What a model has to beat on the same folds: guessing, simpler methods on its kernels, and others on the
# columns.


MODEL = "this model"
#: names of the methods that look at no feature
BASELINE = {True: "majority class", False: "mean of the targets"}
#: values that linear methods on the columns choose among
LINEAR_CS = tuple(10.0 ** np.arange(-4, 3))
TREES = 100


@dataclass(frozen=True)
class Method:
    """Something to fit and score on the folds.

    Attributes
    ----------
    name, about : str
    estimator : estimator
    sees : {"samples", "columns", "nothing"}
        What it is given: the samples as the model gets them, the columns of them that kernels look at, or no features.
    columns : sequence of int or None
        Which ones; None is all.
    """

    name: str
    about: str
    estimator: Any
    sees: str = "samples"
    columns: Sequence[int] | None = None

    def view(self, samples: Any) -> Any:
        """Return what the estimator is given of some samples."""
        if self.sees == "nothing":
            return np.zeros((_num_samples(samples), 1))
        return samples if self.sees == "samples" else _table(samples, self.columns)


def _table(samples: Any, columns: Sequence[int] | None) -> Any:
    """Return columns as one table of numbers; of whole views that a sample lacks they are NaN."""
    table = sparse.csr_matrix(samples) if sparse.issparse(samples) else np.asarray(samples, dtype=float)
    return table if columns is None else table[:, list(columns)]


def methods_for(model: Any, fitted: Any, classify: bool, samples: Any, seed: int) -> tuple[list[Method], str]:
    """Return the methods to compare, and why there is none on the columns, where there is none.

    The model (without steps before it) comes first, then simpler methods on the same kernels and methods on the columns
    themselves, and last one without features.  ``samples`` are those of the fit as the model gets them.
    """
    dummy: Any = DummyClassifier(strategy="most_frequent") if classify else DummyRegressor()
    about = "always the most frequent class" if classify else "always the mean of the training targets"
    simpler = _for_classes(model, fitted) if classify else [_for_numbers(model, fitted)]
    on_columns, why = _on_columns(model, fitted, classify, samples, seed)
    last = Method(BASELINE[classify], about, dummy, sees="nothing")
    return [Method(MODEL, "", model), *simpler, *on_columns, last], why


# ---- on the columns --------------------------------------------------------------------------------------------------


def _on_columns(model: Any, fitted: Any, classify: bool, samples: Any, seed: int) -> tuple[list[Method], str]:
    """Return a linear method and a forest on the columns of the samples; or nothing, and why."""
    kernels = getattr(fitted, "kernels_", None)
    if not kernels or any(kernel.takes_indices or kernel.takes_objects for kernel in kernels):
        return [], "the samples are no table of numbers that other methods could be fitted on"
    try:
        table = _table(samples, None)
    except (TypeError, ValueError):
        return [], "the columns are not all numbers, and other methods cannot be fitted on them"
    if table.ndim != 2:
        return [], "the samples are no table of numbers that other methods could be fitted on"
    used = sorted(set().union(*(kernel.looks_at(table.shape[1]) for kernel in kernels)))
    columns = None if len(used) == table.shape[1] else tuple(used)
    is_sparse = sparse.issparse(table)
    gaps = not is_sparse and not np.all(np.isfinite(table[:, used]))
    steps: list[tuple[str, Any]] = [("imputed", SimpleImputer(keep_empty_features=True))] if gaps else []
    filled = ", missing ones replaced by the mean" if gaps else ""
    weight = {"class_weight": getattr(model, "class_weight", None)} if classify else {}
    linear: Any = LogisticRegression(max_iter=1000, **weight) if classify else Ridge()
    grid = {"linear__C": LINEAR_CS} if classify else {"linear__alpha": tuple(1.0 / C for C in LINEAR_CS)}
    scaler = StandardScaler(with_mean=not is_sparse)
    search = GridSearchCV(Pipeline([*steps, ("scaled", scaler), ("linear", linear)]), grid)
    kind: Any = RandomForestClassifier if classify else RandomForestRegressor
    forest = Pipeline([*steps, ("forest", kind(TREES, random_state=seed, **weight))])
    what = f"on the {len(used)} columns that the kernels look at{filled}"
    name, strength = ("logistic regression", "C") if classify else ("ridge regression", "the penalty")
    about = f"{what}, standardised, {strength} by cross-validation inside each fold"
    return [
        Method(name, about, search, "columns", columns),
        Method("random forest", f"{TREES} trees {what}", forest, "columns", columns),
    ], ""


# ---- on the same kernels ---------------------------------------------------------------------------------------------


def _has_fixed_parts(fitted: Any) -> bool:
    """Whether some kernels always count (``kernels.always``): rules that weigh all kernels refuse those."""
    return any(kernel.always is not None for kernel in getattr(fitted, "kernels_", None) or [])


def _for_numbers(model: Any, fitted: Any) -> Method:
    """Equal weights: with C chosen as the model chooses it, else by leave-one-out."""
    from ..estimators import MeanKernelRidgeRegressor

    about = "all kernels with the same weight"
    chosen = hasattr(model, "Cs") and model.criterion == "convex"
    if chosen or _has_fixed_parts(fitted) or not fitted.loss_.least_squares:
        return _mean_kernel(model, about)
    ridge = MeanKernelRidgeRegressor(model.kernels, missing=getattr(model, "missing", "error"))
    return Method("mean kernel", f"{about}, C by leave-one-out", ridge)


def _for_classes(model: Any, fitted: Any) -> list[Method]:
    from ..estimators import BestKernelClassifier, MeanKernelClassifier, MKLClassifier
    from ..estimators.noisy import NoisyLabelMKLClassifier

    C = float(np.mean(fitted.C_))
    fixed = _has_fixed_parts(fitted)
    if isinstance(model, NoisyLabelMKLClassifier) or "norm" not in model.get_params(deep=False):
        # a loss or weights by a rule of its own
        about = f"SVM with all kernels weighted alike, at the model's C = {C:.3g}"
        weight = model.class_weight
        made: Any = MeanKernelClassifier(model.kernels, C=C, class_weight=weight)
        if fixed:
            made = MKLClassifier(model.kernels, norm="uniform", C=C, class_weight=weight)
        mean = Method("mean kernel", about, made)
    else:
        mean = _mean_kernel(model, "all kernels weighted alike")
    if fixed:
        return [mean]
    best = BestKernelClassifier(
        model.kernels, C=C, class_weight=model.class_weight, missing=getattr(model, "missing", "error")
    )
    about = f"SVM on the kernel that does best in cross-validation, at the model's C = {C:.3g}"
    if hasattr(model, "Cs"):
        best.set_params(Cs=model.Cs, cv=model.cv, random_state=model.random_state)
        about = "SVM on the kernel that does best in cross-validation, C among the model's values and on its folds"
    return [mean, Method("best single kernel", about, best)]


def _mean_kernel(model: Any, about: str) -> Method:
    """The same model with weights that are not learnt; it chooses C where the model does."""
    last = clone(model).set_params(norm="uniform", solver="auto")
    chosen = hasattr(last, "Cs")
    if chosen:
        last.set_params(norms=None)
    how = "C chosen as for the model" if chosen else "at the same C"
    return Method("mean kernel", f"{about}, {how}", last)


def parted(model: Any) -> tuple[Any, Any]:
    """Return the steps before the model, None where there are none, and the model itself."""
    if not isinstance(model, Pipeline):
        return None, model
    return model[:-1] if len(model.steps) > 1 else None, model.steps[-1][1]


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
class FoldChoice:
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
    choices : list of FoldChoice
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
    choices: list[FoldChoice]
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
        """Return the baseline that looks at no feature."""
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
        self.choices: list[FoldChoice] = []
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
        for place, (train, test) in enumerate(self.splits):
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
                self._keep(method, k, other, new, place // per_round, test)
                if k == 0:
                    self._keep_model(other, held_out, place // per_round, test)
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
        self.choices.append(FoldChoice(float(np.mean(last.C_)), label))
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


@dataclass(frozen=True)
class Subject:
    """A fitted model, its samples, and what refits on folds gave.

    Attributes
    ----------
    model : estimator or pipeline
        Fitted on X and y.
    estimator : estimator
        The one with kernels: the last step of a pipeline.
    X, y : samples and targets
    names : list of str
        What the samples are called.
    refits : Refits
    note : mapping
        Settings of the command line.
    seed : int
    groups : array or None
        Groups of samples that were kept together in folds.
    """

    model: Any
    estimator: Any
    X: Any
    y: NDArray[Any]
    names: Sequence[str]
    refits: Refits
    note: Mapping[str, Any]
    seed: int
    groups: NDArray[Any] | None = None

    @cached_property
    def ties(self) -> TiedViews | None:
        """Weights of views at choices of C and norm that the scores do not tell from the one made, if there are any."""
        return tied_views(self.model)
