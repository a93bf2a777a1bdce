"""What MKL has to beat: weights and C by simple rules, checked against the rules themselves."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.svm import SVC

from kernelweave import (
    AlignmentClassifier,
    BestKernelClassifier,
    MeanKernelClassifier,
    MeanKernelRidgeClassifier,
    MeanKernelRidgeRegressor,
    MKLClassifier,
    MKLRegressor,
)
from kernelweave import kernels as kw
from kernelweave.estimators import baselines as _rules
from kernelweave.problems import solve_fixed

from . import by_hand
from .data import bank

CLASSIFIERS = [MeanKernelClassifier, BestKernelClassifier, AlignmentClassifier, MeanKernelRidgeClassifier]


def normalised(X):
    stack = by_hand.raw_stack(X, X)
    return by_hand.trace_normalised(stack, stack)


@pytest.mark.parametrize("make", CLASSIFIERS)
def test_several_classes(make):
    X, y = by_hand.blobs(90, features=4)
    names = np.array(["oak", "ash", "elm"])[y]
    for multi_class, shape in (("ovr", (3, 10)), ("shared", (10,)), ("joint", (10,))):
        clf = make(bank(), multi_class=multi_class).fit(X, names)
        assert clf.weights_.shape == shape
        assert clf.score(X, names) > 0.8
        assert clf.certificate_.relative_gap <= 1e-3


@pytest.mark.parametrize("make", CLASSIFIERS)
def test_weights_are_on_the_simplex(make):
    X, y = by_hand.moons(60)
    clf = make(bank()).fit(X, y)
    assert clf.weights_.sum() == pytest.approx(1.0)
    assert np.all(clf.weights_ >= 0)
    assert clf.solver_ == "fixed_weights"
    # weights that are given cannot be wrong: the certificate is that of the SVM on them
    stack, one = normalised(X), np.ones(60)
    if make is not MeanKernelRidgeClassifier:
        beta = clf.certificate_.dual_point
        mixed = np.tensordot(clf.weights_, stack, axes=1)
        value = by_hand.dual_gain("hinge", y, beta, one) - 0.5 * beta @ mixed @ beta
        assert clf.certificate_.dual == pytest.approx(value, rel=1e-9)


def test_mean_kernel_is_svc_on_the_mean():
    X, y = by_hand.moons(60, noise=0.5)
    clf = MeanKernelClassifier(bank(), C=2.0, tol=1e-9).fit(X, y)
    mean = normalised(X).mean(axis=0)
    svc = SVC(kernel="precomputed", C=2.0, tol=1e-10).fit(mean, y)
    np.testing.assert_allclose(clf.decision_function(X), svc.decision_function(mean), atol=1e-3)
    same = MKLClassifier(bank(), norm="uniform", C=2.0, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(clf.dual_coef_, same.dual_coef_)


def test_best_kernel_finds_the_planted_one():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 6))
    y = np.abs(X[:, 4]) > 0.7
    clf = BestKernelClassifier(kw.per_feature(kw.gaussian(0.5), kw.linear())).fit(X, y)
    assert np.count_nonzero(clf.weights_) == 1
    assert clf.kernel_names_[np.argmax(clf.weights_)] == "gaussian(width=0.5) on feature 4"
    alone = SVC(gamma=1 / (2 * 0.5**2), C=1.0).fit(X[:, [4]], y)
    assert np.mean(clf.predict(X) == alone.predict(X[:, [4]])) > 0.97


def test_best_kernel_is_best_in_cross_validation():
    X, y = by_hand.moons(100, noise=0.5)
    stack = normalised(X)
    clf = BestKernelClassifier(bank(), C=2.0).fit(X, y)
    folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
    index = np.arange(100)[:, None]
    scores = [cross_val_score(MKLClassifier(kw.held(K), C=2.0), index, y, cv=folds).mean() for K in stack]
    assert scores[int(np.argmax(clf.weights_))] == pytest.approx(max(scores))


@pytest.mark.parametrize("several", [False, True])
def test_best_pair_of_kernel_and_C_in_cross_validation(several, monkeypatch):
    X, y = by_hand.blobs(60) if several else by_hand.moons(60, noise=0.5)
    stack, Cs = normalised(X), [0.05, 1.0, 30.0]
    folds = list(StratifiedKFold(3, shuffle=True, random_state=1).split(X, y))
    clf = BestKernelClassifier(bank(), Cs=Cs, cv=folds).fit(X, y)
    index = np.arange(60)[:, None]
    scores = np.array(
        [
            [cross_val_score(MKLClassifier(kw.held(K), C=C), index, y, cv=folds).mean() for C in Cs]
            for K in stack
        ]
    )
    # fits that rank are rough: one sample of the sixty may fall on the other side
    found = scores[int(np.argmax(clf.weights_)), Cs.index(clf.C_)]
    assert found >= scores.max() - 1.01 / 60
    assert several or found > scores[:, 0].max()  # C was chosen, too
    # where there are many kernels, C is chosen for those that do best at the given one
    monkeypatch.setattr(_rules, "MOST_PAIRS", 3)
    one = BestKernelClassifier(bank(), Cs=Cs, cv=folds, C=1.0).fit(X, y)
    first = [MKLClassifier(kw.held(K)).fit(folds[0][0][:, None], y[folds[0][0]]) for K in stack]
    best = [fit.score(folds[0][1][:, None], y[folds[0][1]]) for fit in first]
    assert best[int(np.argmax(one.weights_))] >= max(best) - 1.01 / 20


def test_hopeless_kernels_are_not_tried_on_every_fold(monkeypatch):
    """The choice is that of all folds; kernels that say nothing are fitted once."""
    X, y = by_hand.blobs(90, features=4)
    noise = np.random.default_rng(0).normal(size=(90, 90))
    X = np.hstack([X, noise])
    good, bad = [slice(0, 1), slice(0, 4)], [slice(4 + 10 * k, 14 + 10 * k) for k in range(6)]
    views = {str(k): columns for k, columns in enumerate([*bad[:3], *good, *bad[3:]])}
    weight = np.random.default_rng(1).uniform(0.5, 2.0, 90)
    fitted = []
    monkeypatch.setattr(_rules, "solve_fixed", lambda *given: fitted.append(1) or solve_fixed(*given))
    clf = BestKernelClassifier(kw.per_view(views, kw.gaussian(1.0, relative=True)))
    clf.fit(X, y, sample_weight=weight)
    assert len(fitted) <= 2 * 5 + 6 * 2
    scores = []
    for columns in views.values():
        right = 0.0
        for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
            one = MKLClassifier(kw.gaussian(1.0, relative=True).resolve(X[:, columns]), normalize=None)
            one.fit(X[train][:, columns], y[train], sample_weight=weight[train])
            right += np.sum(weight[test] * (one.predict(X[test][:, columns]) == y[test]))
        scores.append(right)
    assert np.argmax(clf.weights_) == np.argmax(scores) == 4


def test_best_kernel_with_a_class_of_few():
    X, y = by_hand.blobs(40)
    y[y == 2] = 0
    y[:3] = 2
    clf = BestKernelClassifier(kw.gaussian([0.5, 1.0, 2.0])).fit(X, y)
    assert clf.predict(X).shape == (40,)


def centre(K):
    n = len(K)
    H = np.eye(n) - np.ones((n, n)) / n
    return H @ K @ H


@pytest.mark.parametrize("center", [False, True])
def test_alignment_is_the_formula(center):
    X, y = by_hand.moons(60)
    y = np.where(np.arange(60) % 3 == 0, 1, y)
    target = centre(np.outer(y, y))
    raw = by_hand.raw_stack(X, X)
    raw = np.stack([centre(K) for K in raw]) if center else raw
    by = [
        (centre(K) * target).sum() / np.sqrt((centre(K) ** 2).sum() * (target**2).sum())
        for K in by_hand.trace_normalised(raw, raw)
    ]
    clf = AlignmentClassifier(bank(), center=center).fit(X, y)
    np.testing.assert_allclose(clf.weights_, np.maximum(by, 0) / np.maximum(by, 0).sum(), rtol=1e-9)


def test_alignment_with_several_classes_and_shared_weights():
    X, y = by_hand.blobs(60, features=4)
    signs = np.where(y[:, None] == np.arange(3), 1.0, -1.0)
    target = centre(signs @ signs.T)
    by = np.array([(centre(K) * target).sum() / np.linalg.norm(centre(K)) for K in normalised(X)])
    clf = AlignmentClassifier(bank(), multi_class="shared").fit(X, y)
    np.testing.assert_allclose(clf.weights_, np.maximum(by, 0) / np.maximum(by, 0).sum(), rtol=1e-9)
    apart = AlignmentClassifier(bank(), multi_class="ovr").fit(X, y)
    for k in range(3):
        target = centre(np.outer(signs[:, k], signs[:, k]))
        by = np.array([(centre(K) * target).sum() / np.linalg.norm(centre(K)) for K in normalised(X)])
        np.testing.assert_allclose(apart.weights_[k], np.maximum(by, 0) / np.maximum(by, 0).sum(), rtol=1e-9)


def test_alignment_prefers_the_planted_kernel():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 6))
    clf = AlignmentClassifier(kw.per_feature(kw.gaussian(1.0))).fit(X, X[:, 4] > 0)
    assert np.argmax(clf.weights_) == 4
    assert clf.weights_[4] > 3 * np.median(clf.weights_)


# ---- ridge with leave-one-out --------------------------------------------------------------------------------------


def ridge_without(K, y, weight, C, left_out, intercept):
    """Prediction for one sample by a ridge fit on the others, from the normal equations of the definition."""
    kept = np.flatnonzero((np.arange(len(y)) != left_out) & (weight > 0))
    A = K[np.ix_(kept, kept)] + np.diag(1 / (2 * C * weight[kept]))
    if not intercept:
        return K[left_out, kept] @ np.linalg.solve(A, y[kept])
    ones = np.ones((len(kept), 1))
    solved = np.linalg.solve(np.block([[A, ones], [ones.T, np.zeros((1, 1))]]), np.append(y[kept], 0.0))
    return K[left_out, kept] @ solved[:-1] + solved[-1]


def brute_force(K, y, weight, C, intercept):
    used = np.flatnonzero(weight > 0)
    missed = [(y[i] - ridge_without(K, y, weight, C, i, intercept)) ** 2 for i in used]
    return float(np.average(missed, weights=weight[used]))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("make", [MeanKernelRidgeRegressor, MeanKernelRidgeClassifier])
def test_leave_one_out_is_leaving_one_out(make, fit_intercept, weighted):
    X, y = by_hand.curve(30, 4) if make is MeanKernelRidgeRegressor else by_hand.moons(30, noise=0.5)
    weight = np.random.default_rng(0).integers(0, 4, size=30).astype(float) if weighted else np.ones(30)
    model = make(bank(), fit_intercept=fit_intercept, tol=1e-8)
    model.fit(X, y, **({"sample_weight": weight} if weighted else {}))
    K = normalised(X).mean(axis=0)
    assert model.loo_errors_.shape == model.Cs_.shape
    for k in range(0, len(model.Cs_), 5):
        by = brute_force(K, y.astype(float), weight, model.Cs_[k], fit_intercept)
        assert model.loo_errors_[k] == pytest.approx(by, rel=1e-6), model.Cs_[k]
    assert model.Cs_[np.argmin(model.loo_errors_)] == model.C_
    # and then it is ridge with that C
    values = model.predict(X) if make is MeanKernelRidgeRegressor else model.decision_function(X)
    if not fit_intercept:
        used = weight > 0
        ridge = KernelRidge(kernel="precomputed", alpha=1 / (2 * model.C_))
        ridge.fit(K[np.ix_(used, used)], y[used], sample_weight=weight[used])
        np.testing.assert_allclose(values, ridge.predict(K[:, used]), atol=1e-4)


def test_ridge_with_several_classes():
    X, y = by_hand.blobs(40, features=4)
    clf = MeanKernelRidgeClassifier(bank(), multi_class="ovr").fit(X, y)
    K = normalised(X).mean(axis=0)
    assert clf.loo_errors_.shape == (3, 41)
    assert np.shape(clf.C_) in ((), (3,))
    for k in range(3):
        sign = np.where(y == k, 1.0, -1.0)
        by = [brute_force(K, sign, np.ones(40), C, True) for C in clf.Cs_[10:30:5]]
        np.testing.assert_allclose(clf.loo_errors_[k][10:30:5], by, rtol=1e-6)
        assert np.broadcast_to(clf.C_, 3)[k] == clf.Cs_[np.argmin(clf.loo_errors_[k])]
    shared = MeanKernelRidgeClassifier(bank(), multi_class="shared").fit(X, y)
    assert shared.loo_errors_.shape == (41,)
    np.testing.assert_allclose(shared.loo_errors_, clf.loo_errors_.mean(axis=0), rtol=1e-9)


def test_regularisation_is_found():
    """Much noise asks for a small C, none for a large one."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(80, 1))
    clean = np.sin(2 * X[:, 0])
    spec = kw.gaussian([0.5, 1.0])
    quiet = MeanKernelRidgeRegressor(spec).fit(X, clean + 0.001 * rng.normal(size=80))
    loud = MeanKernelRidgeRegressor(spec).fit(X, clean + 1.0 * rng.normal(size=80))
    assert quiet.C_ > 100 * loud.C_
    assert quiet.score(X, clean) > 0.999
    assert loud.score(X, clean) > 0.6


