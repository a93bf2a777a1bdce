"""Every norm by its definitions: duality, the weights that attain it, gradients, prox, projection.

A norm is charged on block norms t (``half_square``), on weights d (``penalty`` over a set of weights) and in the dual on
``s`` (``conjugate``).  The three are tied together here on random points.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import brentq, minimize
from sklearn.base import clone

from kernelweave._numerics.grouped import shrink_grouped
from kernelweave.norms import (
    L1,
    Block,
    ElasticBlocks,
    ElasticNet,
    Entropy,
    Fixed,
    FixedParts,
    Grouped,
    Lp,
    Maximum,
    Norm,
    Uniform,
    make_norm,
    registry,
)
from references import (
    elastic_blocks_norm,
    elastic_net_norm,
    entropy_norm,
    grouped_norm,
    l1_norm,
    lp_norm,
    max_norm,
    sum_norm,
    uniform_norm,
    with_fixed_part,
)

M = 4
GIVEN = np.array([0.5, 2.0, 0.25, 1.0])


def settled(smoothing: float, value: float = 1.0) -> Norm:
    return Entropy(smoothing).settle(lambda: value)


def grouped(p: float, q: float) -> Norm:
    return Grouped(p, q, ["a", "b", "a", "b"]).for_kernels(M)


def squares(norm: Norm) -> bool:
    """Whether it is half the square of a norm: not with an l1 term beside it, nor where subsets are chosen.

    Those two have tests of their own, test_elastic.py and test_at_most.py.
    """
    return norm.l1_term is None and not norm.combinatorial


#: every registered norm as it is by default, found without being named here, and some with other parameters; groups
#: have to be said first
NORMS = {
    name: norm.settle(lambda: 1.0)
    for name, norm in ((name, registry[name]()) for name in registry)
    if squares(norm) and type(norm) is not Grouped
} | {
    "elastic_net-0.9": ElasticNet(0.9),
    "elastic_blocks-0.2": ElasticBlocks(0.2),
    "grouped-1-2": grouped(1.0, 2.0),
    "grouped-2-1": grouped(2.0, 1.0),
    "grouped-1.5-3": grouped(1.5, 3.0),
    "fixed part": FixedParts(L1(), {M - 1: 0.7}),
    "lp-1.05": Lp(1.05),
    "lp-1.3": Lp(1.3),
    "lp-2": Lp(2.0),
    "lp-7": Lp(7.0),
    "lp-inf": Lp(np.inf),
    "entropy-0.01": settled(0.01),
    "entropy-0.5": settled(0.5),
    "entropy-20": settled(20.0),
    "fixed": Fixed(GIVEN),
}
REFERENCES = {
    "l1": l1_norm(),
    "lp-1.05": lp_norm(1.05),
    "lp-1.3": lp_norm(1.3),
    "lp-2": lp_norm(2.0),
    "lp-7": lp_norm(7.0),
    "lp-inf": sum_norm(),
    "entropy-0.01": entropy_norm(0.01),
    "entropy-0.5": entropy_norm(0.5),
    "entropy-20": entropy_norm(20.0),
    "uniform": uniform_norm(),
    "max": max_norm(),
    "elastic_net-0.9": elastic_net_norm(0.9),
    "elastic_blocks-0.2": elastic_blocks_norm(0.2),
    "grouped-1-2": grouped_norm(1.0, 2.0, "abab"),
    "grouped-2-1": grouped_norm(2.0, 1.0, "abab"),
    "grouped-1.5-3": grouped_norm(1.5, 3.0, "abab"),
    "fixed part": with_fixed_part(l1_norm(), 0.7),
}


def names(condition=lambda norm: True):
    return pytest.mark.parametrize("name", [name for name, norm in NORMS.items() if condition(norm)])


def has(method: str):
    return lambda norm: getattr(type(norm), method) is not getattr(Norm, method)


positive = arrays(float, M, elements=st.floats(1e-3, 50.0))
nonnegative = arrays(float, M, elements=st.one_of(st.just(0.0), st.floats(1e-6, 50.0)))
signed = arrays(float, M, elements=st.floats(-5.0, 5.0))


def charge(norm: Norm, d: np.ndarray) -> float:
    """What the set of weights is written with: at most one in it, one where it ends."""
    if isinstance(norm, ElasticNet):
        return norm.mix * np.sum(d) + (1 - norm.mix) * np.sum(d**2)
    if isinstance(norm, ElasticBlocks):
        left = 1 - (1 - norm.mix) * d
        return norm.mix * np.sum(d / left) if np.all(left > 0) else np.inf
    if isinstance(norm, Grouped):
        return sum(np.sum(d[at] ** norm.inner) ** (norm.outer / norm.inner) for at in ([0, 2], [1, 3]))
    if isinstance(norm, Lp):
        return np.max(d) if np.isinf(norm.p) else np.sum(d**norm.p)
    if isinstance(norm, FixedParts):
        return charge(norm.norm, d[:-1])
    return np.sum(1 / d) if isinstance(norm, Maximum) else np.sum(d)


def length(norm: Norm, direction: np.ndarray) -> float:
    """How far the set of weights reaches in a direction: there the charge is one."""
    if isinstance(norm, Lp) and np.isinf(norm.p):
        return 1 / np.max(direction)
    if isinstance(norm, Lp | Grouped):  # the charge is a power of the length
        power = norm.p if isinstance(norm, Lp) else norm.outer
        return charge(norm, direction) ** (-1 / power)
    # at the far end the largest weight alone is charged one, or its kernel everything
    high = 1 / np.max(direction) if isinstance(norm, ElasticNet) else 1 / ((1 - norm.mix) * np.max(direction))
    return brentq(lambda a: min(charge(norm, a * direction), 2.0) - 1, 0.0, high, xtol=1e-18, rtol=1e-14)


def feasible_weights(norm: Norm, rng: np.random.Generator) -> np.ndarray:
    """Random weights of the norm's set, vertices and boundary among them."""
    if norm.fixed:
        return norm.start(M)
    if isinstance(norm, FixedParts):
        return np.append(np.maximum(rng.dirichlet(np.full(M - 1, rng.choice([0.3, 1.0]))), 1e-300), 0.7)
    if isinstance(norm, Maximum):
        return 1.0 / rng.dirichlet(np.full(M, rng.choice([0.3, 1.0, 5.0])))
    if isinstance(norm, Lp | ElasticNet | ElasticBlocks | Grouped):
        direction = rng.gamma(rng.choice([0.2, 1.0]), size=M) + 1e-12
        return length(norm, direction) * direction * rng.choice([1.0, rng.uniform()])
    return np.maximum(rng.dirichlet(np.full(M, rng.choice([0.3, 1.0, 5.0]))), 1e-300)


