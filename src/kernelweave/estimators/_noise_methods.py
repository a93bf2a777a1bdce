"""Ways to live with wrong labels: each turns tasks with clean losses into what is to be solved.

A method is asked for its loss before any work, for its tasks when the noise is known, and, where it chooses samples,
for its choice after every fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..banks import Bank
from ..kernels import Kernel
from ..losses import BudgetedHinge, Hinge, Loss, Squared, budget_from_noise_rate
from ..losses.corrected import CorrectedLogistic, CorrectedSquared
from ..norms import Fixed
from ._mixtures import Mixture, kernel_groups, mixtures
from ._noise import TRUSTED
from ._structure import refuse_fixed_parts
from ._tasks import Task
from ._types import Array
from .ridge import LeaveOneOut, leave_one_out

__all__ = [
    "CORRECTED",
    "Auto",
    "Confident",
    "Corrected",
    "Noise",
    "NoiseMethod",
    "Ramp",
    "Stochastic",
    "Trimmed",
]

#: standard errors by which leave-one-out must prefer another mixture
BEYOND_DOUBT = 3.0
CORRECTED = {"logistic": CorrectedLogistic, "squared": CorrectedSquared}


@dataclass(frozen=True)
class Noise:
    """What is known of the labels when a method is asked for its tasks.

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
) -> tuple[Mixture, LeaveOneOut]:
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
