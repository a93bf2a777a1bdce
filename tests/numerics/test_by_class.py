"""Systems factorised class by class, against the same systems written out whole."""

from __future__ import annotations

import numpy as np
import pytest

from kernelweave.problems.curvature import ClassFactors, factor_flops

intercepts = pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "no intercept"])


def system(seed, *, copies=1, n=14, k=4):
    """Return a kernel matrix, loose entries, proximal terms and the damping of intercepts."""
    rng = np.random.default_rng(seed)
    X = np.repeat(rng.normal(size=(n // copies, 3)), copies, axis=0)
    K = np.exp(-0.5 * np.sum((X[:, None] - X) ** 2, axis=2))
    loose = rng.random((len(X), k)) < 0.5
    loose[:, 0] |= rng.random(len(X)) < 0.5
    return K, loose, rng.uniform(0.1, 1.0, len(X)), 0.3


def written_out(K, loose, hold, intercept):
    """Return matrix and sums of the entries that can move: those of rows with more than one."""
    able = loose & (loose.sum(axis=1, keepdims=True) > 1)
    y, i = np.nonzero(able.T)
    M = np.where(y[:, None] == y, K[np.ix_(i, i)], 0.0) + np.diag(hold[i])
    rows = (i[:, None] == np.unique(i)).astype(float)
    classes = (y[:, None] == np.arange(loose.shape[1])).astype(float)
    return M, rows, classes if intercept else np.zeros((y.size, 0)), (i, y)


@intercepts
@pytest.mark.parametrize("seed", range(4))
def test_a_step_solves_the_whole_system(seed, intercept):
    K, loose, hold, stay = system(seed)
    M, rows, _, at = written_out(K, loose, hold, intercept)
    g, off = np.random.default_rng(seed).normal(size=M.shape[0]), np.random.default_rng(9).normal(size=4)
    off -= off.mean()  # as column sums of rows that sum to zero do
    v, b = ClassFactors(K, loose, hold, stay, intercept).step(g, off)
    np.testing.assert_allclose(v.sum(axis=1), 0.0, atol=1e-10)
    assert not np.any(v[~loose])
    residual = M @ v[at] - g + (b[at[1]] if intercept else 0.0)
    # what is left is the same in a row: its multiplier
    of_rows = rows @ np.linalg.lstsq(rows, residual, rcond=None)[0]
    np.testing.assert_allclose(residual, of_rows, atol=1e-9)
    if intercept:
        np.testing.assert_allclose(v.sum(axis=0) - stay * b, off, atol=1e-8)
    else:
        assert not np.any(b)


@intercepts
@pytest.mark.parametrize("seed", range(4))
def test_the_root_has_the_projected_inverse(seed, intercept):
    K, loose, hold, _ = system(seed)
    M, rows, classes, _ = written_out(K, loose, hold, intercept)
    N, inverse = np.hstack([rows, classes]), np.linalg.inv(M)
    expected = inverse - inverse @ N @ np.linalg.pinv(N.T @ inverse @ N, rcond=1e-10) @ N.T @ inverse
    factors = ClassFactors(K, loose, hold, 0.0, intercept)
    root = factors.solve(np.eye(M.shape[0]))
    np.testing.assert_allclose(root.T @ root, expected, atol=1e-9)
    np.testing.assert_allclose(factors.solve(np.eye(M.shape[0]), transposed=True), root.T, atol=1e-9)


@intercepts
def test_singular_matrices_get_a_ridge(intercept):
    """Samples that occur three times, and nothing that holds them."""
    K, loose, hold, _ = system(0, copies=3, n=15)
    loose[:] = True
    factors = ClassFactors(K, loose, 0.0 * hold, 0.0, intercept)
    rng = np.random.default_rng(1)
    products = K @ rng.normal(size=(15, 4))
    products -= products.mean(axis=1, keepdims=True)
    v, _ = factors.step(factors.gather(products), np.zeros(4))
    assert np.all(np.isfinite(v))
    # right sides in the range of K are met, up to what is common to a row and, with an intercept, to a class
    left = K @ v - products
    left -= left.mean(axis=1, keepdims=True)
    if intercept:
        left -= left.mean(axis=0)
    np.testing.assert_allclose(left, 0.0, atol=1e-4)


def test_classes_that_no_row_ties_together_move_apart():
    """Two pairs of classes: the intercepts of each are shifted by nothing together."""
    K, _, hold, _ = system(3)
    loose = np.zeros((14, 4), dtype=bool)
    loose[:7, :2] = loose[7:, 2:] = True
    M, rows, classes, _ = written_out(K, loose, hold, True)
    N, inverse = np.hstack([rows, classes]), np.linalg.inv(M)
    expected = inverse - inverse @ N @ np.linalg.pinv(N.T @ inverse @ N, rcond=1e-10) @ N.T @ inverse
    root = ClassFactors(K, loose, hold, 0.0, True).solve(np.eye(M.shape[0]))
    np.testing.assert_allclose(root.T @ root, expected, atol=1e-9)


@intercepts
def test_where_nothing_can_move_there_is_no_step(intercept):
    K, loose, hold, stay = system(0)
    loose[:, 1:] = False
    factors = ClassFactors(K, loose, hold, stay, intercept)
    v, b = factors.step(np.zeros(0), np.array([1.0, -1.0, 0.0, 0.0]))
    assert not np.any(v)
    np.testing.assert_allclose(b, [-1 / stay, 1 / stay, 0.0, 0.0] if intercept else np.zeros(4), rtol=1e-6)
    assert factor_flops(loose) == 0.0


def test_a_matrix_that_is_not_finite_is_no_endless_loop():
    K, loose, hold, stay = system(0)
    K[0, 0] = np.nan
    loose[0] = True
    with pytest.raises(np.linalg.LinAlgError, match="not finite"):
        ClassFactors(K, loose, hold, stay, True)
