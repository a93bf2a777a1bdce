"""Projections and inner solves through the array namespace, NumPy and torch, against the NumPy originals."""

import numpy as np
import pytest

from kernelweave.losses import EpsilonInsensitive, Hinge, MulticlassHinge, Squared, SquaredHinge
from kernelweave.problems import newton, solve_fixed
from kernelweave.problems.newton import fits_first_order, solve_first_order

torch = pytest.importorskip("torch")

KINDS = {"numpy": np.asarray, "torch": torch.asarray}


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]


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


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("loss", [Hinge(), MulticlassHinge()])
def test_rows_without_coefficients_are_set_aside(kind, loss, intercept, monkeypatch):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((300, 3))
    K = np.exp(-0.1 * ((X[:, None] - X) ** 2).sum(axis=2))
    label = np.argmax(X, axis=1)
    y = np.where(label[:, None] == np.arange(3), 1.0, -1.0) if loss.joint else np.where(label > 0, 1.0, -1.0)
    c = np.full(y.shape, 10.0)
    found, read = [], []
    product = newton._Dual.product
    monkeypatch.setattr(
        newton._Dual, "product", lambda self, beta: read.append(self.K.shape[0] ** 2) or product(self, beta)
    )
    for fewest in (newton.MANY, 100):
        monkeypatch.setattr(newton, "MANY", fewest)
        monkeypatch.setattr(newton, "GATHERED", 7000)  # in several pieces
        read.clear()
        found.append((solve_first_order(kind(K), loss, y, c, intercept, 1e-4), sum(read), min(read)))
    (whole, all_read, smallest), (parted, some_read, part) = found
    assert smallest == 300**2 > 2 * part
    assert some_read < 0.7 * all_read
    assert parted.relative_gap <= 1e-4
    assert parted.primal == pytest.approx(whole.primal, rel=2e-4)
    np.testing.assert_allclose(parted.decision, K @ parted.beta, atol=1e-9)
    np.testing.assert_allclose(loss.project(y, parted.beta, c, intercept), parted.beta, atol=1e-10)
