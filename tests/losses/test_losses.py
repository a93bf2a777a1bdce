"""Every loss of the registry by its definitions: conjugate, gradients, dual set, intercept.

A new loss is tested with its default parameters as soon as it is registered; losses with a hand-written reference in
``references`` are compared with that too.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from kernelweave._numerics.resources import PART_ROWS
from kernelweave.losses import (
    BudgetedHinge,
    EpsilonInsensitive,
    Hinge,
    Huber,
    HuberHinge,
    Logistic,
    Loss,
    Pinball,
    make_loss,
    registry,
)
from references import LOSSES, golden_section

#: joint losses judge whole rows, and coupled ones all samples together: they have tests of their own
ENTRYWISE = [name for name in registry if not (registry[name].joint or registry[name].coupled)]
VARIANTS = [
    *(registry[name]() for name in ENTRYWISE),
    HuberHinge(width=0.25),
    HuberHinge(width=3.0),
    EpsilonInsensitive(epsilon=0.0),
    EpsilonInsensitive(epsilon=0.7),
    BudgetedHinge(budget=0.4),
    BudgetedHinge(budget=0.7, base=0.3),
    Pinball(quantile=0.05),
    Huber(delta=0.3),
]
every_loss = pytest.mark.parametrize("loss", VARIANTS, ids=repr)
seeds = st.integers(0, 2**32 - 1)


def some_targets(loss: Loss, rng: np.random.Generator, shape) -> np.ndarray:
    if loss.not_negative:
        return rng.poisson(1.5, size=shape).astype(float)
    if loss.tasks & {"regression", "survival"}:
        return rng.normal(scale=2.0, size=shape)
    return rng.choice([-1.0, 1.0], size=shape)


def two_kinds(loss: Loss) -> np.ndarray:
    """A target of each kind: two classes, numbers on both sides of zero, counts."""
    return np.array([1.0, 3.0]) if loss.not_negative else np.array([1.0, -1.0])


def special_points(loss: Loss, y: np.ndarray) -> np.ndarray:
    """Decision values where a loss could have a corner or a change of curvature, one row a kind."""
    width = getattr(loss, "width", 1.0)
    epsilon = getattr(loss, "epsilon", getattr(loss, "_delta", 0.0))
    last = np.log(np.abs(y)) if "survival" in loss.tasks else 0 * y
    return np.array([y, y * (1 - width), y + epsilon, y - epsilon, last])


def inside(loss: Loss, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Unit coefficients b strictly within the bounds."""
    low, high = loss.bounds(y)
    low, high = np.maximum(low, -6.0), np.minimum(high, 6.0)
    return low + (high - low) * rng.uniform(0.001, 0.999, size=y.shape)


# ---- value, gradient, curvature ------------------------------------------------------------------------------------


@pytest.mark.parametrize("reference", LOSSES, ids=lambda loss: loss.label)
def test_value_and_conjugate_are_the_hand_written_ones(reference):
    loss = reference.make()
    rng = np.random.default_rng(0)
    y = some_targets(loss, rng, 4000)
    f = rng.normal(scale=3.0, size=y.size)
    f[:5] = special_points(loss, y[:1])[:, 0]
    np.testing.assert_allclose(loss.value(y, f), reference.value(y, f), rtol=1e-13, atol=1e-14)
    u = rng.uniform(-2.0, 2.0, size=y.size)
    u[:3] = [0.0, 1.0, -1.0]
    np.testing.assert_allclose(loss.conjugate(y, u), reference.conjugate(y, u), rtol=1e-13, atol=1e-14)
    assert np.isinf(loss.conjugate(y, u)).any() == np.isfinite(reference.bounds(y)).any()


def test_every_registered_loss_has_a_hand_written_reference():
    assert {loss.name for loss in LOSSES} == set(ENTRYWISE)


@every_loss
@given(seed=seeds)
def test_value_is_convex_and_not_negative(loss, seed):
    rng = np.random.default_rng(seed)
    y = some_targets(loss, rng, 30)
    f, g = rng.normal(scale=4.0, size=(2, 30))
    t = rng.uniform(size=30)
    chord = t * loss.value(y, f) + (1 - t) * loss.value(y, g)
    assert np.all(loss.value(y, t * f + (1 - t) * g) <= chord + 1e-12 * (1 + chord))
    assert np.all(loss.value(y, f) >= 0)


