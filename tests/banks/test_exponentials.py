"""Values at new rows against their definition: kernel by kernel, entry by entry."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp

from kernelweave import kernels as kw
from kernelweave.banks import BoundKernels, Normaliser, bound
from kernelweave.banks.lazy import Links

BANKS = {
    "one family": kw.gaussian([0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6]),
    "every column": kw.per_feature(kw.gaussian([0.25, 0.5, 1.0, 2.0])) + kw.gaussian([1.0, 3.0]),
    "other distances": kw.laplacian([1.0, 2.0, 5.0]) + kw.from_distance("euclidean") + kw.gaussian(2.0),
    "no exponentials": kw.polynomial([1, 2, 3]) + kw.linear().on([0, 1]) + kw.gaussian([0.5, 4.0]),
}


def bound_kernels(spec, X, normalize="trace", center=False):
    kernels = [kernel.resolve(X) for kernel in spec.expand(kw.Schema.of(X))]
    normaliser = Normaliser.empty(normalize, center, len(kernels), len(X), [k.name for k in kernels])
    for j, kernel in enumerate(kernels):
        matrix = kernel(X)
        normaliser.learn(j, np.diagonal(matrix).copy(), matrix.mean(axis=1))
    return BoundKernels(kernels, X, normaliser)


def by_definition(known, new, weights, coef):
    """One kernel after the other, and each as the kernel itself computes it."""
    total = np.zeros((new.shape[0], *coef.shape[1:]))
    for j, kernel in enumerate(known.kernels):
        entries = known.normaliser.cross_block(j, kernel(new, known.samples), kernel.diag(new), slice(None))
        total += entries @ (coef * weights[..., j])
    return total


@pytest.fixture(autouse=True)
def compiled(monkeypatch):
    """However few the values are."""
    monkeypatch.setattr(bound, "FEW_VALUES", 0)


@pytest.fixture
def data():
    random = np.random.default_rng(3)
    X, new = random.normal(size=(90, 5)), random.normal(size=(70, 5))
    new[:4] = X[:4]  # distances of zero
    return X, new, random


@pytest.mark.parametrize("name", BANKS)
@pytest.mark.parametrize(("columns", "own_weights"), [(None, False), (3, False), (3, True), (20, False)])
def test_values_are_those_of_the_definition(data, name, columns, own_weights):
    X, new, random = data
    known = bound_kernels(BANKS[name], X)
    m = len(known.kernels)
    coef = random.normal(size=(90,) if columns is None else (90, columns))
    weights = random.random((columns, m) if own_weights else m)
    weights[..., 1] = 0.0
    weights[..., 0] = 1.0 / known.normaliser.scale[0]
    expected = by_definition(known, new, weights, coef)
    scale = np.max(np.abs(expected))
    np.testing.assert_allclose(known.decision(new, weights, coef), expected, atol=1e-11 * scale)
    single = known.decision(new, weights, coef, np.float32)
    np.testing.assert_allclose(single, expected, atol=3e-5 * scale)


@pytest.mark.parametrize(("normalize", "center"), [("trace", True), ("cosine", False)])
def test_other_normalisations(data, normalize, center):
    X, new, random = data
    known = bound_kernels(BANKS["every column"], X, normalize, center)
    coef, weights = random.normal(size=90), random.random(len(known.kernels))
    np.testing.assert_allclose(
        known.decision(new, weights, coef), by_definition(known, new, weights, coef), atol=1e-10
    )


def test_many_columns_and_close_rows(data):
    """A matrix product loses close pairs to cancellation; they have to be computed again."""
    _, _, random = data
    X = random.normal(size=(60, 40)) + 1e4
    new = X[:30] + 1e-5 * random.normal(size=(30, 40))
    known = bound_kernels(kw.gaussian([1e-5, 1e-4, 5.0]), X)
    coef, weights = random.normal(size=60), np.ones(3)
    np.testing.assert_allclose(
        known.decision(new, weights, coef), by_definition(known, new, weights, coef), rtol=1e-6
    )


@pytest.mark.parametrize("columns", [3, 30])
def test_sparse_rows(data, columns):
    _, _, random = data
    X, new = random.normal(size=(50, columns)), sp.random(20, columns, 0.3, format="csr", random_state=0)
    known = bound_kernels(kw.gaussian([1.0, 2.0]), X)
    coef, weights = random.normal(size=50), np.ones(2)
    expected = by_definition(known, new.toarray(), weights, coef)
    np.testing.assert_allclose(known.decision(new, weights, coef), expected, atol=1e-12)
    known = BoundKernels(known.kernels, sp.csr_matrix(X), known.normaliser)
    np.testing.assert_allclose(known.decision(new, weights, coef), expected, atol=1e-12)
    np.testing.assert_allclose(known.decision(new.toarray(), weights, coef), expected, atol=1e-12)


@pytest.mark.parametrize("name", ["every column", "other distances", "no exponentials"])
def test_the_same_bits_on_any_number_of_threads(data, name, monkeypatch):
    X, new, random = data
    monkeypatch.setattr(bound, "BLOCKS_AT_ONCE", 1)
    monkeypatch.setattr(bound, "BLOCK_ENTRIES", 700)
    known = bound_kernels(BANKS[name], X)
    coef, weights = random.normal(size=(90, 2)), random.random(len(known.kernels))
    values = [known.decision(new, weights, coef)]
    for threads in (1, 2, 5):
        with ThreadPoolExecutor(threads) as pool:
            monkeypatch.setattr(bound, "in_threads", lambda run, parts, pool=pool: list(pool.map(run, parts)))
            values.append(known.decision(new, weights, coef))
    assert all(np.array_equal(values[0], other) for other in values[1:])
    np.testing.assert_allclose(values[0], by_definition(known, new, weights, coef), rtol=1e-10)


def test_far_away_is_zero_and_nothing_is_lost(data):
    X, _, _ = data
    known = bound_kernels(kw.gaussian([1e-3, 1e-2, 1e-1, 1.0]), X)
    far = np.array([[1e200] * 5, [40.0] * 5])
    with np.errstate(over="ignore"):
        assert np.array_equal(known.decision(far, np.ones(4), np.ones(90)), [0.0, 0.0])


def test_few_values_are_left_to_numpy(data, monkeypatch):
    X, new, random = data
    known = bound_kernels(BANKS["every column"], X)
    coef, weights = random.normal(size=90), random.random(len(known.kernels))
    values = known.decision(new, weights, coef)
    monkeypatch.setattr(bound, "FEW_VALUES", 1e9)
    monkeypatch.setattr(bound, "Exponentials", None)
    np.testing.assert_allclose(known.decision(new, weights, coef), values, rtol=1e-11)


def test_links_do_not_square_too_often():
    widths = 2.0 ** np.arange(9)
    links = Links.of(list(0.5 / widths**2), 10)
    assert np.count_nonzero(links.rates) == 2
    assert sorted(links.kernels) == list(range(9))
    assert np.count_nonzero(Links.of([1.0, 3.0, 7.0], 10).rates) == 3
