"""Leave-one-out predictions in closed form, beside fits that leave every sample out."""

from __future__ import annotations

import numpy as np
import pytest

from kernelweave import MKLClassifier, MKLRegressor, MKLRegressorCV, norms
from kernelweave import kernels as kw
from kernelweave.exceptions import KernelWeaveConvergenceWarning
from kernelweave.persistence import load, save

from . import by_hand
from .data import bank


def refitted(model, X, y, weight):
    """Predictions of every sample by a fit on the others, with the weights and C of the whole fit."""
    out = np.empty(y.shape)
    for i in range(len(y)):
        others = np.arange(len(y)) != i
        # kernels that keep the scale of all samples
        given = norms.Fixed(model.weights_)
        fixed = MKLRegressor(
            model.kernels,
            norm=given,
            C=model.C_,
            normalize=None,
            fit_intercept=model.fit_intercept,
            tol=1e-12,
        )
        out[i] = fixed.fit(X[others], y[others], sample_weight=weight[others]).predict(X[[i]])[0]
    return out


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("targets", [1, 3])
def test_closed_form(intercept, weighted, targets):
    X, y = by_hand.curve(30)
    weight = np.random.default_rng(0).uniform(0.3, 2.0, size=30) if weighted else np.ones(30)
    weight[[4, 9]] = 0.0 if weighted else 1.0
    Y = y if targets == 1 else np.column_stack([y, X[:, 1] ** 2, X @ [1.0, 0.0, -1.0]])
    model = MKLRegressor(
        bank(), norm=1.5, C=3.0, normalize=None, fit_intercept=intercept, leave_one_out=True
    ).fit(X, Y, sample_weight=weight)
    np.testing.assert_allclose(model.loo_predictions_, refitted(model, X, Y, weight), atol=1e-6)
    assert np.abs(model.loo_predictions_ - model.predict(X))[weight > 0].min() > 1e-7


def test_targets_with_weights_of_their_own_and_missing_entries():
    X, y = by_hand.curve(30)
    Y = np.column_stack([y, X[:, 1] ** 2])
    Y[[3, 17], 1] = np.nan
    options = {"norm": 2, "C": 2.0, "leave_one_out": True}
    model = MKLRegressor(bank(), multi_output="each", tol=1e-9, **options).fit(X, Y)
    known = np.isfinite(Y[:, 1])
    alone = MKLRegressor(bank(), tol=1e-9, **options).fit(
        X, np.where(known, Y[:, 1], 0.0), sample_weight=known
    )
    np.testing.assert_allclose(model.loo_predictions_[:, 1], alone.loo_predictions_, atol=1e-6)
    np.testing.assert_allclose(alone.loo_predictions_[~known], alone.predict(X[~known]), atol=1e-4)


def test_search_centring_files_and_later_fits(tmp_path):
    X, y = by_hand.curve(14)
    for center in (False, True):  # a constant in every kernel is the intercept's
        model = MKLRegressorCV(
            bank(), Cs=[0.3, 3.0], cv=3, norm="uniform", center=center, normalize=None, leave_one_out=True
        ).fit(X, y)
        np.testing.assert_allclose(model.loo_predictions_, refitted(model, X, y, np.ones(14)), atol=1e-6)
    save(model, tmp_path / "model.skops")
    np.testing.assert_array_equal(load(tmp_path / "model.skops").loo_predictions_, model.loo_predictions_)
    assert not hasattr(model.set_params(leave_one_out=False).fit(X, y), "loo_predictions_")


def test_they_do_not_depend_on_how_far_the_solver_went():
    X, y = by_hand.curve(40)
    rough, fine = (
        MKLRegressor(bank(), norm="uniform", tol=tol, leave_one_out=True).fit(X, y) for tol in (0.3, 1e-10)
    )
    np.testing.assert_allclose(rough.loo_predictions_, fine.loo_predictions_, atol=1e-12)


def test_refusals():
    X, y = by_hand.curve(30)
    with pytest.raises(ValueError, match="closed form for loss='squared'"):
        MKLRegressor(loss="epsilon_insensitive", leave_one_out=True).fit(X, y)
    with pytest.raises(ValueError, match="leave_one_out must be True or False"):
        MKLRegressor(leave_one_out=3).fit(X, y)
    with pytest.raises(ValueError, match="goes with criterion='convex'"):
        MKLRegressorCV(criterion="reml", leave_one_out=True).fit(X, y)
    with pytest.raises(MemoryError, match="and its inverse"):
        MKLRegressor(kw.linear(), memory_budget=20_000, storage="lowrank", leave_one_out=True).fit(X, y)
    with pytest.warns(KernelWeaveConvergenceWarning) as said:
        late = MKLRegressor(kw.gaussian(1.0), max_seconds=1e-9, leave_one_out=True).fit(X, y)
    assert any("could be left out" in str(one.message) for one in said)
    assert not hasattr(late, "loo_predictions_")
    with pytest.raises(TypeError, match="leave_one_out"):
        MKLClassifier(leave_one_out=True)
