"""Block descent: steps against their definition, blocks of every kind, and optima against the conic solver."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

import references as ref
from kernelweave import MKLClassifier, MKLClassifierCV, MKLRegressor
from kernelweave import kernels as kw
from kernelweave._numerics.block_steps import POWERS, charged_length
from kernelweave.banks import FeatureMatrix, Features, FeatureStream, build_bank
from kernelweave.banks.decide import Asked, Case
from kernelweave.banks.facts import facts_of_bank
from kernelweave.exceptions import MemoryBudgetError
from kernelweave.losses import make_loss
from kernelweave.norms import Elastic, ElasticBlocks, ElasticNet, Grouped, make_norm
from kernelweave.problems import MKLProblem, Point
from kernelweave.solvers import Stop, abilities, choose_solver, make_solver, solve, without_caches
from kernelweave.solvers import block_descent as _charge
from kernelweave.solvers import block_features as _copies
from kernelweave.solvers import block_features as _features
from kernelweave.solvers.block_descent import newton_step
from timed import fit_with_a_point, is_left

WIDTHS = [1, 3, 7, 20, 2]
STARTS = np.concatenate([[0], np.cumsum(WIDTHS)])


def features(n=40, seed=0):
    """Columns with many zeros; the second and the fourth block matter."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, STARTS[-1])) * (rng.random((n, STARTS[-1])) < 0.4)
    signal = Z[:, 1:4] @ [1.0, -2.0, 0.5] + 0.4 * Z[:, 11:20].sum(axis=1) + 0.3 * rng.normal(size=n)
    return Z, signal


def problem_of(Z, y, loss="logistic", norm="l1", C=2.0, **options) -> MKLProblem:
    return MKLProblem(Features(FeatureMatrix(Z, STARTS)), make_loss(loss), make_norm(norm), y, C, **options)


def run(problem, tol=1e-7, **options):
    return solve(problem, make_solver("block_descent", problem.loss, problem.norm), Stop(tol=tol), **options)


def recomputed(problem, solution):
    return problem.certificate(without_caches(solution.point))


# ---- the step ------------------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.floats(1e-3, 1e3), st.floats(0.0, 1e4)), min_size=1, max_size=6),
    st.floats(0.0, 50.0),
    st.sampled_from([1.0, 1.05, 4 / 3, 1.7, 2.0]),
    st.sampled_from([0.0, 0.7]),
)
def test_the_length_of_a_block_solves_its_equation(entries, others, r, extra):
    q, bend = np.array(entries).T.copy()  # each in one piece, as the library has them

    def pull(t):
        return (others + t**r) ** (2 / r - 1) * t ** (r - 1) + extra

    def left(t):
        return np.sum((q / (bend * t + pull(t))) ** 2) - 1.0

    t = charged_length(q**2, bend, extra, POWERS, others, r, 0.0, 1.0, np.zeros(0))
    if np.linalg.norm(q) <= (others if r == 1.0 else 0.0) + extra:
        assert t == 0.0
    elif t > 1e-250:
        assert t == pytest.approx(brentq(left, 1e-3 * t, 1e3 * t, xtol=1e-300, rtol=1e-12), rel=1e-9)


SERVED = [
    make_norm("l1"),
    make_norm(1.5),
    ElasticNet(0.3),
    ElasticNet(0.9),
    ElasticBlocks(0.6),
    Grouped(2, 1, groups=list("aabbc")),
    Grouped(1.5, 3, groups=list("aabba")),
    Grouped(1, 1, groups=list("aabba")),
]


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(SERVED),
    st.lists(st.one_of(st.just(0.0), st.floats(1e-3, 1e3)), min_size=5, max_size=5),
    st.integers(0, 4),
    st.floats(1e-2, 1e2),
)
def test_the_pull_of_the_charge_is_its_derivative(norm, lengths, j, x):
    """Along one block, and at zero, against differences of the norm itself."""
    t = np.array(lengths)
    norm = norm.for_kernels(5)
    charge = _charge.Charge(norm, t, j)

    def value(length):
        return norm.half_square(np.where(np.arange(5) == j, length, t))

    step = 1e-5 * x
    difference = (value(x + step) - value(x - step)) / (2.0 * step)
    assert charge.pull(x) == pytest.approx(difference, rel=1e-4, abs=1e-7 * max(t.max(), x) / step * t.max())
    near = 1e-9 * max(t.max(), x)
    at_zero = charge.pull(near)
    if norm.has_block_step and not np.isclose(charge.held, 0.0):
        assert charge.held == pytest.approx(at_zero, rel=1e-3)
    assert charge.held <= at_zero * (1.0 + 1e-9)
    assert charge.pull(2.0 * x) >= charge.pull(x)


