"""Optimal values against a conic solver, for every loss and norm, with a gap recomputed from the definitions."""

from __future__ import annotations

import numpy as np
import pytest

import references as ref
from kernelweave.norms import registry
from kernelweave.solvers import Stop, choose_solver, solve, without_caches

from .making import NORMS, STRUCTURED, Case, make_case

with_and_without = pytest.mark.parametrize("fit_intercept", [True, False], ids=["intercept", "no intercept"])
every_loss = pytest.mark.parametrize("loss", ref.LOSSES, ids=lambda loss: loss.label)


def test_every_registered_norm_is_here():
    known = {type(make().make()) for make in (NORMS | STRUCTURED).values()}
    # a choice among subsets is not convex: it is compared with the enumeration of all of them (test_at_most.py)
    assert {registry[name] for name in registry if not registry[name]().combinatorial} <= known


def check_optimum(case: Case) -> None:
    # with the maximum norm a kernel that the coefficients are orthogonal to (here the one of rank one) should have an
    # infinite weight; that it is capped costs a few 1e-7, and its rounding is multiplied by the weight
    tol, rounding = (1e-6, 1e-6) if case.norm.label == "max" else (1e-7, 1e-9)
    problem = case.problem
    solution = solve(problem, choose_solver(problem.loss, problem.norm, problem.bank), Stop(tol=tol))
    assert solution.converged
    found = solution.certificate
    # the bounds that were handed out, recomputed by hand from the point and the dual point alone
    assert case.feasible(found.dual_point)
    dual = case.dual(found.dual_point)
    point = without_caches(solution.point)
    if case.norm.label == "entropy":
        t = point.weights * np.sqrt(ref.quadratic_forms(case.Ks, point.beta))
        f = ref.decision_values(case.Ks, point.beta, point.weights)
        charged = ref.entropy_joint(t, np.maximum(point.weights, 1e-300), case.norm.parameter)
        primal = charged + ref.lowest_loss(case.loss, case.y, f, case.c, case.fit_intercept)
        assert point.weights.sum() == pytest.approx(1.0)
    else:
        primal = case.primal(point.beta, point.weights)
    assert found.primal == pytest.approx(primal, rel=rounding)
    assert found.dual == pytest.approx(dual, rel=rounding)
    assert ref.relative(primal, dual) <= tol + rounding
    # and the optimum between them, by a solver that shares nothing with ours
    optimum = case.conic()
    assert optimum.relative_gap <= 1e-7
    assert optimum.primal >= dual - 1e-9 * abs(dual)
    assert optimum.dual <= primal + 1e-9 * abs(primal)
    assert primal == pytest.approx(optimum.value, rel=tol + 2e-7)


@pytest.mark.pairs
@every_loss
@pytest.mark.parametrize("norm", list(NORMS))
@with_and_without
def test_every_loss_and_norm(loss, norm, fit_intercept):
    check_optimum(make_case(loss, norm, fit_intercept))


@pytest.mark.parametrize(
    "loss", [ref.HINGE, ref.LOGISTIC, ref.epsilon_insensitive(0.1)], ids=lambda loss: loss.label
)
@pytest.mark.parametrize("norm", list(NORMS))
def test_sample_weights_with_zeros(loss, norm):
    weight = np.random.default_rng(0).choice([0.0, 0.3, 1.0, 4.0], size=24)
    check_optimum(make_case(loss, norm, True, sample_weight=weight))


@pytest.mark.parametrize("loss", [ref.HINGE, ref.LOGISTIC, ref.SQUARED], ids=lambda loss: loss.label)
@pytest.mark.parametrize("norm", list(NORMS))
def test_columns_share_the_weights(loss, norm):
    weight = np.random.default_rng(1).choice([0.0, 0.5, 2.0], size=(20, 3))
    check_optimum(make_case(loss, norm, True, n=20, m=4, columns=3, sample_weight=weight))


@pytest.mark.parametrize("C", [1e-3, 1e3])
@pytest.mark.parametrize("norm", list(NORMS))
def test_small_and_large_C(C, norm):
    check_optimum(make_case(ref.HINGE, norm, True, C=C))


@pytest.mark.parametrize("norm", list(NORMS))
def test_a_single_kernel(norm):
    check_optimum(make_case(ref.HINGE, norm, True, m=1))
