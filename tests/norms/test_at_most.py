"""At most k kernels by definition, and groups and fixed parts as they are bound to kernels."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from kernelweave.norms import AtMost, FixedParts, Grouped


def every_subset(m: int, k: int) -> list[np.ndarray]:
    """Indicators of all subsets of at most k."""
    return [
        np.isin(np.arange(m), chosen).astype(float)
        for size in range(1, k + 1)
        for chosen in combinations(range(m), size)
    ]


def test_values_are_those_of_the_best_subset():
    rng = np.random.default_rng(0)
    norm = AtMost(2)
    for s in rng.gamma(1.0, size=(5, 5)):
        assert norm.conjugate(s) == pytest.approx(max(z @ s / 4 for z in every_subset(5, 2)))
        assert norm.weights(s) @ s / 2 == pytest.approx(norm.conjugate(s))
    assert norm.half_square(np.array([3.0, 0.0, 1.0])) == pytest.approx(10.0)
    assert norm.half_square(np.ones(3)) == np.inf


@pytest.mark.parametrize("k", [1, 2, 4])
def test_the_program_finds_the_lowest_subset(k):
    rng = np.random.default_rng(k)
    gains, slopes = rng.uniform(5, 9, size=6), rng.gamma(1.0, size=(6, 8))
    values = [np.max(gains - slopes @ z) for z in every_subset(8, k)]
    quads = 2 * k * slopes  # weights are 1 / k
    bound, weights = AtMost(k).lowest_of_cuts(gains, quads)
    assert bound == pytest.approx(min(values), rel=1e-5)
    assert bound <= min(values)
    assert np.max(gains - quads @ weights / 2) == pytest.approx(min(values))
    relaxed, weights = AtMost(k).lowest_of_cuts(gains, quads, whole=False)
    assert relaxed <= bound + 1e-9
    assert np.sum(weights) <= 1 + 1e-9


def test_a_fixed_part_shifts_every_cut():
    rng = np.random.default_rng(3)
    gains, quads = rng.uniform(5, 9, size=4), rng.gamma(1.0, size=(4, 5))
    norm = FixedParts(AtMost(2), {4: 0.5})
    bound, weights = norm.lowest_of_cuts(gains, quads)
    values = [np.max(gains - quads @ np.append(z / 2, 0.5) / 2) for z in every_subset(4, 2)]
    assert bound == pytest.approx(min(values), rel=1e-5)
    assert weights[4] == 0.5


@pytest.mark.parametrize("k", [0, -1, 1.5, True, "three"])
def test_k_is_a_number_of_kernels(k):
    with pytest.raises(ValueError, match="whole number k >= 1"):
        AtMost(k).check(5)


def test_more_than_all_is_all():
    np.testing.assert_allclose(AtMost(9).for_kernels(4).start(4), 0.25)


def test_groups_by_view_name_or_number():
    names, views = ["g1 on mri", "g2 on mri", "linear on blood", "constant"], ["mri", "mri", "blood", "all"]
    by_view = Grouped(groups="views").with_names(names, views)
    assert by_view.group_names == ("mri", "blood", "all")
    assert by_view.labels.tolist() == [0, 0, 1, 2]
    mixed = Grouped(groups={"x": ["g1 on mri", 3], "y": "linear on blood"}).with_names(names, views)
    assert mixed.group_names == ("x", "g2 on mri", "y")
    assert mixed.labels.tolist() == [0, 1, 2, 0]
    np.testing.assert_allclose(by_view.group_weights(np.array([3.0, 4.0, 1.0, 0.0])), [5.0, 1.0, 0.0])
    beside = FixedParts(Grouped(groups="views"), {3: 2.0}).with_names(names, views)
    assert beside.norm.group_names == ("mri", "blood")
    some = beside.restricted(np.array([1, 3]))
    assert (some.given, some.norm.group_names) == ({1: 2.0}, ("mri",))
    assert beside.restricted(np.array([3])).given.tolist() == [2.0]
    with pytest.raises(ValueError, match="the groups are of 4 kernels, the bank has 3"):
        by_view.for_kernels(3)
