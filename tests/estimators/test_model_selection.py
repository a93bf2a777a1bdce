"""Inside scikit-learn: search, cross-validation, pipelines, clones, pickles, routed metadata, calibration."""

from __future__ import annotations

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import BaggingClassifier
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from sklearn.multiclass import OneVsOneClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kernelweave
from kernelweave import MKLClassifier, MKLClassifierCV, MKLRegressor, MKLRegressorCV, norms, solvers
from kernelweave import kernels as kw

from . import by_hand
from .data import bank, spectrum
from .test_inputs import words

ALL = [
    "AlignmentClassifier",
    "BestKernelClassifier",
    "MKLClassifier",
    "MKLRegressor",
    "MeanKernelClassifier",
    "MeanKernelRidgeClassifier",
    "MeanKernelRidgeRegressor",
]


@pytest.fixture(scope="module")
def binary():
    return by_hand.moons(80, noise=0.5)


# ---- search --------------------------------------------------------------------------------------------------------


def test_search_over_cost_norm_and_solver(binary):
    X, y = binary
    grid = [
        {"C": [0.01, 1.0], "norm": ["l1"], "solver": ["newton", "level", "simplemkl"]},
        {"C": [0.01, 1.0], "norm": [1.5, "entropy", "uniform"], "solver": ["auto"]},
    ]
    search = GridSearchCV(MKLClassifier(bank()), grid, cv=StratifiedKFold(3)).fit(X, y)
    results = pd.DataFrame(search.cv_results_)
    assert len(results) == 12
    assert not results["mean_test_score"].isna().any()
    assert search.best_params_["C"] == 1.0
    assert search.best_score_ > 0.8
    # the same problem by another method is the same answer
    same = results[(results["param_norm"] == "l1") & (results["param_C"] == 1.0)]["mean_test_score"]
    assert same.max() - same.min() < 0.03


def test_search_over_parameters_of_kernels_losses_norms_and_solvers(binary):
    X, y = binary
    clf = MKLClassifier(kw.gaussian(1.0), norm=norms.Lp(2.0), solver=solvers.registry["newton"]())
    assert {"kernels__width", "norm__p", "solver__cuts"} <= set(clf.get_params())
    grid = {"kernels__width": [1e-3, 0.7], "norm__p": [1.5, 3.0], "solver__cuts": [5]}
    search = GridSearchCV(clf, grid, cv=3).fit(X, y)
    assert search.best_params_["kernels__width"] == 0.7
    assert search.best_estimator_.kernel_names_[0] == "gaussian(width=0.7)"
    assert clf.kernels.width == 1.0  # the original is as it was

    search = GridSearchCV(
        MKLClassifier(kw.gaussian(1.0)), {"kernels": [kw.gaussian(1e-3), bank(), "stpmkl", None]}, cv=3
    ).fit(X, y)
    scores = search.cv_results_["mean_test_score"]
    assert np.argmin(scores) == 0
    assert not np.isnan(scores).any()
    nested = GridSearchCV(
        MKLRegressor(kw.gaussian(1.0).on([0, 1]), loss=kernelweave.losses.EpsilonInsensitive(0.1)),
        {"kernels__kernel__width": [1e-3, 1.0], "loss__epsilon": [0.05, 0.2]},
        cv=KFold(3),
    ).fit(*by_hand.curve(60))
    assert nested.best_params_["kernels__kernel__width"] == 1.0


