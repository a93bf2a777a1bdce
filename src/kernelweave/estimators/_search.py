"""Choosing C and norm by cross-validation, on one bank."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from .._estimating import TimeShares
from .._numerics.deadline import given_up
from ..banks import Bank
from ..exceptions import KernelWeaveConvergenceWarning
from ..norms import make_norm
from ..problems import MKLProblem, Point
from ..solvers import Solution
from ._bind import Bound, fold_bank
from ._inputs import Training
from ._plan import Plan
from ._structure import norm_of_kernels
from ._tasks import Task, path_of
from ._types import Array, Codes, NormLike

if TYPE_CHECKING:
    import pandas as pd
    from tqdm import tqdm

__all__ = [
    "SEARCH",
    "Chosen",
    "Search",
    "default_place",
    "norm_plans",
    "refuse_centred_cosine",
    "refuse_undefined_scores",
]

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
    """What a search chose: the plan, its place among those tried, C, the tasks to solve with them, and why."""

    plan: Plan
    place: int
    C: float
    tasks: list[Task]
    score: float
    table: pd.DataFrame
    #: positions of held-out samples and their decision values with the chosen pair, one pair of arrays per fold
    held_out: list[tuple[Codes, Array]]


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
    default : int
        Place of the plan that is kept unless another is ahead by more than a standard error.
    """

    bound: Bound
    tasks: list[Task]
    plans: list[Plan]
    Cs: Array
    splits: list[tuple[Codes, Codes]]
    score: Callable[[Array, Codes], float]
    stops: TimeShares
    #: place of the plan that is kept unless another is ahead by more than a standard error
    default: int = 0
    rows: list[dict[str, object]] = field(default_factory=list)
    #: where each pair of plan and C ended, on the last fold that had it
    points: dict[tuple[int, float], list[Point]] = field(default_factory=dict)
    #: what each pair said of the samples that it had not seen
    held_out: dict[tuple[int, float], list[tuple[Codes, Array]]] = field(default_factory=dict)

    def run(self) -> pd.DataFrame:
        """Return a row per fit that was finished; an interrupt or the end of the time leaves what there is."""
        import pandas as pd

        bar = self._progress_line()
        with suppress(KeyboardInterrupt), bar:  # the fit at hand had no point yet; those before it remain
            for fold, (_, test) in enumerate(self.splits):
                for place, tried in self._on_fold(fold):
                    key = {"choice": place, "norm": self.plans[place].norm.label, "C": tried.C, "fold": fold}
                    values = tried.values[test]
                    self.rows.append({**key, "score": self.score(values, test), **tried.facts})
                    self.held_out.setdefault((place, tried.C), []).append((test, values))
                    self.points[place, tried.C] = tried.points
                    bar.update()
                    if self.stops.used_up:
                        break
                if self.stops.used_up:
                    break
        if not self.rows or given_up():
            raise KeyboardInterrupt
        return pd.DataFrame(self.rows)

    def _progress_line(self) -> tqdm[None]:
        """Return a line that says how many fits are done and how long the rest will take."""
        from tqdm.auto import tqdm

        shape = "{desc}: {n_fmt} of {total_fmt} fits |{bar:24}| {elapsed}, {remaining} left"
        silent = self.plans[0].verbose != 1
        total = len(self.splits) * self.size
        return tqdm(total=total, desc="choosing C", disable=silent, leave=False, bar_format=shape)

    def choose(self) -> Chosen:
        """Run, and choose: of every norm the C with the largest mean score, and among norms the default in doubt.

        The largest of many means is too large by chance, and the more norms are tried the more so: the default is left
        only for a norm that is ahead of it by more than a standard error of the difference over the folds.
        """
        table = self.run()
        if not np.any(np.isfinite(table["score"])):
            raise ValueError(
                f"all {len(table)} scores of held-out samples are undefined (not finite), and nothing can be chosen by "
                "them: take another scoring, or other folds"
            )
        judged = self._judged(table)
        scores = judged.pivot_table(index="fold", columns=["choice", "C"], values="score")
        means = scores.mean()
        # ties go to the first norm and the smallest C, the most regularised
        best = means[means == means.max()].index[0]
        if best[0] != self.default and self.default in means.index.get_level_values(0):
            own = means[self.default]
            kept = (self.default, own[own == own.max()].index[0])
            if not _clearly_ahead(scores[best] - scores[kept]):
                best = kept
        place, C = best
        # cut short, there may be no time for more than a look at where the search ended
        starts = self.points[best] if self.stops.used_up else [None] * len(self.tasks)
        tasks = [
            replace(task, norm=self.plans[place].norm, C=float(C), start=start)
            for task, start in zip(self.tasks, starts, strict=True)
        ]
        return Chosen(
            self.plans[place], int(place), float(C), tasks, float(means[best]), table.drop(columns="choice"),
            self.held_out[best],
        )  # fmt: skip

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
        bank = fold_bank(self.bound, self.plans[0].bank, train)
        in_fold = np.zeros(bank.n)
        in_fold[train] = 1.0
        for place, plan in enumerate(self.plans):
            tasks = [replace(task, weight=task.weight * in_fold, norm=plan.norm) for task in self.tasks]
            for tried in self._follow(tasks, bank, place):
                yield place, tried

    def _follow(self, tasks: list[Task], bank: Bank, place: int) -> Iterator[_Tried]:
        """Yield the fits along the path; those that were interrupted do not count."""
        # the weights of the fold before: those of this one are near
        known = [
            {C: points[number].weights for (plan, C), points in self.points.items() if plan == place}
            for number in range(len(tasks))
        ]
        # one line for all fits rather than one for each
        plan = self.plans[place]
        plan = replace(plan, verbose=0) if plan.verbose == 1 else plan
        paths = [
            path_of(task, bank, plan, self.Cs, self.stops, weights)
            for task, weights in zip(tasks, known, strict=True)
        ]
        for steps in zip(*paths, strict=True):
            fits = [solution for _, _, solution in steps]
            if any(fit.status == "interrupted" for fit in fits):
                return
            values = [_values(problem, fit) for _, problem, fit in steps]
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


