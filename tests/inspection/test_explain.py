"""Contributions add up, feature weights are gradients, p-values are honest."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelweave import MKLClassifier, MKLRegressor, SimilarityClassifier
from kernelweave import kernels as kw
from kernelweave.inspection import (
    contributions,
    feature_weights,
    kernel_families,
    kernel_views,
    view_p_values,
)

X, Y = load_iris(return_X_y=True)
BANK = kw.per_view({"sepal": [0, 1], "petal": [2, 3]}, kw.linear(), kw.gaussian([0.5, 1.0]))
STACK = np.stack([kernel(X) for kernel in kw.gaussian([1.0, 2.0])])

MODELS = {
    "joint": (MKLClassifier(BANK, norm=2), X, Y),
    "a problem a class": (MKLClassifier(BANK, norm=2, multi_class="ovr"), X, Y),
    "two classes": (MKLClassifier(BANK, norm=1.5), X, Y == 1),
    "two classes, joint": (MKLClassifier(BANK, norm=2, loss="multiclass_hinge"), X, Y == 1),
    "centred": (MKLClassifier(BANK, norm=2, center=True), X, Y == 1),
    "cosine": (MKLClassifier(BANK, norm=2, normalize="cosine"), X, Y == 1),
    "sparse": (MKLClassifier(BANK, norm=2), sp.csr_matrix(X), Y == 1),
    "regression": (MKLRegressor(BANK, norm=2), X, X[:, 2]),
    "matrices": (MKLClassifier("precomputed", norm=2), STACK, Y),
    "streamed": (MKLClassifier(kw.linear() + kw.nystroem(kw.gaussian(1.0), 5), loss="logistic", norm=2, storage="stream"), X, Y == 1),
    "pipeline": (make_pipeline(StandardScaler(), MKLClassifier(BANK, norm=2)), X, Y),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_contributions_add_up(name):
    model, samples, target = MODELS[name]
    model = clone(model).fit(samples, target)
    parts = contributions(model, samples)
    truth = model.predict(samples) if name == "regression" else model.decision_function(samples)
    np.testing.assert_allclose(parts.decision, truth, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(parts.by_view().sum(axis=1) + parts.intercept, truth, rtol=1e-9, atol=1e-9)


def test_a_contribution_is_that_of_its_kernel_alone():
    model = MKLClassifier(kw.gaussian([0.5, 1.0]), norm=2, normalize=None).fit(X, Y == 1)
    parts = contributions(model, X[:7])
    by_hand = model.weights_[1] * kw.gaussian(1.0)(X[:7], X) @ model.dual_coef_
    np.testing.assert_allclose(parts.values[:, 1], by_hand, atol=1e-10)


def test_table_of_one_sample():
    model = MKLClassifier(BANK, norm=2).fit(X, np.array(["a", "b", "c"])[Y])
    parts = contributions(model, X[:4])
    table = parts.table(0)
    assert np.all(np.diff(np.abs(table["contribution"])) <= 0)
    assert set(table["view"]) == {"sepal", "petal"}
    np.testing.assert_allclose(
        parts.table(2, class_="b")["contribution"].sum() + parts.intercept[1], parts.decision[2, 1]
    )
    with pytest.raises(ValueError, match="unknown class 'd'"):
        parts.table(0, class_="d")


def test_nothing_to_explain():
    with pytest.raises(NotFittedError):
        contributions(MKLClassifier(), X)
    with pytest.raises(ValueError, match="no sum over kernels"):
        contributions(SimilarityClassifier(tol=0.9).fit(STACK[0], Y == 0), STACK[0])
    with pytest.raises(ValueError, match="LogisticRegression is not an estimator with kernels"):
        contributions(LogisticRegression(), X)


@pytest.mark.parametrize("center", [False, True])
def test_feature_weights_are_the_gradient(center):
    bank = kw.linear().on([0, 2]) + kw.linear() + kw.gaussian(1.0)
    model = MKLClassifier(bank, norm=2, center=center).fit(X, Y == 1)
    table = feature_weights(model)
    parts = contributions(model, np.vstack([np.zeros(4), np.eye(4)]))
    for j, name in enumerate(model.kernel_names_[:2]):
        slopes = parts.values[1:, j] - parts.values[0, j]
        mine = table[table["kernel"] == name].set_index("feature")["weight"]
        np.testing.assert_allclose(mine, slopes[[int(f.split()[1]) for f in mine.index]], atol=1e-10)
    assert len(table) == 6  # the Gaussian has none


def test_feature_weights_by_class_and_name():
    pipeline = make_pipeline(StandardScaler(), MKLClassifier(kw.linear(), multi_class="ovr"))
    data = load_iris(as_frame=True)
    table = feature_weights(pipeline.fit(data.data, data.target_names[data.target]))
    assert list(table.columns[3:]) == [f"weight of {name}" for name in data.target_names]
    assert sorted(table["feature"]) == sorted(data.data.columns)
    sizes = table[table.columns[3:]].abs().max(axis=1).to_numpy()
    assert np.all(np.diff(sizes) <= 0)  # the heaviest first


def test_feature_weights_refused():
    with pytest.raises(ValueError, match="no linear kernel"):
        feature_weights(MKLClassifier(kw.gaussian(1.0)).fit(X, Y))
    with pytest.raises(ValueError, match="divides by the length"):
        feature_weights(MKLClassifier(kw.linear(), normalize="cosine").fit(X, Y))
    with pytest.raises(ValueError, match="rows of numbers in memory"):
        feature_weights(MKLClassifier("precomputed").fit(STACK, Y))


def test_views_and_families():
    bank = (
        kw.gaussian(1.0) + kw.linear().on(0).named("width") + kw.gaussian(1.0).on([0]) * kw.linear().on([1])
        + kw.per_feature(kw.linear(), columns=[3])
    )  # fmt: skip
    model = MKLClassifier(bank, norm=2).fit(X, Y)
    assert kernel_views(model).tolist() == ["all features", "feature 0", "several views", "feature 3"]
    assert kernel_families(model).tolist()[:2] == ["gaussian", "linear"]
    assert kernel_views(model, lambda name: name[:5]).tolist()[1] == "width"
    assert kernel_views(model, list("abcd")).tolist() == list("abcd")
    with pytest.raises(ValueError, match="2 views were given for 4 kernels"):
        kernel_views(model, ["a", "b"])


def test_views_of_matrices():
    held = MKLClassifier(kw.held(STACK, ["near", "far"])).fit(np.arange(150), Y)
    assert kernel_views(held).tolist() == ["near", "far"]
    given = MKLClassifier("precomputed").fit(STACK, Y)
    assert kernel_views(given).tolist() == ["kernel 0", "kernel 1"]
    assert kernel_families(given).tolist() == ["matrix", "matrix"]


def test_p_values_tell_signal_from_noise():
    rng = np.random.default_rng(0)
    samples = rng.normal(size=(90, 4))
    target = np.where(samples[:, 0] - samples[:, 1] > 0, "yes", "no")
    bank = kw.per_view({"signal": [0, 1], "noise": [2, 3]}, kw.linear(), kw.gaussian(1.0))
    table = view_p_values(MKLClassifier(bank, norm=2), samples, target, n_permutations=199, cv=3).set_index(
        "view"
    )
    assert table.loc["signal", "p_value"] == 1 / 200
    assert table.loc["noise", "p_value"] > 0.05
    assert table.loc["signal", "shuffled"] < table.loc["signal", "quality"] - 0.2
    assert np.all(table["p_holm"] >= table["p_value"])


def test_p_values_under_the_null_are_uniform_enough():
    # the view is independent of everything: a p-value below 0.2 should happen about once in five
    rng = np.random.default_rng(1)
    found = []
    for _ in range(25):
        samples = rng.normal(size=(40, 2))
        target = samples[:, 0] > 0
        bank = kw.per_view({"signal": [0], "noise": [1]}, kw.linear())
        table = view_p_values(MKLClassifier(bank, norm="uniform"), samples, target, n_permutations=39, cv=2)
        found.append(table["p_value"][1])
    assert np.mean(np.array(found) <= 0.2) <= 0.45  # three standard errors above
    assert np.mean(found) > 0.3


def test_p_values_of_several_classes_and_of_regression():
    table = view_p_values(MKLClassifier(BANK, norm=2), X, Y, n_permutations=19, cv=2).set_index("view")
    assert table.loc["petal", "p_value"] == 0.05
    samples, target = make_classification(
        60, 4, n_informative=2, n_redundant=0, shuffle=False, random_state=0
    )
    regression = MKLRegressor(BANK, norm=2, loss="squared")
    table = view_p_values(regression, samples, samples[:, 0] + 0.0 * target, n_permutations=19, cv=2)
    assert table["p_value"][0] == 0.05
    assert table["quality"][0] <= 0


def test_p_values_refused():
    with pytest.raises(ValueError, match="n_permutations must be"):
        view_p_values(MKLClassifier(), X, Y, n_permutations=0)
    with pytest.raises(ValueError, match="cannot be cut into parts"):
        view_p_values(MKLClassifier("precomputed"), STACK, Y)
