"""Triangles that compiled code fills: Gaussians on few columns."""

from __future__ import annotations

import numpy as np
import pytest

from kernelweave import kernels as kw
from kernelweave.banks import build_bank

KERNELS = [
    *kw.gaussian([0.5, 1.0, 2.0, 3.0]).on([0]),  # two chains on one base
    *kw.gaussian([1.0, 7.0]).on([1, 2]),
    kw.polynomial(2).on([1]),
    kw.gaussian(2.0),
]


@pytest.fixture(scope="module")
def samples() -> np.ndarray:
    X = np.random.default_rng(0).normal(size=(1100, 20))  # more rows than a piece has, and columns than few
    X[5] = X[4]
    X[7, 0] = 1e150  # far away from everything
    return X


def test_entries_are_those_of_the_kernels(samples):
    bank = build_bank(KERNELS, samples, normalize=None, storage="family")
    rows = np.array([0, 4, 5, 7, 600, 1099])
    with np.errstate(over="ignore"):
        expected = np.array([kernel(samples[rows], samples) for kernel in KERNELS])
    found = bank.block(rows, np.arange(len(samples)), np.arange(len(KERNELS)))
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-200)
    gaussians = [0, 1, 2, 3, 4, 5, 7]
    assert np.all(bank.diag()[gaussians] == 1.0)
    assert np.all(found[gaussians][:, 1, 5] == 1.0)  # equal rows


def test_the_number_of_threads_does_not_show(samples):
    banks = [build_bank(KERNELS, samples, storage="family", threads=threads) for threads in (1, 3)]
    np.testing.assert_array_equal(banks[0].storage.store, banks[1].storage.store)
