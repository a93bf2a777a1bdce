"""Parts of every estimator, in whichever subpackage: targets, one call of ``fit``, findings, plain state."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import update_wrapper, wraps
from types import MethodType
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.exceptions import DataConversionWarning
from sklearn.utils import assert_all_finite, compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_array, column_or_1d

from ._numerics.resources import allowed_threads
from ._numerics.stopping import interrupted, one_interrupt, time_spent
from .exceptions import DegenerateModelWarning, KernelWeaveWarning, NotFiniteError, warn_at_caller
from .solvers import Stop

#: share of the samples of all other classes that a model may miss before it says one class for nearly everything
MISSED = 0.9
#: fewer samples of the other classes than this prove nothing
FEWEST = 3
#: share of the mean score, and of the range of mean scores over all values of C, below which two of them do not differ
FLAT = 1e-3
#: change of a view's share of the weights, over choices that the scores do not tell apart, that a reader must know of
MOVES = 0.1
#: views named in the sentence about it, those that change the most
NAMED = 3


#: how a sentence about predictions of one class begins
ONE_CLASS = "The model predicts class"


Method = TypeVar("Method", bound=Callable)  # type: ignore[type-arg]


@contextmanager
def _all_or_nothing(estimator: Any) -> Iterator[None]:
    """Put back every attribute where something raises: fitted ones are replaced by a fit, never changed in place."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


def restore_on_error(fit: Method) -> Method:
    """Decorate a method that fits: where it raises, the model is the same as before."""

    @wraps(fit)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        with _all_or_nothing(self):
            return fit(self, *args, **kwargs)

    return guarded  # type: ignore[return-value]


def one_call(function: Method) -> Method:
    """Decorate a function that fits: Ctrl-C ends whatever it does, and its seconds are counted from here."""

    @wraps(function)
    def call(*arguments, **named):  # type: ignore[no-untyped-def]
        # numbers that are not finite are looked for where they matter, and reported in a sentence
        with one_interrupt(whole_fit=True), np.errstate(over="ignore", invalid="ignore"):
            return function(*arguments, **named)

    return call  # type: ignore[return-value]


def several_fits(function: Method) -> Method:
    """Decorate a function that compares fits: Ctrl-C raises ``KeyboardInterrupt``, since a half-done fit misleads."""

    @wraps(function)
    def call(*arguments, **named):  # type: ignore[no-untyped-def]
        with one_interrupt(keeps_best=False):
            return function(*arguments, **named)

    return call  # type: ignore[return-value]


def one_fit(method: Method) -> Method:
    """Decorate a ``fit``: one call, as ``one_call``, on the threads of ``n_jobs``; the old model stays if it raises."""

    @wraps(method)
    def fit(self, *arguments, **named):  # type: ignore[no-untyped-def]
        with (
            allowed_threads(getattr(self, "n_jobs", None)),
            one_interrupt(whole_fit=True),
            np.errstate(over="ignore", invalid="ignore"),
            _all_or_nothing(self),
        ):
            return method(self, *arguments, **named)

    return fit  # type: ignore[return-value]


@dataclass
class TimeShares:
    """Deals out the seconds of a fit to its problems: each gets an equal part of what is left of their ``share``."""

    stop: Stop
    problems: int
    share: float = 1.0

    def __call__(self) -> Stop:
        """Return when the next problem has to stop."""
        if self.stop.max_seconds is None:
            return self.stop
        left = max(self.share * self.stop.max_seconds - time_spent(), 0.0)
        part = left / max(self.problems, 1)
        self.problems -= 1
        return replace(self.stop, max_seconds=part)

    @property
    def used_up(self) -> bool:
        """Whether no time is left, or the fit was interrupted."""
        limit = self.stop.max_seconds
        return interrupted() or (limit is not None and time_spent() >= self.share * limit)


class _Conditional:
    """A method that some objects do not have; see :func:`available_where`."""

    def __init__(self, method: Callable[..., Any], check: Callable[[Any], object]) -> None:
        update_wrapper(self, method)  # type: ignore[arg-type]
        self.method, self.check = method, check

    def __get__(self, owner: Any, kind: type | None = None) -> Any:
        if owner is None:
            return self.method
        try:
            self.check(owner)
        except AttributeError as error:
            name = f"This {type(owner).__name__!r} has no attribute {self.method.__name__!r}"
            raise AttributeError(f"{name}: {error}") from None
        return MethodType(self.method, owner)


