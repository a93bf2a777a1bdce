"""The SMO engine against libsvm, against a conic solver, and against the optimality conditions themselves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.svm import SVC, SVR

from kernelweave._numerics.smo import solve_box_qp, solve_few

from .smo_problems import CASES, case, check_solution, gram, hinge_box, objective, sample

cp = pytest.importorskip("cvxpy")


def conic(K, linear, lower, upper, ridge, kink, equality):
    """Optimal value by an interior point method that shares no code with ours."""
    n = linear.size
    beta = cp.Variable(n)
    root = np.linalg.cholesky(K + 1e-13 * np.trace(K) * np.eye(n))
    value = (
        linear @ beta
        - kink @ cp.abs(beta)
        - 0.5 * cp.sum_squares(root.T @ beta)
        - 0.5 * cp.sum_squares(cp.multiply(np.sqrt(ridge), beta))
    )
    above, below = np.isfinite(lower), np.isfinite(upper)
    constraints = [beta[above] >= lower[above]] if above.any() else []
    constraints += [beta[below] <= upper[below]] if below.any() else []
    constraints += [cp.sum(beta) == 0.0] if equality else []
    problem = cp.Problem(cp.Maximize(value), constraints)
    return problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)


@pytest.mark.parametrize("kind", [0.01, 0.2, 3.0, "linear", "mixture"])
@pytest.mark.parametrize("c", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_agrees_with_libsvm_classification(kind, c, weighted):
    x, y = sample(250)
    K = gram(x, kind)
    weights = np.random.default_rng(1).uniform(0.2, 2.0, y.size) if weighted else np.ones(y.size)
    lower, upper = hinge_box(y, c * weights)
    fit = solve_box_qp(K, y, lower, upper, tol=1e-6)
    check_solution(fit, K, y, lower, upper, tol=1e-6)

    libsvm = SVC(C=c, kernel="precomputed", tol=1e-6).fit(K, y, sample_weight=weights)
    beta = np.zeros(y.size)
    beta[libsvm.support_] = libsvm.dual_coef_[0]
    assert objective(K, fit.beta, y) == pytest.approx(objective(K, beta, y), rel=1e-6)
    # Where no variable is free, the optimal intercepts are an interval and any of them will do.
    if np.any((fit.beta > lower + 1e-9) & (fit.beta < upper - 1e-9)):
        decisions = libsvm.decision_function(K)
        np.testing.assert_allclose(
            fit.product + fit.intercept, decisions, atol=1e-4 * (1 + np.abs(decisions).max())
        )


@pytest.mark.parametrize("kind", [0.05, 1.0, "linear"])
@pytest.mark.parametrize(("c", "epsilon"), [(0.1, 0.1), (1.0, 0.5), (50.0, 0.01)])
def test_agrees_with_libsvm_regression(kind, c, epsilon):
    x, _ = sample(200)
    target = np.sin(x[:, 0]) + 0.3 * x[:, 1] + 0.1 * np.random.default_rng(2).standard_normal(200)
    K = gram(x, kind)
    fit = solve_box_qp(K, target, -c, c, kink=epsilon, tol=1e-6)
    check_solution(fit, K, target, np.full(200, -c), np.full(200, c), kink=epsilon, tol=1e-6)

    libsvm = SVR(C=c, epsilon=epsilon, kernel="precomputed", tol=1e-6).fit(K, target)
    beta = np.zeros(200)
    beta[libsvm.support_] = libsvm.dual_coef_[0]
    best = objective(K, beta, target, kink=epsilon)
    assert objective(K, fit.beta, target, kink=epsilon) == pytest.approx(best, rel=1e-6, abs=1e-8)
    np.testing.assert_allclose(fit.product + fit.intercept, libsvm.predict(K), atol=1e-4)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("equality", [False, True])
@pytest.mark.parametrize("kind", [0.3, "linear"])
def test_agrees_with_a_conic_solver(name, equality, kind):
    x, linear, lower, upper, ridge, kink = case(name, 30, 3.0, seed=4)
    K = gram(x, kind)
    fit = solve_box_qp(K, linear, lower, upper, ridge=ridge, kink=kink, equality=equality, tol=1e-8)
    check_solution(fit, K, linear, lower, upper, ridge, kink, equality, tol=1e-8)
    best = conic(K, linear, lower, upper, ridge, kink, equality)
    assert objective(K, fit.beta, linear, ridge, kink) == pytest.approx(best, rel=1e-6, abs=1e-8)
    assert fit.intercept == 0.0 or equality


@pytest.mark.parametrize("n", [2, 30, 90, 130])
@pytest.mark.parametrize("size", [1.0, 1e2, 1e4])
@pytest.mark.parametrize("kind", [0.3, "linear"])
def test_few_variables_agree_with_a_conic_solver(n, kind, size):
    # the larger the matrix, the more steps: of 30 and 90 variables, more than are taken without the engine
    x, _ = sample(n)
    K, origin = size * gram(x, kind), np.full(n, 1.0 / n)
    linear, lower, upper = np.random.default_rng(n).normal(size=n), -origin, 1.0 - origin
    beta = solve_few(K, linear, lower, upper, 1e-10, 200_000)
    assert np.all((lower <= beta) & (beta <= upper))
    assert abs(beta.sum()) <= 1e-12
    best = conic(K, linear, lower, upper, np.zeros(n), np.zeros(n), True)
    assert objective(K, beta, linear) == pytest.approx(best, rel=1e-7, abs=1e-9)


@settings(max_examples=120)
@given(
    n=st.integers(1, 60),
    rank=st.integers(1, 6),
    name=st.sampled_from(sorted(CASES)),
    log_c=st.floats(-3.0, 5.0),
    log_width=st.floats(-3.0, 2.0),
    linear_kernel=st.booleans(),
    duplicates=st.booleans(),
    zero_weights=st.booleans(),
    equality=st.booleans(),
    single=st.booleans(),
    seed=st.integers(0, 2**16),
)
def test_optimality_conditions_hold(
    n, rank, name, log_c, log_width, linear_kernel, duplicates, zero_weights, equality, single, seed
):
    x, linear, lower, upper, ridge, kink = case(name, max(n, 2), 10.0**log_c, seed)
    x, linear, lower, upper, ridge, kink = (part[:n] for part in (x, linear, lower, upper, ridge, kink))
    rng = np.random.default_rng(seed)
    if duplicates:
        x[rng.random(n) < 0.4] = x[0]
    if zero_weights:
        gone = rng.random(n) < 0.3
        lower, upper = np.where(gone, 0.0, lower), np.where(gone, 0.0, upper)
    x = x[:, : min(rank, 5)]
    K = gram(x, "linear") if linear_kernel else gram(x, 10.0**log_width)
    K = K.astype(np.float32) if single else K
    fit = solve_box_qp(K, linear, lower, upper, ridge=ridge, kink=kink, equality=equality)
    check_solution(fit, K, linear, lower, upper, ridge, kink, equality)
    if zero_weights:
        assert np.all(fit.beta[gone] == 0.0)


@pytest.mark.parametrize("equality", [False, True])
@pytest.mark.parametrize("name", ["hinge", "insensitive", "squared hinge"])
def test_warm_start_reaches_the_same_objective_sooner(name, equality):
    x, linear, lower, upper, ridge, kink = case(name, 300, 10.0, seed=5)
    terms = {"ridge": ridge, "kink": kink, "equality": equality, "tol": 1e-6}
    first = solve_box_qp(gram(x, 0.2), linear, lower, upper, **terms)
    K = 0.98 * gram(x, 0.2) + 0.02 * gram(x, 1.0)
    cold = solve_box_qp(K, linear, lower, upper, **terms)
    warm = solve_box_qp(K, linear, lower, upper, beta=first.beta, **terms)
    told = solve_box_qp(K, linear, lower, upper, beta=first.beta, product=K @ first.beta, **terms)
    for fit in (warm, told):
        check_solution(fit, K, linear, lower, upper, ridge, kink, equality, tol=1e-6)
        reference = objective(K, cold.beta, linear, ridge, kink)
        assert objective(K, fit.beta, linear, ridge, kink) == pytest.approx(reference, rel=1e-7)
    # How much sooner shows at the tolerance the engine is mostly used with.
    rough = terms | {"tol": 1e-3}
    started = solve_box_qp(K, linear, lower, upper, beta=first.beta, **rough)
    assert started.iterations < 0.8 * solve_box_qp(K, linear, lower, upper, **rough).iterations
    again = solve_box_qp(K, linear, lower, upper, beta=cold.beta, product=cold.product, **terms)
    assert again.iterations == 0
    np.testing.assert_array_equal(again.beta, cold.beta)


@pytest.mark.parametrize("equality", [False, True])
def test_infeasible_warm_start_is_repaired(equality):
    x, y = sample(120)
    K = gram(x, 0.5)
    lower, upper = hinge_box(y, np.full(y.size, 2.0))
    start = np.random.default_rng(3).standard_normal(y.size) * 50.0
    cold = solve_box_qp(K, y, lower, upper, equality=equality, tol=1e-6)
    for beta in (start, np.full(y.size, np.nan), np.full(y.size, 1e30)):
        fit = solve_box_qp(K, y, lower, upper, equality=equality, tol=1e-6, beta=beta, product=K @ beta)
        check_solution(fit, K, y, lower, upper, equality=equality, tol=1e-6)
        assert objective(K, fit.beta, y) == pytest.approx(objective(K, cold.beta, y), rel=1e-8)
