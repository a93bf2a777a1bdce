"""Sections of the page: a model that says nothing, three classes with probabilities, numbers, and one set of figures."""

from __future__ import annotations

import re
from html import unescape

import numpy as np
import pytest
from sklearn.calibration import calibration_curve
from sklearn.datasets import load_diabetes, load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelweave import MKLClassifier, MKLClassifierCV, MKLRegressor
from kernelweave import kernels as kw
from kernelweave.exceptions import DegenerateModelWarning, ScaleWarning
from kernelweave.inspection.views import learnt_weights
from kernelweave.report import make_report
from kernelweave.report.sections import SECTIONS
from kernelweave.report.sections.accuracy import reliability
from kernelweave.report.sections.sensitivity import FACTORS, weights_along_C

from . import refitted

FEW = {"n_folds": 2, "n_repeats": 1}


def text_of(page):
    """Words of a page, without its style and script."""
    body = re.sub(r"<(style|script)>.*?</\1>", " ", page, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", body)).replace("\xa0", " ").split())


def subject_of(model, X, y):
    return refitted.subject_of(model, X, y, **FEW)


# ---- a model that says nothing --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def nothing():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)), np.repeat(["well", "sick"], [45, 15])
    with pytest.warns(DegenerateModelWarning):
        model = MKLClassifier(kw.per_view({"a": [0, 1], "b": [2, 3]}, kw.linear()), C=0.01).fit(X, y)
    return text_of(make_report(model, X, y, **FEW))


def test_what_puts_a_model_in_doubt_comes_first(nothing):
    assert nothing.index("Read this first") < nothing.index("The model predicts class 'well'")
    assert nothing.index("The model predicts class 'well'") < nothing.index("What was learnt")
    assert "has not been shown to predict anything" in nothing
    assert (
        nothing.count("The model predicts class") == 1
    )  # of the training samples; not again of those held out


def test_no_label_is_named_by_a_model_that_does_not_beat_guessing(nothing):
    assert "None can be named" in nothing
    assert "75.0 % accuracy on held-out folds" in nothing
    assert "50.0 % balanced accuracy; the majority class has 50.0 %" in nothing
    assert "what it adds is the knowledge" not in nothing


def test_columns_of_different_scales_are_said_first_and_once():
    X, y = load_iris(return_X_y=True)
    X = X * [1000.0, 1.0, 1.0, 1.0]
    with pytest.warns(ScaleWarning):
        model = MKLClassifier().fit(X, y)
    page = text_of(make_report(model, X, y, **FEW))
    assert (
        page.index("Read this first") < page.index("Columns under one kernel") < page.index("What was learnt")
    )
    assert page.count("Columns under one kernel have standard deviations") == 1


# ---- three classes --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def three():
    data = load_iris(as_frame=True)
    labels = np.array(["setosa", "versicolor", "virginica"])[data.target]
    bank = kw.per_view({"sepal": [0, 1], "petal": [2, 3]}, kw.linear())
    model = make_pipeline(
        StandardScaler(), MKLClassifierCV(bank, loss="logistic", Cs=[1.0, 10.0], norms=["l1", 2], cv=2)
    ).fit(data.data, labels)
    return model, data.data, labels


@pytest.fixture(scope="module")
def three_subject(three):
    return subject_of(*three)


@pytest.fixture(scope="module")
def three_page(three_subject):
    return "".join(section(three_subject) for section in SECTIONS)


def test_three_classes(three_page):
    text = text_of(three_page)
    assert text.index("end of the values tried") < text.index("What was learnt")
    assert "has not been shown to predict" not in text
    for words in (
        "predicted versicolor", "the mean of each class against the rest", "Calibration",
        "C and norm were chosen again inside each fold", "weight of virginica", "petal width (cm)",
    ):  # fmt: skip
        assert words in text


def test_one_set_of_numbers(three_page, three):
    """Tile, table, confusion matrix and picture say the same."""
    text = text_of(three_page)
    tile = re.search(r"What was learnt ([\d.]+) % accuracy on held-out folds", text)[1]
    row = re.search(r"this model ([\d.]+) %", text)[1]
    assert tile == row
    matrix = text[text.index("Confusion matrix") :]
    rows = [
        re.search(rf"{label} ([\d.]+) ([\d.]+) ([\d.]+) 50 ", matrix).groups()
        for label in np.unique(three[2])
    ]
    right = sum(float(rows[k][k]) for k in range(3))
    assert f"{100 * right / 150:.1f}" == tile
    weights = learnt_weights(three[0])
    used = f"{np.count_nonzero(weights)} of {len(weights)} kernels have weight"
    title = "2 kernels, all with weight" if np.count_nonzero(weights) == 2 else used
    assert used.replace(" kernels have weight", "") in text
    assert title in text
    drawn = set(re.findall(r">(0\.\d{3}|1\.000)</text>", three_page))
    assert {f"{weight:.3f}" for weight in weights if weight > 0} <= drawn | {"1.000"}


def test_calibration_by_its_definition(three_subject):
    refits = three_subject.refits
    shares, classes = refits.ours.probability, refits.classes
    np.testing.assert_allclose(shares.sum(axis=2), 1.0)
    said, true, count = reliability(refits.y, shares, classes)
    assert count.sum() == 3 * len(refits.y)
    pooled = np.concatenate([shares[0, :, k] for k in range(3)])
    happened = np.concatenate([refits.y == label for label in classes])
    theirs, predicted = calibration_curve(happened, pooled, n_bins=10)
    np.testing.assert_allclose(true, theirs)
    np.testing.assert_allclose(said, predicted)


def test_weights_along_C_go_through_the_fit(three_subject):
    C = float(three_subject.estimator.C_)
    Cs, weights = weights_along_C(three_subject, C)
    np.testing.assert_allclose(Cs, C * np.array(FACTORS))
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)
    here = weights[FACTORS.index(1.0)]
    np.testing.assert_allclose(here, learnt_weights(three_subject.model), atol=0.02)


def test_better_than_guessing_counts_classes_alike(three_subject):
    assert three_subject.refits.better_than_guessing


# ---- numbers --------------------------------------------------------------------------------------------------------


def test_a_regression():
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:90], y[:90]
    bank = kw.per_feature(kw.gaussian([0.1]), columns=[2, 8]) + kw.linear().on([0, 1])
    model = MKLRegressor(bank, C=30.0, norm=2).fit(X, y)
    page = make_report(model, X, y, **FEW)
    text = text_of(page)
    for words in (
        "R² on held-out folds", "mean of the targets", "Residuals", "The largest residuals", "RMSE",
        "C = 30 and the norm were given, not chosen", "Kernels on single features",
    ):  # fmt: skip
        assert words in text
    assert "Confusion" not in text
    assert 'data-name="residuals"' in page
    tile = re.search(r"What was learnt (-?[\d.]+) R² on held-out folds", text)[1]
    assert re.search(r"this model (-?[\d.]+)", text)[1] == tile
