"""What the pages for people who come from elsewhere say is the same, is: both programs are run where the other installs.

``pip install '.[rivals]'`` installs MKLpy and himalaya; SHOGUN and SimpleMKL's Matlab code do not install with pip, so
that their tables are checked against what defines a solution.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale
from sklearn.svm import SVC, SVR

from kernelweave import (
    MeanKernelClassifier,
    MKLClassifier,
    MKLRegressor,
    MKLSurvival,
    Pairs,
    losses,
    norms,
    survival,
)
from kernelweave import kernels as kw
from kernelweave import metrics as own
from kernelweave.inspection import feature_weights

from .test_pages import ROOT

X, Y = load_breast_cancer(return_X_y=True)
X, Y = scale(X)[:160], Y[:160]
NEW, X, Y = X[120:], X[:120], Y[:120]
TARGETS = X[:, :3] @ np.array([1.0, -1.0, 0.5]) + np.sin(X[:, 3])
TIGHT = {"tol": 1e-9, "normalize": None}


def test_svc():
    theirs = SVC(C=2.0, gamma=0.05, tol=1e-8).fit(X, Y)
    ours = MKLClassifier(kw.gaussian(1 / np.sqrt(2 * 0.05)), C=2.0, norm="uniform", **TIGHT).fit(X, Y)
    np.testing.assert_allclose(ours.decision_function(NEW), theirs.decision_function(NEW), atol=1e-4)


def test_svc_with_its_default_width():
    theirs = SVC(tol=1e-8).fit(X, Y)
    kernel = kw.gaussian(gamma=1 / (X.shape[1] * X.var()))  # as docs/from_svc.md says
    assert "kw.gaussian(gamma=1 / (X.shape[1] * X.var()))" in (ROOT / "docs" / "from_svc.md").read_text()
    ours = MKLClassifier(kernel, **TIGHT).fit(X, Y)
    np.testing.assert_allclose(ours.decision_function(NEW), theirs.decision_function(NEW), atol=1e-4)
    numbers = SVR(C=2.0, epsilon=0.1, tol=1e-8).fit(X, TARGETS).predict(NEW)
    loss = losses.EpsilonInsensitive(0.1)
    same = MKLRegressor(kernel, loss=loss, C=2.0, **TIGHT).fit(X, TARGETS).predict(NEW)
    np.testing.assert_allclose(same, numbers, atol=1e-3)


def test_svc_with_matrices():
    stack = np.array([kw.linear()(X), kw.gaussian(4.0)(X)])
    theirs = SVC(kernel="precomputed", tol=1e-8).fit(stack[1], Y)
    ours = MKLClassifier("precomputed", **TIGHT).fit(stack[1:], Y)
    np.testing.assert_allclose(
        ours.decision_function(stack[1:]), theirs.decision_function(stack[1]), atol=1e-4
    )
    assert MKLClassifier("precomputed").fit(stack, Y).weights_.shape == (2,)


def test_svc_with_other_kernels():
    for options, kernel in (
        ({"kernel": "linear"}, kw.linear()),
        ({"kernel": "poly", "degree": 2, "gamma": 0.1, "coef0": 1.0}, kw.polynomial(2, coef0=1.0, gamma=0.1)),
    ):
        theirs = SVC(C=0.1, tol=1e-8, **options).fit(X, Y).decision_function(NEW)
        ours = MKLClassifier(kernel, C=0.1, norm="uniform", **TIGHT).fit(X, Y).decision_function(NEW)
        np.testing.assert_allclose(ours, theirs, atol=1e-3 * np.abs(theirs).max())


def test_svr():
    theirs = SVR(C=2.0, gamma=0.05, epsilon=0.1, tol=1e-8).fit(X, TARGETS)
    kernel = kw.gaussian(1 / np.sqrt(2 * 0.05))
    loss = losses.EpsilonInsensitive(0.1)
    ours = MKLRegressor(kernel, loss=loss, C=2.0, norm="uniform", **TIGHT).fit(X, TARGETS)
    np.testing.assert_allclose(ours.predict(NEW), theirs.predict(NEW), atol=1e-3)


def test_simplemkl():
    """At the weights of MKL every kernel in use has the same quadratic form, and no other kernel a larger one."""
    bank = kw.gaussian([0.5, 2.0, 8.0]) + kw.polynomial((1, 2))
    model = MKLClassifier(bank, C=10.0, solver="simplemkl", tol=1e-6).fit(X, Y)
    matrices = np.array([kernel(X) for kernel in bank])
    matrices *= len(X) / np.trace(matrices, axis1=1, axis2=2)[:, None, None]
    mixed = np.tensordot(model.weights_, matrices, 1)
    svm = SVC(C=10.0, kernel="precomputed", tol=1e-8).fit(mixed, Y)
    beta = np.zeros(len(X))
    beta[svm.support_] = svm.dual_coef_[0]
    forms = np.array([beta @ K @ beta for K in matrices])
    assert model.weights_.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(forms[model.weights_ > 1e-4], forms.max(), rtol=0.01)


def test_mklpy():
    algorithms = pytest.importorskip("MKLpy.algorithms")
    from MKLpy.preprocessing import kernel_normalization

    bank = kw.gaussian([1.0, 4.0, 16.0]) + kw.linear()
    train = [kernel(X) for kernel in bank]
    new = [kernel(NEW, X) for kernel in bank]
    theirs = algorithms.AverageMKL(learner=SVC(C=1.0, kernel="precomputed", tol=1e-8)).fit(train, Y)
    ours = MeanKernelClassifier(bank, C=1.0, **TIGHT).fit(X, Y)
    said = np.asarray(theirs.decision_function(new)).ravel()
    np.testing.assert_allclose(np.abs(said), np.abs(ours.decision_function(NEW)), atol=1e-3)
    assert np.array_equal(np.asarray(theirs.predict(new)), ours.predict(NEW))
    # their normalisation is the cosine in feature space, ours (normalize="trace") is one factor for a kernel
    linear = np.asarray(kernel_normalization(kw.linear()(X)))
    np.testing.assert_allclose(linear, kw.cosine()(X), atol=1e-10)


def test_himalaya():
    ridge = pytest.importorskip("himalaya.kernel_ridge")
    bank = kw.gaussian([1.0, 4.0, 16.0]) + kw.linear()
    train = np.array([kernel(X) for kernel in bank])
    new = np.array([kernel(NEW, X) for kernel in bank])
    weights, alpha = np.array([0.1, 0.2, 0.3, 0.4]), 2.0
    theirs = ridge.WeightedKernelRidge(
        alpha=alpha,
        deltas=np.log(weights),
        kernels="precomputed",
        solver_params={"tol": 1e-10, "max_iter": 5000},
    ).fit(train, TARGETS)
    ours = MKLRegressor(bank, norm=norms.Fixed(weights), C=1 / (2 * alpha), fit_intercept=False, **TIGHT).fit(
        X, TARGETS
    )
    np.testing.assert_allclose(np.asarray(theirs.predict(new)), ours.predict(NEW), atol=1e-3)
    one = ridge.KernelRidge(alpha=alpha, kernel="precomputed").fit(train[1], TARGETS)
    single = MKLRegressor(bank[1], norm="uniform", C=1 / (2 * alpha), fit_intercept=False, **TIGHT)
    np.testing.assert_allclose(
        np.asarray(one.predict(new[1])), single.fit(X, TARGETS).predict(NEW), atol=1e-3
    )


def test_kronrls():
    """The closed form of RLScore's KronRLS, on whole grids and, as equations, on some of the pairs."""
    rng = np.random.default_rng(0)
    A, B = (F @ F.T + 0.1 * np.eye(len(F)) for F in (rng.normal(size=(9, 4)), rng.normal(size=(8, 3))))
    Y, ridge = rng.normal(size=(9, 8)), 0.7
    page = (ROOT / "docs" / "pairs.md").read_text()
    assert 'norm="uniform", C=1 / (2 * r), fit_intercept=False, normalize=None)`' in page
    model = MKLRegressor(kw.pairs(A, B, main=False, identity=False), norm="uniform", C=1 / (2 * ridge),
                         fit_intercept=False, normalize=None, tol=1e-10)  # fmt: skip
    (s, U), (t, V) = np.linalg.eigh(A), np.linalg.eigh(B)
    theirs = A @ (U @ ((U.T @ Y @ V) / (np.outer(s, t) + ridge)) @ V.T) @ B
    grid = Pairs.from_grid(9, 8, Y)
    np.testing.assert_allclose(model.fit(grid, grid.labels).predict(grid), theirs.ravel(), atol=1e-6)
    some = grid[rng.permutation(72)[:50]]
    K = A[np.ix_(some.left_of, some.left_of)] * B[np.ix_(some.right_of, some.right_of)]
    theirs = K @ np.linalg.solve(K + ridge * np.eye(50), some.labels)
    np.testing.assert_allclose(model.fit(some, some.labels).predict(some), theirs, atol=1e-6)


