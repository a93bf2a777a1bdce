"""Edge cases of the SMO engine: storage, starts, kinks, limits, rounding and wrong input."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelweave._numerics import smo
from kernelweave._numerics import smo as _smo_start

from .smo_problems import check_solution, gram, hinge_box, objective, sample, violation


@given(
    st.lists(st.tuples(st.floats(-9, 9), st.floats(0, 5), st.floats(0, 5)), min_size=1, max_size=20),
)
def test_feasible_start_is_feasible(rows):
    beta, below, above = np.array(rows).T
    start = _smo_start.feasible_start(beta, -below, above, True)
    assert np.all(start >= -below)
    assert np.all(start <= above)
    assert abs(start.sum()) <= 1e-12 * np.abs(start).sum()


def test_drift_goes_to_a_free_variable():
    lower, upper = np.array([0.0, -1.0, -4.0]), np.array([1.0, 0.0, 4.0])
    beta = np.array([1.0, -1.0, 1e-9])
    _smo_start.remove_drift(beta, lower, upper)
    np.testing.assert_array_equal(beta[:2], [1.0, -1.0])
    assert beta.sum() == 0.0


def test_repair_spares_variables_at_their_bounds():
    lower, upper = np.zeros(4), np.array([1.0, 1.0, 0.0, 0.0])
    lower[2:] = -1.0
    start = _smo_start.feasible_start(np.array([1.0, 0.9, -1.0, -0.5]), lower, upper, True)
    np.testing.assert_allclose(start, [1.0, 0.5, -1.0, -0.5])


def test_zero_weights_stay_zero_and_change_nothing():
    x, y = sample(150)
    K = gram(x, 0.4)
    weights = np.where(np.arange(y.size) % 3 == 0, 0.0, 1.5)
    lower, upper = hinge_box(y, weights)
    fit = smo.solve_box_qp(K, y, lower, upper, tol=1e-6)
    kept = weights > 0.0
    alone = smo.solve_box_qp(K[np.ix_(kept, kept)], y[kept], lower[kept], upper[kept], tol=1e-6)
    assert np.all(fit.beta[~kept] == 0.0)
    assert objective(K, fit.beta, y) == pytest.approx(
        objective(K[np.ix_(kept, kept)], alone.beta, y[kept]), rel=1e-9
    )


@pytest.mark.parametrize("equality", [False, True])
def test_input_is_only_read(equality):
    x, y = sample(100)
    K = gram(x, 0.4)
    lower, upper = hinge_box(y, np.full(y.size, 1.0))
    beta = np.full(y.size, 0.3)
    arrays = [K, y, lower, upper, beta]
    copies = [array.copy() for array in arrays]
    for array in arrays:
        array.flags.writeable = False
    fit = smo.solve_box_qp(K, y, lower, upper, equality=equality, beta=beta)
    for array, copy in zip(arrays, copies, strict=True):
        np.testing.assert_array_equal(array, copy)
    assert fit.beta.flags.writeable
    check_solution(fit, K, y, lower, upper, equality=equality)


@pytest.mark.parametrize("equality", [False, True])
def test_storage_of_the_matrix_does_not_matter(equality):
    x, y = sample(200)
    K = gram(x, 0.4).astype(np.float32)
    K = np.maximum(K, K.T)
    lower, upper = hinge_box(y, np.full(y.size, 5.0))
    single = smo.solve_box_qp(K, y, lower, upper, equality=equality, tol=1e-7)
    check_solution(single, K, y, lower, upper, equality=equality, tol=1e-7)
    spaced = np.zeros((400, 400))
    spaced[::2, ::2] = K
    for same in (K.astype(float), np.asfortranarray(K), spaced[::2, ::2]):
        fit = smo.solve_box_qp(same, y, lower, upper, equality=equality, tol=1e-7)
        assert objective(K, fit.beta, y) == pytest.approx(objective(K, single.beta, y), rel=1e-8)


@pytest.mark.parametrize("ridge", [0.0, 0.01])
def test_shrinking_and_conjugate_gradients_do_not_change_the_answer(monkeypatch, ridge):
    x, y = sample(400, d=8)
    K = gram(x, "linear")
    lower, upper = hinge_box(y, np.full(y.size, 300.0))
    used = {"shrink": 0, "ascend": 0}
    shrink, ascend = smo.Workspace.shrink, smo.ascend_free

    def counting_shrink(self, *args):
        used["shrink"] += 1
        return shrink(self, *args)

    def counting_ascend(*args):
        used["ascend"] += 1
        return ascend(*args)

    monkeypatch.setattr(smo.Workspace, "shrink", counting_shrink)
    monkeypatch.setattr(smo, "ascend_free", counting_ascend)
    for equality in (True, False):
        fast = smo.solve_box_qp(K, y, lower, upper, ridge=ridge, equality=equality, tol=1e-5)
        assert min(used.values()) > 0
        check_solution(fast, K, y, lower, upper, ridge=ridge, equality=equality, tol=1e-5)
        with monkeypatch.context() as plain:
            plain.setattr(smo, "_PATIENCE", 0.0)
            plain.setattr(smo, "_PERIOD", 1e9)
            used.update(shrink=0, ascend=0)
            slow = smo.solve_box_qp(K, y, lower, upper, ridge=ridge, equality=equality, tol=1e-5)
            assert used == {"shrink": 0, "ascend": 0}
        assert slow.iterations > fast.iterations
        assert objective(K, fast.beta, y, ridge) == pytest.approx(objective(K, slow.beta, y, ridge), rel=1e-7)


@pytest.mark.parametrize("c", [1e-3, 1e5])
def test_extreme_costs_on_a_linear_kernel(c):
    x, y = sample(150, d=3)
    K = gram(x, "linear")
    lower, upper = hinge_box(y, np.full(y.size, c))
    fit = smo.solve_box_qp(K, y, lower, upper)
    check_solution(fit, K, y, lower, upper)


@pytest.mark.parametrize("equality", [False, True])
@pytest.mark.parametrize("kink", [0.0, 0.3])
def test_tiny_problems(equality, kink):
    one = smo.solve_box_qp([[2.0]], [1.0], [-5.0], [5.0], kink=kink, equality=equality)
    assert one.beta == pytest.approx([0.0] if equality else [(1.0 - kink) / 2.0])
    two = smo.solve_box_qp(np.eye(2), [3.0, -1.0], [-9.0, -9.0], [9.0, 9.0], kink=kink, equality=equality)
    expected = [2.0 - kink, kink - 2.0] if equality else [3.0 - kink, kink - 1.0]
    np.testing.assert_allclose(two.beta, expected, atol=1e-12)
    none = smo.solve_box_qp(np.empty((0, 0)), [], [], [], equality=equality)
    assert none.converged
    assert none.beta.size == 0


def test_a_step_stops_at_the_kink_and_goes_on():
    # From the far side of zero the optimum is beyond the kink: one step to it, one from it.
    fit = smo.solve_box_qp([[1.0]], [2.0], [-4.0], [4.0], kink=0.5, equality=False, beta=[-3.0])
    assert fit.beta == pytest.approx([1.5])
    assert fit.iterations == 2
    # Inside the dead zone it stays at zero.
    fit = smo.solve_box_qp([[1.0]], [0.4], [-4.0], [4.0], kink=0.5, equality=False, beta=[-3.0])
    assert fit.beta[0] == 0.0


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_one_step_does_not_cross_the_kink(sign):
    terms = {"kink": 0.5, "max_iter": 1}
    linear, start = sign * np.array([9.0, -9.0, 0.0]), sign * np.array([-1.0, 2.0, -1.0])
    paired = smo.solve_box_qp(np.eye(3), linear, -9.0, 9.0, beta=start, **terms)
    np.testing.assert_array_equal(paired.beta, sign * np.array([0.0, 1.0, -1.0]))
    free = smo.solve_box_qp(np.eye(3), linear, -9.0, 9.0, beta=start, equality=False, **terms)
    np.testing.assert_array_equal(free.beta, sign * np.array([0.0, 0.0, -1.0]))


@pytest.mark.parametrize("seed", range(20))
def test_rank_one_in_single_precision(seed):
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal(10), np.where(rng.random(10) < 0.5, 1.0, -1.0)
    x[3:6] = x[0]
    K = np.outer(x, x).astype(np.float32)
    lower, upper = hinge_box(y, rng.random(10))
    for equality in (True, False):
        fit = smo.solve_box_qp(K, y, lower, upper, equality=equality, tol=1e-6)
        check_solution(fit, K, y, lower, upper, equality=equality, tol=1e-6)


def test_one_class_has_nothing_to_balance():
    y = np.ones(4)
    fit = smo.solve_box_qp(np.eye(4), y, np.zeros(4), y, beta=y)
    np.testing.assert_array_equal(fit.beta, 0.0)
    assert fit.converged
    assert fit.intercept == 1.0


def test_intercept_without_free_variables_is_the_middle_of_its_interval():
    # Both variables sit at their bound; any intercept in [-0.8, 0.6] satisfies the conditions.
    K = np.array([[0.4, 0.0], [0.0, 0.2]])
    fit = smo.solve_box_qp(K, [1.0, -1.0], [0.0, -1.0], [1.0, 0.0])
    np.testing.assert_array_equal(fit.beta, [1.0, -1.0])
    assert fit.intercept == pytest.approx(-0.1)


def test_slightly_indefinite_matrices_do_not_hang():
    x, y = sample(120)
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((120, 120)) * 1e-7
    K = gram(x[:, :1], "linear") + noise + noise.T
    assert np.linalg.eigvalsh(K)[0] < 0.0
    lower, upper = hinge_box(y, np.full(y.size, 1e4))
    for equality in (True, False):
        fit = smo.solve_box_qp(K, y, lower, upper, equality=equality)
        assert fit.iterations < 1_000_000
        check_solution(fit, K, y, lower, upper, equality=equality)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_tolerance_below_rounding_ends_with_an_honest_report(seed):
    # Without the look for progress these run until the limit of ten million steps.
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((100, 1)), np.where(rng.random(100) < 0.5, 1.0, -1.0)
    K = gram(x, 0.05)
    lower, upper = hinge_box(y, np.ones(100))
    fit = smo.solve_box_qp(K, y, lower, upper, tol=0.0)
    assert fit.iterations < 2_000_000
    assert fit.converged == (fit.violation == 0.0)
    assert violation(K, fit.beta, y, lower, upper) < 1e-10


def test_max_iter_is_kept_and_reported():
    x, y = sample(300)
    K = gram(x, 0.05)
    lower, upper = hinge_box(y, np.full(y.size, 100.0))
    for limit in (0, 1, 500):
        fit = smo.solve_box_qp(K, y, lower, upper, max_iter=limit)
        assert fit.iterations == limit
        assert not fit.converged
        assert fit.violation == pytest.approx(violation(K, fit.beta, y, lower, upper), rel=1e-9)
        np.testing.assert_allclose(fit.product, K @ fit.beta, atol=1e-9)


def test_not_a_number_does_not_pass_for_a_solution():
    x, y = sample(20)
    K = gram(x, 0.5)
    K[3, 5] = K[5, 3] = np.nan
    assert not smo.solve_box_qp(K, y, *hinge_box(y, np.ones(20))).converged


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"K": np.zeros((3, 2))}, "square"),
        ({"linear": np.zeros(4)}, "linear must have length 3"),
        ({"lower": np.full(3, 0.5)}, "lower <= 0 <= upper"),
        ({"upper": np.array([1.0, -1.0, 1.0])}, "lower <= 0 <= upper"),
        ({"ridge": -1.0}, "negative"),
        ({"kink": -1.0}, "negative"),
        ({"linear": np.array([1.0, np.nan, 0.0])}, "finite"),
        ({"beta": np.zeros(2)}, "beta must have length 3"),
    ],
)
def test_wrong_input_is_refused(change, message):
    arguments = {"K": np.eye(3), "linear": np.zeros(3), "lower": -np.ones(3), "upper": np.ones(3)} | change
    with pytest.raises(ValueError, match=message):
        smo.solve_box_qp(**arguments)
