"""Standard deviations of predictions: those of a Gaussian process, and right on new samples."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from kernelweave import MKLRegressor, MKLRegressorCV
from kernelweave import kernels as kw


def data(n: int, t: int = 1, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    Y = np.sin(X @ rng.normal(size=(3, t))) + 0.4 * rng.normal(size=(n, t))
    return X, Y


@pytest.mark.parametrize("weighted", [False, True])
def test_those_of_a_gaussian_process(weighted: bool) -> None:
    X, Y = data(40)
    y, C = Y[:, 0], 2.0
    weight = np.random.default_rng(3).uniform(0.5, 2.0, size=40) if weighted else np.ones(40)
    model = MKLRegressor(kw.gaussian(1.5), C=C, fit_intercept=False, tol=1e-10).fit(X, y, weight)
    G = RBF(1.5)(X) + np.diag(1.0 / (2 * C * weight))
    scale = y @ np.linalg.solve(G, y) / 40
    noise = scale / (2 * C)
    process = GaussianProcessRegressor(
        ConstantKernel(scale) * RBF(1.5), alpha=noise / weight, optimizer=None
    ).fit(X, y)
    new = np.random.default_rng(1).normal(size=(7, 3)) * 2
    mean, spread = process.predict(new, return_std=True)
    ours, deviation = model.predict(new, return_std=True)
    np.testing.assert_allclose(ours, mean, atol=1e-6)
    np.testing.assert_allclose(deviation, np.sqrt(spread**2 + noise), rtol=1e-6)


def test_centring_does_not_matter_where_there_is_an_intercept() -> None:
    X, Y = data(50, 2)
    bank = kw.gaussian([1.0, 3.0])
    raw = MKLRegressorCV(bank, criterion="reml", center=False, normalize=None).fit(X, Y)
    spread = raw.predict(X[:9] + 0.1, return_std=True)[1]
    centred = MKLRegressorCV(bank, criterion="reml", center=True, normalize=None).fit(X, Y)
    np.testing.assert_allclose(centred.predict(X[:9] + 0.1, return_std=True)[1], spread, rtol=1e-6)
    assert spread.shape == (9, 2)


@pytest.mark.parametrize("criterion", ["reml", "convex"])
def test_calibrated_on_new_samples(criterion: str) -> None:
    X, Y = data(600, 4)
    bank = kw.gaussian([0.5, 1.0, 2.0, 4.0])
    model = MKLRegressorCV(bank, criterion=criterion, Cs=[0.1, 1.0, 10.0], cv=3, multi_output="each")
    model.fit(X[:100], Y[:100])
    mean, spread = model.predict(X[100:], return_std=True)
    z = (Y[100:] - mean) / spread
    assert 0.85 < np.sqrt(np.mean(z**2)) < 1.15
    assert 0.91 < np.mean(np.abs(z) < 1.96) < 0.985


def test_where_there_are_none() -> None:
    X, Y = data(30, 2)
    bank = kw.gaussian(1.0)
    with pytest.raises(ValueError, match="loss='squared'"):
        MKLRegressor(bank, loss="epsilon_insensitive").fit(X, Y[:, 0]).predict(X, return_std=True)
    K = np.exp(-np.sum((X[:, None] - X) ** 2, axis=2))[None]
    with pytest.raises(ValueError, match="samples kept in memory"):
        MKLRegressor("precomputed").fit(K, Y).predict(K, return_std=True)
    Y[:, 0] = 2.0
    constant = MKLRegressorCV(bank, criterion="reml").fit(X, Y).predict(X, return_std=True)[1]
    np.testing.assert_allclose(constant[:, 0], 0.0, atol=1e-12)
