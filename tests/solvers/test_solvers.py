"""Every solver on every loss and norm it serves: the tolerance is reached, and the optimality conditions hold."""

from __future__ import annotations

import numpy as np
import pytest

import references as ref
from kernelweave.losses import make_loss
from kernelweave.losses import registry as losses
from kernelweave.norms import Fixed, make_norm
from kernelweave.problems import MKLProblem, Point
from kernelweave.solvers import (
    Stop,
    choose_solver,
    fitting_solvers,
    follow_path,
    make_solver,
    registry,
    solve,
    without_caches,
)
from problems.making import NORMS, Case, make_case

TOL = 1e-6
#: first-order methods take thousands of passes to 1e-6; they are tested as far as is reasonable
PATIENCE = {"nesterov": 1e-4, "mirror_prox": 1e-3, "variational": 0.2, "obscure": 0.1, "pegasos": 0.1}
INTERCEPT = {True: "intercept", False: "no intercept"}
COMBINATIONS = [
    pytest.param(
        solver, loss, norm, fit_intercept, id=f"{INTERCEPT[fit_intercept]}-{solver}-{loss.label}-{norm}"
    )
    for loss in ref.LOSSES
    for norm in NORMS
    for solver in fitting_solvers(loss.make(), NORMS[norm]().make())
    for fit_intercept in ([True, False] if registry[solver].intercepts else [False])
]
#: solvers of joint losses and of norms of their own have tests of their own
ENTRYWISE = sorted({case.values[0] for case in COMBINATIONS})


def run(case: Case, solver: str, tol: float, **options):
    problem = case.problem
    return solve(problem, make_solver(solver, problem.loss, problem.norm), Stop(tol=tol), **options)


def check_optimality(case: Case, solution, tol: float) -> None:
    """Each part of the gap is a condition: the loss's, sample by sample, and the norm's, kernel by kernel."""
    point, beta = without_caches(solution.point), solution.certificate.dual_point
    f = ref.decision_values(case.Ks, point.beta, point.weights) + solution.certificate.intercept
    t = point.weights * np.sqrt(np.maximum(ref.quadratic_forms(case.Ks, point.beta), 0.0))
    s = np.maximum(ref.quadratic_forms(case.Ks, beta), 0.0)
    used = case.c > 0
    assert case.feasible(beta)
    scale = abs(solution.certificate.primal)
    if case.loss.budget == 1.0:
        young = case.c[used] * case.loss.value(case.y[used], f[used])
        young += (
            case.c[used] * case.loss.conjugate(case.y[used], -beta[used] / case.c[used]) + (beta * f)[used]
        )
        assert np.all(young >= -1e-7 * scale)
    else:  # the samples share a budget: only the sum is a condition
        gain = ref.loss_gain(case.y, case.c, beta, case.loss)
        young = case.loss.total(case.y, f, case.c) - gain + np.sum(beta * f)
        assert young >= -1e-7 * scale
    assert np.sum(young) <= 1.1 * tol * scale + 1e-9
    if case.norm.label == "entropy":
        charged = ref.entropy_joint(t, np.maximum(point.weights, 1e-300), case.norm.parameter)
    else:
        charged = case.norm.half_square(t)
    along = np.sum(beta * (f - solution.certificate.intercept))
    holder = charged + case.norm.conjugate(s) - along
    assert -1e-7 * scale <= holder <= 1.1 * tol * scale + 1e-9
    check_weights(case, point.weights, s, tol * scale)


def check_weights(case: Case, d, s, gap: float) -> None:
    """What the norm says of the weights at the optimum, by hand."""
    label = case.norm.label
    assert np.all(d >= 0)
    if label == "l1":
        # s is largest wherever there is weight: sum_j d_j (max s - s_j) is a part of the gap
        d = d / d.sum()
        assert d @ (np.max(s) - s) <= 4 * gap + 1e-9
        assert np.all(s <= np.max(s[d > 0]) + 4 * gap + 1e-9)
    elif label == "uniform":
        np.testing.assert_array_equal(d, np.full(d.size, 1 / d.size))
    elif label == "entropy":
        e = np.exp((s - s.max()) / case.norm.parameter)
        np.testing.assert_allclose(d, e / e.sum(), atol=20 * np.sqrt(gap / case.norm.parameter))
    elif label == "lp-inf":
        np.testing.assert_allclose(d, 1.0)
    elif label.startswith("lp"):
        q = case.norm.parameter / (case.norm.parameter - 1)
        expected = (s / np.sum(s**q) ** (1 / q)) ** (q - 1)
        np.testing.assert_allclose(d, expected, atol=20 * np.sqrt(gap / np.max(s)))


