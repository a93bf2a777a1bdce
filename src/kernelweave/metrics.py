"""Times to an event: how they are read, curves, and how well predictions of them are.

>>> y = survival([5, 8, 2, 9], ["dead", "alive", "dead", "alive"])
>>> y["event"].tolist(), concordance(y, [1.0, 0.5, 2.0, 0.1])
([True, False, True, False], 1.0)
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._components import check_choice
from ._typing import Array

__all__ = [
    "SCORES", "StepFunction", "brier_score", "concordance", "concordance_ipcw", "integrated_brier_score",
    "kaplan_meier", "log_rank_p_value", "partial_likelihood", "read_survival", "scorer", "survival",
]  # fmt: skip

#: words for an event, in small letters; of cBioPortal's "1:DECEASED" the part behind the colon counts
EVENT_WORDS = frozenset({"1", "dead", "deceased", "died", "death", "event", "true", "yes"})
#: risks that are nearer to each other than this are tied, as in scikit-survival
TIED = 1e-8
#: kind of the targets: scikit-survival's
SURVIVAL = np.dtype([("event", "?"), ("time", "<f8")])


__dir__ = __all__.copy  # completion shows the public names alone


# ---- reading ---------------------------------------------------------------------------------------------------------


def survival(time: ArrayLike, event: ArrayLike, event_value: Any = None) -> NDArray[Any]:
    """Return targets for ``MKLSurvival``: when every sample was last seen, and whether the event happened then.

    Parameters
    ----------
    time : array of shape (n,)
        Of the event, or until which the sample was followed without one; finite and not negative.
    event : array of shape (n,)
        Truth values, 0 and 1, or words.
    event_value : optional
        The value of ``event`` that stands for the event; all others are censored.  It may be left out for truth values,
        for 0 and 1, and for two words of which one says it: dead, deceased, died, death, event, true, yes.

    Returns
    -------
    structured array of shape (n,)
        Fields ``event`` (bool) and ``time`` (float), which scikit-survival takes, too.

    Examples
    --------
    >>> from kernelweave import survival
    >>> survival([12.0, 30.5], ["1:DECEASED", "0:LIVING"]).tolist()
    [(True, 12.0), (False, 30.5)]
    """
    try:
        times = np.asarray(time, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"times must be numbers: {error}") from error
    happened = _read_events(np.asarray(event), event_value)
    if times.ndim != 1 or times.shape != happened.shape:
        raise ValueError(
            f"time and event must be one number per sample each, got the shapes {times.shape} and {happened.shape}"
        )
    wrong = ~(np.isfinite(times) & (times >= 0))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"{np.count_nonzero(wrong)} times are missing, infinite or negative, the first in row {row} "
            f"({times[row]:g}): leave these samples out, or say until when they were followed"
        )
    y = np.empty(times.size, dtype=SURVIVAL)
    y["event"], y["time"] = happened, times
    return y


def _read_events(event: NDArray[Any], event_value: Any) -> NDArray[np.bool_]:
    if event.dtype.kind == "b" and event_value is None:
        return event
    # NaN is not itself
    missing = np.array(
        [value is None or value is not value or value != value for value in event.ravel().tolist()]
    )
    if missing.any():
        raise ValueError(
            f"{np.count_nonzero(missing)} samples do not say whether the event happened, the first in row "
            f"{int(np.argmax(missing))}: leave them out, or say until when they were followed without one"
        )
    codes = sorted(set(event.ravel().tolist()), key=str)
    shown = ", ".join(map(repr, codes[:5])) + (", ..." if len(codes) > 5 else "")
    if event_value is not None:
        if event_value not in codes:
            raise ValueError(f"event_value={event_value!r} is not among the values of event: {shown}")
        return np.asarray(event == event_value)
    if event.dtype.kind in "iuf" and set(codes) <= {0, 1}:
        return np.asarray(event == 1)
    known = [
        code for code in codes if isinstance(code, str) and code.lower().split(":")[-1].strip() in EVENT_WORDS
    ]
    if len(known) == 1 and len(codes) <= 2:
        return np.asarray(event == known[0])
    raise ValueError(
        f"event has the values {shown}: say which is the event, kernelweave.survival(time, event, event_value=...); "
        "all others count as censored"
    )


def read_survival(y: Any) -> tuple[Array, NDArray[np.bool_]]:
    """Return times and events of targets: a structured array, or a data frame with columns ``time`` and ``event``."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    names = getattr(getattr(y, "dtype", None), "names", None)
    if names is not None and len(names) == 2 and np.ndim(y) == 1:
        truth = [name for name in names if y.dtype[name].kind == "b"] or ["event"]
        rest = [name for name in names if name != truth[0]]
        if len(truth) == 1 and len(rest) == 1:
            made = survival(y[rest[0]], y[truth[0]])
            return made["time"], made["event"]
    if hasattr(y, "columns") and {"event", "time"} <= set(y.columns):
        made = survival(y["time"], y["event"])
        return made["time"], made["event"]
    raise ValueError(
        "y must say when and whether: kernelweave.survival(time, event), a structured array with a field of truth "
        f"values and one of times, or a data frame with the columns 'event' and 'time'; got {type(y).__name__}"
    )