@pytest.mark.parametrize("norm", [*SERVED, Elastic(0.5, 1.5)], ids=repr)
def test_the_second_derivatives_in_the_lengths(norm):
    norm, t = norm.for_kernels(5), np.array([0.5, 2.0, 0.1, 1.0, 3.0])

    def pulls(t):
        return np.array([_charge.Charge(norm, t, j).pull(t[j]) for j in range(5)])

    assert pulls(t) == pytest.approx(t / norm.weights_of_blocks(t), rel=1e-9)
    steps = 1e-6 * np.diag(t)
    differences = np.array([(pulls(t + e) - pulls(t - e)) / (2.0 * np.max(e)) for e in steps])
    assert _charge.length_hessian(norm, t) == pytest.approx(differences, rel=1e-5, abs=1e-6)


# ---- optima --------------------------------------------------------------------------------------------------------

LOSSES = {
    "squared": ref.SQUARED,
    "logistic": ref.LOGISTIC,
    "squared_hinge": ref.SQUARED_HINGE,
    "huber_hinge": ref.huber_hinge(1.0),
}


NORMS = {
    "l1": ref.l1_norm(),
    "lp-1.3": ref.lp_norm(1.3),
    "lp-2": ref.lp_norm(2.0),
    "elastic": ref.elastic_norm(0.5, 1.5),
    "elastic net": ref.elastic_net_norm(0.7),
    "elastic blocks": ref.elastic_blocks_norm(0.6),
    "few kernels of every group": ref.grouped_norm(2.0, 1.0, "aabba"),
    "groups": ref.grouped_norm(1.5, 2.0, "aabba"),
}


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("loss", LOSSES)
def test_the_conic_solver_finds_the_same_optimum(loss, norm):
    Z, signal = features()
    y = signal if loss == "squared" else np.where(signal > 0, 1.0, -1.0)
    weight = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 2.0], size=y.size)
    charge = NORMS[norm]
    Ks = np.array([Z[:, a:b] @ Z[:, a:b].T for a, b in pairwise(STARTS)])
    conic = ref.conic_optimum(Ks, y, 2.0 * weight, LOSSES[loss], charge, True)
    problem = MKLProblem(Features(FeatureMatrix(Z, STARTS)), make_loss(loss), charge.make(), y, 2.0, weight)
    solution = run(problem)
    assert solution.converged
    assert solution.certificate.primal == pytest.approx(conic.value, rel=1e-6)
    again = recomputed(problem, solution)
    assert again.primal == pytest.approx(solution.certificate.primal, rel=1e-10)
    assert problem.dual(solution.certificate.dual_point) == pytest.approx(solution.certificate.dual, rel=1e-9)


@pytest.mark.parametrize("kind", ["sparse", "single precision", "wide blocks", "sparse wide blocks"])
def test_blocks_of_every_kind_lead_to_the_same_function(kind, monkeypatch):
    Z, signal = features(300)
    y = np.where(signal > 0, 1.0, -1.0)
    plain = run(problem_of(Z, y), 1e-5)
    if "wide" in kind:  # only the leading directions of such a block are told apart
        monkeypatch.setattr(_features, "WIDE", 5)
        monkeypatch.setattr(_features, "LEADING", 2)
        monkeypatch.setattr(_features, "SPARE", 3)
    stored = sp.csr_matrix(Z) if "sparse" in kind else Z.astype(np.float32) if "single" in kind else Z
    other = run(problem_of(stored, y), 1e-5)
    assert other.converged
    exact = recomputed(problem_of(Z, y), other)
    assert exact.primal == pytest.approx(plain.certificate.primal, rel=3e-5)
    assert set(np.flatnonzero(other.point.weights > 0.01)) == set(np.flatnonzero(plain.point.weights > 0.01))


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_sparse_features_take_the_same_steps(loss):
    """Curvature is the same for all samples under the squared loss, which is a path of its own."""
    Z, signal = features(60)
    y = signal if loss == "squared" else np.where(signal > 0, 1.0, -1.0)
    dense, sparse = (run(problem_of(one, y, loss, 1.5, C=50.0), 1e-6) for one in (Z, sp.csr_matrix(Z)))
    assert sparse.n_iter == dense.n_iter
    assert sparse.passes == pytest.approx(dense.passes, rel=1e-9)
    np.testing.assert_allclose(sparse.point.weights, dense.point.weights, rtol=1e-6)


