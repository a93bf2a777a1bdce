"""Exact kernels on two workers: what one process finds, to the last digits."""

import dask.array as da
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.preprocessing import scale

from kernelweave import (
    BestKernelClassifier,
    LPBetaClassifier,
    MeanKernelRidgeClassifier,
    MKLClassifier,
    MKLClassifierCV,
    MKLRegressor,
    NoisyLabelMKLClassifier,
    distributed,
    norms,
)
from kernelweave import kernels as kw
from kernelweave.banks import Computed, Gram, Normaliser
from kernelweave.cluster import cluster_bank
from kernelweave.exceptions import ScaleWarning

BANK = kw.gaussian([1.0, 2.0, 4.0]) + kw.per_feature(kw.gaussian(1.0)) + kw.linear()


def cancer(n=150):
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X[:n, :6]), y[:n]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"norm": 1.5, "center": True},
        {"norm": 2, "normalize": "cosine"},
        {"solver": "nesterov", "norm": 2, "loss": "squared_hinge", "C": 0.1},
        {"loss": "logistic", "norm": 2},
        {"norm": 2, "solver": "working_set", "storage": "lazy"},
        {"norm": 2, "solver": "lbfgs", "loss": "squared_hinge"},
    ],
    ids=str,
)
def test_two_workers_find_what_one_process_finds(client, options):
    X, y = cancer()
    options = {"kernels": BANK, "tol": 1e-9, **options}
    alone = MKLClassifier(**options).fit(X, y)
    together = distributed.fit(client, MKLClassifier(**options), X, y)
    assert together.cluster_.parts == 2
    assert together.solver_ == alone.solver_
    assert together.certificate_.primal == pytest.approx(alone.certificate_.primal, rel=1e-8)
    assert together.certificate_.dual == pytest.approx(alone.certificate_.dual, rel=1e-8)
    np.testing.assert_allclose(together.weights_, alone.weights_, atol=1e-4)
    np.testing.assert_allclose(together.decision_function(X), alone.decision_function(X), atol=1e-3)


def test_classes_regression_and_folds(client):
    X, y = load_wine(return_X_y=True)
    X = scale(X)
    alone, together = (MKLClassifier(BANK, norm=norms.Block(1.5), C=0.1, tol=1e-9) for _ in range(2))
    alone.fit(X, y)
    distributed.fit(client, together, X, y)
    assert together.certificate_.primal == pytest.approx(alone.certificate_.primal, rel=1e-8)
    Z, t = (part[:120] for part in load_diabetes(return_X_y=True))
    Z, t = scale(Z), scale(t)
    value = MKLRegressor(BANK, tol=1e-9).fit(Z, t).certificate_.primal
    fitted = distributed.fit(client, MKLRegressor(BANK, tol=1e-9), Z, t)
    assert fitted.certificate_.primal == pytest.approx(value, rel=1e-8)
    apart, cv = (MKLClassifierCV(BANK, Cs=[0.1, 1.0], cv=3, tol=1e-9) for _ in range(2))
    apart.fit(X[:100], y[:100])
    distributed.fit(client, cv, X[:100], y[:100])
    assert cv.C_ == apart.C_
    assert cv.certificate_.primal == pytest.approx(apart.certificate_.primal, rel=1e-8)


@pytest.mark.parametrize(
    "estimator",
    [
        NoisyLabelMKLClassifier(BANK),
        NoisyLabelMKLClassifier(BANK, method="trimmed", C=1.0),
        MeanKernelRidgeClassifier(BANK),
        BestKernelClassifier(BANK),
        LPBetaClassifier(BANK),
    ],
    ids=lambda one: type(one).__name__,
)
def test_every_estimator_takes_collections_of_dask(client, estimator):
    X, y = cancer(80)
    alone = clone(estimator).fit(X, y).predict(X)
    with client.as_current():
        fitted = clone(estimator).fit(da.from_array(X, chunks=(50, -1)), da.from_array(y))
    assert np.mean(fitted.predict(X) == alone) > 0.97
    assert fitted.predict(da.from_array(X, chunks=(50, -1))).shape == (80,)


def same_kind(a, b):
    return float(a[0] == b[0])


def test_objects_and_tables_go_to_workers_too(client):
    import pandas as pd

    X, y = cancer()
    frame = pd.DataFrame(X, columns=list("abcdef"))
    frame["kind"] = np.where(X[:, 0] > 0, "large", "small")
    bank = kw.gaussian(1.0).on(["a", "b"]) + kw.function(same_kind).on(["kind"])
    alone = MKLClassifier(bank, tol=1e-9).fit(frame, y)
    together = distributed.fit(client, MKLClassifier(bank, tol=1e-9), frame, y)
    assert together.certificate_.primal == pytest.approx(alone.certificate_.primal, rel=1e-8)
    np.testing.assert_array_equal(together.predict(frame), alone.predict(frame))


