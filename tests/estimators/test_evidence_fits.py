"""Fits by evidence: what was scored is what predicts, bounds hold, limits of time are kept, and nothing is silent."""

from __future__ import annotations

import signal
import warnings

import numpy as np
import pytest
from sklearn.model_selection import KFold

from kernelweave import MKLRegressorCV
from kernelweave import kernels as kw
from kernelweave.banks import as_rows
from kernelweave.exceptions import KernelWeaveConvergenceWarning, KernelWeaveWarning

CRITERIA = ("reml", "loo", "folds")


def draw(seed: int) -> dict:
    """A plain problem: few samples, one or three kernels, with or without centring, scaling and sample weights."""
    rng = np.random.default_rng(seed)
    n = int(rng.choice([9, 12, 30]))
    X = rng.normal(size=(n, 3))
    y = np.sin(X[:, 0]) * rng.choice([1.0, 1e3]) + 0.2 * rng.normal(size=n) + rng.choice([0.0, 10.0, 1e4])
    weight = np.ones(n) if rng.random() < 0.5 else rng.random(n) * (rng.random(n) > 0.2)
    several = bool(rng.integers(2))
    return {
        "X": X,
        "y": y,
        "weight": weight,
        "bank": kw.gaussian([1.0, 2.0]) + kw.linear() if several else kw.linear(),
        "several": several,
        "options": {
            "criterion": str(rng.choice(CRITERIA)),
            "center": bool(rng.random() < 0.3),
            "normalize": [None, "trace"][rng.integers(2)],
            "fit_intercept": bool(rng.random() < 0.8),
        },
    }


def mixed_kernel(problem: dict, weights: np.ndarray) -> np.ndarray:
    """``sum_j d_j K_j`` by definition, centred and scaled as the options say."""
    X, options = problem["X"], problem["options"]
    n = len(X)
    squared = np.sum((X[:, None] - X[None]) ** 2, axis=-1)
    kernels = [np.exp(-squared / 2.0), np.exp(-squared / 8.0)] if problem["several"] else []
    out = np.zeros((n, n))
    for d, K in zip(weights, [*kernels, X @ X.T], strict=True):
        if options["center"]:
            H = np.eye(n) - 1.0 / n
            K = H @ K @ H
        out += d * (K * n / np.trace(K) if options["normalize"] == "trace" else K)
    return out


def ridge(K: np.ndarray, y: np.ndarray, weight: np.ndarray, alpha: float, intercept: bool) -> np.ndarray:
    """Values at all samples of ``min sum_i w_i (y_i - f_i - b)^2 + alpha |f|^2``, which samples without weight miss."""
    used = weight > 0
    n = int(used.sum())
    A = np.zeros((n + 1, n + 1))
    A[:n, :n] = K[np.ix_(used, used)] + alpha * np.diag(1.0 / weight[used])
    A[:n, n] = A[n, :n] = float(intercept)
    A[n, n] = float(not intercept)
    right = np.append(y[used], 0.0)
    solved = np.linalg.solve(A, right)
    solved += np.linalg.solve(A, right - A @ solved)
    return K[:, used] @ solved[:n] + solved[n]


def objective(K, y, weight, C, intercept) -> float:
    """Optimal value of ``1/2 |f|^2 + C sum_i w_i (y_i - f_i - b)^2``, in the coordinates of the eigenvectors."""
    used = weight > 0
    root = np.sqrt(weight[used])
    u = root / np.linalg.norm(root) if intercept else np.zeros_like(root)
    P = np.eye(root.size) - np.outer(u, u)
    # a constant that an intercept takes is taken off first, so that few digits are lost
    target = P @ (root * (y[used] - intercept * np.mean(y[used])))
    values, vectors = np.linalg.eigh(P @ (root[:, None] * K[np.ix_(used, used)] * root) @ P)
    return float(C * np.sum((vectors.T @ target) ** 2 / (1.0 + 2.0 * C * np.maximum(values, 0.0))))


