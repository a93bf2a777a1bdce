"""Projections against a quadratic program, by the variational inequality and on cases done by hand."""

from __future__ import annotations

import warnings

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from kernelweave._numerics.projections import (
    project_box_budget,
    project_box_sum,
    project_lp_ball,
    project_simplex,
    shrink_power,
)

values = st.floats(-8.0, 8.0)
vectors = st.integers(1, 8).flatmap(lambda n: arrays(float, n, elements=values))


def nearest(v: np.ndarray, constraints) -> np.ndarray:
    x = cp.Variable(v.size)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(x - v)), constraints(x))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # 1e-12 is more than it can promise
        problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    return x.value


# ---- simplex -------------------------------------------------------------------------------------------------------


@given(v=vectors, total=st.floats(0.1, 10.0), seed=st.integers(0, 10**6))
def test_simplex_variational_inequality(v, total, seed):
    x = project_simplex(v, total)
    assert np.all(x >= 0)
    assert np.sum(x) == pytest.approx(total, rel=1e-12)
    for z in total * np.random.default_rng(seed).dirichlet(np.full(v.size, 0.5), size=20):
        assert (v - x) @ (z - x) <= 1e-10


def test_simplex_by_a_quadratic_program_and_by_hand():
    rng = np.random.default_rng(0)
    for _ in range(5):
        v = rng.normal(size=7)
        np.testing.assert_allclose(
            project_simplex(v), nearest(v, lambda x: [x >= 0, cp.sum(x) == 1]), atol=1e-6
        )
    np.testing.assert_array_equal(project_simplex(np.array([0.5, 0.5])), [0.5, 0.5])
    np.testing.assert_array_equal(project_simplex(np.array([5.0, 0.0, -3.0])), [1.0, 0.0, 0.0])
    np.testing.assert_allclose(project_simplex(np.full(4, -100.0)), 0.25)


# ---- lp ball -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [1.0, 1.05, 1.3, 2.0, 4.0, np.inf])
@given(v=vectors, radius=st.sampled_from([0.3, 1.0, 5.0]), seed=st.integers(0, 10**6))
def test_lp_ball_variational_inequality(p, v, radius, seed):
    rng = np.random.default_rng(seed)
    x = project_lp_ball(v, p, radius)
    assert np.all(x >= 0)
    assert np.linalg.norm(x, p) <= radius * (1 + 1e-12)
    for _ in range(20):
        z = rng.gamma(0.4, size=v.size) + 1e-9
        z *= radius * rng.choice([1.0, 0.5]) / np.linalg.norm(z, p)
        assert (v - x) @ (z - x) <= 1e-9
    if np.linalg.norm(np.maximum(v, 0), p) <= radius:
        np.testing.assert_array_equal(x, np.maximum(v, 0))
    else:
        assert np.linalg.norm(x, p) == pytest.approx(radius, rel=1e-9)


@pytest.mark.parametrize("p", [1.5, 2.0, 3.0])
def test_lp_ball_by_a_quadratic_program(p):
    rng = np.random.default_rng(1)
    for _ in range(3):
        v = 2 * rng.normal(size=6)
        by_qp = nearest(v, lambda x: [x >= 0, cp.pnorm(x, p) <= 1])
        np.testing.assert_allclose(project_lp_ball(v, p), by_qp, atol=1e-5)


@given(
    v=arrays(float, 5, elements=st.floats(0, 100.0)),
    nu=st.sampled_from([0.0, 1e-8, 0.3, 7.0, 1e8]),
    power=st.sampled_from([0.02, 0.3, 1.0, 2.5]),
)
def test_shrink_power_solves_its_equation(v, nu, power):
    x = shrink_power(v, nu, power)
    assert np.all((x >= 0) & (x <= v))
    low, high = np.zeros_like(v), v.copy()
    for _ in range(200):
        middle = (low + high) / 2
        above = middle + nu * middle**power > v
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    assert np.all(np.abs(x - low) <= 1e-14 * v + 1e-300)


# ---- box and sum ---------------------------------------------------------------------------------------------------


@st.composite
def boxes(draw):
    n = draw(st.integers(1, 8))
    v = draw(arrays(float, n, elements=values))
    low = -draw(arrays(float, n, elements=st.one_of(st.just(0.0), st.just(np.inf), st.floats(0.0, 3.0))))
    high = draw(arrays(float, n, elements=st.one_of(st.just(0.0), st.just(np.inf), st.floats(0.0, 3.0))))
    return v, low, high


def clipped_by_bisection(v, low, high, total):
    """``clip(v - h)`` with the h that gives the sum, by a hundred bisections."""
    left, right = -1e3, 1e3
    for _ in range(200):
        h = 0.5 * (left + right)
        left, right = (h, right) if np.sum(np.clip(v - h, low, high)) > total else (left, h)
    return np.clip(v - right, low, high)


@given(case=boxes())
def test_box_sum_agrees_with_bisection(case):
    v, low, high = case
    x = project_box_sum(v, low, high)
    assert np.all((x >= low) & (x <= high))
    assert abs(np.sum(x)) <= 1e-10
    np.testing.assert_allclose(x, clipped_by_bisection(v, low, high, 0.0), atol=1e-9)


@given(case=boxes(), share=st.floats(0.0, 1.0))
def test_box_sum_to_another_total(case, share):
    v, low, high = case
    low, high = np.maximum(low, -5.0), np.minimum(high, 5.0)
    total = float((1 - share) * np.sum(low) + share * np.sum(high))
    total = min(max(total, float(np.sum(low))), float(np.sum(high)))
    x = project_box_sum(v, low, high, total)
    assert np.sum(x) == pytest.approx(total, abs=1e-9)
    np.testing.assert_allclose(x, clipped_by_bisection(v, low, high, total), atol=1e-8)


