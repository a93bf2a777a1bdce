"""The inner problem of the multinomial loss: against a conic solver, scikit-learn and finite differences."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

import references as ref
from kernelweave.banks import build_bank
from kernelweave.losses import Multinomial
from kernelweave.norms import make_norm
from kernelweave.problems import MKLProblem, solve_fixed
from kernelweave.solvers import Stop, choose_solver, fitting_solvers, make_solver, solve

with_and_without = pytest.mark.parametrize("fit_intercept", [True, False], ids=["intercept", "no intercept"])


def table(own: np.ndarray, k: int) -> np.ndarray:
    return np.where(np.arange(k) == own[:, None], 1.0, -1.0)


@with_and_without
@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
def test_on_explicit_features_it_is_the_regression_of_scikit_learn(C, fit_intercept):
    X, own = load_iris(return_X_y=True)
    X = X - X.mean(axis=0)
    found = solve_fixed(X @ X.T, Multinomial(), table(own, 3), np.full((150, 3), C), fit_intercept, 1e-9)
    other = LogisticRegression(
        C=C, fit_intercept=fit_intercept, tol=1e-10, max_iter=10_000, solver="newton-cg"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it does not get to the tolerance everywhere
        other.fit(X, own)
    p = other.predict_proba(X)[np.arange(150), own]
    value = 0.5 * np.sum(other.coef_**2) - C * np.sum(np.log(p))
    assert found.primal == pytest.approx(value, rel=1e-6)
    assert found.primal <= value * (1 + 1e-8)


@with_and_without
@pytest.mark.parametrize("seed", range(3))
def test_optimum_of_a_conic_solver(seed, fit_intercept):
    rng = np.random.default_rng(seed)
    n, k = 16, 3
    own = np.concatenate([np.arange(k), rng.integers(0, k, n - k)])
    root = rng.normal(size=(n, 5))
    c = rng.choice([0.0, 0.5, 4.0], n)
    c[:k] = 1.0
    y, wide = table(own, k), np.repeat(c[:, None], k, axis=1)
    optimum = ref.joint_optimum([root], y, wide, ref.SOFTMAX, ref.sum_norm(), fit_intercept)
    K = root @ root.T
    found = solve_fixed(K, Multinomial(), y, wide, fit_intercept, 1e-9)
    assert found.primal == pytest.approx(optimum, rel=1e-6)
    primal, dual = ref.bounds_of_one_kernel(K, y, wide, found.beta, found.intercept, ref.SOFTMAX)
    assert primal - dual <= 2e-9 * abs(primal)
    # probabilities at the optimum are the coefficients
    p = np.exp(found.decision + found.intercept)
    p = p / p.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found.beta, c[:, None] * (np.eye(k)[own] - p), atol=1e-3)


@pytest.mark.parametrize("C", [1e-6, 1e4, 1e6])
@pytest.mark.parametrize("seed", range(3))
def test_far_ends_of_the_scale(C, seed):
    rng = np.random.default_rng(seed)
    own = np.concatenate([np.arange(3), np.zeros(20, dtype=int)])
    X = rng.normal(size=(23, 2))
    X[5:9] = X[0]  # rows that contradict each other
    y, c = table(own, 3), np.full((23, 3), C)
    found = solve_fixed(X @ X.T, Multinomial(), y, c, True, 1e-6)
    assert found.relative_gap <= 1e-6
    assert np.all(np.abs(found.beta.sum(axis=0)) <= 1e-13 * np.abs(found.beta).sum())
    assert np.all(np.abs(found.beta.sum(axis=1)) <= 4e-15 * np.abs(found.beta).sum())


def test_a_kernel_of_zeros_leaves_the_intercepts():
    own = np.array([0, 0, 0, 1, 1, 2])
    found = solve_fixed(np.zeros((6, 6)), Multinomial(), table(own, 3), np.ones((6, 3)), True, 1e-9)
    share = np.exp(found.intercept) / np.exp(found.intercept).sum()
    np.testing.assert_allclose(share, [1 / 2, 1 / 3, 1 / 6], rtol=1e-9)


def problem_of(norm, fit_intercept=True, C=2.0):
    rng = np.random.default_rng(5)
    own = rng.integers(0, 3, 18)
    bank = build_bank(None, ref.kernel_stack(18, 4, seed=2), normalize=None)
    weight = np.ones(18)
    weight[3] = 0.0
    return MKLProblem(bank, Multinomial(), make_norm(norm), table(own, 3), C, weight, fit_intercept)


@with_and_without
def test_second_derivatives_by_differences_of_the_gradient(fit_intercept):
    problem = problem_of("l1", fit_intercept)
    weights = np.array([0.4, 0.1, 0.3, 0.15])
    found = problem.oracle(weights, target=1e-13, curvature=True)
    hessian = found.curvature.root.dense.T @ found.curvature.root.dense
    difference = np.empty((4, 4))
    for j in range(4):
        e = 1e-4 * np.eye(4)[j]
        up, down = (problem.oracle(weights + s * e, target=1e-13).quad for s in (1, -1))
        difference[:, j] = -0.5 * (up - down) / 2e-4
    np.testing.assert_allclose(hessian, difference, rtol=1e-3, atol=1e-4 * np.abs(hessian).max())


@with_and_without
@pytest.mark.parametrize("norm", ["l1", 1.5, "entropy", "uniform"])
def test_solvers_that_fit_agree(norm, fit_intercept):
    problem = problem_of(norm, fit_intercept)
    first = solve(problem, choose_solver(problem.loss, problem.norm, problem.bank), Stop(tol=1e-6))
    assert first.converged
    names = fitting_solvers(problem.loss, problem.norm, fit_intercept)
    assert not {"obscure", "pegasos", "dual_ascent", "svrg", "working_set"} & set(names)
    for name in names:
        if name in ("subgradient", "simplemkl", "silp"):  # slow ones, and of the same oracle
            continue
        other = solve(problem, make_solver(name, problem.loss, problem.norm), Stop(tol=1e-5, max_iter=300))
        assert other.certificate.primal == pytest.approx(first.certificate.primal, rel=1e-4), name


def test_a_solver_without_softmax_says_what_to_do():
    with pytest.raises(ValueError, match="multi_class='shared'"):
        make_solver("obscure", Multinomial(), make_norm(1.5))
