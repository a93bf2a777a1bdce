"""The base class of the estimators: parameters, checks, fitting, prediction, display in notebooks."""

from __future__ import annotations

import sys
import textwrap
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, estimator_html_repr

from .._components import ParametersInGroups, ShownInNotebooks, fill_in_parameters
from .._estimating import PlainState, finite_decision, warn_of_findings
from .._fitted import ATTRIBUTES, FittedModel, origin_of_weights, side_by_side
from .._numerics.resources import allowed_threads
from .._typing import Array
from ..banks import Bank, Decision, KernelFunction
from ..banks.torch_bank import prediction_device
from ..kernels import as_spec, default_bank
from ..kernels.pairwise import only_identity
from ..losses import Loss, make_loss
from ..norms import make_norm
from ..problems import Certificate, Point
from ..views import Views, samples_and_targets
from ._bind import Bound, bind
from ._fitting import fit_tasks
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


def facts_of(bound: Bound) -> dict[str, Any]:
    """Return what a model has of its kernels and of the bank that it was fitted on."""
    assert bound.bank.source is not None
    lacking = bound.bank.source.missing_view_summary()
    return {
        "kernel_names": np.array(bound.training.names, dtype=object),
        "kernels": bound.bank.kernels or None,
        "kind": bound.training.kind,
        "bank_bytes": bound.bank.nbytes,
        "cluster": bound.bank.cluster_cost,
        "view_predictability": lacking.predictability,
        "missing_patterns": lacking.patterns,
    }