@pytest.mark.pairs
@pytest.mark.parametrize(("solver", "loss", "norm", "fit_intercept"), COMBINATIONS)
def test_reaches_its_tolerance_at_an_optimum(solver, loss, norm, fit_intercept):
    tol = PATIENCE.get(solver, TOL)
    case = make_case(loss, norm, fit_intercept, n=20, m=4)
    solution = run(case, solver, tol)
    assert solution.converged
    assert solution.certificate.relative_gap <= tol
    check_optimality(case, solution, tol)
    check_trace(solution, loss.budget < 1.0)


def check_trace(solution, budgeted: bool) -> None:
    trace = np.array(solution.trace)
    assert np.all(np.diff(trace[:, 0]) == 1)  # iterations
    assert np.all(np.diff(trace[:, 1]) >= 0)  # seconds
    assert np.all(np.diff(trace[:, 2]) >= 0)  # passes
    assert np.all(np.diff(trace[:, 3]) <= 0)  # best primal
    assert np.all(np.diff(trace[:, 4]) >= 0)  # best dual
    assert np.all(trace[:, 3] >= trace[:, 4] - 1e-9 * np.abs(trace[:, 3]))
    gaps = (trace[:, 3] - trace[:, 4]) / np.maximum(np.abs(trace[:, 3]), np.abs(trace[:, 4]))
    if not budgeted:
        np.testing.assert_allclose(trace[:, 5], gaps, rtol=1e-12, atol=1e-15)
    else:  # in units of the margin, which is at most one
        assert np.all(trace[:, 5] >= gaps * (1 - 1e-12))
    assert np.all((trace[:, 6] >= 1) & (trace[:, 6] <= 4))
    assert solution.n_iter == len(trace)


@pytest.mark.parametrize("solver", ENTRYWISE)
@pytest.mark.parametrize("columns", [None, 2], ids=["one column", "two columns"])
def test_weighted_samples_and_columns(solver, columns):
    """Zero weights, unequal weights, several tasks: once a solver, on a loss and norm that fit it."""
    loss, norm = next(
        (loss, norm)
        for norm in ("l1", "lp-2", "uniform", "max", "entropy")
        for loss in (ref.HINGE, ref.SQUARED_HINGE, ref.LOGISTIC)
        if solver in fitting_solvers(loss.make(), NORMS[norm]().make())
    )
    online = not registry[solver].intercepts  # these give a sample one weight in all columns
    shape = 20 if columns is None or online else (20, 2)
    weight = np.random.default_rng(0).choice([0.0, 0.4, 1.0, 3.0], size=shape)
    case = make_case(
        loss, norm, registry[solver].intercepts, n=20, m=4, columns=columns, sample_weight=weight
    )
    tol = PATIENCE.get(solver, TOL)
    solution = run(case, solver, tol)
    assert solution.converged
    check_optimality(case, solution, tol)
    assert np.all(solution.certificate.dual_point[case.c == 0] == 0)


# ---- planted optima ------------------------------------------------------------------------------------------------


