"""L-BFGS in coordinates that a sample of the rows makes round."""

import numpy as np
import pytest

import references as ref
from kernelweave import MKLClassifier, MKLRegressor
from kernelweave import kernels as kw
from kernelweave.banks import FeatureMatrix
from kernelweave.losses import Logistic, SquaredHinge
from kernelweave.solvers.primal import LBFGS, SampledHessian, sample_rows
from problems.making import make_case


def rows(n=4000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    signal = X[:, 0] + 0.5 * X[:, 3] * X[:, 4]
    return X, np.where(signal + 0.5 * rng.normal(size=n) > 0, 1, 0)


BANK = kw.per_view({"a": [0, 1, 2], "b": [3, 4, 5]}, kw.random_fourier(2.0, n_features=40))


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "squared"])
def test_few_passes_where_the_problem_is_ill_conditioned(loss, fit_intercept):
    X, y = rows(seed=1)  # rows on which rounding lets the plain run reach the tolerance, too
    options = {
        "loss": loss,
        "norm": 1.5,
        "C": 100.0,
        "fit_intercept": fit_intercept,
        "tol": 1e-6,
        "storage": "lowrank",
    }
    plain, rounded = (
        MKLClassifier(BANK, solver=LBFGS(precondition=pre), **options).fit(X, y) for pre in (False, True)
    )
    assert rounded.certificate_.relative_gap <= 1e-6
    assert rounded.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=2e-6)
    assert rounded.n_passes_ < 0.5 * plain.n_passes_


def test_several_columns_and_regression():
    X, y = rows()
    three = y + (X[:, 1] > 1.0)
    options = {"norm": 2, "C": 10.0, "tol": 1e-6, "storage": "lowrank"}
    found = [
        MKLClassifier(BANK, loss="logistic", solver=LBFGS(precondition=pre), **options).fit(X, three)
        for pre in (False, True)
    ]
    assert found[1].certificate_.primal == pytest.approx(found[0].certificate_.primal, rel=2e-6)
    assert found[1].n_passes_ < 0.7 * found[0].n_passes_
    target = X[:, 0] + X[:, 3] ** 2
    values = [
        MKLRegressor(BANK, solver=LBFGS(precondition=pre), **options).fit(X, target).certificate_.primal
        for pre in (False, True)
    ]
    assert values[1] == pytest.approx(values[0], rel=2e-6)


@pytest.mark.parametrize("intercept", [True, False])
def test_the_factor_is_that_of_the_hessian(intercept):
    rng = np.random.default_rng(0)
    Z, y, f, c = (
        rng.normal(size=(50, 4)),
        np.where(rng.random(50) < 0.5, -1.0, 1.0),
        rng.normal(size=50),
        rng.random(50),
    )
    pull = np.array([1.0, 1.0, 5.0, 5.0])
    sample, root = FeatureMatrix(Z, [0, 2, 4]), np.array([1.0, 1.0, 2.0, 2.0])
    made = SampledHessian(sample, root, y, f, c, Logistic(), pull, intercept)
    p = 1.0 / (1.0 + np.exp(-f))
    A = np.column_stack([Z * root, np.full(50, float(intercept))])
    exact = A.T @ ((c * p * (1 - p))[:, None] * A) + np.diag([*pull, 0.0])
    np.testing.assert_allclose(made.factor @ made.factor.T, exact, rtol=0.05, atol=0.05)
    x, g = rng.normal(size=(5, 2)), rng.normal(size=(5, 2))
    np.testing.assert_allclose(made.back(made.into(x)), x)
    assert np.sum(made.gradient(g) * made.into(x)) == pytest.approx(np.sum(g * x))
    flat = SampledHessian(
        sample, root, y, 100.0 * y, c, SquaredHinge(), pull, intercept
    )  # no sample has any curvature
    np.testing.assert_allclose(np.diag(flat.factor)[:4] ** 2, pull, rtol=1e-6)


def test_rows_are_sampled_only_where_it_pays():
    assert sample_rows(100, 5000) is None
    few = sample_rows(1_000_000, 2048)
    assert few.size == 4 * 2048
    assert np.all(np.diff(few) > 0)
    np.testing.assert_array_equal(sample_rows(500, 10), np.arange(500))


@pytest.mark.parametrize("precondition", [True, False])
def test_it_ends_where_nothing_more_falls(precondition):
    problem = make_case(ref.LOGISTIC, "lp-2", True).problem
    solver = LBFGS(precondition=precondition)
    state = solver.init(problem, None, 1e-9)
    values = []
    while not state.finished and len(values) < 60:
        state = solver.step(problem, state)
        values.append(state.value)
    assert state.finished
    assert problem.certificate(solver.point(state)).relative_gap < 1e-8
    assert len(values) <= 20
