"""Models without a view, and on every subset of views."""

import time

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline

from kernelweave import MKLClassifier, MKLRegressor, Views, ViewScaler
from kernelweave import kernels as kw
from kernelweave.inspection import add_view, drop_view, view_p_values, view_subsets, weight_stability
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


@pytest.mark.parametrize(("lost", "missing"), [(0.0, "error"), (0.0, "predict"), (0.3, "predict")])
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


def test_subsets_of_models_one_against_the_rest():
    X, y = samples()
    y = y + (X["noise"][:, 0] > 0.8)
    model = MKLClassifier(KERNELS, norm=2, multi_class="ovr", tol=1e-6).fit(X, y)
    folds = list(StratifiedKFold(2, shuffle=True, random_state=0).split(y, y))
    table = view_subsets(model, X, y, splits=folds).set_index("views")
    expected = cross_val_score(clone(model), X.only(["first", "noise"]), y, cv=folds).mean()
    assert table.loc["first, noise", "score"] == pytest.approx(expected)


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


@pytest.mark.parametrize("lost", [0.0, 0.3])
@pytest.mark.parametrize("pipeline", [False, True])
def test_a_view_that_comes_late_gives_the_model_of_all_views(lost, pipeline):
    X, y = samples(lost=lost)
    missing = "predict" if lost else "error"
    model = MKLClassifier(KERNELS, norm=2, C=0.5, missing=missing, tol=1e-8)
    model = make_pipeline(ViewScaler(), model) if pipeline else model
    early = clone(model).fit(X.only(["first", "noise"]), y)
    more = add_view(early, X.only(["first", "noise"]), y, "second", X["second"])
    whole = X.only(["first", "noise", "second"])
    expected = clone(model).fit(whole, y)
    np.testing.assert_allclose(
        more.model.decision_function(whole), expected.decision_function(whole), atol=1e-3
    )
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    if not pipeline:  # a pipeline scales on all samples before it is compared
        assert more.score_with == pytest.approx(cross_val_score(clone(model), whole, y, cv=folds).mean())
        assert more.score_without == pytest.approx(
            cross_val_score(clone(model), X.only(["first", "noise"]), y, cv=folds).mean()
        )
    again = clone(more.model).fit(whole, y)  # what it is made of can be fitted again
    np.testing.assert_allclose(again.decision_function(whole), expected.decision_function(whole), atol=1e-3)


def test_a_late_view_with_kernels_of_its_own_that_some_samples_lack():
    X, y = samples(lost=0.3)
    first = X.only(["first"])
    early = MKLClassifier(kw.linear().on("first"), norm=2).fit(first, y)
    with pytest.raises(ValueError, match=r"no kernel of the model looks at view 'second'.*kernels="):
        add_view(early, first, y, "second", X["second"], missing="predict")
    with pytest.raises(ValueError, match=r"view 'second' is missing for \d+ of 60.*missing='predict'"):
        add_view(early, first, y, "second", X["second"], kernels=KERNELS)
    more = add_view(early, first, y, "second", X["second"], kernels=KERNELS, missing="predict")
    assert str(more.model.kernel_names_[0]) == "linear on first"
    assert set(more.model.view_predictability_) == {"first", "second"}
    assert more.score_with > more.score_without - 0.1
    assert "without it" in str(more)
    # the late view may come as a table with names, in any order
    names = [f"p{i}" for i in range(60)]
    named = {"first": pd.DataFrame(X["first"], index=names)}
    late = pd.DataFrame(X["second"], index=names)[X.present[:, 1]].sample(frac=1.0, random_state=0)
    by_name = add_view(
        MKLClassifier(kw.linear().on("first"), norm=2).fit(named, pd.Series(y, index=names)), named,
        pd.Series(y, index=names), "second", late, kernels=KERNELS, missing="predict",
    )  # fmt: skip
    assert by_name.score_with == more.score_with


def test_a_model_without_a_view_can_be_fitted_again_with_it_or_without():
    """Its kernels are found by name: numbers of columns mean something else where a table is gone."""
    X, y = samples()
    spec = kw.linear().on("first") + kw.gaussian(1.0, relative=True)
    model = MKLClassifier(spec, norm=2, tol=1e-9).fit(X, y)
    less = drop_view(model, X, y, "first").model
    rest = X.only(["second", "noise"])
    expected = less.decision_function(X)
    np.testing.assert_allclose(less.decision_function(rest), expected, atol=1e-12)
    for samples_again in (X, rest):
        again = clone(less).fit(samples_again, y)
        np.testing.assert_allclose(again.decision_function(samples_again), expected, atol=1e-3)
    back = add_view(less, rest, y, "first", X["first"], kernels=kw.gaussian(1.0, relative=True))
    assert back.score_without < back.score_with + 0.1
    with pytest.raises(ValueError, match=r"no view or columns for kernel 'gaussian.* on second'"):
        clone(less).fit(X.only(["noise"]), y)


def test_what_a_view_cannot_be_added_to_is_refused():
    X, y = samples()
    table = np.asarray(X, dtype=float)
    bank = kw.per_view(X.groups, kw.linear())
    with pytest.raises(ValueError, match="fitted on a dict of views"):
        add_view(MKLClassifier(bank).fit(table, y), table, y, "late", table[:, :2])
    model = MKLClassifier(KERNELS).fit(X, y)
    with pytest.raises(ValueError, match="there is a view 'noise' already"):
        add_view(model, X, y, "noise", X["noise"])
    with pytest.raises(ValueError, match="has 10 rows, but there are 60"):
        add_view(model, X, y, "late", X["noise"][:10])


def test_inspection_takes_tables_in_any_order():
    """Dicts of tables with names give what views in the order of the labels give."""
    X, y = samples()
    names = [f"p{i}" for i in range(60)]
    labels = pd.Series(y, index=names)
    turned = {
        name: pd.DataFrame(block, index=names).sample(frac=1.0, random_state=k)
        for k, (name, block) in enumerate(X.items())
    }
    model = MKLClassifier(KERNELS, norm=2, tol=1e-6).fit(turned, labels)
    for expected, found in (
        (weight_stability(model, X, y, n_refits=3).scores, weight_stability(model, turned, labels, n_refits=3).scores),
        (view_p_values(model, X, y, n_permutations=9)["p_value"], view_p_values(model, turned, labels, n_permutations=9)["p_value"]),
        (view_subsets(model, X, y)["score"], view_subsets(model, turned, labels)["score"]),
        (drop_view(model, X, y, "noise").score_without, drop_view(model, turned, labels, "noise").score_without),
    ):  # fmt: skip
        np.testing.assert_allclose(np.asarray(found, dtype=float), np.asarray(expected, dtype=float))
