"""The joint multiclass problem: optimal values against a conic solver, duality and KKT from the definitions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.svm import SVC

import references as ref
from kernelweave.banks import build_bank
from kernelweave.losses import Hinge, MulticlassHinge
from kernelweave.norms import Block
from kernelweave.problems import MKLProblem, Point, solve_fixed
from kernelweave.solvers import Stop, choose_solver, solve, without_caches

N, M, CLASSES = 24, 4, 3
with_and_without = pytest.mark.parametrize("fit_intercept", [True, False], ids=["intercept", "no intercept"])
every_norm = pytest.mark.parametrize("r", [1.0, 1.25, 1.5, 2.0], ids=lambda r: f"r = {r:g}")


@dataclass(frozen=True)
class Case:
    """A problem, and the same as plain arrays."""

    problem: MKLProblem
    Ks: np.ndarray
    own: np.ndarray
    c: np.ndarray
    r: float
    fit_intercept: bool

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """Targets and costs, a column for every class."""
        classes = int(np.max(self.own)) + 1
        y = np.where(np.arange(classes) == self.own[:, None], 1.0, -1.0)
        return y, np.repeat(self.c[:, None], classes, axis=1)

    @property
    def norm(self) -> ref.RefNorm:
        """The norm of weights whose block norms have the exponent r."""
        return ref.lp_norm(self.r / (2 - self.r) if self.r < 2 else np.inf)

    def primal(self, beta: np.ndarray, d: np.ndarray, b: np.ndarray) -> float:
        """(9) of [OJC10] times C n, at ``f_j = d_j K_j beta``."""
        t = d * np.sqrt(np.maximum(ref.quadratic_forms(self.Ks, beta), 0.0))
        f = ref.decision_values(self.Ks, beta, d) + b
        y, c = self.arrays
        return self.norm.half_square(t) + ref.MULTICLASS_HINGE.total(y, f, c)

    def dual(self, beta: np.ndarray) -> float:
        return ref.dual_value(self.Ks, *self.arrays, beta, ref.MULTICLASS_HINGE, self.norm)

    def feasible(self, beta: np.ndarray) -> bool:
        """Rows are ``c (e_own - a)``, a on the simplex; with an intercept columns sum to zero."""
        a = self.c[:, None] * np.eye(beta.shape[1])[self.own] - beta
        size = 1e-9 * (1 + np.abs(beta).max())
        rows = np.all(a >= -size) and np.allclose(a.sum(axis=1), self.c, atol=size)
        return bool(rows and (not self.fit_intercept or np.abs(beta.sum(axis=0)).max() <= len(beta) * size))


def make_case(
    r: float, fit_intercept: bool, *, weight: np.ndarray | None = None, C: float = 2.0, classes: int = CLASSES
) -> Case:
    Ks = ref.kernel_stack(N, M, seed=1)
    Ks.flags.writeable = False
    rng = np.random.default_rng(2)
    own = rng.permutation(np.arange(N) % classes)
    y = np.where(np.arange(classes) == own[:, None], 1.0, -1.0)
    bank = build_bank(None, Ks, normalize=None)
    problem = MKLProblem(bank, MulticlassHinge(), Block(r), y, C, weight, fit_intercept)
    c = C * (np.ones(N) if weight is None else weight)
    return Case(problem, Ks, own, c, r, fit_intercept)


def solved(case: Case, tol: float = 1e-7):
    problem = case.problem
    found = solve(problem, choose_solver(problem.loss, problem.norm, problem.bank), Stop(tol=tol))
    assert found.converged
    return found


def check_against_conic(case: Case) -> None:
    found = solved(case)
    certificate, point = found.certificate, without_caches(found.point)
    # both bounds recomputed from the point and the dual point alone
    assert case.feasible(certificate.dual_point)
    dual = case.dual(certificate.dual_point)
    primal = case.primal(point.beta, point.weights, np.asarray(certificate.intercept))
    assert certificate.primal == pytest.approx(primal, rel=1e-9)
    assert certificate.dual == pytest.approx(dual, rel=1e-9)
    assert ref.relative(primal, dual) <= 1e-7 + 1e-9
    # and the optimum by a solver that shares nothing with ours
    Z = [ref.explicit_features(K) for K in case.Ks]
    optimum = ref.joint_optimum(Z, *case.arrays, ref.MULTICLASS_HINGE, case.norm, case.fit_intercept)
    assert primal == pytest.approx(optimum, rel=1e-6)


@every_norm
@with_and_without
def test_optimum(r, fit_intercept):
    check_against_conic(make_case(r, fit_intercept))


@pytest.mark.parametrize("r", [1.0, 1.25])
@with_and_without
def test_optimum_with_sample_weights_and_zeros(r, fit_intercept):
    weight = np.random.default_rng(0).choice([0.0, 0.3, 1.0, 4.0], size=N)
    assert np.any(weight == 0)
    case = make_case(r, fit_intercept, weight=weight)
    check_against_conic(case)
    assert not np.any(solved(case).point.beta[weight == 0])


@pytest.mark.parametrize("C", [1e-2, 1e3])
@with_and_without
def test_optimum_with_small_and_large_C(C, fit_intercept):
    check_against_conic(make_case(1.25, fit_intercept, C=C))


@every_norm
@with_and_without
def test_weak_duality_on_random_points(r, fit_intercept):
    case = make_case(r, fit_intercept)
    problem, rng = case.problem, np.random.default_rng(3)
    duals, primals = [], []
    for size in 10.0 ** rng.uniform(-2, 1.5, size=60):
        beta = problem.repair(size * rng.normal(size=(N, CLASSES)))
        assert case.feasible(beta)
        value = problem.dual(beta)
        assert value == pytest.approx(case.dual(beta), rel=1e-9, abs=1e-9)
        duals.append(value)
        free, d = size * rng.normal(size=(N, CLASSES)), rng.uniform(size=M)
        value, b = problem.primal(Point(free, d))
        assert value == pytest.approx(case.primal(free, d, np.asarray(b)), rel=1e-9)
        primals.append(value)
        # functions whose blocks share no coefficients
        f, t = np.zeros((N, CLASSES)), []
        for K in case.Ks:
            alpha = size * rng.normal(size=(N, CLASSES))
            f = f + K @ alpha
            t.append(np.sqrt(np.sum(alpha * (K @ alpha))))
        y, c = case.arrays
        primals.append(case.norm.half_square(np.array(t)) + ref.MULTICLASS_HINGE.total(y, f, c))
    assert max(duals) <= min(primals) + 1e-9 * abs(min(primals))


@with_and_without
def test_certificate_of_any_point_can_be_recomputed(fit_intercept):
    case = make_case(1.25, fit_intercept)
    rng = np.random.default_rng(4)
    optimum = solved(case).certificate
    for size in (0.01, 1.0, 30.0):
        point = Point(size * rng.normal(size=(N, CLASSES)), rng.uniform(size=M))
        found = case.problem.certificate(point)
        assert case.feasible(found.dual_point)
        assert found.dual == pytest.approx(case.dual(found.dual_point), rel=1e-9, abs=1e-9)
        value = case.primal(point.beta, point.weights, np.asarray(found.intercept))
        assert found.primal == pytest.approx(value, rel=1e-9)
        assert found.dual <= optimum.primal * (1 + 1e-9)
        assert found.primal >= optimum.dual * (1 - 1e-9)


@pytest.mark.parametrize("r", [1.25, 2.0])
@with_and_without
def test_kkt(r, fit_intercept):
    """Only classes that attain the maximum have coefficients; the weights are those of the block norms."""
    case = make_case(r, fit_intercept)
    found = solved(case, 1e-9)
    beta, d = found.point.beta, found.point.weights
    b = np.asarray(found.certificate.intercept)
    scores = ref.decision_values(case.Ks, beta, d) + b + (np.arange(CLASSES) != case.own[:, None])
    short = scores.max(axis=1, keepdims=True) - scores
    a = case.c[:, None] * np.eye(CLASSES)[case.own] - beta
    assert float(np.max(a * short)) <= 1e-4
    assert np.count_nonzero(a > 1e-6) > N  # some samples do share their weight among classes
    root = np.sqrt(ref.quadratic_forms(case.Ks, beta))
    q = r / (r - 1)
    np.testing.assert_allclose(d, (root / np.linalg.norm(root, q)) ** (q - 2), rtol=1e-3)


@with_and_without
def test_two_classes_are_the_binary_svm_with_twice_the_C(fit_intercept):
    """At r = 2; the decision value is the difference, the objective half of the binary one."""
    case = make_case(2.0, fit_intercept, classes=2)
    found = solved(case, 1e-9)
    f = ref.decision_values(case.Ks, found.point.beta, found.point.weights)
    f = f + np.asarray(found.certificate.intercept)
    sign = np.where(case.own == 1, 1.0, -1.0)
    K = case.Ks.sum(axis=0)
    if fit_intercept:
        svc = SVC(C=4.0, kernel="precomputed", tol=1e-9).fit(K, sign)
        np.testing.assert_allclose(f[:, 1] - f[:, 0], svc.decision_function(K), atol=1e-4)
    bank = build_bank(None, case.Ks, normalize=None)
    binary = MKLProblem(bank, Hinge(), Block(2.0), sign, 4.0, None, fit_intercept)
    value = solve(binary, choose_solver(binary.loss, binary.norm, bank), Stop(tol=1e-9)).certificate.primal
    assert found.certificate.primal == pytest.approx(0.5 * value, rel=1e-8)


@pytest.mark.parametrize("r", [1.0, 1.25])
def test_two_classes_at_any_norm(r):
    case = make_case(r, True, classes=2)
    bank = build_bank(None, case.Ks, normalize=None)
    binary = MKLProblem(bank, Hinge(), Block(r), np.where(case.own == 1, 1.0, -1.0), 4.0, None, True)
    value = solve(binary, choose_solver(binary.loss, binary.norm, bank), Stop(tol=1e-8)).certificate.primal
    assert solved(case, 1e-8).certificate.primal == pytest.approx(0.5 * value, rel=1e-7)


@with_and_without
def test_r_of_two_is_the_svm_on_the_sum_kernel(fit_intercept):
    case = make_case(2.0, fit_intercept)
    problem = case.problem
    alone = solve_fixed(case.Ks.sum(axis=0), problem.loss, problem.y, problem.c, fit_intercept, 1e-9)
    found = solved(case, 1e-9)
    assert found.certificate.primal == pytest.approx(alone.primal, rel=1e-8)
    np.testing.assert_allclose(found.point.weights, 1.0)
    f = ref.decision_values(case.Ks, found.point.beta, found.point.weights)
    np.testing.assert_allclose(f, alone.decision, atol=1e-3)
    # and the mean kernel with C m is the same classifier
    mean = solve_fixed(case.Ks.mean(axis=0), problem.loss, problem.y, M * problem.c, fit_intercept, 1e-9)
    np.testing.assert_allclose(mean.decision, alone.decision, atol=1e-3)


@with_and_without
def test_inner_solver_starts_anywhere_and_knows_when_it_is_done(fit_intercept):
    case = make_case(2.0, fit_intercept)
    problem, K = case.problem, case.Ks.sum(axis=0)
    args = (problem.loss, problem.y, problem.c, fit_intercept)
    first = solve_fixed(K, *args, 1e-8)
    again = solve_fixed(K, *args, 1e-8, first, keep_product=True)
    assert again.iterations <= first.iterations / 5
    assert again.relative_gap <= 1e-8
    other = solve_fixed(2.0 * K, *args, 1e-8, first)
    np.testing.assert_allclose(other.primal, solve_fixed(2.0 * K, *args, 1e-8).primal, rtol=1e-7)
    # a matrix in single precision is solved to what it allows, and its decision values are those of the coefficients
    single = solve_fixed(K.astype(np.float32), *args, 1e-5)
    np.testing.assert_allclose(single.decision, K @ single.beta, atol=1e-4)
    assert single.primal == pytest.approx(first.primal, rel=1e-4)


@pytest.mark.parametrize("seed", [0, 1, 3])
def test_intercepts_of_a_poor_kernel(seed):
    """Rows that move, on a poor kernel with classes of different sizes; the intercepts are found on the way."""
    rng = np.random.default_rng(seed)
    own = np.arange(150) % 5
    own[:20] = 0
    X = np.eye(5)[own][:, :2] + rng.normal(size=(150, 2))
    K = np.exp(-0.5 * np.sum((X[:, None] - X[None]) ** 2, axis=2))
    y = np.where(np.eye(5)[own] > 0, 1.0, -1.0)
    without, found = (
        solve_fixed(K, MulticlassHinge(), y, np.full(y.shape, 10.0), intercept, 1e-4)
        for intercept in (False, True)
    )
    assert found.relative_gap <= 1e-4
    assert np.abs(found.intercept).max() > 0.05
    assert found.primal <= without.primal * (1 + 1e-4)


def small_problem(seed: int, exponents: tuple[float, float] = (-2, 3)):
    """Few rows: plain, doubled, all alike or on a grid, one class nearly throughout, weights from 0 to thousands."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 6))
    n = k + int(rng.choice([0, 1, 4, 20]))
    skewed = [0.85] + [0.15 / (k - 1)] * (k - 1)
    own = np.concatenate([np.arange(k), rng.choice(k, n - k, p=skewed if seed % 2 else None)])
    X = rng.normal(size=(n, int(rng.integers(1, 6))))
    if seed % 3 == 0:
        X = np.round(X)
    if seed % 7 == 0:
        X[:] = X[0]
    K = X @ X.T
    if seed % 5 > 1:
        K = np.exp(-0.5 * np.sum((X[:, None] - X[None]) ** 2, axis=2))
    if seed % 11 == 0:
        K = 0.0 * K
    weight = np.ones(n)
    if seed % 4 == 0:
        weight = 10.0 ** rng.uniform(-2, 2, n) * (rng.random(n) > 0.2)
        weight[:k] = 1.0
    return K, own, 10.0 ** rng.uniform(*exponents) * weight