def test_search_over_held_kernels(binary):
    X, y = binary
    stack = by_hand.raw_stack(X, X)
    holder = kw.held(stack)
    index = np.arange(len(y)).reshape(-1, 1)
    cv = StratifiedKFold(5, shuffle=True, random_state=0)
    grid = {"C": [0.1, 1.0, 10.0], "norm": ["l1", 2.0]}
    held = GridSearchCV(MKLClassifier(holder), grid, cv=cv).fit(index, y)
    known = GridSearchCV(MKLClassifier(bank()), grid, cv=cv).fit(X, y)
    assert held.best_estimator_.kernels is holder  # no copy of the stack was made
    np.testing.assert_allclose(
        held.cv_results_["mean_test_score"], known.cv_results_["mean_test_score"], atol=0.02
    )
    assert held.best_score_ > 0.8

    scores = cross_val_score(MKLClassifier(holder), index, y, cv=cv)
    np.testing.assert_allclose(scores, cross_val_score(MKLClassifier(bank()), X, y, cv=cv), atol=0.07)
    assert scores.shape == (5,)
    # a fold by hand: training indices in, the cross block out
    train, test = next(iter(cv.split(X, y)))
    by_fold = MKLClassifier("precomputed").fit(stack[:, train][:, :, train], y[train])
    assert by_fold.score(stack[:, test][:, :, train], y[test]) == pytest.approx(scores[0])


def test_held_kernels_with_a_list_of_indices(binary):
    X, y = binary
    holder = kw.held(by_hand.raw_stack(X, X))
    column = cross_val_score(MKLClassifier(holder), np.arange(80)[:, None], y, cv=3)
    assert np.array_equal(cross_val_score(MKLClassifier(holder), list(range(80)), y, cv=3), column)
    assert np.array_equal(cross_val_score(MKLClassifier(holder), np.arange(80), y, cv=3), column)


def test_raw_stack_in_a_search_is_refused_with_advice(binary):
    X, y = binary
    stack = by_hand.raw_stack(X, X)
    search = GridSearchCV(MKLClassifier("precomputed"), {"C": [0.1, 1.0]}, cv=5, error_score="raise")
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        search.fit(stack, y)
    # as many kernels as samples: scikit-learn does not notice, so we must
    square = np.stack([stack[2]] * 80)
    with pytest.raises(ValueError, match=r"kernels\.held\(stack\) and sample indices as X"):
        search.fit(square, y)
    with pytest.raises(ValueError, match=r"kernels\.held\(stack\) and sample indices as X"):
        cross_val_score(MKLClassifier("precomputed"), square, y, error_score="raise")


def test_strings_in_cross_validation():
    found, y = words(40)
    clf = MKLClassifier(kw.function(spectrum))
    assert cross_val_score(clf, found, y, cv=4).mean() > 0.6
    search = GridSearchCV(clf, {"C": [0.1, 10.0]}, cv=3).fit(found, y)
    assert search.predict(found[:4]).shape == (4,)


def test_jobs_in_a_search(binary):
    X, y = binary
    grid = {"C": [0.1, 1.0]}
    one = GridSearchCV(MKLClassifier(bank()), grid, cv=3).fit(X, y)
    two = GridSearchCV(MKLClassifier(bank()), grid, cv=3, n_jobs=2).fit(X, y)
    np.testing.assert_allclose(one.cv_results_["mean_test_score"], two.cv_results_["mean_test_score"])


# ---- pipelines, groups, meta-estimators ----------------------------------------------------------------------------


def test_pipeline(binary):
    X, y = binary
    far = X * [1.0, 100.0, 0.01, 1.0] + 7.0
    pipe = make_pipeline(StandardScaler(), MKLClassifier(kw.gaussian([0.5, 1.0, 2.0])))
    by_hand_scaled = StandardScaler().fit_transform(far)
    alone = MKLClassifier(kw.gaussian([0.5, 1.0, 2.0])).fit(by_hand_scaled, y)
    np.testing.assert_allclose(
        pipe.fit(far, y).decision_function(far), alone.decision_function(by_hand_scaled)
    )
    search = GridSearchCV(pipe, {"mklclassifier__C": [0.1, 1.0], "mklclassifier__norm": ["l1", 2]}, cv=3)
    assert search.fit(far, y).score(far, y) > 0.8
    frame = pd.DataFrame(far, columns=list("abcd"))
    named = make_pipeline(
        StandardScaler().set_output(transform="pandas"), MKLClassifier(kw.gaussian(1.0).on(["a", "b"]))
    ).fit(frame, y)
    assert list(named[-1].kernel_names_) == ["gaussian(width=1) on a, b"]


