"""Spectrum transformers, diagnostics and the picture."""

from __future__ import annotations

import matplotlib

matplotlib.use("Agg")

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from estimators.test_checks import of_a_fit
from kernelweave import (
    DenoiseSpectrum,
    FlipSpectrum,
    ShiftSpectrum,
    SimilarityClassifier,
    SimilarityFeatures,
    SquareSpectrum,
)
from kernelweave.displays import SpectrumDisplay
from kernelweave.exceptions import KernelWeaveWarning
from kernelweave.inspection import agreement, indefiniteness
from kernelweave.kernels import clip_spectrum, flip_spectrum, shift_spectrum

from .making import similarities

S, Y = similarities(n=60, m=3, seed=0)
TRAIN, TEST = np.arange(40), np.arange(40, 60)
BLOCK, ROWS = S[0][np.ix_(TRAIN, TRAIN)], S[0][np.ix_(TEST, TRAIN)]
ALL = [DenoiseSpectrum, FlipSpectrum, ShiftSpectrum, SquareSpectrum]

WHY = "the kernel of the training samples is the learned one; a row is treated as that of a new sample"
SMOOTH = {"check_transformer_general": WHY, "check_transformer_data_not_an_array": WHY}


@pytest.mark.gate_runs(
    only=lambda estimator, check: isinstance(estimator, DenoiseSpectrum) or of_a_fit(estimator, check)
)
@pytest.mark.filterwarnings("ignore:the similarity is not symmetric")
@parametrize_with_checks(
    [
        DenoiseSpectrum(),
        DenoiseSpectrum(rule="classical"),
        FlipSpectrum(rule="classical"),
        SquareSpectrum(rule="classical"),
        SimilarityFeatures(),
    ],
    expected_failed_checks=lambda e: SMOOTH if getattr(e, "rule", None) == "smooth" else {},
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    ("cls", "matrix"),
    [
        (DenoiseSpectrum, clip_spectrum),
        (FlipSpectrum, flip_spectrum),
        (ShiftSpectrum, shift_spectrum),
        (SquareSpectrum, lambda A: A @ A),
    ],
)
def test_the_kernel_is_the_classical_one(cls, matrix):
    kernel = cls(normalize=False).fit_transform(BLOCK)
    np.testing.assert_allclose(kernel, matrix(BLOCK), atol=1e-10)
    assert np.linalg.eigvalsh(kernel)[0] > -1e-10


@pytest.mark.parametrize("cls", [DenoiseSpectrum, FlipSpectrum, SquareSpectrum])
def test_the_classical_rule_gives_training_rows_their_own_kernel_rows(cls):
    step = cls(rule="classical").fit(BLOCK)
    np.testing.assert_allclose(step.transform(BLOCK), step.kernel_, atol=1e-9)


def test_shift_leaves_a_new_row_as_it_is():
    step = ShiftSpectrum(rule="classical").fit(BLOCK)
    np.testing.assert_allclose(step.transform(ROWS), step.scale_ * ROWS, atol=1e-10)


@pytest.mark.parametrize("cls", ALL)
def test_the_smooth_rule(cls):
    step = cls().fit(BLOCK)
    K, nu = step.kernel_, np.trace(step.kernel_) / 40
    expected = step.scale_ * ROWS @ np.linalg.solve(K + nu * np.eye(40), K)
    np.testing.assert_allclose(step.transform(ROWS), expected, rtol=1e-8)
    np.testing.assert_allclose(step.transform(ROWS[:1]), expected[:1], rtol=1e-8)


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("rule", ["smooth", "classical"])
def test_in_a_pipeline_and_a_search(cls, rule):
    pipeline = make_pipeline(cls(rule=rule), SVC(kernel="precomputed"))
    search = GridSearchCV(pipeline, {"svc__C": [0.1, 1.0, 10.0]}, cv=3).fit(BLOCK, Y[TRAIN])
    assert search.predict(ROWS).shape == (20,)
    assert search.score(ROWS, Y[TEST]) > 0.6 or cls is SquareSpectrum  # squares flatten what is small here


