"""MKLRegressor, and MKLRegressorCV: weights by evidence for every target, or C and norm by cross-validation."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.metrics import check_scoring, r2_score
from sklearn.utils import Tags

from .._components import check_choice, check_switch, check_whole, store_parameters
from .._estimating import checked_targets, end_of_grid, one_fit, warn_of_findings, weigh_samples
from .._fitted import FittedModel, set_optional
from .._numerics.namespace import to_numpy
from .._typing import Array
from ..banks import Bank, KernelFunction, support
from ..banks.devices import device_of, on_host
from ..cluster import in_memory, lazily
from ..exceptions import GridEndWarning
from ..kernels.pairwise import only_identity
from ..losses import Loss, make_loss
from ..losses import registry as losses
from ..solvers import final_status
from ._base import BaseMKL, facts_of
from ._bind import Bound, bind, nuisance_kernels
from ._evidence import (
    EVIDENCE,
    Evidence,
    Spread,
    by_evidence,
    criterion_of,
    deviations,
    left_out_predictions,
    refuse_too_many,
    tasks_by_products,
)
from ._fitting import conclude
from ._inputs import Training, new_samples, training_inputs
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
    Scoring,
    SolverLike,
    Splits,
)
from ._plan import Plan, Task, norm_of_kernels, refuse_fixed_parts
from ._search import (
    AUTO_NORMS,
    Search,
    SearchResult,
    folds_of,
    norm_plans,
    refuse_centred_cosine,
    refuse_left_out,
    refuse_undefined_scores,
    shares_of_search,
    two_step_plan,
)
from .cv import checked_Cs

MULTI_OUTPUT = ("shared", "each")
#: samples at most among which neighbours are looked for
NEIGHBOURS = 1000


class MKLRegressor(RegressorMixin, BaseMKL):
    """Learn a regression function and the combination of kernels it stands on, with a certificate of optimality.

    Parameters
    ----------
    kernels : kernels, "precomputed", preset name or None, default=None
        As for ``MKLClassifier``.
    loss : str or Loss, default="squared"
        ``squared``; ``epsilon_insensitive`` (``losses.EpsilonInsensitive(epsilon)`` for another tube); ``huber`` where
        targets have outliers (``losses.Huber(delta)``); ``quantile``, the median unless ``quantiles`` says otherwise;
        ``poisson`` for counts, whose expected value is ``exp(f)``.
    quantiles : float or sequence of float, optional
        With ``loss="quantile"``: which quantiles to predict, several in increasing order (docs/losses.md).
    multi_output : {"shared", "each"}, default="shared"
        What is learnt for several targets ``(n, t)``, or several quantiles of one: one set of kernel weights for all,
        in one convex problem, the sum of their objectives; or one problem and one set of weights each.  Shared weights
        depend most on the targets that vary most: bring them to one scale (``TransformedTargetRegressor(transformer=
        StandardScaler())``) unless their units are the same.  With the squared loss the cost of shared weights does not
        grow with the number of targets beyond n.
    leave_one_out : bool, default=False
        Whether to keep ``loo_predictions_``, for the squared loss: one more inverse of an n x n matrix, for targets
        with weights of their own one each.
    norm, C, fit_intercept, normalize, center, missing, solver, tol, max_iter, max_seconds, warm_start, checkpoint, \
