"""Searches over one variable against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from kernelweave._numerics.intercepts import minimise_piecewise_linear, monotone_root


@pytest.mark.parametrize("root", [0.0, 1e-9, -3.75, 1e5, -1e9])
@pytest.mark.parametrize("guess", [0.0, 17.0, -1e3])
@pytest.mark.parametrize(
    "shape",
    [lambda x: x, np.cbrt, np.arctan, lambda x: x**3, np.sign],
    ids=["line", "cube root", "arctan", "cube", "sign"],
)
def test_root_of_an_increasing_function(root, guess, shape):
    found = monotone_root(lambda x: float(shape(x - root)), guess)
    # a cube is flat: its root is only as sharp as its values are above underflow
    assert found == pytest.approx(root, rel=1e-12, abs=1e-6 if shape(1e-6) < 1e-15 else 1e-12)


def test_root_at_the_guess_costs_one_call():
    calls = []
    assert monotone_root(lambda x: calls.append(x) or x - 2.0, 2.0) == 2.0
    assert calls == [2.0]


def test_no_root_gives_the_far_end():
    assert monotone_root(lambda x: 1.0) < -1e11
    assert monotone_root(lambda x: -1.0) > 1e11


def test_flat_stretch_of_roots():
    found = monotone_root(lambda x: min(x + 1.0, 0.0) + max(x - 2.0, 0.0), -50.0)
    assert -1.0 - 1e-12 <= found <= 2.0 + 1e-12


@st.composite
def piecewise(draw):
    n = draw(st.integers(1, 10))
    breaks = draw(arrays(float, n, elements=st.sampled_from([-3.0, -1.0, 0.0, 0.5, 0.5 + 1e-9, 2.0, 7.0])))
    jumps = draw(arrays(float, n, elements=st.sampled_from([0.0, 0.25, 0.5, 1.0, 3.0])))
    share = draw(st.sampled_from([0.0, 0.25, 0.5, 0.8, 1.0]))
    return breaks, jumps, -share * float(np.sum(jumps))


@given(case=piecewise())
def test_piecewise_linear_minimum_is_at_most_every_break(case):
    breaks, jumps, first = case

    def value(b):
        return first * b + float(np.sum(jumps * np.maximum(b - breaks, 0.0)))

    found = minimise_piecewise_linear(breaks, jumps, first)
    if first == 0 or first == -np.sum(jumps):  # flat on one side, for ever
        lowest = min(value(b) for b in [*breaks, breaks.min() - 5, breaks.max() + 5])
    else:
        lowest = min(value(b) for b in breaks)
    assert value(found) <= lowest + 1e-12


def test_the_middle_of_a_flat_stretch():
    # |b - 1| + |b - 3|: every b in [1, 3] is optimal
    assert minimise_piecewise_linear(np.array([3.0, 1.0]), np.array([2.0, 2.0]), -2.0) == 2.0
    # three equal hinges on each side, unsorted
    breaks = np.array([4.0, -2.0, -2.0, 4.0, 4.0, -2.0])
    assert minimise_piecewise_linear(breaks, np.ones(6), -3.0) == 1.0


def test_a_weighted_median():
    breaks, jumps = np.array([0.0, 10.0, 20.0]), 2 * np.array([1.0, 1.0, 5.0])
    assert minimise_piecewise_linear(breaks, jumps, -7.0) == 20.0
