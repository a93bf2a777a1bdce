"""Probabilities from the folds that chose C: the map by its definition, beside scikit-learn's, nested in reports."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import log_loss
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedKFold

from kernelweave import MKLClassifier, MKLClassifierCV
from kernelweave import kernels as kw
from kernelweave.estimators.fitted import Calibration
from kernelweave.exceptions import KernelWeaveConvergenceWarning
from kernelweave.persistence import ModelFileError, load, save
from kernelweave.report import make_report

from . import by_hand
from .data import bank

FOLDS = StratifiedKFold(4, shuffle=True, random_state=3)


class Known(ClassifierMixin, BaseEstimator):
    """A classifier whose samples are its decision values."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X):
        return X[:, 0] if X.shape[1] == 1 else X

    def predict(self, X):
        return self.classes_[(X[:, 0] > 0).astype(int) if X.shape[1] == 1 else X.argmax(axis=1)]


def held_out_values(fitted, X, y, **options):
    """Decision values by fits at the chosen C on the other folds, in the order of the folds."""
    parts = []
    for train, test in FOLDS.split(X, y):
        weight = options.get("sample_weight")
        model = MKLClassifier(fitted.kernels, C=fitted.C_, tol=1e-9, loss=fitted.loss, multi_class=fitted.multi_class,
                              class_weight=fitted.class_weight)  # fmt: skip
        model.fit(X[train], y[train], sample_weight=None if weight is None else weight[train])
        parts.append((test, model.decision_function(X[test])))
    return np.concatenate([test for test, _ in parts]), np.concatenate([values for _, values in parts])


@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared"])
@pytest.mark.parametrize("weighted", [False, True])
def test_two_classes_have_the_sigmoid_of_scikit_learn_on_held_out_values(loss, weighted):
    X, y = by_hand.moons(60)
    weight = np.random.default_rng(0).uniform(0.2, 3.0, size=60) if weighted else None
    weight = weight / weight.mean() if weighted else None  # factors count relative to their mean
    clf = MKLClassifierCV(bank(), loss=loss, Cs=[0.1, 1.0], cv=FOLDS, tol=1e-9).fit(
        X, y, sample_weight=weight
    )
    at, values = held_out_values(clf, X, y, sample_weight=weight)
    known = FrozenEstimator(Known().fit(values[:, None], y[at]))
    theirs = CalibratedClassifierCV(known, method="sigmoid")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that the weights are for the map alone
        theirs.fit(values[:, None], y[at], sample_weight=None if weight is None else weight[at])
    wanted = theirs.predict_proba(clf.decision_function(X)[:, None])
    np.testing.assert_allclose(clf.predict_proba(X), wanted, atol=2e-3)
    np.testing.assert_allclose(clf.predict_proba(X).sum(axis=1), 1.0)
    assert clf.calibration_.samples == 60
    assert clf.calibration_.scale > 0


@pytest.mark.parametrize(
    "options",
    [{}, {"multi_class": "ovr"}, {"multi_class": "shared"}, {"loss": "logistic"}, {"loss": "squared_hinge"}],
)
def test_several_classes_have_the_softmax_at_one_temperature(options):
    X, y = by_hand.blobs(72)
    labels = np.array(["a", "b", "c"])[y]
    clf = MKLClassifierCV(bank(), Cs=[0.1, 1.0], cv=FOLDS, tol=1e-9, **options).fit(X, labels)
    at, values = held_out_values(clf, X, labels)
    own = np.arange(72), y[at]

    def loss(log_scale):
        shares = log_softmax(np.exp(log_scale) * values, axis=1)
        right = shares[own]
        return -np.mean((73 / 74) * right + (1 / 74) * (shares.sum(axis=1) - right) / 2)

    best = minimize_scalar(loss, bounds=(-10.0, 10.0), method="bounded", options={"xatol": 1e-10}).x
    assert clf.calibration_.scale == pytest.approx(np.exp(best), rel=2e-3)
    found = clf.predict_proba(X)
    np.testing.assert_allclose(
        found, np.exp(log_softmax(np.exp(best) * clf.decision_function(X), axis=1)), atol=1e-3
    )
    np.testing.assert_array_equal(clf.classes_[found.argmax(axis=1)], clf.predict(X))


def test_the_temperature_of_many_samples_is_that_of_scikit_learn():
    from sklearn import calibration

    scaling = getattr(calibration, "_TemperatureScaling", None)
    if scaling is None:
        pytest.skip("scikit-learn before 1.8 has no temperature")
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 4, size=20_000)
    values = 0.02 * (rng.normal(size=(20_000, 4)) + 1.5 * np.eye(4)[codes])
    weight = rng.uniform(0.5, 2.0, size=20_000)
    ours = Calibration.learn([(codes, values, weight)])
    assert ours.scale == pytest.approx(float(scaling().fit(values, codes, weight).beta_), rel=2e-3)


