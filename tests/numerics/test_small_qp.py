"""The interior point method against a conic solver, and by the optimality conditions."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

from kernelweave._numerics.quadratic import solve_qp


def random_problem(seed: int, n: int = 12, rows: int = 8, equalities: int = 2, rank: int | None = None):
    """A feasible QP, bounded below; inequality rows and bounds ``x >= -3``."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n if rank is None else rank, n))
    x = rng.normal(size=n)
    G = np.vstack([rng.normal(size=(rows, n)), -np.eye(n), np.eye(n)])
    h = np.concatenate([G[:rows] @ x + rng.choice([0.0, 0.5], size=rows), np.full(2 * n, 3.0)])
    h = np.maximum(h, G @ x)
    A = rng.normal(size=(equalities, n))
    return root.T @ root, 2 * rng.normal(size=n), G, h, A, A @ x


def optimality(P, q, G, h, A, b, x, z) -> float:
    """Largest violation of the conditions: feasibility, signs, complementarity, stationarity (least squares in y)."""
    gradient = P @ x + q + G.T @ z
    if b.size:
        gradient = gradient - A.T @ np.linalg.lstsq(A.T, gradient, rcond=None)[0]
    slack = h - G @ x
    return max(
        np.max(np.abs(gradient)), np.max(-slack), np.max(-z), np.max(np.abs(slack * z)),
        np.max(np.abs(A @ x - b), initial=0.0),
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("rank", [None, 3, 0], ids=["definite", "low rank", "linear"])
def test_against_a_conic_solver(seed, rank):
    P, q, G, h, A, b = random_problem(seed, rank=rank)
    x, z = solve_qp(P, q, G, h, A, b)
    v = cp.Variable(q.size)
    objective = cp.Minimize(0.5 * cp.quad_form(v, cp.psd_wrap(P)) + q @ v)
    value = cp.Problem(objective, [G @ v <= h, A @ v == b]).solve(solver=cp.CLARABEL)
    assert 0.5 * x @ P @ x + q @ x == pytest.approx(value, rel=1e-6, abs=1e-6)
    assert optimality(P, q, G, h, A, b, x, z) < 1e-7


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_conditions_hold_at_any_scale(scale):
    for seed in range(3):
        P, q, G, h, A, b = random_problem(seed + 50)
        x, z = solve_qp(scale * P, scale * q, G, h, A, b)
        assert optimality(P, q, G, h, A, b, x, z / scale) < 1e-5


def test_without_equalities():
    P, q, G, h, _, _ = random_problem(1)
    A, b = np.zeros((0, q.size)), np.zeros(0)
    x, z = solve_qp(P, q, G, h, A, b)
    assert optimality(P, q, G, h, A, b, x, z) < 1e-7


def test_projection_on_the_simplex_by_hand():
    m = 4
    v = np.array([0.9, 0.5, -1.0, 0.0])
    x, z = solve_qp(np.eye(m), -v, -np.eye(m), np.zeros(m), np.ones((1, m)), np.ones(1))
    np.testing.assert_allclose(x, [0.7, 0.3, 0.0, 0.0], atol=1e-8)
    np.testing.assert_allclose(z, [0.0, 0.0, 1.2, 0.2], atol=1e-7)


def test_planted_optimum():
    """Choose the answer and its multipliers, then make the problem of which they are the answer."""
    rng = np.random.default_rng(5)
    n, rows = 10, 14
    root = rng.normal(size=(n, n))
    P, G, A = root.T @ root, rng.normal(size=(rows, n)), rng.normal(size=(3, n))
    x = rng.normal(size=n)
    z = np.maximum(rng.normal(size=rows), 0.0)
    h = G @ x + np.where(z > 0, 0.0, rng.uniform(0.1, 1.0, size=rows))
    q = -P @ x - G.T @ z - A.T @ rng.normal(size=3)
    found, multipliers = solve_qp(P, q, G, h, A, A @ x)
    np.testing.assert_allclose(found, x, atol=1e-6)
    np.testing.assert_allclose(multipliers, z, atol=1e-5)
