"""Class codes and weights, which every classifier takes from one place."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.utils import compute_class_weight

from kernelweave import MKLClassifier, SimilarityClassifier
from kernelweave import kernels as kw

RNG = np.random.default_rng(0)
LABELS = np.array(["a", "b", "c"])[RNG.permutation(np.repeat([0, 1, 2], [20, 8, 2]))]
COUNTS = RNG.integers(0, 4, size=30)


SAMPLES = RNG.normal(size=(30, 2)) + 1.5 * (LABELS[:, None] == ["a", "b"])
CODES = np.unique(LABELS, return_inverse=True)[1]
FACTORS = compute_class_weight("balanced", classes=np.array(["a", "b", "c"]), y=LABELS)


def fitted(class_weight=None, sample_weight=None, labels=LABELS):
    model = MKLClassifier(kw.gaussian([1.0, 2.0]), class_weight=class_weight, tol=1e-8)
    return model.fit(SAMPLES, labels, sample_weight=sample_weight)


def same(one, other):
    """The same problem was solved, and the same function found."""
    assert one.certificate_.primal == pytest.approx(other.certificate_.primal, rel=1e-7)
    np.testing.assert_allclose(one.decision_function(SAMPLES), other.decision_function(SAMPLES), atol=1e-3)


def test_classes_are_sorted_and_codes_point_at_them():
    model = MKLClassifier(kw.gaussian(0.1), C=1e3).fit(
        SAMPLES, LABELS.tolist()
    )  # knows every sample by heart
    assert model.classes_.tolist() == ["a", "b", "c"]
    columns = model.decision_function(SAMPLES)
    np.testing.assert_array_equal(columns.argmax(axis=1), CODES)
    np.testing.assert_array_equal(model.predict(SAMPLES), LABELS)
    # every class has its own column of coefficients, positive for its own samples alone
    np.testing.assert_array_equal(model.dual_coef_.argmax(axis=1), CODES)


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (None, "requires y to be passed"),
        (np.linspace(0.1, 1.3, 30), "Unknown label type"),
        (np.where(np.arange(30) == 1, np.nan, 1.0), "NaN"),
        (np.arange(60).reshape(30, 2), "1d array"),
    ],
)
def test_labels_that_are_none(y, words):
    with pytest.raises(ValueError, match=words):
        fitted(labels=y)


def test_balanced_counts_a_weighted_sample_as_often_as_it_weighs():
    # an integer weight is a sample repeated: scikit-learn's factors of the repeated samples are the definition
    repeated = np.repeat(LABELS, COUNTS)
    factors = compute_class_weight("balanced", classes=np.unique(LABELS), y=repeated)
    same(fitted("balanced", COUNTS), fitted(None, COUNTS * factors[CODES]))
    # and without weights the factors are those of the labels
    same(fitted("balanced"), fitted(None, FACTORS[CODES]))


def test_balanced_leaves_out_a_class_without_weight():
    weight = (LABELS != "c").astype(float)
    among = np.array([14 / 20, 14 / 8, 0.0])  # 28 samples in two classes, 14 for each of them
    same(fitted("balanced", weight), fitted(None, among[CODES]))


def test_factors_by_class_multiply_weights_of_samples():
    factors = np.array([0.5, 1.0, 3.0])
    same(fitted({"a": 0.5, "c": 3.0}, COUNTS), fitted(None, COUNTS * factors[CODES]))


X = RNG.normal(size=(12, 2))
Y = np.arange(12) % 2
CLASSIFIERS = {
    "mkl": lambda **options: MKLClassifier(kw.gaussian(1.0), **options),
    "similarity": lambda **options: SimilarityClassifier(kw.gaussian(1.0), method="denoise", **options),
}


@pytest.mark.parametrize("make", CLASSIFIERS.values(), ids=CLASSIFIERS)
@pytest.mark.parametrize(
    ("class_weight", "sample_weight", "words"),
    [
        ({1: -1.0}, None, r"class weights must be finite and >= 0, got \{1: -1.0\}"),
        ({0: np.nan}, None, "class weights must be finite"),
        ({0: np.inf}, None, "class weights must be finite"),
        ("balance", None, "class_weight"),
        ({1: 0.0}, None, "at least two classes, all with a positive weight are"),
        (None, -np.ones(12), "Negative values"),
        (None, np.full(12, np.nan), "NaN"),
        (None, np.ones(11), "11"),
        ("balanced", Y.astype(float), "at least two classes, all with a positive weight are"),
    ],
)
def test_weights_that_are_refused_by_every_classifier(make, class_weight, sample_weight, words):
    with pytest.raises(ValueError, match=words):
        make(class_weight=class_weight).fit(X, Y, sample_weight=sample_weight)
