"""Ridge regression between feature spaces, against explicit features and brute force."""

import numpy as np
import pytest

from kernelweave._numerics.feature_ridge import (
    PENALTIES,
    Target,
    _Trial,
    centred_gram,
    choose_penalty,
    leave_one_out,
    ridge_weights,
)


def explicit_prediction(predictors, features, new, penalty):
    """Predict features by ridge regression with a free intercept, from the definition."""
    d = predictors.shape[1]
    mean, origin = features.mean(axis=0), predictors.mean(axis=0)
    centred = predictors - origin
    slope = np.linalg.solve(centred.T @ centred + penalty * np.eye(d), centred.T @ (features - mean))
    return mean + (new - origin) @ slope


@pytest.fixture
def spaces(rng):
    predictors = rng.normal(size=(25, 6))
    features = np.tanh(predictors[:, :4] @ rng.normal(size=(4, 5))) + 0.3 * rng.normal(size=(25, 5)) + 2.0
    return predictors, features


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize("penalty", [0.05, 1.0, 30.0])
def test_weights_are_those_of_ridge_regression_on_explicit_features(spaces, rng, penalty):
    predictors, features = spaces
    new = rng.normal(size=(7, 6))
    weights = ridge_weights(centred_gram(predictors @ predictors.T), penalty, new @ predictors.T)
    expected = explicit_prediction(predictors, features, new, penalty)
    np.testing.assert_allclose(weights @ features, expected, rtol=1e-11)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, rtol=1e-13)


@pytest.mark.parametrize("penalty", [0.01, 1.0, 30.0, np.inf])
def test_leave_one_out_is_brute_force(spaces, penalty):
    predictors, features = spaces
    errors = []
    for left_out in range(len(predictors)):
        rest = np.arange(len(predictors)) != left_out
        if np.isinf(penalty):
            predicted = features[rest].mean(axis=0)
        else:
            predicted = explicit_prediction(
                predictors[rest], features[rest], predictors[[left_out]], penalty
            )[0]
        errors.append(np.sum((features[left_out] - predicted) ** 2))
    centred = centred_gram(predictors @ predictors.T)[0]
    np.testing.assert_allclose(
        leave_one_out(centred, Target.of(features @ features.T), penalty), errors, rtol=1e-10
    )


def test_the_penalty_is_the_best_of_the_grid_wherever_the_walk_begins(spaces):
    predictors, features = spaces
    centred, target = centred_gram(predictors @ predictors.T)[0], Target.of(features @ features.T)
    unit = np.trace(centred) / len(centred)
    errors = [leave_one_out(centred, target, p * unit).sum() for p in PENALTIES]
    choices = [choose_penalty(centred, target, near) for near in (None, 0, 3, 5)]
    assert {choice.rank for choice in choices} == {int(np.argmin(errors))}
    expected = 1 - min(errors) / leave_one_out(centred, target, np.inf).sum()
    np.testing.assert_allclose([choice.r2 for choice in choices], expected, rtol=1e-12)


def test_what_says_nothing_predicts_the_mean(rng):
    features = rng.normal(size=(40, 3))
    centred = centred_gram(np.ones((40, 40)))[0]
    assert np.isinf(choose_penalty(centred, Target.of(features @ features.T)).penalty)
    assert np.allclose(ridge_weights(centred_gram(np.ones((4, 4))), np.inf, np.ones((2, 4))), 0.25)


def test_a_permuted_view_cannot_be_predicted(rng):
    predictors = rng.normal(size=(300, 10))
    features = rng.normal(size=(300, 10))
    choice = choose_penalty(centred_gram(predictors @ predictors.T)[0], Target.of(features @ features.T))
    assert choice.r2 < 0.01


def test_large_matrices_are_inverted_by_halves(rng):
    features = rng.normal(size=(401, 300))
    centred = centred_gram(features @ features.T)[0]
    target = Target.of(features[:, :5] @ features[:, :5].T)
    penalty = 1e-2 * np.trace(centred) / len(centred)
    left = penalty * np.linalg.inv(centred + penalty * np.eye(401)) - 1 / 401
    expected = np.sum((left @ features[:, :5]) ** 2, axis=1) / np.diagonal(left) ** 2
    np.testing.assert_allclose(leave_one_out(centred, target, penalty), expected, rtol=1e-10)


@pytest.mark.parametrize("width", [5, 60])
def test_the_slope_of_the_error_points_downhill(rng, width):
    """Against differences of exact errors, for roots with few columns and for square ones."""
    predictors = rng.normal(size=(80, 12))
    features = np.tanh(predictors @ rng.normal(size=(12, width))) + 0.5 * rng.normal(size=(80, width))
    centred, target = centred_gram(predictors @ predictors.T)[0], Target.of(features @ features.T)
    assert target.root.shape[1] == (5 if width == 5 else 80)
    unit = np.trace(centred) / len(centred)
    for rate in (1e-3, 1e-1, 1e1, 1e2):
        around = [leave_one_out(centred, target, rate * unit * np.exp(h)).sum() for h in (-1e-4, 1e-4)]
        slope = (around[1] - around[0]) / 2e-4
        estimate = _Trial.of(centred, target, rate * unit).slope()
        assert abs(estimate - slope) <= 0.5 * abs(slope) + 1e-3 * around[0]
