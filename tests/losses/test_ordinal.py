"""Ordered classes: the loss with thresholds for all samples together, and the classifier that has it."""

from __future__ import annotations

import itertools
import warnings

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import minimize

import references as ref
from kernelweave import BestKernelClassifier, MKLClassifier, MKLClassifierCV, MKLRegressor, norms
from kernelweave import kernels as kw
from kernelweave.banks import build_bank
from kernelweave.losses import Logistic, Ordinal
from kernelweave.persistence import load, save
from kernelweave.problems import MKLProblem
from kernelweave.solvers import Stop, choose_solver, fitting_solvers, make_solver, solve

LOSS = Ordinal()


def sample(n: int = 30, seed: int = 0, classes: int = 4):
    """Ordered classes of a smooth score, decision values and weights of which some are zero."""
    rng = np.random.default_rng(seed)
    K = ref.kernel_stack(n, 3, seed).mean(axis=0)
    score = np.linalg.cholesky(K + 1e-9 * np.eye(n)) @ rng.normal(size=n) + 0.4 * rng.normal(size=n)
    y = np.searchsorted(np.quantile(score, np.linspace(0, 1, classes + 1)[1:-1]), score).astype(float)
    weight = rng.choice([0.0, 0.5, 1.0, 2.0], n)
    weight[[int(np.flatnonzero(y == k)[0]) for k in range(classes)]] = 1.0
    return y, rng.normal(scale=2.0, size=n), weight


# ---- the loss ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_thresholds_are_the_best_and_in_order(seed):
    y, f, c = sample(seed=seed, classes=2 + seed)
    t = LOSS.thresholds(y, f, c)
    assert np.all(np.diff(t) > 0)

    def charged(t):
        sides = np.where(y[:, None] > np.arange(t.size), 1.0, -1.0)
        return np.sum(c[:, None] * np.logaddexp(0.0, -sides * (f[:, None] - t)))

    found = minimize(charged, np.zeros(t.size), method="BFGS", options={"gtol": 1e-9})
    np.testing.assert_allclose(t, found.x, atol=1e-5)
    assert LOSS.total(y, f, c) == pytest.approx(found.fun, rel=1e-10)
    assert LOSS.total(y, f, c) == pytest.approx(float(ref.ORDINAL.total(y, f, c)), rel=1e-12)
    np.testing.assert_allclose(t, ref.ordinal_thresholds(y, f, c), atol=1e-9)


