"""The multinomial loss by its definitions: value, derivatives, conjugate, dual set, intercepts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelweave.losses import Logistic, Multinomial, make_loss
from kernelweave.losses.margin import CorrectedLogistic

seeds = st.integers(0, 2**32 - 1)
LOSS = Multinomial()


def some(
    seed: int, n: int = 15, k: int = 4
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.random.Generator]:
    rng = np.random.default_rng(seed)
    own = rng.integers(0, k, n)
    own[:k] = np.arange(k)
    f = 10.0 ** rng.uniform(-1, 1.5) * rng.normal(size=(n, k))
    return np.where(np.arange(k) == own[:, None], 1.0, -1.0), f, own, rng


@given(seed=seeds)
def test_value_is_minus_the_log_of_the_probability(seed):
    y, f, own, _ = some(seed)
    e = np.exp(f - f.max(axis=1, keepdims=True))
    p = (e / e.sum(axis=1, keepdims=True))[np.arange(own.size), own]
    seen = p > 1e-290
    np.testing.assert_allclose(LOSS.value(y, f)[seen], -np.log(p[seen]), atol=1e-12)


def test_derivatives_by_finite_differences():
    y, f, _, _ = some(1)
    f = f / np.abs(f).max()
    slopes, bends = np.empty_like(f), np.empty_like(f)
    for k in range(4):
        step = 1e-5 * (np.arange(4) == k)
        up, down = LOSS.value(y, f + step), LOSS.value(y, f - step)
        slopes[:, k] = (up - down) / 2e-5
        bends[:, k] = (LOSS.gradient(y, f + step)[:, k] - LOSS.gradient(y, f - step)[:, k]) / 2e-5
    np.testing.assert_allclose(LOSS.gradient(y, f), slopes, atol=1e-9)
    np.testing.assert_allclose(LOSS.curvature(y, f), bends, atol=1e-9)


@given(seed=seeds)
def test_fenchel_young(seed):
    """``l(f) + l*(u) >= u'f`` for every pair of the dual set, with equality at the gradient."""
    y, f, _, rng = some(seed)
    a = rng.dirichlet(np.full(4, 0.5), size=len(y))
    u = a - (y > 0)
    size = 1 + np.abs(f).max()
    assert np.all(LOSS.value(y, f) + LOSS.conjugate(y, u) - np.sum(u * f, axis=1) >= -1e-12 * size)
    u = LOSS.gradient(y, f)
    tight = LOSS.value(y, f) + LOSS.conjugate(y, u) - np.sum(u * f, axis=1)
    np.testing.assert_allclose(tight, 0.0, atol=1e-11 * size)
    assert np.all(np.isinf(LOSS.conjugate(y, u + 0.1)))
    assert np.all(np.isinf(LOSS.conjugate(y, 2.0 * (0.5 - (y > 0)) + 0.0)))


@given(seed=seeds)
def test_gain_is_minus_the_conjugate(seed):
    y, _, _, rng = some(seed)
    c = np.repeat(rng.choice([0.0, 0.5, 3.0], size=(len(y), 1)), 4, axis=1)
    b = (y > 0) - rng.dirichlet(np.ones(4), size=len(y))
    assert LOSS.gain(y, c * b, c) == pytest.approx(-c[:, 0] @ LOSS.conjugate(y, -b), rel=1e-12, abs=1e-12)


@given(seed=seeds)
def test_at_the_best_intercepts_every_class_has_its_share(seed):
    y, f, own, rng = some(seed)
    c = np.repeat(rng.choice([0.0, 1.0, 20.0], size=(len(y), 1)), 4, axis=1)
    c[:4] = 1.0
    b = LOSS.best_intercept(y, f, c)
    e = np.exp(f + b - (f + b).max(axis=1, keepdims=True))
    p = e / e.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(c[:, 0] @ p, np.bincount(own, c[:, 0], 4), rtol=1e-9, atol=1e-9)


def test_a_class_without_weight_has_no_probability():
    y, f, own, _ = some(3)
    c = np.repeat((own != 2)[:, None] * 1.0, 4, axis=1)
    b = LOSS.best_intercept(y, f, c)
    assert np.all(np.isfinite(b))
    e = np.exp(f + b - (f + b).max(axis=1, keepdims=True))
    assert np.all(e[c[:, 0] > 0, 2] == 0.0)


def test_two_classes_are_the_logistic_loss_of_the_difference():
    rng = np.random.default_rng(0)
    sign, f = rng.choice([-1.0, 1.0], 30), rng.normal(scale=3.0, size=(30, 2))
    y = np.column_stack([-sign, sign])
    np.testing.assert_allclose(LOSS.value(y, f), Logistic().value(sign, f[:, 1] - f[:, 0]), atol=1e-12)


def test_it_is_what_the_logistic_loss_becomes():
    assert isinstance(make_loss("multinomial"), Multinomial)
    assert isinstance(Logistic().of_several_classes(), Multinomial)
    corrected = CorrectedLogistic(0.1, 0.2)
    assert corrected.of_several_classes() is corrected