@pytest.mark.parametrize("loss", ["multinomial", "logistic", "squared"])
@pytest.mark.parametrize("norm", ["l1", 1.5, ElasticNet(0.7), Grouped(2, 1, groups=list("aabba"))])
def test_several_columns_share_their_weights(loss, norm):
    Z, signal = features(150)
    label = np.digitize(signal, [-1.0, 1.0])
    y = np.where(label[:, None] == np.arange(3), 1.0, -1.0)
    problem = problem_of(Z, y, loss, norm)
    solution = run(problem, 1e-6)
    assert solution.converged
    assert recomputed(problem, solution).primal == pytest.approx(solution.certificate.primal, rel=1e-9)
    other = solve(problem, make_solver("newton", problem.loss, problem.norm), Stop(tol=1e-6))
    assert solution.certificate.primal == pytest.approx(other.certificate.primal, rel=3e-6)


def somewhere(problem, w):
    """The moving point of a run, at some coordinates."""
    at = make_solver("block_descent", problem.loss, problem.norm).init(problem, None, 1e-6).at
    at.w, at.t = w.copy(), at.features.norms(w)
    at.recompute()
    at.refresh()
    return at


@pytest.mark.parametrize("columns", [1, 3])
def test_newtons_step_on_one_block_of_a_quadratic_ends_at_its_minimum(columns):
    """The preconditioner is the inverse there, and conjugate gradients need one iteration."""
    rng = np.random.default_rng(0)
    Z, C = rng.normal(size=(40, 6)) + 0.5, 0.7
    Y = rng.normal(size=(40, columns)) + 2.0
    bank = Features(FeatureMatrix(Z, [0, 6]))
    problem = MKLProblem(
        bank, make_loss("squared"), make_norm("l1"), Y[:, 0] if columns == 1 else Y, C, None, True
    )
    at = somewhere(problem, rng.normal(size=(6, columns)))
    assert newton_step(at, most=1)
    centred = Z - Z.mean(axis=0)
    expected = np.linalg.solve(2.0 * C * centred.T @ centred + np.eye(6), 2.0 * C * centred.T @ Y)
    np.testing.assert_allclose(at.w, expected, atol=1e-9)


@pytest.mark.parametrize("norm", NORMS)
def test_no_common_factor_of_all_blocks_is_better_after_a_rescaling(norm):
    Z, signal = features()
    bank = Features(FeatureMatrix(Z, STARTS))
    problem = MKLProblem(bank, make_loss("squared"), NORMS[norm].make(), signal, 2.0)
    at = somewhere(problem, 0.7 * np.random.default_rng(0).normal(size=(STARTS[-1], 1)))
    w = at.w
    at.rescale()
    factor = float(at.w[0, 0] / w[0, 0])
    assert abs(factor - 1.0) > 0.01
    np.testing.assert_allclose(at.w, factor * w)
    for other in (0.999, 1.001):
        assert somewhere(problem, other * at.w).objective > at.objective


# ---- how it gets there ---------------------------------------------------------------------------------------------


def grouped(n=3000, groups=12, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2 * groups))
    y = np.where(X[:, 0] + X[:, 2] * X[:, 3] + 0.5 * rng.normal(size=n) > 0, 1, 0)
    return X, y, {f"set {j}": [2 * j, 2 * j + 1] for j in range(groups)}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_many_samples_without_a_matrix_of_their_size(dtype, monkeypatch):
    X, y, sets = grouped()

    def never(*_):
        raise AssertionError("a kernel matrix of all samples")

    monkeypatch.setattr(FeatureMatrix, "combine", never)
    monkeypatch.setattr(FeatureMatrix, "block", never)
    bank = kw.per_view(sets, kw.random_fourier(2.0, n_features=40))
    model = MKLClassifier(bank, loss="logistic", solver="block_descent", C=0.3, dtype=dtype).fit(X, y)
    assert model.status_ == "converged"
    assert model.certificate_.relative_gap <= 1e-3
    assert {0, 1} == set(np.flatnonzero(model.weights_ > 0.02))
    assert model.n_passes_ < 60
    assert model.bank_bytes_ == 3000 * 12 * 40 * np.dtype(dtype).itemsize


