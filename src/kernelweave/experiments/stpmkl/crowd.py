"""Real crowd labels: music genres, 44 workers, almost half of their labels wrong."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler

from ... import kernels as kw
from ...crowd import aggregate
from ...datasets import load_crowd
from ...estimators import MeanKernelRidgeClassifier, MKLClassifierCV, NoisyLabelMKLClassifier
from ...exceptions import KernelWeaveConvergenceWarning
from .._study import Row

__all__ = ["CROWD_METHODS", "run_crowd_method"]

CS = (0.1, 1.0, 10.0, 100.0)


def _kernels() -> Any:
    """The default bank: Gaussians of 1/4 to 4 median distances, and the linear kernel."""
    return kw.default_bank()


def _tuned(norm: Any) -> Callable[[Any, Any, np.ndarray], Any]:
    def fit(X: Any, annotations: Any, majority: np.ndarray) -> Any:
        folds = StratifiedKFold(5, shuffle=True, random_state=0)
        model = MKLClassifierCV(_kernels(), norm=norm, Cs=list(CS), cv=folds, multi_class="shared", tol=1e-2)
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
