"""Kernels of which centring leaves next to nothing: what is left has all its digits."""

from __future__ import annotations

import warnings
from fractions import Fraction

import numpy as np
import pytest

from kernelweave import MKLClassifier, MKLRegressor
from kernelweave import kernels as kw
from kernelweave.persistence import load, save


def centred(K: np.ndarray) -> np.ndarray:
    means = K.mean(axis=1)
    return K - means[:, None] - means + means.mean()


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
@pytest.mark.parametrize(("offset", "scale"), [(1e6, 1e7), (0.0, 1e-6)], ids=["far away", "tiny"])
def test_a_polynomial_around_the_mean_is_exact(degree, offset, scale):
    X = scale * (offset + np.random.default_rng(degree).normal(size=(6, 3)))
    kernel = kw.polynomial(degree).recentred(X)
    assert kernel.name == kw.polynomial(degree).name
    rows = [[Fraction(float(value)) for value in row] for row in X]
    origin = [Fraction(float(value)) for value in kernel.origin]

    def k(a, b):
        return (sum(x * y for x, y in zip(a, b, strict=True)) + 1) ** degree

    expected = np.array(
        [[float(k(a, b) - k(a, origin) - k(origin, b) + k(origin, origin)) for b in rows] for a in rows]
    )
    size = np.abs(expected).max()
    np.testing.assert_allclose(kernel(X), expected, rtol=0, atol=1e-14 * size)
    np.testing.assert_allclose(kernel(X[:2], X[2:]), expected[:2, 2:], rtol=0, atol=1e-14 * size)
    np.testing.assert_allclose(kernel.diag(X), np.diagonal(expected), rtol=0, atol=1e-14 * size)


@pytest.mark.parametrize("kernel", [kw.gaussian(0.5), kw.laplacian(0.5)], ids=["gaussian", "laplacian"])
def test_a_wide_kernel_less_one_is_exact(kernel):
    X = 1e-8 * np.random.default_rng(0).normal(size=(7, 2))
    recentred = kernel.recentred(X)
    assert recentred.name == kernel.name
    if kernel.family == "gaussian":
        exponent = 2.0 * np.sum((X[:, None] - X[None]) ** 2, axis=2)
    else:
        exponent = 2.0 * np.sum(np.abs(X[:, None] - X[None]), axis=2)
    # the series of the exponential, of which nothing but two terms is left
    np.testing.assert_allclose(recentred(X), -exponent + exponent**2 / 2, rtol=1e-12)
    values = np.linalg.eigvalsh(centred(recentred(X)))
    assert values[0] >= -1e-14 * values[-1]
    assert np.linalg.eigvalsh(centred(kernel(X)))[0] < -1e-10 * values[-1]  # which is what it is for


def test_kernels_that_keep_their_digits_stay_what_they_are():
    X = np.random.default_rng(0).normal(size=(30, 2))
    for kernel in (kw.gaussian(1.0), kw.laplacian(10.0), kw.polynomial(2), kw.gaussian(1.0).on([0])):
        assert kernel.recentred(X) is kernel


@pytest.mark.parametrize("normalize", ["trace", "cosine"])
@pytest.mark.parametrize("storage", ["dense", "lazy"])
def test_fits_on_nearly_constant_kernels_converge_and_predict(normalize, storage, tmp_path):
    """The centred kernels of tiny features are a linear and a distance kernel: C and labels make it a hard fit."""
    rng = np.random.default_rng(1)
    X = 1e-6 * rng.normal(size=(40, 2))
    y = np.where(X[:, 0] + 0.5e-6 * rng.normal(size=40) > 0, 1, -1)
    bank = kw.gaussian([0.5, 1.0]) + kw.polynomial(2) + kw.laplacian(3.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MKLClassifier(
            bank, center=True, normalize=normalize, storage=storage, norm="max", loss="squared_hinge", C=500.0
        ).fit(X, y)
    assert model.status_ == "converged"
    decision = model.decision_function(X)
    # recomputed from the definition, with the digits that double precision does not have
    Z, beta = X.astype(np.longdouble), model.dual_coef_.astype(np.longdouble)
    squared = np.sum((Z[:, None] - Z[None]) ** 2, axis=2)
    city = np.sum(np.abs(Z[:, None] - Z[None]), axis=2)
    inner = Z @ Z.T
    matrices = [np.expm1(-squared / (2 * w**2)) for w in (0.5, 1.0)]
    matrices += [2 * inner + inner**2, np.expm1(-city / 3)]
    f = np.longdouble(model.intercept_)
    for weight, K in zip(model.weights_, matrices, strict=True):
        K = centred(K)
        diagonal = np.diagonal(K)
        K = K / np.mean(diagonal) if normalize == "trace" else K / np.sqrt(np.outer(diagonal, diagonal))
        f = f + weight * (K @ beta)
    np.testing.assert_allclose(decision, f.astype(float), rtol=0, atol=1e-6 * np.abs(decision).max())
    save(model, tmp_path / "model.kw")
    again = load(tmp_path / "model.kw").decision_function(X)
    np.testing.assert_allclose(again, decision, rtol=0, atol=1e-9 * np.abs(decision).max())


def test_a_regression_far_from_the_origin_is_that_of_standardised_columns():
    """A polynomial of columns around 1e9: its matrix had an eigenvalue of -1e-5, beside a ridge of 2e-5."""
    rng = np.random.default_rng(2)
    Z = rng.normal(size=(15, 3))
    X, y = 1e7 * (1e4 + Z), Z[:, 0] + 0.1 * rng.normal(size=15)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MKLRegressor(kw.polynomial(2), center=True, norm="max", C=3e4, storage="dense").fit(X, y)
    assert model.status_ == "converged"
    assert model.certificate_.relative_gap < 1e-6
