"""LP-beta: the linear program against a conic solver, the two layers against SVMs by hand, bad input."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernelweave import LPBetaClassifier, persistence
from kernelweave import kernels as kw
from kernelweave.estimators import lp_beta
from kernelweave.estimators.lp_beta import largest_margin

from . import by_hand
from .data import bank
from .test_checks import GRANTED

BANK = kw.gaussian([0.5, 1.0, 2.0])


@parametrize_with_checks(
    [LPBetaClassifier(nu=0.2, n_folds=2)], expected_failed_checks=lambda estimator: GRANTED
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# ---- the linear program --------------------------------------------------------------------------------------------


def by_conic(leads, nu, weight):
    import cvxpy as cp

    n, rivals, m = leads.shape
    beta, rho, xi = cp.Variable(m, nonneg=True), cp.Variable(), cp.Variable(n, nonneg=True)
    constraints = [cp.sum(beta) == 1]
    constraints += [leads[:, c] @ beta >= rho - xi for c in range(rivals)]
    problem = cp.Problem(cp.Maximize(rho - weight @ xi / (nu * weight.sum())), constraints)
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return float(problem.value)


@pytest.mark.parametrize("nu", [0.05, 0.3, 1.0])
@pytest.mark.parametrize("rivals", [1, 4])
def test_linear_program_is_solved(nu, rivals):
    rng = np.random.default_rng(rivals)
    leads = 0.4 + rng.normal(size=(60, rivals, 5)) * rng.uniform(0.2, 2.0, size=5)
    weight = rng.choice([0.0, 1.0, 2.0], 60)
    found = largest_margin(leads, nu, weight)
    assert np.all(found.weights >= 0)
    assert found.weights.sum() == pytest.approx(1.0)
    assert found.value == pytest.approx(by_conic(leads, nu, weight), abs=1e-7)
    # the value is that of the weights, and nu bounds the share of the weight below the margin
    short = np.maximum(0.0, found.rho - (leads @ found.weights).min(axis=1))
    assert found.rho - weight @ short / (nu * weight.sum()) == pytest.approx(found.value, abs=1e-7)
    assert weight @ (short > 1e-7) <= nu * weight.sum() + 1e-9


def test_linear_program_drops_what_only_hurts():
    rng = np.random.default_rng(0)
    leads = rng.normal(size=(200, 2, 4))
    leads[..., 1] = 1.0 + 0.1 * rng.normal(size=(200, 2))
    assert largest_margin(leads, 0.1, np.ones(200)).weights[1] > 0.8


# ---- both layers ---------------------------------------------------------------------------------------------------


def cross_validated(stack, y, C):
    """Outputs of scikit-learn's SVMs by the same folds, ``(n, k, m)``."""
    classes = np.unique(y)
    out = np.zeros((len(y), classes.size, len(stack)))
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(y, y):
        for j, K in enumerate(stack):
            for k, label in enumerate(classes):
                svc = SVC(kernel="precomputed", C=C, tol=1e-8)
                svc.fit(K[np.ix_(train, train)], np.where(y[train] == label, 1, -1))
                out[test, k, j] = svc.decision_function(K[np.ix_(test, train)])
    return out


def test_several_classes_by_hand():
    X, y = by_hand.blobs(60, features=4)
    raw = by_hand.raw_stack(X, X)
    stack = by_hand.trace_normalised(raw, raw)
    clf = LPBetaClassifier(bank(), C=2.0, nu=0.2, tol=1e-9).fit(X, y)
    outputs = cross_validated(stack, y, 2.0)
    own = outputs[np.arange(60), y]
    leads = np.stack([own[i] - np.delete(outputs[i], y[i], axis=0) for i in range(60)])
    value = by_conic(leads, 0.2, np.ones(60))
    short = np.maximum(0.0, clf.rho_ - (leads @ clf.weights_).min(axis=1))
    assert clf.rho_ - short.mean() / 0.2 == pytest.approx(value, abs=1e-4)
    # the last fits are SVMs on all samples, weighted by beta
    new = np.random.default_rng(1).normal(size=(20, 4))
    cross = by_hand.trace_normalised(by_hand.raw_stack(new, X), raw)
    expected = np.zeros((20, 3))
    for j in np.flatnonzero(clf.weights_):
        for k in range(3):
            svc = SVC(kernel="precomputed", C=2.0, tol=1e-8).fit(stack[j], np.where(y == k, 1, -1))
            expected[:, k] += clf.weights_[j] * svc.decision_function(cross[j])
    np.testing.assert_allclose(clf.decision_function(new), expected, atol=1e-3)
    np.testing.assert_array_equal(clf.predict(new), np.argmax(clf.decision_function(new), axis=1))
    best = [np.mean(np.argmax(outputs[..., j], axis=1) == y) for j in range(len(stack))]
    np.testing.assert_allclose(clf.kernel_scores_, best, atol=0.02)


def test_two_classes():
    X, y = by_hand.moons(80)
    clf = LPBetaClassifier(BANK).fit(X, y)
    assert clf.weights_.shape == (3,)
    assert clf.decision_function(X).shape == (80,)
    assert clf.score(X, y) > 0.9
    assert clf.dual_coef_.shape == (80, 3)
    assert clf.nu_ in (0.05, 0.1, 0.2, 0.4, 0.8)
    assert list(clf.kernel_names_) == [f"gaussian(width={w})" for w in ("0.5", "1", "2")]


