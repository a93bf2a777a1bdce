"""Class codes and weights, which every classifier takes from one place."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.utils import compute_class_weight

from kernelweave import MKLClassifier, SimilarityClassifier
from kernelweave import kernels as kw
from kernelweave._estimating import class_columns, encode_classes, weigh_classes, weigh_samples

RNG = np.random.default_rng(0)
LABELS = np.array(["a", "b", "c"])[RNG.permutation(np.repeat([0, 1, 2], [20, 8, 2]))]
COUNTS = RNG.integers(0, 4, size=30)


def test_classes_are_sorted_and_codes_point_at_them():
    classes, codes = encode_classes(LABELS.tolist())
    assert classes.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(classes[codes], LABELS)
    columns = class_columns(codes, 3)
    np.testing.assert_array_equal(columns.argmax(axis=1), codes)
    np.testing.assert_array_equal(columns.sum(axis=1), -1.0)


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (None, "requires y to be passed"),
        ([0.1, 0.7, 1.3], "Unknown label type"),
        ([0.0, np.nan, 1.0], "NaN"),
        (np.eye(3), "1d array"),
    ],
)
def test_labels_that_are_none(y, words):
    with pytest.raises(ValueError, match=words):
        encode_classes(y)


def test_balanced_counts_a_weighted_sample_as_often_as_it_weighs():
    # an integer weight is a sample repeated: scikit-learn's factors of the repeated samples are the definition
    classes, codes = encode_classes(LABELS)
    repeated = np.repeat(LABELS, COUNTS)
    factors = compute_class_weight("balanced", classes=classes, y=repeated)
    weight = weigh_classes("balanced", classes, codes, weigh_samples(COUNTS, 30))
    np.testing.assert_allclose(weight, COUNTS * factors[codes])
    # and without weights the factors are those of the labels
    plain = weigh_classes("balanced", classes, codes, weigh_samples(None, 30))
    np.testing.assert_allclose(plain, compute_class_weight("balanced", classes=classes, y=LABELS)[codes])


def test_balanced_leaves_out_a_class_without_weight():
    classes, codes = encode_classes(LABELS)
    weight = weigh_classes("balanced", classes, codes, (LABELS != "c").astype(float))
    np.testing.assert_allclose([weight[codes == k].sum() for k in range(3)], [14.0, 14.0, 0.0])


def test_factors_by_class_multiply_weights_of_samples():
    classes, codes = encode_classes(LABELS)
    weight = weigh_classes({"a": 0.5, "c": 3.0}, classes, codes, weigh_samples(COUNTS, 30))
    np.testing.assert_allclose(weight, COUNTS * np.array([0.5, 1.0, 3.0])[codes])


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
