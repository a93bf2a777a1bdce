"""Kernels that come as matrices: used in place, checked, and refused with reasons."""

from __future__ import annotations

import numpy as np
import pytest

from kernelweave.banks import (
    KernelFunction,
    MatrixRows,
    as_stack,
    build_bank,
    check_training_stack,
)
from kernelweave.exceptions import MemoryBudgetError

from .naive import check_bank, check_passes, data, normalised, tensors


@pytest.fixture
def stack() -> np.ndarray:
    X, new = data(18)
    K = 3.0 * tensors("mixed", X, new, None, False)[0][:4]
    K.flags.writeable = False
    return K


@pytest.fixture
def cross() -> np.ndarray:
    X, new = data(18)
    return 3.0 * tensors("mixed", X, new, None, False)[1][:4]


def naive(stack, mode, center):
    return np.array([normalised(K, K, np.diagonal(K), mode, center)[0] for K in stack])


@pytest.mark.parametrize("mode", ["trace", None])
@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("form", ["array", "list", "fortran", "float32", "integers"])
def test_every_form_agrees_with_the_tensor(stack, mode, center, form):
    given = {
        "array": stack,
        "list": list(stack),
        "fortran": np.asfortranarray(stack),
        "float32": stack.astype(np.float32),
        "integers": np.round(10 * stack).astype(int),
    }[form]
    bank = build_bank(None, as_stack(given), normalize=mode, center=center)
    tensor = naive(np.asarray(given, dtype=float), mode, center)
    check_bank(bank, tensor, 2e-6 if form == "float32" else 1e-11)
    check_passes(bank)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_contiguous_array_is_used_where_it_lies(stack, dtype):
    given = stack.astype(dtype)
    given.flags.writeable = False
    bank = build_bank(None, as_stack(given))
    assert np.shares_memory(bank.storage.store, given)
    a = np.linspace(-1, 1, 18)
    kept = given.copy()
    bank.apply(a), bank.quad(a), bank.combine(np.ones(4)), bank.diag(), bank.rows(np.arange(3))
    np.testing.assert_array_equal(given, kept)


def test_what_cannot_stay_in_place_is_copied_and_left_alone(stack):
    writable = stack.copy()
    for given, center in ((writable, True), (list(writable), False), (np.asfortranarray(writable), False)):
        bank = build_bank(None, as_stack(given), center=center)
        assert not np.shares_memory(bank.storage.store, writable)
        np.testing.assert_array_equal(writable, stack)


def test_only_the_lower_triangle_is_read(stack):
    spoiled = stack.copy()
    for K in spoiled:
        K[np.triu_indices(18, 1)] = np.nan
    bank = build_bank(None, spoiled)
    check_bank(bank, naive(stack, "trace", False))


@pytest.mark.parametrize("mode", ["trace", None])
@pytest.mark.parametrize("center", [False, True])
def test_new_rows(stack, cross, mode, center):
    bank = build_bank(None, as_stack(stack), normalize=mode, center=center)
    want = np.array(
        [normalised(K, new, np.ones(6), mode, center)[1] for K, new in zip(stack, cross, strict=True)]
    )
    rng = np.random.default_rng(0)
    coef = np.where(rng.uniform(size=18) < 0.5, rng.normal(size=18), 0.0)
    columns = np.stack([coef, rng.normal(size=18)], axis=1)
    shared, own = np.array([0.3, 0.0, 1.0, 0.2]), rng.uniform(size=(2, 4))
    one = KernelFunction.mixture(bank, shared, coef, 0.0)
    two = KernelFunction.mixture(bank, own, columns, 0.0)
    for new in (MatrixRows(cross), MatrixRows(list(cross))):
        np.testing.assert_allclose(one(new), np.einsum("j,jai,i->a", shared, want, coef), atol=1e-9)
        np.testing.assert_allclose(two(new), np.einsum("kj,jai,ik->ak", own, want, columns), atol=1e-9)
        np.testing.assert_allclose(two(new[np.array([3, 1])]), two(new)[[3, 1]], atol=1e-12)


# ---- refusals ------------------------------------------------------------------------------------------------------


