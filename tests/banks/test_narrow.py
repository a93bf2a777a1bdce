"""Kernels that are computed as they are read, by compiled code: against matrices that are stored, entry by entry."""

from __future__ import annotations

import numpy as np
import pytest

from kernelweave import kernels as kw
from kernelweave.banks import build_bank, lazy
from kernelweave.kernels import resolve_kernels

BANKS = {
    "families": kw.per_view({"a": [0, 1], "b": [2, 3, 4]}, kw.gaussian([0.5, 1.0, 2.0, 3.0, 8.0])),
    "beside others": kw.gaussian([1.0, 3.0]).on([1]) + kw.polynomial([1, 2]) + kw.laplacian([1.0, 2.0]),
    "none": kw.linear() + kw.laplacian([1.0, 2.0]),
}


@pytest.fixture(autouse=True)
def compiled(monkeypatch):
    """However few the entries are."""
    monkeypatch.setattr(lazy, "FEW_VALUES", -1)


def both(name, n, dtype, threads=1):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(n, 6))
    X[1] = X[0]  # a distance of zero off the diagonal
    kernels = resolve_kernels(list(BANKS[name].expand(kw.Schema.of(X))), X)
    stored = build_bank(kernels, X, storage="dense")
    computed = build_bank(kernels, X, storage="lazy", dtype=dtype, threads=threads)
    return stored, computed, rng


@pytest.mark.parametrize("name", BANKS)
@pytest.mark.parametrize(("dtype", "error"), [(np.float64, 1e-12), (np.float32, 3e-6)])
def test_everything_that_is_read_is_that_of_stored_matrices(name, dtype, error):
    stored, computed, rng = both(name, 90, dtype)
    a = rng.normal(size=90) * (rng.random(90) < 0.5)
    table = rng.normal(size=(90, 3))
    weights = rng.random(stored.m) * (np.arange(stored.m) != 1)
    rows, which = np.array([5, 3, 88, 40]), np.array([2, 2, 0, 1])
    for read in (
        lambda bank: bank.apply(a),
        lambda bank: bank.apply(np.zeros(90)),
        lambda bank: bank.apply(table, rows, which),
        lambda bank: bank.quad(a),
        lambda bank: bank.combine(weights),
        lambda bank: bank.mixed(weights, rows),
        lambda bank: bank.mix_block(weights, rows, np.arange(7)),
        lambda bank: bank.mix_product(weights, a),
        lambda bank: bank.judged(weights, a)[0],
        lambda bank: bank.judged(weights, table)[1],
        lambda bank: bank.judged(np.eye(bank.m)[0], a * (np.arange(90) < 5))[1],
        lambda bank: bank.diag(),
    ):
        np.testing.assert_allclose(read(computed), read(stored), rtol=0, atol=error * 90)


def test_rows_in_several_pieces_give_the_same(monkeypatch):
    monkeypatch.setattr(lazy, "PIECE", 7 * 90)
    stored, computed, rng = both("families", 90, np.float64, threads=2)
    weights = rng.random(stored.m)
    for read in (
        lambda bank: bank.combine(weights),
        lambda bank: bank.mixed(weights, np.arange(3, 80)),
        lambda bank: bank.apply(np.arange(90.0)),
    ):
        np.testing.assert_allclose(read(computed), read(stored), rtol=0, atol=1e-9)


def test_mixed_kernels_are_symmetric_and_of_the_banks_precision():
    stored, computed, _ = both("families", 70, np.float32)
    mixed = computed.mixed(np.ones(stored.m))
    assert mixed.dtype == np.float32
    np.testing.assert_array_equal(mixed, mixed.T)
    assert computed.combine(np.ones(stored.m)).dtype == np.float64


def test_no_last_digit_depends_on_threads(monkeypatch):
    monkeypatch.setattr("kernelweave.banks.lazy.PIECE", 2000)
    answers = []
    for threads in (1, 3):
        _, computed, rng = both("families", 120, np.float32, threads)
        answers.append(
            (computed.apply(rng.normal(size=120)), computed.mixed(np.arange(computed.m, dtype=float)))
        )
    for one, other in zip(*answers, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_bank_among_some_samples(dtype):
    stored, computed, rng = both("beside others", 60, dtype)
    some = np.array([3, 7, 8, 20, 59])
    few, by_hand = computed.among(some), stored.block(some, some, np.arange(stored.m))
    a, weights = rng.normal(size=(5, 2)), rng.random(stored.m)
    np.testing.assert_allclose(few.block(np.arange(5), np.arange(5), np.arange(few.m)), by_hand, atol=1e-5)
    np.testing.assert_allclose(few.apply(a), by_hand @ a, atol=1e-5)
    np.testing.assert_allclose(few.quad(a), np.einsum("ik,mij,jk->m", a, by_hand, a), atol=1e-5)
    np.testing.assert_allclose(few.mixed(weights), np.tensordot(weights, by_hand, axes=1), atol=1e-5)
    np.testing.assert_allclose(few.combine(weights), np.tensordot(weights, by_hand, axes=1), atol=1e-5)
    np.testing.assert_allclose(few.diag(), np.diagonal(by_hand, axis1=1, axis2=2), atol=1e-5)
    # passes are in units of the samples at hand, and the bank behind counts its own
    assert few.passes / computed.passes == pytest.approx((60 / 5) ** 2)
