"""l1 on features that are swept: streamed or on a device, to the optimum that single blocks give."""

from __future__ import annotations

import numpy as np
import pytest

from kernelweave import MKLClassifier, MKLRegressor
from kernelweave import kernels as kw
from kernelweave.banks import LowRankBank
from kernelweave.losses import make_loss
from kernelweave.norms import make_norm
from kernelweave.problems import MKLProblem
from kernelweave.solvers import Stop, make_solver, solve
from kernelweave.solvers.block_descent._features import BlockFeatures
from kernelweave.solvers.block_descent._iterate import Iterate
from kernelweave.solvers.block_descent._loss import LossModel
from kernelweave.solvers.block_descent._swept import SweptFeatures, proximal_steps

RNG = np.random.default_rng(0)
X = RNG.normal(size=(250, 12))
SIGNAL = np.sin(X[:, 0]) + X[:, 4] * X[:, 5] + 0.3 * RNG.normal(size=250)
BANK = kw.from_groups(
    {f"g{j}": [3 * j, 3 * j + 1, 3 * j + 2] for j in range(4)}, kw.random_fourier(1.5, n_features=16)
)


class Swept(LowRankBank):
    """Features in memory that are handed out in sweeps alone."""

    has_blocks = False

    def block_features(self, j):
        raise AssertionError("a single block was asked for")


def problem(bank=Swept, loss="logistic", norm="l1", C=1.0):
    Z = np.hstack([RNG.normal(size=(120, 1)), X[:120]])
    y = SIGNAL[:120] if loss == "squared" else np.sign(SIGNAL[:120])
    return MKLProblem(bank(Z, [0, 3, 4, 9, 13]), make_loss(loss), make_norm(norm), y, C)


@pytest.mark.parametrize("loss", ["squared", "logistic", "squared_hinge", "huber_hinge"])
def test_same_optimum_as_block_by_block(loss):
    swept, blocks = problem(loss=loss), problem(LowRankBank, loss=loss)
    swept.bank.features = blocks.bank.features
    solutions = [
        solve(p, make_solver("block_descent", p.loss, p.norm), Stop(tol=1e-7)) for p in (swept, blocks)
    ]
    assert all(solution.certificate.relative_gap <= 1e-7 for solution in solutions)
    values = [solution.certificate.primal for solution in solutions]
    assert values[0] == pytest.approx(values[1], rel=2e-7)


def test_products_are_those_of_single_blocks():
    swept, blocks = problem(), problem(LowRankBank)
    swept.bank.features = blocks.bank.features
    one, other = SweptFeatures(swept), BlockFeatures(blocks)
    active = np.array([0, 2])
    w = RNG.normal(size=(13, 1))
    w[3:4], w[9:] = 0.0, 0.0
    a = RNG.normal(size=(120, 1))
    np.testing.assert_allclose(one.forward_of(w, active), other.forward_of(w, active))
    np.testing.assert_allclose(one.adjoint_of(a, active), other.adjoint_of(a, active))
    np.testing.assert_allclose(one.forward_each(w, active), other.forward_each(w, active))
    # the largest curvature, bounded from near above
    Z = np.hstack([blocks.bank.features, np.ones((120, 1))])
    largest = np.linalg.eigvalsh(0.25 * Z.T @ Z)[-1]
    assert largest * 0.9 <= one.steepest(swept, np.full(120, 0.25)) <= 1.06 * largest


def test_accelerated_steps_go_down_without_newton():
    p = problem()
    features = SweptFeatures(p)
    at = Iterate(p, features, LossModel(p))
    start = at.objective
    steepest = features.steepest(p, at.loss.steepest_curvature())
    best = solve(p, make_solver("block_descent", p.loss, p.norm), Stop(tol=1e-8)).certificate.primal
    left = [start - best]
    for _ in range(4):
        proximal_steps(at, features, steepest, 25)
        left.append(at.objective - best)
    assert left[-1] <= 1e-3 * left[0]
    assert left == sorted(left, reverse=True)


@pytest.mark.parametrize(
    "where", [{"storage": "stream"}, {"device": "cpu"}, {"device": "cpu", "dtype": "float16"}]
)
@pytest.mark.parametrize("regression", [False, True])
def test_estimators_choose_it_for_l1(where, regression):
    if "device" in where:
        pytest.importorskip("torch")
    if regression:
        estimator, y = MKLRegressor(BANK, loss="squared", C=0.5), SIGNAL
    else:
        estimator, y = MKLClassifier(BANK, loss="logistic", C=0.5), SIGNAL > 0
    fitted = estimator.set_params(**where).fit(X, y)
    alone = type(estimator)(BANK, loss=estimator.loss, C=0.5, storage="lowrank", solver="block_descent").fit(
        X, y
    )
    assert fitted.solver_ == "block_descent"
    assert fitted.certificate_.relative_gap <= 1e-3
    assert fitted.certificate_.primal == pytest.approx(alone.certificate_.primal, rel=2e-3)
    assert fitted.weights_ == pytest.approx(alone.weights_, abs=0.05)


def test_several_classes_on_streamed_features():
    y = np.digitize(SIGNAL, [-0.5, 0.5])
    fitted = MKLClassifier(BANK, loss="logistic", C=0.5, storage="stream").fit(X, y)
    alone = MKLClassifier(BANK, loss="logistic", C=0.5, storage="lowrank", solver="block_descent").fit(X, y)
    assert fitted.certificate_.relative_gap <= 1e-3
    assert fitted.certificate_.primal == pytest.approx(alone.certificate_.primal, rel=2e-3)