@every_loss
@given(seed=seeds)
def test_gradient_is_a_subgradient_everywhere(loss, seed):
    rng = np.random.default_rng(seed)
    y = some_targets(loss, rng, 40)
    f = np.concatenate([special_points(loss, y), rng.normal(scale=4.0, size=(4, 40))])
    for g in (rng.normal(scale=4.0, size=f.shape), f + 1e-3, f - 1e-3):
        tangent = loss.value(y, f) + loss.gradient(y, f) * (g - f)
        assert np.all(loss.value(y, g) >= tangent - 1e-12 * (1 + np.abs(tangent)))


@every_loss
def test_gradient_agrees_with_finite_differences(loss):
    rng = np.random.default_rng(3)
    y = some_targets(loss, rng, 2000)
    f = rng.normal(scale=3.0, size=y.size)
    h = 1e-6
    left, here, right = (loss.value(y, f + k * h) for k in (-1, 0, 1))
    smooth = np.abs(right - 2 * here + left) < 1e-3 * h  # no corner between f - h and f + h
    assert smooth.mean() > 0.99
    slopes = (right - left) / (2 * h)
    np.testing.assert_allclose(loss.gradient(y, f)[smooth], slopes[smooth], rtol=1e-7, atol=1e-7)


@every_loss
def test_smoothness_is_the_lipschitz_constant_of_the_gradient(loss):
    rng = np.random.default_rng(4)
    y = some_targets(loss, rng, 300)
    grid = np.sort(np.concatenate([rng.normal(scale=3.0, size=3000), [1.0, -1.0]]))
    near = np.concatenate([special_points(loss, y) + k * 1e-7 for k in (-1, 0, 1)])
    f = np.sort(np.concatenate([np.repeat(grid[:, None], y.size, axis=1), near]), axis=0)
    change = np.abs(np.diff(loss.gradient(y, f), axis=0))
    distance = np.diff(f, axis=0)
    if loss.has_curvature and loss.smoothness is None:  # it grows without end
        assert np.max(change[-1] / distance[-1]) > 10 * np.max(change[0] / distance[0])
    elif loss.smoothness is None:
        assert np.max(change[distance < 3e-7]) > 0.4  # a corner: the gradient jumps
    else:
        assert np.all(change <= loss.smoothness * distance * (1 + 1e-9) + 1e-13)
        wide = distance > 1e-5
        assert (
            np.max(change[wide] / distance[wide]) > 0.99 * loss.smoothness
        )  # and no smaller constant would do


@every_loss
def test_curvature_agrees_with_finite_differences_and_is_positive(loss):
    rng = np.random.default_rng(5)
    y = some_targets(loss, rng, 500)
    f = rng.normal(scale=3.0, size=y.size)
    if not loss.has_curvature:
        with pytest.raises(NotImplementedError):
            loss.curvature(y, f)
        return
    h = 1e-5
    difference = (loss.gradient(y, f + h) - loss.gradient(y, f - h)) / (2 * h)
    np.testing.assert_allclose(loss.curvature(y, f), difference, rtol=1e-6, atol=1e-9)
    assert np.all(loss.curvature(y, 10 * f) > 0)


@every_loss
def test_far_away_nothing_overflows(loss):
    y = np.tile(two_kinds(loss), 2)
    # who is censored may have lived any longer
    f = np.array([1e6, -1e6, -1e6, -1e6 if "survival" in loss.tasks else 1e6])
    with np.errstate(all="raise", under="ignore"):
        value, gradient = loss.value(y, f), loss.gradient(y, f)
    assert np.all(np.isfinite(value))
    assert np.all(np.isfinite(gradient))
    assert np.all(value[2:] > 2e4)


# ---- conjugate and dual set ----------------------------------------------------------------------------------------


@every_loss
@given(seed=seeds)
def test_fenchel_young(loss, seed):
    rng = np.random.default_rng(seed)
    y = some_targets(loss, rng, 50)
    f = rng.normal(scale=4.0, size=50)
    f[:5] = special_points(loss, y[:1])[:, 0]
    u = -inside(loss, y, rng)
    assert np.all(loss.value(y, f) + loss.conjugate(y, u) >= u * f - 1e-11)
    g = loss.gradient(y, f)
    np.testing.assert_allclose(loss.value(y, f) + loss.conjugate(y, g), g * f, rtol=1e-9, atol=1e-9)


