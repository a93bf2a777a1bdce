"""Distances under stress: offsets, duplicates, scales; and the median that widths are counted in."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.spatial.distance import cdist, pdist

from kernelweave import kernels as kw
from kernelweave.kernels import _numeric as _distances


def exact(A, B):
    return ((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    d=st.integers(1, 12),
    offset=st.sampled_from([0.0, 1e3, -1e6]),
    spread=st.sampled_from([1e-4, 1.0, 1e4]),
)
def test_squared_distances(seed, d, offset, spread):
    rng = np.random.default_rng(seed)
    A = offset + spread * rng.normal(size=(12, d))
    A[3] = A[7]
    B = np.vstack([A[5], offset + spread * rng.normal(size=(4, d))])
    D = _distances.sqeuclidean(A, A)
    assert np.array_equal(D, D.T)
    assert (D.diagonal() == 0).all()
    assert D[3, 7] == 0
    assert (D >= 0).all()
    # the digits of the data themselves are the limit, not those of the method
    np.testing.assert_allclose(D, exact(A, A), rtol=1e-8)
    D = _distances.sqeuclidean(A, B)
    assert D[5, 0] == 0
    np.testing.assert_allclose(D, exact(A, B), rtol=1e-8)


def test_nearly_equal_rows_keep_their_digits():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(50, 30))
    B = A + 1e-7 * rng.normal(size=A.shape)
    np.testing.assert_allclose(_distances.sqeuclidean(A, B).diagonal(), ((A - B) ** 2).sum(axis=1), rtol=1e-6)
    S, T = sparse.csr_matrix(A), sparse.csr_matrix(B)
    np.testing.assert_allclose(_distances.sqeuclidean(S, T), exact(A, B), rtol=1e-6)


def test_blocks_of_rows_agree(monkeypatch):
    A = np.random.default_rng(0).normal(size=(40, 9))
    A[11] = A[2]
    wanted = _distances.sqeuclidean(A, A)
    monkeypatch.setattr(_distances, "ENTRIES_AT_ONCE", 64)
    assert np.array_equal(_distances.sqeuclidean(A, A), wanted)


def test_overflow_is_told():
    with pytest.raises(ValueError, match="overflow"):
        kw.gaussian(1.0)(np.diag(np.full(6, 1e200)))


@pytest.mark.parametrize(("family", "metric"), [(kw.gaussian, "euclidean"), (kw.laplacian, "cityblock")])
@pytest.mark.parametrize("columns", [None, [2], [0, 3]])
def test_relative_width_counts_medians(family, metric, columns):
    X = np.random.default_rng(0).normal(size=(31, 4)) * [1, 10, 100, 1000]
    cut = X if columns is None else X[:, columns]
    median = np.median(pdist(cut, metric))
    relative = family(0.5, relative=True)
    relative = relative if columns is None else relative.on(columns)
    absolute = family(0.5 * median)
    np.testing.assert_allclose(relative.resolve(X)(X), absolute(cut), rtol=1e-10)


def test_relative_width_falls_back_where_most_samples_coincide():
    X = np.zeros((20, 1))
    assert kw.gaussian(1.0, relative=True).resolve(X).settled_width == 1.0
    X[:2, 0] = [3.0, 5.0]
    distances = pdist(X)
    assert np.median(distances) == 0
    width = kw.gaussian(1.0, relative=True).resolve(X).settled_width
    assert width == pytest.approx(distances[distances > 0].mean())


def test_relative_width_uses_at_most_a_thousand_rows():
    rng = np.random.default_rng(0)
    X = np.sort(rng.normal(size=(5000, 1)), axis=0)
    rows = np.linspace(0, 4999, 1000).astype(int)
    width = kw.gaussian(1.0, relative=True).resolve(X).settled_width
    assert width == pytest.approx(np.median(pdist(X[rows])))
    assert width == pytest.approx(np.median(pdist(X[::5])), rel=0.01)


def test_relative_width_must_be_settled():
    with pytest.raises(ValueError, match=r"0.5 x median.*resolve"):
        kw.gaussian(0.5, relative=True)(np.eye(3))


def test_settled_once_and_then_kept():
    X = np.random.default_rng(0).normal(size=(20, 3))
    kernel = kw.gaussian(0.5, relative=True).resolve(X)
    assert kernel.resolve(100 * X) is kernel


def test_medians_are_shared(monkeypatch):
    from kernelweave.kernels import stationary

    calls = []
    typical = stationary.typical
    monkeypatch.setattr(stationary, "typical", lambda D: calls.append(1) or typical(D))
    X = np.random.default_rng(0).normal(size=(20, 3)) * [1, 10, 100]
    bank = kw.gaussian([0.5, 1, 2], relative=True)
    kernels = kw.expand_kernels(bank + kw.per_feature(bank), kw.Schema(3))
    together = kw.resolve_kernels(kernels, X)
    assert len(calls) == 4  # all features, and each of the three
    for kernel, settled in zip(kernels, together, strict=True):
        assert settled.exponent == kernel.resolve(X).exponent


def test_cityblock_against_scipy():
    A = np.random.default_rng(0).normal(size=(9, 5))
    np.testing.assert_allclose(kw.laplacian(1.0).base(A, A[:4]), cdist(A, A[:4], "cityblock"))
    np.testing.assert_allclose(
        kw.laplacian(1.0).on(2).base(A, A[:4]), cdist(A[:, [2]], A[:4, [2]], "cityblock")
    )


def test_families_do_not_share_their_medians():
    X = np.random.default_rng(0).normal(size=(20, 3))
    kernels = list(kw.gaussian([1.0], relative=True) + kw.laplacian([1.0], relative=True))
    gaussian, laplacian = kw.resolve_kernels(kernels, X)
    assert gaussian.settled_width == pytest.approx(np.median(pdist(X)))
    assert laplacian.settled_width == pytest.approx(np.median(pdist(X, "cityblock")))


def test_an_offset_does_not_send_every_pair_to_the_slow_way(monkeypatch):
    pairs = []
    again = _distances._again

    def counted(block, rows, columns, A, B):
        pairs.append(len(rows))
        again(block, rows, columns, A, B)

    monkeypatch.setattr(_distances, "_again", counted)
    X = 1e5 + np.random.default_rng(0).normal(size=(50, 9))
    _distances.sqeuclidean(X, X)
    assert sum(pairs) == 50  # the diagonal


@pytest.mark.parametrize("columns", [None, [0, 2], 1])
def test_the_symmetric_case_reaches_the_family(columns):
    seen = []

    class Recorded(kw.NumericKernel):
        def _base(self, A, B):
            seen.append(A is B)
            return A @ B.T

    kernel = Recorded() if columns is None else Recorded().on(columns)
    X = np.random.default_rng(0).normal(size=(5, 3))
    for samples in (X, X.astype(np.float32), np.asfortranarray(X), X.tolist() if columns is None else X):
        kernel(samples)
    assert seen == [True] * 4
    kernel(X, X.copy())
    assert seen[-1] is False
