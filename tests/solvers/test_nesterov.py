"""SMKL's own claims: the smoothing's error, the paper's rate, the corrected constant."""

import warnings

import numpy as np
import pytest

import references as ref
from kernelweave import MKLRegressor
from kernelweave import kernels as kw
from kernelweave.banks import build_bank
from kernelweave.losses import Hinge, make_loss
from kernelweave.norms import L1, Entropy
from kernelweave.problems import MKLProblem
from kernelweave.solvers import Stop, make_solver, solve
from kernelweave.solvers.nesterov import Nesterov, smoothed

HINGE = next(loss for loss in ref.LOSSES if loss.name == "hinge")


def small_problem(norm, fit_intercept=False, C=1.0, n=24, m=5, seed=0):
    rng = np.random.default_rng(seed)
    stack = []
    for _ in range(m):
        X = rng.normal(size=(n, 3))
        stack.append(np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2) / rng.uniform(0.5, 8.0)))
    y = np.where(rng.normal(size=n) > 0, 1.0, -1.0)
    bank = build_bank(None, np.array(stack), normalize=None)
    return MKLProblem(bank, Hinge(), norm, y, C, fit_intercept=fit_intercept), np.array(stack)


def smoothed_value(problem, stack, beta, lam):
    """``-sum a + (lam/2) ln sum exp(s/lam)``, the paper's f_lam, written out."""
    s = np.array([beta @ K @ beta for K in stack])
    return -problem.y @ beta + lam / 2 * np.log(np.sum(np.exp((s - s.max()) / lam))) + s.max() / 2


@pytest.mark.parametrize("lam", [1e-3, 0.1, 10.0])
def test_smoothing_error_is_bounded(lam):
    """(11) corrected: 0 <= f_lam - f <= (lam/2) ln m."""
    rng = np.random.default_rng(0)
    for _ in range(100):
        s = rng.gamma(1.0, size=7) * 10.0 ** rng.uniform(-3, 3)
        excess = smoothed(lam).conjugate(s) + 0.5 * lam * np.log(7) - L1().conjugate(s)
        assert -1e-12 * s.max() <= excess <= 0.5 * lam * np.log(7) * (1 + 1e-12)


@pytest.mark.parametrize("C", [0.2, 3.0])
def test_the_smoothed_dual_is_the_dual_of_its_norm(C):
    """Its value, and its derivative by differences, of a loss whose conjugate is curved."""
    rng = np.random.default_rng(0)
    stack = ref.kernel_stack(12, 3)
    bank = build_bank(None, stack, normalize=None)
    weight = np.r_[0.0, rng.uniform(0.5, 2.0, size=11)]
    problem = MKLProblem(bank, make_loss("squared"), Entropy(0.3), rng.normal(size=12), C, weight, False)
    dual = Nesterov().init(problem, None, 1e-3).dual
    beta = np.where(weight > 0, rng.normal(size=12), 0.0)

    def place(beta):
        return dual.place(beta, bank.image(beta))

    quad = np.einsum("i,mij,j->m", beta, stack, beta)
    assert place(beta).value == pytest.approx(-problem.dual(beta, quad), rel=1e-12)
    for i in range(1, 12):
        step = 1e-6 * np.eye(12)[i]
        slope = (place(beta + step).value - place(beta - step).value) / 2e-6
        assert place(beta).gradient[i] == pytest.approx(slope, rel=1e-5, abs=1e-6)


