"""The same model on some of its kernels: one bank for all subsets, nothing computed twice."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.metrics import r2_score

from .._estimating import one_call
from ..banks import Bank, Index
from ..kernels import Stack
from ..norms import Norm, make_norm
from ..views import KnownViews
from ._bind import Bound, bind, completed, fold_bank
from ._fitting import fit_tasks
from ._inputs import Training
from ._plan import Plan
from ._structure import norm_of_kernels
from ._tasks import Task
from ._types import Array, Codes, Column, Samples
from .classifier import labels_of

if TYPE_CHECKING:
    from ._base import BaseMKL

__all__ = ["SubsetFits"]


class SubsetFits:
    """Fits of a model on subsets of its kernels, at the C and the norm of the fitted model.

    Where samples lack views, those of a subset are completed from that subset alone.

    Parameters
    ----------
    fitted : estimator
    X, y : samples and targets
        Those of the fit.
    """

    def __init__(self, fitted: BaseMKL, X: Samples, y: Column) -> None:
        if not fitted.fits_subsets:
            raise ValueError(
                f"{type(fitted).__name__} is not one mixture of kernels that could lack some of them"
            )
        self.y = np.asarray(y)
        self.estimator: BaseMKL = clone(fitted)
        self.training, plan, tasks = self.estimator._prepared(X, y, None)
        C = np.atleast_1d(fitted.C_)
        self.plan = plan
        #: as it was given or chosen, bound to all kernels: every subset has its part of the groups
        self.norm: Norm = norm_of_kernels(make_norm(getattr(fitted, "norm_", fitted.norm)), self.training)
        self.tasks = [replace(task, C=float(C[min(k, C.size - 1)])) for k, task in enumerate(tasks)]
        self._bound: Bound | None = None

    @property
    def bound(self) -> Bound:
        """All kernels on all samples, built once."""
        if self._bound is None:
            self._bound = bind(self.training, self.plan.bank)
        return self._bound

    @one_call
    def scores(self, subsets: Sequence[Index], splits: Sequence[tuple[Codes, Codes]]) -> tuple[Array, Array]:
        """Accuracy (R2 of a regression) and seconds of every subset on every fold, ``(subsets, folds)``."""
        scores, seconds = np.zeros((len(subsets), len(splits))), np.zeros((len(subsets), len(splits)))
        for fold, (train, test) in enumerate(splits):
            for place, (values, spent) in enumerate(self._on_fold(subsets, train)):
                scores[place, fold] = self._score(values[test], self.y[test])
                seconds[place, fold] = spent
        return scores, seconds

    def _on_fold(self, subsets: Sequence[Index], train: Codes) -> Iterator[tuple[Array, float]]:
        """Yield values of all samples, and the seconds of the fit, for every subset."""
        in_fold = np.zeros(self.training.n)
        in_fold[train] = 1.0
        tasks = [replace(task, weight=task.weight * in_fold) for task in self.tasks]
        shared = fold_bank(self.bound, self.plan.bank, train) if self.plan.bank.missing == "error" else None
        for kernels in subsets:
            began = time.perf_counter()
            some = self._training(kernels)
            bank: Bank = (
                completed(some, self.plan.bank, train)[0] if shared is None else shared.select(kernels)
            )
            plan, some_tasks = self._on(kernels, tasks)
            ruled = self.estimator._by_rule(some_tasks, bank, plan)
            fits, _ = fit_tasks(Bound(bank, self.bound.kernels, some), plan, ruled)
            values = [bank.mix_product(fit.weights, fit.beta) + fit.certificate.intercept for fit in fits]
            spent = time.perf_counter() - began
            yield values[0] if len(values) == 1 else np.stack(values, axis=1), spent

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
        if not is_classifier(self.estimator):
            return float(r2_score(y, values))
        return float(np.mean(labels_of(values, self.estimator.classes_) == y))

    @one_call
    def model(self, kernels: Index, views: Sequence[str] = ()) -> BaseMKL:
        """Return the estimator fitted on some kernels; ``views`` are those it looks at, where they have names."""
        if self.training.kernels is None:
            raise ValueError("precomputed matrices are dropped by leaving them out: fit the others")
        some, model = self._training(kernels), clone(self.estimator)
        vars(model).update(
            {name: value for name, value in vars(self.estimator).items() if name not in vars(model)}
        )
        model.kernels = Stack(tuple(some.kernels or ()))
        known: KnownViews | None = vars(self.estimator).get("_views")
        if known is not None:
            model._views = replace(known, used=list(views))
        if self.plan.bank.missing != "error":
            bound = bind(some, self.plan.bank)
        else:
            kept, _ = self.bound.kernels.restrict(kernels, np.ones(self.training.n))
            bound = Bound(self.bound.bank.select(kernels), kept, some)
        plan, tasks = self._on(kernels, self.tasks)
        if plan.norm.group_names:  # for fits to come: the groups as they are among these kernels
            groups = [str(group) for group in plan.norm.kernel_groups(len(kernels))]
            model.norm = clone(plan.norm.learnt_norm).set_params(groups=groups)
        model._solve(bound, plan, model._by_rule(tasks, bound.bank, plan))
        return model
