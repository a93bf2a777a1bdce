"""Choosing C and norm by cross-validation, on one bank."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from .._estimating import TimeShares
from ..banks import Bank, Recentred, Rescaled
from ..exceptions import KernelWeaveConvergenceWarning
from ..kernels import resolve_kernels, take
from ..norms import make_norm
from ..problems import Point
from ._bind import Bound, bind
from ._plan import Plan
from ._tasks import Task, path_of
from ._types import Array, Codes, NormLike

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["SEARCH", "Chosen", "Search", "norm_plans", "refuse_centred_cosine"]

#: share of ``max_seconds`` for the search; the rest is for the fit with what was chosen
SEARCH = 0.75


@dataclass(frozen=True)
class _Tried:
    """One C on one fold: decision values of all samples, what the fit took, and where it ended, by task."""

    C: float
    values: Array
    facts: dict[str, float]
    points: list[Point]


@dataclass(frozen=True)
class Chosen:
    """What a search chose: the plan with its norm, C, the tasks to solve with them, and why."""

    plan: Plan
    C: float
    tasks: list[Task]
    score: float
    table: pd.DataFrame


@dataclass
class Search:
    """Paths over C for every plan on every fold: the same problem with its held-out samples at weight zero.

    Parameters
    ----------
    bound : Bound
        All samples.
    tasks : list of Task
        On all samples.
    plans : list of Plan
        What to try, one norm each.
    Cs : array
        Increasing.
    splits : list of (train, test)
    score : callable
        Of the decision values of held-out samples and their positions.
    stops : TimeShares
        One share per task, C, plan and fold.
    """

    bound: Bound
    tasks: list[Task]
    plans: list[Plan]
    Cs: Array
    splits: list[tuple[Codes, Codes]]
    score: Callable[[Array, Codes], float]
    stops: TimeShares
    rows: list[dict[str, object]] = field(default_factory=list)
    #: where each pair of plan and C ended, on the last fold that had it
    points: dict[tuple[int, float], list[Point]] = field(default_factory=dict)

    def run(self) -> pd.DataFrame:
        """Return a row per fit that was finished; an interrupt or the end of the time leaves what there is."""
        import pandas as pd

        with suppress(KeyboardInterrupt):  # the fit at hand had no point yet; those before it remain
            for fold, (_, test) in enumerate(self.splits):
                for place, tried in self._on_fold(fold):
                    key = {"choice": place, "norm": self.plans[place].norm.label, "C": tried.C, "fold": fold}
                    self.rows.append({**key, "score": self.score(tried.values[test], test), **tried.facts})
                    self.points[place, tried.C] = tried.points
                    if self.stops.used_up:
                        break
                if self.stops.used_up:
                    break
        if not self.rows:
            raise KeyboardInterrupt
        return pd.DataFrame(self.rows)

    def choose(self) -> Chosen:
        """Run, and choose the pair of norm and C with the largest mean score."""
        table = self.run()
        means = self._judged(table).groupby(["choice", "C"])["score"].mean()
        # ties go to the first norm and the smallest C, the most regularised
        place, C = best = means[means == means.max()].index[0]
        # cut short, there may be no time for more than a look at where the search ended
        starts = self.points[best] if self.stops.used_up else [None] * len(self.tasks)
        tasks = [
            replace(task, norm=self.plans[place].norm, C=float(C), start=start)
            for task, start in zip(self.tasks, starts, strict=True)
        ]
        return Chosen(self.plans[place], float(C), tasks, float(means.max()), table.drop(columns="choice"))

    def _judged(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return the part of the table to choose by: the complete folds where the search was cut short after one."""
        folds, pairs = len(self.splits), self.size
        complete = int((table.groupby("fold").size() == pairs).sum())
        if complete == folds:
            return table
        warnings.warn(
            f"the search was cut short after {len(table)} of {folds * pairs} fits, {complete} of {folds} folds: C and "
            "norm were chosen by what was known then",
            KernelWeaveConvergenceWarning,
            stacklevel=5,
        )
        return table[table["fold"] < complete] if complete else table

    @property
    def size(self) -> int:
        """Fits of a fold."""
        return len(self.plans) * len(self.Cs)

    def _on_fold(self, fold: int) -> Iterator[tuple[int, _Tried]]:
        """Follow the path of every plan on one fold; yield each C with the place of its plan."""
        train, _ = self.splits[fold]
        bank = self._fold_bank(train)
        in_fold = np.zeros(bank.n)
        in_fold[train] = 1.0
        for place, plan in enumerate(self.plans):
            tasks = [replace(task, weight=task.weight * in_fold, norm=plan.norm) for task in self.tasks]
            for tried in self._follow(tasks, bank, plan):
                yield place, tried

    def _fold_bank(self, train: Codes) -> Bank:
        """Return a bank of all samples of which everything that was learnt was learnt on the fold."""
        bank, training, plan = self.bound.bank, self.bound.training, self.plans[0].bank
        if training.kernels is not None:
            resolved = resolve_kernels(training.kernels, take(training.samples, train))
            if any(new is not old for new, old in zip(resolved, training.kernels, strict=True)):
                bank = bind(replace(training, kernels=resolved), plan).bank
        if plan.center:
            bank = Recentred(bank, train)
        if plan.normalize != "trace":
            return bank
        means = bank.diag()[:, train].mean(axis=1)
        # a kernel that vanishes on the fold stays at zero, as it does where it vanishes on all samples
        return Rescaled(bank, np.divide(1.0, means, out=np.zeros_like(means), where=means > 0))

    def _follow(self, tasks: list[Task], bank: Bank, plan: Plan) -> Iterator[_Tried]:
        """Yield the fits along the path; those that were interrupted do not count."""
        paths = [path_of(task, bank, plan, self.Cs, self.stops) for task in tasks]
        for steps in zip(*paths, strict=True):
            fits = [solution for _, _, solution in steps]
            if any(fit.status == "interrupted" for fit in fits):
                return
            values = [
                problem.bank.mix_product(fit.point.weights, fit.point.beta) + fit.certificate.intercept
                for _, problem, fit in steps
            ]
            yield _Tried(
                C=steps[0][0],
                values=values[0] if len(values) == 1 else np.stack(values, axis=1),
                facts={
                    "n_iter": max(fit.n_iter for fit in fits),
                    "passes": sum(fit.passes for fit in fits),
                    "relative_gap": max(fit.certificate.relative_gap for fit in fits),
                    "active_kernels": max(int(np.count_nonzero(fit.point.weights)) for fit in fits),
                },
                points=[Point(fit.point.beta, fit.point.weights) for fit in fits],
            )


def norm_plans(plan: Plan, norms: Sequence[NormLike] | None) -> list[Plan]:
    """Return the plan with every norm to try, each checked to fit the loss and the solver."""
    if norms is None:
        return [plan]
    made = [make_norm(norm) for norm in norms]
    if not made:
        raise ValueError("norms is empty: give at least one norm, or None for `norm` alone")
    return [plan.with_norm(norm) for norm in made]


def refuse_centred_cosine(plan: Plan, name: str) -> None:
    """Raise where folds could not share the bank."""
    if plan.bank.center and plan.bank.normalize == "cosine":
        raise ValueError(
            f"{name}CV cannot share a bank that is centred and cosine-normalised: use normalize='trace', or "
            f"GridSearchCV over {name}"
        )
