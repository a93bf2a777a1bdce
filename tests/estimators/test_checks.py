"""scikit-learn's own checks, and at a tight tolerance the one property that they ask for at 1e-7."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernelweave import (
    AlignmentClassifier,
    BestKernelClassifier,
    MeanKernelClassifier,
    MeanKernelRidgeClassifier,
    MeanKernelRidgeRegressor,
    MKLClassifier,
    MKLClassifierCV,
    MKLRegressor,
    MKLRegressorCV,
    NoisyLabelMKLClassifier,
)
from kernelweave import kernels as kw

from .by_hand import blobs, curve, moons

WHY = "solved to a tolerance, on kernels whose scale is learnt on the rows given: as for scikit-learn's SVC"
GRANTED = {
    "check_sample_weight_equivalence_on_dense_data": WHY,
    "check_sample_weight_equivalence_on_sparse_data": WHY,
}
ESTIMATORS = [
    MKLClassifier(),
    MKLRegressor(),
    MKLClassifierCV(Cs=[0.1, 1.0], cv=2),
    MKLRegressorCV(criterion="reml"),
    MeanKernelClassifier(),
    BestKernelClassifier(),
    AlignmentClassifier(),
    MeanKernelRidgeClassifier(),
    MeanKernelRidgeRegressor(),
    NoisyLabelMKLClassifier(),
    NoisyLabelMKLClassifier(method="confident", suspect_weight=0.0),
    NoisyLabelMKLClassifier(method="ramp", max_rounds=3),
]


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=lambda estimator: GRANTED)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# Gaussians have a diagonal of ones, so that their scale does not depend on how often a row occurs
BANK = kw.gaussian([0.5, 1.0, 2.0]) + kw.per_feature(kw.gaussian([0.5, 1.0]))

CASES = [
    (MKLClassifier(BANK, C=2.0, tol=1e-9), moons, 1e-4),
    (MKLClassifier(BANK, C=2.0, tol=1e-9, norm=1.5), moons, 1e-4),
    (MKLClassifier(BANK, C=2.0, tol=1e-9, loss="logistic", norm=2), moons, 1e-4),
    (MKLClassifier(BANK, C=2.0, tol=1e-9, norm="uniform"), blobs, 1e-5),
    (MKLClassifier(BANK, C=2.0, tol=1e-9, loss="squared", norm=2), blobs, 1e-4),
    (MKLRegressor(BANK, C=2.0, tol=1e-9), curve, 1e-4),
    (MKLRegressor(BANK, C=2.0, tol=1e-9, loss="epsilon_insensitive", norm=1.5), curve, 1e-4),
    (AlignmentClassifier(BANK, C=2.0, tol=1e-9), moons, 1e-5),
]
IDS = [f"{type(e).__name__}-{e.loss}-{e.norm}" for e, _, _ in CASES]


def values(estimator, X):
    return estimator.decision_function(X) if hasattr(estimator, "decision_function") else estimator.predict(X)


@pytest.mark.parametrize(("estimator", "make", "close"), CASES, ids=IDS)
def test_weights_are_repetitions(estimator, make, close):
    X, y = make(45)
    times = np.random.default_rng(1).integers(0, 4, size=45)
    assert {0, 1, 2, 3} <= set(times)
    weighted = values(estimator.fit(X, y, sample_weight=times), X)
    repeated = values(estimator.fit(np.repeat(X, times, axis=0), np.repeat(y, times)), X)
    np.testing.assert_allclose(weighted, repeated, atol=close)
    plain = values(estimator.fit(X, y), X)
    assert np.abs(plain - repeated).max() > 0.01  # the weights do matter here


@pytest.mark.parametrize(("estimator", "make", "close"), CASES, ids=IDS)
def test_zero_weight_is_removal_and_weight_is_a_factor_of_C(estimator, make, close):
    X, y = make(45)
    weight = np.ones(45)
    weight[::4] = 0.0
    zeroed = values(estimator.fit(X, y, sample_weight=weight), X)
    assert np.all(estimator.dual_coef_[::4] == 0)
    removed = values(estimator.fit(X[weight > 0], y[weight > 0]), X)
    np.testing.assert_allclose(zeroed, removed, atol=close)

    tripled = values(estimator.fit(X, y, sample_weight=np.full(45, 3.0)), X)
    C = estimator.C
    factor = values(estimator.set_params(C=3 * C).fit(X, y), X)
    estimator.set_params(C=C)
    np.testing.assert_allclose(tripled, factor, atol=close)
