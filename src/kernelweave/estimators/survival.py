"""MKLSurvival and MKLSurvivalCV: the time to an event, by Cox's model or squares of the log time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from sklearn.utils import Tags

from .. import metrics
from .._components import store_parameters
from .._estimating import one_fit, warn_of_findings, weigh_samples
from .._fitted import FittedModel, set_optional
from .._typing import Array
from ..banks.devices import on_host
from ..cluster import in_memory, lazily
from ..exceptions import GridEndWarning
from ..losses import Cox, SurvivalLoss
from ..metrics import StepFunction
from ..norms import make_norm
from ._base import BaseMKL
from ._bind import bind
from ._inputs import Training, training_inputs
from ._parameters import (
    Bytes,
    Callback,
    Codes,
    Column,
    Device,
    FileName,
    FoldsLike,
    KernelsLike,
    LossLike,
    NormLike,
    RandomSeed,
    Samples,
    SolverLike,
)
from ._plan import Plan, Task, norm_of_kernels
from ._search import Search, folds_of, norm_plans, shares_of_search
from .cv import checked_Cs

#: events below which weights are hardly determined; share of events that are tied, and of samples with an event, of
#: which a reader must know
FEW_EVENTS, MANY_TIED, NEARLY_ALL = 10, 0.1, 0.9


@dataclass(frozen=True)
class Followed:
    """Samples as they were followed: until when, with an event then or not, their weights and strata (codes)."""

    time: Array
    event: NDArray[np.bool_]
    weight: Array
    stratum: Codes
    #: of the strata; None where there are none
    labels: NDArray[Any] | None = None

    def among(self, samples: Codes) -> Followed:
        """Return some of the samples."""
        time, event, weight = self.time[samples], self.event[samples], self.weight[samples]
        return Followed(time, event, weight, self.stratum[samples], self.labels)

    @property
    def targets(self) -> NDArray[Any]:
        """Times and events as ``kernelweave.survival`` makes them, of samples with weight."""
        used = self.weight > 0
        return metrics.survival(self.time[used], self.event[used])

    def baseline(self, loss: SurvivalLoss, f: Array) -> Baseline:
        """Return the hazard at ``f = 0``, by Breslow's estimator, from decision values f of these samples.

        Where f is a log time it is the hazard of the ratio ``t exp(-f)``, by Nelson and Aalen's.
        """
        from .._numerics.risk_sets import RiskSets, hazards_at

        clock, risk = (self.time, f) if loss.proportional else (self.time * np.exp(-f), np.zeros_like(f))
        sets = RiskSets.of(Cox().encode(clock, self.event, self.stratum), self.weight)
        at = hazards_at(sets, risk[sets.order])
        first = np.flatnonzero(sets.tie == np.arange(sets.tie.size))
        strata = np.arange(1 if self.labels is None else self.labels.size)
        starts = np.searchsorted(self.stratum[sets.order][first], np.append(strata, strata.size))
        return Baseline(self, loss.proportional, starts, clock[sets.order][first], np.exp(at.log_h[first]))


@dataclass(frozen=True)
class Baseline:
    """Cumulative hazard of every stratum at ``f = 0``: places and values, one stratum after the other."""

    followed: Followed
    proportional: bool
    starts: Codes
    places: Array
    hazard: Array
    #: of the samples, by Harrell
    concordance: float = float("nan")

    def of(self, stratum: int) -> StepFunction:
        """Return the function of one stratum."""
        own = slice(self.starts[stratum], self.starts[stratum + 1])
        return StepFunction(self.places[own], self.hazard[own], 0.0)

    def curve(self, f: float, stratum: int) -> StepFunction:
        """Return the cumulative hazard of a sample over time."""
        own = self.of(stratum)
        if not self.proportional:
            # of the sample whose ratio it is the time again, and by rounding not after it
            return StepFunction(own.x * np.exp(f) * (1.0 - 1e-14), own.y, 0.0)
        with np.errstate(divide="ignore", over="ignore"):
            return StepFunction(own.x, np.exp(np.log(own.y) + f), 0.0)

    def survived(self, f: Array, stratum: Codes, times: Array) -> Array:
        """Return the probabilities to be without event at some times, ``(n, k)``."""
        pairs = zip(f, stratum, strict=True)
        return np.exp(-np.array([self.curve(*pair)(times) for pair in pairs]).reshape(f.size, times.size))

    def check(self) -> None:
        """Raise ValueError where parts contradict each other, as they may in a damaged file."""
        own = self.followed
        count = 1 if own.labels is None else own.labels.size
        known = [own.time, own.event, own.weight, own.stratum]
        fits = all(part.ndim == 1 and part.size == own.time.size > 0 for part in known)
        fits &= (
            own.event.dtype.kind == "b" and own.stratum.dtype.kind in "iu" and self.starts.dtype.kind in "iu"
        )
        fits &= all(part.dtype.kind == "f" for part in (own.time, own.weight, self.places, self.hazard))
        fits &= self.starts.shape == (count + 1,) and self.places.shape == self.hazard.shape
        if (
            not fits
            or self.starts[0] != 0
            or self.starts[-1] != self.places.size
            or np.any(np.diff(self.starts) < 0)
        ):
            raise ValueError("the baseline hazard of the model is none")


@dataclass(frozen=True, kw_only=True)
class SurvivalTask(Task):
    """A convex problem, and how its samples were followed."""

    followed: Followed


class MKLSurvival(BaseMKL):
    """Learn risks from times to an event, and the kernels they stand on, with a certificate of optimality.

    The times of samples without event are lower bounds (right censoring).  With ``loss="cox"`` the hazard is
    ``h_0(t) exp(f(x))``, and f minimises the regulariser plus C times minus the log of the partial likelihood.

    Parameters
    ----------
    kernels : kernels, "precomputed", preset name or None, default=None
        As for ``MKLClassifier``.  ``kernels.always(clinical, weight=100)`` adjusts for covariates.
    loss : str or Loss, default="cox"
        ``cox`` (Breslow's ties), or ``censored_squared``: f is a log time, and misses of times that are known are
        squared, those of censored ones where f is too small.
    norm, C, normalize, missing, solver, tol, max_iter, max_seconds, warm_start, checkpoint, callback, verbose, \
random_state, storage, dtype, memory_budget, n_jobs, device :
        As for ``MKLClassifier``; with ``loss="cox"`` the gap is relative to the objective or to C times the events,
        whichever is less: ``tol=1e-3`` proves that the fit is within 0.001 nats per event of the optimum.

    Attributes
    ----------
    weights_, kernel_names_, dual_coef_, intercept_, certificate_, trace_, n_passes_, n_iter_, solver_, status_,
    decision_, view_weights_, findings_ :
        As for ``MKLClassifier``.  With ``loss="cox"`` ``dual_coef_`` is, at the optimum, C times weight times the
        martingale residual, and the intercept makes the mean of f zero.
    unique_times_ : array of shape (k,)
        Times of the training samples.
    cum_baseline_hazard_, baseline_survival_ : StepFunction, or dict of them by stratum
        At ``f = 0``, the mean of the training samples; with ``loss="censored_squared"`` of the ratio of a time to the
        predicted one.
    observed_ : structured array
        Times and events of the training samples.
    n_events_ : int
        Samples with event and weight.
    null_loss_ : float
        C times minus the log of the partial likelihood (or the squares) where f is constant.
    concordance_ : float
        Harrell's concordance of the training samples, which the fit has seen; NaN where no two can be compared.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import MKLSurvival, kernels as kw, survival
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 6))
    >>> dead, followed = rng.exponential(np.exp(-1.5 * X[:, 0])), rng.exponential(2.0, size=100)
    >>> y = survival(np.minimum(dead, followed), dead <= followed)
    >>> views = kw.per_view({"first": slice(0, 3), "last": slice(3, 6)}, kw.linear())
    >>> model = MKLSurvival(views, C=0.1).fit(X, y)
    >>> model.certificate_.relative_gap <= 1e-3, model.score(X, y) > 0.7
    (True, True)
    >>> model.predict_survival_function(X[:1])[0](0.0)
    1.0
    """

    _task = "survival"
    # a constant is free: Cox's partial likelihood does not see it
    fit_intercept = True
    # without effect where a constant is free
    center = False

    def __init__(
        self,
        kernels: KernelsLike = None,
        *,
        loss: LossLike = "cox",
        norm: NormLike = "l1",
        C: float = 1.0,
        normalize: str | None = "trace",
        missing: str = "error",
        solver: SolverLike = "auto",
        tol: float = 1e-3,
        max_iter: int | None = None,
        max_seconds: float | None = None,
        warm_start: bool = False,
        checkpoint: FileName | None = None,
        callback: Callback | None = None,
        verbose: int = 0,
        random_state: RandomSeed = None,
        storage: str = "auto",
        dtype: DTypeLike = "float64",
        memory_budget: Bytes = None,
        n_jobs: int | None = None,
        device: Device = None,
    ) -> None:
        store_parameters(self, locals())

    @one_fit
    def fit(self, X: Samples, y: Column, sample_weight: Column = None, strata: Column = None) -> Self:
        """Learn kernel weights and coefficients, and the baseline hazard.

        Parameters
        ----------
        X, sample_weight :
            As for ``MKLClassifier.fit``; a sample of weight 2 is as good as two, at the same C.
        y : structured array or DataFrame
            ``kernelweave.survival(time, event)``; any array with a field of truth values and one of times; or a table
            with the columns ``event`` and ``time``, whose index names the samples (``adata.obs[["event", "time"]]``).
        strata : array of shape (n,), optional
            Groups with a baseline hazard of their own, such as centres (``loss="cox"``).

        Returns
        -------
        self
        """
        training, plan, tasks = self._prepared(X, y, sample_weight, strata)
        self._fit(training, plan, tasks)
        self._keep(tasks[0])
        return self

    def _prepared(
        self, X: Samples, y: Column, sample_weight: Column, strata: Column = None
    ) -> tuple[Training, Plan, list[Task]]:
        plan = self._plan()
        X, y = self._joined(X, y)
        times, event = metrics.read_survival(in_memory(y))
        training = training_inputs(self, X, plan.bank, times.size)
        if training.kind == "pairs" and plan.loss.coupled:
            raise ValueError(
                "loss='cox' takes products of the whole kernel matrix, which pairs never have: use 'censored_squared'"
            )
        weight = weigh_samples(on_host(in_memory(sample_weight)), training.n)
        if not np.any(weight[event] > 0):
            what = "sample with weight" if event.any() else "sample"
            raise ValueError(f"no {what} has the event: nothing can be learnt")
        labels, stratum = None, np.zeros(training.n, dtype=np.intp)
        if strata is not None:
            given = _labels(strata, training.n)
            labels, stratum = np.unique(given, return_inverse=True)
        loss = cast(SurvivalLoss, plan.loss)
        target = loss.encode(times, event, stratum)
        plan = plan.with_norm(norm_of_kernels(plan.norm, training))
        followed = Followed(times, event, weight, stratum, labels)
        return training, plan, [SurvivalTask(target, weight, "y", loss, plan.norm, plan.C, followed=followed)]

    def _own_parts(self, tasks: list[Task], values: list[Array]) -> dict[str, Any]:
        task = cast(SurvivalTask, tasks[0])
        loss, followed, used = cast(SurvivalLoss, task.loss), task.followed, task.weight > 0
        baseline = followed.baseline(loss, values[0])
        with suppress(ValueError):  # no two samples can be compared
            risk = values[0] if loss.proportional else -values[0]
            baseline = replace(baseline, concordance=metrics.concordance(followed.targets, risk[used]))
        return {"baseline": baseline}

    def _findings_of(self, tasks: list[Task], values: list[Array]) -> tuple[str, ...]:
        task = tasks[0]
        events = int(np.count_nonzero((task.y > 0) & (task.weight > 0)))
        nothing = np.zeros_like(task.y)
        b = task.loss.best_intercept(task.y, nothing, task.weight)
        if task.loss.coupled and task.loss.total(task.y, nothing + b, task.weight) == 0.0:
            return ("Nothing can be learnt: nobody was still followed when another sample had the event.",)
        return (f"{events} events: weights are hardly determined.",) if events < FEW_EVENTS else ()

    def _keep(self, task: Task) -> None:
        """Keep what is known of the training samples, and note what is worth knowing of them."""
        followed = cast(SurvivalTask, task).followed
        used = followed.weight > 0
        events = followed.event & used
        self.n_events_ = int(np.count_nonzero(events))
        c, nothing = task.C * task.weight, np.zeros_like(task.y)
        b = task.loss.best_intercept(task.y, nothing, c)
        self.null_loss_ = task.loss.total(task.y, nothing + b, c)
        self.unique_times_ = np.unique(followed.time[used])
        _, counts = np.unique(task.y[events], return_counts=True)
        tied, n = int(np.sum(counts[counts > 1])), int(np.count_nonzero(used))
        said = []
        if self.n_events_ > NEARLY_ALL * n and self.n_events_ < n:
            said.append(f"{self.n_events_} of {n} samples have the event: is it coded the other way round?")
        if task.loss.coupled and tied > MANY_TIED * self.n_events_:
            said.append(
                f"{tied} of {self.n_events_} events share their time with another: Breslow's ties draw risks a little "
                "towards each other."
            )
        if said:
            fitted = FittedModel.of(self)
            replace(fitted, findings=(*fitted.findings, *said)).write(self)

    @property
    def observed_(self) -> NDArray[Any]:
        """Times and events of the training samples with weight, as ``kernelweave.survival`` makes them."""
        return self._known_baseline("observed_").followed.targets

    @property
    def concordance_(self) -> float:
        """Harrell's concordance of the training samples, which the fit has seen; NaN where no two can be compared."""
        return self._known_baseline("concordance_").concordance

    @property
    def cum_baseline_hazard_(self) -> StepFunction | dict[Any, StepFunction]:
        """Cumulative hazard at ``f = 0``, by stratum where there are some."""
        known = self._known_baseline("cum_baseline_hazard_")
        labels = known.followed.labels
        return (
            known.of(0) if labels is None else {label: known.of(k) for k, label in enumerate(labels.tolist())}
        )

    @property
    def baseline_survival_(self) -> StepFunction | dict[Any, StepFunction]:
        """Share without event over time at ``f = 0``, by stratum where there are some."""
        hazard = self.cum_baseline_hazard_
        return (
            {label: _survival(own) for label, own in hazard.items()}
            if isinstance(hazard, dict)
            else _survival(hazard)
        )

    def _known_baseline(self, what: str) -> Baseline:
        if "_baseline" not in vars(self):
            raise AttributeError(f"{what} is there once the estimator is fitted")
        return cast(Baseline, vars(self)["_baseline"])

    @lazily
    def predict(self, X: Samples) -> Array:
        """Return risks, larger for those who have the event sooner.

        With ``loss="cox"`` it is the log of the hazard relative to that at the mean of the training samples; with
        ``loss="censored_squared"`` minus the predicted log time.
        """
        return self._risks(self._decision(X))

    def _risks(self, values: Array) -> Array:
        return values if cast(SurvivalLoss, self.loss_).proportional else -values

    def predict_survival_function(
        self, X: Samples, return_array: bool = False, strata: Column = None
    ) -> NDArray[Any]:
        """Return the probability to be without event over time, of every sample.

        Parameters
        ----------
        X : samples
            As for ``fit``.
        return_array : bool, default=False
            Whether to return values at ``unique_times_``, ``(n_new, k)``, in the place of functions.
        strata : array of shape (n_new,), optional
            Needed where the model was fitted with strata.

        Returns
        -------
        array of StepFunction, shape (n_new,), or of numbers
            Before the first training time they are 1; beyond the last one the last value is kept, which says nothing
            about what happens then.
        """
        curves = self._curves(X, strata)
        if return_array:
            return np.exp(-np.array([curve(self.unique_times_) for curve in curves]))
        return _objects([_survival(curve) for curve in curves])

    def predict_cumulative_hazard_function(
        self, X: Samples, return_array: bool = False, strata: Column = None
    ) -> NDArray[Any]:
        """Return the cumulative hazard of every sample; parameters as for ``predict_survival_function``."""
        curves = self._curves(X, strata)
        return np.array([curve(self.unique_times_) for curve in curves]) if return_array else _objects(curves)

    def predict_median(self, X: Samples, strata: Column = None) -> Array:
        """Return the times at which the probability to be without event is one half; infinite where it stays above."""
        medians = []
        for curve in self._curves(X, strata):
            place = int(np.searchsorted(curve.y, np.log(2.0)))
            medians.append(curve.x[place] if place < curve.x.size else np.inf)
        return np.array(medians)

    def _curves(self, X: Samples, strata: Column) -> list[StepFunction]:
        """Cumulative hazards of samples."""
        values = np.asarray(self._decision(in_memory(X)))
        known = self._known_baseline("the baseline hazard")
        return [known.curve(f, k) for f, k in zip(values, self._strata_of(strata, values.size), strict=True)]

    def _strata_of(self, strata: Column, n: int) -> Codes:
        """Numbers of the strata of new samples."""
        labels = self._known_baseline("the baseline hazard").followed.labels
        if (strata is None) != (labels is None):
            how = (
                "without strata: leave them out"
                if labels is None
                else "with strata: say that of every sample, strata=..."
            )
            raise ValueError(f"the model was fitted {how}")
        if labels is None:
            return np.zeros(n, dtype=np.intp)
        given = _labels(strata, n)
        unknown = sorted(set(given.tolist()) - set(labels.tolist()), key=str)
        if unknown:
            raise ValueError(
                f"stratum {unknown[0]!r} was not among those of the training samples, so it has no baseline hazard: "
                "predict, which is relative to that, serves for it; the curves do not"
            )
        return np.searchsorted(labels, given)

    def score(self, X: Samples, y: Column) -> float:
        """Return Harrell's concordance (``metrics.concordance``)."""
        X, y = self._joined(X, y)
        return metrics.concordance(in_memory(y), np.asarray(self.predict(in_memory(X))))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def _survival(hazard: StepFunction) -> StepFunction:
    return StepFunction(hazard.x, np.exp(-hazard.y), 1.0)


