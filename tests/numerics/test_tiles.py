"""Factors in tiles against those of LAPACK, and the same bits from any number of threads."""

from __future__ import annotations

import numpy as np
import pytest

from kernelweave._numerics import resources as threads
from kernelweave._numerics import tiles


@pytest.fixture
def small_tiles(monkeypatch):
    monkeypatch.setattr(tiles, "TILE", 16)


def positive(n, seed=0):
    root = np.random.default_rng(seed).normal(size=(n, n))
    return root @ root.T + 0.1 * np.eye(n)


@pytest.mark.parametrize("n", [1, 31, 32, 33, 63, 64, 65, 80, 100])
def test_factor_and_solution(small_tiles, n):
    matrix = positive(n)
    factor = tiles.factorise(matrix.copy())
    np.testing.assert_allclose(factor.lower, np.linalg.cholesky(matrix), rtol=1e-8, atol=1e-10)
    for right in (np.arange(n, dtype=float), np.random.default_rng(1).normal(size=(n, 3))):
        kept = right.copy()
        np.testing.assert_allclose(factor.lower @ factor.solve(right), right, atol=1e-9 * n)
        np.testing.assert_allclose(
            factor.lower.T @ factor.solve(right, transposed=True), right, atol=1e-9 * n
        )
        np.testing.assert_array_equal(right, kept)


def test_no_factor(small_tiles):
    matrix = positive(70)
    matrix[60, 60] = -1.0
    with pytest.raises(np.linalg.LinAlgError):
        tiles.factorise(matrix)


def test_principal_part(small_tiles):
    matrix = positive(90)
    for at in (np.arange(3, 10), np.arange(0, 90, 2), np.arange(20, 90)):
        np.testing.assert_array_equal(tiles.principal_part(matrix, at), matrix[np.ix_(at, at)])


def test_the_same_bits_on_any_number_of_threads(small_tiles):
    matrix, found = positive(120), []
    for n_jobs in (1, 2, 5):
        with threads.allowed_threads(n_jobs):
            factor = tiles.factorise(matrix.copy())
            found.append((factor.lower, factor.solve(np.ones(120))))
    for lower, solved in found[1:]:
        np.testing.assert_array_equal(lower, found[0][0])
        np.testing.assert_array_equal(solved, found[0][1])


def test_parts_in_order_and_errors_of_any_of_them():
    with threads.allowed_threads(3):
        assert threads.in_threads(lambda k: k * k, range(20)) == [k * k for k in range(20)]
        # inside of a part nothing is divided again
        assert (
            threads.in_threads(
                lambda k: threads.in_threads(lambda j: max(1, threads._allowed.get()), [1, 2]), [1, 2, 3]
            )
            == [[1, 1]] * 3
        )
        with pytest.raises(ZeroDivisionError):
            threads.in_threads(lambda k: 1 // (k - 7), range(20))
    assert max(1, threads._allowed.get()) == 1


def test_what_n_jobs_means():
    from joblib import Parallel, cpu_count, delayed, parallel_config

    assert threads.thread_count(None) == threads.thread_count(1) == 1
    assert threads.thread_count(-1) == cpu_count()
    with parallel_config(n_jobs=3):
        assert threads.thread_count(None) == 3
    # who is one of several threads does not start more of them
    inside = Parallel(n_jobs=2, backend="threading")(delayed(threads.thread_count)(n) for n in (None, -1, 4))
    assert inside == [1, 1, 1]
    inside = Parallel(n_jobs=2)(delayed(threads.thread_count)(n) for n in (None, -1))
    assert inside[0] == 1
    assert inside[1] <= max(1, cpu_count() // 2)
