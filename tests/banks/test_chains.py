"""Chains of powers: every kernel is reached, and as the right power."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelweave.banks import find_chains, packed_offsets

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
