"""J, the optimal value as a function of the weights: gradient and Hessian by finite differences."""

from __future__ import annotations

import numpy as np
import pytest

import references as ref
from kernelweave.exceptions import MemoryBudgetError
from kernelweave.problems import mkl

from .making import make_case

every_loss = pytest.mark.parametrize("loss", ref.LOSSES, ids=lambda loss: loss.label)
with_and_without = pytest.mark.parametrize("fit_intercept", [True, False], ids=["intercept", "no intercept"])
columns = pytest.mark.parametrize("columns", [None, 2], ids=["one column", "two columns"])
WEIGHTS = np.array([0.4, 0.1, 0.3, 0.15])


def case_of(loss, fit_intercept, columns):
    weight = np.ones(18)
    weight[3] = 0.0
    return make_case(loss, "l1", fit_intercept, n=18, m=4, C=2.0, columns=columns, sample_weight=weight)


@every_loss
@with_and_without
@columns
def test_gradient_is_minus_half_the_quadratic_forms(loss, fit_intercept, columns):
    problem = case_of(loss, fit_intercept, columns).problem
    found = problem.oracle(WEIGHTS, target=1e-12)
    np.testing.assert_allclose(
        found.quad, ref.quadratic_forms(problem.bank.block(np.arange(18), np.arange(18), np.arange(4)), found.inner.beta),
        rtol=1e-9,
    )  # fmt: skip
    h = 1e-4
    for j in range(4):
        e = h * np.eye(4)[j]
        up, down = (problem.oracle(WEIGHTS + s * e, target=1e-12).value for s in (1, -1))
        assert (up - down) / (2 * h) == pytest.approx(-0.5 * found.quad[j], rel=2e-4, abs=1e-6)


@every_loss
@with_and_without
@columns
def test_hessian_by_differences_of_the_gradient(loss, fit_intercept, columns):
    problem = case_of(loss, fit_intercept, columns).problem
    found = problem.oracle(WEIGHTS, target=1e-13, curvature=True)
    hessian = found.curvature.root.dense.T @ found.curvature.root.dense
    h = 1e-5
    difference = np.empty((4, 4))
    for j in range(4):
        e = h * np.eye(4)[j]
        up, down = (problem.oracle(WEIGHTS + s * e, target=1e-13).quad for s in (1, -1))
        difference[:, j] = -0.5 * (up - down) / (2 * h)
    np.testing.assert_allclose(hessian, difference, rtol=5e-3, atol=5e-3 * np.abs(hessian).max() + 1e-6)


@every_loss
@with_and_without
@columns
def test_products_and_columns_of_the_root(loss, fit_intercept, columns):
    problem = case_of(loss, fit_intercept, columns).problem
    whole = problem.oracle(WEIGHTS, target=1e-12, curvature=True).curvature.root.dense
    root = problem.oracle(WEIGHTS, target=1e-12, curvature=True).curvature.root
    rng = np.random.default_rng(0)
    z, w = rng.normal(size=4), rng.normal(size=whole.shape[0])
    size = 1e-9 * (1.0 + np.abs(whole).max())
    np.testing.assert_allclose(root.columns(np.array([2, 0])), whole[:, [2, 0]], atol=size)
    np.testing.assert_allclose(root.columns(np.array([1, 2])), whole[:, [1, 2]], atol=size)
    np.testing.assert_allclose(root.times(z), whole @ z, atol=10 * size)
    np.testing.assert_allclose(root.transposed(w), whole.T @ w, atol=10 * size * np.sqrt(1 + w.size))
    some = root.among(np.array([0, 3]))
    np.testing.assert_allclose(some.dense, whole[:, [0, 3]], atol=size)
    np.testing.assert_allclose(some.times(z[:2]), whole[:, [0, 3]] @ z[:2], atol=10 * size)


@every_loss
@with_and_without
def test_ahead_is_where_the_inner_solution_goes(loss, fit_intercept):
    case = make_case(loss, "l1", fit_intercept, n=18, m=4, C=50.0)  # most coefficients are free
    problem, there = case.problem, WEIGHTS + 1e-3 * np.array([1.0, -2.0, -1.0, 2.0])
    here = problem.oracle(WEIGHTS, target=1e-13, curvature=True)
    assert here.curvature.ahead(there - here.weights) is here.inner  # nothing is factorised for it
    assert here.curvature.root is not None
    start, end = here.curvature.ahead(there - here.weights), problem.oracle(there, target=1e-13).inner
    if problem.loss.has_curvature or problem.loss.joint:
        assert start is here.inner
        return
    left, whole = np.linalg.norm(start.beta - end.beta), np.linalg.norm(here.inner.beta - end.beta)
    assert left <= 0.05 * whole
    lower, upper = problem.loss.box(problem.y, problem.c)
    assert np.all((lower <= start.beta) & (start.beta <= upper))


