"""What MKL has to beat: the mean kernel, the best kernel, alignment weights, ridge with leave-one-out.

Each is an ``MKLClassifier`` whose weights, or C, come from a simple rule instead of from learning, so that they take
the same kernels, give the same attributes and carry the same certificate.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from sklearn.model_selection import BaseCrossValidator

from ..banks import Bank
from ._base import BaseMKL
from ._parameters import keep_parameters, settled
from ._plan import Plan
from ._rules import aligned, best_kernel
from ._search import folds_of
from ._tasks import Task
from ._types import (
    Bytes,
    Callback,
    ClassWeights,
    Codes,
    Device,
    FileName,
    KernelsLike,
    LossLike,
    NormLike,
    RandomSeed,
    SolverLike,
)
from .classifier import MKLClassifier
from .path import checked_Cs
from .regressor import MKLRegressor
from .ridge import leave_one_out

__all__ = [
    "AlignmentClassifier",
    "BestKernelClassifier",
    "MeanKernelClassifier",
    "MeanKernelRidgeClassifier",
    "MeanKernelRidgeRegressor",
]


@settled(norm="uniform")
class MeanKernelClassifier(MKLClassifier):
    """SVM (or another loss) on the mean of all kernels: the baseline that is hardest to beat.

    Parameters are those of ``MKLClassifier`` but the norm.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> MeanKernelClassifier().fit(X, y).score(X, y) > 0.9
    True
    """


@settled(norm="uniform")
class BestKernelClassifier(MKLClassifier):
    """SVM (or another loss) on the one kernel that does best in cross-validation, by accuracy.

    A kernel that cannot catch up with the best any more is not tried on the folds that are left.

    Parameters
    ----------
    kernels : kernels
        As for ``MKLClassifier``.
    Cs : int or array-like, optional
        Values of C to choose among together with the kernel, as for ``MKLClassifierCV``; by default ``C`` is taken.  Of
        many kernels those are tried with all values of C that do best on the first fold with ``C``: as many as make
        400 pairs.
    cv : int, splitter or iterable, default=None
        As for ``MKLClassifierCV``; at most as many folds as the rarest class has samples.
    **others
        As for ``MKLClassifier``, but the norm.
    """

    _weights_rule = "all weight is on the kernel that does best in cross-validation"

    Cs: ArrayLike | None
    cv: int | BaseCrossValidator | Iterable[tuple[Codes, Codes]] | None

    def __init__(
        self,
        kernels: KernelsLike = None,
        *,
        Cs: ArrayLike | None = None,
        cv: int | BaseCrossValidator | Iterable[tuple[Codes, Codes]] | None = None,
        loss: LossLike = "hinge",
        norm: NormLike = "uniform",
        C: float = 1.0,
        solver: SolverLike = "auto",
        tol: float = 1e-3,
        fit_intercept: bool = True,
        normalize: str | None = "trace",
        center: bool = False,
        multi_class: str = "joint",
        class_weight: ClassWeights = None,
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
        random_state: RandomSeed = None,
    ) -> None:
        keep_parameters(self, locals())

    def _by_rule(self, tasks: list[Task], bank: Bank, plan: Plan) -> list[Task]:
        Cs = None if self.Cs is None else checked_Cs(self.Cs)
        made = []
        for task in tasks:
            labels = task.y if task.y.ndim == 1 else np.argmax(task.y, axis=1)
            cv = self.cv
            if cv is None or isinstance(cv, Integral):
                rarest = int(np.unique(labels, return_counts=True)[1].min())
                cv = max(2, min(5 if cv is None else int(cv), rarest))
            splits = folds_of(cv, labels.astype(np.intp), True, plan.seed, None)
            made.append(best_kernel(task, bank, splits, Cs, plan.fit_intercept))
        return made


@settled(norm="uniform")
class AlignmentClassifier(MKLClassifier):
    """Weights proportional to each kernel's centred alignment with the labels (Cortes et al. 2012), then one SVM.

    Parameters are those of ``MKLClassifier`` but the norm.
    """

    _weights_rule = "every kernel has the weight of its alignment with the labels"

    def _by_rule(self, tasks: list[Task], bank: Bank, plan: Plan) -> list[Task]:
        return [aligned(task, bank) for task in tasks]


class _MeanKernelRidge(BaseMKL):
    """The squared loss on the mean kernel, C by closed-form leave-one-out from one eigendecomposition."""

    def _by_rule(self, tasks: list[Task], bank: Bank, plan: Plan) -> list[Task]:
        K = bank.combine(np.full(bank.m, 1.0 / bank.m))
        left_out = [
            leave_one_out(K, task.y, intercept=plan.fit_intercept, weight=task.weight) for task in tasks
        ]
        self.Cs_ = left_out[0].Cs
        self.loo_errors_ = (
            left_out[0].errors if len(tasks) == 1 else np.stack([errors.errors for errors in left_out])
        )
        return [replace(task, C=errors.C) for task, errors in zip(tasks, left_out, strict=True)]


@settled(loss="squared", norm="uniform", C=1.0)
class MeanKernelRidgeClassifier(_MeanKernelRidge, MKLClassifier):
    """Least-squares classification on the mean kernel, C by closed-form leave-one-out.

    ``C_`` says which, one per class where there are more than two; ``loo_errors_`` are the errors at ``Cs_``.
    Parameters are those of ``MKLClassifier`` but loss, norm and C.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> MeanKernelRidgeClassifier().fit(X, y).score(X, y) > 0.9
    True
    """


@settled(loss="squared", norm="uniform", C=1.0)
class MeanKernelRidgeRegressor(_MeanKernelRidge, MKLRegressor):
    """Kernel ridge regression on the mean kernel, C by closed-form leave-one-out (``C_``, ``loo_errors_``, ``Cs_``).

    Parameters are those of ``MKLRegressor`` but loss, norm and C.
    """
