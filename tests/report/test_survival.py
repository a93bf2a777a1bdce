"""Reports of times to an event: refits beside simpler methods, and the numbers that are on the page."""

from __future__ import annotations

import re
import sys

import numpy as np
import pytest
from sklearn.model_selection import StratifiedGroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelweave import MKLClassifier, MKLSurvival, MKLSurvivalCV, metrics, survival
from kernelweave import kernels as kw
from kernelweave.displays import CalibrationDisplay, SurvivalDisplay
from kernelweave.inspection import (
    calibration,
    feature_weights,
    martingale_residuals,
    risk_groups,
    tied_views,
    view_subsets,
)
from kernelweave.report import compare_models, make_report
from kernelweave.report.survival import KaplanMeier, TimesToEvent, hazard_ratios

from .refitted import refit, subject_of

RNG = np.random.default_rng(0)
N = 100
X = RNG.normal(size=(N, 8)) * np.array([1, 5, 1, 1, 1, 1, 1, 1])
RISK = X[:, 2] + 0.2 * X[:, 1]
DIES, LEAVES = RNG.exponential(np.exp(-RISK)), RNG.exponential(2.0, N)
Y = survival(np.minimum(DIES, LEAVES), DIES <= LEAVES)
CENTRE = np.where(np.arange(N) % 3, "north", "south")
BANK = kw.always(kw.linear().on([0, 1]), 100.0) + kw.per_view(
    {"a": slice(2, 5), "b": slice(5, 8)}, kw.linear()
)


@pytest.fixture
def no_forest(monkeypatch):
    """Without scikit-survival, whose forest takes longest."""
    monkeypatch.setattr("kernelweave.report.survival.find_spec", lambda name: None)


def text_of(page):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))


def test_held_out_numbers_are_those_of_fits_by_hand(no_forest):
    model = MKLSurvival(BANK, C=0.1).fit(X, Y)
    found = refit(model, X, Y)
    assert [method.name for method in found.methods] == [
        "this model", "mean kernel", "ridge Cox", "covariates alone", "Kaplan-Meier",
    ]  # fmt: skip
    targets = found.targets
    at = targets.times
    assert np.isin(targets.horizons, at).all()
    scores = []
    for train, test in found.splits:
        assert Y["event"][test].any()
        other = MKLSurvival(BANK, C=0.1).fit(X[train], Y[train])
        risk = other.predict(X[test])
        np.testing.assert_allclose(found.ours.predicted[0, test].astype(float), risk)
        curves = other.predict_survival_function(X[test])
        survived = np.array([curve(at) for curve in curves])
        np.testing.assert_allclose(found.ours.decision[0, test, :-1], survived)
        own = [curve(time) for curve, time in zip(curves, Y["time"][test], strict=True)]
        np.testing.assert_allclose(found.ours.decision[0, test, -1], own)
        scores.append([
            metrics.concordance(Y[test], risk), metrics.concordance_ipcw(Y, Y[test], risk),
            metrics.integrated_brier_score(Y, Y[test], survived, at),
        ])  # fmt: skip
    np.testing.assert_allclose(np.transpose(scores), list(found.ours.scores.values()))
    same = found.baseline
    assert same.scores["concordance"] == [0.5] * 3
    train, test = found.splits[0]
    curve = metrics.kaplan_meier(Y[train])
    np.testing.assert_allclose(same.decision[0, test, :-1], np.tile(curve(at), (len(test), 1)))
    # covariates alone are ridge Cox regression on the two columns
    alone = found.methods[3]
    scaled = StandardScaler().fit(X[train][:, :2])
    by_hand = MKLSurvivalCV(kw.linear(), cv=3, random_state=0).fit(
        scaled.transform(X[train][:, :2]), Y[train]
    )
    np.testing.assert_allclose(
        alone.predicted[0, test].astype(float), by_hand.predict(scaled.transform(X[test][:, :2])), atol=1e-10
    )