def test_two_classes_under_a_joint_loss():
    X, y = by_hand.moons(60)
    joint = MKLClassifierCV(bank(), loss="multiclass_hinge", Cs=[1.0], cv=FOLDS, tol=1e-8).fit(X, y)
    at, values = held_out_values(joint, X, y)
    alone = Calibration.learn([((y[at] > 0).astype(int), values, np.ones(60))])
    wanted = expit(alone.scale * joint.decision_function(X) + alone.offset)
    np.testing.assert_allclose(joint.predict_proba(X)[:, 1], wanted, atol=2e-3)


@pytest.mark.parametrize("classes", [2, 3])
def test_weights(classes):
    """A sample without weight says nothing, the unit of the weights is nobody's, and more weight counts for more."""
    rng = np.random.default_rng(1)
    codes = rng.integers(0, classes, size=200)
    values = rng.normal(size=(200, classes)) + np.eye(classes)[codes]
    values = values[:, 1] - values[:, 0] if classes == 2 else values
    weight = rng.uniform(0.5, 2.0, size=200)
    whole = Calibration.learn([(codes, values, weight)])
    cut = [(codes[part], values[part], 1e-9 * weight[part]) for part in (slice(0, 70), slice(70, 200))]
    silent = (rng.permutation(codes[:50]), values[:50], np.zeros(50))
    again = Calibration.learn([*cut, silent])
    assert again.samples == whole.samples == 200
    assert (again.scale, again.offset) == pytest.approx((whole.scale, whole.offset), rel=1e-4, abs=1e-5)
    right = np.argmax(values, axis=1) == codes if classes == 3 else (values > 0) == codes
    trusting = Calibration.learn([(codes, values, np.where(right, 3.0, 1.0))])
    assert trusting.scale > 1.2 * whole.scale


def test_decision_values_that_tell_everything_or_nothing():
    codes = np.repeat([0, 1], [30, 10])
    for unit in (1e-9, 1.0, 1e9):
        sure = Calibration.learn([(codes, unit * np.where(codes == 1, 1.0, -1.0), np.ones(40))])
        found = sure.probabilities(unit * np.array([-1.0, 1.0]))[:, 1]
        np.testing.assert_allclose(found, [1 / 32, 11 / 12], atol=1e-3)  # Platt's smoothed labels
        wrong = Calibration.learn([(codes, unit * np.where(codes == 1, -1.0, 1.0), np.ones(40))])
        np.testing.assert_allclose(wrong.probabilities(unit * np.array([-3.0, 3.0]))[:, 1], 11 / 42)
        several = unit * np.eye(3)[np.repeat([0, 1, 2], 10)]
        sure = Calibration.learn([(np.repeat([0, 1, 2], 10), several, np.ones(30))])
        np.testing.assert_allclose(sure.probabilities(several[:1]), [[31 / 32, 1 / 64, 1 / 64]], atol=1e-6)
        wrong = Calibration.learn([(np.repeat([1, 2, 0], 10), several, np.ones(30))])
        np.testing.assert_allclose(wrong.probabilities(several[:1]), 1 / 3)
    same = Calibration.learn([(codes, np.zeros(40), np.ones(40))])
    np.testing.assert_allclose(same.probabilities(np.zeros(1))[:, 1], 0.25, atol=0.02)
    assert Calibration.learn([(codes, np.zeros(40), np.zeros(40))]) is None
    infinite = np.where(np.arange(40) == 3, np.inf, np.where(codes == 1, 1.0, -1.0))
    assert Calibration.learn([(codes, infinite, np.ones(40))]).samples == 39


def test_factors_of_classes_move_the_decision_and_not_the_probabilities():
    rng = np.random.default_rng(0)
    y = (rng.uniform(size=300) < 0.15).astype(int)
    X = rng.normal(size=(300, 3)) + 0.8 * y[:, None]
    plain, balanced = (
        MKLClassifierCV(kw.linear(), Cs=[0.1, 1.0], cv=5, class_weight=how).fit(X[:200], y[:200]) for how in (None, "balanced")
    )  # fmt: skip
    assert balanced.predict(X).mean() > plain.predict(X).mean() + 0.1
    for clf in (plain, balanced):
        assert clf.predict_proba(X)[:, 1].mean() == pytest.approx(y.mean(), abs=0.05)


def test_samples_that_lack_a_view(tmp_path):
    X, y = by_hand.blobs(90, features=6)
    X[:30, :3] = np.nan
    views = kw.per_view({"a": slice(0, 3), "b": slice(3, 6)}, kw.gaussian(1.0, relative=True))
    clf = MKLClassifierCV(views, missing="mean", Cs=[0.1, 1.0], cv=FOLDS).fit(X, y)
    found = clf.predict_proba(X)
    np.testing.assert_allclose(found, clf.calibration_.probabilities(clf.decision_function(X)))
    assert log_loss(y, found) < np.log(3)
    save(clf, tmp_path / "model.skops")
    np.testing.assert_array_equal(load(tmp_path / "model.skops").predict_proba(X), found)


