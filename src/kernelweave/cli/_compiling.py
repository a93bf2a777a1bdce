"""Small fits that use every compiled loop once: ``kernelweave compile``."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_iris

from .. import MKLClassifier, MKLClassifierCV, MKLRegressorCV, NoisyLabelMKLClassifier
from .. import kernels as kw
from ..exceptions import KernelWeaveWarning

X, CLASSES = load_iris(return_X_y=True)
TWO = CLASSES > 0
BANK = kw.gaussian([0.5, 1.0, 2.0]) + kw.polynomial((1, 2)) + kw.linear()
FEATURES = kw.linear() + kw.random_fourier(2.0, n_features=16)
ONLINE: dict[str, Any] = {"norm": 2, "fit_intercept": False}


def _given(dtype: Any, read_only: bool = False) -> Any:
    """Return the kernels' matrices, or as they lie in a mapped file."""
    stack = np.stack([kernel(X) for kernel in BANK]).astype(dtype)
    stack.flags.writeable = not read_only
    return stack


#: what most people fit: what it is, and the fit
FITS: list[tuple[str, Callable[[], Any]]] = [
    ("two classes", lambda: MKLClassifierCV(BANK, Cs=[1.0, 10.0], cv=2).fit(X, TWO).predict(X)),
    ("several classes", lambda: MKLClassifier(BANK).fit(X, CLASSES).predict(X)),
    ("numbers", lambda: MKLRegressorCV(BANK, Cs=[1.0, 10.0], cv=2).fit(X, X[:, 0])),
    ("probabilities", lambda: MKLClassifier(BANK, loss="logistic").fit(X, TWO)),
    ("linear kernels", lambda: MKLClassifier(kw.per_feature(kw.linear())).fit(X, TWO)),
    ("wrong labels", lambda: NoisyLabelMKLClassifier(BANK, noise_rate=0.1).fit(X, TWO)),
    ("matrices that are given", lambda: MKLClassifier("precomputed").fit(_given(float), TWO)),
]
#: sparse or streamed samples, single precision, solvers that ``auto`` seldom takes
OTHERS: list[tuple[str, Callable[[], Any]]] = [
    ("single precision", lambda: MKLClassifier(BANK, loss="squared_hinge", dtype="float32").fit(X, TWO)),
    ("single precision by column", lambda: MKLClassifier(
        kw.per_feature(kw.gaussian([0.5, 1.0, 2.0, 4.0])), dtype="float32").fit(X, TWO)),
    ("given in single precision", lambda: MKLClassifier("precomputed").fit(_given(np.float32), TWO)),
    ("given in a file", lambda: MKLClassifier("precomputed").fit(_given(float, read_only=True), TWO)),
    ("given in a file, single precision", lambda: MKLClassifier("precomputed").fit(
        _given(np.float32, read_only=True), TWO)),
    ("sparse samples", lambda: MKLClassifier(BANK).fit(sp.csr_matrix(X), TWO)),
    ("without an intercept", lambda: MKLClassifier(BANK, fit_intercept=False).fit(X, TWO)),
    ("kernels computed when read", lambda: MKLClassifier(BANK, storage="lazy", dtype="float32").fit(X, TWO)),
    ("block_descent", lambda: MKLClassifier(FEATURES, loss="logistic", solver="block_descent").fit(X, TWO)),
    ("svrg", lambda: MKLClassifier(FEATURES, loss="logistic", norm=1.5, solver="svrg").fit(X, TWO)),
    ("svrg on sparse samples", lambda: MKLClassifier(
        kw.linear(), loss="logistic", norm=1.5, solver="svrg").fit(sp.csr_matrix(X), TWO)),
    ("svrg on them in single precision", lambda: MKLClassifier(
        kw.linear(), loss="logistic", norm=1.5, solver="svrg", dtype="float32").fit(sp.csr_matrix(X), TWO)),
    ("obscure", lambda: MKLClassifier(BANK, solver="obscure", **ONLINE).fit(X, TWO)),
    ("obscure on features", lambda: MKLClassifier(FEATURES, solver="obscure", **ONLINE).fit(X, CLASSES)),
    ("obscure in parts", lambda: MKLClassifier(BANK, solver="obscure", **ONLINE).partial_fit(X, TWO, [False, True])),
    ("dual_ascent", lambda: MKLClassifier(BANK, solver="dual_ascent", **ONLINE).fit(X, CLASSES)),
    ("dual_ascent on features", lambda: MKLClassifier(FEATURES, solver="dual_ascent", **ONLINE).fit(X, CLASSES)),
]  # fmt: skip


def run(fit: Callable[[], Any]) -> None:
    """Fit; what the library has to say about such data is nobody's concern."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KernelWeaveWarning)
        fit()