def test_groups(binary):
    X, y = binary
    groups = np.arange(80) // 8
    scores = cross_val_score(MKLClassifier(bank()), X, y, groups=groups, cv=GroupKFold(4))
    by_fold = [
        MKLClassifier(bank()).fit(X[train], y[train]).score(X[test], y[test])
        for train, test in GroupKFold(4).split(X, y, groups)
    ]
    np.testing.assert_allclose(scores, by_fold)
    search = GridSearchCV(MKLClassifier(bank()), {"C": [0.1, 1.0]}, cv=GroupKFold(4)).fit(X, y, groups=groups)
    assert search.best_score_ > 0.7


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_calibration(binary, method):
    X, y = binary
    model = CalibratedClassifierCV(MKLClassifier(bank()), method=method, cv=3).fit(X, y)
    found = model.predict_proba(X)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert np.mean((found[:, 1] > 0.5) == (y > 0)) > 0.8
    assert np.corrcoef(found[:, 1], y)[0, 1] > 0.6


def test_other_meta_estimators(binary):
    X, y = binary
    assert (
        BaggingClassifier(MKLClassifier(bank()), n_estimators=3, random_state=0).fit(X, y).score(X, y) > 0.8
    )
    A, labels = by_hand.blobs(60)
    pairs = OneVsOneClassifier(MKLClassifier(kw.gaussian([1.0, 2.0]))).fit(A, labels)
    assert len(pairs.estimators_) == 3
    assert pairs.score(A, labels) > 0.7
    X, y = by_hand.curve(60)
    model = TransformedTargetRegressor(MKLRegressor(bank(), C=10.0), func=np.arcsinh, inverse_func=np.sinh)
    assert cross_val_predict(model, X, y, cv=3).shape == (60,)
    assert model.fit(X, y).score(X, y) > 0.8


# ---- routing -------------------------------------------------------------------------------------------------------


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def test_routed_weights_reach_the_fit(binary, routing):
    X, y = binary
    weight = np.where(np.arange(80) % 3 == 0, 5.0, 0.1)
    clf = MKLClassifier(kw.gaussian([0.5, 1.0])).set_fit_request(sample_weight=True)
    scaler = StandardScaler().set_fit_request(sample_weight=False)
    pipe = make_pipeline(scaler, clf).fit(X, y, sample_weight=weight)
    Z = StandardScaler().fit_transform(X)
    weighted = MKLClassifier(kw.gaussian([0.5, 1.0])).fit(Z, y, sample_weight=weight)
    plain = MKLClassifier(kw.gaussian([0.5, 1.0])).fit(Z, y)
    np.testing.assert_allclose(pipe.decision_function(X), weighted.decision_function(Z))
    assert np.abs(weighted.decision_function(Z) - plain.decision_function(Z)).max() > 0.1


def test_routed_weights_in_cross_validation(binary, routing):
    X, y = binary
    weight = np.where(np.arange(80) % 3 == 0, 5.0, 0.1)
    cv = KFold(4, shuffle=True, random_state=0)
    clf = MKLClassifier(bank()).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    found = cross_validate(clf, X, y, cv=cv, params={"sample_weight": weight}, return_estimator=True)
    for k, (train, test) in enumerate(cv.split(X)):
        mine = MKLClassifier(bank()).fit(X[train], y[train], sample_weight=weight[train])
        np.testing.assert_allclose(found["estimator"][k].dual_coef_, mine.dual_coef_)
        assert found["test_score"][k] == pytest.approx(
            mine.score(X[test], y[test], sample_weight=weight[test])
        )

    search = GridSearchCV(clf, {"C": [0.1, 1.0]}, cv=GroupKFold(4))
    search.fit(X, y, sample_weight=weight, groups=np.arange(80) // 8)
    assert search.best_estimator_.certificate_.relative_gap <= 1e-3


def test_weights_that_were_not_asked_for_are_an_error(binary, routing):
    X, y = binary
    with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError, match="sample_weight"):
        cross_validate(MKLClassifier(bank()), X, y, params={"sample_weight": np.ones(80)})