def planted(norm: str, loss: str, seed: int = 0, n: int = 16, m: int = 5):
    """A problem made from its answer: coefficients, weights and intercept first, then the targets that need them.

    Kernels are scaled so that the weights are the ones the norm wants; for l1 the last two kernels are too weak.
    """
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(m, n, n))
    Ks = Z @ Z.transpose(0, 2, 1) / n
    C, epsilon, b = 2.0, 0.15, 0.7
    beta = rng.uniform(-1.5, 1.5, size=n)
    if loss == "epsilon_insensitive":
        beta[:3], beta[3:6] = 0.0, [C, -C, C]  # in the tube, and beyond it
    free = np.arange(6, n)
    beta[free] -= beta.sum() / free.size
    assert np.abs(beta[free]).max() < C
    s = np.array([beta @ K @ beta for K in Ks])
    wanted = np.array([3.0, 3.0, 3.0, 2.0, 1.0]) if norm == "l1" else np.array([3.0, 2.5, 2.0, 1.0, 0.5])
    Ks = Ks * (wanted / s)[:, None, None]
    if norm == "l1":
        d = np.array([0.5, 0.3, 0.2, 0.0, 0.0])
    elif norm == "max":
        d = np.sum(np.sqrt(wanted)) / np.sqrt(wanted)
    elif norm == "uniform":
        d = np.full(m, 1 / m)
    else:
        p = float(norm.removeprefix("lp-"))
        d = wanted ** (1 / (p - 1))
        d = d / np.sum(d**p) ** (1 / p)
    f = np.tensordot(d, Ks, axes=1) @ beta + b
    if loss == "squared":
        y = f + beta / (2 * C)  # stationarity: beta = 2 C (y - f)
        reference = ref.SQUARED
    else:
        side = np.sign(beta)
        over = np.where(np.abs(beta) == C, 0.4, 0.0)
        y = f + side * (epsilon + over) + np.where(beta == 0, 0.5 * epsilon * rng.uniform(-1, 1, size=n), 0.0)
        reference = ref.epsilon_insensitive(epsilon)
    return Ks, y, C, reference, beta, d, b


PLANTED = [
    pytest.param(solver, norm, loss, id=f"{solver}-{norm}-{loss}")
    for norm in ("l1", "lp-1.3", "lp-2", "uniform", "max")
    for loss in ("squared", "epsilon_insensitive")
    for solver in fitting_solvers(make_loss(loss), NORMS[norm]().make())
    if solver not in PATIENCE
]


@pytest.mark.parametrize(("solver", "norm", "loss"), PLANTED)
def test_planted_optimum_is_found(solver, norm, loss):
    from kernelweave.banks import build_bank

    Ks, y, C, reference, beta, d, b = planted(norm, loss)
    charge = NORMS[norm]()
    c = np.full(y.size, C)
    # the plant satisfies every condition, so primal and dual meet
    primal = ref.primal_value(Ks, y, c, beta, d, reference, charge, True)
    assert primal == pytest.approx(ref.dual_value(Ks, y, c, beta, reference, charge), rel=1e-9)
    bank = build_bank(None, Ks, normalize=None)
    problem = MKLProblem(bank, reference.make(), charge.make(), y, C)
    solution = solve(problem, make_solver(solver, problem.loss, problem.norm), Stop(tol=1e-8, max_iter=3000))
    assert solution.certificate.primal == pytest.approx(primal, rel=1e-6)
    assert solution.certificate.dual <= primal * (1 + 1e-9)
    np.testing.assert_allclose(
        solution.point.weights / np.sum(solution.point.weights), d / d.sum(), atol=2e-3
    )
    np.testing.assert_allclose(solution.point.beta, beta, atol=5e-3)
    assert solution.certificate.intercept == pytest.approx(b, abs=5e-3)
    if norm == "l1":
        assert np.all(solution.point.weights[3:] < 1e-6)


# ---- starts --------------------------------------------------------------------------------------------------------


# the online methods of the papers begin at zero, and have no intercept
ITERATIVE = [name for name in ENTRYWISE if name != "fixed_weights" and registry[name].intercepts]


@pytest.mark.parametrize("solver", ITERATIVE)
def test_warm_start_takes_fewer_iterations(solver):
    loss, norm = next(
        (loss, norm)
        for loss in (ref.SQUARED_HINGE, ref.HINGE)
        for norm in ("l1", "lp-2")
        if solver in fitting_solvers(loss.make(), NORMS[norm]().make())
    )
    tol = max(1e-4, PATIENCE.get(solver, 0.0))
    cold = run(make_case(loss, norm, True), solver, tol)
    case = make_case(loss, norm, True)
    warm = run(case, solver, tol, start=Point(cold.point.beta, cold.point.weights))
    assert warm.converged
    assert warm.n_iter < cold.n_iter
    check_optimality(case, warm, tol)