@pytest.mark.parametrize("seed", range(80))
def test_the_model_that_was_scored_is_the_one_that_predicts(seed):
    problem = draw(seed)
    X, y, weight, options = (problem[key] for key in ("X", "y", "weight", "options"))
    model = MKLRegressorCV(problem["bank"], **options).fit(X, y, sample_weight=weight)
    assert model.targets_["relative_gap"].iloc[0] <= 1e-3
    assert model.status_ in ("stationary", "max_steps")
    intercept = options["fit_intercept"]
    if not np.any(model.weights_):
        return
    K = mixed_kernel(problem, model.weights_)
    used, size = weight > 0, np.std(y)
    expected = ridge(K, y, weight, model.alpha_, intercept)
    np.testing.assert_allclose(model.predict(X)[used] / size, expected[used] / size, atol=1e-3)
    best = objective(K, y, weight, model.C_, intercept)
    assert model.certificate_.dual <= best * (1 + 1e-6)
    assert model.certificate_.primal >= best * (1 - 1e-6)
    if options["criterion"] == "reml":
        return
    folds = (
        [test for _, test in KFold(5, shuffle=True, random_state=0).split(X)]
        if options["criterion"] == "folds"
        else np.arange(len(X))[:, None]
    )
    missed = 0.0
    for fold in folds:
        others = weight.copy()
        others[fold] = 0.0
        if np.any(used[fold]):
            values = ridge(K, y, others, model.alpha_, intercept)
            missed += float(np.sum((weight * (y - values) ** 2)[fold]))
    mean = np.average(y, weights=weight) if intercept else 0.0
    score = 1.0 - missed / np.sum(weight * (y - mean) ** 2)
    assert model.scores_ == pytest.approx(score, abs=1e-3 * max(1.0, abs(score)))


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("offset", [0.0, 1e6, 1e8])
@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_bounds_enclose_the_optimum_wherever_the_targets_lie(criterion, offset, size):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    Y = size * (np.sin(X[:, :2]) + 0.2 * rng.normal(size=(30, 2))) + offset * size
    squared = np.sum((X[:, None] - X[None]) ** 2, axis=-1)
    kernels = np.array([np.exp(-squared / 2.0), np.exp(-squared / 8.0), X @ X.T])
    for targets in (Y[:, 0], Y):
        model = MKLRegressorCV(
            kw.gaussian([1.0, 2.0]) + kw.linear(), criterion=criterion, normalize=None, center=False
        ).fit(X, targets)
        columns, weights, C = targets.reshape(30, -1), np.atleast_2d(model.weights_), np.atleast_1d(model.C_)
        best = sum(
            objective(np.tensordot(weights[t], kernels, 1), columns[:, t], np.ones(30), C[t], True)
            for t in range(columns.shape[1])
        )
        assert model.certificate_.dual <= best * (1 + 1e-7)
        assert model.certificate_.primal >= best * (1 - 1e-7)
        assert model.certificate_.relative_gap <= 1e-3


@pytest.mark.parametrize("targets", [1, 3])
def test_coefficients_that_are_wrong_are_told(monkeypatch, targets):
    """A gap above the tolerance is a status and a warning, here as in every other estimator."""
    from kernelweave.evidence import choice

    honest = choice.finished
    monkeypatch.setattr(choice, "finished", lambda *arguments: 1.3 * honest(*arguments))
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    y = X[:, 0] if targets == 1 else X[:, :targets] + 0.1 * rng.normal(size=(30, targets))
    label = "" if targets == 1 else "3 of 3 targets: "
    said = f"^{label}the solver's own figures .* relative gap of .* scale the features"
    with pytest.warns(KernelWeaveConvergenceWarning, match=said):
        model = MKLRegressorCV(kw.gaussian(2.0) + kw.linear(), criterion="reml").fit(X, y)
    assert model.status_ == "imprecise"
    assert set(model.targets_["status"]) == {"imprecise"}
    assert np.all(model.targets_["relative_gap"] > 1e-3)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("targets", [1, 4])
