"""What a fit leaves behind: written in one place, whole, and the weights of views under every norm."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import kernelweave
from kernelweave import (
    AlignmentClassifier,
    LPBetaClassifier,
    MeanKernelRidgeClassifier,
    MKLClassifier,
    MKLClassifierCV,
    MKLRegressor,
    MKLRegressorCV,
    NoisyLabelMKLClassifier,
    norms,
)
from kernelweave import kernels as kw
from kernelweave.estimators.fitted import ATTRIBUTES, FittedModel
from kernelweave.inspection import drop_view, kernel_views
from kernelweave.persistence import load, save

VIEWS = {"clinic": [0, 1], "genes": [2, 3, 4]}
BANK = kw.linear() + kw.per_view(VIEWS, kw.gaussian([1.0, 3.0]))
PACKAGE = Path(kernelweave.__file__).parent


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    score = X[:, 0] + X[:, 2] + 0.3 * rng.normal(size=60)
    return X, score


def targets(score, model):
    """Two numbers, one, three classes or two, as the model takes them."""
    return score if isinstance(model, MKLRegressor) else np.digitize(score, [0.0])


#: transformers and kernels that are settled have names and kernels, but no weights
NO_MODELS = {"features", "transformers"}


def assigned(path: Path) -> set[str]:
    """Return the attributes of ``self`` that a module assigns."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        places = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        for place in places if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) else []:
            for one in ast.walk(place):
                if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store):
                    found.add(one.attr)
    return found


def test_one_place_writes_what_was_fitted():
    writers = {}
    for path in sorted(
        [*PACKAGE.glob("estimators/*.py"), *PACKAGE.glob("similarity/*.py"), PACKAGE / "_fitted.py"]
    ):
        if path.stem not in NO_MODELS and (own := assigned(path) & {*ATTRIBUTES.values(), "support_"}):
            writers[path.stem] = sorted(own)
    assert writers == {"_fitted": ["support_"]}


def test_fields_are_the_documented_attributes():
    said = str(MKLClassifier.__doc__)
    public = [name for name in ATTRIBUTES.values() if not name.startswith("_")]
    unsaid = [name for name in public if not re.search(rf"\b{name}\b", said)]
    assert not unsaid


def test_what_was_written_is_read(data):
    X, score = data
    model = MKLClassifier(BANK).fit(X, np.digitize(score, [0.0]))
    fitted = FittedModel.of(model)
    for name, attribute in ATTRIBUTES.items():
        assert getattr(fitted, name) is vars(model).get(attribute)
    other = clone(model)
    with pytest.raises(NotFittedError):
        FittedModel.of(other)
    fitted.write(other)
    assert vars(other).keys() == vars(model).keys() - {"classes_", "n_features_in_"}


def test_what_a_fit_does_not_have_is_forgotten(data):
    X, score = data
    model = MKLRegressorCV(BANK, Cs=[0.1, 1.0, 10.0], norm="entropy", cv=2).fit(X, score)
    assert model.lam_ > 0
    assert {"cv_results_", "trace_"} <= set(vars(model))
    model.set_params(criterion="reml").fit(X, score)
    assert not {"lam_", "cv_results_", "certificates_", "trace_"} & set(vars(model))
    assert "variance_components_" in vars(model)
    model.set_params(criterion="convex").fit(X, score)
    assert "variance_components_" not in vars(model)
    online = MKLClassifier(
        kw.gaussian([1.0, 2.0]), norm=norms.Block(1.5), solver="obscure", fit_intercept=False
    )
    y = np.digitize(score, [0.0])
    online.fit(X, y).partial_fit(X, y, classes=[0, 1])
    assert online.status_ == "streaming"
    assert not hasattr(online, "certificate_")  # that of another function
    assert online.fit(X, y).certificate_.primal > 0
    assert not hasattr(online, "_stream")


def test_deviations_are_those_of_the_kernels_that_are_left(data):
    X, score = data
    model = MKLRegressor(BANK, norm=2).fit(X, score)
    less = drop_view(model, X, score, "genes", n_folds=2).model
    values, spread = less.predict(X[:, :], return_std=True)
    alone = clone(less).fit(X, score).predict(X, return_std=True)
    np.testing.assert_allclose(values, alone[0], atol=0.02)
    np.testing.assert_allclose(spread, alone[1], rtol=0.02)


