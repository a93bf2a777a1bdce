"""Where MKL is another method in disguise, that method's own implementation is the reference."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import SVC, SVR, LinearSVC

from kernelweave import MKLClassifier, MKLRegressor, losses, norms
from kernelweave import kernels as kw

from . import by_hand
from .data import bank

TIGHT = 1e-9


def normalised(A, X):
    return by_hand.trace_normalised(by_hand.raw_stack(A, X), by_hand.raw_stack(X, X))


@pytest.fixture(scope="module")
def binary():
    X, y = by_hand.moons(70, 4, noise=0.4)
    return X, y, by_hand.moons(31, 4, seed=9)[0]


@pytest.fixture(scope="module")
def regression():
    X, y = by_hand.curve(70, 4)
    return X, y, by_hand.curve(31, 4, seed=9)[0]


@pytest.mark.parametrize("C", [0.1, 1.0, 50.0])
def test_uniform_is_svc_on_the_mean_kernel(binary, C):
    X, y, X_new = binary
    ours = MKLClassifier(bank(), norm="uniform", C=C, tol=TIGHT).fit(X, y)
    svc = SVC(kernel="precomputed", C=C, tol=1e-10).fit(normalised(X, X).mean(axis=0), y)
    np.testing.assert_allclose(ours.weights_, np.full(10, 0.1))
    theirs = svc.decision_function(normalised(X_new, X).mean(axis=0))
    np.testing.assert_allclose(ours.decision_function(X_new), theirs, atol=2e-4 * np.abs(theirs).max())
    assert np.array_equal(ours.predict(X_new), svc.predict(normalised(X_new, X).mean(axis=0)))
    # its dual objective, from its own coefficients
    beta = np.zeros(70)
    beta[svc.support_] = svc.dual_coef_[0]
    value = np.abs(beta).sum() - 0.5 * beta @ normalised(X, X).mean(axis=0) @ beta
    assert ours.certificate_.primal == pytest.approx(value, rel=1e-7)


def test_sum_kernel_is_svc_on_the_sum(binary):
    X, y, X_new = binary
    svc = SVC(kernel="precomputed", C=1.0, tol=1e-10).fit(normalised(X, X).sum(axis=0), y)
    theirs = svc.decision_function(normalised(X_new, X).sum(axis=0))
    for norm in (norms.Block(r=2.0), np.inf):
        ours = MKLClassifier(bank(), norm=norm, tol=TIGHT).fit(X, y)
        np.testing.assert_allclose(ours.weights_, 1.0, rtol=1e-6)
        np.testing.assert_allclose(ours.decision_function(X_new), theirs, atol=1e-3)


@pytest.mark.parametrize("norm", ["l1", 2.0, "uniform"])
@pytest.mark.parametrize("weights", [None, "balanced", {-1: 3.0, 1: 0.5}])
def test_one_kernel_is_svc(binary, norm, weights):
    X, y, X_new = binary
    X, y = X[8:], np.concatenate([y[8:40], np.where(np.arange(30) % 3 == 0, -1, 1)])
    sample = np.random.default_rng(0).uniform(0.2, 2.0, size=62)
    ours = MKLClassifier(kw.gaussian(0.8), norm=norm, C=3.0, tol=TIGHT, class_weight=weights)
    svc = SVC(gamma=1 / (2 * 0.8**2), C=3.0, tol=1e-10, class_weight=weights)
    # where both kinds of weights are given, "balanced" balances the weighted classes here and the counts there
    for options in ({},) if weights == "balanced" else ({}, {"sample_weight": sample}):
        theirs = svc.fit(X, y, **options).decision_function(X_new)
        np.testing.assert_allclose(
            ours.fit(X, y, **options).decision_function(X_new), theirs, atol=2e-4 * np.abs(theirs).max()
        )
    assert ours.weights_ == pytest.approx(1.0)


def test_balanced_counts_weighted_samples(binary):
    """Both classes get half of the total weight, whatever the weights of their samples are."""
    X, y, X_new = binary
    sample = np.random.default_rng(0).uniform(0.2, 2.0, size=70) * np.where(y > 0, 3.0, 1.0)
    half = np.where(y > 0, 0.5 / sample[y > 0].sum(), 0.5 / sample[y < 0].sum()) * sample.sum()
    ours = MKLClassifier(
        kw.linear(), loss="logistic", C=0.7, tol=1e-10, normalize=None, class_weight="balanced"
    ).fit(X, y, sample_weight=sample)
    theirs = LogisticRegression(C=0.7, tol=1e-10, max_iter=10000).fit(X, y, sample_weight=sample * half)
    np.testing.assert_allclose(ours.decision_function(X_new), theirs.decision_function(X_new), atol=1e-4)


def test_one_kernel_is_svr(regression):
    X, y, X_new = regression
    for epsilon in (0.0, 0.1, 0.4):
        loss = losses.EpsilonInsensitive(epsilon)
        ours = MKLRegressor(kw.gaussian(1.0), loss=loss, C=2.0, tol=TIGHT).fit(X, y)
        svr = SVR(gamma=0.5, C=2.0, epsilon=epsilon, tol=1e-10).fit(X, y)
        np.testing.assert_allclose(ours.predict(X_new), svr.predict(X_new), atol=1e-4)
    default = MKLRegressor(kw.gaussian(1.0), loss="epsilon_insensitive", C=2.0, tol=TIGHT).fit(X, y)
    svr = SVR(gamma=0.5, C=2.0, epsilon=0.1, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(default.predict(X_new), svr.predict(X_new), atol=1e-4)


@pytest.mark.parametrize("C", [0.05, 5.0])
def test_squared_loss_is_ridge(regression, C):
    X, y, X_new = regression
    ours = MKLRegressor(kw.gaussian(1.0), C=C, tol=1e-10, fit_intercept=False).fit(X, y)
    theirs = KernelRidge(kernel="rbf", gamma=0.5, alpha=1 / (2 * C)).fit(X, y)
    np.testing.assert_allclose(ours.predict(X_new), theirs.predict(X_new), atol=1e-6)
    ours = MKLRegressor(kw.linear(), C=C, tol=1e-10, normalize=None).fit(X, y)
    theirs = Ridge(alpha=1 / (2 * C)).fit(X, y)
    np.testing.assert_allclose(ours.predict(X_new), theirs.predict(X_new), atol=1e-6)
    assert ours.intercept_ == pytest.approx(theirs.intercept_, abs=1e-6)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_logistic_loss_is_logistic_regression(binary, fit_intercept):
    X, y, X_new = binary
    X, X_new = X + 0.5, X_new + 0.5
    ours = MKLClassifier(
        kw.linear(), loss="logistic", C=0.7, tol=1e-10, normalize=None, fit_intercept=fit_intercept
    ).fit(X, y)
    theirs = LogisticRegression(C=0.7, tol=1e-10, max_iter=10000, fit_intercept=fit_intercept).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X_new), theirs.decision_function(X_new), atol=1e-4)
    np.testing.assert_allclose(ours.predict_proba(X_new), theirs.predict_proba(X_new), atol=1e-4)
    np.testing.assert_allclose(X.T @ ours.dual_coef_, theirs.coef_[0], atol=1e-4)


def test_squared_hinge_is_linear_svc(binary):
    X, y, X_new = binary
    ours = MKLClassifier(
        kw.linear(), loss="squared_hinge", C=0.7, tol=TIGHT, normalize=None, fit_intercept=False
    ).fit(X, y)
    theirs = LinearSVC(C=0.7, tol=1e-10, max_iter=100_000, fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X_new), theirs.decision_function(X_new), atol=1e-4)


def test_two_kernels_by_a_search_with_svc(binary):
    """l1-MKL on two kernels: the lowest SVM objective on a line, found with SVC alone."""
    X, y, _ = binary
    K1, K2 = by_hand.gaussian(X, X, 1.0), by_hand.laplacian(X, X, 0.5)

    def svm_objective(d):
        K = d * K1 + (1 - d) * K2
        svc = SVC(kernel="precomputed", C=4.0, tol=1e-8).fit(K, y)
        beta = np.zeros(70)
        beta[svc.support_] = svc.dual_coef_[0]
        return np.abs(beta).sum() - 0.5 * beta @ K @ beta

    search = minimize_scalar(svm_objective, bounds=(0, 1), method="bounded", options={"xatol": 1e-7})
    assert 0.05 < search.x < 0.95  # both kernels are needed, else this would test nothing
    for solver in ("auto", "level", "silp", "simplemkl", "subgradient"):
        ours = MKLClassifier(
            kw.gaussian(1.0) + kw.laplacian(0.5), C=4.0, tol=1e-7, solver=solver
        ).fit(X, y)  # fmt: skip
        assert ours.certificate_.primal == pytest.approx(search.fun, rel=1e-6)
        assert ours.weights_[0] == pytest.approx(search.x, abs=2e-3)
        assert ours.weights_.sum() == pytest.approx(1.0)
