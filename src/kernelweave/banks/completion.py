"""Which weights samples that lack a part of the kernels give to those that have it.

A *part* is what samples have or lack: the kernels of one view (or of several views together, for kernels on all of
these).  A *pattern* is the set of parts that a sample has.  Every part that a pattern lacks is completed from those it
has, by ridge regression in feature space (``_numerics/feature_ridge.py``), one solve for each pair of pattern and part.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._numerics.deadline import check_time
from .._numerics.feature_ridge import (
    PENALTIES,
    Centred,
    PenaltyChoice,
    Target,
    centred_gram,
    choose_penalty,
    ridge_weights,
)
from ._base import Array, Index

__all__ = ["HOW", "Completion", "Fill", "check_missing"]

#: what ``missing`` may be
HOW = ("error", "mean", "predict")
Mask = NDArray[np.bool_]


def check_missing(missing: object) -> str:
    """Return the treatment of missing views, or raise a ValueError that lists what there is."""
    if missing not in HOW:
        raise ValueError(f"missing must be one of {', '.join(HOW)}, got {missing!r}")
    return str(missing)


@dataclass
class Fill:
    """Samples that lack a part, and the weights they give to the training samples that have it."""

    rows: Index
    weights: Array


@dataclass
class Completion:
    """What was learnt about completing the parts.

    Parameters
    ----------
    how : {"mean", "predict"}
    rows : list of index arrays
        For every part, the training samples that have it.
    patterns : bool array of shape (q, parts)
        Patterns of training samples that lack something.
    counts : int array of shape (q,)
        Training samples with each pattern.
    penalties, r2 : arrays of shape (q, parts)
        Penalty of the ridge regression (infinity is the mean), and how much of the part's variance is predicted when
        samples are left out in turn; NaN for parts that the pattern has.
    predictability : array of shape (parts,)
        R2 of each part from all parts that share no view with it; NaN where there are none.
    """

    how: str
    rows: list[Index]
    patterns: Mask
    counts: Index
    penalties: Array
    r2: Array
    predictability: Array

    @classmethod
    def learn(
        cls, how: str, means: Array, present: Mask, train: Index, apart: Mask
    ) -> tuple[Completion, list[Fill]]:
        """Choose penalties for every pattern among all samples, by the training samples alone, and complete them.

        Parameters
        ----------
        means : array of shape (parts, n, n)
            Mean kernel of every part, centred and scaled on the training samples that have it, zero elsewhere.
        present : bool array of shape (n, parts)
        train : index array
            Samples to learn from; the others are completed as new samples are.
        apart : bool array of shape (parts, parts)
            Whether two parts share no view.
        """
        rows = [train[present[train, p]] for p in range(present.shape[1])]
        patterns, counts = np.unique(present[~present.all(axis=1)], axis=0, return_counts=True)
        shape = patterns.shape
        made = cls(
            how, rows, patterns, counts, np.full(shape, np.nan), np.full(shape, np.nan), np.full(shape[1], np.nan)
        )  # fmt: skip
        gone = [np.flatnonzero(~present[:, p]) for p in range(present.shape[1])]
        fills = [Fill(lack, np.empty((lack.size, have.size))) for lack, have in zip(gone, rows, strict=True)]
        learner = _Learner(made, means)
        learner.learn_predictability(apart)
        for q, pattern in enumerate(patterns):
            learner.learn_pattern(q, np.flatnonzero(np.all(present == pattern, axis=1)), fills)
        return made, fills

    def predictors(self, means: Array, pattern: Mask, out: Array | None = None) -> Array:
        """Return the kernel that a pattern is predicted with: the mean of its parts' mean kernels."""
        total = np.empty(means.shape[1:]) if out is None else out
        total[:] = 0.0
        for p in np.flatnonzero(pattern):
            total += means[p]
        total /= max(1, int(np.count_nonzero(pattern)))
        return total

    def known(self, pattern: Mask) -> int | None:
        """Return the place of a pattern among those of the training samples, None for a new one."""
        places = np.flatnonzero(np.all(self.patterns == pattern, axis=1))
        return int(places[0]) if places.size else None

    def weights(self, pattern: Mask, p: int, means: Array, gram: Array, cross: Array) -> Array:
        """Return the weights over ``rows[p]`` of samples with one pattern, ``(n_new, len(rows[p]))``.

        Parameters
        ----------
        pattern : bool array of shape (parts,)
        p : int
            A part that the pattern lacks.
        means : array of shape (parts, n, n)
        gram : array of shape (n, n)
            ``predictors(means, pattern)``.
        cross : array of shape (n_new, n)
            The same kernel between the samples and the training samples.
        """
        mine = self.rows[p]
        here = np.ix_(mine, mine)
        own = centred_gram(gram[here])
        place = self.known(pattern)
        if place is not None:
            penalty = float(self.penalties[place, p])
        elif self.how == "mean":
            penalty = np.inf
        else:  # all penalties are tried: the answer must not depend on what came before
            penalty = choose_penalty(own.gram, Target.of(means[p][here])).penalty
        return ridge_weights(own, penalty, cross[:, mine])


