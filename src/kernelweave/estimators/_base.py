"""The base class of the estimators: parameters, checks, fitting, prediction, display in notebooks."""

from __future__ import annotations

from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from .._components import ShownInNotebooks, fill_in_parameters
from .._estimating import PlainState, finite_decision, warn_of_findings
from .._numerics.resources import allowed_threads
from .._typing import Array
from ..banks import Bank, KernelFunction, support
from ..banks.torch_bank import prediction_device
from ..losses import Loss, make_loss
from ..norms import Norm, make_norm
from ..problems import Point, joined
from ..views import Views, samples_and_targets
from ._bind import Bound, bind
from ._fitting import fit_tasks, trace_of
from ._inputs import Training, is_precomputed, new_samples
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
from ._plan import Plan, Task, dtype_name, refuse_fixed_parts

if TYPE_CHECKING:
    from ..banks import Term

#: most kernels that a notebook shows
TOP = 8
#: colours that can be read on the light and the dark background of a notebook
TEXT = "font-size:90%;margin:.5em 0 0 .25em"
BAR = "display:inline-block;height:.7em;vertical-align:middle;background:#4a7fb0"
#: group of the kernels whose weights are given, where the others have groups
ALWAYS = "always counts"


def weights_of_columns(term: Term, columns: Array) -> Array:
    """``d_j s_j sum_i beta_i x_i`` of one linear kernel, centred where it is; one column per function."""
    samples, normaliser = term.kernels.samples, term.kernels.normaliser
    rows = samples.select_columns(columns) if isinstance(samples, Views) else samples[:, columns]
    values = np.asarray(rows.toarray() if hasattr(rows, "tocsr") else rows, dtype=float)
    if normaliser.center:
        values = values - values.mean(axis=0)
    return np.asarray(values.T @ term.coef * (term.weights[..., 0] * normaliser.scale[0]))