def test_C_and_nu_are_chosen_among_those_given():
    X, y = by_hand.moons(80, noise=0.6)
    clf = LPBetaClassifier(BANK, C=[1e-4, 1.0, 100.0], nu=[0.1, 0.5]).fit(X, y)
    assert set(clf.C_) <= {1e-4, 1.0, 100.0}
    alone = [LPBetaClassifier(BANK, C=C, nu=0.1).fit(X, y).kernel_scores_ for C in (1e-4, 1.0, 100.0)]
    np.testing.assert_allclose(clf.kernel_scores_, np.max(alone, axis=0))


def test_the_planted_kernel_gets_the_weight():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 5))
    y = np.digitize(X[:, 3], [-0.5, 0.5])
    clf = LPBetaClassifier(kw.per_feature(kw.gaussian(0.5)), C=10.0).fit(X, y)
    assert np.argmax(clf.weights_) == 3
    assert clf.weights_[3] > 0.8


def test_every_kind_of_input():
    X, y = by_hand.blobs(60)
    stack = np.stack([by_hand.gaussian(X, X, width) for width in (0.5, 1.0, 2.0)])
    known = LPBetaClassifier(BANK, tol=1e-8).fit(X, y)
    given = LPBetaClassifier("precomputed", tol=1e-8).fit(stack, y)
    held = LPBetaClassifier(kw.held(stack), tol=1e-8).fit(np.arange(60)[:, None], y)
    for clf, new in ((given, stack), (held, np.arange(60)[:, None])):
        np.testing.assert_allclose(clf.weights_, known.weights_, atol=1e-6)
        np.testing.assert_allclose(clf.decision_function(new), known.decision_function(X), atol=1e-4)


def test_zero_weight_is_removal():
    X, y = by_hand.blobs(60)
    weight = np.ones(60)
    weight[::4] = 0.0
    zeroed = LPBetaClassifier(BANK, normalize=None, nu=0.2, tol=1e-8).fit(X, y, sample_weight=weight)
    removed = LPBetaClassifier(BANK, normalize=None, nu=0.2, tol=1e-8).fit(X[weight > 0], y[weight > 0])
    np.testing.assert_allclose(zeroed.decision_function(X), removed.decision_function(X), atol=1e-4)
    assert not np.any(zeroed.dual_coef_[::4])


def test_in_a_grid_search():
    X, y = by_hand.moons(60)
    search = GridSearchCV(LPBetaClassifier(BANK, n_folds=2), {"C": [0.1, 1.0], "nu": [0.1, 0.3]}, cv=2)
    assert search.fit(X, y).best_score_ > 0.7
    assert clone(search.best_estimator_).get_params()["n_folds"] == 2


def test_it_can_be_saved(tmp_path):
    X, y = by_hand.blobs(45)
    clf = LPBetaClassifier(BANK).fit(X, y)
    persistence.save(clf, tmp_path / "model.skops")
    again = persistence.load(tmp_path / "model.skops")
    np.testing.assert_array_equal(again.decision_function(X), clf.decision_function(X))


def test_a_class_of_few_gets_fewer_folds():
    X, y = by_hand.blobs(40)
    y = np.where(y == 2, 0, y)
    y[:2] = 2
    assert LPBetaClassifier(BANK).fit(X, y).predict(X).shape == (40,)


# ---- bad input -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"C": 0.0}, "C must be a finite number > 0"),
        ({"C": [1.0, -1.0]}, "C must be a finite number > 0, got -1.0"),
        ({"C": []}, "C needs at least one value"),
        ({"nu": 0.0}, "nu must be a finite number > 0"),
        ({"nu": 1.5}, "nu is a share of the samples"),
        ({"n_folds": 1}, "n_folds must be a whole number >= 2"),
        ({"tol": -1.0}, "tol must be"),
    ],
)
def test_parameters_out_of_range(options, words):
    X, y = by_hand.moons(20)
    with pytest.raises(ValueError, match=words):
        LPBetaClassifier(BANK, **options).fit(X, y)


def test_a_class_with_one_sample():
    X, y = by_hand.blobs(30)
    names = np.array(["oak", "ash", "elm"])[np.where(y == 2, 1, y)]
    names[0] = "elm"
    with pytest.raises(ValueError, match="at least two samples with a positive weight; class 'elm' has one"):
        LPBetaClassifier(BANK).fit(X, names)
    # a sample without weight is not there
    names[1] = "elm"
    weight = np.ones(30)
    weight[1] = 0.0
    with pytest.raises(ValueError, match="class 'elm' has one"):
        LPBetaClassifier(BANK).fit(X, names, sample_weight=weight)


def test_a_linear_program_that_is_not_solved_is_an_error(monkeypatch):
    failed = SimpleNamespace(status=4, message="numerical trouble")
    monkeypatch.setattr(lp_beta, "linprog", lambda *arguments, **named: failed)
    with pytest.raises(ArithmeticError, match="was not solved: numerical trouble"):
        largest_margin(np.ones((4, 1, 2)), 0.2, np.ones(4))
