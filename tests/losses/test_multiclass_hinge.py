"""The multiclass hinge by its definitions: value, gradient, conjugate, dual set, intercept."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from sklearn.base import clone

from kernelweave.losses import Hinge, MulticlassHinge, make_loss, own_class
from references import MULTICLASS_HINGE

seeds = st.integers(0, 2**32 - 1)
LOSS = MulticlassHinge()


def table(own: np.ndarray, k: int) -> np.ndarray:
    return np.where(np.arange(k) == own[:, None], 1.0, -1.0)


def some(seed: int, n: int = 20, k: int = 4) -> tuple[np.ndarray, np.ndarray, np.random.Generator]:
    """Targets, decision values (some with ties and some right at the margin), and the generator."""
    rng = np.random.default_rng(seed)
    own = rng.integers(0, k, n)
    f = 10.0 ** rng.uniform(-1, 1) * rng.normal(size=(n, k))
    f[0] = 0.0  # all tied
    f[1] = np.where(np.arange(k) == own[1], 1.0, 0.0)  # the margin exactly
    f[2] = np.where(np.arange(k) == own[2], 2.0, 0.0)  # and beyond
    return table(own, k), f, rng


@given(seed=seeds)
def test_value_is_the_definition(seed):
    y, f, _ = some(seed)
    np.testing.assert_allclose(LOSS.value(y, f), MULTICLASS_HINGE.value(y, f), rtol=1e-12, atol=1e-14)
    c = np.repeat(np.random.default_rng(seed).uniform(size=(20, 1)), 4, axis=1)
    assert LOSS.total(y, f, c) == pytest.approx(c[:, 0] @ MULTICLASS_HINGE.value(y, f), rel=1e-12)


@given(seed=seeds)
def test_value_is_at_least_the_error(seed):
    y, f, _ = some(seed)
    wrong = np.argmax(f, axis=1) != own_class(y)
    assert np.all(LOSS.value(y, f) >= wrong)


@given(seed=seeds)
def test_gradient_is_a_subgradient(seed):
    y, f, rng = some(seed)
    gradient = LOSS.gradient(y, f)
    for g in (rng.normal(scale=3.0, size=f.shape), f + 1e-4 * rng.normal(size=f.shape)):
        tangent = LOSS.value(y, f) + np.sum(gradient * (g - f), axis=1)
        assert np.all(LOSS.value(y, g) >= tangent - 1e-12 * (1 + np.abs(tangent)))
    assert not np.any(gradient[LOSS.value(y, f) == 0])
    np.testing.assert_allclose(gradient.sum(axis=1), 0.0)


def test_gradient_agrees_with_finite_differences():
    rng = np.random.default_rng(0)
    y, f = table(rng.integers(0, 4, 500), 4), rng.normal(scale=2.0, size=(500, 4))
    slopes = np.empty_like(f)
    for k in range(4):
        step = 1e-6 * (np.arange(4) == k)
        slopes[:, k] = (LOSS.value(y, f + step) - LOSS.value(y, f - step)) / 2e-6
    np.testing.assert_allclose(LOSS.gradient(y, f), slopes, atol=1e-6)


def dual_points(y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Unit coefficients ``e_own - a``, a on the simplex, some at a vertex."""
    a = rng.dirichlet(np.ones(y.shape[1]), size=y.shape[0])
    a[:3] = np.eye(y.shape[1])[rng.integers(0, y.shape[1], 3)]
    return (y > 0) - a


@given(seed=seeds)
def test_fenchel_young(seed):
    """``l(f) + l*(u) >= u'f`` for every pair, with equality at the gradient."""
    y, f, rng = some(seed)
    b = dual_points(y, rng)
    assert np.all(np.isfinite(LOSS.conjugate(y, -b)))
    slack = LOSS.value(y, f) + LOSS.conjugate(y, -b) + np.sum(b * f, axis=1)
    assert np.all(slack >= -1e-10 * (1 + np.abs(f).max()))
    u = LOSS.gradient(y, f)
    tight = LOSS.value(y, f) + LOSS.conjugate(y, u) - np.sum(u * f, axis=1)
    np.testing.assert_allclose(tight, 0.0, atol=1e-10 * (1 + np.abs(f).max()))


