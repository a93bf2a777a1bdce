"""The base class of the estimators: parameters, checks, fitting, prediction, display in notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._typing import Array
from ..views import Views

if TYPE_CHECKING:
    from ..banks import Term
from dataclasses import replace
from html import escape
from typing import Any

from numpy.typing import DTypeLike
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from .._components import ShownInNotebooks, fill_in_parameters
from .._estimating import PlainState, finite_decision, warn_of_findings
from .._numerics.resources import allowed_threads
from ..banks import Bank, KernelFunction, support
from ..banks.torch_bank import prediction_device
from ..losses import Loss, make_loss
from ..norms import Norm, make_norm
from ..problems import Point
from ..views import samples_and_targets
from ._bind import Bound, bind
from ._fitting import Answer, fit_tasks, group_weights, kernel_groups, trace_of
from ._inputs import Training, is_precomputed, new_samples, training_inputs
from ._parameters import (
    Bytes,
    Callback,
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
from ._plan import BankPlan, Plan, Task, dtype_name, refuse_fixed_parts

# ------------------------------------------------------------------------------------------------------------
# A model whose kernels are all linear is a linear model: its weights on the columns.


def linear_weights(estimator: BaseMKL) -> Array:
    """Return w with ``decision = X w' + intercept``, ``(1, p)`` or ``(k, p)``; raise AttributeError without one."""
    function = vars(estimator).get("_function")
    if function is None:
        raise AttributeError("coef_ is there once the estimator is fitted")
    width = getattr(estimator, "n_features_in_", None)
    if width is None:
        raise AttributeError("coef_ needs a model that was fitted on rows of numbers")
    total = np.zeros((width, np.size(estimator.intercept_)))
    for term in function.each():
        if not getattr(term.kernels, "kernels", None) or getattr(term.kernels.samples, "ndim", 0) != 2:
            raise AttributeError("coef_ needs a model that was fitted on rows of numbers in memory")
        kernel, normaliser = term.kernels.kernels[0], term.kernels.normaliser
        columns = kernel.feature_columns(width)
        if columns is None or normaliser.center or normaliser.mode == "cosine":
            raise AttributeError(
                f"coef_ needs linear kernels alone, not centred and not cosine-normalised: {kernel.name!r} has weight; "
                "inspection.feature_weights shows what its linear kernels do"
            )
        total[columns] += weights_of_columns(term, columns).reshape(len(columns), -1)
    if total.shape[1] == 2 and len(getattr(estimator, "classes_", ())) == 2:
        total = total[:, 1:] - total[:, :1]  # two classes with a function each: what tells them apart
    return np.ascontiguousarray(total.T)


def weights_of_columns(term: Term, columns: Array) -> Array:
    """``d_j s_j sum_i beta_i x_i`` of one linear kernel, centred where it is; one column per function."""
    samples, normaliser = term.kernels.samples, term.kernels.normaliser
    rows = samples.select_columns(columns) if isinstance(samples, Views) else samples[:, columns]
    values = np.asarray(rows.toarray() if hasattr(rows, "tocsr") else rows, dtype=float)
    if normaliser.center:
        values = values - values.mean(axis=0)
    return np.asarray(values.T @ term.coef * (term.weights[..., 0] * normaliser.scale[0]))


# ------------------------------------------------------------------------------------------------------------
# What a notebook shows of a fitted estimator, below scikit-learn's diagram: the certificate and the weights.


TOP = 8
#: colours that can be read on the light and the dark background of a notebook
LOOKS = "font-size:90%;margin:.5em 0 0 .25em"
BAR = "display:inline-block;height:.7em;vertical-align:middle;background:#4a7fb0"


class FitSummary(ShownInNotebooks):
    """Adds a summary of the fit to the diagram of an estimator with weights and a certificate."""

    def _html_repr(self) -> str:
        return str(estimator_html_repr(self)) + fit_summary(self)


def fit_summary(estimator: Any) -> str:
    """Return HTML about a fit, nothing where there is none yet."""
    if not hasattr(estimator, "certificate_") or not hasattr(estimator, "weights_"):
        return ""
    from .fitted import weight_origin  # not needed before somebody looks

    weights = np.atleast_2d(estimator.weights_).mean(axis=0)
    order = np.argsort(-weights, kind="stable")
    used = int(np.count_nonzero(weights))
    largest = float(weights[order[0]])
    shown = order[: min(TOP, used)]
    rows = "".join(_row(str(estimator.kernel_names_[j]), float(weights[j]), largest) for j in shown)
    rest = f"<div>and {used - TOP} others</div>" if used > TOP else ""
    origin = weight_origin(estimator)
    each = ", means over the classes" if np.ndim(estimator.weights_) == 2 else ""
    return (
        f'<div style="{LOOKS}"><div>{escape(repr(estimator.certificate_))}.</div>'
        f"<div>{escape(origin.sentence)}</div><div>{used} of {weights.size} kernels have weight{each}:</div>"
        f"<table>{rows}</table>{rest}</div>"
    )


