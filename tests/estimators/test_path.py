"""Paths over C and the choice of C by cross-validation on one bank: the same as fitting again and again."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, StratifiedKFold

from kernelweave import MKLClassifier, MKLClassifierCV, mkl_path
from kernelweave import kernels as kw
from kernelweave.banks import build_bank
from kernelweave.losses import Hinge
from kernelweave.norms import L1
from kernelweave.solvers import Stop, follow_path, make_solver

from . import by_hand
from .data import bank

CS = np.logspace(-2, 2, 5)


@pytest.fixture(scope="module")
def binary():
    return by_hand.moons(80, noise=0.5)


@pytest.mark.parametrize(
    "options", [{}, {"norm": 2}, {"loss": "logistic", "norm": 1.5}, {"solver": "subgradient"}]
)
def test_path_is_one_fit_after_another(binary, options):
    X, y = binary
    path = mkl_path(X, y, bank(), Cs=CS, tol=1e-6, **options)
    assert path.weights.shape == (5, 10)
    assert path.dual_coefs.shape == (5, 80)
    assert np.array_equal(path.Cs, CS)
    for k, C in enumerate(CS):
        alone = MKLClassifier(bank(), C=C, tol=1e-6, **options).fit(X, y)
        assert path.certificates[k].relative_gap <= 1e-6
        assert path.certificates[k].primal == pytest.approx(alone.certificate_.primal, rel=2e-6)
        assert path.certificates[k].dual <= alone.certificate_.primal * (1 + 1e-12)
        f = alone.decision_function(X)
        stack = by_hand.raw_stack(X, X)
        stack = by_hand.trace_normalised(stack, stack)
        mine = sum(d * (K @ path.dual_coefs[k]) for d, K in zip(path.weights[k], stack, strict=True))
        np.testing.assert_allclose(mine + path.intercepts[k], f, atol=0.02 * np.abs(f).max())
    assert list(path.kernel_names) == list(alone.kernel_names_)


def test_path_is_warm(binary):
    X, y = binary
    Cs = np.logspace(-1, 0.5, 5)
    path = mkl_path(X, y, bank(), Cs=Cs, solver="level", tol=1e-4)
    cold = sum(MKLClassifier(bank(), C=C, solver="level", tol=1e-4).fit(X, y).n_iter_ for C in Cs)
    assert path.n_iter.sum() < 0.9 * cold


SPECS = {
    "plain": (bank(), {}),
    "lp": (bank(), {"norm": 1.5}),
    "not normalised": (bank(), {"normalize": None}),
    "cosine": (bank(), {"normalize": "cosine"}),
    "centred": (bank(), {"center": True}),
    "relative widths": (kw.gaussian([0.5, 1.0], relative=True) + kw.linear(), {}),
    "default bank": (None, {}),
    "logistic": (bank(), {"loss": "logistic", "norm": 2}),
    "solver": (bank(), {"solver": "subgradient"}),
}


@pytest.mark.parametrize("kind", SPECS)
def test_scores_are_those_of_a_grid_search(binary, kind):
    """One bank for all folds, yet nothing of the held-out samples leaks into what is learnt."""
    X, y = binary
    X = X * [1.0, 3.0, 0.3, 1.0]
    spec, options = SPECS[kind]
    cv = StratifiedKFold(4, shuffle=True, random_state=1)
    Cs = [0.05, 1.0, 20.0]
    quick = MKLClassifierCV(spec, Cs=Cs, cv=cv, tol=1e-7, scoring="roc_auc", **options).fit(X, y)
    slow = GridSearchCV(MKLClassifier(spec, tol=1e-7, **options), {"C": Cs}, cv=cv, scoring="roc_auc").fit(
        X, y
    )
    table = quick.cv_results_.pivot(index="C", columns="fold", values="score")
    by = np.stack([slow.cv_results_[f"split{k}_test_score"] for k in range(4)], axis=1)
    np.testing.assert_allclose(table.to_numpy(), by, atol=1e-9)
    means = slow.cv_results_["mean_test_score"]
    # the grid search takes the first of equals, this one that of the smallest log loss
    assert quick.C_ in np.array(Cs)[means >= means.max() - 1e-12]
    assert quick.best_score_ == pytest.approx(slow.best_score_)
    again = MKLClassifier(spec, tol=1e-7, C=quick.C_, **options).fit(X, y)
    np.testing.assert_allclose(quick.decision_function(X), again.decision_function(X), atol=1e-3)
    assert quick.certificate_.relative_gap <= 1e-7
    assert quick.solver_ == again.solver_


def test_norms_are_chosen_too(binary):
    X, y = binary
    clf = MKLClassifierCV(bank(), Cs=[0.1, 1.0], norms=["l1", 2, "uniform"], cv=3).fit(X, y)
    assert set(clf.cv_results_["norm"]) == {"l1", "l2", "uniform"}
    assert len(clf.cv_results_) == 2 * 3 * 3
    means = clf.cv_results_.groupby(["norm", "C"])["score"].mean()
    assert means[(clf.norm_.label, clf.C_)] == pytest.approx(clf.best_score_)
    # the norm that was asked for is left only where another is ahead by more than chance
    kept = clf.norm_.label == "l1" and clf.best_score_ == pytest.approx(means["l1"].max())
    assert kept or clf.best_score_ == pytest.approx(means.max())
    assert means.max() - clf.best_score_ < 0.05
    final = MKLClassifier(bank(), C=clf.C_, norm=clf.norm_).fit(X, y)
    np.testing.assert_allclose(clf.weights_, final.weights_, atol=1e-9)


@pytest.mark.parametrize("shared", [False, True])
def test_several_classes(shared):
    X, y = by_hand.blobs(60)
    options = {"tol": 1e-6, "multi_class": "shared" if shared else "ovr"}
    folds = StratifiedKFold(3)
    quick = MKLClassifierCV(bank(), Cs=[0.1, 5.0], cv=folds, **options).fit(X, y)
    slow = GridSearchCV(MKLClassifier(bank(), **options), {"C": [0.1, 5.0]}, cv=folds).fit(X, y)
    np.testing.assert_allclose(
        quick.cv_results_.groupby("C")["score"].mean(), slow.cv_results_["mean_test_score"], atol=0.02
    )
    assert quick.predict(X).shape == (60,)


def test_groups_and_weights(binary):
    X, y = binary
    groups = np.arange(80) // 8
    clf = MKLClassifierCV(bank(), Cs=[0.1, 1.0], cv=GroupKFold(4)).fit(X, y, groups=groups)
    slow = GridSearchCV(MKLClassifier(bank()), {"C": [0.1, 1.0]}, cv=GroupKFold(4)).fit(X, y, groups=groups)
    np.testing.assert_allclose(
        clf.cv_results_.groupby("C")["score"].mean(), slow.cv_results_["mean_test_score"], atol=0.03
    )
    weight = np.where(np.arange(80) % 3 == 0, 5.0, 0.1)
    weighted = MKLClassifierCV(bank(), Cs=[1.0], cv=3).fit(X, y, sample_weight=weight)
    alone = MKLClassifier(bank(), C=1.0).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(weighted.dual_coef_, alone.dual_coef_, atol=1e-9)


def test_held_precomputed_and_strings(binary):
    X, y = binary
    stack = by_hand.raw_stack(X, X)
    known = MKLClassifierCV(bank(), Cs=[0.1, 1.0], cv=3, tol=1e-6).fit(X, y)
    held = MKLClassifierCV(kw.held(stack), Cs=[0.1, 1.0], cv=3, tol=1e-6).fit(np.arange(80)[:, None], y)
    given = MKLClassifierCV("precomputed", Cs=[0.1, 1.0], cv=3, tol=1e-6).fit(stack, y)
    for other in (held, given):
        np.testing.assert_allclose(other.cv_results_["score"], known.cv_results_["score"])
        assert other.C_ == known.C_
    assert np.array_equal(given.predict(stack), held.predict(np.arange(80)[:, None]))


def test_copies(binary):
    X, y = binary
    clf = MKLClassifierCV(bank(), Cs=[0.1, 1.0], cv=3).fit(X, y)
    restored = pickle.loads(pickle.dumps(clf))
    assert np.array_equal(restored.predict(X), clf.predict(X))
    assert restored.C_ == clf.C_
    assert not hasattr(clone(clf), "C_")


def test_bad_parameters(binary):
    X, y = binary
    for Cs in ([], [0.0, 1.0], [-1.0], [np.nan], 0):
        with pytest.raises(ValueError, match="Cs must be"):
            MKLClassifierCV(bank(), Cs=Cs).fit(X, y)
    with pytest.raises(ValueError, match="norms is empty"):
        MKLClassifierCV(bank(), norms=[]).fit(X, y)
    with pytest.raises(ValueError, match="needs norm='l1'"):
        MKLClassifierCV(bank(), norms=["l1", 2], solver="level").fit(X, y)
    with pytest.raises(ValueError, match="two classes"):
        mkl_path(*by_hand.blobs(30))


@pytest.mark.parametrize("solver", ["auto", "nesterov"])
def test_a_kernel_that_vanishes_on_a_fold_stays_at_zero_there(solver):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(24, 30))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=24) > 0, 1, 0)
    X[:, 5] = 0.0
    X[3, 5] = 2.0  # a term of one document: the fold without it has nothing of it
    folds = [(np.delete(np.arange(24), np.arange(k, 24, 4)), np.arange(k, 24, 4)) for k in range(4)]
    clf = MKLClassifierCV(kw.per_feature(kw.linear()), Cs=[0.1, 1.0], cv=folds, solver=solver, tol=1e-2).fit(
        X, y
    )
    assert np.isfinite(clf.cv_results_["relative_gap"]).all()
    assert (clf.cv_results_["relative_gap"] <= 1e-2).all()
    assert np.isfinite(clf.weights_).all()


def test_nothing_is_spent_where_the_old_solution_is_the_new_one():
    """Once no coefficient is at its bound, a larger C changes nothing: a certificate at no cost, and it is right."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(-2.0, 0.5, size=(30, 2)), rng.normal(2.0, 0.5, size=(30, 2))])
    y = np.repeat([0, 1], 30)
    kernels, Cs = kw.gaussian([1.0, 2.0]), [1e-3, 10.0, 20.0, 1e3]
    path = mkl_path(X, y, kernels, Cs=Cs)
    for k, C in enumerate(Cs):
        cold = MKLClassifier(kernels, C=C, tol=1e-6).fit(X, y)
        assert path.certificates[k].primal == pytest.approx(cold.certificate_.primal, rel=2e-3)
        assert path.certificates[k].relative_gap <= 1e-3
    # what the margins miss of 1 is charged at C: the old solution must be finer than what is asked of the new one
    bank = build_bank(list(kernels), X)
    loss, norm = Hinge(), L1()
    stops = iter([Stop(1e-9), Stop(1e-9), Stop(1e-3), Stop(1e-3)])
    fits = follow_path(
        bank, loss, norm, make_solver("newton", loss, norm), 2.0 * y - 1.0, Cs, lambda: next(stops)
    )
    found = [solution for _, _, solution in fits]
    assert np.max(np.abs(found[1].point.beta)) < 5.0  # far from C = 10
    assert found[1].passes > 0
    assert [one.passes for one in found[2:]] == [0.0, 0.0]
    assert all(one.converged for one in found)
