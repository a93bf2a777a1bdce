"""How many labels of a crowd are wrong, from how often its annotators contradict each other.

No sample and no kernel takes part: annotators who disagree cannot all be right.  Every annotator w is right with a
probability a_w of its own and otherwise names one of the other classes at random, independently of the others (the
one-coin model of Dawid and Skene); a few rounds of expectation and maximisation give the a_w and the probability of
every class for every sample.  Annotators who err on the same samples agree more than they should: for the upper end of
the interval each counts half.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["CrowdRate", "single_error", "wrong_share"]

Array = NDArray[np.float64]
Codes = NDArray[np.intp]

ROUNDS = 50
#: votes that every annotator is lent, as reliable as all together
LENT = 4.0
#: normal quantile of both ends
QUANTILE = 2.0
#: how much a vote counts where annotators may err together
TOGETHER = 0.5


@dataclass(frozen=True)
class CrowdRate:
    """What annotators say about the labels that were made of their votes.

    Attributes
    ----------
    rate : float
        Share of the labels that are wrong.
    interval : tuple of float
        From independent errors to errors that half of the annotators share.
    class_rates : array of shape (k,)
        Share of each true class that is labelled otherwise.
    single : float
        Share of wrong votes of one annotator; never below half of the disagreement of two.
    pairs : int
        Samples with at least two votes, which all of this rests on.
    """

    rate: float
    interval: tuple[float, float]
    class_rates: Array
    single: float
    pairs: int


def single_error(disagreement: float, k: int) -> float:
    """Return the error of one annotator from how often two of them disagree.

    Independent errors that fall on the other k - 1 classes alike disagree with probability ``2 e - e^2 k / (k - 1)``.

    >>> round(single_error(2 * 0.1 * 0.9, 2), 6)
    0.1
    """
    most = (k - 1) / k
    return most * (1.0 - float(np.sqrt(max(1.0 - disagreement / most, 0.0))))


def wrong_share(tasks: Codes, workers: Codes, votes: Codes, labels: Codes, k: int) -> CrowdRate | None:
    """Estimate how many labels are wrong; None where no sample has two votes.

    Parameters
    ----------
    tasks, workers, votes : arrays of shape (v,)
        Sample, annotator and class of every vote.
    labels : array of shape (n,)
        The class that was made of the votes of each sample.
    k : int
        Number of classes.
    """
    n = labels.size
    counts = np.zeros((n, k))
    np.add.at(counts, (tasks, votes), 1.0)
    each = counts.sum(axis=1)
    several = each >= 2
    pairs = int(np.count_nonzero(several))
    if not pairs or k < 2:
        return None
    alike = np.sum(counts * (counts - 1.0), axis=1)[several] / (each * (each - 1.0))[several]
    single = single_error(1.0 - float(alike.mean()), k)
    weight = _log_odds(tasks, workers, votes, counts, single)
    own = np.arange(n), labels
    apart, together = (_posterior(tasks, votes, strength * weight, n, k) for strength in (1.0, TOGETHER))
    wrong, wrong_together = 1.0 - apart[own], 1.0 - together[own]
    rate = float(wrong.mean())
    # the pairs decide how well the reliabilities are known, all samples how many labels happen to be wrong
    deviation = float(np.sqrt(max(rate * (1.0 - rate), 1.0 / pairs) / pairs))
    low = max(rate - QUANTILE * deviation, 0.0)
    high = min(max(float(wrong_together.mean()), rate) + QUANTILE * deviation, 1.0)
    named = np.zeros((n, k), dtype=bool)
    named[own] = True
    class_rates = np.sum(apart * ~named, axis=0) / np.maximum(apart.sum(axis=0), 1e-12)
    return CrowdRate(rate, (low, high), np.clip(class_rates, 0.0, 1.0), single, pairs)


def _log_odds(tasks: Codes, workers: Codes, votes: Codes, counts: Array, single: float) -> Array:
    """Logarithm of how much a vote speaks for its class, by the reliability of its annotator."""
    n, k = counts.shape
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
    right = np.full(int(workers.max()) + 1, 1.0 - single)
    per_worker = np.bincount(workers, minlength=right.size)
    posterior = shares
    for turn in range(ROUNDS):
        if turn:
            posterior = _posterior(tasks, votes, _odds(right, k)[workers], n, k)
        hits = np.bincount(workers, weights=posterior[tasks, votes], minlength=right.size)
        common = hits.sum() / per_worker.sum()
        before, right = right, (hits + LENT * common) / (per_worker + LENT)
        if turn and np.max(np.abs(right - before)) < 1e-6:
            break
    return _odds(right, k)[workers]


def _odds(right: Array, k: int) -> Array:
    kept = np.clip(right, 1e-3, 1.0 - 1e-3)
    return np.asarray(np.log(kept * (k - 1) / (1.0 - kept)))


def _posterior(tasks: Codes, votes: Codes, weight: Array, n: int, k: int) -> Array:
    """Probabilities of the classes, all of them alike before any vote."""
    scores = np.zeros((n, k))
    np.add.at(scores, (tasks, votes), weight)
    scores -= scores.max(axis=1, keepdims=True)
    likely = np.exp(scores)
    return np.asarray(likely / likely.sum(axis=1, keepdims=True))
