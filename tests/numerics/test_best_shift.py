"""The best intercepts of several classes: against linear programs, on random, tied and badly scaled values."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from kernelweave._numerics.rows import best_shift

seeds = st.integers(0, 2**32 - 1)
EPS = float(np.finfo(float).eps)


def value(scores: np.ndarray, own: np.ndarray, c: np.ndarray, b: np.ndarray) -> float:
    shifted = scores + b
    return float(c @ (shifted.max(axis=1) - shifted[np.arange(own.size), own]))


def lowest_by_linprog(scores: np.ndarray, own: np.ndarray, c: np.ndarray) -> float:
    """``min over b, xi of c'xi``, ``xi_i >= scores_iy + b_y - scores_i,own - b_own``; the value at its b."""
    n, k = scores.shape
    rows, classes, line = np.repeat(np.arange(n), k), np.tile(np.arange(k), n), np.arange(n * k)
    ones = np.ones(n * k)
    A = sp.csr_matrix((ones, (line, classes)), (n * k, k + n))
    A = A - sp.csr_matrix((ones, (line, own[rows])), (n * k, k + n))
    A = A - sp.csr_matrix((ones, (line, k + rows)), (n * k, k + n))
    right = scores[rows, own[rows]] - scores[rows, classes]
    bounds = [(None, None)] * k + [(0, None)] * n
    found = linprog(np.concatenate([np.zeros(k), c]), A_ub=A, b_ub=right, bounds=bounds, method="highs")
    assert found.status == 0
    return value(scores, own, c, found.x[:k])


def some(seed: int, size: float = 1.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores of a multiclass hinge: plain, tied, all alike, or of one class nearly throughout."""
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(2, 60)), int(rng.integers(2, 9))
    own = rng.integers(0, k, n)
    if seed % 3 == 0:
        own = np.where(rng.random(n) < 0.9, 0, own)
    f = size * rng.normal(size=(n, k))
    if seed % 4 == 1:
        f = np.round(f)
    if seed % 5 == 2:
        f[:] = f[0]
    c = rng.choice([0.0, 1.0, 2.5], n)
    c[0] = 1.0
    return f + (np.arange(k) != own[:, None]), own, c


def rounding(scores: np.ndarray, c: np.ndarray) -> float:
    """What the last digit of a score alone is worth, summed over rows, with room."""
    return 50 * EPS * float(np.sum(c)) * float(np.max(np.abs(scores)))


@pytest.mark.parametrize("size", [1e-8, 1.0, 30.0, 1e8])
@given(seed=seeds)
@settings(max_examples=25)
def test_no_linear_program_gets_lower(size, seed):
    scores, own, c = some(seed, size)
    b = best_shift(scores, own, c)
    assert value(scores, own, c, b) <= lowest_by_linprog(scores, own, c) + rounding(scores, c)
    assert abs(b.sum()) <= 1e-12 * (1 + np.abs(b).max())


@given(seed=seeds)
@settings(max_examples=50)
def test_weights_over_eight_orders_of_magnitude(seed):
    scores, own, c = some(seed)
    c = c * 10.0 ** np.random.default_rng(seed).uniform(-4, 4, c.size)
    b = best_shift(scores, own, c)
    assert value(scores, own, c, b) <= lowest_by_linprog(scores, own, c) + rounding(scores, c)


@given(seed=seeds)
def test_no_set_of_classes_descends(seed):
    """Slopes along all sets of classes are not negative, which for this function means that b is optimal."""
    scores, own, c = some(seed)
    b = best_shift(scores, own, c)
    here = value(scores, own, c, b)
    k = scores.shape[1]
    for members in range(1, 2**k - 1):
        along = np.array([float(members >> y & 1) for y in range(k)])
        for step in (1e-6, 1e-2, 1.0):
            assert value(scores, own, c, b + step * along) >= here - rounding(scores, c)


@given(seed=seeds)
def test_the_last_bit_and_the_start_make_no_difference(seed):
    scores, own, c = some(seed)
    rng = np.random.default_rng(seed)
    here = value(scores, own, c, best_shift(scores, own, c))
    nudged = scores * (1.0 + EPS * rng.choice([-1, 0, 1], scores.shape))
    assert abs(value(nudged, own, c, best_shift(nudged, own, c)) - here) <= 2 * rounding(scores, c)
    for start in (rng.normal(size=scores.shape[1]), 1e6 * rng.normal(size=scores.shape[1])):
        found = value(scores, own, c, best_shift(scores, own, c, start))
        assert abs(found - here) <= rounding(scores, c) + 50 * EPS * np.sum(c) * np.abs(start).max()


def test_scaling_scores_scales_the_shift():
    scores, own, c = some(4)
    b = best_shift(scores, own, c)
    for factor in (2.0**-30, 2.0**30):
        np.testing.assert_array_equal(best_shift(factor * scores, own, c), factor * b)
        np.testing.assert_allclose(best_shift(scores, own, factor * c), b, atol=1e-12)


@pytest.mark.parametrize(("n", "k"), [(5000, 3), (3000, 15)])
def test_many_rows_and_classes(n, k):
    rng = np.random.default_rng(0)
    own = rng.integers(0, k, n)
    scores = rng.normal(size=(n, k)) + (np.arange(k) != own[:, None]) + rng.normal(size=k)
    b = best_shift(scores, own, np.ones(n))
    # zero is a subgradient: rows handed to the classes that they are tied with add up to what the classes have
    shifted = scores + b
    ties = shifted >= shifted.max(axis=1, keepdims=True) - 1e-12
    due = np.bincount(own, minlength=k)
    sure = np.bincount(np.argmax(shifted, axis=1)[ties.sum(axis=1) == 1], minlength=k)
    assert np.all(sure <= due)
    assert np.all(ties.sum(axis=0) >= due)


def test_the_middle_of_what_is_as_good():
    """Two classes that are apart: every shift between them costs nothing."""
    scores = np.array([[3.0, 0.0], [4.0, 0.0], [0.0, 2.0]])
    own = np.array([0, 0, 1])
    np.testing.assert_allclose(best_shift(scores, own, np.ones(3)), [-0.25, 0.25])


def test_a_class_that_is_not_there():
    """A class without samples may be shifted down without end; what is returned is finite and as good."""
    rng = np.random.default_rng(0)
    own = rng.integers(0, 2, 30)
    scores = rng.normal(size=(30, 3)) + (np.arange(3) != own[:, None])
    b = best_shift(scores, own, np.ones(30))
    assert np.all(np.isfinite(b))
    assert value(scores, own, np.ones(30), b) <= lowest_by_linprog(scores, own, np.ones(30)) + 1e-12


def test_without_weight_there_is_nothing_to_shift():
    np.testing.assert_array_equal(best_shift(np.ones((3, 2)), np.array([0, 1, 0]), np.zeros(3)), 0.0)
