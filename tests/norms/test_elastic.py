"""The elastic norm by its definitions: a (2, r) norm with an l1 term is its own conjugate's conjugate."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize

from kernelweave.norms import Block, Elastic

nonnegative = arrays(float, 4, elements=st.one_of(st.just(0.0), st.floats(1e-3, 20.0)))
NORMS = [Elastic(0.0, 1.5), Elastic(0.7, 1.2), Elastic(2.0, 2.0), Elastic(1.0)]
every = pytest.mark.parametrize("norm", NORMS, ids=repr)


def charge(norm, t):
    """The definition, by hand."""
    r = norm.r if norm.r is not None else (q := max(2.0, 2 * np.log(t.size))) / (q - 1)
    return 0.5 * np.sum(t**r) ** (2 / r) + norm.alpha * np.sum(t)


@every
@given(t=nonnegative, s=nonnegative)
def test_fenchel_young(norm, t, s):
    assert norm.half_square(t) == pytest.approx(charge(norm, t), rel=1e-9, abs=1e-12)
    assert norm.half_square(t) + norm.conjugate(s) >= t @ np.sqrt(s) - 1e-9 * (1 + t @ np.sqrt(s))


@every
@given(s=nonnegative)
def test_weights_attain_the_conjugate(norm, s):
    blocks = norm.weights(s) * np.sqrt(s)
    attained = blocks @ np.sqrt(s) - norm.half_square(blocks)
    assert attained == pytest.approx(norm.conjugate(s), rel=1e-7, abs=1e-9)


@every
def test_conjugate_is_the_supremum_over_blocks(norm):
    rng = np.random.default_rng(0)
    for root in np.sqrt(rng.gamma(1.0, 4.0, size=(5, 4))):
        found = minimize(
            lambda t, root=root: charge(norm, np.maximum(t, 1e-300)) - t @ root,
            np.ones(4),
            bounds=[(0, None)] * 4,
            options={"ftol": 1e-14, "gtol": 1e-10},
        )
        assert norm.conjugate(root**2) == pytest.approx(-found.fun, rel=1e-5, abs=1e-6)


def test_without_the_l1_term_it_is_the_block_norm():
    s = np.array([3.0, 0.5, 1.0])
    np.testing.assert_allclose(Elastic(0.0, 1.4).weights(s), Block(1.4).weights(s), rtol=1e-10)
    assert Elastic(0.0, 1.4).conjugate(s) == pytest.approx(Block(1.4).conjugate(s))


def test_a_large_alpha_leaves_nothing():
    assert not np.any(Elastic(5.0, 1.5).weights(np.array([1.0, 4.0])))


@pytest.mark.parametrize(("norm", "words"), [(Elastic(-1.0), "alpha"), (Elastic(1.0, r=1.0), "r of Elastic")])
def test_parameters_out_of_range(norm, words):
    with pytest.raises(ValueError, match=words):
        norm.check(3)