@every_loss
def test_conjugate_is_the_supremum(loss):
    rng = np.random.default_rng(6)
    y = some_targets(loss, rng, 60)
    u = -inside(loss, y, rng)
    # far out and dense, then refined around the best: u f - l(y, f) is concave
    f = np.linspace(-60.0, 60.0, 12001)[:, None]
    for _ in range(3):
        heights = u * f - loss.value(y, f)
        best = np.take_along_axis(f + 0 * u, np.argmax(heights, axis=0)[None], axis=0)
        spacing = (f[1] - f[0]) if f.shape[1] == 1 else np.diff(f[:2], axis=0)
        f = best + spacing * np.linspace(-1.5, 1.5, 3001)[:, None]
    supremum = np.max(u * f - loss.value(y, f), axis=0)
    np.testing.assert_allclose(loss.conjugate(y, u), supremum, rtol=1e-7, atol=1e-7)


@every_loss
def test_bounds_are_the_domain_of_the_conjugate(loss):
    rng = np.random.default_rng(7)
    y = some_targets(loss, rng, 40)
    low, high = loss.bounds(y)
    assert np.all(low <= 0)
    assert np.all(high >= 0)
    assert np.all(low < high)
    for edge, outward in ((low, -1.0), (high, 1.0)):
        finite = np.isfinite(edge)
        ye, b = y[finite], edge[finite]
        assert np.all(np.isfinite(loss.conjugate(ye, -b)))
        outside = b + outward * 1e-6
        assert np.all(np.isinf(loss.conjugate(ye, -outside)))
        # and rightly so: there u f - l(y, f) rises without end
        step = outward * 1e9
        near, far = (-outside * -f - loss.value(ye, -f) for f in (step, 3 * step))
        assert np.all(far > near + 1e2)
        unbounded = ~finite
        assert np.all(np.isfinite(loss.conjugate(y[unbounded], -np.full(unbounded.sum(), outward * 1e6))))


@every_loss
def test_gain_is_minus_the_conjugate(loss):
    rng = np.random.default_rng(8)
    y = some_targets(loss, rng, 40)
    b = inside(loss, y, rng)
    assert Loss.gain(loss, y, b, np.ones(y.shape)) == np.sum(-loss.conjugate(y, -b))


@every_loss
def test_quadratic_dual_is_the_dual(loss):
    rng = np.random.default_rng(9)
    y = some_targets(loss, rng, 200)
    quadratic = loss.quadratic_dual(y)
    assert loss.has_quadratic_dual == (quadratic is not None and quadratic.kink == 0)
    if quadratic is None:
        assert loss.has_curvature, "neither curvature nor a quadratic dual: no inner solver would know it"
        return
    np.testing.assert_array_equal(quadratic.lower, loss.bounds(y)[0])
    np.testing.assert_array_equal(quadratic.upper, loss.bounds(y)[1])
    for b in (inside(loss, y, rng), np.zeros_like(y)):
        written = quadratic.linear * b - quadratic.kink * np.abs(b) - quadratic.ridge * b**2 / 2
        np.testing.assert_allclose(-loss.conjugate(y, -b), written, rtol=1e-12, atol=1e-13)


@every_loss
def test_dual_curvature_agrees_with_finite_differences(loss):
    rng = np.random.default_rng(10)
    y = some_targets(loss, rng, 400)
    low, high = (np.clip(edge, -6.0, 6.0) for edge in loss.bounds(y))
    b = low + (high - low) * rng.uniform(0.02, 0.98, size=y.size)
    h = 1e-4
    smooth = loss.interior(y, b, margin=2 * h)
    y, b = y[smooth], b[smooth]
    assert y.size > 380
    left, here, right = (loss.conjugate(y, -(b + k * h)) for k in (-1, 0, 1))
    difference = (left - 2 * here + right) / h**2
    np.testing.assert_allclose(loss.dual_curvature(y, b), difference, rtol=1e-4, atol=1e-5)


