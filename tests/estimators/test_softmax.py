"""Classifiers with the multinomial loss: probabilities, the other reading, what stays of earlier fits."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris

from kernelweave import MKLClassifier
from kernelweave import kernels as kw
from kernelweave.losses import Logistic, Multinomial

BANK = kw.gaussian([0.5, 1.0], relative=True) + kw.linear()


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


def test_probabilities_are_the_softmax_of_the_decision_values(iris):
    X, y = iris
    clf = MKLClassifier(BANK, loss="logistic", C=3.0).fit(X[::2], y[::2])
    assert isinstance(clf.loss_, Multinomial)
    assert clf.status_ == "converged"
    values = clf.decision_function(X)
    wanted = np.exp(values) / np.exp(values).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(clf.predict_proba(X), wanted, rtol=1e-10)
    np.testing.assert_array_equal(clf.predict(X), clf.classes_[np.argmax(wanted, axis=1)])
    # the intercepts make the mean probabilities right on the training samples
    np.testing.assert_allclose(clf.predict_proba(X[::2]).mean(axis=0), 1 / 3, atol=2e-3)


def test_the_other_reading_adds_up_one_against_the_rest(iris):
    X, y = iris
    clf = MKLClassifier(BANK, loss="logistic", multi_class="shared").fit(X, y)
    assert isinstance(clf.loss_, Logistic)
    each = 1 / (1 + np.exp(-clf.decision_function(X)))
    np.testing.assert_allclose(clf.predict_proba(X), each / each.sum(axis=1, keepdims=True), rtol=1e-10)


def test_what_was_fitted_decides(iris):
    X, y = iris
    clf = MKLClassifier(BANK, loss="logistic", multi_class="shared").fit(X, y)
    before = clf.predict_proba(X[:5])
    clf.set_params(multi_class="joint")
    np.testing.assert_array_equal(clf.predict_proba(X[:5]), before)


def test_two_classes_by_name(iris):
    X, y = iris
    X, y = X[50:], y[50:]
    joint = MKLClassifier(BANK, loss="multinomial", norm=2, C=1.0, tol=1e-6).fit(X, y)
    binary = MKLClassifier(BANK, loss="logistic", norm=2, C=2.0, tol=1e-6).fit(X, y)
    assert joint.certificate_.primal == pytest.approx(0.5 * binary.certificate_.primal, rel=1e-5)
    np.testing.assert_allclose(joint.predict_proba(X), binary.predict_proba(X), atol=1e-3)


def test_a_class_without_weight_is_never_predicted(iris):
    X, y = iris
    clf = MKLClassifier(BANK, loss="logistic").fit(X, y, sample_weight=(y != 1).astype(float))
    found = clf.predict_proba(X)
    assert np.all(np.isfinite(found))
    assert np.all(found[y != 1, 1] <= 1e-12)


def test_solvers_without_softmax_are_refused_with_the_way_out(iris):
    with pytest.raises(ValueError, match="multi_class='shared'"):
        MKLClassifier(BANK, loss="logistic", norm=1.5, solver="svrg").fit(*iris)
    with pytest.raises(ValueError, match="loss='logistic'"):
        MKLClassifier(BANK, loss="multinomial", multi_class="shared").fit(*iris)