class _Learner:
    """Chooses penalties pattern by pattern, with what the patterns share."""

    def __init__(self, completion: Completion, means: Array) -> None:
        self.completion = completion
        self.means = means
        self.gram = np.empty(means.shape[1:])  # of the pattern at hand
        self.ranks: dict[int, dict[int, int]] = {}  # by part and number of predictors
        self.targets: dict[int, Target] = {}

    def learn_predictability(self, apart: Mask) -> None:
        """Predict every part from all that share no view with it."""
        for p in range(len(self.completion.rows)):
            if apart[p].any():
                gram = self.completion.predictors(self.means, apart[p], self.gram)
                own = centred_gram(self._among(gram, p))
                choice = self._choose(own, p, int(np.count_nonzero(apart[p])))
                self.completion.predictability[p] = choice.r2

    def learn_pattern(self, q: int, members: Index, fills: list[Fill]) -> None:
        """Choose the penalties of one pattern and complete its samples."""
        known = self.completion
        pattern = known.patterns[q]
        predict = known.how == "predict"
        gram = known.predictors(self.means, pattern, self.gram) if predict else None
        for p in np.flatnonzero(~pattern):
            mine, at = known.rows[p], np.searchsorted(fills[p].rows, members)
            if gram is None:
                known.penalties[q, p], known.r2[q, p] = np.inf, 0.0
                fills[p].weights[at] = 1.0 / mine.size
                continue
            own = centred_gram(self._among(gram, int(p)))
            choice = self._choose(own, int(p), int(np.count_nonzero(pattern)))
            known.penalties[q, p], known.r2[q, p] = choice.penalty, choice.r2
            fills[p].weights[at] = ridge_weights(own, choice.penalty, gram[np.ix_(members, mine)])

    def _among(self, gram: Array, p: int) -> Array:
        """Return a kernel of all samples among those that have a part."""
        rows = self.completion.rows[p]
        return gram[np.ix_(rows, rows)]

    def _choose(self, own: Centred, p: int, size: int) -> PenaltyChoice:
        """Choose the penalty of a part, given its predictors' kernel among the samples that have it."""
        check_time(preparing=True)
        if p not in self.targets:
            self.targets[p] = Target.of(self._among(self.means[p], p))
        # the best penalty hardly depends on more than the number of predictors: begin where a similar walk ended
        ranks = self.ranks.setdefault(p, {})
        near = ranks[min(ranks, key=lambda other: abs(other - size))] if ranks else None
        choice = choose_penalty(own.gram, self.targets[p], near)
        ranks[size] = len(PENALTIES) - 1 if choice.rank is None else choice.rank
        return choice
