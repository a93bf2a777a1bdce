"""What MKL has to beat: the mean kernel, the best kernel, alignment weights, ridge with leave-one-out.

Each is an ``MKLClassifier`` whose weights, or C, come from a simple rule instead of from learning, so that they take
the same kernels, give the same attributes and carry the same certificate.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..banks import Bank
from ..losses import Loss, Squared
from ..norms import Fixed, Norm, Uniform
from ..problems import solve_fixed
from ._base import BaseMKL
from ._ridge import leave_one_out
from .classifier import MKLClassifier
from .regressor import MKLRegressor

__all__ = [
    "AlignmentClassifier",
    "BestKernelClassifier",
    "MeanKernelClassifier",
    "MeanKernelRidgeClassifier",
    "MeanKernelRidgeRegressor",
]


class MeanKernelClassifier(MKLClassifier):
    """SVM (or another loss) on the mean of all kernels: the baseline that is hardest to beat.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> MeanKernelClassifier().fit(X, y).score(X, y) > 0.9
    True
    """

    def _choose(self, bank: Bank, targets: np.ndarray, weight: np.ndarray, norm: Norm) -> tuple[Norm, float]:
        return Uniform(), float(self.C)


class BestKernelClassifier(MKLClassifier):
    """SVM (or another loss) on the one kernel that does best in five-fold cross-validation."""

    n_folds = 5

    def _choose(self, bank: Bank, targets: np.ndarray, weight: np.ndarray, norm: Norm) -> tuple[Norm, float]:
        from sklearn.model_selection import StratifiedKFold

        labels = targets if targets.ndim == 1 else np.argmax(targets, axis=1)
        counts = np.unique(labels, return_counts=True)[1]
        folds = StratifiedKFold(max(2, min(self.n_folds, int(counts.min()))), shuffle=True, random_state=0)
        splits = list(folds.split(labels, labels))
        scores = np.array([self._score(bank, j, targets, weight, splits) for j in range(bank.m)])
        one = np.zeros(bank.m)
        one[int(np.argmax(scores))] = 1.0
        return Fixed(one), float(self.C)

    def _score(self, bank: Bank, j: int, targets: np.ndarray, weight: np.ndarray, splits: list[Any]) -> float:
        """Cross-validated accuracy of kernel j (times the weight of all samples), ties broken by the margins."""
        loss = self._loss()
        one = np.zeros(bank.m)
        one[j] = 1.0
        K = bank.combine(one)
        each = weight if targets.ndim == 1 else np.repeat(weight[:, None], targets.shape[1], axis=1)
        right, margin = 0.0, 0.0
        for train, test in splits:
            found = solve_fixed(
                np.ascontiguousarray(K[np.ix_(train, train)]), loss, targets[train], float(self.C) * each[train],
                self.fit_intercept, 1e-3,
            )  # fmt: skip
            values = K[np.ix_(test, train)] @ found.beta + found.intercept
            if values.ndim == 1:
                hits = np.sign(values) == targets[test]
            else:
                hits = np.argmax(values, axis=1) == np.argmax(targets[test], axis=1)
            right += float(np.sum(weight[test] * hits))
            margin += float(np.sum(each[test] * np.tanh(values * targets[test])))
        return right + 1e-6 * margin


class AlignmentClassifier(MKLClassifier):
    """Weights proportional to each kernel's centred alignment with the labels (Cortes et al. 2012), then one SVM."""

    def _choose(self, bank: Bank, targets: np.ndarray, weight: np.ndarray, norm: Norm) -> tuple[Norm, float]:
        alignments = np.maximum(centred_alignment(bank, targets, weight), 0.0)
        if not np.any(alignments > 0):
            return Uniform(), float(self.C)
        return Fixed(alignments / alignments.sum()), float(self.C)


def centred_alignment(bank: Bank, targets: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
    """``<K_c, y y'> / (|K_c| |y y'|)`` of every kernel, K_c and y centred; a weight counts a sample that often."""
    share = np.full(bank.n, 1.0 / bank.n) if weight is None else weight / np.sum(weight)
    y = targets if targets.ndim == 2 else targets[:, None]
    y = y - share @ y
    root = np.sqrt(share)
    target_norm = float(np.linalg.norm(root[:, None] * (y @ y.T) * root))
    numerators = bank.quad(share[:, None] * y)
    out = np.zeros(bank.m)
    everyone = np.arange(bank.n)
    for j in range(bank.m):
        K = bank.block(everyone, everyone, np.array([j]))[0]
        means = K @ share
        K = root[:, None] * (K - means[:, None] - means[None, :] + share @ means) * root
        out[j] = numerators[j] / max(float(np.linalg.norm(K)) * target_norm, np.finfo(float).tiny)
    bank.count(float(bank.m) * bank.n**2)
    return out


class _MeanKernelRidge(BaseMKL):
    """The squared loss on the mean kernel, C by closed-form leave-one-out from one eigendecomposition."""

    def _loss(self) -> Loss:
        return Squared()

    def _fit_on(self, *args: Any, **kwargs: Any) -> None:
        self._errors: list[np.ndarray] = []
        super()._fit_on(*args, **kwargs)
        self.loo_errors_ = self._errors[0] if len(self._errors) == 1 else np.stack(self._errors)
        del self._errors

    def _choose(self, bank: Bank, targets: np.ndarray, weight: np.ndarray, norm: Norm) -> tuple[Norm, float]:
        K = bank.combine(np.full(bank.m, 1.0 / bank.m))
        found = leave_one_out(K, targets, intercept=self.fit_intercept, weight=weight)
        self.Cs_ = found.Cs
        self._errors.append(found.errors)
        return Uniform(), found.C


class MeanKernelRidgeClassifier(_MeanKernelRidge, MKLClassifier):
    """Least-squares classification on the mean kernel, C by closed-form leave-one-out.

    ``C_`` says which, one a class where there are more than two; ``loo_errors_`` are the errors at ``Cs_``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> MeanKernelRidgeClassifier().fit(X, y).score(X, y) > 0.9
    True
    """


class MeanKernelRidgeRegressor(_MeanKernelRidge, MKLRegressor):
    """Kernel ridge regression on the mean kernel, C by closed-form leave-one-out (``C_``, ``loo_errors_``, ``Cs_``)."""