def test_ahead_is_here_where_most_coefficients_are_at_their_bounds():
    problem = make_case(ref.HINGE, "l1", True, n=18, m=4, C=0.02).problem
    here = problem.oracle(WEIGHTS, target=1e-12, curvature=True)
    assert here.curvature.root is not None
    assert here.curvature.ahead(WEIGHTS + 1e-3 - here.weights) is here.inner


@every_loss
@with_and_without
def test_oracle_with_and_without_curvature_agree(loss, fit_intercept):
    problem = case_of(loss, fit_intercept, None).problem
    plain = problem.oracle(WEIGHTS, target=1e-9)
    curved = problem.oracle(WEIGHTS, target=1e-9, curvature=True)
    np.testing.assert_allclose(curved.quad, plain.quad, rtol=1e-6)
    assert plain.curvature is None
    assert curved.curvature.root.shape[1] == 4
    assert curved.value == pytest.approx(plain.value, rel=1e-8)


@with_and_without
def test_value_is_the_optimum_of_the_fixed_kernel(fit_intercept):
    case = case_of(ref.HINGE, fit_intercept, None)
    mixed = np.tensordot(WEIGHTS, case.Ks, axes=1)
    conic = ref.conic_optimum([mixed], case.y, case.c, ref.HINGE, ref.l1_norm(), fit_intercept)
    assert case.problem.oracle(WEIGHTS, target=1e-9).value == pytest.approx(conic.value, rel=1e-7)


def test_j_is_convex_in_the_weights_and_falls_with_them():
    problem = case_of(ref.HINGE, True, None).problem
    rng = np.random.default_rng(0)
    for _ in range(5):
        a, b = rng.uniform(0.05, 1.0, size=(2, 4))
        ends = [problem.oracle(d, target=1e-9).value for d in (a, b, (a + b) / 2, a + b)]
        assert ends[2] <= (ends[0] + ends[1]) / 2 + 1e-7
        assert ends[3] <= min(ends[0], ends[1]) + 1e-7


@pytest.mark.parametrize("on_device", [False, True])
def test_a_mixed_kernel_beyond_memory_is_refused_before_it_is_made(on_device, monkeypatch):
    """``8 n^2`` bytes; matrices of tens of megabytes, and those on a device, are not held to the host's memory."""
    problem = make_case(ref.HINGE, "l1", True, n=24).problem
    monkeypatch.setattr(problem.bank, "on_device", on_device)
    monkeypatch.setattr(mkl, "default_budget", lambda: 8 * 24**2 - 1)
    weights = np.full(5, 0.2)
    problem.oracle(weights)  # small
    monkeypatch.setattr(mkl, "SMALL", 0)
    if on_device:
        problem.oracle(weights)
        return
    before = problem.passes
    with pytest.raises(
        MemoryBudgetError, match=r"of 24 samples needs .*4,608 bytes.*4,607 bytes.*working_set"
    ):
        problem.oracle(weights)
    assert problem.passes == before
    monkeypatch.setattr(mkl, "default_budget", lambda: 8 * 24**2)
    problem.oracle(weights)


def test_the_point_of_an_oracle_knows_its_forms():
    problem = case_of(ref.HINGE, True, None).problem
    found = problem.oracle(WEIGHTS, target=1e-6)
    before = problem.bank.passes
    certificate = problem.certificate(found.point)
    assert problem.bank.passes == before
    # with l1 the blocks are free to be charged less than the fixed weights charge them
    assert certificate.primal <= found.inner.primal * (1 + 1e-12)
    assert certificate.dual <= found.inner.dual * (1 + 1e-12)


def test_few_free_coefficients_have_no_curvature():
    """C so small that every coefficient is at its bound: J is linear there."""
    problem = make_case(ref.HINGE, "l1", False, n=18, m=4, C=1e-5).problem
    found = problem.oracle(WEIGHTS, target=1e-12, curvature=True)
    assert found.curvature.root.shape == (0, 4)
