"""How many labels are wrong, which ones, and ways to fit in spite of them.

Predictions leave their own label out, in closed form.  Where a classifier is sure, the classes do not overlap, and what
disagrees with it was flipped: the share of disagreement among the confident half estimates the noise rate.  Labels
alone cannot test that assumption: overlap that reaches into that half looks like flips, and errors that follow the
features are learnt and look right.  The interval is therefore wide: its upper end is the disagreement among all
samples.  Where several annotators gave the labels, their disagreement takes the place of the assumption.

The confident joint of Northcutt, Jiang and Chuang (Journal of Artificial Intelligence Research 70, 2021) says from the
same predictions which labels are contradicted with confidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._typing import Array
from ..banks import Bank
from ..crowd import CrowdRate
from ..kernels import Kernel
from ..losses import Loss
from ..losses.margin import CorrectedLogistic, CorrectedSquared
from ._parameters import Codes
from ._plan import Task
from .baselines import RidgeErrors, leave_one_out

#: share of the samples, the most confidently predicted, among which disagreement is counted
CONFIDENT = 0.5
#: and among which it is counted again for the lower end of the interval
VERY_CONFIDENT = 0.2
#: one-sided normal quantiles of the upper and of the lower end
UPPER, LOWER = 2.0, 3.2
#: share of the labels that predictions may contradict and still be trusted to name wrong ones
TRUSTED = 1.0 / 3.0
#: labels of a class with fewer samples are not suspected: the mean probability of so few is no threshold
FEW_OF_A_CLASS = 5
#: largest share of the labels of one class that may be suspected
MOST_OF_A_CLASS = 0.5
#: more groups of kernels than this are not told apart
MOST_GROUPS = 20
#: standard errors by which leave-one-out must prefer another mixture
BEYOND_DOUBT = 3.0
CORRECTED = {"logistic": CorrectedLogistic, "squared": CorrectedSquared}


@dataclass(frozen=True)
class NoiseEstimate:
    """Estimate of the share of wrong labels."""

    rate: float
    #: where the true rate lies: the lower end allows for overlap, the upper one for errors that can be learnt
    interval: tuple[float, float]
    #: share of each true class that is labelled otherwise
    class_rates: Array
    #: probability that a label is right, by sample
    quality: Array
    #: out-of-sample probabilities of the classes as labelled, noise included, ``(n, k)``
    probabilities: Array
    #: share of the labels that are not the predicted ones
    contradicted: float
    #: what rate and interval rest on, as a sentence
    basis: str = ""


def estimate_noise(
    K: Array, codes: Codes, n_classes: int, weight: Array | None = None, crowd: CrowdRate | None = None
) -> NoiseEstimate:
    """Estimate noise from a kernel matrix, usually the mean kernel, and labels as 0..k-1.

    Samples of weight zero are predicted but not counted; ``crowd``, what annotators say, decides the rates.
    """
    targets = np.where(codes[:, None] == np.arange(n_classes), 1.0, -1.0)
    scores = leave_one_out(K, targets, weight=weight).predictions
    predicted = np.argmax(scores, axis=1)
    ordered = np.sort(scores, axis=1)
    sure = ordered[:, -1] - ordered[:, -2]
    wrong = predicted != codes
    counted = np.ones(codes.size, dtype=bool) if weight is None else weight > 0
    if crowd is None:
        certain, disagreed = sure[counted], wrong[counted]
        half, few = _most_sure(certain, CONFIDENT), _most_sure(certain, VERY_CONFIDENT)
        # more than one in two cannot be told from another naming of the classes
        rate, rate_few = min(float(disagreed[half].mean()), 0.5), min(float(disagreed[few].mean()), 0.5)
        # disagreement that grows towards the unsure half is overlap; some of it reaches into the sure half, too
        everywhere = float(disagreed.mean())
        overlap = max(0.0, everywhere - rate)
        upper = max(rate, rate + UPPER * _deviation(rate, half.size) - 0.5 * overlap)
        # overlap falls with confidence, flips do not: the very confident are nearer to the truth, but there are few
        lower = max(min(rate, rate_few) - LOWER * _deviation(rate_few, few.size), 0.0)
        # errors that follow the features are predicted with confidence: not even all disagreement is a bound
        upper = min(max(upper, everywhere + UPPER * _deviation(everywhere, disagreed.size)), 0.5)
        interval = lower, upper
        # disagreement among the confident half of what is predicted as a class; few samples lean on the overall rate
        rates = np.full(n_classes, rate)
        for k in range(n_classes):
            of_class = counted & (predicted == k)
            if of_class.any():
                half = _most_sure(sure[of_class], CONFIDENT)
                rates[k] = float((wrong[of_class][half].sum() + 4.0 * rate) / (half.size + 4.0))
        basis = (
            f"The noise rate ({rate:.0%}, {interval[0]:.0%} to {interval[1]:.0%}) rests on the assumption that classes "
            "are apart where predictions are surest and that wrong labels do not follow the features; no label can "
            "test it. Several annotators per sample would: give their labels, one column each."
        )
    else:
        # one in two and more cannot be told from another naming of the classes
        rate, interval = min(crowd.rate, 0.5), (min(crowd.interval[0], 0.5), min(crowd.interval[1], 0.5))
        rates = np.minimum(crowd.class_rates, 0.5)
        basis = (
            f"The noise rate ({rate:.0%}, {interval[0]:.0%} to {interval[1]:.0%}) comes from how often annotators "
            f"contradict each other, on {crowd.pairs} samples with at least two labels; one annotator alone errs in "
            f"{crowd.single:.0%} of the cases."
        )
    probabilities = calibrated(scores, codes)
    # Observed probabilities are p = (1 - r) c + r (1 - c) / (k - 1) of the clean ones c, if a share r of the labels
    # was replaced by another class at random; by Bayes a label is right with probability (1 - r) c / p.
    k = n_classes
    replaced = min(max(rate, 0.02), 0.95 * (k - 1) / k)
    p = probabilities[np.arange(codes.size), codes]
    clean = np.clip((p - replaced / (k - 1)) / (1.0 - replaced * k / (k - 1)), 0.0, 1.0)
    right, other = (1.0 - replaced) * clean, replaced * (1.0 - clean) / (k - 1)
    # where the clean probability is cut off at zero or one, the observed one still ranks
    share = np.clip(right / np.maximum(right + other, np.finfo(float).tiny), 0.0, 1.0)
    quality = share * (1 - 1e-6) + 1e-6 * p
    contradicted = float(wrong[counted].mean())
    return NoiseEstimate(rate, interval, rates, quality, probabilities, contradicted, basis)


def confident_joint(
    probabilities: Array, codes: NDArray[np.intp], counted: NDArray[np.bool_] | None = None
) -> tuple[Array, NDArray[np.intp]]:
    """Return the confident joint of labels and classes, and the class that each sample is confidently taken for.

    A sample counts as one of class j where its probability of j is at least the mean over the samples labelled j, and
    the largest of those that are.  Rows of these counts are scaled to the numbers of labels, and all to sum 1.

    ``probabilities`` ``(n, k)`` are from predictions that did not see the sample; ``counted`` says which samples count.

    >>> P = np.array([[0.9, 0.1], [0.8, 0.2], [0.1, 0.9], [0.2, 0.8], [0.1, 0.9]])
    >>> joint, likely = confident_joint(P, np.array([0, 0, 0, 1, 1]))
    >>> likely.tolist()
    [0, 0, 1, -1, 1]
    >>> joint.round(2).tolist()
    [[0.4, 0.2], [0.0, 0.4]]
    """
    n, k = probabilities.shape
    counted = np.ones(n, dtype=bool) if counted is None else counted
    given = np.array([np.count_nonzero(counted & (codes == j)) for j in range(k)])
    # no sample belongs to a class without samples
    thresholds = np.array(
        [probabilities[counted & (codes == j), j].mean() if given[j] else np.inf for j in range(k)]
    )
    above = probabilities >= thresholds - 1e-12
    likely = np.where(above.any(axis=1), np.argmax(np.where(above, probabilities, -1.0), axis=1), -1)
    counts = np.zeros((k, k))
    used = counted & (likely >= 0)
    np.add.at(counts, (codes[used], likely[used]), 1.0)
    rows = counts.sum(axis=1)
    counts[rows == 0] = np.eye(k)[rows == 0]  # without confident predictions labels are taken as they are
    joint = counts / counts.sum(axis=1, keepdims=True) * given[:, None]
    return joint / joint.sum(), likely


def suspected(
    probabilities: Array,
    likely: Codes,
    codes: Codes,
    counted: NDArray[np.bool_],
    at_most: float | None = None,
) -> NDArray[np.bool_]:
    """Return which labels another class contradicts with confidence, the clearest first where there are too many.

    At most half of the labels of a class, and none of a class of fewer than five, so that no class is lost; and at most
    a share ``at_most`` of all, where that is known.
    """
    where = np.flatnonzero(counted & (likely >= 0) & (likely != codes))
    lead = probabilities[where, likely[where]] - probabilities[where, codes[where]]
    where = where[np.argsort(-lead, kind="stable")]
    chosen = np.zeros(codes.size, dtype=bool)
    for j in range(probabilities.shape[1]):
        size = np.count_nonzero(counted & (codes == j))
        most = int(MOST_OF_A_CLASS * size) if size >= FEW_OF_A_CLASS else 0
        chosen[where[codes[where] == j][:most]] = True
    if at_most is not None:
        kept = where[chosen[where]]
        chosen[kept[round(at_most * np.count_nonzero(counted)) :]] = False
    return chosen


def _most_sure(sure: Array, share: float) -> NDArray[np.intp]:
    size = max(1, round(share * sure.size))
    return np.argsort(-sure, kind="stable")[:size]


def _deviation(rate: float, size: int) -> float:
    """Standard deviation of an observed share, with the two extra successes and failures of Agresti and Coull."""
    p = (rate * size + 2.0) / (size + 4.0)
    return float(np.sqrt(p * (1.0 - p) / (size + 4.0)))


def calibrated(scores: Array, codes: NDArray[np.intp]) -> Array:
    """Return probabilities of the labels from scores, one column for each class, by logistic regression."""
    from sklearn.linear_model import LogisticRegression

    features = scores[:, 1:] if scores.shape[1] == 2 else scores
    return np.asarray(LogisticRegression(C=1e3, max_iter=1000).fit(features, codes).predict_proba(features))


def mixtures(kernels: Sequence[Kernel] | None, m: int) -> list[tuple[str, Array]]:
    """Fixed mixtures by name: all kernels alike; where there are several groups also each alone, and groups alike.

    Groups are kernels that see equally many columns: single features, pairs, views, all of them.  Within a group
    kernels are alike in kind; between groups it is the number of kernels, not their worth, that decides what the mean
    of all is made of.  Ten kernels on all features vanish beside hundreds on single ones.
    """
    if kernels is None:
        groups = {f"kernel {j}": np.array([j]) for j in range(m)}
    else:
        widths = np.array([-1 if kernel.columns is None else np.size(kernel.columns) for kernel in kernels])
        titles = {-1: "kernels on all columns", 1: "kernels on single columns"}
        groups = {
            titles.get(width, f"kernels on {width} columns"): np.flatnonzero(widths == width)
            for width in dict.fromkeys(widths.tolist())
        }
    out = [("the mean kernel", np.full(m, 1.0 / m))]
    if len(groups) == 1 or len(groups) > MOST_GROUPS:
        return out
    alike = np.zeros(m)
    for name, index in groups.items():
        alone = np.zeros(m)
        alone[index] = 1.0 / index.size
        alike[index] = 1.0 / (index.size * len(groups))
        out.append((f"the mean of the {name}", alone))
    return [*out, ("the mean of all groups of kernels alike", alike)]


def dense_mixture(
    tasks: list[Task], bank: Bank, kernels: Sequence[Kernel] | None, intercept: bool
) -> tuple[str, Array, RidgeErrors]:
    """Return a fixed mixture for noisy labels (name and weights), and what leaving samples out of ridge on it gives.

    All groups of kernels count alike, unless another mixture has a smaller error beyond doubt: under noise the
    smallest of them is chance, and choosing it freely costs more than it gains.
    """
    y = tasks[0].y if len(tasks) == 1 else np.stack([task.y for task in tasks], axis=1)
    weight = tasks[0].weight
    choices = mixtures(kernels, bank.m)
    left_out = [
        leave_one_out(bank.combine(mixed), y, intercept=intercept, weight=weight) for _, mixed in choices
    ]
    best = int(np.argmin([errors.errors[errors.best] for errors in left_out]))
    usual = len(choices) - 1
    misses = [np.mean((y - errors.predictions).reshape(len(y), -1) ** 2, axis=1) for errors in left_out]
    better = (misses[usual] - misses[best])[weight > 0]
    doubt = float(np.std(better)) / np.sqrt(better.size)
    chosen = best if float(np.mean(better)) > BEYOND_DOUBT * doubt else usual
    return *choices[chosen], left_out[chosen]


def corrected_loss(name: str, k: int, task: Task, rates: Array, given: bool) -> Loss:
    """Return a loss of task k whose expectation under noise is that of the clean labels; ``rates``: by class.

    The labels must allow the rates: at least ``negative_rate`` of them are positive, ``positive_rate`` negative, or the
    corrected loss has no minimum.  Given rates that contradict the labels are refused; estimated ones are cut, and so
    that the labels keep some information.
    """
    if task.y.ndim == 2:
        raise ValueError(
            "method='corrected' corrects one class against the rest at a time: with more than two classes use "
            "multi_class='ovr'"
        )
    if rates.size == 2:
        positive, negative = float(rates[1]), float(rates[0])
    else:  # one class against the rest: what leaves the others is shared out among all classes
        positive, negative = float(rates[k]), float(np.delete(rates, k).mean() / (rates.size - 1))
    share = float(np.sum(task.weight * (task.y > 0)) / np.sum(task.weight))
    if not given:
        positive = min(positive, 0.9 * (1.0 - share), 0.45)
        negative = min(negative, 0.9 * share, 0.45)
    elif negative >= share or positive >= 1.0 - share:
        raise ValueError(
            f"noise_rate contradicts the labels: with a share of {negative:g} of the negative class labelled "
            f"positive and {positive:g} of the positive class labelled negative, the share of positive labels "
            f"would lie between {negative:g} and {1.0 - positive:g}, but it is {share:.3g}"
        )
    loss: Loss = CORRECTED[name](positive, negative)
    loss.check()
    return loss