def conjugate_by_linprog(own: int, u: np.ndarray) -> float:
    """``sup u'f - xi`` over ``xi >= [k != own] + f_k - f_own`` for all k."""
    k = u.size
    rows = np.eye(k, k + 1)
    rows[:, own] -= 1.0
    rows[:, k] = -1.0
    right = -(np.arange(k) != own).astype(float)
    found = linprog(
        np.append(-u, 1.0), A_ub=rows, b_ub=right, bounds=[(-1e4, 1e4)] * k + [(0, None)], method="highs"
    )
    assert found.status == 0
    return -float(found.fun)


def test_conjugate_is_the_supremum():
    rng = np.random.default_rng(0)
    y = table(rng.integers(0, 3, 12), 3)
    inside = -dual_points(y, rng)
    for i in range(12):
        assert LOSS.conjugate(y, inside)[i] == pytest.approx(
            conjugate_by_linprog(own_class(y)[i], inside[i]), abs=1e-7
        )
    outside = {
        "row sum": inside + 0.1,
        "sign": inside + np.where(y > 0, 2.0, -1.0),
        "too much": 1.5 * np.where(y > 0, -1.0, 0.5),
    }
    for name, u in outside.items():
        assert np.all(np.isinf(LOSS.conjugate(y, u))), name
        assert conjugate_by_linprog(own_class(y)[0], u[0]) > 100.0, name  # only the box of the test bounds it


@given(seed=seeds)
def test_dual_is_minus_the_conjugate(seed):
    y, _, rng = some(seed)
    b = dual_points(y, rng)
    c = np.repeat(rng.choice([0.0, 0.5, 3.0], size=(20, 1)), 4, axis=1)
    gain = LOSS.gain(y, c * b, c)
    assert gain == pytest.approx(-c[:, 0] @ LOSS.conjugate(y, -b), rel=1e-12, abs=1e-12)
    low, high = LOSS.box(y, c)
    assert np.all((c * b >= low) & (c * b <= high))


@pytest.mark.parametrize("zero_sum", [False, True])
@given(seed=seeds)
def test_projection_lands_in_the_dual_set(zero_sum, seed):
    y, f, rng = some(seed)
    c = np.repeat(rng.choice([0.0, 0.5, 3.0], size=(20, 1)), 4, axis=1)
    beta = LOSS.project(y, f, c, zero_sum)
    used = c[:, 0] > 0
    assert not np.any(np.abs(beta[~used]) > 1e-15)
    assert np.all(np.isfinite(LOSS.conjugate(y[used], -beta[used] / c[used])))
    if zero_sum:
        np.testing.assert_allclose(beta.sum(axis=0), 0.0, atol=1e-10 * (1 + np.abs(f).max()))
    # no other point of the set is nearer
    for _ in range(5):
        other = LOSS.project(y, rng.normal(scale=5.0, size=f.shape), c, zero_sum)
        for t in (1e-3, 0.1, 1.0):
            moved = (1 - t) * beta + t * other
            assert np.sum((f - moved) ** 2) >= np.sum((f - beta) ** 2) * (1 - 1e-9) - 1e-9


@given(seed=seeds)
def test_no_other_intercept_is_better(seed):
    y, f, rng = some(seed)
    c = np.repeat(rng.choice([0.0, 1.0, 2.0], size=(20, 1)), 4, axis=1)
    b = LOSS.best_intercept(y, f, c)
    assert b.shape == (4,)
    lowest = LOSS.total(y, f + b, c)
    for size in (1e-3, 0.1, 1.0, 10.0):
        assert LOSS.total(y, f + b + size * rng.normal(size=4), c) >= lowest - 1e-7 * (1 + lowest)


@given(seed=seeds)
def test_two_classes_are_the_binary_hinge(seed):
    rng = np.random.default_rng(seed)
    sign = rng.choice([-1.0, 1.0], 15)
    f = rng.normal(scale=2.0, size=(15, 2))
    y = np.column_stack([-sign, sign])
    np.testing.assert_allclose(LOSS.value(y, f), Hinge().value(sign, f[:, 1] - f[:, 0]), atol=1e-12)


def test_it_is_a_component():
    assert isinstance(make_loss("multiclass_hinge"), MulticlassHinge)
    assert LOSS.joint
    assert clone(LOSS).get_params() == {}
    assert isinstance(Hinge().of_several_classes(), MulticlassHinge)
