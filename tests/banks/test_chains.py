"""Chains of powers: every kernel is reached, and as the right power."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelweave.banks import Gram, Powers, find_chains, packed_offsets
from kernelweave.banks.power import Chain

doublings = st.lists(
    st.tuples(st.sampled_from([0.3, 0.5, 1.0, 7.0]), st.integers(-6, 6)), min_size=1, max_size=12
)
degrees = st.lists(st.integers(1, 12).map(float), min_size=1, max_size=10)
anything = st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=8)


@given(exponents=st.one_of(doublings.map(lambda pairs: [b * 2.0**k for b, k in pairs]), degrees, anything))
def test_following_a_chain_gives_every_power(exponents):
    chains = find_chains(exponents)
    reached = sorted(j for chain in chains for j in chain.kernels)
    assert reached == list(range(len(exponents)))  # each kernel once, in one chain
    for chain in chains:
        base = exponents[chain.kernels[0]]
        assert (chain.squarings[0], chain.times_base[0]) == (0, 0)
        power = base
        for j, squarings, times in zip(chain.kernels, chain.squarings, chain.times_base, strict=True):
            power = power * 2**squarings + times * base
            assert power == pytest.approx(exponents[j], rel=1e-11)


@given(widths=st.lists(st.integers(-8, 8), min_size=1, max_size=10, unique=True), scale=st.floats(0.1, 10.0))
def test_doubling_widths_are_one_chain(widths, scale):
    exponents = [0.5 / (scale * 2.0**k) ** 2 for k in widths]
    (chain,) = find_chains(exponents)
    assert all(times == 0 for times in chain.times_base)
    assert sum(chain.squarings) == 2 * (max(widths) - min(widths))


@pytest.mark.parametrize("top", [2, 3, 4, 5, 8])
def test_consecutive_degrees_are_one_chain(top):
    chains = find_chains([float(d) for d in range(1, top + 1)])
    assert len(chains) == 1


def test_equal_exponents_share_a_link_and_far_ones_do_not():
    assert len(find_chains([1.0, 1.0, 1.0])) == 1
    assert len(find_chains([1.0, 2.0**41])) == 2  # more squarings than allowed: rounding would show
    assert len(find_chains([1.0, 2.0**39])) == 1
    assert len(find_chains([1.0, 1.0 + 1e-9])) == 2
    assert len(find_chains([0.5, 1.5])) == 2  # not a doubling, and the base is no whole number


def test_packed_offsets():
    np.testing.assert_array_equal(packed_offsets(5), [0, 1, 3, 6, 10])
    # entry (i, j) at offset i + j, row after row without holes
    offsets = packed_offsets(50)
    assert [offsets[i] + j for i in range(50) for j in range(i + 1)] == list(range(50 * 51 // 2))


@pytest.mark.parametrize("size", [1.0, 1e-3], ids=["diagonal of one", "small diagonal"])
def test_four_powers_in_a_row_keep_the_digits_of_a_kernel_of_any_size(size):
    """Of numbers up to one, three powers are taken at a time; entries near zero and below it are powers, too."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(37, 3))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    base = size * (points @ points.T)
    base[np.diag_indices(37)] = size
    base[5, 20] = base[20, 5] = -1e-6 * size
    base[7, 30] = base[30, 7] = 1e-80 * size
    n = base.shape[0]
    offsets = packed_offsets(n)
    store = base[np.tril_indices(n)][None].copy()
    bank = Gram(Powers(store, offsets, [Chain((0, 1, 2, 3), (0, 2, 2, 2), (0, 0, 0, 0))]))
    powers = np.stack([base, base**4, base**16, base**64])
    a = rng.normal(size=n)
    a[3] = 0.0
    for j, diagonal in enumerate(bank.diag()[:, 0]):
        alone = np.eye(4)[j]
        np.testing.assert_allclose(bank.combine(alone), powers[j], rtol=1e-12, atol=1e-17 * diagonal)
    largest = np.sum(np.abs(powers), axis=(1, 2)) * np.max(np.abs(a)) ** 2
    assert np.all(np.abs(bank.quad(a) - np.einsum("i,kij,j->k", a, powers, a)) <= 1e-14 * largest)
    assert np.all(np.abs(bank.apply(a) - powers @ a) <= 1e-14 * largest[:, None])