def _row(name: str, weight: float, largest: float) -> str:
    length = 8.0 * weight / largest if largest > 0 else 0.0
    return (
        f'<tr><td style="text-align:left">{escape(name)}</td><td style="text-align:right">{weight:.3f}</td>'
        f'<td style="text-align:left"><span style="{BAR};width:{length:.2f}em"></span></td></tr>'
    )


class BaseMKL(PlainState, FitSummary, BaseEstimator):
    """Base of the estimators; see ``MKLClassifier`` for the parameters."""

    _task = "classification"
    #: whether the fit is one mixture of kernels, so that it can be repeated on some of them
    fits_subsets = True
    #: what sets the weights in the place of the norm, in words; empty where the norm does
    _weights_rule = ""
    #: parameters that are no choice here, by name: see ``_parameters.settled``

    kernels: KernelsLike
    loss: LossLike
    norm: NormLike
    C: float
    solver: SolverLike
    tol: float
    fit_intercept: bool
    normalize: str | None
    center: bool
    max_iter: int | None
    max_seconds: float | None
    storage: str
    dtype: DTypeLike
    memory_budget: Bytes
    n_jobs: int | None
    verbose: int
    # not every estimator has a choice here
    warm_start: bool = False
    checkpoint: FileName | None = None
    callback: Callback | None = None
    device: Device = None
    missing: str = "error"
    random_state: RandomSeed = None
    findings_: tuple[str, ...]

    # ---- before any work ------------------------------------------------------------------------------------

    def _loss(self, n_classes: int) -> Loss:
        """Return the loss to be minimised; estimators that stand for one loss say so here."""
        return make_loss(self.loss)

    def _plan(self, n_classes: int = 0) -> Plan:
        """Return what the parameters ask for, checked; which loss is meant depends on the number of classes."""
        return Plan.of(self, self._loss(n_classes), self.C)

    def _bank_plan(self) -> BankPlan:
        return BankPlan.checked(
            self.normalize,
            self.center,
            self.storage,
            self.dtype,
            self.memory_budget,
            self.n_jobs,
            self.device,
            self.missing,
        )

    def _joined(self, X: Samples, y: Column) -> tuple[Samples, Column]:
        """Return samples in the order of the targets, where both have names, and the targets."""
        return (X, y) if is_precomputed(self.kernels) else samples_and_targets(X, y)

    def _training(self, X: Samples, plan: BankPlan, n_targets: int) -> Training:
        """Check the samples, and that there are as many as targets."""
        training = training_inputs(self, X, self.kernels, plan, n_targets, self.device)
        if n_targets != training.n:
            what = "precomputed kernels have" if training.kernels is None else "X has"
            raise ValueError(
                f"Found input variables with inconsistent numbers of samples: {what} {training.n} samples, "
                f"y has {n_targets}"
            )
        return training

    def _prepared(self, X: Samples, y: Column, sample_weight: Column) -> tuple[Training, Plan, list[Task]]:
        """Check parameters and input; return samples, plan and what there is to solve."""
        raise NotImplementedError

    # ---- the work -------------------------------------------------------------------------------------------

    def _fit(self, training: Training, plan: Plan, tasks: list[Task]) -> None:
        """Build the bank and solve the tasks on it."""
        plan.norm.check(len(training.names))
        if type(self)._by_rule is not BaseMKL._by_rule:
            refuse_fixed_parts(plan.norm, len(training.names), type(self).__name__)
        bound = bind(training, plan.bank)
        self._solve(bound, plan, self._by_rule(tasks, bound.bank, plan))
        warn_of_findings(self.findings_)
        self.findings_ = (*bound.findings, *self.findings_)

    def _by_rule(self, tasks: list[Task], bank: Bank, plan: Plan) -> list[Task]:
        """Return the tasks as they are to be solved; baselines take weights or C from a rule here."""
        return tasks

    def _solve(self, bound: Bound, plan: Plan, tasks: list[Task]) -> None:
        """Solve the tasks, and keep what prediction and inspection need."""
        fits, self.n_passes_ = fit_tasks(bound, plan, self._warm_started(tasks, bound.bank))
        answer = Answer.of(tasks, fits)
        self.weights_, self.dual_coef_, self.C_ = answer.weights, answer.beta, answer.C
        self.certificate_, self.status_ = answer.certificate, answer.status
        self.certificates_ = [fit.certificate for fit in fits]
        self.intercept_ = self.certificate_.intercept
        self.loss_, self.solver_ = fits[0].loss, fits[-1].solver
        self._keep_norms([task.norm for task in tasks], bound.bank.m)
        self.trace_ = trace_of(tasks, fits)
        self.n_iter_ = max(fit.solution.n_iter for fit in fits)
        self.support_ = support(self.dual_coef_)
        self._keep_bound(bound)
        self._function = KernelFunction.mixture(
            bound.kernels, self.weights_, self.dual_coef_, self.intercept_
        )
        self._set_optional("lam_", answer.strength)
        self._set_optional("view_weights_", group_weights(fits))
        self._set_optional("kernel_groups_", kernel_groups(fits))
        self._set_optional("cluster_", bound.bank.cluster_cost)
        self._look_at(tasks, [fit.values for fit in fits])

    def _keep_norms(self, norms: list[Norm], m: int) -> None:
        """Keep what the weights were fitted under, and which of them were learnt."""
        self.norm_name_ = ", ".join(dict.fromkeys(norm.label for norm in norms))
        self.learnt_kernels_ = np.zeros(m, dtype=bool)
        for norm in norms:
            if norm.allowed_weights:
                self.learnt_kernels_[norm.learnt(m)] = True
        rules = dict.fromkeys(norm.weights_rule for norm in norms if norm.weights_rule)
        self.weights_rule_ = "" if self.learnt_kernels_.any() else self._weights_rule or "; ".join(rules)

    def _look_at(self, tasks: list[Task], values: list[Array]) -> None:
        """Keep what a reader must know first as ``findings_``, from the decision values of the training samples."""
        self.findings_ = ()

    def _keep_bound(self, bound: Bound) -> None:
        """Keep what is known of kernels and bank."""
        self.kernel_names_ = np.array(bound.training.names, dtype=object)
        self.bank_bytes_ = bound.bank.nbytes
        self._kind = bound.training.kind
        self._set_optional("kernels_", bound.kernels.kernels or None)
        lacking = bound.kernels.missing_view_summary()
        self._set_optional("view_predictability_", lacking.predictability)
        self._set_optional("missing_patterns_", lacking.patterns)

    def _set_optional(self, name: str, value: object) -> None:
        """Set an attribute that not every fit has; an earlier fit's is forgotten."""
        self.__dict__.pop(name, None)
        if value is not None:
            setattr(self, name, value)

    def _warm_started(self, tasks: list[Task], bank: Bank) -> list[Task]:
        """Start the tasks at the previous fit, if that was of the same shape in every respect."""
        if not (self.warm_start and hasattr(self, "dual_coef_")) or tasks[0].start is not None:
            return tasks
        beta, weights = self.dual_coef_, self.weights_
        several = weights.ndim == 2
        shape = (bank.n, len(tasks)) if several else tasks[0].y.shape
        if beta.shape != shape or weights.shape[-1] != bank.m or (len(tasks) > 1 and not several):
            return tasks
        points = (
            [Point(beta[:, k], weights[k]) for k in range(len(tasks))] if several else [Point(beta, weights)]
        )
        return [replace(task, start=point) for task, point in zip(tasks, points, strict=True)]

    # ---- new samples ----------------------------------------------------------------------------------------

    def _decision(self, X: Samples) -> Array:
        """Decision values of new rows, ``(n_new,)`` or ``(n_new, k)``; all of them finite."""
        check_is_fitted(self, "dual_coef_")
        # half precision is for storing a bank: prediction computes in single precision then
        dtype = "float32" if dtype_name(self.dtype) in ("float16", "bfloat16") else self.dtype
        quiet = np.errstate(over="ignore", invalid="ignore")  # told in a sentence
        with quiet, allowed_threads(self.n_jobs):
            new = new_samples(self, X, self._kind)
            return finite_decision(self._function(new, np.dtype(dtype), prediction_device(self.device, X)))

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Read models of 0.2.0 too, which did not note which weights were learnt."""
        super().__setstate__(state)
        fill_in_parameters(self)
        if "dual_coef_" in state and "learnt_kernels_" not in state and "kernel_names_" in state:
            norm = "uniform" if self._weights_rule else state.get("norm_", getattr(self, "norm", "l1"))
            norms = [make_norm(one) for one in (norm if isinstance(norm, list) else [norm])]
            self._keep_norms(norms, len(self.kernel_names_))
            for j, kernel in enumerate(state.get("kernels_", ())):
                self.learnt_kernels_[j] &= kernel.always is None

    @property
    def coef_(self) -> Array:
        """Weights of the columns, where all kernels with weight are linear: ``decision = X @ coef_.T + intercept_``."""
        return linear_weights(self)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        given = isinstance(self.kernels, str) and self.kernels == "precomputed"
        tags.input_tags.sparse = not given
        # one matrix is cut by rows and columns; several go in a holder, with sample indices as X
        tags.input_tags.pairwise = given
        tags.input_tags.three_d_array = given
        return tags
