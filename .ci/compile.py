"""Compile what the tests will call, while the machine waits for something else.

Every fit below needs compiled functions that those before it do not.  What is compiled is kept on disk
(``_numerics/compiled.py``): both processes of pytest find it there, where they would compile most of it twice.  What is
missing here costs time and nothing else.
"""

from __future__ import annotations

import warnings

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_iris

from kernelweave import MKLClassifier
from kernelweave import kernels as kw

X, classes = load_iris(return_X_y=True)
two = classes > 0
bank = kw.gaussian([0.5, 1.0, 2.0]) + kw.polynomial((1, 2)) + kw.linear()
features = kw.linear() + kw.random_fourier(2.0, n_features=16)
online = {"norm": 2, "fit_intercept": False}


def read_only(dtype: type) -> np.ndarray:
    """Return the kernels' matrices as they lie in a mapped file."""
    stack = np.stack([kernel(X) for kernel in bank]).astype(dtype)
    stack.flags.writeable = False
    return stack


FITS = [
    lambda: MKLClassifier(bank).fit(X, two),
    lambda: MKLClassifier(bank).fit(X, classes),
    lambda: MKLClassifier(bank, loss="squared_hinge", dtype="float32").fit(X, two),
    lambda: MKLClassifier(kw.per_feature(kw.gaussian([0.5, 1.0, 2.0, 4.0])), dtype="float32").fit(X, two),
    lambda: MKLClassifier("precomputed").fit(np.stack([k(X) for k in bank]).astype(np.float32), two),
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
    lambda: MKLClassifier("precomputed").fit(read_only(np.float64), two),
    lambda: MKLClassifier("precomputed").fit(read_only(np.float32), two),
    lambda: MKLClassifier(bank, solver="obscure", **online).partial_fit(X, two, [False, True]),
]


def main() -> None:
    warnings.simplefilter("ignore")
    for fit in FITS:
        try:
            fit()
        except Exception as error:  # the tests say what is wrong with a fit, and say it better
            print(f"not compiled: {error}")


if __name__ == "__main__":
    main()