# ---- copies --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
def test_clone_and_pickle(name):
    regression = name.endswith("Regressor")
    X, y = by_hand.curve(40) if regression else by_hand.blobs(40)
    make = getattr(kernelweave, name)
    chosen = {key: value for key, value in {"C": 2.0, "norm": 1.5}.items() if key in make().get_params()}
    model = make(bank(), **chosen)
    fresh = clone(model)
    assert fresh is not model
    assert fresh.get_params(deep=False).keys() == model.get_params(deep=False).keys()
    assert not hasattr(fresh, "dual_coef_")
    assert {key: getattr(fresh, key) for key in chosen} == chosen
    model.fit(X, y)
    np.testing.assert_allclose(clone(model).fit(X, y).predict(X), model.predict(X))
    for restored in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert np.array_equal(restored.predict(X), model.predict(X))
        assert np.array_equal(restored.weights_, model.weights_)
        assert restored.certificate_.relative_gap == model.certificate_.relative_gap
        assert restored.trace_.equals(model.trace_)
        np.testing.assert_allclose(restored.fit(X, y).predict(X), model.predict(X))


SPECS = {
    "stack": lambda: (bank(), None),
    "default": lambda: (None, None),
    "preset": lambda: ("stpmkl", None),
    "relative": lambda: (kw.gaussian([0.5, 1.0], relative=True) + kw.laplacian(1.0, relative=True), None),
    "products": lambda: (kw.gaussian([0.5, 1.0]) * kw.linear() + kw.summed(kw.linear(), kw.constant()), None),
    "approximate": lambda: (kw.nystroem(kw.gaussian(1.0), rank=10) + kw.random_fourier(1.0, 20), None),
    "function": lambda: (kw.function(spectrum), words(80)[0]),
    "held": lambda: (kw.held(by_hand.raw_stack(*2 * [by_hand.moons(80)[0]])), np.arange(80)[:, None]),
    "precomputed": lambda: ("precomputed", by_hand.raw_stack(*2 * [by_hand.moons(80)[0]])),
}


@pytest.mark.parametrize("kind", SPECS)
def test_every_kind_of_bank_clones_and_pickles(kind):
    spec, samples = SPECS[kind]()
    X, y = by_hand.moons(80)
    X = X if samples is None else samples
    model = MKLClassifier(spec).fit(X, y)
    values = model.decision_function(X)
    np.testing.assert_allclose(clone(model).fit(X, y).decision_function(X), values, atol=1e-10)
    restored = pickle.loads(pickle.dumps(model))
    np.testing.assert_allclose(restored.decision_function(X), values, atol=1e-12)
    assert repr(model).startswith("MKLClassifier(")
    assert model._repr_html_()


