"""The compiled sweeps against loops that anyone can read."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from kernelweave._numerics.passes import LANES, chain_block, mirror, mix_lower, pack_rows, sweep, workspace

SQUARINGS = np.array([0, 1, 3, 0, 0, 2])
TIMES_BASE = np.array([0, 0, 0, 1, 0, 0])
FIRST = np.array([0, 4, 6])  # view 0 has kernels 0..3, view 1 kernels 4 and 5
POWERS = [1, 2, 16, 17, 1, 4]
RATE = np.array([0.0, 0.7])


def storage(n: int, packed: bool, dtype):
    """Two symmetric matrices; the second is stored as distances and decays.  Returns the kernels, (6, n, n)."""
    rng = np.random.default_rng(n)
    base = rng.uniform(0.5, 1.0, size=(2, n, n))
    base = (base + base.transpose(0, 2, 1)) / 2
    if packed:
        offsets = np.array([i * (i + 1) // 2 for i in range(n)])
        store = np.array([[B[i, j] for i in range(n) for j in range(i + 1)] for B in base], dtype=dtype)
    else:
        offsets = np.arange(n) * n
        store = base.astype(dtype).copy()
        for B in store:
            B[np.triu_indices(n, 1)] = np.nan  # the upper half must never be read
        store = store.reshape(2, n * n)
    base = base.astype(dtype).astype(float)
    base[1] = np.exp(-0.7 * base[1])
    kernels = np.array([base[0] ** p for p in POWERS[:4]] + [base[1] ** p for p in POWERS[4:]])
    return store, offsets, kernels


def with_zeros(a):
    """A vector with zeros at its end, as sweeps want it."""
    return np.append(a, np.zeros(-a.size % LANES))


def arguments(store, offsets):
    return store, offsets, RATE, FIRST, SQUARINGS, TIMES_BASE, np.array([True, False])


def in_use(weights, first):
    """One after the last kernel with weight in every chain."""
    kernels = [np.flatnonzero(weights[begin:end]) + begin for begin, end in pairwise(first)]
    return np.array([some[-1] + 1 if some.size else 0 for some in kernels])


sizes = pytest.mark.parametrize("n", [1, 7, 40])
kinds = pytest.mark.parametrize(("packed", "dtype"), [(True, float), (False, float), (True, np.float32)])


@sizes
@kinds
@pytest.mark.parametrize("views", [[0, 1], [1], [0]])
def test_quadratic_forms_and_products(n, packed, dtype, views):
    store, offsets, kernels = storage(n, packed, dtype)
    rng = np.random.default_rng(1)
    for index in (np.arange(n), np.sort(rng.permutation(n)[: (n + 1) // 2])):
        a = rng.normal(size=index.size)
        gathered = index.size < n
        sub = kernels[np.ix_(range(6), index, index)]
        out, vectors = np.zeros((6, 1)), np.zeros((6, with_zeros(a).size))
        cut = index.size // 3
        for rows in ((0, cut), (cut, index.size)):
            where = index, gathered, with_zeros(a), np.array(views), np.array(rows)
            sweep(*arguments(store, offsets), *where, False, workspace(), out)
            sweep(*arguments(store, offsets), *where, True, workspace(), vectors)
        assert np.all(np.abs(vectors[:, index.size :]) < 1e-200)
        vectors = vectors[:, : index.size]
        touched = [k for v in views for k in range(FIRST[v], FIRST[v + 1])]
        for k in range(6):
            if k in touched:
                np.testing.assert_allclose(vectors[k], sub[k] @ a, rtol=1e-11, atol=1e-12)
                assert out[k, 0] == pytest.approx(a @ sub[k] @ a, rel=1e-11, abs=1e-12)
            else:
                assert out[k, 0] == 0.0
                assert not np.any(vectors[k])


def test_rows_longer_than_a_piece():
    """A row is worked on in pieces of 1024: sizes around that, whole and gathered."""
    for n in (1024, 1025, 2049):
        rng = np.random.default_rng(n)
        u = rng.uniform(0.5, 1.0, size=n)
        matrix = np.outer(u, u)  # rank one: the answers are known without a big product
        store = matrix.reshape(1, n * n)
        head = (
            store,
            np.arange(n) * n,
            np.zeros(1),
            np.array([0, 2]),
            np.array([0, 1]),
            np.array([0, 0]),
            np.array([False]),
        )
        for index in (np.arange(n), np.arange(0, n, 2)):
            a = rng.normal(size=index.size)
            out, vectors = np.zeros((2, 1)), np.zeros((2, with_zeros(a).size))
            where = index, index.size < n, with_zeros(a), np.array([0]), np.array([0, index.size])
            sweep(*head, *where, False, workspace(), out)
            sweep(*head, *where, True, workspace(), vectors)
            v = u[index]
            np.testing.assert_allclose(out[:, 0], [(v @ a) ** 2, (v**2 @ a) ** 2], rtol=1e-9)
            products = vectors[:, : index.size]
            np.testing.assert_allclose(products, [v * (v @ a), v**2 * (v**2 @ a)], rtol=1e-9)
        mixed = np.zeros((n, n))
        mix_lower(
            *head, np.array([2]), np.array([2.0, 3.0]), np.array([0]), np.array([0, n]), workspace(), mixed
        )
        np.testing.assert_allclose(np.tril(mixed), np.tril(2 * matrix + 3 * matrix**2), rtol=1e-12)


@sizes
@kinds
def test_mix_lower_and_mirror(n, packed, dtype):
    store, offsets, kernels = storage(n, packed, dtype)
    rng = np.random.default_rng(2)
    for weights in (rng.uniform(size=6), np.array([0, 2.0, 0, 0, 0, 0]), np.array([0, 0, 0, 0, 0, 1.5])):
        out = np.full((n, n), 10.0)
        half = n // 2
        for rows in ((0, half), (half, n)):
            which = in_use(weights, FIRST), weights, np.array([0, 1]), np.array(rows)
            mix_lower(*arguments(store, offsets), *which, workspace(), out)
        expected = np.tensordot(weights, kernels, axes=1)
        np.testing.assert_allclose(out[np.tril_indices(n)], expected[np.tril_indices(n)], rtol=1e-11)
        np.testing.assert_array_equal(out[np.triu_indices(n, 1)], 10.0)  # the lower triangle alone is written
        for rows in ((0, half), (half, n)):
            mirror(out, np.array(rows))
        np.testing.assert_array_equal(out, out.T)
        np.testing.assert_allclose(out, expected, rtol=1e-11)


@pytest.mark.parametrize("n", [1, 63, 64, 65, 130])
def test_mirror_of_any_size(n):
    matrix = np.random.default_rng(3).normal(size=(n, n))
    expected = np.tril(matrix) + np.tril(matrix, -1).T
    mirror(matrix, np.array([0, n]))
    np.testing.assert_array_equal(matrix, expected)


def test_chain_block():
    base = np.random.default_rng(4).uniform(0.2, 1.2, size=33)
    kept = base.copy()
    out = np.empty((4, 33))
    chain_block(base, SQUARINGS[:4], TIMES_BASE[:4], out)
    np.testing.assert_allclose(out, [kept**p for p in POWERS[:4]], rtol=1e-13)
    np.testing.assert_array_equal(base, kept)


@pytest.mark.parametrize("dtype", [float, np.float32])
def test_pack_rows_in_parts(dtype):
    n = 9
    matrix = np.random.default_rng(5).normal(size=(n, n))
    offsets = np.array([i * (i + 1) // 2 for i in range(n)])
    store = np.zeros(n * (n + 1) // 2, dtype=dtype)
    pack_rows(matrix[:4, :4], 0, offsets, store)
    pack_rows(matrix[4:], 4, offsets, store)
    expected = [matrix[i, j] for i in range(n) for j in range(i + 1)]
    np.testing.assert_array_equal(store, np.array(expected, dtype=dtype))
