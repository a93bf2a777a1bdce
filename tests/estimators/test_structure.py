"""Groups of kernels, kernels that always count and at most k kernels, through the estimators."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from kernelweave import (
    BestKernelClassifier,
    LPBetaClassifier,
    MKLClassifier,
    MKLClassifierCV,
    MKLRegressor,
    MKLRegressorCV,
    mkl_path,
    norms,
)
from kernelweave import kernels as kw
from kernelweave.inspection import drop_view, view_subsets, weight_stability
from kernelweave.persistence import load, save
from kernelweave.report import make_report

VIEWS = {"signal": [0, 1], "noise": [2, 3], "more": [4, 5]}
BANK = kw.per_view(VIEWS, kw.gaussian([1.0, 2.0]))


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 6))
    return X, np.where(X[:, 0] + X[:, 1] + 0.3 * rng.normal(size=60) > 0, "yes", "no")


def test_groups_are_the_views_of_the_bank(data):
    X, y = data
    model = MKLClassifier(BANK, norm=norms.Grouped("l1", 2)).fit(X, y)
    assert model.status_ == "converged"
    assert list(model.view_weights_) == list(VIEWS)
    assert max(model.view_weights_, key=model.view_weights_.get) == "signal"
    pairs = model.weights_.reshape(3, 2)
    np.testing.assert_allclose(list(model.view_weights_.values()), np.sqrt((pairs**2).sum(axis=1)))
    # a view comes with all of its kernels or not at all
    assert np.all((pairs > 0).all(axis=1) | (pairs == 0).all(axis=1))
    table = weight_stability(model, X, y, n_refits=2, random_state=0).by_view()
    assert table["view"].tolist() == list(VIEWS)
    # with another norm the weights of a view are added up
    model.set_params(norm=2).fit(X, y)
    assert not hasattr(model, "kernel_groups_")
    np.testing.assert_allclose(list(model.view_weights_.values()), model.weights_.reshape(3, 2).sum(axis=1))


def test_groups_by_name_and_one_against_the_rest(data):
    X, _ = data
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    names = [kernel.name for kernel in BANK.expand(kw.Schema(6))]
    norm = norms.Grouped(2, "l1", {"narrow": names[::2], "wide": names[1::2]})
    model = MKLClassifier(BANK, norm=norm, multi_class="ovr").fit(X, y)
    assert {name: weight.shape for name, weight in model.view_weights_.items()} == {
        "narrow": (3,),
        "wide": (3,),
    }
    with pytest.raises(ValueError, match=r"Did you mean"):
        MKLClassifier(BANK, norm=norms.Grouped(groups={"a": [names[0] + "x"]})).fit(X, y)
    with pytest.raises(ValueError, match="only matrices"):
        MKLClassifier("precomputed", norm=norms.Grouped()).fit(np.stack([np.eye(60)] * 2), y)


@pytest.mark.parametrize(
    ("norm", "words"),
    [
        (norms.Elastic("much"), "alpha of Elastic must be a finite number"),
        (norms.ElasticBlocks(0), "mix = 0 is norm=np.inf"),
        (norms.Grouped(groups={}), "names no group"),
        (norms.Grouped(groups={"a": []}), "'a' has no kernels"),
        (norms.Grouped(groups={"a": [1.5]}), "1.5, which is no kernel's name or number"),
        (norms.Grouped(groups={"a": None}), "None, which is no kernel's name or number"),
        (norms.Grouped(groups={"a": ["linear on features 2, 3"]}), "always counts .* leave it out of 'a'"),
        (norms.Grouped(groups=["a", "b"]), "2 groups for 7 kernels"),
    ],
)
def test_what_cannot_be_is_said_with_the_way_out(data, norm, words):
    with pytest.raises(ValueError, match=words):
        MKLClassifier(kw.always(kw.linear().on([2, 3])) + BANK, norm=norm).fit(*data)


def test_numbers_of_kernels_are_those_of_the_bank(data):
    """Kernels that always count are counted, too."""
    norm = norms.Grouped("l1", 2, {"first": [1, 2]})
    model = MKLClassifier(kw.always(kw.linear().on([2, 3])) + BANK, norm=norm).fit(*data)
    assert model.kernel_groups_[:4].tolist() == ["always counts", "first", "first", model.kernel_names_[3]]


def test_groups_by_name_are_what_inspection_shows(data):
    X, y = data
    names = [kernel.name for kernel in BANK.expand(kw.Schema(6))]
    norm = norms.Grouped("l1", 2, {"narrow": names[::2], "wide": names[1::2]})
    model = MKLClassifier(kw.always(kw.linear().on([2, 3]), 0.5) + BANK, norm=norm, C=0.3).fit(X, y)
    assert model.kernel_groups_.tolist() == ["always counts", *["narrow", "wide"] * 3]
    stability = weight_stability(model, X, y, n_refits=2, random_state=0)
    table = stability.by_view().set_index("view")
    assert table.index.tolist() == ["always counts", "narrow", "wide"]
    # shares of the weights that the norm gives its groups, and of those that were given
    total = 0.5 + sum(model.view_weights_.values())
    assert table["weight"].tolist() == pytest.approx(
        [0.5 / total, model.view_weights_["narrow"] / total, model.view_weights_["wide"] / total]
    )
    # kernels leave with a view, and their groups keep the others; a part that is given can be all that is left
    less = drop_view(model, X, y, "noise", n_folds=2).model
    assert less.kernel_groups_.tolist() == ["always counts", *["narrow", "wide"] * 2]
    assert clone(less).fit(X, y).kernel_groups_.tolist() == less.kernel_groups_.tolist()
    assert {"features 2, 3"} <= set(view_subsets(model, X, y, n_folds=2)["views"])
    page = make_report(model, X, y, n_folds=2, n_repeats=1)
    assert "always counts" in page
    assert "best single kernel" not in page


def test_a_kernel_that_always_counts(data, tmp_path):
    X, y = data
    bank = kw.always(kw.linear().on([2, 3]), weight=3.0) + BANK
    model = MKLClassifier(bank, tol=1e-5).fit(X, y)
    assert model.weights_[0] == 3.0
    assert model.weights_[1:].sum() == pytest.approx(1.0)
    # the same objective with the weights as they are: nothing about the fixed part was lost
    given = MKLClassifier(bank.parts[0].kernel + BANK, norm=norms.Fixed(model.weights_), tol=1e-6).fit(X, y)
    assert given.certificate_.primal == pytest.approx(model.certificate_.primal, rel=1e-4)
    save(model, tmp_path / "model.kw")
    loaded = load(tmp_path / "model.kw")
    np.testing.assert_allclose(loaded.decision_function(X), model.decision_function(X))
    assert clone(model).fit(X, y).weights_[0] == 3.0


def test_a_large_weight_is_a_covariate_without_a_penalty(data):
    X, _ = data
    target = 2.0 * X[:, 2] - X[:, 3]
    bank = kw.always(kw.linear().on([2, 3]), weight=1e5) + kw.gaussian(1.0).on([4, 5])
    model = MKLRegressor(bank, C=0.01).fit(X, target)
    np.testing.assert_allclose(model.predict(X), target, atol=0.02)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda bank: BestKernelClassifier(bank), "takes the weights of all kernels from a rule"),
        (lambda bank: MKLClassifier(bank, solver="level"), r"needs norm='l1'.*'newton'"),
        (lambda bank: MKLClassifier(kw.always(kw.linear())), "nothing is left to learn"),
    ],
)
def test_refusals_come_before_any_work(data, make, words):
    with pytest.raises(ValueError, match=words):
        make(kw.always(kw.linear()) + BANK).fit(*data)


def test_at_most_k_kernels(data, tmp_path):
    X, y = data
    model = MKLClassifier(BANK, norm=norms.AtMost(2)).fit(X, y)
    assert model.solver_ == "outer_approximation"
    assert model.status_ == "converged"
    assert sorted(model.weights_)[-3:] == [0.0, 0.5, 0.5]
    save(model, tmp_path / "model.kw")
    assert load(tmp_path / "model.kw").certificate_.dual == model.certificate_.dual


def test_searches_and_paths_take_them(data):
    X, y = data
    tried = ["l1", norms.Grouped(), norms.ElasticNet(0.5), norms.AtMost(1)]
    search = MKLClassifierCV(BANK, norms=tried, Cs=[0.1, 1.0], cv=2, tol=1e-2).fit(X, y)
    assert set(search.cv_results_["norm"]) == {"l1", "grouped(1, 2)", "elastic net(0.5)", "at most 1"}
    path = mkl_path(X, y, kw.always(kw.linear()) + BANK, norm=norms.Grouped(), Cs=[0.1, 1.0])
    assert max(certificate.relative_gap for certificate in path.certificates) <= 1e-3


def test_a_kernel_that_always_counts_does_so_in_a_search_too_and_is_refused_where_a_rule_weighs():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = X[:, 0] + 0.1 * rng.normal(size=40)
    bank = kw.gaussian([1.0, 2.0]) + kw.always(kw.linear(), 0.7)
    search = MKLRegressorCV(bank, Cs=[0.1, 1.0], cv=2).fit(X, y)
    straight = MKLRegressor(bank, C=search.C_, center=True).fit(X, y)
    assert search.weights_[-1] == straight.weights_[-1] == 0.7
    np.testing.assert_allclose(search.weights_, straight.weights_, atol=1e-2)
    with pytest.raises(ValueError, match=r"LPBetaClassifier takes the weights .* kernels.always"):
        LPBetaClassifier(bank, n_folds=2).fit(X, y > 0)
