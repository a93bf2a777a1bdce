"""Solvers that step on single samples, exact ascent, and working sets, on three classes and on two."""

from __future__ import annotations

import itertools

import cvxpy as cp
import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale
from sklearn.svm import SVC

import references as ref
from kernelweave import MKLClassifier
from kernelweave import kernels as kw
from kernelweave._numerics.online import FIXED_STEP, SIG, STRONGLY_CONVEX, block_factors, kernel_steps
from kernelweave.banks import FeatureMatrix, Features, build_bank
from kernelweave.exceptions import MemoryBudgetError
from kernelweave.losses import Hinge, MulticlassHinge
from kernelweave.norms import Block, Elastic, Grouped, Norm, make_norm
from kernelweave.problems import MKLProblem
from kernelweave.solvers import Stop, make_solver, solve, without_caches
from kernelweave.solvers import online as products
from kernelweave.solvers import working_set as working_set_module
from kernelweave.solvers.online import Obscure, radius_of
from kernelweave.solvers.working_set import WorkingSet
from timed import fit_with_a_point, is_left


def three_classes(n: int = 36, m: int = 3, rank: int = 4, seed: int = 0):
    """Explicit features of m kernels and a table of targets; classes overlap."""
    rng = np.random.default_rng(seed)
    own = np.arange(n) % 3
    centres = rng.normal(size=(3, m * rank))
    Z = 0.8 * centres[own] + rng.normal(size=(n, m * rank))
    Z /= np.sqrt(rank)
    return Z, np.where(np.eye(3)[own] > 0, 1.0, -1.0), own


def stack_of(Z, m):
    rank = Z.shape[1] // m
    return np.stack([Z[:, j * rank : (j + 1) * rank] @ Z[:, j * rank : (j + 1) * rank].T for j in range(m)])


def problem_of(
    Z, y, norm: Norm, C: float = 0.3, m: int = 3, explicit: bool = False, weight=None
) -> MKLProblem:
    rank = Z.shape[1] // m
    if explicit:
        bank = Features(FeatureMatrix(np.ascontiguousarray(Z), np.arange(m + 1) * rank))
    else:
        bank = build_bank(None, stack_of(Z, m), normalize=None)
    loss = MulticlassHinge() if y.ndim == 2 else Hinge()
    return MKLProblem(bank, loss, norm, y, C, weight, False)


def run_of(problem: MKLProblem, **options):
    """Return the online steps of OBSCURE, none of them taken."""
    return Obscure(**options).init(problem, None, 1e-3).run


def conic(Z, y, C: float, norm: ref.RefNorm, m: int = 3) -> float:
    """Optimum in explicit features, by a conic solver."""
    return ref.joint_optimum(
        np.split(Z, m, axis=1), y, np.full(y.shape, C), ref.MULTICLASS_HINGE, norm, False
    )


def block(r: float) -> ref.RefNorm:
    """The norm whose block norms have the exponent r."""
    return ref.lp_norm(r / (2 - r) if r < 2 else np.inf)


@pytest.mark.parametrize("r", [1.25, 1.5, 2.0])
@pytest.mark.parametrize("explicit", [False, True], ids=["kernels", "features"])
def test_dual_ascent_agrees_with_a_conic_solver(r, explicit):
    Z, y, _ = three_classes()
    solution = solve(
        problem_of(Z, y, Block(r), explicit=explicit),
        make_solver("dual_ascent", MulticlassHinge(), Block(r)),
        Stop(1e-8),
    )
    assert solution.converged
    assert solution.certificate.primal == pytest.approx(conic(Z, y, 0.3, block(r)), rel=1e-6)


@pytest.mark.parametrize("solver", ["obscure", "pegasos"])
@pytest.mark.parametrize("explicit", [False, True], ids=["kernels", "features"])
def test_stochastic_solvers_agree_with_a_conic_solver(solver, explicit):
    Z, y, _ = three_classes()
    problem = problem_of(Z, y, Block(1.5), C=0.03, explicit=explicit)
    solution = solve(problem, make_solver(solver, problem.loss, problem.norm), Stop(1e-4, max_iter=20_000))
    assert solution.converged
    optimum = conic(Z, y, 0.03, block(1.5))
    assert solution.certificate.primal == pytest.approx(optimum, rel=1e-4)
    assert solution.certificate.dual <= optimum * (1 + 1e-7)


