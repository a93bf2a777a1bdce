"""Refits on folds: held-out predictions of the model and of simpler methods, and how they are measured."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, stats
from sklearn.base import clone
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
from ..kernels.pairwise import PairKernel
from ..persistence import cleared
from ..views import Pairs
from ._html import number, percent
from .folds import chooses_by_folds, fitted_on, folds_of
from .pairs import ObjectMeans, ObjectShares, pair_folds


@dataclass(frozen=True)
class Measure:
    """A measure of held-out predictions."""

    name: str
    about: str
    of: Callable[[Any, Any, Any], float]  # of(targets, predicted, decision); NaN where these do not define it
    shown: Callable[[float], str]  # writes a value for people
    pooled: bool = False  # whether the predictions of all folds are measured together
    most: float = 1.0  # the best possible value


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
    """Return the mean over folds (of ``whole`` rounds where given), its interval, and how it compares with ``ours``."""
    # interval and p-value allow for the overlap of the training sets (Nadeau and Bengio 2003)
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


def auroc(y: Any, decision: Array, classes: Any) -> float:
    """Return the area under the ROC curve, of several classes the mean of each against the rest; NaN if one lacks."""
    if decision is None or len(np.unique(y)) < len(classes):
        return float("nan")
    if decision.ndim == 1:
        return float(roc_auc_score(y == classes[1], decision))
    return float(np.mean([roc_auc_score(y == label, decision[:, k]) for k, label in enumerate(classes)]))


def measures_for(classes: Any) -> Sequence[Measure]:
    """Return the measures of a classifier, or of a regression where there are no classes."""
    if classes is None:
        return (
            Measure(
                "R²", "share of the variance that is predicted",
                lambda y, predicted, _: float(r2_score(y, predicted)) if len(y) > 1 else float("nan"), number,
            ),
            Measure(
                "RMSE", "root of the mean squared error",
                lambda y, predicted, _: float(root_mean_squared_error(y, predicted)), number, most=float("inf"),
            ),
        )  # fmt: skip

    def recall(y: Any, predicted: Any, _: Any) -> float:
        return float(np.mean([np.mean(predicted[y == label] == label) for label in np.unique(y)]))

    several = ", the mean of each class against the rest" if len(classes) > 2 else ""
    return (
        Measure(
            "accuracy", "share of samples predicted right",
            lambda y, predicted, _: float(np.mean(predicted == y)), percent, pooled=True,
        ),
        Measure("balanced accuracy", "mean over classes of the share predicted right", recall, percent, pooled=True),
        Measure(
            "AUROC", f"area under the ROC curve{several}",
            lambda y, _, values: auroc(y, values, classes), number,
        ),
    )  # fmt: skip


#: values that linear methods on the columns choose among
LINEAR_CS = tuple(10.0 ** np.arange(-4, 3))
TREES = 100


@dataclass(frozen=True)
class Method:
    """Something to fit and score on the folds."""

    name: str
    about: str
    estimator: Any
    #: what it is given: the samples as the model gets them, the columns of them that kernels use, or no features
    sees: Literal["samples", "columns", "nothing"] = "samples"
    columns: Sequence[int] | None = None  # None is all

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
    """Return the methods to compare, the model first and one without features last, and why none is on the columns."""
    dummy: Any = DummyClassifier(strategy="most_frequent") if classify else DummyRegressor()
    about = "always the most frequent class" if classify else "always the mean of the training targets"
    name = "majority class" if classify else "mean of the targets"
    on_columns, why = _on_columns(model, fitted, classify, samples, seed)
    if isinstance(samples, Pairs):
        objects: Any = ObjectShares() if classify else ObjectMeans()
        about_objects = "what both objects, as far as known, add to the mean"
        on_columns, why = [Method("means of the objects", about_objects, objects)], ""
    last = Method(name, about, dummy, sees="nothing")
    return [Method("this model", "", model), *_on_kernels(model, fitted, classify), *on_columns, last], why


@dataclass(frozen=True)
class Table:
    """The columns that kernels look at, for methods from outside."""

    columns: tuple[int, ...] | None  # None is all
    #: steps before a method, and in words what it is fitted on
    steps: list[tuple[str, Any]]
    about: str
    is_sparse: bool
    width: int

    @classmethod
    def of(cls, kernels: Any, samples: Any) -> Table | str:
        """Return the columns of samples that kernels look at; or why there are none for other methods."""
        if not kernels or any(kernel.takes_indices or kernel.takes_objects for kernel in kernels):
            return "the samples are no table of numbers that other methods could be fitted on"
        try:
            table = _table(samples, None)
        except (TypeError, ValueError):
            return "the columns are not all numbers, and other methods cannot be fitted on them"
        if table.ndim != 2:
            return "the samples are no table of numbers that other methods could be fitted on"
        used = sorted(set().union(*(kernel.looks_at(table.shape[1]) for kernel in kernels)))
        is_sparse = sparse.issparse(table)
        gaps = not is_sparse and not np.all(np.isfinite(table[:, used]))
        steps: list[tuple[str, Any]] = [("imputed", SimpleImputer(keep_empty_features=True))] if gaps else []
        filled = ", missing ones replaced by the mean" if gaps else ""
        columns = None if len(used) == table.shape[1] else tuple(used)
        about = f"on the {len(used)} columns that the kernels look at{filled}"
        return cls(columns, steps, about, is_sparse, table.shape[1])


def _on_columns(model: Any, fitted: Any, classify: bool, samples: Any, seed: int) -> tuple[list[Method], str]:
    """Return a linear method and a forest on the columns of the samples; or nothing, and why."""
    table = Table.of(getattr(fitted, "kernels_", None), samples)
    if isinstance(table, str):
        return [], table
    weight = {"class_weight": getattr(model, "class_weight", None)} if classify else {}
    linear: Any = LogisticRegression(max_iter=1000, **weight) if classify else Ridge()
    grid = {"linear__C": LINEAR_CS} if classify else {"linear__alpha": tuple(1.0 / C for C in LINEAR_CS)}
    scaler = StandardScaler(with_mean=not table.is_sparse)
    search = GridSearchCV(Pipeline([*table.steps, ("scaled", scaler), ("linear", linear)]), grid)
    kind: Any = RandomForestClassifier if classify else RandomForestRegressor
    forest = Pipeline([*table.steps, ("forest", kind(TREES, random_state=seed, **weight))])
    name, strength = ("logistic regression", "C") if classify else ("ridge regression", "the penalty")
    about = f"{table.about}, standardised, {strength} by cross-validation inside each fold"
    return [
        Method(name, about, search, "columns", table.columns),
        Method("random forest", f"{TREES} trees {table.about}", forest, "columns", table.columns),
    ], ""


def _on_kernels(model: Any, fitted: Any, classify: bool) -> list[Method]:
    """Return simpler methods on the same kernels: equal weights, and for classes also the best single kernel."""
    from ..estimators import (
        BestKernelClassifier,
        MeanKernelClassifier,
        MeanKernelRidgeRegressor,
        MKLClassifier,
        NoisyLabelMKLClassifier,
    )

    C, missing = float(np.mean(fitted.C_)), getattr(model, "missing", "error")
    chooses = hasattr(model, "Cs")
    pairs = any(isinstance(kernel, PairKernel) for kernel in getattr(fitted, "kernels_", None) or [])
    # kernels that always count (``kernels.always``): rules that weigh all kernels refuse those
    fixed = any(kernel.always is not None for kernel in getattr(fitted, "kernels_", None) or [])
    no_norm = isinstance(model, NoisyLabelMKLClassifier) or "norm" not in model.get_params(deep=False)
    about = "all kernels weighted alike" if classify else "all kernels with the same weight"
    mean: Any
    if classify and no_norm:  # a loss or weights by a rule of its own
        about = f"SVM with {about}, at the model's C = {C:.3g}"
        mean = MeanKernelClassifier(model.kernels, C=C, class_weight=model.class_weight)
        if fixed:
            mean = MKLClassifier(model.kernels, norm="uniform", C=C, class_weight=model.class_weight)
    elif (
        classify
        or fixed
        or pairs
        or (chooses and model.criterion == "convex")
        or not fitted.loss_.least_squares
    ):  # the same model with weights that are not learnt
        mean = clone(model).set_params(norm="uniform", solver="auto")
        if chooses:
            mean.set_params(norms=None)
        evidence = chooses and getattr(model, "criterion", "convex") != "convex"
        if evidence:
            mean.set_params(criterion="convex")
        chosen = ", C by cross-validation" if evidence else ", C chosen as for the model"
        about += chosen if chooses else ", at the same C"
    else:
        mean = MeanKernelRidgeRegressor(model.kernels, missing=missing)
        about += ", C by leave-one-out"
    methods = [Method("mean kernel", about, mean)]
    if classify and not fixed and not pairs:
        best = BestKernelClassifier(model.kernels, C=C, class_weight=model.class_weight, missing=missing)
        about = f"at the model's C = {C:.3g}"
        if chooses:
            best.set_params(Cs=model.Cs, cv=model.cv, random_state=model.random_state)
            about = "C among the model's values and on its folds"
        about = f"SVM on the kernel that does best in cross-validation, {about}"
        methods.append(Method("best single kernel", about, best))
    return methods


PERMUTATIONS = 999
#: views up to which each gets a p-value
MOST_VIEWS = 60
#: standard errors by which a mean must be above zero
SURE = 1.96


@dataclass
class HeldOut:
    """Predictions of one method for every sample, each by a fit that did not see it; one row per round of folds."""

    name: str
    about: str
    predicted: NDArray[Any]  # (rounds, n)
    scores: dict[str, list[float]]  # of every measure, by folds
    decision: Array | None = None  # (rounds, n) or (rounds, n, k)
    probability: Array | None = None  # (rounds, n, k)
    measures: dict[str, Measured] = field(default_factory=dict)

    def keep(
        self, predicted: Any, values: Array | None, y: NDArray[Any], where: Any, measures: Sequence[Measure]
    ) -> None:
        """Keep what was predicted of held-out samples, which are those at ``where``, the round and the positions."""
        self.predicted[where] = predicted
        if values is not None:
            if self.decision is None:
                self.decision = np.full((*self.predicted.shape, *values.shape[1:]), np.nan)
            self.decision[where] = values
        for kind in measures:
            self.scores[kind.name].append(kind.of(y[where[1]], predicted, values))


@dataclass(frozen=True)
class Targets:
    """Targets, and how held-out predictions of them are measured: classes, or numbers where there are none."""

    y: NDArray[Any]
    classes: NDArray[Any] | None = None

    @property
    def classify(self) -> bool:
        """Whether they are classes."""
        return self.classes is not None

    @property
    def measures(self) -> Sequence[Measure]:
        """The measures; the first is shown in tiles and pictures."""
        return measures_for(self.classes)

    def methods(self, model: Any, fitted: Any, samples: Any, seed: int) -> tuple[list[Method], str]:
        """Return the methods to compare, the model first and one without features last; why none is on the columns."""
        return methods_for(model, fitted, self.classify, samples, seed)

    def beside(self, rows: Any) -> dict[str, Any]:
        """Return what fits are given of some samples beside targets."""
        return {}

    def predicted(self, fitted: Any, samples: Any, rows: Any) -> tuple[Any, Array | None]:
        """Return predictions of held-out samples, and decision values where there are any."""
        predicted, values = fitted.predict(samples), None
        if hasattr(fitted, "decision_function"):
            values = np.asarray(fitted.decision_function(samples))
        elif hasattr(fitted, "predict_proba") and not isinstance(fitted, DummyClassifier):
            values = np.asarray(fitted.predict_proba(samples))
            values = values[:, 1] if values.shape[1] == 2 else values
        elif hasattr(fitted, "classes_"):  # guessing has shares only: no sample is before another
            classes = len(fitted.classes_)
            values = np.zeros((len(predicted), classes) if classes > 2 else len(predicted))
        return predicted, values

    def note(self, fitted: Any, samples: Any) -> None:
        """Keep what is asked of the model's refit on some samples beside weights; nothing here."""

    def refits(self, *found: Any) -> Refits:
        """Return what refits found."""
        return Refits(self, *found)


