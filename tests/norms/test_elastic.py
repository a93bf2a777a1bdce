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


@every
@given(s=nonnegative, seed=st.integers(0, 10**6))
def test_the_conjugate_is_the_maximum_over_weights(norm, s, seed):
    d = norm.weights(s)
    assert d @ s / 2 - norm.penalty(d) == pytest.approx(norm.conjugate(s), rel=1e-8, abs=1e-9)
    other = norm.scaled(np.random.default_rng(seed).gamma(0.5, size=4))
    assert other @ s / 2 - norm.penalty(other) <= norm.conjugate(s) + 1e-9 * (1 + norm.conjugate(s))


@every
@given(t=nonnegative, seed=st.integers(0, 10**6))
def test_weights_of_blocks_attain_the_charge(norm, t, seed):
    def with_weights(d):
        used = t > 0
        return np.sum(t[used] ** 2 / d[used]) / 2 + norm.penalty(d)

    assert with_weights(norm.weights_of_blocks(t)) == pytest.approx(charge(norm, t), rel=1e-8, abs=1e-9)
    other = norm.scaled(np.random.default_rng(seed).gamma(0.5, size=4) + 1e-9)
    assert with_weights(other) >= charge(norm, t) - 1e-9


@every
@given(t=nonnegative, mu=st.sampled_from([0.0, 1e-3, 0.3, 40.0]), seed=st.integers(0, 10**6))
def test_prox_inequality(norm, t, mu, seed):
    x = norm.prox(t, mu)
    here = np.sum((x - t) ** 2) / 2 + mu * norm.half_square(x)
    rng = np.random.default_rng(seed)
    for z in (*rng.uniform(0, 20, size=(5, 4)), *np.maximum(x + 1e-2 * rng.normal(size=(5, 4)), 0)):
        there = np.sum((z - t) ** 2) / 2 + mu * norm.half_square(z)
        assert there >= here + np.sum((z - x) ** 2) / 2 - 1e-8 * (1 + here)


def test_the_penalty_ends_where_the_weights_do():
    assert Elastic(0.5, 2.0).penalty(np.array([0.5, 1.0])) == np.inf
    assert Elastic(0.5, 1.5).penalty(np.zeros(3)) == 0.0
    assert Elastic(0.0, 1.5).penalty(Block(1.5).weights(np.array([3.0, 1.0]))) == 0.0


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
