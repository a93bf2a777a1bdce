"""What MKL has to beat: the mean kernel, the best kernel, alignment weights, ridge with leave-one-out.

Each is an ``MKLClassifier`` whose weights, or C, come from a simple rule instead of from learning, so that they take
the same kernels, give the same attributes and carry the same certificate.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

from ..banks import Bank
from ..norms import Fixed, Norm, Uniform
from ..problems import solve_fixed
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

    def _choose(self, bank: Bank, targets: np.ndarray, norm: Norm) -> tuple[Norm, float]:
        return Uniform(), float(self.C)


class BestKernelClassifier(MKLClassifier):
    """SVM (or another loss) on the one kernel that does best in five-fold cross-validation."""

    n_folds = 5

    def _choose(self, bank: Bank, targets: np.ndarray, norm: Norm) -> tuple[Norm, float]:
        labels = targets if targets.ndim == 1 else np.argmax(targets, axis=1)
        counts = np.unique(labels, return_counts=True)[1]
        folds = StratifiedKFold(max(2, min(self.n_folds, int(counts.min()))), shuffle=True, random_state=0)
        splits = list(folds.split(labels, labels))
        scores = np.array([self._score(bank, j, targets, splits) for j in range(bank.m)])
        one = np.zeros(bank.m)
        one[int(np.argmax(scores))] = 1.0
        return Fixed(one), float(self.C)

    def _score(self, bank: Bank, j: int, targets: np.ndarray, splits: list[Any]) -> float:
        """Cross-validated accuracy of kernel j, ties broken by the mean margin."""
        loss, _, _ = self._components()
        one = np.zeros(bank.m)
        one[j] = 1.0
        K = bank.combine(one)
        right, margin = 0.0, 0.0
        for train, test in splits:
            y = targets[train]
            found = solve_fixed(
                np.ascontiguousarray(K[np.ix_(train, train)]), loss, y, np.full(y.shape, float(self.C)),
                self.fit_intercept, 1e-3,
            )  # fmt: skip
            values = K[np.ix_(test, train)] @ found.beta + found.intercept
            if values.ndim == 1:
                right += float(np.mean(np.sign(values) == targets[test]))
            else:
                right += float(np.mean(np.argmax(values, axis=1) == np.argmax(targets[test], axis=1)))
            margin += float(np.mean(np.tanh(values * targets[test])))
        return right + 1e-6 * margin


class AlignmentClassifier(MKLClassifier):
    """Weights proportional to each kernel's centred alignment with the labels (Cortes et al. 2012), then one SVM."""

    def _choose(self, bank: Bank, targets: np.ndarray, norm: Norm) -> tuple[Norm, float]:
        alignments = np.maximum(centred_alignment(bank, targets), 0.0)
        if not np.any(alignments > 0):
            return Uniform(), float(self.C)
        return Fixed(alignments / alignments.sum()), float(self.C)


def centred_alignment(bank: Bank, targets: np.ndarray) -> np.ndarray:
    """``<K_c, y y'> / (|K_c| |y y'|)`` of every kernel, K_c and y centred."""
    y = targets - targets.mean(axis=0)
    target_norm = np.linalg.norm(y @ y.T if y.ndim == 2 else np.outer(y, y))
    numerators = bank.quad(y)
    out = np.zeros(bank.m)
    everyone = np.arange(bank.n)
    for j in range(bank.m):
        K = bank.block(everyone, everyone, np.array([j]))[0]
        means = K.mean(axis=0)
        K = K - means[:, None] - means[None, :] + means.mean()
        out[j] = numerators[j] / max(float(np.linalg.norm(K)) * target_norm, np.finfo(float).tiny)
    bank.count(float(bank.m) * bank.n**2)
    return out


class _MeanKernelRidge:
    """The squared loss on the mean kernel, C by closed-form leave-one-out from one eigendecomposition."""

    fit_intercept: bool

    def _choose(self, bank: Bank, targets: np.ndarray, norm: Norm) -> tuple[Norm, float]:
        K = bank.combine(np.full(bank.m, 1.0 / bank.m))
        Cs = np.logspace(-4, 6, 41)
        errors = leave_one_out_errors(K, targets, Cs, self.fit_intercept)
        self.loo_errors_ = errors
        self.Cs_ = Cs
        return Uniform(), float(Cs[int(np.argmin(errors))])


def leave_one_out_errors(K: np.ndarray, targets: np.ndarray, Cs: np.ndarray, intercept: bool) -> np.ndarray:
    """Mean squared leave-one-out error of kernel ridge for every C (``lambda = 1 / (2 C)``).

    ``e_i = (y_i - f_i) / (1 - S_ii)``, S the smoother; a free intercept is ridge on the centred kernel plus the mean.
    """
    n = K.shape[0]
    y = targets if targets.ndim == 2 else targets[:, None]
    if intercept:
        means = K.mean(axis=0)
        K = K - means[:, None] - means[None, :] + means.mean()
        base, leverage = y.mean(axis=0), 1.0 / n
    else:
        base, leverage = np.zeros(y.shape[1]), 0.0
    values, vectors = np.linalg.eigh(K)
    values = np.maximum(values, 0.0)
    rotated = vectors.T @ (y - base)
    errors = np.empty(len(Cs))
    for k, C in enumerate(Cs):
        share = values / (values + 0.5 / C)
        fitted = base + vectors @ (share[:, None] * rotated)
        diagonal = leverage + (vectors**2) @ share
        errors[k] = np.mean(((y - fitted) / np.maximum(1.0 - diagonal, 1e-12)[:, None]) ** 2)
    return errors


class MeanKernelRidgeClassifier(_MeanKernelRidge, MKLClassifier):
    """Least-squares classification on the mean kernel, C by closed-form leave-one-out (``C_`` says which).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> MeanKernelRidgeClassifier().fit(X, y).score(X, y) > 0.9
    True
    """

    def _components(self) -> Any:
        from ..losses import Squared

        _, norm, solver = super()._components()
        return Squared(), norm, solver


class MeanKernelRidgeRegressor(_MeanKernelRidge, MKLRegressor):
    """Kernel ridge regression on the mean kernel, C by closed-form leave-one-out."""

    def _components(self) -> Any:
        from ..losses import Squared

        _, norm, solver = super()._components()
        return Squared(), norm, solver