class FoldChoice(NamedTuple):
    """C and norm of one refit."""

    C: float
    norm: str


@dataclass
class Refits:
    """Everything that needed a refit."""

    targets: Targets
    splits: list[Any]  # training and held-out samples
    rounds: int
    methods: list[HeldOut]  # the model first, the baseline without features last
    measures: Sequence[Measure]
    stability: WeightStability
    choices: list[FoldChoice]  # of every refit of the model
    chosen_inside: bool  # whether each refit chose C by itself
    views: Any  # p-values of views as a data frame; None where there is a single one
    statuses: list[str]  # why every refit of the model and of the methods on kernels ended
    alone: str = ""  # why no method is fitted on the columns themselves; empty where some are
    halves: Sequence[float] = ()  # first measure of the first round's fits on half of their training samples

    def __post_init__(self) -> None:
        self.folds = len(self.splits) // self.rounds  # of one round
        self.y, self.classes, self.classify = self.targets.y, self.targets.classes, self.targets.classify
        self.main = self.measures[0]
        self.ours, self.baseline = self.methods[0], self.methods[-1]

    @cached_property
    def confusion(self) -> Array:
        """Held-out samples by class and prediction, the mean over rounds; the accuracy is its diagonal's share."""
        assert self.classes is not None
        tables = np.zeros((self.rounds, len(self.classes), len(self.classes)))
        for table, predicted in zip(tables, self.ours.predicted, strict=True):
            codes = np.searchsorted(self.classes, self.y), np.searchsorted(self.classes, predicted)
            np.add.at(table, codes, 1.0)
        return np.asarray(np.mean(tables, axis=0))

    @cached_property
    def better_than_guessing(self) -> bool:
        """Whether held-out predictions, sample by sample, are beyond doubt better than those without features."""
        gain = self.right(self.ours) - self.right(self.baseline)
        if self.classify:  # classes count alike: who finds the rare one may have a lower accuracy
            _, codes, counts = np.unique(self.y, return_inverse=True, return_counts=True)
            gain = gain * (len(self.y) / (counts.size * counts))[codes]
        spread = float(np.std(gain, ddof=1)) / np.sqrt(len(gain))
        return bool(np.mean(gain) > SURE * spread)

    def among(self, samples: Any) -> tuple[str, float, str]:
        """Return what the model's predictions of some samples are measured by, the value, and how it is written."""
        value = float(np.mean(self.right(self.ours)[samples]))
        return (
            ("accuracy", value, percent(value))
            if self.classify
            else ("mean squared error", -value, number(-value))
        )

    def right(self, method: HeldOut) -> Array:
        """Share of rounds in which each sample was predicted right, or minus its mean squared error."""
        if self.classify:
            return np.asarray(np.mean(method.predicted == self.y, axis=0))
        return -np.asarray(np.mean((method.predicted.astype(float) - self.y) ** 2, axis=0))


