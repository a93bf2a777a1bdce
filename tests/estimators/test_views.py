"""Estimators on views: dicts of tables in, missing views completed, from fit to saved file."""

import warnings
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline

from kernelweave import (
    AlignmentClassifier,
    BestKernelClassifier,
    KernelFeatures,
    LPBetaClassifier,
    MeanKernelClassifier,
    MeanKernelRidgeClassifier,
    MeanKernelRidgeRegressor,
    MKLClassifier,
    MKLClassifierCV,
    MKLRegressor,
    MKLRegressorCV,
    NoisyLabelMKLClassifier,
    Views,
    ViewScaler,
    mkl_path,
)
from kernelweave import kernels as kw
from kernelweave.banks import completed_bank
from kernelweave.exceptions import KernelWeaveWarning
from kernelweave.kernels import Schema, expand_kernels
from kernelweave.losses import make_loss
from kernelweave.norms import Fixed, make_norm
from kernelweave.persistence import load, save
from kernelweave.problems import MKLProblem

N = 90


def tables(seed=0, n=N, lost=0.0):
    """Three tables of patients with an index, and their labels; some patients are absent from some tables."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    cause = rng.normal(size=(n, 3)) + 1.2 * y[:, None]
    names = [f"p{i}" for i in range(n)]
    views = {}
    for k, (view, width) in enumerate({"mrna": 8, "mirna": 5, "protein": 6}.items()):
        values = cause @ rng.normal(size=(3, width)) + rng.normal(size=(n, width))
        frame = pd.DataFrame(values, index=names, columns=[f"{view}{j}" for j in range(width)])
        keep = rng.random(n) >= lost if k else np.ones(n, dtype=bool)
        views[view] = frame[keep].sample(frac=1.0, random_state=seed)
    return views, pd.Series(y, index=names)


def arrays(seed=0, n=N, lost=0.3):
    X, y = tables(seed, n, lost)
    return Views(X, index=y.index), y.to_numpy()


KERNELS = kw.gaussian([1.0, 2.0], relative=True)


def test_a_dict_of_tables_from_fit_to_report(tmp_path):
    from kernelweave.report import make_report

    X, y = tables(lost=0.3)
    model = MKLClassifier(KERNELS, norm=2, missing="predict").fit(X, y)
    assert "on mrna" in model.kernel_names_[0]
    assert set(model.view_predictability_) == {"mrna", "mirna", "protein"}
    assert model.missing_patterns_["samples"].sum() == N - Views(X, index=y.index).present.all(axis=1).sum()
    labels = model.predict(Views(X, index=y.index))
    assert np.mean(labels == y) > 0.8
    views = Views(X, index=y.index)
    train, test, y_train, y_test = train_test_split(views, y.to_numpy(), random_state=0, stratify=y)
    searched = MKLClassifierCV(KERNELS, Cs=[0.1, 1.0], cv=3, missing="predict").fit(train, y_train)
    assert searched.score(test, y_test) > 0.6
    pipeline = make_pipeline(ViewScaler(), MKLClassifier(KERNELS, missing="predict"))
    search = GridSearchCV(pipeline, {"mklclassifier__C": [0.1, 1.0]}, cv=3).fit(views, y)
    assert search.best_score_ > 0.6
    assert cross_val_score(clone(model), views, y, cv=3).mean() > 0.6
    save(search.best_estimator_, tmp_path / "model.kw")
    again = load(tmp_path / "model.kw")
    np.testing.assert_allclose(
        again.decision_function(views), search.best_estimator_.decision_function(views), rtol=1e-10
    )
    page = make_report(search.best_estimator_, views, y.to_numpy(), n_folds=2, n_repeats=1)
    assert "Patterns of missing views" in page
    assert "Subsets of views" in page
    assert "the model does as well on held-out samples" in page or "Every view helps" in page
    assert "protein" in page


def test_samples_are_brought_into_the_order_of_their_labels():
    """Tables in orders of their own, alone, in a pipeline and in a list: labels go by name, never by place."""
    X, y = tables()
    assert not any(X[name].index.equals(y.index) for name in X)
    expected = MKLClassifier(KERNELS).fit(Views(X, index=y.index), y.to_numpy())
    for samples in (X, Views(X), list(X.values())):
        model = MKLClassifier(KERNELS).fit(samples, y)
        np.testing.assert_allclose(model.dual_coef_, expected.dual_coef_, atol=1e-8)
        assert model.score(samples, y) == expected.score(Views(X, index=y.index), y.to_numpy())
    pipeline = make_pipeline(ViewScaler(), MKLClassifier(KERNELS)).fit(X, y)
    assert pipeline.score(X, y) > 0.9
    assert MKLRegressor(KERNELS).fit(X, y).score(X, y) > 0.6
    first = X["mrna"].index
    in_order = MKLClassifier(KERNELS).fit(X, y[first].to_numpy())  # y without names goes with the first table
    # another order of the samples is another way to the optimum, which both reach to their tolerance
    np.testing.assert_allclose(in_order.decision_function(X), expected.decision_function(X), atol=1e-2)


def test_labels_whose_order_is_a_guess_are_refused():
    X, y = tables(lost=0.3)
    turned = {name: X[name] for name in reversed(X)}  # the first table lacks samples
    completing = MKLClassifier(KERNELS, missing="mean")
    for model in (completing, make_pipeline(ViewScaler(), completing)):
        with pytest.raises(ValueError, match=r"y has no names, and view 'protein' has \d+ of the 90.*Series"):
            model.fit(turned, y.to_numpy())
    with pytest.raises(ValueError, match="samples that X does not have, such as 'p"):
        MKLClassifier(KERNELS, missing="mean").fit(Views(X)[np.arange(1, N)], y)


def test_every_form_of_input_gives_the_same_model():
    X, y = tables()
    expected = MKLClassifier(KERNELS).fit(X, y)
    views = Views(X, index=y.index)
    wide = pd.concat([X[name].loc[y.index] for name in X], axis=1)
    bank = kw.per_view(views.groups, KERNELS)
    forms = [
        (MKLClassifier(KERNELS), views),
        (MKLClassifier(KERNELS), {name: X[name].loc[y.index].to_numpy() for name in X}),
        (MKLClassifier(bank), wide),
        (MKLClassifier(bank), wide.to_numpy()),
        (MKLClassifier(kw.per_view({name: list(X[name].columns) for name in X}, KERNELS)), wide),
    ]
    for model, samples in forms:
        model.fit(samples, y.to_numpy())
        np.testing.assert_allclose(model.dual_coef_, expected.dual_coef_, atol=1e-8)
        np.testing.assert_allclose(
            model.decision_function(samples), expected.decision_function(views), atol=1e-8
        )
        assert [str(name) for name in model.kernel_names_] == [str(name) for name in expected.kernel_names_]
    listed = MKLClassifier(KERNELS).fit([X[name].loc[y.index] for name in X], y.to_numpy())
    np.testing.assert_allclose(listed.dual_coef_, expected.dual_coef_, atol=1e-8)
    assert "on view 0" in listed.kernel_names_[0]


def test_a_missing_view_is_refused_by_default_at_fit_and_at_predict():
    X, y = arrays()
    with pytest.raises(ValueError, match=r"is missing for \d+ of 90 samples.*missing='predict'"):
        MKLClassifier(KERNELS).fit(X, y)
    whole, labels = tables()
    model = MKLClassifier(KERNELS).fit(whole, labels)
    with pytest.raises(
        ValueError, match=r"view 'protein' is missing for 90 of 90.*fit the model with.*drop_view"
    ):
        model.predict({name: whole[name] for name in ("mrna", "mirna")})
    with pytest.raises(ValueError, match="missing must be one of"):
        MKLClassifier(KERNELS, missing="zero").fit(whole, labels)


@pytest.mark.parametrize("how", ["mean", "predict"])
def test_training_rows_as_new_rows_and_the_certificate_on_completed_kernels(how):
    X, y = arrays()
    model = MKLClassifier(KERNELS, norm=2, missing=how).fit(X, y)
    bank = completed_bank(expand_kernels(KERNELS, Schema.of(X)), X, how)
    values = bank.mix_product(model.weights_, model.dual_coef_) + model.intercept_
    np.testing.assert_allclose(model.decision_function(X), values, atol=1e-10)
    signs = np.where(y == 1, 1.0, -1.0)
    K = np.tensordot(model.weights_, bank.block(np.arange(N), np.arange(N), np.arange(bank.m)), axes=1)
    norms = model.weights_**2 * bank.quad(model.dual_coef_)
    blocks = np.sqrt(norms)
    omega = np.sum(blocks ** (4 / 3)) ** (3 / 4)  # p = 2 on the weights is 4/3 on the blocks
    primal = 0.5 * omega**2 + np.sum(np.maximum(0, 1 - signs * (K @ model.dual_coef_ + model.intercept_)))
    np.testing.assert_allclose(model.certificate_.primal, primal, rtol=1e-6)
    problem = MKLProblem(bank, make_loss("hinge"), make_norm(2), signs, 1.0)
    assert problem.dual(model.certificate_.dual_point) >= primal * (1 - 2e-3)


def test_one_table_with_gaps_is_cut_by_the_kernels():
    X, y = arrays()
    wide = np.asarray(X, dtype=float)
    model = MKLClassifier(kw.per_view(X.groups, KERNELS), norm=2, missing="predict").fit(wide, y)
    expected = MKLClassifier(KERNELS, norm=2, missing="predict").fit(X, y)
    np.testing.assert_allclose(model.decision_function(wide), expected.decision_function(X), atol=1e-8)
    assert set(model.view_predictability_) == {"mrna", "mirna", "protein"}
    holes = wide.copy()
    holes[0, 0] = np.nan
    with pytest.raises(ValueError, match=r"view 'mrna' contains NaN.*impute"):
        model.fit(holes, y)


def test_matrices_with_a_mask():
    X, y = arrays()
    bank = completed_bank(expand_kernels(kw.gaussian(1.0, relative=True), Schema.of(X)), X, "predict")
    raw = np.full((3, N, N), np.nan)
    for k, part in enumerate(bank.source.parts):
        rows = np.flatnonzero(X.present[:, k])
        raw[k][np.ix_(rows, rows)] = part.bound.kernels[0](X[rows])
    model = MKLClassifier("precomputed", norm=2, missing="predict").fit(raw, y)
    expected = MKLClassifier(kw.gaussian(1.0, relative=True), norm=2, missing="predict").fit(X, y)
    np.testing.assert_allclose(model.decision_function(raw), expected.decision_function(X), atol=1e-7)
    MKLClassifierCV("precomputed", Cs=[1.0], cv=3, missing="predict").fit(raw, y)
    with pytest.raises(ValueError, match="NaN"):
        MKLClassifier("precomputed").fit(raw, y)
    with pytest.warns(KernelWeaveWarning, match="none of the 90 new samples has view 'kernel 2'"):
        model.predict(np.where(np.arange(3)[:, None, None] == 2, np.nan, raw))
    by_class = raw.copy()
    by_class[1][(y == 0) & (np.arange(N) > 5)] = by_class[1][:, (y == 0) & (np.arange(N) > 5)] = np.nan
    with pytest.warns(KernelWeaveWarning, match=r"'kernel 1' is missing for \d+ % of class 0"):
        MKLClassifier("precomputed", missing="mean").fit(by_class, y)
    raw[0, 3, 5] = np.nan
    with pytest.raises(ValueError, match="single entries"):
        MKLClassifier("precomputed", missing="mean").fit(raw, y)


def test_folds_complete_by_their_own_training_samples():
    X, y = arrays()
    splits = [(np.arange(0, N, 2), np.arange(1, N, 2)), (np.arange(1, N, 2), np.arange(0, N, 2))]
    searched = MKLClassifierCV(KERNELS, norm=2, Cs=[0.5], cv=splits, missing="predict", tol=1e-6).fit(X, y)
    scores = [
        MKLClassifier(KERNELS, norm=2, C=0.5, missing="predict", tol=1e-6)
        .fit(X[train], y[train])
        .score(X[test], y[test])
        for train, test in splits
    ]
    np.testing.assert_allclose(searched.cv_results_["score"], scores)


def test_several_classes_weights_regression_and_paths():
    X, y = arrays()
    target = np.nan_to_num(X["mrna"][:, 0]) + y
    assert MKLRegressor(KERNELS, missing="predict").fit(X, target, np.ones(N)).score(X, target) > 0.3
    three = np.digitize(target, np.quantile(target, [1 / 3, 2 / 3]))
    for multi_class in ("joint", "ovr"):
        model = MKLClassifier(KERNELS, missing="predict", multi_class=multi_class).fit(X, three)
        assert model.score(X, three) > 0.5
    assert len(mkl_path(X, y, KERNELS, Cs=[0.1, 1.0], missing="mean").certificates) == 2


ESTIMATORS = [
    MKLClassifier(KERNELS),
    MKLClassifierCV(KERNELS, Cs=[1.0], cv=2),
    NoisyLabelMKLClassifier(KERNELS),
    NoisyLabelMKLClassifier(KERNELS, method="trimmed", noise_rate=0.1),
    LPBetaClassifier(kw.gaussian(1.0, relative=True), n_folds=2, nu=0.2),
    MeanKernelClassifier(KERNELS),
    BestKernelClassifier(KERNELS),
    AlignmentClassifier(KERNELS),
    MeanKernelRidgeClassifier(KERNELS),
    MKLRegressor(KERNELS),
    MeanKernelRidgeRegressor(KERNELS),
    MKLRegressorCV(KERNELS, Cs=[1.0], cv=2),
    MKLRegressorCV(KERNELS, criterion="reml"),
]


@pytest.mark.parametrize("how", ["mean", "predict"])
@pytest.mark.parametrize("model", ESTIMATORS, ids=lambda model: type(model).__name__)
def test_every_estimator_completes_views_and_its_file_predicts_the_same(model, how, tmp_path):
    X, y = arrays()
    fitted = clone(model).set_params(missing=how).fit(X, y)
    assert fitted.score(X, y) > (0.75 if is_classifier(fitted) else 0.3)
    assert set(fitted.view_predictability_) == {"mrna", "mirna", "protein"}
    assert fitted.missing_patterns_["samples"].sum() == np.count_nonzero(~X.present.all(axis=1))
    save(fitted, tmp_path / "model.kw")
    np.testing.assert_allclose(load(tmp_path / "model.kw")._decision(X), fitted._decision(X), atol=1e-9)
    assert (tmp_path / "model.kw").stat().st_size < 200_000
    with pytest.raises(ValueError, match="is missing for"):
        clone(model).fit(X, y)


def test_what_cannot_complete_views_says_who_can():
    X, y = arrays()
    with pytest.raises(ValueError, match=r"needs all views of every sample.*MKLClassifier"):
        KernelFeatures(KERNELS).fit(X)
    for criterion in ("loo", "folds"):
        with pytest.raises(ValueError, match="'convex', which completes every fold"):
            MKLRegressorCV(KERNELS, criterion=criterion, missing="predict").fit(X, y)


def test_outputs_that_lp_beta_learns_from_are_completed_by_their_folds():
    """What a kernel's SVM says of held-out samples is what a fit without them says."""
    X, y = arrays()
    kernels = kw.gaussian(1.0, relative=True)
    model = LPBetaClassifier(kernels, n_folds=3, nu=0.2, missing="predict", tol=1e-8).fit(X, y)
    right = np.zeros((3, N), dtype=bool)
    for train, test in StratifiedKFold(3, shuffle=True, random_state=0).split(y, y):
        for j in range(3):
            alone = MKLClassifier(kernels, norm=Fixed(np.eye(3)[j]), missing="predict", tol=1e-8)
            right[j, test] = alone.fit(X[train], y[train]).predict(X[test]) == y[test]
    np.testing.assert_allclose(model.kernel_scores_, right.mean(axis=1))