def check_small(seed: int, K, own, c, fit_intercept: bool, target: float) -> None:
    y = np.where(np.arange(own.max() + 1) == own[:, None], 1.0, -1.0)
    wide = np.repeat(c[:, None], y.shape[1], axis=1)
    found = solve_fixed(K, MulticlassHinge(), y, wide, fit_intercept, target)
    assert found.relative_gap <= target
    beta = found.beta
    upper = np.where(y > 0, wide, 0.0)
    size = np.abs(beta).sum()
    assert np.all(beta <= upper)
    assert np.all(np.abs(beta.sum(axis=1)) <= 4e-15 * np.abs(beta).sum(axis=1))
    if fit_intercept:
        assert np.all(np.abs(beta.sum(axis=0)) <= 4e-15 * size)
    primal, dual = ref.bounds_of_one_kernel(K, y, wide, beta, found.intercept, ref.MULTICLASS_HINGE)
    assert primal - dual <= (1.1 * target + 1e-10) * max(abs(primal), abs(dual), 1e-12)


@with_and_without
@given(seed=st.integers(0, 10_000))
@settings(max_examples=60, deadline=None)
def test_small_problems_are_solved_and_their_points_are_in_the_set(fit_intercept, seed):
    check_small(seed, *small_problem(seed), fit_intercept, 1e-4)


