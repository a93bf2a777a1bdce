"""Choosing C and norm by cross-validation, on one bank."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import brentq
from scipy.special import logsumexp, softmax
from sklearn.model_selection import BaseCrossValidator, check_cv

from .._estimating import TimeShares, clearly_ahead, end_of_grid, undecided
from .._numerics.stopping import given_up
from .._typing import Array
from ..banks import Bank
from ..exceptions import KernelWeaveConvergenceWarning, warn_at_caller
from ..kernels import view_of
from ..norms import make_norm
from ..problems import MKLProblem, Point
from ..solvers import Solution
from ._bind import Bound, fold_bank
from ._inputs import Training
from ._parameters import Codes, NormLike
from ._plan import Plan, Task, norm_of_kernels, path_of

if TYPE_CHECKING:
    import pandas as pd
    from tqdm import tqdm


#: what ``norm="auto"`` chooses among (docs/results/regression_norms.md)
AUTO_NORMS: Sequence[NormLike] = ("l1", 4 / 3, 2, "uniform")
#: values and places of held-out samples -> named scores, of which "score" is shown
Measures = Callable[[Array, Codes], dict[str, float]]
#: share of ``max_seconds`` for the search; the rest is for the fit with what was chosen
SEARCH = 0.75
#: mean scores, and then mean losses, that differ by no more than this are equal
EQUAL = 1e-12
#: relative gap up to which the weights of a fit on all samples, beside the chosen one, are shown
ROUGH = 1e-2


def folds_of(
    cv: int | BaseCrossValidator | Iterable[tuple[Codes, Codes]] | None,
    y: Array | Codes,
    classify: bool,
    seed: int | None,
    groups: object,
) -> list[tuple[Codes, Codes]]:
    """Return training and held-out samples of the folds; where ``cv`` is a number or None they are shuffled.

    Rows are often sorted, by the target or by what predicts it: folds of neighbours would ask a model of one part of
    the range about another.  Without a seed the shuffle is always the same one.
    """
    splitter = check_cv(cv, y, classifier=classify)
    if cv is None or isinstance(cv, Integral):
        splitter = type(splitter)(splitter.n_splits, shuffle=True, random_state=0 if seed is None else seed)
    # folds of a regression do not depend on the targets
    return list(splitter.split(np.zeros((len(y), 1)), y if classify else None, groups))


@dataclass(frozen=True)
class _Tried:
    """One C on one fold: decision values of all samples, what the fit took, and where it ended, by task."""

    C: float
    values: Array
    facts: dict[str, float]
    points: list[Point]


@dataclass(frozen=True)
class SearchResult:
    """Result of a search: the plan, its place among those tried, C, the tasks to solve with them, and why."""

    plan: Plan
    place: int
    C: float
    tasks: list[Task]
    score: float
    table: pd.DataFrame
    #: positions of held-out samples and their decision values with the chosen pair, one pair of arrays per fold
    held_out: list[tuple[Codes, Array]]
    #: the pairs of norm and C that the scores do not tell from the chosen one, and that one: ``choice``, ``norm``,
    #: ``C``, ``score`` (and ``squared_error``, where that decides), ``tie``
    ties: pd.DataFrame
    #: score of every C on every fold, with the chosen norm
    scores: Array
    #: whether these are squared errors, with a minus before them
    errors: bool


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
        Columns of the table, ``score`` among them, of the decision values of held-out samples and their positions.
        Where ``squared_error`` is one of them, the least one decides, else the largest score.
    loss : callable
        Of what a pair of norm and C said of held-out samples, one pair of positions and decision values per fold: of
        pairs whose mean scores are equal the one of the smallest loss is chosen.
    stops : TimeShares
        One share per task, C, plan and fold.
    default : int or None
        Place of the plan that is kept unless another is ahead by more than a standard error; None where the largest
        mean score decides.
    """

    bound: Bound
    tasks: list[Task]
    plans: list[Plan]
    Cs: Array
    splits: list[tuple[Codes, Codes]]
    score: Measures
    loss: Callable[[list[tuple[Codes, Array]]], float]
    stops: TimeShares
    default: int | None = 0
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
                    began = time.perf_counter()
                    row = {**key, **self.score(values, test), **tried.facts}
                    self.rows.append({**row, "score_time": time.perf_counter() - began})
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

    def choose(self) -> SearchResult:
        """Run, and choose: of every norm the C with the best mean score, and among norms the default in doubt.

        The largest of many means is too large by chance, and the more norms are tried the more so: where there is a
        default, it is left only for a norm that is ahead of it by more than a standard error of the difference over
        the folds.  Pairs of equal mean score are told apart by their loss, and where that is equal the smallest C, the
        most regularised, is taken.
        """
        import pandas as pd

        table = self.run()
        judged = self._judged(table)
        errors = "squared_error" in judged
        by = "squared_error" if errors else "score"
        wide = {
            name: judged.pivot_table(index="fold", columns=["choice", "C"], values=name)
            for name in {by, "score"}
        }
        scores = -wide[by] if errors else wide[by]
        if scores.empty:
            raise ValueError(
                f"all {len(table)} scores of held-out samples are undefined (not finite), and nothing can be chosen by "
                "them: take another scoring, or other folds"
            )
        means, folds = scores.mean(), judged["fold"].nunique()
        best = self._best(means, folds)
        if self.default is not None and best[0] != self.default and self.default in scores.columns.levels[0]:
            kept = self._best(means[[self.default]], folds)
            if not clearly_ahead((scores[best] - scores[kept]).to_numpy()):
                best = kept
        place, C = best
        leads = {pair: (scores[best] - scores[pair]).dropna().to_numpy() for pair in scores.columns}
        equal = {pair for pair, lead in leads.items() if lead.size and abs(lead.mean()) <= EQUAL}
        near = {pair for pair, lead in leads.items() if lead.size > 1 and not clearly_ahead(lead)}
        kinds = {
            **dict.fromkeys(near, "within a standard error"),
            **dict.fromkeys(equal, "equal"),
            best: "chosen",
        }
        ties = pd.DataFrame(
            [
                {
                    "choice": pair[0],
                    "norm": self.plans[pair[0]].norm.label,
                    "C": float(pair[1]),
                    **{name: float(table.mean().get(pair, np.nan)) for name, table in sorted(wide.items())},
                    "tie": kinds[pair],
                }
                for pair in sorted(kinds)
            ]
        )
        # cut short, there may be no time for more than a look at where the search ended
        starts = self.points[best] if self.stops.used_up else [None] * len(self.tasks)
        tasks = [
            replace(task, norm=self.plans[place].norm, C=float(C), start=start)
            for task, start in zip(self.tasks, starts, strict=True)
        ]
        return SearchResult(
            self.plans[place], int(place), float(C), tasks, float(wide["score"].mean().get(best, np.nan)),
            table.drop(columns="choice"), self.held_out[best], ties, scores[place].reindex(columns=self.Cs).to_numpy(),
            errors,
        )  # fmt: skip

    def _best(self, means: pd.Series[float], folds: int) -> tuple[int, float]:
        """Return the pair of plan and C with the largest mean score; equal ones by their loss, then by C."""
        largest = means.max()
        tied = means.index[means >= largest - EQUAL * max(1.0, abs(largest))].tolist()
        if len(tied) == 1:
            return tied[0]
        losses = np.array([self.loss(self.held_out[pair][:folds]) for pair in tied])
        losses = np.where(np.isfinite(losses), losses, np.inf)
        least = [pair for pair, loss in zip(tied, losses, strict=True) if loss <= np.min(losses) + EQUAL]
        return min(least, key=lambda pair: (pair[1], pair[0]))

    def weights_of_ties(self, chosen: SearchResult, weights: Array) -> Array | None:
        """Return the kernel weights of fits on all samples at the tied pairs, as shares, ``(ties, m)``.

        ``weights`` are those of the fit at the chosen pair, ``(m,)`` or ``(tasks, m)``; where problems have weights of
        their own, their means are returned.  None where the time is up, or a fit was interrupted or is too rough.
        """
        bank, ties = self.bound.bank, chosen.ties
        rows = np.empty((len(ties), bank.m))
        rows[ties["tie"] == "chosen"] = _shares(np.atleast_2d(weights))
        for place in ties["choice"].unique():
            plan = replace(self.plans[place], verbose=0)
            others = ties[(ties["choice"] == place) & (ties["tie"] != "chosen")]
            Cs = others["C"].to_numpy()
            if not Cs.size:
                continue
            if plan.norm.fixed or bank.m == 1:  # nothing is learnt: the same on every fold
                points = [self.points[place, C] for C in Cs]
                each = np.array([[point.weights for point in at] for at in points])
            else:
                if self.stops.used_up:
                    return None
                stops = TimeShares(plan.stop, len(Cs) * len(self.tasks))
                paths = []
                for number, task in enumerate(self.tasks):
                    known = {C: self.points[place, C][number].weights for C in Cs}
                    path = path_of(replace(task, norm=plan.norm), bank, plan, Cs, stops, known)
                    solutions = [solution for _, _, solution in path]
                    if any(
                        one.status == "interrupted"
                        or not one.certificate.relative_gap <= max(ROUGH, plan.stop.tol)
                        for one in solutions
                    ):
                        return None
                    paths.append([one.point.weights for one in solutions])
                each = np.array(paths).transpose(1, 0, 2)
            rows[others.index] = [_shares(weights) for weights in each]
        return rows

    def findings(
        self, chosen: SearchResult, weights: Array | None
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return what is to be said of the choice, and of it what is to be warned of; ``weights``: of the ties."""
        said: tuple[str, ...] = ()
        if weights is not None:
            kernels, names = self.bound.training.kernels, self.bound.training.names
            views = np.array([str(view_of(kernel)) for kernel in kernels] if kernels else names, dtype=object)
            different = list(dict.fromkeys(views.tolist()))
            shares = np.stack([weights[:, views == view].sum(axis=1) for view in different], axis=1)
            ties = chosen.ties
            sentence = undecided(
                ties["C"].to_numpy(), ties["norm"].tolist(), self.size,
                ties["squared_error" if chosen.errors else "score"].to_numpy(),
                int(np.argmax(ties["tie"] == "chosen")), shares, different, chosen.errors,
            )  # fmt: skip
            said += () if sentence is None else (sentence,)
        end = end_of_grid(chosen.C, self.Cs, chosen.scores, errors=chosen.errors)
        if end is None:
            return said, ()
        return (*said, end[0]), (end[0],) if end[1] else ()

    def _judged(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return the part of the table to choose by: the complete folds where the search was cut short after one."""
        folds, pairs = len(self.splits), self.size
        complete = int((table.groupby("fold").size() == pairs).sum())
        if complete == folds:
            return table
        warn_at_caller(
            f"the search was cut short after {len(table)} of {folds * pairs} fits, {complete} of {folds} folds: C and "
            "norm were chosen by what was known then",
            KernelWeaveConvergenceWarning,
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
                    "fit_time": sum(fit.seconds for fit in fits),
                },
                points=[Point(fit.point.beta, fit.point.weights) for fit in fits],
            )