def test_dual_curvature_of_the_logistic_loss_near_its_bounds():
    a = np.array([1e-9, 1e-4, 0.5, 1 - 1e-4, 1 - 1e-9])
    for sign in (1.0, -1.0):
        bend = make_loss("logistic").dual_curvature(np.full(5, sign), sign * a)
        np.testing.assert_allclose(bend, 1 / a + 1 / (1 - a), rtol=1e-6)


@every_loss
def test_interior_leaves_bounds_and_kinks_out(loss):
    y = two_kinds(loss)
    low, high = loss.bounds(y)
    for edge in (low, high):
        finite = np.isfinite(edge)
        assert not np.any(loss.interior(y, np.where(finite, edge, 1e3 * y))[finite])
    bounded = np.isfinite(low) & np.isfinite(high)
    with np.errstate(invalid="ignore"):
        half = np.where(np.isfinite(low), low + 0.5, np.where(np.isfinite(high), high - 0.5, 0.5 * y))
        inside = np.where(bounded, low + 0.5 * (high - low) * (1 + 0.2 * y), half)
    assert np.all(loss.interior(y, inside))
    if getattr(loss, "epsilon", 0.0) > 0:
        assert not np.any(loss.interior(y, np.zeros(2)))  # |b| has its kink there


@every_loss
def test_box_scales_with_the_weights_and_holds_zero_weights(loss):
    y = np.tile(two_kinds(loss), 2)
    c = np.array([2.0, 3.0, 0.0, 0.0])
    low, high = loss.box(y, c)
    unit_low, unit_high = loss.bounds(y)
    np.testing.assert_array_equal(low[:2], unit_low[:2] * c[:2])
    np.testing.assert_array_equal(high[:2], unit_high[:2] * c[:2])
    np.testing.assert_array_equal([low[2:], high[2:]], np.zeros((2, 2)))


@every_loss
@pytest.mark.parametrize("zero_sum", [False, True])
@given(seed=seeds, columns=st.sampled_from([None, 1, 3]))
def test_projection_is_the_nearest_point(loss, zero_sum, seed, columns):
    rng = np.random.default_rng(seed)
    shape = 12 if columns is None else (12, columns)
    y = some_targets(loss, rng, shape)
    c = rng.uniform(0.1, 3.0, size=shape) * (rng.uniform(size=shape) > 0.2)
    beta = rng.normal(scale=4.0, size=shape)
    nearest = loss.project(y, beta, c, zero_sum)
    assert nearest.shape == beta.shape
    low, high = loss.box(y, c)
    assert np.all((nearest >= low) & (nearest <= high))
    if zero_sum:
        np.testing.assert_allclose(nearest.sum(axis=0), 0.0, atol=1e-12 * (1 + np.abs(beta).sum()))
    # variational inequality: the set lies on the other side of the hyperplane through the nearest point
    for _ in range(10):
        other = np.clip(rng.normal(scale=3.0, size=shape), low, high)
        if zero_sum:
            other = _balanced(other, low, high)
        other = _affordable(loss, y, c, other)
        assert np.sum((beta - nearest) * (other - nearest)) <= 1e-10 * (1 + np.sum(beta**2))
    np.testing.assert_allclose(loss.project(y, nearest, c, zero_sum), nearest, atol=1e-12)


