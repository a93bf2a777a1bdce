"""How many labels are wrong, which ones, and ways to fit in spite of them.

No label is ever used to predict itself, and the closed form makes every prediction exact and cheap.  Where a classifier
is sure, the classes do not overlap; what disagrees with it there was flipped.  So the share of disagreement among the
confident half estimates the noise rate.  That rests on an assumption which labels alone cannot test: overlap that
reaches into that half looks like flips, and errors that follow the features (annotators who confuse the same kinds of
sample) are learnt and look right.  The interval is wide for that reason: its upper end is the disagreement among all
samples.
Where several annotators gave the labels, their disagreement takes the place of the assumption.

Which labels are contradicted with confidence is a question of its own, answered by the confident joint of Northcutt,
Jiang and Chuang (Journal of Artificial Intelligence Research 70, 2021) from the same predictions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._typing import Array
from ..banks import Bank
from ..crowd import CrowdRate
from ..kernels import Kernel
from ..losses import BudgetedHinge, Hinge, Loss, Squared, budget_from_noise_rate
from ..losses.margin import CorrectedLogistic, CorrectedSquared
from ..norms import Fixed
from ._plan import Task, refuse_fixed_parts
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


@dataclass(frozen=True)
class NoiseEstimate:
    """Estimate of the rate of wrong labels.

    Attributes
    ----------
    rate : float
        Estimated share of wrong labels.
    interval : tuple of float
        Where the true rate lies: the lower end allows for overlap, the upper one for errors that can be learnt.
    class_rates : array of shape (k,)
        Share of each true class that is labelled otherwise.
    quality : array of shape (n,)
        Probability that a label is right.
    probabilities : array of shape (n, k)
        Out-of-sample probabilities of the classes as labelled, noise included.
    contradicted : float
        Share of the labels that are not the predicted ones.
    """

    rate: float
    interval: tuple[float, float]
    class_rates: Array
    quality: Array
    probabilities: Array
    contradicted: float
    #: what rate and interval rest on, as a sentence
    basis: str = ""


def estimate_noise(
    K: Array,
    codes: NDArray[np.intp],
    n_classes: int,
    weight: Array | None = None,
    crowd: CrowdRate | None = None,
) -> NoiseEstimate:
    """Estimate noise from a kernel matrix and labels.

    Parameters
    ----------
    K : array of shape (n, n)
        Kernel matrix, usually the mean kernel.
    codes : array of shape (n,)
        Labels as 0..k-1.
    n_classes : int
    weight : array of shape (n,), optional
        Sample weights of the ridge; samples of weight zero are predicted but not counted.
    crowd : CrowdRate, optional
        What annotators say; it decides the rates.
    """
    targets = np.where(codes[:, None] == np.arange(n_classes), 1.0, -1.0)
    scores = leave_one_out(K, targets, weight=weight).predictions
    predicted = np.argmax(scores, axis=1)
    ordered = np.sort(scores, axis=1)
    sure = ordered[:, -1] - ordered[:, -2]
    wrong = predicted != codes
    counted = np.ones(codes.size, dtype=bool) if weight is None else weight > 0
    if crowd is None:
        rate, interval = _rate(sure[counted], wrong[counted])
        rates = np.array(
            [_class_rate(sure, wrong, counted & (predicted == k), rate) for k in range(n_classes)]
        )
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
    quality = _quality(probabilities, codes, max(rate, 0.02))
    contradicted = float(wrong[counted].mean())
    return NoiseEstimate(rate, interval, rates, quality, probabilities, contradicted, basis)


def confident_joint(
    probabilities: Array, codes: NDArray[np.intp], counted: NDArray[np.bool_] | None = None
) -> tuple[Array, NDArray[np.intp]]:
    """Return the confident joint of labels and classes, and the class that each sample is confidently taken for.

    A sample counts as one of class j where its probability of j is at least the mean over the samples labelled j, and
    the largest of those that are.  Rows of these counts are scaled to the numbers of labels, and all to sum 1.

    Parameters
    ----------
    probabilities : array of shape (n, k)
        From predictions that did not see the sample.
    codes : array of shape (n,)
        Labels as 0..k-1.
    counted : bool array of shape (n,), optional
        Samples that count.

    Examples
    --------
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
    # a class without samples is nobody's
    thresholds = np.array(
        [probabilities[counted & (codes == j), j].mean() if given[j] else np.inf for j in range(k)]
    )
    above = probabilities >= thresholds - 1e-12
    likely = np.where(above.any(axis=1), np.argmax(np.where(above, probabilities, -1.0), axis=1), -1)
    counts = np.zeros((k, k))
    used = counted & (likely >= 0)
    np.add.at(counts, (codes[used], likely[used]), 1.0)
    rows = counts.sum(axis=1)
    counts[rows == 0] = np.eye(k)[rows == 0]  # where nobody is confident, labels are taken as they are
    joint = counts / counts.sum(axis=1, keepdims=True) * given[:, None]
    return joint / joint.sum(), likely


