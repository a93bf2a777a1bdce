"""The same model on some of its kernels: one bank for all subsets, nothing computed twice."""

from __future__ import annotations

import time
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.metrics import r2_score

from .._estimating import one_call, several_fits
from .._typing import Array, Index
from ..banks import Bank
from ..kernels import Chosen, default_bank
from ..losses import SurvivalLoss
from ..metrics import concordance
from ..norms import Norm, make_norm
from ..views import KnownViews
from ._bind import Bound, bind, completed, fold_bank, scale_findings
from ._fitting import Fit, fit_tasks
from ._inputs import Training
from ._parameters import Column, Samples, Splits
from ._plan import Plan, Task, norm_of_kernels
from ._search import AUTO_NORMS, mean_shares, refuse_undefined_scores
from .classifier import codes_of

if TYPE_CHECKING:
    from ._base import BaseMKL


class SubsetFits:
    """Fits of a model on subsets of its kernels, at the C and the norm of the fitted model.

    Where samples lack views, those of a subset are completed from that subset alone.

    X and y are those of the fit; ``estimator`` is what to fit, the same with more kernels, say, by default a clone.
    """

    def __init__(self, fitted: BaseMKL, X: Samples, y: Column, estimator: BaseMKL | None = None) -> None:
        if not fitted.fits_subsets:
            raise ValueError(
                f"{type(fitted).__name__} is not one mixture of kernels that could lack some of them"
            )
        self.y = np.asarray(y)
        self.estimator: BaseMKL = clone(fitted) if estimator is None else estimator
        self.training: Training
        self.training, plan, tasks = self.estimator._prepared(X, y, None)
        C = np.atleast_1d(fitted.C_)
        self.plan = plan
        #: as it was given or chosen, bound to all kernels: every subset has its part of the groups
        self.norm: Norm = norm_of_kernels(make_norm(getattr(fitted, "norm_", fitted.norm)), self.training)
        self.tasks = [replace(task, C=float(C[min(k, C.size - 1)])) for k, task in enumerate(tasks)]
        #: whether samples lack views, which every subset completes for itself
        self._incomplete = plan.bank.missing != "error" and not self.training.presence().present.all()

    @cached_property
    def bound(self) -> Bound:
        """All kernels on all samples, built once."""
        return bind(self.training, self.plan.bank, warn=False)

    @several_fits
    @one_call
    def scores(
        self, subsets: Sequence[Index], splits: Splits, choice: tuple[str, float] | None = None
    ) -> tuple[Array, Array]:
        """Accuracy (R2 of a regression, concordance of times) and seconds of every subset on every fold.

        Both are ``(subsets, folds)``.

        ``choice``, the label of a norm that the model's search tried and a C, takes the place of the model's own.
        """
        if choice is not None:  # on the same bank
            label, C = choice
            tried = getattr(self.estimator, "norms", None) or (self.estimator.norm, *AUTO_NORMS)
            made = [make_norm(norm) for norm in tried if not (isinstance(norm, str) and norm == "auto")]
            others = copy(self)
            others.bound = self.bound
            bound = [norm_of_kernels(norm, self.training) for norm in made]
            others.norm = next(norm for norm in bound if norm.label == label)
            others.tasks = [replace(task, C=C) for task in self.tasks]
            return others.scores(subsets, splits)
        if not is_classifier(self.estimator):
            refuse_undefined_scores(
                lambda values, test: {"score": self._score(values, self.y[test])}, self.tasks, splits, "R2"
            )
        scores, seconds = np.zeros((2, len(subsets), len(splits)))
        for fold, (train, test) in enumerate(splits):
            in_fold = np.zeros(self.training.n)
            in_fold[train] = 1.0
            tasks = [replace(task, weight=task.weight * in_fold) for task in self.tasks]
            shared = None if self._incomplete else fold_bank(self.bound, self.plan.bank, train)
            for place, kernels in enumerate(subsets):
                began = time.perf_counter()
                some = self._training(kernels)
                bank: Bank = (
                    completed(some, self.plan.bank, train) if shared is None else shared.select(kernels)
                )
                fits = self._fits(Bound(bank, some), kernels, tasks)
                columns = [
                    bank.mix_product(fit.weights, fit.beta) + fit.certificate.intercept for fit in fits
                ]
                seconds[place, fold] = time.perf_counter() - began
                values = columns[0] if len(columns) == 1 else np.stack(columns, axis=1)
                scores[place, fold] = self._score(values[test], self.y[test])
        return scores, seconds

    @several_fits
    @one_call
    def weights_along(self, Cs: Array) -> Array:
        """Return the weights of fits on all samples and kernels at other values of C, as shares, ``(C, kernels)``.

        Where each problem has weights of its own, these are their means.
        """
        everything, rows = np.arange(len(self.training.names)), []
        for C in np.asarray(Cs, dtype=float):
            fits = self._fits(self.bound, everything, [replace(task, C=float(C)) for task in self.tasks])
            rows.append(mean_shares(np.stack([fit.weights for fit in fits])))
        return np.stack(rows)

    def _fits(self, bound: Bound, kernels: Index, tasks: list[Task]) -> list[Fit]:
        """Solve tasks on a bank of some of the kernels."""
        plan, tasks = self._on(kernels, tasks)
        return fit_tasks(bound, plan, self.estimator._by_rule(tasks, bound.bank, plan))[0]

    def _on(self, kernels: Index, tasks: list[Task]) -> tuple[Plan, list[Task]]:
        """Return plan and tasks with the norm that some of the kernels make."""
        norm = self.norm.restricted(np.asarray(kernels, dtype=np.intp))
        norm.check(len(kernels))
        plan = self.plan.with_norm(norm)
        return plan, [replace(task, norm=plan.norm) for task in tasks]

    def _training(self, kernels: Index) -> Training:
        names = [self.training.names[j] for j in kernels]
        if self.training.kernels is None:
            return replace(self.training, samples=[self.training.samples[j] for j in kernels], names=names)
        return replace(self.training, kernels=[self.training.kernels[j] for j in kernels], names=names)

    def _score(self, values: Array, y: Column) -> float:
        if isinstance(self.plan.loss, SurvivalLoss):
            return concordance(y, values if self.plan.loss.proportional else -values)
        if not is_classifier(self.estimator):
            return float(r2_score(y, values))
        return float(np.mean(self.estimator.classes_[codes_of(values)] == y))

    @several_fits
    @one_call
    def weights(self, kernels: Index, factor: float = 1.0) -> Array:
        """Return the weights of some kernels, fitted on all samples at ``factor`` times C; the mean over problems."""
        some = self._training(kernels)
        if self.plan.bank.missing == "error":
            bound = Bound(self.bound.bank.select(kernels), some)
        else:
            bound = bind(some, self.plan.bank, warn=False)
        fits = self._fits(bound, kernels, [replace(task, C=factor * task.C) for task in self.tasks])
        return np.asarray(np.mean([fit.weights for fit in fits], axis=0))

    @one_call
    def model(self, kernels: Index, views: Sequence[str] = ()) -> BaseMKL:
        """Return the estimator fitted on some kernels; ``views`` are those it takes, where they have names."""
        if self.training.kernels is None:
            raise ValueError("precomputed matrices are dropped by leaving them out: fit the others")
        some, model = self._training(kernels), clone(self.estimator)
        vars(model).update(
            {name: value for name, value in vars(self.estimator).items() if name not in vars(model)}
        )
        if len(kernels) < len(self.training.names):
            bank = default_bank() if self.estimator.kernels is None else self.estimator.kernels
            model.kernels = Chosen(bank, tuple(some.names))
        known: KnownViews | None = vars(self.estimator).get("_views")
        if known is not None:
            model._views = replace(known, used=list(views))
        if self.plan.bank.missing != "error":
            bound = bind(some, self.plan.bank, warn=False)
        else:
            chosen = self.bound.bank.select(kernels)
            bound = Bound(chosen, some, scale_findings(some, chosen.kernels, self.plan.bank, warn=False))
        plan, tasks = self._on(kernels, self.tasks)
        if plan.norm.group_names:  # for fits to come: the groups as they are among these kernels
            groups = [str(group) for group in plan.norm.kernel_groups(len(kernels))]
            model.norm = clone(plan.norm.learnt_norm).set_params(groups=groups)
        fitted = model._solve(bound, plan, model._by_rule(tasks, bound.bank, plan))
        replace(fitted, findings=(*bound.findings, *fitted.findings)).write(model)
        return model
