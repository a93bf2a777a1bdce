"""scikit-learn's own checks, and at a tight tolerance the one property that they ask for at 1e-7."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

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
#: all checks
ESTIMATORS = [
    MKLClassifier(),
    MKLRegressor(),
    MKLClassifierCV(Cs=[0.1, 1.0], cv=2),
]
#: estimators that share the inputs, parameters and fitted state of those, with a fit of their own
SUBCLASSES = [
    MKLRegressorCV(criterion="reml"),
    MKLRegressor(loss="quantile", quantiles=0.7),
    MKLRegressor(loss="huber"),
    MKLRegressor(loss="poisson"),
    MKLClassifier(loss="ordinal"),
    MeanKernelClassifier(),
    BestKernelClassifier(),
    AlignmentClassifier(),
    MeanKernelRidgeClassifier(),
    MeanKernelRidgeRegressor(),
    NoisyLabelMKLClassifier(),
    NoisyLabelMKLClassifier(method="confident", suspect_weight=0.0),
    NoisyLabelMKLClassifier(method="ramp", max_rounds=3),
]
#: what a fit of its own can break
OF_A_FIT = {
    "check_no_attributes_set_in_init",
    "check_dict_unchanged",
    "check_fit_check_is_fitted",
    "check_estimators_overwrite_params",
    "check_estimators_nan_inf",
    "check_estimators_pickle",
    "check_fit2d_1sample",
    "check_fit2d_predict1d",
    "check_fit_idempotent",
    "check_n_features_in_after_fitting",
    "check_sample_weights_not_overwritten",
    "check_classifiers_train",
    "check_classifiers_classes",
    "check_classifiers_one_label_sample_weights",
    "check_regressors_train",
    "check_methods_subset_invariance",
}


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=lambda estimator: GRANTED)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def granted(estimator):
    """What a loss does not take is refused: the targets of that check are on both sides of zero."""
    counts = estimator.get_params().get("loss") == "poisson"
    return GRANTED | ({"check_regressor_multioutput": "counts are not negative"} if counts else {})


def of_a_fit(estimator, check):
    """Whether the gate runs the check; ``pytest -m full`` runs the others, and those on other arrays again."""
    return getattr(check, "func", check).__name__ in OF_A_FIT and not getattr(
        check, "keywords", {}
    ).keys() & {
        "readonly_memmap",
        "X_dtype",
    }


@pytest.mark.gate_runs(only=of_a_fit)
@parametrize_with_checks(SUBCLASSES, expected_failed_checks=granted)
def test_scikit_learn_checks_of_subclasses(estimator, check):
    check(estimator)


def test_the_checks_of_the_gate_are_there():
    names = {
        getattr(check, "func", check).__name__
        for estimator in SUBCLASSES
        for _, check in estimator_checks_generator(estimator)
    }
    assert names >= OF_A_FIT


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
