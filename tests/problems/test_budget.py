"""Problems with a budget that binds: against a conic solver, against the plain hinge, on singular kernels."""

from __future__ import annotations

import numpy as np
import pytest

import references as ref
from kernelweave.banks import build_bank
from kernelweave.losses import BudgetedHinge, Hinge
from kernelweave.norms import L1
from kernelweave.problems import MKLProblem, Point, solve_fixed
from kernelweave.solvers import Stop, choose_solver, solve, without_caches
from timed import time_limit

from .making import make_case

with_and_without = pytest.mark.parametrize("fit_intercept", [True, False], ids=["intercept", "no intercept"])
N = 30


def stack(n: int = N) -> np.ndarray:
    return ref.kernel_stack(n, 4)


def noisy_labels(n: int = N) -> np.ndarray:
    y = ref.targets(n, False)
    y[::5] *= -1
    return y


def mkl(loss, lam: float, fit_intercept: bool, weight=None, n: int = N) -> MKLProblem:
    bank = build_bank(None, stack(n), normalize=None)
    return MKLProblem(bank, loss, L1(), noisy_labels(n), 1.0 / (lam * n), weight, fit_intercept)


def solved(problem: MKLProblem, tol: float = 1e-7):
    solution = solve(problem, choose_solver(problem.loss, problem.norm, problem.bank), Stop(tol))
    assert solution.converged
    return solution


# ---- the optimum ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lam", [1.0, 0.1, 0.01])
@pytest.mark.parametrize("rho", [3.0, 10.5, 20.0, 29.0])
@with_and_without
def test_agreement_with_a_conic_solver(lam, rho, fit_intercept):
    problem = mkl(BudgetedHinge(rho / N), lam, fit_intercept)
    solution = solved(problem)
    reference, one = ref.budgeted_hinge(rho / N), ref.l1_norm()
    exact = ref.conic_optimum(stack(), problem.y, problem.c, reference, one, fit_intercept)
    assert exact.relative_gap < 1e-6
    point = without_caches(solution.point)
    primal = ref.primal_value(
        stack(), problem.y, problem.c, point.beta, point.weights, reference, one, fit_intercept
    )
    dual = ref.dual_value(stack(), problem.y, problem.c, solution.certificate.dual_point, reference, one)
    assert primal == pytest.approx(exact.value, rel=1e-5)
    assert dual == pytest.approx(exact.value, rel=1e-5)
    assert ref.in_dual_set(problem.y, problem.c, solution.certificate.dual_point, reference, fit_intercept)


@with_and_without
def test_exact_set_agrees_with_a_conic_solver(fit_intercept):
    weight = np.random.default_rng(0).choice([0.0, 0.5, 1.0, 2.0], size=N)
    for budget, base in ((0.5, 0.3), (0.8, 0.55)):
        problem = mkl(BudgetedHinge(budget, base), 0.05, fit_intercept, weight)
        solution = solved(problem)
        reference = ref.budgeted_hinge(budget, base)
        exact = ref.conic_optimum(stack(), problem.y, problem.c, reference, ref.l1_norm(), fit_intercept)
        assert solution.certificate.primal == pytest.approx(exact.value, rel=1e-5)
        assert solution.certificate.dual == pytest.approx(exact.value, rel=1e-5)


@with_and_without
def test_the_whole_budget_is_the_plain_hinge_to_the_last_bit(fit_intercept):
    whole, plain = (solved(mkl(loss, 0.05, fit_intercept), 1e-5) for loss in (BudgetedHinge(), Hinge()))
    np.testing.assert_array_equal(whole.point.beta, plain.point.beta)
    np.testing.assert_array_equal(whole.point.weights, plain.point.weights)
    assert whole.certificate.primal == plain.certificate.primal
    assert whole.certificate.dual == plain.certificate.dual
    assert whole.passes == plain.passes
    # and a budget that is there but does not bind changes next to nothing
    loose = solved(mkl(BudgetedHinge(1 - 1e-12), 0.05, fit_intercept), 1e-5)
    assert loose.certificate.primal == pytest.approx(plain.certificate.primal, rel=2e-5)


