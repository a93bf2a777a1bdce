"""What the fitted attributes mean, recomputed from kernels written out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from kernelweave import MKLClassifier, MKLRegressor
from kernelweave import kernels as kw

from . import by_hand
from .data import bank


def normalised(A, X):
    return by_hand.trace_normalised(by_hand.raw_stack(A, X), by_hand.raw_stack(X, X))


def mixed(stack, weights, beta):
    return sum(d * (K @ beta) for d, K in zip(weights, stack, strict=True))


def test_the_snippet_of_the_documentation():
    X, y = by_hand.moons(80, 3)
    X_new = X[:7] + 0.01
    bank = kw.gaussian(widths=2.0 ** np.arange(-3, 7)) + kw.per_feature(
        kw.gaussian(widths=[0.5, 1.0]), kw.polynomial(degrees=(1, 2, 3))
    )
    clf = MKLClassifier(bank, loss="hinge", norm="l1", C=1.0, solver="auto", tol=1e-3).fit(X, y)
    assert clf.weights_.shape == clf.kernel_names_.shape == (10 + 3 * 5,)
    assert clf.kernel_names_[0] == "gaussian(width=0.125)"
    assert clf.kernel_names_[-1] == "polynomial(degree=3) on feature 2"
    assert -1e-12 <= clf.certificate_.relative_gap <= 1e-3
    assert len(clf.trace_) == clf.n_iter_
    assert clf.n_passes_ > 0
    assert np.mean(clf.predict(X_new) == y[:7]) >= 6 / 7


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic", "squared"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_binary_decision_function(loss, fit_intercept):
    X, y = by_hand.moons()
    X_new = by_hand.moons(23, seed=5)[0]
    clf = MKLClassifier(bank(), loss=loss, norm=1.5, fit_intercept=fit_intercept).fit(X, y)
    assert clf.dual_coef_.shape == (60,)
    assert clf.weights_.shape == (10,)
    for A in (X_new, X):
        by = mixed(normalised(A, X), clf.weights_, clf.dual_coef_) + clf.intercept_
        np.testing.assert_allclose(clf.decision_function(A), by, rtol=1e-9, atol=1e-10)
        assert np.array_equal(clf.predict(A), np.where(by > 0, 1, -1))
    assert fit_intercept or clf.intercept_ == 0
    assert np.any(clf.intercept_ != 0) == fit_intercept


def test_one_against_the_rest():
    X, y = by_hand.blobs(66, classes=3, features=4)
    X_new = by_hand.blobs(21, classes=3, features=4, seed=2)[0]
    clf = MKLClassifier(bank(), C=0.7, multi_class="ovr").fit(X, y)
    assert clf.weights_.shape == (3, 10)
    assert clf.dual_coef_.shape == (66, 3)
    assert clf.intercept_.shape == (3,)
    assert not np.allclose(clf.weights_[0], clf.weights_[1])
    stack = normalised(X_new, X)
    by = np.stack(
        [mixed(stack, clf.weights_[k], clf.dual_coef_[:, k]) + clf.intercept_[k] for k in range(3)], axis=1
    )
    np.testing.assert_allclose(clf.decision_function(X_new), by, rtol=1e-9, atol=1e-10)
    assert np.array_equal(clf.predict(X_new), np.argmax(by, axis=1))
    # each class is the binary problem of that class
    for k in range(3):
        alone = MKLClassifier(bank(), C=0.7, tol=1e-3).fit(X, y == k)
        np.testing.assert_allclose(clf.weights_[k], alone.weights_, atol=1e-12)
        assert clf.certificates_[k].primal == pytest.approx(alone.certificate_.primal, rel=1e-12)
    assert clf.certificate_.primal == pytest.approx(sum(c.primal for c in clf.certificates_))
    assert clf.certificate_.dual == pytest.approx(sum(c.dual for c in clf.certificates_))


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_shared_weights(loss):
    X, y = by_hand.blobs(66, classes=3, features=4)
    X_new = by_hand.blobs(21, classes=3, features=4, seed=2)[0]
    clf = MKLClassifier(bank(), loss=loss, C=0.7, multi_class="shared").fit(X, y)
    assert clf.weights_.shape == (10,)
    assert clf.dual_coef_.shape == (66, 3)
    assert clf.intercept_.shape == (3,)
    by = mixed(normalised(X_new, X), clf.weights_, clf.dual_coef_) + clf.intercept_
    np.testing.assert_allclose(clf.decision_function(X_new), by, rtol=1e-9, atol=1e-10)
    assert np.array_equal(clf.predict(X_new), np.argmax(by, axis=1))

    # the joint objective: block norms over all columns, the losses of all columns
    stack, signs = normalised(X, X), np.where(y[:, None] == np.arange(3), 1.0, -1.0)
    B, d = clf.dual_coef_, clf.weights_
    s = np.array([np.trace(B.T @ K @ B) for K in stack])
    f = mixed(stack, d, B) + clf.intercept_
    value = by_hand.half_square(d * np.sqrt(s), 1) + 0.7 * by_hand.loss_value(loss, signs, f).sum()
    assert clf.certificate_.primal == pytest.approx(value, rel=1e-9)
    D = clf.certificate_.dual_point
    s = np.array([np.trace(D.T @ K @ D) for K in stack])
    c = np.full(66, 0.7)
    gain = sum(by_hand.dual_gain(loss, signs[:, k], D[:, k], c) for k in range(3))
    assert clf.certificate_.dual == pytest.approx(gain - by_hand.dual_charge(s, 1), rel=1e-9)
    assert all(by_hand.is_feasible(loss, signs[:, k], D[:, k], c, True) for k in range(3))
    assert -1e-12 <= clf.certificate_.relative_gap <= 1e-3


CERTIFIED = [
    ("hinge", "l1", 1.0),
    ("hinge", 1.5, 1.5),
    ("hinge", 3, 3.0),
    ("squared_hinge", "l1", 1.0),
    ("logistic", "l1", 1.0),
    ("logistic", 2, 2.0),
    ("squared", "l1", 1.0),
    ("squared", 2, 2.0),
    ("epsilon_insensitive", "l1", 1.0),
    ("epsilon_insensitive", 1.5, 1.5),
]


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(("loss", "norm", "p"), CERTIFIED)
def test_certificate_by_hand(loss, norm, p, fit_intercept):
    """Primal and dual from their definitions at the fitted attributes, and the dual point in the dual set."""
    regression = loss in ("squared", "epsilon_insensitive")
    X, y = by_hand.curve(60, 4) if regression else by_hand.moons(60, 4)
    weight = np.random.default_rng(3).uniform(0.5, 2.0, size=60)
    make = MKLRegressor if regression else MKLClassifier
    options = {"loss": loss, "norm": norm, "C": 2.0, "fit_intercept": fit_intercept}
    model = make(bank(), tol=1e-3, **options).fit(X, y, sample_weight=weight)
    stack, c = normalised(X, X), 2.0 * weight
    found = model.certificate_

    def objective(intercept):
        return by_hand.primal(stack, model.weights_, model.dual_coef_, intercept, loss, p, y, c)

    assert found.primal == pytest.approx(objective(model.intercept_), rel=1e-9)
    assert found.dual == pytest.approx(by_hand.dual(stack, found.dual_point, loss, p, y, c), rel=1e-9)
    assert by_hand.is_feasible(loss, y, found.dual_point, c, fit_intercept)
    assert np.all(model.weights_ >= 0)
    assert (model.weights_**p).sum() <= 1 + 1e-9
    assert found.gap == found.primal - found.dual
    assert found.relative_gap == pytest.approx(found.gap / max(abs(found.primal), abs(found.dual)))
    assert -1e-12 <= found.relative_gap <= 1e-3
    if fit_intercept:  # no other intercept does better
        for shift in (-0.1, -1e-4, 1e-4, 0.1):
            assert objective(model.intercept_ + shift) >= objective(model.intercept_) - 1e-12

    # the optimum, known a thousand times better, lies between the two bounds
    better = make(bank(), tol=1e-6, **options).fit(X, y, sample_weight=weight).certificate_
    assert found.dual <= better.primal + 1e-12
    assert better.dual <= found.primal + 1e-12


@pytest.mark.parametrize("loss", ["hinge", "epsilon_insensitive"])
def test_coefficients_are_zero_off_the_support(loss):
    X, y = by_hand.curve(60, 4) if loss == "epsilon_insensitive" else by_hand.moons(60, 4)
    make = MKLRegressor if loss == "epsilon_insensitive" else MKLClassifier
    model = make(bank(), loss=loss, C=5.0).fit(X, y)
    assert 0 < model.support_.size < 60
    assert np.array_equal(np.flatnonzero(model.dual_coef_), model.support_)
    if loss == "hinge":
        assert np.all(model.dual_coef_ * y >= 0)
        assert np.all(model.dual_coef_ * y <= 5.0)


def test_negative_gap_never_occurs():
    """The bounds bracket each other whatever the solver does: also where it is stopped at once."""
    from kernelweave.exceptions import KernelWeaveConvergenceWarning

    X, y = by_hand.moons(60, 4)
    for solver in ("level", "silp", "simplemkl", "subgradient", "newton"):
        with pytest.warns(KernelWeaveConvergenceWarning):
            clf = MKLClassifier(bank(), solver=solver, max_iter=1, tol=1e-6).fit(X, y)
        found, stack = clf.certificate_, normalised(X, X)
        assert found.relative_gap > 1e-6
        one = np.ones(60)
        value = by_hand.primal(stack, clf.weights_, clf.dual_coef_, clf.intercept_, "hinge", 1, y, one)
        assert found.primal == pytest.approx(value, rel=1e-9)
        assert found.dual == pytest.approx(
            by_hand.dual(stack, found.dual_point, "hinge", 1, y, one), rel=1e-9
        )


@pytest.mark.parametrize("normalize", ["trace", "cosine"])
def test_what_predicts_is_what_was_certified_in_single_precision_too(normalize):
    """Centring leaves a millionth of this Gaussian: in single precision nothing of it would be left."""
    rng = np.random.default_rng(0)
    X = 1e-3 * rng.normal(size=(30, 2))
    model = MKLClassifier(kw.gaussian(1.0), center=True, normalize=normalize, dtype="float32")
    model.fit(X, X[:, 0] > 0)
    K = np.exp(-np.sum((X[:, None, :] - X[None, :, :]) ** 2, axis=2) / 2)
    means = K.mean(axis=1)
    K = K - means[:, None] - means[None, :] + means.mean()
    size = np.sqrt(np.diagonal(K))
    K = K / np.mean(np.diagonal(K)) if normalize == "trace" else K / np.outer(size, size)
    by_definition = model.weights_[0] * K @ model.dual_coef_ + model.intercept_
    np.testing.assert_allclose(model.decision_function(X), by_definition, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("normalize", ["trace", "cosine"])
def test_a_constant_column_leaves_nothing_after_centring(normalize):
    """The mean of equal numbers is rounded: what is left of their features is no kernel to be scaled up."""
    rng = np.random.default_rng(0)
    X = np.column_stack([np.full(28, 1.000003e12), rng.normal(size=28)])
    y = X[:, 1] ** 2
    model = MKLRegressor(
        kw.per_feature(kw.polynomial([2])),
        center=True,
        normalize=normalize,
        norm="uniform",
        fit_intercept=False,
    ).fit(X, y)
    z = np.column_stack([np.sqrt(2.0) * X[:, 1], X[:, 1] ** 2])
    z = z - z.mean(axis=0)
    K = z @ z.T
    size = np.sqrt(np.diagonal(K))
    K = K / np.mean(np.diagonal(K)) if normalize == "trace" else K / np.outer(size, size)
    np.testing.assert_allclose(model.predict(X), 0.5 * K @ model.dual_coef_, rtol=1e-9, atol=1e-9)
