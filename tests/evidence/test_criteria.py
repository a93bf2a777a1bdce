"""The three criteria against their definitions: fits without the samples, finite differences, a Gaussian process."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from kernelweave.evidence import Criterion, Design, Folds, LeaveOneOut, Look, Points, Reml, log_likelihood

N, M, T = 24, 3, 4
FOLDS = np.array_split(np.random.default_rng(3).permutation(N), 4)
CRITERIA = [Reml(), LeaveOneOut(), Folds(FOLDS)]


def raw(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    views = [rng.normal(size=(N, p)) + 0.5 for p in (2, 5, 30)]
    Y = np.stack([views[k % 3] @ rng.normal(size=views[k % 3].shape[1]) for k in range(T)], axis=1)
    return (
        np.array([X @ X.T for X in views]),
        Y + rng.normal(size=Y.shape) + 3.0,
        rng.uniform(0.5, 2.0, size=N),
    )


def judged(criterion: Criterion, design: Design, d: np.ndarray, Y: np.ndarray) -> Look:
    return criterion.look(Points(design, d[None], np.array([Y.shape[1]])), design.targets(Y))


def ridge_errors(
    K: np.ndarray, Y: np.ndarray, weight: np.ndarray, intercept: bool, fold: np.ndarray
) -> np.ndarray:
    """Errors at held-out samples of a weighted ridge regression that is fitted without them, by its normal equations."""
    rest = np.setdiff1d(np.arange(N), fold)
    system = K[np.ix_(rest, rest)] + np.diag(1.0 / weight[rest])
    ones = np.ones((rest.size, 1)) if intercept else np.zeros((rest.size, 0))
    whole = np.block([[system, ones], [ones.T, np.zeros((ones.shape[1],) * 2)]])
    solution = np.linalg.solve(whole, np.vstack([Y[rest], np.zeros((ones.shape[1], Y.shape[1]))]))
    b = solution[rest.size :] if intercept else 0.0
    return Y[fold] - K[np.ix_(fold, rest)] @ solution[: rest.size] - b


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("criterion", CRITERIA, ids=lambda one: one.name)
def test_values_are_those_of_brute_force(criterion: Criterion, intercept: bool) -> None:
    kernels, Y, weight = raw()
    design = Design.of(kernels, weight, intercept)
    d = np.array([0.3, 0.0, 2.0])
    look = judged(criterion, design, d, Y)
    K = np.tensordot(d * design.scale, kernels, axes=1)
    folds = FOLDS if criterion.name == "folds" else [np.array([i]) for i in range(N)]
    errors = [np.sqrt(weight[fold])[:, None] * ridge_errors(K, Y, weight, intercept, fold) for fold in folds]
    missed = np.sum(np.concatenate(errors) ** 2, axis=0)
    np.testing.assert_allclose(look.missed, missed, rtol=1e-10)
    if criterion.name != "reml":
        np.testing.assert_allclose(look.value, missed / N, rtol=1e-10)
        return
    # the definition of REML: the likelihood of contrasts, that is of an orthonormal basis off the intercept
    root = np.sqrt(weight)
    basis = np.linalg.qr(np.column_stack([root, np.eye(N)]))[0][:, 1:N] if intercept else np.eye(N)
    G = basis.T @ (np.eye(N) + root[:, None] * K * root) @ basis
    contrasts = basis.T @ (root[:, None] * Y)
    f = len(G)
    q = np.sum(contrasts * np.linalg.solve(G, contrasts), axis=0)
    np.testing.assert_allclose(
        np.log(look.value), (np.linalg.slogdet(G)[1] + f * np.log(q / f)) / f, rtol=1e-10
    )


@pytest.mark.parametrize("criterion", CRITERIA, ids=lambda one: one.name)
def test_gradients_are_those_of_finite_differences(criterion: Criterion) -> None:
    kernels, Y, weight = raw()
    design = Design.of(kernels, weight)
    d = np.array([0.3, 0.7, 2.0])
    look = judged(criterion, design, d, Y)
    for j in range(M):
        step = 1e-3 * np.eye(M)[j]
        values = {k: np.log(judged(criterion, design, d + k * step, Y).value) for k in (-2, -1, 1, 2)}
        numeric = (8.0 * (values[1] - values[-1]) - (values[2] - values[-2])) / (12.0 * 1e-3)
        np.testing.assert_allclose(look.gradient[:, j], numeric, atol=1e-7 * np.abs(look.gradient).max())
    assert np.all(np.linalg.eigvalsh(look.hessian) > -1e-10)


@pytest.mark.parametrize("criterion", CRITERIA, ids=lambda one: one.name)
def test_the_scan_agrees_with_a_look(criterion: Criterion) -> None:
    from kernelweave.evidence.spectrum import Spectrum

    kernels, Y, weight = raw()
    design = Design.of(kernels, weight)
    mixture = np.array([0.5, 0.0, 0.5])
    spectrum = Spectrum(design, mixture, design.targets(Y))
    np.testing.assert_allclose(
        criterion.scan(spectrum, np.array([3.0]))[0],
        judged(criterion, design, 3.0 * mixture, Y).value,
        rtol=1e-10,
    )


def test_likelihood_is_that_of_a_gaussian_process() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), rng.normal(size=30)
    K = RBF(1.3)(X)
    design = Design.of(K[None], intercept=False)
    d = np.array([1.7])
    G = np.eye(30) + d[0] * K
    noise = y @ np.linalg.solve(G, y) / 30  # the variance at which the likelihood is largest
    process = GaussianProcessRegressor(
        ConstantKernel(noise * d[0]) * RBF(1.3) + WhiteKernel(noise), optimizer=None, alpha=0.0
    ).fit(X, y)
    np.testing.assert_allclose(
        log_likelihood(design, d, y[:, None])[0], process.log_marginal_likelihood_value_, rtol=1e-10
    )


def test_kernels_that_vanish_have_no_scale() -> None:
    kernels, _, _ = raw()
    design = Design.of(np.concatenate([kernels[:1], np.ones((1, N, N)), np.zeros((1, N, N))]))
    assert design.scale[0] > 0
    assert not design.scale[1:].any()
    np.testing.assert_allclose(np.trace(design.kernels[0]), N)


def test_leave_one_out_sees_only_the_twins_of_a_row() -> None:
    """A kernel of rank one per group: the error of a row is its distance from the mean of the others of its group."""
    groups = np.repeat(np.arange(6), 4)
    K = (groups[:, None] == groups).astype(float)
    y = np.random.default_rng(0).normal(size=N)
    design = Design.of(K[None], intercept=False)
    for d in (0.5, 1e6):
        look = judged(LeaveOneOut(), design, np.array([d]), y[:, None])
        others = np.array([y[groups == groups[i]].sum() - y[i] for i in range(N)])
        np.testing.assert_allclose(look.missed[0], np.sum((y - others * d / (1 + 3 * d)) ** 2), rtol=1e-8)
    whole = Folds([np.flatnonzero(groups == g) for g in range(6)])
    np.testing.assert_allclose(judged(whole, design, np.array([1e6]), y[:, None]).missed[0], y @ y, rtol=1e-6)