@pytest.mark.parametrize("norm", ["l1", "lp-2", "entropy", "max", "uniform"])
def test_a_start_from_another_problem_is_moved_into_this_one(norm):
    """Coefficients outside the box and weights of another norm: the answer is the same."""
    case = make_case(ref.HINGE, norm, True, n=20, m=4)
    problem = case.problem
    solver = choose_solver(problem.loss, problem.norm, problem.bank)
    wild = Point(100.0 * np.random.default_rng(1).normal(size=20), np.array([5.0, 0.1, 2.0, 0.4]))
    solution = solve(problem, solver, Stop(tol=TOL), start=wild)
    fresh = solve(make_case(ref.HINGE, norm, True, n=20, m=4).problem, solver, Stop(tol=TOL))
    assert solution.converged
    assert solution.certificate.primal == pytest.approx(fresh.certificate.primal, rel=2 * TOL)
    check_optimality(case, solution, TOL)


def test_path_solves_every_C_from_the_one_before():
    Cs = [10.0, 0.1, 1.0]
    case = make_case(ref.HINGE, "l1", True)
    problem = case.problem
    solver = make_solver("newton", problem.loss, problem.norm)
    found = list(follow_path(problem.bank, problem.loss, problem.norm, solver, case.y, Cs, Stop(tol=TOL)))
    assert [C for C, _, _ in found] == [0.1, 1.0, 10.0]
    for C, _, solution in found:
        alone = make_case(ref.HINGE, "l1", True, C=C).conic()
        assert solution.converged
        assert solution.certificate.primal == pytest.approx(alone.value, rel=2 * TOL)


def test_a_path_on_other_samples_begins_at_the_weights_that_are_known():
    """The same answers in fewer iterations, on a fold of the samples; and whatever weights are said to be known."""
    Cs = [0.1, 1.0, 10.0]
    case = make_case(ref.HINGE, "l1", True, n=60, m=8)
    problem = case.problem
    solver = make_solver("newton", problem.loss, problem.norm)
    fold = np.where(np.arange(60) % 5 == 0, 0.0, 1.0)

    def follow(known=None, weight=fold):
        arguments = (problem.bank, problem.loss, problem.norm, solver, case.y, Cs, Stop(tol=TOL))
        return [one for _, _, one in follow_path(*arguments, sample_weight=weight, known=known)]

    known = {C: one.point.weights for C, one in zip(Cs, follow(weight=None), strict=True)}
    fresh, led = follow(), follow(known)
    misled = follow({C: np.eye(8)[0] for C in Cs})
    for one, other, third in zip(fresh, led, misled, strict=True):
        assert {one.status, other.status, third.status} == {"converged"}
        assert other.certificate.primal == pytest.approx(one.certificate.primal, rel=2 * TOL)
        assert third.certificate.primal == pytest.approx(one.certificate.primal, rel=2 * TOL)
    assert sum(one.n_iter for one in led) < sum(one.n_iter for one in fresh)


def test_coefficients_at_their_bound_follow_C_and_free_ones_stay():
    starts = []

    class Watched(registry["level"]):
        def init(self, problem, start, tol):
            starts.append(start)
            return super().init(problem, start, tol)

    case = make_case(ref.HINGE, "l1", False, n=20, m=4)
    problem = case.problem
    found = follow_path(
        problem.bank, problem.loss, problem.norm, Watched(), case.y, [0.2, 0.6], Stop(), fit_intercept=False
    )
    (_, _, first), _ = found
    size = case.y * first.point.beta  # between 0 and C
    held, free = size >= 0.2 * (1 - 1e-9), (size > 1e-9) & (size < 0.2 * (1 - 1e-6))
    assert held.any()
    assert free.any()
    assert np.all(held | free | (size <= 1e-9))
    np.testing.assert_allclose(starts[1].beta, np.where(held, 3.0, 1.0) * first.point.beta)