@pytest.mark.parametrize("seed", [1, 2, 3, 6, 10, 13, 19, 29, 37, 57, 65])
def test_bounds_of_up_to_a_million_do_not_stall(seed):
    check_small(seed, *small_problem(seed, (4, 6)), True, 1e-3)


@pytest.mark.parametrize("seed", [0, 4, 8, 14, 18, 28])
def test_kernels_of_few_dimensions_are_solved_under_large_bounds(seed):
    """Coefficients of 1e5 on ten dimensions: what a round leaves of them, the losses multiply by their bounds."""
    rng = np.random.default_rng(seed)
    n, k = 32, 5
    own = np.concatenate([np.arange(k), rng.integers(0, k, n - k)])
    X = rng.normal(size=(n, 10))
    K = X @ X.T
    check_small(seed, K / np.mean(np.diagonal(K)), own, np.full(n, 6e5), True, 1e-4)


@pytest.mark.parametrize("seed", [9, 10, 11, 19, 54])
def test_a_start_from_another_kernel_does_not_lead_astray(seed):
    """Coefficients of another kernel under bounds of 1e11 used to leave a gap of one; a fresh start does not."""
    rng = np.random.default_rng(seed)
    n, k = 30, 3
    own = np.concatenate([np.arange(k), rng.choice(k, n - k, p=[0.9, 0.05, 0.05])])
    y = np.where(np.arange(k) == own[:, None], 1.0, -1.0)
    c = 5e5 * np.where(rng.random(n) < 0.2, 1e6, rng.uniform(0.2, 3.0, n))
    wide = np.repeat(c[:, None], k, axis=1)
    start = None
    for _ in range(2):
        Z = rng.normal(size=(n, n))
        K = Z @ Z.T / n
        K /= np.mean(np.diagonal(K))
        start = solve_fixed(K, MulticlassHinge(), y, wide, True, 1e-4, start)
    primal, dual = ref.bounds_of_one_kernel(K, y, wide, start.beta, start.intercept, ref.MULTICLASS_HINGE)
    assert primal - dual <= 1e-2 * primal


