"""Two models on the same folds, and what a report says to do next."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelweave import MKLClassifier, MKLRegressor
from kernelweave import kernels as kw
from kernelweave.inspection.subsets import shuffled_folds
from kernelweave.report import compare_models, make_report
from kernelweave.report.sections.advice import next_section

from .refitted import subject_of
from .test_sections import text_of

VIEWS = {"good": slice(0, 3), "useless": slice(3, 6)}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 6))
    return X, np.where(X[:, :3].sum(axis=1) + 0.5 * rng.normal(size=120) > 0, "up", "down")


def linear(views, **settings):
    return make_pipeline(StandardScaler(), MKLClassifier(kw.per_view(views, kw.linear()), **settings))


def test_compared_by_the_definition(data):
    """Means over the folds are those of the fits themselves, the p-value that of the report; order only turns the sign."""
    X, y = data
    both = {"whole": linear(VIEWS), "useless": linear({"useless": VIEWS["useless"]})}
    models = {name: (model.fit(X, y), X) for name, model in both.items()}
    found = compare_models(models, y, n_folds=3, n_repeats=2)
    measures = found.measures
    assert measures.loc["accuracy", "whole"] > measures.loc["accuracy", "useless"] + 0.2
    assert measures.loc["accuracy", "p"] < 0.05
    assert found.sentence().startswith("On held-out folds whole is better than useless")
    splits = list(shuffled_folds(y, True, 3, 0, 2))
    assert len(splits) == 6
    scores = np.array([
        [clone(model).fit(X[a], y[a]).score(X[b], y[b]) for a, b in splits] for model in both.values()
    ])  # fmt: skip
    np.testing.assert_allclose(found.scores, scores)
    np.testing.assert_allclose(measures.loc["accuracy", ["whole", "useless"]], scores.mean(axis=1), atol=1e-3)
    assert found.views.loc["good", "whole"] > 0.9
    assert np.isnan(found.views.loc["good", "useless"])
    assert (found.views["whole, least"] <= found.views["whole, most"]).all()
    turned = compare_models(dict(reversed(models.items())), y, n_folds=3, n_repeats=2)
    assert turned.measures.loc["accuracy", "difference"] == pytest.approx(
        -measures.loc["accuracy", "difference"]
    )
    assert turned.sentence().startswith("On held-out folds whole is better than useless")
    page = found.page("a < b")
    assert "a &lt; b" in page
    assert "whole is better" in text_of(page)


def test_the_same_model_twice_cannot_be_told_apart(data):
    X, y = data
    model = linear(VIEWS).fit(X, y)
    found = compare_models({"one": (model, X), "two": (model, X)}, y, n_folds=2, n_repeats=1)
    assert found.alike == 1.0
    assert (found.measures["difference"] == 0).all()
    assert "cannot be told apart" in found.sentence()


def test_numbers_and_refusals(data):
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:100], y[:100]
    model = MKLRegressor(kw.linear()).fit(X, y)
    found = compare_models({"one": (model, X), "two": (model, X)}, y, n_folds=2, n_repeats=1)
    assert list(found.measures.index) == ["R²", "RMSE"]
    assert np.isnan(found.alike)
    other = linear(VIEWS).fit(*data)
    with pytest.raises(ValueError, match="and not both the same"):
        compare_models({"one": (model, X), "two": (other, data[0])}, y)
    with pytest.raises(ValueError, match="one column of targets"):
        compare_models({"one": (model, X), "two": (model, X)}, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="two models are compared, got 1"):
        compare_models({"one": (model, X)}, y)


# ---- what next ------------------------------------------------------------------------------------------------------


def advice(page):
    box = re.search(r'<div class="next">.*?</div>', page, flags=re.DOTALL)[0]
    return {name: text_of(text) for name, text in re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", box)}


def test_what_next(data):
    X, y = data
    page = make_report(linear(VIEWS, C=0.1).fit(X, y), X, y, n_folds=3, n_repeats=2)
    said = advice(page)
    assert "with half of the training samples" in said["Samples"]
    assert "Without 'useless' the model does as well" in said["Views"]
    number = int(re.match(r"(\d+) samples? (is|are) predicted otherwise", said["Labels"])[1])
    assert "in both rounds" in said["Labels"]
    assert 0 < number < 40
    assert (
        page.count(said["Views"][:60].replace("'", "&#x27;")) == 2
    )  # the same sentence as below, computed once
    anchors = re.findall(r'<li><a href="#(\w+)">', page)
    assert anchors[:2] == ["learnt", "next"]
    assert anchors == re.findall(r'<h2 id="(\w+)">', page)
    assert re.search(
        r"<title>linear on good: weight \d\.\d+, \d\.\d+ to \d\.\d+ in the refits, selected in 100", page
    )
    assert re.search(r"<title>this model: \d+\.\d", page)


def test_more_samples_help_where_they_do():
    """Half of few samples in many directions is worse; a model that predicts nothing is told of samples alone."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 60))
    y = (X @ rng.normal(size=60) > 0).astype(int)
    model = MKLClassifier(kw.linear(), C=1.0)
    assert (
        "more samples are likely to help"
        in advice(make_report(model.fit(X, y), X, y, n_repeats=1))["Samples"]
    )
    guess = advice(
        make_report(model.fit(X, rng.permutation(y)), X, rng.permutation(y), n_folds=3, n_repeats=1)
    )
    assert set(guess) == {"Samples"}
    assert "is not shown" in guess["Samples"]


def test_another_norm_is_advised_by_what_the_folds_found(data):
    X, y = data
    subject = subject_of(linear(VIEWS, C=0.1).fit(X, y), X, y)
    assert subject.refits.better_than_guessing
    assert "<dt>Norm" not in next_section(subject)
    (mean,) = (method for method in subject.refits.methods if method.name == "mean kernel")
    found = mean.measures["accuracy"]
    for p, better, said in ((0.01, 0.1, True), (0.2, 0.1, False), (0.01, -0.1, False)):
        ours = subject.refits.ours.measures["accuracy"].mean
        mean.measures["accuracy"] = replace(found, mean=ours + better, p_value=p)
        assert ("Equal weights are better here" in next_section(subject)) == said
    weights = np.array([[1.0, 0.0], [0.5, 0.5]])
    stability = replace(
        subject.refits.stability, weights=weights, reference=np.array([1.0, 0.0]), view_weights=None
    )
    subject.refits.stability = replace(stability, view_reference=None)
    assert "The weights of views change much from refit to refit" in next_section(subject)