def test_slopes_and_second_derivatives_by_differences():
    y, f, c = sample(n=15)
    h = 1e-5

    def by_differences(function):
        steps = (h * row for row in np.eye(f.size))
        return np.array([(function(f + step) - function(f - step)) / (2 * h) for step in steps])

    np.testing.assert_allclose(
        LOSS.total_gradient(y, f, c), by_differences(lambda f: LOSS.total(y, f, c)), rtol=1e-6, atol=1e-8
    )
    whole = by_differences(lambda f: LOSS.total_gradient(y, f, c))
    root = LOSS.hessian_root(y, f, c)
    R = np.column_stack([root.times(one) for one in np.eye(root.order.size)])
    np.testing.assert_allclose(R @ R.T, whole[np.ix_(root.order, root.order)], rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(root.transposed(np.eye(root.order.size)), R, atol=1e-12)
    K = ref.kernel_stack(15, 2).sum(axis=0)
    inside = K[np.ix_(root.order, root.order)]
    np.testing.assert_allclose(root.sandwich(K), R.T @ inside @ R, rtol=1e-9, atol=1e-12)
    assert np.linalg.eigvalsh(np.diag(LOSS.total_curvature(y, f, c)) - whole).min() > -1e-6
    assert LOSS.best_intercept(y, f, c) == 0.0


@pytest.mark.parametrize("seed", range(5))
def test_gain_and_total_are_conjugates(seed):
    """Fenchel-Young: a lower bound for every table, and attained by the slopes; nothing outside the dual set."""
    y, f, c = sample(seed=seed, classes=2 + seed % 3)
    rng = np.random.default_rng(seed)
    beta = -LOSS.total_gradient(y, f, c)
    assert LOSS.gain(y, beta, c) == pytest.approx(LOSS.total(y, f, c) + beta @ f, rel=1e-9)
    for _ in range(10):
        other = -LOSS.total_gradient(y, rng.normal(scale=rng.choice([0.1, 1.0, 20.0]), size=y.size), c)
        share = rng.uniform()
        mixed = share * beta + (1 - share) * other
        bound = LOSS.gain(y, mixed, c)
        assert bound >= share * LOSS.gain(y, beta, c) + (1 - share) * LOSS.gain(y, other, c) - 1e-9  # concave
        assert LOSS.total(y, f, c) >= bound - mixed @ f - 1e-9
        assert bound == pytest.approx(float(ref.ordinal_gain(y[c > 0], mixed[c > 0], c[c > 0])), rel=1e-7)
    assert LOSS.gain(y, np.zeros_like(y), c) == 0.0
    far = beta.copy()
    far[int(np.argmax(c))] += 100.0
    assert LOSS.gain(y, far, c) == -np.inf


def test_coefficients_of_no_table_prove_nothing():
    """In the box and of sum zero; but a class between can only gain what the lowest class gives."""
    y, c = np.array([0.0, 0.0, 1.0, 1.0, 1.0, 2.0, 2.0]), np.ones(7)
    beta = np.array([0.0, 0.0, 0.3, -0.3, 0.0, 0.0, 0.0])
    low, high = LOSS.box(y, c)
    assert np.all((beta >= low) & (beta <= high))
    np.testing.assert_array_equal(LOSS.project(y, beta, c, True), beta)
    with np.errstate(all="ignore"):
        assert LOSS.gain(y, beta, c) == -np.inf


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e4])
def test_gain_keeps_its_digits_where_classes_are_far_apart(scale):
    y, _, c = sample(n=20)
    c = scale * np.maximum(c, 0.5)
    f = 30.0 * y + np.linspace(-1, 1, 20)
    beta = -LOSS.total_gradient(y, f, c)
    with np.errstate(all="raise", under="ignore"):
        value = LOSS.gain(y, beta, c)
    assert value > 0
    assert value - beta @ f <= LOSS.total(y, f, c) * (1 + 1e-6)
    assert value - beta @ f == pytest.approx(LOSS.total(y, f, c), rel=1e-4)


def test_two_classes_are_the_logistic_loss():
    y, f, c = sample(classes=2)
    sides = np.where(y > 0, 1.0, -1.0)
    b = Logistic().best_intercept(sides, f, c)
    assert LOSS.thresholds(y, f, c) == pytest.approx([-b], abs=1e-10)
    assert LOSS.total(y, f, c) == pytest.approx(Logistic().total(sides, f + b, c), rel=1e-12)
    beta = -LOSS.total_gradient(y, f, c)
    assert LOSS.gain(y, beta, c) == pytest.approx(Logistic().gain(sides, beta, c), rel=1e-9)


def test_a_class_without_weight_has_no_part():
    y, f, c = sample()
    c = np.where(y == 3, 0.0, c)
    beta = -LOSS.total_gradient(y, f, c)
    few = y < 3
    assert LOSS.total(y, f, c) == pytest.approx(LOSS.total(y[few], f[few], c[few]), rel=1e-9)
    assert LOSS.gain(y, beta, c) == pytest.approx(LOSS.gain(y[few], beta[few], c[few]), rel=1e-9)


# ---- the optimum ---------------------------------------------------------------------------------------------------


NORMS = {
    "l1": lambda t, W: (cp.square(cp.sum(t)) / 2, []),
    "1.5": lambda t, W: (cp.square(cp.pnorm(t, 1.2)) / 2, []),
    "uniform": lambda t, W: (3 * cp.sum_squares(t) / 2, []),
    "grouped": lambda t, W: ref.grouped_norm(1.5, 2.0, "aab").conic(cp, W, t),
}


