"""The inner problem against scikit-learn's machines, on one explicit kernel."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import SVC, SVR, LinearSVC

import references as ref
from kernelweave.problems import FixedSolution, solve_fixed

N = 60
every_loss = pytest.mark.parametrize("loss", ref.LOSSES, ids=lambda loss: loss.label)
with_and_without = pytest.mark.parametrize("fit_intercept", [True, False], ids=["intercept", "no intercept"])


def gram(n: int = N) -> np.ndarray:
    return ref.kernel_stack(n, 4).mean(axis=0)


def features(K):
    values, vectors = np.linalg.eigh(K)
    return vectors * np.sqrt(np.maximum(values, 0.0))


def solved(K, loss, y, c, fit_intercept, target=1e-9, **options) -> FixedSolution:
    return solve_fixed(K, loss.make(), y, c, fit_intercept, target, **options)


def test_hinge_is_svc():
    K, y = gram(), ref.targets(N, False)
    ours = solved(K, ref.HINGE, y, np.full(N, 2.0), True)
    theirs = SVC(kernel="precomputed", C=2.0, tol=1e-9).fit(K, y)
    np.testing.assert_allclose(ours.decision + ours.intercept, theirs.decision_function(K), atol=1e-5)
    beta = np.zeros(N)
    beta[theirs.support_] = theirs.dual_coef_[0]
    np.testing.assert_allclose(ours.beta, beta, atol=1e-4)
    weighted = np.random.default_rng(0).uniform(0.2, 3.0, size=N)
    ours = solved(K, ref.HINGE, y, 2.0 * weighted, True)
    theirs = SVC(kernel="precomputed", C=2.0, tol=1e-9).fit(K, y, sample_weight=weighted)
    np.testing.assert_allclose(ours.decision + ours.intercept, theirs.decision_function(K), atol=1e-5)


def test_epsilon_insensitive_is_svr():
    K, y = gram(), ref.targets(N, True)
    ours = solved(K, ref.epsilon_insensitive(0.2), y, np.full(N, 1.5), True)
    theirs = SVR(kernel="precomputed", C=1.5, epsilon=0.2, tol=1e-9).fit(K, y)
    np.testing.assert_allclose(ours.decision + ours.intercept, theirs.predict(K), atol=1e-5)


def test_squared_is_kernel_ridge():
    K, y = gram(), ref.targets(N, True)
    ours = solved(K, ref.SQUARED, y, np.full(N, 4.0), False)
    theirs = KernelRidge(kernel="precomputed", alpha=1 / 8.0).fit(K, y)
    np.testing.assert_allclose(ours.decision, theirs.predict(K), atol=1e-7)
    np.testing.assert_allclose(ours.beta, theirs.dual_coef_, atol=1e-6)
    assert ours.intercept == 0.0
    with_intercept = solved(K, ref.SQUARED, y, np.full(N, 4.0), True)
    ridge = Ridge(alpha=1 / 8.0).fit(features(K), y)
    np.testing.assert_allclose(with_intercept.intercept, ridge.intercept_, atol=1e-7)
    np.testing.assert_allclose(
        with_intercept.decision + with_intercept.intercept, ridge.predict(features(K)), atol=1e-6
    )


@with_and_without
def test_logistic_is_logistic_regression(fit_intercept):
    K, y = gram(), ref.targets(N, False)
    weight = np.random.default_rng(1).uniform(0.2, 2.0, size=N)
    ours = solved(K, ref.LOGISTIC, y, 3.0 * weight, fit_intercept)
    theirs = LogisticRegression(C=3.0, fit_intercept=fit_intercept, tol=1e-10, max_iter=5000)
    theirs.fit(features(K), y, sample_weight=weight)
    scores = theirs.decision_function(features(K))
    np.testing.assert_allclose(ours.decision + ours.intercept, scores, atol=1e-4)


def test_squared_hinge_is_linear_svc():
    K, y = gram(), ref.targets(N, False)
    ours = solved(K, ref.SQUARED_HINGE, y, np.full(N, 0.7), False)
    theirs = LinearSVC(C=0.7, fit_intercept=False, tol=1e-10, max_iter=100_000, dual=True).fit(features(K), y)
    np.testing.assert_allclose(ours.decision, theirs.decision_function(features(K)), atol=1e-5)


# ---- what every solution promises ----------------------------------------------------------------------------------


@pytest.mark.pairs
@every_loss
@with_and_without
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("target", [1e-2, 1e-8])
def test_bounds_are_honest_and_reach_the_target(loss, fit_intercept, C, target):
    n = 30
    K, y = gram(n), ref.targets(n, loss.regression)
    c = C * np.random.default_rng(2).choice([0.0, 0.5, 2.0], size=n)
    found = solved(K, loss, y, c, fit_intercept, target)
    assert found.relative_gap <= target
    one = ref.l1_norm()  # of a single kernel
    assert ref.in_dual_set(y, c, found.beta, loss, fit_intercept)
    assert found.dual == pytest.approx(ref.dual_value([K], y, c, found.beta, loss, one), rel=1e-9, abs=1e-12)
    primal = ref.primal_value([K], y, c, found.beta, np.ones(1), loss, one, fit_intercept)
    assert found.primal == pytest.approx(primal, rel=1e-9, abs=1e-12)
    np.testing.assert_allclose(
        found.decision, K @ found.beta, rtol=1e-9, atol=1e-10 * (1 + np.abs(found.beta).sum())
    )


@every_loss
@with_and_without
def test_badly_scaled_matrices(loss, fit_intercept):
    """Weights of a million, and a C that lets every sample be fitted: the target is reached all the same.

    Where the loss has corners, C times the rounding of the products is itself some 1e-5 of the objective.
    """
    n, target = 30, 1e-6 if loss.make().has_curvature else 1e-4
    y = ref.targets(n, loss.regression)
    K = np.tensordot(np.array([1.0, 100.0, 1e4, 1e6]), ref.kernel_stack(n, 4), axes=1)
    found = solved(K, loss, y, np.full(n, 1e4), fit_intercept, target)
    assert found.relative_gap <= target
    started = solved(K / 7.0, loss, y, np.full(n, 1e4), fit_intercept, target, start=found)
    assert started.relative_gap <= target


@every_loss
@with_and_without
def test_columns_are_independent_problems(loss, fit_intercept):
    n = 20
    K, y = gram(n), ref.targets(n, loss.regression, columns=3)
    c = np.random.default_rng(3).uniform(0.1, 2.0, size=y.shape)
    together = solved(K, loss, y, c, fit_intercept, 1e-8)
    alone = [solved(K, loss, y[:, k], c[:, k], fit_intercept, 1e-8) for k in range(3)]
    np.testing.assert_array_equal(together.beta, np.stack([one.beta for one in alone], axis=1))
    np.testing.assert_array_equal(together.decision, np.stack([one.decision for one in alone], axis=1))
    np.testing.assert_array_equal(together.intercept, [one.intercept for one in alone])
    assert together.primal == pytest.approx(sum(one.primal for one in alone))
    assert together.dual == pytest.approx(sum(one.dual for one in alone))


@every_loss
@with_and_without
def test_a_start_at_the_solution_saves_work(loss, fit_intercept):
    n = 40
    K, y = gram(n), ref.targets(n, loss.regression)
    c = np.full(n, 2.0)
    cold = solved(K, loss, y, c, fit_intercept, 1e-8)
    warm = solved(K, loss, y, c, fit_intercept, 1e-8, start=cold, keep_product=True)
    assert warm.relative_gap <= 1e-8
    assert warm.iterations < cold.iterations
    # a start for another kernel is moved, whatever its product was
    other = solved(gram(n) + 0.1 * np.eye(n), loss, y, c, fit_intercept, 1e-8, start=cold)
    fresh = solved(gram(n) + 0.1 * np.eye(n), loss, y, c, fit_intercept, 1e-8)
    assert other.primal == pytest.approx(fresh.primal, rel=1e-7)
    np.testing.assert_allclose(other.decision, (gram(n) + 0.1 * np.eye(n)) @ other.beta, atol=1e-8)


@every_loss
@with_and_without
def test_nothing_to_learn_is_no_trouble(loss, fit_intercept):
    """One class, a constant target, a kernel of zeros: small or no solution, and an answer nevertheless."""
    n = 12
    for K, y in (
        (gram(n), np.ones(n)),
        (np.zeros((n, n)), ref.targets(n, loss.regression)),
        (np.zeros((n, n)), np.ones(n)),
    ):
        found = solved(K, loss, y, np.ones(n), fit_intercept, 1e-6)
        assert np.isfinite(found.primal)
        assert np.all(np.isfinite(found.beta))
        assert found.primal - found.dual <= 1e-6 * max(1.0, abs(found.primal))


def test_inputs_are_left_alone():
    K, y = gram(), ref.targets(N, False)
    c = np.full(N, 2.0)
    for array in (K, y, c):
        array.flags.writeable = False
    for loss in (ref.HINGE, ref.LOGISTIC):
        start = solved(K, loss, y, c, True)
        start.beta.flags.writeable = start.decision.flags.writeable = False
        solved(K, loss, y, c, True, start=start, keep_product=True)


def test_a_loss_that_no_inner_solver_knows():
    from kernelweave.losses import Loss

    class Strange(Loss):
        pass

    with pytest.raises(TypeError, match="neither curvature nor a quadratic dual"):
        solve_fixed(np.eye(3), Strange(), np.ones(3), np.ones(3), False)
