"""Baselines of MKL: the mean kernel, the best kernel, alignment weights, ridge with leave-one-out.

Each is an ``MKLClassifier`` whose weights, or C, come from a simple rule instead of from learning, so that they take
the same kernels, give the same attributes and carry the same certificate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from .._components import store_parameters
from .._typing import Array
from ..banks import Bank
from ..norms import Fixed, Uniform
from ..problems import solve_fixed
from ._base import BaseMKL
from ._parameters import (
    Bytes,
    Callback,
    ClassWeights,
    Codes,
    Device,
    FileName,
    FoldsLike,
    KernelsLike,
    LossLike,
    NormLike,
    RandomSeed,
    SolverLike,
    Splits,
    settled,
)
from ._plan import Plan, Task
from ._search import folds_of
from .classifier import MKLClassifier
from .cv import checked_Cs
from .regressor import MKLRegressor

#: values of C that ridge chooses among
RIDGE_CS = np.logspace(-4, 6, 41)


@dataclass(frozen=True)
class RidgeErrors:
    """Errors of leaving each sample out in turn."""

    Cs: Array
    #: mean squared error of each C, the index of the smallest, and its C
    errors: Array
    best: int
    C: float
    #: for every sample, that of the model at the best C that was fitted without it; of the shape of the targets
    predictions: Array


def leave_one_out(
    K: Array, targets: Array, Cs: Array = RIDGE_CS, intercept: bool = True, weight: Array | None = None
) -> RidgeErrors:
    """Leave-one-out errors of kernel ridge for every C (``lambda = 1 / (2 C)``), and predictions at the best.

    With ``A = K + diag(lambda / weight)`` and M its inverse (deflated by the ones where there is an intercept),
    sample i left out is missed by ``(M y)_i / M_ii``.  Samples without weight are predicted by the others, and do not
    count in the errors.
    """
    y = targets if targets.ndim == 2 else targets[:, None]
    weight = np.ones(len(y)) if weight is None else weight
    used = weight > 0
    if not used.all():  # what has no weight is not there
        K_used, y_used, weight_used = K[np.ix_(used, used)], y[used], weight[used]
    else:
        K_used, y_used, weight_used = K, y, weight
    root = np.sqrt(weight_used)
    values, vectors = np.linalg.eigh(root[:, None] * K_used * root)
    values = np.maximum(values, 0.0)
    vectors = root[:, None] * vectors
    rotated, ones = vectors.T @ y_used, vectors.sum(axis=0)

    def fit(C: float) -> tuple[Array, Array, Array]:
        """Coefficients, intercepts and misses."""
        shrunk = 1.0 / (values + 0.5 / C)
        alpha, diagonal = vectors @ (shrunk[:, None] * rotated), vectors**2 @ shrunk
        b = np.zeros(y.shape[1])
        if intercept:
            u = vectors @ (shrunk * ones)
            b = (u @ y_used) / u.sum()
            alpha = alpha - np.outer(u, b)
            diagonal = diagonal - u**2 / u.sum()
        return alpha, b, alpha / np.maximum(diagonal, np.finfo(float).tiny)[:, None]

    errors = np.array(
        [float(weight_used @ np.mean(fit(C)[2] ** 2, axis=1)) / float(weight_used.sum()) for C in Cs]
    )
    best = int(np.argmin(errors))
    alpha, b, missed = fit(float(Cs[best]))
    predictions = np.empty(y.shape)
    predictions[used] = y_used - missed
    if not used.all():
        predictions[~used] = K[np.ix_(~used, used)] @ alpha + b
    return RidgeErrors(np.asarray(Cs), errors, best, float(Cs[best]), predictions.reshape(targets.shape))


#: relative gap of the fits that only rank kernels: a hundredth moves one or two samples of a thousand across the border
RANKING = 1e-2
#: pairs of kernel and C up to which all are tried on the first fold: about a second at 400 samples
MOST_PAIRS = 400


def only(j: int, m: int) -> Array:
    """Return weights of which kernel j has all."""
    return np.where(np.arange(m) == j, 1.0, 0.0)


def best_kernel(task: Task, bank: Bank, splits: Splits, Cs: Array | None, fit_intercept: bool) -> Task:
    """Put all weight on the kernel that does best in cross-validation, at the best of several values of C if wanted.

    ``Cs`` are tried for the kernels that do best on the first fold at the task's own C, as many as make ``MOST_PAIRS``.
    Kernels are compared by their accuracy, and in ties by the margins.
    """
    m, own, y, weight = bank.m, np.array([task.C]), task.y, task.weight
    each = weight if y.ndim == 1 else np.repeat(weight[:, None], y.shape[1], axis=1)

    def scores_of(K: Array, Cs: Array, train: Codes, test: Codes) -> Array:
        """Weight of the test samples that are right, and a little of the margins, for increasing values of C."""
        inner = np.ascontiguousarray(K[np.ix_(train, train)])
        across, found = K[np.ix_(test, train)], np.empty(Cs.size)
        for place, C in enumerate(Cs):
            svm = solve_fixed(inner, task.loss, y[train], C * each[train], fit_intercept, RANKING)
            values = across @ svm.beta + svm.intercept
            hits = (
                np.sign(values) == y[test]
                if y.ndim == 1
                else np.argmax(values, axis=1) == np.argmax(y[test], axis=1)
            )
            margins = float(np.sum(each[test] * np.tanh(values * y[test])))
            found[place] = float(np.sum(weight[test] * hits)) + 1e-6 * margins
        return found

    kernels = np.arange(m)
    if Cs is None:
        Cs = own
    elif m * Cs.size > MOST_PAIRS:
        first = np.array([scores_of(bank.combine(only(j, m)), own, *splits[0])[0] for j in range(m)])
        kernels = np.argsort(-first, kind="stable")[: max(MOST_PAIRS // Cs.size, 1)]
    scores = {int(j): scores_of(bank.combine(only(int(j), m)), Cs, *splits[0]) for j in kernels}
    # bounds that no score on the samples of a fold exceeds
    most = [float(np.sum(weight[test]) + 1e-6 * np.sum(each[test])) for _, test in splits[1:]]
    best = -np.inf
    # the favourites first: most of the others are out after the first fold
    for j in sorted(scores, key=lambda j: (-scores[j].max(), j)):
        left = sum(most)
        if scores[j].max() + left < best:
            continue
        K = bank.combine(only(j, m))
        for (train, test), bound in zip(splits[1:], most, strict=True):
            alive = scores[j] + left >= best
            if not alive.any():
                break
            scores[j][alive] += scores_of(K, Cs[alive], train, test)
            scores[j][~alive] = -np.inf
            left -= bound
        else:
            best = max(best, float(scores[j].max()))
    j = max(scores, key=lambda j: (scores[j].max(), -j))
    return replace(task, norm=Fixed(only(j, m)), C=float(Cs[int(np.argmax(scores[j]))]))


@settled(norm="uniform")
class MeanKernelClassifier(MKLClassifier):
    """SVM (or another loss) on the mean of all kernels: the baseline that is hardest to beat.

    Parameters are those of ``MKLClassifier`` but the norm.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> MeanKernelClassifier().fit(X, y).score(X, y) > 0.9
    True
    """


@settled(norm="uniform")
class BestKernelClassifier(MKLClassifier):
    """SVM (or another loss) on the one kernel that does best in cross-validation, by accuracy.

    A kernel that cannot catch up with the best any more is not tried on the folds that are left.

    Parameters
    ----------
    kernels : kernels
        As for ``MKLClassifier``.
    Cs : int or array-like, optional
        Values of C to choose among together with the kernel, as for ``MKLClassifierCV``; by default ``C`` is taken.  Of
        many kernels those are tried with all values of C that do best on the first fold with ``C``: as many as make
        400 pairs.
    cv : int, splitter or iterable, default=None
        As for ``MKLClassifierCV``; at most as many folds as the rarest class has samples.
    **others
        As for ``MKLClassifier``, but the norm.
    """

    _weights_rule = "all weight is on the kernel that does best in cross-validation"
    _takes_labels = False

    Cs: ArrayLike | None
    cv: FoldsLike

    def __init__(
        self,
        kernels: KernelsLike = None,
        *,
        loss: LossLike = "hinge",
        norm: NormLike = "uniform",
        C: float = 1.0,
        Cs: ArrayLike | None = None,
        cv: FoldsLike = None,
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

    def _by_rule(self, tasks: list[Task], bank: Bank, plan: Plan) -> list[Task]:
        Cs = None if self.Cs is None else checked_Cs(self.Cs)
        made = []
        for task in tasks:
            labels = task.y if task.y.ndim == 1 else np.argmax(task.y, axis=1)
            cv = self.cv
            if cv is None or isinstance(cv, Integral):
                rarest = int(np.unique(labels, return_counts=True)[1].min())
                cv = max(2, min(5 if cv is None else int(cv), rarest))
            splits = folds_of(cv, labels.astype(np.intp), True, plan.seed, None)
            made.append(best_kernel(task, bank, splits, Cs, plan.fit_intercept))
        return made


@settled(norm="uniform")
class AlignmentClassifier(MKLClassifier):
    """Weights proportional to each kernel's centred alignment with the labels (Cortes et al. 2012), then one SVM.

    Parameters are those of ``MKLClassifier`` but the norm.
    """

    _weights_rule = "every kernel has the weight of its alignment with the labels"

    def _by_rule(self, tasks: list[Task], bank: Bank, plan: Plan) -> list[Task]:
        weighed, everyone, tiny = [], np.arange(bank.n), np.finfo(float).tiny
        for task in tasks:
            # <K_c, y y'> / (|K_c| |y y'|) of every kernel, K_c and y centred; a weight counts a sample that often
            share = task.weight / np.sum(task.weight)
            y = task.y if task.y.ndim == 2 else task.y[:, None]
            y = y - share @ y
            root = np.sqrt(share)
            target_norm = float(np.linalg.norm(root[:, None] * (y @ y.T) * root))
            numerators, alignments = bank.quad(share[:, None] * y), np.zeros(bank.m)
            for j in range(bank.m):
                K = bank.block(everyone, everyone, np.array([j]))[0]
                means = K @ share
                K = root[:, None] * (K - means[:, None] - means[None, :] + share @ means) * root
                alignments[j] = numerators[j] / max(float(np.linalg.norm(K)) * target_norm, tiny)
            bank.count(float(bank.m) * bank.n**2)
            alignments = np.maximum(alignments, 0.0)
            total = float(alignments.sum())  # where no kernel is aligned at all, they count alike
            weighed.append(replace(task, norm=Fixed(alignments / total) if total > 0 else Uniform()))
        return weighed


class _MeanKernelRidge(BaseMKL):
    """The squared loss on the mean kernel, C by closed-form leave-one-out from one eigendecomposition."""

    def _by_rule(self, tasks: list[Task], bank: Bank, plan: Plan) -> list[Task]:
        K = bank.combine(np.full(bank.m, 1.0 / bank.m))
        left_out = [
            leave_one_out(K, task.y, intercept=plan.fit_intercept, weight=task.weight) for task in tasks
        ]
        self.Cs_ = left_out[0].Cs
        errors = [one.errors for one in left_out]
        self.loo_errors_ = errors[0] if len(errors) == 1 else np.stack(errors)
        return [replace(task, C=one.C) for task, one in zip(tasks, left_out, strict=True)]


@settled(loss="squared", norm="uniform", C=1.0)
class MeanKernelRidgeClassifier(_MeanKernelRidge, MKLClassifier):
    """Least-squares classification on the mean kernel, C by closed-form leave-one-out.

    ``C_`` says which, one per class where there are more than two; ``loo_errors_`` are the errors at ``Cs_``.
    Parameters are those of ``MKLClassifier`` but loss, norm and C.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> MeanKernelRidgeClassifier().fit(X, y).score(X, y) > 0.9
    True
    """


@settled(loss="squared", quantiles=None, norm="uniform", C=1.0)
class MeanKernelRidgeRegressor(_MeanKernelRidge, MKLRegressor):
    """Kernel ridge regression on the mean kernel, C by closed-form leave-one-out (``C_``, ``loo_errors_``, ``Cs_``).

    Parameters are those of ``MKLRegressor`` but loss, norm and C.
    """
