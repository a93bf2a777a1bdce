"""StPMKL's own claims: mirror prox and its bound, the adaptive step, the slow alternative, points that can predict."""

from __future__ import annotations

import numpy as np
import pytest

import references as ref
from kernelweave.banks import build_bank
from kernelweave.losses import BudgetedHinge
from kernelweave.norms import L1, Lp, make_norm
from kernelweave.problems import MKLProblem, Point
from kernelweave.solvers import Stop, fitting_solvers, make_solver, solve, without_caches
from kernelweave.solvers.saddle import MirrorProx, Variational

with_and_without = pytest.mark.parametrize("fit_intercept", [True, False], ids=["intercept", "no intercept"])
N, M = 30, 5


def stack() -> np.ndarray:
    return ref.kernel_stack(N, M)


def make(budget=0.4, lam=0.05, fit_intercept=False, weight=None, norm=None) -> MKLProblem:
    y = ref.targets(N, False)
    y[::6] *= -1
    bank = build_bank(None, stack(), normalize=None)
    loss = BudgetedHinge(budget)
    return MKLProblem(bank, loss, norm or L1(), y, 1.0 / (lam * N), weight, fit_intercept)


def exact(problem: MKLProblem):
    return solve(problem, make_solver("newton", problem.loss, problem.norm), Stop(1e-9)).certificate


@pytest.mark.parametrize("budget", [0.2, 0.6, 1.0])
@with_and_without
def test_mirror_prox_finds_the_optimum(budget, fit_intercept):
    problem = make(budget, fit_intercept=fit_intercept)
    found = solve(problem, MirrorProx(), Stop(1e-5))
    assert found.converged
    assert found.certificate.primal == pytest.approx(exact(problem).primal, rel=1e-5)
    assert found.certificate.dual == pytest.approx(exact(problem).primal, rel=1e-5)
    reference = ref.budgeted_hinge(budget)
    assert ref.in_dual_set(problem.y, problem.c, found.certificate.dual_point, reference, fit_intercept)


@with_and_without
def test_sample_weights_with_zeros(fit_intercept):
    weight = np.random.default_rng(0).choice([0.0, 0.3, 1.0, 4.0], size=N)
    problem = make(0.4, fit_intercept=fit_intercept, weight=weight)
    found = solve(problem, MirrorProx(), Stop(1e-4))
    assert found.converged
    assert found.certificate.primal == pytest.approx(exact(problem).primal, rel=1e-4)
    assert np.all(found.certificate.dual_point[weight == 0] == 0)


# ---- Theorem 2 -----------------------------------------------------------------------------------------------------


def bound(problem: MKLProblem, point: Point, total_step: float, ratio: float) -> float:
    """``(|f^|^2 / ratio + ratio |a^|^2) / (2 sum g)``, the best responses to the averages written out for l1."""
    lam = 1.0 / np.sum(problem.c)
    a_bar = problem.y * point.beta / np.mean(problem.c)
    # f^ puts all on the kernel with the largest form: minimise lam/2 w^2 - w sqrt(s)/n over w = |f|
    s = max((problem.y * a_bar) @ K @ (problem.y * a_bar) for K in stack())
    f_square = (np.sqrt(s) / (N * lam)) ** 2
    # a^ fills the largest losses first
    losses = 1 - problem.y * point.decision
    a_hat, left = np.zeros(N), problem.loss.budget * N
    for i in np.argsort(-losses):
        if losses[i] > 0:
            a_hat[i] = min(1.0, left)
            left -= a_hat[i]
    return (f_square / ratio + ratio * a_hat @ a_hat) / (2 * total_step)


@pytest.mark.parametrize("variant", ["paper", "adaptive"])
def test_the_first_step_is_the_papers(variant):
    """``sqrt(n / (2m))``, which the proof allows; every later one tries to be longer than the last."""
    problem = make()
    state = MirrorProx(variant=variant).init(problem, None, 1e-3)
    assert state.step == pytest.approx(np.sqrt(problem.n / (2 * problem.m)), rel=1e-12)


