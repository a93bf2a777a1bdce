"""The three criteria against their definitions: fits without the samples, finite differences, a Gaussian process."""

from __future__ import annotations

from fractions import Fraction

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
    from kernelweave.evidence.criteria import Spectrum

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


# ---- sample weights that differ by powers of ten -------------------------------------------------------------------


def exact_solution(A: list[list[Fraction]], B: list[list[Fraction]]) -> tuple[list[list[Fraction]], Fraction]:
    """Solve ``A X = B`` of rational numbers by elimination, and return the determinant of A as well."""
    n, rows, determinant = len(A), [[*a, *b] for a, b in zip(A, B, strict=True)], Fraction(1)
    for j in range(n):
        pivot = next(i for i in range(j, n) if rows[i][j] != 0)
        if pivot != j:
            rows[j], rows[pivot], determinant = rows[pivot], rows[j], -determinant
        determinant *= rows[j][j]
        rows[j] = [value / rows[j][j] for value in rows[j]]
        for i in range(n):
            if i != j and rows[i][j] != 0:
                factor = rows[i][j]
                rows[i] = [a - factor * b for a, b in zip(rows[i], rows[j], strict=True)]
    return [row[n:] for row in rows], determinant


def exact_system(K: np.ndarray, weight: np.ndarray, rows: np.ndarray) -> list[list[Fraction]]:
    """Return ``[[K + 1/w, 1], [1', 0]]`` on some rows."""
    made = [[Fraction(float(K[i, j])) for j in rows] + [Fraction(1)] for i in rows]
    for place, i in enumerate(rows):
        made[place][place] += 1 / Fraction(float(weight[i]))
    return [*made, [Fraction(1)] * len(rows) + [Fraction(0)]]


def exact_value(
    name: str, K: np.ndarray, y: np.ndarray, weight: np.ndarray, folds: list[np.ndarray]
) -> float:
    n = len(y)
    if name == "reml":
        # of the contrasts: |G| is the bordered determinant over the determinant without a kernel, q is y'a
        solved, bordered = exact_solution(
            exact_system(K, weight, np.arange(n)), [[Fraction(float(value))] for value in [*y, 0.0]]
        )
        _, alone = exact_solution(exact_system(0 * K, weight, np.arange(n)), [[Fraction(0)]] * (n + 1))
        q = sum(Fraction(float(value)) * row[0] for value, row in zip(y, solved, strict=False))
        return float(
            np.exp((np.log(float(bordered / alone)) + (n - 1) * np.log(float(q) / (n - 1))) / (n - 1))
        )
    missed = Fraction(0)
    for fold in folds if name == "folds" else [np.array([i]) for i in range(n)]:
        rest = np.setdiff1d(np.arange(n), fold)
        solved, _ = exact_solution(
            exact_system(K, weight, rest), [[Fraction(float(value))] for value in [*y[rest], 0.0]]
        )
        for i in fold:
            f = (
                sum(Fraction(float(K[i, j])) * solved[place][0] for place, j in enumerate(rest))
                + solved[-1][0]
            )
            missed += Fraction(float(weight[i])) * (Fraction(float(y[i])) - f) ** 2
    return float(missed / n)


@pytest.mark.parametrize("heavy", [[1], [2, 5, 6]], ids=["one", "three"])
@pytest.mark.parametrize("factor", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize(
    "criterion", [Reml(), LeaveOneOut(), Folds([[0, 5], [1, 2, 3], [4, 6, 7]])], ids=lambda c: c.name
)
def test_huge_sample_weights_take_no_digits(criterion: Criterion, factor: float, heavy: list[int]) -> None:
    """Values, in either precision and by the scan, are those of rational arithmetic."""
    from kernelweave.evidence.criteria import Spectrum

    rng = np.random.default_rng(0)
    Z = rng.normal(size=(8, 8))
    K, y, weight = (Z @ Z.T)[None] + 1.0, rng.normal(size=8), rng.uniform(0.5, 2.0, size=8)
    weight[heavy] = 1e6
    for single, tolerance in ((False, 1e-9), (True, 1e-4)):
        design = Design.of(K, weight, single=single)
        d = np.array([factor])
        targets = design.targets(y[:, None])
        expected = exact_value(
            criterion.name, float(factor) * design.scale[0] * K[0], y, weight, getattr(criterion, "folds", [])
        )
        points = Points(design, d[None], np.array([1]), single=single and not criterion.precise)
        np.testing.assert_allclose(criterion.look(points, targets).value[0], expected, rtol=tolerance)
        scanned = criterion.scan(Spectrum(design, np.ones(1), targets), d)[0, 0]
        np.testing.assert_allclose(scanned, expected, rtol=1e-7)