callback, verbose, random_state, storage, dtype, memory_budget, n_jobs, device :
        As for ``MKLClassifier``.

    Attributes
    ----------
    weights_, kernel_names_, dual_coef_, intercept_, certificate_, trace_, n_passes_, n_iter_, solver_, status_,
    decision_ :
        As for ``MKLClassifier``; for t targets or quantiles ``dual_coef_`` is ``(n, t)``, ``intercept_`` ``(t,)`` and
        ``weights_`` ``(m,)`` where shared, ``(t, m)`` where each has its own.
    loo_predictions_ : array of shape (n,) or (n, t)
        With ``leave_one_out``: predictions of the training samples, each by the ridge regression on all others, with
        the kernel weights, their scale and C of all samples.  Those have seen the sample: errors of these predictions
        are a little too small, and intervals made of them carry no guarantee (docs/uncertainty.md).

    See Also
    --------
    MKLRegressorCV : Chooses C and norm by cross-validation, or weights for many targets by evidence.
    MeanKernelRidgeRegressor : Equal weights on the same kernels, the method to compare with.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from kernelweave import MKLRegressor, kernels as kw
    >>> X, y = load_diabetes(return_X_y=True)
    >>> reg = MKLRegressor(kw.per_feature(kw.gaussian(width=[0.02, 0.05, 0.1])), norm=1.5, C=0.1).fit(X, y)
    >>> reg.certificate_.relative_gap <= 1e-3
    True
    """

    _task = "regression"

    multi_output: str
    quantiles: float | Sequence[float] | None
    leave_one_out: bool

    def __init__(
        self,
        kernels: KernelsLike = None,
        *,
        loss: LossLike = "squared",
        quantiles: float | Sequence[float] | None = None,
        norm: NormLike = "l1",
        C: float = 1.0,
        fit_intercept: bool = True,
        normalize: str | None = "trace",
        center: bool = False,
        missing: str = "error",
        multi_output: str = "shared",
        leave_one_out: bool = False,
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

    def _loss(self, n_classes: int) -> Loss:
        loss = make_loss(self.loss)
        if self.quantiles is None:
            return loss
        if "quantile" not in loss.get_params(deep=False):
            raise ValueError(f"quantiles go with loss='quantile', not with {loss!r}")
        return make_loss(clone(loss).set_params(quantile=self.quantiles))

    @one_fit
    def fit(self, X: Samples, y: Column, sample_weight: Column = None, *, offset: Column = None) -> Self:
        """Learn kernel weights and coefficients.

        Parameters
        ----------
        X, sample_weight :
            As for ``MKLClassifier.fit``.
        y : array of shape (n,) or (n, t), or str
            Targets (of several, with ``multi_output="each"``, NaN is missing), or their column of AnnData's ``obs``.
        offset : array of shape (n,), optional
            Known part of every sample's decision value, which f is added to: with the Poisson loss the logarithm of
            the exposure.  ``predict`` takes those of new samples, and without them predicts for an offset of zero.

        Returns
        -------
        self
        """
        self._fit(*self._prepared(X, y, sample_weight, offset))
        return self

    def _prepared(
        self, X: Samples, y: Column, sample_weight: Column, offset: Column = None
    ) -> tuple[Training, Plan, list[Task]]:
        plan = self._plan()
        training, plan, y, weight = self._checked(X, y, sample_weight, plan)
        return training, plan, self._tasks(y, weight, plan, checked_offset(offset, training.n))

    def _checked(
        self, X: Samples, y: Column, sample_weight: Column, plan: Plan
    ) -> tuple[Training, Plan, Array, Array]:
        """Check the input; return samples, the plan for their kernels, targets ``(n,)`` or ``(n, t)`` and weights."""
        X, y = self._joined(X, y)
        check_choice("multi_output", self.multi_output, MULTI_OUTPUT)
        check_switch("leave_one_out", self.leave_one_out)
        if self.leave_one_out and not plan.loss.least_squares:
            raise ValueError(
                f"leave_one_out=True has a closed form for loss='squared' alone, not {plan.loss!r}"
            )
        y = checked_targets(on_host(in_memory(y)), missing=self.multi_output == "each")
        plan.loss.check_targets(y)
        if plan.loss.columns is not None and y.ndim == 2:
            raise ValueError(
                f"several quantiles are of one target, and y has {y.shape[1]}: fit a model for each target"
            )
        training = training_inputs(self, X, plan.bank, len(y))
        if training.kind == "pairs" and self.leave_one_out:
            raise ValueError(
                "leave_one_out=True needs the kernel matrix of all samples, which pairs never have: use "
                "cross_val_predict with PairKFold"
            )
        weight = weigh_samples(in_memory(sample_weight), training.n)
        if not np.any(weight > 0):
            raise ValueError("all sample weights are zero")
        return training, plan.with_norm(norm_of_kernels(plan.norm, training)), y, weight

    def _solve(self, bound: Bound, plan: Plan, tasks: list[Task]) -> FittedModel:
        fitted, weight = super()._solve(bound, plan, _settled(tasks, bound.bank)), tasks[0].factors
        if plan.loss.columns is not None:  # a model of its own for each quantile, too, has the loss of all
            fitted = replace(fitted, loss=plan.loss)
        if self.leave_one_out:
            each = np.array([task.C for task in tasks])
            found = left_out_predictions(bound.bank, tasks, np.atleast_2d(fitted.weights), each, plan)
            fitted = replace(fitted, loo_predictions=found)
        # standard deviations of predictions: where the loss has a Gaussian noise to it
        if bound.training.kind == "pairs":  # their deviations would need matrices of all pairs
            return fitted
        if not plan.loss.least_squares or not all(np.array_equal(task.factors, weight) for task in tasks):
            return fitted
        table = np.column_stack([task.y for task in tasks])
        C = np.broadcast_to(np.asarray(fitted.C, dtype=float), (table.shape[1],))
        beta = fitted.dual_coef.reshape(len(table), -1)
        # the noise as REML estimates it: y'M y over the dimensions that the intercept leaves
        used, ridge = weight > 0, 0.5 / C
        freedom = max(int(np.count_nonzero(used)) - int(plan.fit_intercept), 1)
        variance = np.sum(table[used] * beta[used], axis=0) * ridge / freedom
        return replace(fitted, spread=Spread(variance, ridge, weight, support(beta), plan.fit_intercept))

    def _tasks(self, y: Array, weight: Array, plan: Plan, offset: Array | None = None) -> list[Task]:
        """Return one task for targets, or quantiles, that share their weights, else one for each."""
        exposure: Array | None = None
        if offset is not None:
            y, factors = plan.loss.without_offset(y.T, offset)
            y, exposure = y.T, None if np.all(factors == 1.0) else factors.reshape(-1, len(offset))[0]
        if plan.loss.columns is not None:
            if self.multi_output == "each" and plan.loss.columns > 1:
                each = [plan.loss.column(k) for k in range(plan.loss.columns)]
                labels = np.ravel(plan.loss.get_params()["quantile"])
                return [
                    Task(y, weight, label, loss, plan.norm, plan.C, of="quantile")
                    for loss, label in zip(each, labels, strict=True)
                ]
            y = np.repeat(y[:, None], plan.loss.columns, axis=1)
        if y.ndim == 1 or plan.loss.columns is not None or self.multi_output == "shared":
            return [Task(y, weight, "y", plan.loss, plan.norm, plan.C, exposure=exposure)]
        known = np.isfinite(y)
        columns = [np.where(known[:, k], y[:, k], 0.0) for k in range(y.shape[1])]
        return [
            Task(own, weight * known[:, k], k, plan.loss, plan.norm, plan.C, of="target", exposure=exposure)
            for k, own in enumerate(columns)
        ]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        with suppress(ValueError, AttributeError):  # of a loss that is none
            loss = losses[self.loss] if isinstance(self.loss, str) else self.loss
            tags.target_tags.positive_only = loss.not_negative
        return tags

    @lazily
    def _predictions(self, X: Samples) -> Array:
        return self._predicted(self._decision(X))

    def _predicted(self, values: Array, offset: Column = None) -> Array:
        """Return what decision values predict: another number where the loss has a link, sorted quantiles."""
        known = checked_offset(offset, len(values))
        shifted = values + vars(self).get("shift_", 0.0)
        shifted = shifted if known is None else (shifted.T + known).T
        loss = vars(self).get("loss_")  # models of 0.2.0 may have none
        return shifted if loss is None else loss.predictions(shifted)

    def predict(
        self, X: Samples, return_std: bool = False, offset: Column = None
    ) -> Array | tuple[Array, Array]:
        """Return predicted values: with several quantiles a column each, sorted within every row so that none cross.

        Parameters
        ----------
        X : samples
            As for ``fit``.
        return_std : bool, default=False
            Whether to return standard deviations of new observations too, for the squared loss: those of a Gaussian
            process with the learnt kernel, intercept and noise.  That the kernel was learnt is not in them.
        offset : array of shape (n_new,), optional
            As for ``fit``.

        Returns
        -------
        array of shape (n_new,) or (n_new, t), or two of them
        """
        if not return_std:
            return self._predictions(X) if offset is None else self._predicted(self._decision(X), offset)
        fitted = FittedModel.of(self)
        if fitted.function is None or fitted.spread is None:
            raise ValueError(
                "return_std=True needs loss='squared', samples that are no pairs, targets without missing entries and "
                "no nuisance kernels"
            )
        values = self._decision(X)
        spread = deviations(fitted.function, fitted.spread, new_samples(self, X, fitted.kind))
        return self._predicted(values, offset), spread.reshape(values.shape)

    def score(self, X: Samples, y: Column, sample_weight: Column = None, offset: Column = None) -> float:
        """Return R2, the mean over several targets; views with names are brought into the order of y.

        With a loss for quantiles, outliers or counts it is D2, the share of the loss of the best constant that is saved
        (as of ``sklearn.metrics.d2_pinball_score``), the mean over several targets or quantiles.
        """
        X, y = self._joined(X, y)
        predicted, loss = self.predict(X, offset=offset), FittedModel.of(self).loss
        if loss is None or loss.error == "squared_error":
            return float(r2_score(y, predicted, sample_weight=sample_weight))
        targets = checked_targets(on_host(in_memory(y)))
        loss.check_targets(targets)
        weight = weigh_samples(sample_weight, len(targets))
        assert isinstance(predicted, np.ndarray)
        return _explained(loss, targets, predicted, weight, checked_offset(offset, len(targets)))


CRITERIA = ("convex", *EVIDENCE)
#: of a single criterion, or of some of them
FOUND_BY_CRITERION = (
    "cv_results_", "norm_", "refit_time_", "shift_", "tied_weights_", "ties_", "variance_components_"
)  # fmt: skip
#: how a choice by evidence can end, the best first
ENDS = ("constant", "stationary", "max_steps", "stopped", "max_seconds", "interrupted", "imprecise")


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
    Cs : int or array-like, default=10
        For the convex criterion, as for ``MKLClassifierCV``.
    norm : "auto", float, str or Norm, default="auto"
        Of the convex criterion.  ``"auto"`` chooses among l1, p = 4/3, p = 2 and uniform weights, as far as the solver
        takes them, and of pairs keeps uniform ones unless another norm is ahead by more than a standard error.  A norm
        by name is the only one, and ``"l1"`` the one for few kernels.
    norms : sequence of norms, optional
        Norms to choose among instead of these four.
    scoring : str or callable, default=None
        For the convex criterion, as in scikit-learn; None goes by the least error over the folds, and reports R2.  The
        error is the squared one, or that of a loss for quantiles (pinball loss), outliers (Huber's) or counts (Poisson
        deviance), with D2 in the place of R2 (see ``score``).  Where the scores of pairs of norm and C are equal the
        error decides, then the smallest C.
    cv : int, splitter, iterable or "loo", default=None
        Folds of ``convex`` and ``folds``, as in scikit-learn, but that those of a number (None is 5) are shuffled by
        ``random_state``.  For blocks of time take ``KFold(shuffle=False)``.  ``"loo"``, of the convex criterion with
        the squared loss, leaves samples out one by one in closed form, from one fit of every C on all samples, whose
        kernel weights it keeps.
    nuisance : str, int or sequence of them, optional
        Kernels, by name, view or position, that are left out at prediction, for the criteria by evidence: what belongs
        to the subject, the batch or the session of a sample and not to a new one.  They keep their ``weights_``.
    multi_output : {"each", "shared"}, default="each"
        Whether the convex criterion chooses for every target, or quantile, by itself.
    targets_in_batch : int, optional
        Targets that the criteria by evidence work on together, by default as memory allows; no effect on the answer.
    device : {"cuda", "cpu"}, optional
        Where torch chooses weights by evidence, or keeps the kernels that all folds share; None is NumPy in memory.
    **others
        As for ``MKLRegressor``, but ``C``.  Kernels are centred by default.  ``missing`` goes with the criteria
        ``convex``, whose folds are completed by their own training samples, and ``reml``.

    Attributes
    ----------
    weights_ : array of shape (m,) or (t, m)
        They sum to one, or are all zero where no kernel helps.
    alpha_, C_ : float or array of shape (t,)
        The ridge beside the mixed kernel, and ``C = 1 / (2 alpha)``.
    criterion_ : str
    scores_ : float or array of shape (t,)
        R2 of held-out samples by the folds (``convex``, ``folds``) or one by one; the choice has seen them.  NaN by
        REML on pairs.
    targets_ : DataFrame
        One row per target: the criterion's value, score, alpha, kernels with weight, ``slope`` (the largest derivative
        of the criterion's logarithm in the logarithm of a weight), ``relative_gap`` (of the problem solved for given
        choices) and ``status``.  ``certified``: the convex problem is proved to be solved to ``tol``; ``stationary``:
        the ridge regression is, and no step of the weights promises a gain worth having; ``max_steps``: some might;
        ``constant``: there is nothing to learn; ``max_seconds``, ``interrupted``, ``stopped``: cut short, with the best
        weights until then; ``imprecise``: double precision does not hold the ridge regression.  ``status_`` is that of
        the worst target; the last four come with a warning.
    variance_components_ : DataFrame
        Of one target by REML: variance and share of every kernel and of the noise, with standard errors from the
        expected information; none for kernels without weight, nor for pairs.
    decision_ : Decision
        As for ``MKLClassifier``; of weights by a criterion, how the kernels were kept for it.
    certificate_ :
        Of the convex problems, or of the ridge regressions with the chosen weights.
    cv_results_, norm_, ties_, tied_weights_, refit_time_ :
        Of the convex criterion, as for ``MKLClassifierCV``; tables have a column with the error where that decides
        (``squared_error``, ``pinball_loss``, ``huber_loss`` or ``poisson_deviance``), and for several targets a column
        ``target``; ``norm_`` is then a list.
    shift_ : float or array of shape (q,)
        With ``loss="quantile"``: what is added to decision values in predictions.  Fewer new samples than training
        samples lie between two quantiles of a flexible function; with this shift the held-out samples of the search
        have the right share below each.  The certificate is for the functions before it.
    findings_ : tuple of str
        As for ``MKLClassifierCV``; that weights of views change among tied choices is said of one target alone.

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
    cv: FoldsLike
    scoring: Scoring
    targets_in_batch: int | None
    nuisance: Sequence[str | int] | str | int | None

    def __init__(
        self,
        kernels: KernelsLike = None,
        *,
        criterion: str = "convex",
        loss: LossLike = "squared",
        quantiles: float | Sequence[float] | None = None,
        norm: NormLike = "auto",
        Cs: ArrayLike = 10,
        norms: Sequence[NormLike] | None = None,
        cv: FoldsLike = None,
        scoring: Scoring = None,
        fit_intercept: bool = True,
        normalize: str | None = "trace",
        center: bool = True,
        missing: str = "error",
        multi_output: str = "each",
        nuisance: Sequence[str | int] | str | int | None = None,
        leave_one_out: bool = False,
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
        targets_in_batch: int | None = None,
        n_jobs: int | None = None,
        device: Device = None,
    ) -> None:
        store_parameters(self, locals())

    @property
    def fits_subsets(self) -> bool:  # type: ignore[override]
        """Whether the answer is one mixture at one C, which can be fitted on some of the kernels."""
        return self.criterion == "convex" and np.ndim(getattr(self, "C_", 0.0)) == 0

    @one_fit
    def fit(
        self,
        X: Samples,
        y: Column,
        sample_weight: Column = None,
        groups: Column = None,
        *,
        offset: Column = None,
    ) -> Self:
        """Choose by the criterion, and fit all samples with what was chosen.

        Parameters
        ----------
        X, y, sample_weight, offset :
            As for ``MKLRegressor.fit``.  By evidence, targets that lack the same samples are fitted together.
        groups : array of shape (n,), optional
            For group-aware splitters.

        Returns
        -------
        self
        """
        plan = self._plan()
        self._check_options(plan, groups)
        training, plan, Y, weight = self._checked(X, y, sample_weight, plan)
        known = checked_offset(offset, training.n)
        self.criterion_ = self.criterion
        for name in FOUND_BY_CRITERION:
            set_optional(self, name, None)
        splits = partial(
            folds_of, self.cv, np.zeros(len(Y)), False, plan.seed, groups, training.samples,
            self.criterion == "convex",
        )  # fmt: skip
        if self.criterion == "convex":
            tasks = self._tasks(Y, weight, plan, known)
            self._fit_convex(self._searches(training, plan, tasks, splits()), plan)
            return self
        refuse_fixed_parts(plan.norm, len(training.names), f"criterion={self.criterion!r}")
        if known is not None:
            Y = plan.loss.without_offset(Y.T, known)[0].T
        refuse_too_many(Y, plan)
        left_out = nuisance_kernels(self.nuisance, training)
        criterion = criterion_of(self.criterion, splits() if self.criterion == "folds" else [], training.n)
        # in double precision, and to the device from memory
        bound = bind(replace(training, device=None), replace(plan.bank, dtype="float64"))
        if self.criterion == "reml" and bound.bank.by_products:
            self._keep_products(bound, plan, Y, weight, left_out)
            return self
        evidence = by_evidence(bound.bank, plan, Y, weight, criterion, self.targets_in_batch, training.device)
        self._keep_evidence(bound, plan, evidence, Y, weight, left_out)
        return self

    def _plan(self, n_classes: int = 0) -> Plan:
        open_norm = isinstance(self.norm, str) and self.norm == "auto"
        return Plan.of(self, self._loss(n_classes), self.C, "l1" if open_norm else None)

    def _check_options(self, plan: Plan, groups: Column) -> None:
        check_choice("criterion", self.criterion, CRITERIA)
        check_whole("targets_in_batch", self.targets_in_batch, or_none=True)
        if self.leave_one_out and self.criterion != "convex":
            raise ValueError(f"leave_one_out=True goes with criterion='convex', not {self.criterion!r}")
        if self.criterion == "convex":
            refuse_centred_cosine(plan, "MKLRegressor")
            if isinstance(self.cv, str) and not plan.loss.least_squares:
                raise ValueError(
                    f"cv='loo' has a closed form for loss='squared' alone, not {plan.loss!r}: take folds"
                )
            if self.nuisance is not None:
                raise ValueError("nuisance kernels go with the criteria by evidence: reml, loo or folds")
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

    def _searches(self, training: Training, plan: Plan, tasks: list[Task], splits: Splits) -> list[Search]:
        """Return the search of every target, or quantile, that has C and norm to itself."""
        Cs = checked_Cs(self.Cs)
        open_norm = self.norms is None and isinstance(self.norm, str) and self.norm == "auto"
        plans = norm_plans(plan, AUTO_NORMS if open_norm else self.norms, training, fitting=open_norm)
        # of new objects in pairs, what was learnt of others says little: equal weights unless others are clearly better
        even = [k for k, one in enumerate(plans) if one.norm.fixed]
        default = even[0] if even and open_norm and training.kind == "pairs" else None
        if self.scoring is not None:  # the default goes by squared errors, which every sample has
            for task in tasks:
                refuse_undefined_scores(
                    partial(self._scores_of, task), [task], splits, f"scoring={self.scoring!r}",
                    "neg_mean_squared_error",
                )  # fmt: skip
        bound, one_by_one = bind(training, plan.bank), isinstance(self.cv, str)
        if one_by_one:
            refuse_left_out(plan, tasks[0], bound)
        tasks = _settled(tasks, bound.bank)
        two_step = open_norm and not one_by_one
        others = [two_step_plan(plan, bound, task, Cs, splits) if two_step else None for task in tasks]
        tried = [plans if other is None else [*plans, other] for other in others]
        stops = shares_of_search(plan.stop, len(splits) * len(Cs) * sum(map(len, tried)))
        return [
            Search(
                bound, [task], own, Cs, splits, partial(self._scores_of, task), partial(_mean_error, task), stops,
                default, task.loss.error, one_by_one=one_by_one,
            )
            for task, own in zip(tasks, tried, strict=True)
        ]  # fmt: skip

    def _fit_convex(self, searches: list[Search], plan: Plan) -> None:
        """Choose C and norm by cross-validation, and fit."""
        import pandas as pd

        bound, tasks, Cs = searches[0].bound, [search.tasks[0] for search in searches], searches[0].Cs
        several = len(tasks) > 1
        chosen = [search.choose() for search in searches]
        named = [{"target": task.label} if several else {} for task in tasks]
        tables = [one.table.assign(**label) for one, label in zip(chosen, named, strict=True)]
        ties = [
            one.ties.drop(columns="choice").assign(**label) for one, label in zip(chosen, named, strict=True)
        ]
        self.cv_results_ = pd.concat(tables, ignore_index=True)
        self.ties_ = pd.concat(ties, ignore_index=True)
        held_out = [self._held_out(task, one) for task, one in zip(tasks, chosen, strict=True)]
        scores, C = np.array([score for score, _ in held_out]), np.array([one.C for one in chosen])
        self.scores_, self.best_score_ = scores if several else float(scores[0]), float(scores.mean())
        self.norm_ = [one.plan.norm for one in chosen] if several else chosen[0].plan.norm
        if plan.loss.recentred:
            self.shift_ = np.squeeze([shift for _, shift in held_out])[()]
        began = time.perf_counter()
        fitted = self._solve(bound, chosen[0].plan, [one.tasks[0] for one in chosen])
        self.refit_time_ = time.perf_counter() - began
        own = np.atleast_2d(fitted.weights)
        each = [search.weights_of_ties(*pair) for search, *pair in zip(searches, chosen, own, strict=True)]
        known_weights = [weights for weights in each if weights is not None]
        whole = np.concatenate(known_weights) if len(known_weights) == len(each) else None
        set_optional(self, "tied_weights_", whole)
        if several:
            said, warned_of = _ends_of_grid(chosen, Cs)
        else:
            said, warned_of = searches[0].findings(chosen[0], whole)
        replace(
            fitted, C=C if several else float(C[0]), findings=(*bound.findings, *fitted.findings, *said)
        ).write(self)
        self.alpha_ = 0.5 / self.C_
        gaps = np.array([one.relative_gap for one in fitted.certificates or ()])
        status = np.where(gaps <= plan.stop.tol, "certified", "not certified").astype(object)
        self._keep_table(own, scores, scores, alpha=0.5 / C, slope=np.nan, relative_gap=gaps, status=status)
        warn_of_findings(warned_of, GridEndWarning)

    def _held_out(self, task: Task, chosen: SearchResult) -> tuple[float, Array | float]:
        """Return the score of held-out samples, and where they have predictions on average."""
        rows = np.concatenate([held_out for held_out, _ in chosen.held_out])
        values = np.concatenate([values for _, values in chosen.held_out])
        known = task.weight[rows] > 0
        rows, values = rows[known], values[known]
        score = chosen.score
        if self.scoring is None and not np.isfinite(score):
            # one by one they have no R2, but together they have
            score = _score(task, rows, values) if rows.size > 1 else np.nan
        return score, task.loss.best_intercept(task.y[rows], values, np.ones_like(values))

    def _scores_of(self, task: Task, values: Array, held_out: Codes) -> dict[str, float]:
        """Score held-out values of a task, those of samples that have a target and weight."""
        there = task.weight[held_out] > 0
        y, known = task.y[held_out][there], values[there]
        if self.scoring is None:
            score = _score(task, held_out[there], known) if len(y) > 1 else np.nan
            return {"score": score, task.loss.error: _mean_error(task, [(held_out, values)])}
        if len(y) == 0:
            return {"score": np.nan}
        model = _KnownPredictions(task.loss.predictions(known))
        return {"score": float(check_scoring(model, self.scoring)(model, np.zeros((len(y), 1)), y))}

    def _keep_products(
        self, bound: Bound, plan: Plan, Y: Array, weight: Array, left_out: NDArray[np.bool_]
    ) -> None:
        """Choose by REML where kernels are only multiplied with, and fit the ridge regressions."""
        if np.any(left_out):
            raise ValueError("nuisance kernels are not for pairs: leave kernels out of kernels.pairs")
        tasks, choices, noise = tasks_by_products(bound, plan, Y, weight)
        fitted, tol, single = self._solve(bound, plan, tasks), plan.stop.tol, Y.ndim == 1
        several = [one for one in (*(fitted.certificates or ()), fitted.certificate) if one is not None]
        gaps = np.array([one.relative_gap for one in several[: len(tasks)]])
        steps = max(choice.steps for choice in choices)
        status, ended = self._ended([choice.status for choice in choices], gaps, tol, steps)
        replace(
            fitted, norm_name="none (weights by reml)", learnt_kernels=np.ones(bound.bank.m, dtype=bool),
            weights_rule="", status=ended, solver="reml", findings=(*bound.findings, *fitted.findings),
        ).write(self)  # fmt: skip
        value, slope = np.array([[c.point.value, c.point.slope] for c in choices]).T
        self.alpha_ = 0.5 / self.C_
        self.scores_, self.best_score_ = (np.nan if single else np.full(len(tasks), np.nan)), np.nan
        weights = np.atleast_2d(fitted.weights)
        alpha = np.array([0.5 / task.C for task in tasks])
        columns = {"alpha": alpha, "slope": slope, "relative_gap": gaps, "status": status}
        self._keep_table(weights, np.exp(value), np.nan, **columns)
        if single:
            variance = noise[0] * np.append(choices[0].point.d, 1.0)
            self._keep_components({"variance": variance, "share": variance / variance.sum()})

    def _keep_evidence(
        self,
        bound: Bound,
        plan: Plan,
        evidence: Evidence,
        Y: Array,
        weight: Array,
        left_out: NDArray[np.bool_],
    ) -> None:
        """Keep what prediction and inspection need; of a single target its own numbers."""

        def shown(values: Array) -> Array:
            return values if Y.ndim == 2 else values[..., 0]

        choice, tol = evidence.choice, plan.stop.tol
        status, ended = self._ended(choice.status, evidence.gaps, tol, evidence.steps)
        self.alpha_ = shown(evidence.alpha)
        self.scores_, self.best_score_ = shown(choice.score), float(np.mean(choice.score))
        columns = {"alpha": evidence.alpha, "slope": choice.slope, "relative_gap": evidence.gaps}
        self._keep_table(evidence.weights, choice.value, choice.score, **columns, status=status)
        weights = evidence.weights if Y.ndim == 2 else evidence.weights[0]
        beta, intercept = shown(evidence.beta), shown(evidence.intercept)
        spread = None
        if np.all(np.isfinite(Y)) and not np.any(left_out) and bound.training.kind != "pairs":
            spread = Spread(evidence.noise, evidence.alpha, weight, support(beta), plan.fit_intercept)
        FittedModel(
            weights, beta, intercept, **facts_of(bound), norm_name=f"none (weights by {self.criterion})",
            learnt_kernels=np.ones(bound.bank.m, dtype=bool), weights_rule="",
            findings=(*bound.findings, *only_identity(bound.bank.kernels, weights)),
            C=shown(evidence.C), loss=plan.loss, certificate=evidence.certificate, status=ended,
            solver=self.criterion, decision=plan.decision_by(self.criterion, bound.bank),
            n_iter=int(choice.factorisations[0]), n_passes=bound.bank.passes, spread=spread,
            function=KernelFunction.mixture(bound.bank, np.where(left_out, 0.0, weights), beta, intercept),
        ).write(self)  # fmt: skip
        if (components := evidence.components) is not None:
            self._keep_components({
                "variance": components.variance, "standard_error": components.error, "share": components.share,
                "share_standard_error": components.share_error,
            })  # fmt: skip

    def _ended(
        self, said: Sequence[str] | NDArray[np.object_], gaps: Array, tol: float, steps: int
    ) -> tuple[NDArray[np.object_], str]:
        """Return the status of every target, and that of the fit, the worst of them, of which a warning tells."""
        # what a choice says of itself holds only where the ridge regression is solved
        pairs = zip(said, gaps, strict=True)
        status = np.array([final_status(one, gap, tol, chosen=True) for one, gap in pairs], dtype=object)
        worst = np.flatnonzero(status == max(status, key=ENDS.index))
        label = "" if status.size == 1 else f"{worst.size} of {status.size} targets: "
        ended = "stationary" if said[worst[0]] == "constant" else said[worst[0]]
        after = f"after {steps} steps of {self.criterion!r}"
        return status, conclude(ended, float(np.max(gaps[worst])), tol, label, after, chosen=True)

    def _keep_components(self, columns: dict[str, Array]) -> None:
        import pandas as pd

        index = pd.Index([*self.kernel_names_, "noise"], name="component")
        self.variance_components_ = pd.DataFrame(columns, index=index)

    def _keep_table(self, weights: Array, value: Array, score: Array | float, **columns: Any) -> None:
        import pandas as pd

        self.targets_ = pd.DataFrame({self.criterion: value, "score": score} | columns)
        self.targets_.insert(3, "active_kernels", np.count_nonzero(weights, axis=1))


def checked_offset(offset: Column, n: int) -> Array | None:
    """Return the offsets of n samples as numbers, None where there are none."""
    if offset is None:
        return None
    known = np.asarray(in_memory(offset), dtype=float)
    if known.shape != (n,) or not np.all(np.isfinite(known)):
        raise ValueError(
            f"offset must be {n} finite numbers, one per sample, got an array of shape {known.shape}"
        )
    return known


def _settled(tasks: list[Task], bank: Bank) -> list[Task]:
    """Return the tasks with losses that leave nothing to the data."""
    return [
        replace(task, loss=task.loss.settle(partial(noise_scale, bank, task.y, task.weight)))
        for task in tasks
    ]


def noise_scale(bank: Bank, y: Array, weight: Array) -> float:
    """Return the scale of the noise in targets: that of the differences between neighbours under the mean kernel.

    Neighbours have about the same expected target, whatever C is, and a quarter of the samples may be outliers.  Where
    no kernel tells samples apart it is the scale of the targets themselves.  On at most ``NEIGHBOURS`` samples.
    """
    there = np.flatnonzero(weight > 0)
    rows = there[np.unique(np.linspace(0, there.size - 1, min(there.size, NEIGHBOURS)).astype(np.intp))]
    K = to_numpy(bank.mixed(np.full(bank.m, 1.0 / bank.m), rows)).astype(float)
    distances = np.add.outer(np.diagonal(K), np.diagonal(K)) - 2.0 * K
    np.fill_diagonal(distances, np.inf)
    known = y[rows].reshape(rows.size, -1)
    middle = np.median(known, axis=0)
    # of Gaussian noise the median of its size is 0.6745 of its standard deviation
    for differences in ((known - known[np.argmin(distances, axis=1)]) / np.sqrt(2.0), known - middle):
        scale = float(np.median(np.abs(differences))) / 0.6745
        if scale > 0:
            return scale
    return float(np.mean(np.abs(known - middle))) or 1.0


def _explained(loss: Loss, y: Array, predicted: Array, weight: Array, offset: Array | None = None) -> float:
    """Return the mean over targets, or quantiles, of the share of the loss of the best constant that is saved."""
    y = y if y.ndim == predicted.ndim else np.repeat(y[:, None], predicted.shape[1], axis=1)
    shape = (-1, *(1,) * (y.ndim - 1))
    start = np.zeros_like(y) if offset is None else np.zeros_like(y) + offset.reshape(shape)
    c = np.zeros_like(y) + weight.reshape(shape)
    flat = loss.predictions(start + loss.best_intercept(y, start, c))
    missed, nothing = (np.sum(c * loss.deviation(y, one), axis=0) for one in (predicted, flat))
    share = np.divide(missed, nothing, out=np.where(missed > 0, 1.0, 0.0), where=nothing > 0)
    return float(np.mean(1.0 - share))


def _score(task: Task, rows: Codes, values: Array) -> float:
    """Return R2 of held-out values, or what takes its place with the loss of the task."""
    if task.loss.error == "squared_error":
        return float(r2_score(task.y[rows], values))
    weight = np.ones(len(rows)) if task.exposure is None else task.exposure[rows]
    return _explained(task.loss, task.y[rows], task.loss.predictions(values), weight)


def _mean_error(task: Task, folds: list[tuple[Codes, Array]]) -> float:
    """Mean over folds of the error of held-out values; NaN of a fold without a known target."""
    errors = []
    for held_out, values in folds:
        there = task.weight[held_out] > 0
        rows, predicted = held_out[there], task.loss.predictions(values[there])
        each = task.loss.deviation(task.y[rows], predicted)
        if task.exposure is not None:  # the deviance of the counts, and not of the rates
            each = (each.T * task.exposure[rows]).T
        errors.append(float(np.mean(each)) if there.any() else np.nan)
    return float(np.nanmean(errors)) if len(errors) > 1 else errors[0]


def _ends_of_grid(chosen: list[SearchResult], Cs: Array) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Say which ends of the values of C were chosen for how many of several targets; and what of it to warn of."""
    said, warned_of = [], []
    for C in np.unique([one.C for one in chosen]):
        alike = [one for one in chosen if one.C == C]
        of = f" for {len(alike)} of {len(chosen)} targets"
        ends = [end_of_grid(float(C), Cs, one.scores, of, one.error) for one in alike]
        rising = [end for end in ends if end is not None and end[1]]
        first = next((end for end in [*rising, *ends] if end is not None), None)
        if first is not None:
            said.append(first[0])
            warned_of += [first[0]] if rising else []
    return tuple(said), tuple(warned_of)


class _KnownPredictions(RegressorMixin, BaseEstimator):
    """A regressor whose predictions are known already, for scorers."""

    def __init__(self, values: Array | None = None) -> None:
        self.values = values

    def fit(self, X: Samples, y: Column) -> Self:
        return self

    def predict(self, X: Samples) -> Array | None:
        return self.values