class BaseMKL(ParametersInGroups, PlainState, ShownInNotebooks, BaseEstimator):
    """Base of the estimators; see ``MKLClassifier`` for the parameters."""

    _task = "classification"
    #: whether the fit is one mixture of kernels, so that it can be repeated on some of them
    fits_subsets = True
    #: what sets the weights in the place of the norm, in words; empty where the norm does
    _weights_rule = ""

    kernels: KernelsLike
    loss: LossLike
    norm: NormLike
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
    C: float = 1.0
    warm_start: bool = False
    checkpoint: FileName | None = None
    callback: Callback | None = None
    device: Device = None
    missing: str = "error"
    random_state: RandomSeed = None
    # of a fit, by ``FittedModel``
    weights_: Array
    dual_coef_: Array
    intercept_: float | Array
    kernel_names_: NDArray[np.object_]
    certificate_: Certificate
    findings_: tuple[str, ...]
    decision_: Decision
    C_: float | Array
    loss_: Loss

    def set_params(self, **params: Any) -> Self:
        """Set parameters; those inside kernels, norm and loss also where these were given by name."""
        makers = {"kernels": as_spec, "norm": make_norm, "loss": make_loss}
        for name in {
            name.partition("__")[0] for name in params if "__" in name
        } & makers.keys() - params.keys():
            given = getattr(self, name, None)
            if not hasattr(given, "set_params"):
                setattr(self, name, default_bank() if given is None else makers[name](given))
        return super().set_params(**params)  # type: ignore[no-any-return]

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
        """Build the bank, solve the tasks on it, and keep what was fitted."""
        plan.norm.check(len(training.names))
        by_rule = type(self)._by_rule is not BaseMKL._by_rule
        if by_rule:
            refuse_fixed_parts(plan.norm, len(training.names), type(self).__name__)
        bound = bind(training, plan.bank)
        fitted = self._solve(bound, plan, self._by_rule(tasks, bound.bank, plan) if by_rule else tasks)
        if fitted.findings:
            warn_of_findings(fitted.findings)
        replace(fitted, findings=(*bound.findings, *fitted.findings)).write(self)

    def _by_rule(self, tasks: list[Task], bank: Bank, plan: Plan) -> list[Task]:
        """Return the tasks as they are to be solved; baselines take weights or C from a rule here."""
        return tasks

    def _solve(self, bound: Bound, plan: Plan, tasks: list[Task]) -> FittedModel:
        """Solve the tasks, from the previous fit where that is asked for; return what was fitted."""
        started = self._warm_started(tasks, bound.bank) if self.warm_start else tasks
        decision = plan.decision_for(tasks[-1].loss, tasks[-1].norm, bound.bank)
        if plan.verbose:
            print(textwrap.fill(str(decision), 100, break_on_hyphens=False), file=sys.stderr)
        fits, n_passes = fit_tasks(bound, plan, started)
        known = side_by_side(fits, [task.label for task in tasks])
        norm, m, several = fits[0].norm, bound.bank.m, len(fits) > 1
        lam: float | Array | None = norm.strength
        if several and lam is not None:
            lam = np.array([fit.norm.strength for fit in fits])
        Cs = np.array([task.C for task in tasks])
        if norm.group_names:
            each = np.array([fit.norm.group_weights(fit.weights) for fit in fits])
            columns = each.T if several else each[0].tolist()
            known["view_weights"] = dict(zip(norm.group_names, columns, strict=True))
            groups = [ALWAYS if group is None else group for group in norm.kernel_groups(m)]
            known["kernel_groups"] = np.array(groups, dtype=object)
        values = [np.asarray(fit.decision + fit.certificate.intercept) for fit in fits]
        known["intercept"] = self._intercept_of(known["intercept"], tasks, values)
        function = KernelFunction.mixture(
            bound.bank, known["weights"], known["dual_coef"], known["intercept"]
        )
        thresholds = fits[0].loss.thresholds(tasks[0].y, values[0], tasks[0].factors)
        values = [fit.loss.class_scores(f, thresholds) for fit, f in zip(fits, values, strict=True)]
        return FittedModel(
            **known, **origin_of_weights([task.norm for task in tasks], m, self._weights_rule), **facts_of(bound),
            C=tasks[0].C if np.ptp(Cs) == 0.0 else Cs, lam=lam, loss=fits[0].loss, solver=fits[-1].solver,
            thresholds=thresholds,
            decision=decision, n_passes=n_passes, function=function,
            findings=(*self._findings_of(tasks, values), *only_identity(bound.bank.kernels, known["weights"])),
            **self._own_parts(tasks, values),
        )  # fmt: skip

    def _intercept_of(
        self, intercept: float | Array, tasks: list[Task], values: list[Array]
    ) -> float | Array:
        """Return what is added to the function, where a loss without an intercept has an offset of its own."""
        return intercept

    def _findings_of(self, tasks: list[Task], values: list[Array]) -> tuple[str, ...]:
        """Return what a reader must know first, from the decision values of the training samples."""
        return ()

    def _own_parts(self, tasks: list[Task], values: list[Array]) -> dict[str, Any]:
        """Return what else is to be kept of a fit, from the decision values of the training samples."""
        return {}

    def _warm_started(self, tasks: list[Task], bank: Bank) -> list[Task]:
        """Start the tasks at the previous fit, if that was of the same shape in every respect."""
        if not hasattr(self, "dual_coef_") or tasks[0].start is not None:
            return tasks
        fitted = FittedModel.of(self)
        beta, weights = fitted.dual_coef, fitted.weights
        several = weights.ndim == 2
        shape = (bank.n, len(tasks)) if several else tasks[0].y.shape
        if beta.shape != shape or weights.shape[-1] != bank.m or (len(tasks) > 1 and not several):
            return tasks
        pairs = zip(beta.T, weights, strict=True) if several else [(beta, weights)]
        return [replace(task, start=Point(*pair)) for task, pair in zip(tasks, pairs, strict=True)]

    def _decision(self, X: Samples) -> Array:
        """Decision values of new rows, ``(n_new,)`` or ``(n_new, k)``; all of them finite."""
        fitted = FittedModel.of(self)
        assert fitted.function is not None
        # half precision is for storing a bank: prediction computes in single precision then
        dtype = "float32" if dtype_name(self.dtype) in ("float16", "bfloat16") else self.dtype
        quiet = np.errstate(over="ignore", invalid="ignore")  # reported in a sentence
        with quiet, allowed_threads(self.n_jobs):
            new, where = new_samples(self, X, fitted.kind), prediction_device(self.device, X)
            return finite_decision(fitted.function(new, np.dtype(dtype), where))

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Read models of 0.2.0 too, which did not note which weights were learnt."""
        super().__setstate__(state)
        fill_in_parameters(self)
        if "dual_coef_" in state and "learnt_kernels_" not in state and "kernel_names_" in state:
            norm = "uniform" if self._weights_rule else state.get("norm_", getattr(self, "norm", "l1"))
            norms = [make_norm(one) for one in (norm if isinstance(norm, list) else [norm])]
            origin = origin_of_weights(norms, len(self.kernel_names_), self._weights_rule)
            for j, kernel in enumerate(state.get("kernels_", ())):
                origin["learnt_kernels"][j] &= kernel.always is None
            self.__dict__.update({ATTRIBUTES[name]: value for name, value in origin.items()})

    @property
    def view_weights_(self) -> dict[str, float | Array]:
        """Sums of the weights by view, or the weights of the groups of a norm; see ``MKLClassifier``."""
        fitted = FittedModel.of(self)
        own = fitted.view_weights or fitted.weights_of_views
        if own is None:
            raise AttributeError("view_weights_ needs kernels of several views")
        return own

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
        labels = hasattr(self, "multilabel_")
        if total.shape[1] == 2 and len(getattr(self, "classes_", ())) == 2 and not labels:
            total = total[:, 1:] - total[:, :1]  # two classes with a function each: their difference decides
        return np.ascontiguousarray(total.T)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        given = isinstance(self.kernels, str) and self.kernels == "precomputed"
        tags.input_tags.sparse = not given
        # one matrix is cut by rows and columns; several go in a holder, with sample indices as X
        tags.input_tags.pairwise = given
        tags.input_tags.three_d_array = given
        return tags

    def _html_repr(self) -> str:
        """Return scikit-learn's diagram, and below it parameters by group, the certificate and the largest weights."""
        diagram, groups = str(estimator_html_repr(self)), self._shown_parameters()
        lines = "".join(f"<div>{group}: {escape(text)}</div>" for group, text in groups.items())
        diagram += f'<div style="{TEXT}">{lines}</div>' if lines else ""
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
        # models of earlier versions do not say why
        decided = f"<div>Solved by {escape(str(self.decision_))}.</div>" if hasattr(self, "decision_") else ""
        each = ", means over the classes" if np.ndim(self.weights_) == 2 else ""
        return (
            f'{diagram}<div style="{TEXT}"><div>{escape(repr(self.certificate_))}.</div>{decided}'
            f"<div>{escape(weight_origin(self).sentence)}</div>"
            f"<div>{used} of {weights.size} kernels have weight{each}:</div><table>{rows}</table>{rest}</div>"
        )
