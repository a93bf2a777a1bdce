"""MKLRegressorCV: weights and ridge of every target by evidence, or C and norm by cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from numbers import Integral
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import check_scoring, r2_score
from sklearn.model_selection import BaseCrossValidator, check_cv

from .._estimating import TimeShares, end_of_grid, one_fit, weigh_samples
from ..banks import KernelFunction, support
from ..banks.devices import device_of
from ..cluster import in_memory
from ._bind import Bound, bind
from ._deviation import Spread
from ._evidence import EVIDENCE, Evidence, by_evidence, criterion_of, refuse_too_many
from ._fitting import conclude
from ._inputs import Training
from ._nuisance import nuisance_kernels
from ._parameters import keep_parameters
from ._plan import Plan
from ._search import (
    SEARCH,
    Search,
    default_place,
    norm_plans,
    refuse_centred_cosine,
    refuse_undefined_scores,
)
from ._structure import plan_for_kernels, refuse_fixed_parts
from ._tasks import Task
from ._types import (
    Array,
    Bytes,
    Callback,
    Codes,
    Column,
    Device,
    FileName,
    KernelsLike,
    LossLike,
    NormLike,
    RandomSeed,
    Samples,
    SolverLike,
)
from .path import checked_Cs
from .regressor import MKLRegressor

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["MKLRegressorCV"]

CRITERIA = ("convex", *EVIDENCE)


class MKLRegressorCV(MKLRegressor):
    """Multiple kernel regression with the strength of regularisation chosen from the data, for every target by itself.

    With ``criterion="convex"`` C, and if wanted the norm, are chosen by cross-validation along warm-started paths on
    one bank, and every fit is certified.  The other criteria choose one weight per kernel and target together with the
    ridge: more flexible and quicker for many targets, but the criterion is not convex, so that a choice is known to be
    stationary and not known to be the best.  :doc:`/many_targets` says which to take when.

    Parameters
    ----------
    kernels : kernels
        As for ``MKLClassifier``.
    criterion : {"convex", "reml", "loo", "folds"}, default="convex"
        What the choice is made by: cross-validated scores of the convex problem; the restricted marginal likelihood;
        squared errors of samples that are left out one by one, or fold by fold.
    Cs, norms, scoring :
        For the convex criterion, as for ``MKLClassifierCV``; None is R2.
    cv : int, splitter or iterable, default=None
        Folds of ``convex`` and ``folds``, as in scikit-learn.  For blocks of time take ``KFold(shuffle=False)``.
    targets_in_batch : int, optional
        Targets that the criteria by evidence work on together; by default as many as go well with memory.  The answer
        does not depend on it.
    nuisance : str, int or sequence of them, optional
        Kernels, by name, view or position, that explain the training samples and are left out at prediction, for the
        criteria by evidence: what belongs to the subject, the batch or the session of a sample and not to a new one.
        They keep their ``weights_``.
    device : {"cuda", "cpu"}, optional
        Where torch chooses weights by evidence; None is NumPy in memory, which answers the same.
    multi_output : {"each", "shared"}, default="each"
        Whether the convex criterion chooses for every target by itself.
    **others
        As for ``MKLRegressor``; its ``C`` is not used.  Kernels are centred by default.  ``missing`` goes with the
        criteria ``convex``, whose folds are completed by their own training samples, and ``reml``.

    Attributes
    ----------
    weights_ : array of shape (m,) or (t, m)
        They sum to one, or are all zero where no kernel helps.
    alpha_, C_ : float or array of shape (t,)
        The ridge beside the mixed kernel, and ``C = 1 / (2 alpha)``.
    criterion_ : str
    scores_ : float or array of shape (t,)
        R2 of held-out samples by the folds (``convex``, ``folds``) or one by one; the choice has seen them.
    targets_ : DataFrame
        One row per target: the criterion's value, score, alpha, kernels with weight, ``slope`` (the largest derivative
        of the criterion's logarithm in the logarithm of a weight), ``relative_gap`` (of the problem solved for given
        choices) and ``status``.  ``certified``: the convex problem is proved to be solved to ``tol``; ``stationary``:
        the ridge regression is, and no step of the weights promises a gain worth having; ``max_steps``: some might;
        ``constant``: there is nothing to learn; ``max_seconds``, ``interrupted``, ``stopped``: the choice was cut
        short, and the best weights until then were kept; ``imprecise``: double precision does not hold the ridge
        regression.
        ``status_`` is that of the worst target; the last four come with a warning.
    variance_components_ : DataFrame
        Of one target by REML: variance and share of every kernel and of the noise, with standard errors from the
        expected information; none for kernels without weight.  One target alone is fitted to where the likelihood is
        flat, from several starts where that is cheap; several targets on a lattice of weights.
    certificate_ :
        Of the convex problems, or of the ridge regressions with the chosen weights.
    cv_results_, norm_ :
        Of the convex criterion, as for ``MKLClassifierCV``; for several targets a column ``target``, and a list.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave import MKLRegressorCV, kernels as kw
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(80, 6))
    >>> Y = np.column_stack([X[:, 0], X[:, 4] - X[:, 5]]) + 0.1 * rng.normal(size=(80, 2))
    >>> views = kw.per_view({"first": slice(0, 3), "last": slice(3, 6)}, kw.linear())
    >>> MKLRegressorCV(views, criterion="reml").fit(X, Y).weights_.round(1).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    criterion: str
    Cs: ArrayLike
    norms: Sequence[NormLike] | None
    cv: int | BaseCrossValidator | Iterable[tuple[Codes, Codes]] | None
    scoring: str | Callable[..., float] | None
    targets_in_batch: int | None
    nuisance: Sequence[str | int] | str | int | None

    def __init__(
        self,
        kernels: KernelsLike = None,
        *,
        criterion: str = "convex",
        Cs: ArrayLike = 10,
        norms: Sequence[NormLike] | None = None,
        cv: int | BaseCrossValidator | Iterable[tuple[Codes, Codes]] | None = None,
        scoring: str | Callable[..., float] | None = None,
        targets_in_batch: int | None = None,
        nuisance: Sequence[str | int] | str | int | None = None,
        loss: LossLike = "squared",
        norm: NormLike = "l1",
        C: float = 1.0,
        solver: SolverLike = "auto",
        tol: float = 1e-3,
        fit_intercept: bool = True,
        normalize: str | None = "trace",
        center: bool = True,
        max_iter: int | None = None,
        max_seconds: float | None = None,
        storage: str = "auto",
        dtype: DTypeLike = "float64",
        memory_budget: Bytes = None,
        warm_start: bool = False,
        checkpoint: FileName | None = None,
        callback: Callback | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        device: Device = None,
        missing: str = "error",
        multi_output: str = "each",
        random_state: RandomSeed = None,
    ) -> None:
        keep_parameters(self, locals())

    @property
    def fits_subsets(self) -> bool:  # type: ignore[override]
        """Whether the answer is one mixture at one C, which can be fitted on some of the kernels."""
        return self.criterion == "convex" and np.ndim(getattr(self, "C_", 0.0)) == 0

    @one_fit
    def fit(self, X: Samples, y: Column, sample_weight: Column = None, groups: Column = None) -> Self:
        """Choose by the criterion, and fit all samples with what was chosen.

        Parameters
        ----------
        X, y, sample_weight :
            As for ``MKLRegressor.fit``; entries of several targets may be missing (NaN).  By evidence, targets that
            lack the same samples are fitted together.
        groups : array of shape (n,), optional
            For group-aware splitters.

        Returns
        -------
        self
        """
        plan = self._plan()
        self._check_options(plan, groups)
        X, y = self._joined(X, y)
        Y = self._targets(y)
        training = self._training(X, plan.bank, len(Y))
        weight = weigh_samples(in_memory(sample_weight), training.n)
        if not np.any(weight > 0):
            raise ValueError("all sample weights are zero")
        plan = plan_for_kernels(plan, training)
        self.criterion_ = self.criterion

        def splits() -> list[tuple[Codes, Codes]]:
            # folds of a regression do not depend on the targets
            return list(check_cv(self.cv, np.zeros(len(Y))).split(np.zeros((len(Y), 1)), None, groups))

        if self.criterion == "convex":
            self._fit_convex(training, plan, Y, weight, splits())
            return self
        refuse_fixed_parts(plan.norm, len(training.names), f"criterion={self.criterion!r}")
        refuse_too_many(Y, plan)
        left_out = nuisance_kernels(self.nuisance, training)
        criterion = criterion_of(self.criterion, splits() if self.criterion == "folds" else [], training.n)
        bound = bind(replace(training, device=None), plan.bank)  # kernels go to the device from memory
        evidence = by_evidence(bound.bank, plan, Y, weight, criterion, self.targets_in_batch, training.device)
        self._keep_evidence(bound, plan, evidence, Y.ndim == 2, left_out)
        spread = Spread(evidence.noise, evidence.alpha, weight, self.support_, plan.fit_intercept)
        known = np.all(np.isfinite(Y)) and not np.any(left_out)
        self._keep_where_there("_spread", spread if known else None)
        return self

    def _check_options(self, plan: Plan, groups: Column) -> None:
        if self.criterion not in CRITERIA:
            raise ValueError(f"criterion must be one of {', '.join(CRITERIA)}, got {self.criterion!r}")
        if self.targets_in_batch is not None and not (
            isinstance(self.targets_in_batch, Integral) and self.targets_in_batch >= 1
        ):
            raise ValueError(
                f"targets_in_batch must be a whole number >= 1 or None, got {self.targets_in_batch!r}"
            )
        if self.criterion == "convex":
            refuse_centred_cosine(plan, "MKLRegressor")
            if self.nuisance is not None:
                raise ValueError("nuisance kernels go with the criteria by evidence: reml, loo or folds")
            if self.device is not None:
                raise ValueError(
                    "a device goes with the criteria by evidence; for convex problems take MKLRegressor(device=...)"
                )
            return
        if plan.bank.missing != "error" and self.criterion != "reml":
            raise ValueError(
                f"criterion={self.criterion!r} leaves samples out of kernels that are completed with all of them: with "
                f"missing={plan.bank.missing!r} take 'reml', or 'convex', which completes every fold by itself"
            )
        if self.device is not None and device_of(self.device).type == "mps":
            raise ValueError(
                "weights by evidence need double precision, which 'mps' has not: use device=None"
            )
        if not plan.loss.least_squares:
            raise ValueError(f"criterion={self.criterion!r} is for loss='squared': take criterion='convex'")
        if self.norms is not None:
            raise ValueError(
                f"norms are for criterion='convex'; {self.criterion!r} chooses weights without a norm"
            )
        if self.multi_output == "shared":
            raise ValueError(f"shared weights go with criterion='convex', not {self.criterion!r}")
        if groups is not None and self.criterion != "folds":
            raise ValueError(f"groups are for criterion='folds' or 'convex', {self.criterion!r} has no folds")

    # ---- certified fits, C and norm by cross-validation --------------------------------------------------------

    def _fit_convex(
        self, training: Training, plan: Plan, Y: Array, weight: Array, splits: list[tuple[Codes, Codes]]
    ) -> None:
        import pandas as pd

        Cs, plans = checked_Cs(self.Cs), norm_plans(plan, self.norms, training)
        tasks = self._tasks(Y, weight, plan)
        stops = TimeShares(plan.stop, len(splits) * len(plans) * len(Cs) * len(tasks), SEARCH)

        def score_of(task: Task) -> Callable[[Array, Codes], float]:
            known = task.weight > 0

            def score(values: Array, held_out: Codes) -> float:
                there = held_out[known[held_out]]
                return self._score_of(values[known[held_out]], task.y[there])

            return score

        name = "R2 (the default scoring)" if self.scoring is None else f"scoring={self.scoring!r}"
        for task in tasks:
            refuse_undefined_scores(score_of(task), [task], splits, name, "neg_mean_squared_error")
        bound, chosen = bind(training, plan.bank), []
        for task in tasks:
            search = Search(
                bound, [task], plans, Cs, splits, score_of(task), stops, default_place(self.norm, plans)
            )
            chosen.append(search.choose())
        several = len(tasks) > 1
        tables = [
            one.table.assign(target=task.label) if several else one.table
            for one, task in zip(chosen, tasks, strict=True)
        ]
        self.cv_results_ = pd.concat(tables, ignore_index=True)
        scores = np.array([one.score for one in chosen])
        self.scores_ = scores if several else float(scores[0])
        self.best_score_ = float(scores.mean())
        self.norm_ = [one.plan.norm for one in chosen] if several else chosen[0].plan.norm
        solved = [one.tasks[0] for one in chosen]
        self._solve(bound, chosen[0].plan, solved)
        C = np.array([one.C for one in chosen])
        self.C_ = C if several else float(C[0])
        self.findings_ = _ends_of_grid(C, Cs)
        self._keep_spread(solved, plan)
        self.alpha_ = 0.5 / self.C_
        gaps = np.array([one.relative_gap for one in self.certificates_])
        status = np.where(gaps <= plan.stop.tol, "certified", "not certified").astype(object)
        self.targets_ = self._table(
            scores, scores, 0.5 / C, np.atleast_2d(self.weights_), np.nan, gaps, status
        )

    def _score_of(self, values: Array, y: Array) -> float:
        if len(y) == 0:  # no sample of the fold has weight and a target
            return float("nan")
        if self.scoring is None:
            return float(r2_score(y, values))
        known = _KnownPredictions(values)
        return float(check_scoring(known, self.scoring)(known, np.zeros((len(y), 1)), y))

    # ---- weights by evidence -----------------------------------------------------------------------------------

    def _keep_evidence(
        self, bound: Bound, plan: Plan, evidence: Evidence, several: bool, left_out: NDArray[np.bool_]
    ) -> None:
        """Keep what prediction and inspection need; of a single target its own numbers."""

        def shown(values: Array) -> Array:
            return values if several else values[..., 0]

        choice, status = evidence.choice, evidence.status(plan.stop.tol)
        self.weights_ = evidence.weights if several else evidence.weights[0]
        self.dual_coef_, self.intercept_ = shown(evidence.beta), shown(evidence.intercept)
        self.C_, self.alpha_ = shown(evidence.C), shown(evidence.alpha)
        self.scores_, self.best_score_ = shown(choice.score), float(np.mean(choice.score))
        self.certificate_, self.loss_ = evidence.certificate, plan.loss
        self.targets_ = self._table(
            choice.value,
            choice.score,
            evidence.alpha,
            evidence.weights,
            choice.slope,
            evidence.gaps,
            status,
        )
        self.status_ = self._concluded(evidence, plan, status)
        self.solver_, self.n_iter_ = self.criterion, int(choice.factorisations[0])
        self.n_passes_ = bound.bank.passes
        self.support_ = support(self.dual_coef_)
        self._keep_bound(bound)
        self._function = KernelFunction.mixture(
            bound.kernels, np.where(left_out, 0.0, self.weights_), self.dual_coef_, self.intercept_
        )
        self.findings_ = ()
        for stale in ("cv_results_", "norm_", "trace_", "certificates_"):
            self._keep_where_there(stale, None)
        self._keep_where_there("variance_components_", self._components(evidence))

    def _concluded(self, evidence: Evidence, plan: Plan, status: NDArray[np.object_]) -> str:
        """Return what may be said of all targets: that of the worst, of which a warning tells."""
        order = ("constant", "stationary", "max_steps", "stopped", "max_seconds", "interrupted", "imprecise")
        worst = max(status, key=order.index)
        at = np.flatnonzero(status == worst)
        label = "" if status.size == 1 else f"{at.size} of {status.size} targets: "
        said = evidence.choice.status[at[0]]
        return conclude(
            "stationary" if said == "constant" else said,
            float(np.max(evidence.gaps[at])), plan.stop.tol, label,
            f"after {evidence.steps} steps of {self.criterion!r}", chosen=True,
        )  # fmt: skip

    def _components(self, evidence: Evidence) -> pd.DataFrame | None:
        import pandas as pd

        components = evidence.components
        if components is None:
            return None
        return pd.DataFrame(
            {
                "variance": components.variance,
                "standard_error": components.error,
                "share": components.share,
                "share_standard_error": components.share_error,
            },
            index=pd.Index([*self.kernel_names_, "noise"], name="component"),
        )

    def _table(
        self,
        value: Array,
        score: Array,
        alpha: Array,
        weights: Array,
        slope: Array | float,
        gap: Array,
        status: NDArray[np.object_],
    ) -> pd.DataFrame:
        import pandas as pd

        return pd.DataFrame(
            {
                self.criterion: value,
                "score": score,
                "alpha": alpha,
                "active_kernels": np.count_nonzero(weights, axis=1),
                "slope": slope,
                "relative_gap": gap,
                "status": status,
            }
        )


def _ends_of_grid(chosen: Array, Cs: Array) -> tuple[str, ...]:
    """Say which ends of the values of C were chosen, and for how many of several targets."""
    sentences = []
    for C in np.unique(chosen):
        count = int(np.count_nonzero(chosen == C))
        of = "" if chosen.size == 1 else f" for {count} of {chosen.size} targets"
        sentences.append(end_of_grid(float(C), Cs, of))
    return tuple(sentence for sentence in sentences if sentence is not None)


class _KnownPredictions(RegressorMixin, BaseEstimator):
    """A regressor whose predictions are known already, for scorers."""

    def __init__(self, values: Array | None = None) -> None:
        self.values = values

    def fit(self, X: Samples, y: Column) -> Self:
        """Nothing to learn."""
        return self

    def predict(self, X: Samples) -> Array | None:
        """Return the known values."""
        return self.values
