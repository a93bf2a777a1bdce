"""The problems, their bounds and their solvers, against a conic solver and against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelweave.norms import Maximum
from kernelweave.similarity.losses import UserLoss, make_similarity_loss, similarity_losses
from kernelweave.similarity.problems import DualPoint, SeparateKernelsProblem, SingleKernelProblem
from kernelweave.similarity.solvers import similarity_solvers, solve_omega
from kernelweave.solvers import Stop, solve
from kernelweave_studies.similarity.certificates import conic_optimum

from .making import random_kernels, similarities

LOSSES = ["squared", "frobenius", "l1"]
CASES = [("indsvm", "squared"), *((name, loss) for name in ("eskl", "emkl", "rekl") for loss in LOSSES)]


def problem_of(name, S, y, loss="frobenius", C=1.0, rho=5.0):
    scale = len(S) ** 2 if name in ("emkl", "rekl") else 1.0
    return similarity_solvers[name].problem(S, y, C=C / scale, rho=rho / scale, loss=loss)


def test_there_are_four_and_none_is_among_the_solvers_of_mkl():
    from kernelweave.solvers import registry

    assert list(similarity_solvers) == ["emkl", "eskl", "indsvm", "rekl"]
    assert not set(similarity_solvers) & set(registry)


@pytest.mark.parametrize(("name", "loss"), CASES)
def test_within_half_a_percent_of_the_conic_optimum_and_around_it(name, loss):
    S, y = similarities(n=20, m=2, seed=1)
    problem = problem_of(name, S, y, loss)
    optimum = conic_optimum(name, S, y, float(problem.c[0]), problem.rho, loss)
    found = solve(problem, similarity_solvers[name](), Stop(tol=3e-3, max_iter=400)).certificate
    assert optimum * (1 - 1e-5) <= found.primal <= optimum * 1.005
    assert found.dual <= optimum * (1 + 1e-5)


@pytest.mark.parametrize(("name", "loss"), CASES)
def test_the_certificate_can_be_recomputed_and_the_kernels_are_feasible(name, loss):
    S, y = similarities(n=15, m=2, seed=2)
    problem = problem_of(name, S, y, loss)
    solution = solve(problem, similarity_solvers[name](), Stop(tol=2e-2, max_iter=60))
    certificate, point = solution.certificate, solution.point
    assert problem.bound(certificate.witness) == pytest.approx(certificate.dual, rel=1e-9)
    kernels = problem.matrices(point.kernels)
    for K in kernels:
        assert np.linalg.eigvalsh(K)[0] > -1e-8
        if name != "indsvm":
            assert np.trace(K) == pytest.approx(15.0)
    # the objective from its definition: norms of the parts, hinge, distances
    f = sum(w * K @ point.beta for w, K in zip(point.weights, kernels, strict=True)) + certificate.intercept
    norms = [w**2 * point.beta @ K @ point.beta for w, K in zip(point.weights, kernels, strict=True)]
    distance = {
        "l1": lambda X: np.abs(X).sum() / 15,
        "frobenius": lambda X: np.sqrt((X**2).sum()),
        "squared": lambda X: (X**2).sum() / 15,
    }[loss]
    away = sum(distance(K - Si) for K, Si in zip([*kernels] * (2 // len(kernels)), S, strict=True))
    value = max(norms) / 2 + problem.c[0] * np.maximum(0, 1 - y * f).sum() + problem.rho * away
    assert value == pytest.approx(certificate.primal, rel=1e-8)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), case=st.sampled_from(CASES[1:]), several=st.booleans())
def test_any_dual_point_is_below_any_kernels(seed, case, several):
    name, loss = case
    rng = np.random.default_rng(seed)
    S, y = similarities(n=8, m=2, seed=seed % 50)
    if several:  # classes that share their kernels
        y = np.stack([y, -y], axis=1)
    problem = problem_of(name, S, y, loss, C=rng.uniform(0.1, 10), rho=rng.uniform(0.1, 20))
    beta = y * rng.uniform(0, 2, size=y.shape) * problem.c
    shares = rng.dirichlet(np.ones(problem.k))
    kernels = random_kernels(problem, rng)
    dual = problem.bound(DualPoint(beta, shares, kernels=random_kernels(problem, rng)))
    jensen = 0.5 * problem.multipliers(kernels) + 0.5 * problem.multipliers(random_kernels(problem, rng))
    weights = 1.0 / shares
    primal = problem.primal(kernels, y * rng.uniform(0, 1, size=y.shape), weights)[0]
    best = solve_omega(problem, kernels, weights, 1e-6)[2]
    assert best <= primal * (1 + 1e-5)
    for lower in (dual, problem.bound(DualPoint(beta, shares, jensen))):
        assert lower <= best + 1e-7 * abs(best)


@pytest.mark.parametrize("name", similarity_losses)
def test_losses_by_their_definitions(name):
    rng = np.random.default_rng(0)
    loss = similarity_losses[name]()
    for _ in range(20):
        X, W = (a + a.T for a in rng.normal(size=(2, 6, 6)))
        Z = loss.subgradient(X)
        assert loss.value(W) >= loss.value(X) + np.sum(Z * (W - X)) - 1e-9
        assert loss.conjugate(Z) == pytest.approx(
            np.sum(Z * X) - loss.value(X), abs=1e-8
        )  # Fenchel's equality
        near = loss.prox(X, 0.7)
        moved = near + 0.1 * W
        cost = [loss.value(P) + np.sum((P - X) ** 2) / 1.4 for P in (near, moved)]
        assert cost[0] <= cost[1] + 1e-9
        if (c := loss.curvature(X)) is not None:
            assert loss.value(W) <= loss.value(X) + c * (np.sum(W**2) - np.sum(X**2)) + 1e-9
        if loss.spectral:
            assert loss.value(np.linalg.eigvalsh(X)) == pytest.approx(loss.value(X))
    assert loss.conjugate(10 * Z) > 0 or np.isinf(loss.conjugate(10 * Z))


@pytest.mark.parametrize("loss", ["frobenius", "squared"])
def test_copies_of_one_similarity_make_emkl_the_same_as_eskl(loss):
    S, y = similarities(n=16, m=1, seed=3)
    copies = np.repeat(S, 3, axis=0)
    single = solve(problem_of("eskl", copies, y, loss), similarity_solvers["eskl"](), Stop(tol=3e-3))
    separate = solve(
        problem_of("emkl", copies, y, loss), similarity_solvers["emkl"](), Stop(tol=3e-3, max_iter=400)
    )
    assert 9 * separate.certificate.primal == pytest.approx(single.certificate.primal, rel=6e-3)


@pytest.mark.parametrize("loss", ["frobenius", "squared"])
def test_a_large_rho_is_denoise(loss):
    S, y = similarities(n=15, m=1, seed=4)
    found = solve(problem_of("eskl", S, y, loss, rho=1e5), similarity_solvers["eskl"](), Stop(tol=1e-4))
    values, V = np.linalg.eigh(S[0])
    denoised = (V * np.maximum(values, 0)) @ V.T
    assert np.linalg.norm(found.point.kernels[0] - denoised) < 0.02 * np.linalg.norm(denoised)


def test_rekl_keeps_the_eigenvectors():
    S, y = similarities(n=12, m=2, seed=5)
    problem = problem_of("rekl", S, y)
    point = solve(problem, similarity_solvers["rekl"](), Stop(tol=1e-2)).point
    for K, Si in zip(problem.matrices(point.kernels), S, strict=True):
        np.testing.assert_allclose(K @ Si, Si @ K, atol=1e-8)
    assert problem.decompositions == 2  # once each


@pytest.mark.parametrize("step_size", ["adaptive", "proposition"])
def test_the_corrected_rate_holds_along_a_run(step_size):
    S, y = similarities(n=25, m=1, seed=6)
    problem = problem_of("eskl", S, y)
    optimum = solve(problem, similarity_solvers["eskl"](), Stop(tol=1e-3)).certificate.dual
    solver = similarity_solvers["eskl"](uniform_start=True, step_size=step_size, check_every=10**6)
    state, best = None, np.inf
    for _ in range(120):
        state = solver.init(problem, None, 1e-3) if state is None else solver.step(problem, state)
        point = solver.point(state)
        best = min(best, problem.primal(point.kernels, point.beta, point.weights)[0])
        assert best - optimum <= solver.rate(problem, state)
    assert best - optimum < 0.05 * optimum  # and it gets somewhere


def test_as_printed_it_does_not_converge():
    S, y = similarities(n=25, m=1, seed=6)
    problem = problem_of("eskl", S, y)
    good = solve(problem, similarity_solvers["eskl"](), Stop(tol=1e-2)).certificate
    printed = solve(problem, similarity_solvers["eskl"](variant="paper"), Stop(tol=1e-2, max_iter=150))
    assert printed.status == "max_iter"
    assert printed.certificate.primal > 1.2 * good.primal
    assert printed.certificate.dual <= good.primal  # its bounds are valid all the same
    with pytest.raises(ValueError, match="variant must be"):
        solve(problem, similarity_solvers["eskl"](variant="printed"))


def test_slow_and_fast_way_of_the_squared_loss_agree():
    S, y = similarities(n=20, m=2, seed=7)
    fast, slow = (
        solve(problem_of("eskl", S, y, "squared"), similarity_solvers["eskl"](fast=fast), Stop(tol=2e-3))
        for fast in (True, False)
    )
    assert fast.converged
    assert slow.certificate.primal == pytest.approx(fast.certificate.primal, rel=4e-3)
    assert fast.n_iter < slow.n_iter


def test_omega_is_mkl_with_the_maximum_norm():
    from kernelweave.banks import build_bank
    from kernelweave.losses import Hinge
    from kernelweave.problems import MKLProblem
    from kernelweave.solvers import make_solver

    S, y = similarities(n=20, m=3, seed=8)
    problem = problem_of("emkl", S, y)
    kernels = problem.project(S)
    value = solve_omega(problem, kernels, np.full(3, 3.0), 1e-6, rounds=300)[2]
    bank = build_bank(None, [*kernels], normalize=None)
    mkl = MKLProblem(bank, Hinge(), Maximum(), y, float(problem.c[0]))
    other = solve(mkl, make_solver("lp_analytic", mkl.loss, mkl.norm), Stop(tol=1e-5)).certificate
    charge = problem.rho * problem.losses(kernels).sum()
    assert value - charge == pytest.approx(other.primal, rel=1e-3)


def huber(n):
    def value(X):
        return float(np.sum(np.where(np.abs(X) < 0.5, X**2, np.abs(X) - 0.25))) / n

    return value, lambda X: np.where(np.abs(X) < 0.5, 2 * X, np.sign(X)) / n


@pytest.mark.parametrize("name", ["eskl", "emkl", "rekl"])
def test_a_loss_of_ones_own(name):
    S, y = similarities(n=12, m=2, seed=9)
    found = solve(problem_of(name, S, y, huber(12)), similarity_solvers[name](), Stop(tol=5e-2, max_iter=200))
    assert found.certificate.dual <= found.certificate.primal
    assert found.certificate.relative_gap < 0.2
    # absolute values are never below Huber's function, and never more than a quarter above
    bound = solve(problem_of(name, S, y, "l1"), similarity_solvers[name](), Stop(tol=2e-2, max_iter=200))
    assert found.certificate.dual <= bound.certificate.primal


def test_prox_and_conjugate_of_ones_own_loss_are_used():
    S, y = similarities(n=12, m=1, seed=10)
    l1 = similarity_losses["l1"]()
    own = UserLoss(l1.value, l1.subgradient, l1.conjugate, l1.prox)
    bare = UserLoss(l1.value, l1.subgradient)
    gaps = [
        solve(problem_of("eskl", S, y, loss), similarity_solvers["eskl"](), Stop(tol=1e-4, max_iter=60))
        for loss in (own, bare, "l1")
    ]
    assert gaps[0].certificate.dual == pytest.approx(gaps[2].certificate.dual, rel=1e-9)
    assert gaps[1].certificate.relative_gap > 2 * gaps[0].certificate.relative_gap


def test_a_wrong_conjugate_is_found_out():
    S, y = similarities(n=12, m=1, seed=10)
    l1 = similarity_losses["l1"]()
    wrong = UserLoss(l1.value, l1.subgradient, lambda Z: -1e6)
    with pytest.raises(ValueError, match="its subgradient or conjugate is wrong"):
        solve(problem_of("eskl", S, y, wrong), similarity_solvers["eskl"](), Stop(max_iter=30))


def test_loss_arguments():
    assert make_similarity_loss("l1").registered_as == "l1"
    with pytest.raises(ValueError, match=r"unknown similarity loss 'frobenus'.*Did you mean 'frobenius'"):
        make_similarity_loss("frobenus")
    with pytest.raises(ValueError, match="two functions"):
        make_similarity_loss(lambda X: 0.0)
    with pytest.raises(ValueError, match="pair of functions"):
        make_similarity_loss((1, 2))


def test_zero_weight_is_no_sample_for_the_svm():
    S, y = similarities(n=14, m=1, seed=11)
    weight = np.ones(14)
    weight[:4] = 0.0
    problem = SingleKernelProblem(S, y, loss="squared", sample_weight=weight)
    point = solve(problem, similarity_solvers["eskl"](), Stop(tol=1e-3)).point
    assert np.all(point.beta[:4] == 0)


def test_one_kernel_of_several_classes_is_charged_by_all():
    S, y = similarities(n=10, m=2, seed=12)
    twice = SeparateKernelsProblem(S, np.stack([y, y], axis=1), C=1.0, rho=2.0, loss="squared")
    once = SeparateKernelsProblem(S, y, C=1.0, rho=1.0, loss="squared")
    values = [
        solve(p, similarity_solvers["emkl"](), Stop(tol=5e-3, max_iter=150)).certificate.primal
        for p in (twice, once)
    ]
    # block norms add up over the columns, so the same function in both costs twice its square and twice its hinge
    assert values[0] == pytest.approx(2 * values[1], rel=1e-2)