def test_the_paper_s_iterates_are_those_of_its_algorithm():
    """Algorithm 2 written out: b, the gradient step; a, its mean with the step from the start along all gradients."""
    problem, stack = small_problem(Entropy(0.3))
    lam, y = problem.norm.lam, problem.y
    solver = Nesterov(variant="paper")
    state = solver.init(problem, None, 1e-3)
    L, start = state.dual.lipschitz_bound(), state.x.beta

    def slope(beta):
        s = np.array([beta @ K @ beta for K in stack])
        theta = np.exp((s - s.max()) / lam)
        return np.tensordot(theta / theta.sum(), stack @ beta, axes=1) - y

    def inside(beta):  # without an intercept the dual set is a box
        return np.clip(y * beta, 0.0, 1.0) * y

    a, gathered = start, np.zeros(problem.n)
    for k in range(12):
        gathered += 0.5 * (k + 1) * slope(a)
        b, centre = inside(a - slope(a) / L), inside(start - gathered / L)
        a = 2.0 / (k + 3) * centre + (k + 1) / (k + 3) * b
        state = solver.step(problem, state)
        np.testing.assert_allclose(state.x.beta, b, atol=1e-11)
        np.testing.assert_allclose(state.z.beta, a, atol=1e-11)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_bound_of_theorem_4_holds_at_every_iteration(fit_intercept):
    """f_lam(b^N) - f_lam* <= 2 L |a* - a0|^2 / ((N + 1)(N + 2)), with L of Corollary 3 as corrected."""
    problem, stack = small_problem(Entropy(0.3), fit_intercept)
    best = solve(problem, make_solver("newton", problem.loss, problem.norm), Stop(1e-11, max_iter=60))
    lam, optimum = problem.norm.lam, best.certificate.dual_point
    lowest = smoothed_value(problem, stack, optimum, lam)
    top = max(np.linalg.eigvalsh(K)[-1] for K in stack)
    L = top + problem.n * 1.0**2 * top**2 / (2 * lam)
    solver = Nesterov(variant="paper")
    state = solver.init(problem, None, 1e-3)
    start = state.x.beta
    values = []
    for N in range(60):
        state = solver.step(problem, state)
        assert state.lipschitz == pytest.approx(L)
        values.append(smoothed_value(problem, stack, state.x.beta, lam) - lowest)
        assert values[-1] <= 2 * L * np.sum((optimum - start) ** 2) / ((N + 1) * (N + 2)) + 1e-9
    assert values[-1] < 0.9 * values[0]  # it does go down


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("C", [1.0, 50.0])
def test_l1_through_smoothing_reaches_the_l1_optimum(fit_intercept, C):
    problem, _ = small_problem(L1(), fit_intercept, C)
    exact = solve(problem, make_solver("newton", problem.loss, problem.norm), Stop(1e-9))
    found = solve(problem, Nesterov(), Stop(1e-4))
    assert found.converged
    assert found.certificate.dual <= exact.certificate.primal * (1 + 1e-12)
    assert found.certificate.primal == pytest.approx(exact.certificate.primal, rel=1e-4)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("smoothing", [0.01, 0.1, 1.0])
def test_smoothed_objective_agrees_with_a_conic_solver(smoothing, fit_intercept):
    problem, stack = small_problem(Entropy(smoothing), fit_intercept, n=20, m=4)
    found = solve(problem, Nesterov(), Stop(5e-7))
    assert found.converged
    exact = ref.conic_optimum(
        stack, problem.y, problem.c, HINGE, ref.entropy_norm(problem.norm.lam, smoothing),
        fit_intercept,
    )  # fmt: skip
    assert exact.relative_gap < 1e-7
    assert found.certificate.primal == pytest.approx(exact.value, rel=1e-6)
    assert found.certificate.dual == pytest.approx(exact.value, rel=1e-6)


def test_continuation_beats_the_constant_step():
    problem, _ = small_problem(L1())
    adaptive = solve(problem, Nesterov(), Stop(1e-2))
    printed = solve(problem, Nesterov(variant="paper"), Stop(1e-2, max_iter=adaptive.n_iter))
    assert adaptive.converged
    assert not printed.converged


def test_final_svm_does_not_make_it_worse():
    problem, _ = small_problem(Entropy(0.2))
    solver = Nesterov()
    state = solver.init(problem, None, 1e-2)
    for _ in range(5):
        state = solver.step(problem, state)
    point = solver.point(state)
    finished = solver.finish(problem, point)
    assert problem.certificate(finished).primal <= problem.certificate(point).primal * (1 + 1e-6)


def test_unknown_variant_is_refused():
    problem, _ = small_problem(L1())
    with pytest.raises(ValueError, match="one of adaptive, paper"):
        solve(problem, Nesterov(variant="printed"))


@pytest.mark.parametrize("max_iter", [1, 200])
def test_given_weights_stay_in_every_stage(max_iter):
    """The smoother norms on the way are those of the other kernels: stages used to share out the given weight as well."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, 3)), rng.normal(size=12)
    bank = kw.gaussian([0.5, 1.0, 2.0]) + kw.always(kw.linear(), 0.3)
    for target in (y, np.full(12, 1.5)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = MKLRegressor(bank, norm="entropy", solver="nesterov", max_iter=max_iter).fit(X, target)
        assert model.weights_[3] == pytest.approx(0.3)
        assert np.sum(model.weights_[:3]) == pytest.approx(1.0)
