"""The methods of the StPMKL study: tuned on noisy labels alone, and on the labels of a crowd."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.preprocessing import StandardScaler

from kernelweave import kernels as kw
from kernelweave.crowd import aggregate
from kernelweave.estimators import (
    MeanKernelRidgeClassifier,
    MKLClassifier,
    MKLClassifierCV,
    NoisyLabelMKLClassifier,
)
from kernelweave.exceptions import KernelWeaveConvergenceWarning
from kernelweave.losses import BudgetedHinge

from ..datasets import load_crowd
from ..methods import Split
from ..study import Row

TOL = 1e-2
VALIDATION_CS = (0.01, 0.1, 1.0, 10.0, 100.0)
BUDGETS = (0.25, 0.5, 0.75, 1.0)
FOLD_CS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)


def _l1(kernels: Any, C: float) -> Any:
    return MKLClassifier(kernels, C=C, tol=TOL, fit_intercept=False)


def _stochastic(kernels: Any, C: float, budget: float) -> Any:
    return MKLClassifier(kernels, loss=BudgetedHinge(budget), C=C, tol=TOL, fit_intercept=False)


def _noisy(method: str, **options: Any) -> Callable[[Any, float], Any]:
    def make(kernels: Any, C: float) -> Any:
        return NoisyLabelMKLClassifier(kernels, method=method, C=C, tol=TOL, **options)

    return make


def _by_validation(make: Callable[..., Any], *grid: Sequence[float]) -> Callable[[Any, Split, int], Any]:
    """Pick parameters on 10 % of the noisy training part, as in the paper; ties go to the first, then fit all of it."""

    def fit(kernels: Any, split: Split, seed: int) -> Any:
        X, X_val, y, y_val = train_test_split(
            split.X, split.y, test_size=0.1, stratify=split.y, random_state=seed
        )
        choices = list(product(*grid))
        scores = [make(kernels, *choice).fit(X, y).score(X_val, y_val) for choice in choices]
        return make(kernels, *choices[int(np.argmax(scores))]).fit(split.X, split.y)

    return fit


def _by_folds(norm: Any) -> Callable[[Any, Split, int], Any]:
    """C by five folds of the noisy training part."""

    def fit(kernels: Any, split: Split, seed: int) -> Any:
        folds = StratifiedKFold(5, shuffle=True, random_state=seed)
        return MKLClassifierCV(kernels, norm=norm, Cs=list(FOLD_CS), cv=folds, tol=TOL).fit(split.X, split.y)

    return fit


def _itself(make: Callable[[Any], Any]) -> Callable[[Any, Split, int], Any]:
    """Methods that tune themselves."""

    def fit(kernels: Any, split: Split, seed: int) -> Any:
        return make(kernels).fit(split.X, split.y)

    return fit


#: name -> how it is fitted; the first three are the paper's, without an intercept
METHODS: dict[str, Callable[[Any, Split, int], Any]] = {
    "SiPMKL": _by_validation(_l1, VALIDATION_CS),
    "StPMKL": _by_validation(_stochastic, VALIDATION_CS, BUDGETS),
    "MiPMKL": _by_validation(_noisy("trimmed", fit_intercept=False), VALIDATION_CS),
    "ramp": _by_validation(_noisy("ramp"), VALIDATION_CS),
    "corrected": _by_validation(_noisy("corrected"), VALIDATION_CS),
    "l1-MKL, 5 folds": _by_folds("l1"),
    "mean kernel, 5 folds": _by_folds("uniform"),
    "mean kernel, ridge": _itself(MeanKernelRidgeClassifier),
    "auto": _itself(NoisyLabelMKLClassifier),
}


def run_noisy_method(name: str, kernels: Any, split: Split, seed: int) -> Row:
    """Tune, fit and test one method."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KernelWeaveConvergenceWarning)
        began = time.perf_counter()
        model = METHODS[name](kernels, split, seed)
    return {
        "method": name,
        "accuracy": float(model.score(split.X_test, split.y_test)),
        "C": float(np.mean(model.C_)),
        "seconds": time.perf_counter() - began,
        "picked": str(getattr(model, "picked_", "")),
    }


# ---- real crowd labels: music genres, 44 workers, almost half of their labels wrong ----------------------------------

CROWD_CS = (0.1, 1.0, 10.0, 100.0)


def _kernels() -> Any:
    """The default bank: Gaussians of 1/4 to 4 median distances, and the linear kernel."""
    return kw.default_bank()


def _tuned(norm: Any) -> Callable[[Any, Any, np.ndarray], Any]:
    def fit(X: Any, annotations: Any, majority: np.ndarray) -> Any:
        folds = StratifiedKFold(5, shuffle=True, random_state=0)
        model = MKLClassifierCV(
            _kernels(), norm=norm, Cs=list(CROWD_CS), cv=folds, multi_class="shared", tol=1e-2
        )
        return model.fit(X, majority)

    return fit


def _crowd(crowd: str) -> Callable[[Any, Any, np.ndarray], Any]:
    def fit(X: Any, annotations: Any, majority: np.ndarray) -> Any:
        return NoisyLabelMKLClassifier(_kernels(), crowd=crowd).fit(X, annotations)

    return fit


CROWD_METHODS: dict[str, Callable[[Any, Any, np.ndarray], Any]] = {
    "l1-MKL, majority": _tuned("l1"),
    "mean kernel SVM, majority": _tuned("uniform"),
    "mean kernel, ridge, majority": lambda X, annotations, majority: MeanKernelRidgeClassifier(
        _kernels()
    ).fit(X, majority),
    "auto, votes": _crowd("majority"),
    "auto, Dawid-Skene": _crowd("dawid_skene"),
}


def run_crowd_method(name: str) -> Row:
    """Fit one method on the annotations and test it on true labels."""
    data = load_crowd("music_genre")
    scaler = StandardScaler().fit(data.data)
    X, X_test = scaler.transform(data.data), scaler.transform(data.test_data)
    majority = aggregate(data.annotations, len(X))
    began = time.perf_counter()
    row: Row = {"majority_right": float(np.mean(majority.labels == data.target))}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", KernelWeaveConvergenceWarning)
            model = CROWD_METHODS[name](X, data.annotations, majority.labels)
    except ImportError as error:
        return {**row, "accuracy": np.nan, "seconds": 0.0, "picked": str(error)}
    used = getattr(model, "annotated_", majority)
    return {
        **row,
        "accuracy": float(model.score(X_test, data.test_target)),
        "labels_right": float(np.mean(used.labels == data.target)),
        "noise_rate": float(getattr(model, "noise_rate_", np.nan)),
        "seconds": time.perf_counter() - began,
        "picked": str(getattr(model, "picked_", "")),
    }
