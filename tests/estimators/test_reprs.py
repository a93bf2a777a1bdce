"""What people see: notebooks and prompts."""

from __future__ import annotations

import re

import numpy as np
from sklearn import config_context
from sklearn.datasets import load_iris

from kernelweave import MKLClassifier, mkl_path
from kernelweave import kernels as kw
from kernelweave.inspection import contributions

X, Y = load_iris(return_X_y=True)


def test_notebook_of_a_fit():
    bank = kw.gaussian(1.0).named("<near>") + kw.per_feature(kw.linear())
    model = MKLClassifier(bank, norm=2)
    assert "kernels have weight" not in model._repr_html_()
    model.fit(X, Y)
    page = model._repr_html_()
    assert "is proved to be within" in model._repr_mimebundle_()["text/html"]
    assert "is proved to be within" in page
    assert "&lt;near&gt;" in page
    assert "<near>" not in page
    assert f"{np.count_nonzero(model.weights_)} of 5 kernels have weight:" in page
    assert f"{model.weights_.max():.3f}" in page
    with config_context(display="text"):
        assert not hasattr(model, "_repr_html_")


def test_notebook_of_several_problems():
    model = MKLClassifier(kw.per_feature(kw.gaussian([0.5, 1.0, 2.0])), norm=2, multi_class="ovr").fit(X, Y)
    page = model._repr_html_()
    assert "means over the classes" in page
    assert "and 4 others" in page
    # the largest first, each with a bar in proportion
    _, _, page = page.partition("kernels have weight")
    weights = np.sort(model.weights_.mean(axis=0))[::-1][:8]
    assert re.findall(r">([0-9.]+)</td>", page) == [f"{weight:.3f}" for weight in weights]
    assert re.findall(r"width:([0-9.]+)em", page) == [f"{8 * weight / weights[0]:.2f}" for weight in weights]


def test_notebook_of_a_component():
    assert kw.gaussian(2.0)._repr_mimebundle_()["text/html"] == "<code>Gaussian(width=2.0)</code>"


def test_sentences():
    path = mkl_path(X[:100], Y[:100], kw.gaussian([1.0, 2.0]), Cs=[0.1, 1.0])
    assert repr(path).startswith("MKLPath: 2 fits for C from 0.1 to 1, each proved to be within ")
    model = MKLClassifier(kw.per_view({"a": [0], "b": [1]}, kw.linear()), norm=2).fit(X, Y)
    said = repr(contributions(model, X[:3]))
    assert (
        said
        == "Contributions: the decision values of 3 samples as sums over 2 kernels of 2 views, and an intercept"
    )