def test_one_matrix_is_a_stack_of_one(stack):
    assert as_stack(stack[0]).shape == (1, 18, 18)
    assert np.shares_memory(as_stack(stack[0]), stack)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (np.zeros(5), r"shape \(m, n, n\).*got \(5,\)"),
        (np.zeros((2, 2, 3, 3)), r"got \(2, 2, 3, 3\)"),
        ([np.eye(3), np.eye(4)], r"one shape, got shapes \[\(3, 3\), \(4, 4\)\]"),
        ([np.zeros(3)], r"one shape, got shapes \[\(3,\)\]"),
        ([], "none at all"),
        (np.zeros((0, 3, 3)), "the bank is empty"),
        (np.array([[["a"]]]), "kernel 0 is not numeric"),
        ([np.eye(2), np.eye(2) * 1j], "kernel 1 is not numeric"),
        ([np.eye(2), np.full((2, 2), np.nan)], "kernel 1 contains NaN or infinite"),
        (np.full((1, 2, 2), np.inf), "kernel 0 contains NaN or infinite"),
    ],
)
def test_what_is_no_stack_is_refused(given, words):
    with pytest.raises(ValueError, match=words):
        as_stack(given)


def test_not_square_says_what_to_do_in_cross_validation():
    with pytest.raises(ValueError, match=r"square, got 4 x 6.*held\(stack\)"):
        check_training_stack(np.zeros((2, 4, 6)), None)


def test_wrong_number_of_samples(stack):
    with pytest.raises(ValueError, match=r"18 x 18, but y has 20 entries.*held"):
        check_training_stack(stack, 20)
    check_training_stack(stack, 18)


def test_not_symmetric_says_by_how_much(stack):
    bad = stack.copy()
    bad[2, 3, 4] += 0.25 * np.abs(bad[2]).max()
    with pytest.raises(
        ValueError, match=r"kernel 2 is not symmetric \(largest difference 0.2.*\(S \+ S.T\) / 2"
    ):
        check_training_stack(bad, 18)
    rounding = stack * (1 + 1e-9 * np.random.default_rng(0).normal(size=stack.shape))
    check_training_stack(rounding, 18)


def test_not_semidefinite_says_how_indefinite():
    Q = np.linalg.qr(np.random.default_rng(1).normal(size=(10, 10)))[0]
    values = np.array([2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.5, 0.5, -0.5, -1.5])
    K = (Q * values) @ Q.T
    with pytest.raises(ValueError, match="not positive semi-definite") as caught:
        check_training_stack(np.array([np.eye(10), (K + K.T) / 2]), 10, names=["first", "second"])
    message = str(caught.value)
    assert message.startswith("second is not positive semi-definite")
    assert "2 of 10" in message
    assert "-1.5" in message
    assert "largest 2" in message
    assert " 20 %" in message  # 2 of 10
    assert "clip" in message
    check_training_stack(np.array([K]), 10, check_psd=False)


def test_rounding_below_zero_is_no_reason_to_refuse():
    Z = np.random.default_rng(2).normal(size=(30, 2))
    K = Z @ Z.T - 1e-10 * np.eye(30)
    assert np.linalg.eigvalsh(K)[0] < 0
    check_training_stack(np.array([K]), 30)
    with pytest.raises(ValueError, match="28 of 30"):
        check_training_stack(np.array([K - 1e-3 * np.eye(30)]), 30)


def test_cosine_needs_what_rows_do_not_hold(stack):
    with pytest.raises(ValueError, match=r"k\(x, x\) of new samples.*held"):
        build_bank(None, stack, normalize="cosine")


def test_zero_trace_is_named(stack):
    bad = stack.copy()
    bad[1] = 0.0
    with pytest.raises(ValueError, match=r"precomputed kernel 1' has trace zero"):
        build_bank(None, bad)


def test_budget_counts_copies_alone(stack):
    n, m = 18, 4
    working = 16 * n * n
    build_bank(None, stack, memory_budget=working)  # in place
    copies = m * 8 * n * (n + 1) // 2
    with pytest.raises(MemoryBudgetError, match=rf"{working + copies:,} bytes.*C-contiguous"):
        build_bank(None, list(stack), memory_budget=working + copies - 1)
    build_bank(None, list(stack), memory_budget=working + copies)