def _measure(found: list[HeldOut], measures: Sequence[Measure], y: NDArray[Any], splits: list[Any]) -> None:
    """Average the scores of all folds, and compare them with those of the model, which is the first."""
    sizes = np.array([len(test) for _, test in splits], dtype=float)
    share = len(splits[0][1]) / len(splits[0][0])
    for kept in found:
        for kind in measures:
            ours = None if kept is found[0] else np.array(found[0].scores[kind.name])
            # where rounds can be taken as wholes they are: the numbers are then those of the confusion matrix
            whole = [kind.of(y, row, None) for row in kept.predicted] if kind.pooled else None
            scores = np.array(kept.scores[kind.name])
            kept.measures[kind.name] = measured(scores, sizes, share, ours, kind.most, whole)


def _half(y: NDArray[Any], groups: Any, classify: bool, seed: int) -> Any:
    """Return half of some samples, whole groups or even shares of the targets; None where a class would get too few."""
    drawing = np.random.RandomState(seed)
    if groups is not None:
        names = drawing.permutation(np.unique(groups))
        half = np.flatnonzero(np.isin(groups, names[: len(names) // 2]))
    else:
        order = drawing.permutation(len(y))
        half = np.sort(order[np.argsort(y[order], kind="stable")][::2])
    labels, counts = np.unique(y[half], return_counts=True)
    enough = len(labels) == len(np.unique(y)) and counts.min() >= 4 if classify else len(half) >= 8
    return half if enough else None


def refit(
    fitted: Any,
    model: Any,
    X: Any,
    targets: Targets,
    *,
    n_folds: int,
    n_repeats: int,
    random_state: int,
    groups: Any = None,
    setting: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Refits:
    """Refit on folds: ``fitted`` is what the report is about, ``model`` the same on samples that can be cut."""
    model = cleared(model)  # refits neither read nor write the files of the fit
    last, y, classify, measures = final_estimator(fitted), targets.y, targets.classify, targets.measures
    if setting is None:
        splits = folds_of(y, classify, n_folds, n_repeats, random_state, groups)
    else:  # blocks of both sides are many: one round
        n_repeats = 1 if setting == "both" else n_repeats
        splits = pair_folds(X, setting, n_folds, n_repeats, random_state)
    views = kernel_groups(fitted)
    matrices = last is not final_estimator(model) and getattr(last, "kernels_", None) is None
    bare = model.steps[-1][1] if isinstance(model, Pipeline) else model
    samples = None if matrices else transformed(fitted, X)
    methods, alone = targets.methods(bare, last, samples, random_state)
    found = []
    for method in methods:
        predicted = np.empty((n_repeats, len(y)), dtype=object)
        found.append(HeldOut(method.name, method.about, predicted, {kind.name: [] for kind in measures}))
    weights, view_weights, choices, parts, statuses, halves = [], [], [], [], [], []
    per_round, done = len(splits) // n_repeats, 0
    for place, (train, test) in enumerate(splits):
        seen, held_out = take(X, train), take(X, test)
        of_train = None if groups is None else np.asarray(groups)[train]
        where = (place // per_round, test)
        if isinstance(model, Pipeline) and len(model.steps) > 1:  # once for all methods
            steps = clone(model[:-1]).fit(seen, y[train])
            seen, held_out = steps.transform(seen), steps.transform(held_out)
        for method, kept in zip(methods, found, strict=True):
            with warnings.catch_warnings():
                if isinstance(method.estimator, GridSearchCV):  # of values that are not chosen, mostly
                    warnings.simplefilter("ignore")
                known = method.view(seen)
                given = targets.beside(train)
                other = fitted_on(method.estimator, known, y[train], of_train, classify, per_round, **given)
            if hasattr(other, "status_"):
                statuses.append(other.status_)
            kept.keep(*targets.predicted(other, method.view(held_out), test), y, where, measures)
            if kept is found[0]:  # what only the model is asked for
                targets.note(other, known)
                weights.append(learnt_weights(other))
                view_weights.append(group_shares(other, views))
                of_fold = final_estimator(other)
                norm = getattr(of_fold, "norm_", of_fold.norm)
                label = getattr(norm, "label", None) or str(norm)
                choices.append(FoldChoice(float(np.mean(of_fold.C_)), label))
                if place < per_round:
                    # of times of which no two can be compared there is no score, of permutations neither
                    if y.dtype.names is None or np.isfinite(kept.scores[measures[0].name][-1]):
                        parts.append((contributions(other, held_out, views=views), y[test]))
                    half, score = _half(y[train], of_train, classify, random_state), np.nan
                    if half is not None:
                        with suppress(ValueError):  # half of the samples may all lack a view
                            smaller = None if of_train is None else of_train[half]
                            small = fitted_on(
                                method.estimator,
                                take(known, half),
                                y[train][half],
                                smaller,
                                classify,
                                per_round,
                                **targets.beside(train[half]),
                            )
                            score = measures[0].of(y[test], small.predict(held_out), None)
                    halves.append(score)
                if hasattr(other, "predict_proba"):
                    shares = other.predict_proba(held_out)
                    if kept.probability is None:
                        kept.probability = np.full((n_repeats, len(y), shares.shape[1]), np.nan)
                    kept.probability[where] = shares
            done += 1
            if progress is not None:
                progress(done, len(splits) * len(methods))
    _measure(found, measures, y, splits)
    stability = WeightStability(
        np.stack(weights), learnt_weights(fitted), np.asarray(last.kernel_names_, dtype=object), views,
        kernel_families(fitted), np.array(found[0].scores[measures[0].name]), "folds", 1.0, 1e-3,
        np.stack(view_weights), group_shares(fitted, views),
    )  # fmt: skip
    p_values = None
    if parts and 2 <= len(parts[0][0].view_names) <= MOST_VIEWS:
        drawing = np.random.RandomState(random_state)
        p_values = test_views(parts, PERMUTATIONS, drawing, classify).set_index("view")
    return targets.refits(
        splits, n_repeats, found, measures, stability, choices, chooses_by_folds(model), p_values, statuses, alone,
        halves,
    )  # fmt: skip


@dataclass(frozen=True)
class Subject:
    """A fitted model, its samples, and what refits on folds gave."""

    model: Any  # fitted on X and y
    estimator: Any  # the one with kernels: the last step of a pipeline
    X: Any
    y: NDArray[Any]
    names: Sequence[str]  # of the samples
    refits: Refits
    note: Mapping[str, Any]  # settings of the command line
    seed: int
    groups: NDArray[Any] | None = None  # samples that were kept together in folds
    #: whether refits on some views, and along C, are those of the model: they know no strata
    fits_subsets: bool = True
    setting: str | None = None  # of pairs: what is new in those that are held out
    found: dict[str, Any] = field(default_factory=dict)  # what takes long and is on the page twice

    @property
    def bare(self) -> Any:
        """The last step of a pipeline, or the model."""
        return self.model.steps[-1][1] if isinstance(self.model, Pipeline) else self.model

    @cached_property
    def ties(self) -> TiedViews | None:
        """Weights of views at choices of C and norm that the scores do not tell from the one made, if there are any."""
        return tied_views(self.model)
