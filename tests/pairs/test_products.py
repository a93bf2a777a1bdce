"""Products of kernels of two sides against Kronecker products that are formed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from banks.naive import check_bank, check_passes
from kernelweave.banks.pairs import MixedProducts
from timed import fit_with_a_point, is_left

from .making import bank_and_tensor


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"n": 17},
        {"n": 17, "twice": True},
        {"n": 17, "sparse": True},
        {"symmetry": 1, "n": 20},
        {"symmetry": -1, "n": 20, "twice": True},
        {"a": 3, "b": 11, "terms": [5, 0, 2]},
        {"a": 11, "b": 1, "q": 1},
    ],
    ids=str,
)
def test_a_bank_of_products_is_that_of_the_kronecker_products(options):
    bank, tensor = bank_and_tensor(0, **options)
    check_bank(bank, tensor)
    check_passes(bank)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10**6), a=st.integers(1, 6), b=st.integers(1, 6), p=st.integers(1, 3), q=st.integers(1, 3),
    share=st.floats(0.2, 1.0), symmetry=st.sampled_from([0, 0, 1, -1]), twice=st.booleans(), sparse=st.booleans(),
)  # fmt: skip
def test_forms_mixtures_and_products_of_any_pairs(seed, a, b, p, q, share, symmetry, twice, sparse):
    b = a if symmetry else b
    n = max(3, int(share * a * b)) if a * b >= 3 else None
    bank, tensor = bank_and_tensor(seed, a, b, p, q, n, symmetry, twice and n is not None, sparse)
    rng = np.random.default_rng(seed)
    v, w = rng.normal(size=bank.n), rng.uniform(size=bank.m)
    size = np.max(np.abs(tensor)) * np.abs(v).sum() ** 2 + 1e-300
    np.testing.assert_allclose(bank.quad(v), np.einsum("i,mij,j->m", v, tensor, v), atol=1e-12 * size)
    mixed = np.tensordot(w, tensor, axes=1)
    np.testing.assert_allclose(bank.mix_product(w, v), mixed @ v, atol=1e-12 * size)
    np.testing.assert_allclose(bank.combine(w), mixed, atol=1e-12 * size)
    np.testing.assert_allclose(bank.mixed(w) @ v, mixed @ v, atol=1e-12 * size)
    np.testing.assert_allclose(bank.mean_diagonals(), np.einsum("mii->m", tensor) / bank.n, atol=1e-12 * size)


@pytest.mark.parametrize("options", [{"n": 17}, {"symmetry": 1, "n": 20, "twice": True}], ids=str)
def test_other_fields_stay_products(options):
    bank, tensor = bank_and_tensor(1, **options)
    some, m = np.array([2, 0]), len(tensor)
    check_bank(bank.select(some), tensor[some])
    factors = np.arange(1.0, m + 1.0)
    check_bank(bank.rescaled(factors), factors[:, None, None] * tensor)
    few = np.array([9, 1, 4, 12, 3, 11, 5, 0])
    check_bank(bank.among(few), tensor[:, few][:, :, few])
    train = np.arange(0, bank.n, 2)
    H = np.eye(bank.n)
    H[:, train] -= 1.0 / train.size
    centred = bank.recentred(train).rescaled(factors)
    check_bank(centred, factors[:, None, None] * (H @ tensor @ H.T))
    np.testing.assert_allclose(
        centred.mean_diagonals(train), centred.diag()[:, train].mean(axis=1), rtol=1e-10, atol=1e-12
    )
    with pytest.raises(ValueError, match="center=False"):
        centred.among(few)
    assert centred.mixed(np.ones(m)).by_products
    before = bank.passes
    centred.quad(np.ones(bank.n))
    assert bank.passes > before  # what is read through other fields is counted


@pytest.mark.parametrize("options", [{}, {"n": 17, "sparse": True}, {"symmetry": 1, "n": 20}], ids=str)
def test_products_are_left_where_the_time_is_over(options):
    bank, _ = bank_and_tensor(0, **options)
    mixed, a = bank.mixed(np.ones(bank.m)), np.ones(bank.n)
    with fit_with_a_point() as deadline:
        assert (mixed @ a).shape == (bank.n,)
        deadline.interrupt()
        assert is_left(lambda: mixed @ a)
        assert is_left(lambda: bank.mix_product(np.ones(bank.m), a))
        assert is_left(lambda: bank.apply(a))
        assert is_left(lambda: bank.quad(a))


@pytest.mark.parametrize("options", [{}, {"symmetry": 1, "n": 25}], ids=str)
def test_the_preconditioner_is_the_inverse_where_one_product_is_mixed(options):
    """On a whole grid, all noise alike; and symmetric and positive definite everywhere else."""
    bank, tensor = bank_and_tensor(2, **({"p": 1, "q": 1} | options))
    if options:
        rows, cols = np.divmod(np.arange(36), 6)
        bank.storage.at.rows, bank.storage.at.cols = rows, cols
        bank.storage.at.__dict__.pop("flat", None)
        bank = type(bank)(bank.storage._like())
        tensor = bank.block(np.arange(36), np.arange(36), np.arange(bank.m))
    K = MixedProducts(bank.storage, np.full(bank.m, 0.7))
    solve = K.inverse(np.full(bank.n, 0.3))
    whole = np.column_stack([solve(e) for e in np.eye(bank.n)])
    inverse = np.linalg.inv(0.7 * tensor.sum(axis=0) + 0.3 * np.eye(bank.n))
    np.testing.assert_allclose(whole, inverse, atol=1e-10)


def test_the_preconditioner_of_few_pairs_is_the_inverse_where_all_of_them_are_landmarks():
    bank, tensor = bank_and_tensor(3, n=17, sparse=True)
    weights, noise = np.linspace(0.2, 1.0, bank.m), np.random.default_rng(0).uniform(0.1, 2.0, bank.n)
    solve = MixedProducts(bank.storage, weights).inverse(noise)
    whole = np.column_stack([solve(e) for e in np.eye(bank.n)])
    inverse = np.linalg.inv(np.tensordot(weights, tensor, axes=1) + np.diag(noise))
    np.testing.assert_allclose(whole, inverse, atol=1e-8)


@pytest.mark.parametrize(
    "options", [{"n": 17}, {"n": 17, "sparse": True}, {"symmetry": -1, "n": 20}], ids=str
)
def test_the_preconditioner_is_positive_definite_whatever_the_pairs_and_the_noise(options):
    bank, _ = bank_and_tensor(3, **options)
    noise = np.random.default_rng(0).uniform(0.1, 2.0, bank.n)
    noise[[2, 5]] = np.inf
    solve = MixedProducts(bank.storage, np.linspace(0.0, 1.0, bank.m)).inverse(noise)
    used = np.isfinite(noise)
    whole = np.column_stack([solve(e) for e in np.eye(bank.n)])
    assert not np.any(whole[~used])
    assert not np.any(whole[:, ~used])
    np.testing.assert_allclose(whole, whole.T, atol=1e-12)
    assert np.linalg.eigvalsh(whole[np.ix_(used, used)])[0] > 0


@pytest.mark.parametrize("sparse", [False, True])
def test_the_model_of_the_hessian_is_the_hessian_where_it_can_be(sparse):
    """Of one product on a whole grid, in the eigenbasis; of few pairs by enough steps."""
    bank, tensor = bank_and_tensor(4, p=2, q=2, n=None if not sparse else 21, sparse=sparse)
    weights = np.array([0.9, 0.0, 0.0, 0.0]) if not sparse else np.full(4, 0.25)
    rng = np.random.default_rng(0)
    beta, noise = rng.normal(size=bank.n), np.full(bank.n, 0.5)
    beta -= beta.mean()
    M = np.linalg.inv(np.tensordot(weights, tensor, axes=1) + 0.5 * np.eye(bank.n))
    M -= np.outer(M.sum(axis=0), M.sum(axis=0)) / M.sum()
    V = np.array([K @ beta for K in tensor])
    H = MixedProducts(bank.storage, weights).hessian(beta, noise, True)
    np.testing.assert_allclose(H, V @ M @ V.T, rtol=1e-6 if not sparse else 0.05, atol=0.02 * sparse)


def test_lengths_bound_rounding_without_being_formed():
    for options in ({"n": 17}, {"symmetry": 1, "n": 20}, {"symmetry": -1, "n": 20}):
        bank, tensor = bank_and_tensor(5, **options)
        lengths, roots = bank.rounding_lengths(), np.sqrt(np.maximum(np.einsum("mii->mi", tensor), 0.0))
        v, w = np.random.default_rng(0).uniform(size=bank.n), np.random.default_rng(1).uniform(size=bank.m)
        squares, values = lengths**2 @ v, lengths.T @ w
        if options.get("symmetry"):
            assert np.all(squares >= roots**2 @ v * (1 - 1e-12))
            assert np.all(values >= roots.T @ w * (1 - 1e-12))
        else:
            np.testing.assert_allclose(squares, roots**2 @ v)
            np.testing.assert_allclose(values, roots.T @ w)
        np.testing.assert_allclose(
            lengths**2 @ np.stack([v, v], axis=1), np.stack([squares, squares], axis=1)
        )