def _objects(functions: Sequence[StepFunction]) -> NDArray[Any]:
    out = np.empty(len(functions), dtype=object)
    out[:] = functions
    return out


def _labels(strata: Column, n: int) -> NDArray[Any]:
    """Check labels of strata: one per sample, numbers or words."""
    given = np.asarray(in_memory(strata))
    if given.shape != (n,):
        raise ValueError(f"strata must be one label per sample, {n} of them, got the shape {given.shape}")
    if any(value is None or value != value for value in given.tolist()):
        raise ValueError(
            "strata are missing for some samples: give these a stratum of their own, or leave them out"
        )
    return given if given.dtype.kind in "fiubU" else given.astype(str)


class MKLSurvivalCV(MKLSurvival):
    """Survival with C, and if wanted the norm, chosen by cross-validation along warm-started paths on one bank.

    Folds are stratified by event.

    Parameters
    ----------
    kernels : kernels
        As for ``MKLClassifier``.
    Cs : int or array-like, default=10
        Values of C; a number is that many from 1e-4 to 1e2.
    norms : sequence of norms, optional
        Norms to choose among, such as ``["l1", 2, "uniform"]``; by default only ``norm``.  ``norm`` (or the first of
        them, where it is not among them) is kept unless another is ahead of it by more than a standard error of the
        difference over the folds.
    cv : int, splitter or iterable, default=None
        As in scikit-learn, but that the folds of a number (None is 5) are shuffled by ``random_state``.
    scoring : {"likelihood", "concordance", "concordance_ipcw", "brier"} or None, default=None
        Of held-out samples; None is minus the loss itself, per event or per sample.  That is ``"likelihood"`` for
        ``loss="cox"``: it sees the scale of f, which survival curves hang on and concordance does not.
    **others
        As for ``MKLSurvival``, but ``C`` and ``device``; ``max_seconds`` is for the search and the fit together.

    Attributes
    ----------
    C_, norm_ : the chosen ones
    cv_results_, best_score_, refit_time_, ties_, tied_weights_ :
        As for ``MKLClassifierCV``.
    findings_ : tuple of str
        As for ``MKLClassifierCV``.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import MKLSurvivalCV, kernels as kw, survival
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(90, 4))
    >>> y = survival(rng.exponential(np.exp(-X[:, 0])), np.ones(90, dtype=bool))
    >>> model = MKLSurvivalCV(kw.per_feature(kw.linear()), Cs=[0.01, 0.1, 1.0], cv=3).fit(X, y)
    >>> model.C_ in (0.01, 0.1, 1.0), len(model.cv_results_)
    (True, 9)
    """

    Cs: ArrayLike
    norms: Sequence[NormLike] | None
    cv: FoldsLike
    scoring: str | None

    def __init__(
        self,
        kernels: KernelsLike = None,
        *,
        loss: LossLike = "cox",
        norm: NormLike = "l1",
        Cs: ArrayLike = 10,
        norms: Sequence[NormLike] | None = None,
        cv: FoldsLike = None,
        scoring: str | None = None,
        normalize: str | None = "trace",
        missing: str = "error",
        solver: SolverLike = "auto",
        tol: float = 1e-3,
        max_iter: int | None = None,
        max_seconds: float | None = None,
        warm_start: bool = False,
        checkpoint: FileName | None = None,
        callback: Callback | None = None,
        verbose: int = 0,
        random_state: RandomSeed = None,
        storage: str = "auto",
        dtype: DTypeLike = "float64",
        memory_budget: Bytes = None,
        n_jobs: int | None = None,
    ) -> None:
        store_parameters(self, locals())

    @one_fit
    def fit(
        self,
        X: Samples,
        y: Column,
        sample_weight: Column = None,
        strata: Column = None,
        groups: Column = None,
    ) -> Self:
        """Choose C and norm by cross-validation, then fit all samples with them.

        Parameters
        ----------
        X, y, sample_weight, strata :
            As for ``MKLSurvival.fit``.
        groups : array of shape (n,), optional
            For group-aware splitters.

        Returns
        -------
        self
        """
        Cs = checked_Cs(np.logspace(-4, 2, self.Cs) if isinstance(self.Cs, int) and self.Cs > 0 else self.Cs)
        if self.scoring is not None and self.scoring not in metrics.SCORES:
            raise ValueError(
                f"scoring must be None or one of {', '.join(metrics.SCORES)}, got {self.scoring!r}"
            )
        training, plan, tasks = self._prepared(X, y, sample_weight, strata)
        task = cast(SurvivalTask, tasks[0])
        followed = task.followed
        if self.scoring == "likelihood" and not task.loss.coupled:
            raise ValueError(
                "scoring='likelihood' is Cox's partial likelihood: use loss='cox', or scoring=None"
            )
        plans = norm_plans(plan, self.norms, training)
        splits = folds_of(self.cv, followed.event.astype(np.intp), True, plan.seed, groups)
        events = np.flatnonzero(followed.event & (followed.weight > 0))
        for fold, parts in enumerate(splits):
            for part, what in zip(parts, ("training", "held-out"), strict=True):
                if not np.isin(events, part).any():
                    raise ValueError(
                        f"fold {fold} has no {what} sample with the event ({events.size} of all have it): take fewer "
                        "folds"
                    )
        stops = shares_of_search(plan.stop, len(splits) * len(plans) * len(Cs))
        labels, own = [tried.norm.label for tried in plans], make_norm(self.norm).label
        default = labels.index(own) if own in labels else 0
        bound = bind(training, plan.bank)
        scored = _HeldOut(task, splits, self.scoring)
        search = Search(
            bound, tasks, plans, Cs, splits, scored.score, scored.loss_of_folds, stops, default, sees_all=True
        )
        chosen = search.choose()
        self.cv_results_, self.best_score_ = chosen.table, chosen.score
        self.norm_ = make_norm(self.norm if self.norms is None else self.norms[chosen.place])
        began = time.perf_counter()
        fitted = self._solve(search.bound, chosen.plan, chosen.tasks)
        self.refit_time_ = time.perf_counter() - began
        weights = search.weights_of_ties(chosen, fitted.weights)
        self.ties_ = chosen.ties.drop(columns="choice")
        set_optional(self, "tied_weights_", weights)
        said, warned_of = search.findings(chosen, weights)
        warn_of_findings(fitted.findings)
        warn_of_findings(warned_of, GridEndWarning)
        replace(fitted, findings=(*search.bound.findings, *fitted.findings, *said)).write(self)
        self._keep(chosen.tasks[0])
        return self


