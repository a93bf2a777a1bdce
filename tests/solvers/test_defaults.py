"""Problems on which the default solver once ended without reaching the tolerance, each with what it takes to see it."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from kernelweave import MKLClassifier, MKLRegressor, losses, norms
from kernelweave import kernels as kw
from kernelweave.problems import Point
from kernelweave.problems.curvature import stable_cholesky
from kernelweave.solvers import registry


def low_rank(seed, n=32, m=36):
    """Kernels of which most have a rank far below n, and labels without any rule."""
    rng = np.random.default_rng(seed)
    roots = [rng.normal(size=(n, int(rng.choice([1, 2, 5, n])))) for _ in range(m)]
    return [Z @ Z.T for Z in roots], (rng.random(n) < 0.5).astype(int)


@pytest.mark.parametrize(
    ("loss", "C", "tol", "seed"),
    [("hinge", 1.0, 1e-3, 1), ("logistic", 10.0, 1e-5, 4), ("squared_hinge", 0.03, 1e-5, 1)],
)
def test_maximum_norm_of_kernels_that_the_optimum_leaves_without_a_part(loss, C, tol, seed):
    """The coefficients are orthogonal to whole kernels: alternating updates shrink their shares for ever."""
    stack, y = low_rank(seed)
    model = MKLClassifier("precomputed", norm="max", loss=loss, C=C, tol=tol).fit(stack, y)
    assert model.status_ == "converged"
    assert model.certificate_.relative_gap <= tol
    assert model.n_iter_ <= 15


def test_maximum_norm_at_the_optimum_of_a_conic_solver():
    import cvxpy as cp

    stack, y = low_rank(1, n=16, m=10)
    model = MKLClassifier("precomputed", norm="max", C=2.0, tol=1e-6, normalize=None).fit(stack, y)
    signs = np.where(y == 1, 1.0, -1.0)
    values, vectors = zip(*(np.linalg.eigh(K) for K in stack), strict=True)
    roots = [U[:, v > 1e-9] * np.sqrt(v[v > 1e-9]) for v, U in zip(values, vectors, strict=True)]
    parts, b = [cp.Variable(root.shape[1]) for root in roots], cp.Variable()
    f = sum(root @ part for root, part in zip(roots, parts, strict=True)) + b
    largest = cp.max(cp.hstack([cp.norm(part) for part in parts]))
    objective = cp.square(largest) / 2 + 2.0 * cp.sum(cp.pos(1 - cp.multiply(signs, f)))
    optimum = cp.Problem(cp.Minimize(objective)).solve(solver=cp.CLARABEL)
    assert model.certificate_.dual <= optimum * (1 + 1e-6)
    assert optimum <= model.certificate_.primal * (1 + 1e-6)
    assert model.status_ == "converged"


@pytest.mark.parametrize("held", [0.5, 5.0])
def test_maximum_norm_beside_a_kernel_that_always_counts(held):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 4))
    bank = kw.always(kw.linear(), held) + kw.per_feature(kw.gaussian([0.5, 2.0]))
    model = MKLClassifier(bank, norm="max", tol=1e-5).fit(X, X[:, 0] * X[:, 1] > 0)
    assert model.status_ == "converged"
    assert model.weights_[0] == held


@pytest.mark.parametrize(("seed", "norm", "tol"), [(0, "uniform", 1e-3), (1, np.inf, 1e-5)])
def test_targets_far_below_one(seed, norm, tol):
    """The tolerance of the engine was in units of one, whatever those of the targets."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(31, 3))
    bank = kw.gaussian([1.0, 2.0]) + kw.linear()
    model = MKLRegressor(bank, norm=norm, loss=losses.EpsilonInsensitive(0.0), C=14.0, tol=tol)
    assert model.fit(X, 1e-6 * np.sin(X[:, 0])).status_ == "converged"


def test_multiclass_hinge_where_only_the_intercept_counts():
    """Kernels that are constant and a small C: what is left is a linear program in the intercepts."""
    y = np.random.default_rng(3).permutation(np.r_[np.zeros(29, dtype=int), np.ones(27, dtype=int)])
    bank = kw.polynomial([2]) + kw.gaussian(1.0)
    model = MKLClassifier(bank, loss="multiclass_hinge", norm=2.0, C=1e-5).fit(np.ones((56, 3)), y)
    assert model.status_ == "converged"
    # 27 rows are on the wrong side by 2
    assert model.certificate_.primal == pytest.approx(54e-5, rel=1e-3)


