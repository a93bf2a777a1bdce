"""Weights over refits: counted by hand."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelweave import MKLClassifier, MKLRegressor
from kernelweave import kernels as kw
from kernelweave.inspection import WeightStability, weight_stability

X, Y = load_iris(return_X_y=True)
BANK = kw.per_view({"sepal": [0, 1], "petal": [2, 3]}, kw.linear(), kw.gaussian([0.5, 2.0]))


def test_folds_by_hand():
    model = MKLClassifier(BANK, multi_class="ovr")
    found = weight_stability(model, X, Y, n_refits=6, n_folds=3, random_state=3)
    folds = RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=3).split(X, Y)
    for row, score, (train, test) in zip(found.weights, found.scores, folds, strict=True):
        other = clone(model).fit(X[train], Y[train])
        np.testing.assert_allclose(
            row, (other.weights_ / other.weights_.sum(axis=1, keepdims=True)).mean(axis=0)
        )
        assert score == other.score(X[test], Y[test])
    np.testing.assert_allclose(found.weights.sum(axis=1), 1.0)


def made(weights, **others):
    weights = np.array(weights)
    m = weights.shape[1]
    settings = {"level": 0.5, "threshold": 0.01, "method": "folds"} | others
    return WeightStability(
        weights, weights.mean(axis=0), np.array([f"k{j}" for j in range(m)], dtype=object),
        np.array(["a", "a", "b"], dtype=object), np.array(["linear"] * m, dtype=object), np.zeros(len(weights)), **settings,
    )  # fmt: skip


def test_tables():
    found = made([[0.6, 0.4, 0.0], [0.2, 0.005, 0.795], [0.0, 0.0, 1.0], [0.5, 0.5, 0.0], [0.1, 0.3, 0.6]])
    kernels = found.kernels().set_index("kernel")
    np.testing.assert_allclose(kernels["selected"], [0.8, 0.6, 0.6])  # 0.005 is below the threshold
    np.testing.assert_allclose(kernels["mean"], [0.28, 0.241, 0.479])
    np.testing.assert_allclose(kernels.loc["k0", ["low", "high"]].astype(float), [0.1, 0.5])  # quartiles
    views = found.by_view().set_index("view")
    np.testing.assert_allclose(views["selected"], [0.8, 0.6])
    np.testing.assert_allclose(views["weight"], [0.521, 0.479])
    np.testing.assert_allclose(views.loc["a", ["low", "high"]].astype(float), [0.205, 1.0])
    assert views["kernels"].tolist() == [2, 1]
    assert "3 were ever selected, 0 in at least 90 %" in repr(found)


def test_bootstrap_keeps_every_class():
    rare = np.where(np.arange(150) < 4, 0, 1)
    found = weight_stability(MKLClassifier(kw.gaussian([0.5, 1.0])), X, rare, method="bootstrap", n_refits=5)
    assert found.weights.shape == (5, 2)
    assert np.all(np.isfinite(found.scores))


def test_pipelines_regression_and_progress():
    seen = []
    model = make_pipeline(StandardScaler(), MKLRegressor(BANK)).fit(X, X[:, 3])
    found = weight_stability(model, X, X[:, 3], n_refits=3, n_folds=3, progress=lambda *at: seen.append(at))
    assert seen == [(1, 3), (2, 3), (3, 3)]
    assert found.view_names == ["sepal", "petal"]
    np.testing.assert_allclose(found.reference, model[-1].weights_ / model[-1].weights_.sum())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "jackknife"}, "one of folds, bootstrap"),
        ({"n_refits": 1}, "n_refits must be"),
        ({"level": 1.1}, "level must be"),
    ],
)
def test_wrong_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        weight_stability(MKLClassifier(), X, Y, **settings)


def test_wrong_samples():
    with pytest.raises(ValueError, match="cannot be cut into parts"):
        weight_stability(MKLClassifier("precomputed"), np.eye(4)[None], [0, 0, 1, 1])
    with pytest.raises(ValueError, match="a class with a single sample"):
        weight_stability(MKLClassifier(), X, np.arange(150) == 0)