def _affordable(loss: Loss, y: np.ndarray, c: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """Shrink each column until a budget, where the loss has one, is met: that is enough, as the excess is convex."""
    share = getattr(loss, "budget", 1.0)
    if share == 1.0:
        return beta
    spent = np.sum(np.maximum(y * beta - loss.base * c, 0.0), axis=0)
    limit = (share - loss.base) * np.sum(c, axis=0)
    return beta * np.minimum(1.0, limit / np.maximum(spent, 1e-300))


def _balanced(beta: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """A point of the box that sums to zero, column by column: the larger side is shrunk (zero is in the box)."""
    positive, negative = np.maximum(beta, 0), np.minimum(beta, 0)
    gain, loss = positive.sum(axis=0), -negative.sum(axis=0)
    most = np.minimum(gain, loss)
    share_up = np.divide(most, gain, out=np.zeros_like(gain), where=gain > 0)
    share_down = np.divide(most, loss, out=np.zeros_like(loss), where=loss > 0)
    return positive * share_up + negative * share_down


# ---- all samples together ------------------------------------------------------------------------------------------


@every_loss
@given(seed=seeds, columns=st.sampled_from([None, 2]))
def test_total_and_gain_are_conjugates(loss, seed, columns):
    """Fenchel-Young for the total: every coefficient vector of the dual set bounds it from below."""
    rng = np.random.default_rng(seed)
    shape = 12 if columns is None else (12, columns)
    y = some_targets(loss, rng, shape)
    c = rng.uniform(0.1, 3.0, size=shape) * (rng.uniform(size=shape) > 0.2)
    f = rng.normal(scale=3.0, size=shape)
    total = loss.total(y, f, c)
    assert isinstance(total, float)
    for _ in range(5):
        beta = loss.project(y, rng.normal(scale=4.0, size=shape), c, False)
        assert total >= loss.gain(y, beta, c) - np.sum(beta * f) - 1e-10 * (1 + total)
    if getattr(loss, "budget", 1.0) == 1.0:
        assert total == np.sum(c * loss.value(y, f))
        assert loss.margin(y, f, c) == 1.0
        assert loss.dual_budget(y, c) is None
    flat = [array.ravel() for array in (y, c)]
    beta = loss.project(flat[0], rng.normal(size=y.size), flat[1], True)
    budget = loss.dual_budget(*flat)
    assert budget is None or budget.free.shape == beta.shape


@every_loss
def test_saddle_form_is_the_total_as_a_maximum(loss):
    quadratic = loss.quadratic_dual(np.ones(1))
    linear = quadratic is not None and quadratic.kink == 0 and quadratic.ridge == 0
    assert loss.has_saddle_form == linear
    if not linear:
        return
    rng = np.random.default_rng(11)
    y = some_targets(loss, rng, 30)
    f, c = rng.normal(scale=2.0, size=30), rng.uniform(0.1, 2.0, size=30)
    # a projected ascent from anywhere ends at the maximum of a linear function
    beta = loss.project(y, 1e7 * (loss.quadratic_dual(y).linear - f), c, False)
    assert beta @ (loss.quadratic_dual(y).linear - f) == pytest.approx(loss.total(y, f, c), rel=1e-6)


# ---- intercept -----------------------------------------------------------------------------------------------------


@every_loss
@given(seed=seeds, columns=st.sampled_from([None, 2]))
def test_best_intercept_minimises(loss, seed, columns):
    rng = np.random.default_rng(seed)
    shape = 9 if columns is None else (9, columns)
    y = some_targets(loss, rng, shape)
    y[0], y[1] = (
        two_kinds(loss)[:, None] if columns else two_kinds(loss)
    )  # both classes, or there is no finite minimiser
    f = rng.normal(scale=3.0, size=shape)
    c = rng.uniform(0.1, 3.0, size=shape) * (rng.uniform(size=shape) > 0.25)
    c[:2] = np.maximum(c[:2], 0.1)
    b = loss.best_intercept(y, f, c)
    if columns is None:
        assert isinstance(b, float)
    else:
        assert b.shape == (columns,)
    for k in range(columns or 1):
        yk, fk, ck, bk = (y, f, c, b) if columns is None else (y[:, k], f[:, k], c[:, k], b[k])

        def charge(b, y=yk, f=fk, c=ck):
            return loss.total(y, f + b, c)

        lowest = golden_section(charge, -60.0, 60.0)
        assert charge(bk) <= lowest + 1e-12 * (1 + abs(lowest))


@every_loss
def test_best_intercept_on_ties_and_flat_stretches(loss):
    # equal values, equal weights: whole intervals are optimal, or all breakpoints coincide
    for f in (np.zeros(6), np.array([5.0, 5.0, 5.0, -5.0, -5.0, -5.0])):
        y = np.repeat(two_kinds(loss), 3)
        c = np.ones(6)
        b = loss.best_intercept(y, f, c)
        lowest = golden_section(lambda b, f=f, y=y, c=c: loss.total(y, f + b, c), -60.0, 60.0)
        assert loss.total(y, f + b, c) <= lowest + 1e-12


@every_loss
def test_one_class_alone_has_a_finite_intercept(loss):
    y, f = np.ones(5), np.linspace(-2.0, 2.0, 5)
    b = loss.best_intercept(y, f, np.ones(5))
    assert np.isfinite(b)
    if "classification" in loss.tasks and "regression" not in loss.tasks:
        assert np.sum(loss.value(y, f + b)) < 1e-9


@every_loss
def test_no_weight_at_all_is_no_trouble(loss):
    b = loss.best_intercept(two_kinds(loss), np.zeros(2), np.zeros(2))
    assert np.isfinite(b)


# ---- parameters ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        (HuberHinge(width=0.0), "width > 0"),
        (HuberHinge(width=-1.0), "width > 0"),
        (HuberHinge(width=float("nan")), "width > 0"),
        (EpsilonInsensitive(epsilon=-0.1), "epsilon >= 0"),
        (EpsilonInsensitive(epsilon=float("nan")), "epsilon >= 0"),
        (Pinball(0.0), "strictly between 0 and 1"),
        (Pinball(1.0), "strictly between 0 and 1"),
        (Pinball(float("nan")), "strictly between 0 and 1"),
        (Pinball([]), "strictly between 0 and 1"),
        (Pinball([0.9, 0.1]), "in increasing order"),
        (Pinball([0.1, 0.1]), "in increasing order"),
        (Pinball("half"), "strictly between 0 and 1"),
        (Huber(0.0), "delta > 0"),
        (Huber(float("inf")), "delta > 0"),
        (BudgetedHinge(budget=0.0), "0 < budget <= 1"),
        (BudgetedHinge(budget=1.5), "0 < budget <= 1"),
        (BudgetedHinge(budget=float("nan")), "0 < budget <= 1"),
        (BudgetedHinge(budget=0.5, base=0.5), "0 <= base < budget"),
        (BudgetedHinge(budget=0.5, base=-0.1), "0 <= base < budget"),
    ],
)
def test_parameters_out_of_range_are_refused(loss, words):
    with pytest.raises(ValueError, match=words):
        make_loss(loss)


