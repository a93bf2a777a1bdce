"""Intervals and sets of MAPIE around the estimators: they are built, cover what they promise, and know the folds."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import LeaveOneOut

from kernelweave import MKLClassifier, MKLClassifierCV, MKLRegressor, MKLRegressorCV
from kernelweave import kernels as kw

from . import by_hand

regression = pytest.importorskip("mapie.regression")
classification = pytest.importorskip("mapie.classification")

BANK = kw.gaussian([1.0, 2.0], relative=True) + kw.linear()


def curve(n: int, seed: int):
    X, y = by_hand.curve(n, seed=seed)
    return X, y + 0.3 * np.random.default_rng(seed).normal(size=n)


def test_intervals_by_a_split_cover_their_share():
    covered, width = [], []
    for seed in range(6):
        X, y = curve(380, seed)
        model = MKLRegressorCV(BANK, Cs=[0.3, 3.0], cv=3, norm="l1").fit(X[:80], y[:80])
        mapie = regression.SplitConformalRegressor(model, confidence_level=0.8, prefit=True)
        mapie.conformalize(X[80:180], y[80:180])
        predicted, intervals = mapie.predict_interval(X[180:])
        np.testing.assert_allclose(predicted, model.predict(X[180:]))
        low, high = intervals[:, 0, 0], intervals[:, 1, 0]
        covered.append(np.mean((low <= y[180:]) & (y[180:] <= high)))
        width.append(np.mean(high - low))
    # 0.8 on average over the draws; the standard error of the mean of six is near 0.02
    assert np.mean(covered) == pytest.approx(0.8, abs=0.06)
    assert np.mean(width) < 2 * 1.28 * 0.6


def test_intervals_by_folds_that_refit_everything():
    X, y = curve(200, 9)
    mapie = regression.CrossConformalRegressor(
        MKLRegressor(BANK, C=3.0), confidence_level=0.8, method="plus", cv=5
    )
    mapie.fit_conformalize(X[:80], y[:80])
    _, intervals = mapie.predict_interval(X[80:])
    assert np.mean((intervals[:, 0, 0] <= y[80:]) & (y[80:] <= intervals[:, 1, 0])) > 0.7


def test_leave_one_out_residuals_are_those_that_refits_have_where_weights_are_given():
    X, y = curve(24, 3)
    model = MKLRegressor(kw.gaussian([1.0, 2.0]), norm="uniform", C=3.0, leave_one_out=True, tol=1e-10)
    mapie = regression.CrossConformalRegressor(model, confidence_level=0.8, method="base", cv=LeaveOneOut())
    mapie.fit_conformalize(X, y)
    predicted, intervals = mapie.predict_interval(X)
    residuals = np.sort(np.abs(y - model.fit(X, y).loo_predictions_))
    half = 0.5 * (intervals[:, 1, 0] - intervals[:, 0, 0])
    np.testing.assert_allclose(half, residuals[int(np.ceil(25 * 0.8)) - 1], atol=1e-6)
    np.testing.assert_allclose(predicted, model.predict(X), atol=1e-6)


def test_sets_of_classes_cover_their_share():
    covered, sizes = [], []
    for seed in range(5):
        X, y = by_hand.blobs(420, classes=4, features=4, seed=seed)
        labels = np.array(["a", "b", "c", "d"])[y]
        model = MKLClassifierCV(BANK, Cs=[0.3, 3.0], cv=3).fit(X[:100], labels[:100])
        mapie = classification.SplitConformalClassifier(model, confidence_level=0.9, prefit=True)
        mapie.conformalize(X[100:220], labels[100:220])
        predicted, sets = mapie.predict_set(X[220:])
        np.testing.assert_array_equal(predicted, model.predict(X[220:]))
        inside = sets[:, :, 0]
        covered.append(np.mean(inside[np.arange(200), y[220:]]))
        sizes.append(np.mean(inside.sum(axis=1)))
    assert np.mean(covered) == pytest.approx(0.9, abs=0.045)
    assert np.mean(sizes) < 2.5


def test_sets_by_folds_that_refit_everything():
    X, y = by_hand.blobs(240, seed=2)
    for inner in (MKLClassifierCV(BANK, Cs=[1.0], cv=2), MKLClassifier(BANK, loss="logistic", C=3.0)):
        mapie = classification.CrossConformalClassifier(inner, confidence_level=0.9, cv=4)
        mapie.fit_conformalize(X[:90], y[:90])
        _, sets = mapie.predict_set(X[90:])
        assert np.mean(sets[np.arange(150), y[90:], 0]) > 0.8


def test_a_classifier_without_probabilities_is_refused_by_its_own_sentence():
    X, y = by_hand.blobs(60)
    model = MKLClassifier(BANK).fit(X, y)
    with pytest.raises(AttributeError, match="predict_proba"):
        classification.SplitConformalClassifier(model, prefit=True).conformalize(X, y)