def test_box_sum_by_a_quadratic_program():
    rng = np.random.default_rng(2)
    for _ in range(5):
        v = 3 * rng.normal(size=9)
        low, high = -rng.uniform(0, 2, size=9), rng.uniform(0, 2, size=9)
        by_qp = nearest(v, lambda x, low=low, high=high: [x >= low, x <= high, cp.sum(x) == 0])
        np.testing.assert_allclose(project_box_sum(v, low, high), by_qp, atol=1e-6)


def test_box_sum_edges():
    inf = np.full(3, np.inf)
    np.testing.assert_allclose(project_box_sum(np.array([1.0, 2.0, 6.0]), -inf, inf), [-2.0, -1.0, 3.0])
    # a single point: everything at a bound
    np.testing.assert_array_equal(project_box_sum(np.ones(3), np.zeros(3), inf), np.zeros(3))
    np.testing.assert_array_equal(project_box_sum(np.ones(3), -np.ones(3), np.ones(3), 3.0), np.ones(3))
    np.testing.assert_array_equal(project_box_sum(np.ones(3), -np.ones(3), np.ones(3), -3.0), -np.ones(3))
    with pytest.raises(ValueError, match=r"no point of the box sums to 0"):
        project_box_sum(np.zeros(2), np.ones(2), 2 * np.ones(2))


def test_box_sum_of_many_equal_values_keeps_symmetry():
    y = np.repeat([1.0, -1.0], [700, 300])
    low, high = np.minimum(0, y), np.maximum(0, y)
    x = project_box_sum(0.4 * y, low, high)
    assert abs(x.sum()) < 1e-10
    assert np.ptp(x[y > 0]) == 0
    assert np.ptp(x[y < 0]) == 0
    # 700 (0.4 - h) = 300 (0.4 + h) at h = 0.16
    np.testing.assert_allclose([x[0], x[-1]], [0.24, -0.56])


# ---- box and budget ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("base", [0.0, 0.3])
@pytest.mark.parametrize("balanced", [False, True])
def test_box_budget_by_a_quadratic_program(base, balanced):
    rng = np.random.default_rng(3)
    for share in (0.05, 0.3, 0.9, 2.0):
        for _ in range(4):
            upper = rng.uniform(0.1, 2.0, size=9) * (rng.uniform(size=9) > 0.2)
            signs = np.where(np.arange(9) < rng.integers(2, 8), 1.0, -1.0)
            v = rng.normal(0.5, 1.5, size=9)
            free, limit = base * upper, share * (1 - base) * upper.sum()

            def constraints(x, upper=upper, free=free, limit=limit, signs=signs):
                rows = [x >= 0, x <= upper, cp.sum(cp.pos(x - free)) <= limit]
                return [*rows, signs @ x == 0] if balanced else rows

            x = project_box_budget(v, upper, limit, free if base else None, signs if balanced else None)
            np.testing.assert_allclose(x, nearest(v, constraints), atol=2e-6)


@given(v=vectors, share=st.floats(0.01, 1.0), base=st.sampled_from([0.0, 0.4]), seed=st.integers(0, 10**6))
def test_box_budget_variational_inequality(v, share, base, seed):
    rng = np.random.default_rng(seed)
    upper = rng.uniform(0.0, 3.0, size=v.size)
    free, limit = base * upper, share * np.sum((1 - base) * upper)
    x = project_box_budget(v, upper, limit, free)
    assert np.all((x >= 0) & (x <= upper))
    assert np.sum(np.maximum(x - free, 0)) <= limit * (1 + 1e-12) + 1e-15
    for _ in range(10):
        z = rng.uniform(size=v.size) * upper
        z *= min(1.0, limit / max(np.sum(np.maximum(z - free, 0)), 1e-300))
        assert (v - x) @ (z - x) <= 1e-10 * (1 + v @ v)
    np.testing.assert_allclose(project_box_budget(x, upper, limit, free), x, atol=1e-12)


def test_box_budget_by_hand():
    ones = np.ones(3)
    np.testing.assert_allclose(project_box_budget(np.array([2.0, 0.9, -1.0]), ones, 3.0), [1.0, 0.9, 0.0])
    np.testing.assert_allclose(project_box_budget(np.array([1.0, 0.8, -1.0]), ones, 1.0), [0.6, 0.4, 0.0])
    # the first 0.5 of each is free: only what lies above it is cut back
    half = np.full(3, 0.5)
    np.testing.assert_allclose(
        project_box_budget(np.array([1.0, 0.8, 0.2]), ones, 0.4, half), [0.8, 0.6, 0.2]
    )
    signs = np.array([1.0, 1.0, -1.0])
    np.testing.assert_allclose(
        project_box_budget(np.array([1.0, 1.0, 1.0]), ones, 1.0, balance=signs), [0.25, 0.25, 0.5]
    )


def test_projections_of_huge_numbers_stay_on_the_simplex():
    for v in (np.array([1e20, 1e20, -1e20]), np.array([1e18, 3.0, 1e17])):
        x = project_simplex(v)
        assert np.all(x >= 0)
        assert np.sum(x) == pytest.approx(1.0)
    np.testing.assert_allclose(project_simplex(np.array([1e20, 1e20, -1e20])), [0.5, 0.5, 0.0])
    with pytest.raises(FloatingPointError):
        project_simplex(np.array([np.nan, 1.0]))