def test_better_than_guessing_and_patterns(no_forest):
    found = refit(MKLSurvival(BANK, C=0.1).fit(X, Y), X, Y)
    place = found.place
    for _, test in found.splits:
        risk = found.ours.predicted[0, test].astype(float)
        np.testing.assert_array_equal(np.argsort(place[test]), np.argsort(risk))
        assert (place[test].min(), place[test].max()) == (0.0, 1.0 - 1.0 / len(test))
    assert found.p_value == metrics.log_rank_p_value(Y, risk_groups(place)) < 0.05
    assert found.better_than_guessing
    rows = np.arange(N) < 50
    value = metrics.concordance(Y[rows], found.ours.predicted[0, rows].astype(float))
    assert found.among(rows) == ("concordance", value, f"{value:.3f}")
    assert np.isnan(found.among(np.arange(N) < 1)[1])
    noise = np.random.default_rng(3).normal(size=(N, 4))
    assert not refit(MKLSurvival(kw.linear(), C=0.1).fit(noise, Y), noise, Y).better_than_guessing


def test_hazard_ratios():
    model = make_pipeline(StandardScaler(), MKLSurvival(BANK, C=0.1)).fit(X, Y)
    Z = model[0].transform(X)
    weights = feature_weights(model).set_index("feature")["weight"]
    ratios = hazard_ratios(model, Z)
    assert sorted(ratios.index) == [0, 1]
    assert ratios[1] == pytest.approx(np.exp(weights["x1"]))
    # a standard deviation more of the column multiplies the hazard
    more = X.copy()
    more[:, 1] += X[:, 1].std()
    np.testing.assert_allclose(np.exp(model.predict(more) - model.predict(X)), ratios[1], rtol=1e-6)
    assert hazard_ratios(MKLSurvival(kw.linear()).fit(X, Y), X) is None
    times = MKLSurvival(BANK, loss="censored_squared", C=0.1).fit(X, Y)
    assert hazard_ratios(times, X) is None
    curved = kw.always(kw.gaussian(2.0).on([0, 1]), 10.0) + kw.linear()
    assert hazard_ratios(MKLSurvival(curved, C=0.1).fit(X, Y), X) is None
    # a column that another kernel looks at does not change alone
    shared = kw.always(kw.linear().on([0, 1]), 10.0) + kw.gaussian(2.0).on([1, 2])
    assert hazard_ratios(MKLSurvival(shared, C=0.1).fit(X, Y), X).index.tolist() == [0]


def test_the_page_with_strata():
    pytest.importorskip("sksurv")
    model = MKLSurvival(BANK, C=0.1).fit(X, Y, strata=CENTRE)
    page = make_report(model, X, Y, strata=CENTRE, n_folds=2, n_repeats=1)
    text = text_of(page)
    for part in (
        "What happened to whom", "low risk", "Covariates that always count", "The least expected", "nats per event",
        "random survival forest: 100 trees", "without strata", "one curve for each stratum", "given given",
    ):  # fmt: skip
        assert part in text
    assert 'id="subsets"' not in page
    assert 'id="sensitivity"' not in page
    with pytest.raises(ValueError, match="was fitted with strata: say that of every sample"):
        make_report(model, X, Y)
    with pytest.raises(ValueError, match="one label per sample, 100 of them"):
        make_report(model, X, Y, strata=CENTRE[:5])
    with pytest.raises(ValueError, match="fitted without strata"):
        make_report(MKLSurvival(BANK, C=0.1).fit(X, Y), X, Y, strata=CENTRE)
    with pytest.raises(ValueError, match="strata are of models of survival"):
        make_report(MKLClassifier(BANK).fit(X, Y["event"]), X, Y["event"], strata=CENTRE)