@with_and_without
@pytest.mark.parametrize("seed", [1, 2, 4, 5, 8, 9, 16, 23])
def test_small_problems_against_a_conic_solver(seed, fit_intercept):
    K, own, c = small_problem(seed, (-1, 1))
    k = own.max() + 1
    y, wide = np.where(np.arange(k) == own[:, None], 1.0, -1.0), np.repeat(c[:, None], k, axis=1)
    values, vectors = np.linalg.eigh(K)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    optimum = ref.joint_optimum([root], y, wide, ref.MULTICLASS_HINGE, ref.sum_norm(), fit_intercept)
    found = solve_fixed(K, MulticlassHinge(), y, wide, fit_intercept, 1e-8)
    assert found.primal == pytest.approx(optimum, rel=1e-6, abs=1e-8)
    assert found.dual == pytest.approx(optimum, rel=1e-6, abs=1e-8)


def test_nothing_is_done_where_nothing_changed():
    K, own, c = small_problem(10, (0, 1))
    y = np.where(np.arange(own.max() + 1) == own[:, None], 1.0, -1.0)
    args = (MulticlassHinge(), y, np.repeat(c[:, None], y.shape[1], axis=1), True, 1e-6)
    first = solve_fixed(K, *args)
    again = solve_fixed(K, *args, first, keep_product=True)
    assert again.iterations == 0
    np.testing.assert_allclose(again.beta, first.beta, rtol=0, atol=1e-14 * np.abs(first.beta).max())


