"""Norms with structure by every solver that serves them, and subsets against the enumeration of all."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

import references as ref
from kernelweave.banks import build_bank
from kernelweave.norms import AtMost, FixedParts, Grouped
from kernelweave.problems import MKLProblem
from kernelweave.solvers import Stop, fitting_solvers, make_solver, registry, solve, without_caches
from problems.making import STRUCTURED, make_case

SLOW = {"mirror_prox": 1e-2, "nesterov": 1e-3, "ufo": 0.3, "svrg": 1e-3}
CASES = [
    pytest.param(solver, loss, norm, id=f"{solver}-{loss.label}-{norm}")
    for norm in ("elastic-strong", "elastic_net-0.5", "grouped-1-2", "grouped-1.5-3", "l1-fixed")
    for loss in (ref.HINGE, ref.SQUARED_HINGE)
    for solver in fitting_solvers(loss.make(), STRUCTURED[norm]().make())
    # of a fixed part the simplex's own solvers know nothing; the prox of groups is slow, and has tests of its own
    if not (norm == "l1-fixed" and solver not in ("newton", "subgradient", "mirror_prox"))
    and not (norm.startswith("grouped") and solver == "mirror_prox")
]


@pytest.mark.parametrize(("solver", "loss", "norm"), CASES)
def test_reaches_the_value_of_newton(solver, loss, norm):
    case = make_case(loss, norm, registry[solver].intercepts, n=16, m=5)
    problem, tol = case.problem, SLOW.get(solver, 1e-4)
    solution = solve(problem, make_solver(solver, problem.loss, problem.norm), Stop(tol=tol))
    assert solution.converged
    best = solve(problem, registry["newton"](), Stop(tol=1e-6)).certificate
    assert best.dual * (1 - 1e-9) <= solution.certificate.primal <= best.primal * (1 + 1.1 * tol)


def test_solvers_of_the_simplex_refuse_a_fixed_part():
    case = make_case(ref.HINGE, "l1-fixed", True)
    with pytest.raises(ValueError, match=r"needs norm='l1'.*'l1 \+ 1 fixed'.*'newton'"):
        make_solver("level", case.problem.loss, case.problem.norm)


def at_most(k: int, loss: ref.RefLoss, m: int = 7, n: int = 20, given=None) -> MKLProblem:
    bank = build_bank(None, ref.kernel_stack(n, m, 1), normalize=None)
    norm = AtMost(k) if given is None else FixedParts(AtMost(k), given)
    return MKLProblem(bank, loss.make(), norm, ref.targets(n, loss.regression, 1), 3.0)


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("loss", [ref.HINGE, ref.LOGISTIC], ids=lambda loss: loss.label)
def test_the_best_subset_is_proved(k, loss):
    problem = at_most(k, loss)
    solution = solve(problem, registry["outer_approximation"](), Stop(tol=1e-3))
    values = {
        chosen: problem.oracle(np.isin(np.arange(7), chosen) / k, target=1e-7).value
        for chosen in combinations(range(7), k)
    }
    found = solution.certificate
    assert solution.converged
    assert found.dual <= min(values.values()) * (1 + 1e-6)
    assert min(values.values()) <= found.primal <= min(values.values()) * (1 + 1.1e-3)
    assert np.count_nonzero(solution.point.weights) <= k
    # the bound can be computed again from the coefficients alone, and no single one of them proves it
    again = problem.certificate(without_caches(solution.point))
    assert again.dual == pytest.approx(found.dual, rel=1e-3)
    single = problem.certificate(replace(without_caches(solution.point), cuts=None))
    assert single.dual <= found.dual


def test_a_subset_beside_a_fixed_part():
    problem = at_most(2, ref.HINGE, given={6: 0.5})
    solution = solve(problem, registry["outer_approximation"](), Stop(tol=1e-3))
    values = [
        problem.oracle(np.append(np.isin(np.arange(6), chosen) / 2, 0.5), target=1e-7).value
        for chosen in combinations(range(6), 2)
    ]
    assert solution.converged
    assert solution.certificate.primal == pytest.approx(min(values), rel=2e-3)
    assert solution.point.weights[6] == 0.5


def test_stopped_early_it_says_what_is_proved():
    problem = at_most(3, ref.HINGE)
    solution = solve(problem, registry["outer_approximation"](), Stop(tol=1e-6, max_iter=2))
    assert solution.status == "max_iter"
    assert solution.certificate.relative_gap > 1e-6
    assert np.count_nonzero(solution.point.weights) == 3
    with pytest.raises(ValueError, match="0 <= between < 1"):
        solve(problem, registry["outer_approximation"](between=1.0), Stop())


def test_many_kernels_on_a_working_set():
    """More kernels than are looked at together: the answer is that of all."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 90))
    stack = np.array([np.outer(x, x) + 0.1 * np.eye(40) for x in X.T])
    y = np.where(X[:, 0] + X[:, 5] > 0, 1.0, -1.0)
    bank = build_bank(None, stack, normalize="trace")
    problem = MKLProblem(bank, ref.HINGE.make(), Grouped(1, 2, [j // 3 for j in range(90)]), y, 1.0)
    solution = solve(problem, registry["newton"](), Stop(tol=1e-5))
    assert solution.converged
    assert {0, 5} <= set(np.flatnonzero(solution.point.weights))
