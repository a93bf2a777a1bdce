"""Rows of symmetric matrices, cut into parts: what the parts find together is what the matrices say."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from kernelweave._numerics.passes import complete, mix_rows, mix_windows, reach, row_products, unfold

SIZES = [1, 2, 3, 4, 5, 63, 64, 65, 131]


def kernels(n: int, dtype: str) -> np.ndarray:
    stack = np.random.default_rng(n).standard_normal((6, n, n))
    return (stack + stack.swapaxes(1, 2)).astype(dtype)


def parts(n: int) -> list[tuple[int, int]]:
    cuts = sorted({0, n // 3, n // 2, n})
    return list(itertools.pairwise(cuts))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("n", SIZES)
def test_products_are_sums_over_rows_with_coefficients(n: int, dtype: str) -> None:
    stack, rng, which = kernels(n, dtype), np.random.default_rng(0), np.array([4, 0, 5])
    a = rng.standard_normal(n) * (rng.random(n) < 0.6)
    out = np.zeros((3, n))
    for first, last in parts(n):
        used = np.flatnonzero(a[first:last])
        row_products(np.ascontiguousarray(stack[:, first:last]), which, used, a[first:last][used], out)
    np.testing.assert_allclose(out, stack[which].astype(float) @ a, atol=1e-12 * n)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("n", SIZES)
def test_windows_of_all_parts_make_the_mixed_matrix(n: int, dtype: str) -> None:
    stack, weights = kernels(n, dtype), np.array([0.5, 0.0, 1.0, 2.0, 0.25, 3.0])
    active, out = np.flatnonzero(weights), np.full((n, n), np.nan)
    expected = np.tensordot(weights, stack.astype(float), axes=1)
    for first, last in parts(n):
        entries = np.ascontiguousarray(stack[:, first:last])
        strip = np.empty((last - first, reach(n) + 1))
        for top in range(0, last - first, 7):
            mix_windows(entries, weights, active, first, top, strip[top : top + 7])
        unfold(strip, first, out)
        whole = np.empty((last - first, n))
        mix_rows(entries, weights, active, np.arange(last - first), 0, whole)
        np.testing.assert_allclose(whole, expected[first:last], atol=1e-12)
    complete(out)
    np.testing.assert_allclose(out, expected, atol=1e-12)
    np.testing.assert_array_equal(out, out.T)
