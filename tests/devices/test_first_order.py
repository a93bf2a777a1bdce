"""Projections and inner solves through the array namespace, NumPy and torch, against the NumPy originals."""

import numpy as np
import pytest

from kernelweave._numerics.column_boxes import project_box_balanced
from kernelweave._numerics.projections import project_box_sum
from kernelweave._numerics.row_simplex import balance_rows, project_rows
from kernelweave.losses import EpsilonInsensitive, Hinge, MulticlassHinge, Squared, SquaredHinge
from kernelweave.problems import solve_fixed
from kernelweave.problems.first_order import fits_first_order, solve_first_order

torch = pytest.importorskip("torch")

KINDS = {"numpy": np.asarray, "torch": torch.asarray}


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]


@pytest.mark.parametrize("seed", range(4))
def test_projections_are_those_of_single_rows_and_columns(kind, seed):
    rng = np.random.default_rng(seed)
    v = 2.0 * rng.standard_normal((40, 4))
    own = rng.integers(4, size=40)
    upper = np.where(np.arange(4) == own[:, None], rng.random((40, 1)), 0.0)
    by_row = [project_box_sum(row, np.full(4, -np.inf), top) for row, top in zip(v, upper, strict=True)]
    np.testing.assert_allclose(np.asarray(project_rows(kind(v), kind(upper))), by_row, atol=1e-12)
    balanced, b = balance_rows(kind(v), kind(upper))
    # both constraints hold, and b is the multiplier that makes it the projection
    by_row = [project_box_sum(row, np.full(4, -np.inf), top) for row, top in zip(v - b, upper, strict=True)]
    np.testing.assert_allclose(np.asarray(balanced), by_row, atol=1e-12)
    np.testing.assert_allclose(np.asarray(balanced).sum(axis=0), 0.0, atol=1e-11)
    low, high = -rng.random((40, 4)), rng.random((40, 4))
    box = np.asarray(project_box_balanced(kind(v), kind(low), kind(high)))
    for k in range(4):
        np.testing.assert_allclose(box[:, k], project_box_sum(v[:, k], low[:, k], high[:, k]), atol=1e-9)


def _problem(columns):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((50, 4))
    K = np.exp(-0.3 * ((X[:, None] - X) ** 2).sum(axis=2)) + 0.5
    label = rng.integers(3, size=50)
    y = np.where(label[:, None] == np.arange(3), 1.0, -1.0) if columns else np.where(label > 0, 1.0, -1.0)
    return K, y


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(
    ("loss", "columns"),
    [
        (MulticlassHinge(), True),
        (Hinge(), False),
        (Hinge(), True),
        (SquaredHinge(), False),
        (Squared(), False),
    ],
)
def test_inner_problems_have_the_optimum_of_the_exact_solvers(kind, loss, columns, intercept):
    K, y = _problem(columns)
    c = np.random.default_rng(6).uniform(0.5, 3.0, 50)
    c = np.repeat(c[:, None], 3, axis=1) if columns else c
    exact = solve_fixed(K, loss, y, c, intercept, 1e-8)
    found = solve_first_order(kind(K), loss, y, c, intercept, 1e-6)
    assert found.relative_gap <= 1e-6
    assert found.dual <= exact.primal * (1 + 1e-9)
    assert found.primal == pytest.approx(exact.primal, rel=2e-6)
    # what it says of its point holds, computed again
    np.testing.assert_allclose(found.decision, K @ found.beta, atol=1e-9)
    np.testing.assert_allclose(loss.project(y, found.beta, c, intercept), found.beta, atol=1e-10)


def test_single_precision_stops_where_rounding_takes_over():
    K, y = _problem(False)
    c = np.ones(50)
    found = solve_first_order(torch.asarray(K, dtype=torch.float32), Hinge(), y, c, True, 1e-14)
    assert 0 <= found.relative_gap < 1e-5
    assert found.iterations < 20_000


def test_a_start_is_used():
    K, y = _problem(True)
    c = np.ones((50, 3))
    cold = solve_first_order(torch.asarray(K), MulticlassHinge(), y, c, False, 1e-5)
    warm = solve_first_order(torch.asarray(K), MulticlassHinge(), y, c, False, 1e-5, cold)
    assert warm.iterations == 1 < cold.iterations


def test_losses_with_another_dual_are_left_to_the_host():
    K, y = _problem(False)
    assert not fits_first_order(EpsilonInsensitive(), y, np.ones(50))
    found = solve_fixed(torch.asarray(K), EpsilonInsensitive(), y, np.ones(50), True, 1e-6)
    assert found.primal == pytest.approx(
        solve_fixed(K, EpsilonInsensitive(), y, np.ones(50), True, 1e-6).primal, rel=1e-5
    )