def test_the_printed_algorithm_creeps_but_its_bounds_hold():
    case = make_case(ref.HINGE, "entropy", False, n=20, m=4, C=0.3)
    printed = registry["nesterov"](variant="paper")
    short, long = (solve(case.problem, printed, Stop(tol=1e-3, max_iter=k)) for k in (5, 400))
    optimum = case.conic()
    assert long.certificate.relative_gap < 0.5 * short.certificate.relative_gap
    for solution in (short, long):
        assert solution.certificate.dual <= optimum.primal * (1 + 1e-7)
        assert solution.certificate.primal >= optimum.dual * (1 - 1e-7)
    with pytest.raises(ValueError, match=r"one of adaptive, paper, got 'printed'"):
        solve(case.problem, registry["nesterov"](variant="printed"))


# ---- odd problems --------------------------------------------------------------------------------------------------


def problem_of(Ks, y, loss, norm, C=1.0, **options) -> MKLProblem:
    from kernelweave.banks import build_bank

    bank = build_bank(None, np.ascontiguousarray(Ks), normalize=None)
    return MKLProblem(
        bank, make_loss(loss), norm if not isinstance(norm, str | float) else make_norm(norm), y, C, **options
    )


@pytest.mark.parametrize("solver", fitting_solvers(make_loss("squared_hinge"), make_norm("l1")))
def test_copies_of_a_kernel_and_a_kernel_of_zeros(solver):
    """No unique weights, and one kernel without any use: still an optimum, and nothing of the zero kernel needed."""
    K = ref.kernel_stack(20, 3)
    Ks = np.array([K[0], K[0], K[1], np.zeros((20, 20)), K[2]])
    y = ref.targets(20, False)
    tol = PATIENCE.get(solver, TOL)
    problem = problem_of(Ks, y, "squared_hinge", "l1")
    solution = solve(problem, make_solver(solver, problem.loss, problem.norm), Stop(tol=tol))
    conic = ref.conic_optimum(K, y, np.ones(20), ref.SQUARED_HINGE, ref.l1_norm(), True)
    assert solution.converged
    assert solution.certificate.primal == pytest.approx(conic.value, rel=2 * tol)


@pytest.mark.parametrize("solver", fitting_solvers(make_loss("logistic"), make_norm("uniform")))
def test_given_weights_with_zeros(solver):
    Ks, y = ref.kernel_stack(20, 4), ref.targets(20, False)
    given = np.array([0.5, 0.0, 2.0, 0.0])
    problem = problem_of(Ks, y, "logistic", Fixed(given), C=2.0)
    solution = solve(problem, make_solver(solver, problem.loss, problem.norm), Stop(tol=TOL))
    mixed = 0.5 * Ks[0] + 2.0 * Ks[2]
    conic = ref.conic_optimum([mixed], y, np.full(20, 2.0), ref.LOGISTIC, ref.l1_norm(), True)
    assert solution.converged
    assert solution.certificate.primal == pytest.approx(conic.value, rel=2 * TOL)
    np.testing.assert_array_equal(solution.point.weights, given)


@pytest.mark.parametrize(
    ("loss", "value"),
    [(name, 1.0) for name in losses if not (losses[name].joint or losses[name].coupled)]
    + [
        (name, v)
        for name in losses
        if "regression" in losses[name].tasks
        for v in (3.7, 1e5 / 3 if losses[name].not_negative else -1e5 / 3)
    ],
)
@pytest.mark.parametrize("norm", ["l1", "lp", "entropy", "uniform", "max"])
def test_one_class_or_a_constant_target(loss, norm, value):
    """With an intercept nothing is left to learn: an objective of zero, at once and without complaint."""
    problem = problem_of(ref.kernel_stack(12, 3), np.full(12, value), loss, norm)
    solver = choose_solver(problem.loss, problem.norm, problem.bank)
    solution = solve(problem, solver, Stop(tol=1e-3, max_iter=50))
    assert solution.converged
    assert abs(solution.certificate.primal) < 1e-9
    assert np.all(np.isfinite(solution.point.beta))
    assert np.all(np.isfinite(solution.point.weights))