def test_the_papers_step_stays_and_the_other_is_checked():
    """On kernels that are a thousand times as long as unit mean diagonals, for which the step is too long."""
    long, problem = build_bank(None, 1e3 * stack(), normalize=None), make()
    long = MKLProblem(long, problem.loss, problem.norm, problem.y, 1.0, None, False)
    papers = np.sqrt(N / (2 * M))
    for variant in ("paper", "adaptive"):
        solver = MirrorProx(variant=variant)
        state = solver.step(long, solver.init(long, None, 1e-3))
        if variant == "paper":
            assert state.step == pytest.approx(papers, rel=1e-12)
        else:
            assert state.step < 0.5 * papers


@pytest.mark.parametrize("budget", [0.3, 1.0])
@pytest.mark.parametrize(
    ("variant", "ratio"), [("paper", 1.0), ("adaptive", 1.0), ("adaptive", 0.3), ("adaptive", 4.0)]
)
def test_bound_of_theorem_2_holds_along_the_way(variant, ratio, budget):
    problem = make(budget)
    lam = 1.0 / np.sum(problem.c)
    solver = MirrorProx(variant=variant, ratio=ratio, restart=False)
    state = solver.init(problem, None, 1e-3)
    steps, gaps = state.step, []
    for _ in range(120):
        point = solver.point(state)
        certificate = problem.certificate(point)
        gaps.append(lam * certificate.gap)
        assert gaps[-1] <= bound(problem, point, steps, ratio) * (1 + 1e-9)
        # what the point carries is what it says
        u, d = point.beta, point.weights
        np.testing.assert_allclose(point.quad, ref.quadratic_forms(stack(), u), rtol=1e-6, atol=1e-12)
        assert d.sum() == pytest.approx(1.0)
        state = solver.step(problem, state)
        steps += state.step
    assert gaps[-1] < 0.2 * gaps[0]


def test_steps_adapt_to_the_kernels():
    """Kernels a thousand times larger than the paper's step is made for: it is shortened until the proof holds."""
    bank = build_bank(None, 1e3 * stack(), normalize=None)
    problem = MKLProblem(bank, BudgetedHinge(0.4), L1(), make().y, 1e-3, fit_intercept=False)
    solver = MirrorProx()
    state = solver.init(problem, None, 1e-3)
    for _ in range(20):
        state = solver.step(problem, state)
    assert state.step < 0.5 * np.sqrt(N / (2 * M))
    assert solve(problem, solver, Stop(1e-3)).converged


def test_adaptive_steps_beat_the_constant_one_and_restarts_beat_both():
    problem = make()
    counts = {}
    for name, solver in {
        "paper": MirrorProx(variant="paper"),
        "adaptive": MirrorProx(restart=False),
        "restarted": MirrorProx(),
    }.items():
        reached = []

        def enough(row, reached=reached):
            reached.append(row["iteration"])
            return (row["primal"] - row["dual"]) / np.sum(problem.c) <= 2e-3

        solve(problem, solver, Stop(1e-12, max_iter=2000), callback=enough)
        counts[name] = reached[-1]
    assert counts["restarted"] < counts["adaptive"] < 0.5 * counts["paper"]


def test_a_round_takes_about_one_pass():
    problem = make()
    solution = solve(problem, MirrorProx(), Stop(1e-12, max_iter=100))
    assert solution.trace[-1][2] <= 1.6 * 100


# ---- the plain method ----------------------------------------------------------------------------------------------


