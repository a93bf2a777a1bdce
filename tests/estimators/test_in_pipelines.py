"""Inside scikit-learn: grid searches over kernel parameters, tags, named columns, coef_, seeds, switches."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils import get_tags

from kernelweave import (
    DenoiseSpectrum,
    LPBetaClassifier,
    MKLClassifier,
    MKLClassifierCV,
    MKLRegressor,
    NoisyLabelMKLClassifier,
    ViewScaler,
)
from kernelweave import kernels as kw

X, Y = load_iris(return_X_y=True)
TWO = (Y == 1).astype(int)


# ---- parameters of kernels -----------------------------------------------------------------------------------------


def test_a_grid_search_over_kernels_of_a_stack():
    model = MKLClassifier(kw.gaussian(1.0) + kw.linear(), norm=2)
    grid = {"kernels__0__width": [0.01, 1.0], "kernels__gaussian__relative": [False, True]}
    search = GridSearchCV(model, grid, cv=3).fit(X, Y)
    assert search.best_params_["kernels__0__width"] == 1.0
    assert len(set(search.cv_results_["mean_test_score"].tolist())) > 1
    assert model.kernels[0].width == 1.0  # the given one is not changed


@pytest.mark.parametrize(
    ("bank", "name", "attribute"),
    [
        (kw.gaussian([1.0, 2.0]) + kw.linear(), "kernels__gaussian-2__width", lambda bank: bank[1].width),
        (kw.per_feature(kw.gaussian(1.0)), "kernels__gaussian__width", lambda bank: bank.families[0].width),
        (kw.per_view({"a": [0, 1]}, kw.linear(), kw.gaussian(1.0)), "kernels__1__width", lambda bank: bank.families[1].width),
        (kw.nystroem(kw.gaussian(1.0), rank=10), "kernels__rank", lambda bank: bank.n_landmarks),
        (kw.nystroem(kw.gaussian(1.0), rank=10), "kernels__kernel__width", lambda bank: bank.kernel.width),
        (kw.nystroem(kw.per_feature(kw.gaussian(1.0)), rank=9), "kernels__rank", lambda bank: bank.n_landmarks),
    ],
    ids=["second of two", "per feature", "per view", "rank", "inside nystroem", "nystroem of a family"],
)  # fmt: skip
def test_names_of_kernel_parameters(bank, name, attribute):
    model = clone(MKLClassifier(bank)).set_params(**{name: 5})
    assert attribute(model.kernels) == 5
    assert model.get_params()[name] == 5
    assert attribute(clone(model).kernels) == 5
    assert attribute(bank) != 5
    model.fit(X, TWO)


def test_whole_parts_can_be_exchanged_and_unknown_names_are_refused():
    model = MKLClassifier(kw.gaussian(1.0) + kw.linear()).set_params(kernels__1=kw.cosine())
    assert [kernel.name for kernel in model.kernels] == ["gaussian(width=1)", "cosine"]
    with pytest.raises(ValueError, match="Invalid parameter 'laplacian'"):
        model.set_params(kernels__laplacian__width=2.0)
    assert kw.nystroem(kw.gaussian(1.0)).set_params(rank=7).get_params()["rank"] == 7


def test_what_was_settled_is_no_parameter():
    for kernel in (
        kw.gaussian(1.0, relative=True),
        kw.nystroem(kw.gaussian(1.0), rank=5),
        kw.random_fourier(1.0, 10),
        kw.from_distance("euclidean"),
    ):
        settled = kernel.resolve(X)
        assert not {"scale", "landmarks", "root", "frequencies"} & set(settled.get_params())
        assert settled.get_params(deep=False).keys() == kernel.get_params(deep=False).keys()
        again = clone(settled).resolve(X)
        np.testing.assert_allclose(again(X[:9]), settled(X[:9]))
        # two that were settled on other samples are not the same kernel
        assert (
            kernel.resolve(X[:50]).base_key != settled.base_key
            or kernel.resolve(X[:50]).exponent != settled.exponent
        )


# ---- samples -------------------------------------------------------------------------------------------------------


def test_one_precomputed_matrix_goes_through_cross_validation():
    K = kw.gaussian(1.0)(X)
    assert get_tags(MKLClassifier("precomputed")).input_tags.pairwise
    assert not get_tags(MKLClassifier()).input_tags.pairwise
    given = cross_val_score(MKLClassifier("precomputed"), K, Y, cv=3)
    computed = cross_val_score(MKLClassifier(kw.gaussian(1.0)), X, Y, cv=3)
    np.testing.assert_allclose(given, computed, atol=0.021)


def test_columns_of_arrow_tables_keep_their_names():
    frame = pd.DataFrame(X, columns=list("abcd"))
    table = pa.table({name: frame[name].to_numpy() for name in frame})
    bank = kw.linear().on("c") + kw.gaussian(1.0).on(["a", "d"])
    model = MKLClassifier(bank, norm=2).fit(table, Y)
    assert model.feature_names_in_.tolist() == list("abcd")
    expected = MKLClassifier(bank, norm=2).fit(frame, Y)
    np.testing.assert_allclose(model.decision_function(table), expected.decision_function(frame))


# ---- what is read off a model --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (MKLClassifier(kw.linear()), TWO),
        (MKLClassifier(kw.per_feature(kw.linear()), norm=2), Y),
        (MKLClassifier(kw.linear(), loss="multiclass_hinge"), TWO),
        (LPBetaClassifier(kw.per_feature(kw.linear())), TWO),
        (MKLRegressor(kw.linear()), X[:, 2]),
    ],
)
def test_coef_where_all_kernels_are_linear(model, y):
    model.fit(X, y)
    values = getattr(model, "decision_function", model.predict)(X)
    intercept = model.intercept_
    if values.ndim == 1 and np.size(intercept) == 2:
        intercept = intercept[1] - intercept[0]
    by_hand = X @ model.coef_.T + intercept
    np.testing.assert_allclose(by_hand[:, 0] if values.ndim == 1 else by_hand, values, atol=1e-8)


def test_no_coef_where_a_kernel_is_not_linear():
    assert not hasattr(MKLClassifier(), "coef_")
    assert not hasattr(MKLClassifier(kw.linear() + kw.gaussian(1.0), norm=2).fit(X, TWO), "coef_")
    assert not hasattr(MKLClassifier(kw.linear(), center=True).fit(X, TWO), "coef_")
    assert not hasattr(MKLClassifier("precomputed").fit(X @ X.T, TWO), "coef_")


# ---- seeds and switches --------------------------------------------------------------------------------------------


def test_random_state_reaches_solvers_given_by_name_and_folds():
    bank = kw.random_fourier(2.0, 20)

    def fitted(solver, seed):
        return MKLClassifier(
            bank, loss="logistic", norm=2, solver=solver, tol=0.3, max_iter=2, random_state=seed
        ).fit(X, TWO).dual_coef_  # fmt: skip

    from kernelweave.solvers.svrg import SVRG

    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", UserWarning
        )  # two iterations are not enough, and not what this is about
        np.testing.assert_array_equal(fitted("svrg", 3), fitted("svrg", 3))
        assert not np.array_equal(fitted("svrg", 3), fitted("svrg", 4))
        np.testing.assert_array_equal(fitted(SVRG(), 3), fitted(SVRG(), 4))  # its own seed wins
    # other folds, other areas under the curve; shares of 50 samples may agree by chance
    search = {"Cs": [100.0], "cv": 3, "scoring": "roc_auc"}
    a, b = (MKLClassifierCV(kw.linear(), random_state=seed, **search).fit(X, TWO) for seed in (0, 1))
    assert a.cv_results_["score"].tolist() != b.cv_results_["score"].tolist()
    with pytest.raises(ValueError, match="random_state must be"):
        MKLClassifier(random_state="lucky").fit(X, Y)


@pytest.mark.parametrize(
    ("fit", "name"),
    [
        (lambda: MKLClassifier(center="no").fit(X, Y), "center"),
        (lambda: MKLClassifier(fit_intercept="yes").fit(X, Y), "fit_intercept"),
        (lambda: MKLClassifier(warm_start="False").fit(X, Y), "warm_start"),
        (lambda: NoisyLabelMKLClassifier(exact_set="no").fit(X, Y), "exact_set"),
        (lambda: LPBetaClassifier(fit_intercept="no").fit(X, Y), "fit_intercept"),
        (lambda: DenoiseSpectrum(normalize="no").fit(X @ X.T), "normalize"),
        (lambda: ViewScaler(equal_views="no").fit({"a": X}), "equal_views"),
        (lambda: kw.gaussian(1.0, relative="no"), "relative"),
        (lambda: kw.random_fourier(1.0, 10, relative="no"), "relative"),
    ],
)
def test_switches_refuse_words(fit, name):
    with pytest.raises(ValueError, match=f"{name} must be True or False"):
        fit()