def test_a_view_that_is_not_there_at_all_and_patterns_never_seen():
    X, y = arrays()
    model = MKLClassifier(KERNELS, norm=2, missing="predict").fit(X, y)
    whole = tables()[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KernelWeaveWarning)
        values = model.decision_function({"protein": whole["protein"]})  # mrna was never missing in training
    assert np.isfinite(values).all()
    with pytest.warns(KernelWeaveWarning, match="none of the 90 new samples has view"):
        model.predict({"protein": whole["protein"], "mrna": whole["mrna"]})


def test_what_does_not_go_with_missing_views_is_refused():
    X, y = arrays()
    for options, what in (
        ({"storage": "lowrank"}, "storage='auto'"),
        ({"storage": "stream"}, "storage='auto', not 'stream'"),
        ({"dtype": "float32"}, "double precision"),
        *([({"device": "cpu"}, "device=None")] if find_spec("torch") else []),
    ):
        with pytest.raises(ValueError, match=what):
            MKLClassifier(KERNELS, missing="mean", **options).fit(X, y)
    online = MKLClassifier(KERNELS, solver="obscure", norm=1.5, fit_intercept=False, missing="mean")
    with pytest.raises(ValueError, match="partial_fit completes no views"):
        online.partial_fit(X, y, classes=[0, 1])