@dataclass
class _HeldOut:
    """Scores of held-out samples, larger is better; every sample with weight counts once."""

    task: SurvivalTask
    splits: Sequence[tuple[Codes, Codes]]
    scoring: str | None

    def loss(self, values: Array, held_out: Codes) -> float:
        """Loss of held-out values, per unit (of Cox: per event) or per sample."""
        loss, y = self.task.loss, self.task.y[held_out]
        c = (self.task.weight[held_out] > 0).astype(float)
        return loss.total(y, values, c) / (loss.unit(y, c) or float(np.sum(c)))

    def loss_of_folds(self, folds: list[tuple[Codes, Array]]) -> float:
        return float(np.mean([self.loss(values, held_out) for held_out, values in folds]))

    def score(self, values: Array, held_out: Codes) -> dict[str, float]:
        """Score the values of held-out samples, given those of all."""
        if self.scoring in (None, "likelihood"):
            return {"score": -self.loss(values[held_out], held_out)}
        followed, loss = self.task.followed, cast(SurvivalLoss, self.task.loss)
        train = next(train for train, test in self.splits if np.array_equal(test, held_out))
        held_out = held_out[followed.weight[held_out] > 0]
        f, tested = values[held_out], followed.among(held_out)
        risk, y = f if loss.proportional else -f, tested.targets
        known = followed.among(train)
        if self.scoring != "brier":
            with suppress(ValueError):  # no two samples can be compared
                if self.scoring == "concordance":
                    return {"score": metrics.concordance(y, risk)}
                return {"score": metrics.concordance_ipcw(known.targets, y, risk)}
            return {"score": np.nan}
        times = metrics.times_between(y, float(np.max(known.targets["time"])))
        survived = known.baseline(loss, values[train]).survived(f, tested.stratum, times)
        return {"score": -metrics.integrated_brier_score(known.targets, y, survived, times)}
