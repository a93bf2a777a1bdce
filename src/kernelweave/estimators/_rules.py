"""Rules that take weights, or C, from the data instead of learning them: the task as it is to be solved."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from sklearn.model_selection import StratifiedKFold

from ..banks import Bank
from ..norms import Fixed, Uniform
from ..problems import solve_fixed
from ._tasks import Task
from ._types import Array, Codes

__all__ = ["aligned", "best_kernel", "centred_alignment", "only"]

#: relative gap of the fits that only rank kernels: a hundredth moves one or two samples of a thousand across the border
RANKING = 1e-2


def only(j: int, m: int) -> Array:
    """Return weights of which kernel j has all."""
    return np.where(np.arange(m) == j, 1.0, 0.0)


def best_kernel(task: Task, bank: Bank, n_folds: int, fit_intercept: bool, seed: int = 0) -> Task:
    """Put all weight on the kernel that does best in cross-validation."""
    labels = task.y if task.y.ndim == 1 else np.argmax(task.y, axis=1)
    counts = np.unique(labels, return_counts=True)[1]
    folds = StratifiedKFold(max(2, min(n_folds, int(counts.min()))), shuffle=True, random_state=seed)
    race = _Race(task, bank, fit_intercept, list(folds.split(labels, labels)))
    return replace(task, norm=Fixed(only(race.winner(), bank.m)))


@dataclass(frozen=True)
class _Race:
    """Kernels against each other, fold after fold, by their accuracy; ties are broken by the margins."""

    task: Task
    bank: Bank
    fit_intercept: bool
    splits: list[tuple[Codes, Codes]]

    def winner(self) -> int:
        """Return the kernel of the largest score, the first of equals."""
        m = self.bank.m
        scores = np.array([self._score(self.bank.combine(only(j, m)), *self.splits[0]) for j in range(m)])
        best = -np.inf
        # the favourites first: most of the others are out after the first fold
        for j in np.argsort(-scores, kind="stable"):
            left = sum(self._most(test) for _, test in self.splits[1:])
            if scores[j] + left < best:
                continue
            K = self.bank.combine(only(int(j), m))
            for train, test in self.splits[1:]:
                if scores[j] + left < best:
                    break
                scores[j] += self._score(K, train, test)
                left -= self._most(test)
            best = max(best, scores[j])
        return int(np.argmax(scores))

    def _each(self, rows: Codes) -> Array:
        """Weights of some samples, one per target."""
        weight, y = self.task.weight[rows], self.task.y
        return weight if y.ndim == 1 else np.repeat(weight[:, None], y.shape[1], axis=1)

    def _most(self, test: Codes) -> float:
        """What no score on these samples exceeds."""
        return float(np.sum(self.task.weight[test]) + 1e-6 * np.sum(self._each(test)))

    def _score(self, K: Array, train: Codes, test: Codes) -> float:
        """Weight of the test samples that are right, and a little of the margins."""
        task = self.task
        svm = solve_fixed(
            np.ascontiguousarray(K[np.ix_(train, train)]), task.loss, task.y[train], task.C * self._each(train),
            self.fit_intercept, RANKING,
        )  # fmt: skip
        values, y = K[np.ix_(test, train)] @ svm.beta + svm.intercept, task.y[test]
        hits = np.sign(values) == y if y.ndim == 1 else np.argmax(values, axis=1) == np.argmax(y, axis=1)
        margins = float(np.sum(self._each(test) * np.tanh(values * y)))
        return float(np.sum(task.weight[test] * hits)) + 1e-6 * margins


def aligned(task: Task, bank: Bank) -> Task:
    """Weigh kernels by their alignment with the labels; alike where none has any."""
    alignments = np.maximum(centred_alignment(bank, task.y, task.weight), 0.0)
    total = float(alignments.sum())
    return replace(task, norm=Fixed(alignments / total) if total > 0 else Uniform())


def centred_alignment(bank: Bank, targets: Array, weight: Array | None = None) -> Array:
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
