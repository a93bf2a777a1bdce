"""State that no fit leaves: whatever of a loaded model does not fit together is named before compiled code follows it."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

from kernelweave import MKLClassifier
from kernelweave import kernels as kw
from kernelweave.persistence import ModelFileError, load, save

rng = np.random.default_rng(0)
X = rng.normal(size=(30, 3))
Y = X[:, 0] > 0
STACK = np.stack([kernel(X) for kernel in kw.gaussian([1.0, 2.0])])
VIEWS = {"a": X, "b": np.where(rng.random(30)[:, None] < 0.3, np.nan, X)}

MODELS = {
    "kernels": lambda: MKLClassifier(kw.gaussian([1.0, 2.0]), norm=2, center=True).fit(X, Y),
    "matrices": lambda: MKLClassifier("precomputed", norm=2).fit(STACK, Y),
    "completed": lambda: MKLClassifier(kw.gaussian(1.0), norm=2, missing="predict").fit(VIEWS, Y),
    "stream": lambda: MKLClassifier(kw.linear(), norm=2, fit_intercept=False, solver="obscure").partial_fit(
        X, Y, [False, True]
    ),
}


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """Models whose files are loaded as long as nothing in them is forged."""
    made = {name: make() for name, make in MODELS.items()}
    for name, model in made.items():
        path = tmp_path_factory.mktemp(name) / "model.skops"
        save(model, path)
        load(path)
    return made


def kernels(model):
    return model._function.terms[0].kernels


def completion(model):
    return model._function.completion


def part(model):
    return completion(model).parts[0]


#: kind of model, the object that is forged, its attribute, the value, and what has to be said
FORGED = [
    ("kernels", lambda m: kernels(m).normaliser, "scale", "large", "scale of the normalisation is str"),
    ("kernels", lambda m: kernels(m).normaliser, "row_means", np.zeros((5, 30)), "row_means of the normalis"),
    (
        "kernels",
        lambda m: kernels(m).normaliser,
        "scale",
        np.ones((2, 1)),
        "scale of the normalisation is float64 of",
    ),
    (
        "kernels",
        lambda m: m,
        "predict",
        3,
        "a MKLClassifier has an attribute 'predict', which is not for a file",
    ),
    (
        "kernels",
        lambda m: m,
        "_doc_link_module",
        "https://x",
        "an attribute '_doc_link_module', which is not",
    ),
    ("kernels", kernels, "__doc__", "s", "an attribute '__doc__', which is not for a file to say"),
    ("kernels", kernels, "kernels", ["gaussian"], "no list of kernels"),
    ("kernels", kernels, "kernels", [kw.linear()], "normalisation is not that of the kernels"),
    ("kernels", lambda m: m._function, "m", 2.5, "model file: invalid function"),
    ("kernels", lambda m: m._function.terms[0], "index", np.array([0, 7]), "no positions below 2"),
    ("kernels", lambda m: m._function.terms[0], "kernels", kw.linear(), "stands on no kernels"),
    ("kernels", lambda m: m._function.terms[0], "weights", np.ones(5), "weights of the function"),
    ("kernels", lambda m: m._function.terms[0], "coef", np.array(["a"]), "coefficients of the function"),
    ("kernels", lambda m: m, "_function", "f", "the model stands on no kernels"),
    ("kernels", lambda m: m, "weights_", np.ones(7), "weights_ is float64 of shape"),
    ("kernels", lambda m: m, "_stream", "s", "state of partial_fit is none"),
    ("matrices", lambda m: m, "dual_coef_", np.ones(3), r"dual_coef_ is float64 of shape \(3,\)"),
    ("matrices", lambda m: m, "weights_", np.ones(3), r"weights_ is float64 of shape \(3,\)"),
    ("matrices", lambda m: kernels(m).given, "n", -3, "a model on 2 matrices of -3 samples"),
    ("matrices", lambda m: kernels(m).given, "index", np.array([0]), "normalisation is not that of the"),
    ("matrices", lambda m: kernels(m).given, "index", np.array([0, 5]), "matrices of the model are no pos"),
    (
        "matrices",
        lambda m: kernels(m).given,
        "columns",
        np.array([99]),
        "columns of the matrices of the model",
    ),
    ("matrices", kernels, "given", "all", "does not know its matrices"),
    ("completed", completion, "parts", [1, 2], "have no parts"),
    ("completed", completion, "n", "many", "does not know how kernels were completed"),
    ("completed", lambda m: m._function, "completion", 3, "invalid function"),
    ("completed", lambda m: m._function.terms[0], "part", 7, "of no part of the kernels"),
    ("completed", completion, "patterns", np.ones((1, 9)), "patterns of the model is"),
    ("completed", completion, "rows", [], "patterns of the model are not those"),
    ("completed", part, "members", [55], "kernels of a part are not those of the model"),
    ("completed", part, "scale", None, "a part of the model was not normalised"),
    (
        "completed",
        lambda m: part(m).scale,
        "row_means",
        np.ones(3),
        r"means of a part is float64 of shape \(3,\)",
    ),
    (
        "completed",
        lambda m: part(m).bound.normaliser,
        "scale",
        np.ones(9),
        "normalisation is not that of the kernels",
    ),
    ("kernels", lambda m: kernels(m).normaliser, "names", ["a", 3], "names"),
    ("stream", lambda m: m._stream, "bound", None, "state of partial_fit stands on no kernels"),
    ("stream", lambda m: m, "classes_", np.arange(5), "functions of 5 classes"),
]


@pytest.mark.parametrize(
    ("kind", "where", "name", "value", "said"),
    FORGED,
    ids=[f"{f[0]}-{f[2]}-{n}" for n, f in enumerate(FORGED)],
)
def test_what_does_not_fit_together_is_named(fitted, kind, where, name, value, said, tmp_path):
    path = tmp_path / "model.skops"
    model = copy.deepcopy(fitted[kind])
    object.__setattr__(where(model), name, value)
    save(model, path)
    with pytest.raises(ModelFileError, match=said):
        load(path)


@pytest.mark.parametrize("kind", ["numbers", "matrices"])
def test_models_whose_samples_lack_several_views_are_loaded(tmp_path, kind):
    """Two patterns of missing views are tried when a file is opened, one for every view that samples lack."""
    first, second = (rng.random((2, 30)) < 0.3) & (np.arange(30) > 5)
    second &= ~first
    a, b = np.where(first[:, None], np.nan, X), np.where(second[:, None], np.nan, X)
    if kind == "numbers":
        samples = {"a": a, "b": b, "c": X}
        model = MKLClassifier(kw.gaussian(1.0), norm=2, missing="predict")
    else:
        samples = np.stack([*STACK, STACK[0]])
        for K, lacks in zip(samples, (first, second), strict=False):
            K[lacks], K[:, lacks] = np.nan, np.nan
        model = MKLClassifier("precomputed", norm=2, missing="predict")
    model.fit(samples, Y)
    save(model, tmp_path / "model.skops")
    loaded = load(tmp_path / "model.skops")
    expected = model.decision_function(samples)
    np.testing.assert_allclose(loaded.decision_function(samples), expected, rtol=1e-12)


TEXTS = np.array([["a"], ["b"], ["c"]])


@pytest.mark.parametrize(
    ("encoder", "name", "value", "said"),
    [
        (OneHotEncoder(), "categories_", "abc", "no list of columns"),
        (OrdinalEncoder(), "categories_", [np.array([2.0, 1.0, 3.0])], "not in order"),
        (OneHotEncoder(drop="first"), "_drop_idx_after_grouping", np.array([7]), "that it does not have"),
    ],
)
def test_encoders(encoder, name, value, said, tmp_path):
    path = tmp_path / "model.skops"
    model = make_pipeline(encoder, MKLClassifier(kw.linear())).fit(TEXTS, [0, 1, 1])
    save(model, path)
    load(path)
    setattr(model[0], name, value)
    save(model, path)
    with pytest.raises(ModelFileError, match=said):
        load(path)
