"""Kernels known from Gaussian processes, against scikit-learn's, and the sigmoid, which is refused where it has to be."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process import kernels as gp
from sklearn.metrics.pairwise import additive_chi2_kernel, sigmoid_kernel

from kernelweave import MKLClassifier, MKLRegressor
from kernelweave import kernels as kw

from .suite import numbers

X, NEW = numbers(), numbers(n=7, seed=3)


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_matern(nu):
    theirs = gp.Matern(length_scale=1.7, nu=nu)
    np.testing.assert_allclose(kw.matern(1.7, nu=nu)(X), theirs(X), rtol=1e-11)
    np.testing.assert_allclose(kw.matern(1.7, nu=nu)(NEW, X), theirs(NEW, X), rtol=1e-11)


def test_rational_quadratic():
    theirs = gp.RationalQuadratic(length_scale=1.7, alpha=0.6)
    np.testing.assert_allclose(kw.rational_quadratic(1.7, alpha=0.6)(NEW, X), theirs(NEW, X), rtol=1e-11)


def test_periodic_of_one_column():
    theirs = gp.ExpSineSquared(length_scale=0.9, periodicity=2.5)
    ours = kw.periodic(2.5, width=0.9).on(1)
    np.testing.assert_allclose(ours(NEW, X), theirs(NEW[:, [1]], X[:, [1]]), rtol=1e-9)


def test_additive_chi2_and_sigmoid():
    A, B = np.abs(X), np.abs(NEW)
    theirs = (A.sum(axis=1)[:, None] + B.sum(axis=1) + additive_chi2_kernel(A, B)) / 2
    np.testing.assert_allclose(kw.additive_chi2()(A, B), theirs, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(
        kw.sigmoid(0.2, coef0=-0.3)(A, B), sigmoid_kernel(A, B, gamma=0.2, coef0=-0.3), rtol=1e-12
    )


def test_widths_relative_to_the_median_are_those_of_the_gaussian():
    width = kw.gaussian(2.0, relative=True).resolve(X).settled_width
    for kernel in (
        kw.matern(2.0, nu=2.5, relative=True),
        kw.rational_quadratic(2.0, alpha=3.0, relative=True),
    ):
        resolved = kernel.resolve(X)
        assert resolved.settled_width == pytest.approx(width)
        assert "x median" in resolved.name
    assert kw.matern(2.0, nu=2.5, relative=True).resolve(X).nu == 2.5


def test_a_stack_of_each_is_learnt_from():
    y = np.sin(X[:, 0])
    bank = kw.matern([1.0, 4.0], nu=0.5) + kw.rational_quadratic([1.0, 4.0]) + kw.periodic([2.0, 6.0])
    model = MKLRegressor(bank, C=10.0).fit(X, y)
    assert model.certificate_.relative_gap <= 1e-3
    assert model.predict(NEW).shape == (7,)


def test_a_sigmoid_with_negative_eigenvalues_is_refused():
    with pytest.raises(ValueError, match=r"sigmoid.*(semi-?definite|eigenvalue)"):
        MKLClassifier(kw.sigmoid(0.1, coef0=-1.0)).fit(X, X[:, 0] > 0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: kw.matern(1.0, nu=2.0),
        lambda: kw.matern(-1.0),
        lambda: kw.rational_quadratic(1.0, alpha=0.0),
        lambda: kw.periodic(0.0),
        lambda: kw.periodic(1.0, width=-2.0),
        lambda: kw.sigmoid(0.0),
        lambda: kw.sigmoid(1.0, coef0=np.nan),
    ],
)
def test_bad_parameters_are_refused_where_they_are_written(make):
    with pytest.raises(ValueError, match=r"(nu|width|alpha|period|gamma|coef0) of|the (width|period) of"):
        make()
