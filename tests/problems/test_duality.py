"""The judge: primal, dual and certificate of arbitrary points, against the definitions and against each other."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import references as ref
from kernelweave.banks import build_bank
from kernelweave.problems import Certificate, MKLProblem, Point, relative_gap, with_certain_bounds

from .making import NORMS, STRUCTURED, make_case

every_loss = pytest.mark.parametrize("loss", ref.LOSSES, ids=lambda loss: loss.label)
every_norm = pytest.mark.parametrize("norm", list(NORMS))
with_and_without = pytest.mark.parametrize("fit_intercept", [True, False], ids=["intercept", "no intercept"])


def random_betas(rng, shape, count):
    """Coefficients of all sizes, most of them outside any box, some sparse."""
    sizes = 10.0 ** rng.uniform(-2, 1.5, size=count)
    return [
        size * rng.normal(size=shape) * (rng.uniform(size=shape) < rng.choice([0.2, 1.0])) for size in sizes
    ]


def block_functions(case, rng, count):
    """Objective of arbitrary functions ``f_j`` in the span of kernel j, which need share no coefficients."""
    values = []
    for size in 10.0 ** rng.uniform(-2, 1.0, size=count):
        f, t = np.zeros(case.y.shape), []
        for K in case.Ks:
            alpha = size * rng.normal(size=case.y.shape) * rng.choice([0.0, 1.0])
            f = f + K @ alpha
            t.append(np.sqrt(np.sum(alpha * (K @ alpha))))
        t = np.array(t)
        if case.norm.label == "entropy":  # any weights on the simplex bound the minimum over weights
            charged = ref.entropy_joint(t, rng.dirichlet(np.ones(t.size)), case.norm.parameter)
        else:
            charged = case.norm.half_square(t)
        values.append(charged + ref.lowest_loss(case.loss, case.y, f, case.c, case.fit_intercept))
    return values


@pytest.mark.pairs
@every_loss
@every_norm
@with_and_without
@pytest.mark.parametrize("columns", [None, 2], ids=["one column", "two columns"])
def test_weak_duality_on_thousands_of_pairs(loss, norm, fit_intercept, columns):
    case = make_case(loss, norm, fit_intercept, n=12, m=3, columns=columns)
    rng = np.random.default_rng(0)
    duals, primals = [], block_functions(case, rng, 20)
    for beta in random_betas(rng, case.y.shape, 60):
        repaired = case.problem.repair(beta)
        assert case.feasible(repaired)
        value = case.problem.dual(repaired)
        assert value == pytest.approx(case.dual(repaired), rel=1e-9, abs=1e-9)
        duals.append(value)
    for beta in random_betas(rng, case.y.shape, 20):
        d = case.problem.norm.start(3) * rng.uniform(0.2, 1.0, size=3)
        if norm == "entropy":
            d = d / d.sum()
        if norm == "uniform":
            d = case.problem.norm.start(3)
        primals.append(case.problem.primal(Point(beta, d))[0])
    assert max(duals) <= min(primals) + 1e-9 * (1 + abs(min(primals)))


@pytest.mark.parametrize("norm", ["l1", "lp-2", "uniform"])
def test_bounds_hold_in_spite_of_rounding(norm):
    """Coefficients that cancel in kernels with a large constant part: forms and values lose most of their digits."""
    case = make_case(ref.HINGE, norm, False, n=12, m=3)
    Ks = case.Ks + 1e10
    bank = build_bank(None, Ks, normalize=None)
    problem = MKLProblem(bank, case.problem.loss, case.problem.norm, case.y, 3.0, None, False)
    rng = np.random.default_rng(0)
    for _ in range(5):
        half = 0.3 * rng.uniform(size=6)
        beta = np.zeros(12)
        for sign in (1.0, -1.0):
            beta[np.flatnonzero(case.y == sign)[:6]] = sign * half[: np.count_nonzero(case.y == sign)]
        quad, decision = bank.judged(np.full(3, 1 / 3), beta)
        point = Point(beta, np.full(3, 1 / 3), quad, decision)
        judged = problem.certificate(point)
        certain = with_certain_bounds(problem, point, judged)
        assert certain.primal > judged.primal
        assert problem.zero_bound < certain.dual < judged.dual
        # the constant part times the square of a sum, in extended precision
        total = float(np.sum(beta.astype(np.longdouble)))
        exact = ref.quadratic_forms(case.Ks, beta) + 1e10 * total**2
        gain = float(case.y @ beta)
        assert certain.dual <= gain - problem.norm.conjugate(np.maximum(exact, 0.0)) + 1e-9 * abs(gain)


@every_loss
def test_a_gap_is_relative_to_the_larger_bound_however_small_that_is(loss):
    """But for regressions that fit their targets exactly, where both bounds are rounding."""
    case = make_case(loss, "l1", False, C=1e-6)
    for beta in (1e-7 * np.sign(case.y), 0.0 * case.y):
        judged = case.problem.certificate(Point(beta, np.full(5, 0.2)))
        assert judged.margin == 1.0 or loss.budget < 1.0
        largest = max(abs(judged.primal), abs(judged.dual))
        assert judged.relative_gap * judged.margin == pytest.approx(
            (judged.primal - judged.dual) / largest, rel=1e-12
        )
    exact = make_case(loss, "l1", False, C=1e6).problem
    if loss.regression:
        nearly = exact.loss.nearly_exact(exact.y, 1e4 * np.finfo(float).eps)
        rounding = exact.loss.total(exact.y, nearly, exact.c)
        assert exact.tiny == max(rounding, np.finfo(float).tiny)
    else:
        assert exact.tiny == np.finfo(float).tiny


@pytest.mark.pairs
@every_loss
@every_norm
@with_and_without
def test_certificate_of_any_point_is_valid_and_can_be_recomputed(loss, norm, fit_intercept):
    case = make_case(loss, norm, fit_intercept)
    optimum = case.conic()
    assert optimum.relative_gap < 1e-7
    rng = np.random.default_rng(1)
    for beta in random_betas(rng, case.y.shape, 10):
        weights = rng.uniform(size=5) * rng.choice([0.1, 1.0, 10.0])
        if norm == "uniform":
            weights = np.full(5, 0.2)
        found = case.problem.certificate(Point(beta, weights))
        slack = 1e-7 * (1 + abs(optimum.value))
        assert found.primal >= optimum.dual - slack
        assert found.dual <= optimum.primal + slack
        assert found.gap >= -slack
        assert case.feasible(found.dual_point)
        assert found.dual == pytest.approx(case.dual(found.dual_point), rel=1e-9, abs=1e-9)
        if norm == "entropy":
            t = weights * np.sqrt(ref.quadratic_forms(case.Ks, beta))
            f = ref.decision_values(case.Ks, beta, weights)
            charged = ref.entropy_joint(t, weights / weights.sum(), case.norm.parameter)
            expected = charged + ref.lowest_loss(loss, case.y, f, case.c, fit_intercept)
        else:
            expected = case.primal(beta, weights)
        assert found.primal == pytest.approx(expected, rel=1e-9)
        # the intercept is the one that the objective is computed with
        f = ref.decision_values(case.Ks, beta, weights) + found.intercept
        lowest = ref.lowest_loss(loss, case.y, f - found.intercept, case.c, fit_intercept)
        assert loss.total(case.y, f, case.c) == pytest.approx(lowest, rel=1e-9)


@with_and_without
@pytest.mark.parametrize("columns", [None, 3])
def test_points_in_the_dual_set_are_left_alone(fit_intercept, columns):
    case = make_case(ref.HINGE, "l1", fit_intercept, columns=columns)
    rng = np.random.default_rng(2)
    beta = case.problem.repair(rng.normal(size=case.y.shape))
    np.testing.assert_array_equal(case.problem.repair(beta), beta)
    # rounding is clipped away, not spread over all coefficients
    low, high = case.problem.loss.box(case.y, case.c)
    nudged = beta * (1 + 1e-15)
    again = case.problem.repair(nudged)
    assert np.all((again >= low) & (again <= high))
    np.testing.assert_allclose(again, beta, rtol=1e-14)


def test_what_the_solver_knows_already_is_not_read_again():
    case = make_case(ref.LOGISTIC, "lp-2", True)
    beta = case.problem.repair(np.random.default_rng(3).normal(size=24))
    d = np.full(5, 0.3)
    quad, decision = ref.quadratic_forms(case.Ks, beta), ref.decision_values(case.Ks, beta, d)
    plain = case.problem.certificate(Point(beta, d))
    before = case.problem.bank.passes
    cached = case.problem.certificate(Point(beta, d, quad, decision))
    assert case.problem.bank.passes == before
    assert cached.primal == pytest.approx(plain.primal, rel=1e-12)
    assert cached.dual == pytest.approx(plain.dual, rel=1e-12)


def test_cached_forms_of_an_infeasible_point_are_not_used_for_the_bound():
    case = make_case(ref.HINGE, "l1", True)
    beta = 100.0 * np.random.default_rng(4).normal(size=24)
    d = np.full(5, 0.2)
    quad, decision = ref.quadratic_forms(case.Ks, beta), ref.decision_values(case.Ks, beta, d)
    found = case.problem.certificate(Point(beta, d, quad, decision))
    assert found.dual == pytest.approx(case.dual(found.dual_point), rel=1e-9)


def test_other_coefficients_for_the_bound():
    case = make_case(ref.HINGE, "l1", False)
    optimum = case.conic()
    rng = np.random.default_rng(5)
    poor, d = 5.0 * rng.normal(size=24), np.full(5, 0.2)
    plain = case.problem.certificate(Point(poor, d))
    helped = case.problem.certificate(Point(poor, d, dual_beta=optimum.beta))
    assert helped.primal == plain.primal
    assert helped.dual == pytest.approx(optimum.dual, rel=1e-9)
    assert helped.dual > plain.dual
    np.testing.assert_allclose(helped.dual_point, optimum.beta, atol=1e-9)
    hindered = case.problem.certificate(Point(poor, d, dual_beta=100.0 * poor))
    assert hindered.dual >= plain.dual


# ---- sample weights ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ref.LOSSES, ids=lambda loss: loss.label)
@with_and_without
def test_weight_zero_is_absence_and_weight_two_is_repetition(loss, fit_intercept):
    n = 14
    rng = np.random.default_rng(6)
    weight = rng.choice([0.0, 1.0, 2.0], size=n)
    weight[:2] = [0.0, 2.0]
    case = make_case(loss, "lp-2", fit_intercept, n=n, m=3, sample_weight=weight)
    index = np.repeat(np.arange(n), weight.astype(int))
    repeated = np.array([K[np.ix_(index, index)] for K in case.Ks])
    c = np.full(index.size, 3.0)
    d = rng.uniform(0.1, 1.0, size=3)
    for beta in random_betas(rng, n, 8):
        beta = np.where(weight > 0, beta, 0.0)
        spread = beta[index] / weight[index]
        here = case.problem.primal(Point(beta, d))[0]
        there = ref.primal_value(repeated, case.y[index], c, spread, d, loss, case.norm, fit_intercept)
        assert here == pytest.approx(there, rel=1e-9)
        repaired = case.problem.repair(beta)
        spread = repaired[index] / weight[index]
        there = ref.dual_value(repeated, case.y[index], c, spread, loss, case.norm)
        assert case.problem.dual(repaired) == pytest.approx(there, rel=1e-9, abs=1e-9)
    assert np.all(case.problem.repair(rng.normal(size=n))[weight == 0] == 0)


def test_weights_a_sample_apply_to_every_column():
    weight = np.linspace(0.0, 2.0, 24)
    case = make_case(ref.HINGE, "l1", True, columns=2, sample_weight=weight)
    np.testing.assert_array_equal(case.problem.c, 3.0 * np.stack([weight, weight], axis=1))
    each = np.stack([weight, weight[::-1]], axis=1)
    case = make_case(ref.HINGE, "l1", True, columns=2, sample_weight=each)
    np.testing.assert_array_equal(case.problem.c, 3.0 * each)


# ---- small things --------------------------------------------------------------------------------------------------


def test_relative_gap():
    assert relative_gap(2.0, 1.0) == 0.5
    assert relative_gap(-1.0, -2.0) == 0.5
    assert relative_gap(1.0, -3.0) == pytest.approx(4 / 3)
    assert relative_gap(0.0, 0.0) == 0.0


def test_certificate_keeps_the_better_bound_and_reads_well():
    low = Certificate(3.0, 1.0, np.zeros(2))
    high = Certificate(5.0, 2.0, np.ones(2))
    joined = low.with_dual_of(high)
    assert (joined.primal, joined.dual) == (3.0, 2.0)
    np.testing.assert_array_equal(joined.dual_point, np.ones(2))
    assert high.with_dual_of(low) is high
    assert joined.gap == 1.0
    assert joined.relative_gap == pytest.approx(1 / 3)
    assert "within 34 %" in repr(joined)  # 33.3 %: digits are never on the side that claims more
    assert "below 2:" in repr(joined)


def test_the_entropys_strength_is_relative_to_the_mean_kernel():
    for fit_intercept in (True, False):
        case = make_case(ref.HINGE, "entropy", fit_intercept)
        on_mean = ref.conic_optimum(case.Ks, case.y, case.c, ref.HINGE, ref.uniform_norm(), fit_intercept)
        assert case.problem.norm.lam == pytest.approx(0.2 * on_mean.value, rel=1e-5)
        assert case.problem.mean_kernel_value() == pytest.approx(on_mean.value, rel=1e-5)


def test_norms_are_checked_against_the_bank():
    from kernelweave.norms import Fixed

    case = make_case(ref.HINGE, "l1", True)
    with pytest.raises(ValueError, match="2 weights for a bank of 5 kernels"):
        type(case.problem)(case.problem.bank, case.problem.loss, Fixed([1.0, 2.0]), case.y)


@pytest.mark.parametrize("norm", [*NORMS, *STRUCTURED])
def test_a_function_whose_square_overflows_has_an_infinite_objective(norm):
    case = make_case(ref.HINGE, norm, True)
    nothing = np.zeros(24)
    point = Point(
        nothing,
        case.problem.norm.start(5),
        np.zeros(5),
        nothing,
        blocks=np.array([1e200, 1.0, 0.0, 1e170, 1.0]),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert case.problem.primal(point)[0] == np.inf
