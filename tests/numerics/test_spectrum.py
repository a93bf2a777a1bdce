"""Checks of matrices that claim to be kernels, and the tools that make them so."""

import numpy as np
import pytest

from kernelweave import MKLClassifier
from kernelweave import kernels as kw
from kernelweave.banks.build import check_training_stack


def similarity(seed=0, n=12):
    values = np.random.default_rng(seed).normal(size=(n, n))
    return values + values.T


def test_clip_is_the_nearest_semidefinite_matrix():
    S, K = similarity(), kw.clip_spectrum(similarity())
    assert np.linalg.eigvalsh(K).min() > -1e-10
    # nearest: the residual K - S is semi-definite and orthogonal to K
    assert np.linalg.eigvalsh(K - S).min() > -1e-10
    assert abs(np.sum(K * (K - S))) < 1e-9


def test_flip_and_shift():
    S = similarity(1)
    values = np.linalg.eigvalsh(S)
    np.testing.assert_allclose(np.linalg.eigvalsh(kw.flip_spectrum(S)), np.sort(np.abs(values)))
    shifted = kw.shift_spectrum(S)
    np.testing.assert_allclose(shifted - np.diag(np.diag(shifted)), S - np.diag(np.diag(S)))
    np.testing.assert_allclose(np.linalg.eigvalsh(shifted), values - values[0], atol=1e-9)
    kernel = S @ S
    np.testing.assert_allclose(kw.shift_spectrum(kernel), kernel)


@pytest.mark.parametrize("tool", [kw.clip_spectrum, kw.flip_spectrum, kw.shift_spectrum])
def test_tools_refuse_what_is_not_a_matrix(tool):
    with pytest.raises(ValueError, match="square"):
        tool(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="NaN"):
        tool(np.full((2, 2), np.nan))


def test_checks_pass_kernels_and_say_how_indefinite_others_are():
    low_rank = np.outer(np.arange(50.0), np.arange(50.0))
    check_training_stack([low_rank, np.zeros((50, 50))], 50)
    with pytest.raises(
        ValueError, match=r"S is not positive semi-definite: [1-9]\d* of 12 .* % of the spectrum"
    ):
        check_training_stack([similarity()], 12, names=["S"])
    with pytest.raises(ValueError, match="not symmetric"):
        check_training_stack([np.triu(np.ones((3, 3)))], 3)


def test_a_function_that_is_no_kernel_is_refused_at_fit():
    X = np.random.default_rng(0).normal(size=(20, 1))
    y = (X[:, 0] > 0).astype(int)
    with pytest.raises(ValueError, match=r"distance_itself.*not positive semi-definite"):
        MKLClassifier(kw.function(lambda a, b: abs(a[0] - b[0]), name="distance_itself")).fit(X, y)
    MKLClassifier(kw.function(lambda a, b: a[0] * b[0] + 1.0, name="product")).fit(X, y)