def test_baselines_take_every_kind_of_input():
    X, y = by_hand.moons(60)
    stack = by_hand.raw_stack(X, X)
    for make in CLASSIFIERS:
        known, given = make(bank(), tol=1e-8).fit(X, y), make("precomputed", tol=1e-8).fit(stack, y)
        np.testing.assert_allclose(given.weights_, known.weights_, atol=1e-8)
        np.testing.assert_allclose(given.decision_function(stack), known.decision_function(X), atol=1e-4)
        held = make(kw.held(stack)).fit(np.arange(60)[:, None], y)
        np.testing.assert_allclose(held.weights_, known.weights_, atol=1e-8)


@pytest.mark.parametrize(
    ("make", "names"),
    [
        (MeanKernelClassifier, {"norm"}),
        (BestKernelClassifier, {"norm"}),
        (AlignmentClassifier, {"norm"}),
        (MeanKernelRidgeClassifier, {"loss", "norm", "C"}),
        (MeanKernelRidgeRegressor, {"loss", "quantiles", "norm", "C"}),
    ],
)
def test_no_parameter_is_ignored_in_silence(make, names):
    """What a rule settles is no parameter, and is refused."""
    parent = MKLRegressor if make is MeanKernelRidgeRegressor else MKLClassifier
    assert parent().get_params().keys() - make().get_params().keys() == names
    for name in names:
        with pytest.raises(TypeError, match=f"takes no '{name}': it is"):
            make(**{name: 2.0})
