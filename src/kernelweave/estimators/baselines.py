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


#: relative gap of the fits that only rank kernels: a hundredth moves one or two samples of a thousand across the border
RANKING = 1e-2


class BestKernelClassifier(MKLClassifier):
    """SVM (or another loss) on the one kernel that does best in five-fold cross-validation.

    A kernel that cannot catch up with the best any more is not tried on the folds that are left.
    """

    n_folds = 5

    def _choose(self, bank: Bank, targets: np.ndarray, weight: np.ndarray, norm: Norm) -> tuple[Norm, float]:
        from sklearn.model_selection import StratifiedKFold

        labels = targets if targets.ndim == 1 else np.argmax(targets, axis=1)
        counts = np.unique(labels, return_counts=True)[1]
        folds = StratifiedKFold(max(2, min(self.n_folds, int(counts.min()))), shuffle=True, random_state=0)
        splits = list(folds.split(labels, labels))
        race = _Race(self, bank, targets, weight, splits)
        one = np.zeros(bank.m)
        one[race.winner()] = 1.0
        return Fixed(one), float(self.C)


class _Race:
    """Kernels against each other, fold after fold, by their accuracy; ties are broken by the margins."""

    def __init__(
        self, of: MKLClassifier, bank: Bank, targets: np.ndarray, weight: np.ndarray, splits: list[Any]
    ) -> None:
        self.of, self.bank, self.targets, self.splits = of, bank, targets, splits
        self.weight = weight
        self.each = weight if targets.ndim == 1 else np.repeat(weight[:, None], targets.shape[1], axis=1)

    def winner(self) -> int:
        """The kernel of the largest score, the first of equals."""
        scores = np.array([self._score(self._kernel(j), *self.splits[0]) for j in range(self.bank.m)])
        best = -np.inf
        # the favourites first: most of the others are out after the first fold
        for j in np.argsort(-scores, kind="stable"):
            left = sum(self._most(test) for _, test in self.splits[1:])
            if scores[j] + left < best:
                continue
            K = self._kernel(j)
            for train, test in self.splits[1:]:
                if scores[j] + left < best:
                    break
                scores[j] += self._score(K, train, test)
                left -= self._most(test)
            best = max(best, scores[j])
        return int(np.argmax(scores))

    def _kernel(self, j: int) -> np.ndarray:
        one = np.zeros(self.bank.m)
        one[j] = 1.0
        return self.bank.combine(one)

    def _most(self, test: np.ndarray) -> float:
        """What no score on these samples exceeds."""
        return float(np.sum(self.weight[test]) + 1e-6 * np.sum(self.each[test]))

    def _score(self, K: np.ndarray, train: np.ndarray, test: np.ndarray) -> float:
        """Weight of the test samples that are right, and a little of the margins."""
        found = solve_fixed(
            np.ascontiguousarray(K[np.ix_(train, train)]), self.of._loss(), self.targets[train],
            float(self.of.C) * self.each[train], self.of.fit_intercept, RANKING,
        )  # fmt: skip
        values, y = K[np.ix_(test, train)] @ found.beta + found.intercept, self.targets[test]
        hits = np.sign(values) == y if y.ndim == 1 else np.argmax(values, axis=1) == np.argmax(y, axis=1)
        margins = float(np.sum(self.each[test] * np.tanh(values * y)))
        return float(np.sum(self.weight[test] * hits)) + 1e-6 * margins


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
