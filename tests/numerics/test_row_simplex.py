"""Rows that sum to zero under bounds: projections against quadratic programs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelweave._numerics import projections
from kernelweave._numerics import projections as column_boxes
from kernelweave._numerics import projections as row_simplex

seeds = st.integers(0, 2**32 - 1)


def some_rows(seed: int, n: int = 12, k: int = 4) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values, upper bounds ``c e_own`` (some c zero) and the classes."""
    rng = np.random.default_rng(seed)
    own = rng.integers(0, k, n)
    upper = np.zeros((n, k))
    upper[np.arange(n), own] = rng.choice([0.0, 0.5, 1.0, 7.0], n)
    return 10.0 ** rng.uniform(-2, 1) * rng.normal(size=(n, k)), upper, own


def by_conic(v: np.ndarray, upper: np.ndarray, totals: np.ndarray | None) -> np.ndarray:
    import cvxpy as cp

    x = cp.Variable(v.shape)
    constraints = [x <= upper, cp.sum(x, axis=1) == 0]
    if totals is not None:
        constraints.append(cp.sum(x, axis=0) == totals)
    cp.Problem(cp.Minimize(cp.sum_squares(x - v)), constraints).solve(
        solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12
    )
    return x.value


@pytest.mark.parametrize("seed", range(3))
def test_projections_are_those_of_a_conic_solver(seed):
    v, upper, _ = some_rows(seed)
    np.testing.assert_allclose(row_simplex.project_rows(v, upper), by_conic(v, upper, None), atol=1e-6)
    np.testing.assert_allclose(
        row_simplex.balance_rows(v, upper)[0],
        by_conic(v, upper, np.zeros(4)),
        atol=1e-5 * (1 + np.abs(v).max()),
    )


@given(seed=seeds)
def test_projection_of_rows_by_its_inequality(seed):
    """``(v - x)'(z - x) <= 0`` for every z of the set, and x is in it."""
    v, upper, _ = some_rows(seed)
    x = row_simplex.project_rows(v, upper)
    size = 1.0 + np.abs(v).max()
    assert np.all(x <= upper)
    np.testing.assert_allclose(x.sum(axis=1), 0.0, atol=1e-13 * size)
    others = np.random.default_rng(seed).dirichlet(np.ones(4), size=(20, 12))
    c = upper.max(axis=1)
    for a in [*others, *np.eye(4)[:, None, :].repeat(12, axis=1)]:
        z = upper - c[:, None] * a
        assert np.all(np.sum((v - x) * (z - x), axis=1) <= 1e-10 * size**2)
    np.testing.assert_allclose(row_simplex.project_rows(x, upper), x, atol=1e-13 * size)


@given(seed=seeds)
def test_balanced_projection_by_its_inequality(seed):
    v, upper, _ = some_rows(seed)
    x = row_simplex.balance_rows(v, upper)[0]
    size = 1.0 + np.abs(v).max() + upper.max()
    assert np.all(x <= upper)
    np.testing.assert_allclose(x.sum(axis=1), 0.0, atol=1e-12 * size)
    np.testing.assert_allclose(x.sum(axis=0), 0.0, atol=1e-11 * size * len(v))
    rng = np.random.default_rng(seed)
    for _ in range(5):
        z = row_simplex.balance_rows(size * rng.normal(size=v.shape), upper)[0]
        assert np.sum((v - x) * (z - x)) <= 1e-8 * size**2 * len(v)


def test_where_nothing_is_free_rows_stay_at_zero():
    v = np.random.default_rng(0).normal(size=(5, 3))
    np.testing.assert_allclose(row_simplex.project_rows(v, np.zeros((5, 3))), 0.0, atol=1e-15)
    np.testing.assert_allclose(row_simplex.balance_rows(v, np.zeros((5, 3)))[0], 0.0, atol=1e-15)


def test_devices_compare_what_hosts_sort():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(3)
    for k in (2, 3, 10):
        v, upper = 3.0 * rng.normal(size=(50, k)), np.zeros((50, k))
        upper[np.arange(50), rng.integers(k, size=50)] = rng.choice([0.0, 0.5, 4.0], size=50)
        v[:5] = np.round(v[:5])  # ties
        there = row_simplex.project_rows(torch.as_tensor(v), torch.as_tensor(upper)).numpy()
        np.testing.assert_allclose(there, row_simplex.project_rows(v, upper), atol=1e-14)


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("seed", range(4))
def test_projections_are_those_of_single_rows_and_columns(library, seed):
    kind = pytest.importorskip(library).asarray
    rng = np.random.default_rng(seed)
    v = 2.0 * rng.standard_normal((40, 4))
    own = rng.integers(4, size=40)
    upper = np.where(np.arange(4) == own[:, None], rng.random((40, 1)), 0.0)
    by_row = [
        projections.project_box_sum(row, np.full(4, -np.inf), top) for row, top in zip(v, upper, strict=True)
    ]
    np.testing.assert_allclose(np.asarray(row_simplex.project_rows(kind(v), kind(upper))), by_row, atol=1e-12)
    balanced, b = row_simplex.balance_rows(kind(v), kind(upper))
    # both constraints hold, and b is the multiplier that makes it the projection
    by_row = [
        projections.project_box_sum(row, np.full(4, -np.inf), top)
        for row, top in zip(v - b, upper, strict=True)
    ]
    np.testing.assert_allclose(np.asarray(balanced), by_row, atol=1e-12)
    np.testing.assert_allclose(np.asarray(balanced).sum(axis=0), 0.0, atol=1e-11)
    low, high = -rng.random((40, 4)), rng.random((40, 4))
    box = np.asarray(column_boxes.project_box_balanced(kind(v), kind(low), kind(high)))
    for k in range(4):
        np.testing.assert_allclose(
            box[:, k], projections.project_box_sum(v[:, k], low[:, k], high[:, k]), atol=1e-9
        )