def test_curvature_by_steps_is_that_of_a_factorisation(monkeypatch):
    """Conjugate gradients for many free coefficients: exact once they may take their time."""
    from kernelweave.problems import curvature

    rng = np.random.default_rng(0)
    n, m = 60, 3
    own = rng.integers(0, 4, n)
    X = rng.normal(size=(m, n, 4))
    Ks = np.stack([np.exp(-0.5 * np.sum((x[:, None] - x[None]) ** 2, axis=2)) for x in X])
    bank = build_bank(None, Ks, normalize=None)
    y = np.where(np.arange(4) == own[:, None], 1.0, -1.0)
    for fit_intercept in (True, False):
        problem = MKLProblem(bank, MulticlassHinge(), Block(1.0), y, 1.0, None, fit_intercept)
        exact = problem.oracle(np.full(m, 1 / m), target=1e-8, curvature=True).curvature.root.dense
        monkeypatch.setattr(curvature, "EXACT_FLOPS", 0)
        monkeypatch.setattr(curvature, "WORTH_STEPS", 0)
        monkeypatch.setattr(curvature, "MOST_STEPS", 400)
        monkeypatch.setattr(curvature, "STEPS_GAP", 1e-5)
        stepped = problem.oracle(np.full(m, 1 / m), target=1e-8, curvature=True).curvature.root.dense
        monkeypatch.undo()
        np.testing.assert_allclose(
            stepped.T @ stepped, exact.T @ exact, rtol=1e-2, atol=1e-3 * np.abs(exact).max() ** 2
        )


def test_a_kernel_of_zeros_is_no_obstacle():
    Ks = np.concatenate([ref.kernel_stack(N, 2, seed=1), np.zeros((1, N, N))])
    bank = build_bank(None, Ks, normalize=None)
    y = np.where(np.arange(3) == (np.arange(N) % 3)[:, None], 1.0, -1.0)
    problem = MKLProblem(bank, MulticlassHinge(), Block(1.25), y, 1.0)
    found = solve(problem, choose_solver(problem.loss, problem.norm, bank), Stop(tol=1e-6))
    assert found.converged
    assert found.point.weights[2] <= 1e-6


def test_memory_of_many_classes_is_bounded():
    """Tables of samples and classes, some beside those of every kernel: nothing grows with their product squared."""
    import tracemalloc

    from kernelweave import MKLClassifier
    from kernelweave import kernels as kw

    k, m = 120, 2
    rng = np.random.default_rng(0)
    own = np.repeat(np.arange(k), 3)
    X = rng.standard_normal((k, 8))[own] + 0.5 * rng.standard_normal((3 * k, 8))
    model = MKLClassifier(kw.gaussian([0.5, 1.0], relative=True), tol=0.1)
    model.fit(X[: 3 * 4], own[: 3 * 4])  # compiles
    tracemalloc.start()
    try:
        model.fit(X, own)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert model.certificate_.relative_gap <= 0.1
    assert peak <= 8 * (own.size * k * (2 * m + 40) + 10 * own.size**2)
