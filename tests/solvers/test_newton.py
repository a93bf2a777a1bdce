"""What only Newton's method in the weights does: its model's working sets, how much it bends, which steps it takes."""

from __future__ import annotations

from types import SimpleNamespace

import cvxpy as cp
import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.preprocessing import scale

import references as ref
from kernelweave import MKLClassifier
from kernelweave.norms import Lp
from kernelweave.problems import curvature, mkl
from kernelweave.solvers import newton
from kernelweave.solvers.newton import Cut, SimplexModel, minimise_smooth_model
from problems.making import make_case


def overlapping(n: int = 150):
    X, y = make_classification(
        n, 10, n_informative=6, n_redundant=2, flip_y=0.05, class_sep=0.8, random_state=0
    )
    return scale(X), y


class Contradicting(SimplexModel):
    """A model of three kernels, in which 1 asks to enter where 2 is and 2 where 1 is, and both get no weight."""

    d = np.array([1.0, 0.0, 0.0])
    centre_slope = -np.ones(3)

    def __init__(self) -> None:
        self.solved: list[list[int]] = []
        self.working = np.array([0])

    def _expanded(self, working, shift):
        self.solved.append(working.tolist())
        return np.eye(working.size), (working > 0).astype(float)  # all weight stays with the first

    def _gradient(self, shift, rows, multipliers):
        other = 2 if 1 in self.solved[-1] else 1
        return np.where(np.arange(3) == other, -2e-9, 0.0)  # little more than what is taken for rounding


def test_kernels_that_rounding_sends_in_and_out_stay_when_they_come_back():
    model = Contradicting()
    z, _ = model._minimise_with(np.zeros((1, 3)), np.zeros(1))
    np.testing.assert_array_equal(z, model.d)
    assert model.solved == [[0], [0, 1], [0, 2], [0, 1], [0, 1, 2]]
    assert model.working.tolist() == [0, 1, 2]


@pytest.fixture
def factorised(monkeypatch) -> list[int]:
    """Sizes of the parts of mixed kernels that were factorised for a Hessian."""
    sizes: list[int] = []
    honest = curvature.stable_cholesky

    def counting(block, *given):
        sizes.append(len(block))
        return honest(block, *given)

    monkeypatch.setattr(curvature, "stable_cholesky", counting)
    return sizes


@pytest.mark.parametrize(("norm", "tol"), [(1.5, 1e-3), (2.0, 1e-3), (3.0, 1e-4)])
def test_a_closed_form_step_that_is_bound_to_be_the_last_needs_no_hessian(norm, tol, factorised, monkeypatch):
    """Every second-order step takes a factorisation; where the gap is nearly there, no step is of that kind."""
    gaps: list[float] = []
    honest = newton.Newton._newton_step

    def noting(self, problem, state, gap):
        gaps.append(gap)
        return honest(self, problem, state, gap)

    monkeypatch.setattr(newton.Newton, "_newton_step", noting)
    X, y = overlapping()
    for C in (0.3, 1.0, 10.0, 100.0):
        model = MKLClassifier("stpmkl", norm=norm, C=C, tol=tol).fit(X, y)
        assert model.certificate_.relative_gap <= tol
    rate = (2.0 / (norm + 1.0)) ** 2  # what a closed-form step leaves of a gap
    assert all(rate * gap > tol for gap in gaps)
    assert len(factorised) == len(gaps)


@pytest.mark.parametrize(("C", "expected"), [(1e-3, {1.0}), (10.0, {0.5, 1.0})])
def test_the_model_bends_by_half_of_the_hessian_only_from_far_and_where_coefficients_are_free(
    C, expected, monkeypatch
):
    found: list[tuple[float, float]] = []
    honest = newton.Newton._bend

    def noting(self, problem, state):
        bend = honest(self, problem, state)
        found.append((self._gap(problem, state), bend))
        return bend

    monkeypatch.setattr(newton.Newton, "_bend", noting)
    X, y = overlapping()
    MKLClassifier("stpmkl", C=C, tol=1e-6).fit(X, y)
    assert {bend for _, bend in found} == expected
    assert all(bend == 1.0 for gap, bend in found if gap <= newton.FAR)


@pytest.mark.parametrize("norm", ["l1", "l1-fixed"])
@pytest.mark.parametrize("seed", range(3))
def test_all_cuts_together_bound_the_optimum_as_their_linear_program_says(norm, seed):
    case = make_case(ref.HINGE, norm, True, C=0.5, seed=seed)
    problem, rng = case.problem, np.random.default_rng(seed)
    held = 0.4 if "fixed" in norm else 0.0
    learnt = problem.m - (held > 0)
    oracles = []
    for _ in range(6):
        weights = np.append(rng.dirichlet(np.ones(learnt)), [held] * (held > 0))
        oracles.append(problem.oracle(weights, target=1e-9))
    cuts = [Cut(problem.gain(o.inner.beta), o.quad, o.inner.beta) for o in oracles]
    beta, bound = SimplexModel(oracles[-1], cuts, problem.norm, 0.0).bound()
    d, height = cp.Variable(problem.m, nonneg=True), cp.Variable()
    above = [height >= cut.gain - 0.5 * cut.quad @ d for cut in cuts]
    fixed = [d[learnt:] == held] if held else []
    lowest = cp.Problem(cp.Minimize(height), [*above, *fixed, cp.sum(d[:learnt]) == 1.0]).solve()
    assert bound == pytest.approx(lowest, rel=1e-6)
    assert problem.dual(beta) >= bound - 1e-9 * abs(bound)
    assert max(problem.dual(o.inner.beta, o.quad) for o in oracles) <= bound + 1e-9 * abs(bound)