@pytest.mark.parametrize("storage", ["dense", "lazy"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_every_method_of_the_bank(client, storage, dtype):
    """Against kernels computed here; a float32 bank in double precision is exact again."""
    X, _ = cancer(61)
    kernels = [k.resolve(X) for k in kw.expand_kernels(BANK, kw.Schema.of(X))]
    empty = [Normaliser.empty("trace", True, len(kernels), 61, [k.name for k in kernels]) for _ in range(2)]
    bank = cluster_bank(client, kernels, X, empty[0], storage=storage, dtype=dtype)
    for j, kernel in enumerate(kernels):
        K = kernel(X)
        empty[1].learn(j, np.diagonal(K).copy(), K.mean(axis=1))
    here = Gram(Computed(kernels, X, 61, empty[1]))
    rng = np.random.default_rng(0)
    a, A = rng.standard_normal(61) * (rng.random(61) < 0.7), rng.standard_normal((61, 3))
    weights = np.where(np.arange(bank.m) % 2, 0.0, 1.0 / bank.m)
    rows, cols, some = np.array([50, 3, 31, 30]), np.array([7, 60, 2]), np.array([4, 0])
    for tried, atol in ((bank, 1e-12 if dtype == "float64" else 1e-4), (bank.exact(), 1e-11)):
        close = {"atol": atol, "rtol": 0.0}
        np.testing.assert_allclose(tried.block(rows, cols, some), here.block(rows, cols, some), **close)
        np.testing.assert_allclose(tried.apply(a), here.apply(a), **close)
        np.testing.assert_allclose(tried.apply(A, rows, some), here.apply(A, rows, some), **close)
        np.testing.assert_allclose(tried.quad(a), here.quad(a), **close)
        np.testing.assert_allclose(tried.quad(A, some), here.quad(A, some), **close)
        np.testing.assert_allclose(tried.combine(weights), here.combine(weights), **close)
        np.testing.assert_allclose(
            tried.mix_block(weights, rows, cols), here.mix_block(weights, rows, cols), **close
        )
        np.testing.assert_allclose(tried.mix_product(weights, A), here.mix_product(weights, A), **close)
        np.testing.assert_allclose(tried.diag(), here.diag(), **close)
        for got, known in zip(tried.judged(weights, a), here.judged(weights, a), strict=True):
            np.testing.assert_allclose(got, known, **close)
    bytes_of = {"float64": 8, "float32": 4}[dtype]
    assert bank.nbytes == (bank.m * 61 * 61 * bytes_of if storage == "dense" else 0)


def test_a_round_brings_back_no_more_than_is_needed(client):
    """Quadratic forms: a vector to every part, m numbers back; the mixed kernel: no entry twice."""
    X, _ = cancer(60)
    kernels = [k.resolve(X) for k in kw.expand_kernels(BANK, kw.Schema.of(X))]
    empty = Normaliser.empty("trace", False, len(kernels), 60, [k.name for k in kernels])
    bank = cluster_bank(client, kernels, X, empty)
    cost = bank.cluster_cost

    def spent(action):
        before = (cost.rounds, cost.sent, cost.received)
        action()
        return tuple(
            now - then for now, then in zip((cost.rounds, cost.sent, cost.received), before, strict=True)
        )

    flag = 8  # whether double precision is asked for
    assert spent(lambda: bank.quad(np.ones(60))) == (1, 2 * (60 * 8 + flag), 2 * bank.m * 8)
    weights = np.ones(bank.m)
    rounds, _, received = spent(lambda: bank.combine(weights))
    assert (rounds, received) == (1, 60 * (60 // 2 + 1) * 8)  # of every two samples one's entry
    rounds, _, received = spent(lambda: bank.judged(weights, np.ones(60)))
    shares = 2 * (bank.m + 60)  # of the product too, from the rows that are used
    assert (rounds, received) == (1, shares * 8)


def test_scales_are_looked_at_where_the_rows_are(client):
    X, y = load_wine(return_X_y=True)
    with pytest.warns(ScaleWarning, match="hardly count") as caught:
        model = distributed.fit(client, MKLClassifier(), X, y)
    assert [one.filename for one in caught if one.category is ScaleWarning] == [__file__]
    assert "hardly count" in model.findings_[0]
    rows = da.from_array(X, chunks=(60, -1))
    with pytest.warns(ScaleWarning, match="hardly count"):
        distributed.fit(client, MKLClassifier(kw.linear(), loss="logistic", norm=2, solver="lbfgs"), rows, y)
    assert distributed.fit(client, MKLClassifier(), scale(X), y).findings_ == ()