MODELS = {
    "l1": MKLClassifier(BANK),
    "p": MKLClassifier(BANK, norm=1.5),
    "uniform": MKLClassifier(BANK, norm="uniform"),
    "entropy": MKLClassifier(BANK, norm="entropy"),
    "elastic": MKLClassifier(BANK, norm=norms.ElasticNet(0.5)),
    "given": MKLClassifier(kw.always(kw.linear().on([0, 3])) + BANK),
    "joint": MKLClassifier(BANK, norm=2),
    "search": MKLClassifierCV(BANK, Cs=[0.1, 1.0, 10.0], cv=2),
    "linear programming": LPBetaClassifier(BANK, n_folds=2),
    "alignment": AlignmentClassifier(BANK),
    "ridge": MeanKernelRidgeClassifier(BANK),
    "noisy": NoisyLabelMKLClassifier(BANK),
    "regression": MKLRegressor(BANK, norm=2),
    "evidence": MKLRegressorCV(BANK, criterion="reml"),
    "online": MKLClassifier(BANK, norm=norms.Block(1.5), solver="obscure", fit_intercept=False),
}


@pytest.mark.filterwarnings("ignore::kernelweave.exceptions.KernelWeaveWarning")
@pytest.mark.parametrize("name", MODELS)
def test_weights_of_views_are_sums_under_every_norm(data, name, tmp_path):
    X, score = data
    model = MODELS[name]
    y = targets(score, model)
    model = model.partial_fit(X, y, classes=[0, 1]) if name == "online" else model.fit(X, y)
    views = kernel_views(model)
    given = ["features 0, 3"] if name == "given" else []
    assert list(model.view_weights_) == [*given, "all features", "clinic", "genes"]
    for view, weight in model.view_weights_.items():
        assert isinstance(weight, float)
        assert weight == pytest.approx(float(model.weights_[views == view].sum()), rel=1e-12)
    save(model, tmp_path / "model")
    assert load(tmp_path / "model").view_weights_ == model.view_weights_


@pytest.mark.parametrize(
    "model",
    [
        MKLClassifier(BANK, multi_class="ovr"),
        NoisyLabelMKLClassifier(BANK, method="confident"),
        MKLRegressor(BANK, multi_output="each"),
        MKLRegressorCV(BANK, criterion="loo"),
    ],
)
def test_every_class_and_target_has_weights_of_views(data, model):
    X, score = data
    several = np.stack([score, score**2, X[:, 3]], axis=1)
    model.fit(X, several if isinstance(model, MKLRegressor) else np.digitize(score, [-0.5, 0.5]))
    views = kernel_views(model)
    assert model.weights_.shape == (3, 5)
    for view, weights in model.view_weights_.items():
        np.testing.assert_allclose(weights, model.weights_[:, views == view].sum(axis=1), rtol=1e-12)
    joint = clone(model)
    if "multi_class" in joint.get_params():
        joint.set_params(multi_class="shared").fit(X, np.digitize(score, [-0.5, 0.5]))
        assert all(isinstance(weight, float) for weight in joint.view_weights_.values())


def test_where_there_is_one_view_there_are_no_weights_of_views(data):
    X, score = data
    y = np.digitize(score, [0.0])
    model = MKLClassifier(kw.gaussian([1.0, 2.0]))
    for one in (model, model.fit(X, y)):
        assert not hasattr(one, "view_weights_")
        with pytest.raises(AttributeError, match="kernels of several views"):
            _ = one.view_weights_
    stack = np.stack([X[:, :2] @ X[:, :2].T, X[:, 2:] @ X[:, 2:].T])
    given = MKLClassifier("precomputed").fit(stack, y)
    assert list(given.view_weights_.values()) == given.weights_.tolist()
    assert list(given.view_weights_) == given.kernel_names_.tolist()


def test_sums_of_many_views_take_no_time():
    names = [f"view {j // 2}" for j in range(40_000)]
    weights = np.random.default_rng(0).random((2, len(names)))
    given = FittedModel(
        weights, weights, 0.0, np.array(names, dtype=object), "l1", np.ones(40_000, dtype=bool), ""
    )
    sums = given.weights_of_views
    assert len(sums) == 20_000
    np.testing.assert_allclose(sums["view 7"], weights[:, 14:16].sum(axis=1))
