"""Models without a view, and on every subset of views."""

import time

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline

from kernelweave import MKLClassifier, MKLRegressor, Views, ViewScaler
from kernelweave import kernels as kw
from kernelweave.inspection import drop_view, view_subsets
from kernelweave.norms import Grouped

KERNELS = kw.gaussian([1.0, 2.0], relative=True)


def samples(n=60, lost=0.0, seed=0):
    """Two views that know the class and one that does not."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    views = {
        "first": rng.normal(size=(n, 5)) + 0.8 * y[:, None],
        "second": rng.normal(size=(n, 4)) + 0.8 * y[:, None],
        "noise": rng.normal(size=(n, 6)),
    }
    for name in ("second", "noise"):
        views[name][rng.random(n) < lost] = np.nan
    return Views(views), y


@pytest.mark.parametrize(("lost", "missing"), [(0.0, "error"), (0.3, "predict")])
def test_scores_are_those_of_fits_without_the_views(lost, missing):
    X, y = samples(lost=lost)
    model = MKLClassifier(KERNELS, norm=2, C=0.5, missing=missing, tol=1e-6).fit(X, y)
    table = view_subsets(model, X, y).set_index("views")
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    assert len(table) == 7
    for names in (["first"], ["first", "noise"]):
        some = X.only(names)
        if not some.present.any(axis=1).all():
            continue
        expected = cross_val_score(clone(model), some, y, cv=folds).mean()
        assert table.loc[", ".join(names), "score"] == pytest.approx(expected)


@pytest.mark.parametrize(("lost", "missing"), [(0.0, "error"), (0.3, "mean")])
def test_a_dropped_view_need_not_be_there_any_more(lost, missing):
    X, y = samples(lost=lost)
    model = make_pipeline(ViewScaler(), MKLClassifier(KERNELS, norm=2, missing=missing, tol=1e-9)).fit(X, y)
    less = drop_view(model, X, y, "noise")
    assert less.score_without > 0.6
    assert "without it" in str(less)
    rest = X.only(["first", "second"])
    alone = make_pipeline(ViewScaler(), MKLClassifier(KERNELS, norm=2, missing=missing, tol=1e-9)).fit(
        rest, y
    )
    np.testing.assert_allclose(less.model.decision_function(rest), alone.decision_function(rest), atol=1e-3)
    assert less.model[-1].certificate_.relative_gap <= 1e-9
    with pytest.raises(ValueError, match="no view 'nose'"):
        drop_view(model, X, y, "nose")


def test_subsets_of_a_regression():
    X, y = samples()
    target = X["first"][:, 0] + 0.1 * y
    table = view_subsets(MKLRegressor(KERNELS).fit(X, target), X, target)
    assert "first" in table["views"][0]


def test_all_subsets_of_three_views_are_quick():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 150)
    X = {
        name: rng.normal(size=(150, d)) + y[:, None] * 0.2 for name, d in (("a", 200), ("b", 184), ("c", 142))
    }
    model = MKLClassifier(kw.gaussian(1.0, relative=True), norm=2).fit(X, y)
    view_subsets(model, X, y)
    began = time.process_time()
    view_subsets(model, X, y)
    assert time.process_time() - began < 5.0


def test_groups_of_kernels_are_those_of_the_subset():
    """A norm with groups is bound to the kernels of every subset, and a fixed part stays outside of it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 6))
    y = X[:, 0] + X[:, 2] > 0
    bank = kw.per_view({"a": [0, 1], "b": [2, 3], "c": [4, 5]}, kw.linear(), kw.gaussian(2.0))
    model = MKLClassifier(bank, norm=Grouped(groups="views")).fit(X, y)
    without = drop_view(model, X, y, "c").model
    assert set(without.view_weights_) == {"a", "b"}
    straight = MKLClassifier(
        kw.per_view({"a": [0, 1], "b": [2, 3]}, kw.linear(), kw.gaussian(2.0)), norm=Grouped(groups="views")
    ).fit(X, y)
    np.testing.assert_allclose(without.decision_function(X), straight.decision_function(X), atol=1e-2)