@pytest.mark.parametrize("alpha", [0.0, 0.5])
def test_ufo_with_its_l1_term_agrees_with_a_conic_solver(alpha):
    Z, y, _ = three_classes()
    norm = Elastic(alpha, r=1.5)
    problem = problem_of(Z, y, norm, C=0.03)
    solution = solve(problem, make_solver("ufo", problem.loss, norm), Stop(1e-4, max_iter=20_000))
    assert solution.converged
    optimum = conic(Z, y, 0.03, ref.elastic_norm(alpha, 1.5))
    assert solution.certificate.primal == pytest.approx(optimum, rel=1e-4)


def test_ufo_drops_kernels():
    Z, y, _ = three_classes(60)
    Z[:, 8:] *= 0.05
    problem = problem_of(Z, y, Elastic(0.4), C=0.1)
    assert problem.norm.r == pytest.approx(2 * np.log(3) / (2 * np.log(3) - 1))  # UFO's own choice
    point = solve(problem, make_solver("ufo", problem.loss, problem.norm), Stop(1e-2)).point
    assert point.weights[2] == 0.0
    assert np.all(point.weights[:2] > 0)


@pytest.mark.parametrize("solver", ["obscure", "pegasos"])
def test_features_and_kernels_take_the_same_steps(solver):
    Z, y, _ = three_classes(40)
    found = [
        solve(
            problem_of(Z, y, Block(1.4), explicit=explicit),
            make_solver(solver, MulticlassHinge(), Block(1.4)),
            Stop(1e-9, max_iter=15),
        )
        for explicit in (False, True)
    ]
    np.testing.assert_allclose(found[0].point.beta, found[1].point.beta, atol=1e-7)
    np.testing.assert_allclose(found[0].point.weights, found[1].point.weights, rtol=1e-6)


@pytest.mark.parametrize("solver", ["obscure", "dual_ascent"])
def test_rows_computed_when_needed_are_those_that_would_be_kept(solver, monkeypatch):
    Z, y, _ = three_classes(40)

    def found():
        problem = problem_of(Z, y, Block(1.4))
        return solve(problem, make_solver(solver, problem.loss, problem.norm), Stop(1e-9, max_iter=12)).point

    kept = found()
    # rows are kept in a quarter of what the products leave, to the byte
    needed, rows = 8 * 3 * 3 * 40, 4 * 8 * 3 * 40**2
    for budget in (needed + rows, needed + rows - 1):
        monkeypatch.setattr(products, "default_budget", lambda budget=budget: budget)
        whole = run_of(problem_of(Z, y, Block(1.4))).products.whole
        assert (whole is not None) == (budget == needed + rows)
    monkeypatch.setattr(products, "default_budget", lambda: needed + 1000)
    monkeypatch.setattr(products, "CHUNK", 3 * 40 * 7)
    np.testing.assert_allclose(found().beta, kept.beta, atol=1e-12)
    monkeypatch.setattr(products, "default_budget", lambda: 1000)
    with pytest.raises(
        MemoryBudgetError, match=r"40 samples with 3 kernels and 3 classes needs .*explicit features"
    ):
        found()


def test_sum_kernel_is_a_multiclass_svm_and_two_classes_a_binary_one():
    """r = 2 is the SVM on the sum kernel; two classes are the binary SVM with twice the C."""
    Z, y, own = three_classes(40)
    two = own < 2
    Z, own = Z[two], own[two]
    y = np.where(np.eye(2)[own] > 0, 1.0, -1.0)
    problem = problem_of(Z, y, Block(2.0), C=0.4)
    solution = solve(problem, make_solver("dual_ascent", problem.loss, problem.norm), Stop(1e-9))
    f = problem.bank.mix_product(solution.point.weights, solution.point.beta)
    # liblinear-like problem without an intercept: fit SVC on features with the intercept penalised away is not the
    # same, so the binary problem is solved by the conic solver in the difference of the two functions
    w = cp.Variable(Z.shape[1])
    sign = np.where(own == 1, 1.0, -1.0)
    binary = cp.Problem(
        cp.Minimize(0.5 * cp.sum_squares(w) + 0.8 * cp.sum(cp.pos(1 - cp.multiply(sign, Z @ w))))
    )
    binary.solve(solver=cp.CLARABEL)
    np.testing.assert_allclose(f[:, 1] - f[:, 0], Z @ w.value, atol=2e-4)
    assert solution.certificate.primal == pytest.approx(0.5 * binary.value, rel=1e-7)