def test_similarities_as_features():
    features = SimilarityFeatures().fit(BLOCK)
    np.testing.assert_allclose(features.transform(ROWS), features.scale_ * ROWS)
    model = make_pipeline(SimilarityFeatures(), LogisticRegression(C=10.0)).fit(BLOCK, Y[TRAIN])
    assert model.score(ROWS, Y[TEST]) > 0.6


def test_bad_input_of_transformers():
    with pytest.raises(ValueError, match="must be square"):
        DenoiseSpectrum().fit(BLOCK[:, :39])
    with pytest.raises(ValueError, match="NaN"):
        DenoiseSpectrum().fit(np.full((3, 3), np.nan))
    with pytest.raises(ValueError, match="is zero"):
        FlipSpectrum().fit(np.zeros((3, 3)))
    with pytest.raises(ValueError, match="rule must be"):
        FlipSpectrum(rule="naive").fit(BLOCK)
    with pytest.raises(ValueError, match="39 features"):
        ShiftSpectrum().fit(BLOCK).transform(ROWS[:, :39])
    skewed = BLOCK.copy()
    skewed[0, 1] += 1.0
    with pytest.warns(KernelWeaveWarning, match="not symmetric"):
        SquareSpectrum().fit(skewed)


def test_how_indefinite():
    values = np.array([5.0, 3.0, 0.0, -1.0, -1.0])
    Q = np.linalg.qr(np.random.default_rng(0).normal(size=(5, 5)))[0]
    found = indefiniteness((Q * values) @ Q.T)
    assert found.signature == (2, 1, 2)
    assert found.negative_share == pytest.approx(0.2)
    assert found.negative_peak == pytest.approx(0.2)
    assert found.asymmetry == pytest.approx(0.0, abs=1e-12)
    assert not found.is_kernel
    assert "2 negative" in str(found)
    assert "It is a kernel" in str(indefiniteness(np.eye(3)))
    assert "Nearly a kernel" in str(indefiniteness(np.diag([1.0, 1.0, -1e-3])))
    assert "structure rather than noise" in str(indefiniteness(np.diag([1.0, 1.0, -0.9])))
    skewed = np.eye(3)
    skewed[0, 1] = 1.0
    assert "asymmetry is large" in str(indefiniteness(skewed))
    with pytest.raises(ValueError, match="one square matrix"):
        indefiniteness(S)


def test_which_one_disagrees():
    E = np.random.default_rng(0).normal(size=(60, 60))
    found = agreement([S[1], E + E.T, S[2]], Y, ["wide", "noise", "wider"])
    assert found.odd_one_out == "noise"
    np.testing.assert_allclose(np.diag(found.alignments), 1.0)
    np.testing.assert_allclose(found.alignments, found.alignments.T)
    assert found.with_labels[0] > found.with_labels[1]
    assert "noise agrees least" in str(found)
    # from the definition: cosine of doubly centred matrices
    H = np.eye(60) - 1 / 60
    A, B = H @ S[1] @ H, H @ S[2] @ H
    assert found.alignments[0, 2] == pytest.approx(np.sum(A * B) / np.linalg.norm(A) / np.linalg.norm(B))
    for arguments, words in (
        ((S[:1],), "at least two"),
        ((S, None, ["a"]), "1 names"),
        ((S, Y[:5]), "y has 5"),
        ((S[:, :, :3],), "must be square"),
    ):
        with pytest.raises(ValueError, match=words):
            agreement(*arguments)


def test_the_picture():
    display = SpectrumDisplay.from_similarity(BLOCK)
    assert len(display.lines_) == 1
    assert "eigenvalues are negative" in display.ax_.get_title()
    for method, loss in (("eskl", "squared"), ("rekl", "frobenius")):
        clf = SimilarityClassifier(method=method, loss=loss, tol=0.1).fit(S, Y)
        drawn = SpectrumDisplay.from_estimator(clf, which=1)
        before, after = (line.get_ydata() for line in drawn.lines_)
        np.testing.assert_allclose(np.sort(before), clf.eigenvalues_[1])
        assert after.min() > -1e-8
    drawn = SpectrumDisplay.from_estimator(DenoiseSpectrum().fit(BLOCK))
    assert drawn.label == "kernel (denoise)"
    with pytest.raises(ValueError, match="vector of eigenvalues"):
        SpectrumDisplay(np.eye(2))