@pytest.mark.parametrize("loss", ["squared_hinge", "huber_hinge", "logistic"])
@pytest.mark.parametrize("twice", [False, True])
def test_a_very_large_C_and_kernels_that_are_there_twice(loss, twice):
    """Steps on single blocks crawl there, and so do conjugate gradients."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 12))
    angles = [X[:, j : j + 2] @ rng.normal(size=(2, 10)) for j in range(0, 12, 2)]
    Z = np.hstack([wave(angle) for angle in angles for wave in (np.cos, np.sin)])
    y = np.where(np.sin(X[:, 0]) + X[:, 2] * X[:, 3] + 0.5 * rng.normal(size=600) > 0, 1.0, -1.0)
    bank = Features(FeatureMatrix(np.hstack([Z, Z]) if twice else Z, np.arange(0, 241 if twice else 121, 20)))
    problem = MKLProblem(bank, make_loss(loss), make_norm("l1"), y, 1e4)
    solution = run(problem, 1e-4)
    assert solution.converged
    assert solution.n_iter < 40
    lower = problem.dual(solution.certificate.dual_point)
    assert recomputed(problem, solution).primal <= (1.0 + 1.1e-4) * lower


def test_products_of_all_columns_are_left_where_the_time_is_over():
    Z, signal = features()
    made = _features.BlockFeatures(problem_of(Z, signal, "squared"), single=False)
    with fit_with_a_point() as deadline:
        assert made.gram(np.ones(40), np.arange(5), False).shape == (5, 5)
        deadline.interrupt()
        assert is_left(lambda: made.gram(np.ones(40), np.arange(5), False))


def test_steps_in_single_precision_prove_their_bounds_in_double(monkeypatch):
    """The certificate owes nothing to the copies; below their precision there are none."""
    Z, signal = features(200)
    rough, fine = problem_of(Z, signal, "squared"), problem_of(Z, signal, "squared")
    solution = run(rough, 1e-3)
    assert any(isinstance(key, tuple) for key in rough.bank.notes)
    again = recomputed(rough, solution)
    assert again.primal == pytest.approx(solution.certificate.primal, rel=1e-12)
    assert rough.dual(solution.certificate.dual_point) == pytest.approx(solution.certificate.dual, rel=1e-12)
    exact = run(fine, 1e-9)
    assert exact.converged
    assert not any(isinstance(key, tuple) for key in fine.bank.notes)
    assert again.primal <= exact.certificate.primal * (1.0 + 1e-3)
    # copies are made where single precision holds the squares, and where there is memory
    assert run(problem_of(1e25 * Z, signal, "squared", C=1e-50), 1e-3).converged
    monkeypatch.setattr(_copies, "default_budget", lambda: 1000)
    small = problem_of(Z, signal, "squared")
    assert run(small, 1e-3).certificate.primal == pytest.approx(again.primal, rel=1e-4)
    assert not any(isinstance(key, tuple) for key in small.bank.notes)


def test_a_warm_start_is_where_it_begins():
    Z, signal = features(200)
    cold = run(problem_of(Z, signal, "squared"), 1e-5)
    near = problem_of(Z, signal, "squared", C=2.02)
    warm = run(near, 1e-5, start=Point(cold.point.beta, cold.point.weights))
    fresh = run(problem_of(Z, signal, "squared", C=2.02), 1e-5)
    assert warm.certificate.primal == pytest.approx(fresh.certificate.primal, rel=2e-5)
    assert warm.passes < fresh.passes


def test_regression_and_linear_views():
    X, _, sets = grouped(400)
    target = X[:, 0] - 2.0 * X[:, 2]
    model = MKLRegressor(kw.per_view(sets, kw.linear()), loss="squared", solver="block_descent", tol=1e-6)
    model.fit(X, target)
    assert {0, 1} == set(np.flatnonzero(model.weights_ > 1e-3))
    other = MKLRegressor(kw.per_view(sets, kw.linear()), loss="squared", solver="newton", tol=1e-6)
    assert model.certificate_.primal == pytest.approx(other.fit(X, target).certificate_.primal, rel=2e-6)


def test_features_that_are_streamed_are_refused_with_a_way_out():
    X, y, _ = grouped(50, 2)
    kernels = [kw.random_fourier(2.0, n_features=4).resolve(X)]
    problem = MKLProblem(
        Features(FeatureStream(kernels, X)),
        make_loss("logistic"),
        make_norm("l1"),
        np.where(y > 0, 1.0, -1.0),
    )
    with pytest.raises(ValueError, match=r"features in memory.*lbfgs"):
        run(problem)


# ---- where it is chosen --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "loss", "chosen"),
    [
        (1200, "logistic", True),
        (600, "logistic", True),
        (600, "squared", False),
        (1200, "huber_hinge", True),
        (200, "logistic", False),
        (1200, "hinge", False),
    ],
)
def test_auto_takes_it_for_explicit_features_of_many_samples(n, loss, chosen):
    X, _, sets = grouped(n, 3)
    bank = Features(FeatureMatrix(X, np.arange(0, 7, 2)))
    facts = facts_of_bank(bank, abilities(make_loss(loss), make_norm("l1")))
    assert Case(facts, Asked(kept=bank.decision)).suits_blocks is (n >= 500)
    solver = choose_solver(make_loss(loss), make_norm("l1"), bank)
    assert (solver.registered_as == "block_descent") is chosen
    mixed = kw.per_view(sets, kw.linear()) + kw.gaussian(1.0)
    made = build_bank([k.resolve(X) for k in mixed.expand(kw.Schema(6))], X[:20])
    assert made.decision.rank is None


@pytest.mark.parametrize(
    ("norm", "chosen"),
    [
        (ElasticNet(0.5), True),
        (ElasticBlocks(0.5), True),
        (Grouped(2, "l1", groups=list("aab")), True),
        (Grouped("l1", 2, groups=list("aab")), False),
        (make_norm("entropy"), False),
    ],
)
def test_auto_takes_it_for_norms_with_an_exact_step(norm, chosen):
    X, _, _ = grouped(1200, 3)
    solver = choose_solver(make_loss("logistic"), norm, Features(FeatureMatrix(X, np.arange(0, 7, 2))))
    assert (solver.registered_as == "block_descent") is chosen
    if not chosen:
        with pytest.raises(ValueError, match="exact step on one block"):
            make_solver("block_descent", make_loss("logistic"), norm)


def test_memory_for_features_is_enough():
    """What a mixed kernel would take counts only where one is mixed."""
    X, y, sets = grouped(3000, 3)
    kernels = kw.per_view(sets, kw.linear())
    model = MKLClassifier(kernels, loss="logistic", memory_budget="20 MB", C=0.1).fit(X, y)
    assert model.solver_ == "block_descent"
    with pytest.raises(MemoryBudgetError):
        MKLClassifier(kernels, loss="hinge", memory_budget="20 MB").fit(X, y)


def test_folds_are_weights_on_one_set_of_features(monkeypatch):
    X, y, sets = grouped(1200, 6)
    kernels = kw.per_view(sets, kw.random_fourier(2.0, n_features=10))
    Cs, split = [0.03, 0.3], [(np.arange(800), np.arange(800, 1200))]
    built, make = [], FeatureMatrix.__init__
    monkeypatch.setattr(
        FeatureMatrix,
        "__init__",
        lambda self, *given, **options: built.append(1) or make(self, *given, **options),
    )
    model = MKLClassifierCV(kernels, loss="logistic", Cs=Cs, cv=split, tol=1e-5).fit(X, y)
    assert len(built) == 1
    assert model.solver_ == "block_descent"
    for C, score in model.cv_results_.groupby("C")["score"].first().items():
        alone = MKLClassifier(kernels, loss="logistic", C=C, solver="newton", tol=1e-5).fit(X[:800], y[:800])
        assert score == pytest.approx(alone.score(X[800:], y[800:]), abs=0.006)
