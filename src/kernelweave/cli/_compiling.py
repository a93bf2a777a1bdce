"""Small fits that use the compiled loops once: ``kernelweave compile``."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
from sklearn.datasets import load_iris

from .. import MKLClassifier, MKLClassifierCV, MKLRegressorCV, NoisyLabelMKLClassifier
from .. import kernels as kw
from ..exceptions import KernelWeaveWarning


def compile_all() -> Iterator[str]:
    """Fit what most people fit, in turn, and name each fit when it is done."""
    X, classes = load_iris(return_X_y=True)
    two = classes > 0
    bank = kw.gaussian([0.5, 1.0, 2.0]) + kw.polynomial((1, 2)) + kw.linear()
    fits = {
        "two classes": (MKLClassifierCV(bank, Cs=[1.0, 10.0], cv=2), X, two),
        "several classes": (MKLClassifier(bank), X, classes),
        "numbers": (MKLRegressorCV(bank, Cs=[1.0, 10.0], cv=2), X, X[:, 0]),
        "probabilities": (MKLClassifier(bank, loss="logistic"), X, two),
        "linear kernels": (MKLClassifier(kw.per_feature(kw.linear())), X, two),
        "wrong labels": (NoisyLabelMKLClassifier(bank, noise_rate=0.1), X, two),
        "single precision": (MKLClassifier(bank, dtype="float32"), X, two),
        "given matrices": (MKLClassifier("precomputed"), np.stack([kernel(X) for kernel in bank]), two),
    }
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", KernelWeaveWarning
        )  # what there is to say of such data concerns nobody
        for name, (estimator, samples, y) in fits.items():
            estimator.fit(samples, y).predict(samples[:, :5] if samples.ndim == 3 else samples)
            yield name