# ---- curves ----------------------------------------------------------------------------------------------------------


class StepFunction:
    """A function that is constant from one of its places to the next; of arrays it returns arrays.

    Parameters
    ----------
    x : array of shape (k,)
        Places, increasing.
    y : array of shape (k,)
        Values there, and until the next; the last one holds for ever.
    before : float
        Value before the first place.

    Examples
    --------
    >>> import numpy as np
    >>> StepFunction(np.array([1.0, 2.0]), np.array([0.8, 0.5]), 1.0)([0.5, 1.0, 1.5, 9.0]).tolist()
    [1.0, 0.8, 0.8, 0.5]
    """

    def __init__(self, x: Array, y: Array, before: float) -> None:
        self.x, self.y, self.before = x, y, before

    @property
    def domain_(self) -> tuple[float, float]:
        """From where to where there were samples."""
        return 0.0, float(self.x[-1])

    def __call__(self, x: ArrayLike) -> Any:
        place = np.searchsorted(self.x, np.asarray(x, dtype=float), side="right")
        values = np.append(self.before, self.y)[place]
        return float(values) if np.ndim(x) == 0 else values

    def __repr__(self) -> str:
        return f"StepFunction: {self.x.size} steps from {self.x[0]:g} to {self.x[-1]:g}"


def kaplan_meier(y: Any, sample_weight: ArrayLike | None = None, *, censoring: bool = False) -> StepFunction:
    """Return the share without event over time, by Kaplan and Meier; with ``censoring`` the share not yet censored.

    Parameters
    ----------
    y : targets
        As ``survival`` makes them.
    sample_weight : array of shape (n,), optional
    censoring : bool, default=False
        Whether being censored is what is looked at; at equal times events come first.

    Examples
    --------
    >>> kaplan_meier(survival([1, 2, 3, 4], [1, 0, 1, 0]))([1, 2, 3]).tolist()
    [0.75, 0.75, 0.375]
    """
    time, event = read_survival(y)
    weight = np.ones(time.size) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    times, place = np.unique(time, return_inverse=True)
    leaving, events = np.bincount(place, weight), np.bincount(place, weight * event)
    at_risk = np.cumsum(leaving[::-1])[::-1]
    if censoring:
        at_risk, events = at_risk - events, leaving - events
    share = np.divide(events, at_risk, out=np.zeros(times.size), where=events > 0)
    return StepFunction(times, np.asarray(np.cumprod(1.0 - share), dtype=float), 1.0)


def log_rank_p_value(y: Any, groups: ArrayLike) -> float:
    """Return the p-value of the log-rank test that all groups have the same curve.

    Parameters
    ----------
    y : targets
        As ``survival`` makes them.
    groups : array of shape (n,)
        Group of every sample.

    Examples
    --------
    >>> y = survival([1, 2, 3, 4, 5, 6, 7, 8], [1] * 8)
    >>> round(log_rank_p_value(y, [0, 0, 0, 0, 1, 1, 1, 1]), 4)
    0.0067
    """
    from scipy.stats import chi2

    time, event = read_survival(y)
    names, group = np.unique(np.asarray(groups), return_inverse=True)
    if names.size < 2:
        raise ValueError("a log-rank test needs two groups at least")
    times, place = np.unique(time, return_inverse=True)
    table = np.zeros((2, times.size, names.size))
    np.add.at(table[0], (place, group), 1.0)
    np.add.at(table[1], (place, group), event)
    at_risk = np.cumsum(table[0, ::-1], axis=0)[::-1]
    all_at_risk, deaths = at_risk.sum(axis=1), table[1].sum(axis=1)
    share = at_risk / all_at_risk[:, None]
    excess = np.sum(table[1] - deaths[:, None] * share, axis=0)[:-1]
    spread = deaths * (all_at_risk - deaths) / np.maximum(all_at_risk - 1.0, 1.0)
    covariance = np.einsum("t,tg,gh->gh", spread, share, np.eye(names.size))
    covariance -= np.einsum("t,tg,th->gh", spread, share, share)
    statistic = excess @ np.linalg.pinv(covariance[:-1, :-1], hermitian=True) @ excess
    return float(chi2.sf(statistic, names.size - 1))