def available_where(check: Callable[[Any], object]) -> Callable[[Method], Method]:
    """Decorate a method that is there where ``check`` raises no AttributeError, whose reason is in the error itself."""

    def decorate(method: Method) -> Method:
        return cast(Method, _Conditional(method, check))

    return decorate


def one_column(y: np.ndarray) -> np.ndarray:
    """Return labels or targets as one column, with scikit-learn's warning where they are a table of one."""
    if y.ndim == 2 and y.shape[1] == 1:
        warn_at_caller(
            "A column-vector y was passed when a 1d array was expected. Please change the shape of y to (n_samples, ), "
            "for example using ravel().",
            DataConversionWarning,
        )
    column: np.ndarray = column_or_1d(y)
    return column


def encode_classes(y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Check class labels; return the classes in order, and the index of every sample's class among them.

    >>> encode_classes(["b", "a", "b"])
    (array(['a', 'b'], dtype='<U1'), array([1, 0, 1]))
    """
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    labels = one_column(check_array(y, ensure_2d=False, dtype=None, input_name="y"))
    check_classification_targets(labels)
    classes, codes = np.unique(labels, return_inverse=True)
    return classes, codes


def weigh_samples(
    sample_weight: Any, n: int, class_weight: Any = None, classes: Any = None, codes: Any = None
) -> np.ndarray:
    """Return one factor of C per sample: its weight, finite and not negative (1 where none is given), by class.

    ``class_weight="balanced"`` gives all classes the same total weight, the weights of their samples included; a class
    without weight is not there.

    >>> weigh_samples([1.0, 1.0, 3.0], 3, "balanced", np.array([0, 1]), np.array([0, 1, 1]))
    array([2.5  , 0.625, 1.875])
    """
    shell = np.empty((n, 0))
    weight: np.ndarray = _check_sample_weight(
        sample_weight, shell, dtype=np.float64, ensure_non_negative=True
    )
    if class_weight is None:
        return weight
    if isinstance(class_weight, str) and class_weight == "balanced":
        totals = np.bincount(codes, weights=weight, minlength=classes.size)
        there = totals > 0
        factors = np.zeros(classes.size)
        factors[there] = totals.sum() / (np.count_nonzero(there) * totals[there])
    else:
        factors = compute_class_weight(class_weight, classes=classes, y=classes[codes])
        if not (np.all(np.isfinite(factors)) and np.all(factors >= 0)):
            raise ValueError(f"class weights must be finite and >= 0, got {class_weight!r}")
    return weight * factors[codes]


def check_two_classes(classes: np.ndarray, codes: np.ndarray, weight: np.ndarray) -> None:
    """Raise where fewer than two classes have samples of positive weight."""
    present = np.unique(codes[weight > 0])
    if present.size < 2:
        only = "all with a positive weight are" if classes.size > 1 else "y has only one class:"
        raise ValueError(f"classification needs at least two classes, {only} {classes[present]}")


def class_columns(codes: np.ndarray, k: int) -> np.ndarray:
    """Return targets of shape (n, k): 1 in the column of the sample's class, -1 in the others.

    >>> class_columns(np.array([0, 2]), 3)
    array([[ 1., -1., -1.],
           [-1., -1.,  1.]])
    """
    return np.where(codes[:, None] == np.arange(k), 1.0, -1.0)


def codes_of(values: np.ndarray) -> np.ndarray:
    """Return the positions of the classes that decision values mean."""
    return (values > 0).astype(np.intp) if values.ndim == 1 else np.argmax(values, axis=1)


def leads_of(values: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return how far decision values prefer the classes of samples to all others; negative where they do not."""
    if values.ndim == 1:
        return np.where(codes == 1, values, -values)
    rows, others = np.arange(codes.size), values.copy()
    others[rows, codes] = -np.inf
    return np.asarray(values[rows, codes] - others.max(axis=1))


def checked_targets(y: Any, missing: bool = False) -> np.ndarray:
    """Return the targets of a regression as numbers, ``(n,)`` or ``(n, t)``; ``missing`` allows NaN among several.

    A table of one column is one target, with scikit-learn's warning.

    >>> checked_targets([[1, 2], [3, 4]])
    array([[1., 2.],
           [3., 4.]])
    """
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    allowed = {"ensure_2d": False, "ensure_min_features": 0, "ensure_all_finite": "allow-nan"}
    targets = check_array(y, dtype=np.float64, input_name="y", **allowed)
    if targets.ndim == 2 and targets.shape[1] == 0:
        raise ValueError(f"y has no targets: its shape is {targets.shape}")
    several = targets.ndim == 2 and targets.shape[1] > 1
    if not (several and missing):
        assert_all_finite(targets, input_name="y")
    if not several:
        return one_column(targets)
    unknown = np.flatnonzero(np.all(np.isnan(targets), axis=0))
    if unknown.size:
        raise ValueError(
            f"target {unknown[0]} has no value at all ({unknown.size} such): leave them out of y"
        )
    return targets


def finite_decision(values: np.ndarray) -> np.ndarray:
    """Return decision values, or raise where one is not a number: no label may be made of it."""
    if isinstance(values, np.ndarray) and not np.all(np.isfinite(values)):
        row = int(np.flatnonzero(~np.isfinite(values).reshape(len(values), -1).all(axis=1))[0])
        raise NotFiniteError(
            f"the decision value of row {row} is not finite: its kernel values overflow, or it contains NaN; bring new "
            "samples to the scale of the training samples, and impute what is missing"
        )
    return values


def constant_prediction(
    predicted: np.ndarray,
    codes: np.ndarray,
    classes: np.ndarray,
    counted: np.ndarray,
    where: str = "training",
) -> str | None:
    """Return a sentence where one class is predicted for nearly everything, None where a model tells classes apart.

    That is so where at least nine in ten of the samples of all other classes are predicted as this one.  Predicted and
    true classes are positions in ``classes``; ``counted`` says which samples count, ``where`` which samples these are.

    >>> codes = np.repeat([0, 1], [30, 10])
    >>> everything = np.ones(40, dtype=bool)
    >>> said = constant_prediction(np.zeros(40, dtype=int), codes, np.array(["benign", "malignant"]), everything)
    >>> print(said[:67])
    The model predicts class 'benign' for 40 of 40 training samples, th
    >>> constant_prediction(codes, codes, np.array([0, 1]), everything) is None
    True
    """
    predicted, codes = predicted[counted], codes[counted]
    if not codes.size:
        return None
    top = int(np.argmax(np.bincount(predicted, minlength=classes.size)))
    others = codes != top
    told_apart = int(np.count_nonzero(predicted[others] != top))
    if np.count_nonzero(others) < FEWEST or told_apart > (1.0 - MISSED) * np.count_nonzero(others):
        return None
    label = classes[top].item() if isinstance(classes[top], np.generic) else classes[top]
    return (
        f"{ONE_CLASS} {label!r} for {np.count_nonzero(predicted == top)} of {predicted.size} {where} "
        f"samples, though {np.count_nonzero(others)} of them are of another class ({told_apart} of these are "
        f"recognised): it is hardly better than always answering {label!r}. Try a larger C, class_weight='balanced', "
        "scoring='balanced_accuracy' in a search, or other kernels."
    )


def clearly_ahead(lead: np.ndarray) -> bool:
    """Whether a lead over the folds is larger than its standard error; a single fold cannot tell.

    >>> clearly_ahead(np.array([0.02, 0.03, 0.02])), clearly_ahead(np.array([0.1, -0.1, 0.02]))
    (True, False)
    """
    known = lead[np.isfinite(lead)]
    if known.size < 2:
        return False
    return bool(known.mean() > known.std(ddof=1) / np.sqrt(known.size))


def end_of_grid(
    C: float, Cs: np.ndarray, scores: np.ndarray, of: str = "", error: str | None = None
) -> tuple[str, bool] | None:
    """Return a sentence where C was chosen at an end of the values that were tried, and whether to warn of it.

    The scores are flat there, which is said and not warned of, where the next value inside is behind by no more than a
    standard error of the difference over the folds, or by no more than a thousandth of the mean score there and of the
    range of the mean scores.  ``Cs`` increase; ``scores`` are ``(folds, c)``, larger is better (errors, ``error`` is
    their name, have a minus before them); ``of`` says of which targets this is.

    >>> rising, level = np.array([[0.5, 0.7, 0.9], [0.4, 0.6, 0.8]]), np.array([[0.5, 0.9, 0.9], [0.4, 0.8, 0.8]])
    >>> print(end_of_grid(100.0, np.array([1.0, 10.0, 100.0]), rising)[0])
    C = 100 was chosen at the upper end of the values tried (1 to 100): a larger one may be better; widen Cs.
    >>> print(end_of_grid(100.0, np.array([1.0, 10.0, 100.0]), level)[0][-82:])
    scores are flat (0.85, and 0.85 at C = 10): a larger one would hardly change them.
    >>> end_of_grid(10.0, np.array([1.0, 10.0, 100.0]), rising) is None
    True
    """
    if Cs.size < 2 or Cs[0] < C < Cs[-1]:
        return None
    lower = Cs[0] >= C
    end, inside = (0, 1) if lower else (-1, -2)
    where = (
        f"C = {C:.4g} was chosen{of} at the {'lower' if lower else 'upper'} end of the values tried ({Cs[0]:.4g} to "
        f"{Cs[-1]:.4g})"
    )
    other = "smaller" if lower else "larger"
    lead = scores[:, end] - scores[:, inside]
    lead = lead[np.isfinite(lead)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a value of C without any score
        means = np.nanmean(scores, axis=0)
    small = FLAT * min(float(np.nanmax(means) - np.nanmin(means)), abs(float(means[end])))
    if (lead.size > 0 and lead.mean() <= small) or (lead.size > 1 and not clearly_ahead(lead)):
        sign, what = (1.0, "scores") if error is None else (-1.0, in_words(error, several=True))
        return (
            f"{where}, where the {what} are flat ({sign * means[end]:.3g}, and {sign * means[inside]:.3g} at C = "
            f"{Cs[inside]:.4g}): a {other} one would hardly change them."
        ), False
    return f"{where}: a {other} one may be better; widen Cs.", True


def undecided(
    Cs: np.ndarray, norms: Sequence[str], tried: int, scores: np.ndarray, chosen: int, shares: np.ndarray,
    views: Sequence[str], error: str | None = None,
) -> str | None:  # fmt: skip
    """Return a sentence where the weights of views change over choices of C and norm that the scores do not tell apart.

    ``Cs``, ``norms`` and ``scores`` (means; of an error of this name) are those of the r pairs that the scores do
    not tell apart, the one at ``chosen`` among them, of ``tried``; ``shares`` are the weights of the views at each of
    them, ``(r, v)``, as shares of their sum.
    """
    change = np.ptp(shares, axis=0)
    if len(views) < 2 or not np.any(change > MOVES):
        return None
    different = list(dict.fromkeys(norms))
    what = "C is" if len(different) == 1 else "C and norm are"
    pairs = "values of C" if len(different) == 1 else "pairs of norm and C"
    equal = np.ptp(scores) <= 1e-12
    score, each = in_words(error or "score"), in_words(error or "score", several=True)
    how = (
        f"have the same cross-validated {score} ({scores[chosen]:.3g})"
        if equal
        else f"have cross-validated {each} ({np.min(scores):.3g} to {np.max(scores):.3g}) that differ from that of "
        "the choice by no more than a standard error over the folds"
    )
    with_norms = "" if len(different) == 1 else f", norms {', '.join(different)}"
    by_norm = "" if len(different) == 1 else f" with norm {norms[chosen]}"
    most = [v for v in np.argsort(-change, kind="stable")[:NAMED] if change[v] > MOVES]
    moves = ", ".join(f"{views[v]!r} {shares[:, v].min():.2f} to {shares[:, v].max():.2f}" for v in most)
    return (
        f"{what} not decided by the {each}: {len(scores)} of the {tried} {pairs} tried (C from {np.min(Cs):.4g} to "
        f"{np.max(Cs):.4g}{with_norms}) {how}, and C = {Cs[chosen]:.4g}{by_norm} was taken. The weights of views "
        f"change among them ({moves}): conclude nothing from the weights that does not hold for all of them."
    )


def in_words(error: str, several: bool = False) -> str:
    """Return the name of a score or an error as text has it.

    >>> in_words("squared_error"), in_words("pinball_loss", several=True)
    ('squared error', 'pinball losses')
    """
    words = error.replace("_", " ").replace("poisson", "Poisson").replace("huber", "Huber")
    return words + ("es" if words.endswith("s") else "s") if several else words


def warn_of_findings(
    findings: Sequence[str], category: type[KernelWeaveWarning] = DegenerateModelWarning
) -> None:
    """Issue a warning of each at the line that called ``fit``."""
    for sentence in findings:
        warn_at_caller(sentence, category)


def is_frame(what: Any) -> bool:
    """Whether something is a data frame of pandas."""
    return hasattr(what, "iloc") and getattr(what, "ndim", 0) == 2


@dataclass
class SavedTable:
    """Columns of a data frame (labels, kinds and values), and the names of its rows if they have any."""

    labels: list[Any]
    kinds: list[str]
    values: list[Any]
    rows: int
    #: kind, values and name of the index; None where rows are numbered
    index: list[Any] | None = None

    @classmethod
    def of(cls, frame: Any) -> SavedTable:
        """Take a data frame apart."""
        parts = [_take_apart(frame.iloc[:, position], label) for position, label in enumerate(frame.columns)]
        labels = [label.item() if isinstance(label, np.generic) else label for label in frame.columns]
        rows, index = frame.index, None
        numbered = type(rows).__name__ == "RangeIndex" and rows.start == 0 and rows.step == 1
        if not numbered and rows.nlevels == 1:
            name = rows.name if isinstance(rows.name, str) else None
            index = [*_take_apart(rows.to_series(), "index"), name]
        return cls(labels, [kind for kind, _ in parts], [value for _, value in parts], len(frame), index)

    def frame(self) -> Any:
        """Put the data frame together again."""
        import pandas as pd

        columns = [
            pd.Series(_put_together(kind, value)) for kind, value in zip(self.kinds, self.values, strict=True)
        ]
        if not columns:
            return pd.DataFrame(index=range(self.rows))
        frame = pd.concat(columns, axis=1)
        frame.columns = self.labels
        if self.index is not None:
            kind, value, name = self.index
            frame.index = pd.Index(_put_together(kind, value), name=name)
        return frame


def _take_apart(column: Any, label: Any) -> tuple[str, Any]:
    import pandas as pd

    if isinstance(column.dtype, pd.CategoricalDtype):
        entries = column.cat.categories.to_numpy(dtype=object)
        return "category", [entries, column.cat.codes.to_numpy(), bool(column.cat.ordered)]
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "fiub":
        return "numbers", column.to_numpy()
    if column.dtype.kind in "OUST" or isinstance(column.dtype, pd.StringDtype):
        plain = [value.item() if isinstance(value, np.generic) else value for value in column]
        odd = [value for value in plain if not (value is None or isinstance(value, str | int | float | bool))]
        odd = [value for value in odd if value is not pd.NA]
        if not odd:
            entries = np.empty(len(plain), dtype=object)
            entries[:] = [None if value is pd.NA else value for value in plain]
            return ("str" if isinstance(column.dtype, pd.StringDtype) else "object"), entries
        raise TypeError(f"column {label!r} of a table holds a {type(odd[0]).__name__}")
    raise TypeError(f"column {label!r} of a table is of the kind {column.dtype}")


def _put_together(kind: str, value: Any) -> Any:
    import pandas as pd

    if kind == "category":
        entries, codes, ordered = value
        return pd.Categorical.from_codes(codes, pd.Index(list(entries)), ordered=ordered)
    if kind == "str":
        return pd.array(list(value), dtype="str" if int(pd.__version__.split(".")[0]) >= 3 else object)
    return value


class PlainState:
    """Gives an estimator a state without data frames, which ``skops.io.dumps`` takes; ``__setstate__`` undoes it."""

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())  # type: ignore[call-overload]
        for name, value in list(state.items()):
            if is_frame(value) and value.index.nlevels == 1:
                with suppress(
                    TypeError
                ):  # it holds something else than numbers and words, and stays as it is
                    state[name] = SavedTable.of(value)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        whole = {
            name: value.frame() if isinstance(value, SavedTable) else value for name, value in state.items()
        }
        super().__setstate__(whole)  # type: ignore[misc]