@pytest.mark.parametrize(("lam", "rho"), [(0.3, 20.0), (0.1, 10.0), (0.03, 5.0)])
@with_and_without
def test_a_binding_budget_is_the_plain_hinge_with_a_smaller_lambda(lam, rho, fit_intercept):
    """notation (13): f_St(lam, rho) = r f_Si(lam r), and the optimum is the lowest of r V(lam r) + (rho/n)(1 - r)."""
    problem = mkl(BudgetedHinge(rho / N), lam, fit_intercept)
    budgeted = solved(problem)
    r = budgeted.certificate.margin
    assert 0.01 < r < 0.95

    def lowest(r):
        return lam * r * solved(mkl(Hinge(), lam * r, fit_intercept)).certificate.primal

    value = lam * budgeted.certificate.primal
    assert value == pytest.approx(r * lowest(r) + rho / N * (1 - r), rel=1e-3)
    for other in (0.5 * r, 0.9 * r, min(1.0, 1.1 * r), 1.0):
        assert value <= other * lowest(other) + rho / N * (1 - other) + 1e-6
    plain = solved(mkl(Hinge(), lam * r, fit_intercept))

    def decision(solution):
        return (
            ref.decision_values(stack(), solution.point.beta, solution.point.weights)
            + solution.certificate.intercept
        )

    scaled, unit = decision(budgeted), decision(plain)
    np.testing.assert_allclose(scaled / r, unit, atol=1e-3 * np.abs(unit).max())
    clear = np.abs(unit) > 2e-3 * np.abs(unit).max()
    np.testing.assert_array_equal(np.sign(scaled[clear]), np.sign(unit[clear]))
    # and the multipliers of the plain hinge spend the budget, in units of its own C
    spent = np.sum(np.abs(plain.certificate.dual_point)) * lam * r * N
    assert spent == pytest.approx(rho, rel=2e-2)


# ---- the certificate -----------------------------------------------------------------------------------------------


@with_and_without
def test_relative_gap_is_in_units_of_the_margin(fit_intercept):
    problem = mkl(BudgetedHinge(0.3), 0.1, fit_intercept)
    reference = ref.budgeted_hinge(0.3)
    rng = np.random.default_rng(0)
    for size in (0.1, 1.0, 10.0):
        beta, d = size * rng.normal(size=N), rng.dirichlet(np.ones(4))
        found = problem.certificate(Point(beta, d))
        f = ref.decision_values(stack(), beta, d) + found.intercept
        margin = max(1 - reference.threshold(problem.y, f, problem.c), 1e-6)
        assert found.margin == pytest.approx(margin)
        assert found.relative_gap == pytest.approx(ref.relative(found.primal, found.dual) / margin)
    assert problem.certificate(Point(np.zeros(N), d)).margin == (
        1e-6 if not fit_intercept else pytest.approx(1e-6)
    )


@pytest.mark.parametrize("loss", [ref.HINGE, ref.budgeted_hinge(0.3)], ids=lambda loss: loss.label)
@with_and_without
def test_blocks_with_their_own_coefficients(loss, fit_intercept):
    case = make_case(loss, "l1", fit_intercept)
    optimum = case.conic()
    rng = np.random.default_rng(1)
    for size in (0.01, 0.1, 1.0):
        A = size * rng.normal(size=(5, 24)) * rng.choice([0.0, 1.0], size=(5, 1))
        V = np.stack([K @ a for K, a in zip(case.Ks, A, strict=True)])
        t = np.sqrt(np.sum(A * V, axis=1))
        beta, d = rng.normal(size=24), np.full(5, 0.2)
        point = Point(beta, d, decision=V.sum(axis=0), blocks=t)
        found = case.problem.certificate(point)
        charged = ref.lowest_loss(loss, case.y, V.sum(axis=0), case.c, fit_intercept)
        assert found.primal == pytest.approx(case.norm.half_square(t) + charged, rel=1e-9)
        assert found.primal >= optimum.dual * (1 - 1e-7)
        # the lower bound and the point that predicts are those of the shared coefficients
        shared = case.problem.certificate(without_caches(point))
        assert found.dual == shared.dual
        assert shared.primal == pytest.approx(case.primal(beta, d), rel=1e-9)
    with pytest.raises(ValueError, match="needs its decision values"):
        case.problem.certificate(Point(beta, d, blocks=t))


