"""Rules that take weights, or C, from the data instead of learning them: the task as it is to be solved."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..banks import Bank
from ..norms import Fixed, Uniform
from ..problems import solve_fixed
from ._tasks import Task
from ._types import Array, Codes

__all__ = ["aligned", "best_kernel", "centred_alignment", "only"]

#: relative gap of the fits that only rank kernels: a hundredth moves one or two samples of a thousand across the border
RANKING = 1e-2
#: pairs of kernel and C up to which all are tried on the first fold: about a second at 400 samples
MOST_PAIRS = 400


def only(j: int, m: int) -> Array:
    """Return weights of which kernel j has all."""
    return np.where(np.arange(m) == j, 1.0, 0.0)


def best_kernel(
    task: Task, bank: Bank, splits: list[tuple[Codes, Codes]], Cs: Array | None, fit_intercept: bool
) -> Task:
    """Put all weight on the kernel that does best in cross-validation, at the best of several values of C if wanted.

    ``Cs`` are tried for the kernels that do best on the first fold at the task's own C, as many as make ``MOST_PAIRS``.
    """
    j, C = _Race(task, bank, fit_intercept, splits).winner(None if Cs is None else np.sort(Cs))
    return replace(task, norm=Fixed(only(j, bank.m)), C=C)


@dataclass(frozen=True)
class _Race:
    """Kernels, each with several values of C, against each other: by their accuracy, and in ties by the margins."""

    task: Task
    bank: Bank
    fit_intercept: bool
    splits: list[tuple[Codes, Codes]]

    def winner(self, Cs: Array | None) -> tuple[int, float]:
        """Return the kernel and the C of the largest score, the first of equals."""
        m, own = self.bank.m, np.array([self.task.C])
        kernels = np.arange(m)
        if Cs is None:
            Cs = own
        elif m * Cs.size > MOST_PAIRS:
            first = np.array([self._scores(self._matrix(j), own, *self.splits[0])[0] for j in range(m)])
            kernels = np.argsort(-first, kind="stable")[: max(MOST_PAIRS // Cs.size, 1)]
        scores = {int(j): self._scores(self._matrix(int(j)), Cs, *self.splits[0]) for j in kernels}
        best = -np.inf
        # the favourites first: most of the others are out after the first fold
        for j in sorted(scores, key=lambda j: (-scores[j].max(), j)):
            left = sum(self._most(test) for _, test in self.splits[1:])
            if scores[j].max() + left < best:
                continue
            K = self._matrix(j)
            for train, test in self.splits[1:]:
                alive = scores[j] + left >= best
                if not alive.any():
                    break
                scores[j][alive] += self._scores(K, Cs[alive], train, test)
                scores[j][~alive] = -np.inf
                left -= self._most(test)
            else:
                best = max(best, float(scores[j].max()))
        j = max(scores, key=lambda j: (scores[j].max(), -j))
        return j, float(Cs[int(np.argmax(scores[j]))])

    def _matrix(self, j: int) -> Array:
        return self.bank.combine(only(j, self.bank.m))

    def _each(self, rows: Codes) -> Array:
        """Weights of some samples, one per target."""
        weight, y = self.task.weight[rows], self.task.y
        return weight if y.ndim == 1 else np.repeat(weight[:, None], y.shape[1], axis=1)

    def _most(self, test: Codes) -> float:
        """What no score on these samples exceeds."""
        return float(np.sum(self.task.weight[test]) + 1e-6 * np.sum(self._each(test)))

    def _scores(self, K: Array, Cs: Array, train: Codes, test: Codes) -> Array:
        """Weight of the test samples that are right, and a little of the margins, for increasing values of C."""
        task = self.task
        inner = np.ascontiguousarray(K[np.ix_(train, train)])
        across, y = K[np.ix_(test, train)], task.y[test]
        found = np.empty(Cs.size)
        for place, C in enumerate(Cs):
            svm = solve_fixed(
                inner, task.loss, task.y[train], C * self._each(train), self.fit_intercept, RANKING
            )
            values = across @ svm.beta + svm.intercept
            hits = np.sign(values) == y if y.ndim == 1 else np.argmax(values, axis=1) == np.argmax(y, axis=1)
            margins = float(np.sum(self._each(test) * np.tanh(values * y)))
            found[place] = float(np.sum(task.weight[test] * hits)) + 1e-6 * margins
        return found


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