def scaled_log_loss(held_out: Sequence[tuple[Codes, Array]]) -> float:
    """Return the mean over folds of the log loss of decision values, times the scale that is best for all together.

    Decision values of a margin loss have no unit: the scale ``s > 0`` that minimises the mean over all samples of
    ``log(1 + exp(-s y f))``, or of the cross-entropy of the softmax of ``s f``, gives them one.

    Parameters
    ----------
    held_out : sequence of (codes, values)
        Of every fold: the classes as numbers, and decision values of shape (n,) of two classes or (n, k).

    Examples
    --------
    >>> right, wrong = (np.array([0, 1]), np.array([-1.0, 1.0])), (np.array([0, 1]), np.array([1.0, -1.0]))
    >>> round(scaled_log_loss([right]), 6), round(scaled_log_loss([wrong]), 6)
    (0.0, 0.693147)
    """
    # what the other classes have above the own one: the loss of a sample is log sum exp(s * above)
    above = []
    for codes, values in held_out:
        whole = np.stack([np.zeros(len(values)), values], axis=1) if values.ndim == 1 else values
        above.append(whole - whole[np.arange(len(codes)), codes][:, None])
    pooled = np.concatenate(above)
    size = float(np.max(np.abs(pooled)))
    if not 0.0 < size < np.inf:
        return float(np.log(pooled.shape[1])) if size == 0.0 else np.inf
    unit = pooled / size

    def slope(scale: float) -> float:
        return float(np.mean(np.sum(softmax(scale * unit, axis=1) * unit, axis=1)))

    best, far = 0.0, 1.0
    if slope(0.0) < 0.0:
        while slope(far) < 0.0 and far < 1e9:  # no scale is too large where all are on the right side
            far *= 8.0
        best = far if slope(far) <= 0.0 else float(brentq(slope, 0.0, far, xtol=1e-12, rtol=1e-12))
    return float(np.mean([np.mean(logsumexp(best / size * one, axis=1)) for one in above]))


def _shares(weights: Array) -> Array:
    """Mean over problems, ``(tasks, m)``, of the weights as shares of their sum."""
    totals = weights.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(weights, totals, out=np.zeros_like(weights), where=totals > 0).mean(axis=0))


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


def norm_plans(
    plan: Plan, norms: Sequence[NormLike] | None, training: Training, fitting: bool = False
) -> list[Plan]:
    """Return the plan with every norm to try, each bound to the kernels and checked to fit the loss and the solver.

    With ``fitting`` those that do not fit are left out, and all but the plan's own where there is nothing to learn.
    """
    if norms is None or (fitting and plan.norm.learnt(len(training.names)).size < 2):
        return [plan]
    made = [make_norm(norm) for norm in norms]
    if not made:
        raise ValueError("norms is empty: give at least one norm, or None for `norm` alone")
    plans = []
    for norm in made:
        bound = norm_of_kernels(norm, training)
        try:
            plans.append(plan.with_norm(bound))
        except ValueError:
            if not fitting:
                raise
    return plans or [plan]


def refuse_undefined_scores(
    score: Measures,
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
                if np.isfinite(score(values[test], test)["score"]):
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