def test_variational_is_slow_but_its_bounds_hold():
    problem = make()
    optimum = exact(problem).primal
    slow = solve(problem, Variational(), Stop(1e-12, max_iter=400))
    quick = solve(problem, MirrorProx(), Stop(1e-12, max_iter=400))
    trace = np.array(slow.trace)
    assert np.all(trace[:, 3] >= optimum * (1 - 1e-8))
    assert np.all(trace[:, 4] <= optimum * (1 + 1e-8))
    assert trace[-1, 3] - trace[-1, 4] < 0.5 * (trace[0, 3] - trace[0, 4])
    assert trace[-1, 5] > 10 * quick.trace[-1][5]
    with pytest.raises(ValueError, match="length > 0"):
        solve(problem, Variational(length=0.0))


# ---- points that can predict ---------------------------------------------------------------------------------------


@with_and_without
@pytest.mark.parametrize("norm", [L1(), Lp(p=2.0)], ids=lambda norm: norm.label)
def test_the_final_svm_does_not_make_it_worse(norm, fit_intercept):
    problem = make(fit_intercept=fit_intercept, norm=norm)
    solver = MirrorProx()
    state = solver.init(problem, None, 1e-2)
    for _ in range(15):
        point = solver.point(state)
        before = problem.certificate(point)
        after = problem.certificate(solver.finish(problem, point))
        assert after.primal <= before.primal + 0.02 * before.gap
        state = solver.step(problem, state)


@pytest.mark.parametrize("solver", [MirrorProx(), Variational()], ids=repr)
def test_an_interrupted_fit_is_certified_for_what_it_predicts_with(solver):
    problem = make()

    def interrupt(row):
        if row["iteration"] == 7:
            raise KeyboardInterrupt

    solution = solve(problem, solver, Stop(1e-9), callback=interrupt)
    assert solution.status == "interrupted"
    assert solution.point.blocks is None
    judged = problem.certificate(without_caches(solution.point))
    assert solution.certificate.primal == pytest.approx(judged.primal, rel=1e-12)
    assert solution.certificate.dual <= exact(problem).primal * (1 + 1e-9)
    assert solution.certificate.primal >= exact(problem).primal * (1 - 1e-9)


def test_a_checkpoint_is_resumed_from_shared_coefficients(tmp_path):
    file = tmp_path / "fit.npz"
    first = solve(make(), MirrorProx(), Stop(1e-12, max_iter=30), checkpoint=file)
    again = solve(make(), MirrorProx(), Stop(1e-4), checkpoint=file)
    assert again.converged
    assert again.trace[30][0] == 31
    afresh = solve(make(), MirrorProx(), Stop(1e-4))
    assert again.n_iter - first.n_iter < afresh.n_iter


def test_a_fit_cut_short_ends_with_shared_coefficients():
    problem = make()
    solution = solve(problem, MirrorProx(), Stop(1e-12, max_iter=9))
    assert solution.status == "max_iter"
    assert solution.point.blocks is None
    judged = problem.certificate(without_caches(solution.point))
    assert solution.certificate.primal == pytest.approx(judged.primal, rel=1e-9)


# ---- what they need ------------------------------------------------------------------------------------------------


def test_which_problems_they_serve():
    hinge, l1 = BudgetedHinge(0.3), make_norm("l1")
    assert {"mirror_prox", "variational", "newton", "nesterov", "level"} <= set(fitting_solvers(hinge, l1))
    assert "mirror_prox" in fitting_solvers(hinge, Lp(p=1.5))
    for norm in ("entropy", "max"):
        with pytest.raises(ValueError, match=r"'mirror_prox' needs a norm with a proximal operator"):
            make_solver("mirror_prox", hinge, make_norm(norm))
    from kernelweave.losses import Logistic

    with pytest.raises(ValueError, match=r"'mirror_prox' needs a loss whose dual is linear.*'newton'"):
        make_solver("mirror_prox", Logistic(), l1)


@pytest.mark.parametrize(
    ("solver", "words"),
    [(MirrorProx(variant="fast"), "one of adaptive, paper"), (MirrorProx(ratio=0.0), "ratio > 0")],
)
def test_parameters_out_of_range(solver, words):
    with pytest.raises(ValueError, match=words):
        solve(make(), solver)
