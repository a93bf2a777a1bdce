"""Survival models inspected: residuals, calibration, groups of risk, and the tools that other estimators have."""

from __future__ import annotations

import numpy as np
import pytest

from kernelweave import MKLClassifier, MKLSurvival, metrics, survival
from kernelweave import kernels as kw
from kernelweave.inspection import (
    calibration,
    contributions,
    drop_view,
    martingale_residuals,
    risk_groups,
    shapley_values,
    view_importance,
    view_p_values,
    view_subsets,
    weight_stability,
)

VIEWS = kw.per_view({"signal": slice(0, 2), "noise": slice(2, 4)}, kw.linear())


@pytest.fixture(scope="module", params=["cox", "censored_squared"])
def fitted(request):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    dies, until = rng.exponential(np.exp(-1.5 * X[:, 0])), rng.exponential(2.0, 120)
    y = survival(np.minimum(dies, until), dies <= until)
    return MKLSurvival(VIEWS, loss=request.param, norm=2, C=0.2, tol=1e-7).fit(X[:80], y[:80]), X, y


def test_views_of_a_risk(fitted):
    model, X, y = fitted
    parts = contributions(model, X[:4])
    np.testing.assert_allclose(parts.sooner * parts.decision, model.predict(X[:4]), atol=1e-12)
    shares = shapley_values(model, X[:4], X)
    np.testing.assert_allclose(shares.decision, parts.decision, atol=1e-12)
    assert abs(shares.values[:, 0]).sum() > abs(shares.values[:, 1]).sum()
    table = view_p_values(model, X, y, n_permutations=99).set_index("view")
    assert table.loc["signal", "p_value"] == 0.01
    lost = table["quality"] - table["shuffled"]
    assert lost["signal"] > 10 * lost["noise"]
    assert 0.6 < table.loc["signal", "quality"] < 1.0
    assert table.loc["signal", "shuffled"] == pytest.approx(0.5, abs=0.06)


def test_tools_that_refit(fitted):
    model, X, y = fitted
    X, y = X[:80], y[:80]
    assert weight_stability(model, X, y, n_refits=3).by_view()["view"].tolist() == ["signal", "noise"]
    subsets = view_subsets(model, X, y, n_folds=3)
    assert subsets["score"].iloc[0] > 0.65
    assert subsets.set_index("views").loc["noise", "score"] < 0.62
    importance = view_importance(model, X, y, n_permutations=19, n_folds=3).table.set_index("view")
    assert importance.loc["signal", "score"] - importance.loc["signal", "without"] > 0.1
    without = drop_view(model, X, y, view="noise", n_folds=3)
    assert without.model.predict(X).shape == (80,)
    assert without.model.predict_median(X).shape == (80,)


def test_residuals_and_calibration(fitted):
    model, X, y = fitted
    residuals = martingale_residuals(model, X[:80], y[:80])
    assert np.all(residuals <= 1.0)
    assert residuals.sum() == pytest.approx(0.0, abs=1e-6)
    if model.loss_.proportional:
        np.testing.assert_allclose(residuals, model.dual_coef_ / 0.2, atol=1e-3)
    table = calibration(model, X[80:], y[80:], n_groups=2)
    assert len(table) == 6
    assert table.groupby("time")["samples"].sum().tolist() == [40] * 3
    for time, rows in table.groupby("time"):
        assert rows["predicted"].is_monotonic_increasing
        np.testing.assert_allclose(rows["predicted"], rows["observed"], atol=0.35)
        whole = model.predict_survival_function(X[80:])
        assert np.average(rows["predicted"], weights=rows["samples"]) == pytest.approx(
            np.mean([curve(time) for curve in whole])
        )


def test_groups_of_risk():
    risk = np.array([3.0, 1.0, 1.0, 2.0, 0.0, 5.0])
    assert risk_groups(risk).tolist() == [2, 0, 0, 1, 0, 2]
    assert set(risk_groups(np.zeros(5)).tolist()) == {0}
    assert risk_groups(risk, 1).tolist() == [0] * 6
    with pytest.raises(ValueError, match="whole number"):
        risk_groups(risk, 0)


def test_what_is_no_survival_is_refused(fitted):
    model, X, y = fitted
    with pytest.raises(ValueError, match="times to an event"):
        calibration(MKLClassifier(VIEWS).fit(X, y["event"]), X, y["event"])
    with pytest.raises(ValueError, match="no sample has the event"):
        calibration(model, X, survival(y["time"], np.zeros(120, dtype=bool)))
    assert metrics.concordance(y, model.predict(X)) == model.score(X, y)
