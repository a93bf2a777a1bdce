"""Sparse input that contradicts itself is a ValueError in fit, predict and partial_fit, in every format."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris

from kernelweave import KernelFeatures, MKLClassifier, MKLRegressor
from kernelweave import kernels as kw
from kernelweave.banks import ArrayRows

X, Y = load_iris(return_X_y=True)
X, Y = X[:100], Y[:100]
ESTIMATORS = {
    "default": MKLClassifier(),
    "streamed": MKLClassifier(kw.linear(), loss="logistic", norm="uniform", storage="stream"),
    "regression": MKLRegressor(kw.linear()),
    "features": KernelFeatures(kw.linear()),
}


def damaged(kind, how):
    """A matrix with one index far outside; compiled code would write there."""
    made = sp.csr_matrix(X).asformat(kind)
    if how == "indices":
        for part in ("indices", "row"):
            if hasattr(made, part):
                getattr(made, part)[5] = 2**30
    else:
        made.indptr[-2] = 2**30
    return made


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize(
    ("kind", "how"), [("csr", "indices"), ("csr", "indptr"), ("csc", "indices"), ("csc", "indptr"), ("coo", "indices")]
)  # fmt: skip
def test_fit_and_predict(name, kind, how):
    estimator = ESTIMATORS[name]
    with pytest.raises(ValueError, match="X is a damaged sparse matrix"):
        estimator.fit(damaged(kind, how), Y)
    estimator.fit(sp.csr_matrix(X), Y)
    use = getattr(estimator, "predict", None) or estimator.transform
    with pytest.raises(ValueError, match="X is a damaged sparse matrix"):
        use(damaged(kind, how))


def test_partial_fit():
    model = MKLClassifier(kw.linear(), norm=2, fit_intercept=False, solver="obscure")
    with pytest.raises(ValueError, match="damaged sparse matrix"):
        model.partial_fit(damaged("csr", "indices"), Y, classes=[0, 1])
    model.partial_fit(sp.csr_matrix(X), Y, classes=[0, 1])
    with pytest.raises(ValueError, match="damaged sparse matrix"):
        model.partial_fit(damaged("csc", "indices"), Y)


def test_rows_that_are_read_as_needed():
    with pytest.raises(ValueError, match="damaged sparse matrix"):
        ArrayRows(damaged("csc", "indptr"))


def test_repeated_entries_mean_their_sum():
    """A CSR matrix may name an entry twice; the streaming steps keep one clock for each feature."""
    whole = sp.csr_matrix(X)
    halves = sp.csr_matrix(
        (np.repeat(whole.data / 2, 2), np.repeat(whole.indices, 2), 2 * whole.indptr), shape=whole.shape
    )
    settings = {"loss": "logistic", "norm": "uniform", "storage": "stream", "solver": "svrg", "tol": 1e-4}
    one, two = (MKLClassifier(kw.linear(), **settings).fit(Z, Y) for Z in (whole, halves))
    np.testing.assert_allclose(two.decision_function(X), one.decision_function(X), rtol=1e-3, atol=1e-3)
    assert halves.nnz == 2 * whole.nnz


def test_streams_whose_parts_do_not_fit():
    model = MKLClassifier(kw.linear() + kw.gaussian(1.0), norm=2, fit_intercept=False, solver="obscure")
    model.partial_fit(X, Y, classes=[0, 1])
    stream = model._stream
    for name, value in (
        ("quad", np.zeros(1)), ("quad", np.zeros((2, 1))), ("quad", np.array([1, 2])), ("quad", [0.0, 1.0]),
        ("coef", stream.coef[:-1]), ("coef", np.hstack([stream.coef] * 3)), ("coef", stream.coef[:, 0]),
        ("coef", np.full_like(stream.coef, np.nan)), ("q", 0.0), ("eta", "2"),
    ):  # fmt: skip
        kept = getattr(stream, name)
        setattr(stream, name, value)
        with pytest.raises(ValueError, match="state of partial_fit is damaged"):
            model.partial_fit(X, Y)
        setattr(stream, name, kept)
    model.partial_fit(X, Y)