# ---- the inner problem ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("base", [0.0, 0.1])
@pytest.mark.parametrize("budget", [0.12, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("C", [1e-3, 0.3, 30.0])
@with_and_without
def test_inner_solutions_reach_the_target(budget, base, C, fit_intercept):
    loss, reference = BudgetedHinge(budget, base), ref.budgeted_hinge(budget, base)
    K, y = stack().mean(axis=0), noisy_labels()
    c = C * np.random.default_rng(2).choice([0.5, 1.0, 2.0], size=N)
    found = solve_fixed(K, loss, y, c, fit_intercept, 1e-8)
    assert found.relative_gap <= 1e-8
    assert ref.in_dual_set(y, c, found.beta, reference, fit_intercept)
    exact = ref.conic_optimum([K], y, c, reference, ref.l1_norm(), fit_intercept)
    assert found.dual == pytest.approx(exact.value, rel=1e-6)


@pytest.mark.parametrize("rank", [1, 2, 5])
@with_and_without
def test_singular_kernels(rank, fit_intercept):
    """What is spent jumps with the price: no single price spends the budget, a mixture of two solutions does."""
    Z = np.round(np.random.default_rng(3).normal(size=(N, rank)), 1)
    K, y = Z @ Z.T, noisy_labels()
    for budget in (0.2, 0.5, 0.8):
        for C in (0.1, 10.0):
            c = np.full(N, C)
            found = solve_fixed(K, BudgetedHinge(budget), y, c, fit_intercept, 1e-6)
            reference = ref.budgeted_hinge(budget)
            exact = ref.conic_optimum([K], y, c, reference, ref.l1_norm(), fit_intercept)
            assert found.dual == pytest.approx(exact.value, rel=1e-6)
            assert found.primal == pytest.approx(exact.value, rel=1e-6)


@with_and_without
def test_labels_that_contradict_each_other_leave_nothing_to_learn(fit_intercept):
    """Every sample twice, with both labels: f = 0 is optimal, the margin is zero, and the bounds meet."""
    n = 12
    K = np.kron(ref.kernel_stack(n, 3)[0], np.ones((2, 2)))
    y = np.tile([1.0, -1.0], n)
    for budget in (0.3, 0.7):
        found = solve_fixed(K, BudgetedHinge(budget), y, np.ones(2 * n), fit_intercept, 1e-4)
        assert found.primal == pytest.approx(budget * 2 * n, rel=1e-6)
        assert found.dual == pytest.approx(budget * 2 * n, rel=1e-6)


@with_and_without
def test_a_start_saves_work_whether_the_budget_binds_or_not(fit_intercept):
    K, y, c = stack().mean(axis=0), noisy_labels(), np.full(N, 0.5)
    for budget in (0.3, 0.999):
        loss = BudgetedHinge(budget)
        cold = solve_fixed(K, loss, y, c, fit_intercept, 1e-7)
        warm = solve_fixed(K, loss, y, c, fit_intercept, 1e-7, start=cold, keep_product=True)
        assert warm.relative_gap <= 1e-7
        assert warm.iterations < cold.iterations
        # from the wrong side: a start that spends too much, or too little
        for factor in (0.0, 0.3, 10.0):
            other = solve_fixed(K, BudgetedHinge(min(1.0, 1.5 * budget)), y, factor * c, fit_intercept, 1e-7)
            moved = solve_fixed(K, loss, y, c, fit_intercept, 1e-7, start=other)
            assert moved.primal == pytest.approx(cold.primal, rel=1e-6)


@with_and_without
def test_columns_have_budgets_of_their_own(fit_intercept):
    y = ref.targets(N, False, columns=2)
    c = np.random.default_rng(4).uniform(0.1, 1.0, size=y.shape)
    K, loss = stack().mean(axis=0), BudgetedHinge(0.3)
    both = solve_fixed(K, loss, y, c, fit_intercept, 1e-7)
    alone = [solve_fixed(K, loss, y[:, k], c[:, k], fit_intercept, 1e-7) for k in range(2)]
    assert both.primal == pytest.approx(sum(one.primal for one in alone))
    assert both.margin == min(one.margin for one in alone)


@with_and_without
def test_no_weight_at_all_is_no_trouble(fit_intercept):
    K, y, nothing = stack().mean(axis=0), noisy_labels(), np.zeros(N)
    found = solve_fixed(K, BudgetedHinge(0.3), y, nothing, fit_intercept, 1e-6)
    again = solve_fixed(K, BudgetedHinge(0.3), y, nothing, fit_intercept, 1e-6, start=found)
    for one in (found, again):
        assert one.primal == one.dual == 0.0
        assert not np.any(one.beta)


@pytest.mark.parametrize("seed", range(8))
def test_without_time_the_search_for_the_price_ends(seed):
    """Nothing answers to the price once the time is over: it used to rise a hundred times, and end in an AssertionError."""
    rng = np.random.default_rng(seed)
    n, loss = 30, BudgetedHinge(0.8, 0.1)
    X, y, c = rng.normal(size=(n, 3)), np.where(rng.random(n) < 0.5, 1.0, -1.0), np.full(n, 0.2)
    K = X @ X.T
    starts = [None, solve_fixed(K * rng.uniform(0.1, 10.0), loss, y, c, False, 1e-4)]
    for start in starts:
        with time_limit(1e-9):
            found = solve_fixed(K, loss, y, c, False, 1e-6, start)
        a = y * found.beta
        assert np.all(a >= -1e-12)
        assert np.all(a <= c * (1 + 1e-12))
        # beyond a tenth of c each, all together have seven tenths to spend
        assert np.sum(np.maximum(a - 0.1 * c, 0.0)) <= 0.7 * np.sum(c) * (1 + 1e-9)
        assert found.dual <= found.primal
