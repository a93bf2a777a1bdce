"""MKLClassifierCV: C and norm chosen by cross-validation, on one bank."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv

from ..banks import Bank, Recentred, Rescaled
from ..exceptions import KernelWeaveConvergenceWarning
from ..kernels import resolve_kernels
from ..kernels._helpers import take
from ..losses import Loss
from ..norms import Norm, make_norm
from ..problems import Point
from ..solvers import Solver, choose_solver, follow_path, make_solver
from ._inputs import Training, bind
from ._one_fit import TimeShares, one_fit
from .classifier import MKLClassifier
from .path import checked_Cs

__all__ = ["MKLClassifierCV"]

#: share of ``max_seconds`` for the search; the rest is for the fit with what was chosen
SEARCH = 0.75


@dataclass(frozen=True)
class _Tried:
    """One C on one fold: decision values of all samples, what the fit took, and where it ended, by problem."""

    C: float
    values: np.ndarray
    facts: dict[str, float]
    points: list[Point]


class MKLClassifierCV(MKLClassifier):
    """MKL with C, and if wanted the norm, chosen by cross-validation along warm-started paths on one bank.

    The bank is computed once: a fold is the same problem with its held-out samples at weight zero, and the decision
    values of those samples fall out of the fit.  Kernels are normalised on the samples of the fold.  Kernels that
    learn more than a factor from the samples (relative widths, centring) have their bank rebuilt for every fold.

    Parameters
    ----------
    kernels : kernels
        As for ``MKLClassifier``.
    Cs : int or array-like, default=10
        Values of C; a number is that many from 1e-2 to 1e3.
    norms : sequence of norms, optional
        Norms to choose among; by default only ``norm``.
    cv : int, splitter or iterable, default=None
        As in scikit-learn.
    scoring : str or callable, default=None
        As in scikit-learn; None is the accuracy.
    **others
        As for ``MKLClassifier``; its ``C`` is not used, and ``max_seconds`` is for the search and the fit together.
        Where the time is up, or the search is interrupted from the keyboard, the choice is made by what is known then.

    Attributes
    ----------
    C_, norm_ : the chosen ones
    cv_results_ : DataFrame
        norm, C, fold, score, n_iter, passes, relative_gap, active_kernels of every fit.
    best_score_ : float
        Mean score of the chosen pair.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from kernelweave import MKLClassifierCV, kernels as kw
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = MKLClassifierCV(kw.gaussian([2.0, 4.0, 8.0]), Cs=[0.1, 1.0, 10.0], cv=3).fit(scale(X)[:200], y[:200])
    >>> clf.C_ in (0.1, 1.0, 10.0)
    True
    """

    def __init__(
        self,
        kernels: Any = None,
        *,
        Cs: Any = 10,
        norms: Any = None,
        cv: Any = None,
        scoring: Any = None,
        loss: Any = "hinge",
        norm: Any = "l1",
        C: float = 1.0,
        solver: Any = "auto",
        tol: float = 1e-3,
        fit_intercept: bool = True,
        normalize: str | None = "trace",
        center: bool = False,
        multi_class: str = "joint",
        class_weight: Any = None,
        max_iter: int | None = None,
        max_seconds: float | None = None,
        storage: str = "auto",
        dtype: Any = "float64",
        memory_budget: int | float | str | None = None,
        warm_start: bool = False,
        checkpoint: Any = None,
        callback: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            kernels,
            loss=loss,
            norm=norm,
            C=C,
            solver=solver,
            tol=tol,
            fit_intercept=fit_intercept,
            normalize=normalize,
            center=center,
            multi_class=multi_class,
            class_weight=class_weight,
            max_iter=max_iter,
            max_seconds=max_seconds,
            storage=storage,
            dtype=dtype,
            memory_budget=memory_budget,
            warm_start=warm_start,
            checkpoint=checkpoint,
            callback=callback,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.Cs = Cs
        self.norms = norms
        self.cv = cv
        self.scoring = scoring

    @one_fit
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> MKLClassifierCV:
        """Choose C and norm by cross-validation, then fit all samples with them.

        Parameters
        ----------
        X, y, sample_weight :
            As for ``MKLClassifier.fit``.
        groups : array of shape (n,), optional
            For group-aware splitters.

        Returns
        -------
        self
        """
        import pandas as pd

        Cs = checked_Cs(self.Cs)
        if self.center and self.normalize == "cosine":
            raise ValueError(
                "MKLClassifierCV cannot share a bank that is centred and cosine-normalised: use normalize='trace', or "
                "GridSearchCV over MKLClassifier"
            )
        training, codes, weight = self._checked(X, y, sample_weight)
        choices = self._choices()
        targets, weights, labels = self._problems(codes, weight)
        bank, bound = bind(training, self, effective_n_jobs(self.n_jobs))
        splits = list(
            check_cv(self.cv, codes, classifier=True).split(np.zeros((training.n, 1)), codes, groups)
        )
        for fold, (train, _) in enumerate(splits):
            if np.unique(codes[train]).size < self.classes_.size:
                raise ValueError(
                    f"fold {fold} has training samples of some classes only: use fewer folds, or stratify"
                )
        rows: list[dict[str, Any]] = []
        points: dict[tuple[int, float], list[Point]] = {}  # of every pair, on the last fold that had it
        stops = TimeShares(self._stop(), len(splits) * len(choices) * len(Cs) * len(targets), SEARCH)
        pairs_and_folds = (
            (place, fold, tried, test)
            for fold, (train, test) in enumerate(splits)
            for place, tried in self._on_fold(
                bank, bound, training, train, targets, weights, choices, Cs, stops
            )
        )
        with suppress(KeyboardInterrupt):  # the fit at hand had no point yet; those before it remain
            for place, fold, tried, test in pairs_and_folds:
                score = self._score_of(tried.values[test], codes[test])
                key = {"choice": place, "norm": choices[place][1].label, "C": tried.C, "fold": fold}
                rows.append({**key, "score": score, **tried.facts})
                points[place, tried.C] = tried.points
                if stops.used_up:
                    break
        if not rows:
            raise KeyboardInterrupt
        table = pd.DataFrame(rows)
        means = (
            self._judged(table, len(splits), len(choices) * len(Cs)).groupby(["choice", "C"])["score"].mean()
        )
        # ties go to the first norm and the smallest C, the most regularised
        best = means[means == means.max()].index[0]
        self.cv_results_ = table.drop(columns="choice")
        self.best_score_ = float(means.max())
        self.norm_ = choices[best[0]][1]
        self._chosen = (self.norm_, float(best[1]))
        # cut short, there may be no time for more than a look at where the search ended
        self._begin_at = points[best] if stops.used_up else None
        try:
            self._fit_on(bank, bound, training, targets, weights, labels)
        finally:
            del self._begin_at
        return self

    def _judged(self, table: Any, folds: int, pairs: int) -> Any:
        """Return the part of the table to choose by: the complete folds where the search was cut short after one."""
        complete = int((table.groupby("fold").size() == pairs).sum())
        if complete == folds:
            return table
        warnings.warn(
            f"the search was cut short after {len(table)} of {folds * pairs} fits, {complete} of {folds} folds: C and "
            "norm were chosen by what was known then",
            KernelWeaveConvergenceWarning,
            stacklevel=4,
        )
        return table[table["fold"] < complete] if complete else table

    def _warm_starts(self, bank: Bank, targets: list[np.ndarray]) -> list[Point | None]:
        return super()._warm_starts(bank, targets) if self._begin_at is None else list(self._begin_at)

    def _on_fold(
        self,
        bank: Bank,
        bound: Any,
        training: Training,
        train: np.ndarray,
        targets: list[np.ndarray],
        weights: list[np.ndarray],
        choices: list[tuple[Loss, Norm, Solver | None]],
        Cs: np.ndarray,
        stops: TimeShares,
    ) -> Iterator[tuple[int, _Tried]]:
        """Follow the path of every choice on one fold; yield each C with the place of its choice."""
        if stops.interrupted:
            return
        shared = self._fold_bank(bank, bound, training, train)
        held_out = np.zeros(training.n)
        held_out[train] = 1.0
        for place, (loss, norm, solver) in enumerate(choices):
            fold_weights = [w * held_out for w in weights]
            for tried in self._follow(shared, loss, norm, solver, targets, fold_weights, Cs, stops):
                yield place, tried

    def _choose(self, bank: Bank, targets: np.ndarray, weight: np.ndarray, norm: Norm) -> tuple[Norm, float]:
        return self._chosen

    def _choices(self) -> list[tuple[Loss, Norm, Solver | None]]:
        """Norms to try, each checked to fit the loss and the solver."""
        loss, norm, solver = self._components()
        if self.norms is None:
            return [(loss, norm, solver)]
        norms = [make_norm(one) for one in self.norms]
        if not norms:
            raise ValueError("norms is empty: give at least one norm, or None for `norm` alone")
        return [(loss, one, None if solver is None else make_solver(self.solver, loss, one)) for one in norms]

    def _fold_bank(self, bank: Bank, bound: Any, training: Training, train: np.ndarray) -> Bank:
        """Return a bank of all samples of which everything that was learnt was learnt on the fold."""
        if training.kernels is not None:
            settled = resolve_kernels(training.kernels, take(training.samples, train))
            if any(new is not old for new, old in zip(settled, training.kernels, strict=True)):
                bank, _ = bind(replace(training, kernels=settled), self, effective_n_jobs(self.n_jobs))
        if self.center:
            bank = Recentred(bank, train)
        if bound.normaliser.mode != "trace":
            return bank
        means = bank.diag()[:, train].mean(axis=1)
        # a kernel that vanishes on the fold stays at zero, as it does where it vanishes on all samples
        return Rescaled(bank, np.divide(1.0, means, out=np.zeros_like(means), where=means > 0))

    def _follow(
        self,
        bank: Bank,
        loss: Loss,
        norm: Norm,
        solver: Solver | None,
        targets: list[np.ndarray],
        weights: list[np.ndarray],
        Cs: np.ndarray,
        stops: TimeShares,
    ) -> Iterator[_Tried]:
        """Yield what was found along the path; fits that were interrupted do not count."""
        solver = solver or choose_solver(loss, norm, bank)
        paths = [
            follow_path(
                bank,
                loss,
                norm,
                solver,
                y,
                list(Cs),
                stops,
                sample_weight=weight,
                fit_intercept=self.fit_intercept,
                callback=self.callback,
                verbose=self.verbose,
            )
            for y, weight in zip(targets, weights, strict=True)
        ]
        for fits in zip(*paths, strict=True):
            if any(one.status == "interrupted" for _, _, one in fits):
                return
            values = [
                problem.bank.mix_product(one.point.weights, one.point.beta) + one.certificate.intercept
                for _, problem, one in fits
            ]
            facts = {
                "n_iter": max(one.n_iter for _, _, one in fits),
                "passes": sum(one.passes for _, _, one in fits),
                "relative_gap": max(one.certificate.relative_gap for _, _, one in fits),
                "active_kernels": max(int(np.count_nonzero(one.point.weights)) for _, _, one in fits),
            }
            yield _Tried(
                C=fits[0][0],
                values=values[0] if len(values) == 1 else np.stack(values, axis=1),
                facts=facts,
                points=[Point(one.point.beta, one.point.weights) for _, _, one in fits],
            )

    def _score_of(self, values: np.ndarray, codes: np.ndarray) -> float:
        known = _KnownDecisions(values, self.classes_)
        if self.scoring is None:
            return float(np.mean(known.predict(values) == self.classes_[codes]))
        return float(
            check_scoring(known, self.scoring)(known, np.zeros((codes.size, 1)), self.classes_[codes])
        )


class _KnownDecisions(ClassifierMixin, BaseEstimator):
    """A classifier whose decision values are known already, for scorers."""

    def __init__(self, values: Any = None, classes: Any = None) -> None:
        self.values = values
        self.classes = classes
        self.classes_ = classes

    def fit(self, X: Any, y: Any) -> _KnownDecisions:
        """Nothing to learn."""
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the known values."""
        return self.values

    def predict(self, X: Any) -> np.ndarray:
        """Return the labels that the known values mean."""
        codes = (self.values > 0).astype(int) if self.values.ndim == 1 else np.argmax(self.values, axis=1)
        return self.classes_[codes]