def test_scikit_survival():
    """The table of docs/from_survival.md: the same targets, coefficients, risks, curves and scores."""
    pytest.importorskip("sksurv")
    from sksurv import compare, metrics, nonparametric
    from sksurv.linear_model import CoxPHSurvivalAnalysis
    from sksurv.util import Surv

    rng = np.random.default_rng(0)
    Z = rng.normal(size=(140, 4))
    dies, leaves = np.ceil(20 * rng.exponential(np.exp(-Z[:, 0]))), np.ceil(40 * rng.exponential(size=140))
    event, time = dies <= leaves, np.minimum(dies, leaves)
    y, surv = survival(time, event), Surv.from_arrays(event, time)
    train, test = slice(0, 100), slice(100, 140)
    theirs = CoxPHSurvivalAnalysis(alpha=0.5, ties="breslow", tol=1e-14, n_iter=500).fit(Z[train], y[train])
    ours = MKLSurvival(kw.linear(), C=1 / 0.5, normalize=None, tol=1e-9).fit(Z[train], surv[train])
    found = feature_weights(ours).sort_values("feature")["weight"]
    np.testing.assert_allclose(found, theirs.coef_, atol=1e-5)
    risk, other = ours.predict(Z[test]), theirs.predict(Z[test])
    np.testing.assert_allclose(risk - risk.mean(), other - other.mean(), atol=1e-4)
    at = np.array([5.0, 20.0, 35.0])
    S = np.array([curve(at) for curve in ours.predict_survival_function(Z[test])])
    np.testing.assert_allclose(
        S, [curve(at) for curve in theirs.predict_survival_function(Z[test])], atol=1e-5
    )
    hazard = ours.predict_cumulative_hazard_function(Z[test], return_array=True)
    np.testing.assert_allclose(
        hazard, theirs.predict_cumulative_hazard_function(Z[test], return_array=True), rtol=1e-4
    )
    known = (y[train], y[test])
    for value, same in (
        (
            own.concordance(y[test], risk),
            metrics.concordance_index_censored(event[test], time[test], risk)[0],
        ),
        (own.concordance_ipcw(*known, risk, 30.0), metrics.concordance_index_ipcw(*known, risk, 30.0)[0]),
        (own.brier_score(*known, S, at), metrics.brier_score(*known, S, at)[1]),
        (own.integrated_brier_score(*known, S, at), metrics.integrated_brier_score(*known, S, at)),
        (own.log_rank_p_value(y, Z[:, 1] > 0), compare.compare_survival(y, Z[:, 1] > 0)[1]),
    ):
        np.testing.assert_allclose(value, same, rtol=1e-10)
    times, share = nonparametric.kaplan_meier_estimator(event, time)
    np.testing.assert_allclose(own.kaplan_meier(y)(times), share, atol=1e-12)