def test_multiclass_hinge_of_heavy_samples():
    """Bounds of 1e10 beside coefficients of one: proximal terms and damping go by the coefficients."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(23, 4))
    weight = rng.uniform(0.2, 3.0, 23)
    weight[rng.random(23) < 0.3] = 1e6
    model = MKLClassifier(loss="multiclass_hinge", norm="uniform", C=16000.0)
    assert model.fit(X, X[:, 0] > 0, sample_weight=weight).status_ == "converged"


@pytest.mark.parametrize("seed", range(3))
def test_at_most_two_kernels_to_the_last_digits(seed):
    """The slack of a program's constraints was more than the tolerance leaves open."""
    stack, y = low_rank(seed, n=30, m=5)
    model = MKLClassifier("precomputed", norm=norms.AtMost(2), C=10.0, tol=1e-5).fit(stack, y)
    assert model.status_ == "converged"
    every = [
        MKLClassifier("precomputed", norm="uniform", C=10.0, tol=1e-6).fit([stack[i], stack[j]], y)
        for i in range(5)
        for j in range(i)
    ]
    best = min(fit.certificate_.primal for fit in every)
    assert model.certificate_.primal == pytest.approx(best, rel=2e-5)


@pytest.mark.parametrize(("seed", "p", "loss"), [(2, 1.1, "hinge"), (6, 1.1, "hinge"), (7, 1.05, "hinge")])
def test_nearly_l1_where_the_objective_has_kinks(seed, p, loss):
    """Few samples, kernels of rank one: what is free changes within a step, and closed-form weights hardly move."""
    rng = np.random.default_rng(seed)
    n = 6 + seed % 6
    stack = [np.outer(v, v) for v in np.sign(rng.normal(size=(22, n)))]
    model = MKLClassifier("precomputed", norm=p, loss=loss, C=35.0, normalize=None)
    assert model.fit(stack, np.arange(n) % 2).status_ == "converged"
    assert model.n_iter_ <= 60


def test_nearly_l1_where_the_model_has_its_minimum_inside():
    """A quadratic model that bends too much asks for less weight than the norm allows: it is not followed blindly."""
    rng = np.random.default_rng(5)
    X = rng.integers(0, 3, size=(6, 7)).astype(float)
    X[3:] = X[:3]
    y = rng.permutation([0, 1, 2, 0, 1, 2])
    bank = kw.per_feature(kw.gaussian([0.5, 1.0, 2.0]))
    loss = losses.BudgetedHinge(0.8)
    model = MKLClassifier(bank, norm=1.1, loss=loss, C=3.4, normalize="cosine").fit(X, y)
    assert model.status_ == "converged"


@pytest.mark.parametrize("seed", [1, 3, 4])
def test_quadratic_forms_below_zero_are_rounding(seed):
    """One kernel in single precision, far from the origin: a negative form asked for no weight at all."""
    rng = np.random.default_rng(seed)
    X, y = 1e5 + rng.normal(size=(5, 6)), np.r_[1e4, rng.normal(size=4)]
    model = MKLRegressor(kw.linear(), norm=norms.ElasticNet(0.9), C=3e5, dtype="float32").fit(X, y)
    assert model.status_ == "converged"


def test_single_precision_that_leads_nowhere_goes_on_in_double():
    """A solver that stalls on kernels of single precision is given the exact ones."""
    seen = []

    class Stalls(registry["newton"]):
        """Newton, that has nothing to say about the first bank."""

        def init(self, problem, start, tol):
            seen.append(problem.bank)
            if len(seen) > 1:
                return super().init(problem, start, tol)
            zero = Point(np.zeros(problem.y.shape), problem.norm.start(problem.m))
            return SimpleNamespace(finished=True, point=zero)

        def step(self, problem, state):
            return state if len(seen) == 1 else super().step(problem, state)

        def point(self, state):
            return state.point if len(seen) == 1 else super().point(state)

    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    model = MKLClassifier(kw.gaussian([1.0, 2.0]), dtype="float32", solver=Stalls()).fit(X, X[:, 0] > 0)
    assert model.status_ == "converged"
    assert len(seen) == 2
    assert seen[1] is not seen[0]


@pytest.mark.filterwarnings("ignore::kernelweave.exceptions.KernelWeaveConvergenceWarning")
def test_a_fit_that_is_cut_short_is_no_worse_than_none():
    """The first point of a method of first order may cost more than f = 0, and is then not what is returned."""
    rng = np.random.default_rng(0)
    stack, _ = low_rank(0, n=18, m=22)
    y = rng.normal(size=18)
    model = MKLRegressor("precomputed", norm=1.5, C=1e5, solver="lbfgs", normalize=None, max_iter=1)
    model.fit([1e4 * K for K in stack], y)
    assert model.status_ == "max_iter"
    zero = 1e5 * np.sum((y - np.mean(y)) ** 2)
    assert model.certificate_.primal <= zero * (1 + 1e-9)
    assert np.all(np.isfinite(model.predict([1e4 * K for K in stack])))


@pytest.mark.parametrize("size", [0.0, 1e-320])
def test_a_matrix_of_zeros_has_a_factor(size):
    factor = stable_cholesky(np.full((4, 4), size))
    assert np.all(np.isfinite(factor.solve(np.ones(4))))
    with pytest.raises(np.linalg.LinAlgError, match="not finite"):
        stable_cholesky(np.full((4, 4), np.inf))