def test_names_instances_and_nonsense():
    assert isinstance(make_loss("huber_hinge"), HuberHinge)
    kept = HuberHinge(width=2.0)
    assert make_loss(kept) is kept
    assert isinstance(make_loss(HuberHinge), HuberHinge)
    with pytest.raises(ValueError, match=r"unknown loss 'hing'.*Did you mean 'hinge'.*Known losss?"):
        make_loss("hing")
    with pytest.raises(ValueError, match=r"loss must be a name \(.*hinge.*\) or a Loss instance, not 3"):
        make_loss(3)


@every_loss
def test_clone_keeps_the_parameters(loss):
    assert clone(loss).get_params() == loss.get_params()
    assert loss.tasks <= {"classification", "regression", "survival"}
    assert loss.tasks


class TenthOfAHinge(Hinge):
    """Its coefficients end at a number that c times it, divided by c, need not give back."""

    most = 0.1


def test_coefficients_at_their_bounds_have_a_gain():
    loss, c = TenthOfAHinge(), np.linspace(0.1, 7.0, 70)
    y = np.ones(70)
    _, high = loss.box(y, c)
    assert np.any(high / c > 0.1)  # by rounding
    assert loss.gain(y, high, c) == pytest.approx(np.sum(high), rel=1e-14)
    assert loss.gain(y, 1.0001 * high, c) == -np.inf


def test_sums_of_many_rows_are_those_of_parts():
    rng = np.random.default_rng(0)
    n = 4 * PART_ROWS + 5
    y, f, c = np.where(rng.random(n) > 0.4, 1.0, -1.0), rng.standard_normal(n), rng.random(n)
    loss = Logistic()
    assert loss.total(y, f, c) == pytest.approx(float(np.sum(c * loss.value(y, f))), rel=1e-13)
    beta = c * y * rng.random(n)
    assert loss.gain(y, beta, c) == pytest.approx(float(-np.sum(c * loss.conjugate(y, -beta / c))), rel=1e-13)
    b = loss.best_intercept(y, f, c)
    assert abs(np.sum(c * loss.gradient(y, f + b))) <= 1e-10 * np.sum(c)
