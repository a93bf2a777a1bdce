"""Small fits that make numba compile what larger ones will need: ``kernelweave compile``.

Every fit needs compiled functions that those before it do not.  What is compiled is kept on disk
(``_numerics/compiled.py``), where every later process finds it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed
from sklearn.datasets import load_iris

from .. import kernels as kw
from ..estimators import MKLClassifier, MKLRegressor, MKLSurvival
from ..metrics import survival

X, classes = load_iris(return_X_y=True)
two = classes > 0
bank = kw.gaussian([0.5, 1.0, 2.0]) + kw.polynomial((1, 2)) + kw.linear()
features = kw.linear() + kw.random_fourier(2.0, n_features=16)
online: dict[str, Any] = {"norm": 2, "fit_intercept": False}


def matrices(dtype: type, writeable: bool = True) -> np.ndarray:
    """Return the kernels' matrices, on request as they lie in a mapped file."""
    stack: np.ndarray = np.stack([kernel(X) for kernel in bank]).astype(dtype)
    stack.flags.writeable = writeable
    return stack


#: what most programs fit: two classes, several, a regression
COMMON: list[Callable[[], Any]] = [
    lambda: MKLClassifier(bank).fit(X, two).predict(X),
    lambda: MKLClassifier(bank).fit(X, classes).predict(X),
    lambda: MKLRegressor(bank).fit(X, X[:, 0]).predict(X),
]
#: other losses, solvers, precisions and kinds of data
OTHERS: list[Callable[[], Any]] = [
    lambda: MKLClassifier(bank, loss="squared_hinge", dtype="float32").fit(X, two),
    lambda: MKLClassifier(kw.per_feature(kw.gaussian([0.5, 1.0, 2.0, 4.0])), dtype="float32").fit(X, two),
    lambda: MKLClassifier("precomputed").fit(matrices(np.float32), two),
    lambda: MKLClassifier(bank).fit(sp.csr_matrix(X), two),
    lambda: MKLClassifier(features, loss="logistic", solver="block_descent").fit(X, two),
    lambda: MKLClassifier(features, loss="logistic", norm=1.5, solver="svrg").fit(X, two),
    lambda: MKLClassifier(features, solver="obscure", **online).fit(X, classes),
    lambda: MKLClassifier(bank, solver="obscure", **online).fit(X, two),
    lambda: MKLClassifier(bank, solver="dual_ascent", **online).fit(X, classes),
    lambda: MKLClassifier(features, solver="dual_ascent", **online).fit(X, classes),
    lambda: MKLClassifier(bank, storage="lazy", dtype="float32").fit(X, two),
    lambda: MKLClassifier(bank, fit_intercept=False).fit(X, two),
    lambda: MKLClassifier(kw.linear(), loss="logistic", norm=1.5, solver="svrg").fit(sp.csr_matrix(X), two),
    lambda: MKLClassifier(kw.linear(), loss="logistic", norm=1.5, solver="svrg", dtype="float32").fit(X, two),
    lambda: MKLClassifier("precomputed").fit(matrices(np.float64, writeable=False), two),
    lambda: MKLClassifier("precomputed").fit(matrices(np.float32, writeable=False), two),
    lambda: MKLClassifier(bank, solver="obscure", **online).partial_fit(X, two, [False, True]),
    lambda: MKLSurvival(bank).fit(X, survival(X[:, 0], two)).score(X, survival(X[:, 0], two)),
]


def _run(at: int) -> str | None:
    """Fit one of them; return what is wrong with it."""
    warnings.simplefilter("ignore")
    try:
        (COMMON + OTHERS)[at]()
    except Exception as error:
        return str(error)
    return None


def compile_ahead(everything: bool, jobs: int | None) -> list[str]:
    """Fit the common problems, or all, in processes of their own; return what went wrong."""
    count = len(COMMON) + (len(OTHERS) if everything else 0)
    found = Parallel(n_jobs=jobs)(delayed(_run)(at) for at in range(count))
    return [error for error in found if error is not None]
