"""Several labels per sample: a table of zeros and ones in the place of classes."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics import f1_score, hamming_loss

from kernelweave import (
    BestKernelClassifier,
    LPBetaClassifier,
    MeanKernelClassifier,
    MKLClassifier,
    MKLClassifierCV,
    inspection,
)
from kernelweave import kernels as kw
from kernelweave.inspection import contributions
from kernelweave.persistence import load, save

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 4))
Y = np.column_stack(
    [X[:, 0] + 0.3 * RNG.normal(size=90) > 0, X[:, 1] ** 2 > 0.7, X[:, 0] * X[:, 2] > 0.2]
).astype(int)
BANK = kw.gaussian([0.7, 2.0]) + kw.linear()


@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared"])
def test_labels_of_their_own_are_fits_of_their_own(loss):
    each = MKLClassifier(BANK, loss=loss, multi_class="ovr").fit(X, Y)
    assert each.weights_.shape == (3, 3)
    np.testing.assert_array_equal(each.classes_, [0, 1, 2])
    assert each.multilabel_
    for k in range(3):
        alone = MKLClassifier(BANK, loss=loss).fit(X, Y[:, k])
        np.testing.assert_allclose(each.decision_function(X)[:, k], alone.decision_function(X), atol=1e-12)
        np.testing.assert_array_equal(each.predict(X)[:, k], alone.predict(X))
        if loss == "logistic":
            np.testing.assert_allclose(each.predict_proba(X)[:, k], alone.predict_proba(X)[:, 1], atol=1e-12)


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_shared_weights_are_those_of_the_sum(loss):
    shared = MKLClassifier(BANK, loss=loss, norm=1.5, tol=1e-6).fit(X, Y)
    each = MKLClassifier(BANK, loss=loss, norm=1.5, tol=1e-6, multi_class="ovr").fit(X, Y)
    assert shared.weights_.shape == (3,)
    assert shared.certificate_.relative_gap <= 1e-6
    # with own weights, each on the unit sphere, the sum of the objectives is smaller or equal
    assert each.certificate_.primal <= shared.certificate_.primal * (1 + 1e-6)
    alone = MKLClassifier(BANK, loss=loss, norm=1.5, tol=1e-6).fit(X, np.repeat(Y[:, :1], 2, axis=1))
    one = MKLClassifier(BANK, loss=loss, norm=1.5, tol=1e-6).fit(X, Y[:, 0])
    np.testing.assert_allclose(alone.weights_, one.weights_, atol=5e-3)  # the same label twice
    assert alone.certificate_.primal == pytest.approx(2 * one.certificate_.primal, rel=1e-5)
    assert alone.decision_function(X).shape == (90, 2)
    assert alone.predict(X).shape == (90, 2)


@pytest.mark.parametrize("multi_class", ["joint", "shared", "ovr"])
def test_conventions_of_scikit_learn(multi_class):
    clf = MKLClassifier(BANK, loss="logistic", multi_class=multi_class, C=10.0).fit(X, Y)
    predicted = clf.predict(X)
    assert predicted.shape == Y.shape
    assert predicted.dtype.kind == "i"
    assert set(np.unique(predicted)) <= {0, 1}
    np.testing.assert_array_equal(predicted, clf.predict_proba(X) > 0.5)
    assert clf.score(X, Y) == np.mean(np.all(predicted == Y, axis=1))
    assert hamming_loss(Y, predicted) < 0.1
    sparse = MKLClassifier(BANK, loss="logistic", multi_class=multi_class, C=10.0).fit(X, sp.csr_matrix(Y))
    np.testing.assert_array_equal(sparse.predict(X), predicted)


@pytest.mark.parametrize("multi_class", ["joint", "ovr"])
def test_cross_validation(multi_class):
    search = MKLClassifierCV(BANK, Cs=[0.01, 10.0], cv=3, multi_class=multi_class).fit(X, Y)
    assert search.C_ == 10.0
    assert search.predict(X).shape == Y.shape
    # every score is a share of samples with all labels right
    known = search.cv_results_["score"].to_numpy() * 30
    np.testing.assert_allclose(known, np.round(known), atol=1e-9)
    by_f1 = MKLClassifierCV(BANK, Cs=[0.01, 10.0], cv=3, multi_class=multi_class, scoring="f1_macro").fit(
        X, Y
    )
    assert by_f1.best_score_ > 0.7
    # the folds calibrate every label by itself
    for column, f in zip(search.predict_proba(X).T, search.decision_function(X).T, strict=True):
        np.testing.assert_array_equal(np.argsort(column, kind="stable"), np.argsort(f, kind="stable"))
    assert np.mean((search.predict_proba(X) > 0.5) == Y) > 0.8
    assert f1_score(Y, by_f1.predict(X), average="macro") > 0.8


def test_one_fit_does_not_leave_its_labels_to_the_next():
    clf = MKLClassifier(BANK).fit(X, Y)
    clf.fit(X, Y[:, 0])
    assert not hasattr(clf, "multilabel_")
    assert clf.predict(X).shape == (90,)


def test_a_label_that_nobody_has():
    table = np.column_stack([Y, np.zeros(90, dtype=int), np.ones(90, dtype=int)])
    for multi_class in ("joint", "ovr"):
        for loss in ("hinge", "logistic"):
            clf = MKLClassifier(BANK, loss=loss, multi_class=multi_class).fit(X, table)
            assert not np.any(clf.predict(X)[:, 3])
            assert np.all(clf.predict(X)[:, 4])


def test_contributions_and_columns_of_two_labels():
    clf = MKLClassifier(kw.linear(), multi_class="joint").fit(X, Y[:, :2])
    assert clf.coef_.shape == (2, 4)
    np.testing.assert_allclose(X @ clf.coef_.T + clf.intercept_, clf.decision_function(X), atol=1e-9)
    np.testing.assert_allclose(contributions(clf, X).decision, clf.decision_function(X), atol=1e-9)


@pytest.mark.parametrize("multi_class", ["joint", "ovr"])
def test_saved_and_loaded_again(multi_class, tmp_path):
    clf = MKLClassifier(BANK, loss="logistic", multi_class=multi_class).fit(X, Y[:, :2])
    save(clf, tmp_path / "model.skops")
    again = load(tmp_path / "model.skops")
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    np.testing.assert_array_equal(again.predict(X), clf.predict(X))


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        (MKLClassifier(BANK, class_weight="balanced"), "class_weight goes with one class"),
        (MKLClassifier(BANK, loss="multinomial"), "is for one class per sample"),
        (MKLClassifier(BANK, loss="ordinal"), "is for one class per sample"),
        (BestKernelClassifier(BANK), "1d array"),
        (LPBetaClassifier(BANK), "1d array"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_for_one_class_is_refused(estimator, words):
    with pytest.raises(ValueError, match=words):
        estimator.fit(X, Y)


def test_no_weight_at_all_is_refused():
    with pytest.raises(ValueError, match=r"(?i)sample weights"):
        MKLClassifier(BANK).fit(X, Y, sample_weight=np.zeros(90))


def test_baselines_that_add_up_losses_take_labels():
    assert MeanKernelClassifier(BANK).fit(X, Y).predict(X).shape == Y.shape


@pytest.mark.parametrize("ask", ["weight_stability", "view_importance", "view_p_values"])
def test_refits_of_the_inspection_are_of_one_label(ask):
    X = np.random.default_rng(0).normal(size=(30, 2))
    model = MKLClassifier(kw.per_feature(kw.linear())).fit(X, (X > 0).astype(int))
    with pytest.raises(ValueError, match="fit a model on one column of y"):
        getattr(inspection, ask)(model, X, (X > 0).astype(int))


def test_ties_of_several_labels_are_broken_by_the_mean_of_their_losses():
    """A label that is there twice is the label."""
    X = np.random.default_rng(0).normal(size=(40, 3))
    y = (X[:, 0] > 0).astype(int)
    X[:, 0] += 5.0 * y  # all of the Cs are right everywhere
    search = MKLClassifierCV(kw.linear(), Cs=[0.1, 1.0, 10.0, 100.0], cv=3)
    one, two = search.fit(X, y).C_, clone(search).fit(X, np.column_stack([y, y])).C_
    assert search.best_score_ == 1.0
    np.testing.assert_allclose(two, one)