def test_a_stratum_that_a_fold_has_not_seen_has_no_curve():
    targets = TimesToEvent(Y, strata=CENTRE)
    train = np.flatnonzero(CENTRE == "north")[:40]
    fitted = MKLSurvival(BANK, C=0.1).fit(X[train], Y[train], strata=CENTRE[train])
    rows = np.flatnonzero(CENTRE == "south")
    risk, values = targets.predicted(fitted, X[rows], rows)
    np.testing.assert_allclose(risk, fitted.predict(X[rows]))
    assert np.isnan(values).all()
    assert np.isnan(targets.measures[2].of(Y[rows], risk, values))
    same = KaplanMeier().fit(X[train], Y[train], strata=CENTRE[train])
    assert np.isnan(targets.predicted(same, X[rows], rows)[1]).all()
    # of one censored sample there is no concordance
    one = np.flatnonzero(~Y["event"])[:1]
    assert np.isnan(targets.measures[0].of(Y[one], np.zeros(1), None))


def test_log_times_views_and_groups(no_forest):
    """Tables as views, of which some lack one; a loss of log times; whole groups held out."""
    tables = {"a": X[:, :4].copy(), "b": X[:, 4:].copy()}
    tables["b"][:15] = np.nan
    model = MKLSurvivalCV(
        kw.linear().on("a") + kw.linear().on("b"),
        loss="censored_squared",
        norm=2,
        Cs=[0.1, 1.0],
        cv=StratifiedGroupKFold(2),
        missing="mean",
    ).fit(tables, Y, groups=np.arange(N) // 2)
    page = make_report(model, tables, Y, n_folds=3, n_repeats=1, groups=np.arange(N) // 2)
    text = text_of(page)
    assert "lengthens the predicted time" in text
    assert "concordance on held-out folds" in text  # by patterns of missing views, too
    assert "log loss" not in text
    assert re.search(r"b 15 ", text)


def test_pipelines_have_curves():
    scaled = make_pipeline(StandardScaler(), MKLSurvival(BANK, C=0.1)).fit(X, Y)
    bare = MKLSurvival(BANK, C=0.1).fit(scaled[0].transform(X), Y)
    Z = scaled[0].transform(X)
    assert calibration(scaled, X, Y).equals(calibration(bare, Z, Y))
    np.testing.assert_array_equal(martingale_residuals(scaled, X, Y), martingale_residuals(bare, Z, Y))
    assert metrics.scorer("brier")(scaled, X, Y) == metrics.scorer("brier")(bare, Z, Y)
    line = SurvivalDisplay.from_estimator(scaled, X[:1]).lines_[0]
    np.testing.assert_array_equal(line.get_ydata()[1:], bare.predict_survival_function(Z[:1])[0].y)
    assert len(CalibrationDisplay.from_estimator(scaled, X, Y).lines_) == 3
    if "sksurv" not in sys.modules:  # it gives pipelines these methods
        assert not hasattr(scaled, "predict_survival_function")


def test_two_models_are_compared():
    models = {
        "sparse": (MKLSurvival(BANK, C=0.1).fit(X, Y), X),
        "one": (MKLSurvival(kw.linear().on([5]), C=0.1).fit(X, Y), X),
    }
    found = compare_models(models, Y, n_folds=3)
    assert found.measures.index.tolist() == ["concordance", "Uno’s", "Brier score"]
    assert found.measures.loc["concordance", "difference"] < -0.1
    assert "sparse is better than one" in found.sentence()
    assert found.page("two").startswith("<!DOCTYPE html>")
    with pytest.raises(ValueError, match="not both the same"):
        compare_models(models | {"one": (MKLClassifier(BANK).fit(X, Y["event"]), X)}, Y)


def test_weights_that_are_given_are_no_shares_of_what_is_learnt(no_forest):
    model = MKLSurvivalCV(BANK, Cs=[0.1, 0.3, 1.0], cv=5).fit(X, Y)
    tied = tied_views(model)
    assert tied.names == ["a", "b"]
    np.testing.assert_allclose(tied.shares.sum(axis=1), 1.0)
    subject = subject_of(model, X, Y)
    from kernelweave.report.sections.sensitivity import sensitivity_section, subsets_of_views

    subsets, worth = subsets_of_views(subject)
    assert len(subsets) == len(view_subsets(model, X, Y)) == 7
    assert "features 0, 1" not in worth  # they are there to adjust for
    assert "features 0, 1" not in sensitivity_section(subject)