def charged_with(norm: Norm, t: np.ndarray, d: np.ndarray) -> float:
    """``1/2 sum t^2 / d + penalty(d)``: an upper bound of half_square for the norms that minimise over weights."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        terms = np.where(t > 0, t**2 / d, 0.0)
    return 0.5 * float(np.sum(terms)) + norm.penalty(d)


def test_every_registered_norm_has_a_reference():
    known = {type(NORMS[name]) for name in REFERENCES}
    assert {registry[name] for name in registry if squares(registry[name]())} <= known


# ---- values --------------------------------------------------------------------------------------------------------


@names(lambda norm: not norm.penalty(norm.start(M)))
def test_a_function_that_is_zero_costs_nothing(name):
    norm = NORMS[name]
    with np.errstate(all="raise"):
        assert norm.half_square(np.zeros(M)) == 0.0
        assert norm.conjugate(np.zeros(M)) == 0.0


@pytest.mark.parametrize("name", list(REFERENCES))
def test_values_are_the_hand_written_ones(name):
    norm, reference = NORMS[name], REFERENCES[name]
    rng = np.random.default_rng(0)
    for _ in range(10):
        t, s = rng.gamma(1.0, size=(2, M))
        np.testing.assert_allclose(norm.half_square(t), reference.half_square(t), rtol=1e-9)
        np.testing.assert_allclose(norm.conjugate(s), reference.conjugate(s), rtol=1e-12)


def test_fixed_weights_charge_by_hand():
    t, s = np.array([1.0, 2.0, 3.0, 4.0]), np.array([4.0, 3.0, 2.0, 1.0])
    norm = Fixed(GIVEN)
    assert norm.half_square(t) == pytest.approx((1 / 0.5 + 4 / 2 + 9 / 0.25 + 16) / 2)
    assert norm.conjugate(s) == pytest.approx((4 * 0.5 + 3 * 2 + 2 * 0.25 + 1) / 2)
    # a kernel without weight may have no block
    norm = Fixed(np.array([1.0, 0.0]))
    assert norm.half_square(np.array([3.0, 0.0])) == 4.5
    assert norm.half_square(np.array([3.0, 1e-9])) == np.inf
    assert norm.conjugate(np.array([3.0, 100.0])) == 1.5


# ---- duality -------------------------------------------------------------------------------------------------------


@names()
@given(t=nonnegative, s=nonnegative)
def test_fenchel_young(name, t, s):
    norm = NORMS[name]
    lower = float(t @ np.sqrt(s))
    assert norm.half_square(t) + norm.conjugate(s) >= lower - 1e-9 * (1 + lower)


@names()
@given(s=positive)
def test_weights_attain_the_conjugate(name, s):
    """At ``t_j = d_j sqrt(s_j)`` Fenchel-Young is an equality: that is why the gap closes at the optimum."""
    norm = NORMS[name]
    d = norm.weights(s)
    t = d * np.sqrt(s)
    assert norm.half_square(t) + norm.conjugate(s) == pytest.approx(float(t @ np.sqrt(s)), rel=1e-8)


@names(lambda norm: not isinstance(norm, ElasticNet))  # whose value takes a search of its own
def test_conjugate_is_the_supremum_over_blocks(name):
    norm = NORMS[name]
    rng = np.random.default_rng(1)
    for s in rng.gamma(1.0, size=(2, M)):
        root = np.sqrt(s)
        best = -np.inf
        for first in (norm.weights(s) * root, rng.uniform(size=M)):
            found = minimize(
                lambda t, root=root: norm.half_square(np.maximum(t, 0)) - t @ root,
                first, method="Nelder-Mead", bounds=[(0, None)] * M,
                options={"maxiter": 400, "maxfev": 400, "xatol": 1e-5, "fatol": 1e-8, "adaptive": True},
            )  # fmt: skip
            assert -found.fun <= norm.conjugate(s) * (1 + 1e-9)
            best = max(best, -found.fun)
        assert best == pytest.approx(norm.conjugate(s), rel=1e-4)


@names(lambda norm: not isinstance(norm, Maximum))
@given(s=nonnegative, seed=st.integers(0, 10**6))
def test_conjugate_is_the_maximum_over_weights(name, s, seed):
    norm = NORMS[name]
    rng = np.random.default_rng(seed)

    def gain(d):
        return 0.5 * float(d @ s) - norm.penalty(d)

    top = norm.conjugate(s)
    assert gain(norm.weights(s)) == pytest.approx(top, rel=1e-9, abs=1e-12)
    for _ in range(20):
        assert gain(feasible_weights(norm, rng)) <= top + 1e-9 * (1 + abs(top))


@given(s=positive, seed=st.integers(0, 10**6))
def test_conjugate_of_the_maximum_norm_is_a_minimum_over_weights(s, seed):
    norm = Maximum()
    rng = np.random.default_rng(seed)
    d = norm.weights(s)
    assert np.sum(1 / d) == pytest.approx(1.0)
    assert 0.5 * d @ s == pytest.approx(norm.conjugate(s))
    for _ in range(20):
        assert 0.5 * feasible_weights(norm, rng) @ s >= norm.conjugate(s) * (1 - 1e-9)


@names(lambda norm: not isinstance(norm, Maximum))
@given(t=nonnegative, seed=st.integers(0, 10**6))
def test_weights_of_blocks_attain_half_square(name, t, seed):
    norm = NORMS[name]
    rng = np.random.default_rng(seed)
    value = norm.half_square(t)
    d = norm.weights_of_blocks(t)
    assert np.all(d >= 0)
    assert charged_with(norm, t, d) == pytest.approx(value, rel=1e-8, abs=1e-12)
    for _ in range(20):
        assert charged_with(norm, t, feasible_weights(norm, rng)) >= value - 1e-9 * (1 + abs(value))


def test_weights_of_blocks_of_the_maximum_norm_say_why_not():
    with pytest.raises(TypeError, match="depend on s"):
        Maximum().weights_of_blocks(np.ones(3))


@names()
@given(s=positive)
def test_weights_are_in_their_set(name, s):
    norm = NORMS[name]
    for d in (norm.weights(s), norm.start(M)):
        assert d.shape == (M,)
        assert np.all(d >= 0)
        if not norm.fixed:
            assert charge(norm, d) == pytest.approx(1.0)
    start = norm.start(M)
    if not isinstance(norm, Fixed | FixedParts) or isinstance(norm, Uniform):
        np.testing.assert_allclose(start, start[0])


@names(lambda norm: not norm.fixed)
@given(t=nonnegative, seed=st.integers(0, 10**6))
def test_regulariser_is_never_below_half_square(name, t, seed):
    """Whatever weights are at hand, in the set or not: else a certificate could promise too much."""
    norm = NORMS[name]
    rng = np.random.default_rng(seed)
    value = norm.half_square(t)
    for d in (feasible_weights(norm, rng), 3.0 * feasible_weights(norm, rng), rng.uniform(0.1, 5, size=M)):
        assert norm.regulariser(t, d) >= value - 1e-9 * (1 + abs(value))
    assert norm.regulariser(np.zeros(M), np.zeros(M)) >= norm.half_square(np.zeros(M)) - 1e-12


@names(lambda norm: norm.smooth_conjugate)
def test_smooth_conjugates_have_the_weights_as_gradient(name):
    norm = NORMS[name]
    rng = np.random.default_rng(7)
    for s in rng.gamma(2.0, size=(5, M)) + 0.5:
        for j in range(M):
            e = np.zeros(M)
            e[j] = 1e-6 * s[j]
            slope = (norm.conjugate(s + e) - norm.conjugate(s - e)) / (2 * e[j])
            assert 0.5 * norm.weights(s)[j] == pytest.approx(slope, rel=1e-5, abs=1e-6)


@names(lambda norm: norm.convex_in_weights)
@given(d=positive)
def test_scaled_keeps_proportions_and_is_in_the_set(name, d):
    norm = NORMS[name]
    scaled = norm.scaled(d)
    if isinstance(norm, Lp) and np.isinf(norm.p):
        np.testing.assert_array_equal(scaled, np.ones(M))
        return
    if isinstance(norm, FixedParts):
        assert scaled[-1] == 0.7
        scaled, d, norm = scaled[:-1], d[:-1], norm.norm
    np.testing.assert_allclose(scaled / scaled[0], d / d[0])
    assert charge(norm, scaled) == pytest.approx(1.0)


# ---- gradient, prox, projection ------------------------------------------------------------------------------------


@names(lambda norm: norm.smooth_on_blocks)
def test_block_gradient_agrees_with_finite_differences(name):
    norm = NORMS[name]
    rng = np.random.default_rng(3)
    for _ in range(10):
        t = rng.uniform(0.1, 3.0, size=M)
        for j in range(M):
            e = np.zeros(M)
            e[j] = 1e-5
            slope = (norm.half_square(t + e) - norm.half_square(t - e)) / 2e-5
            assert norm.block_gradient(t)[j] == pytest.approx(slope, rel=1e-6)
    np.testing.assert_array_equal(norm.block_gradient(np.zeros(M)), np.zeros(M))
    assert np.all(np.isfinite(norm.block_gradient(np.array([1.0, 0.0, 0.0, 2.0]))))


@pytest.mark.parametrize("price", [np.nextafter(3.0, 0.0), 3.0, np.nextafter(3.0, 4.0)])
def test_a_group_at_the_edge_of_its_price_is_zero(price):
    v, edge = np.array([0.0, 3.0, 3.0, 3.0]), [np.array([0, 2]), np.array([1, 3])]
    x = shrink_grouped(v, price, edge, 1.0, 4.0 / 3.0)
    np.testing.assert_allclose(x[edge[0]], 0.0, atol=1e-12)
    assert np.all(x[edge[1]] > 0.4)


@names(has("prox"))
@given(t=nonnegative, mu=st.sampled_from([0.0, 1e-3, 0.3, 1.0, 40.0]), seed=st.integers(0, 10**6))
def test_prox_inequality(name, t, mu, seed):
    """``|z - t|^2/2 + mu h(z) >= |x - t|^2/2 + mu h(x) + |z - x|^2/2`` for every z: x is the prox, and only x."""
    norm = NORMS[name]
    rng = np.random.default_rng(seed)
    x = norm.prox(t, mu)
    assert np.all(x >= 0)
    here = 0.5 * np.sum((x - t) ** 2) + mu * norm.half_square(x)
    size = 1 + np.max(t)
    others = [*(size * rng.uniform(size=(10, M)) * rng.integers(0, 2, size=(10, M)))]
    others += [np.maximum(x + 1e-3 * size * rng.normal(size=M), 0) for _ in range(10)]
    for z in others:
        there = 0.5 * np.sum((z - t) ** 2) + mu * norm.half_square(z)
        assert there >= here + 0.5 * np.sum((z - x) ** 2) - 1e-9 * size**2


@names(has("prox"))
@pytest.mark.filterwarnings("error")
def test_prox_of_nothing_is_nothing(name):
    np.testing.assert_array_equal(NORMS[name].prox(np.zeros(M), 0.7), np.zeros(M))


@pytest.mark.parametrize(
    ("norm", "dual"),
    [
        (L1(), Maximum()),
        (Maximum(), L1()),
        (Lp(np.inf), Lp(np.inf)),
        (Fixed(GIVEN), Fixed(1 / GIVEN)),
    ],
    ids=["l1", "max", "sum", "fixed"],
)
@given(t=nonnegative, mu=st.floats(1e-2, 20.0))
def test_moreau_decomposition(norm, dual, t, mu):
    parts = norm.prox(t, mu) + mu * dual.prox(t / mu, 1 / mu)
    np.testing.assert_allclose(parts, t, rtol=1e-10, atol=1e-10)


@names(lambda norm: has("project")(norm) and norm.convex_in_weights)
@given(v=signed, seed=st.integers(0, 10**6))
def test_projection_is_the_nearest_weights(name, v, seed):
    norm = NORMS[name]
    rng = np.random.default_rng(seed)
    x = norm.project(v)
    assert np.all(x >= 0)
    assert charge(norm, x) <= 1 + 1e-12
    for _ in range(20):
        assert np.sum((v - x) * (feasible_weights(norm, rng) - x)) <= 1e-8
    np.testing.assert_allclose(norm.project(x), x, atol=1e-9)


def test_fixed_weights_project_on_themselves():
    np.testing.assert_array_equal(Fixed(GIVEN).project(np.zeros(M)), GIVEN)
    np.testing.assert_array_equal(Uniform().project(np.zeros(M)), np.full(M, 1 / M))


# ---- limits --------------------------------------------------------------------------------------------------------


def test_block_is_the_block_exponent():
    rng = np.random.default_rng(4)
    t = rng.gamma(1.0, size=M)
    for r in (1.0, 1.1, 1.25, 1.5, 1.9, 2.0):
        assert Block(r).half_square(t) == pytest.approx(np.sum(t**r) ** (2 / r) / 2)
    assert Block(np.inf).half_square(t) == pytest.approx(np.max(t) ** 2 / 2)
    assert isinstance(Block(1), L1)
    assert isinstance(Block(np.inf), Maximum)
    assert np.isinf(Block(2).p)
    assert Block(4 / 3).p == pytest.approx(2.0)
    for p in (1.01, 1.5, 3.0, 100.0):
        assert Block(Lp(p).r).p == pytest.approx(p)
    assert Lp(np.inf).r == 2.0
    for r in (0.9, 2.1, -1.0, np.nan):
        with pytest.raises(ValueError, match="1 <= r <= 2 or r = inf"):
            Block(r)


def test_p_towards_one_is_l1():
    rng = np.random.default_rng(5)
    for p in (1.01, 1.001, 1.00001):
        for _ in range(5):
            t, s = rng.gamma(1.0, size=(2, M))
            off = 2 * np.log(M) * (p - 1)
            assert Lp(p).half_square(t) == pytest.approx(L1().half_square(t), rel=off)
            assert Lp(p).conjugate(s) == pytest.approx(L1().conjugate(s), rel=off)
    # the weights become the choice of the largest s
    s = np.array([1.0, 2.0, 3.0, 2.9])
    np.testing.assert_allclose(Lp(1.0001).weights(s), L1().weights(s), atol=1e-3)


def test_smoothing_goes_from_l1_to_the_mean_kernel():
    rng = np.random.default_rng(6)
    t, s = rng.gamma(1.0, size=(2, M))
    small, large = settled(1e-6), settled(1e6)
    assert small.conjugate(s) == pytest.approx(L1().conjugate(s), rel=1e-4)
    assert small.half_square(t) == pytest.approx(L1().half_square(t), rel=1e-4)
    np.testing.assert_allclose(small.weights_of_blocks(t), t / t.sum(), rtol=1e-4)
    np.testing.assert_allclose(large.weights(s), 1 / M, rtol=1e-4)
    np.testing.assert_allclose(large.weights_of_blocks(t), 1 / M, rtol=1e-3)
    assert large.half_square(t) == pytest.approx(Uniform().half_square(t), rel=1e-3)


@names()
@pytest.mark.parametrize(
    "s",
    [
        np.zeros(M),
        np.array([0.0, 0.0, 1.0, 0.0]),
        np.array([1e-300, 1.0, 1e-30, 0.0]),
        np.array([1e-300, 2e-300, 0.0, 1e-300]),
        np.array([1e300, 1.0, 1e299, 0.0]),
        np.full(M, 1e300),
    ],
    ids=["zero", "one", "mixed", "tiny", "huge", "all huge"],
)
def test_extreme_s_is_no_trouble(name, s):
    norm = NORMS[name]
    with np.errstate(divide="raise", invalid="raise"):
        value, d = norm.conjugate(s), norm.weights(s)
    assert not np.isnan(value)
    assert np.all(np.isfinite(d))
    assert np.all(d >= 0)
    assert np.any(d > 0)
    if np.max(s) < 1e300 and not isinstance(norm, Entropy):
        # homogeneous of degree one, so that the scale can be taken out
        scale = np.max(s) if np.max(s) > 0 else 1.0
        assert value / scale == pytest.approx(norm.conjugate(s / scale), rel=1e-9, abs=1e-300)


@names()
@pytest.mark.parametrize("scale", [1e-140, 1e-30, 1e30, 1e140])
def test_extreme_blocks_are_no_trouble(name, scale):
    norm = NORMS[name]
    t = np.array([1.0, 0.5, 0.0, 2.0])
    with np.errstate(divide="raise", invalid="raise", over="raise"):
        value = norm.half_square(t * scale)
    assert np.isfinite(value)
    if not isinstance(norm, Entropy):
        assert value / scale**2 == pytest.approx(norm.half_square(t), rel=1e-9)


# ---- parameters ----------------------------------------------------------------------------------------------------


def test_numbers_are_klofts_p():
    assert isinstance(make_norm(1), L1)
    assert isinstance(make_norm(1.0), L1)
    assert make_norm(2).p == 2.0
    assert make_norm(np.float32(1.5)).p == 1.5
    assert make_norm(np.inf).conjugate(np.ones(3)) == 1.5
    for p in (0.5, 0, -1, np.nan):
        with pytest.raises(ValueError, match=r"Lp needs p > 1.*Block"):
            make_norm(p)


def test_names_and_instances():
    assert isinstance(make_norm("l1"), L1)
    assert isinstance(make_norm("max"), Maximum)
    assert isinstance(make_norm("uniform"), Uniform)
    assert make_norm("lp").p == 2.0
    kept = Lp(3.0)
    assert make_norm(kept) is kept
    known = ", ".join(registry)
    with pytest.raises(
        ValueError, match=rf"unknown norm 'entropi'.*Did you mean 'entropy'.*Known norms: {known}"
    ):
        make_norm("entropi")
    for nonsense in (None, True, [1.0]):
        with pytest.raises(ValueError, match="norm must be a name"):
            make_norm(nonsense)


@pytest.mark.parametrize(
    ("norm", "m", "words"),
    [
        (Lp(1.0), 3, "p = 1 is norm='l1'"),
        (Lp("2"), 3, "Lp needs p > 1"),
        (ElasticNet(1.0), 3, "mix = 1 is norm='l1'"),
        (ElasticBlocks(-0.1), 3, "0 < mix < 1"),
        (ElasticNet("half"), 3, "0 < mix < 1"),
        (Grouped("l2", 2, [0, 0, 1]), 3, "outer of Grouped must be 'l1' or a finite number"),
        (Grouped(1, np.inf, [0, 0, 1]), 3, "inner of Grouped.*add its kernels up to one"),
        (Grouped(1, 2), 3, "say the groups"),
        (Grouped(1, 2, [0, 1]), 3, "2 groups for 3 kernels"),
        (Grouped(1, 2, {"a": [0, 5]}), 3, "kernel 5, but there are 3"),
        (Grouped(1, 2, {"a": [0, 1], "b": [1]}), 3, "into the bank twice"),
        (Grouped(1, 2, {"a": ["kernel 01"]}), 3, "Did you mean 'kernel 1'"),
        (Grouped(1, 2, 7), 3, "groups must be 'views', a mapping"),
        (FixedParts(L1(), {3: 1.0}), 3, "kernel 3 a weight, but there are 3"),
        (FixedParts(L1(), {0: 0.0}), 3, "finite weight > 0"),
        (FixedParts(L1(), {0: 1.0, 1: 1.0}), 2, "nothing is left to learn"),
        (Entropy(0.0), 3, "smoothing > 0"),
        (Entropy(-1.0), 3, "without smoothing it is 'l1'"),
        (Entropy(float("nan")), 3, "smoothing > 0"),
        (Fixed([1.0, 2.0]), 3, "2 weights for a bank of 3 kernels"),
        (Fixed([1.0, -2.0]), 2, ">= 0"),
        (Fixed([0.0, 0.0]), 2, "at least one of them positive"),
        (Fixed([np.nan, 1.0]), 2, "finite"),
        (Fixed([np.inf, 1.0]), 2, "finite"),
    ],
)
def test_parameters_out_of_range_are_refused(norm, m, words):
    with pytest.raises(ValueError, match=words):
        norm.check(m)


def test_entropy_must_be_settled_and_settling_leaves_the_original_alone():
    norm = Entropy(0.5)
    with pytest.raises(ValueError, match="settle"):
        norm.conjugate(np.ones(3))
    done = norm.settle(lambda: 8.0)
    assert done is not norm
    assert done.lam == 4.0
    assert norm.lam is None
    assert L1().settle(lambda: pytest.fail("nobody needs the value")).registered_as == "l1"


@names()
def test_clone_and_label(name):
    norm = NORMS[name]
    assert norm.label
    made = clone(norm)
    assert type(made) is type(norm)
    assert repr(made) == repr(norm)
    norm.check(M)