@pytest.mark.parametrize("loss", [name for name in losses if not losses[name].joint])
@pytest.mark.parametrize("norm", ["l1", "lp", "entropy", "uniform", "max"])
@pytest.mark.filterwarnings("error")
def test_kernels_of_zeros_leave_the_intercept(loss, norm):
    from_zero = losses[loss].not_negative or losses[loss].ordered
    y = np.where(np.arange(12) < 4, 1.0, 0.0 if from_zero else -1.0)
    total = make_loss(loss).total
    lowest = ref.golden_section(lambda b: total(y, np.full(12, b), np.ones(12)), -9.0, 9.0)
    for solver in fitting_solvers(make_loss(loss), make_norm(norm), fit_intercept=True):
        problem = problem_of(np.zeros((3, 12, 12)), y, loss, norm)
        solution = solve(
            problem, make_solver(solver, problem.loss, problem.norm), Stop(tol=1e-9, max_iter=100)
        )
        assert solution.converged
        assert solution.certificate.primal == pytest.approx(lowest, rel=1e-8)


def test_small_signals_on_a_large_constant_are_not_taken_for_rounding():
    y = 1e6 + 1e-2 * ref.targets(20, True)
    problem = problem_of(ref.kernel_stack(20, 3), y, "squared", "l1")
    solution = solve(problem, choose_solver(problem.loss, problem.norm, problem.bank), Stop(tol=1e-5))
    conic = ref.conic_optimum(
        ref.kernel_stack(20, 3), ref.targets(20, True), np.ones(20), ref.SQUARED, ref.l1_norm(), True
    )
    assert solution.certificate.primal == pytest.approx(1e-4 * conic.value, rel=1e-3)


# ---- which solver --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", list(losses))
@pytest.mark.parametrize("norm", list(NORMS))
def test_something_fits_every_combination_and_auto_is_among_it(loss, norm):
    case = make_case(ref.LOSSES[0], norm, True, n=8, m=3)
    fitting = fitting_solvers(make_loss(loss), case.problem.norm)
    assert fitting
    chosen = choose_solver(make_loss(loss), case.problem.norm, case.problem.bank)
    assert chosen.registered_as in fitting


@pytest.mark.parametrize("solver", list(registry))
def test_unfit_combinations_are_refused_and_fitting_ones_named(solver):
    refused = 0
    for name in losses:
        for norm in NORMS:
            loss, charge = make_loss(name), NORMS[norm]().make()
            fitting = fitting_solvers(loss, charge)
            if solver in fitting:
                assert make_solver(solver, loss, charge).registered_as == solver
                continue
            refused += 1
            with pytest.raises(ValueError, match=f"solver '{solver}' needs ") as caught:
                make_solver(solver, loss, charge)
            message = str(caught.value)
            assert charge.label in message
            assert repr(loss) in message
            for other in fitting:
                assert repr(other) in message
    assert refused > 0


def test_unknown_solvers_get_the_nearest_name():
    loss, norm = make_loss("hinge"), make_norm("l1")
    with pytest.raises(
        ValueError, match=r"unknown solver 'newtin'.*Did you mean 'newton'.*Known solvers: .*silp"
    ):
        make_solver("newtin", loss, norm)
    with pytest.raises(ValueError, match=r"solver must be a name"):
        make_solver(7, loss, norm)
    kept = registry["level"](level=0.5)
    assert make_solver(kept, loss, norm) is kept


def test_every_solver_says_what_it_is():
    for name in registry:
        solver = registry[name]()
        assert solver.summary
        assert solver.default_max_iter > 0
        assert solver.get_params() == registry[name](**solver.get_params()).get_params()


@pytest.mark.parametrize("level", [0.0, 1.0, -0.3])
def test_level_checks_its_parameter(level):
    problem = problem_of(ref.kernel_stack(8, 2), ref.targets(8, False), "hinge", "l1")
    with pytest.raises(ValueError, match="0 < level < 1"):
        solve(problem, registry["level"](level=level))