def test_a_pickle_holds_the_support_alone():
    """Prediction needs the support vectors: nothing of size n by n, nor the other samples, is kept."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(200, 50)) + 2, rng.normal(size=(200, 50)) - 2])
    y = np.repeat([0, 1], 200)
    model = MKLClassifier(kw.gaussian([5.0, 10.0]), C=10.0).fit(X, y)
    assert model.support_.size < 200
    assert len(pickle.dumps(model)) < 0.6 * X.nbytes + 40_000


def test_scores_that_no_fold_has_are_refused_before_any_fit():
    """R2 and the area under a curve mean nothing on one sample; the sentence says so, and what to do."""
    from sklearn.model_selection import LeaveOneOut

    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 2))
    fits = []

    def watch(row):
        fits.append(row)

    regressor = MKLRegressorCV(kw.linear(), cv=LeaveOneOut(), scoring="r2", callback=watch)
    with pytest.raises(
        ValueError, match=r"scoring='r2' .*20 folds of one sample.*scoring='neg_mean_squared_error'"
    ):
        regressor.fit(X, X[:, 0])
    with pytest.raises(ValueError, match=r"scoring='roc_auc' .*one sample.*scoring='accuracy'"):
        MKLClassifierCV(kw.linear(), cv=LeaveOneOut(), scoring="roc_auc", callback=watch).fit(X, X[:, 0] > 0)

    def broken(estimator, X, y):
        raise RuntimeError("no score today")

    def nothing(estimator, X, y):
        return float("nan")

    for scoring, why in ((broken, "RuntimeError: no score today"), (nothing, "not a number")):
        with pytest.raises(ValueError, match=why):
            MKLRegressorCV(kw.linear(), scoring=scoring, callback=watch).fit(X, X[:, 0])
        with pytest.raises(ValueError, match=why):
            MKLClassifierCV(kw.linear(), scoring=scoring, callback=watch).fit(X, X[:, 0] > 0)
    assert not fits
    assert not hasattr(regressor, "weights_")


def test_scores_that_single_samples_have_go_with_folds_of_one():
    from sklearn.model_selection import LeaveOneOut

    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 2))
    y = X[:, 0] + 0.1 * rng.normal(size=12)
    options = {"cv": LeaveOneOut(), "Cs": [0.1, 1.0]}
    model = MKLRegressorCV(kw.linear(), scoring="neg_mean_squared_error", **options).fit(X, y)
    assert np.all(np.isfinite(model.cv_results_["score"]) != model.cv_results_["dropped"])
    model = MKLClassifierCV(kw.linear(), **options).fit(X, np.arange(12) % 2)
    assert np.all(np.isfinite(model.cv_results_["score"]) != model.cv_results_["dropped"])


def test_a_score_that_only_some_folds_have_is_averaged_over_these():
    """One fold has a single sample with weight, of which R2 is undefined, another none at all."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 2))
    y = X[:, 0] + 0.1 * rng.normal(size=20)
    weight = np.ones(20)
    weight[:4], weight[4:7] = 0.0, 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MKLRegressorCV(kw.linear(), cv=KFold(5), Cs=[0.1, 1.0]).fit(X, y, sample_weight=weight)
    table = model.cv_results_.pivot(index="fold", columns="C", values="score")
    assert np.all(np.isnan(table.loc[[0, 1]]))
    assert model.scores_ == pytest.approx(table.mean()[model.C_])
    errors = model.cv_results_.pivot(index="fold", columns="C", values="squared_error")
    assert np.all(np.isnan(errors.loc[0]))
    dropped = model.cv_results_.pivot(index="fold", columns="C", values="dropped")
    assert np.all(np.isfinite(errors.loc[1:]) != dropped.loc[1:])
    assert errors.mean().idxmin() == model.C_


def test_scores_that_become_undefined_in_the_search_are_told():
    calls = []

    def once(estimator, X, y):
        calls.append(len(y))
        return 1.0 if len(calls) == 1 else float("nan")

    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 2))
    with pytest.raises(ValueError, match="scores of held-out samples are undefined"):
        MKLRegressorCV(kw.linear(), scoring=once, Cs=[1.0]).fit(X, X[:, 0])


@pytest.mark.parametrize(
    "search", [MKLClassifierCV(center=True, normalize="cosine"), MKLRegressorCV(normalize="cosine")]
)
def test_folds_cannot_share_kernels_that_are_centred_and_brought_to_length_one(search, binary):
    X, y = binary
    with pytest.raises(
        ValueError, match=r"cannot share a bank that is centred and cosine-normalised.*GridSearchCV"
    ):
        search.fit(X, y)
