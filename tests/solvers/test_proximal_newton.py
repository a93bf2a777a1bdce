"""Proximal Newton steps: the optimum of block descent from sums over samples alone, wherever the features are."""

import numpy as np
import pytest
from scipy import sparse

from kernelweave import MKLClassifier, MKLRegressor
from kernelweave import kernels as kw
from kernelweave.banks import lowrank
from kernelweave.banks.decide import model_bytes
from kernelweave.exceptions import MemoryBudgetError
from kernelweave.solvers import primal

BANK = [kw.random_fourier(1.5, n_features=30).on([2 * v, 2 * v + 1]) for v in range(6)]


def problem(n=1500, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 12))
    return X, np.where(np.sin(2 * X[:, 0]) + X[:, 3] + 0.5 * rng.normal(size=n) > 0, 1, -1)


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "huber_hinge", "squared"])
@pytest.mark.parametrize("norm", ["l1", 1.5])
def test_reaches_the_optimum_of_block_descent(loss, norm):
    X, y = problem()
    settings = {"loss": loss, "norm": norm, "storage": "lowrank"}
    model = MKLClassifier(BANK, tol=1e-4, solver="proximal_newton", **settings).fit(X, y)
    other = MKLClassifier(BANK, tol=1e-9, solver="block_descent", **settings).fit(X, y)
    assert model.status_ == "converged"
    assert other.certificate_.primal * (1 - 1e-9) <= model.certificate_.primal
    assert model.certificate_.primal <= other.certificate_.primal * (1 + 1.1e-4)
    assert model.certificate_.dual <= other.certificate_.primal * (1 + 1e-9)
    assert model.n_passes_ < 40


def test_streamed_features_under_the_l1_norm_are_chosen_by_auto():
    X, y = problem()
    model = MKLClassifier(BANK, loss="logistic", norm="l1", storage="stream").fit(X, y)
    assert model.solver_ == "proximal_newton"
    assert model.status_ == "converged"
    kept = MKLClassifier(BANK, loss="logistic", norm="l1", storage="lowrank").fit(X, y)
    assert model.certificate_.primal == pytest.approx(kept.certificate_.primal, rel=1e-3)
    assert set(np.flatnonzero(model.weights_ > 0.05)) == set(np.flatnonzero(kept.weights_ > 0.05))


def test_features_on_a_device_under_the_l1_norm():
    pytest.importorskip("torch")
    X, y = problem()
    model = MKLClassifier(BANK, loss="logistic", norm="l1", device="cpu").fit(X, y)
    assert model.solver_ == "proximal_newton"
    assert model.certificate_.relative_gap <= 1e-3
    kept = MKLClassifier(BANK, loss="logistic", norm="l1", storage="lowrank").fit(X, y)
    assert model.certificate_.primal == pytest.approx(kept.certificate_.primal, rel=1e-3)


def test_several_classes_and_weights_share_one_metric():
    X, y = problem()
    labels = y + (X[:, 7] > 1.0) * 5
    weight = np.random.default_rng(1).random(len(y))
    settings = {"loss": "logistic", "norm": "l1", "multi_class": "shared", "storage": "lowrank"}
    model = MKLClassifier(BANK, solver="proximal_newton", tol=1e-3, **settings)
    model.fit(X, labels, sample_weight=weight)
    other = MKLClassifier(BANK, solver="block_descent", tol=1e-5, **settings)
    other.fit(X, labels, sample_weight=weight)
    assert model.certificate_.relative_gap <= 1e-3
    assert model.certificate_.primal == pytest.approx(other.certificate_.primal, rel=1.1e-3)


def test_regression_of_a_sample_of_the_rows():
    """More rows than the curvature is estimated on: the gradient is of all of them, so the optimum is, too."""
    X, _ = problem(9000)
    y = np.sin(2 * X[:, 0]) + 0.3 * np.random.default_rng(2).normal(size=len(X))
    settings = {"norm": "l1", "storage": "lowrank"}
    model = MKLRegressor(BANK, solver="proximal_newton", tol=1e-4, **settings).fit(X, y)
    other = MKLRegressor(BANK, solver="block_descent", tol=1e-6, **settings).fit(X, y)
    assert model.certificate_.primal == pytest.approx(other.certificate_.primal, rel=1.1e-4)


def test_losses_that_are_straight_lines_everywhere_still_make_a_step():
    X, y = problem(300)
    model = MKLClassifier(
        BANK, loss="huber_hinge", norm="l1", C=1e-4, solver="proximal_newton", storage="lowrank"
    )
    assert model.fit(X, y).certificate_.relative_gap <= 1e-3


def test_a_warm_start_is_where_the_last_fit_ended():
    X, y = problem()
    model = MKLClassifier(BANK, loss="logistic", solver="proximal_newton", warm_start=True, tol=1e-5)
    first = model.fit(X, y).n_passes_
    assert model.fit(X, y).n_passes_ < 0.5 * first
    for C in (1.05, 0.7):  # from there to another optimum
        model.set_params(C=C).fit(X, y)
        cold = MKLClassifier(BANK, loss="logistic", solver="proximal_newton", C=C, tol=1e-5).fit(X, y)
        assert model.status_ == "converged"
        assert model.certificate_.primal == pytest.approx(cold.certificate_.primal, rel=2e-5)


def test_a_model_that_has_no_room_for_all_kernels_takes_what_fits(monkeypatch):
    X, y = problem()
    settings = {"C": 0.01, "loss": "squared_hinge", "solver": "proximal_newton", "storage": "lowrank"}
    whole = MKLClassifier(BANK, **settings).fit(X, y)
    most = []
    gram = lowrank.FeatureMatrix.gram
    monkeypatch.setattr(
        lowrank.FeatureMatrix, "gram", lambda self, *args: most.append(args[2].size) or gram(self, *args)
    )
    monkeypatch.setattr(primal, "default_budget", lambda: model_bytes(150))
    narrow = MKLClassifier(BANK, **settings).fit(X, y)
    assert narrow.status_ == "converged"
    assert max(most) <= 150 < 6 * 30
    assert narrow.certificate_.primal == pytest.approx(whole.certificate_.primal, rel=2e-4)


def test_millions_of_columns_are_refused_before_any_work():
    rng = np.random.default_rng(0)
    columns = rng.integers(0, 3_000_000, 20_000)
    X = sparse.csr_matrix(
        (rng.normal(size=20_000), columns, np.arange(0, 20_001, 50)), shape=(400, 3_000_000)
    )
    model = MKLClassifier("linear", loss="logistic", norm=1.5, solver="proximal_newton", storage="lowrank")
    with pytest.raises(MemoryBudgetError, match=r"solver='proximal_newton' makes.*Ways out: solver='lbfgs'"):
        model.fit(X, np.arange(400) % 2)


@pytest.mark.parametrize("density", [0.01, 0.5])
def test_gram_matrices_come_in_pieces_with_the_clock_between_them(density, monkeypatch):
    Z = sparse.random(300, 40, density, format="csr", random_state=0)
    charge, columns = np.linspace(0.1, 2.0, 300), np.array([3, 5, 20])
    A = np.hstack([Z.toarray()[:, columns], np.ones((300, 1))])
    monkeypatch.setattr(lowrank, "GRAM_ENTRIES", 280)  # 70 rows of four
    for features in (Z, Z.toarray()):
        found = lowrank.weighted_gram(features, charge, columns)
        np.testing.assert_allclose(found, A.T @ (charge[:, None] * A), rtol=1e-12, atol=1e-12)