# ---- which probabilities there are -----------------------------------------------------------------------------------


def test_what_was_fitted_decides_whether_there_are_probabilities():
    X, y = by_hand.moons(60)
    assert hasattr(MKLClassifierCV(), "predict_proba")
    assert not hasattr(MKLClassifierCV(probability=False), "predict_proba")
    assert hasattr(MKLClassifierCV(probability=False, loss="logistic"), "predict_proba")
    clf = MKLClassifierCV(kw.linear(), Cs=[1.0], cv=2).fit(X, y).set_params(probability=False)
    before = clf.predict_proba(X)
    with pytest.raises(ValueError, match="probability must be True or False"):
        clone(clf).set_params(probability="yes").fit(X, y)
    clf.fit(X, y)
    assert not hasattr(clf, "predict_proba")
    assert not hasattr(clf, "calibration_")
    with pytest.raises(AttributeError, match=r"probability=True|no attribute"):
        clf.set_params(probability=True).predict_proba(X)
    np.testing.assert_array_equal(clf.fit(X, y).predict_proba(X), before)


def test_without_the_map_the_logistic_loss_has_its_own():
    X, y = by_hand.moons(60)
    plain = MKLClassifierCV(kw.linear(), loss="logistic", Cs=[0.01], cv=3, probability=False).fit(X, y)
    mapped = MKLClassifierCV(kw.linear(), loss="logistic", Cs=[0.01], cv=3).fit(X, y)
    np.testing.assert_allclose(plain.predict_proba(X)[:, 1], expit(plain.decision_function(X)))
    np.testing.assert_array_equal(plain.decision_function(X), mapped.decision_function(X))
    # so small a C shrinks the log-odds to nothing; the folds know better
    assert log_loss(y, mapped.predict_proba(X)) < log_loss(y, plain.predict_proba(X)) - 0.1


def test_nothing_is_fitted_besides():
    X, y = by_hand.moons(60)
    fits = {}
    for how in (False, True):
        clf = MKLClassifierCV(bank(), Cs=[0.1, 1.0], cv=FOLDS, probability=how).fit(X, y)
        fits[how] = (clf.n_passes_, clf.cv_results_["passes"].sum(), clf.dual_coef_.tolist())
    assert fits[True] == fits[False]


def test_repeated_folds_and_a_search_that_is_cut_short():
    X, y = by_hand.moons(60)
    often = RepeatedStratifiedKFold(n_splits=2, n_repeats=3, random_state=0)
    assert MKLClassifierCV(kw.linear(), Cs=[1.0], cv=often).fit(X, y).calibration_.samples == 180
    shown = []

    def stop_in_the_second_fold(row):
        shown.append(row)
        if len(shown) > 1 and shown[-1]["iteration"] < shown[-2]["iteration"]:
            raise KeyboardInterrupt

    clf = MKLClassifierCV(bank(), Cs=[1.0], cv=FOLDS, tol=1e-9, callback=stop_in_the_second_fold)
    with pytest.warns(KernelWeaveConvergenceWarning) as said:
        clf.fit(X, y)
    assert "cut short" in str(said[0].message)
    assert 15 <= clf.calibration_.samples < 60
    np.testing.assert_allclose(clf.predict_proba(X).sum(axis=1), 1.0)


def test_damaged_maps_are_refused(tmp_path):
    X, y = by_hand.moons(40)
    clf = MKLClassifierCV(kw.linear(), Cs=[1.0], cv=2).fit(X, y)
    for scale, offset in ((np.nan, 0.0), (-1.0, 0.0), (1.0, np.inf)):
        clf.calibration_ = Calibration(scale, offset, 40)
        save(clf, tmp_path / "model.skops")
        with pytest.raises(ModelFileError, match="probabilities of the model"):
            load(tmp_path / "model.skops")


def test_the_report_measures_probabilities_of_samples_that_nothing_has_seen():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(60, 30))
    y = np.where(X[:, 0] + rng.normal(size=60) > 0, "yes", "no")
    clf = MKLClassifierCV(kw.linear() + kw.gaussian(1.0, relative=True), Cs=[0.1, 100.0], cv=3).fit(X, y)
    page = make_report(clf, X, y, n_folds=3, n_repeats=1)
    shown = float(re.search(r"the Brier score is ([\d.]+)", page)[1])
    nested = np.empty((60, 2))
    for train, test in RepeatedStratifiedKFold(n_splits=3, n_repeats=1, random_state=0).split(X, y):
        nested[test] = clone(clf).fit(X[train], y[train]).predict_proba(X[test])
    right = y[:, None] == clf.classes_
    assert shown == pytest.approx(np.mean(np.sum((nested - right) ** 2, axis=1)), abs=0.01)
    seen = np.mean(np.sum((clf.predict_proba(X) - right) ** 2, axis=1))
    assert shown > seen + 0.05
    assert "The folds that gave the probabilities their scale lie inside" in page