# ---- scores ----------------------------------------------------------------------------------------------------------


def concordance(y: Any, risk: ArrayLike) -> float:
    """Return Harrell's concordance: the share of pairs, of which one had the event first, whose risks say so.

    Equal risks count half, and at equal times a sample without event is the later one; as scikit-survival has it.  It
    takes O(n log n).

    Parameters
    ----------
    y : targets
        As ``survival`` makes them.
    risk : array of shape (n,)
        Larger for those who have the event sooner: ``MKLSurvival.predict``.

    Examples
    --------
    >>> concordance(survival([1, 2, 3], [True, False, True]), [3.0, 2.0, 2.5])
    1.0
    """
    time, event = read_survival(y)
    return _pairs(time, event, risk, np.ones(time.size))


def concordance_ipcw(train: Any, test: Any, risk: ArrayLike, tau: float | None = None) -> float:
    """Return Uno's concordance: pairs are weighted by how likely they were to be seen, against what censoring hides.

    Parameters
    ----------
    train : targets
        From which the share of samples that are not yet censored is estimated.
    test : targets
    risk : array of shape (n_test,)
    tau : float, optional
        Only events before this time count.  By default, and at most, those up to the end of the training samples'
        times: scikit-survival refuses test samples beyond.
    """
    time, event = read_survival(test)
    known = kaplan_meier(train, censoring=True)
    counted = event & (time <= known.x[-1]) & (time < (np.inf if tau is None else tau))
    uncensored = np.where(counted, known(time), 1.0)
    counted &= uncensored > 0
    weight = np.where(counted, 1.0 / np.where(uncensored > 0, uncensored, 1.0) ** 2, 0.0)
    return _pairs(time, event, risk, weight)


def _pairs(time: Array, event: NDArray[np.bool_], risk: ArrayLike, weight: Array) -> float:
    from ._numerics.risk_sets import concordant_pairs

    risks = np.asarray(risk, dtype=float)
    if risks.shape != time.shape or np.isnan(risks).any():
        raise ValueError(
            f"risk must be one number per sample, {time.size} of them, got the shape {risks.shape}"
        )
    order = np.argsort(time, kind="stable")
    new = np.append(True, np.diff(time[order]) > 0)[: time.size]
    tie = np.maximum.accumulate(np.where(new, np.arange(time.size), 0))
    values, place = np.unique(risks, return_inverse=True)
    low, high = np.searchsorted(values, risks - TIED), np.searchsorted(values, risks + TIED, side="right")
    tree = np.zeros(values.size + 1, dtype=np.int64)
    concordant, tied, comparable = concordant_pairs(order, tie, event, weight, low, high, place, tree)
    if comparable <= 0.0:
        raise ValueError(
            "no two samples can be compared: nobody has an event while another one is known to be without"
        )
    return float((concordant + 0.5 * tied) / comparable)


def brier_score(train: Any, test: Any, survived: ArrayLike, times: ArrayLike) -> Array:
    """Return the mean squared error of predicted survival at some times, weighted for censoring.

    Parameters
    ----------
    train : targets
        From which the share of samples that are not yet censored is estimated.
    test : targets
    survived : array of shape (n_test, k)
        Predicted probabilities to be without event at the times.
    times : array of shape (k,)
        Within those of the training samples.

    Returns
    -------
    array of shape (k,)
    """
    time, event = read_survival(test)
    at, predicted = np.atleast_1d(np.asarray(times, dtype=float)), np.asarray(survived, dtype=float)
    if predicted.shape != (time.size, at.size):
        raise ValueError(
            f"survived must have a row per sample and a column per time, {(time.size, at.size)}, got {predicted.shape}"
        )
    known = kaplan_meier(train, censoring=True)
    if not np.all((at >= 0) & (at <= known.x[-1])):
        raise ValueError(
            f"times must be between 0 and the last time of the training samples, {known.x[-1]:g}"
        )
    late = known(at)
    with np.errstate(divide="ignore"):
        # nobody is known to be without event where all are censored: such samples say nothing
        own, left = (np.where(share > 0, 1.0 / share, 0.0) for share in (known(time), late))
    had = (time[:, None] <= at) & event[:, None]
    has_not = time[:, None] > at
    return np.asarray(
        np.mean(predicted**2 * had * own[:, None] + (1.0 - predicted) ** 2 * has_not * left, axis=0)
    )