def test_the_time_allowed_ends_the_choice(criterion, targets):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 6))
    Y = np.sin(X[:, :4]) + 0.3 * rng.normal(size=(60, 4))
    bank = kw.per_feature(kw.gaussian([0.5, 1.0, 2.0]))
    with pytest.warns(KernelWeaveConvergenceWarning, match="time allowed"):
        model = MKLRegressorCV(bank, criterion=criterion, max_seconds=1e-6).fit(
            X, Y if targets > 1 else Y[:, 0]
        )
    assert model.status_ == "max_seconds"
    assert set(model.targets_["status"]) == {"max_seconds"}
    assert np.all(model.targets_["relative_gap"] <= 1e-3)
    assert np.all(np.isfinite(model.predict(X)))
    # the scan before any step has chosen a scale already
    assert np.all(np.atleast_1d(model.scores_) > -0.1)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_callbacks_and_interrupts_end_the_choice(criterion):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 4))
    Y = np.sin(2 * X[:, :3]) + X[:, 1:] + 0.3 * rng.normal(size=(40, 3))
    bank = kw.per_feature(kw.gaussian([0.5, 2.0])) + kw.linear()
    rows: list[dict] = []

    def stop(row):
        rows.append(row)
        return True

    def interrupt(row):
        signal.raise_signal(signal.SIGINT)

    def raise_interrupt(row):
        raise KeyboardInterrupt

    for callback, status in ((stop, "stopped"), (interrupt, "interrupted"), (raise_interrupt, "interrupted")):
        with pytest.warns(KernelWeaveConvergenceWarning):
            model = MKLRegressorCV(bank, criterion=criterion, callback=callback).fit(X, Y)
        assert model.status_ == status
        assert status in set(model.targets_["status"])
        assert np.all(model.targets_["relative_gap"] <= 1e-3)
    assert len(rows) == 1
    assert set(rows[0]) == {"iteration", "criterion", "targets", "active_kernels"}
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def minus_two_log_likelihood(kernels: np.ndarray, weights: np.ndarray, y: np.ndarray) -> float:
    """-2 log restricted likelihood, variance and intercept profiled out, up to a constant."""
    n = len(y)
    factor = np.linalg.cholesky(np.eye(n) + np.tensordot(weights, kernels, axes=1))
    target, ones = np.linalg.solve(factor, np.column_stack([y, np.ones(n)])).T
    left = target @ target - (target @ ones) ** 2 / (ones @ ones)
    return 2.0 * np.sum(np.log(np.diag(factor))) + np.log(ones @ ones) + (n - 1) * np.log(left / (n - 1))


@pytest.mark.parametrize("seed", range(20))
def test_no_grid_is_more_likely_than_the_weights_by_reml(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.choice([15, 30]))
    X = rng.normal(size=(n, 4))
    y = rng.normal(size=n) + rng.choice([0, 0.4, 1]) * np.sin(2 * X[:, 0]) + rng.choice([0, 0.3]) * X[:, 2]
    narrow, wide = rng.choice([0.5, 1.0, 2.0, 4.0], 2, replace=False)
    squared = np.sum((X[:, None] - X[None]) ** 2, axis=-1)
    linear = bool(rng.integers(2))
    other = X @ X.T if linear else np.exp(-squared / 2.0 / wide**2)
    kernels = np.array([np.exp(-squared / 2.0 / narrow**2), other])
    bank = kw.gaussian(narrow) + (kw.linear() if linear else kw.gaussian(wide))
    model = MKLRegressorCV(bank, criterion="reml", normalize=None, center=False).fit(X, y)
    assert model.status_ in ("stationary", "max_steps")
    found = model.weights_ / model.alpha_ if np.any(model.weights_) else np.zeros(2)
    steps = np.concatenate([[0.0], np.exp(np.arange(-9.0, 9.0, 0.75))])
    grid = min(minus_two_log_likelihood(kernels, np.array([a, b]), y) for a in steps for b in steps)
    assert minus_two_log_likelihood(kernels, found, y) <= grid + 1e-3


def test_a_kernel_whose_digits_are_gone_is_told():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    with pytest.warns(KernelWeaveWarning, match="digits are gone"):
        MKLRegressorCV(kw.linear(), criterion="reml", normalize=None, center=False).fit(X + 1e7, X[:, 0])
    with warnings.catch_warnings():
        warnings.simplefilter("error", KernelWeaveWarning)
        table = np.column_stack([X, np.full(30, 1e7)])  # a constant column has nothing to lose
        MKLRegressorCV(kw.per_feature(kw.linear()), criterion="reml", normalize=None, center=False).fit(
            table, X[:, 0]
        )


@pytest.mark.parametrize("criterion", CRITERIA)
def test_rows_that_are_read_as_needed_have_no_matrices(criterion):
    X, y = np.random.default_rng(0).normal(size=(2, 30, 3))
    model = MKLRegressorCV(kw.linear(), criterion=criterion, center=False)
    with pytest.raises(ValueError, match="need kernels in memory: pass X as an array"):
        model.fit(as_rows(X), y[:, 0])