def test_missingness_that_depends_on_the_class_is_warned_of():
    X, y = tables()
    X["protein"] = X["protein"].loc[[name for name in X["protein"].index if y[name] == 1 or name < "p5"]]
    with pytest.warns(KernelWeaveWarning, match="'protein' is missing for"):
        MKLClassifier(KERNELS, missing="mean").fit(X, y)


def test_views_of_several_kinds_side_by_side():
    import scipy.sparse as sp

    from kernelweave.inspection import feature_weights

    X, y = tables()
    whole = Views(X, index=y.index)
    words = np.array(["a" if label else "b" for label in y], dtype=object)
    mixed = Views(
        {"mrna": whole["mrna"], "counts": sp.csr_matrix(whole["mirna"] * (whole["mirna"] > 0)), "word": words}
    )
    same = kw.function(lambda s, t: float(s == t)).on("word")
    model = MKLClassifier(kw.linear().on("mrna") + kw.gaussian(2.0).on("counts") + same, norm=2).fit(
        mixed, y.to_numpy()
    )
    assert model.score(mixed, y.to_numpy()) > 0.9
    assert len(feature_weights(model)) == 8
    gone = mixed[np.arange(N)]
    gone.present[:30, 0] = False
    completed = MKLClassifier(
        kw.linear().on("mrna") + kw.gaussian(2.0).on("counts") + same, missing="predict"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KernelWeaveWarning)
        assert completed.fit(gone, y.to_numpy()).score(gone, y.to_numpy()) > 0.9


@pytest.mark.parametrize("how", ["mean", "predict"])
def test_a_model_that_keeps_no_kernel_predicts_its_intercept(how):
    """A threshold above every block norm leaves no weight at all, and samples that lack views are no exception."""
    from kernelweave.norms import Elastic

    rng = np.random.default_rng(0)
    views = {"a": rng.normal(size=(30, 2)), "b": rng.normal(size=(30, 3))}
    views["b"][::3] = np.nan
    y = rng.normal(size=30)
    model = MKLRegressor(kw.linear(), norm=Elastic(30.0), missing=how).fit(views, y)
    assert not np.any(model.weights_)
    np.testing.assert_allclose(model.predict(views), np.mean(y), rtol=1e-9)
