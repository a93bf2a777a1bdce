"""Methods as studies run them: tuned on the training part alone, then fitted once more and timed."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelweave.estimators import MeanKernelRidgeClassifier, MKLClassifier, MKLClassifierCV
from kernelweave.exceptions import KernelWeaveConvergenceWarning

from .study import Row

#: C by five-fold cross-validation among these, unless a study says otherwise
C_GRID = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)


@dataclass(frozen=True)
class Split:
    """Training and test samples."""

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray


@dataclass(frozen=True)
class Method:
    """An MKL model whose C, and where several are given whose norm, is chosen by cross-validation.

    Attributes
    ----------
    name : str
        As tables call it.
    norms : tuple
        Norms to choose among; ``"ridge"`` alone is ridge on the mean kernel with closed-form leave-one-out.
    solver : str or Solver
        For the last fit, the one that is timed.
    fit_intercept : bool
    options : dict, optional
        Other parameters of ``MKLClassifier``.
    Cs : tuple
        Values of C to choose among; a single one is not tuned.
    """

    name: str
    norms: tuple[Any, ...]
    solver: Any = "auto"
    fit_intercept: bool = True
    options: tuple[tuple[str, Any], ...] = ()
    Cs: tuple[float, ...] = C_GRID


def effective_kernels(weights: np.ndarray) -> float:
    """Exponential of the entropy of the weights: m for equal ones, 1 for a single kernel.

    >>> effective_kernels(np.array([0.5, 0.5, 0.0]))
    2.0
    """
    d = weights[weights > 0] / np.sum(weights)
    return float(np.exp(-np.sum(d * np.log(d))))


def run_method(
    method: Method,
    kernels: Any,
    split: Split,
    *,
    tol: float,
    max_iter: int | None,
    folds: int = 5,
    seed: int = 0,
) -> Row:
    """Tune on the training part, fit, and test: one row."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KernelWeaveConvergenceWarning)  # the gap reached is reported
        return _run(method, kernels, split, tol, max_iter, folds, seed)


def _run(
    method: Method, kernels: Any, split: Split, tol: float, max_iter: int | None, folds: int, seed: int
) -> Row:
    began = time.perf_counter()
    common = {"fit_intercept": method.fit_intercept, **dict(method.options)}
    if method.norms == ("ridge",):
        model: Any = MeanKernelRidgeClassifier(kernels, **common)
        C, norm = None, "uniform"
    else:
        C, norm = _tuned(method, kernels, split, tol, folds, seed, common)
        model = MKLClassifier(
            kernels, norm=norm, C=C, solver=method.solver, tol=tol, max_iter=max_iter, **common
        )
    tuned = time.perf_counter()
    model.fit(split.X, split.y)
    done = time.perf_counter()
    weights = np.asarray(model.weights_)
    return {
        "method": method.name,
        "accuracy": float(model.score(split.X_test, split.y_test)),
        "C": float(model.C_) if C is None else C,
        "norm": str(norm),
        "fit_seconds": done - tuned,
        "tuning_seconds": tuned - began,
        "passes": float(model.n_passes_),
        "iterations": int(model.n_iter_),
        "relative_gap": float(model.certificate_.relative_gap),
        # a softmax is never zero: what no decision can feel does not count
        "kernels": int(np.count_nonzero(weights > 1e-6 * weights.max())),
        "effective_kernels": effective_kernels(weights),
    }


def _tuned(
    method: Method, kernels: Any, split: Split, tol: float, folds: int, seed: int, common: dict[str, Any]
) -> tuple[float, Any]:
    """C and norm by cross-validation; the solver is ``auto`` here, whatever the last fit will use."""
    if len(method.Cs) == 1 and len(method.norms) == 1:
        return method.Cs[0], method.norms[0]
    from sklearn.model_selection import StratifiedKFold

    rarest = int(np.unique(split.y, return_counts=True)[1].min())
    cv = StratifiedKFold(max(2, min(folds, rarest)), shuffle=True, random_state=seed)
    search = MKLClassifierCV(
        kernels, Cs=list(method.Cs), norms=list(method.norms), cv=cv, tol=tol, max_iter=500, **common
    )
    search.fit(split.X, split.y)
    return float(search.C_), search.norm_
