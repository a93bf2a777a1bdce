"""Cox's partial likelihood by its definitions: loops over risk sets, a conic solver, points inside and outside."""

from __future__ import annotations

import numpy as np
import pytest

from kernelweave.losses import Cox
from references import COX, STRATUM

LOSS = Cox()


def some(seed: int, n: int = 20):
    """Times with ties, strata, weights of which some are zero; the library's targets, and those of the reference."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, n))
    time = rng.integers(0, 8, n) * 1.0 if rng.random() < 0.6 else rng.exponential(size=n)
    stratum = rng.integers(0, 3, n) if rng.random() < 0.5 else np.zeros(n, dtype=int)
    event = rng.random(n) < 0.6
    c = rng.uniform(0.2, 3.0, n)
    if rng.random() < 0.4:
        c[rng.random(n) < 0.3] = 0.0
    f = rng.normal(size=n) * rng.choice([1.0, 30.0, 300.0])
    rank = np.unique(time, return_inverse=True)[1]
    other = np.where(event, 1.0, -1.0) * (STRATUM * stratum + rank + 1.0)
    return LOSS.encode(time, event, stratum), other, f, c, rng


@pytest.mark.parametrize("seed", range(200))
def test_total_derivatives_and_root_against_loops(seed):
    y, other, f, c, rng = some(seed)
    c[0] += 0.1
    exact, wide = f.astype(np.longdouble), c.astype(np.longdouble)
    size = 1.0 + np.sum(c)
    assert LOSS.total(y, f, c) == pytest.approx(float(COX.total(other, exact, wide)), rel=1e-12, abs=1e-12)
    slope = COX.gradient(other, exact, wide)
    np.testing.assert_allclose(LOSS.total_gradient(y, f, c), slope.astype(float), atol=1e-12 * size)
    W = COX.hessian(other, exact, wide).astype(float)
    root = LOSS.hessian_root(y, f, c)
    R = np.array([root.times(e) for e in np.eye(root.order.size)]).reshape(2 * (root.order.size,)).T
    at = np.ix_(root.order, root.order)
    np.testing.assert_allclose(R @ R.T, W[at], atol=1e-12 * size)
    np.testing.assert_allclose(root.transposed(np.eye(root.order.size)), R, atol=1e-12 * size)
    assert np.all(np.linalg.eigvalsh(np.diag(LOSS.total_curvature(y, f, c)) - W) >= -1e-10 * size)
    Z = rng.normal(size=(f.size, f.size))
    np.testing.assert_allclose(root.sandwich(Z @ Z.T), R.T @ (Z @ Z.T)[at] @ R, atol=1e-11 * size * f.size)


@pytest.mark.parametrize("f", [3000.0, -3000.0])
def test_huge_values_stay_precise(f):
    """Decision values thousands apart: the gradient is one risk set's shares all the same."""
    y = LOSS.encode(np.arange(4.0), np.ones(4, dtype=bool), np.zeros(4, dtype=int))
    values = f * np.array([0.0, 1.0, 0.5, 1.0])
    slope = LOSS.total_gradient(y, values, np.ones(4))
    np.testing.assert_allclose(slope, COX.gradient(np.arange(1.0, 5.0), values, np.ones(4)), atol=1e-12)
    assert LOSS.total(y, values, np.ones(4)) == pytest.approx(
        COX.total(np.arange(1.0, 5.0), values, np.ones(4))
    )


@pytest.mark.parametrize("seed", range(60))
def test_conjugate_of_gradients_and_projected_points(seed):
    """Fenchel's equality at minus the gradient, his inequality everywhere, and the reference's dual set."""
    y, other, f, c, rng = some(seed)
    if not np.any((y > 0) & (c > 0)):
        pytest.skip("no event")
    slope, total = LOSS.total_gradient(y, f, c), LOSS.total(y, f, c)
    assert LOSS.gain(y, -slope, c) == pytest.approx(total - slope @ f, abs=1e-9 * (1.0 + abs(total)))
    projected = LOSS.project(y, rng.normal(scale=3.0, size=f.size), c, True)
    value, outside = COX.gain(other, projected.astype(np.longdouble), c.astype(np.longdouble))
    assert outside < 1e-13
    assert LOSS.gain(y, projected, c) == pytest.approx(float(value), abs=1e-10)
    for _ in range(20):
        h = rng.normal(size=f.size) * rng.choice([0.1, 1.0, 10.0])
        assert LOSS.gain(y, projected, c) <= LOSS.total(y, h, c) + projected @ h + 1e-9
    # what is in the set stays, zero among it, and strata sum to zero
    np.testing.assert_allclose(LOSS.project(y, projected, c, True), projected, atol=1e-12 * (1.0 + c.sum()))
    assert not np.any(LOSS.project(y, np.zeros_like(f), c, True))
    sums = np.bincount(np.floor(np.abs(y)).astype(int), projected)
    np.testing.assert_allclose(sums, 0.0, atol=1e-12 * (1.0 + c.sum()))