class BaseMKL(PlainState, ShownInNotebooks, BaseEstimator):
    """Base of the estimators; see ``MKLClassifier`` for the parameters."""

    _task = "classification"
    #: whether the fit is one mixture of kernels, so that it can be repeated on some of them
    fits_subsets = True
    #: what sets the weights in the place of the norm, in words; empty where the norm does
    _weights_rule = ""

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
    C_: float | Array

    def _loss(self, n_classes: int) -> Loss:
        """Return the loss to be minimised; estimators that stand for one loss say so here."""
        return make_loss(self.loss)

    def _plan(self, n_classes: int = 0) -> Plan:
        """Return what the parameters ask for, checked; which loss is meant depends on the number of classes."""
        return Plan.of(self, self._loss(n_classes), self.C)

    def _joined(self, X: Samples, y: Column) -> tuple[Samples, Column]:
        """Return samples in the order of the targets, where both have names, and the targets."""
        return (X, y) if is_precomputed(self.kernels) else samples_and_targets(X, y)

    def _prepared(self, X: Samples, y: Column, sample_weight: Column) -> tuple[Training, Plan, list[Task]]:
        """Check parameters and input; return samples, plan and what there is to solve."""
        raise NotImplementedError

    def _fit(self, training: Training, plan: Plan, tasks: list[Task]) -> None:
        """Build the bank and solve the tasks on it."""
        plan.norm.check(len(training.names))
        by_rule = type(self)._by_rule is not BaseMKL._by_rule
        if by_rule:
            refuse_fixed_parts(plan.norm, len(training.names), type(self).__name__)
        bound = bind(training, plan.bank)
        self._solve(bound, plan, self._by_rule(tasks, bound.bank, plan) if by_rule else tasks)
        if self.findings_:
            warn_of_findings(self.findings_)
        self.findings_ = (*bound.findings, *self.findings_)

    def _by_rule(self, tasks: list[Task], bank: Bank, plan: Plan) -> list[Task]:
        """Return the tasks as they are to be solved; baselines take weights or C from a rule here."""
        return tasks

    def _solve(self, bound: Bound, plan: Plan, tasks: list[Task]) -> None:
        """Solve the tasks, and keep what prediction and inspection need."""
        started = self._warm_started(tasks, bound.bank) if self.warm_start else tasks
        fits, self.n_passes_ = fit_tasks(bound, plan, started)
        first, several = fits[0], len(fits) > 1
        norm, m = first.norm, bound.bank.m
        strength: float | Array | None = norm.strength
        self.certificates_ = [fit.certificate for fit in fits]
        self.status_ = next((fit.status for fit in fits if fit.status != "converged"), "converged")
        self.weights_, self.dual_coef_, self.C_ = first.weights, first.beta, tasks[0].C
        self.certificate_ = first.certificate
        if several:  # side by side; objectives of independent problems add up, and so do their bounds
            self.weights_ = np.stack([fit.weights for fit in fits])
            self.dual_coef_ = np.stack([fit.beta for fit in fits], axis=1)
            self.certificate_ = joined(self.certificates_)
            Cs = np.array([task.C for task in tasks])
            self.C_ = tasks[0].C if np.ptp(Cs) == 0.0 else Cs
            strength = None if strength is None else np.array([fit.norm.strength for fit in fits])
        self.intercept_ = self.certificate_.intercept
        self.loss_, self.solver_ = first.loss, fits[-1].solver
        self._keep_norms([task.norm for task in tasks], m)
        self.trace_ = trace_of(tasks, fits)
        self.n_iter_ = max(fit.solution.n_iter for fit in fits)
        self.support_ = support(self.dual_coef_)
        self._keep_bound(bound)
        self._function = KernelFunction.mixture(
            bound.kernels, self.weights_, self.dual_coef_, self.intercept_
        )
        self._set_optional("lam_", strength)
        self._set_optional("cluster_", bound.bank.cluster_cost)
        view_weights = groups = None
        if norm.group_names:
            each = np.array([fit.norm.group_weights(fit.weights) for fit in fits])
            view_weights = {
                name: each[:, g] if several else float(each[0, g]) for g, name in enumerate(norm.group_names)
            }
            groups = [ALWAYS if group is None else group for group in norm.kernel_groups(m)]
        self._set_optional("view_weights_", view_weights)
        self._set_optional("kernel_groups_", None if groups is None else np.array(groups, dtype=object))
        self._set_findings(tasks, [np.asarray(fit.decision + fit.certificate.intercept) for fit in fits])

    def _keep_norms(self, norms: list[Norm], m: int) -> None:
        """Keep what the weights were fitted under, and which of them were learnt."""
        self.norm_name_ = ", ".join(dict.fromkeys(norm.label for norm in norms))
        self.learnt_kernels_ = np.zeros(m, dtype=bool)
        for norm in norms:
            if norm.allowed_weights:
                self.learnt_kernels_[norm.learnt(m)] = True
        self.weights_rule_ = ""
        if not self.learnt_kernels_.any():
            rules = dict.fromkeys(norm.weights_rule for norm in norms if norm.weights_rule)
            self.weights_rule_ = self._weights_rule or "; ".join(rules)

    def _set_findings(self, tasks: list[Task], values: list[Array]) -> None:
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
        if not hasattr(self, "dual_coef_") or tasks[0].start is not None:
            return tasks
        beta, weights = self.dual_coef_, self.weights_
        several = weights.ndim == 2
        shape = (bank.n, len(tasks)) if several else tasks[0].y.shape
        if beta.shape != shape or weights.shape[-1] != bank.m or (len(tasks) > 1 and not several):
            return tasks
        pairs = zip(beta.T, weights, strict=True) if several else [(beta, weights)]
        return [replace(task, start=Point(*pair)) for task, pair in zip(tasks, pairs, strict=True)]

    def _decision(self, X: Samples) -> Array:
        """Decision values of new rows, ``(n_new,)`` or ``(n_new, k)``; all of them finite."""
        check_is_fitted(self, "dual_coef_")
        # half precision is for storing a bank: prediction computes in single precision then
        dtype = "float32" if dtype_name(self.dtype) in ("float16", "bfloat16") else self.dtype
        quiet = np.errstate(over="ignore", invalid="ignore")  # reported in a sentence
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
        function = vars(self).get("_function")
        if function is None:
            raise AttributeError("coef_ is there once the estimator is fitted")
        width = getattr(self, "n_features_in_", None)
        if width is None:
            raise AttributeError("coef_ needs a model that was fitted on rows of numbers")
        total = np.zeros((width, np.size(self.intercept_)))
        for term in function.each():
            if not getattr(term.kernels, "kernels", None) or getattr(term.kernels.samples, "ndim", 0) != 2:
                raise AttributeError("coef_ needs a model that was fitted on rows of numbers in memory")
            kernel, normaliser = term.kernels.kernels[0], term.kernels.normaliser
            columns = kernel.feature_columns(width)
            if columns is None or normaliser.center or normaliser.mode == "cosine":
                raise AttributeError(
                    f"coef_ needs linear kernels alone, not centred and not cosine-normalised: {kernel.name!r} has "
                    "weight; inspection.feature_weights shows what its linear kernels do"
                )
            total[columns] += weights_of_columns(term, columns).reshape(len(columns), -1)
        if total.shape[1] == 2 and len(getattr(self, "classes_", ())) == 2:
            total = total[:, 1:] - total[:, :1]  # two classes with a function each: their difference decides
        return np.ascontiguousarray(total.T)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        given = is_precomputed(self.kernels)
        tags.input_tags.sparse = not given
        # one matrix is cut by rows and columns; several go in a holder, with sample indices as X
        tags.input_tags.pairwise = given
        tags.input_tags.three_d_array = given
        return tags

    def _html_repr(self) -> str:
        """Return scikit-learn's diagram, and below it the certificate and the largest weights of a fit."""
        diagram = str(estimator_html_repr(self))
        if not hasattr(self, "certificate_") or not hasattr(self, "weights_"):
            return diagram
        from .fitted import weight_origin  # not needed before something is shown

        weights = np.atleast_2d(self.weights_).mean(axis=0)
        order = np.argsort(-weights, kind="stable")
        used, largest = int(np.count_nonzero(weights)), float(weights[order[0]])
        rows = ""
        for j in order[: min(TOP, used)]:
            length = 8.0 * float(weights[j]) / largest if largest > 0 else 0.0
            rows += (
                f'<tr><td style="text-align:left">{escape(str(self.kernel_names_[j]))}</td>'
                f'<td style="text-align:right">{weights[j]:.3f}</td>'
                f'<td style="text-align:left"><span style="{BAR};width:{length:.2f}em"></span></td></tr>'
            )
        rest = f"<div>and {used - TOP} others</div>" if used > TOP else ""
        each = ", means over the classes" if np.ndim(self.weights_) == 2 else ""
        return (
            f'{diagram}<div style="{TEXT}"><div>{escape(repr(self.certificate_))}.</div>'
            f"<div>{escape(weight_origin(self).sentence)}</div>"
            f"<div>{used} of {weights.size} kernels have weight{each}:</div><table>{rows}</table>{rest}</div>"
        )
