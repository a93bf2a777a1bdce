"""Tests between methods, against their definitions."""

import numpy as np
import pytest
from scipy import stats

from kernelweave._numerics.significance import corrected_t_test, holm


def test_without_correction_it_is_the_paired_t_test():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 12))
    assert corrected_t_test(a, b, 0.0) == pytest.approx(stats.ttest_rel(a, b).pvalue, rel=1e-12)


def test_the_correction_is_that_of_nadeau_and_bengio():
    rng = np.random.default_rng(1)
    d = rng.normal(0.3, 1.0, size=20)
    t = d.mean() / np.sqrt((1 / 20 + 4.0) * d.var(ddof=1))
    assert corrected_t_test(d, np.zeros(20), 4.0) == pytest.approx(2 * stats.t.sf(abs(t), 19), rel=1e-12)


def test_equal_scores_are_no_evidence_and_a_constant_difference_is():
    same = np.full(5, 0.8)
    assert corrected_t_test(same, same, 1.0) == 1.0
    assert corrected_t_test(same, same - 0.25, 1.0) == 0.0
    assert np.isnan(corrected_t_test(same[:1], same[:1], 1.0))


def test_holm_against_its_definition():
    p = np.array([0.2, 0.001, 0.03, 0.04])
    # reject while p_(k) <= alpha / (m - k + 1): the adjusted value is the smallest alpha that rejects
    for adjusted, own in zip(holm(p), p, strict=True):
        order = np.sort(p)
        rank = int(np.flatnonzero(order == own)[0])
        wanted = max(min(1.0, (p.size - k) * order[k]) for k in range(rank + 1))
        assert adjusted == pytest.approx(wanted)