def test_two_classes_with_an_intercept_are_scikit_learns_svm():
    X, y = load_wine(return_X_y=True)
    X, y = scale(X)[y < 2], y[y < 2]
    joint = MKLClassifier(
        kw.gaussian([3.0]), loss="multiclass_hinge", norm="uniform", C=0.5, tol=1e-8, normalize=None
    )
    svc = SVC(C=1.0, gamma=1 / 18, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(joint.fit(X, y).decision_function(X), svc.decision_function(X), atol=1e-4)
    assert joint.dual_coef_.shape == (X.shape[0], 2)
    assert np.array_equal(joint.predict(X), svc.predict(X))


# ---- OBSCURE's theorems --------------------------------------------------------------------------------------------


def test_the_optimum_lies_in_the_ball_and_so_do_the_iterates():
    """Theorem 2: R bounds the optimum's norm; line 12: no iterate leaves the ball."""
    Z, y, _ = three_classes(60)
    for C in (0.02, 0.3, 5.0):
        problem = problem_of(Z, y, Block(1.25), C=C)
        solver = Obscure(online_epochs=3)
        state = solver.init(problem, None, 1e-3)
        while state.radius is None:
            state = solver.step(problem, state)
        optimum = solve(problem, make_solver("newton", problem.loss, problem.norm), Stop(1e-6)).point
        blocks = optimum.weights * np.sqrt(problem.bank.quad(optimum.beta))
        assert np.sum(blocks**1.25) ** (1 / 1.25) <= state.radius * (1 + 1e-6)
        for _ in range(5):
            state.run.epoch(STRONGLY_CONVEX, radius=state.radius)
        w = solver.point(state)
        blocks = w.weights * np.sqrt(problem.bank.quad(w.beta))
        assert np.sum(blocks**1.25) ** (1 / 1.25) <= state.radius * (1 + 1e-9)


def test_radius_is_that_of_theorem_two():
    Z, y, _ = three_classes(30)
    problem = problem_of(Z, y, Block(1.5), C=0.3)
    run = run_of(problem)
    lam = 1 / (0.3 * 30)
    # at f = 0 the objective is a loss of 1 a sample, times C; that is where the other bound begins to count
    assert radius_of(run, 0.3 * 30) == pytest.approx(1 / np.sqrt(lam))
    assert radius_of(run, 0.3) == pytest.approx(np.sqrt(2 * 0.3))


@pytest.mark.parametrize("patience", [None, 3])
def test_the_online_stage_ends_when_it_stands_still(patience):
    """Patience cuts it short where its objective has stopped falling, and the radius is that of the best epoch."""
    Z, y, _ = three_classes(60)
    problem = problem_of(Z, y, Block(1.25), C=0.3)
    solver = Obscure(online_epochs=30, patience=patience)
    state = solver.init(problem, None, 1e-3)
    seen = []
    while state.radius is None:
        state = solver.step(problem, state)
        seen.append(problem.primal(solver.point(state))[0])
    assert state.radius == pytest.approx(min(np.sqrt(2 * min(seen)), np.sqrt(0.3 * 60)))
    if patience is None:
        assert len(seen) == 30  # there is always somebody to step on
        return
    still = [k for k in range(4, 31) if min(seen[:k][-3:]) > 0.9 * min(seen[:k][:-3])]
    assert len(seen) == still[0] < 30


def test_norms_and_products_are_those_of_the_coefficients():
    """What is updated step by step equals what the bank says, also after shrinking and folding."""
    Z, y, _ = three_classes(50)
    problem = problem_of(Z, y, Block(1.3), C=100.0, weight=np.linspace(0.0, 2.0, 50))
    run = run_of(problem, random_state=1)
    run.epoch(FIXED_STEP, 2.0)
    run.restart_clock()
    for _ in range(7):
        run.epoch(STRONGLY_CONVEX, radius=1.0)
    theta = run.scalars[SIG] * run.A
    np.testing.assert_allclose(run.sq, problem.bank.quad(theta), rtol=1e-8)
    point = run.point(run.factors, 0.25)
    np.testing.assert_allclose(point.decision, problem.bank.mix_product(point.weights, point.beta), atol=1e-8)
    assert np.all(theta[0] == 0)  # a sample of weight zero
    np.testing.assert_allclose(theta.sum(axis=1), 0.0, atol=1e-9)


@pytest.mark.parametrize("explicit", [False, True], ids=["kernels", "features"])
def test_passes_of_an_epoch(explicit):
    """Of kernels the rows of the coefficients that changed, of features all of them."""
    Z, y, _ = three_classes(50)
    problem = problem_of(Z, y, Block(1.3), C=100.0, explicit=explicit)
    run = run_of(problem, random_state=1)
    before = problem.bank.passes
    changed = [run.epoch(FIXED_STEP, 2.0), run.epoch(STRONGLY_CONVEX)]
    assert 0 < changed[1] < 100
    read = 2.0 if explicit else sum(changed) / 50
    assert problem.bank.passes - before == pytest.approx(read)


@pytest.mark.parametrize("rows", ["kept", "computed", "features"])
def test_an_epoch_is_left_where_the_time_is_over(rows, monkeypatch):
    if rows == "computed":
        monkeypatch.setattr(products, "default_budget", lambda: 8 * 3 * 3 * 36 + 1000)
    Z, y, _ = three_classes()
    run = run_of(problem_of(Z, y, Block(1.3), explicit=rows == "features"))
    with fit_with_a_point() as deadline:
        assert run.epoch(FIXED_STEP, 2.0) > 0
        deadline.interrupt()
        assert is_left(lambda: run.epoch(FIXED_STEP, 2.0))


def test_averaged_iterate_is_the_mean_of_the_coefficients():
    Z, y, _ = three_classes(20)
    problem = problem_of(Z, y, Block(1.5))
    run = run_of(problem)
    run.epoch(FIXED_STEP, 2.0)
    run.restart_clock()
    by_hand = []
    order = np.random.default_rng(5).permutation(20)
    for i in order:
        run.epoch(STRONGLY_CONVEX, 0.0, 2.0, 0.0, np.array([i]))
        by_hand.append(run.scalars[SIG] * run.A)
    averaged = run.averaged(1.0, problem.norm.weights)
    np.testing.assert_allclose(averaged.beta, np.mean(by_hand, axis=0), atol=1e-10)
    solution = solve(problem, Obscure(iterate="averaged"), Stop(3e-2, max_iter=2000))
    assert solution.converged


@pytest.mark.parametrize("norm", [Block(1.0), Block(1.5)], ids=["l1", "1.5"])
def test_nothing_to_learn_in_several_classes(norm):
    """Kernels of zeros leave the intercepts; one class alone leaves nothing."""
    _, _, own = three_classes(30)
    own = np.minimum(own + (np.arange(30) % 2) * (own == 0), 2)
    table = np.where(np.eye(3)[own] > 0, 1.0, -1.0)
    bank = build_bank(None, np.zeros((2, 30, 30)) + 1e-300 * np.eye(30), normalize=None)
    problem = MKLProblem(bank, MulticlassHinge(), norm, table, 1.0, None, True)
    solution = solve(problem, make_solver("newton", problem.loss, norm), Stop(1e-6))
    counts = np.bincount(own)
    b = cp.Variable(3)
    losses = [counts[k] * (cp.max(b + 1 - np.eye(3)[k]) - b[k]) for k in range(3)]
    lowest = cp.Problem(cp.Minimize(sum(losses))).solve(solver=cp.CLARABEL)
    assert solution.converged
    assert solution.certificate.primal == pytest.approx(lowest, rel=1e-6)
    same = np.where(np.eye(3)[np.zeros(30, dtype=int)] > 0, 1.0, -1.0)
    bank = build_bank(None, np.stack([np.eye(30), np.ones((30, 30))]), normalize=None)
    problem = MKLProblem(bank, MulticlassHinge(), norm, same, 1.0, None, True)
    solution = solve(problem, make_solver("newton", problem.loss, norm), Stop(1e-3, max_iter=20))
    assert solution.certificate.primal == pytest.approx(0.0, abs=1e-9)


def test_the_last_iterate_is_the_last_and_the_best_the_best():
    Z, y, _ = three_classes(40)
    problem = problem_of(Z, y, Block(1.4), C=3.0)
    judged = []
    solver = Obscure(iterate="last", online_epochs=10)
    state = solver.init(problem, None, 1e-9)
    for _ in range(39):
        judged.append((problem.certificate(solver.point(state)).primal, solver.point(state).beta.copy()))
        state = solver.step(problem, state)
    last, best = (
        solve(problem, Obscure(iterate=what, online_epochs=10), Stop(1e-9, max_iter=39))
        for what in ("last", "best")
    )
    np.testing.assert_allclose(last.point.beta, judged[-1][1], atol=1e-12)
    assert best.certificate.primal == pytest.approx(min(value for value, _ in judged), rel=1e-12)
    assert last.certificate.primal > best.certificate.primal
    assert last.certificate.dual == pytest.approx(best.certificate.dual)


# ---- working sets --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("norm", [Block(1.25), Block(2.0)], ids=["1.25", "2"])
@pytest.mark.parametrize("fit_intercept", [True, False], ids=["intercept", "no intercept"])
def test_working_set_finds_the_optimum_of_all_samples(classes, norm, fit_intercept):
    Z, y, own = three_classes(150)
    target = y if classes == 3 else np.where(own == 1, 1.0, -1.0)
    problem = problem_of(Z, target, norm, C=0.2)
    problem.fit_intercept = fit_intercept
    solution = solve(problem, WorkingSet(first=12, growth=0.5), Stop(1e-5))
    whole = solve(problem, make_solver("newton", problem.loss, norm), Stop(1e-7))
    assert solution.converged
    assert solution.certificate.primal == pytest.approx(whole.certificate.primal, rel=2e-5)
    assert solution.n_iter > 2  # it did begin with a few samples
    # at the solution there is nothing left to do but a look
    again = solve(problem, WorkingSet(first=12), Stop(1e-5), start=without_caches(solution.point))
    assert again.converged
    assert again.n_iter <= 1


def test_samples_enter_a_working_set_that_are_a_small_part_of_the_gap_each():
    """Of many samples at a coarse tolerance."""
    Z, _, own = three_classes(400)
    problem = problem_of(Z, np.where(own == 1, 1.0, -1.0), Block(2.0), C=0.2)
    assert solve(problem, WorkingSet(first=12), Stop(1e-2, max_iter=50)).converged


@pytest.mark.parametrize(
    ("sizes", "first", "wanted"), [([116, 4], 20, [16, 4]), ([100, 15, 5], 21, [8, 8, 5])]
)
def test_the_first_working_set_is_drawn_from_every_class_alike(sizes, first, wanted):
    """Smaller classes are there whole; samples without weight are not there."""
    own = np.repeat(np.arange(len(sizes)), sizes)
    Z = np.random.default_rng(0).normal(size=(120, 12))
    weight = np.ones(120)
    weight[:20] = 0.0
    y = np.where(own == 1, 1.0, -1.0) if len(sizes) == 2 else np.where(np.eye(len(sizes))[own] > 0, 1.0, -1.0)
    problem = problem_of(Z, y, Block(1.5), weight=weight)
    drawn = [WorkingSet(first, random_state=seed).init(problem, None, 1e-3).working for seed in (0, 1)]
    for working in drawn:
        assert np.all(np.diff(working) > 0)
        assert np.all(working >= 20)
        assert np.bincount(own[working]).tolist() == wanted
    assert not np.array_equal(*drawn)


def test_a_working_set_ends_where_nothing_has_moved_for_twenty_rounds():
    Z, _, own = three_classes(60)
    problem = problem_of(Z, np.where(own == 1, 1.0, -1.0), Block(2.0), C=0.2)
    solver = WorkingSet(first=12)
    states = [solver.init(problem, None, 1e-3)]
    while not states[-1].finished and len(states) < 60:
        states.append(solver.step(problem, states[-1]))
    moved = [not np.array_equal(a.beta, b.beta) for a, b in itertools.pairwise(states)]
    assert any(moved)
    assert len(moved) - 1 - np.flatnonzero(moved)[-1] == 20


def discontent(problem, own, beta, f):
    """What every sample adds to the gap, ``c l(f) + c l*(-beta / c) + beta f``, of both hinges."""
    if beta.ndim == 1:
        return problem.c * np.maximum(0.0, 1.0 - problem.y * f) - problem.y * beta + beta * f
    rows = np.arange(len(own))
    most = np.max(f + (problem.y < 0), axis=1) - f[rows, own]
    return problem.c[:, 0] * most - beta[rows, own] + np.sum(beta * f, axis=1)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(("growth", "room"), [(0.5, 150), (1.0, 150), (1.0, 70)])
def test_who_enters_a_working_set_and_who_leaves(classes, growth, room, monkeypatch):
    """Samples with coefficients stay, the most discontent enter, and who would be content after another move leaves."""
    Z, y, own = three_classes(150)
    # the mixed kernel of the set, and as much again for the copy of a part of it
    monkeypatch.setattr(working_set_module, "default_budget", lambda: 2 * 8 * room**2)
    problem = problem_of(Z, y if classes == 3 else np.where(own == 1, 1.0, -1.0), Block(1.25), C=0.2)
    problem.fit_intercept = True
    solver, first = WorkingSet(first=12, growth=growth), 12
    state, grown = solver.init(problem, None, 1e-5), 0
    for _ in range(6):
        following = solver.step(problem, state)
        used = np.abs(state.beta).reshape(150, -1).sum(axis=1) > 0
        f = np.tensordot(following.weights, stack_of(Z, 3) @ state.beta, axes=1) + state.intercept
        gaps = np.where(used, 0.0, discontent(problem, own, state.beta, f))
        pace = np.sqrt(np.mean((f - state.seen) ** 2))
        moved = [f - pace * (problem.y > 0)] if classes == 3 else [f - pace, f + pace]
        later = np.max([discontent(problem, own, state.beta, g) for g in moved], axis=0)
        before, after = (np.isin(np.arange(150), one.working) for one in (state, following))
        assert np.all(after[used])
        entered = after & ~before
        most = min(int(max(0.5 * first, growth * state.working.size)), max(room - used.sum(), 1))
        assert entered.sum() <= most
        assert after.sum() <= max(room, used.sum() + 1)
        nobody = 1e-6 * gaps.sum()
        outside = gaps[~after].max(initial=0.0)
        # whoever is left out is content, or all places were taken by others that are less so
        if outside > nobody:
            assert (gaps >= outside).sum() >= most
            assert gaps[entered].min() >= outside
        # whoever leaves will be content, or all room is taken by others that will be less so
        left, kept = before & ~after, before & after & ~used & (gaps <= nobody)
        if later[left].max(initial=0.0) > 1e-9:
            assert after.sum() >= room
            assert later[left].max() <= later[kept].min(initial=np.inf)
        assert np.all((used | (gaps > 0) | (before & (later > 0)))[after])
        grown += int(entered.sum())
        state = following
    assert grown > 0


@pytest.mark.parametrize("norm", ["l1", Grouped(1, 2, ["a", "a", "b"])], ids=["l1", "groups"])
def test_working_set_without_closed_form_weights(norm):
    Z, _, own = three_classes(150)
    problem = problem_of(Z, np.where(own == 1, 1.0, -1.0), make_norm(norm), C=0.2)
    problem.fit_intercept = True
    solution = solve(problem, WorkingSet(first=12, growth=0.5), Stop(1e-4))
    whole = solve(problem, make_solver("newton", problem.loss, problem.norm), Stop(1e-7))
    assert solution.converged
    assert solution.certificate.primal == pytest.approx(whole.certificate.primal, rel=2e-4)
    assert solution.certificate.dual <= whole.certificate.primal
    assert solution.n_iter > 2


def test_working_sets_stay_within_memory(monkeypatch):
    """With room for 90 samples of 150, of which most have no coefficients, sets are smaller and the answer is the same."""
    Z, _, own = three_classes(150)
    monkeypatch.setattr(working_set_module, "default_budget", lambda: 2 * 8 * 90**2)
    sizes = []
    inner = WorkingSet._inner
    monkeypatch.setattr(
        WorkingSet,
        "_inner",
        lambda self, p, state: (sizes.append(state.working.size), inner(self, p, state))[1],
    )
    problem = problem_of(Z, np.where(own == 1, 1.0, -1.0), Block(1.25), C=5.0)
    solution = solve(problem, WorkingSet(first=40), Stop(1e-4))
    assert solution.converged
    assert max(sizes) <= 90


def test_a_working_set_beyond_memory_is_refused(monkeypatch):
    Z, y, _ = three_classes(60)
    monkeypatch.setattr(working_set_module, "default_budget", lambda: 1000)
    with pytest.raises(MemoryBudgetError, match=r"working set of 60 samples needs .*smaller C"):
        solve(problem_of(Z, y, Block(1.5)), WorkingSet(), Stop(1e-3))


# ---- the estimator -------------------------------------------------------------------------------------------------


def wine():
    X, y = load_wine(return_X_y=True)
    order = np.random.default_rng(0).permutation(y.size)
    return scale(X)[order], np.array(["red", "rose", "white"])[y[order]]


BANK = kw.gaussian([2.0, 4.0]) + kw.linear()
OPTIONS = {"norm": Block(1.25), "solver": "obscure", "fit_intercept": False}


def test_partial_fit_is_one_online_visit_of_every_sample():
    X, y = wine()
    clf = MKLClassifier(BANK, normalize=None, **OPTIONS)
    for first in range(0, 178, 50):
        clf.partial_fit(X[first : first + 50], y[first : first + 50], classes=["red", "rose", "white"])
    bank = build_bank(None, np.stack([k(X) for k in clf.kernels_]), normalize=None)
    table = np.where(y[:, None] == clf.classes_, 1.0, -1.0)
    run = run_of(MKLProblem(bank, MulticlassHinge(), Block(1.25), table, 1.0, None, False))
    run.epoch(FIXED_STEP, 2.0, 1.0, 0.0, np.arange(178))
    used = np.any(run.A != 0, axis=1)
    np.testing.assert_allclose(clf.dual_coef_, run.A[used] / 5.0, atol=1e-9)
    np.testing.assert_allclose(clf.weights_, run.factors, rtol=1e-9)
    np.testing.assert_allclose(clf.decision_function(X), run.point(run.factors, 0.2).decision, atol=1e-8)
    assert clf.score(X, y) > 0.95
    assert clf.set_params(tol=0.1).fit(X, y).certificate_.relative_gap <= 0.1  # fit begins afresh


def test_a_fit_ends_what_partial_fit_had_begun():
    X, y = wine()
    classes = ["red", "rose", "white"]
    fresh = MKLClassifier(BANK, **OPTIONS).partial_fit(X[50:90], y[50:90], classes=classes)
    used = MKLClassifier(BANK, **OPTIONS).partial_fit(X[:50], y[:50], classes=classes)
    used.set_params(tol=0.5).fit(X[:40], y[:40]).partial_fit(X[50:90], y[50:90], classes=classes)
    np.testing.assert_allclose(used.decision_function(X), fresh.decision_function(X), atol=1e-12)


def test_partial_fit_says_of_its_weights_what_fit_says():
    X, y = wine()
    online = MKLClassifier(BANK, **OPTIONS).partial_fit(X, y, classes=np.unique(y))
    whole = MKLClassifier(BANK, tol=0.5, **OPTIONS).fit(X, y)
    assert online.norm_name_ == whole.norm_name_
    assert online.weights_rule_ == whole.weights_rule_
    np.testing.assert_array_equal(online.learnt_kernels_, whole.learnt_kernels_)


def test_partial_fit_on_two_classes_and_sparse_samples():
    import scipy.sparse as sp

    X, y = wine()
    dense, thin = (MKLClassifier(kw.linear() + kw.gaussian(3.0), **OPTIONS) for _ in range(2))
    for part in (slice(0, 60), slice(60, 178)):
        dense.partial_fit(X[part], y[part] == "red", classes=[False, True])
        thin.partial_fit(sp.csr_matrix(X[part]), y[part] == "red", classes=[False, True])
    np.testing.assert_allclose(
        dense.decision_function(X), thin.decision_function(sp.csr_matrix(X)), atol=1e-8
    )
    assert dense.score(X, y == "red") > 0.95


def test_partial_fit_is_compiled_once_for_all_kinds_of_arguments():
    """One kernel or several, a step that is an integer or a float: compiling again would take seconds."""
    X, y = wine()
    MKLClassifier(BANK, **OPTIONS).partial_fit(X, y == "red", classes=[False, True])
    before = [list(function.signatures) for function in (block_factors, kernel_steps)]
    MKLClassifier(kw.gaussian(3.0), **OPTIONS).set_params(solver=Obscure(eta=1)).partial_fit(
        X, y == "red", classes=[False, True]
    )
    assert [list(function.signatures) for function in (block_factors, kernel_steps)] == before


def test_partial_fit_says_what_is_wrong():
    X, y = wine()
    assert not hasattr(MKLClassifier(BANK), "partial_fit")
    with pytest.raises(ValueError, match="classes must be given at the first call"):
        MKLClassifier(BANK, **OPTIONS).partial_fit(X, y)
    clf = MKLClassifier(BANK, **OPTIONS).partial_fit(X[:50], y[:50], classes=["red", "rose", "white"])
    with pytest.raises(
        ValueError, match=r"labels \['blue'\] that were not among the classes of the first call"
    ):
        clf.partial_fit(X[:2], ["blue", "red"])
    with pytest.raises(ValueError, match="classes differ from those of the first call"):
        clf.partial_fit(X[:2], y[:2], classes=["red", "rose"])
    with pytest.raises(ValueError, match="3 features"):
        clf.partial_fit(X[:2, :3], y[:2])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        clf.partial_fit(X[:2], y[:3])
    with pytest.raises(ValueError, match="use multi_class='joint' or 'shared'"):
        MKLClassifier(BANK, multi_class="ovr", **OPTIONS).partial_fit(X, y, classes=["red", "rose", "white"])
    with pytest.raises(ValueError, match="center=False"):
        MKLClassifier(BANK, center=True, **OPTIONS).partial_fit(X, y, classes=["red", "rose", "white"])


def test_ufo_and_newton_agree_on_the_elastic_norm():
    X, y = wine()
    options = {"norm": Elastic(0.1), "C": 0.1, "fit_intercept": False}
    clf = MKLClassifier(BANK, solver="ufo", tol=0.05, **options).fit(X, y)
    exact = MKLClassifier(BANK, tol=1e-4, **options).fit(X, y)
    assert exact.solver_ == "newton"
    assert exact.certificate_.dual <= clf.certificate_.primal * (1 + 1e-9)
    assert clf.certificate_.primal <= 1.06 * exact.certificate_.primal
    # with an intercept there is newton alone
    assert MKLClassifier(BANK, norm=Elastic(0.1), C=0.1).fit(X, y).status_ == "converged"
    with pytest.raises(ValueError, match="'ufo' has no intercept"):
        MKLClassifier(BANK, solver="ufo", norm=Elastic(0.1)).fit(X, y)


def test_working_sets_need_a_loss_that_leaves_samples_out():
    X, y = wine()
    with pytest.raises(
        ValueError, match="'working_set' needs a loss that leaves samples without coefficients"
    ):
        MKLClassifier(BANK, norm=2, loss="squared", solver="working_set").fit(X, y)


def test_solvers_without_an_intercept_say_so():
    X, y = wine()
    for solver in ("obscure", "pegasos", "dual_ascent"):
        with pytest.raises(ValueError, match=f"solver '{solver}' has no intercept: use fit_intercept=False"):
            MKLClassifier(BANK, norm=Block(1.25), solver=solver).fit(X, y)


@pytest.mark.parametrize(
    ("solver", "words"),
    [
        (Obscure(eta=0.0), "eta of obscure"),
        (Obscure(iterate="first"), "iterate of obscure"),
        (Obscure(patience=0), "patience of obscure"),
    ],
)
def test_parameters_out_of_range(solver, words):
    within = {"eta": 0.5, "iterate": "last", "patience": 1}[words.split()[0]]
    Obscure(**{words.split()[0]: within}).init(problem_of(*three_classes(12)[:2], Block(1.4)), None, 1e-3)
    X, y = wine()
    with pytest.raises(ValueError, match=words):
        MKLClassifier(BANK, norm=Block(1.25), solver=solver, fit_intercept=False).fit(X, y)