def integrated_brier_score(train: Any, test: Any, survived: ArrayLike, times: ArrayLike) -> float:
    """Return the mean of ``brier_score`` over the time from the first to the last of ``times``; parameters as there."""
    at = np.asarray(times, dtype=float)
    if at.ndim != 1 or at.size < 2 or not np.all(np.diff(at) > 0):
        raise ValueError("times must be at least two, and increase")
    return float(np.trapezoid(brier_score(train, test, survived, at), at) / (at[-1] - at[0]))


def times_between(y: Any, most: float) -> Array:
    """Return up to 50 times, at quantiles of the event times from 10 to 90 %, none later than ``most``."""
    time, event = read_survival(y)
    return np.unique(np.quantile(time[event & (time <= most)], np.linspace(0.1, 0.9, 50), method="lower"))


def partial_likelihood(y: Any, risk: ArrayLike, strata: ArrayLike | None = None) -> float:
    """Return the log of Cox's partial likelihood per event, with Breslow's ties.

    Parameters
    ----------
    y : targets
        As ``survival`` makes them; at least one has the event.
    risk : array of shape (n,)
        Log hazard ratios: ``MKLSurvival(loss="cox").predict``.
    strata : array of shape (n,), optional
        Groups with a baseline hazard of their own.
    """
    from .losses import Cox

    time, event = read_survival(y)
    if not event.any():
        raise ValueError("no sample has the event: there is no likelihood")
    loss, group = Cox(), np.zeros(time.size, dtype=int)
    if strata is not None:
        group = np.unique(np.asarray(strata), return_inverse=True)[1]
    target = loss.encode(time, event, group)
    return -loss.total(target, np.asarray(risk, dtype=float), np.ones(time.size)) / int(event.sum())


def curves_of(model: Any, X: Any, strata: Any = None, hazard: bool = False) -> Any:
    """Return the survival curves, or the cumulative hazards, that a model or the last step of a pipeline predicts.

    ``strata`` are for those that know some.
    """
    if hasattr(model, "steps"):
        X, model = model[:-1].transform(X) if len(model.steps) > 1 else X, model[-1]
    predict = model.predict_cumulative_hazard_function if hazard else model.predict_survival_function
    knows = strata is not None and "strata" in signature(predict).parameters
    return predict(X, strata=strata) if knows else predict(X)


SCORES = ("likelihood", "concordance", "concordance_ipcw", "brier")


def scorer(
    name: str = "concordance", *, tau: float | None = None, times: ArrayLike | None = None
) -> Callable[..., float]:
    """Return a scorer of fitted estimators for ``cross_val_score`` or ``GridSearchCV``: larger is better.

    Parameters
    ----------
    name : {"concordance", "concordance_ipcw", "brier", "likelihood"}
        The functions of this module; of the integrated Brier score the negative.
    tau : float, optional
        For ``concordance_ipcw``.
    times : array, optional
        For ``brier``; by default at 50 quantiles of the event times from 10 to 90 %.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import cross_val_score
    >>> from kernelweave import MKLSurvival, kernels as kw, metrics
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 2))
    >>> y = metrics.survival(rng.exponential(np.exp(-2 * X[:, 0])), np.ones(60, dtype=bool))
    >>> scores = cross_val_score(MKLSurvival(kw.linear()), X, y, cv=3, scoring=metrics.scorer("concordance"))
    >>> bool(scores.mean() > 0.7)
    True
    """
    check_choice("scoring", name, SCORES)
    return partial(_score, name, tau, times)


def _score(name: str, tau: float | None, times: ArrayLike | None, model: Any, X: Any, y: Any) -> float:
    if name in ("concordance", "likelihood"):
        return (concordance if name == "concordance" else partial_likelihood)(y, model.predict(X))
    fitted = model[-1] if hasattr(model, "steps") else model
    if name == "concordance_ipcw":
        return concordance_ipcw(fitted.observed_, y, model.predict(X), tau)
    known = fitted.observed_
    at = times_between(y, float(np.max(known["time"]))) if times is None else np.asarray(times, dtype=float)
    survived = np.array([curve(at) for curve in curves_of(model, X)])
    return -integrated_brier_score(known, y, survived, at)