def state_with(upper: float, own: float, tol: float = 1e-3) -> newton._NewtonState:
    centre = SimpleNamespace(inner=SimpleNamespace(primal=upper, unit=0.0))
    return newton._NewtonState(centre, centre, tol, own)


def test_the_bank_is_read_for_several_cuts_only_where_that_says_much_more():
    beta = np.ones(3)
    state = state_with(upper=1.0, own=0.5)
    state.bounded_together(beta, 0.6)
    state.read_if_worthwhile()
    assert state.dual_beta is None  # a gap of .4 instead of .5
    state.centre.inner.primal = 0.6 / (1.0 - 5e-4)  # J fell: what was promised before ends the fit now
    state.read_if_worthwhile()
    assert state.dual_beta is beta
    state = state_with(upper=1.0, own=0.5)
    state.bounded_together(beta, 0.96)
    state.read_if_worthwhile()
    assert state.dual_beta is beta  # a tenth of the gap
    assert state.known == 0.96


def test_the_bank_is_not_read_for_several_cuts_where_one_is_enough_unless_that_was_doubted():
    state = state_with(upper=1.0, own=0.9995)
    state.bounded_together(np.ones(3), 0.9999)
    state.read_if_worthwhile()
    assert state.dual_beta is None
    state.doubted = True
    state.read_if_worthwhile()
    assert state.dual_beta is not None


def test_inner_solves_start_where_the_hessian_expects_them_to_end(monkeypatch):
    steps: list[int] = []
    honest = mkl.solve_fixed

    def counting(*arguments):
        found = honest(*arguments)
        steps.append(found.iterations)
        return found

    monkeypatch.setattr(mkl, "solve_fixed", counting)
    X, y = overlapping()
    ahead = MKLClassifier("stpmkl", C=10.0).fit(X, y)
    with_starts = sum(steps)
    steps.clear()
    monkeypatch.setattr(curvature.Curvature, "ahead", lambda *arguments: None)
    plain = MKLClassifier("stpmkl", C=10.0).fit(X, y)
    assert with_starts <= 0.95 * sum(steps)
    assert ahead.n_passes_ <= 1.05 * plain.n_passes_
    assert ahead.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=2e-3)


def test_the_smooth_model_where_the_weights_are_at_the_top_of_its_bend():
    """``A d = 0``: what the dual of the quadratic is compared with has no length, and the quadratic is there."""
    root, d, quad = np.array([[2.0, -1.0]]), np.array([0.4, 0.8]), np.array([3.0, 1.0])
    found = minimise_smooth_model(Lp(2), quad, root, d)
    angles = np.linspace(0.0, np.pi / 2, 200001)
    circle = np.column_stack([np.cos(angles), np.sin(angles)])  # the weights of length one
    values = 0.5 * ((circle - d) @ root[0]) ** 2 - 0.5 * (circle - d) @ quad
    np.testing.assert_allclose(found, circle[np.argmin(values)], atol=1e-4)
    assert np.linalg.norm(found - Lp(2).weights(quad)) > 0.1


@pytest.mark.parametrize("p", [1.2, 2.0])
def test_the_smooth_model_has_no_units(p):
    """Objectives of 1e-14 and of 1e6 have the same best weights: at small ones the minimiser used to stop early."""
    rng = np.random.default_rng(0)
    m = 6
    root, d, quad = rng.normal(size=(9, m)), np.full(m, 0.3), rng.uniform(0.0, 4.0, m)
    expected = minimise_smooth_model(Lp(p), quad, root, d)

    def value(z):
        moved = root @ (z - d)
        return 0.5 * float(moved @ moved - quad @ (z - d))

    # the minimum over the set of weights: no way to a vertex, or to other weights of it, leads down
    for other in [*np.eye(m), *(rng.dirichlet(np.ones(m)) ** (1 / p) for _ in range(50))]:
        assert value(expected + 1e-4 * (other - expected)) >= value(expected) - 1e-9
    for factor in (1e-14, 1e-10, 1e-6, 1e6):
        scaled = minimise_smooth_model(Lp(p), factor * quad, np.sqrt(factor) * root, d)
        np.testing.assert_allclose(scaled, expected, atol=1e-7)
