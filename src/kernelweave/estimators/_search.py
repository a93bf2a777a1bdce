"""Choosing C and norm by cross-validation, on one bank."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from sklearn.model_selection import check_cv

from .._estimating import TimeShares, clearly_ahead, end_of_grid, undecided
from .._numerics.stopping import given_up
from .._typing import Array
from ..banks.memory import parse_bytes, refuse
from ..banks.pairs import PairBank
from ..evidence.grids import GridKernel
from ..exceptions import KernelWeaveConvergenceWarning, warn_at_caller
from ..kernels import view_of
from ..norms import make_norm
from ..norms.fixed import TwoStep
from ..problems import Point, left_out_values
from ..solvers import Stop
from ..views import Pairs
from ._bind import Bound, fold_bank
from ._inputs import Training
from ._parameters import Codes, FoldsLike, NormLike, Splits
from ._plan import Plan, Task, norm_of_kernels, path_of

if TYPE_CHECKING:
    import pandas as pd


#: what ``norm="auto"`` chooses among (docs/results/regression_norms.md)
AUTO_NORMS: Sequence[NormLike] = ("l1", 4 / 3, 2, "uniform")
#: values and places of held-out samples -> named scores, of which "score" is shown
Measures = Callable[[Array, Codes], dict[str, float]]
#: share of ``max_seconds`` for the search; the rest is for the fit with what was chosen
SEARCH = 0.75
#: tolerance of the search over that of the fit with what was chosen, and the coarsest that is made of a finer one
COARSER, COARSEST = 10.0, 1e-2
#: folds after which a value of C may be hopeless, and how many standard errors it is behind then
RACED, BEHIND = 3, 2.0
#: mean scores, and then mean losses, that differ by no more than this are equal
EQUAL = 1e-12
#: relative gap up to which the weights of a fit on all samples, beside the chosen one, are shown
ROUGH = 1e-2


def folds_of(
    cv: FoldsLike,
    y: Array | Codes,
    classify: bool,
    seed: int | None,
    groups: object,
    samples: object = None,
    one_by_one: bool = False,
) -> Splits:
    """Return training and held-out samples of the folds; where ``cv`` is a number or None they are shuffled.

    Rows are often sorted, by the target or by what predicts it: folds of neighbours would ask a model of one part of
    the range about another.  Without a seed the shuffle is always the same one.  ``"loo"`` is one fold of all samples,
    each of which is left out by itself, where there is a formula for that (``one_by_one``).
    """
    if isinstance(cv, str):
        if cv != "loo" or not one_by_one:
            known = "a splitter, folds or 'loo'" if one_by_one else "a splitter or folds"
            raise ValueError(f"cv must be a number, {known}, got {cv!r}")
        if groups is not None:
            raise ValueError("groups are for folds: with cv='loo' samples are left out one by one")
        return [(np.arange(len(y)), np.arange(len(y)))]
    splitter = check_cv(cv, y, classifier=classify)
    if cv is None or isinstance(cv, Integral):
        splitter = type(splitter)(splitter.n_splits, shuffle=True, random_state=0 if seed is None else seed)
    # folds of a regression do not depend on the targets, and those of pairs on who is in them
    X = samples if isinstance(samples, Pairs) else np.zeros((len(y), 1))
    return list(splitter.split(X, y if classify else None, groups))


def refuse_left_out(plan: Plan, task: Task, bound: Bound) -> None:
    """Raise where samples cannot be left out one by one of a single solution."""
    bank, loss = bound.bank, task.loss
    why = None
    if loss.joint or loss.coupled or loss.dual_budget(task.y, np.ones(task.y.shape)) is not None:
        why = f"a loss that is a sum over the samples, which {loss!r} is not"
    elif bank.on_device or bank.streams or bank.cluster_cost is not None or bank.by_products:
        why = "the kernel matrix of all samples in memory"
    if why is not None:
        raise ValueError(f"cv='loo' needs {why}: take folds, such as cv=5")
    needed, budget = 3 * 8 * bank.n**2, parse_bytes(plan.bank.memory_budget)
    if needed > budget:
        raise refuse(f"leaving out each of {bank.n} samples", needed, budget, ["folds, such as cv=5"])


def shares_of_search(stop: Stop, problems: int) -> TimeShares:
    """Deal out the seconds of a search, whose fits are coarser than the last one has to be."""
    tol = max(stop.tol, min(COARSER * stop.tol, COARSEST))
    return TimeShares(replace(stop, tol=tol), problems, SEARCH)


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
    #: ``C``, ``score`` (and the error, where that decides), ``tie``
    ties: pd.DataFrame
    #: score of every C on every fold, with the chosen norm
    scores: Array
    #: name of the errors that these are, with a minus before them; None where they are scores
    error: str | None


@dataclass
class Search:
    """Paths over C for every plan on every fold: the same problem with its held-out samples at weight zero."""

    #: all samples, and the tasks on them
    bound: Bound
    tasks: list[Task]
    #: what to try, one norm each
    plans: list[Plan]
    #: increasing
    Cs: Array
    splits: Splits
    #: where ``error`` is among these scores of held-out samples the least one decides, else the largest score
    score: Measures
    #: of positions and decision values of held-out samples by fold: it decides where mean scores are equal
    loss: Callable[[list[tuple[Codes, Array]]], float]
    #: one share per task, C, plan and fold
    stops: TimeShares
    #: place of the plan that is kept unless another is clearly ahead; None where the largest mean score decides
    default: int | None = 0
    #: name of the error, which a score of the user's takes the place of
    error: str = "squared_error"
    #: whether ``score`` takes the decision values of all samples
    sees_all: bool = False
    #: whether all samples are in the only fold, and each is left out of its solutions by itself
    one_by_one: bool = False
    rows: list[dict[str, Any]] = field(default_factory=list)
    #: where each pair of plan and C ended, on the last fold that had it
    points: dict[tuple[int, float], list[Point]] = field(default_factory=dict)
    #: what each pair said of the samples that it had not seen
    held_out: dict[tuple[int, float], list[tuple[Codes, Array]]] = field(default_factory=dict)
    #: pairs that are left out of further folds
    dropped: set[tuple[int, float]] = field(default_factory=set)

    def run(self) -> pd.DataFrame:
        """Return a row per fit that was finished; an interrupt or the end of the time leaves what there is."""
        import pandas as pd
        from tqdm.auto import tqdm

        shape = "{desc}: {n_fmt} of {total_fmt} fits |{bar:24}| {elapsed}, {remaining} left"
        silent, total = self.plans[0].verbose != 1, len(self.splits) * self.size
        bar = tqdm(total=total, desc="choosing C", disable=silent, leave=False, bar_format=shape)
        with suppress(KeyboardInterrupt), bar:  # the fit at hand had no point yet; those before it remain
            for fold, (train, test) in enumerate(self.splits):
                if fold >= RACED:
                    self._drop_hopeless()
                for place, C in sorted(self.dropped):
                    nothing = dict.fromkeys(
                        ("n_iter", "passes", "active_kernels", "fit_time", "score_time"), 0
                    )
                    self.rows.append({**self._key(place, C, fold), **nothing, "dropped": True})
                    self.stops.problems -= len(self.tasks)
                    bar.update()
                for place, C, values, facts, points in self._fits_on_fold(train):
                    began = time.perf_counter()
                    row = {
                        **self._key(place, C, fold),
                        **self.score(values if self.sees_all else values[test], test),
                        **facts,
                    }
                    self.rows.append({**row, "score_time": time.perf_counter() - began, "dropped": False})
                    self.held_out.setdefault((place, C), []).append((test, values[test]))
                    self.points[place, C] = points
                    bar.update()
                    if self.stops.used_up:
                        break
                if self.stops.used_up:
                    break
        if not self.rows or given_up():
            raise KeyboardInterrupt
        return pd.DataFrame(self.rows)

    def _key(self, place: int, C: float, fold: int) -> dict[str, Any]:
        return {"choice": place, "norm": self.plans[place].norm.label, "C": C, "fold": fold}

    def _drop_hopeless(self) -> None:
        """Leave out pairs that are so far behind the best C of their norm that no fold to come should bring them back.

        Behind by two standard errors of the lead over the folds so far, which few folds may happen to agree about: the
        median of these errors counts as well, and that of the best score itself.
        """
        by, sign = (self.error, -1.0) if self.error in self.rows[0] else ("score", 1.0)
        known: dict[tuple[int, float], list[float]] = {}
        for row in self.rows:
            known.setdefault((row["choice"], row["C"]), []).append(sign * row.get(by, np.nan))
        for place in range(len(self.plans)):
            pairs = [pair for pair in known if pair[0] == place and pair not in self.dropped]
            if len(pairs) < 2:
                continue
            scores = np.array([known[pair] for pair in pairs]).T
            scores = scores[np.all(np.isfinite(scores), axis=1)]
            if scores.shape[0] < RACED:
                continue
            best = scores[:, [int(np.argmax(scores.mean(axis=0)))]]
            spread = np.std(np.hstack([best - scores, best]), axis=0, ddof=1) / np.sqrt(scores.shape[0])
            noise = np.maximum(spread[:-1], max(float(np.median(spread[:-1])), float(spread[-1])))
            behind = (best - scores).mean(axis=0) > np.maximum(BEHIND * noise, EQUAL)
            self.dropped |= {pair for pair, hopeless in zip(pairs, behind, strict=True) if hopeless}

    def _fits_on_fold(
        self, train: Codes
    ) -> Iterator[tuple[int, float, Array, dict[str, float], list[Point]]]:
        """Follow the path of every plan on one fold.

        Yield the place of the plan, C, decision values of all samples, what the fit took, and where it ended, by task.
        """
        bank = fold_bank(self.bound, self.plans[0].bank, train)
        in_fold = np.zeros(bank.n)
        in_fold[train] = 1.0
        for place, plan in enumerate(self.plans):
            # one line for all fits rather than one for each
            quiet = replace(plan, verbose=0) if plan.verbose == 1 else plan
            paths = []
            for number, task in enumerate(self.tasks):
                own = replace(task, weight=task.weight * in_fold, norm=plan.norm)
                # the weights of the fold before: those of this one are near
                known = {C: points[number].weights for (at, C), points in self.points.items() if at == place}
                Cs = np.array([C for C in self.Cs if (place, C) not in self.dropped])
                paths.append(path_of(own, bank, quiet, Cs, self.stops, known))
            for steps in zip(*paths, strict=True):
                fits = [solution for _, _, solution in steps]
                problem = steps[0][1]
                if any(fit.status == "interrupted" for fit in fits):  # does not count
                    break
                values = []
                for fit in fits:
                    decision = fit.point.decision
                    if decision is None or fit.point.blocks is not None:
                        decision = bank.mix_product(fit.point.weights, fit.point.beta)
                    known_values = np.asarray(decision + fit.certificate.intercept)
                    left = (
                        left_out_values(problem, fit.point, known_values) if self.one_by_one else known_values
                    )
                    values.append(left)
                facts = {
                    "n_iter": max(fit.n_iter for fit in fits),
                    "passes": sum(fit.passes for fit in fits),
                    "relative_gap": max(fit.certificate.relative_gap for fit in fits),
                    "active_kernels": max(int(np.count_nonzero(fit.point.weights)) for fit in fits),
                    "fit_time": sum(fit.seconds for fit in fits),
                }
                points = [Point(fit.point.beta, fit.point.weights) for fit in fits]
                whole = values[0] if len(values) == 1 else np.stack(values, axis=1)
                whole = problem.loss.class_scores(whole, problem.loss.thresholds(problem.y, whole, problem.c))
                yield place, steps[0][0], whole, facts, points

    def choose(self) -> SearchResult:
        """Run, and choose: of every norm the C with the best mean score, and among norms the default in doubt.

        The largest of many means is too large by chance, the more so the more norms are tried: a default is left only
        for a norm that is ahead by more than a standard error of the difference over the folds.  Of pairs of equal
        mean score the one of the least loss is taken, and where that is equal the smallest C, the most regularised.
        """
        import pandas as pd

        table = counted = self.run()
        complete = int((table.groupby("fold").size() == self.size).sum())
        if complete < len(self.splits):
            warn_at_caller(
                f"the search was cut short after {np.count_nonzero(~table['dropped'])} of "
                f"{len(self.splits) * self.size} fits, {complete} of {len(self.splits)} folds: C and norm were chosen "
                "by what was known then",
                KernelWeaveConvergenceWarning,
            )
            counted = table[table["fold"] < complete] if complete else table
        errors = self.error in counted
        by = self.error if errors else "score"
        wide = {
            name: counted.pivot_table(index="fold", columns=["choice", "C"], values=name)
            for name in {by, "score"}
        }
        scores = -wide[by] if errors else wide[by]
        if scores.empty:
            raise ValueError(
                f"all {len(table)} scores of held-out samples are undefined (not finite), and nothing can be chosen by "
                "them: take another scoring, or other folds"
            )
        live = [pair for pair in scores.columns if pair not in self.dropped]
        means, folds = scores[live].mean(), counted["fold"].nunique()
        best = self._best(means, folds)
        if self.default is not None and best[0] != self.default and self.default in scores.columns.levels[0]:
            kept = self._best(means[[self.default]], folds)
            if not clearly_ahead((scores[best] - scores[kept]).to_numpy()):
                best = kept
        place, C = best
        leads = {pair: (scores[best] - scores[pair]).dropna().to_numpy() for pair in live}
        equal = {pair for pair, lead in leads.items() if lead.size and abs(lead.mean()) <= EQUAL}
        near = {pair for pair, lead in leads.items() if lead.size > 1 and not clearly_ahead(lead)}
        kinds = (
            dict.fromkeys(near, "within a standard error") | dict.fromkeys(equal, "equal") | {best: "chosen"}
        )
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
        # cut short, there may be no time for more than the point where the search ended; one by one, it is near
        ended = self.one_by_one or self.stops.used_up
        starts = self.points[best] if ended else [None] * len(self.tasks)
        tasks = [
            replace(task, norm=self.plans[place].norm, C=float(C), start=start)
            for task, start in zip(self.tasks, starts, strict=True)
        ]
        return SearchResult(
            self.plans[place], int(place), float(C), tasks, float(wide["score"].mean().get(best, np.nan)),
            table.drop(columns="choice"), self.held_out[best], ties, scores[place].reindex(columns=self.Cs).to_numpy(),
            self.error if errors else None,
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
        rows[ties["tie"] == "chosen"] = mean_shares(np.atleast_2d(weights))
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
            rows[others.index] = [mean_shares(weights) for weights in each]
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
                ties[chosen.error or "score"].to_numpy(),
                int(np.argmax(ties["tie"] == "chosen")), shares, different, chosen.error,
            )  # fmt: skip
            said += () if sentence is None else (sentence,)
        end = end_of_grid(chosen.C, self.Cs, chosen.scores, error=chosen.error)
        if end is None:
            return said, ()
        return (*said, end[0]), (end[0],) if end[1] else ()

    @property
    def size(self) -> int:
        """Fits of a fold."""
        return len(self.plans) * len(self.Cs)


def mean_shares(weights: Array) -> Array:
    """Mean over problems, ``(tasks, m)``, of the weights as shares of their sum."""
    totals = weights.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(weights, totals, out=np.zeros_like(weights), where=totals > 0).mean(axis=0))


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


def two_step_plan(plan: Plan, bound: Bound, task: Task, Cs: Array, splits: Splits) -> Plan | None:
    """Return the plan with weights of two-step ridge regression, where kernels of pairs have identity on both sides.

    The kernel is ``(A + sigma I) (x) (B + tau I)``, A and B the mean kernels of both sides.  On a whole grid under the
    squared loss sigma and tau are those of the least error in what the folds leave out, by closed forms; else .1.
    """
    bank = bound.bank
    if not isinstance(bank, PairBank) or bank.storage.symmetry:
        return None
    store, kernels = bank.storage, cast(Any, bound.training.kernels)
    sides: list[Array] = []
    shares: list[Array] = []
    for k, (stack, objects) in enumerate(((store.left, store.at.rows), (store.right, store.at.cols))):
        family = {store.terms[t, k]: (one.left, one.right)[k].family for t, one in enumerate(kernels)}
        same = np.array([family[i] == "identity" for i in range(len(stack))])
        # a constant on both sides would be missed but for an intercept
        taken = np.array([family[i] != "constant" or plan.fit_intercept for i in range(len(stack))]) & ~same
        if not same.any() or not taken.any():
            return None
        means = np.diagonal(stack, axis1=1, axis2=2)[:, objects].mean(axis=1)
        share = taken / np.where(means > 0, means, 1.0) / np.count_nonzero(taken)
        sides.append(np.tensordot(share, stack, axes=1))
        shares.append(np.stack([share, same]))
    sigma, tau = 0.1, 0.1
    whole = store.n == store.at.shape[0] * store.at.shape[1] and np.all(store.at.shares == 1.0)
    plain = store.origin is None or plan.fit_intercept  # an intercept takes up what centring does
    if whole and plain and task.loss.least_squares and np.ptp(task.weight) == 0.0:
        train, test = splits[0]
        new = [not np.isin(objects[test], objects[train]).any() for objects in (store.at.rows, store.at.cols)]
        setting = ("both" if new[1] else "left") if new[0] else "right" if new[1] else "pairs"
        grid, Y = GridKernel.of(*sides), store.at.matrix(task.y)
        tau, sigma = grid.best_ridges(Y, 0.5 / (Cs * task.weight[0]), setting, plan.fit_intercept)
    ones, others = np.array([1.0, sigma]) @ shares[0], np.array([1.0, tau]) @ shares[1]
    weights = ones[store.terms[:, 0]] * others[store.terms[:, 1]]
    return plan.with_norm(
        TwoStep(np.divide(weights, store.scale, out=np.zeros(store.m), where=store.scale > 0))
    )


def refuse_undefined_scores(
    score: Measures, tasks: Sequence[Task], splits: Splits, name: str, instead: str | None = None
) -> None:
    """Raise where no fold has a score (``name``), before anything is fitted.

    It is tried with the targets of other samples in the place of predictions; ``instead`` is a ``scoring`` that single
    samples have, where there is a choice.
    """
    columns = [np.roll(task.y, 1, axis=0) for task in tasks]
    values = columns[0] if len(columns) == 1 else np.stack(columns, axis=1)
    failed: Exception | None = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of undefined scores, which are reported in a sentence
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