def suspected(
    probabilities: Array,
    likely: NDArray[np.intp],
    codes: NDArray[np.intp],
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


def _rate(sure: Array, wrong: NDArray[np.bool_]) -> tuple[float, tuple[float, float]]:
    """Disagreement among the confident half, and an interval for the noise rate."""
    half, few = _most_sure(sure, CONFIDENT), _most_sure(sure, VERY_CONFIDENT)
    # more than one in two cannot be told from another naming of the classes
    rate, rate_few = min(float(wrong[half].mean()), 0.5), min(float(wrong[few].mean()), 0.5)
    # disagreement that grows towards the unsure half is overlap; some of it reaches into the sure half, too
    overlap = max(0.0, float(wrong.mean()) - rate)
    upper = max(rate, rate + UPPER * _deviation(rate, half.size) - 0.5 * overlap)
    # overlap falls with confidence, flips do not: the very confident are the nearer to the truth, but there are few
    lower = max(min(rate, rate_few) - LOWER * _deviation(rate_few, few.size), 0.0)
    # errors that follow the features are predicted with confidence: not even all disagreement is a bound, but the least
    everywhere = float(wrong.mean())
    upper = min(max(upper, everywhere + UPPER * _deviation(everywhere, wrong.size)), 0.5)
    return rate, (lower, upper)


def _deviation(rate: float, size: int) -> float:
    """Standard deviation of an observed share, with the two extra successes and failures of Agresti and Coull."""
    p = (rate * size + 2.0) / (size + 4.0)
    return float(np.sqrt(p * (1.0 - p) / (size + 4.0)))


def _class_rate(sure: Array, wrong: NDArray[np.bool_], of_class: NDArray[np.bool_], overall: float) -> float:
    """Disagreement among the confident half of what is predicted as one class; few samples lean on the overall rate."""
    if not of_class.any():
        return overall
    half = _most_sure(sure[of_class], CONFIDENT)
    return float((wrong[of_class][half].sum() + 4.0 * overall) / (half.size + 4.0))


def calibrated(scores: Array, codes: NDArray[np.intp]) -> Array:
    """Return probabilities of the labels from scores, one column for each class, by logistic regression."""
    from sklearn.linear_model import LogisticRegression

    features = scores[:, 1:] if scores.shape[1] == 2 else scores
    return np.asarray(LogisticRegression(C=1e3, max_iter=1000).fit(features, codes).predict_proba(features))


def _quality(probabilities: Array, codes: NDArray[np.intp], rate: float) -> Array:
    """Probability that a label is right, if a share ``rate`` of them was replaced by another class at random.

    Observed probabilities are ``p = (1 - rate) c + rate (1 - c) / (k - 1)`` of the clean ones c; by Bayes a label is
    right with probability ``(1 - rate) c / p``.
    """
    k = probabilities.shape[1]
    rate = min(rate, 0.95 * (k - 1) / k)
    p = probabilities[np.arange(codes.size), codes]
    clean = np.clip((p - rate / (k - 1)) / (1.0 - rate * k / (k - 1)), 0.0, 1.0)
    right = (1.0 - rate) * clean
    other = rate * (1.0 - clean) / (k - 1)
    # where the clean probability is cut off at zero or one, the observed one still ranks
    return np.clip(right / np.maximum(right + other, np.finfo(float).tiny), 0.0, 1.0) * (1 - 1e-6) + 1e-6 * p


# ------------------------------------------------------------------------------------------------------------
# Fixed mixtures worth trying before any weights are learnt: all kernels alike, groups of them, groups alike.


#: more groups than this are not told apart
MOST_GROUPS = 20


@dataclass(frozen=True)
class Mixture:
    """Weights that sum to one, and what they are called."""

    name: str
    weights: np.ndarray


def kernel_groups(kernels: Sequence[Any] | None, m: int) -> dict[str, np.ndarray]:
    """Kernels by how many columns they see: single features, pairs, views, all of them.

    Within a group kernels are alike in kind; between groups it is the number of kernels, not their worth, that decides
    what the mean of all is made of.  Ten kernels on all features vanish beside hundreds on single ones.
    """
    if kernels is None:
        if m > MOST_GROUPS:
            return {"all kernels": np.arange(m)}
        return {f"kernel {j}": np.array([j]) for j in range(m)}
    widths = [-1 if kernel.columns is None else np.size(kernel.columns) for kernel in kernels]
    by_width = {width: np.flatnonzero(np.array(widths) == width) for width in dict.fromkeys(widths)}
    if len(by_width) > MOST_GROUPS:
        return {"all kernels": np.arange(m)}
    return {_title(width): index for width, index in by_width.items()}


def _title(width: int) -> str:
    return {-1: "kernels on all columns", 1: "kernels on single columns"}.get(
        width, f"kernels on {width} columns"
    )


def mixtures(groups: dict[str, np.ndarray]) -> list[Mixture]:
    """All kernels alike first, then, where there are several groups, each of them alone and all groups alike."""
    m = int(sum(index.size for index in groups.values()))
    out = [Mixture("the mean kernel", np.full(m, 1.0 / m))]
    if len(groups) == 1:
        return out
    alike = np.zeros(m)
    for name, index in groups.items():
        alone = np.zeros(m)
        alone[index] = 1.0 / index.size
        alike[index] = 1.0 / (index.size * len(groups))
        out.append(Mixture(f"the mean of the {name}", alone))
    return [*out, Mixture("the mean of all groups of kernels alike", alike)]


# ------------------------------------------------------------------------------------------------------------
# Ways to live with wrong labels: each turns tasks with clean losses into what is to be solved.
#
# A method is asked for its loss before any work, for its tasks when the noise is known, and, where it chooses
# samples, for its choice after every fit.


#: standard errors by which leave-one-out must prefer another mixture
BEYOND_DOUBT = 3.0
CORRECTED = {"logistic": CorrectedLogistic, "squared": CorrectedSquared}


@dataclass(frozen=True)
class Noise:
    """Facts about the labels when a method is asked for its tasks.

    ``given`` says that the rates are the user's and not an estimate, ``suspects`` which labels are contradicted with
    confidence, ``contradicted`` what share of them is contradicted at all.
    """

    rate: float
    class_rates: Array
    given: bool
    suspects: NDArray[np.bool_]
    contradicted: float


class NoiseMethod:
    """One way to fit labels of which some are wrong."""

    #: whether samples are chosen again after every fit
    chooses: bool = False

    def loss(self) -> Loss:
        """Return a loss of the method's kind, for the checks before anything is known about the noise."""
        return Hinge()

    def tasks(
        self, tasks: list[Task], bank: Bank, noise: Noise, kernels: Sequence[Kernel] | None
    ) -> list[Task]:
        """Return the tasks that are to be solved."""
        return tasks

    def shares(self, noise: Noise) -> Array | None:
        """Return how much every sample counts, from what is known before any fit; None where all count alike."""
        return None

    def chosen(self, losses: Array, weight: Array, noise: Noise) -> Array:
        """Return which samples the next fit stands on, from their hinge losses: ones and zeros."""
        raise NotImplementedError

    def fine(self, C: float, left_out: float) -> float:
        """Return what samples of a total weight that are left out add to the objective."""
        return 0.0

    def in_words(self, norm: object, noise: Noise) -> str:
        """Return what was fitted, for people."""
        return f"{type(self).__name__.lower()} on norm {norm!r}, noise rate {noise.rate:.3g}"


@dataclass(frozen=True)
class Confident(NoiseMethod):
    """Confident learning: the hinge loss, of which labels that are contradicted with confidence have a part or none."""

    suspect_weight: float

    def shares(self, noise: Noise) -> Array:
        return np.where(noise.suspects, self.suspect_weight, 1.0)

    def in_words(self, norm: object, noise: Noise) -> str:
        return f"hinge loss on norm {norm!r}; {self.suspects_in_words(noise)}"

    def suspects_in_words(self, noise: Noise) -> str:
        """Return how many labels are suspected, and what becomes of them."""
        number = int(np.count_nonzero(noise.suspects))
        if self.suspect_weight == 1:
            return "all labels count alike"
        if self.suspect_weight == 0:
            return f"{number} suspected labels left out"
        return f"{number} suspected labels count {self.suspect_weight:g}"


def dense_mixture(
    tasks: list[Task], bank: Bank, kernels: Sequence[Kernel] | None, intercept: bool
) -> tuple[Mixture, RidgeErrors]:
    """Return a fixed mixture for noisy labels, and what leaving samples out of ridge on it gives.

    All groups of kernels count alike, unless another mixture has a smaller error beyond doubt: noise makes the smallest
    of them a lottery, and choosing it freely costs more than it gains.
    """
    y = tasks[0].y if len(tasks) == 1 else np.stack([task.y for task in tasks], axis=1)
    weight = tasks[0].weight
    choices = mixtures(kernel_groups(kernels, bank.m))
    left_out = [
        leave_one_out(bank.combine(mixture.weights), y, intercept=intercept, weight=weight)
        for mixture in choices
    ]
    best = int(np.argmin([errors.errors[errors.best] for errors in left_out]))
    usual = len(choices) - 1
    misses = [np.mean((y - errors.predictions).reshape(len(y), -1) ** 2, axis=1) for errors in left_out]
    better = (misses[usual] - misses[best])[weight > 0]
    doubt = float(np.std(better)) / np.sqrt(better.size)
    chosen = best if float(np.mean(better)) > BEYOND_DOUBT * doubt else usual
    return choices[chosen], left_out[chosen]


@dataclass
class Auto(NoiseMethod):
    """Squared loss on a fixed mixture: groups of kernels alike, or what beats that beyond doubt; C by leave-one-out.

    With a filter, labels that are contradicted with confidence count in part, unless more than a third of all labels
    are contradicted: predictions like these are not to be trusted with it.
    """

    fit_intercept: bool
    filter: Confident | None = None
    words: str = ""

    def shares(self, noise: Noise) -> Array | None:
        if self.filter is None:
            return None
        trusted = noise.contradicted <= TRUSTED
        return self.filter.shares(noise) if trusted else np.ones(noise.suspects.size)

    def loss(self) -> Loss:
        return Squared()

    def tasks(
        self, tasks: list[Task], bank: Bank, noise: Noise, kernels: Sequence[Kernel] | None
    ) -> list[Task]:
        refuse_fixed_parts(tasks[0].norm, bank.m, "this method for wrong labels")
        mixture, left_out = dense_mixture(tasks, bank, kernels, self.fit_intercept)
        C = left_out.C
        self.words = f"squared loss on {mixture.name}, C = {C:.3g}, by leave-one-out"
        if self.filter is not None and noise.contradicted <= TRUSTED:
            self.words += f"; {self.filter.suspects_in_words(noise)}"
        elif self.filter is not None:
            self.words += (
                f"; all labels count alike, because predictions contradict {noise.contradicted:.0%} of them"
            )
        return [replace(task, norm=Fixed(mixture.weights), C=C) for task in tasks]

    def in_words(self, norm: object, noise: Noise) -> str:
        return self.words


@dataclass(frozen=True)
class Stochastic(NoiseMethod):
    """StPMKL: the hinge loss of the worst samples under a budget, given or from the noise rate."""

    budget: float | None
    confidence: float
    exact_set: bool

    def loss(self) -> Loss:
        return BudgetedHinge()

    def tasks(
        self, tasks: list[Task], bank: Bank, noise: Noise, kernels: Sequence[Kernel] | None
    ) -> list[Task]:
        if self.budget is not None:
            return [replace(task, loss=BudgetedHinge(self.budget)) for task in tasks]
        rate = min(noise.rate, 0.499)
        loss = BudgetedHinge.from_noise_rate(bank.n, rate, self.confidence, self.exact_set)
        factor = budget_from_noise_rate(bank.n, 0.0, self.confidence)[1]
        return [replace(task, loss=loss, C=factor * task.C) for task in tasks]


@dataclass(frozen=True)
class Corrected(NoiseMethod):
    """A loss whose expectation under noise is that of the clean labels."""

    of: str

    def loss(self) -> Loss:
        return CORRECTED[self.of]()

    def tasks(
        self, tasks: list[Task], bank: Bank, noise: Noise, kernels: Sequence[Kernel] | None
    ) -> list[Task]:
        return [replace(task, loss=self._loss_of(k, task, noise)) for k, task in enumerate(tasks)]

    def _loss_of(self, problem: int, task: Task, noise: Noise) -> Loss:
        rates = noise.class_rates
        if task.y.ndim == 2:
            raise ValueError(
                "method='corrected' corrects one class against the rest at a time: with more than two classes use "
                "multi_class='ovr'"
            )
        if rates.size == 2:
            pair = float(rates[1]), float(rates[0])
        else:  # one class against the rest: what leaves the others is shared out among all classes
            pair = float(rates[problem]), float(np.delete(rates, problem).mean() / (rates.size - 1))
        share = float(np.sum(task.weight * (task.y > 0)) / np.sum(task.weight))
        loss: Loss = CORRECTED[self.of](*_consistent(pair, share, noise.given))
        loss.check()
        return loss


def _consistent(pair: tuple[float, float], share: float, given: bool) -> tuple[float, float]:
    """Rates that the labels allow: at least ``negative_rate`` of them are positive, ``positive_rate`` negative.

    Otherwise the corrected loss has no minimum.  Given rates that contradict the labels are refused; estimated ones are
    cut, and so that the labels keep some information.
    """
    positive, negative = pair
    if not given:
        positive, negative = min(positive, 0.9 * (1.0 - share)), min(negative, 0.9 * share)
        return min(positive, 0.45), min(negative, 0.45)
    if negative >= share or positive >= 1.0 - share:
        raise ValueError(
            f"noise_rate contradicts the labels: with a share of {negative:g} of the negative class labelled "
            f"positive and {positive:g} of the positive class labelled negative, the share of positive labels "
            f"would lie between {negative:g} and {1.0 - positive:g}, but it is {share:.3g}"
        )
    return pair


class Ramp(NoiseMethod):
    """The hinge loss cut off at 1: samples beyond cost that much, wherever they are."""

    chooses = True

    def chosen(self, losses: Array, weight: Array, noise: Noise) -> Array:
        return (losses < 1.0).astype(float)

    def fine(self, C: float, left_out: float) -> float:
        return C * left_out  # a sample that the ramp leaves out costs its full height


class Trimmed(NoiseMethod):
    """The hinge loss of the best ``1 - rate`` of the samples."""

    chooses = True

    def chosen(self, losses: Array, weight: Array, noise: Noise) -> Array:
        order = np.argsort(losses, kind="stable")
        before = np.cumsum(weight[order]) - weight[order]
        share = np.zeros_like(weight)
        limit = (1.0 - noise.rate) * float(weight.sum())
        share[order] = (before < limit * (1.0 - 1e-12)).astype(float)
        return share