@pytest.mark.parametrize(("norm", "weighted"), itertools.product(NORMS, [False, True]))
def test_optimum_is_that_of_a_conic_solver(norm, weighted):
    n, C = 25, 2.0
    y, _, weight = sample(n)
    weight = weight if weighted else np.ones(n)
    Ks = ref.kernel_stack(n, 3)
    made = (
        norms.Grouped(1.5, 2.0, ["a", "a", "b"])
        if norm == "grouped"
        else norms.make_norm(float(norm) if norm == "1.5" else norm)
    )
    problem = MKLProblem(build_bank(None, Ks, normalize=None), LOSS, made, y, C, weight)
    found = solve(problem, choose_solver(LOSS, problem.norm, problem.bank), Stop(tol=1e-8))
    assert found.converged
    Z = [ref.explicit_features(K) for K in Ks]
    W, t = [cp.Variable(z.shape[1]) for z in Z], cp.Variable(3)
    f = sum(z @ w for z, w in zip(Z, W, strict=True))
    regulariser, limits = NORMS[norm](cp.hstack([cp.norm(w) for w in W]), W)
    charge = 0
    for k in range(3):
        side = np.where(y > k, 1.0, -1.0)
        charge = charge + (C * weight) @ cp.logistic(-cp.multiply(side, f - t[k]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        best = cp.Problem(cp.Minimize(regulariser + charge), limits).solve(
            solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10
        )
    assert found.certificate.primal == pytest.approx(best, rel=1e-6)
    assert found.certificate.dual == pytest.approx(best, rel=1e-6)
    thresholds = LOSS.thresholds(
        y, problem.bank.mix_product(found.point.weights, found.point.beta), problem.c
    )
    np.testing.assert_allclose(np.diff(thresholds), np.diff(t.value), atol=1e-3)


@pytest.mark.parametrize("solver", fitting_solvers(LOSS, norms.make_norm("l1")))
def test_every_solver_that_serves_it(solver):
    y, _, weight = sample(20)
    problem = MKLProblem(
        build_bank(None, ref.kernel_stack(20, 3), normalize=None), LOSS, norms.make_norm("l1"), y, 1.0, weight
    )
    newton = solve(problem, make_solver("newton", LOSS, problem.norm), Stop(tol=1e-7)).certificate
    other = solve(problem, make_solver(solver, LOSS, problem.norm), Stop(tol=1e-4))
    assert other.converged
    assert other.certificate.primal == pytest.approx(newton.primal, rel=2e-4)
    assert other.certificate.dual <= newton.primal * (1 + 1e-9)


# ---- the classifier ------------------------------------------------------------------------------------------------


BANK = kw.gaussian([1.0, 3.0]) + kw.linear()
RNG = np.random.default_rng(5)
X = RNG.normal(size=(120, 3))
SCORE = 2 * X[:, 0] + np.sin(2 * X[:, 1]) + 0.5 * RNG.normal(size=120)
GRADES = np.array(["1 low", "2 middle", "3 high", "4 top"])[np.searchsorted([-1.5, 0.5, 2.0], SCORE)]


def test_probabilities_are_those_of_the_thresholds():
    clf = MKLClassifier(BANK, loss="ordinal").fit(X, GRADES)
    assert clf.status_ == "converged"
    assert isinstance(clf.loss_, Ordinal)
    f = clf._decision(X)
    above = 1 / (1 + np.exp(clf.thresholds_[None, :] - f[:, None]))
    expected = np.column_stack(
        [1 - above[:, 0], above[:, 0] - above[:, 1], above[:, 1] - above[:, 2], above[:, 2]]
    )
    np.testing.assert_allclose(clf.predict_proba(X), expected, atol=1e-12)
    np.testing.assert_allclose(np.exp(clf.decision_function(X)), expected, atol=1e-12)
    np.testing.assert_array_equal(clf.predict(X), clf.classes_[np.argmax(expected, axis=1)])
    # with an intercept each, the shares of samples above the thresholds are those of the probabilities
    shares = np.mean(np.arange(4)[np.searchsorted(clf.classes_, GRADES)][:, None] > np.arange(3), axis=0)
    np.testing.assert_allclose(above.mean(axis=0), shares, atol=1e-6)
    assert clf.score(X, GRADES) > 0.7
    assert np.all(np.diff(clf.thresholds_) > 0)


def test_order_is_worth_something_where_the_score_is_one():
    """Few samples of many classes: steps that are off by less than those of a multinomial fit."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(400, 5))
    grades = np.clip(np.round(2 * Z[:, 0] + 0.5 * rng.normal(size=400)), -3, 3)
    ordered = MKLClassifier(BANK, loss="ordinal", C=1.0).fit(Z[:80], grades[:80])
    several = MKLClassifier(BANK, loss="logistic", C=1.0).fit(Z[:80], grades[:80])
    off, other = (np.mean(np.abs(clf.predict(Z[80:]) - grades[80:])) for clf in (ordered, several))
    assert off < other
    numbers = MKLRegressor(BANK, C=1.0).fit(Z[:80], grades[:80]).predict(Z[80:])
    assert off < 1.1 * np.mean(np.abs(np.clip(np.round(numbers), -3, 3) - grades[80:]))


def test_a_second_fit_forgets_the_thresholds():
    clf = MKLClassifier(BANK, loss="ordinal").fit(X, GRADES)
    clf.set_params(loss="hinge").fit(X, GRADES)
    assert not hasattr(clf, "thresholds_")
    two = MKLClassifier(BANK, loss="ordinal").fit(X, SCORE > 0)
    one = MKLClassifier(BANK, loss="logistic").fit(X, SCORE > 0)
    np.testing.assert_array_equal(two.decision_function(X), one.decision_function(X))


def test_cross_validation_tells_orders_apart():
    search = MKLClassifierCV(BANK, loss="ordinal", Cs=[0.01, 1.0], cv=3, scoring="neg_mean_absolute_error")
    codes = np.searchsorted(np.unique(GRADES), GRADES)
    search.fit(X, codes)
    assert search.C_ == 1.0
    assert search.best_score_ > -0.5
    plain = MKLClassifierCV(BANK, loss="ordinal", Cs=[1.0], cv=3).fit(X, GRADES)
    assert plain.best_score_ > 0.6
    assert plain.predict_proba(X).shape == (120, 4)


def test_weights_of_samples_and_classes():
    weight = RNG.choice([0.0, 1.0, 2.0], 120)
    repeated = np.repeat(np.arange(120), weight.astype(int))
    # kernels whose scale does not depend on the samples
    weighted = MKLClassifier(BANK, loss="ordinal", normalize=None, tol=1e-8).fit(
        X, GRADES, sample_weight=weight
    )
    copies = MKLClassifier(BANK, loss="ordinal", normalize=None, tol=1e-8).fit(X[repeated], GRADES[repeated])
    np.testing.assert_allclose(weighted.predict_proba(X), copies.predict_proba(X), atol=1e-3)
    balanced = MKLClassifier(BANK, loss="ordinal", class_weight="balanced").fit(X, GRADES)
    assert balanced.certificate_.relative_gap <= 1e-3


def test_saved_and_loaded_again(tmp_path):
    clf = MKLClassifier(BANK, loss="ordinal").fit(X, GRADES)
    save(clf, tmp_path / "model.skops")
    again = load(tmp_path / "model.skops")
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))


def test_what_does_not_go_with_an_order_is_refused():
    with pytest.raises(ValueError, match="judges all classes together"):
        MKLClassifier(BANK, loss="ordinal", multi_class="ovr").fit(X, GRADES)
    with pytest.raises(ValueError, match="is for MKLClassifier and MKLClassifierCV"):
        BestKernelClassifier(BANK, loss="ordinal").fit(X, GRADES)
    with pytest.raises(ValueError, match="smooth loss"):
        MKLClassifier(BANK, loss="ordinal", norm=2, solver="lbfgs").fit(X, GRADES)
    with pytest.raises(ValueError, match="is not for regression"):
        MKLRegressor(BANK, loss="ordinal").fit(X, SCORE)
