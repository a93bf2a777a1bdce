"""The formulas, written as loops over pairs: slow, and hard to get wrong."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import sparse

from kernelweave import kernels as kw

from .suite import numbers

POSITIVE = np.abs(numbers(d=6))


def l2(a, b):
    return sum((x - y) ** 2 for x, y in zip(a, b, strict=True))


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def chi2(a, b):
    return sum((x - y) ** 2 / (x + y) if x + y > 0 else 0.0 for x, y in zip(a, b, strict=True))


def least(a, b):
    return sum(min(x, y) for x, y in zip(a, b, strict=True))


def most(a, b):
    return sum(max(x, y) for x, y in zip(a, b, strict=True))


CASES = {
    "gaussian": (kw.gaussian(0.7), lambda a, b: math.exp(-l2(a, b) / (2 * 0.7**2))),
    "laplacian": (
        kw.laplacian(3.0),
        lambda a, b: math.exp(-sum(abs(x - y) for x, y in zip(a, b, strict=True)) / 3.0),
    ),
    "linear": (kw.linear(), dot),
    "cosine": (
        kw.cosine(),
        lambda a, b: dot(a, b) / math.sqrt(dot(a, a) * dot(b, b)) if dot(a, a) * dot(b, b) else 0.0,
    ),
    "polynomial": (kw.polynomial(3, coef0=2.0, gamma=0.5), lambda a, b: (0.5 * dot(a, b) + 2.0) ** 3),
    "chi2": (kw.chi2(0.4), lambda a, b: math.exp(-0.4 * chi2(a, b))),
    "intersection": (kw.intersection(), least),
    "additive_chi2": (
        kw.additive_chi2(),
        lambda a, b: sum(2 * x * y / (x + y) if x + y > 0 else 0.0 for x, y in zip(a, b, strict=True)),
    ),
    "periodic": (
        kw.periodic(3.0, width=0.8),
        lambda a, b: math.exp(
            -2 * sum(math.sin(math.pi * (x - y) / 3.0) ** 2 for x, y in zip(a, b, strict=True)) / 0.8**2
        ),
    ),
    "sigmoid": (kw.sigmoid(0.3, coef0=-0.5), lambda a, b: math.tanh(0.3 * dot(a, b) - 0.5)),
    "tanimoto": (kw.tanimoto(), lambda a, b: least(a, b) / most(a, b) if most(a, b) else 1.0),
    "product": (kw.linear() * kw.gaussian(2.0), lambda a, b: dot(a, b) * math.exp(-l2(a, b) / 8.0)),
    "summed": (kw.summed(kw.linear(), kw.constant(3.0), weights=[2, 1]), lambda a, b: 2 * dot(a, b) + 3.0),
}


@pytest.mark.parametrize("name", CASES)
def test_against_loops(name):
    kernel, formula = CASES[name]
    A, B = POSITIVE, POSITIVE[4:11] * 0.9
    wanted = np.array([[formula(a, b) for b in B] for a in A])
    np.testing.assert_allclose(kernel(A, B), wanted, rtol=1e-12, atol=1e-13)
    wanted = np.array([[formula(a, b) for b in A] for a in A])
    np.testing.assert_allclose(kernel(A), wanted, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", CASES)
def test_on_columns_is_the_kernel_of_those_columns(name):
    kernel, _ = CASES[name]
    A, B = POSITIVE, POSITIVE[:9] + 0.1
    for columns in (3, [1], [4, 0, 2], slice(1, 5)):
        cut = np.atleast_1d(np.arange(6)[columns])
        np.testing.assert_allclose(kernel.on(columns)(A, B), kernel(A[:, cut], B[:, cut]), rtol=1e-13)


SPARSE = [
    kw.gaussian(2.0),
    kw.matern(2.0),
    kw.rational_quadratic(2.0),
    kw.linear(),
    kw.cosine(),
    kw.sigmoid(),
    *kw.polynomial(),
]


@pytest.mark.parametrize("kernel", SPARSE, ids=str)
@pytest.mark.parametrize(
    "convert", [sparse.csr_matrix, sparse.csc_matrix, sparse.coo_matrix, sparse.csr_array]
)
def test_sparse(kernel, convert):
    X = sparse.random(30, 12, density=0.3, random_state=0).toarray()
    X[4] = X[2]
    S = convert(X)
    np.testing.assert_allclose(kernel(S), kernel(X), rtol=1e-12, atol=1e-14)
    assert np.array_equal(kernel(S), kernel(S).T)
    T = convert(X[:5])
    np.testing.assert_allclose(kernel(S, T), kernel(X, X[:5]), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(kernel.diag(S), kernel.diag(X), rtol=1e-12)
    np.testing.assert_allclose(kernel.on([7, 1])(S), kernel.on([7, 1])(X), rtol=1e-12, atol=1e-14)
    if kernel.features(X) is not None:
        Z = kernel.features(S)
        Z = Z.toarray() if sparse.issparse(Z) else Z
        np.testing.assert_allclose(Z, kernel.features(X), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("kernel", [kw.laplacian(), kw.chi2(), kw.intersection(), kw.tanimoto()], ids=str)
def test_the_others_refuse_sparse(kernel):
    assert not kernel.accepts_sparse
    with pytest.raises(ValueError, match=rf"{kernel.family}.*does not take sparse input.*toarray"):
        kernel(sparse.eye(3, format="csr"))


def test_sparse_relative_width():
    X = sparse.random(40, 12, density=0.3, random_state=0, format="csr")
    kernel = kw.gaussian(1.0, relative=True)
    assert kernel.resolve(X).exponent == pytest.approx(kernel.resolve(X.toarray()).exponent)


@pytest.mark.parametrize("d", [1, 3, 40])
def test_integers_lists_and_float32_are_taken(d):
    X = np.random.default_rng(0).integers(0, 5, size=(10, d))
    wanted = kw.gaussian(2.0)(X.astype(float))
    for samples in (X, X.tolist(), X.astype(np.float32), X.astype(object), np.asfortranarray(X)):
        K = kw.gaussian(2.0)(samples)
        np.testing.assert_allclose(K, wanted, rtol=1e-12)
        assert K.dtype == np.float64
        assert np.array_equal(K, K.T)
