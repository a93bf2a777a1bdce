"""The same weights on a device of torch as in memory, and inverses by halves against their definition."""

from __future__ import annotations

import numpy as np
import pytest

from kernelweave import MKLRegressorCV
from kernelweave import kernels as kw
from kernelweave.evidence import Design, Folds, LeaveOneOut, Reml, choose_weights
from kernelweave.evidence.points import invert, invert_whole

torch = pytest.importorskip("torch")

N, M, T = 60, 3, 20


def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    views = [rng.normal(size=(N, 5)) for _ in range(M)]
    Y = sum(X @ rng.normal(size=(5, T)) * rng.uniform(0, 2, size=T) for X in views)
    return np.array([X @ X.T for X in views]), Y + 2.0 * rng.normal(size=(N, T))


@pytest.mark.parametrize("n", [7, 100, 301])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_inverses_by_halves(n: int, dtype: str) -> None:
    rng = np.random.default_rng(n)
    X = rng.normal(size=(2, n, 2 * n))
    stack = np.eye(n) + X @ X.swapaxes(1, 2) / n
    expected, log_det = np.linalg.inv(stack), np.linalg.slogdet(stack)[1]
    tolerance = 1e-12 if dtype == "float64" else 1e-4
    host, device = stack.astype(dtype), torch.as_tensor(stack.astype(dtype))
    np.testing.assert_allclose([invert(G) for G in host], log_det, rtol=tolerance)
    np.testing.assert_allclose(host, expected, atol=tolerance)
    np.testing.assert_allclose(invert(device).numpy(), log_det, rtol=tolerance)
    np.testing.assert_allclose(device.numpy(), expected, atol=tolerance)


def test_what_is_not_positive_definite_is_found() -> None:
    bad = np.diag(np.r_[np.ones(150), -1.0])
    assert np.isnan(invert(bad.copy()))
    assert torch.isnan(invert(torch.as_tensor(bad)[None])).all()


def test_what_rounding_takes_from_a_steep_matrix_is_given_back_everywhere() -> None:
    """All eigenvalues but one are a little below zero; the diagonal is raised by more than that."""
    n = 7
    G = 1e12 / n - 1e-3 * (np.eye(n) - 1.0 / n)
    assert np.isnan(invert(G.copy()))
    raised = G + np.diag(1e-7 * np.diagonal(G))
    host, device = G.copy(), torch.as_tensor(G)[None]
    expected = np.linalg.slogdet(raised)[1]
    assert invert_whole(host) == pytest.approx(expected, rel=1e-8)
    assert float(invert_whole(device)) == pytest.approx(expected, rel=1e-8)
    np.testing.assert_allclose(host @ raised, np.eye(n), atol=1e-3)
    np.testing.assert_allclose(device[0].numpy(), host, rtol=1e-4)


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize(
    "criterion", [Reml(), LeaveOneOut(), Folds(np.array_split(np.arange(N), 3))], ids=lambda one: one.name
)
def test_a_device_chooses_the_same(criterion: Reml, single: bool) -> None:
    kernels, Y = data()
    expected = choose_weights(Design.of(kernels), Y, criterion)
    design = Design.of(kernels, single=single).on("cpu")
    choice = choose_weights(design, Y, criterion, targets_in_batch=13)
    np.testing.assert_array_equal(choice.weights, expected.weights)
    np.testing.assert_allclose(choice.coef, expected.coef, atol=1e-8)
    np.testing.assert_allclose(choice.value, expected.value, rtol=1e-4)
    np.testing.assert_allclose(choice.score, expected.score, atol=1e-4)


def test_the_estimator_on_a_device() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(50, 6))
    Y = X[:, :3] + 0.5 * rng.normal(size=(50, 3))
    bank = kw.per_view({"a": slice(0, 3), "b": slice(3, 6)}, kw.linear())
    host = MKLRegressorCV(bank, criterion="reml").fit(X, Y)
    device = MKLRegressorCV(bank, criterion="reml", device="cpu").fit(X, Y)
    np.testing.assert_array_equal(host.weights_, device.weights_)
    np.testing.assert_allclose(host.predict(X), device.predict(X), atol=1e-8)
