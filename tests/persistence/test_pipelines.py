"""Models inside scikit-learn's transformers and searches: saved by this library and by skops, and read again."""

from __future__ import annotations

import io
import json
import zipfile

import numpy as np
import pytest
import skops.io
from scipy.interpolate import BSpline
from sklearn.datasets import load_iris
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.impute import KNNImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, PolynomialFeatures, SplineTransformer

from kernelweave import (
    MeanKernelRidgeClassifier,
    MKLClassifier,
    MKLClassifierCV,
    MKLRegressorCV,
    SimilarityClassifier,
)
from kernelweave import kernels as kw
from kernelweave.persistence import ModelFileError, load, save
from kernelweave.persistence._state import SavedCurve

X, Y = load_iris(return_X_y=True)
X, Y = X[::3], Y[::3]
BANK = kw.gaussian(1.0) + kw.linear()


@pytest.mark.parametrize(
    "step",
    [
        SelectKBest(k=2),
        SelectKBest(f_classif, k=3),
        SplineTransformer(n_knots=4),
        KBinsDiscretizer(3, encode="onehot-dense"),
        PolynomialFeatures(2),
        KNNImputer(),
        TruncatedSVD(2, random_state=0),
    ],
    ids=lambda step: type(step).__name__,
)
@pytest.mark.filterwarnings("ignore:The current default behavior, quantile_method:FutureWarning")
def test_pipelines_with_ordinary_transformers_can_be_saved(step, tmp_path):
    model = make_pipeline(step, MKLClassifier(BANK)).fit(X, Y)
    save(model, tmp_path / "model.skops")
    np.testing.assert_array_equal(load(tmp_path / "model.skops").predict(X), model.predict(X))


@pytest.mark.parametrize("scoring", [None, "balanced_accuracy"])
def test_searches_can_be_saved(scoring, tmp_path):
    grid = {"kernels__gaussian__width": [0.5, 1.0], "norm": ["l1", 2]}
    search = GridSearchCV(MKLClassifier(BANK), grid, cv=StratifiedKFold(2), scoring=scoring).fit(X, Y)
    save(search, tmp_path / "search.skops")
    again = load(tmp_path / "search.skops")
    assert again.best_params_ == search.best_params_
    np.testing.assert_array_equal(again.predict(X), search.predict(X))
    np.testing.assert_array_equal(again.cv_results_["mean_test_score"], search.cv_results_["mean_test_score"])


def test_functions_that_are_not_listed_are_refused(tmp_path):
    model = make_pipeline(SelectKBest(np.linalg.lstsq, k=2), LogisticRegression())
    with pytest.raises(ModelFileError, match="function"):
        save(model, tmp_path / "model.skops")


@pytest.mark.parametrize(
    "damage",
    [
        {"coefficients": np.ones((2, 2))},
        {"knots": np.arange(8.0)[::-1]},
        {"knots": np.full(8, np.nan)},
        {"degree": 3.0},
        {"degree": -1},
        {"extrapolate": "always"},
        {"knots": None},
    ],
)
def test_a_damaged_spline_is_refused(damage):
    curve = SavedCurve(np.arange(8.0), np.ones((4, 2)), 3, True)
    assert curve.spline()(3.5).shape == (2,)
    vars(curve).update(damage)
    with pytest.raises(ValueError, match="of the model"):
        curve.spline()


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        (("knots", np.ones(4), 3, True), "a spline of the model is none"),
        ((np.arange(8.0), np.ones(4), 3.5, True), "a spline of the model is none"),
        ((np.arange(8.0), np.ones(3), 3, True), "other coefficients than knots"),
        ((np.arange(8.0)[::-1], np.ones(4), 3, True), "not in order"),
        ((np.arange(8.0), np.ones(4), 3, "sideways"), "goes on in no known way"),
    ],
)
def test_splines(parts, said):
    curve = SavedCurve.of(BSpline(np.arange(8.0), np.ones(4), 3))
    assert curve.spline()(3.5) == pytest.approx(1.0)
    with pytest.raises(ValueError, match=said):
        SavedCurve(*parts).spline()


@pytest.mark.parametrize("goes_on", [True, False, "periodic"])
def test_splines_go_on_as_they_did(goes_on):
    curve = BSpline(np.arange(8.0), np.array([1.0, 2.0, 3.0, 1.0]), 3, extrapolate=goes_on)
    there = np.array([2.5, 3.3, 4.6, 5.5])
    made = SavedCurve.of(curve)
    assert type(made.extrapolate) is type(goes_on)
    np.testing.assert_array_equal(made.spline()(there), curve(there))


@pytest.mark.parametrize(
    "model",
    [
        MKLClassifier(BANK),
        MKLClassifierCV(BANK, Cs=[0.1, 1.0], norms=["l1", 2], cv=2),
        MKLRegressorCV(BANK, criterion="reml"),
        MeanKernelRidgeClassifier(BANK),
        SimilarityClassifier(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_skops_takes_a_fitted_estimator(model):
    samples = X @ X.T if isinstance(model, SimilarityClassifier) else X
    model.fit(samples, Y)
    file = skops.io.dumps(model)
    again = skops.io.loads(file, trusted=skops.io.get_untrusted_types(data=file))
    np.testing.assert_array_equal(again.predict(samples), model.predict(samples))
    for name in ("trace_", "cv_results_", "comparison_"):
        if hasattr(model, name):
            assert getattr(again, name).equals(getattr(model, name))
    assert "SavedTable" in json.dumps(json.loads(zipfile.ZipFile(io.BytesIO(file)).read("schema.json")))


class KeepsAModule:
    """As some objects of other libraries do."""

    def __init__(self):
        self.arrays_of, self.inside = np, {"a": 1.0}


def test_modules_are_not_walked_into(tmp_path):
    model = MKLClassifier(BANK).fit(X, Y)
    model.kept = KeepsAModule()
    with pytest.raises(ModelFileError, match="cannot pickle 'module' object"):
        save(model, tmp_path / "model.skops")
    assert vars(model.kept) == {"arrays_of": np, "inside": {"a": 1.0}}
