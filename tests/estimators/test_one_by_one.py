"""Samples left out one by one without refits: ``cv="loo"`` beside refits, and what refuses it."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.linear_model import Ridge
from sklearn.model_selection import LeaveOneOut, cross_val_predict
from sklearn.preprocessing import scale

from kernelweave import MKLClassifierCV, MKLRegressorCV
from kernelweave import kernels as kw
from kernelweave.banks import build_bank
from kernelweave.estimators import BestKernelClassifier
from kernelweave.losses import BudgetedHinge, make_loss
from kernelweave.norms import Uniform
from kernelweave.problems import MKLProblem, Point, left_out_values, solve_fixed

TWO, LABELS = load_breast_cancer(return_X_y=True)
TWO, LABELS = scale(TWO)[::9], LABELS[::9]
TABLE, TARGETS = load_diabetes(return_X_y=True)
TABLE, TARGETS = scale(TABLE)[::7], scale(TARGETS[::7])


def values_and_refits(loss, X, y, C, intercept=True, weight=None):
    """What the formula says of every sample, and what a refit without it says, for the mean of two kernels."""
    kernels = kw.resolve_kernels([kw.gaussian(3.0), kw.gaussian(8.0)], X)
    bank = build_bank(kernels, X, normalize="trace")
    problem = MKLProblem(bank, make_loss(loss), Uniform(), y, C, weight, intercept)
    weights = np.full(2, 0.5)
    K = np.asarray(bank.mixed(weights))
    whole = solve_fixed(K, problem.loss, y, problem.c, intercept, 1e-11)
    found = left_out_values(problem, Point(whole.beta, weights), whole.decision + whole.intercept)
    refits = np.empty(len(y))
    for i in range(len(y)):
        c = problem.c.copy()
        c[i] = 0.0
        one = solve_fixed(K, problem.loss, y, c, intercept, 1e-11)
        refits[i] = one.decision[i] + one.intercept
    return found, refits, whole.decision + whole.intercept


@pytest.mark.parametrize("intercept", [True, False])
def test_squared_loss_is_exact(intercept):
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(TARGETS))
    found, refits, _ = values_and_refits("squared", TABLE, TARGETS, 2.0, intercept, weight)
    np.testing.assert_allclose(found, refits, atol=1e-5)


@pytest.mark.parametrize(
    ("loss", "C", "within"),
    [("hinge", 0.3, 0.1), ("hinge", 10.0, 0.1), ("squared_hinge", 1.0, 0.1), ("logistic", 1.0, 0.01), ("logistic", 30.0, 0.05)],
)  # fmt: skip
def test_two_classes_are_near_refits(loss, C, within):
    """The estimate misses a small share of what leaving a sample out does to its decision value."""
    found, refits, values = values_and_refits(loss, TWO, np.where(LABELS == 1, 1.0, -1.0), C)
    moved = np.abs(refits - values)
    assert np.max(moved) > 10 * 1e-3
    assert np.sum(np.abs(found - refits)) < within * np.sum(moved)
    assert np.mean((found > 0) == (refits > 0)) >= 1.0 - 1.0 / len(refits)


def test_one_sample_that_holds_the_intercept():
    """Of two samples the other alone decides: values stay finite."""
    y = np.array([1.0, -1.0])
    found, _, _ = values_and_refits("hinge", np.array([[0.0], [1.0]]), y, 0.1)
    assert np.all(np.isfinite(found))


def test_classifier():
    model = MKLClassifierCV(kw.gaussian([2.0, 5.0, 10.0]), Cs=[0.1, 1.0, 10.0], cv="loo").fit(TWO, LABELS)
    table = model.cv_results_
    assert len(table) == 3
    assert set(table["fold"]) == {0}
    assert table.loc[table["log_loss"].idxmin(), "C"] == model.C_
    assert model.calibration_.samples == len(LABELS)
    assert model.certificate_.relative_gap <= 1e-3
    folds = MKLClassifierCV(kw.gaussian([2.0, 5.0, 10.0]), Cs=[0.1, 1.0, 10.0]).fit(TWO, LABELS)
    assert table["passes"].sum() < 0.5 * folds.cv_results_["passes"].sum()
    scored = MKLClassifierCV(kw.gaussian([2.0, 5.0]), Cs=[0.1, 1.0], cv="loo", scoring="roc_auc").fit(
        TWO, LABELS
    )
    assert "log_loss" not in scored.cv_results_
    assert scored.best_score_ == scored.cv_results_["score"].max()


def test_regressor_is_ridge_left_out():
    """On one linear kernel the errors are those of scikit-learn's refits."""
    Cs = [0.01, 0.1, 1.0]
    model = MKLRegressorCV(
        kw.linear(), norms=None, norm="l1", Cs=Cs, cv="loo", criterion="convex", normalize=None, center=False, tol=1e-8
    ).fit(TABLE, TARGETS)  # fmt: skip
    errors = [
        np.mean((TARGETS - cross_val_predict(Ridge(0.5 / C), TABLE, TARGETS, cv=LeaveOneOut())) ** 2) for C in Cs
    ]  # fmt: skip
    np.testing.assert_allclose(model.cv_results_.sort_values("C")["squared_error"], errors, rtol=1e-5)
    assert Cs[int(np.argmin(errors))] == model.C_


def test_targets_that_share_weights():
    Y = np.column_stack([TARGETS, TABLE[:, 0]])
    shared = MKLRegressorCV(
        kw.gaussian([2.0, 6.0]), Cs=[0.1, 1.0], cv="loo", criterion="convex", multi_output="shared"
    )
    shared.fit(TABLE[:, 1:], Y)
    assert np.isfinite(shared.cv_results_["squared_error"]).all()


def test_refusals():
    iris = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="cv='loo' is for two classes, and y has 3 classes"):
        MKLClassifierCV(cv="loo").fit(*iris)
    with pytest.raises(ValueError, match="a splitter, folds or 'loo', got 'lo'"):
        MKLClassifierCV(cv="lo").fit(TWO, LABELS)
    with pytest.raises(ValueError, match="groups are for folds"):
        MKLClassifierCV(cv="loo").fit(TWO, LABELS, groups=LABELS)
    with pytest.raises(ValueError, match="leaving out each of 64 samples"):
        MKLClassifierCV(cv="loo", memory_budget="80 KB").fit(TWO, LABELS)
    with pytest.raises(ValueError, match="closed form for loss='squared' alone"):
        MKLRegressorCV(loss="huber", cv="loo", criterion="convex").fit(TABLE, TARGETS)
    with pytest.raises(ValueError, match="a splitter or folds, got 'loo'"):
        MKLRegressorCV(cv="loo", criterion="folds").fit(TABLE, TARGETS)
    with pytest.raises(ValueError, match="a splitter or folds, got 'loo'"):
        BestKernelClassifier(cv="loo").fit(TWO, LABELS)
    with pytest.raises(ValueError, match="a sum over the samples"):
        MKLClassifierCV(loss=BudgetedHinge(0.5), cv="loo").fit(TWO, LABELS)
