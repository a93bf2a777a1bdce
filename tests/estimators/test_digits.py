"""Fits whose coefficients are many powers of ten larger than what is left of them: solved, and proved to be."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from kernelweave import MKLClassifier, MKLRegressor
from kernelweave import kernels as kw
from kernelweave.losses import EpsilonInsensitive


@pytest.mark.parametrize("seed", [0, 1, 2, 8])
def test_the_maximum_norm_with_a_linear_kernel_far_from_the_origin(seed):
    """The kernel has next to no part and a weight of thousands: its block norm was all rounding, the gap up to .17."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 1))[rng.integers(0, 13, 40)] + 1000.0
    y = np.where(rng.random(40) < 0.1, 1, -1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MKLClassifier(loss="squared_hinge", norm="max", C=1400.0).fit(X, y)
    assert model.status_ == "converged"
    # the objective from its definition, in extended precision and from the samples themselves
    Z, beta, d = (np.asarray(v, dtype=np.longdouble) for v in (X, model.dual_coef_, model.weights_))
    distance = np.abs(Z - Z.T)
    median = np.median(distance[np.tri(40, k=-1, dtype=bool)])
    median = median if median > 0 else np.mean(distance[distance > 0])
    Ks = [np.exp(-(distance**2) / (2 * (w * median) ** 2)) for w in (0.25, 0.5, 1, 2, 4)]
    Ks.append(Z @ Z.T / np.mean(Z**2))
    blocks = [dj * np.sqrt(max(beta @ (K @ beta), 0)) for dj, K in zip(d, Ks, strict=True)]
    f = sum(dj * (K @ beta) for dj, K in zip(d, Ks, strict=True)) + model.intercept_
    objective = max(blocks) ** 2 / 2 + 1400 * np.sum(np.maximum(1 - y * f, 0) ** 2)
    assert float(objective) == pytest.approx(model.certificate_.primal, rel=1e-3)
    assert model.certificate_.dual <= float(objective)


@pytest.mark.parametrize("seed", [0, 2, 5])
def test_heavy_samples_far_from_the_origin_are_fitted_to_their_last_digits(seed):
    """Weights of 1e6 multiply the rounding of a decision value: coefficients are refined by exact sums."""
    rng = np.random.default_rng(seed)
    n = 40
    X, y = 1e4 + rng.normal(size=(n, 2)), 0.5 * rng.normal(size=n)
    weight = np.where(rng.random(n) < 0.2, 1e6, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MKLRegressor(loss=EpsilonInsensitive(0.0), norm="max", C=30.0).fit(X, y, sample_weight=weight)
    assert model.status_ == "converged"


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 7, 8])
def test_samples_that_are_all_alike_under_huge_weights(seed):
    """Coefficients of 6e8 add up to 1e-6: f is a constant, and the objective has one number to choose."""
    rng = np.random.default_rng(seed)
    n, C = 19, 640.0
    X, y = np.full((n, 3), 1000003.0), 1e-6 * rng.normal(size=n)
    weight = np.where(rng.random(n) < 0.25, 1e6, rng.uniform(0.2, 3.0, n))
    bank = kw.gaussian([0.5, 1, 2], relative=True) + kw.linear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MKLRegressor(bank, loss=EpsilonInsensitive(0.0), norm=1.1, C=C, fit_intercept=False).fit(
            X, y, sample_weight=weight
        )
    assert model.status_ == "converged"
    # four kernels of ones: equal blocks t / 4, of exponent r = 2p / (p + 1)
    r = 2.2 / 2.1
    bend = (4 * 0.25**r) ** (2 / r)
    best = min(0.5 * bend * t**2 + C * np.sum(weight * np.abs(y - t)) for t in y)
    assert model.certificate_.primal == pytest.approx(best, rel=1e-3)
    assert model.certificate_.dual <= best * (1 + 1e-9)
