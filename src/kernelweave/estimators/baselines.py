"""What MKL has to beat: the mean kernel, the best kernel, alignment weights, ridge with leave-one-out.

Each is an ``MKLClassifier`` whose weights, or C, come from a simple rule instead of from learning, so that they take
the same kernels, give the same attributes and carry the same certificate.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..banks import Bank
from ._base import BaseMKL
from ._parameters import settled
from ._plan import Plan
from ._rules import aligned, best_kernel
from ._tasks import Task
from .classifier import MKLClassifier
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
    """SVM (or another loss) on the one kernel that does best in five-fold cross-validation.

    A kernel that cannot catch up with the best any more is not tried on the folds that are left.  Parameters are those
    of ``MKLClassifier`` but the norm.
    """

    n_folds = 5
    _weights_rule = "all weight is on the kernel that does best in cross-validation"

    def _by_rule(self, tasks: list[Task], bank: Bank, plan: Plan) -> list[Task]:
        seed = 0 if plan.seed is None else plan.seed
        return [best_kernel(task, bank, self.n_folds, plan.fit_intercept, seed) for task in tasks]


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
