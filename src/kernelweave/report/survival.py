"""Times to an event on the page: measures of held-out risks and curves, and simpler methods beside the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from .. import metrics
from .._typing import Array
from ..inspection import feature_weights, final_estimator, risk_groups
from ..inspection.explain import feature_names
from ..inspection.views import predicts_survival
from ._html import number
from ._refits import TREES, Measure, Method, Refits, Table, Targets

#: samples of a leaf of a random survival forest, at least
LEAF = 10


class KaplanMeier(BaseEstimator):
    """The same curve for everybody, or everybody of a stratum: what is predicted without features."""

    def fit(self, X: Any, y: NDArray[Any], strata: Any = None) -> Self:
        """Keep the curves of the strata."""
        own = np.zeros(y.size) if strata is None else np.asarray(strata)
        self.curves_ = {label: metrics.kaplan_meier(y[own == label]) for label in np.unique(own).tolist()}
        return self

    def predict(self, X: Any) -> Array:
        """Return the same risk for all."""
        return np.zeros(len(X))

    def predict_survival_function(self, X: Any, strata: Any = None) -> list[metrics.StepFunction]:
        """Return the curve of each sample's stratum."""
        return [self.curves_[label] for label in (np.zeros(len(X)) if strata is None else strata)]


@dataclass(frozen=True)
class TimesToEvent(Targets):
    """Times to an event, which may be censored."""

    strata: NDArray[Any] | None = None
    #: hazard ratios of the covariates that always count, in every refit
    ratios: list[Any] = field(default_factory=list)

    @cached_property
    def horizons(self) -> Array:
        """Three times at which predicted probabilities are compared with what happened."""
        return np.unique(np.quantile(self.y["time"][self.y["event"]], [0.25, 0.5, 0.75], method="lower"))

    @cached_property
    def times(self) -> Array:
        """Times at which predicted curves are kept; the horizons are among them."""
        return np.union1d(metrics.times_between(self.y, float(self.y["time"].max())), self.horizons)

    @property
    def measures(self) -> Sequence[Measure]:
        def harrell(y: Any, risk: Any, _: Any) -> float:
            return _or_nan(metrics.concordance, y, risk.astype(float))

        def uno(y: Any, risk: Any, _: Any) -> float:
            return _or_nan(metrics.concordance_ipcw, self.y, y, risk.astype(float))

        def brier(y: Any, _: Any, curves: Any) -> float:
            known = curves is not None and np.isfinite(curves).all()
            args = (self.y, y, curves[:, :-1], self.times) if known else ()
            return _or_nan(metrics.integrated_brier_score, *args) if known else np.nan

        return (
            Measure("concordance", "Harrell’s, the share of pairs whose risks are in the order of their events; 0.5 is "
                    "guessing", harrell, number),
            Measure("Uno’s", "the same, weighted for censoring", uno, number),
            Measure("Brier score", f"integrated from {self.times[0]:.3g} to {self.times[-1]:.3g}, the squared error of "
                    "the curves, weighted for censoring; small is good", brier, number, most=np.inf),
        )  # fmt: skip

    def methods(self, model: Any, fitted: Any, samples: Any, seed: int) -> tuple[list[Method], str]:
        from .. import kernels as kw
        from ..estimators import MKLSurvivalCV

        chooses = hasattr(model, "Cs")
        mean = clone(model).set_params(norm="uniform", solver="auto", **({"norms": None} if chooses else {}))
        how = ", C chosen as for the model" if chooses else ", at the same C"
        methods = [
            Method("this model", "", model),
            Method("mean kernel", f"all kernels with the same weight{how}", mean),
        ]
        kernels = getattr(fitted, "kernels_", None)
        table = Table.of(kernels, samples)
        if not isinstance(table, str):
            steps = [*table.steps, ("scaled", StandardScaler(with_mean=not table.is_sparse))]
            # Cox regression with a ridge penalty is what one linear kernel is
            ridge = Pipeline([*steps, ("cox", MKLSurvivalCV(kw.linear(), cv=3, random_state=0))])
            how = "standardised, the penalty by the likelihood of held-out samples inside each fold"
            methods.append(
                Method("ridge Cox", f"Cox regression {table.about}, {how}", ridge, "columns", table.columns)
            )
            given = [kernel.looks_at(table.width) for kernel in kernels or () if kernel.always is not None]
            if given:
                some = tuple(sorted(set().union(*given)))
                about = f"the same on the {len(some)} columns of kernels that always count"
                methods.append(Method("covariates alone", about, clone(ridge), "columns", some))
            if find_spec("sksurv") is not None and not table.is_sparse:
                from sksurv.ensemble import RandomSurvivalForest

                trees = RandomSurvivalForest(TREES, min_samples_leaf=LEAF, random_state=seed)
                forest = Pipeline([*table.steps, ("forest", trees)])
                without = "" if self.strata is None else ", without strata"
                about = f"{TREES} trees with leaves of {LEAF} samples at least {table.about}{without}"
                methods.append(Method("random survival forest", about, forest, "columns", table.columns))
        about = "one curve for all samples" if self.strata is None else "one curve for each stratum"
        last = Method("Kaplan-Meier", about, KaplanMeier(), sees="nothing")
        return [*methods, last], table if isinstance(table, str) else ""

    def beside(self, rows: Any) -> dict[str, Any]:
        return {} if self.strata is None else {"strata": self.strata[rows]}

    def predicted(self, fitted: Any, samples: Any, rows: Any) -> tuple[Any, Array | None]:
        """Return risks, and the probability of every sample to be without event at ``times`` and when it was last seen.

        Of strata that the training samples do not have there is none.
        """
        last = self.y["time"][rows]
        try:
            curves = metrics.curves_of(fitted, samples, None if self.strata is None else self.strata[rows])
        except (ValueError, KeyError):
            return fitted.predict(samples), np.full((last.size, self.times.size + 1), np.nan)
        # beyond its last time a function of scikit-survival raises
        values = [
            curve(np.minimum(np.append(self.times, time), curve.x[-1]))
            for curve, time in zip(curves, last, strict=True)
        ]
        return fitted.predict(samples), np.array(values)

    def note(self, fitted: Any, samples: Any) -> None:
        self.ratios.append(hazard_ratios(fitted, samples))

    def refits(self, *found: Any) -> Refits:
        return SurvivalRefits(self, *found)


