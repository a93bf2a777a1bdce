"""LPBetaClassifier: one SVM per kernel, and weights for their outputs by linear programming."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike
from scipy.optimize import linprog
from sklearn.model_selection import StratifiedKFold

from .._components import check_positive, check_switch, check_whole, store_parameters
from .._fitted import FittedModel
from .._typing import Array
from ..banks import KernelFunction
from ..losses import Hinge
from ..norms import Uniform
from ..problems import FixedSolution, solve_fixed
from ..solvers import Stop
from ._base import facts_of
from ._bind import Bound, fold_bank
from ._fitting import plain
from ._parameters import Bytes, ClassWeights, Column, KernelsLike, RandomSeed, Samples, Splits
from ._plan import BankPlan, Plan, Task, refuse_fixed_parts, seed_of
from .baselines import only
from .classifier import Labelled, MKLClassifier

#: times that rows are added; a handful is what it takes
MOST_ROUNDS = 100


class MarginWeights(NamedTuple):
    """Weights, the margin rho they reach and the value of the program."""

    weights: Array
    rho: float
    value: float


def largest_margin(leads: Array, nu: float, weight: Array) -> MarginWeights:
    """Maximise ``rho - sum_i w_i xi_i / (nu sum w)`` over weights on the simplex, rho and ``xi >= 0``.

    Under ``sum_j beta_j leads_icj >= rho - xi_i`` for all samples i and rivals c.  Only the rivals that come closest
    make a difference: rows are added where the last answer violates them, and at the end none is left, so that the
    answer is that of the whole program.

    ``leads`` ``(n, rivals, m)``: by how much classifier j prefers the sample's own class to each rival, ``y f`` of two
    classes.  At most about a share ``nu`` of the weight of the samples lies below the margin.
    """
    used = weight > 0
    leads, weight = leads[used], weight[used]
    n, _, m = leads.shape
    rows = np.arange(n)
    chosen = np.zeros(leads.shape[:2], dtype=bool)
    beta = np.full(m, 1.0 / m)
    # so much violation is rounding
    slack = 1e-9 * max(float(np.max(np.abs(leads), initial=0.0)), np.finfo(float).tiny)
    chosen[rows, np.argmin(leads @ beta, axis=1)] = True
    cost = np.concatenate([np.zeros(m), [-1.0], weight / (nu * np.sum(weight))])
    total = sp.csc_array(np.concatenate([np.ones(m), np.zeros(n + 1)])[None, :])
    bounds = np.array([(0.0, np.inf)] * m + [(-np.inf, np.inf)] + [(0.0, np.inf)] * n)
    for _ in range(MOST_ROUNDS):
        # the program with the chosen rows alone: rho - leads beta - xi <= 0, variables beta (m), rho, xi (n)
        which, rival = np.nonzero(chosen)
        count = which.size
        slacks = sp.csr_array((-np.ones(count), (np.arange(count), which)), shape=(count, n))
        A = sp.hstack([sp.csr_array(-leads[which, rival]), sp.csr_array(np.ones((count, 1))), slacks]).tocsc()
        program = linprog(
            cost, A_ub=A, b_ub=np.zeros(count), A_eq=total, b_eq=[1.0], bounds=bounds, method="highs"
        )
        if program.status != 0:
            raise ArithmeticError(f"the linear program of LP-beta was not solved: {program.message}")
        beta = np.maximum(program.x[:m], 0.0)
        beta, rho, xi, value = beta / beta.sum(), float(program.x[m]), program.x[m + 1 :], -float(program.fun)
        reached = leads @ beta
        worst = np.argmin(reached, axis=1)
        missed = rho - xi - reached[rows, worst] > slack
        if not np.any(missed & ~chosen[rows, worst]):
            break
        chosen[rows[missed], worst[missed]] = True
    return MarginWeights(beta, rho, value)


class LPBetaClassifier(MKLClassifier):
    """LP-beta [GN09]: SVMs on single kernels, combined by a linear program on their cross-validated outputs.

    Every kernel gets an SVM (with more than two classes one per class, against the rest).  On their cross-validated
    outputs weights beta on the simplex are found that separate every sample's own class from the others by the largest
    margin, up to a share ``nu`` of errors::

        max  rho - 1/(nu n) sum_i xi_i    s.t.  sum_j beta_j (f_j,own(x_i) - f_j,c(x_i)) >= rho - xi_i,  all c != own

    Then the SVMs are trained once more on all samples, and ``f = sum_j beta_j f_j``.  Two layers, where multiple kernel
    learning is one: there is no common objective and no certificate.

    Parameters
    ----------
    kernels : kernels
        As for ``MKLClassifier``.
    C : float or sequence of float, default=1.0
        Weight of the hinge loss; of several values each kernel gets that of the best cross-validated accuracy.
    nu : float or sequence of float, default=(0.05, 0.1, 0.2, 0.4, 0.8)
        Share of errors in (0, 1]; of several the one with the best cross-validated accuracy.
    n_folds : int, default=5
        Folds; fewer where a class has fewer samples, at least two.
    fit_intercept, normalize, center, missing, class_weight :
        As for ``MKLClassifier``.  Missing views are completed for every fold by its own training samples.
    tol : float, default=1e-3
        Relative duality gap of the SVMs.
    random_state : int, RandomState or None, default=None
        For the folds.
    storage, dtype, memory_budget, n_jobs :
        As for ``MKLClassifier``.

    Attributes
    ----------
    weights_, C_ : arrays of shape (m,)
        beta, and the C of every kernel.
    nu_, rho_ : float
        Share of errors, and the margin reached on cross-validated outputs.
    kernel_scores_ : array of shape (m,)
        Cross-validated accuracy of every kernel alone, at its C.
    dual_coef_ : array of shape (n, m) or (n, k, m)
        Coefficients of the SVMs, before they are multiplied by beta; zero where the weight is.
    intercept_ : float or array of shape (k,)
        beta-weighted intercept.
    kernel_names_, n_passes_, decision_, classes_, n_features_in_ : as for ``MKLClassifier``

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kernelweave import LPBetaClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = LPBetaClassifier().fit(X, y)
    >>> clf.score(X, y) > 0.9
    True
    >>> round(float(clf.weights_.sum()), 6)
    1.0
    """

    # what MKLClassifier has a choice of and this model has not
    loss, multi_class = "hinge", "shared"

    nu: float | Sequence[float]
    n_folds: int

    fits_subsets = False
    _takes_labels = False

    def __init__(
        self,
        kernels: KernelsLike = None,
        *,
        C: float | Sequence[float] = 1.0,
        nu: float | Sequence[float] = (0.05, 0.1, 0.2, 0.4, 0.8),
        n_folds: int = 5,
        fit_intercept: bool = True,
        normalize: str | None = "trace",
        center: bool = False,
        missing: str = "error",
        class_weight: ClassWeights = None,
        tol: float = 1e-3,
        random_state: RandomSeed = None,
        storage: str = "auto",
        dtype: DTypeLike = "float64",
        memory_budget: Bytes = None,
        n_jobs: int | None = None,
    ) -> None:
        store_parameters(self, locals())

    def _plan(self, n_classes: int = 0) -> Plan:
        check_positive("tol", self.tol)
        check_switch("fit_intercept", self.fit_intercept)
        C = float(_several("C", self.C)[0])  # each kernel gets its own later
        return Plan(
            Hinge(), Uniform(), None, C, Stop(float(self.tol)), bool(self.fit_intercept), BankPlan.of(self)
        )

    def _checked(self, X: Samples, y: Column, sample_weight: Column) -> Labelled:
        for C in _several("C", self.C):
            check_positive("C", C)
        for nu in _several("nu", self.nu):
            check_positive("nu", nu)
            if nu > 1:
                raise ValueError(f"nu is a share of the samples, in (0, 1]; got {nu!r}")
        check_whole("n_folds", self.n_folds, 2)
        labelled = super()._checked(X, y, sample_weight)
        counts = np.bincount(labelled.codes[labelled.weight > 0], minlength=self.classes_.size)
        if np.any(counts == 1):
            alone = self.classes_[int(np.argmax(counts == 1))]
            raise ValueError(
                f"LP-beta learns from cross-validated outputs, for which every class needs at least two samples with a "
                f"positive weight; class {plain(alone)!r} has one"
            )
        return labelled

    def _solve(self, bound: Bound, plan: Plan, tasks: list[Task]) -> FittedModel:
        bank, y, weight = bound.bank, tasks[0].y, tasks[0].weight
        refuse_fixed_parts(tasks[0].norm, bank.m, type(self).__name__)
        # train and test samples, those without weight in neither
        used = np.flatnonzero(weight > 0)
        seed = 0 if self.random_state is None else seed_of(self.random_state)
        codes = (y if y.ndim == 1 else np.argmax(y, axis=1))[used]
        counts = np.unique(codes, return_counts=True)[1]
        folds = StratifiedKFold(max(2, min(self.n_folds, int(counts.min()))), shuffle=True, random_state=seed)
        splits = [(used[train], used[test]) for train, test in folds.split(codes, codes)]
        outputs, C = self._outputs(bound, plan, y, weight, splits)
        leads = _leads(y, outputs)
        nus = _several("nu", self.nu)
        right = np.zeros(len(nus))
        if len(nus) > 1:  # the share of errors by cross-validation of the linear program
            for _, test in splits:
                there = np.isin(np.arange(len(y)), test)
                for k, nu in enumerate(nus):
                    beta = largest_margin(leads, nu, np.where(there, 0.0, weight)).weights
                    right[k] += float(weight[there] @ (np.min(leads[there] @ beta, axis=1) > 0))
        self.nu_ = nus[int(np.argmax(right))]
        weights, self.rho_, _ = largest_margin(leads, self.nu_, weight)
        m, values, costs, terms = bank.m, np.zeros(y.shape), np.outer(C, weight), []
        dual_coef = np.zeros((*y.shape, m))
        intercept: Any = 0.0 if y.ndim == 1 else np.zeros(y.shape[1])
        for j in map(int, np.flatnonzero(weights)):  # SVMs on all samples, for kernels with weight
            K = bank.combine(only(j, m))
            svm = self._svm(K, y, costs[j])
            values += weights[j] * (K @ svm.beta + svm.intercept)
            dual_coef[..., j] = svm.beta
            intercept = intercept + weights[j] * svm.intercept
            terms += bound.bank.restrict(np.array([j]), weights, svm.beta)
        return FittedModel(
            weights, dual_coef, intercept, **facts_of(bound), norm_name="none (weights by linear programming)",
            learnt_kernels=np.ones(m, dtype=bool), weights_rule="", C=C, loss=tasks[0].loss, n_passes=bank.passes,
            decision=plan.decision_by("linear programming", bank),
            function=KernelFunction(terms, intercept, m, bank.completion), findings=self._findings_of(tasks, [values]),
        )  # fmt: skip

    def _outputs(
        self, bound: Bound, plan: Plan, y: Array, weight: Array, splits: Splits
    ) -> tuple[Array, Array]:
        """Outputs of every kernel's SVM for samples that it was not trained on, at the best C, and that C."""
        Cs, m = _several("C", self.C), bound.bank.m
        held_out = np.zeros((len(Cs), *y.shape, m))
        parts = [splits] if plan.bank.missing == "error" else [[split] for split in splits]
        for folds in parts:  # one bank for all folds, or one for each where views are completed
            whole = plan.bank.missing == "error"
            bank = bound.bank if whole else fold_bank(bound, plan.bank, folds[0][0])
            for j in range(m):
                K = bank.combine(only(j, m))
                for (k, C), (train, test) in product(enumerate(Cs), folds):
                    inner = np.ascontiguousarray(K[np.ix_(train, train)])
                    svm = self._svm(inner, y[train], (C * weight)[train])
                    held_out[k, ..., j][test] = K[np.ix_(test, train)] @ svm.beta + svm.intercept
        scores = np.empty((len(Cs), m))  # share of the weight that is on the right side
        for k, j in np.ndindex(scores.shape):
            right = np.min(_leads(y, held_out[k, ..., j, None])[..., 0], axis=1) > 0
            scores[k, j] = float(weight @ right) / float(weight.sum())
        best = np.argmax(scores, axis=0)
        self.kernel_scores_ = scores[best, np.arange(m)]
        outputs = np.stack([held_out[best[j], ..., j] for j in range(m)], axis=-1)
        return outputs, np.asarray(Cs, dtype=float)[best]

    def _svm(self, K: Array, y: Array, c: Array) -> FixedSolution:
        each = c if y.ndim == 1 else np.repeat(c[:, None], y.shape[1], axis=1)
        return solve_fixed(K, Hinge(), y, each, self.fit_intercept, float(self.tol))


def _several(name: str, value: Any) -> list[Any]:
    """One value or several as a list."""
    several = isinstance(value, Sequence | np.ndarray) and not isinstance(value, str)
    values = list(value) if several else [value]
    if not values:
        raise ValueError(f"{name} needs at least one value, got {value!r}")
    return values


def _leads(y: Array, outputs: Array) -> Array:
    """By how much each kernel's output prefers the own class to the others, ``(n, rivals, m)``."""
    if y.ndim == 1:
        return (y[:, None] * outputs)[:, None, :]
    own = outputs[y > 0][:, None, :]
    others = outputs[y < 0].reshape(len(y), y.shape[1] - 1, outputs.shape[-1])
    return own - others
