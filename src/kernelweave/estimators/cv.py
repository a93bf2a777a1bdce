"""Paths over C, and MKLClassifierCV: C and norm chosen by cross-validation, on one bank."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import check_scoring

from .._components import check_switch, store_parameters
from .._estimating import (
    TimeShares,
    constant_prediction,
    one_call,
    one_fit,
    several_fits,
    warn_of_findings,
    weigh_samples,
)
from .._fitted import set_optional
from .._typing import Array
from ..cluster import in_memory
from ..exceptions import GridEndWarning, KernelWeaveConvergenceWarning, warn_at_caller
from ..norms import make_norm
from ..problems import Certificate
from ._bind import bind
from ._calibration import Calibration, scaled_log_loss
from ._parameters import (
    Bytes,
    Callback,
    ClassWeights,
    Codes,
    Column,
    Device,
    FileName,
    FoldsLike,
    KernelsLike,
    LossLike,
    NormLike,
    RandomSeed,
    Samples,
    Scoring,
    SolverLike,
)
from ._plan import path_of
from ._search import (
    Search,
    folds_of,
    norm_plans,
    refuse_centred_cosine,
    refuse_left_out,
    refuse_undefined_scores,
    shares_of_search,
)
from .classifier import MKLClassifier, codes_of


@dataclass(frozen=True)
class MKLPath:
    """Solutions for a series of C, smallest first.

    Attributes
    ----------
    Cs : array of shape (c,)
    weights : array of shape (c, m)
    dual_coefs : array of shape (c, n)
    intercepts : array of shape (c,)
    certificates : list of Certificate
    n_iter, passes, seconds : arrays of shape (c,)
        Iterations, passes over the bank and seconds of every fit; the bank is built once, before.
    kernel_names : array of shape (m,)
    status : list of str
        Why every fit ended, as ``status_`` of an estimator.
    """

    Cs: np.ndarray
    weights: np.ndarray
    dual_coefs: np.ndarray
    intercepts: np.ndarray
    certificates: list[Certificate]
    n_iter: np.ndarray
    passes: np.ndarray
    seconds: np.ndarray
    kernel_names: np.ndarray
    status: list[str]

    def __repr__(self) -> str:
        worst = max(certificate.relative_gap for certificate in self.certificates)
        return (
            f"MKLPath: {len(self.Cs)} fits for C from {self.Cs[0]:g} to {self.Cs[-1]:g}, each proved to be within "
            f"{100 * max(worst, 0.0):.2g} % of its optimum, in {self.passes.sum():.1f} passes over the bank"
        )


@several_fits
@one_call
def mkl_path(
    X: Samples, y: Column, kernels: KernelsLike = None, *, Cs: ArrayLike | None = None, **parameters: Any
) -> MKLPath:
    """Fit a two-class problem for many values of C, each started from the last, on one bank.

    Parameters
    ----------
    X, y : samples and labels
        As for ``MKLClassifier.fit``; two classes.
    kernels : kernels
        As for ``MKLClassifier``.
    Cs : array-like, optional
        Values of C; by default 30 from 1e-2 to 1e3.
    **parameters
        Further parameters of ``MKLClassifier``; ``max_seconds`` is for the whole path.

    Returns
    -------
    MKLPath

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from kernelweave import kernels as kw, mkl_path
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> path = mkl_path(scale(X)[:200], y[:200], kw.gaussian([2.0, 4.0, 8.0]), Cs=[0.1, 1.0, 10.0])
    >>> path.weights.shape, max(c.relative_gap for c in path.certificates) <= 1e-3
    ((3, 3), True)
    """
    estimator = MKLClassifier(kernels, **parameters)
    Cs = checked_Cs(30 if Cs is None else Cs)
    labelled = estimator._checked(X, y, None)
    if labelled.classes.size != 2:
        raise ValueError(f"mkl_path needs two classes, got {labelled.classes.size}")
    plan = labelled.plan
    bound = bind(labelled.training, plan.bank)
    fits = path_of(labelled.tasks()[0], bound.bank, plan, Cs, TimeShares(plan.stop, len(Cs)))
    solutions = [solution for _, _, solution in fits]
    short = [solution for solution in solutions if not solution.converged]
    if short:
        worst = max(short, key=lambda solution: solution.certificate.relative_gap)
        warn_at_caller(
            f"{len(short)} of {len(Cs)} fits of the path ended before the tolerance, the worst at a relative gap of "
            f"{worst.certificate.relative_gap:.2g} ({worst.message}); their certificates are valid",
            KernelWeaveConvergenceWarning,
        )
    return MKLPath(
        Cs=Cs,
        weights=np.stack([solution.point.weights for solution in solutions]),
        dual_coefs=np.stack([solution.point.beta for solution in solutions]),
        intercepts=np.array([solution.certificate.intercept for solution in solutions]),
        certificates=[solution.certificate for solution in solutions],
        n_iter=np.array([solution.n_iter for solution in solutions]),
        passes=np.array([solution.passes for solution in solutions]),
        seconds=np.array([solution.seconds for solution in solutions]),
        kernel_names=np.array(labelled.training.names, dtype=object),
        status=[solution.status for solution in solutions],
    )


def checked_Cs(Cs: ArrayLike) -> Array:
    """Return increasing values of C; a whole number stands for that many from 1e-2 to 1e3."""
    given = np.logspace(-2, 3, Cs) if isinstance(Cs, int | np.integer) and Cs > 0 else Cs
    values = np.unique(np.atleast_1d(np.asarray(given, dtype=float)))
    if values.size == 0 or not (np.all(np.isfinite(values)) and np.all(values > 0)):
        raise ValueError(f"Cs must be a positive whole number or finite values > 0, got {Cs!r}")
    return values


class MKLClassifierCV(MKLClassifier):
    """MKL with C, and if wanted the norm, chosen by cross-validation along warm-started paths on one bank.

    The bank is computed once, on a ``device`` too: a fold is the same problem with its held-out samples at weight zero.
    Kernels are normalised on the samples of the fold; where they learn more from samples than a factor (relative
    widths, centring) the bank is rebuilt for every fold.

    Parameters
    ----------
    kernels : kernels
        As for ``MKLClassifier``.
    Cs : int or array-like, default=10
        Values of C; a number is that many from 1e-2 to 1e3.  A larger C fits the training data more closely.
    norms : sequence of norms, optional
        Norms to choose among; by default only ``norm``.  ``norm`` (or the first of them, where it is not among them) is
        kept unless another is ahead of it by more than a standard error of the difference over the folds.
    cv : int, splitter, iterable or "loo", default=None
        As in scikit-learn, but that the folds of a number (None is 5) are shuffled: for rows that follow each other in
        time, or come in groups, give a splitter.  ``"loo"``, for two classes, leaves samples out one by one without
        refits, at about a fifth of the fits (Notes).
    scoring : str or callable, default=None
        As in scikit-learn; None is the accuracy, and with ``cv="loo"`` the log loss.  Every held-out sample counts
        once, whatever its weight.
    probability : bool, default=True
        Whether the decision values of held-out samples at the chosen pair give ``predict_proba``, for any loss and
        without another fit.  Without, ``predict_proba`` is that of the loss, where it has one.
    random_state : int, RandomState or None, default=None
        Shuffles the folds where ``cv`` is a number or None, None always in the same way; and as for ``MKLClassifier``.
    **others
        As for ``MKLClassifier``, but ``C``; ``max_seconds`` is for the search and the fit together.
        Where the time is up, or the search is interrupted from the keyboard, the choice is made by what is known then.

    Attributes
    ----------
    C_, norm_ : the chosen ones
    calibration_ : Calibration
        With ``probability``: ``scale`` and ``offset`` of the map from decision values to probabilities.
    decision_ : Decision
        As for ``MKLClassifier``, of the fit with the chosen pair; folds are decided by the same rules.
    cv_results_ : DataFrame
        norm, C, fold, score, n_iter, passes, relative_gap, active_kernels of every fit, and its seconds as
        ``cross_validate`` names them: fit_time (without the kernels, which all fits share) and score_time.  Rows that
        are ``dropped`` have no score: their C was hopeless by then (Notes).
    best_score_ : float
        Mean score of the chosen pair.
    refit_time_ : float
        Seconds of the fit with the chosen pair.
    ties_ : DataFrame
        The pairs of norm and C that the scores do not tell from the chosen one: norm, C, mean score and ``tie``, which
        is ``"chosen"``, ``"equal"``, or ``"within a standard error"`` of the difference over the folds.
    tied_weights_ : array of shape (t, m)
        Weights of the kernels, as shares of their sum, of fits on all samples with each of these pairs (the mean where
        classes have their own); absent where the search was cut short.
    findings_ : tuple of str
        As for ``MKLClassifier``, by held-out samples; that the weights of views change among the pairs of ``ties_``;
        and that C was chosen at an end of ``Cs``, a ``GridEndWarning`` as well unless the scores are flat there.

    Notes
    -----
    Fits of the search go to ten times ``tol`` (at most 1e-2, unless ``tol`` is more); the fit with the chosen pair goes
    to ``tol``.  After three folds, and after each that follows, a C is left out of further ones if it is behind the
    best C of its norm by more than two standard errors of its lead, of the median lead, and of the best score.

    Of the values of C whose mean scores are equal (to 1e-12) the one with the smallest log loss of its held-out
    decision values is taken, then the smallest.  Decision values have no unit: those of every C are first multiplied by
    the positive number that makes the log loss of all its held-out samples smallest (of several classes the
    cross-entropy of the softmax).  The loss is the mean over the folds, and every sample counts once.  With several
    ``norms``, ``norm`` is kept where it is tied with another; ties among the others are broken in the same way.

    With ``cv="loo"`` one fit of every C, on all samples, says what each sample's decision value would be without it: a
    Newton step of a smooth loss, the span estimate of Vapnik and Chapelle (2000) of the hinge.  C is then chosen by the
    log loss of these values, scaled as above, or by ``scoring``.  The kernel weights are those of all samples, which
    have seen the one that is left out: of many more kernels than samples take folds.  Twins of a sample, and others of
    its group, stay where they are.

    Probabilities are a sigmoid (two classes) or the softmax (several) of the decision values times a number, which is
    learnt on what every sample got from the fold that held it out, by Platt's method with scikit-learn's parts
    (docs/uncertainty.md).  Labels are predicted by the decision values: of two classes the sigmoid may cross one half
    elsewhere, most of all with ``class_weight``, which moves the decision and not how frequent the classes are.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from kernelweave import MKLClassifierCV, kernels as kw
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = MKLClassifierCV(kw.gaussian([2.0, 4.0, 8.0]), Cs=[0.1, 1.0, 10.0], cv=3).fit(scale(X)[:200], y[:200])
    >>> clf.C_ in (0.1, 1.0, 10.0)
    True
    >>> clf.predict_proba(scale(X)[200:]).shape
    (369, 2)
    """

    Cs: ArrayLike
    norms: Sequence[NormLike] | None
    cv: FoldsLike
    scoring: Scoring
    probability: bool

    def __init__(
        self,
        kernels: KernelsLike = None,
        *,
        loss: LossLike = "hinge",
        norm: NormLike = "l1",
        Cs: ArrayLike = 10,
        norms: Sequence[NormLike] | None = None,
        cv: FoldsLike = None,
        scoring: Scoring = None,
        probability: bool = True,
        fit_intercept: bool = True,
        normalize: str | None = "trace",
        center: bool = False,
        missing: str = "error",
        multi_class: str = "joint",
        class_weight: ClassWeights = None,
        solver: SolverLike = "auto",
        tol: float = 1e-3,
        max_iter: int | None = None,
        max_seconds: float | None = None,
        warm_start: bool = False,
        checkpoint: FileName | None = None,
        callback: Callback | None = None,
        verbose: int = 0,
        random_state: RandomSeed = None,
        storage: str = "auto",
        dtype: DTypeLike = "float64",
        memory_budget: Bytes = None,
        n_jobs: int | None = None,
        device: Device = None,
    ) -> None:
        store_parameters(self, locals())

    @one_fit
    def fit(self, X: Samples, y: Column, sample_weight: Column = None, groups: Column = None) -> Self:
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
        Cs = checked_Cs(self.Cs)
        check_switch("probability", self.probability)
        labelled = self._checked(X, y, sample_weight)
        plan, tasks = labelled.plan, labelled.tasks()
        refuse_centred_cosine(plan, "MKLClassifier")
        plans = norm_plans(plan, self.norms, labelled.training)
        codes = labelled.codes
        splits = folds_of(self.cv, codes, True, plan.seed, groups, labelled.training.samples, one_by_one=True)
        for fold, (train, _) in enumerate(splits):
            gone = np.setdiff1d(codes, codes[train])
            if gone.size and not labelled.several_labels:
                count = int(np.sum(codes == gone[0]))
                raise ValueError(
                    f"fold {fold} has no training sample of class {labelled.classes[gone[0]]!r}, which has {count}: "
                    "leave out or merge classes of so few samples, or use other folds (stratified, or fewer)"
                )

        one_by_one = isinstance(self.cv, str)
        if one_by_one and (labelled.several_labels or len(self.classes_) != 2):
            raise ValueError(
                f"cv='loo' is for two classes, and y has {len(self.classes_)} "
                f"{'labels' if labelled.several_labels else 'classes'}: take folds, such as cv=5"
            )

        def score(values: Array, held_out: Codes) -> dict[str, float]:
            y = codes[held_out] if labelled.several_labels else self.classes_[codes[held_out]]
            known = _KnownDecisions(values, self.classes_, labelled.several_labels)
            if self.scoring is None:
                correct = known.predict(values) == y  # accuracy_score takes as long as a fit of the path
                right = {"score": float(np.mean(correct.reshape(len(y), -1).all(axis=1)))}
                return right | ({"log_loss": _log_loss(codes, [(held_out, values)])} if one_by_one else {})
            return {"score": float(check_scoring(known, self.scoring)(known, np.zeros((y.size, 1)), y))}

        if self.scoring is not None:  # every sample has its share of the accuracy
            refuse_undefined_scores(score, tasks, splits, f"scoring={self.scoring!r}", "accuracy")
        stops = shares_of_search(plan.stop, len(splits) * len(plans) * len(Cs) * len(tasks))
        # the estimator's own norm is kept in doubt; the first where it is not among those tried
        labels, own = [tried.norm.label for tried in plans], make_norm(self.norm).label
        default = labels.index(own) if own in labels else 0
        bound = bind(labelled.training, plan.bank)
        if one_by_one:
            refuse_left_out(plan, tasks[0], bound)
        search = Search(
            bound, tasks, plans, Cs, splits, score,
            lambda folds: _log_loss(codes, folds),
            stops, default, "log_loss", one_by_one=one_by_one,
        )  # fmt: skip
        chosen = search.choose()
        self.cv_results_, self.best_score_ = chosen.table, chosen.score
        self.norm_ = make_norm(self.norm if self.norms is None else self.norms[chosen.place])
        began = time.perf_counter()
        fitted = self._solve(search.bound, chosen.plan, chosen.tasks)
        self.refit_time_ = time.perf_counter() - began
        # held-out samples say more than training samples, which a fit may reproduce
        where = np.concatenate([held_out for held_out, _ in chosen.held_out])
        sentence = None
        if not labelled.several_labels:
            predicted = codes_of(np.concatenate([values for _, values in chosen.held_out]))
            counted = labelled.weight[where] > 0
            sentence = constant_prediction(predicted, codes[where], self.classes_, counted, "held-out")
        findings = fitted.findings if sentence is None else (sentence,)
        calibration = None
        if self.probability:
            # how frequent classes are is the samples' to say: factors of classes move the decision alone
            counts = np.where(labelled.weight > 0, weigh_samples(in_memory(sample_weight), len(codes)), 0.0)
            calibration = calibrated(codes, counts, chosen.held_out)
        weights = search.weights_of_ties(chosen, fitted.weights)
        self.ties_ = chosen.ties.drop(columns="choice")
        set_optional(self, "tied_weights_", weights)
        said, warned_of = search.findings(chosen, weights)
        warn_of_findings(findings)
        warn_of_findings(warned_of, GridEndWarning)
        replace(fitted, calibration=calibration, findings=(*search.bound.findings, *findings, *said)).write(
            self
        )
        return self


def calibrated(codes: Codes, counts: Array, folds: list[tuple[Codes, Array]]) -> Any:
    """Return the calibration by held-out values; of several labels one for each, None where one has none."""
    if codes.ndim == 1:
        return Calibration.learn([(codes[held_out], values, counts[held_out]) for held_out, values in folds])
    columns = range(codes.shape[1])
    each = [calibrated(codes[:, k], counts, [(rows, f[:, k]) for rows, f in folds]) for k in columns]
    return None if any(one is None for one in each) else each


def _log_loss(codes: Codes, folds: list[tuple[Codes, Array]]) -> float:
    """Log loss of scaled held-out values, the mean over several labels."""
    if codes.ndim == 1:
        return scaled_log_loss([(codes[held_out], values) for held_out, values in folds])
    each = range(codes.shape[1])
    return float(np.mean([_log_loss(codes[:, k], [(rows, f[:, k]) for rows, f in folds]) for k in each]))


class _KnownDecisions(ClassifierMixin, BaseEstimator):
    """A classifier whose decision values are known already, for scorers."""

    def __init__(
        self, values: Array | None = None, classes: NDArray[Any] | None = None, several_labels: bool = False
    ) -> None:
        self.values = values
        self.classes = classes
        self.several_labels = several_labels
        self.classes_ = classes

    def fit(self, X: Samples, y: Column) -> Self:
        return self

    def decision_function(self, X: Samples) -> Array | None:
        return self.values

    def predict(self, X: Samples) -> NDArray[Any]:
        assert self.values is not None
        assert self.classes_ is not None
        if self.several_labels:
            return (self.values > 0).astype(np.intp)
        return self.classes_[codes_of(self.values)]