def test_outside_of_the_dual_set_nothing_is_proved():
    y = LOSS.encode(
        np.array([1.0, 2.0, 3.0, 4.0]), np.array([False, True, False, True]), np.zeros(4, dtype=int)
    )
    c, delta = np.ones(4), np.array([0.0, 1.0, 0.0, 1.0])
    inside = delta - np.array([0.0, 0.5, 0.25, 1.25])
    assert np.isfinite(LOSS.gain(y, inside, c))
    for u in ([0.1, 0.4, 0.25, 1.25], [0.0, 0.7, 0.5, 0.8], [0.0, -0.1, 0.5, 1.6], [0.0, 0.5, 0.25, 1.0]):
        assert LOSS.gain(y, delta - np.array(u), c) == -np.inf
    assert LOSS.gain(y, inside, np.array([0.0, 1.0, 1.0, 1.0])) > -np.inf
    assert LOSS.gain(y, np.array([0.1, 0.0, 0.0, -0.1]), np.array([0.0, 1.0, 1.0, 1.0])) == -np.inf


@pytest.mark.parametrize("seed", range(6))
def test_conjugate_against_a_conic_solver(seed):
    """``sup over f of -beta'f - total(f)``: inside the set, at points that are no gradients, and on its boundary."""
    cp = pytest.importorskip("cvxpy")
    y, other, f, c, rng = some(seed + 3, 12)
    if not np.any((y > 0) & (c > 0)):
        pytest.skip("no event")
    beta = LOSS.project(y, rng.normal(scale=1.0 if seed % 2 else 10.0, size=f.size), c, True)
    values = cp.Variable(f.size)
    terms = [0.0]
    for at_risk, dies, deaths in COX.event_times(other, c):
        terms.append(deaths * cp.log_sum_exp(values[at_risk] + np.log(c[at_risk])))
        terms.append(-c[dies] @ values[dies] - np.sum(c[dies] * np.log(c[dies])))
    problem = cp.Problem(cp.Minimize(sum(terms) + beta @ values), [cp.abs(values) <= 60.0])
    problem.solve(solver=cp.CLARABEL)
    assert LOSS.gain(y, beta, c) == pytest.approx(problem.value, abs=2e-6 * (1.0 + abs(problem.value)))


def test_weights_are_copies_and_shifts_change_nothing():
    time, event = np.array([3.0, 1.0, 2.0, 2.0, 5.0]), np.array([True, True, False, True, False])
    f, zero = np.array([0.3, -1.0, 2.0, 0.1, 0.0]), np.zeros(5, dtype=int)
    y, twice = LOSS.encode(time, event, zero), np.repeat(np.arange(5), [2, 1, 1, 3, 1])
    weight = np.bincount(twice).astype(float)
    copies = LOSS.encode(time[twice], event[twice], zero[twice])
    heavy = np.where(event, weight * np.log(weight), 0.0).sum()
    # copies of an event are tied, each without the logarithm of the weight
    assert LOSS.total(y, f, weight) + heavy == pytest.approx(
        LOSS.total(copies, f[twice], np.ones(twice.size))
    )
    assert LOSS.total(y, f + 7.0, weight) == pytest.approx(LOSS.total(y, f, weight), rel=1e-13)
    later = LOSS.encode(np.exp(3.0 * time), event, zero)
    np.testing.assert_array_equal(later, y)
    assert np.sum(weight * (f + LOSS.best_intercept(y, f, weight))) == pytest.approx(0.0, abs=1e-12)