def _clearly_ahead(lead: pd.Series[float]) -> bool:
    """Whether a lead over the folds is larger than its standard error; a single fold cannot tell."""
    known = lead.dropna()
    if len(known) < 2:
        return False
    return bool(known.mean() > known.std(ddof=1) / np.sqrt(len(known)))


def _values(problem: MKLProblem, fit: Solution) -> Array:
    """Decision values of all samples, held out or not."""
    point = fit.point
    known = point.decision is not None and point.blocks is None
    decision = point.decision if known else problem.bank.mix_product(point.weights, point.beta)
    return np.asarray(decision + fit.certificate.intercept)


def default_place(norm: NormLike, plans: list[Plan]) -> int:
    """Return the place of the estimator's own norm among those tried; the first where it is not there."""
    label = make_norm(norm).label
    return next((place for place, plan in enumerate(plans) if plan.norm.label == label), 0)


def norm_plans(plan: Plan, norms: Sequence[NormLike] | None, training: Training) -> list[Plan]:
    """Return the plan with every norm to try, each bound to the kernels and checked to fit the loss and the solver."""
    if norms is None:
        return [plan]
    made = [make_norm(norm) for norm in norms]
    if not made:
        raise ValueError("norms is empty: give at least one norm, or None for `norm` alone")
    return [plan.with_norm(norm_of_kernels(norm, training)) for norm in made]


def refuse_undefined_scores(
    score: Callable[[Array, Codes], float],
    tasks: Sequence[Task],
    splits: Sequence[tuple[Codes, Codes]],
    name: str,
    instead: str | None = None,
) -> None:
    """Raise where no fold has a score, before anything is fitted.

    Parameters
    ----------
    score : callable
        As that of ``Search``.  It is tried with the targets of other samples in the place of predictions.
    tasks, splits :
        As those of ``Search``.
    name : str
        Of the score.
    instead : str, optional
        A ``scoring`` that single samples have, where there is a choice.
    """
    columns = [np.roll(task.y, 1, axis=0) for task in tasks]
    values = columns[0] if len(columns) == 1 else np.stack(columns, axis=1)
    failed: Exception | None = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of undefined scores, which are told in a sentence
        for _, test in splits:
            try:
                if np.isfinite(score(values[test], test)):
                    return
            except Exception as error:  # whatever a scorer of the user's may raise
                failed = error
    sizes = np.unique([test.size for _, test in splits])
    samples = "one sample" if sizes[-1] == 1 else f"{sizes[0]} to {sizes[-1]} samples"
    why = "it is not a number there" if failed is None else f"{type(failed).__name__}: {failed}"
    raise ValueError(
        f"{name} is undefined on every fold ({len(splits)} folds of {samples}; {why}): take folds of more samples, "
        "such as cv=5"
        + ("" if instead is None else f", or a score that every sample has, such as scoring={instead!r}")
    ) from failed


def refuse_centred_cosine(plan: Plan, name: str) -> None:
    """Raise where folds could not share the bank."""
    if plan.bank.center and plan.bank.normalize == "cosine":
        raise ValueError(
            f"{name}CV cannot share a bank that is centred and cosine-normalised: use normalize='trace', or "
            f"GridSearchCV over {name}"
        )