def _or_nan(measure: Any, *arguments: Any) -> float:
    """Return a measure, NaN where no two samples can be compared."""
    try:
        return float(measure(*arguments))
    except ValueError:
        return float("nan")


def hazard_ratios(model: Any, samples: Any) -> Any:
    """Return the hazard ratio for a standard deviation of every column that counts always and linearly, and not else.

    None where there is none.  It is by the position of the column; the samples are as the kernels see them.
    """
    estimator = final_estimator(model)
    kernels = getattr(estimator, "kernels_", None) or []
    given = {str(kernel.name) for kernel in kernels if kernel.always is not None}
    others = [kernel for kernel in kernels if kernel.always is None]
    if not given or not estimator.loss_.proportional:
        return None
    try:
        weights, table = feature_weights(estimator), np.asarray(samples, dtype=float)
    except (TypeError, ValueError):
        return None
    own = weights[weights["kernel"].isin(given)].groupby("feature", sort=False)["weight"].sum()
    if own.empty or table.ndim != 2:
        return None
    own.index = [feature_names(estimator, estimator).index(name) for name in own.index]
    # what is part of another kernel as well does not change alone
    own = own.drop(own.index.intersection(set().union(*(one.looks_at(table.shape[1]) for one in others))))
    return None if own.empty else np.exp(own * table.std(axis=0)[own.index])


class SurvivalRefits(Refits):
    """Refits of a model of survival; the decisions of a method are its probabilities to be without event."""

    targets: TimesToEvent

    @cached_property
    def place(self) -> Array:
        """Rank of every sample's held-out risk within its fold of the first round, a share: fits differ in scale."""
        place = np.empty(len(self.y))
        for _, test in self.splits[: self.folds]:
            risk = self.ours.predicted[0, test].astype(float)
            place[test] = np.searchsorted(np.sort(risk), risk) / test.size
        return place

    @cached_property
    def p_value(self) -> float:
        """Of the log-rank test that thirds by held-out risk have the same curve; NaN where there is one."""
        return _or_nan(metrics.log_rank_p_value, self.y, risk_groups(self.place))

    @cached_property
    def better_than_guessing(self) -> bool:
        """Whether held-out risks are in the order of the events, and beyond doubt."""
        return self.ours.measures[self.main.name].mean > 0.5 and self.p_value < 0.05

    def among(self, samples: Any) -> tuple[str, float, str]:
        risks = self.ours.predicted[:, samples].astype(float)
        value = float(np.mean([_or_nan(metrics.concordance, self.y[samples], risk) for risk in risks]))
        return "concordance", value, number(value)


def targets_for(model: Any, y: NDArray[Any], strata: Any = None) -> Targets:
    """Return the targets of a fitted model as its refits are to measure them."""
    estimator = final_estimator(model)
    if predicts_survival(model):
        estimator._strata_of(strata, y.size)  # which are those of the fit
        return TimesToEvent(y, strata=None if strata is None else np.asarray(strata))
    if strata is not None:
        raise ValueError("strata are of models of survival: leave them out")
    return Targets(y, estimator.classes_ if is_classifier(estimator) else None)
