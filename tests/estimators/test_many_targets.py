"""Several targets: one set of weights for all of them in one certified problem, or one problem each."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.preprocessing import StandardScaler

import references as ref
from kernelweave import MeanKernelRidgeRegressor, MKLRegressor
from kernelweave import kernels as kw
from kernelweave.norms import AtMost
from kernelweave.problems import MKLProblem

KERNELS = kw.linear() + kw.gaussian([0.5, 1.0, 2.0])


def problem_data(n: int, t: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    Y = np.sin(2.0 * X) @ rng.normal(size=(3, t)) + 0.3 * rng.normal(size=(n, t)) + np.arange(t) / t
    return X, Y


def stack_of(X: np.ndarray) -> np.ndarray:
    """Kernel matrices of trace n, computed here."""
    squares = np.sum((X[:, None] - X[None]) ** 2, axis=2)
    raw = [X @ X.T, *(np.exp(-squares / (2 * w**2)) for w in (0.5, 1.0, 2.0))]
    return np.array([K * len(K) / np.trace(K) for K in raw])


@pytest.mark.parametrize("t", [3, 40])  # fewer targets than samples, and more: then they are rotated
def test_shared_weights_are_the_conic_solver_s(t: int) -> None:
    X, Y = problem_data(25, t)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, size=25)
    model = MKLRegressor(KERNELS, C=0.7, tol=1e-7).fit(X, Y, sample_weight=weight)
    c = np.repeat(0.7 * weight[:, None], t, axis=1)
    conic = ref.conic_optimum(stack_of(X), Y, c, ref.SQUARED, ref.l1_norm(), True)
    assert conic.relative_gap <= 1e-6
    best = conic.value
    assert model.weights_.shape == (4,)
    assert model.dual_coef_.shape == (25, t)
    assert model.intercept_.shape == (t,)
    assert abs(model.certificate_.primal - best) <= 1e-6 * best
    assert abs(model.certificate_.dual - best) <= 1e-6 * best


def test_the_certificate_is_that_of_the_targets_themselves() -> None:
    X, Y = problem_data(20, 50)
    model = MKLRegressor(KERNELS, C=2.0, tol=1e-5).fit(X, Y)
    stack, beta, d = stack_of(X), model.dual_coef_, model.weights_
    f = np.tensordot(d, stack, axes=1) @ beta
    blocks = d**2 * np.einsum("it,mij,jt->m", beta, stack, beta)
    active = d > 0
    primal = 0.5 * np.sum(np.sqrt(blocks[active])) ** 2 + 2.0 * np.sum((Y - f - model.intercept_) ** 2)
    dual_point = model.certificate_.dual_point
    forms = np.einsum("it,mij,jt->m", dual_point, stack, dual_point)
    dual = np.sum(Y * dual_point) - np.sum(dual_point**2) / 8.0 - 0.5 * forms.max()
    np.testing.assert_allclose(dual_point.sum(axis=0), 0.0, atol=1e-9)
    np.testing.assert_allclose(model.certificate_.primal, primal, rtol=1e-10)
    np.testing.assert_allclose(model.certificate_.dual, dual, rtol=1e-10)
    assert model.status_ == "converged"
    np.testing.assert_allclose(model.predict(X), f + model.intercept_, atol=1e-9)


def test_rotating_the_targets_changes_nothing() -> None:
    X, Y = problem_data(15, 60)
    turn = np.linalg.qr(np.random.default_rng(2).normal(size=(60, 60)))[0]
    one = MKLRegressor(KERNELS, tol=1e-7).fit(X, Y)
    other = MKLRegressor(KERNELS, tol=1e-7).fit(X, Y @ turn)
    np.testing.assert_allclose(one.weights_, other.weights_, atol=1e-3)
    np.testing.assert_allclose(one.predict(X) @ turn, other.predict(X), atol=1e-3)


def test_one_column_is_one_target_and_two_equal_ones_have_its_weights() -> None:
    X, Y = problem_data(30, 2)
    alone = MKLRegressor(KERNELS, tol=1e-7).fit(X, Y[:, 0])
    with pytest.warns(Warning, match="column-vector"):
        column = MKLRegressor(KERNELS, tol=1e-7).fit(X, Y[:, [0]])
    assert column.predict(X).shape == (30,)
    np.testing.assert_allclose(column.weights_, alone.weights_, atol=1e-12)
    # the objective of two equal targets is that of one with kernels and C in the same proportion
    twice = MKLRegressor(KERNELS, tol=1e-7).fit(X, Y[:, [0, 0]])
    np.testing.assert_allclose(twice.predict(X)[:, 0], alone.predict(X), atol=1e-3)
    assert twice.predict(X).shape == (30, 2)
    assert 0.0 < twice.score(X, Y[:, [0, 0]]) <= 1.0


def test_hessian_of_many_columns_is_the_sum_of_the_columns() -> None:
    from kernelweave.banks import build_bank
    from kernelweave.losses import Squared
    from kernelweave.norms import L1

    X, Y = problem_data(20, 5)
    bank = build_bank(list(KERNELS), X)
    d = np.full(4, 0.25)

    def hessian(y: np.ndarray) -> np.ndarray:
        root = (
            MKLProblem(bank, Squared(), L1(), y, 1.5)
            .oracle(d, target=1e-12, curvature=True)
            .curvature.root.dense
        )
        return root.T @ root

    together = hessian(Y)
    np.testing.assert_allclose(together, sum(hessian(Y[:, k]) for k in range(5)), rtol=1e-8)
    problem, step = MKLProblem(bank, Squared(), L1(), Y, 1.5), 1e-5
    for j in range(4):
        e = step * np.eye(4)[j]
        numeric = -0.5 * (problem.oracle(d + e, target=1e-13).quad - problem.oracle(d - e, target=1e-13).quad)
        np.testing.assert_allclose(numeric / (2 * step), together[j], rtol=1e-5)


def test_weights_per_target_with_missing_entries() -> None:
    X, Y = problem_data(30, 3)
    Y[[3, 7], 1] = np.nan
    model = MKLRegressor(KERNELS, tol=1e-6, multi_output="each").fit(X, Y)
    assert model.weights_.shape == (3, 4)
    known = np.isfinite(Y[:, 1])
    there = MKLRegressor(KERNELS, tol=1e-6).fit(X, np.where(known, Y[:, 1], 0.0), sample_weight=known)
    np.testing.assert_allclose(model.predict(X)[:, 1], there.predict(X), atol=1e-8)
    assert len(model.certificates_) == 3


def test_absolute_errors_share_weights_too() -> None:
    X, Y = problem_data(20, 3)
    model = MKLRegressor(KERNELS, loss="epsilon_insensitive", tol=1e-3).fit(X, Y)
    assert model.weights_.shape == (4,)
    assert model.certificate_.relative_gap <= 1e-3


def test_targets_of_one_scale_and_the_mean_kernel() -> None:
    X, Y = problem_data(30, 4)
    scaled = TransformedTargetRegressor(MKLRegressor(KERNELS), transformer=StandardScaler())
    big = Y * np.array([1.0, 100.0, 1.0, 1.0])
    scaled.fit(X, Y)
    before = scaled.regressor_.weights_
    np.testing.assert_allclose(scaled.fit(X, big).regressor_.weights_, before, atol=1e-8)
    assert MeanKernelRidgeRegressor(KERNELS).fit(X, Y).predict(X).shape == Y.shape


def test_bad_targets() -> None:
    X, Y = problem_data(10, 3)
    with pytest.raises(ValueError, match="no targets"):
        MKLRegressor(KERNELS).fit(X, Y[:, :0])
    with pytest.raises(ValueError, match="multi_output must be one of shared, each"):
        MKLRegressor(KERNELS, multi_output="both").fit(X, Y)
    Y[0, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        MKLRegressor(KERNELS).fit(X, Y)
    Y[:, 0] = np.nan
    with pytest.raises(ValueError, match="target 0 has no value"):
        MKLRegressor(KERNELS, multi_output="each").fit(X, Y)
    constant = MKLRegressor(KERNELS).fit(X, np.ones((10, 3)) * [1.0, 2.0, 3.0])
    np.testing.assert_allclose(constant.predict(X), np.ones((10, 3)) * [1.0, 2.0, 3.0], atol=1e-8)


def test_the_best_kernel_of_more_targets_than_samples_is_proved_by_its_cuts() -> None:
    """Targets are rotated, and what proves the bound is rotated back with them: it used to be left behind."""
    rng = np.random.default_rng(0)
    n, C = 12, 100.0
    views = rng.normal(size=(4, n, 3))
    Ks = np.array([Z @ Z.T for Z in views])
    Y = views[1] @ rng.normal(size=(3, n + 5)) + 0.3 * rng.normal(size=(n, n + 5))
    model = MKLRegressor("precomputed", norm=AtMost(1), C=C, fit_intercept=False, normalize=None).fit(
        list(Ks), Y
    )
    values = [0.5 * np.sum(Y * np.linalg.solve(K + np.eye(n) / (2 * C), Y)) for K in Ks]
    assert model.status_ == "converged"
    assert model.certificate_.cuts is not None
    assert model.certificate_.cuts.shape[1:] == Y.shape
    np.testing.assert_array_equal(model.weights_, np.eye(4)[int(np.argmin(values))])
    np.testing.assert_allclose(model.certificate_.primal, min(values), rtol=1e-3)
    assert model.certificate_.dual <= min(values) * (1 + 1e-9)
